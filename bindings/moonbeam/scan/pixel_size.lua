--- The pixel size of a scan in meters: given, or stored with a unit.

local fail = require "moonbeam.internal.fail"
local source = require "moonbeam.scan.source"

local pixel_size = {}

--- The option of this name, where there is one: the range has every detector's pixels.
pixel_size.option = {"pixel_size", "number", "edge of a detector pixel", unit = "m", min = 1e-13,
    max = 1}

local DIFFERENT <const> = 0.05 -- part by which a given size may differ from the file's, silently

local LENGTHS = {
    m = 1, meter = 1, metre = 1, meters = 1, metres = 1,
    cm = 1e-2,
    mm = 1e-3, millimeter = 1e-3, millimetre = 1e-3, millimeters = 1e-3,
    um = 1e-6, ["µm"] = 1e-6, ["μm"] = 1e-6, micron = 1e-6, microns = 1e-6, micrometer = 1e-6,
    micrometre = 1e-6, micrometers = 1e-6,
    nm = 1e-9, nanometer = 1e-9, nanometre = 1e-9, nanometers = 1e-9,
}

-- The pixel size at a place of the file in meters, or nil and why it was not used; its value and
-- unit as they are there.
local function stored(s, path)
    local value, unit = source.number(s.file, path), source.units(s.file, path)
    if not value or value ~= value or value <= 0 then
        return nil, value and ("is %g"):format(value) or "is not a number"
    elseif not unit or not LENGTHS[unit] then
        return nil, unit and ("has the unknown unit '%s'"):format(source.shown(unit))
            or "has no unit"
    end
    return value * LENGTHS[unit], value, unit
end

local function is_possible(meters)
    return meters >= pixel_size.option.min and meters <= pixel_size.option.max
end

-- What the file says, as text, where it says another pixel size than `given`.
local function another(s, layout, given)
    for _, place in ipairs(layout.pixel_sizes) do
        local meters, value, unit
        if s.file:exists(place.path) then
            meters, value, unit = stored(s, place.path)
        end
        if meters then
            return is_possible(meters) and math.abs(given / meters - 1) > DIFFERENT
                and ("%g %s in '%s'"):format(value, unit, place.path)
        end
    end
end

-- Warns where a given size is not that of the file: a unit may have been mistaken. What the file
-- says may be damaged, which is why the size is given, and is then not compared.
local function compare(s, layout, given)
    local ok, text = pcall(another, s, layout, given)
    if ok and text then
        s:warn(("the option pixel_size is %g um, and the file says %s: the former is taken"):format(
            given * 1e6, text))
    end
end

--- The pixel size; nil, with a warning, where it is not known.
function pixel_size.find(s, layout, options)
    if options.pixel_size then
        compare(s, layout, options.pixel_size)
        return options.pixel_size
    end
    local found = false
    for _, place in ipairs(layout.pixel_sizes) do
        if s.file:exists(place.path) then
            found = true
            local meters, problem, unit = stored(s, place.path)
            if meters and not is_possible(meters) then
                fail("io", "scan.open", "pixel_size", "the pixel size '%s' is %g %s, which no "
                    .. "detector has: give the option pixel_size (in meters)", place.path, problem,
                    unit)
            end
            if meters and place.note then
                s:warn(place.note)
            end
            if meters then
                return meters
            end
            s:warn(("the pixel size '%s' %s and was not used: give the option pixel_size"):format(
                place.path, problem))
        end
    end
    source.confirm_absence(s)
    if not found then
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
