--- The options of a step in a recipe. They are checked by the step's declarations before anything
-- runs, and completed by presets and defaults.
--
-- The entries are those of public functions (declared.lua) and of operators. Only recipes have two
-- more kinds: "range", {first, last}, whole numbers from 1, or negative numbers from the end; and
-- "pair", {low, high}, two numbers in ascending order. An entry with `path` is a file name,
-- relative to the recipe and inside its folder.

local core = require "moonbeam.core"
local arguments = require "moonbeam.internal.arguments"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"
local lists = require "moonbeam.scan.lists"
local tables = require "moonbeam.internal.tables"

local step_options = {}

local function described(value)
    if type(value) == "table" and #value > 0 and #value <= 4 and type(value[1]) == "number" then
        local parts = tables.mapped(value, function(number)
            return type(number) == "number" and ("%.10g"):format(number) or type(number)
        end)
        return "{" .. table.concat(parts, ", ") .. "}"
    end
    return value ~= value and "NaN"
        or type(value) == "string" and ("the string '%s'"):format(core.error.printable(value))
        or type(value) == "number" and ("%.10g"):format(value)
        or type(value) == "boolean" and tostring(value) or "a " .. type(value)
end

-- Guesses at the meaning of a value out of range, by the unit of the option.
local HINTS = {
    rad = function(value, entry)
        local meant = math.rad(value)
        return arguments.within(meant, entry)
            and ("; is it in degrees? %g degrees are %.6g rad"):format(value, meant)
    end,
    eV = function(value, entry)
        return value > 0 and value < (entry.min or entry.above or 0)
            and ("; is it in keV? %g keV are %g eV"):format(value, value * 1e3)
    end,
    m = function(value, entry)
        return value > 0 and arguments.within(value * 1e-3, entry)
            and ("; is it in mm? %g mm are %g m"):format(value, value * 1e-3)
    end,
}

local TURNS = {min = -4 * math.pi, max = 4 * math.pi}

-- The range of an entry: the declared range, or the plausible range of its unit.
local function range_of(entry)
    if entry.min or entry.max or entry.above or entry.below then
        return entry
    end
    return entry.unit == "rad" and TURNS or entry
end

local function number_problem(entry, value, whole)
    local range = range_of(entry)
    if type(value) == "number" and (not whole or math.tointeger(value))
        and math.abs(value) < math.huge and arguments.within(value, range) then
        return nil
    end
    local hint = type(value) == "number" and HINTS[entry.unit]
        and HINTS[entry.unit](value, range) or ""
    return ("it must be a %snumber%s%s%s"):format(whole and "whole " or "",
        arguments.range_text(range), entry.unit and (" (%s)"):format(entry.unit) or "", hint)
end

local function whole_problem(entry, value)
    return number_problem(entry, value, true)
end

