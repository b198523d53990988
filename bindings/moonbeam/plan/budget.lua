--- Budgets that follow what other programs leave.
--
-- A device's pool has a budget: 90 % of what was free when the device was opened, or what the user
-- has given. Other programs take memory later. So before a long work begins, and between its parts,
-- the budget is asked for again. If the work does not fit what is there now, the budget becomes
-- smaller. It grows again when the memory is free again, up to what it was. A budget of the user
-- never grows, and is not used beyond what is there.
--
-- Where the process has a limit, the pools of the host have what it leaves beside pinned memory,
-- program and buffers (moonbeam.plan.process_limit). So each work that is planned fits the default
-- budgets of the host to the limit. A budget of the user stays as it is.

local core = require "moonbeam.core"
local process_limit = require "moonbeam.plan.process_limit"

local budget = {}

-- A default budget is this part of what there is. What takes no more than ENOUGH of it stays as
-- it was planned, so that the small needs of libraries change no plan.
local PART <const>, ENOUGH <const> = 9 / 10, 19 / 20

-- Budgets that were made smaller here: {ceiling, lowered}, by the ids of devices.
local kept = {}

-- Default budgets that were fitted to the limit of the process, by the ids of devices; and what the
-- latest work takes beside the pools, {beside, threads, part = what each pool has then}.
local fitted, latest = {}, {0}

-- Was this budget of a device not given by the user?
local function is_default(device, bytes)
    return bytes == device.default_budget or bytes == fitted[device.id]
end

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
    local given = not is_default(device, ceiling)
    -- What limits the process has been left to it alone when the budget was fitted.
    local whole = given or fitted[device.id] ~= nil
    local leaves = whole and there or math.floor(there * PART)
    local bytes = math.max(stats.live, math.min(ceiling, leaves))
    if wanted <= (whole and there or there * ENOUGH) then
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

