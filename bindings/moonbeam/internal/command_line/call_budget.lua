--- The budget of a whole command: what all that it does takes, and the least budget with which it
-- runs, for the error of a budget that is too small.
--
-- A command says what its parts take as soon as it has planned them (`planned`): the work, and what
-- comes before and after it, such as pictures. If a budget is too small for anything, the command
-- is rehearsed: its own script runs in dry runs with other budgets (moonbeam.plan.least). If it has
-- --plan, it is that which is rehearsed, so no work is planned twice. Nothing is read, written or
-- said meanwhile.

local budgets = require "moonbeam.plan.budget"
local core = require "moonbeam.core"
local least = require "moonbeam.plan.least"
local log = require "moonbeam.internal.log"
local promise = require "moonbeam.plan.promise"
local script = require "moonbeam.internal.script"

local call_budget = {}

-- What a command has said of itself: devices, a list; spec, the declaration of its options; values;
-- peaks, bytes by the ids of devices.
local current = {devices = {}, peaks = {}, predicted = {}, measured = {}}

--- Begins a command: with the declaration of its options and their values (cli.parse).
function call_budget.begin(spec, values)
    current = {devices = {}, peaks = {}, predicted = {}, measured = {}, spec = spec,
        values = values}
end

--- The devices to which the option budget applies.
function call_budget.on(devices)
    current.devices = devices
end

--- Notes what a part of the command takes in all, `peaks`: bytes by the ids of devices, with those
-- that are live before it. `what` names the part. Errors: budget (more than a device may take).
function call_budget.planned(what, peaks)
    for id, bytes in pairs(peaks) do
        if id ~= "pinned" then
            current.peaks[id] = math.max(current.peaks[id] or 0, bytes)
            local device = core.device.open(id)
            local limit = device:budget()
            if bytes > limit then
                local format = core.device.format_bytes
                local text = ("%s needs %s%s; the budget is %s"):format(what, format(bytes),
                    device == current.devices[1] and "" or " on " .. id, format(limit))
                local err = core.error.new("budget", ("%s; give a budget of at least %d bytes")
                    :format(text, bytes))
                err.problem, err.enough, err.device = text, bytes, id
                error(err, 0)
            end
        end
    end
end

-- What fn() takes on the devices of the command and on the host, in the state of now, with what is
-- live before it.
local function peaks_of(fn)
    local _ <close> = script.silent()
    local peaks = require "moonbeam.plan".peaks(fn, current.devices).peak
    peaks.pinned = nil
    for id, bytes in pairs(peaks) do
        peaks[id] = bytes > 0 and core.pool.stats(core.device.open(id)).live + bytes or nil
    end
    return peaks
end

--- Plans a part of the command that fn() does, now or later (`planned`).
function call_budget.part(what, fn)
    call_budget.planned(what, peaks_of(fn))
end

-- Do these bytes fit the budgets?
local function fit(peaks)
    for id, bytes in pairs(peaks) do
        if bytes > core.device.open(id):budget() then
            return false
        end
    end
    return true
end

--- Does a part of the command that has been planned (`part`): plans fn() again, with what is known
-- now, and calls it. What it takes is what is planned. `make_room`, a function or nil, releases
-- what is kept for later parts; it is called where the part would not fit otherwise. Returns what
-- fn returns.
function call_budget.done(what, fn, make_room)
    local dry <const> = core.dry.on()
    if not dry then
        core.garbage.collect()
    end
    local planned = (make_room or not dry) and peaks_of(fn)
    if make_room and not fit(planned) then
        make_room()
        planned = not dry and peaks_of(fn)
    end
    if dry then
        return fn()
    end
    local live = {}
    for _, device in ipairs(core.device.opened()) do
        live[device.id] = core.pool.stats(device).live
    end
    local measured, result = promise.measured(current.devices, fn)
    for id, bytes in pairs(measured) do
        bytes = bytes > 0 and live[id] + bytes or 0
        promise.check_bytes(what, bytes, planned[id] or 0)
        current.predicted[id] = math.max(current.predicted[id] or 0, planned[id] or 0)
        current.measured[id] = math.max(current.measured[id] or 0, bytes)
    end
    return result
end

--- Does what only a plan does, such as its own picture: fn(), which takes memory of the host. The
-- budget that is planned for is that of the run, which does not do it, so fn() has as much more as
-- it takes. Returns the bytes of it, predicted and measured. A rehearsal leaves it out.
function call_budget.beside(what, fn)
    if core.dry.on() then
        return 0, 0
    end
    local host = core.device.open "host"
    core.garbage.collect()
    local live, planned = core.pool.stats(host).live, (peaks_of(fn).host or 0)
    local before <const> = host:budget()
    local _ <close> = setmetatable({}, {__close = function() host:budget(before) end})
    host:budget(math.max(before, planned))
    local predicted = math.max(0, planned - live)
    local measured = promise.measured({}, fn).host
    promise.check_bytes(what, measured, predicted)
    return predicted, measured
