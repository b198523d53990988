--- An environment for a statement that is run a second time, to plan it. Its changes of variables
-- and tables must not remain.
--
-- sandbox(env) -> a new environment: assignments stay in it, tables are copies, and values of the
-- module and functions of Lua and of the module are the originals. Any other value has unknown
-- effects, so using it is an error.

local fail = require "moonbeam.internal.fail"

local home = debug.getinfo(1, "S").source:match("^(@.*)sandbox%.lua$")

local function refuse()
    fail("unsupported", "sandbox", nil, "this cannot be repeated")
end

local function is_known(f)
    local info = debug.getinfo(f, "S")
    return info.what == "C" or home ~= nil and info.source:sub(1, #home) == home
end

local copied

-- A deep copy of the table.
local function copy_of(t, copies)
    local copy = {}
    copies[t] = copy
    for key, value in next, t do
        copy[key] = copied(value, copies)
    end
    return copy
end

function copied(value, copies)
    local kind = type(value)
    if kind == "function" then
        return is_known(value) and value or refuse
    elseif kind == "thread" then
        return refuse
    elseif kind ~= "table" then
        return value
    end
    local meta = debug.getmetatable(value)
    if meta == nil then
        return copies[value] or copy_of(value, copies)
    end
    return type(meta.__name) == "string" and meta.__name:find("^moonbeam") and value or refuse
end

return function(env)
    local names, copies = {}, {}
    copies[env], copies[_G] = names, names
    return setmetatable(names, {__index = function(_, name)
        local value = copied(env[name], copies)
        rawset(names, name, value)
        return value
    end})
end
