--- What the report says of a scan's statements: the ends of the lines of scan:describe, and lines
-- where a statement is not obeyed because a user or a recipe says otherwise.

local core = require "moonbeam.core"
local obeyed = require "moonbeam.scan.statements.obeyed"

local told = {}

local function length_text(meters)
    local unit, factor = "m", 1
    for _, each in ipairs {{"mm", 1e-3}, {"um", 1e-6}, {"nm", 1e-9}} do
        if meters < factor then
            unit, factor = each[1], each[2]
        end
    end
    return ("%.4g %s"):format(meters / factor, unit)
end

local function energy_text(energy)
    return ("%.6g keV"):format(energy / 1e3)
end

-- "left-right", "up-down" or both.
local function flip_text(flip)
    return flip.rows and flip.columns and "up-down and left-right"
        or flip.rows and "up-down" or flip.columns and "left-right" or "not mirrored"
end

--- The ends of the lines of a description: {frames, angles, pixel}, texts that may be empty.
function told.ends(scan)
    local says, stated = scan.says or {}, scan.stated or {}
    local optics = {}
    optics[1] = says.energy and energy_text(says.energy)
    local distance = says.distance or says.propagation_distance
    optics[#optics + 1] = distance and length_text(distance) .. " to the detector"
    optics[#optics + 1] = says.source_distance and length_text(says.source_distance)
        .. " to the source"
    return {
        frames = says.flip and (", mirrored %s ('%s')"):format(flip_text(says.flip),
            stated.flip.path) or "",
        angles = (says.reversed_rotation and (", turning the other way ('%s')"):format(
            stated.reversed_rotation.path) or "")
            .. (says.half_acquisition and (", half acquisition ('%s')"):format(
                stated.half_acquisition.path) or ""),
        pixel = (stated.pixel_size and (" (%s)"):format(stated.pixel_size) or "")
            .. (optics[1] and "; " .. table.concat(optics, ", ") or ""),
    }
end

-- A typed or written value beside what the file says.
local function beside(lines, name, mine, path, theirs)
    lines[#lines + 1] = ("%-11s%s; '%s' says %s, which is overruled"):format(name, mine, path,
        theirs)
end

local function tell_half(scan, used, lines, warnings)
    local says, stated = scan.says.half_acquisition, scan.stated.half_acquisition
    if says == nil then
        return
    end
    local words = {[true] = "half acquisition", [false] = "no half acquisition"}
    if used.half_acquisition == nil then
        if says then
            warnings[#warnings + 1] = ("'%s' says that the scan is a half acquisition, and the "
                .. "recipe has neither step half_acquisition nor stitch: put \"half_acquisition\" "
                .. "before the step center; the option half_acquisition = false says that it is "
                .. "none"):format(stated.path)
        end
    elseif used.half_acquisition ~= says then
        beside(lines, "half", words[used.half_acquisition], stated.path, words[says])
    end
end

local function tell_flip(scan, used, lines)
    local says, flip = scan.says.flip, used.flip
    if says and flip and (flip.rows ~= says.rows or flip.columns ~= says.columns) then
        beside(lines, "flip", flip_text(flip), scan.stated.flip.path, flip_text(says))
    end
end

local LEAST <const> = 0.5 -- pixels by which a sample moves that is warned of

-- What undoes a translation: on a command line, and as the step of a recipe; %s is its path.
local REMEDIES <const> = {
    vertical = {"--vertical-shifts %s undoes it (--vertical-shifts=-%s where it counts the other "
        .. "way)", "the step {\"vertical_shift\", shifts = \"%s\"} undoes it (\"-%s\" where it "
        .. "counts the other way)"},
    lateral = {"the step {\"horizontal_shift\", shifts = \"%s\"} of a recipe undoes it (\"-%s\" "
        .. "where it counts the other way)"},
}
REMEDIES.lateral[2] = REMEDIES.lateral[1]

-- The ways that a translation may be: those of its coordinates, or where they are not known what
-- its name is in NeXus and at the ESRF.
local function ways_of(axes, each)
    local index = ("xyz"):find(each.name:sub(1, 1), 1, true)
    if each.way then
        return {each.way}
    elseif not index then
        return {"vertical", "lateral"}
    end
    return axes and {axes[index]} or ({{"lateral"}, {"vertical", "lateral"}, {"vertical"}})[index]
end

-- Translations that the run does not undo. Those along the beam change nothing.
local function tell_translations(scan, used, _, warnings)
    for _, each in ipairs(scan.says.translations or {}) do
        local ways = ways_of(scan.stated.coordinates, each)
        local undone = ways[1] == "beam" or used.shifts[each.path]
        for _, way in ipairs(ways) do
            undone = undone or used[way]
        end
        local span = each.high - each.low
        local pixels = each.meters and scan.pixel_size and span / scan.pixel_size
        if not undone and (not pixels or pixels >= LEAST) then
            local remedy = REMEDIES[ways[1]][used.steps and 2 or 1]
            warnings[#warnings + 1] = ("'%s' moves the sample by %s during the scan, which is not "
                .. "undone: %s"):format(each.path, pixels and ("%.4g pixels"):format(pixels)
                    or each.meters and length_text(span) or ("%g of no known unit"):format(span),
                remedy:format(each.path, each.path))
        end
    end
end

local SAME <const> = 0.01 -- part by which two values may differ silently

local OPTICS <const> = {"energy", "distance", "source_distance"}
local TEXTS <const> = {energy = energy_text, distance = length_text, source_distance = length_text}
local UNITS <const> = {energy = "eV", distance = "m"}

-- The values of the steps of phase retrieval, beside what the scan says.
local function tell_optics(scan, used, lines)
    for _, step in ipairs(used.steps or {}) do
        local options = step.def.options or {}
        if options.energy and options.distance and not step.partial then
            local given = type(step.given) == "table" and step.given or {}
            local said = obeyed.optics(scan.says, given.source_distance)
            said.source_distance = scan.says.source_distance
            local taken = {}
            for _, name in ipairs(OPTICS) do
                local mine, theirs = given[name], said[name]
                if theirs and mine == nil and UNITS[name] then
                    taken[#taken + 1] = ("%s = %s"):format(name, TEXTS[name](theirs))
                elseif theirs and type(mine) == "number"
                    and math.abs(mine / theirs - 1) > SAME then
                    local stated = scan.stated[name] or scan.stated.propagation_distance
                    beside(lines, step.label, ("%s = %s"):format(name, TEXTS[name](mine)),
                        stated.path, TEXTS[name](theirs))
                end
            end
            if taken[1] then
                lines[#lines + 1] = ("%-11s%s, as the scan says"):format(step.label,
                    table.concat(taken, ", "))
            end
        end
    end
end

-- Rays that are not parallel: at the edge of the field of view, half of it before the middle.
local function tell_cone(scan, _, _, warnings)
    local z1 = scan.says.source_distance
    local half = scan.cols / 2
    local off = z1 and scan.pixel_size and half * half * scan.pixel_size / z1
    if off and off > 1 then
        warnings[#warnings + 1] = ("the beam diverges from a source %s before the sample ('%s'): "
            .. "rays are up to %.2g pixels off parallel ones, as which they are taken"):format(
            length_text(z1), scan.stated.source_distance.path, off)
    end
end

local function tell_rotation(scan, used, lines)
    if scan.says.reversed_rotation and used.reversed == false then
        beside(lines, "rotation", "as the angles say", scan.stated.reversed_rotation.path,
            "the other way")
    end
end

local function tell_count(scan, _, _, warnings)
    local announced = scan.says.announced
    if announced and scan.n_angles < announced then
        warnings[#warnings + 1] = ("'%s' says that the scan has %g projections; %d are there")
            :format(scan.stated.announced.path, announced, scan.n_angles)
    end
end

--- What is said of the statements of a scan beyond its description: lines and warnings, lists of
-- texts. `used` is what the run does: half_acquisition (nil: a recipe without a word of it), flip
-- ({rows, columns}; nil: as the scan says), reversed (whether angles count as their negatives; nil:
-- as the scan says), vertical and lateral (whether it shifts projections that way), shifts ({[path]
-- = true}: the lists that it reads), steps (of the chain of a recipe).
function told.of(scan, used)
    local lines, warnings = {}, {}
    if scan.says and scan.stated then
        used.shifts = used.shifts or {}
        for _, tell in ipairs {tell_half, tell_flip, tell_translations, tell_optics, tell_cone,
            tell_rotation, tell_count} do
            tell(scan, used, lines, warnings)
        end
    end
    for _, list in ipairs {lines, warnings} do
        for i, text in ipairs(list) do
            list[i] = core.error.printable(text)
        end
    end
    return lines, warnings
end

--- What the file says of the axis where it is not this one: a text, or nil. `agreement`: by how
-- many columns they may differ; `searched`: the first and the last column of the search, nil where
-- there was none.
function told.axis(scan, column, agreement, searched)
    local columns = scan.stated and scan.stated.axes or {}
    for _, each in ipairs(columns) do
        if math.abs(each - column) <= agreement then
            return nil
        end
    end
    local first, outside, inside = columns[1], "", false
    for _, each in ipairs(searched and columns or {}) do
        inside = inside or each >= searched[1] and each <= searched[2]
    end
    if first and searched and not inside then
        outside = (", and the search went from %.2f to %.2f%s"):format(searched[1], searched[2],
            first >= 0 and first <= scan.cols - 1 and (": --center %.2f takes it"):format(first)
            or "")
    end
    return first and core.error.printable(("the axis is at column %.2f; '%s' says %s%s")
        :format(column, scan.stated.axis.path, #columns == 1 and ("%.2f"):format(first)
            or ("%.2f, or %.2f where it counts from the middle"):format(first, columns[2]),
            outside)) or nil
end

return told