end

--- What the parts that are done took on a device, predicted and measured, with `predicted` and
-- `measured` of the rest.
function call_budget.with_parts(id, predicted, measured)
    return math.max(predicted, current.predicted[id] or 0),
        math.max(measured, current.measured[id] or 0)
end

--- What the parts so far take on a device at most (`planned`).
function call_budget.peak(id)
    return current.peaks[id] or 0
end

local function has(option)
    for _, each in ipairs(current.spec or {}) do
        if each[1] == option then
            return true
        end
    end
    return false
end

-- The words of a rehearsal with a budget.
local function words_with(option, bytes)
    local words = {[0] = arg[0], table.unpack(arg)}
    local planning = current.spec.planning or function() return has "plan" end
    local more = {option, ("%d"):format(bytes), planning(current.values) and "--plan" or nil}
    table.move(more, 1, #more, #words + 1, words)
    return words
end

-- Rehearses the command with these words. Returns the bytes that it takes on the devices whose ids
-- are is_one(id); where there is no plan, nil, the budget that it needs at least, if that is known,
-- and whether a budget was too small.
local function rehearsed(words, is_one)
    local before = {}
    local saved = {current = current, arg = arg, failed = log.failed}
    rawset(_G, "arg", words)
    local _ <close> = setmetatable({}, {__close = function()
        current, log.failed = saved.current, saved.failed
        rawset(_G, "arg", saved.arg)
    end})
    local problem, bytes
    local status = script.rehearse(arg[0], function(body)
        for _, device in ipairs(core.device.opened()) do
            before[device.id] = core.pool.stats(device).live
        end
        local ok
        ok, problem = pcall(body)
        for _, device in ipairs(ok and core.device.opened() or {}) do
            if is_one(device.id) then
                local most = math.max(call_budget.peak(device.id),
                    core.pool.stats(device).live_peak)
                bytes = math.max(bytes or 0, most - (before[device.id] or 0))
            end
        end
    end)
    if type(problem) == "table" and problem.code == "cancelled" then
        error(problem, 0)
    end
    if bytes and status == 0 then
        return bytes
    end
    return nil, type(problem) == "table" and problem.code == "budget" and problem.enough
        and is_one(problem.device) and problem.enough
        - (problem.limited_by and 0 or before[problem.device] or 0) or nil,
        type(problem) == "table" and problem.code == "budget"
end

local searching = false

--- Puts the least budget with which the whole command runs into a budget error: `enough`, and
-- `option`, by which it is given. The error stays as it is where that cannot be determined.
function call_budget.explain(problem)
    if searching or core.dry.on() or not current.spec or not arg or problem.refused then
        return
    end
    if budgets.explain_starved(problem) then
        return
    end
    searching = true
    local _ <close> = setmetatable({}, {__close = function() searching = false end})
    core.garbage.collect()
    local ids, option, total = {}, "--budget", 0
    for _, device in ipairs(current.devices) do
        ids[device.id] = true
    end
    -- With a recipe it is for what is between the steps; without one reconstruct has none.
    local host_budget = has "host-budget" and (current.values.recipe or not has "recipe")
    if problem.device == "host" and not ids.host and not host_budget then
        problem.remedy = problem.remedy or "no option gives the host more memory"
        problem.message = ("%s; %s"):format(problem.problem or problem.message, problem.remedy)
        return
    elseif problem.device == "host" and (not ids.host or problem.limited_by == "host_budget") then
        ids, option = {host = true}, "--host-budget"
    end
    if not has(option:sub(3)) or not next(ids) then
        return
    end
    for id in pairs(ids) do
        total = math.max(total, select(2, core.device.open(id):memory()))
    end
    -- A limit of the process is not what the machine has.
    total = ids.host and math.max(total, core.system.process_limits().available) or total
    local live = 0
    for id in pairs(ids) do
        live = math.max(live, core.pool.stats(core.device.open(id)).live)
    end
    local refused
    local bytes = least(function(budget)
        local own, lacks, too_small = rehearsed(words_with(option, (budget or total) + live),
            function(id) return ids[id] end)
        refused = refused or budget == nil and too_small and {lacks = lacks}
        return own, lacks
    end)
    if bytes then
        local own = problem.problem
        if problem.problem and bytes > (problem.enough or 0) then
            problem.problem = ("%s; the whole command needs %s"):format(problem.problem,
                core.device.format_bytes(bytes))
        end
        problem.problem = budgets.problem_of(problem, bytes)
        problem.enough, problem.option = bytes, option
        budgets.explain(problem, own)
    elseif refused then
        problem.total = total
    end
end

return call_budget
