--- Errors for names that do not exist, with the nearest name.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local strict = {}

--- "; did you mean 'x'?" if one of these names is near, otherwise "".
function strict.suggestion(name, names)
    name = tostring(name)
    local nearest = core.error.nearest(name, names) or core.error.nearest(name:lower(), names)
    return nearest and ("; did you mean '%s'?"):format(nearest) or ""
end

--- The names in a table, in no particular order.
function strict.names(t)
    local names = {}
    for key in pairs(t) do
        names[#names + 1] = type(key) == "string" and key or nil
    end
    return names
end

--- Makes an unknown name in the module an error, and returns the module; rawget still gives nil.
-- `title` is what the error calls it. A metatable that looks up names by itself stays as it is.
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
