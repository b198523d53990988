-- What long work is doing between two steps of its progress: iterations of a method on a block,
-- trial slices of a search. The work says it, whoever shows progress (progress.lua) listens; where
-- nobody does, it costs a comparison.

local activity = {}

local listeners = {} -- the last one hears

--- Has fn(what, done, total) hear what is done, until the returned value is closed.
function activity.listen(fn)
    listeners[#listeners + 1] = fn
    local listening = true
    return setmetatable({}, {__close = function()
        for i = #listeners, 1, -1 do
            if listening and listeners[i] == fn then
                table.remove(listeners, i)
                listening = false
            end
        end
    end})
end

--- Says that `done` of `total` are done, such as activity.at("iteration", 3, 100).
function activity.at(what, done, total)
    local fn = listeners[#listeners]
    if fn then
        fn(what, done, total)
    end
end

--- An iterator over 1 to `total` that says where it is: for k in activity.each("iteration", 100).
function activity.each(what, total)
    local k = 0
    return function()
        activity.at(what, k, total)
        k = k + 1
        return k <= total and k or nil
    end
end

return activity
