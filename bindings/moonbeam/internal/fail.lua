--- Raises an error object. All errors of the Lua half are raised by this function.
--
-- fail(code, op, arg, format, ...): `code` is the error's code ("argument", "shape", ...), `op` the
-- function that the user called, `arg` the argument that is wrong. `op` and `arg` may be nil. The
-- message is string.format(format, ...); without values it is `format`, unchanged. Where it would
-- be longer than an error's record has room for, long values in it are abridged: what is said about
-- them stays.

local core = require "moonbeam.core"

-- The bytes of a message beyond which long values are abridged; what is a long one, and what is
-- left of it: its beginning and its end.
local MOST <const>, LONG <const>, HEAD <const>, TAIL <const> = 990, 160, 100, 40

-- The value without its middle; no character is cut in two.
local function abridged(value)
    if type(value) ~= "string" or #value <= LONG then
        return value
    end
    return value:sub(1, HEAD):gsub("[\xC2-\xF4][\x80-\xBF]*$", "") .. "..."
        .. value:sub(-TAIL):gsub("^[\x80-\xBF]+", "")
end

local function message_of(format, ...)
    local message = format:format(...)
    if #message <= MOST then
        return message
    end
    local values = table.pack(...)
    for i = 1, values.n do
        values[i] = abridged(values[i])
    end
    return format:format(table.unpack(values, 1, values.n))
end

return function(code, op, arg, format, ...)
    core.error.raise(code, select("#", ...) > 0 and message_of(format, ...) or format,
        {op = op, arg = arg})
end
