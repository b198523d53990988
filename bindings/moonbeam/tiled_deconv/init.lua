--- Richardson-Lucy for images that do not fit as a whole: by tiles, with exact seams, or
-- independent and blended.
--
-- Exact: every iteration is two sweeps of tiles with a barrier between. Sweep 1 writes ratio = y /
-- (h * x), sweep 2 makes x := x (h' * ratio) / n. The result is that of deconv.richardson_lucy, to
-- rounding, with every acceleration, boundary and weight of total variation. With boundary "zero"
-- the estimate lives on the image's extents and k - 1 beyond, where the image can tell. With the
-- others it lives on the grid that the untiled method has, and a tile at an edge reads what lies
-- beyond by the boundary's rule. Resident are image, estimate and ratio: 12 bytes per voxel (10 for
-- u16), and the tiles; or they are on the host, or in files. heavy_ball takes 4 more, the estimate
-- before, biggs_andrews 8, and total variation 4: a tile looks at the estimate of its neighbors,
-- which stays as it is for a sweep.
--
-- How far biggs_andrews goes ahead is one number for all tiles. Each tile gives its part of two
-- sums, which are added in the order of the tiles: the number depends on how the image is cut, as
-- the result does, in its last digits, and not on places, devices or what is done when.
-- Only what lies in the image is summed.
--
-- Blended: every tile with a margin is deconvolved by itself and laid over its neighbors with
-- cosine ramps. That is quicker out of core (a tile is read once, whatever the iterations), but
-- what iterations carry further than the margin is lost. How well the seams are hidden is measured.
--
-- Tiles are read and written while others are worked on (moonbeam.stream). The result depends on
-- their extents alone, not on overlap, place, devices or ranks: a transform rounds by the size of
-- its grid, and by where in it a value is. Which tiles are the quickest depends on more. In memory
-- that is the whole as one tile, if it fits; in files, which ranks share, reading and writing hide
-- behind the work on other tiles, and a tile for each rank is worth more than few elements around
-- them. So the choice is not the same for one process and for ranks, and that of a large budget is
-- not that of a small one. A plan names its tiles: the option tile = plan.tile gives them, and the
-- same bits, to any other run.

local mb = require "moonbeam"
local alive = require "moonbeam.stream.alive"
local blended = require "moonbeam.tiled_deconv.blended"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local deconv = require "moonbeam.deconv"
local exact = require "moonbeam.tiled_deconv.exact"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local search = require "moonbeam.tiles.search"
local sweep = require "moonbeam.tiles.sweep"
local tables = require "moonbeam.internal.tables"
local tile_journal = require "moonbeam.tiled_deconv.tile_journal"
local tile_ranks = require "moonbeam.tiled_deconv.tile_ranks"
local volumes = require "moonbeam.volumes"
local whole_call = require "moonbeam.internal.whole"

local tiled = {}

--- A seam metric above this is worth a warning.
tiled.SEAM_LIMIT = 1.05

local WHAT <const> = "tiled_deconv"

local rl = declared.of(deconv.richardson_lucy).options

-- Options of one mode only.
local ONLY = {
    exact = declared.options(rl.metrics, rl.on_iteration, rl.tolerance,
        {"place", "choice", "where image, estimate and ratio are",
            choices = {"device", "host", "file"}, usual = "the first of these that the budgets "
                .. "allow"},
        {"scratch", "string", "the name of a file beside which scratch files may go"},
        {"keep", "boolean", "the transfer functions stay in the plan, for the next volume with "
            .. "this PSF and this plan, until plan.kept:release()"}),
    blended = declared.options({"margin", "count",
        "elements around a tile that are worked on with it, at least",
        usual = "three quarters of the PSF"}),
}
local OPTIONS = declared.options({"mode", "choice", "exact seams, or blended independent tiles",
    choices = {"exact", "blended"}, default = "exact"}, sweep.options, rl.iterations,
    rl.acceleration, rl.total_variation, rl.spacing, rl.center, rl.normalize, rl.boundary, rl.eps,
    rl.floor, rl.min, rl.background, ONLY.exact, ONLY.blended,
    {"on_tile", "callable", "a function (iteration, number, total)"},
    {"journal", "any", "what journal returns: an interrupted run can go on"})

