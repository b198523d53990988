--- Names that do not exist: an error that says which one is nearest.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local strict = {}

--- "; did you mean 'x'?" where one of these names is near, else "".
function strict.suggestion(name, names)
    local nearest = core.error.nearest(tostring(name), names)
    return nearest and ("; did you mean '%s'?"):format(nearest) or ""
end

--- The names in a table, in no order.
function strict.names(t)
    local names = {}
    for key in pairs(t) do
        names[#names + 1] = type(key) == "string" and key or nil
    end
    return names
end

--- The module, in which an unknown name is from now on an error; rawget still gives nil. `title`
-- is what the error calls it. A metatable that looks up names by itself stays as it is.
function strict.module(module, title)
    local metatable = getmetatable(module) or {}
    metatable.__index = metatable.__index or function(_, name)
        if type(name) == "string" then
            fail("argument", nil, nil, "%s has no '%s'%s", title, name,
                strict.suggestion(name, strict.names(module)))
        end
    end
    return setmetatable(module, metatable)
end

return strict
