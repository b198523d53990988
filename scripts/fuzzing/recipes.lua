--- Random recipes of a few steps on tiny scans, in this process (calls.lua).
--
-- Steps are taken from the library so that they mostly follow each other; their options are at
-- random, some of them wrong. A recipe that runs takes what its plan says, and gives the same bits
-- in blocks of another size. One that does not raises an error of one line that names its step.

local mb = require "moonbeam"
local tables = require "moonbeam.internal.tables"
local calls = require "scripts.fuzzing.calls"
local catalog = require("moonbeam.pipeline.catalog").new()

local one_of, once_in = calls.one_of, calls.once_in

-- Options that make a step slow or need a file, and the values for them.
local OWN = {iterations = {1, 2, 3}, tv_iterations = {1, 2}, file = false,
    slices_per_file = false, energy = {2e4, 8e4}, distance = {0.05, 1},
    delta_beta = {1, 100, 1e4}, height = {1, 8, 70}, frames = {2, 3, {1, -1}, {2, 3}, 7}}

-- ---- scans ----

local function random(shape, dtype, low, high)
    local array = mb.random(shape, {seed = math.random(1 << 20), low = low, high = high})
    if dtype == "f32" then
        return array
    end
    local rounded = array:cast(dtype)
    array:release()
    return rounded
end

-- A scan, with a list of its arrays, and what its values are.
local function make_scan()
    local n, rows, cols = one_of {1, 2, 3, 8, 13, 24}, one_of {1, 2, 3, 7, 9},
        one_of {1, 2, 3, 8, 13, 16, 24}
    local options, arrays, input = {pixel_size = not once_in(4) and 1e-6 or nil}, {}, nil
    if math.random(3) > 1 then
        local dtype = one_of {"u8", "u16", "f32"}
        arrays[1] = random({n, rows, cols}, dtype, 20, 200)
        options.flats = not once_in(6) and random({math.random(5), rows, cols}, dtype, 180, 255)
        options.darks = (not once_in(6) or not options.flats)
            and random({math.random(3), rows, cols}, dtype, 0, 20)
        options.flats, options.darks = options.flats or nil, options.darks or nil
        arrays.flats, arrays.darks = options.flats, options.darks
    else
        arrays[1] = random({n, rows, cols}, one_of {"f32", "f32", "u16"}, 0.1,
            once_in(3) and 5 or 1)
        input = one_of {"transmission", "line integrals"}
    end
    if arrays[1].dtype == "f32" and once_in(4) then
        local part <close> = arrays[1]:view(1, 1, mb.all)
        part:fill(one_of {0, -1})
        if once_in(2) then
            part:log {out = part} -- of values that are not finite
        end
    end
    return mb.scan.of_arrays(arrays[1], mb.tomo.angles(n, one_of {math.pi, 2 * math.pi}), options),
        arrays, input
end

-- ---- options ----

local function number(entry, whole)
    local low = entry.min or entry.above or (entry.unit == "rad" and -0.3) or -2
    low = math.max(low, -2)
    local high = math.min(entry.max or entry.below or math.huge, low + one_of {1, 4, 20})
    local value = low + math.random() * (high - low)
    if once_in(4) then
        value = one_of {low, high, entry.default or 1}
    end
    return type(value) == "number" and whole and math.floor(value) or value
end

local function numbers(entry, count)
    local list = {}
    for i = 1, count do
        list[i] = number(entry, entry.whole or once_in(2))
    end
    return list
end

-- First and last, mostly of what there is.
local function range()
    local first = math.random(-3, 6)
    return {first, first + math.random(0, 9)}
end

local VALUES = {
    range = range, boolean = function() return once_in(2) end,
    pair = function() return {math.random(0, 20), math.random(30, 100)} end,
    choice = function(entry) return one_of(entry.choices) end,
    count = function(entry) return number(entry, true) end,
    number = number,
    list = function(entry, n)
        return numbers(entry, entry.count or one_of {n, n, math.random(0, 5)})
    end,
    vector = function(entry)
        local odd = entry.unit == "px" and entry.max == 31
        local list = numbers(entry, math.random(1, 3))
        for i, value in ipairs(list) do
            list[i] = odd and 2 * math.random(0, 3) + 1 or value
        end
        return #list == 1 and list[1] or list
    end,
    string = function() return "auto" end,
}
VALUES.bool, VALUES.enum, VALUES.int, VALUES.float = VALUES.boolean, VALUES.choice, VALUES.count,
    VALUES.number
VALUES.extents = VALUES.list

local function option(entry, n)
    local own = OWN[entry.name]
    if own then
        return one_of(own)
    elseif once_in(40) then
        return once_in(2) and calls.junk(true) or calls.bent(entry.default)
    end
    local value = (VALUES[entry.kind] or calls.junk)(entry, n)
    return once_in(60) and calls.bent(value) or value
