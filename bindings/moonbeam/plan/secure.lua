--- The memory of a work on blocks is committed before its first block.
--
-- A dry run of all blocks starts from the state of the pools. It tells how far each pool reaches
-- from its two ends, and it makes the FFT plans. Then both ends are committed on every device. If
-- this is refused, because another process has taken the memory, or if the budgets that are asked
-- for again do not allow it (moonbeam.plan.budget), the work is planned again in smaller blocks.
-- Afterwards the work requests no memory from the system. (Memory of functions that look at results
-- is not part of the plan.)
--
-- The ends are committed if they fit the budget of the pool. If the least block fits only without
-- the holes between its arrays, memory is committed on demand, within the budget.

local budget = require "moonbeam.plan.budget"
local core = require "moonbeam.core"

local secure = {}

-- The plan after a refused one takes at most this part of its bytes, if such a plan exists.
local SHRINK <const> = 3 / 4

-- The FFT plans that the devices have.
local function fft_plans(devices)
    local count = 0
    for _, device in ipairs(devices) do
        count = count + core.fft.plans(device).count
    end
    return count
end

-- The refusal of a device on which other programs have left too little.
local function too_little(device, need, bytes)
    local format = core.device.format_bytes
    return core.error.new("budget", ("%s are needed on %s, where other programs have left %s")
        :format(format(need), device.id, format(bytes)))
end

-- Commits the ends of a pool; `again`: the plan is not the first one. Returns whether it is
-- committed; or nil, the error, and the bytes that there are if they are known.
local function commit_on(work, device, ends, peak, again)
    local whole, least = ends[1] + ends[2], core.pool.stats(device).live + peak
    local ceiling = budget.ceiling(device)
    local wanted = whole <= ceiling and whole or least
    local bytes, change = budget.ask(device, wanted)
    work.changes[#work.changes + 1] = change
    if whole <= bytes then
        local ok, err = pcall(core.pool.activate, device, ends[1], ends[2])
        if ok then
            return true
        end
        return nil, err
    elseif least <= bytes and (again or whole > ceiling) then
        return false
    end
    return nil, too_little(device, wanted, bytes), bytes
end

-- Commits what a plan takes. Returns whether everything is committed; or nil, the error, the device
-- that refused it, and the bytes that it has if they are known.
local function commit(work, plan, again)
    local devices, reach, peaks = {}, work.reach(plan), work.peaks(plan)
    for id in pairs(reach) do
        if peaks[id] > 0 then
            devices[#devices + 1] = core.device.open(id)
        end
    end
    table.sort(devices, function(a, b) return a.id < b.id end)
    local whole, plans = true, fft_plans(devices)
    for _, device in ipairs(devices) do
        local ok, err, bytes = commit_on(work, device, reach[device.id], peaks[device.id], again)
        if ok == nil then
            return nil, err, device, bytes
        end
        whole = whole and ok
    end
    if fft_plans(devices) < plans then
        work.reach(plan) -- makes the plans that were dropped in favor of the pool
    end
    return whole
end

-- The limits for the next plan on the device that refused the last one: the memory that the device
-- has, then any smaller plan.
local function limits_of(device, peak, bytes)
    local stats, free = core.pool.stats(device), device:memory()
    if bytes then
        return {bytes - stats.live}
    end
    local there = math.min(stats.budget - stats.live, stats.committed + free - stats.live)
    return {math.min(there, math.floor(peak * SHRINK)), peak - 1}
end

-- A plan that takes less than this device refused, or nil.
local function smaller(work, plan, refused, bytes)
    local available = {}
    for _, device in ipairs(work.devices) do
        available[device.id] = budget.available(device)
    end
    for _, limit in ipairs(limits_of(refused, work.peaks(plan)[refused.id], bytes)) do
        available[refused.id] = limit
        local again = work.smaller(plan, available)
        if again then
            return again
        end
    end
end

-- Raises that not even the least block was allowed.
local function fail(work, err, bytes)
    if bytes then
        err = core.error.new("budget", ("%s: %s, which is too little for the least block; end "
            .. "other programs that use this memory, or run again later"):format(work.what,
            err.message), {op = work.op})
    end
    error(err, 0)
end

--- Commits the memory of a planned work. `work`: devices; reach(plan), how far its run takes the
-- pools, {low, high} by the ids of devices, and peaks(plan), the bytes of its run, from a dry run
-- in the state of now; smaller(plan, available), a plan that takes no more than these bytes, by the
-- ids of devices, or nil; what, its name in messages; op, for errors.
-- Returns the plan that was committed, whether all of its memory is, nil or the reason why it is
-- not the plan that was given, and the budgets that have changed (budget.ask). In a dry run nothing
-- is committed. Errors: budget (the least block is refused).
function secure.commit(work, plan)
    local reason
    work = setmetatable({changes = {}}, {__index = work})
    while not core.dry.on() do
        local whole, err, device, bytes = commit(work, plan, reason ~= nil)
        if whole ~= nil then
            return plan, whole, reason, work.changes
        elseif type(err) ~= "table" or err.code ~= "budget" then
            error(err, 0)
        end
        reason = reason or err.message
        plan = smaller(work, plan, device, bytes) or fail(work, err, bytes)
    end
    return plan, false, nil, work.changes
end

return secure
