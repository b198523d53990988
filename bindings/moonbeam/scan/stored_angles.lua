--- The angles of a scan in a file: the file's own, or what the caller gave in their place. Units
-- are read, never guessed: angles without one are an error that names the option (Data Exchange
-- fixes degrees).

local examine = require "moonbeam.scan.angles"
local fail = require "moonbeam.internal.fail"
local growing = require "moonbeam.scan.growing"
local lists = require "moonbeam.scan.lists"
local picked = require "moonbeam.scan.picked"
local source = require "moonbeam.scan.source"

local UNITS = {
    deg = "deg", degs = "deg", degree = "deg", degrees = "deg", ["°"] = "deg",
    rad = "rad", rads = "rad", radian = "rad", radians = "rad",
}

-- The unit that the option names; nil where it is not given.
local function given_unit(options)
    local unit = options.angle_unit
    return unit and (UNITS[unit:lower()] or fail("argument", "scan.open", "angle_unit",
        "angle_unit must be 'deg' or 'rad', not '%s'", unit))
end

-- Angles that the caller gave as numbers: one for each projection, or {first, last}, the others
-- evenly between.
local function given_angles(s, given, unit)
    local count = s.n_projections
    if not unit then
        fail("argument", "scan.open", "angle_unit",
            "angles given as numbers need the option angle_unit ('deg' or 'rad')")
    end
    for _, value in ipairs(given) do
        if type(value) ~= "number" then
            fail("argument", "scan.open", "angles",
                "angles must be numbers, or the path of a dataset")
        end
    end
    if #given == 2 and count ~= 2 then
        local first, last = given[1], given[2]
        given = {first}
        for i = 2, count do
            given[i] = first + (last - first) * (i - 1) / (count - 1)
        end
    elseif #given ~= count then
        fail("shape", "scan.open", "angles", "%d angles were given for %d projections", #given,
            count)
    end
    return picked(given, s.positions)
end

-- The unit of the file's angles: the option's, the stored one, or what the format defines.
local function unit_of(s, layout, options, file, path)
    local unit, stored = given_unit(options), source.units(file, path)
    if unit then
        if stored and UNITS[stored] ~= unit then
            s:warn(("the option angle_unit = %s overrides the unit '%s' of '%s'"):format(unit,
                source.shown(stored), path))
        end
        return unit
    elseif stored then
        return UNITS[stored] or fail("argument", "scan.open", "angle_unit",
            "the angles '%s' have the unit '%s', which is neither degrees nor radians: give the "
            .. "option angle_unit ('deg' or 'rad')", path, source.shown(stored))
    elseif layout.format == "Data Exchange" then
        s.angle_note = "no unit stored; Data Exchange defines degrees"
        return "deg"
    end
    fail("argument", "scan.open", "angle_unit", "the angles '%s' in '%s' have no unit, and "
        .. "a unit is never guessed: give the option angle_unit ('deg' or 'rad')", path,
        file.path)
end

-- Angles of the file, one for each projection, and their unit.
local function stored_angles(s, layout, options)
    if not layout.angles then
        fail("argument", "scan.open", "angles",
            "'%s' has no angles%s: give the option angles (the first and the last) "
            .. "and the option angle_unit, or the option angles = PATH",
            s.path, layout.angles_hint)
    end
    local counts = {[s.n_projections] = true, [s.n_frames] = true, [#s.frames] = true}
    local values, file, path = lists.read(s, layout.angles, {op = "scan.open", option = "angles",
        what = "angles", remedy = ": name the angles with the option angles = PATH",
        most = s.n_frames, fits = function(count) return counts[count] end})
    if #values == s.n_projections then
        values = picked(values, s.positions)
    elseif #values == s.n_frames then
        values = picked(values, s.frames)
    elseif #values ~= #s.frames then -- those without the missing ones
        fail((file or growing.is_fresh(s.path)) and "shape" or "argument", "scan.open", "angles",
            "'%s' has %d angles%s for %d frames%s: the file is incomplete, or angles names "
            .. "the wrong %s", file and file.path or layout.angles, values.count or #values,
            file and (" in '%s'"):format(path) or "", s.n_frames, s.n_frames == #s.frames and ""
                or (" (%d projections)"):format(#s.frames), file and "dataset" or "list")
    end
    return values, file and unit_of(s, layout, options, file, path) or given_unit(options)
        or fail("argument", "scan.open", "angle_unit", "the angles '%s' have no unit, and a unit "
            .. "is never guessed: give the option angle_unit ('deg' or 'rad')", layout.angles)
end

--- Sets what is known of the angles: `angles` in radians, `n_angles`, `angle_unit` of the source,
-- `span_deg`, `step_deg`, `turns`, `angle_ends` in degrees. layout.source: the file and the path of
-- the dataset that options.angles are from, or nil.
return function(s, layout, options)
    local given = type(options.angles) == "table"
    local values, unit
    if given then
        unit = layout.source and unit_of(s, layout, options, table.unpack(layout.source))
            or given_unit(options)
        values = given_angles(s, options.angles, unit)
    else
        values, unit = stored_angles(s, layout, options)
    end
    local radians = {}
    for i, value in ipairs(values) do
        if type(value) ~= "number" then
            fail("io", "scan.open", "angles", "angle %d of '%s' is not a number", i, s.path)
        end
        radians[i] = unit == "deg" and math.rad(value) or value
    end
    local found = examine(radians, {op = "scan.open", code = "io", unit = unit,
        given = options.angle_unit ~= nil,
        where = (" of '%s'"):format(not given and layout.angles or s.path)})
    s.angles, s.n_angles, s.angle_unit = found.angles, #radians, unit
    s.span_deg, s.step_deg, s.turns = found.span_deg, found.step_deg, found.turns
    s.angle_ends = {math.deg(radians[1]), math.deg(radians[#radians])}
    for _, text in ipairs(found.warnings) do
        s:warn(text)
    end
end
