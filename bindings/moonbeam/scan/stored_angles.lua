--- The angles of a scan in a file: the file's own, or what the caller gave in their place. Units
-- are read, never guessed: angles without one are an error that names the option (Data Exchange
-- fixes degrees).

local axes = require "moonbeam.scan.statements.axes"
local examine = require "moonbeam.scan.angles"
local fail = require "moonbeam.internal.fail"
local frame_ids = require "moonbeam.scan.frame_ids"
local frames = require "moonbeam.scan.frames"
local growing = require "moonbeam.scan.growing"
local lists = require "moonbeam.scan.lists"
local picked = require "moonbeam.scan.picked"
local source = require "moonbeam.scan.source"
local tables = require "moonbeam.internal.tables"

local MOST <const> = 1 << 20 -- angles of a file whose frames have ids

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

-- Adds to what is said of the angles in the report.
local function note(s, text)
    s.angle_note = s.angle_note and s.angle_note .. "; " .. text or text
end

local function note_ids(s, ids)
    note(s, ("%d projections were lost, by the ids of the frames in '%s'"):format(ids.lost,
        ids.path))
end

-- Angles that the caller gave as numbers: one for each projection, or {first, last}, the others
-- evenly between; where the ids of the frames tell of lost ones, with their places left out.
local function given_angles(s, given, unit, ids)
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
        local first, last, list = given[1], given[2], {}
        local lost = ids and ids.lost or 0
        for i, position in ipairs(s.positions) do
            local index = lost > 0 and ids.indices[i] or position - 1
            list[i] = index == 0 and first or first + (last - first) * index / (count + lost - 1)
        end
        if lost > 0 then
            note_ids(s, ids)
        end
        return list
    elseif #given ~= count then
        axes.refuse_order(s, #given)
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
    elseif layout.angle_unit then
        note(s, ("no unit stored; %s defines degrees"):format(layout.format))
        return layout.angle_unit
    end
    fail("argument", "scan.open", "angle_unit", "the angles '%s' in '%s' have no unit, and "
        .. "a unit is never guessed: give the option angle_unit ('deg' or 'rad')", path,
        file.path)
end

-- Why the ids of frames do not help, as the end of a message.
local function unused_ids(ids, why)
    why = why or ids and ids.why
    return why and ("; the ids of the frames in '%s' do not tell which are missing: %s"):format(
        ids.path, why) or ""
end

-- The names of a file for where its projections begin and how they go on.
local FIRST <const> = {"rotation_start", "start", "start_angle", "angle_start"}
local STEP <const> = {"rotation_step", "step", "angle_step"}
local COUNT <const> = {"num_angles", "num_projections"}

-- The first of these names in a group that a file has: its number and path, or nil.
local function number_of(s, group, names)
    for _, name in ipairs(names) do
        local path = group .. "/" .. name
        if s.file:exists(path) then
            local value = source.number(s.file, path)
            if not value or value ~= value or math.abs(value) == math.huge then
                fail("io", "scan.open", "angles", "'%s' in '%s' is not a number: give the option "
                    .. "angles", path, s.file.path)
            end
            return value, path
        end
    end
end

-- Ids with gaps beside as many angles as there are frames, without gaps.
local function tell_lost(s, ids, path)
    s:warn(("the ids of the frames in '%s' leave %d number%s out, the first after projection %d, "
        .. "and '%s' does not: one angle is taken for each frame; if frames were lost, name the "
        .. "angles with the option angles"):format(ids.path, ids.lost, ids.lost == 1 and "" or "s",
        ids.first_lost, path))
end

-- Angles by their first and their step, where the file has these; and their unit.
local function stepped_angles(s, layout, options, ids)
    local first, first_path = number_of(s, layout.rotation, FIRST)
    local step, step_path = number_of(s, layout.rotation, STEP)
    if not first or not step then
        return nil
    elseif step == 0 then
        fail("io", "scan.open", "angles", "'%s' in '%s' is 0: give the option angles", step_path,
            s.file.path)
    end
    local total, path = number_of(s, layout.rotation, COUNT)
    local indices, why, noted
    local lost = ids and ids.lost > 0
    if total == s.n_projections or not total and not lost then
        indices = tables.mapped(s.positions, function(position) return position - 1 end)
    elseif not total then
        indices = ids.indices
    elseif ids and ids.indices then
        indices, why, noted = ids.within(total)
    end
    if not indices then
        axes.refuse_order(s, total)
        fail("shape", "scan.open", "angles", "'%s' says %d angles, and '%s' has %d projections%s: "
            .. "the file is incomplete; give the option angles (the first and the last) and the "
            .. "option angle_unit", path, total, s.path, s.n_projections, unused_ids(ids, why))
    end
    local unit = unit_of(s, layout, options, s.file, step_path)
    if noted then
        note(s, noted)
    end
    note(s, ("by %s and %s"):format(first_path:match "[^/]*$", step_path:match "[^/]*$"))
    if lost and total == s.n_projections then
        tell_lost(s, ids, path)
    elseif lost then
        note_ids(s, ids)
    end
    return tables.mapped(indices, function(index) return first + index * step end), unit
end

-- Do the steps of the angles follow the gaps of the ids, so that nothing is lost?
local function follows(values, indices)
    local steps = {}
    for i = 2, #values do
        if type(values[i]) ~= "number" or type(values[i - 1]) ~= "number" then
            return true -- which is told elsewhere
        end
        steps[#steps + 1] = math.abs(values[i] - values[i - 1]) / (indices[i] - indices[i - 1])
    end
    local sorted = table.move(steps, 1, #steps, 1, {})
    table.sort(sorted)
    local usual = sorted[(#sorted + 1) // 2]
    for i, step in ipairs(steps) do
        if indices[i + 1] - indices[i] > 1 and math.abs(step - usual) > 0.2 * usual then
            return false
        end
    end
    return true
end

-- Angles of the file, one for each projection, and their unit.
local function stored_angles(s, layout, options, ids)
    if not layout.angles then
        local values, unit
        if layout.rotation and s.file:exists(layout.rotation) then
            values, unit = stepped_angles(s, layout, options, ids)
        end
        if values then
            return values, unit
        end
        fail("argument", "scan.open", "angles",
            "'%s' has no angles%s: give the option angles (the first and the last) "
            .. "and the option angle_unit, or the option angles = PATH",
            s.path, layout.angles_hint)
    end
    local usable = ids and ids.indices
    local values, file, path = lists.read(s, layout.angles, {op = "scan.open", option = "angles",
        what = "angles", remedy = ": name the angles with the option angles = PATH",
        most = usable and MOST or s.n_frames, fits = function(count)
            return count == #s.frames or frames.within(s, count) ~= nil
        end})
    local have = values.count or #values
    local at, why = frames.within(s, have), nil
    if at then
        values = picked(values, at)
        if usable and ids.lost > 0 and not follows(values, ids.indices) then
            tell_lost(s, ids, path)
        end
    elseif usable and have > s.n_projections then
        local noted
        at, why, noted = ids.within(have)
        values = at and picked(values, tables.mapped(at, function(index) return index + 1 end))
        if at then
            note(s, ("%d of %d, by the ids of the frames in '%s'"):format(#values, have, ids.path))
        end
        if noted then
            note(s, noted)
        end
    end
    if not at and have ~= #s.frames then -- those without the missing ones
        axes.refuse_order(s, have)
        fail((file or growing.is_fresh(s.path)) and "shape" or "argument", "scan.open", "angles",
            "'%s' has %d angles%s for %d frames%s: the %s%s", file and file.path or layout.angles,
            have, file and (" in '%s'"):format(path) or "", s.n_frames, s.n_frames == #s.frames
                and "" or (" (%d projections)"):format(#s.frames), file
                and "file is incomplete, or the angles are those of something else: give the "
                .. "option angles (the first and the last) and the option angle_unit, or the "
                .. "option angles = PATH" or "list is that of another scan; it has one angle for "
                .. "each projection", unused_ids(ids, why))
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
    local ids = s.file and frame_ids.find(s, layout)
    local values, unit
    if given then
        unit = layout.source and unit_of(s, layout, options, table.unpack(layout.source))
            or given_unit(options)
        values = given_angles(s, options.angles, unit, ids)
    else
        values, unit = stored_angles(s, layout, options, ids)
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
        where = (" of '%s'"):format(not given and (layout.angles or layout.rotation) or s.path)})
    s.angles, s.n_angles, s.angle_unit = found.angles, #radians, unit
    s.span_deg, s.step_deg, s.turns = found.span_deg, found.step_deg, found.turns
    s.angle_ends = {math.huge, -math.huge}
    for _, angle in ipairs(radians) do
        s.angle_ends = {math.min(s.angle_ends[1], math.deg(angle)),
            math.max(s.angle_ends[2], math.deg(angle))}
    end
    for _, text in ipairs(found.warnings) do
        s:warn(text)
    end
end
