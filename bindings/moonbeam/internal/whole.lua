--- Budget errors of a whole call. The request that fails first is seldom the largest, so what it
-- needs is not what the call needs. If a public function of the library raises a budget error, the
-- call is therefore planned, in the state after the error and with the same arguments, and the
-- error states the budget with which the call runs: that of its devices, or an option of the call
-- that limits it. With 512 bytes less it does not run; where each plan is a search, for nine tenths
-- of it there is no plan.
--
-- A call that succeeds costs only a small table more. If the call cannot be repeated (an argument
-- is a function, which may do anything, or an array that has been released), the error still
-- describes the request.

local arguments = require "moonbeam.internal.arguments"
local budgets = require "moonbeam.plan.budget"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local least = require "moonbeam.plan.least"
local tables = require "moonbeam.internal.tables"

local whole = {}

-- How deep tables in arguments are searched.
local DEPTH = 4

-- Options that limit what a call may take on its devices, beyond what is live there.
local LIMITS <const> = {"budget", "available", "host_budget"}

-- Coroutines in which a public function runs. Inner calls are part of the outermost call.
local active = setmetatable({}, {__mode = "k"})

-- ---- what a call takes ----

-- The devices that a call may take memory on, like this one: {device, live, free}, in bytes.
local function alike(device)
    local list = {}
    for _, each in ipairs(core.device.opened()) do
        if each.kind == device.kind and (not each.planned) == (not device.planned) then
            local stats = core.pool.stats(each)
            list[#list + 1] = {device = each, live = stats.live,
                free = math.max(0, stats.budget - stats.live)}
        end
    end
    return list
end

-- Begins dry runs in which each of the devices has `room` bytes beyond what is live there, or what
-- its budget leaves if that is more; nil: no limit. They end when the returned value is closed.
local function begin(list, room)
    for _, each in ipairs(list) do
        core.dry.begin({each.device}, room and math.max(room, each.free), true)
    end
    return setmetatable({}, {__close = function()
        for _ = 1, #list do
            core.dry.finish()
        end
    end})
end

-- The most bytes that a call took on each of the devices beyond what was live, and on any. A plan
-- that the call has returned tells what its run takes.
local function taken(list, results)
    local takes, most = {}, 0
    for i, each in ipairs(list) do
        local bytes = core.pool.stats(each.device).live_peak - each.live
        for k = 1, results.n do
            local plan = type(results[k]) == "table" and results[k]
            local made = plan and rawget(plan, "made") or plan -- that of a reconstruction
            local of_run = made and (rawget(made, "reserved") or rawget(made, "peaks")
                or rawget(made, "peak"))
            bytes = math.max(bytes, type(of_run) == "table" and of_run[each.device.id] or 0)
        end
        takes[i], most = bytes, math.max(most, bytes)
    end
    return takes, most
end

-- Plans run(room) with `room` bytes (`begin`). Returns what it takes on any device and on each;
-- where it does not fit, nil, and the bytes that it lacks, if that is known.
local function planned(run, list, room)
    local _ <close> = begin(list, room)
    local results = table.pack(pcall(run, room))
    local err = results[2]
    if results[1] then
        local takes, most = taken(list, results)
        return most, takes
    elseif type(err) ~= "table" or err.code ~= "budget" then
        error(err, 0)
    elseif err.limited_by then
        return nil, err.enough
    end
    for _, each in ipairs(list) do
        if err.enough and each.device.id == err.device then
            return nil, err.enough - each.live
        end
    end
end

-- ---- what an error says ----

--- The options that limit a call, with their bytes.
function whole.limits_of(options)
    local limits = {}
    for _, name in ipairs(LIMITS) do
        local value = options[name]
        limits[name] = value ~= nil and value ~= false and core.device.bytes(value) or nil
    end
    return limits
end

-- Those of the limits that are less than `room`, as large as it; only: one of them, or all.
local function raised(limits, room, only)
    local changes = {}
    for name, bytes in pairs(limits) do
        if not only or name == only then
            changes[name] = not room and math.maxinteger >> 8 or bytes < room and room or nil
        end
    end
    return changes
end

