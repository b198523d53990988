--- Calls operators with arguments that are mostly wrong, in this process; prints what came of it
-- as a Lua table.
--
--   moonbeam scripts/fuzzing/operators.lua SEED FIRST COUNT [LOG]
--
-- Every call starts from one of the operator's own samples, in which some things are spoilt. A
-- call that succeeds is made twice: both results must be the same to the bit, the measured peak
-- the estimated one, and no guard word may be overwritten. LOG gets the number of each call
-- before it is made, so that a crash has a number.

local mb = require "moonbeam"

local SEED, FIRST, COUNT, LOG = math.tointeger(arg[1]), math.tointeger(arg[2]),
    math.tointeger(arg[3]), arg[4]
local DEVICE = "host"
local DTYPES = {"u8", "u16", "i32", "f16", "f32", "f64", "c64"}
local JUNK = {0, -1, 1, 2, 7, 0.5, -0.5, 1e-300, 1e308, 1 << 31, 1 << 53, math.maxinteger,
    math.mininteger, 0 / 0, 1 / 0, -1 / 0,
    "", "text", "auto", true, false}
local names = mb.op.list()

local function one_of(list)
    return list[math.random(#list)]
end

local function junk()
    local kind = math.random(12)
    if kind <= 9 then
        return one_of(JUNK)
    elseif kind == 10 then
        local list = {}
        for i = 1, math.random(0, 7) do
            list[i] = one_of(JUNK)
        end
        return list
    elseif kind == 11 then
        return {x = one_of(JUNK)}
    end
    local length, value = one_of(JUNK), one_of(JUNK)
    return setmetatable({}, {__len = function() return length end,
        __index = function() return value end})
end

-- Changes an extent or the type of an input, sometimes.
local function spoilt_spec(spec)
    local copy = {table.unpack(spec)}
    local what = math.random(6)
    if what == 1 and #copy > 1 then
        copy[math.random(2, #copy)] = one_of {0, 1, 2, 3, 5, 8, 13, 64}
    elseif what == 2 then
        copy[1] = one_of(DTYPES)
    elseif what == 3 then
        table.insert(copy, math.random(2, #copy + 1), one_of {1, 2})
    elseif what == 4 and #copy > 2 then
        table.remove(copy, math.random(2, #copy))
    end
    return copy
end

-- An input array, at times a view that is not dense, or released.
local function make_input(spec, arrays)
    local array = mb.random({table.unpack(spec, 2)}, {dtype = spec[1], seed = math.random(1 << 20),
        high = one_of {1, 200, 1e30}})
    arrays[#arrays + 1] = array
    local what = math.random(20)
    if what == 1 and array.rank > 1 then
        array = array:permute(table.unpack(array.rank == 2 and {2, 1}
            or {2, 1, table.unpack({3, 4, 5, 6}, 1, array.rank - 2)}))
        arrays[#arrays + 1] = array
    elseif what == 2 and array.shape[1] > 1 then
        array = array:view({2, -1})
        arrays[#arrays + 1] = array
    elseif what == 3 then
        array:release()
    end
    return array
end

-- The call number `index`: the operator's name, positional arguments and options, inputs by name
-- and parameters.
local function make_call(index, arrays)
    math.randomseed(SEED, index)
    local name = one_of(names)
    local descriptor = mb.op.describe(name)
    local sample = assert(load("return " .. one_of(descriptor.samples)))()
    local positional, options, inputs, params, number = {}, {}, {}, {}, 0
    for _, argument in ipairs(descriptor.args) do
        local value
        if argument.kind == "in" or argument.kind == "inout" then
            number = number + 1
            local spec = sample.inputs and (sample.inputs[argument.name] or sample.inputs[number])
            value = spec and make_input(math.random(4) == 1 and spoilt_spec(spec) or spec, arrays)
            inputs[argument.name] = value
        elseif argument.kind ~= "out" then
            value = sample.params and sample.params[argument.name]
            if math.random(5) == 1 then
                value = argument.choices and math.random(2) == 1 and one_of(argument.choices)
                    or junk()
            end
            params[argument.name] = value
        end
        if argument.required and argument.kind ~= "out" then
            positional[#positional + 1] = value == nil and junk() or value
        elseif argument.kind ~= "out" then
            options[argument.name] = value
        end
    end
    if math.random(20) == 1 then
        options[one_of {"zzz", 1, "out", "device"}] = junk()
    elseif math.random(10) == 1 and #arrays > 0 then
        options.out = one_of(arrays)
    end
    positional[#positional + 1] = options
    return {name = name, positional = positional, options = options, inputs = inputs,
        params = params}
end

local function run(call)
    return table.pack(pcall(mb.op.run, call.name, table.unpack(call.positional)))
end

-- Releases the results that are no inputs; returns their bytes.
local function take_results(results, arrays)
    local own = {}
    for i = 2, results.n do
        own[results[i] or false] = type(results[i]) == "userdata"
    end
    for _, array in ipairs(arrays) do
        own[array] = false
    end
    local texts = {}
    for i = 2, results.n do
        if own[results[i]] then
            texts[#texts + 1] = results[i]:to_string()
            results[i]:release()
        end
    end
    return table.concat(texts)
end

local tallies = {}

local function count(word, index, text)
    tallies[word] = (tallies[word] or 0) + 1
    if index then
        io.stderr:write(("call %d: %s: %s\n"):format(index, word, tostring(text):gsub("\n.*", "")))
    end
end

-- A call that succeeded, with its first results: what it took, and whether it does the same again.
local function check_success(index, call, results, peak, arrays)
    local changes_inputs = call.options.out ~= nil or call.options.consume
    for _, array in ipairs(arrays) do
        changes_inputs = changes_inputs or array.released -- consumed
    end
    for _, argument in ipairs(mb.op.describe(call.name).args) do
        changes_inputs = changes_inputs or argument.kind == "inout"
    end
    local first = take_results(results, arrays)
    if changes_inputs then
        return count("ok")
    end
    local known = mb.op.estimate(call.name, call.inputs, call.params, {device = DEVICE})
    if known.peak ~= peak then
        return count("wrong estimate", index,
            ("%s: %d bytes estimated, %d measured"):format(call.name, known.peak, peak))
    end
    local again = run(call)
    if not again[1] or take_results(again, arrays) ~= first then
        return count("not repeatable", index, ("%s: %s"):format(call.name, again[2]))
    end
    count("ok")
end

local function check_failure(index, call, problem)
    if type(problem) == "table" and problem.code then
        return count(problem.code == "internal" and "internal error" or "clean error",
            problem.code == "internal" and index or nil,
            problem)
    end
    count("plain Lua error", index, call.name .. ": " .. tostring(problem))
end

local function try(index)
    local arrays = {}
    local made, call = pcall(make_call, index, arrays)
    if made then
        local results
        local peak = mb.pool.peak(function()
            results = run(call)
        end, DEVICE)
        if results[1] then
            check_success(index, call, results, peak, arrays)
        else
            check_failure(index, call, results[2])
        end
    else
        -- an input too large to make
        count("no input", type(call) ~= "table" and index or nil, call)
    end
    for _, array in ipairs(arrays) do
        array:release()
    end
    mb.collect()
    local live = mb.pool.stats(DEVICE).live
    if live ~= 0 then
        count("leak", index, ("%s: %d bytes"):format(made and call.name or "?", live))
    end
    local damage = mb.pool.damage(DEVICE)
    if #damage > 0 then
        count("guard damage", index, ("%s: %s"):format(made and call.name or "?", tostring(damage)))
    end
end

mb.device(DEVICE, {budget = "256M"})
mb.debug.set_guards(true, DEVICE)
for index = FIRST, FIRST + COUNT - 1 do
    if LOG then
        local log <close> = assert(io.open(LOG, "w"))
        log:write(index, "\n")
    end
    try(index)
end
local words = {}
for word, number in pairs(tallies) do
    words[#words + 1] = ("[%q] = %d"):format(word, number)
end
print(("return {%s}"):format(table.concat(words, ", ")))
