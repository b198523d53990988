local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

local function sizes_of(options)
    return {1, options.rows, options.columns}
end

return {
    name = "bin",
    summary = "Means of neighboring pixels: smaller frames, less noise.",
    doc = "An element of the result is the mean of rows x columns pixels, in float32 whatever the "
        .. "type of the data; so are those of flats and darks. Pixels at the lower and right edges "
        .. "that do not fill an element are left out. Columns of the axis and rows are still those "
        .. "of the scan, and the pixel size that of the new elements. A NaN makes its element NaN.",
    presets = {nabu = {rows = 2, columns = 2}, tomocupy = {rows = 2, columns = 2}},
    options = declared.options(
        {"rows", "count", "rows that become one", min = 1, max = 1024, default = 2},
        {"columns", "count", "columns that become one", min = 1, max = 1024, default = 2}),
    takes = {quantity = {"counts", "transmission", "line integrals", "phase"}, layout = "frames",
        dtypes = {"u8", "u16", "i32", "f16"}},
    cuts = {"rows", "frames"},
    check = function(options, shape)
        for axis, name in pairs {[2] = "rows", [3] = "columns"} do
            if options[name] > shape[axis] then
                fail("argument", nil, name, "%s is %d; frames have %d: give fewer", name,
                    options[name], shape[axis])
            end
        end
    end,
    shape = function(options, shape)
        return {shape[1], shape[2] // options.rows, shape[3] // options.columns}
    end,
    geometry = function(options, g)
        return geometry.with(g, {row_step = g.row_step * options.rows,
            column_step = g.column_step * options.columns,
            pixel_size = g.pixel_size and g.pixel_size * options.columns,
            row_size = g.row_size and g.row_size * options.rows})
    end,
    needs = function(options, first, last, _, cut)
        if cut ~= "rows" then
            return first, last
        end
        return (first - 1) * options.rows + 1, last * options.rows
    end,
    run = function(block, options)
        if block.quantity ~= "counts" then
            block:finite(block.quantity == "transmission" and 1 or 0)
        end
        block:replace(mb.bin(block.data, sizes_of(options)))
        for _, name in ipairs {"flats", "darks"} do
            local whole = block[name]
            if whole then
                block[name] = mb.bin(whole, sizes_of(options))
                whole:release()
            end
        end
        if block.cut == "rows" then
            block.rows = {(block.rows[1] - 1) // options.rows + 1, block.rows[2] // options.rows}
        end
    end,
}
