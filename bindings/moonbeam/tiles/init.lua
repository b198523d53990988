--- Convolution by tiles that fit a budget: overlap-save, whose result is the untiled one, to
-- rounding.
--
-- A tile of S elements along an axis needs S + k - 1 of the input (k: the PSF's extent). What lies
-- outside the input comes from the boundary, the rest from the neighbors. All tiles share one grid
-- and one transfer function. Input and result are volumes (moonbeam.volumes): on the device, on the
-- host or in files; only a tile and its neighborhood travel.
--
-- How to cut: moonbeam.tile_search.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local convolution = require "moonbeam.convolution"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local on_error = require "moonbeam.internal.on_error"
local options_of = require "moonbeam.internal.options"
local psf_tools = require "moonbeam.psf"
local search = require "moonbeam.tiles.search"
local volumes = require "moonbeam.volumes"

local tiles = {}

-- ---------------------------------------------------------------------------------------------
-- Convolution

local OPTIONS = {"boundary", "center", "normalize", "correlate", "tile", "budget", "host_budget",
    "device", "out",
    "on_tile", "plan"}

-- One tile: its input in, its part of the result out.
local function process(source, sink, otf, plan, tile, settings, device, host)
    local grid <close> = (function()
        local piece <close> = search.read(source, tile.from, tile.take, device, host)
        return mb.embed(piece, plan.grid, {before = tile.before, boundary = settings.boundary})
    end)()
    convolution.apply(grid, otf, plan.grid[#plan.grid], settings.correlate)
    local part <close> = grid:view(convolution.ranges(settings.below, tile.extents))
    -- Not where results stay on a GPU: the look would wait for it, while the next tile could be
    -- read.
    if (device.kind == "host" or sink.place ~= device.id) and finite.spread(part) then
        local piece <close> = search.read(source, tile.from, tile.take, device, host)
        finite.fail(piece, "tiles.convolve",
            ("the image's block from (%s) on"):format(table.concat(tile.from, ", ")))
    end
    sink:write(tile.first, part, host)
end

-- All tiles, or one of every kind. The same function is planned and run.
local function run(source, psf, sink, plan, settings, device, host, kinds)
    local shift = {}
    for i, below in ipairs(settings.below) do
        shift[i] = -below
    end
    local otf <close> = convolution.transfer(psf, plan.grid,
        {center = settings.center, normalize = settings.normalize})
    search.each(search.cut(source.shape, source.shape, psf.shape, shift, plan.counts),
        function(tile)
        process(source, sink, otf, plan, tile, settings, device, host)
        if settings.on_tile and not kinds then
            settings.on_tile(tile.number, plan.total)
        end
    end, kinds)
end

-- Checks; what does not depend on how it is cut.
local function settings_of(shape, psf, options)
    local boundary = options.boundary or "zero"
    if boundary == "circular" then
        fail("unsupported", "tiles.convolve", "boundary",
            "tiles do not wrap around: boundary is zero, reflect, mirror or replicate")
    end
    local center = psf_tools.center(psf, options.center)
    convolution.layout(shape, psf.shape, center,
        {boundary = boundary, correlate = options.correlate})
    local settings = {boundary = boundary, correlate = options.correlate, center = center,
        below = {}, most = {},
        normalize = options.normalize or false, on_tile = options.on_tile}
    for i, k in ipairs(psf.shape) do
        if center[i] ~= math.floor(center[i]) then
            fail("argument", "tiles.convolve", "center",
                "tiles need a center of whole numbers: a shift by phase reaches across all of them")
        end
        local above = center[i]
        settings.below[i] = k - 1 - above
        if options.correlate then
            settings.below[i], above = above, settings.below[i]
        end
        -- Reflections must stay inside a tile's piece.
        settings.most[i] = math.max(1, shape[i] // (math.max(settings.below[i], above) + 1))
    end
    return settings
end

local function plan_of(source, psf, sink, settings, options, device)
    local available, host_available = search.available(device, options.budget, options.host_budget)
    local dense = volumes.bytes(source) + volumes.bytes(sink)
    return search.best {
        what = "tiles.convolve", device = device, shape = source.shape, kernel = psf.shape,
            most = settings.most, tile = options.tile,
        available = available, host_available = host_available,
        seconds = function(made)
            -- the half: the transfer function
            return (made.total + 0.5) * search.convolution_seconds(device, made.points)
                + search.transfer_seconds(device, source.place, dense * made.work)
                + search.transfer_seconds(device, sink.place, volumes.bytes(sink))
        end,
        peaks = function(made)
            local peaks = search.peaks(device, function(on, host, mirror)
                local from, to, spread <close> = mirror(source), mirror(sink), mirror(psf)
                run(from, spread, to, made, settings, on, host, true)
            end)
            return peaks.device, peaks.host
        end,
    }
end

--- What convolve_volume would do, and the bytes: the plan, without running. `sink` may be nil for a
-- result like an array on the device that is there already.
function tiles.plan(source, psf, sink, options)
    options = options_of(options, "tiles.plan", OPTIONS)
    local device = mb.device(options.device or psf.device.id)
    sink = sink or {shape = source.shape, dtype = "f32", place = device.id, array = true}
    return plan_of(source, psf, sink, settings_of(source.shape, psf, options), options, device)
end

--- Convolves a volume into another of the same extents, tile by tile; mode "same". Returns the
-- plan: {tile, counts, grid, total, peak, host_peak, work, seconds, candidates}: extents of a tile,
-- tiles per axis, the FFT grid, how many tiles, bytes on the device and (for a GPU) on the host
-- beside volumes that are arrays, voxels transformed for each of the image, predicted time, and
-- what else was looked at (tiles.table makes text of it).
--
-- Options: boundary ("zero", "reflect", "mirror" or "replicate"), center (whole numbers),
-- normalize, correlate as for convolution.convolve; tile, the largest extents of a tile (default:
-- the quickest that fit); budget, the bytes that tiles may take (default: what the device's budget
-- leaves), and host_budget, likewise; plan, what tiles.plan returned; device, where the tiles are
-- worked on (default: the PSF's); on_tile, a function (number, total) called after each tile.
function tiles.convolve_volume(source, psf, sink, options)
    options = options_of(options, "tiles.convolve_volume", OPTIONS)
    local device = mb.device(options.device or psf.device.id)
    local settings = settings_of(source.shape, psf, options)
    local there <close> = psf.device ~= device and psf:to(device) or nil
    local plan = options.plan or plan_of(source, there or psf, sink, settings, options, device)
    run(source, there or psf, sink, plan, settings, device, mb.device("host"))
    return plan
end

--- Convolves an array tile by tile; mode "same". Returns the result (f32, on the image's device)
-- and the plan, see tiles.convolve_volume, whose options it takes, and out. The image may be on the
-- host and the tiles on a GPU (option device, default the image's).
function tiles.convolve(image, psf, options)
    options = options_of(options, "tiles.convolve", OPTIONS)
    arguments.blurred(image, psf, "tiles.convolve", options)
    local settings = settings_of(image.shape, psf, options)
    local device = mb.device(options.device or image.device.id)
    local there <close> = psf.device ~= device and psf:to(device) or nil
    local result = options.out or mb.empty(image.shape, {device = image.device})
    local _ <close> = on_error(function()
        if not options.out then
            result:release()
        end
    end)
    local source, sink = volumes.of_array(image), volumes.of_array(result)
    local plan = plan_of(source, there or psf, sink, settings, options, device)
    run(source, there or psf, sink, plan, settings, device, mb.device("host"))
    return result, plan
end

tiles.table = search.table
tiles.peaks = search.peaks

return declared.module(tiles, "tiles", {
    plan = "source: volume, psf: array, sink: volume?",
    convolve_volume = "source: volume, psf: array, sink: volume",
    convolve = "image: array, psf: array",
    table = "plan: tiling",
    peaks = "device: device, fn: callable",
})
