--- What the reconstruction of a scan takes of which only the shape is known:
-- `mb.plan.required_memory` and `max_chunk`. The whole is what recon.plan says of that scan.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local block_choice = require "moonbeam.pipeline.planning.block_choice"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local iterative = require "moonbeam.pipeline.iterative"
local largest = require "moonbeam.plan.largest"
local memory = require "moonbeam.plan.peak"
local pipeline_plan = require "moonbeam.pipeline.plan"
local recon_options = require "moonbeam.tomo.recon_options"
local scan_recipe = require "moonbeam.tomo.scan_recipe"

local scan_memory = {}

local OPTIONS = declared.options(
    {"shape", "extents", "{angles, rows, columns}", required = true},
    {"dtype", "choice", "type of the frames", default = "u16",
        choices = {"u8", "u16", "i32", "f16", "f32", "f64"}},
    {"flats", "count", "the number of frames without the sample", default = 10},
    {"darks", "count", "the number of frames without the beam", default = 10},
    {"output_dtype", "any", "how the slices are stored: \"f32\", \"f16\" or \"u16\"",
        usual = "f32"},
    recon_options)
local PARTS = {"all", "projection", "sinogram"}

-- A scan of which only the shape is known.
local function scan_of(options, op)
    local shape, dtype = options.shape, options.dtype
    if #shape ~= 3 then
        fail("argument", op, "shape", "shape must be {angles, rows, columns}")
    end
    for i, name in ipairs {"angles", "rows", "columns"} do
        arguments.count(shape[i], op, "shape: the number of " .. name, 1, 1 << 31)
    end
    local stored = {dtype = dtype}
    local scan = {n_angles = shape[1], rows = shape[2], cols = shape[3], dtype = dtype,
        data = stored, angles = {}, n_flats = options.flats, n_darks = options.darks,
        flat_source = stored, dark_source = stored}
    for i = 1, shape[1] do
        scan.angles[i] = (i - 1) * (options.half_acquisition and 2 or 1) * math.pi / shape[1]
    end
    local function frames(n, rows, read)
        return n > 0 and mb.empty({n, rows[2] - rows[1] + 1, scan.cols},
            {dtype = read.dtype or dtype, device = read.device}) or nil
    end
    function scan.darks(_, rows, read)
        return frames(options.darks, rows, read)
    end
    function scan.flats(_, rows, read)
        return frames(options.flats, rows, read)
    end
    function scan:projections(rows, read)
        local range = read.angles or {1, self.n_angles}
        return frames(range[2] - range[1] + 1, rows, read)
    end
    return scan
end

-- The settings of recon.plan among these options.
local function settings_of(options)
    local settings = {}
    for _, entry in ipairs(recon_options) do
        settings[entry.name] = options[entry.name]
    end
    settings.dtype, settings.available, settings.chunk = options.output_dtype, nil, nil
    settings.overlap = options.overlap ~= false
    return settings
end

-- Flat field and logarithm of `count` whole frames.
local function projection_work(scan, settings, device, count)
    local rows = {1, scan.rows}
    local read = {device = device, dtype = scan.dtype == "f64" and "f32" or nil}
    local darks <close> = scan:darks(rows, read)
    local flats <close> = scan:flats(rows, read)
    local raw = mb.empty({count, scan.rows, scan.cols},
        {dtype = read.dtype or scan.dtype, device = device})
    local projections, counts = mb.tomo.line_integrals(raw,
        {darks = darks, flats = flats, mode = settings.flat_mode,
        log = settings.log, consume = true})
    projections:release()
    counts:release()
end

-- The slices of an iterative method about this axis, with the options of its step.
local function iterate(job, sinograms, scan, center, settings)
    local name, given = job.sections[1].way.method, nil
    for _, step in ipairs(job.sections[1].steps) do
        given = step.def.name == name and step.options or given
    end
    local options = {center = center}
    for _, entry in ipairs(declared.of(mb.tomo[name]).options) do
        if options[entry.name] == nil then
            options[entry.name] = given[entry.name]
        end
    end
    options.weights = given.weights == "poisson" and "poisson" or nil
    options.half_acquisition = settings.half_acquisition
    local slices = mb.tomo[name](sinograms, scan.angles, options)
    slices:release()
