--- Option tables of functions written in Lua: an unknown key is an error that names the nearest
-- valid one.

local core = require "moonbeam.core"

--- options_of(given, "tomo.fbp", {names...}, {more names...}) -> given, or an empty table when nil.
return function(given, what, ...)
    if given == nil then
        return {}
    end
    if type(given) ~= "table" then
        core.error.raise("argument", ("options are a table, not a %s"):format(type(given)), {op = what})
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
            core.error.raise("argument", ("unknown option '%s'%s"):format(tostring(key),
                near and ("; did you mean '%s'?"):format(near) or ""), {op = what, arg = tostring(key)})
        end
    end
    return given
end
