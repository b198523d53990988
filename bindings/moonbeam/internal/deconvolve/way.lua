--- How moonbeam deconvolve works on an image, whole or in tiles, and what that takes.
--
-- A job has: options, image (given_image), psfs (channel_psfs), noise (noise_told), device,
-- devices, run (a function of mb.deconv), taken (its options), settings (for it), automatic (are
-- the iterations searched), many (several images), dtype (of the result), say, detail. `choose`
-- adds: mode, why, known and searched (bytes by device), live, limit; `plan_tiles`: tile_settings,
-- plan, planned_for (the kind of file that it is for).

local budget = require "moonbeam.plan.budget"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local cli = require "moonbeam.internal.cli"
local declared = require "moonbeam.internal.declared"
local file_name = require "moonbeam.internal.file_name"
local mb = require "moonbeam"
local process_memory = require "moonbeam.internal.process_memory"
local tables = require "moonbeam.internal.tables"

local way = {}

local tiling = declared.of(mb.tiled_deconv.richardson_lucy_volume).options
local format_bytes = mb.device.format_bytes

--- The transfer functions of the volumes to come, to be closed.
function way.transfers(job)
    return job.psfs:transfers(job.image.shape, job.options.boundary or job.taken.boundary.default)
end

--- Deconvolves a volume that is not cut. Returns what the function of mb.deconv returns.
function way.whole(job, volume, changes, channel, transfers)
    changes.otf = (job.many or job.image:is_series()) and job.taken.otf and transfers:of(channel)
        or nil
    local image <close> = mb.volumes.load_real(volume, job.device)
    return job.run(image, job.psfs:of(channel), tables.merged(job.settings, changes))
end

-- ---- what is taken ----

--- The least and the greatest value of a result that is not cut.
function way.range(result)
    return mb.bound(0, result.min, result), mb.bound(0, result.max, result)
end

-- What the untiled way will take, by device: the same calls on dry devices. Two iterations reach
-- the peak of any number.
local function whole_peaks(job, volume)
    local image, settings = job.image, job.settings
    return mb.plan.peaks(function()
        local transfers <close> = way.transfers(job)
        for channel = 1, math.max(image.channels, job.many and 2 or math.min(2, image.frames)) do
            local result <close> = way.whole(job, volume, {
                iterations = settings.iterations and math.min(2, settings.iterations)},
                math.min(channel, image.channels), transfers)
            way.range(result)
            mb.volumes.store(mb.volumes.planned(image.shape, job.dtype), result)
        end
    end, {job.device}).peak
end

-- What the search for the end takes, which runs before the iterations; the larger of the two
-- counts.
local function search_peaks(job, volume)
    local settings = job.settings
    return mb.plan.peaks(function()
        local gain, offset = job.noise:left()
        mb.deconv.find_iterations(volume, job.psfs:of(1), {gain = gain, offset = offset,
            acceleration = settings.acceleration, total_variation = settings.total_variation,
            spacing = settings.spacing, boundary = settings.boundary, weights = settings.weights,
            center = settings.center, background = settings.background})
    end, {job.device}).peak
end

--- What the work takes on a device with this id, if the iterations take `bytes`.
function way.larger(job, bytes, id)
    return math.max(bytes, job.searched and job.searched[id] or 0)
end

-- ---- whole or tiles ----

-- What is asked for that has no tiles, or nil; and what to do about it.
local function without_tiles(options)
    return options.method ~= "rl" and "--method " .. options.method
        or options.mask and "--mask" or nil
end
local function instead_of(options)
    return options.method ~= "rl" and "give --method rl" or "leave --mask out"
end

-- Raises that the whole does not fit, and that what is asked for has no tiles. `what`: that;
-- `otherwise`: what helps beside a larger budget.
local function fail_whole(job, why, what, otherwise)
    local whole = job.live + job.known[job.device.id]
    local problem = ("%s; %s has no tiles"):format(why, what)
    local err = mb.error("budget", ("%s: give a budget of at least %d bytes, or %s"):format(problem,
        whole, otherwise))
    err.problem, err.enough, err.device, err.also = problem, whole, job.device.id, ", or "
        .. otherwise
    error(err, 0)