-- The devices of a list whose pools are in the memory of the host, and the host.
local function on_host(devices)
    local host = core.device.open "host"
    local list, has = {}, false
    for _, device in ipairs(devices) do
        if device.kind == "host" and not device.planned then
            list[#list + 1], has = device, has or device == host
        end
    end
    list[#list + 1] = not has and host or nil
    return list
end

-- The part of each of these devices on the host in what the limit of the process leaves for their
-- pools (process_limit.room); nil where nothing limits it.
local function part_of(list, beside, threads)
    local room = process_limit.room(beside, threads)
    if not room then
        return nil
    end
    local others = process_limit.committed()
    for _, device in ipairs(list) do
        others = others - core.pool.stats(device).committed
    end
    return math.max(0, room - others) // #list
end

--- Fits the default budgets of the host to the limit of the process, before a work on these devices
-- is planned: it takes `pinned` bytes of pinned memory and `buffers` others beside the pools, and
-- `threads` threads (nil: the usual ones). Several pools have equal parts. Does nothing in a dry
-- run. Errors: budget (the limit leaves too little to plan anything).
function budget.fit(devices, pinned, buffers, threads)
    if core.dry.on() then
        return
    end
    for _, device in ipairs(devices) do
        if device.planned then
            return -- the work is for another machine
        end
    end
    if process_limit.is_starved() then
        local err = core.error.new("budget", process_limit.starved_text())
        err.remedy, err.refused = err.message, true
        error(err, 0)
    end
    latest = {process_limit.beside(pinned, buffers), threads}
    local list = on_host(devices)
    local part = part_of(list, table.unpack(latest))
    latest.part = part
    for _, device in ipairs(list) do
        local stats = core.pool.stats(device)
        if is_default(device, stats.budget) and (part or fitted[device.id]) then
            local usual = device.default_budget
            local bytes = math.max(stats.live, part and math.min(usual, part) or usual)
            device:budget(bytes)
            fitted[device.id] = bytes < usual and bytes or nil
        end
    end
end

--- By how much the default budget of one of these devices is too large where a plan takes `pinned`
-- bytes of pinned memory, which were not known when it was fitted. 0 where nothing limits it.
function budget.part_of_pinned(devices, device, pinned)
    local bytes = core.pool.stats(device).budget
    if core.dry.on() or device.kind ~= "host" or device.planned
        or not is_default(device, bytes) then
        return 0
    end
    local beside = process_limit.beside(pinned)
    if not process_limit.has_addresses(beside, latest[2]) then
        return bytes
    end
    -- As of when it was fitted: the plans since then have grown the process for a while.
    local part = latest.part and latest.part - (beside - latest[1]) // #on_host(devices)
    return part and math.max(0, bytes - math.max(0, part)) or 0
end

--- How to raise the limit of the process (process_limit.remedy) so that the pool of a device may
-- have `bytes` beside `pinned` bytes (nil: those of budget.fit), where no budget that the user
-- gives would do; else nil.
function budget.remedy(device, bytes, pinned)
    if device.kind ~= "host" or device.planned then
        return nil
    end
    local beside, threads = math.max(latest[1], process_limit.beside(pinned or 0)), latest[2]
    local room = process_limit.room(beside, threads)
    if process_limit.read().addresses then -- no budget is larger than the range of its pool
        room = math.min(room or math.huge, core.pool.stats(device).reserved)
    end
    if room and bytes > room then
        return process_limit.remedy(bytes, beside, threads)
    end
end

--- What a budget error says is wrong, where `bytes` are known to be enough: what it says itself, or
-- `fewer` of the error, where the part of the work that it tells of was thought to need more.
function budget.problem_of(err, bytes)
    return err.fewer and bytes < err.enough and err.fewer or err.problem or err.message
end

--- Puts into a budget error how to raise the limit of the process, where that is in the way of what
-- is enough: as `remedy` and in its message; `process_limit`: the bytes that are enough.
-- err.pinned: the pinned memory that goes with it, where budget.fit was not told; `problem`: what
-- is wrong (nil: err.problem).
function budget.explain(err, problem)
    if not err.device or not err.enough then
        return
    end
    local text, bytes = budget.remedy(core.device.open(err.device), err.enough, err.pinned)
    if text then
        err.problem = problem or err.problem or err.message
        err.remedy, err.process_limit = text, bytes
        err.message = ("%s; %s%s"):format(err.problem, text, err.also or "")
    end
end

--- The same without planning anything again, where the limit leaves too little for that: what is
-- enough is known of the part that has failed, and the whole may take a little more. Returns
-- whether that is so.
function budget.explain_starved(err)
    if process_limit.is_starved() and err.device and err.enough then
        err.enough = err.enough + err.enough // 8
        budget.explain(err)
        return err.remedy ~= nil
    end
    return false
end

--- What a work takes of the pools of the host in all, with what is live there: `peaks` by the ids
-- of devices, of which these do the work.
function budget.taken(devices, peaks)
    local bytes = 0
    for _, device in ipairs(on_host(devices)) do
        bytes = bytes + core.pool.stats(device).live + (peaks[device.id] or 0)
    end
    return bytes
end

--- Raises a budget error where the pools of the host take `bytes` in all, and the limit of the
-- process leaves less beside `pinned` bytes and `buffers` (budget.fit); for example because a
-- budget was given that is larger. `what` names the work. Does nothing in a dry run.
function budget.admit(what, bytes, pinned, buffers, threads)
    if core.dry.on() then
        return
    end
    local beside = process_limit.beside(pinned, buffers)
    -- The process has grown since it was planned, by a part of what is not known to the byte.
    local room = process_limit.room(process_limit.without_slack(beside), threads)
    if room and bytes > room then
        local text, limit = process_limit.remedy(bytes, beside, threads)
        text = text or ("the limit of the process leaves %s"):format(core.device.format_bytes(room))
        local err = core.error.new("budget", ("%s takes %s of the memory of the host; %s, or give "
            .. "a smaller budget"):format(what, core.device.format_bytes(bytes), text))
        err.remedy, err.process_limit, err.device, err.refused = text, limit, "host", true
        error(err, 0)
    end
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
