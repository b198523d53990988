--- The documentation of the library's steps, for help and the reference: records like those of
-- functions (documentation.lua), made from the definitions.

local catalog = require "moonbeam.pipeline.catalog"
local tables = require "moonbeam.internal.tables"

local step_records = {}

--- What steps are, in paragraphs.
step_records.TEXT = {
    "A recipe is a list of steps: `{\"flat_field\", \"minus_log\", \"center\", {\"fbp\", filter = "
        .. "\"hann\"}}`. A step is a name, or a table of its name and its options. "
        .. "`moonbeam reconstruct SCAN --recipe FILE` and `mb.pipeline(scan, recipe)` run recipes.",
    "Data have a quantity (counts, transmission, line integrals, phase, attenuation, scaled, "
        .. "labels, intensity, weights) and a layout: frames (angle, row, column), slices (row, y, "
        .. "x) or an image. Each step says what it takes and gives, and a recipe in which steps do "
        .. "not fit together is refused before a frame is read. Rows, columns and projections are "
        .. "those of the scan, counted from 1, even after a crop; the column of the rotation axis "
        .. "is counted from 0.",
}

local function words(value)
    if type(value) == "table" then
        return table.concat(value, ", ", 1, #value - 1) .. " or " .. value[#value]
    end
    return value
end

-- "line integrals or phase, as frames".
local function kind_text(kind)
    local quantity = kind.quantity == "any" and "any values" or words(kind.quantity)
    local layout = (kind.layout == nil or kind.layout == "any") and "" or ", as "
        .. words(kind.layout)
    return quantity .. layout
end

local function first_of(value)
    return type(value) == "table" and value[1] or value
end

-- A field that may be a function of the options, with their defaults.
local function by_default(def, field, ...)
    if type(def[field]) ~= "function" then
        return def[field]
    end
    local options = {}
    for _, entry in ipairs(def.options) do
        options[entry.name] = entry.default
    end
    return def[field](options, ...)
end

-- What a step with default options gives, in words.
local function gives_text(def, takes)
    local gives = by_default(def, "gives", {quantity = first_of(takes.quantity),
        layout = first_of(takes.layout)})
    local quantity, layout = gives.quantity or "same", gives.layout or "same"
    if quantity == "same" and layout == "same" then
        return "the same"
    end
    return kind_text {quantity = quantity == "same" and "the same values" or quantity,
        layout = layout ~= "same" and layout or nil}
end

-- A value of an option as it is written in a recipe.
local function value_text(value)
    if type(value) ~= "table" then
        return type(value) == "string" and '"' .. value .. '"' or tostring(value)
    end
    local parts = tables.mapped(value, value_text)
    return "{" .. table.concat(parts, ", ") .. "}"
end

local function preset_text(name, values)
    local parts = {}
    for option, value in pairs(values) do
        parts[#parts + 1] = ("%s = %s"):format(option, value_text(value))
    end
    table.sort(parts)
    return ("Preset \"%s\": %s."):format(name, table.concat(parts, ", "))
end

local function notes_of(def)
    local notes = {}
    local takes = by_default(def, "takes")
    notes[1] = ("%s takes %s, and gives %s."):format(type(def.takes) == "function"
        and "By default it" or "It", kind_text(takes), gives_text(def, takes))
    for _, name in ipairs(tables.keys(def.presets or {})) do
        notes[#notes + 1] = preset_text(name, def.presets[name])
    end
    notes[#notes + 1] = def.reference and "Reference: " .. def.reference or nil
    return notes
end

local function record_of(def)
    local required = {}
    for _, entry in ipairs(def.options) do
        required[#required + 1] = entry.required and (", %s = ..."):format(entry.name) or nil
    end
    local more = #def.options > #required and ", ..." or ""
    local paragraphs = {def.summary}
    for paragraph in ((def.doc or "") .. "\n"):gmatch "([^\n]+)\n" do
        paragraphs[#paragraphs + 1] = paragraph
    end
    return {name = "step " .. def.name, family = catalog.family_of(def.name),
        summary = def.summary, args = {}, options = def.options,
        call = #def.options > 0 and ("{\"%s\"%s%s}"):format(def.name, table.concat(required), more)
            or ("\"%s\""):format(def.name), paragraphs = paragraphs, notes = notes_of(def)}
end

--- The record of the step with this name. Errors: argument, with the nearest name.
function step_records.of(name)
    return record_of(catalog.new():find(name))
end

--- The records of all steps of the library, sorted.
function step_records.all()
    local known = catalog.new()
    return tables.mapped(known:names(), function(name) return record_of(known:find(name)) end)
end

return step_records