end

-- The mode of --tiles auto, and why. Errors: budget (the whole does not fit, and what is asked for
-- has no tiles).
local function usual_mode(job)
    local options, whole = job.options, job.live + job.known[job.device.id]
    if whole <= job.limit then
        return "none"
    end
    local why = ("the whole takes %s, the budget is %s"):format(format_bytes(whole),
        format_bytes(job.limit))
    local what = without_tiles(options)
    if what then
        fail_whole(job, why, what, (instead_of(options):gsub("^give ", "")))
    end
    return "exact", why
end

--- Ends the program where a mode of tiles is not for the other options; "auto" and "none" are for
-- all.
function way.check_mode(options, mode)
    if mode ~= "auto" and mode ~= "none" and (options.method ~= "rl" or options.mask) then
        cli.wrong("--tiles %s has no %s: leave --tiles %s out, which works on the whole image at "
            .. "once, or %s", mode, without_tiles(options), mode, instead_of(options))
    elseif mode == "blended" and options.boundary == "circular" then
        cli.wrong("--tiles blended does not wrap around the image: --tiles exact does")
    elseif mode == "blended" and options.output_dtype ~= "float32" then
        cli.wrong("--tiles blended adds up in the result, which is float32: --output-dtype is for "
            .. "the others")
    end
end

-- Bytes by the ids of devices, with what is live there.
local function with_live(peaks)
    local all = {}
    for id, bytes in pairs(peaks) do
        all[id] = id ~= "pinned" and bytes > 0 and mb.pool.stats(id).live + bytes or nil
    end
    return all
end

--- Chooses whether the image is cut.
function way.choose(job)
    local options, device = job.options, job.device
    budget.fit({device}, 0)
    local stats = mb.pool.stats(device)
    job.limit, job.live = stats.budget, stats.live
    local one <close> = job.image:volume(1, 1)
    job.known = whole_peaks(job, one)
    if job.automatic then
        job.searched = search_peaks(job, one)
        call_budget.planned("--iterations auto, which deconvolves a part of the image first,",
            with_live(job.searched))
    end
    job.mode = options.tiles
    if job.mode == "auto" then
        job.mode, job.why = usual_mode(job)
    end
    way.check_mode(options, job.mode)
    if job.mode == "none" and options.resume and not job.many then
        if options.tiles == "none" then
            cli.wrong("--resume goes on with a run by tiles: leave --tiles none out, or start anew "
                .. "with --discard")
        end
        cli.wrong("--resume is for tiles, and the whole image fits: leave --resume out, or give "
            .. "--tiles exact or --tiles blended")
    end
end

--- Releases the transfer functions that a plan of tiles keeps for the next volume.
function way.forget(job)
    if job.plan and job.plan.kept then
        job.plan.kept:release()
        job.plan.kept = nil
    end
end

--- Plans the tiles of the image, with a journal (kept_runs).
-- Errors: those of tiled_deconv.plan.
function way.plan_tiles(job, journal)
    way.forget(job)
    local exact, options = job.mode == "exact", job.options
    job.tile_settings = declared.part(tiling, tables.merged(job.settings, {mode = job.mode,
        tile = options.tile, devices = job.devices, place = options.place,
        metrics = exact and job.settings.metrics or false, journal = journal,
        keep = exact and (job.many or job.image:is_series()) or false}))
    local planned = mb.volumes.planned(job.image.shape, job.dtype)
    local one <close> = job.image:volume(1, 1)
    job.plan = mb.tiled_deconv.plan(one, job.psfs:of(1),
        exact and mb.volumes.watch(planned) or planned, job.tile_settings)
    job.planned_for = file_name.extension(job.options.image)
end

--- The same for the next of several images: the plan stays, unless reading the file takes other
-- memory, or its interrupted run has other tiles.
function way.plan_next(job, journal)
    local counts = journal:counts()
    if file_name.extension(job.options.image) ~= job.planned_for
        or counts and table.concat(counts, " ") ~= table.concat(job.plan.counts, " ") then
        way.plan_tiles(job, journal)
        way.note(job, job.plan)
    end
    job.tile_settings.journal = journal