end

-- An entry of a recipe.
local function make_step(def, n)
    local step = {def.name}
    for _, entry in ipairs(def.options) do
        local needed = entry.required or entry.unit == "eV" or OWN[entry.name]
        if OWN[entry.name] ~= false and not (entry.path and not entry.required)
            and (needed and not once_in(20) or once_in(4)) then
            step[entry.name] = option(entry, n)
        end
    end
    local presets = tables.keys(def.presets or {})
    if #presets > 0 and once_in(5) then
        step.preset = one_of(presets)
    end
    return step
end

-- ---- trials ----

local function text_of(value)
    if type(value) ~= "table" then
        return type(value) == "string" and ("%q"):format(value) or tostring(value)
    end
    local parts = {}
    for _, item in ipairs(value) do
        parts[#parts + 1] = text_of(item)
    end
    local keys = {}
    for key, item in pairs(value) do
        keys[#keys + 1] = type(key) == "string" and ("%s = %s"):format(key, text_of(item)) or nil
    end
    table.sort(keys)
    table.move(keys, 1, #keys, #parts + 1, parts)
    return ("{%s}"):format(table.concat(parts, ", "))
end

local function bind(scan, recipe, options)
    options.quiet = true
    return mb.pipeline(scan, recipe, options)
end

-- Of the text of a result the slices, or frames, first to last.
local function part_of(text, shape, first, last)
    local bytes = #text // shape[1]
    return text:sub((first - 1) * bytes + 1, last * bytes)
end

local function check_failure(index, problem, what, late)
    if type(problem) ~= "table" or not problem.code then
        return calls.count("plain Lua error", index, ("%s: %s"):format(problem, what))
    end
    local text = tostring(problem)
    if problem.code == "internal" then
        return calls.count("internal error", index, text .. ": " .. what)
    elseif text:find("\n", 1, true) and problem.code ~= "budget" then
        return calls.count("several lines", index, text:gsub("\n", " / ") .. ": " .. what)
    end
    calls.count(late and "clean error of a run" or "clean error")
end

-- A recipe of up to four steps that can be bound to the scan. What cannot has raised an error.
local function make_recipe(index, scan, input, said)
    local recipe, names = {}, catalog:names()
    for k = 1, math.random(1, 4) do
        for _ = 1, 12 do
            recipe[k] = make_step(catalog:find(one_of(names)), scan.n_angles)
            local good, problem = pcall(bind, scan, recipe, {input = input})
            if good then
                break
            end
            check_failure(index, problem, said .. text_of(recipe))
            recipe[k] = nil
        end
        if not recipe[k] then
            break
        end
    end
    return recipe
end

-- The result of a recipe in blocks of `count`, of all or these rows: {text, shape, measured}.
local function result_of(case, count, rows)
    local made = bind(case.scan, case.recipe, {input = case.input, block = count,
        overlap = one_of {"auto", true, false}})
    made:plan()
    local data <close>, done = made:slices(rows)
    assert(done.as_planned, "the run was not as planned")
    return {text = data:to_string(), shape = data.shape, measured = next(done.values) ~= nil}
end

-- The same recipe in smaller blocks, or for some slices alone, unless what was measured depends on
-- them. `first` is the result of all.
local function check_again(case, first)
    local count, rows, text = math.random(4), nil, first.text
    if not first.measured and once_in(2) then
        local from = math.random(first.shape[1])
        rows = {from, math.random(from, first.shape[1])}
        text = part_of(text, first.shape, rows[1], rows[2])
    end
    local how = ("in blocks of %d, %s: %s"):format(count, rows and text_of(rows) or "all",
        case.what)
    local good, again = pcall(result_of, case, count, rows)
    if not good and tostring(again):find("nothing is left", 1, true) then
        calls.count "clean error of a run" -- of these rows alone
    elseif not good then
        calls.count("not repeatable", case.index, ("%s: %s"):format(again, how))
    elseif text ~= again.text then
        calls.count("not repeatable", case.index, "other bits " .. how)
    else
        calls.count "ok"
    end
end

local function try(index)
    local scan, arrays, input = make_scan()
    local _ <close> = tables.group(arrays)
    local case = {index = index, scan = scan, input = input}
    local said = ("%d x %d x %d %s, flats %d, darks %d, %s, "):format(scan.n_angles, scan.rows,
        scan.cols, scan.dtype, scan.n_flats, scan.n_darks, input or "counts")
    case.recipe = make_recipe(index, scan, input, said)
    case.what = said .. text_of(case.recipe)
    if #case.recipe > 0 then
        local good, result = pcall(result_of, case)
        if good then
            check_again(case, result)
        else
            check_failure(index, result, case.what, true)
        end
    end
    return case.what
end

calls.run(try)
