local mb = require "moonbeam"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local pixel_list = require "moonbeam.scan.pixel_list"
local tables = require "moonbeam.internal.tables"
local windows = require "moonbeam.pipeline.windows"

-- The element of the data, from 1, of a pixel of the scan, from 1.
local function element(pixel, first, step)
    return math.tointeger((pixel - first) // step + 1)
end

-- Marks the pixels that are named in the mask of a block.
local function mark(mask, block, pixels)
    local g = block.geometry
    local low = block.cut == "rows" and block.rows[1] or 1
    for i = 1, #pixels, 2 do
        local row = element(pixels[i], g.first_row, g.row_step) - low + 1
        local column = element(pixels[i + 1], g.first_column, g.column_step)
        if row >= 1 and row <= mask.shape[1] and column >= 1 and column <= mask.shape[2] then
            local view <close> = mask:view({row, row}, {column, column})
            mb.fill(view, 1)
        end
    end
end

-- The mask of a block's pixels, to be closed.
local function mask_of(block, options)
    local shape = block.data.shape
    local mask, counts
    if options.detect == "none" then
        mask = mb.zeros({shape[2], shape[3]}, {dtype = "u8", device = block.device})
    elseif options.detect == "constant" then
        mask, counts = mb.dead_pixels(block.data, {rule = "constant"})
    else
        mask, counts = mb.dead_pixels(block.flats, {darks = block.darks, least = options.least})
    end
    if counts then
        counts:release()
    end
    mark(mask, block, options.pixels or {})
    return mask
end

return {
    name = "dead_pixels",
    summary = "Finds dead pixels of the detector, or takes them from a list, and replaces them by "
        .. "their neighbors.",
    doc = "Pixels are dead whose mean flat field less the mean dark is at most least (detect = "
        .. "\"flats\", which also finds those that are always bright), or whose value is the same "
        .. "in all projections (\"constant\"); pixels are further ones. In each projection, and in "
        .. "flats and darks, they become the median or the mean of the valid pixels in the "
        .. "smallest square around them that has any. Put it before flat_field. Values that are "
        .. "not finite are not touched, and do not count as valid.",
    reference = "mb.dead_pixels, mb.mend",
    options = declared.options(
        {"detect", "choice", "what is looked at to find dead pixels", choices = {"flats",
            "constant", "none"}, default = "flats"},
        declared.from("dead_pixels", "least"),
        {"pixels", "list", "row, column, row, column ... of pixels of the scan, from 1; or a text "
            .. "file of these, a mask that is not 0 there (.npy, .tif), a dataset of the "
            .. "scan (\"/path\"), or FILE:/path", also = "string",
            path = true, dataset = true},
        declared.from("mend", "method", "reach")),
    takes = function(options)
        local flats = options.detect == "flats"
        return {quantity = flats and "counts" or {"counts", "transmission", "line integrals"},
            layout = "frames", dtypes = windows.DTYPES}
    end,
    gives = {quantity = "same", layout = "same", dtype = "same"},
    across_angles = function(options)
        return options.detect == "constant"
    end,
    cuts = function(options)
        return options.detect == "constant" and {"rows"} or {"rows", "frames"}
    end,
    prepare = function(options, _, source)
        local own = tables.merged(options)
        if type(own.pixels) == "string" and source.scan then
            own.pixels = pixel_list.read(source.scan, own.pixels)
        end
        return own
    end,
    check = function(options, _, g)
        local pixels = options.pixels or {}
        if type(pixels) == "string" then
            fail("argument", nil, "pixels", "pixels is the file '%s', which needs a scan", pixels)
        elseif #pixels % 2 ~= 0 then
            fail("argument", nil, "pixels", "pixels has %s; give row and column of each "
                .. "pixel", counted(#pixels, "number"))
        end
        for i = 1, #pixels, 2 do
            local row, column = pixels[i], pixels[i + 1]
            if row % 1 ~= 0 or column % 1 ~= 0 or row < 1 or row > g.rows or column < 1
                or column > g.cols then
                fail("argument", nil, "pixels", "pixel %d is row %s, column %s; the scan has rows "
                    .. "1 to %d and columns 1 to %d", i // 2 + 1, row, column, g.rows, g.cols)
            end
        end
        if options.detect == "none" and not pixels[1] then
            fail("argument", nil, "pixels", "pixels is not given and detect is \"none\"; give "
                .. "pixels, or detect = \"flats\" or \"constant\"")
        end
    end,
    needs = function(options, first, last, _, cut)
        local reach = cut == "rows" and options.reach or 0
        return first - reach, last + reach
    end,
    run = function(block, options)
        windows.prepare(block)
        if options.detect == "flats" and not block.flats then
            fail("argument", "step " .. block.step.label, "detect", "the scan has no flat fields; "
                .. "give detect = \"constant\", or \"none\" and pixels")
        end
        local mask <close> = mask_of(block, options)
        local own = {mask = mask, method = options.method, reach = options.reach,
            nonfinite = false}
        for _, name in ipairs {"flats", "darks"} do
            if block[name] then
                local before <close> = block[name]
                local counts
                block[name], counts = mb.mend(before, own)
                counts:release()
            end
        end
        own.counted, own.out = windows.counted(block), block.data
        local _, counts = mb.mend(block.data, own)
        windows.note(block, counts, 1, 0)
    end,
}
