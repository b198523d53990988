-- Knowing before running: functions over operators run on a shadow of a device, which has the same
-- allocator and the same operators' plans, but no data. What it counts is what a run will take.

local core = require "moonbeam.core"

local plan = {}

-- Runs fn(shadow, ...) on a shadow of the device with a budget (nil: the device's own).
-- Returns true, peak, live, results; or false and the error.
local function dry_run(fn, device, budget, ...)
    local real = device and core.device.open(device) or core.device.default()
    core.garbage.collect()
    local shadow <close> = real:shadow(budget)
    local results = table.pack(pcall(fn, shadow, ...))
    local stats = core.pool.stats(shadow)
    if not results[1] then
        return false, results[2]
    end
    return true, stats.live_peak, stats.live, table.pack(table.unpack(results, 2, results.n))
end

-- What plan.peak runs under: it tells what fn would take, whatever the budget is.
local UNLIMITED = 1 << 40

-- The memory that fn needs: calls fn(shadow device, ...), which must make its arrays there.
-- Returns {peak =, live =, results =, basis =}: the highest live bytes, those live at the end, what fn
-- returned (arrays among it are released), and on a planned device what the figures rest on. An error of
-- fn is raised.
function plan.peak(fn, device, ...)
    local ok, peak, live, results = dry_run(fn, device, UNLIMITED, ...)
    if not ok then
        error(peak, 0)
    end
    return { peak = peak, live = live, results = results, basis = core.device.open(device or core.device.default()).basis }
end

local function is_budget_error(err)
    return type(err) == "table" and err.code == "budget"
end

-- The largest n for which fn(shadow device, n) stays within the available bytes, and its peak.
-- Options: device, available (bytes or "8G"; default what the budget leaves), limit (largest n),
-- granularity (n is a multiple of it). Returns 0 and the error when not even the first n fits.
function plan.max_count(fn, options)
    options = options or {}
    local device = options.device and core.device.open(options.device) or core.device.default()
    local granularity = options.granularity or 1
    local available = options.available and core.device.bytes(options.available)
    if not available then
        local stats = core.pool.stats(device)
        available = stats.budget - stats.live
    end
    local limit = (options.limit or 1 << 31) // granularity
    if limit < 1 then
        core.error.raise("argument", "limit is below one", { op = "max_count", arg = "limit" })
    end

    local function peak_of(n)
        local ok, peak = dry_run(fn, device, available, n * granularity)
        if ok and peak <= available then
            return peak
        elseif not ok and not is_budget_error(peak) then
            error(peak, 0)
        end
        return nil, not ok and peak or nil
    end

    -- Bracket by doubling, then bisect: fits(low), not fits(high).
    local low, low_peak, high = 0, 0, nil
    local n = 1
    while not high do
        local peak, err = peak_of(n)
        if not peak then
            if n == 1 then
                return 0, err
            end
            high = n
        else
            low, low_peak = n, peak
            if n == limit then
                return n * granularity, peak
            end
            n = math.min(2 * n, limit)
        end
    end
    while high - low > 1 do
        local middle = (low + high) // 2
        local peak = peak_of(middle)
        if peak then
            low, low_peak = middle, peak
        else
            high = middle
        end
    end
    return low * granularity, low_peak
end

-- ---------------------------------------------------------------------------------------------
-- Whole reconstructions

-- A scan of which only the shape is known.
local function scan_of(options)
    local shape = options.shape
    if type(shape) ~= "table" or #shape ~= 3 then
        core.error.raise("argument", "shape must be {angles, rows, columns}", { op = "plan", arg = "shape" })
    end
    local scan = { n_angles = shape[1], rows = shape[2], cols = shape[3], dtype = options.dtype or "u16", angles = {} }
    for i = 1, shape[1] do
        scan.angles[i] = (i - 1) * (options.half_acquisition and 2 or 1) * math.pi / shape[1]
    end
    local function frames(n, rows, device)
        return core.array.empty({ n, rows[2] - rows[1] + 1, scan.cols }, { dtype = scan.dtype, device = device })
    end
    function scan.darks(_, rows, read)
        return frames(options.darks or 10, rows, read.device)
    end
    function scan.flats(_, rows, read)
        return frames(options.flats or 10, rows, read.device)
    end
    function scan.projections(_, rows, read)
        return frames(scan.n_angles, rows, read.device)
    end
    return scan, frames
end

local PARTS = { "all", "projection", "sinogram" }

-- The parts of a reconstruction as functions of (device, count).
local function reconstruction(options)
    local mb = require "moonbeam"
    local scan, frames = scan_of(options)
    return {
        all = function(device, count)
            local slices, counts = mb.recon.chunk(scan, device, 1, count, options)
            slices:release()
            counts:release()
        end,
        projection = function(device, count)
            local rows = { 1, scan.rows }
            local darks <close> = scan:darks(rows, { device = device })
            local flats <close> = scan:flats(rows, { device = device })
            local raw = frames(count, rows, device)
            local projections, counts = mb.tomo.line_integrals(raw, { darks = darks, flats = flats, mode = options.flat_mode,
                log = options.log, consume = true })
            projections:release()
            counts:release()
        end,
        sinogram = function(device, count)
            local sinograms <close> = core.array.empty({ count, scan.n_angles, scan.cols }, { device = device })
            local fbp = { consume = true }
            for _, name in ipairs { "mode", "center", "half_acquisition", "filter", "cutoff", "padding", "pad_width", "circle",
                "size", "scale", "accuracy" } do
                fbp[name] = options[name]
            end
            mb.tomo.fbp(sinograms, scan.angles, fbp):release()
        end,
    }, { all = scan.rows, projection = scan.n_angles, sinogram = scan.rows }
end

-- The peaks of a reconstruction by filtered back-projection, in bytes: {all, projection, sinogram}, and
-- on a planned device `basis`: what they rest on.
-- `all` is the whole chain for a chunk of `count` rows; `projection` the projection-wise part (flat
-- field, logarithm) for `count` whole frames; `sinogram` the sinogram-wise part (filtering,
-- back-projection) for `count` rows. Options: shape = {angles, rows, columns}, dtype (default
-- "u16"), flats and darks (numbers of frames, default 10), device, and those of recon.run.
function plan.required_memory(count, options)
    local parts = reconstruction(options)
    local peaks = {}
    for _, part in ipairs(PARTS) do
        local need = plan.peak(parts[part], options.device, count)
        peaks[part], peaks.basis = need.peak, need.basis
    end
    return peaks
end

-- The largest counts for which those parts fit: {all = rows, projection = frames, sinogram = rows},
-- at most what the scan has; and their peaks, each with `basis` on a planned device. Options as for
-- required_memory, and available (bytes or "8G"; default: what the budget leaves).
function plan.max_chunk(options)
    local parts, limits = reconstruction(options)
    local counts, peaks = {}, {}
    for _, part in ipairs(PARTS) do
        local count, peak = plan.max_count(parts[part],
            { device = options.device, available = options.available, limit = limits[part] })
        counts[part], peaks[part] = count, count > 0 and peak or 0
    end
    local basis = core.device.open(options.device or core.device.default()).basis
    counts.basis, peaks.basis = basis, basis
    return counts, peaks
end

-- max_slices(fn, make_input, available [, device]): the largest n for which fn(make_input(n, device),
-- device) stays within the available bytes, input included, and its peak.
function plan.max_slices(fn, make_input, available, device)
    return plan.max_count(function(shadow, n)
        local input <close> = make_input(n, shadow)
        local result = fn(input, shadow)
        return result
    end, { device = device, available = available })
end

-- plan(fn, ...): the ledger of a dry run of fn(...). plan("expression"): of an expression or
-- statements over global names, for the prompt.
return setmetatable(plan, {
    __call = function(_, fn, ...)
        if type(fn) == "string" then
            local text, problem = fn, nil
            local env = setmetatable({ mb = require "moonbeam" }, { __index = _G }) -- assignments end here
            fn = load("return (" .. text .. "\n)", "=plan", "t", env) -- no tail call, which would leave no line
            if not fn then
                fn, problem = load(text, "=plan", "t", env)
            end
            if not fn then
                core.error.raise("argument", problem, { op = "plan" })
            end
        end
        return require("moonbeam.ledger").dry_run(fn, ...)
    end,
})
