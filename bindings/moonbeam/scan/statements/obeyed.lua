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
    return FLIPS[value or "none"] or fail("argument", nil, "flip", "flip is %s; it must be none, "
        .. "rows, columns or both", tostring(value))
end

--- The step that flips frames as settings or the scan say, or nil.
function obeyed.flip_step(scan, settings)
    local flip = obeyed.flip_of(settings and settings.flip)
    if flip == nil then
        flip = scan.says and scan.says.flip
    end
    return flip and (flip.rows or flip.columns)
        and {"flip", rows = flip.rows, columns = flip.columns} or nil
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

local function name_of(entry)
    return type(entry) == "table" and entry[1] or entry
end

--- Whether a recipe has a step of one of these names.
function obeyed.has(recipe, ...)
    local names = {}
    for _, name in ipairs {...} do
        names[name] = true
    end
    for _, entry in ipairs(type(recipe) == "table" and recipe or {}) do
        if names[name_of(entry)] then
            return true
        end
    end
    return false
end

--- A recipe with the step that flips frames as the scan says, unless it has its own. `knows(name)`:
-- whether there is a step of that name.
function obeyed.recipe(scan, recipe, knows)
    local step = type(recipe) == "table" and not obeyed.has(recipe, "flip")
        and obeyed.flip_step(scan) or nil
    if not step or not knows "flip" then
        return recipe
    end
    return table.move(recipe, 1, #recipe, 2, {step})
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
