-- Memory that is refused at chosen moments.

local core = require "moonbeam.core"
local mb = require "moonbeam"
local secure = require "moonbeam.plan.secure"

local refusals = {ALWAYS = 1 << 40, PLENTY = 1 << 50}

--- Puts f in the place of module[name] until the returned value is closed.
function refusals.in_place_of(module, name, f)
    local before = module[name]
    module[name] = f
    return setmetatable({}, {__close = function()
        module[name] = before
    end})
end

--- Until the returned value is closed, these devices are refused all memory, once that of a work is
-- committed.
function refusals.after_commit(ids)
    local commit = secure.commit
    local function refuse(n)
        for _, id in ipairs(ids) do
            mb.debug.refuse_commits(n, id)
        end
    end
    secure.commit = function(...)
        refuse(0)
        local results = table.pack(commit(...))
        refuse(refusals.ALWAYS)
        return table.unpack(results, 1, results.n)
    end
    return setmetatable({}, {__close = function()
        secure.commit = commit
        refuse(0)
    end})
end

--- The first n times that the memory of a work is to be committed on a device, it is refused.
function refusals.at_first(n, id)
    local activate, seen = core.pool.activate, 0
    mb.collect()
    mb.pool.trim(id)
    return refusals.in_place_of(core.pool, "activate", function(device, ...)
        seen = device.id == id and seen + 1 or seen
        mb.debug.refuse_commits(device.id == id and seen <= n and refusals.ALWAYS or 0, device)
        local _ <close> = setmetatable({}, {__close = function()
            mb.debug.refuse_commits(0, device)
        end})
        return activate(device, ...)
    end)
end

--- Until the returned value is closed, other programs leave so many bytes for the pool of a device.
function refusals.left_by_others(bytes, id)
    mb.collect()
    mb.pool.trim(id)
    mb.debug.pretend_memory(bytes, id)
    return setmetatable({}, {__close = function()
        mb.debug.pretend_memory(refusals.PLENTY, id)
        require("moonbeam.plan.budget").available(mb.device(id))
        mb.debug.pretend_memory(0, id)
    end})
end

return refusals
