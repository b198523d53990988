-- What runs take, measured and compared with their plans.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local own_function = require "moonbeam.plan.own_function"

local promise = {}

--- Warns on the standard error if `bytes` differ from `promised` (or if `kept` is given and false).
-- With MOONBEAM_STRICT in the environment, as in specs, that is an error. Returns whether the
-- promise was kept.
function promise.check_bytes(what, bytes, promised, kept)
    if kept == nil then
        kept = bytes == promised
    end
    if not kept then
        local text = ("%s takes %d bytes, but %d were promised: this is a defect of Moonbeam, "
            .. "please report it"):format(what, bytes, promised)
        if os.getenv "MOONBEAM_STRICT" then
            fail("internal", "pipeline", nil, "%s", text)
        end
        io.stderr:write("WARNING: ", text, "\n")
    end
    return kept
end

--- Returns the peak of live bytes of the devices and the host while fn() runs, by id, above what
-- was live before, and the result of fn().
function promise.measured(devices, fn)
    local scopes, peaks = {}, {}
    local _ <close> = setmetatable({}, {__close = function()
        for _, scope in pairs(scopes) do
            scope:finish()
        end
    end})
    for _, device in ipairs {core.device.open("host"), table.unpack(devices)} do
        scopes[device.id] = scopes[device.id] or core.pool.scope(device)
    end
    local result = fn()
    for id, scope in pairs(scopes) do
        peaks[id] = scope:finish()
        scopes[id] = nil
    end
    return peaks, result
end

-- What is live on each of these devices and on the host, by id.
local function live_on(devices)
    local live = {}
    for _, device in ipairs {core.device.open("host"), table.unpack(devices)} do
        live[device.id] = core.pool.stats(device).live
    end
    return live
end

--- Returns a function that calls the caller's f(...) during a run whose plan does not include f,
-- and a table of the most bytes that these calls have taken beside the run, by device, with those
-- that they keep; `less` in it: the most bytes of before that they have released, by device.
function promise.others(devices)
    local others, kept = {less = {}}, {}
    return function(f, ...)
        local arguments = table.pack(...)
        local before = live_on(devices)
        local peaks, result = promise.measured(devices, function()
            return own_function.call(nil, f, table.unpack(arguments, 1, arguments.n))
        end)
        for id, live in pairs(live_on(devices)) do
            local own = kept[id] or 0
            others[id] = math.max(others[id] or 0, own + peaks[id])
            kept[id] = own + live - before[id]
            others.less[id] = math.max(others.less[id] or 0, -kept[id])
        end
        return result
    end, others
end

--- Compares a run with its plan, {peak = bytes by device id, pinned} each. The run may exceed the
-- plan by what `others` take. If devices took the next block when they were free, `run.replayed` is
-- what a dry run of their blocks takes: the run takes the same, and the plan is a bound. Returns
-- whether the promise was kept.
function promise.compare(what, plan, run, others)
    local kept = true
    for id, most in pairs(plan.peak) do
        local peak, more, less = run.peak[id], others[id] or 0, others.less[id] or 0
        local bytes = run.replayed and (run.replayed[id] or peak) or most -- nil: lost meanwhile
        local name = ("%s on %s"):format(what, id)
        kept = promise.check_bytes(name, peak, bytes, peak == bytes
            or peak >= bytes - less and peak <= bytes + more) and kept
        kept = promise.check_bytes(name, peak, most, peak <= most + more) and kept
    end
    return promise.check_bytes(("the pinned memory of %s"):format(what), run.pinned, plan.pinned)
        and kept
end

return promise
