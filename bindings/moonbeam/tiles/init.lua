--- Convolution by tiles that fit a budget: overlap-save, whose result is the untiled one, to
-- rounding.
--
-- A tile of S elements along an axis needs S + k - 1 of the input (k: the PSF's extent). What lies
-- outside the input comes from the boundary, the rest from the neighbors. All tiles share one grid
-- and one transfer function. Input and result are volumes (moonbeam.volumes): on the device, on the
-- host or in files; only a tile and its neighborhood travel, while the tile before is worked on.
-- The result depends on the extents of the tiles alone, not on overlap or devices.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local convolution = require "moonbeam.convolution"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local on_error = require "moonbeam.internal.on_error"
local gate = require "moonbeam.deconv.value_gate"
local psf_tools = require "moonbeam.psf"
local top = require "moonbeam.psf.top"
local search = require "moonbeam.tiles.search"
local sweep = require "moonbeam.tiles.sweep"
local volumes = require "moonbeam.volumes"
local whole_call = require "moonbeam.internal.whole"

local tiles = {}

local VOLUME = declared.options(sweep.options, convolution.options.boundary,
    convolution.options.center, {"normalize", "boolean", "the PSF is made to sum to 1"},
    {"correlate", "boolean", "the adjoint"},
    {"on_tile", "callable", "a function (number, total), called after each tile"})
local ARRAY = declared.options(VOLUME,
    {"out", "array", "the array for the result", usual = "a new one on the image's device"})

-- What a convolution is, whatever way it is cut: the volumes, the PSF, and `below`, what a tile
-- needs before it.
local function job_of(what, source, psf, sink, options, usual)
    if options.boundary == "circular" then
        fail("unsupported", what, "boundary",
            "tiles do not wrap around: give the option boundary ('zero', 'reflect', 'mirror' or "
            .. "'replicate')")
    end
    local given = psf_tools.center(psf, options.center)
    local center = top.voxel(given)
    convolution.layout(source.shape, psf.shape, center,
        {boundary = options.boundary, correlate = options.correlate})
    local job = {what = what, source = source, psf = psf, sink = sink, options = options,
        given = given, devices = sweep.devices(options, usual), below = {}, before = {},
        most = {}, shape = source.shape, kernel = psf.shape, tile = options.tile}
    for i, k in ipairs(psf.shape) do
        local above = center[i]
        job.below[i] = k - 1 - above
        if options.correlate then
            job.below[i], above = above, job.below[i]
        end
        job.before[i] = -job.below[i]
        -- Reflections must stay inside a tile's piece.
        job.most[i] = math.max(1, source.shape[i] // (math.max(job.below[i], above) + 1))
    end
    job.available, job.limits = search.available(job.devices, options)
    return job
end

-- Raises where the sum of the result of a tile is not finite.
local function check(job, sum, tile)
    if not finite.is_number(sum) then
        local piece <close> = job.source:read(tile.from, tile.take, mb.device "host")
        finite.fail(piece, "tiles.convolve", gate.block(tile.from))
    end
end

-- All tiles, or some: the same function is planned and run. Returns the times, a list of one.
local function run(job, devices, plan, tiles_of, on_tile)
    local options, n, done, last = job.options, plan.grid[#plan.grid], 0, {}
    local tiles_there = tiles_of(search.cut(job.shape, job.shape, job.kernel, job.before,
        plan.counts))
    local sums <close> = sweep.tally(devices, plan.total, 1)
    local states <close> = sweep.states(devices, job.psf, function(state, _, psf)
        state.otf = convolution.transfer(psf, plan.grid,
            {center = job.given, normalize = options.normalize or false})
    end)
    local times = sweep.run(sweep.settings(job, devices, plan, 1), plan.grid, tiles_there, {
            reads = {{job.source, sweep.around}}, writes = {job.sink}, again = true,
            compute = function(blocks, tile, device, give)
                local before = last[device.id]
                if before and not device.dry then
                    -- It waits for the device, but not for what is read and written meanwhile.
                    check(job, sums:row(before)[1], before)
                end
                blocks[1] = volumes.real(blocks[1])
                local grid <close> = mb.embed(blocks[1], plan.grid,
                    {before = tile.before, boundary = options.boundary})
                blocks[1]:release()
                convolution.apply(grid, states[device.id].otf, n, options.correlate)
                local part <close> = grid:view(convolution.ranges(job.below, tile.extents))
                sums:put(device, tile, mb.reduce(part, "sum"))
                -- Where results stay on a GPU, all are looked at in the end: nothing else waits.
                if device.kind == "host" or job.sink.place ~= device.id then
                    last[device.id] = tile
                end
                give(1, part)
            end,
            done = on_tile and function()
                done = done + 1
                on_tile(done, plan.total)
            end,
        })
    for _, lane in ipairs(times.lanes) do
        if lane.lost then -- its tiles that are whole were looked at before the next ones
            sums:forget(lane.device)
        end
    end
    local by_tile = sums:read()
    for _, tile in ipairs(by_tile and tiles_there or {}) do
        local own = by_tile[tile.number] or {}
        check(job, own[1] or 0, tile)
    end
    return {times}
end

local function plan_of(job)
    local devices, source, sink = job.devices, job.source, job.sink
    local device, count = devices[1], #devices
    sweep.set_overlaps(job, sweep.travels(devices, source, sink))
    function job.seconds(made)
        -- the half: the transfer function
        return (made.total / count + 0.5) * search.convolution_seconds(device, made.points),
            search.transfer_seconds(device, source.place, volumes.bytes(source) * made.work,
                made),
            search.transfer_seconds(device, sink.place, volumes.bytes(sink), made)
    end
    job.run = run
    return sweep.plan(job)
end

local function planned_and_run(job)
    job.run, job.again = run, plan_of
    local plan, on_tile = job.options.plan or plan_of(job), job.options.on_tile
    local report
    report, plan = sweep.promised(job, plan, function(own, call)
        return run(job, job.devices, own, search.tiles, on_tile and function(...)
            call(on_tile, ...)
        end)
    end)
    return plan, report
end

-- Stands for a result that is on the device already.
local function there_already(shape, device)
    local function nothing() end
    return {shape = shape, dtype = "f32", place = device.id, write = nothing, carries = nothing}
end

--- What convolve_volume would do, and the bytes: the plan, without running. `sink` may be nil for a
-- result like an array on the device that is there already.
function tiles.plan(source, psf, sink, options)
    local device = sweep.devices(options, psf.device)[1]
    return plan_of(job_of("tiles.plan", source, psf, sink or there_already(source.shape, device),
        options, psf.device))
end

--- Convolves a volume into another of the same extents, tile by tile; mode "same". Returns the
-- plan: {tile, counts, grid, total, peak, host_peak, peaks, pinned, overlap, work, seconds,
-- candidates}: extents of a tile, tiles per axis, the FFT grid, how many tiles, bytes on the first
-- device and (for a GPU) on the host beside volumes that are arrays, on all devices by their ids,
-- and of pinned memory, whether reading and writing overlap with the work, voxels transformed for
-- each of the image, predicted time, and what else was looked at (tiles.table makes text of it);
-- and what was measured: {peak, peaks, pinned, times, as_planned, committed (whether all memory was
-- committed before the first tile), replanned (nil, or {from, to, reason, text}: the tiles are
-- smaller, because memory was refused before the first one), budgets (those that have changed,
-- because of other programs: {{device, from, to, text}})}. What was measured is what was planned;
-- if not, that is an error in specs and a loud warning otherwise. Smaller tiles have smaller grids:
-- their result is the same to rounding.
function tiles.convolve_volume(source, psf, sink, options)
    return planned_and_run(job_of("tiles.convolve_volume", source, psf, sink, options,
        psf.device))
end

--- Convolves an array tile by tile; mode "same". Returns the result (f32, on the image's device),
-- and the plan and what was measured, see tiles.convolve_volume. The image may be on the host and
-- the tiles on GPUs.
function tiles.convolve(image, psf, options)
    arguments.blurred(image, psf, "tiles.convolve", options)
    local result = options.out or mb.empty(image.shape, {device = image.device})
    local _ <close> = on_error(function()
        if not options.out then
            result:release()
        end
    end)
    local job = job_of("tiles.convolve", volumes.of_array(image), psf, volumes.of_array(result),
        options, image.device)
    return result, planned_and_run(job)
end

tiles.table = search.table

-- How the plan of a call that did not fit is made again.
local function volume_again(source, psf, sink, options)
    return plan_of(job_of("tiles.convolve_volume", source, psf, sink,
        declared.checked(VOLUME, options, "tiles.convolve_volume"), psf.device))
end
local function array_again(image, psf, options)
    local result <close> = not options.out and mb.empty(image.shape, {device = image.device})
        or nil
    return plan_of(job_of("tiles.convolve", volumes.of_array(image), psf,
        volumes.of_array(options.out or result),
        declared.checked(ARRAY, options, "tiles.convolve"), image.device))
end

return whole_call.module(tiles, "tiles", {
    plan = {"source: volume, psf: array, sink: volume?", VOLUME},
    convolve_volume = {"source: volume, psf: array, sink: volume", VOLUME},
    convolve = {"image: array, psf: array", ARRAY},
    table = "plan: tiling",
}, nil, {usual = {exact = false}, convolve_volume = whole_call.by_plan(4, volume_again),
    convolve = whole_call.by_plan(3, array_again)})