-- The plan of a job on its devices that are not lost; again if one of several is lost meanwhile.
local function plan_of(job)
    return alive.on(job.devices, function(live)
        job.devices = live
        return job.way.plan(job)
    end)
end

-- What a budget error says, to make it again on other ranks.
local TOLD <const> = {"message", "problem", "enough", "device", "limited_by", "also", "fewer",
    "enough_for"}

-- A plan of the job, or nil and what its budget error says, after explain(err).
local function plan_or_told(job, explain)
    local ok, made = pcall(plan_of, job)
    if ok then
        return made
    elseif type(made) ~= "table" or made.code ~= "budget" then
        error(made, 0)
    elseif explain then
        explain(made)
    end
    local told = {}
    for _, name in ipairs(TOLD) do
        told[name] = made[name]
    end
    return nil, told
end

-- The error that was told; what is enough is there for all ranks.
local function error_of(told)
    local err = mb.error("budget", told.message, {op = WHAT, arg = "budget"})
    for i = 2, #TOLD do
        err[TOLD[i]] = told[TOLD[i]]
    end
    err.settled = true
    return err
end

-- The numbers of tiles of rank 0, with which all ranks cut: their budgets may differ. Where there
-- is no plan, all of them raise its error after explain(err), so that they stay in step.
local function counts_of_first(job, explain)
    local told = tile_ranks.once(function()
        local made, own = plan_or_told(job, explain)
        return own or {counts = made.counts}
    end)
    if told.counts then
        return told.counts
    end
    local err = error_of(told)
    local live = tile_ranks.all(mb.pool.stats(err.device or "host").live)
    local more = math.max(table.unpack(live)) - live[1]
    if more > 0 and err.enough_for and not err.limited_by then
        core.error.enough(err, err.enough + more, err.enough_for)
    end
    error(err, 0)
end

-- The plan of a rank, with the numbers of tiles of all. Where it does not fit the budget of some,
-- all raise the error of the first of them, with what is enough for each.
local function plan_together(job)
    local plan, told = plan_or_told(job)
    local first, enough
    for rank, own in ipairs(tile_ranks.all(told or false)) do
        if own then
            first = first or {rank = rank - 1, told = own}
            enough = math.max(enough or 0, own.enough or 0)
        end
    end
    if first then
        local err = error_of(first.told)
        err.problem = ("on rank %d %s"):format(first.rank, err.problem or err.message)
        core.error.enough(err, enough, WHAT .. " on each rank")
        error(err, 0)
    end
    return plan
end

local planned_again

-- A job, what the modes plan and run: {what, source, psf, sink, options, devices, ...}. `planning`:
-- it will not be run.
local function job_of(source, psf, sink, options, usual, planning)
    local mode = options.mode
    for _, entry in ipairs(ONLY[mode == "exact" and "blended" or "exact"]) do
        local value = options[entry.name]
        if value ~= nil and value ~= false and entry.name ~= "scratch" then
            fail("unsupported", WHAT, entry.name, "%s is not for mode %s: leave it out, or give "
                .. "the option mode = '%s'", entry.name, mode, mode == "exact" and "blended"
                or "exact")
        end
    end
    local job = {what = WHAT, source = source, psf = psf, sink = sink, options = options,
        devices = sweep.devices(options, usual), kernel = psf.shape, tile = options.tile}
    job.all = job.devices
    job.way = mode == "exact" and exact or blended
    job.run, job.again = job.way.dry, job.way.plan
    job.way.prepare(job)
    job.most = job.most or job.shape
    job.available, job.limits = search.available(job.devices, options)
    if options.journal then
        tile_journal.check(options.journal)
        tile_journal.identify(options.journal, job)
        job.kept = tile_journal.volume(options.journal, planning)
        job.counts = options.journal:counts()
    end
    local plan = options.plan
    if plan and plan.kept and not rawequal(plan.kept_psf, psf) then
        plan.kept:release()
        plan.kept = nil
    end
    if not plan and job.kept and tile_ranks.shared() then
        job.counts = job.counts or counts_of_first(job, function(err)
            whole_call.explain(err, function(changes)
                return planned_again(source, psf, sink, tables.merged(options, changes), usual)
            end, WHAT .. (planning and ".plan" or ".richardson_lucy_volume"),
                whole_call.limits_of(options), false)
        end)
        plan = plan_together(job)
    end
    if not plan or job.counts and table.concat(plan.counts, " ")
        ~= table.concat(job.counts, " ") then
        plan = plan_of(job)
    end
    if plan.mode ~= mode then
        fail("argument", WHAT, "plan", "the plan is for mode %s", tostring(plan.mode))
    end
    return job, plan
