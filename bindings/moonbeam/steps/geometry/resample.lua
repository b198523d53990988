local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

local MOST <const> = 65536 -- rows or columns

-- The rows and columns of the result.
local function size_of(options, shape)
    local factor = options.factor or 1
    return {options.rows or math.max(1, math.floor(shape[2] * factor + 0.5)),
        options.columns or math.max(1, math.floor(shape[3] * factor + 0.5))}
end

return {
    name = "resample",
    summary = "Frames or slices with another number of rows and columns.",
    doc = "The new pixels cover the same area. Of slices, rows and columns are y and x. box takes "
        .. "means over the area and is for smaller frames; linear interpolates at the middle of "
        .. "the new pixels, with the edges repeated. Columns of the axis and rows are still those "
        .. "of the scan, and the pixel size that of the new pixels. A NaN spreads to all pixels "
        .. "that it is a part of.",
    presets = {httomo = {method = "linear"}},
    options = declared.options(
        {"rows", "count", "rows of the result", min = 1, max = MOST, usual = "by factor"},
        {"columns", "count", "columns of the result", min = 1, max = MOST, usual = "by factor"},
        {"factor", "number", "new rows and columns for each old one, rounded to whole ones",
            above = 0, below = 64, usual = "1"},
        declared.from("resample", "method")),
    takes = {quantity = {"transmission", "line integrals", "phase", "attenuation"},
        layout = {"frames", "slices"}},
    cuts = {"rows", "frames"},
    check = function(options)
        if not (options.rows or options.columns or options.factor) then
            fail("argument", nil, nil, "it changes nothing; give rows, columns or factor")
        end
    end,
    shape = function(options, shape)
        return {shape[1], table.unpack(size_of(options, shape))}
    end,
    geometry = function(options, g, shape, kind)
        local size = size_of(options, shape)
        local row, column = shape[2] / size[1], shape[3] / size[2]
        local pixel_size = g.pixel_size and g.pixel_size * column
        if kind.layout == "slices" then
            return geometry.with(g, {pixel_size = pixel_size})
        end
        return geometry.with(g, {row_step = g.row_step * row, column_step = g.column_step * column,
            pixel_size = pixel_size, row_size = g.row_size and g.row_size * row})
    end,
    needs = function(options, first, last, step, cut)
        if cut ~= "rows" or step.kind_before.layout == "slices" then
            return first, last
        end
        local shape = step.shape_before
        local piece = mb.op.piece("resample", {{"f32", 1, shape[2], shape[3]}},
            {size = size_of(options, shape), method = options.method},
            {axis = 2, first = first, last = last})
        return piece.first, piece.last
    end,
    run = function(block, options)
        local shape, own = block.step.shape_before, {method = options.method}
        if block.cut == "rows" and block.layout == "frames" then
            own.part, own.rows = {block.rows[1], shape[2]}, block.wanted
            block.rows = block.wanted
        end
        block:replace(mb.resample(block.data, size_of(options, shape), own))
    end,
}
