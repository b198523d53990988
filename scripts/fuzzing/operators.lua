--- Calls operators with arguments that are mostly wrong, in this process (calls.lua).
--
-- Every call starts from one of the operator's own samples, in which some things are spoilt. A
-- call that succeeds is made twice, the second time with dense copies of its inputs: both results
-- must be the same to the bit, the measured peak the estimated one, and no guard word may be
-- overwritten. A call whose result goes to one of its inputs gives what it gives elsewhere.

local mb = require "moonbeam"
local calls = require "scripts.fuzzing.calls"

local DEVICE = calls.DEVICE
local DTYPES = {"u8", "u16", "i32", "f16", "f32", "f64", "c64"}
local names = mb.op.list()
local one_of, once_in, junk, count = calls.one_of, calls.once_in, calls.junk, calls.count

-- Changes an extent or the type of an input, sometimes.
local function spoilt_spec(spec)
    local copy = {table.unpack(spec)}
    local what = math.random(7)
    if what == 1 and #copy > 1 then
        copy[math.random(2, #copy)] = one_of {0, 1, 2, 3, 5, 8, 13, 64}
    elseif what == 2 then
        copy[1] = one_of(DTYPES)
    elseif what == 3 then
        table.insert(copy, math.random(2, #copy + 1), one_of {1, 2})
    elseif what == 4 and #copy > 2 then
        table.remove(copy, math.random(2, #copy))
    elseif what == 5 then
        for axis = 2, #copy do
            copy[axis] = one_of {0, 1, 1, 2, copy[axis]}
        end
    end
    return copy
end

-- Views of a larger array, of which each has the extents that were asked for.
local VIEWS = {
    -- axes in another order
    function(shape, make)
        local order = {2, 1, table.unpack({3, 4, 5, 6}, 1, #shape - 2)}
        return make {shape[2], shape[1], table.unpack(shape, 3)}:permute(table.unpack(order))
    end,
    -- every second element of the last axis
    function(shape, make)
        local own, ranges = {table.unpack(shape)}, {}
        own[#own] = math.max(1, 2 * own[#own] - 1)
        for axis, extent in ipairs(own) do
            ranges[axis] = {1, extent, axis == #own and 2 or 1}
        end
        return make(own):view(table.unpack(ranges))
    end,
    -- a part in the middle
    function(shape, make)
        local own, ranges = {}, {}
        for axis, extent in ipairs(shape) do
            local before = math.random(0, 2)
            own[axis], ranges[axis] = extent + before + math.random(0, 2), {1 + before,
                extent + before}
        end
        return make(own):view(table.unpack(ranges))
    end,
}

-- An input array, at times a view that is not dense, or released; `arrays` gets all of them.
local function make_input(spec, arrays)
    local high, seed, empty = one_of {1, 200, 1e30}, math.random(1 << 20), false
    local function make(shape)
        local array = mb.random(shape, {dtype = spec[1], seed = seed, high = high})
        arrays[#arrays + 1] = array
        return array
    end
    local shape = {table.unpack(spec, 2)}
    for _, extent in ipairs(shape) do
        empty = empty or extent == 0
    end
    local array
    if #shape > 1 and not empty and once_in(6) then
        array = one_of(VIEWS)(shape, make)
        arrays[#arrays + 1] = array
    else
        array = make(shape)
    end
    if array.dtype == "f32" and not empty and once_in(12) then
        local first <close> = #shape > 1 and array:view(1) or array:view()
        first:fill(one_of {-1, 0})
        first:log {out = first} -- not a number, or infinite
    end
    if once_in(30) then
        array:release()
    end
    return array
end

-- The operator's name, positional arguments and options, inputs by name and parameters.
local function make_call(arrays)
    local name = one_of(names)
    local descriptor = mb.op.describe(name)
    local sample = assert(load("return " .. one_of(descriptor.samples)))()
    local positional, options, inputs, params, number = {}, {}, {}, {}, 0
    for _, argument in ipairs(descriptor.args) do
        local value
        if argument.kind == "in" or argument.kind == "inout" then
            number = number + 1
            local spec = sample.inputs and (sample.inputs[argument.name] or sample.inputs[number])
            value = spec and make_input(once_in(4) and spoilt_spec(spec) or spec, arrays)
            inputs[argument.name] = value
        elseif argument.kind ~= "out" then
            value = sample.params and sample.params[argument.name]
            if once_in(6) then
                value = argument.choices and once_in(2) and one_of(argument.choices) or junk()
            elseif once_in(20) then
                value = calls.bent(value)
            end
            params[argument.name] = value
        end
        if argument.required and argument.kind ~= "out" then
            positional[#positional + 1] = value == nil and junk() or value
        elseif argument.kind ~= "out" then
            options[argument.name] = value
        end
    end
    if once_in(20) then
        options[one_of {"zzz", 1, "out", "device"}] = junk()
    elseif once_in(8) and #arrays > 0 then
        options.out = one_of(arrays)
    end
    positional[#positional + 1] = options
    return {name = name, positional = positional, options = options, inputs = inputs,
        params = params}
end

-- The same call on dense copies of its inputs, which `arrays` gets, without out; nil where an
-- input is released.
local function dense_call(call, arrays)
    local copies, positional, options = {}, {}, {}
    local function copy_of(value)
        if mb.array.is_array(value) and not copies[value] then
            copies[value] = value:copy()
            arrays[#arrays + 1] = copies[value]
        end
        return copies[value] or value
    end
    local good = pcall(function()
        for i = 1, #call.positional - 1 do
            positional[i] = copy_of(call.positional[i])
        end
        for key, value in pairs(call.options) do
            if key ~= "out" then
                options[key] = copy_of(value)
            end
        end
    end)
    positional[#positional + 1] = options
    return good and {name = call.name, positional = positional} or nil
end

local function run(call)
    return table.pack(pcall(mb.op.run, call.name, table.unpack(call.positional)))
end

-- Releases the results that are none of `arrays`; returns the bytes of all.
local function take_results(results, arrays)
    local own, texts = {}, {}
    for i = 2, results.n do
        own[results[i] or false] = mb.array.is_array(results[i])
    end
    for _, array in ipairs(arrays) do
        own[array] = false
    end
    for i = 2, results.n do
        if mb.array.is_array(results[i]) then
            local dense <close> = results[i]:copy()
            texts[#texts + 1] = dense:to_string()
        end
        if own[results[i]] then
            results[i]:release()
        end
    end
    return table.concat(texts)
end

-- A call that succeeded, with its first results: what it took, and whether it does the same again.
local function check_success(index, call, results, peak, arrays, dense)
    local first = take_results(results, arrays)
    if not call.options.out and not call.options.consume then
        local known = mb.op.estimate(call.name, call.inputs, call.params, {device = DEVICE})
        if known.peak ~= peak then
            return count("wrong estimate", index,
                ("%s: %d bytes estimated, %d measured"):format(call.name, known.peak, peak))
        end
    end
    local again = dense and run(dense)
    if again and not again[1] then
        return count("not repeatable", index, ("%s: %s"):format(call.name, again[2]))
    elseif again and take_results(again, arrays) ~= first then
        return count("not repeatable", index, call.name .. ": dense inputs give other bits")
    end
    count "ok"
end

local function check_failure(index, call, problem)
    if type(problem) == "table" and problem.code then
        local bad = problem.code == "internal"
        return count(bad and "internal error" or "clean error", index, bad and problem or nil)
    end
    count("plain Lua error", index, call.name .. ": " .. tostring(problem))
end

local function try(index)
    local arrays = {}
    local made, call = pcall(make_call, arrays)
    if made then
        local dense, results = dense_call(call, arrays), nil
        local peak = mb.pool.peak(function()
            results = run(call)
        end, DEVICE)
        if results[1] then
            check_success(index, call, results, peak, arrays, dense)
        else
            check_failure(index, call, results[2])
        end
    else
        -- an input too large to make
        count("no input", index, type(call) ~= "table" and call or nil)
    end
    for _, array in ipairs(arrays) do
        array:release()
    end
    return made and call.name or "?"
end

calls.run(try)