end

-- Runs a planned job; on fewer devices if one of several is lost before its first tile. Returns the
-- report, with what was measured (sweep.promised), and the plan.
local function run(job, plan)
    local report, begun
    local function work(made, call)
        local times
        begun = true
        if job.kept then
            job.kept:note_counts(made.counts)
        end
        report, times = job.way.run(job, job.devices, made, search.tiles, call)
        return times
    end
    while true do
        local ok, measured, own = pcall(sweep.promised, job, plan, work)
        if ok then
            for name, value in pairs(measured) do
                report[name] = value
            end
            return report, own
        end
        local live = alive.of(job.devices)
        if begun or #live == 0 or #live == #job.devices then
            error(measured, 0)
        end
        plan = plan_of(job)
    end
end

--- What keeps an interrupted deconvolution into the file `path`, for the option journal: the folder
-- "<path>.unfinished". A script makes it before the result's file, gives it to
-- richardson_lucy_volume for each volume of the result in turn, calls journal:finishing() before
-- the result gets its name and journal:finish() after that, and closes it. The source must be a
-- file, one of `inputs`, by which a changed one is noticed. Methods: resumed(), how often the run
-- was resumed, or nil; was(name), an option of the earlier process as text; may_replace(), whether
-- the result may replace a file. Errors: io (there is an unfinished run, or none to resume, or
-- another process is at work on it), by richardson_lucy_volume argument (it is another run).
function tiled.journal(path, options)
    return tile_journal.open(path, options)
end

declared.elsewhere(OPTIONS, rl, "; tiles do not have it: mb.deconv.richardson_lucy does, which "
    .. "works on the whole image at once")

-- A function that makes an array for the result on a device, as a volume.
local function maker(shape, device)
    return function()
        return volumes.of_array(mb.empty(shape, {device = device}))
    end
end