end

-- The slices of a direct method about this axis, instead of the sinograms.
local function transform(job, sinograms, scan, center, settings)
    local options = {consume = true, center = center, method = job.sections[1].way.method,
        mode = job.sections[1].way.mode}
    for _, name in ipairs {"half_acquisition", "filter", "cutoff", "padding", "pad_width",
        "circle", "size", "scale", "accuracy"} do
        options[name] = settings[name]
    end
    options.weights = settings.angle_weights
    mb.tomo.reconstruct(sinograms, scan.angles, options):release()
end

-- What makes slices of `count` sinograms, for the axes that decide.
local function sinogram_work(scan, settings, device, count, job)
    local make = iterative.is(job.sections[1].way.method) and iterate or transform
    for _, center in ipairs(settings.center and {settings.center}
        or block_choice.deciding_values(job, "center", {count})) do
        local sinograms = mb.empty({count, scan.n_angles, scan.cols}, {device = device})
        make(job, sinograms, scan, center, settings)
        sinograms:release()
    end
end

-- The parts of a reconstruction as functions from a count to the peak, and the largest counts.
local function parts_of(options, op)
    local scan, settings = scan_of(options, op), settings_of(options)
    local device = mb.device(options.device or mb.default_device())
    scan_recipe.check(scan, settings)
    local job = scan_recipe.job(scan, settings, device)
    for _, section in ipairs(job.sections) do
        block_choice.first_way(job, section)
    end
    local function peak_of(work)
        return function(count)
            return memory.peak(function(dry)
                work(scan, settings, dry, count, job)
            end, device).peak
        end
    end
    return {
        all = function(count)
            return pipeline_plan.peak(job, count)
        end,
        projection = peak_of(projection_work),
        sinogram = peak_of(sinogram_work),
    }, {all = job.sections[1].last - job.sections[1].first + 1, projection = scan.n_angles,
        sinogram = scan.rows}, device
end

--- The peaks of a reconstruction, in bytes: {all, projection, sinogram}, and on a planned device
-- `basis`: what they rest on.
--
-- `all` is the whole run of a scan in chunks of `count` rows: what recon.plan says with that
-- chunk. `projection` is the projection-wise part (flat field, logarithm) for `count` whole
-- frames, `sinogram` the sinogram-wise part (filtering and back-projection, or all iterations of an
-- iterative method) for `count` rows.
-- Without a `center` they hold for every axis that the search may return, and the search is part
-- of `all`. The options are those of recon.plan, whose `dtype` is output_dtype here, and what a
-- scan would tell.
-- Errors: argument (an unknown option, a value out of range).
scan_memory.required = declared("plan.required_memory", {
    {"count", "count", "rows or frames at a time", min = 1, max = 1 << 31}, options = OPTIONS,
}, function(count, options)
    local parts, limits, device = parts_of(options, "plan.required_memory")
    local peaks = {basis = device.basis}
    for _, part in ipairs(PARTS) do
        peaks[part] = parts[part](part == "all" and math.min(count, limits.all) or count)
    end
    return peaks
end)

--- The largest counts for which those parts fit: {all = rows, projection = frames, sinogram =
-- rows}, at most what the scan has; and their peaks, each with `basis` on a planned device.
scan_memory.max_chunk = declared("plan.max_chunk", {options = OPTIONS}, function(options)
    local parts, limits, device = parts_of(options, "plan.max_chunk")
    local stats = mb.pool.stats(device)
    local available = options.available and mb.device.bytes(options.available)
        or stats.budget - stats.live
    local counts, peaks = {basis = device.basis}, {basis = device.basis}
    for _, part in ipairs(PARTS) do
        counts[part], peaks[part] = largest(limits[part], function(n)
            local peak = parts[part](n)
            return peak <= available and peak
        end)
        peaks[part] = peaks[part] or 0
    end
    return counts, peaks
end)

return scan_memory