-- Puts into an error that `room` bytes are enough. `takes`: what the call takes on each device of
-- the list.
local function explain(err, room, list, takes, limits, what)
    local format, ids, budget, others = core.device.format_bytes, {}, nil, {}
    for i, each in ipairs(list) do
        if room > each.free and (takes[i] > 0 or each.device.id == err.device) then
            ids[#ids + 1], budget = each.device.id, math.max(budget or 0, each.live + room)
        end
    end
    local only = err.limited_by
    for _, name in ipairs(LIMITS) do
        if limits[name] and limits[name] < room and name ~= only and not only then
            others[#others + 1] = ("the option %s of at least %d bytes"):format(name, room)
        end
    end
    if only and budget then
        others[#others + 1] = ("a budget of at least %s (%d bytes) of %s"):format(format(budget),
            budget, table.concat(ids, " and of "))
    end
    if #others > 0 then
        err.also = (err.also or "") .. "; it also needs " .. table.concat(others, " and ")
    end
    if not only and #ids > 1 then
        what = ("%s, on %s each"):format(what, table.concat(ids, " and "))
    end
    local enough = only and room or budget or room
    err.problem = budgets.problem_of(err, enough)
    core.error.enough(err, enough, what)
    budgets.explain(err)
end

-- The least room of a call in bytes, and what it takes on each device; nil if that cannot be
-- determined. `low` is not enough.
local function least_room(run, list, low, exact)
    local by_room = {}
    local room = least(function(bytes)
        local most, takes = planned(run, list, bytes)
        by_room[bytes or 0] = takes
        return most, not most and takes or nil
    end, low, exact)
    return room, by_room[room]
end

--- Adds to the budget error the budget with which a call runs: run(changes) makes it, in a dry run,
-- with these options instead of those that were given. `what` names the call in the message.
-- `limits`: the options of the call that limit it, bytes by name (default: none). `exact`: of
-- plan.least (default: true). The error stays as it is if that budget cannot be determined, or is
-- there for all ranks (`settled`).
function whole.explain(err, run, what, limits, exact)
    if type(err) ~= "table" or err.code ~= "budget" or not err.enough or not err.device
        or err.settled or core.dry.planning() then
        return
    end
    limits = limits or {}
    pcall(function()
        if budgets.explain_starved(err) then
            return
        end
        local device = core.device.open(err.device)
        core.garbage.collect()
        local list, only = alike(device), err.limited_by
        local free = 0
        for _, each in ipairs(list) do
            free = each.device == device and each.free or free
        end
        local room, takes = least_room(function(bytes)
            return run(raised(limits, bytes, only))
        end, list, only and limits[only] or free, exact ~= false)
        if room then
            explain(err, room, list, takes, limits, what)
        end
    end)
end

-- ---- calls ----

-- Whether the value can be passed to the call again.
local function repeatable(value, depth)
    if core.array.is_array(value) then
        return not value.released
    elseif type(value) == "function" or type(value) == "thread" then
        return false
    elseif type(value) ~= "table" or depth == 0 then
        return true
    end
    for _, member in next, value do
        if not repeatable(member, depth - 1) then
            return false
        end
    end
    return true
end

-- The place of the options of a call among its arguments, or nil.
local function place_of_options(args)
    for i = args.n, 1, -1 do
        for _, name in ipairs(type(args[i]) == "table" and getmetatable(args[i]) == nil and LIMITS
            or {}) do
            if args[i][name] ~= nil then
                return i
            end
        end
    end
end

-- How calls are made again, unless they have a way of their own: as they were made.
local usual = {}

--- Can a call be made again with these arguments?
function usual.may(args)
    for i = 1, args.n do
        if not repeatable(args[i], DEPTH) then
            return false
        end
    end
    return true
end

--- The options of a call.
function usual.options(args)
    return args[place_of_options(args)] or {}
end

--- Makes a call f again, with some options changed.
function usual.again(f, args, changes)
    local place = next(changes) and place_of_options(args)
    local own = table.move(args, 1, args.n, 1, {})
    if place then
        own[place] = tables.merged(args[place], changes)
    end
    return f(table.unpack(own, 1, args.n))
end

-- A table without the functions in it.
local function without_functions(options)
    local own = {}
    for name, value in pairs(options) do
        own[name] = type(value) ~= "function" and value or nil
    end
    return own
end

--- A way to make calls again by their plan alone: plan(arguments ...) returns it. The last of
-- `count` arguments are the options, of which functions, such as on_tile, are left out: plans call
-- none.
function whole.by_plan(count, plan)
    local function own(args, changes)
        local list = table.move(args, 1, args.n, 1, {n = math.max(args.n, count)})
        local options = type(args[count]) == "table" and args[count] or {}
        list[count] = tables.merged(without_functions(options), changes)
        return list
    end
    return {exact = false, may = function(args)
        local list = own(args)
        return list[count].plan == nil and usual.may(list)
    end, again = function(_, args, changes)
        return plan(table.unpack(own(args, changes), 1, count))
    end}
end

local call = {__close = function(self, err)
    active[self.thread] = nil
    local way = self.way
    if type(err) == "table" and err.code == "budget" and way.may(self) then
        whole.explain(err, function(changes)
            return way.again(self.f, self, changes)
        end, self.name, whole.limits_of(way.options(self)), way.exact)
    end
end}

--- The public function f of this name, whose budget errors describe the whole call. `way`: how a
-- call is made again in dry runs, where that is not as it was made: may(args), options(args),
-- again(f, args, changes), of which those that are missing are the usual ones; again may return a
-- plan, which tells what a run takes. exact = false: each plan is a search, so that the budget may
-- be a sixteenth more than the least.
function whole.call(f, name, way)
    way = setmetatable(way or {}, {__index = usual})
    return arguments.stands_before(function(...)
        local thread = coroutine.running()
        if active[thread] then
            return f(...)
        end
        active[thread] = true
        local _ <close> = setmetatable({f = f, name = name, thread = thread, way = way,
            n = select("#", ...), ...}, call)
        return f(...)
    end, f)
end

--- The module with each of its functions replaced by one whose budget errors describe the whole
-- call. `signatures` and `called` are the last two arguments of declared.module; `ways`: how calls
-- are made again (whole.call), by the names of functions, and `usual` for the others.
function whole.module(module, name, signatures, called, ways)
    declared.module(module, name, signatures, called)
    for key, f in pairs(module) do
        if type(f) == "function" then
            local way = ways and (ways[key] or ways.usual)
            module[key] = whole.call(f, name .. "." .. key, way)
        end
    end
    return module
end

return whole