--- The seam metric of a volume cut by `axes` (moonbeam.tiles.search): mean |difference| of
-- neighbors across tile faces over that of neighbors within tiles. 1 where nothing shows; nil where
-- there are no faces or no differences.
function tiled.seam(volume, axes, device, host)
    if #axes ~= #volume.shape then
        fail("shape", "tiled_deconv.seam", "axes", "axes has %d lists; it must have one for each "
            .. "of the %d axes of the volume", #axes, #volume.shape)
    end
    for i = 1, #axes do
        local parts = axes[i] or {}
        for _, part in ipairs(parts) do
            if type(part) ~= "table" or not part.first or not part.extent or not part.take then
                fail("argument", "tiled_deconv.seam", "axes", "axis %d of axes has a part without "
                    .. "first, extent or take; give the axes of a plan", i)
            end
        end
    end
    return blended.seam(volume, search.tiles(axes), device, host)
end

--- How a deconvolution would be done and what it would take, without running: {mode, place, tile,
-- counts, grid, total, overlap, peak, host_peak, peaks, pinned, work, seconds, candidates}, see
-- tiles.convolve_volume. `sink` nil: the result becomes an array on the device. The option tile =
-- plan.tile cuts any other run into the same tiles, whatever its budget and place, and how many
-- devices and ranks it has:
-- it has the same bits. See richardson_lucy_volume.
function tiled.plan(source, psf, sink, options)
    local device = sweep.devices(options, psf.device)[1]
    return (select(2, job_of(source, psf, sink or maker(source.shape, device),
        options, psf.device, true)))
end

--- Deconvolves a volume into another of the same extents (moonbeam.volumes). Returns the report of
-- deconv.richardson_lucy, with `seam`, the seam metric, in mode blended, and what was measured:
-- peak, peaks, pinned, times, as_planned, committed, replanned, budgets (see
-- tiles.convolve_volume); and the plan (tiled.plan).
--
-- The memory of all iterations is committed before the first tile, so nothing is refused later. If
-- the pools give some of it back between iterations (mb.pool.trim), it is asked for again. Where
-- other programs have taken it, the tiles stay, and reading and writing wait for the work until
-- there is room again: `again` of the report, {{iteration, overlap, text}}.
--
-- Weights, a start and held-out photons are for deconv.richardson_lucy alone.
--
-- If one of several devices is lost, the others do its tiles, with the same bits: `lost` of the
-- report, {{device, reason, text}}. In mode exact the place host has two estimates for that, 4
-- bytes per voxel more (8 with momentum), if the budget holds them (`twice` of the plan);
-- otherwise, and in mode blended without a journal, the deconvolution ends.
--
-- With a journal (tiled_deconv.journal) an interrupted run can go on, with the same bits. In mode
-- blended each tile that is finished is kept. In mode exact it depends on the place: in files, each
-- tile of each sweep; in memory the estimate, after an iteration if a minute has passed since it
-- was kept last. A run that goes on is cut into the tiles of the first one, and `as_planned` says
-- that it took no more than planned.
--
-- Ranks (mb.cluster) that all make the same call with a journal share the tiles, through its files,
-- which must be on a disk that all of them see: exact tiles are in files then. Rank 0 writes the
-- sink, and has the seam metric; what others give as a sink is not written to.
function tiled.richardson_lucy_volume(source, psf, sink, options)
    local job, plan = job_of(source, psf, sink, options,
        psf.device)
    return run(job, plan)
end

--- Deconvolves an array by tiles. Returns the estimate (f32, on the device), the report and the
-- plan. Options as for richardson_lucy_volume.
function tiled.richardson_lucy(image, psf, options)
    local device = sweep.devices(options, image.device)[1]
    local make, result, job = maker(image.shape, device), nil, nil
    local plan
    job, plan = job_of(volumes.of_array(image), psf,
        function()
            local made = make()
            result = job and not job.dry and made or result -- not that of a plan
            return made
        end, options, image.device)
    local _ <close> = on_error(function()
        if result then
            result.array:release()
        end
    end)
    local report, own = run(job, plan)
    return result.array, report, own
end

-- How the plan of a call that did not fit is made again.
function planned_again(source, psf, sink, options, usual)
    return (select(2, job_of(source, psf, sink, declared.checked(OPTIONS, options, WHAT), usual,
        true)))
end
local function volume_again(source, psf, sink, options)
    return planned_again(source, psf, sink, options, psf.device)
end
local function array_again(image, psf, options)
    return planned_again(volumes.of_array(image), psf,
        maker(image.shape, sweep.devices(options, image.device)[1]), options, image.device)
end

return whole_call.module(tiled, "tiled_deconv", {
    seam = "volume: volume, axes: lists, device: device, host: device",
    plan = {"source: volume, psf: array, sink: volume?", OPTIONS},
    richardson_lucy_volume = {"source: volume, psf: array, sink: volume", OPTIONS},
    richardson_lucy = {"image: array, psf: array", OPTIONS},
    journal = {"path: string", tile_journal.options},
}, nil, {usual = {exact = false}, richardson_lucy_volume = whole_call.by_plan(4, volume_again),
    richardson_lucy = whole_call.by_plan(3, array_again)})