-- A table of numbers from 1 to its length.
local function list_problem(entry, value)
    if type(value) ~= "table" then
        return "give a table of numbers, such as {1, 2}"
    elseif entry.count and #value ~= entry.count then
        return ("it has %s; give %d"):format(counted(#value, "number"), entry.count)
    end
    for key in pairs(value) do
        if not (math.type(key) == "integer" and key >= 1 and key <= #value) then
            return "it has named members; give a table of numbers, such as {1, 2}"
        end
    end
    for i, number in ipairs(value) do
        local problem = number_problem(entry, number, entry.whole)
        if problem then
            return ("its element %d is %s; %s"):format(i, described(number), problem)
        end
    end
end

local function vector_problem(entry, value)
    if type(value) == "number" then
        return number_problem(entry, value)
    end
    return list_problem(entry, value)
end

local function range_problem(_, value)
    local first = type(value) == "table" and #value == 2 and math.tointeger(value[1])
    local last = type(value) == "table" and #value == 2 and math.tointeger(value[2])
    if not first or not last then
        return "give {first, last}, two whole numbers from 1"
    elseif first == 0 or last == 0 then
        return "rows, columns and frames count from 1; give {first, last}"
    elseif first > last and (first < 0) == (last < 0) then
        return ("its first number, %d, is larger than its last, %d"):format(first, last)
    end
end

local function pair_problem(entry, value)
    if type(value) ~= "table" or #value ~= 2 then
        return "give {low, high}, two numbers"
    end
    return list_problem(entry, value) or value[1] >= value[2]
        and ("its first number, %g, must be less than its second, %g"):format(value[1], value[2])
        or nil
end

local function choice_problem(entry, value)
    for _, name in ipairs(entry.choices) do
        if value == name then
            return nil
        end
    end
    local near = entry.synonyms and entry.synonyms[value]
        or type(value) == "string" and core.error.nearest(value, entry.choices)
    return ("give %s%s"):format(table.concat(entry.choices, ", "), near
        and ("; did you mean '%s'?"):format(near) or "")
end

local function string_problem(entry, value)
    if type(value) ~= "string" then
        return entry.path and "give the name of a file, a string" or "give a string"
    elseif value == "" or value:find "%c" or not utf8.len(value) then
        return "give a text of printable characters"
    end
end

local function boolean_problem(_, value)
    return type(value) ~= "boolean" and "give true or false" or nil
end

local PROBLEMS = {number = number_problem, float = number_problem, count = whole_problem,
    int = whole_problem, list = list_problem, extents = list_problem, vector = vector_problem,
    range = range_problem, pair = pair_problem, choice = choice_problem, enum = choice_problem,
    string = string_problem, boolean = boolean_problem, bool = boolean_problem}

--- Whether a step may declare options of this kind.
function step_options.is_kind(kind)
    return kind == "any" or PROBLEMS[kind] ~= nil
end

--- The kinds of options that a step may declare, sorted.
function step_options.kinds()
    return tables.keys(tables.merged(PROBLEMS, {any = true}))
end

--- What is wrong with a value of an option, as a sentence, or nil. The field `also` of an entry
-- names a second kind that the value may have, and `words` names that it may be.
function step_options.problem(entry, value)
    local check = PROBLEMS[entry.kind]
    local problem = check and check(entry, value)
    local second = problem and PROBLEMS[entry.also]
    if not problem or second and not second(entry, value) then
        return nil
    end
    for _, word in ipairs(entry.words or {}) do
        if value == word then
            return nil
        end
    end
    local strings = entry.also == "string" and type(value) ~= "string"
        and ", or the name of a file" or entry.words
        and (", or \"%s\""):format(table.concat(entry.words, "\", \"")) or ""
    return ("%s is %s; %s%s"):format(entry.name, described(value), problem, strings)
end

-- ---- paths ----

-- A name without the sign before it, which those of lists in datasets may have.
local function bare_of(entry, value)
    return entry.dataset and value:gsub("^%-", "") or value
end

-- What is wrong with a file name in a recipe, or nil.
local function path_problem(entry, value, rules)
    local bare = bare_of(entry, value)
    local file = bare:match("^(.+):/") or bare
    if rules.typed and rules.typed[value] then
        return nil
    elseif rules.foreign and not rules.trust_paths then
        return ("%s is the file '%s', but the recipe is from a result, so its paths are not "
            .. "followed; give the option on the command line, or trust them with --trust-paths")
            :format(entry.name, core.error.printable(value))
    elseif entry.dataset and (bare:find "^/" and not core.system.stat(file)
        or lists.typed(value)) then
        return nil -- a dataset of the scan, or no name
    elseif file:find "^/" or file:find "^~" then
        return ("%s is '%s'; paths in a recipe are relative to it: put the file beside the "
            .. "recipe"):format(entry.name, core.error.printable(value))
    end
    for part in file:gmatch "[^/]+" do
        if part == ".." then
            return ("%s is '%s'; paths in a recipe must not leave its folder with '..'"):format(
                entry.name, core.error.printable(value))
        end
    end
end

local function located(entry, value, rules)
    local bare = bare_of(entry, value)
    if entry.dataset and (bare:find "^/" or lists.typed(value)) or not rules.folder
        or rules.folder == "" or rules.typed and rules.typed[value] then
        return value
    end
    return (bare ~= value and "-" or "") .. rules.folder .. "/" .. bare
end

-- ---- an entry of a recipe ----

local function names_of(list)
    return tables.mapped(list, "name")
end

local function copied(value)
    if type(value) ~= "table" then
        return value
    end
    local copy = {}
    for key, member in pairs(value) do
        copy[key] = copied(member)
    end
    return copy
end

local function unknown_option(def, name, op)
    local names = names_of(def.options)
    local near = core.error.nearest(name, names)
    fail("argument", op, core.error.printable(name), "unknown option '%s'%s",
        core.error.printable(name), near and ("; did you mean '%s'?"):format(near)
            or #names > 0 and "; there are " .. table.concat(names, ", ")
            or "; the step has no options")
end

-- The values of the preset with this name.
local function preset_of(def, name, op)
    local preset = def.presets and def.presets[name]
    if name ~= nil and not preset then
        local names = tables.keys(def.presets or {})
        local near = type(name) == "string" and core.error.nearest(name, names)
        fail("argument", op, "preset", "preset is %s; %s%s", described(name), #names == 0
            and "the step has none" or "there are " .. table.concat(names, ", "), near
            and ("; did you mean '%s'?"):format(near) or "")
    end
    return preset or {}
end

--- The entry of an option of a definition; raises an error if it does not exist.
function step_options.entry(def, name, op)
    return def.options[name] or unknown_option(def, name, op)
end

local function checked(def, given, op, rules)
    local values = copied(preset_of(def, given.preset, op))
    for name, value in pairs(given) do
        if name ~= 1 and name ~= "preset" then
            local entry = step_options.entry(def, name, op)
            local problem = step_options.problem(entry, value)
                or entry.path and type(value) == "string" and path_problem(entry, value, rules)
            if problem then
                fail("argument", op, name, "%s", problem)
            end
            values[name] = entry.path and type(value) == "string" and located(entry, value, rules)
                or entry.kind == "count" and math.tointeger(value) -- 4.0 is 4
                or copied(value)
        end
    end
    return values
end

--- The options of a step with presets and defaults: a new table. `given` is the entry of the
-- recipe, `op` names the step in messages. `rules`: folder (of the recipe), foreign (the recipe
-- comes from a result), trust_paths, typed ({value = true}: texts that the user has typed, whose
-- paths are not those of the recipe).
function step_options.resolved(def, given, op, rules)
    local values = checked(def, type(given) == "table" and given or {}, op, rules or {})
    for _, entry in ipairs(def.options) do
        if values[entry.name] == nil then
            local default = entry.default
            if entry.required then
                fail("argument", op, entry.name, "%s is missing; give %s = ..., %s%s", entry.name,
                    entry.name, entry.doc, entry.unit and (" (%s)"):format(entry.unit) or "")
            elseif not (default == "auto" and not entry.choices) then -- the operator chooses it
                values[entry.name] = copied(default)
            end
        end
    end
    return values
end

return step_options
