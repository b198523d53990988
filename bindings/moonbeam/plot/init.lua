--- Charts: lines, histograms, stacked areas, in the terminal or as PNG and SVG files. mb.show shows
-- arrays as pictures, mb.pool.plot the memory over time.

local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local image = require "moonbeam.plot.image"
local output = require "moonbeam.plot.output"
local scale = require "moonbeam.plot.scale"
local tables = require "moonbeam.internal.tables"

local plot = {}

local run = core.op.run
local MOST_VALUES <const> = 65536 -- of an array that a line shows

-- The numbers of a list or of an array of one axis, and the distance of those that are shown; nil
-- in a dry run.
local function numbers_of(values, op, name)
    if arguments.is_array(values) then
        if values.rank ~= 1 then
            fail("shape", op, name, "%s has %d axes; a line is an array of one axis, as "
                .. "v:view(1, 20) or the mean of an axis", name, values.rank)
        elseif values.dtype == "c64" or values.dtype == "c128" then
            fail("dtype", op, name, "%s is complex: take its magnitude first, a:abs()", name)
        elseif values.device.dry then
            return nil, 1
        end
        local step = math.ceil(values.elements / MOST_VALUES)
        local part <close> = values:view({1, values.elements, math.max(1, step)})
        return part:to_table(), math.max(1, step)
    end
    if type(values) ~= "table" then
        fail("argument", op, name, "a line of %s is %s; it must be a list of numbers or an array "
            .. "of one axis", name, arguments.described(values))
    end
    for i, value in ipairs(values) do
        if type(value) ~= "number" then
            fail("argument", op, name, "value %d of %s is a %s; a line is a list of numbers or an "
                .. "array of one axis", i, name, type(value))
        end
    end
    return values, 1
end

-- The lines of what is given: one line, or a list of lines.
local function lines_of(given)
    if arguments.is_array(given) then
        if given.rank == 2 and given.shape[1] <= 16 then
            local rows = {}
            for i = 1, given.shape[1] do
                rows[i] = given[i]
            end
            return rows
        end
        return {given}
    elseif type(given) ~= "table" then
        fail("argument", "plot", "values", "values is a %s; give a list of numbers, an array, or a "
            .. "list of these", type(given))
    elseif #given == 0 then
        fail("argument", "plot", "values", "values has no numbers")
    end
    return type(given[1]) == "number" and {given} or given
end

local LINES = declared.options(
    {"x", "any", "where the values lie: as many numbers", usual = "1, 2, 3, ..."},
    {"names", "table", "names of the lines"},
    {"x_label", "string", "below the chart"}, output.OPTIONS)

