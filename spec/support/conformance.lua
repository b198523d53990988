-- What every operator promises by its descriptor, on every backend, for each of its samples:
-- documented arguments; results as inferred; the estimated peak is the measured one, to the byte;
-- nothing outside its arrays and slots is written; strided inputs as declared; clear messages; no
-- leak when any allocation fails; the same result, to the bit, in pieces of whole packets; the same
-- on the host and on CUDA. The files of spec/conformance call `check` with the category of their
-- operators: a process with the tests of all of them would take five times as long, because every
-- full collection of garbage visits the tests that have run.

local assert = require "luassert"
local mb = require "moonbeam"
local helper = require "spec.helper"

local describe, it = helper.busted.describe, helper.busted.it

-- Samples, inputs, calls

local function load_samples(descriptor)
    local samples = {}
    for i, text in ipairs(descriptor.samples) do
        samples[i] = assert(load("return " .. text, "=sample"))()
        samples[i].inputs = samples[i].inputs or {}
        samples[i].params = samples[i].params or {}
    end
    return samples
end

-- Arguments in the order of the descriptor: f(arg, index of input or nil).
local function each_arg(descriptor, f)
    local input = 0
    for _, arg in ipairs(descriptor.args) do
        local is_input = arg.kind == "in" or arg.kind == "inout"
        if is_input then
            input = input + 1
        end
        f(arg, is_input and input or nil)
    end
end

local function input_spec(sample, arg, index)
    return sample.inputs[arg.name] or sample.inputs[index]
end

local function random_input(spec, seed, device)
    local integer = spec[1]:match("^[ui]")
    return mb.random({ table.unpack(spec, 2) }, {
        dtype = spec[1],
        device = device,
        seed = seed,
        low = spec.low or 0,
        high = spec.high or (integer and 200 or 1),
    })
end

-- {name = array}, owned by the caller.
local function make_inputs(descriptor, sample, device)
    local inputs = {}
    each_arg(descriptor, function(arg, index)
        local spec = index and input_spec(sample, arg, index)
        if spec then
            inputs[arg.name] = random_input(spec, index, device)
        end
    end)
    return inputs
end

local function release_all(arrays)
    for _, array in pairs(arrays) do
        array:release()
    end
end

