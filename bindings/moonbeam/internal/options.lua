--- Option tables of functions written in Lua: an unknown key is an error that names the nearest
-- valid one.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

--- options_of(given, "tomo.fbp", {names...}, {more names...}) -> given, or an empty table for nil.
return function(given, what, ...)
    if given == nil then
        return {}
    end
    if type(given) ~= "table" then
        fail("argument", what, nil, "options must be a table, not a %s", type(given))
    end
    local known, names = {}, {}
    for _, list in ipairs {...} do
        for _, name in ipairs(list) do
            known[name] = true
            names[#names + 1] = name
        end
    end
    for key in pairs(given) do
        if not known[key] then
            local near = core.error.nearest(tostring(key), names)
            fail("argument", what, tostring(key), "unknown option '%s'%s", tostring(key),
                near and ("; did you mean '%s'?"):format(near) or "")
        end
    end
    return given
end
