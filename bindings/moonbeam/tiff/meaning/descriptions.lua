--- The texts in which programs describe the pages of a TIFF file: which there are, and what those
-- say that need no XML: ImageJ's lines and the JSON of tifffile.

local read_json = require "moonbeam.internal.json_reader"
local units = require "moonbeam.internal.quantities.units"

local descriptions = {}

local function whole(text)
    return text and math.tointeger(tonumber(text)) or nil
end

local function count(text)
    local value = whole(text)
    return value and value >= 1 and value or nil
end

--- An interval of times in s; nil where it or its unit is none.
function descriptions.interval(value, unit)
    local number, seconds = tonumber(value), units.time[unit or "s"]
    return number and seconds and number > 0 and number < math.huge and number * seconds or nil
end

--- What ImageJ's lines say: {kind, text, images, channels, slices, frames, order (of the pages,
-- fastest first), spacing, unit, interval, stated (do they say how many pages there are?)}; nil for
-- another text.
function descriptions.imagej(text)
    if not text:find "^ImageJ=" and not text:find "^SCIFIO=" then
        return nil
    end
    local values = {}
    for key, value in text:gmatch("([%w_]+)=([^\r\n]*)") do
        values[key] = value
    end
    local images = count(values.images)
    local channels, frames = count(values.channels) or 1, count(values.frames) or 1
    local order = (values.order or ""):upper()
    return {kind = "imagej", text = text, images = images or 1, channels = channels,
        slices = count(values.slices) or math.max(1, (images or 1) // (channels * frames)),
        frames = frames, spacing = tonumber(values.spacing), unit = values.unit,
        stated = images ~= nil or values.slices ~= nil or channels * frames > 1,
        order = order:find "^[CZT][CZT][CZT]$" and order:find "C" and order:find "Z"
            and order:find "T" and order or "CZT",
        interval = descriptions.interval(values.finterval, values.tunit)}
end

--- What tifffile's text says: {shape, axes (nil: none), truncated (is there one directory for all
-- pages?)}; nil for another text.
function descriptions.shaped(text)
    local old = text:match "^shape=%(([%d, ]+)%)$"
    local found = old and {shape = {}} or text:find '^{"' and #text < 1 << 16 and read_json(text)
    if type(found) ~= "table" or type(found.shape) ~= "table" then
        return nil
    end
    for extent in (old or ""):gmatch "%d+" do
        table.insert(found.shape, math.tointeger(tonumber(extent)))
    end
    for _, extent in ipairs(found.shape) do
        if math.type(extent) ~= "integer" or extent < 1 then
            return nil
        end
    end
    local axes = type(found.axes) == "string" and #found.axes == #found.shape and found.axes:upper()
    if #found.shape >= 3 and found.shape[#found.shape] == 1
        and (axes and axes:find "S$" or not axes and found.shape[#found.shape - 1] > 1) then
        found.shape[#found.shape], axes = nil, axes and axes:sub(1, -2) -- one sample
    end
    return #found.shape >= 2 and {shape = found.shape, axes = axes or nil,
        truncated = found.truncated == true} or nil
end

return descriptions
