--- Budgets that follow what other programs leave.
--
-- A device's pool has a budget: 90 % of what was free when the device was opened, or what the user
-- has given. Other programs take memory later. So before a long work begins, and between its parts,
-- the budget is asked for again. If the work does not fit what is there now, the budget becomes
-- smaller. It grows again when the memory is free again, up to what it was. A budget of the user
-- never grows, and is not used beyond what is there.

local core = require "moonbeam.core"

local budget = {}

-- A default budget is this part of what there is. What takes no more than ENOUGH of it stays as
-- it was planned, so that the small needs of libraries change no plan.
local PART <const>, ENOUGH <const> = 9 / 10, 19 / 20

-- Budgets that were made smaller here: {ceiling, lowered}, by the ids of devices.
local kept = {}

--- What the budget of a device was before it was made smaller here.
function budget.ceiling(device)
    local own, bytes = kept[device.id], core.pool.stats(device).budget
    return own and own.lowered == bytes and own.ceiling or bytes
end

local function set(device, ceiling, bytes)
    device:budget(bytes)
    kept[device.id] = bytes < ceiling and {ceiling = ceiling, lowered = bytes} or nil
end

--- Asks for the budget of a device again; `wanted` is what its pool must hold, live bytes included.
-- Returns the budget, and nil or the change: {device = its id, from, to, text}. Does nothing in a
-- dry run and for planned devices.
function budget.ask(device, wanted)
    local stats = core.pool.stats(device)
    local ceiling = budget.ceiling(device)
    if core.dry.on() or device.planned
        or not kept[device.id] and wanted <= math.min(stats.budget, stats.committed) then
        return stats.budget
    end
    local there = device:memory() + stats.committed
    local given = ceiling ~= device.default_budget
    local leaves = given and there or math.floor(there * PART)
    local bytes = math.max(stats.live, math.min(ceiling, leaves))
    if wanted <= (given and there or there * ENOUGH) then
        bytes = math.max(stats.budget, bytes, math.min(ceiling, wanted))
    end
    if bytes == stats.budget then
        return bytes
    end
    set(device, ceiling, bytes)
    local format = core.device.format_bytes
    return bytes, {device = device.id, from = stats.budget, to = bytes,
        text = ("the budget of %s is %s now, not %s: other programs have %s"):format(device.id,
            format(bytes), format(stats.budget), bytes < stats.budget and "taken memory"
            or "freed memory")}
end

--- Bytes that the budget of a device leaves. A budget that was made smaller is asked for again.
function budget.available(device)
    if kept[device.id] then
        budget.ask(device, 0)
    end
    local stats = core.pool.stats(device)
    return stats.budget - stats.live
end

return budget
