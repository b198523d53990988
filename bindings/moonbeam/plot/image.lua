--- Pictures of arrays: in the terminal, by kitty's graphics, sixel or half blocks, or as PNG files.
-- Called with the function that is named in errors, the array and the options.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local output = require "moonbeam.plot.output"
local terminal = require "moonbeam.plot.terminal"
local view = require "moonbeam.view"

local pictures = {}

local run = core.op.run

-- The picture as an f32 array on its device, at most this large; color pictures (row, column, 3) of
-- u8 become frames (channel, row, column). Factors: how often each pixel is repeated.
local function scaled(image, color, room_y, room_x)
    local frames <close> = color and image:permute(3, 1, 2) or image:view()
    local height, width = image.shape[1], image.shape[2]
    local factor = math.min(room_y / height, room_x / width)
    local rows = math.max(1, math.min(room_y, math.floor(height * factor + 0.5)))
    local columns = math.max(1, math.min(room_x, math.floor(width * factor + 0.5)))
    local source = run("convert", frames, "f32")
    if factor >= 1 then
        return source, math.max(1, math.floor(factor))
    end
    local _ <close> = source
    return run("resample", source, {rows, columns}), 1
end

-- The bytes of frames on the host, each pixel `factor` times in both directions.
local function picture_of(bytes, height, width, color, factor)
    local channels, rows = color and 3 or 1, {}
    for y = 1, height do
        local row = {}
        for x = 1, width do
            local at = (y - 1) * width + x
            local pixel = bytes:sub(at, at)
            if color then
                local size = height * width
                pixel = pixel .. bytes:sub(at + size, at + size) .. bytes:sub(at + 2 * size,
                    at + 2 * size)
            end
            row[x] = pixel:rep(factor)
        end
        rows[y] = table.concat(row):rep(factor)
    end
    return {width = width * factor, height = height * factor, channels = channels,
        bytes = table.concat(rows)}
end

-- The pixels of the picture as gray values or colors from 0 to 255, and the window.
local function pixels(image, color, room_y, room_x, options)
    local small <close>, factor = scaled(image, color, room_y, room_x)
    local low, high = 0, 255
    if options.range then
        low, high = options.range[1], options.range[2]
    elseif not color and not image.device.dry then
        low, high = view.window(small, options.percentiles)
    end
    local scale = high > low and 255 / (high - low) or 0
    local gray <close> = run("convert", small, "u8", {scale = scale, offset = -low * scale})
    local here <close> = core.array.transfer(gray, "host")
    if image.device.dry then
        return nil
    end
    local rank = here.rank
    return picture_of(here:to_string(), here.shape[rank - 1], here.shape[rank], color, factor), low,
        high
end

-- One line of text: the array, and its least, mean and greatest value.
local function summary(array, color)
    local texts = {}
    for i, fn in ipairs {"min", "mean", "max"} do
        local value <close> = run("reduce", array, fn)
        texts[i] = not array.device.dry and ("%s %.6g"):format(fn, (value:item())) or nil
    end
    if not array.device.dry then
        print(("%s: %s%s"):format(tostring(array), table.concat(texts, ", "), color and ", color"
            or ""))
    end
end

-- The picture of an array of two axes, or of a color picture.
local function show_image(image, color, what, options, protocol)
    local size = core.system.terminal_pixels() or {columns = 80, rows = 24, width = 0, height = 0}
    if options.width or options.height then
        local columns, rows = size.columns, size.rows
        size.columns, size.rows = (options.width or columns - 1) + 1, (options.height or rows - 3)
            + 3
        size.width = size.width * size.columns // columns
        size.height = size.height * size.rows // rows
    end
    local room_y, room_x = terminal.room(protocol, size)
    local picture, low, high = pixels(image, color, room_y, room_x, options)
    if not picture then
        return
    end
    local colors = output.colors()
    if options.protocol and not colors and protocol == "blocks" then
        colors = true
    end
    io.stdout:write(terminal.text(picture, protocol, colors))
    print(what .. (color and "" or ("; black %.6g, white %.6g"):format(low, high)))
end

-- Whether the array is a color picture; errors for options that do not fit the array.
local function checked(op, array, options)
    local rank, shape, number = array.rank, array.shape, options.slice
    if array.dtype == "c64" or array.dtype == "c128" then
        fail("dtype", op, "array", "the array is complex: take its magnitude first, a:abs()")
    end
    local color = rank == 3 and shape[3] == 3 and array.dtype == "u8"
    if number and (rank < 3 or color) then
        fail("argument", op, "slice", "slice is for arrays of three axes; this one has %d", rank)
    elseif number and number > shape[1] then
        fail("argument", op, "slice", "slice is %d; the array has %d", number, shape[1])
    elseif options.range and options.range[1] >= options.range[2] then
        fail("argument", op, "range", "range is {%.6g, %.6g}; give {black, white} with black "
            .. "below white", options.range[1], options.range[2])
    end
    return color
end

--- The options of a picture.
pictures.OPTIONS = declared.options(
    {"slice", "count", "of axis 1, from 1, where there are three axes", min = 1,
        usual = "the middle one"},
    {"range", "list", "{black, white}, two values", count = 2, usual = "values at the percentiles"},
    {"percentiles", "list", "{black, white}, of the finite values of the picture", count = 2,
        usual = "{0.5, 99.5}"},
    {"protocol", "choice", "how the terminal shows it", choices = {"kitty", "sixel", "blocks",
        "text"}, usual = "the best that the terminal says it knows"},
    {"width", "count", "columns of the terminal at most", min = 8, max = 1000,
        usual = "as many as there are"},
    {"height", "count", "rows of the terminal at most", min = 4, max = 1000,
        usual = "as many as there are"},
    {"file", "string", "write a PNG picture in full size instead"},
    {"overwrite", "boolean", "replace an existing file"})

--- Errors for an array or options that no picture can be made of.
pictures.check = checked

--- Shows an array of two or three axes, or writes it to a file.
function pictures.put(op, array, options)
    local color, number = checked(op, array, options), nil
    local protocol, what = options.protocol or terminal.protocol(), tostring(array)
    if not protocol and not options.file then
        return summary(array, color)
    elseif array.rank == 3 and not color then
        number = options.slice or array.shape[1] // 2 + 1
        what = ("%s, slice %d of %d"):format(what, number, array.shape[1])
    end
    local shown <close> = number and array[number] or array:view()
    if options.file then
        file_name.check(options.file, file_name.PNG, "pictures are PNG files", op)
        view.save(options.file, shown, {range = options.range, percentiles = options.percentiles,
            overwrite = options.overwrite})
        return
    end
    return show_image(shown, color, what, options, protocol)
end

return pictures