--- Lines over x: of a list of numbers, an array of one axis, or a list of these (of an array of two
-- axes up to 16 rows). Values that are not finite are gaps. Of a long array every k-th value is
-- shown, at most 65536. With `file` it is a PNG or SVG picture; otherwise the terminal shows it,
-- or one line of text says what it would show.
plot.lines = declared("plot.lines", {{"values", "any", "the values of a line, or a list of lines"},
    options = LINES}, function(values, options)
    local lines, dry, count = {}, false, 0
    for i, given in ipairs(lines_of(values)) do
        local y, step = numbers_of(given, "plot.lines", "values")
        dry = dry or not y
        if y then
            local x = options.x and numbers_of(options.x, "plot.lines", "x")
            if x and (#x ~= #y or step > 1) then
                fail("shape", "plot.lines", "x", "x has %d numbers, line %d has %d", #x, i,
                    arguments.is_array(given) and given.elements or #y)
            end
            if not x then
                x = {}
                for k = 1, #y do
                    x[k] = (k - 1) * step + 1
                end
            end
            lines[i] = {x = x, y = y, name = options.names and tostring(options.names[i])
                or #lines_of(values) > 1 and "line " .. i or nil}
            count = math.max(count, #y)
        end
    end
    if dry then
        return output.put({}, {file = options.file, width = options.width,
            height = options.height})
    end
    local ys = tables.mapped(lines, "y")
    local low, high = scale.range(ys)
    return output.put({lines = lines, x = {label = options.x_label}}, options,
        ("%d line%s of at most %d values from %.6g to %.6g; file = \"plot.svg\" draws them"):format(
        #lines, #lines == 1 and "" or "s", count, low, high))
end)

local AREAS = declared.options(
    {"names", "table", "names of the bands"},
    {"x_label", "string", "below the chart"},
    {"form", "choice", "how values are written", choices = {"number", "bytes"},
        default = "number"}, output.OPTIONS)

--- Bands stacked on each other: lists of as many numbers, none below 0, the lowest band first.
plot.areas = declared("plot.areas", {{"values", "table", "a list of lists of numbers"},
    options = AREAS}, function(values, options)
    local bands, highest = {}, 0
    for i, given in ipairs(values) do
        local list = numbers_of(given, "plot.areas", "values")
        if not list then
            return output.put({}, options)
        elseif #list == 0 or bands[1] and #list ~= #bands[1].values then
            fail("shape", "plot.areas", "values", "band %d has %d numbers, band 1 has %d", i, #list,
                bands[1] and #bands[1].values or 0)
        end
        bands[i] = {values = list, name = options.names and tostring(options.names[i])
            or "band " .. i}
        for _, value in ipairs(list) do
            if not (value >= 0 and value < math.huge) then
                fail("argument", "plot.areas", "values", "band %d has the value %.6g; bands are "
                    .. "numbers of 0 or more", i, value)
            end
            highest = math.max(highest, value)
        end
    end
    if #bands == 0 then
        fail("argument", "plot.areas", "values", "values has no bands")
    end
    return output.put({bands = bands, x = {label = options.x_label},
        y = {form = options.form == "bytes" and "bytes" or nil}}, options,
        ("%d bands of %d values, at most %s; file = \"plot.svg\" draws them"):format(#bands,
        #bands[1].values, scale.text(highest, options.form)))
end)

local HISTOGRAM = declared.options(
    {"bins", "count", "bars", min = 1, max = 4096, default = 64},
    {"range", "list", "{low, high}, where the first bar begins and the last ends", count = 2,
        usual = "the least and the greatest value"},
    {"x_label", "string", "below the chart"}, output.OPTIONS)

-- The least and the greatest value of an array.
local function range_of(array)
    local least <close> = run("reduce", array, "min")
    local most <close> = run("reduce", array, "max")
    if array.device.dry then
        return 0, 1
    end
    local low, high = least:item(), most:item()
    if not (low > -math.huge and high < math.huge) then
        fail("argument", "plot.histogram", "range", "the values reach from %.6g to %.6g; give "
            .. "range = {low, high}", low, high)
    end
    return low, high > low and high or low + 1
end

--- How often values occur in an array, counted exactly where the array is. The counts are 512 bytes
-- and more on its device, an array of f64 or i32 is converted to f32 before. NaN and values
-- outside the range are counted in the title. Returns nothing, or the text with `text`.
plot.histogram = declared("plot.histogram", {{"array", "array", "values, any shape"},
    options = HISTOGRAM}, function(array, options)
    if array.dtype == "c64" or array.dtype == "c128" then
        fail("dtype", "plot.histogram", "array", "the array is complex: take its magnitude first, "
            .. "a:abs()")
    elseif array.elements == 0 then
        fail("shape", "plot.histogram", "array", "the array is empty")
    end
    local other = (array.dtype == "f64" or array.dtype == "i32")
    local converted <close> = other and run("convert", array, "f32") or nil
    local source = converted or array
    local low, high = table.unpack(options.range or {range_of(source)})
    if low >= high or low ~= low or high ~= high then
        fail("argument", "plot.histogram", "range", "range is {%.6g, %.6g}; give {low, high} with "
            .. "low below high", low, high)
    end
    local counts <close> = run("histogram", source, {bins = options.bins, low = low, high = high})
    if array.device.dry then
        return output.put({}, {file = options.file, width = options.width,
            height = options.height})
    end
    local values, edges = counts:to_table(), {}
    local nan, above, below = table.remove(values), table.remove(values), table.remove(values)
    for i = 0, options.bins do
        edges[i + 1] = low + (high - low) * i / options.bins
    end
    local summary = ("%d values from %.6g to %.6g in %d bars"):format(array.elements, low, high,
        options.bins)
    for name, count in pairs {["outside"] = below + above, ["NaN"] = nan} do
        summary = summary .. (count > 0 and ("; %d %s"):format(count, name) or "")
    end
    return output.put({bars = {values = values, edges = edges}, title = summary,
        x = {label = options.x_label, low = low, high = high}, y = {form = "whole"}}, options,
        summary .. "; file = \"plot.svg\" draws them")
end)

--- An array of two axes as a gray picture, of three axes one slice, (row, column, 3) of u8 in
-- colors: in the terminal as mb.show shows it, or with `file` as a PNG picture in full size.
plot.image = declared("plot.image", {{"array", "array", "what to show", rank = {2, 3}},
    options = image.OPTIONS}, function(array, options)
    return image.put("plot.image", array, options)
end)

--- mb.plot(values, options): the lines of mb.plot.lines.
declared.native("plot(values: any, options)", LINES)

return declared.module(plot, "plot", nil, function(_, values, options)
    return plot.lines(values, options)
end)
