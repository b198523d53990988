--- Budget errors of a whole call. The request that fails first is seldom the largest, so what it
-- needs is not what the call needs. If a public function of the library raises a budget error, the
-- call is therefore planned, in the state after the error and with the same arguments, and the
-- error states the budget with which the call runs. With 512 bytes less it does not run.
--
-- A call that succeeds costs only a small table more. If the call cannot be repeated (an argument
-- is a function, which may do anything, or an array that has been released), the error still
-- describes the request.

local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local least = require "moonbeam.plan.least"

local whole = {}

-- How deep tables in arguments are searched.
local DEPTH = 4

-- Coroutines in which a public function runs. Inner calls are part of the outermost call.
local active = setmetatable({}, {__mode = "k"})

local end_dry_run = setmetatable({}, {__close = core.dry.finish})

-- Dry-runs run() with `room` bytes beyond what is live on the device (nil: no limit). Returns the
-- live bytes before it and their peak; where it does not fit, also the budget that it lacks.
local function planned(run, device, room)
    core.dry.begin({device}, room, true)
    local _ <close> = end_dry_run
    local live = core.pool.stats(device).live
    local ok, err = pcall(run)
    if ok then
        return live, core.pool.stats(device).live_peak
    elseif type(err) ~= "table" or err.code ~= "budget" then
        error(err, 0)
    end
    return live, nil, err.device == device.id and err.enough or nil
end

--- The least budget of the device with which run() runs, found by planning it, or nil if that
-- cannot be determined. The budget of now is not enough.
function whole.least_budget(run, device)
    local live = 0
    return least(function(budget)
        local own, peak, lacks = planned(run, device, budget and math.max(0, budget - live))
        live = own
        return peak, lacks
    end, core.pool.stats(device).budget, true)
end

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

--- Adds to the budget error the budget with which run() runs; `what` names run() in the message.
-- The error stays as it is if that budget cannot be determined.
function whole.explain(err, run, what)
    if type(err) ~= "table" or err.code ~= "budget" or not err.enough or not err.device
        or core.dry.planning() then
        return
    end
    local ok, bytes = pcall(function()
        return whole.least_budget(run, core.device.open(err.device))
    end)
    if ok and bytes then
        core.error.enough(err, bytes, what)
    end
end

local call = {__close = function(self, err)
    active[self.thread] = nil
    if err == nil or type(err) ~= "table" or err.code ~= "budget" then
        return
    end
    for i = 1, self.n do
        if not repeatable(self[i], DEPTH) then
            return
        end
    end
    whole.explain(err, function()
        self.f(table.unpack(self, 1, self.n))
    end, self.name)
end}

local function wrapped(f, name)
    return arguments.stands_before(function(...)
        local thread = coroutine.running()
        if active[thread] then
            return f(...)
        end
        active[thread] = true
        local _ <close> = setmetatable({f = f, name = name, thread = thread, n = select("#", ...),
            ...}, call)
        return f(...)
    end, f)
end

--- The module with each of its functions replaced by one whose budget errors describe the whole
-- call. `signatures` and `called` are the last two arguments of declared.module.
function whole.module(module, name, signatures, called)
    declared.module(module, name, signatures, called)
    for key, f in pairs(module) do
        if type(f) == "function" then
            module[key] = wrapped(f, name .. "." .. key)
        end
    end
    return module
end

return whole
