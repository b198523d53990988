--- What follows from a scan's statements where nobody says otherwise: what a user types or a recipe
-- has comes before what the file says.

local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local obeyed = {}

local FLIPS <const> = {none = {rows = false, columns = false},
    rows = {rows = true, columns = false}, columns = {rows = false, columns = true},
    both = {rows = true, columns = true}}

--- The flip that settings ask for, {rows, columns}; nil where they say nothing. `value` is a word
-- (none, rows, columns, both), false, or such a table.
function obeyed.flip_of(value)
    if value == nil then
        return nil
    elseif type(value) == "table" then
        return {rows = value.rows == true, columns = value.columns == true}
    end
    return FLIPS[value or "none"] or fail("argument", "recon.plan", "flip", "flip is '%s'; it must "
        .. "be none, rows, columns or both", tostring(value))
end

-- The step that flips frames as settings or the scan say, or nil.
local function flip_step(says, settings)
    local flip = obeyed.flip_of(settings.flip)
    if flip == nil then
        flip = says.flip
    end
    return flip and (flip.rows or flip.columns)
        and {"flip", rows = flip.rows, columns = flip.columns} or nil
end

--- The steps that a chain begins with, as the settings say, or else the scan: flip and
-- reverse_rotation. A list, which may be empty.
function obeyed.steps(scan, settings)
    local says, list = scan.says or {}, {}
    list[1] = flip_step(says, settings)
    local reverses = settings.reverse_rotation
    if reverses == nil then
        reverses = says.reversed_rotation
    end
    list[#list + 1] = reverses and "reverse_rotation" or nil
    return list
end

--- Settings of mb.recon with what the scan says: half_acquisition.
function obeyed.settings(scan, settings)
    if scan.says and scan.says.half_acquisition and (not settings
        or settings.half_acquisition == nil) then
        return getmetatable(settings) and setmetatable({half_acquisition = true},
            {__index = settings}) or tables.merged(settings or {}, {half_acquisition = true})
    end
    return settings
end

--- A recipe with the steps that the scan asks for, flip and reverse_rotation, before it; where it
-- has one of them it is left to itself. `settings`, nil or the flip and the reverse_rotation that
-- were asked for, come before the scan.
function obeyed.recipe(scan, recipe, settings)
    if type(recipe) ~= "table" then
        return recipe
    end
    local list, has = {}, {}
    for _, entry in ipairs(recipe) do
        has[type(entry) == "table" and entry[1] or entry] = true
    end
    for _, step in ipairs(obeyed.steps(scan, settings or {})) do
        list[#list + 1] = not has[type(step) == "table" and step[1] or step] and step or nil
    end
    return #list > 0 and table.move(recipe, 1, #recipe, #list + 1, list) or recipe
end

--- The values of the beam that the scan says, as the steps of phase retrieval take them: energy
-- (eV) and distance (m). The pixel size is that at the sample, so that of a beam that diverges from
-- z1 before the object the distance z2 counts as z1 z2 / (z1 + z2), unless `source` says that the
-- step knows of z1 itself.
function obeyed.optics(says, source)
    local z1, z2 = says.source_distance, says.distance
    if source then
        return {energy = says.energy, distance = z2}
    end
    return {energy = says.energy,
        distance = says.propagation_distance or z2 and (z1 and z1 * z2 / (z1 + z2) or z2)}
end

return obeyed
