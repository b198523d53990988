-- The memory pool of each device: statistics, measured peaks, and what specs need.

local core = require "moonbeam.core"

local pool = {}
for name, f in pairs(core.pool) do
    pool[name] = f
end
pool.collect = core.garbage.collect

local device_stats = core.pool.stats

-- Counters of the pool (bytes, unless named otherwise), with those of the garbage list.
function pool.stats(device)
    local stats = device_stats(device)
    local garbage = core.garbage.counts()
    stats.pool_points, stats.collected = garbage.points, garbage.collected
    stats.waiting, stats.arrays = garbage.waiting, garbage.arrays
    return stats
end

-- Calls fn(...) and returns the highest live bytes during the call above those before it, then what
-- fn returned. The garbage of earlier code is freed first, so that it does not count.
function pool.peak(fn, device, ...)
    core.garbage.collect()
    local scope <close> = core.pool.scope(device)
    local results = table.pack(fn(...))
    local peak = scope:finish()
    return peak, table.unpack(results, 1, results.n)
end

return pool
