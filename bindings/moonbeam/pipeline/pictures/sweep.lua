--- Runs a recipe with several values of one option, on one row: a stack with a slice for each
-- value, and a contact sheet of the slices.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local recipe_text = require "moonbeam.pipeline.recipe"

local sweep = {}

--- The most values of a sweep.
sweep.MOST = 10000

--- Raises where the pipelines of a sweep do not make slices of one shape and type, as far as that
-- is known before they run.
function sweep.check(list, values)
    if #list > sweep.MOST then
        fail("argument", "pipeline", "sweep", "the sweep has %d values; give %d at most", #list,
            sweep.MOST)
    end
    local function kind_of(pipeline)
        local chain = pipeline.chain
        return ("%s of %d x %d"):format(chain.dtype, chain.shape[2], chain.shape[3])
    end
    for i, each in ipairs(list) do
        local own, first = kind_of(each), kind_of(list[1])
        if own ~= first then
            fail("shape", "pipeline", "sweep", "the slices of a sweep are one stack: with %s they "
                .. "are %s, with %s %s; give values that leave type and shape, or set size too",
                recipe_text.value_text(values[1]), first, recipe_text.value_text(values[i]), own)
        end
    end
end

--- The size of the pixels in m where it is known, and one for all values.
function sweep.pixel_size(list)
    local size = list[1].chain.geometry.pixel_size
    for _, each in ipairs(list) do
        size = each.chain.geometry.pixel_size == size and size or nil
    end
    return size
end

--- The stack of one row, (value, y, x) on the host, to be closed, by the pipelines of its values;
-- `row` counts from 1. `each(i)` is told of each that is done. The slices must be of one shape.
-- Returns also what the runs took on their first device, {predicted, peak}, with what was live.
function sweep.stack(list, row, each)
    local stack
    local took, device = {predicted = 0, peak = 0}, list[1].devices[1]
    local scope <close> = mb.pool.scope(device)
    local before <const> = mb.pool.stats(device).live
    local _ <close> = on_error(function()
        if stack then
            stack:release()
        end
    end)
    for i, pipeline in ipairs(list) do
        local slice <close>, report = pipeline:slices {row, row}
        local live <const> = mb.pool.stats(device).live
        took.predicted = math.max(took.predicted, live + report.predicted)
        local _, ny, nx = table.unpack(slice.shape)
        stack = stack or mb.empty({#list, ny, nx}, {dtype = slice.dtype, device = "host"})
        if stack.shape[2] ~= ny or stack.shape[3] ~= nx then
            fail("shape", "pipeline", "sweep", "the slice at value %d is %d x %d, the first one "
                .. "%d x %d; give fbp.size, so that all are of one shape", i, ny, nx,
                stack.shape[2], stack.shape[3])
        end
        local own <close> = stack:view({i, i})
        slice:cast(slice.dtype, {out = own})
        took.predicted = math.max(took.predicted, mb.pool.stats(device).live)
        each(i)
    end
    took.peak = before + scope:finish()
    return stack, took
end

return sweep
