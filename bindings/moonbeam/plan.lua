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
-- Returns {peak =, live =, results =}: the highest live bytes, those live at the end, and what fn
-- returned (arrays among it are released). An error of fn is raised.
function plan.peak(fn, device, ...)
    local ok, peak, live, results = dry_run(fn, device, UNLIMITED, ...)
    if not ok then
        error(peak, 0)
    end
    return { peak = peak, live = live, results = results }
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

return plan
