--- What steps share that look at a window around each element: medians and repairs.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

local windows = {}

-- The types that the operators take; other counts become f32.
local TAKEN = {u8 = true, u16 = true, f32 = true}

--- The types, besides f32, that steps take as they are.
windows.DTYPES = {"u8", "u16"}

--- Options size and mode of an operator; `fields` are further fields of size.
function windows.options(operator, fields)
    local size = {"size", "vector", "odd extents of the window: one number for a square in each "
        .. "frame or slice, {row, column}, or {frame, row, column}; of slices {y, x} or "
        .. "{row, y, x}",
        unit = "px", min = 1, max = 31}
    for name, value in pairs(fields) do
        size[name] = value
    end
    return declared.options(size, declared.from(operator, {"mode", choices = {"edge", "reflect",
        "symmetric"}}))
end

--- The extents of a window along the three axes of a block.
function windows.size(options)
    local size = options.size
    size = type(size) == "number" and {size, size} or size
    return #size == 1 and {1, size[1], size[1]} or #size == 2 and {1, size[1], size[2]} or size
end

--- Checks the extents: `check` of a step.
function windows.check(options)
    local size = options.size
    if type(size) == "table" and (#size < 1 or #size > 3) then
        fail("argument", nil, "size", "size has %d numbers; give one, two for rows and columns, or "
            .. "three with frames first", #size)
    end
    local elements = 1
    for _, extent in ipairs(windows.size(options)) do
        if extent % 2 ~= 1 then
            fail("argument", nil, "size", "size has the extent %s; extents must be odd whole "
                .. "numbers, for example 3", extent)
        end
        elements = elements * extent
    end
    if elements > 1023 then
        fail("argument", nil, "size", "the window has %d elements; it may have 1023 at most: give "
            .. "smaller extents", elements)
    end
end

-- The axis of the data that is cut.
local function axis_of(cut, layout)
    return cut == "rows" and layout == "frames" and 2 or 1
end

--- Rows or frames that a window needs: `needs` of a step.
function windows.needs(options, first, last, step, cut)
    local half = windows.size(options)[axis_of(cut, step.kind_before.layout)] // 1 // 2
    return first - half, last + half
end

--- How many rows along an axis of data of this shape an operator needs before and after: {before,
-- after}.
function windows.reach(operator, shape, params, axis)
    shape = {"f32", table.unpack(shape)}
    for _, split in ipairs(mb.op.estimate(operator, {shape}, params).split) do
        if split.axis == axis then
            return {split.before, split.after}
        end
    end
    return {0, 0}
end

--- Makes the data of a block, and its flats and darks, types that the operators take.
function windows.prepare(block)
    for _, name in ipairs {"data", "flats", "darks"} do
        local array = block[name]
        if array and not TAKEN[array.dtype] then
            block[name] = array:cast "f32"
            array:release()
        end
    end
end

--- The part of a block's data that its step has to make, for the counts of an operator.
function windows.counted(block)
    local part, low = {}, block.rows[1]
    local axis = axis_of(block.cut, block.layout)
    for i = 1, block.data.rank do
        local wanted = i == axis and block.wanted or nil
        part[#part + 1] = wanted and wanted[1] - low + 1 or 1
        part[#part + 1] = wanted and wanted[2] - low + 1 or block.data.shape[i]
    end
    return part
end

--- Notes an operator's counts, which are gone then: `before` and `after` say how many of the three
-- numbers {outliers, values mended, values left} come before and after them.
function windows.note(block, counts, before, after)
    local _ <close> = counts
    block.repaired = mb.pad(counts, {before = before, after = after})
end

return windows
