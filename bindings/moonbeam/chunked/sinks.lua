-- The destinations of the result of `mb.chunked`, which is written block by block: an array in host
-- memory, an HDF5 dataset, a result (mb.result) or a function. If blocks are combined, the result
-- is one small array.
--
-- A sink has write(slices, first, last, carrier) and value (what the caller gets). Some also have
-- array (for the carrier), files (whether there are several), prepare and drop.

local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local op = require "moonbeam.op"
local own_function = require "moonbeam.plan.own_function"

local sinks = {}

local OP <const> = "chunked"

local function text_of(shape)
    return table.concat(shape, " x ")
end

local function same_shape(a, b)
    local same = #a == #b
    for axis, extent in ipairs(a) do
        same = same and extent == b[axis]
    end
    return same
end

local function check_shape(shape, known, what)
    if not same_shape(shape, known.shape) then
        fail("shape", OP, "sink", "%s is %s, but the result is %s", what, text_of(shape),
            text_of(known.shape))
    end
end

local function ranges_along(known, first, last)
    local ranges = {}
    for axis = 1, #known.shape do
        ranges[axis] = axis == known.axis and {first, last} or core.array.all
    end
    return ranges
end

local function to_array(array, known)
    if array.device.kind ~= "host" then
        fail("argument", OP, "sink", "the array for the result must be on the host, not on %s",
            array.device.id)
    elseif array.dtype ~= known.dtype then
        fail("argument", OP, "sink", "the array is %s, but the result is %s", array.dtype,
            known.dtype)
    end
    check_shape(array.shape, known, "the array")
    return {array = array, value = array,
        write = function(_, slices, first, last, carrier)
            local own <close> = array:view(table.unpack(ranges_along(known, first, last)))
            carrier:carry(own, slices)
        end}
end

local function to_dataset(dataset, known)
    check_shape(dataset.shape, known, "the dataset")
    return {value = dataset,
        write = function(_, slices, first, last, carrier)
            carrier:carry(dataset, slices, table.unpack(ranges_along(known, first, last)))
        end}
end

local function to_result(result, known)
    check_shape(result.shape, known, "the result's volume")
    if known.axis ~= 1 then
        fail("argument", OP, "sink", "a result takes slices, blocks along axis 1 of the computed "
            .. "array, not along axis %d", known.axis)
    end
    return {value = result, files = result.parts ~= nil,
        prepare = function(_, first, last)
            result:prepare(first, last)
        end,
        write = function(_, slices, first, _, carrier)
            result:carry(carrier, slices, first)
        end}
end

local function to_function(fn)
    return {write = function(_, slices, first, last)
        own_function.call(OP, fn, slices, first, last)
    end}
end

-- The sink for an HDF5 file in a dry run: nothing is written.
local function to_nothing(value)
    return {value = value, write = function() end}
end

local COMBINED = {sum = "add", min = "min", max = "max"}

-- Combines the small arrays of all blocks, in order, into one on the host.
local function combined(known)
    local how = COMBINED[known.combine]
    if not how then
        fail("unsupported", OP, "combine", "partial results cannot be combined by '%s'",
            known.combine)
    end
    local sink = {}
    function sink.write(_, slices)
        local part = slices:to("host")
        if not sink.value then
            sink.value = part
            return
        end
        local _ <close> = part
        op.run("binary", sink.value, how, {b = part, out = sink.value})
    end
    function sink.drop()
        if sink.value then
            sink.value:release()
        end
    end
    return sink
end

--- The sink for a known result: {shape, dtype, axis, combine}. `sink` is what the caller gave; nil
-- means a new array on the host, whose sink has a method drop for a failed run.
function sinks.of(sink, known)
    if known.combine ~= "none" then
        if sink ~= nil and type(sink) ~= "function" then
            fail("argument", OP, "sink", "a combined result is returned, so it takes no sink")
        end
        return combined(known)
    end
    local class = arguments.class_of(sink)
    if sink == nil then
        local array = core.array.empty(known.shape, {dtype = known.dtype, device = "host"})
        local made = to_array(array, known)
        made.drop = function()
            array:release()
        end
        return made
    elseif class == "moonbeam.array" then
        return to_array(sink, known)
    elseif class == "moonbeam.h5dataset" then
        return to_dataset(sink, known)
    elseif class == "moonbeam.result" then
        return to_result(sink, known)
    elseif type(sink) == "function" then
        return to_function(sink)
    elseif core.dry.on() and type(sink) == "table" then
        return to_nothing(sink)
    end
    fail("argument", OP, "sink", "sink is a %s; give an array on the host, an HDF5 dataset, a "
        .. "result or a function", class or type(sink))
end

return sinks
