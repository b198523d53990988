--- Kinds of data in a chain: a quantity and a layout. Checks that a step takes the kind that it
-- gets, and says what to do if it does not.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local kinds = {}

kinds.QUANTITIES = {"counts", "transmission", "line integrals", "phase", "attenuation", "scaled",
    "labels", "intensity", "weights"}

--- Axes by layout.
kinds.LAYOUTS = {frames = {"angle", "row", "column"}, slices = {"row", "y", "x"},
    image = {"y", "x"}}

local function list_of(wanted)
    return type(wanted) == "table" and wanted or {wanted}
end

--- Whether a value is one of the wanted values: a name, a list, or "any".
function kinds.accepts(wanted, value)
    for _, name in ipairs(list_of(wanted or "any")) do
        if name == "any" or name == value then
            return true
        end
    end
    return false
end

local function fits(takes, kind)
    return kinds.accepts(takes.layout, kind.layout) and kinds.accepts(takes.quantity, kind.quantity)
end

local function words(wanted)
    local list = list_of(wanted or "any")
    if #list == 1 then
        return list[1] == "any" and "any values" or list[1]
    end
    return table.concat(list, ", ", 1, #list - 1) .. " or " .. list[#list]
end

-- The steps that turn one quantity, or layout, into another.
local WAYS = {
    counts = {transmission = {"flat_field"}, ["line integrals"] = {"flat_field", "minus_log"}},
    transmission = {["line integrals"] = {"minus_log"}},
    frames = {slices = {"fbp"}},
}

local function quoted(names)
    local list = {}
    for i, name in ipairs(names) do
        list[i] = ("\"%s\""):format(name)
    end
    return table.concat(list, " and ")
end

-- The remedy that puts steps before this one, or nil if no steps are known.
local function forward(have, wanted)
    for _, name in ipairs(list_of(wanted)) do
        local way = WAYS[have] and WAYS[have][name]
        if way then
            return ("put %s before it"):format(quoted(way))
        end
    end
end

-- Searches the earlier steps. Finds the last step before which the data were as wanted, the step
-- that gave them the part that does not fit ("quantity" or "layout"), and a step of the same name
-- that changed them.
local function history(steps, takes, kind, part, name)
    local found = {}
    for i = #steps, 1, -1 do
        local step = steps[i]
        local changed = step.kind.quantity ~= step.kind_before.quantity
            or step.kind.layout ~= step.kind_before.layout
        if step.kind[part] ~= step.kind_before[part] and not found.maker then
            found.maker = step
        end
        if changed and step.def.name == name then
            found.twin = found.twin or step
        end
        if changed and not found.before and fits(takes, step.kind_before)
            and not fits(takes, step.kind) then
            found.before = step
        end
    end
    found.since = found.maker and ("since step %s"):format(found.maker.label)
        or part == "layout" and "as the scan has them"
        or kind.quantity == "counts" and "as the scan has flats or darks"
        or ("as input = \"%s\" says"):format(kind.quantity)
    return found
end

-- How to correct a recipe in which a step does not fit.
local function remedy(found, part, have, wanted)
    if found.twin then
        return ("step %s has already done it; remove one of the two"):format(found.twin.label)
    elseif found.before then
        return ("move it before step %s"):format(found.before.label)
    elseif forward(have, wanted) then
        return forward(have, wanted)
    elseif found.maker then
        return ("remove it, or remove step %s"):format(found.maker.label)
    elseif part == "layout" then
        return "remove it"
    end
    return ("remove it, or say what the scan's values are: input = \"%s\""):format(
        list_of(wanted)[1])
end

--- Raises an error unless the step with this label takes data of this kind, which the earlier steps
-- made. The message says how to correct the recipe.
function kinds.check(steps, label, name, takes, kind)
    if fits(takes, kind) then
        return
    end
    local part = kinds.accepts(takes.layout, kind.layout) and "quantity" or "layout"
    local found = history(steps, takes, kind, part, name)
    fail("argument", "step " .. label, nil, "it takes %s, but the data are %s %s; %s",
        words(takes[part]), kind[part], found.since,
        remedy(found, part, kind[part], takes[part]))
end

--- The kind after a step, from what it gives.
function kinds.after(gives, kind)
    return {
        quantity = (gives.quantity or "same") == "same" and kind.quantity or gives.quantity,
        layout = (gives.layout or "same") == "same" and kind.layout or gives.layout,
    }
end

--- The quantity of a scan's data: counts if it has flats or darks, otherwise `input`.
function kinds.of_scan(scan, input)
    local references = (scan.n_flats or 0) + (scan.n_darks or 0)
    if input == nil and references > 0 then
        return "counts"
    elseif input == nil then
        fail("argument", "pipeline", "input", "the scan has no flats and no darks, so its values "
            .. "may be anything; give the option input ('transmission' or 'line integrals')")
    elseif input == "counts" and references == 0 then
        fail("argument", "pipeline", "input", "input is \"counts\", but the scan has no flats and "
            .. "no darks; name them, or give the option input ('transmission' or 'line integrals')")
    end
    for _, name in ipairs {"counts", "transmission", "line integrals"} do
        if input == name then
            return name
        end
    end
    local near = type(input) == "string"
        and core.error.nearest(input, {"counts", "transmission", "line integrals"})
    fail("argument", "pipeline", "input", "input is %s; give \"counts\", \"transmission\" or "
        .. "\"line integrals\"%s", type(input) == "string"
            and ("\"%s\""):format(core.error.printable(input)) or "a " .. type(input),
        near and ("; did you mean \"%s\"?"):format(near) or "")
end

return kinds