end

-- ---- what is said ----

local function say_peak(job)
    local bytes = way.peak(job)
    job.say("memory     peak %s%s (%d bytes), %.1f bytes per voxel of the image; budget %s",
        job.options.plan and job.automatic and "at most " or "", format_bytes(bytes), bytes,
        bytes / job.image.voxels, format_bytes(job.limit))
end

--- Notes what the work takes of its devices: job.expected is that of the first one, with what came
-- before (job.prepared). `plan` nil: whole.
-- Errors: budget (the whole does not fit, and must not be cut).
function way.note(job, plan)
    call_budget.planned("the deconvolution", with_live(plan and plan.reserved or job.known))
    local id = job.device.id
    local bytes = way.larger(job, (plan and plan.peaks or job.known)[id], id)
    job.expected = math.max(job.expected or job.prepared, mb.pool.stats(id).live + bytes)
end

--- What the command takes of its device at most.
function way.peak(job)
    return call_budget.peak(job.device.id)
end

--- The extents of the grid of an image that is not cut.
function way.grid(job)
    return mb.deconv.layout(job.image.shape, job.psfs:of(1), {center = job.psfs.center,
        boundary = job.options.boundary or job.taken.boundary.default}).grid
end

--- Says how an image that is not cut is worked on.
function way.say_whole(job)
    local options, id = job.options, job.device.id
    job.say("grid       %s%s", table.concat(way.grid(job), " x "),
        job.why and "; " .. job.why or "")
    say_peak(job)
    if #job.devices > 1 then
        job.say("devices    %s alone: several devices share tiles, and there are none%s", id,
            options.method == "rl" and not options.mask and " (--tiles exact)" or "")
    end
end

--- Says how a plan cuts the image.
function way.say_tiles(job, plan)
    local say, device = job.say, job.device
    local places = {device = device.kind == "host" and "on the host" or "on " .. device.id,
        host = "on the host", file = "in files beside the result"}
    local exact = job.mode == "exact"
    say("tiles      %d, %s%s%s", plan.total, exact and "exact seams" or "blended",
        exact and "; image, estimate and ratio " .. places[plan.place] or "",
        job.why and "; " .. job.why or "")
    local tile = table.concat(plan.tile, ",")
    say("           of at most %s; --tiles %s --tile %s gives the same bits with any budget, place "
        .. "and number of ranks", (tile:gsub(",", " x ")), job.mode, tile)
    job.detail("%s", mb.tiles.table(plan))
    say_peak(job)
    for i = 2, #job.devices do
        local own = job.devices[i].id
        say("           on %s peak %s (%d bytes)", own, format_bytes(plan.peaks[own]),
            plan.peaks[own])
    end
    if device.kind ~= "host" then
        local bytes = math.max(way.larger(job, plan.host_peak, "host"), call_budget.peak "host")
        say("host       peak %s (%d bytes)", format_bytes(bytes), bytes)
    end
    if plan.pinned > 0 then
        say("pinned     %s (%d bytes)", format_bytes(plan.pinned), plan.pinned)
    end
end

-- The pool of the host, pinned memory and other bytes: what the process takes beside itself.
local function taken_of(job, plan)
    local on_host = math.max(0, call_budget.peak(job.device.kind == "host" and job.device.id
        or "host") - mb.pool.stats("host").live)
    for i = 2, plan and job.device.kind == "host" and #job.devices or 0 do
        on_host = on_host + plan.reserved[job.devices[i].id]
    end
    return mb.pool.stats("host").live + on_host, plan and plan.pinned or 0,
        process_memory.of_planned(job.devices)
        + (job.options.ranks and process_memory.of_rank() or 0)
end

--- Ends where the work takes more of the host than the limit of the process leaves.
function way.admit(job, plan)
    budget.admit("the deconvolution", taken_of(job, plan))
end

--- Says what the process takes at most, and returns the bytes.
function way.say_process(job, plan)
    local bytes = process_memory.bound(taken_of(job, plan))
    job.say("%s", process_memory.text(bytes, job.options.ranks))
    return bytes
end

return way
