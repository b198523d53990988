--- The pixel size of a scan in meters: given, or stored with a unit. Where it is looked for is in
-- statements/pixel_sizes.lua.

local fail = require "moonbeam.internal.fail"
local source = require "moonbeam.scan.source"
local units = require "moonbeam.scan.units"

local pixel_size = {}

--- The option of this name, where there is one: the range has every detector's pixels.
pixel_size.option = {"pixel_size", "number", "edge of a detector pixel", unit = "m", min = 1e-13,
    max = 1}

local DIFFERENT <const> = 0.05 -- part by which two sizes may differ, silently
local SQUARE <const> = 0.01 -- part by which width and height may

-- The length at a path of the file in meters, or nil and why it was not used; its value and unit as
-- they are there.
local function stored(s, path)
    local value = source.number(s.file, path)
    local text = not value and s.file:value(path)
    text = type(text) == "table" and #text == 1 and text[1] or text
    if type(text) == "string" then -- "20.0nm"
        local number, unit = text:match "^%s*([%d.eE+-]-)%s*([^%d.%s+-][^%d%s]*)%s*$"
        value = tonumber(number)
        local factor = unit and units.length[unit:lower()]
        if value and value > 0 and factor then
            return value * factor, value, unit
        end
        return nil, ("is '%s', which is no length with a unit"):format(source.shown(text))
    end
    local factor, unit = units.factor(s.file, path, units.length)
    if not value or value ~= value or value <= 0 then
        return nil, value and ("is %g"):format(value) or "is not a number"
    elseif not factor then
        return nil, unit
    end
    return value * factor, value, unit
end

-- The magnification at a path, a number or a text such as "10x"; nil where it is none.
local function magnification(s, path)
    local value = s.file:value(path)
    while type(value) == "table" and #value == 1 do
        value = value[1]
    end
    value = type(value) == "string" and value:match "^%s*([%d.]+)%s*[xX]?%s*$" or value
    value = tonumber(value)
    return value and value > 0 and value < math.huge and value or nil
end

-- Whether the file has what a place needs.
local function is_there(s, place)
    return s.file:exists(place.path) and not (place.with and not s.file:exists(place.with))
        and not (place.without and s.file:exists(place.without))
        and not (place.over and not (s.file:exists(place.over) and magnification(s, place.over)))
end

-- What a place says: {meters, value, unit, text, place}; or {problem, place}.
local function size_at(s, place)
    local meters, value, unit = stored(s, place.path)
    if not meters then
        return {problem = value, place = place}
    end
    local over = place.over and magnification(s, place.over) or 1
    local text = ("%g %s in '%s'%s"):format(value, unit, place.path, place.over
        and (" over the magnification %g"):format(over) or "")
    return {meters = meters / over, value = value, unit = unit, text = text, place = place}
end

local function is_possible(meters)
    return meters >= pixel_size.option.min and meters <= pixel_size.option.max
end

-- The first size that the file says. A place that is wrong is told by warn(text).
local function first_size(s, layout, warn)
    local there = false
    for _, place in ipairs(layout.pixel_sizes) do
        if is_there(s, place) then
            there = true
            local found = size_at(s, place)
            if found.meters then
                return found, there
            end
            warn(("the pixel size '%s' %s and was not used: give the option pixel_size"):format(
                place.path, found.problem))
        end
    end
    return nil, there
end

-- Warns where a given size is not that of the file: a unit may have been mistaken. What the file
-- says may be damaged, which is why the size is given, and is then not compared.
local function compare(s, layout, given)
    local ok, found = pcall(first_size, s, layout, function() end)
    if ok and found and is_possible(found.meters)
        and math.abs(given / found.meters - 1) > DIFFERENT then
        s:warn(("the option pixel_size is %g um, and the file says %s: the former is taken"):format(
            given * 1e6, found.text))
    end
end

-- Warns where another place says another size of the same thing.
local function tell_others(s, layout, taken)
    for _, place in ipairs(layout.pixel_sizes) do
        local ok, other = pcall(function()
            return place ~= taken.place and place.camera == taken.place.camera
                and is_there(s, place) and size_at(s, place)
        end)
        if ok and other and other.meters
            and math.abs(other.meters / taken.meters - 1) > DIFFERENT then
            s:warn(("the pixel size is %s, and %s: the former is taken; the option pixel_size "
                .. "says another"):format(taken.text, other.text))
            return
        end
    end
end

-- Warns where the pixels are not square.
local function tell_height(s, taken)
    local path = taken.place.path:gsub("x_(%a*_?pixel_size)$", "y_%1")
        :gsub("pixel_size_x$", "pixel_size_y")
    local ok, height = pcall(function()
        return path ~= taken.place.path and s.file:exists(path) and stored(s, path)
    end)
    local width = stored(s, taken.place.path)
    if ok and height and math.abs(height / width - 1) > SQUARE then
        s:warn(("pixels are %g um wide and %g um high ('%s'): the volume is in units of the width, "
            .. "and its slices lie %g times as far apart"):format(width * 1e6, height * 1e6, path,
            height / width))
    end
end

--- The pixel size; nil, with a warning, where it is not known. Notes in scan.stated.pixel_size
-- where it is from, if the file says several.
function pixel_size.find(s, layout, options)
    if options.pixel_size then
        compare(s, layout, options.pixel_size)
        return options.pixel_size
    end
    local taken, there = first_size(s, layout, function(text)
        s:warn(text)
    end)
    if taken then
        if not is_possible(taken.meters) then
            fail("io", "scan.open", "pixel_size", "the pixel size '%s' is %g %s, which no "
                .. "detector has: give the option pixel_size", taken.place.path,
                taken.value, taken.unit)
        elseif taken.place.note then
            s:warn(taken.place.note)
        end
        local several = 0
        for _, place in ipairs(layout.pixel_sizes) do
            several = several + (is_there(s, place) and 1 or 0)
        end
        s.stated.pixel_size = several > 1 and taken.text or nil
        tell_others(s, layout, taken)
        tell_height(s, taken)
        return taken.meters
    end
    source.confirm_absence(s)
    if not there then
        pixel_size.given(s, options)
    end
end

--- The pixel size that the option gives; nil, with a warning, where it does not.
function pixel_size.given(s, options)
    if not options.pixel_size then
        s:warn("no pixel size was found: the volume is attenuation per pixel, not per meter; "
            .. "give the option pixel_size")
    end
    return options.pixel_size
end

return pixel_size
