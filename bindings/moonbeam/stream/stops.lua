-- Stops (Ctrl-C and the like) that wait until what is in flight is finished and noted.

local core = require "moonbeam.core"

local stops = {}

--- Has a stop come that waits? For steps.stops of stream.run.
stops.waits = core.system.stop_waits

local held = {__close = function(_, err)
    local ok, stop = pcall(core.system.hold_stop, false)
    if not ok and not err then -- what went wrong before says more
        error(stop, 0)
    end
end}

--- From now on the first stop waits, and a second one does not. When the returned value is closed,
-- one that has waited is raised.
function stops.hold()
    core.system.hold_stop(true)
    return setmetatable({}, held)
end

--- Raises a stop that has waited.
function stops.raise(holding)
    getmetatable(holding).__close(holding)
end

return stops
