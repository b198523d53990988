--- Raises an error object. All errors of the Lua half are raised by this function.
--
-- fail(code, op, arg, format, ...): `code` is the error's code ("argument", "shape", ...), `op` the
-- function that the user called, `arg` the argument that is wrong. `op` and `arg` may be nil. The
-- message is string.format(format, ...); without values it is `format`, unchanged.

local core = require "moonbeam.core"

return function(code, op, arg, format, ...)
    core.error.raise(code, select("#", ...) > 0 and format:format(...) or format,
        {op = op, arg = arg})
end
