--- Pictures of arrays in the terminal: mb.show(array).

local declared = require "moonbeam.internal.declared"
local image = require "moonbeam.plot.image"
local plot = require "moonbeam.plot"

local show = {}

--- Shows an array in the terminal: two axes as a gray picture, of three axes one slice, (row,
-- column, 3) of u8 in colors, one axis as a line. The terminal is asked what it can show: kitty's
-- graphics, sixel, or half blocks; where the standard output is not a terminal, one line of text
-- gives the shape and the least, mean and greatest value. The picture is made where the array is: a
-- copy of the slice as f32, and one of the size shown, which are released. MOONBEAM_PICTURES names
-- the protocol without asking.
show.array = declared("show", {{"array", "array", "what to show", rank = {1, 3}},
    options = image.OPTIONS}, function(array, options)
    if array.rank == 1 then
        image.check("show", array, options)
        return plot.lines(array, {width = options.width, height = options.height})
    end
    return image.put("show", array, options)
end)

--- mb.show(array, options) shows an array in the terminal, with the options of show.array.
declared.native("show(array: array, options)", image.OPTIONS)

return declared.module(show, "show", nil, function(_, array, options)
    return show.array(array, options)
end)
