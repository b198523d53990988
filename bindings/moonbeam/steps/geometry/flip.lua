local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local reversed_rows = require "moonbeam.pipeline.definitions.reversed_rows"

-- The number of rows of the frames before a step.
local function rows_of(step)
    return step.shape_before[2]
end

return {
    name = "flip",
    summary = "Frames whose detector is upside down or mirrored.",
    doc = "rows: up-down; the rows come out in reverse order, and so do the slices. columns: "
        .. "left-right; no data move, because frames that are mirrored about the axis are those of "
        .. "half a turn later: the slices are turned, and columns stay those of the stored "
        .. "frames. Both change the handedness of the volume: give what the detector does, and the "
        .. "volume has the handedness of the object. rows = false, columns = false says that the "
        .. "frames are upright, whatever the file says.\n"
        .. "Rows and columns, in options of all steps, reports and results, are still those of the "
        .. "stored frames, and so is the direction of shifts and leaning axes.",
    options = declared.options(
        {"rows", "boolean", "the frames are upside down", usual = "false"},
        {"columns", "boolean", "left and right are interchanged", usual = "false"}),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = function(options)
        if options.rows == nil and options.columns == nil then
            fail("argument", nil, nil, "it changes nothing; give rows = true, columns = true, or "
                .. "both")
        end
    end,
    geometry = function(options, g, shape)
        local own = options.rows and geometry.flipped_rows(g, shape[2]) or g
        return options.columns and geometry.turned(own) or own
    end,
    needs = function(options, first, last, step, cut)
        if cut ~= "rows" or not options.rows then
            return first, last
        end
        return rows_of(step) + 1 - last, rows_of(step) + 1 - first
    end,
    plain = function()
        return true
    end,
    run = function(block, options)
        if not options.rows then
            return
        end
        reversed_rows(block.data)
        for _, name in ipairs {"flats", "darks"} do
            local shared <close> = block[name] -- of whole frames: by all blocks
            if shared then
                block[name] = shared:copy()
                reversed_rows(block[name])
            end
        end
        if block.cut == "rows" then
            local count, rows = rows_of(block.step), block.rows
            block.rows = {count + 1 - rows[2], count + 1 - rows[1]}
        end
    end,
}
