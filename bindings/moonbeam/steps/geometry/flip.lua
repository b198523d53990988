local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

-- Copies a row of frames to another place.
local function copy_row(from, i, to, k)
    local one <close> = from:view(mb.all, {i, i}, mb.all)
    local other <close> = to:view(mb.all, {k, k}, mb.all)
    mb.convert(one, from.dtype, {out = other})
end

-- Reverses the rows of frames in place, with room for one row.
local function reverse(frames)
    local count = frames.shape[2]
    if count == 1 then
        return
    end
    local room <close> = mb.empty({frames.shape[1], 1, frames.shape[3]}, {dtype = frames.dtype,
        device = frames.device})
    for i = 1, count // 2 do
        local k = count + 1 - i
        copy_row(frames, i, room, 1)
        copy_row(frames, k, frames, i)
        copy_row(room, 1, frames, k)
    end
end

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
        .. "volume has the handedness of the object. Rows and columns, in options of all steps, "
        .. "reports and results, are still those of the stored frames, and so is the direction of "
        .. "shifts and leaning axes.",
    options = declared.options(
        {"rows", "boolean", "the frames are upside down", default = false},
        {"columns", "boolean", "left and right are interchanged", default = false}),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = function(options)
        if not (options.rows or options.columns) then
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
        reverse(block.data)
        for _, name in ipairs {"flats", "darks"} do
            local shared <close> = block[name] -- of whole frames: by all blocks
            if shared then
                block[name] = shared:copy()
                reverse(block[name])
            end
        end
        if block.cut == "rows" then
            local count, rows = rows_of(block.step), block.rows
            block.rows = {count + 1 - rows[2], count + 1 - rows[1]}
        end
    end,
}
