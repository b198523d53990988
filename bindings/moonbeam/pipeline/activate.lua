--- The memory of a section is committed before its first block.
--
-- A dry run of all blocks starts from the state of the pools. It tells how far each pool reaches
-- from its two ends, and it makes the FFT plans. Then both ends are committed on every device. If
-- this is refused, because another process has taken the memory, the section is planned again in
-- smaller blocks. Afterwards the section requests no memory from the system. (Memory of functions
-- that look at results is not part of the plan.)
--
-- The ends are committed if they fit the budget of the pool; plan.lua chooses blocks that do. If
-- even the least block fits the budget only without the holes between its arrays, memory is
-- committed on demand, within the budget.

local core = require "moonbeam.core"
local mb = require "moonbeam"
local plan = require "moonbeam.pipeline.plan"

local activate = {}

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

-- Commits what a section takes. Returns whether everything is committed; or nil, the error and the
-- device that refused it.
local function commit(job, section)
    local devices, reach = {}, plan.reach(job, section)
    for id in pairs(reach) do
        if section.peaks[id] > 0 then
            devices[#devices + 1] = core.device.open(id)
        end
    end
    local whole, plans = true, fft_plans(devices)
    for _, device in ipairs(devices) do
        local low, high = table.unpack(reach[device.id])
        if low + high <= core.pool.stats(device).budget then
            local ok, err = pcall(core.pool.activate, device, low, high)
            if not ok then
                return nil, err, device
            end
        else
            whole = false
        end
    end
    if fft_plans(devices) < plans then
        plan.reach(job, section) -- makes the plans that were dropped in favor of the pool
    end
    return whole
end

-- A plan that takes less than this device refused: first within the memory that the device has,
-- then any smaller plan. Returns nil if there is none.
local function smaller(made, number, refused)
    local available, peak = {}, made.sections[number].peaks[refused.id]
    for _, device in ipairs(made.job.devices) do
        local stats = core.pool.stats(device)
        available[device.id] = stats.budget - stats.live
    end
    local stats, free = core.pool.stats(refused), refused:memory()
    local there = math.min(stats.budget - stats.live, stats.committed + free - stats.live)
    for _, limit in ipairs {math.min(there, math.floor(peak * SHRINK)), peak - 1} do
        available[refused.id] = limit
        local again = plan.again(made, number, available)
        if again then
            return again
        end
    end
end

-- The section with its frames read from `scan`.
local function with_scan(section, scan)
    return scan and plan.reading_from(section, scan) or section
end

local function rows_text(section)
    return ("%d %s%s"):format(section.count, section.cut,
        section.overlap and ", reading and writing beside" or "")
end

--- Commits the memory of section `number` of a settled plan, whose stores are open. `scan` has its
-- decoded frames, if they were decoded. Returns {made = the plan, section, committed = whether all
-- of its memory is committed, replanned = nil or {section, from, to (rows at a time), reason,
-- text}}. In a dry run nothing is committed. Errors: budget (the least block is refused).
function activate.section(made, number, scan)
    local before = made.sections[number]
    local section, reason = before, nil
    while not mb.device.dry() do
        local whole, err, device = commit(made.job, with_scan(section, scan))
        if whole ~= nil then
            return {made = made, section = with_scan(section, scan), committed = whole,
                replanned = reason and {section = number, from = before.count, to = section.count,
                    reason = reason, text = ("section %d runs in blocks of %s, not of %s, because "
                        .. "the memory for these was refused: %s"):format(number,
                        rows_text(section), rows_text(before), reason)}}
        elseif type(err) ~= "table" or err.code ~= "budget" then
            error(err, 0)
        end
        made = smaller(made, number, device) or error(err, 0)
        section, reason = made.sections[number], reason or err.message
    end
    return {made = made, section = with_scan(section, scan), committed = false}
end

return activate
