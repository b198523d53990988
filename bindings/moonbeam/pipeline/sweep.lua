--- A recipe with one option at several values, on one row: a stack of slices, one for each value,
-- and a contact sheet of them.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"

local sweep = {}

--- The most values of a sweep.
sweep.MOST = 10000

--- The stack of one row, (value, y, x) on the host, to be closed. `make(value)` gives the pipeline
-- of a value; `row` counts from 1. `each(i, value)` is told of each that is done. The slices must
-- be of one shape.
function sweep.stack(values, row, make, each)
    if #values > sweep.MOST then
        fail("argument", "pipeline", "sweep", "the sweep has %d values; give %d at most", #values,
            sweep.MOST)
    end
    local stack
    local _ <close> = on_error(function()
        if stack then
            stack:release()
        end
    end)
    for i, value in ipairs(values) do
        local slice <close> = make(value):slices {row, row}
        local _, ny, nx = table.unpack(slice.shape)
        stack = stack or mb.empty({#values, ny, nx}, {dtype = slice.dtype, device = "host"})
        if stack.shape[2] ~= ny or stack.shape[3] ~= nx then
            fail("shape", "pipeline", "sweep", "the slice at value %d is %d x %d, the first one "
                .. "%d x %d; give fbp.size, so that all are of one shape", i, ny, nx,
                stack.shape[2], stack.shape[3])
        end
        local own <close> = stack:view({i, i})
        slice:cast(slice.dtype, {out = own})
        if each then
            each(i, value)
        end
    end
    return stack
end

return sweep
