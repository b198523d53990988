local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

-- The elements {first, last} of the rows or columns that are kept, or nil and the reason.
local function kept(options, name, shape, g)
    local axis = name == "rows" and 2 or 3
    local count = shape[axis]
    if not options[name] then
        return {1, count}
    end
    local is_row = name == "rows"
    return geometry.elements(options[name], is_row and g.first_row or g.first_column,
        is_row and g.row_step or g.column_step, count, is_row and g.rows or g.cols)
end

-- Rows first to last and these columns of frames; the array itself if that is all of it.
local function part_of(frames, first, last, columns)
    local shape = frames.shape
    if first == 1 and last == shape[2] and columns[1] == 1 and columns[2] == shape[3] then
        return frames
    end
    return mb.crop(frames, {before = {0, first - 1, columns[1] - 1},
        after = {0, shape[2] - last, shape[3] - columns[2]}})
end

return {
    name = "crop",
    summary = "Keeps a part of the detector: some rows, some columns.",
    doc = "Rows and columns are those of the scan, even after an earlier crop. Later steps do not "
        .. "see the rest of the detector.",
    options = declared.options(
        {"rows", "range", "{first, last} of the scan, from 1; negative numbers count from the end",
            usual = "all"},
        {"columns", "range", "{first, last} of the scan, from 1; negative numbers count from the "
            .. "end", usual = "all"}),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = function(options, shape, g)
        if not (options.rows or options.columns) then
            fail("argument", nil, nil, "it keeps everything; give rows = {first, last} or columns "
                .. "= {first, last}")
        end
        for _, name in ipairs {"rows", "columns"} do
            local range, problem = kept(options, name, shape, g)
            if not range then
                fail("argument", nil, name, "%s are %s", name, problem)
            end
        end
    end,
    shape = function(options, shape, g)
        local rows, columns = kept(options, "rows", shape, g), kept(options, "columns", shape, g)
        return {shape[1], rows[2] - rows[1] + 1, columns[2] - columns[1] + 1}
    end,
    geometry = function(options, g, shape)
        local rows, columns = kept(options, "rows", shape, g), kept(options, "columns", shape, g)
        return geometry.with(g, {first_row = g.first_row + (rows[1] - 1) * g.row_step,
            first_column = g.first_column + (columns[1] - 1) * g.column_step})
    end,
    needs = function(options, first, last, step, cut)
        if cut ~= "rows" then
            return first, last
        end
        local before = kept(options, "rows", step.shape_before, step.geometry_before)[1] - 1
        return first + before, last + before
    end,
    run = function(block, options)
        local g, step = block.geometry, block.step
        local rows = kept(options, "rows", step.shape_before, g)
        local columns = kept(options, "columns", step.shape_before, g)
        local first, last = rows[1], rows[2] -- elements of the block's data along rows
        if block.cut == "rows" then
            local low, high = math.max(rows[1], block.rows[1]), math.min(rows[2], block.rows[2])
            first, last = low - block.rows[1] + 1, high - block.rows[1] + 1
            block.rows = {low - rows[1] + 1, high - rows[1] + 1}
        end
        block:replace(part_of(block.data, first, last, columns))
        for _, name in ipairs {"flats", "darks"} do
            local whole = block[name]
            if whole then
                block[name] = part_of(whole, first, last, columns)
                if block[name] ~= whole then
                    whole:release()
                end
            end
        end
    end,
}