-- Calls the operator with inputs by name; `extra` are more options. Returns a list of the results.
local function call(descriptor, sample, inputs, device, extra)
    local positional, options, has_input = {}, {}, false
    each_arg(descriptor, function(arg, index)
        local value
        if index then
            value = inputs[arg.name]
            has_input = has_input or arg.required
        elseif arg.kind ~= "out" then
            value = sample.params[arg.name]
        else
            return
        end
        if arg.required then
            positional[#positional + 1] = value
        else
            options[arg.name] = value
        end
    end)
    if not has_input then
        options.device = device
    end
    for key, value in pairs(extra or {}) do
        options[key] = value
    end
    positional[#positional + 1] = options
    return table.pack(mb.op.run(descriptor.name, table.unpack(positional)))
end

-- Releases results that the call made (those changed in place are inputs).
local function release_results(results, inputs)
    for i = 1, results.n do
        local mine = results[i] ~= nil
        for _, array in pairs(inputs) do
            mine = mine and not rawequal(array, results[i])
        end
        if mine then
            results[i]:release()
        end
    end
end

local function estimate(descriptor, sample, inputs, device, given)
    return mb.op.estimate(descriptor.name, inputs, sample.params,
        { device = device, given = given })
end

local function result_values(results)
    local values = {}
    for i = 1, results.n do
        values[i] = results[i] and results[i]:to_table() or {}
    end
    return values
end

-- The first result that is not an input too, and its place among the results.
local function first_out(descriptor)
    local number = 0
    for _, arg in ipairs(descriptor.args) do
        number = number + ((arg.kind == "out" or arg.kind == "inout") and 1 or 0)
        if arg.kind == "out" then
            return arg, number
        end
    end
end

-- The tests of one operator

local function check_documented(descriptor)
    assert.truthy(descriptor.summary and #descriptor.summary > 10, "no summary")
    assert.truthy(descriptor.category, "no category")
    assert.truthy(#descriptor.samples >= 1, "no sample")
    local seen = {}
    for _, arg in ipairs(descriptor.args) do
        assert.truthy(arg.doc and #arg.doc > 0, arg.name .. " has no doc")
        assert.falsy(seen[arg.name], arg.name .. " appears twice")
        assert.falsy(arg.name == "out" or arg.name == "device", arg.name .. " is a reserved name")
        seen[arg.name] = true
        if arg.array then
            assert.truthy(#arg.dtypes > 0, arg.name .. " accepts no dtype")
            assert.truthy(arg.rank_min <= arg.rank_max, arg.name .. " has no possible rank")
        elseif arg.kind == "enum" then
            assert.truthy(#arg.choices > 1, arg.name .. " has nothing to choose")
        elseif arg.min and type(arg.default) == "number" then
            assert.truthy(arg.default >= arg.min and arg.default <= arg.max,
                arg.name .. " has a default outside its range")
        end
    end
    assert.truthy(mb.op.functions[descriptor.name])
    assert.truthy(require("moonbeam.help").text(descriptor.name):find(descriptor.summary, 1, true))
end

-- Results as inferred, peak as estimated, guards intact.
local function check_run(descriptor, sample, device)
    mb.collect()
    mb.debug.set_guards(true, device)
    local broken = mb.pool.stats(device).broken_guards
    local inputs = make_inputs(descriptor, sample, device)
    local known = estimate(descriptor, sample, inputs, device)
    local results
    local peak = mb.pool.peak(function()
        results = call(descriptor, sample, inputs, device)
    end, device)
    assert.equal(known.peak, peak, "estimated and measured peak")
    assert.equal(known.result + known.scratch, known.peak)
    local outs = {}
    for _, result in ipairs(known.results) do
        outs[result.name] = result
    end
    local number = 0
    for _, arg in ipairs(descriptor.args) do
        if arg.kind == "out" or arg.kind == "inout" then
            number = number + 1
            local expected = outs[arg.name]
            if arg.kind == "out" and expected then
                assert.same(expected.shape, results[number].shape)
                assert.equal(expected.dtype, results[number].dtype)
                assert.equal(expected.bytes, results[number].bytes)
            elseif arg.kind == "out" then
                assert.is_nil(results[number], arg.name .. " was not inferred")
            end
        end
    end
    release_results(results, inputs)
    release_all(inputs)
    mb.collect()
    local broken_now = mb.pool.stats(device).broken_guards
    mb.debug.set_guards(false, device)
    assert.equal(broken, broken_now, "damaged guard words")
end

-- What is changed in place starts again from the same values.
local function start_again(descriptor, sample, device, inputs)
    local fresh = make_inputs(descriptor, sample, device)
    each_arg(descriptor, function(arg)
        if arg.kind == "inout" and fresh[arg.name] then
            mb.convert(fresh[arg.name], fresh[arg.name].dtype, { out = inputs[arg.name] })
        end
    end)
    release_all(fresh)
end

-- out =: the estimate is then the scratch alone, and the values are the same; also in place of an
-- input where that is allowed.
local function check_out(descriptor, sample, device)
    local out = first_out(descriptor)
    if not out then
        return
    end
    local inputs = make_inputs(descriptor, sample, device)
    local made = call(descriptor, sample, inputs, device)
    local expected = result_values(made)
    local given = {}
    local number = 0
    for _, arg in ipairs(descriptor.args) do
        if arg.kind == "out" or arg.kind == "inout" then
            number = number + 1
            if arg.kind == "out" then
                given[arg.name] = made[number]
            end
        end
    end
    local names = {}
    for name, array in pairs(given) do
        names[#names + 1] = name
        array:fill(1)
    end
    start_again(descriptor, sample, device, inputs)
    local known = estimate(descriptor, sample, inputs, device, names)
    assert.equal(0, known.result)
    local again
    local peak = mb.pool.peak(function()
        again = call(descriptor, sample, inputs, device, { out = given })
    end, device)
    assert.equal(known.scratch, peak)
    for i = 1, again.n do
        assert.equal(made[i], again[i])
    end
    for i = 1, again.n do
        helper.assert_close(expected[i], again[i] and again[i]:to_table() or {}, 0, "with out =")
    end
    local first = given[out.name]
    start_again(descriptor, sample, device, inputs)
    for _, name in ipairs(descriptor.alias) do
        local input = inputs[name]
        if input and first and input.dtype == first.dtype
            and table.concat(input.shape, " ") == table.concat(first.shape, " ") then
            local copies = {}
            for key, array in pairs(inputs) do
                copies[key] = array:copy()
            end
            local results = call(descriptor, sample, copies, device,
                { out = { [out.name] = copies[name] } })
            helper.assert_close(expected[1], results[1], math.max(descriptor.tolerance, 1e-6),
                "in place of " .. name)
            release_results(results, copies)
            release_all(copies)
        end
    end
    release_results(made, inputs)
    release_all(inputs)
end

-- A view of the array's shape in a larger one of zeros: every second element along the axes of
-- `steps` ({[axis] = true}), and with `inside` neither the first nor the last elements of any
-- axis. The larger one belongs to the caller too.
local function roomy(array, steps, inside)
    local shape, ranges = array.shape, {}
    for axis, extent in ipairs(shape) do
        local step, first = steps[axis] and 2 or 1, inside and 2 or 1
        shape[axis] = step * extent + (inside and 3 or 0)
        ranges[axis] = { first, first + step * (extent - 1), step }
        if extent == 0 then
            ranges[axis] = mb.all
        end
    end
    local large = mb.zeros(shape, { dtype = array.dtype, device = array.device })
    return large:view(table.unpack(ranges)), large
end

-- The same elements in such a view.
local function stretched(array, steps, inside)
    local view, large = roomy(array, steps, inside)
    large:release()
    return mb.convert(array, array.dtype, { out = view })
end

-- What is tried with every array of a call: {axes with gaps, in the middle of a larger array,
-- accepted}. For rows at a stride, every axis but the last at once, beginning where no address is
-- aligned.
local function layouts(descriptor, array)
    local list, rank, all = {}, array.rank, {}
    for axis = 1, rank do
        local accepted = descriptor.strides == "any" or descriptor.strides == "rows" and axis < rank
        all[axis] = accepted or nil
        if array.shape[axis] > 1 then
            list[#list + 1] = { steps = { [axis] = true }, accepted = accepted,
                what = "strided along axis " .. axis }
        end
    end
    if rank > 0 and descriptor.strides ~= "contiguous" then
        list[#list + 1] = { steps = all, inside = true, accepted = true,
            what = "a part of a larger array" }
    end
    return list
end

local function copies_of(inputs, changed, change)
    local copies = {}
    for name, array in pairs(inputs) do
        copies[name] = name == changed and change(array) or array:copy()
    end
    return copies
end

local function assert_refused(err, name)
    assert.equal("shape", err.code)
    assert.equal(name, err.arg)
    assert.truthy(tostring(err):find("copy()", 1, true))
end

-- Inputs that are views give the same values, or are refused, as declared.
local function check_strides(descriptor, sample, device)
    local inputs = make_inputs(descriptor, sample, device)
    local plain = copies_of(inputs)
    local results = call(descriptor, sample, plain, device)
    local expected = result_values(results)
    release_results(results, plain)
    release_all(plain)
    for name, array in pairs(inputs) do
        for _, layout in ipairs(layouts(descriptor, array)) do
            local strided = copies_of(inputs, name, function(value)
                return stretched(value, layout.steps, layout.inside)
            end)
            local ok, got = pcall(call, descriptor, sample, strided, device)
            assert.equal(layout.accepted or strided[name].contiguous, ok,
                ("%s %s: %s"):format(name, layout.what, got))
            if ok then
                for i, value in ipairs(result_values(got)) do
                    helper.assert_close(expected[i], value, math.max(descriptor.tolerance, 1e-6),
                        name .. " " .. layout.what)
                end
                release_results(got, strided)
            else
                assert_refused(got, name)
            end
            release_all(strided)
        end
    end
    release_all(inputs)
end

local function is_zero(array)
    for _, value in ipairs(helper.flatten(array:to_table())) do
        if value ~= 0 then
            return false
        end
    end
    return true
end

-- Given results that are views receive the same values, and what lies around them stays 0; or
-- they are refused.
local function check_strided_results(descriptor, sample, device)
    local out, number = first_out(descriptor)
    local inputs = make_inputs(descriptor, sample, device)
    local plain = copies_of(inputs)
    local results = call(descriptor, sample, plain, device)
    local made = out and results[number]
    for _, layout in ipairs(made and layouts(descriptor, made) or {}) do
        local fresh = copies_of(inputs)
        local view, large = roomy(made, layout.steps, layout.inside)
        local ok, got = pcall(call, descriptor, sample, fresh, device,
            { out = { [out.name] = view } })
        assert.equal(layout.accepted or view.contiguous, ok,
            ("%s %s: %s"):format(out.name, layout.what, got))
        if ok then
            helper.assert_close(made, view, math.max(descriptor.tolerance, 1e-6), out.name .. " "
                .. layout.what)
            local kept = { [out] = view }
            for name, array in pairs(fresh) do
                kept[name] = array
            end
            release_results(got, kept)
            view:fill(0)
            assert.is_true(is_zero(large), "written beside " .. out.name .. " " .. layout.what)
        else
            assert_refused(got, out.name)
        end
        release_all(fresh)
        view:release()
        large:release()
    end
    release_results(results, plain)
    release_all(plain)
    release_all(inputs)
end

local function check_messages(descriptor, sample)
    local inputs = make_inputs(descriptor, sample, "host")
    local text, err = helper.failure(call, descriptor, sample, inputs, "host",
        { no_such_option = 1 })
    assert.equal("argument", err.code)
    assert.equal(descriptor.name, err.op)
    assert.truthy(text:find("no_such_option", 1, true))
    -- A value of no possible type, for each argument in turn.
    each_arg(descriptor, function(arg, index)
        if arg.kind == "out" or (index and not inputs[arg.name] and arg.required) then
            return
        end
        local wrong = print
        local changed = setmetatable({ [arg.name] = wrong }, { __index = sample.params })
        local changed_inputs = setmetatable({ [arg.name] = wrong }, { __index = inputs })
        local message, failure = helper.failure(call, descriptor,
            { inputs = sample.inputs, params = changed }, changed_inputs, "host")
        assert.equal("argument", failure.code, message)
        assert.equal(arg.name, failure.arg, message)
        assert.truthy(message:find("must be", 1, true), message)
    end)
    release_all(inputs)
end

-- The budget that the estimate, a dry run and a refusal name suffices; one unit less does not.
local function check_budget(descriptor, sample, device)
    local inputs = make_inputs(descriptor, sample, device)
    mb.collect()
    local handle = mb.device(device)
    local original, live = handle:budget(), mb.pool.stats(device).live
    local known = estimate(descriptor, sample, inputs, device)
    local function run()
        release_results(call(descriptor, sample, inputs, device), inputs)
    end
    assert.equal(live + known.peak, math.max(live, mb.dry_run(run).peak), "peak of the dry run")
    handle:budget(live + known.peak)
    local ok, err = pcall(run)
    local refused, refusal = false, nil
    if known.peak > 0 then
        handle:budget(live + known.peak - 512)
        refused, refusal = pcall(run)
    end
    handle:budget(original)
    release_all(inputs)
    assert.is_true(ok, tostring(err))
    if known.peak > 0 then
        assert.is_false(refused, "one unit less was enough")
        assert.equal("budget", refusal.code)
        assert.equal(descriptor.name, refusal.op)
        assert.equal(live + known.peak, refusal.enough, tostring(refusal))
        assert.equal(live, refusal.live)
    end
end

-- The n-th allocation fails, for every n: the error says so and nothing stays.
local function check_failures(descriptor, sample, device)
    local inputs = make_inputs(descriptor, sample, device)
    mb.collect()
    local before = mb.pool.stats(device)
    local results = call(descriptor, sample, inputs, device)
    local allocs = mb.pool.stats(device).allocs - before.allocs
    release_results(results, inputs)
    mb.collect()
    for n = 1, allocs do
        mb.debug.fail_nth(n, device)
        local ok, err = pcall(call, descriptor, sample, inputs, device)
        mb.debug.fail_nth(0, device)
        assert.is_false(ok, "allocation " .. n .. " was made to fail, but the call did not")
        assert.equal("memory", err.code)
        mb.collect()
        assert.equal(before.live, mb.pool.stats(device).live)
        assert.is_nil(mb.pool.check(device))
    end
    release_all(inputs)
end

-- Axes of the first array of the sample that has most.
local function most_axes(samples)
    local most = 0
    for _, sample in ipairs(samples) do
        local first = sample.inputs[1]
        for _, spec in pairs(first and {} or sample.inputs) do
            first = spec
        end
        most = math.max(most, first and #first - 1 or 0)
    end
    return most
end

-- Elements first .. last along an axis: a view.
local function cut(array, axis, first, last)
    local ranges = {}
    for i = 1, array.rank do
        ranges[i] = i == axis and { first, last } or mb.all
    end
    return array:view(table.unpack(ranges))
end

-- ---- pieces ----

-- The arrays of a call by name, or only those that are results: f(name, array, is it an input too).
local function each_result(descriptor, results, f)
    local number = 0
    for _, arg in ipairs(descriptor.args) do
        if arg.kind == "out" or arg.kind == "inout" then
            number = number + 1
            if results[number] then
                f(arg.name, results[number])
            end
        end
    end
end

-- The inputs of a piece: those that are cut as it says, the others whole.
local function cut_inputs(descriptor, inputs, piece)
    local parts = {}
    for _, arg in ipairs(descriptor.args) do
        local array, axis = inputs[arg.name], piece.arrays[arg.name]
        if array then
            local view <close> = axis and cut(array, axis, piece.first, piece.last) or array:view()
            local dense = descriptor.strides ~= "any" or arg.kind == "inout"
            parts[arg.name] = dense and view:copy() or view:view()
        end
    end
    return parts
end

local JOIN = {
    sum = function(a, b) return (a or 0) + b end,
    min = function(a, b) return (not a or b < a or b ~= b) and b or a end,
    max = function(a, b) return (not a or b > a or b ~= b) and b or a end,
}

-- Rows low to high of the result: a piece by itself. The results that it has a part of must be that
-- part, to the bit; the others are joined in `joined`. Returns the bytes that were compared.
local function compare_piece(descriptor, device, piece, low, high, inputs, whole, joined)
    local bytes = 0
    local parts = cut_inputs(descriptor, inputs, piece)
    local results = call(descriptor, { params = piece.params }, parts, device)
    each_result(descriptor, results, function(name, result)
        local axis = piece.arrays[name]
        if axis then
            local got <close> = cut(result, axis, piece.skip + 1, piece.skip + high - low + 1)
            local expected <close> = cut(whole[name], axis, low, high)
            local text = expected:to_string()
            if text ~= got:to_string() then
                helper.assert_close(expected, got, 0, ("%s, axis %d, rows %d to %d"):format(name,
                    piece.axis, low, high))
                error(("%s, rows %d to %d: zeros or NaN differ"):format(name, low, high))
            end
            bytes = bytes + #text
        else
            local join, sums = JOIN[piece.combine], joined[name] or {}
            assert.truthy(join, name .. " lacks the axis and is not combined")
            for i, value in ipairs(helper.flatten { result:to_table() }) do
                sums[i] = join(sums[i], value)
            end
            joined[name] = sums
        end
    end)
    release_results(results, parts)
    release_all(parts)
    return bytes
end

-- All pieces of `size` rows along an axis, and what their other results come to. Returns how many
-- pieces there were, and the bytes that were compared.
local function compare_pieces(descriptor, sample, device, split, size, inputs, whole)
    local pieces, bytes, joined = 0, 0, {}
    for low = 1, split.rows, size do
        local high = math.min(low + size - 1, split.rows)
        local piece = mb.op.piece(descriptor.name, inputs, sample.params,
            { axis = split.axis, first = low, last = high, device = device })
        bytes = bytes + compare_piece(descriptor, device, piece, low, high, inputs, whole, joined)
        pieces = pieces + 1
    end
    for name, values in pairs(joined) do
        assert.same(helper.flatten { whole[name]:to_table() }, values, name .. " combined")
    end
    return pieces, bytes
end

local PACKETS = { 1, 2, 7 } -- of a piece

-- What must be compared along an axis: pieces, and bytes of the results that have the axis.
local function expected_of(split, whole)
    local pieces, bytes = 0, 0
    for _, packets in ipairs(PACKETS) do
        local size = packets * split.packet
        pieces = pieces + (split.rows + size - 1) // size
        for name, array in pairs(whole) do
            bytes = bytes + (split.arrays[name] and array.bytes or 0)
        end
    end
    return pieces, bytes
end

-- Pieces of whole packets along every axis that may be cut give the whole result, to the bit.
-- proper[axis]: how many pieces were smaller than the whole; the others prove nothing.
local function check_pieces(descriptor, sample, device, proper)
    local inputs = make_inputs(descriptor, sample, device)
    local splits = estimate(descriptor, sample, inputs, device).split
    local changed = copies_of(inputs)
    local results = call(descriptor, sample, changed, device)
    local whole = {}
    each_result(descriptor, results, function(name, result)
        whole[name] = result
    end)
    for _, split in ipairs(splits) do
        local pieces, bytes = 0, 0
        for _, packets in ipairs(PACKETS) do
            local size = packets * split.packet
            local some, compared = compare_pieces(descriptor, sample, device, split, size, inputs,
                whole)
            pieces, bytes = pieces + some, bytes + compared
            proper[split.axis] = (proper[split.axis] or 0) + (some > 1 and some or 0)
        end
        local all_pieces, all_bytes = expected_of(split, whole)
        assert.equal(all_pieces, pieces, "pieces along axis " .. split.axis)
        assert.equal(all_bytes, bytes, "bytes compared along axis " .. split.axis)
    end
    release_results(results, changed)
    release_all(changed)
    release_all(inputs)
end

local function check_against_host(descriptor, sample)
    local values = {}
    for _, device in ipairs { "host", "cuda:0" } do
        local inputs = make_inputs(descriptor, sample, device)
        local results = call(descriptor, sample, inputs, device)
        values[device] = result_values(results)
        release_results(results, inputs)
        release_all(inputs)
    end
    for i, expected in ipairs(values.host) do
        helper.assert_close(expected, values["cuda:0"][i], descriptor.tolerance, "result " .. i)
    end
end

-- Tests on a GPU, which an operator without a CUDA kernel has not: shown as skipped.
local function gpu_test(descriptor)
    return not descriptor.host_only and helper.gpu_it or function(name)
        it(name .. " #gpu", function()
            helper.skip(descriptor.name .. " runs on the host alone: it has no CUDA kernel")
        end)
    end
end

local function each_device(descriptor, f)
    f("host", it)
    f("cuda:0", gpu_test(descriptor))
end

local function check_operator(name)
    local descriptor = mb.op.describe(name)
    local samples = load_samples(descriptor)

    describe("operator " .. name, function()
        it("is documented", function()
            check_documented(descriptor)
        end)

        it("has clear messages", function()
            check_messages(descriptor, samples[1])
        end)

        for number, sample in ipairs(samples) do
            each_device(descriptor, function(device, test)
                local where = (" (sample %d, %s)"):format(number, device:match("^%a+"))
                test("takes the memory it estimates" .. where, function()
                    check_run(descriptor, sample, device)
                end)
                test("writes to given results" .. where, function()
                    check_out(descriptor, sample, device)
                end)
                test("treats strides as declared" .. where, function()
                    check_strides(descriptor, sample, device)
                end)
                test("writes to strided results as declared" .. where, function()
                    check_strided_results(descriptor, sample, device)
                end)
                test("runs in the least budget that it names" .. where, function()
                    check_budget(descriptor, sample, device)
                end)
                test("survives failing allocations" .. where, function()
                    check_failures(descriptor, sample, device)
                end)
            end)
            gpu_test(descriptor)(("is the same on the GPU (sample %d)"):format(number), function()
                check_against_host(descriptor, sample)
            end)
        end

        each_device(descriptor, function(device, test)
            test(("is the same in pieces (%s)"):format(device:match("^%a+")), function()
                local proper = {}
                for _, sample in ipairs(samples) do
                    check_pieces(descriptor, sample, device, proper)
                end
                -- Each of the first three axes that may be cut is cut in some sample, up to the
                -- axes that one has, less the last where there is a condition.
                for _, split in ipairs(descriptor.split) do
                    local most = most_axes(samples) - (split.when and split.axis > 1 and 1 or 0)
                    most = math.min(most, 3)
                    local here = device == "host"
                        or not (split.when and split.when:find("on the host", 1, true))
                    assert.is_true((proper[split.axis] or 0) > 0 or split.axis > most or not here,
                        ("no sample is cut along axis %d; add one that is"):format(split.axis))
                end
                assert.equal(#descriptor.split == 0, descriptor.uncut ~= nil,
                    "an operator that cannot be cut says why in `uncut`, and no other does")
            end)
        end)
    end)
end

local conformance = {}

-- The operators of a category.
function conformance.check(category)
    for _, name in ipairs(mb.op.list()) do
        if mb.op.describe(name).category == category then
            check_operator(name)
        end
    end
end

return conformance
