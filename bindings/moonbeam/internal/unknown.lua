--- The value of an element in a dry run, where arrays have no data. It can be printed ("?"), put
-- into texts, and used to scale arrays. Any other use (arithmetic, a comparison by size, an index)
-- is an error that says how to supply a bound. One use cannot be detected: a test whether it equals
-- a number (==) is false.

local core = require "moonbeam.core"

local unknown = {}

local function refuse()
    core.error.raise("dry_run", core.unknown.message)
end

local metatable = {__name = "moonbeam.internal.unknown", __tostring = function()
    return "?"
end, __concat = function(a, b)
    return tostring(a) .. tostring(b)
end}
for _, name in ipairs {"add", "sub", "mul", "div", "mod", "pow", "unm", "idiv", "band", "bor",
    "bxor", "bnot", "shl", "shr", "len", "eq",
    "lt", "le", "index", "newindex", "call"} do
    metatable["__" .. name] = refuse
end

-- Two values, handed out in turn, so that comparing them is detected.
core.unknown.set(setmetatable({}, metatable), setmetatable({}, metatable))

--- Whether a value is unknown.
function unknown.is(value)
    return debug.getmetatable(value) == metatable
end

-- Like string.format, but every unknown value is shown as "?".
local function tolerant(format, text, ...)
    local arguments, found, number = table.pack(...), false, 0
    for i = 1, arguments.n do
        found = found or unknown.is(arguments[i])
    end
    if found and type(text) == "string" then
        text = text:gsub("%%[-+ #0]*%d*%.?%d*[%a%%]", function(conversion)
            if conversion:sub(-1) ~= "%" then
                number = number + 1
                return unknown.is(arguments[number]) and "%s" or nil
            end
        end)
    end
    return format(text, table.unpack(arguments, 1, arguments.n))
end

--- Makes string.format accept unknown values until the returned value is closed.
function unknown.formatted()
    local format = string.format
    string.format = function(...) -- luacheck: ignore
        return tolerant(format, ...)
    end
    return setmetatable({}, {__close = function()
        string.format = format -- luacheck: ignore
    end})
end

--- Turns the error of a Lua function that got an unknown value into an error that says what to do.
-- Any other error stays as it is.
function unknown.explained(err)
    if type(err) ~= "string" or not err:find("moonbeam.internal.unknown", 1, true) then
        return err
    end
    local problem = core.error.new("dry_run", core.unknown.message)
    problem.where = err:match("^([^\n]-:%d+): ") or problem.where
    return problem
end

return unknown
