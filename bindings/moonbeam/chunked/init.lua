--- Applies an operator or a function to arrays, HDF5 datasets and scans in blocks that fit a
-- budget.
--
-- The inputs are cut along an axis, with the neighbors that the work needs. While the device
-- computes a block, threads read the next one and write the previous one. A block has as many rows
-- as fit the budget. Its memory is planned before anything is read, and the run takes exactly that.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local block_ranks = require "moonbeam.chunked.block_ranks"
local budgets = require "moonbeam.plan.budget"
local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local cut = require "moonbeam.chunked.cut"
local deals = require "moonbeam.plan.deals"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local in_a_row = require "moonbeam.plan.in_a_row"
local inputs_of = require "moonbeam.chunked.inputs"
local memory = require "moonbeam.plan.peak"
local on_error = require "moonbeam.internal.on_error"
local own_function = require "moonbeam.plan.own_function"
local promise = require "moonbeam.plan.promise"
local secure = require "moonbeam.plan.secure"
local sinks = require "moonbeam.chunked.sinks"
local stream = require "moonbeam.stream"
local tables = require "moonbeam.internal.tables"
local whole_call = require "moonbeam.internal.whole"

local chunked = {}

local OP <const> = "chunked"

local OPTIONS = declared.options(
    {"axis", "count", "the axis along which the inputs are cut", min = 1, max = 3,
        usual = "1; for a scan 2, its rows"},
    {"params", "table", "the parameters of an operator, by name"},
    {"needs", "callable", "for a function: needs(first, last) returns the first and the last row "
        .. "of input for these rows of the result; it may exceed the ends of the inputs",
        usual = "the same rows"},
    {"halo", "any", "for a function: rows of input that are needed before and after those of the "
        .. "result, a number or {before, after}", default = 0},
    {"packet", "count", "rows that are treated together: blocks are whole packets", min = 1,
        default = 1},
    {"rows", "count", "for a function: rows of the result", min = 1,
        usual = "as many as the inputs have"},
    {"result_axis", "count", "for a function: the axis of the result that has these rows", min = 1,
        max = 3, usual = "axis"},
    {"whole", "table", "names or numbers of inputs that are not cut"},
    {"combine", "choice", "how the results of blocks become one, of the same shape",
        choices = {"sum", "min", "max"}, usual = "they are rows of the result"},
    {"devices", "any", "devices that share the blocks: a list, or names such as \"all\" or "
        .. "\"cuda:0,cuda:1\" (mb.device.several)", usual = "the default device"},
    {"schedule", "choice", "how several devices share the blocks: the next block goes to the "
        .. "device that is free, or block i to device i mod n. What is combined, or goes to a "
        .. "function, is fixed", choices = {"free", "fixed"}, default = "free"},
    {"ranks", "boolean", "all ranks of the run (mb.cluster) make this call and share the blocks: "
        .. "what is combined all of them get, and a function as sink gets the blocks of its rank",
        default = false},
    {"budget", "bytes", "the limit for the blocks on each device", unit = "bytes",
        usual = "what the device's budget leaves"},
    {"block", "count", "rows of a block", min = 1, usual = "the most that fit the budget"},
    {"overlap", "boolean", "read and write while computing, which takes a second set of blocks",
        usual = "true if one packet fits that way"},
    {"pinned", "bytes", "pinned memory for reading and writing", unit = "bytes",
        default = stream.PINNED},
    {"threads", "count", "threads that read, and as many that write", min = 1, max = 64},
    {"sink", "any", "where the result goes: an array on the host, an HDF5 dataset, a result "
        .. "(mb.result) or a function(block, first, last)", usual = "a new array on the host"})

-- ---- the job ----

local function devices_of(options)
    return mb.device.several(options.devices or {core.device.default()})
end

-- Inputs that are cut must have the same number of rows.
local function check_rows(given, axis)
    local first
    for _, source in ipairs(given.list) do
        if not source.uncut then
            local rows = source.shape[source.axis or axis]
            first = first or source
            if not rows then
                fail("argument", OP, "axis", "axis is %d; %s has %s", axis, source.name,
                    counted(#source.shape, "axis", "axes"))
            elseif rows ~= first.shape[first.axis or axis] then
                fail("shape", OP, source.name, "%s has %d rows along axis %d, but %s has %d: name "
                    .. "it in whole if every block needs all of it", source.name, rows, axis,
                    first.name, first.shape[first.axis or axis])
            end
        end
    end
    if not first then
        fail("argument", OP, "whole", "all inputs are whole: there is nothing to cut")
    end
    return first.shape[first.axis or axis]
end

local function job_of(fn, given_inputs, options)
    local given = inputs_of.all(given_inputs, options.whole)
    local axis = options.axis or given.list[1].is_scan and 2 or 1
    local settings = setmetatable({axis = axis}, {__index = options})
    local devices, name = devices_of(options), cut.operator_name(fn)
    local how
    if name then
        how = cut.of_operator(name, given, settings, devices[1])
    elseif type(fn) == "function" or not arguments.is_array(fn)
        and (getmetatable(fn) or {}).__call then
        how = cut.of_function(fn, settings)
    else
        fail("argument", OP, "fn", "fn is a %s; give an operator's name or a function", type(fn))
    end
    local input_rows = check_rows(given, axis)
    return {given = given, axis = axis, devices = devices, options = options, how = how,
        input_rows = input_rows, rows = how.rows or input_rows}
end

-- The block of rows first to last of the result, and the rows of input that it needs.
local function block_of(job, first, last)
    local low, high = job.how.needs(first, last)
    low, high = math.max(1, low), math.min(job.input_rows, high)
    if low > high then
        fail("argument", OP, "needs", "rows %d to %d of the result need rows of input that do "
            .. "not exist; the inputs have %d", first, last, job.input_rows)
    end
    return {first = first, last = last, input = {low, high}, rows = job.rows}
end

local function blocks_of(job, count)
    local list = {}
    for first = 1, job.rows, count do
        list[#list + 1] = block_of(job, first, math.min(first + count - 1, job.rows))
    end
    return list
end

-- The number of blocks that are planned in the search for their size: the first, some in the middle
-- and the last, because at most three are on a device at a time. The final plan has all blocks.
local SOME <const> = 6

local function some_blocks(job, count)
    local blocks = (job.rows + count - 1) // count
    if blocks <= 4 * SOME or job.every then
        return blocks_of(job, count)
    end
    local list = {}
    for _, from in ipairs {0, blocks // 2, blocks - SOME} do
        for i = from, from + SOME - 1 do
            list[#list + 1] = block_of(job, i * count + 1, math.min((i + 1) * count, job.rows))
        end
    end
    return list
end

-- ---- one block ----

-- Arrays by key that are released together.
local group = {}
group.__index = group
function group:release()
    for _, value in pairs(self.values) do
        value:release()
    end
end
group.__close = group.release

local function new_group()
    return setmetatable({values = {}}, group)
end

-- What stays on a device for all blocks: inputs that are not cut, and data that blocks share.
local function hold(job, device)
    local held = new_group()
    local _ <close> = on_error(function() held:release() end)
    for _, source in ipairs(job.given.list) do
        held.values[source.key] = source.uncut and source:whole(device)
            or source.hold and source:hold(job.axis, device) or nil
    end
    return held
end

local function read(job, block, device, carrier, held)
    local frames = new_group()
    local _ <close> = on_error(function() frames:release() end)
    for _, source in ipairs(job.given.list) do
        local shared = held.values[source.key]
        frames.values[source.key] = source.uncut and shared:view(core.array.all)
            or source:read(source.axis or job.axis, block.input[1], block.input[2], device,
                carrier, shared)
    end
    return frames
end

-- The block's rows of the result that the work has returned: a dense array on the device, and what
-- must be released with it.
local function trimmed(job, block, result)
    local axis, shape = job.how.result_axis, result.shape
    local asked, have = block.last - block.first + 1, block.input[2] - block.input[1] + 1
    local rows, skip = shape[axis], block.first - block.input[1]
    if job.how.skip then
        skip = job.how.skip(block)
    end
    if rows == asked then
        return result
    elseif rows ~= have and not job.how.skip then
        fail("shape", OP, "fn", "the result of %s has %s rows along axis %d for rows %d to %d; it "
            .. "must have these %d, or one for each of the %d rows of its block",
            own_function.named(job.how.call), tostring(rows), axis, block.first, block.last, asked,
            have)
    end
    local ranges = {}
    for i = 1, #shape do
        ranges[i] = i == axis and {skip + 1, skip + asked} or core.array.all
    end
    local own = result:view(table.unpack(ranges))
    if own.contiguous then
        return own, result
    end
    local whole <close>, view = result, own -- luacheck: ignore
    local _ <close> = view
    return view:copy()
end

-- The result of a block that is written, and what is released afterwards.
local slices_metatable = {__index = {release = function(slices)
    slices.array:release()
    if slices.parent then
        slices.parent:release()
    end
end}}

-- What the function of a job returns for a block.
local function called(job, values, part)
    local _ <close> = mb.pool.tag(own_function.TAG)
    return table.pack(own_function.call(OP, job.how.call, values, part))
end

-- Raises an error where the result of a block is no part of the result that is planned.
local function check_result(job, block, array)
    local known = job.known
    if not known then
        return
    end
    local expected, found = {table.unpack(known.shape)}, table.concat(array.shape, " x ")
    if known.combine == "none" then
        expected[known.axis] = array.shape[known.axis] or 1
    end
    local text = table.concat(expected, " x ")
    if found ~= text or array.dtype ~= known.dtype then
        fail("shape", OP, "fn", "%s returns %s %s for rows %d to %d; it must return %s %s, as it "
            .. "did for the first rows", own_function.named(job.how.call), array.dtype, found,
            block.first, block.last, known.dtype, text)
    end
end

-- The work on a block: calls it, releases its inputs and all results but the first.
local function compute(job, frames, block, device)
    local _ <close> = frames
    local values = frames.values
    local results
    if job.how.shape then
        results = table.pack(job.how.call(values, block))
    else
        results = called(job, job.given.single and values[1] or values,
            {first = block.first, last = block.last, input = block.input, rows = block.rows,
                device = device})
    end
    for i = 2, results.n do
        if arguments.is_array(results[i]) then
            results[i]:release()
        end
    end
    local result = results[1]
    if not arguments.is_array(result) then
        fail("argument", OP, "fn", "%s returns %s; it must return an array%s",
            own_function.named(job.how.call), result == nil and "nothing"
            or arguments.described(result), result == nil and ": is a 'return' missing?" or "")
    end
    if result.released then
        fail("argument", OP, "fn", "%s returns an array that it has released; it must leave that "
            .. "to mb.chunked", own_function.named(job.how.call))
    end
    for key, value in pairs(values) do -- an input changed in place is the result
        if value == result then
            values[key] = nil
        elseif not arguments.is_array(value) and value.data == result then
            value.data = nil
        end
    end
    local _ <close> = on_error(function() result:release() end)
    if result.device ~= device then
        fail("device", OP, "fn", "the result of %s is on %s, but its block is on %s; it must be "
            .. "there", own_function.named(job.how.call), result.device.id, device.id)
    end
    if not job.how.shape then
        check_result(job, block, result)
    end
    if job.how.combine ~= "none" then
        return setmetatable({array = result}, slices_metatable)
    end
    local array, parent = trimmed(job, block, result)
    if not array.contiguous then
        local sparse <close> = array
        array = sparse:copy()
    end
    return setmetatable({array = array, parent = parent}, slices_metatable)
end

-- ---- all blocks ----

-- The host arrays that blocks are read from, if nothing else is read.
local function source_arrays(job)
    local arrays = {}
    for _, source in ipairs(job.given.list) do
        if not source.uncut and not source.host then
            return nil
        end
        arrays[#arrays + 1] = not source.uncut and source.host or nil
    end
    return arrays
end

-- Do the devices take the next block when they are free? What is combined, or goes to a function,
-- comes in the order of the blocks.
local function is_free(job)
    return #job.devices > 1 and job.streams and job.options.schedule == "free"
end

-- What stream.run is told of the work.
local function stream_options(job)
    local options = job.options
    return {threads = options.threads, pinned = options.pinned,
        writes = job.streams, files = job.files,
        schedule = is_free(job) and "free" or "fixed",
        tallies = #job.devices > 1 and not job.streams and 1 or nil, -- on one device alone, too
        source = source_arrays(job), sink = job.sink_array}
end

-- Works on blocks, both run and planned. Without a `sink` nothing is written. `lists`: the blocks
-- of each device, if they are known.
local function work(job, devices, blocks, overlap, sink, lists)
    local held <close> = new_group()
    for _, device in ipairs(devices) do
        held.values[device.id] = hold(job, device)
    end
    return stream.run(devices, blocks, {
        read = function(block, carrier, device)
            return read(job, block, device, carrier, held.values[device.id])
        end,
        compute = function(frames, block, device)
            return compute(job, frames, block, device)
        end,
        prepare = function(block)
            if sink and sink.prepare then
                sink:prepare(block.first, block.last)
            end
        end,
        write = function(slices, block, carrier)
            if sink then
                sink:write(slices.array, block.first, block.last, carrier)
            end
        end,
    }, tables.merged(stream_options(job), {overlap = overlap, lists = lists}))
end

-- The same in a dry run. Partial results are combined as in the run; other results are not kept.
local function plan_work(job, devices, blocks, overlap, lists)
    local sink = job.how.combine ~= "none" and sinks.of(nil, {combine = job.how.combine}) or nil
    if sink and job.shared then
        sink = block_ranks.kept(job.known, math.min(3, job.count or job.rows // job.how.packet))
    end
    work(job, devices, blocks, overlap, sink, lists)
    if sink and job.shared then
        sink:settle()
    end
    if sink then
        sink:drop()
    end
end

-- ---- planning ----

-- Shape and dtype of the whole result; for a function, from a dry run of one block.
local function result_of(job)
    local how = job.how
    local known = {axis = how.result_axis, combine = how.combine, shape = how.shape,
        dtype = how.dtype}
    if known.shape then
        return known
    end
    local block = block_of(job, 1, math.min(how.packet, job.rows))
    local device = job.devices[1]
    local made = memory.peak(function(planned)
        local held <close> = hold(job, planned)
        local carrier <close> = core.carrier.open {device = planned, threads = 1, pinned = 0}
        local slices = compute(job, read(job, block, planned, carrier, held), block, planned)
        local shape, dtype = slices.array.shape, slices.array.dtype
        slices:release()
        return {shape = table.move(shape, 1, #shape, 1, {}), dtype = dtype}
    end, device)
    known.shape, known.dtype = made.results[1].shape, made.results[1].dtype
    if known.combine == "none" then
        known.shape[known.axis] = job.rows
    end
    return known
end

-- The bytes that the budget of a device leaves for blocks. `all`: also where other programs have
-- taken memory since.
local function left_on(job, device, all)
    local left = all and budgets.ceiling(device) - core.pool.stats(device).live
        or budgets.available(device)
    return job.reserved and device.kind == "host"
        and math.max(0, left - core.pool.round(job.reserved)) or left
end

-- The bytes for blocks by the ids of devices: what the budgets leave (`all`: left_on).
local function available_of(job, all)
    local available, given = {}, job.options.budget and core.device.bytes(job.options.budget)
    for _, device in ipairs(job.devices) do
        local left = left_on(job, device, all)
        available[device.id] = math.min(given or left, left)
    end
    return available
end

-- The most rows of a block that fit on a device. `whole`: with the holes between the arrays, so
-- that all of it can be committed before the first block.
local function most_rows(job, device, overlap, whole)
    local packet, most = job.how.packet, job.most or job.rows
    local budget = core.pool.stats(device).budget
    return memory.max_count(function(planned, n)
        plan_work(job, {planned}, some_blocks(job, n), overlap)
        local stats = core.pool.stats(planned)
        if whole and stats.reach_arrays + stats.reach_scratch > budget then
            fail("budget", OP, nil, "the holes between the arrays do not fit")
        end
    end, {device = device, available = job.available[device.id], granularity = packet,
        limit = (most + packet - 1) // packet * packet})
end

-- Raises the error that not even one packet fits, or that the blocks that were asked for do not. It
-- says what they take.
local function too_small(job, device, plan)
    local fixed = job.options.block
    local rows, overlap = fixed or job.how.packet, job.options.overlap or false
    overlap = fixed and plan.overlap or overlap
    local least = fixed and plan.peak[device.id] or memory.peak(function(planned)
        plan_work(job, {planned}, some_blocks(job, rows), overlap)
    end, device).peak
    local given = job.options.budget and core.device.bytes(job.options.budget)
    local problem = ("blocks of %s along axis %d take %d bytes on %s %s overlap, but %s are "
        .. "available"):format(counted(rows, "row"), job.axis, least, device.id,
        overlap and "with" or "without", given and ("%d"):format(given) or "fewer")
    local also = fixed and ", or smaller blocks" or ", or cut along another axis"
    local err = core.error.new("budget", ("%s: give that many%s"):format(problem, also),
        {op = OP, arg = "budget"})
    err.problem, err.also, err.device = problem, also, device.id
    err.limited_by = given and given <= left_on(job, device) and "budget" or nil
    err.enough = least + (err.limited_by and 0 or core.pool.stats(device).live)
    error(err, 0)
end

-- Sets the rows of a block and whether reading and writing overlap. Returns whether there are any,
-- and the device that has no room for them.
local function choose(job, plan)
    local options, tight = job.options, nil
    local fixed = not job.most and options.block
    for _, whole in ipairs {true, false} do
        for _, overlap in ipairs(options.overlap == nil and {true, false} or {options.overlap}) do
            local least = fixed or math.huge
            for _, device in ipairs(fixed and {} or job.devices) do
                least = math.min(least, (most_rows(job, device, overlap, whole)))
                if least == 0 then
                    tight = device
                    break
                end
            end
            plan.overlap, plan.block = overlap, least
            if least > 0 then
                return true
            end
        end
    end
    return false, tight
end

local function plan_of(job)
    local plan = {rows = job.rows, packet = job.how.packet, axis = job.axis,
        result = result_of(job), devices = job.devices}
    job.streams = plan.result.combine == "none" and type(job.options.sink) ~= "function"
    job.known, job.shared = plan.result, block_ranks.shared(job.options, plan.result.combine)
    if plan.result.combine == "none" and job.options.sink == nil then
        plan.sink_bytes = core.pool.element_bytes(plan.result.dtype)
            * tables.product(plan.result.shape)
    end
    return plan
end

-- The rows of a block's input and of its result, which decide what it takes.
local function rows_of(block)
    return {block.input[2] - block.input[1] + 1, block.last - block.first + 1}
end

-- What a run of all blocks takes now (plan.peaks). If the devices take them when they are free:
-- what dealt(blocks, rows_of, count) says that they may get.
local function run_of(job, plan, dealt)
    local blocks = blocks_of(job, plan.block)
    local lists_of = is_free(job) and dealt(blocks, rows_of, #job.devices) or {false}
    return memory.peaks(function(...)
        for _, lists in ipairs(lists_of) do
            plan_work(job, {...}, blocks, plan.overlap, lists or nil)
        end
    end, job.devices)
end

-- What the blocks take that the devices have got, by device; nil if the plan knows that.
local function replayed(job, plan, times)
    if not is_free(job) and not job.shared and not deals.lost(times) then
        return nil
    end
    local lists, devices = deals.of(times, nil, job.shared)
    return memory.peaks(function(...)
        plan_work(job, {...}, {}, plan.overlap, lists)
    end, devices).peak
end

-- Measures what all blocks take. Returns nil where that is within the budgets, or the device where
-- it is not: blocks that the search has skipped may need more rows than the blocks that it has
-- planned, and none are looked for where the option block says how many rows they have. If other
-- programs have taken the memory of those, they are planned, and made smaller before the first one.
local function beyond(job, plan)
    local available = job.options.block and not job.most and available_of(job, true)
        or job.available
    local made = run_of(job, plan, deals.most)
    plan.blocks = #blocks_of(job, plan.block)
    plan.kept_bytes = job.shared and plan.result.combine ~= "none"
        and block_ranks.kept_bytes(plan.result, plan.blocks) or nil
    plan.peak, plan.basis = made.peak, made.basis
    plan.pinned, plan.peak.pinned = made.peak.pinned, nil
    for _, device in ipairs(job.devices) do
        if plan.peak[device.id] > available[device.id] then
            return device
        end
    end
end

-- Sets the blocks of a plan, for `available` bytes by the ids of devices, and what they take.
-- Returns whether they fit, and the device that has no room for them.
local function fit(job, plan, available)
    job.available = available
    local fits, tight = choose(job, plan)
    local short = fits and beyond(job, plan)
    if short and job.options.block and not job.most then
        return false, short
    elseif short then
        job.every = true
        fits, tight = choose(job, plan)
        if fits then
            beyond(job, plan)
        end
    end
    return fits, tight
end

-- Completes a plan when the sink exists.
local function complete(job, plan)
    local packet = plan.packet
    if job.options.block and job.options.block % packet ~= 0 then
        fail("argument", OP, "block", "block is %d rows; it must be a multiple of the packet, %d",
            job.options.block, packet)
    end
    budgets.fit(job.devices, stream.pinned_bytes(job.devices, stream_options(job)), 0,
        job.options.threads and 2 * job.options.threads)
    local fits, tight = fit(job, plan, available_of(job))
    if not fits then
        too_small(job, tight, plan)
    end
    local left = budgets.available(mb.device "host")
    if (plan.kept_bytes or 0) > left then
        fail("budget", OP, "ranks", "this rank keeps the results of its blocks until all ranks are "
            .. "over, %d bytes, and the host has %d: give larger blocks, or more ranks",
            plan.kept_bytes, left)
    end
    return plan
end

--- What `mb.chunked` will take with these arguments. Reads and computes nothing.
--
-- Returns {block (rows), blocks, packet, overlap, peak = bytes by device id, the host included,
-- pinned, result = {shape, dtype, axis}, sink_bytes (of the new array for the result if there is no
-- sink), kept_bytes (of the results of blocks that a rank keeps beside the pools until all ranks
-- are over), basis (the source of a planned device's figures)}.
-- Errors: those of mb.chunked.
chunked.plan = declared("chunked.plan", {
    {"fn", "any", "an operator, or a function of a block"},
    {"inputs", "any", "the arrays, datasets and scans that it is applied to"},
    options = OPTIONS,
}, function(fn, inputs, options)
    local job = job_of(fn, inputs, options)
    local plan = plan_of(job)
    -- The array for the result does not exist yet: another stands in, and the rest of its bytes is
    -- kept free.
    local stand_in <close> = plan.sink_bytes and core.array.empty({1}, {device = "host"}) or nil
    local sink = plan.sink_bytes and {array = stand_in} or sinks.of(options.sink, plan.result)
    job.sink_array, job.files = sink.array, sink.files
    job.reserved = plan.sink_bytes and core.pool.round(plan.sink_bytes) - core.pool.round(1)
    return complete(job, plan)
end)

-- ---- running ----

-- A plan in smaller blocks, which takes no more than these bytes, or nil.
local function smaller(job, plan, available)
    local again, limits = setmetatable({}, {__index = plan}), available_of(job)
    for id, bytes in pairs(available) do
        limits[id] = math.min(limits[id] or bytes, bytes)
    end
    job.most = plan.block
    if not fit(job, again, limits) then
        return nil
    end
    for id, bytes in pairs(available) do
        if again.peak[id] > bytes then
            return nil
        end
    end
    for key, value in pairs(plan) do
        again[key] = rawget(again, key) == nil and value or again[key]
    end
    return setmetatable(again, nil)
end

-- Commits the memory of a plan. Returns the plan that is committed, and the report.
local function commit(job, plan)
    local _ <close> = in_a_row() -- what is garbage does not count
    local own, committed, reason, changes = secure.commit({devices = job.devices, op = OP,
        what = "the work in blocks", reach = function(each)
            return run_of(job, each, deals.all).reach
        end, peaks = function(each)
            return each.peak
        end, smaller = function(each, available)
            return smaller(job, each, available)
        end}, plan)
    return own, {plan = own, committed = committed, budgets = changes,
        replanned = reason and {from = plan.block, to = own.block, reason = reason,
            text = ("blocks have %d rows, not %d, because the memory for these was refused: %s"
                ):format(own.block, plan.block, reason)}}
end

-- Plans blocks with which all ranks can work.
local function share(job, plan)
    local least = block_ranks.least(plan.block)
    if least < plan.block then
        job.options = setmetatable({block = least}, {__index = job.options})
        complete(job, plan)
    end
end

-- What the function keeps, as texts: an error in specs, and a warning otherwise.
local function tell_kept(fn, kept)
    return tables.mapped(kept, function(each)
        local text = ("%s %s: let it release what it makes"):format(own_function.named(fn),
            each.text)
        if os.getenv "MOONBEAM_STRICT" then
            fail("argument", OP, "fn", "%s", text)
        end
        io.stderr:write("WARNING: chunked: ", text, "\n")
        return text
    end)
end

local function run(fn, inputs, options)
    local _ <close> = on_error(core.garbage.collect) -- what fn has made when it failed
    local job = job_of(fn, inputs, options)
    local plan = plan_of(job)
    local sink = sinks.of(options.sink, plan.result)
    local undone <close> = on_error(function() -- luacheck: ignore
        if sink.drop then
            sink:drop()
        end
    end)
    job.sink_array, job.files = sink.array, sink.files
    complete(job, plan)
    budgets.admit("the work in blocks", budgets.taken(job.devices, plan.peak), plan.pinned,
        plan.kept_bytes)
    if job.shared then
        share(job, plan)
    end
    local first = job.given.list[1]
    local decoded <close> = first.prepare and first:prepare(job.axis, -- luacheck: ignore
        blocks_of(job, plan.block))
    local report
    plan, report = commit(job, plan)
    local blocks = blocks_of(job, plan.block)
    if job.shared then
        block_ranks.agree(plan.block)
        sink = plan.result.combine ~= "none" and block_ranks.kept(plan.result, #blocks) or sink
        job.count, blocks = #blocks, block_ranks.share(blocks)
    end
    local call, others = promise.others(job.devices)
    if type(options.sink) == "function" then
        local write = sink.write
        function sink.write(...)
            call(write, ...)
        end
    end
    local kept = not job.how.shape and own_function.watch({[own_function.TAG] = true}, job.devices)
    report.peak = promise.measured(job.devices, function()
        report.times = work(job, job.devices, blocks, plan.overlap, sink)
        if sink.settle then
            sink:settle()
        end
    end)
    report.pinned, report.seconds = report.times.pinned, report.times.wall
    report.kept = kept and tell_kept(fn, kept()) or {}
    report.replayed = replayed(job, plan, report.times)
    report.as_planned = promise.compare("the work in blocks", plan, report, others)
    report.kept_bytes = plan.kept_bytes and sink.bytes
    if plan.kept_bytes then
        report.as_planned = promise.check_bytes("the results that a rank keeps", sink.bytes,
            plan.kept_bytes) and report.as_planned
    end
    return sink.value, report
end

--- Applies an operator, or a function of a block, to arrays, HDF5 datasets and scans in blocks that
-- fit a budget.
--
-- fn is an operator's name ("median") or the operator (mb.median), or a function(block, part) that
-- returns an array: rows part.first to part.last of the result, or one row for each row of its
-- block, rows part.input[1] to part.input[2] of the inputs; then only the requested rows are kept.
-- The function runs operators on block.device. inputs is an array, a dataset, a scan, or a table of
-- these; for a table, the function gets a table with the same keys. A block of a scan is {data,
-- flats, darks, angles, rows}. Blocks are released when the function has returned.
--
-- All inputs are cut along `axis` except those that `whole` names. Beyond the ends of the inputs
-- there are no neighbors, so the function's own rule for edges applies.
-- Returns the result (the sink, or nil if the sink is a function) and a report: {peak = bytes by
-- device id, pinned, seconds, times (see stream.describe), plan (see chunked.plan), as_planned,
-- committed (whether all memory was committed before the first block), replanned (nil, or {from,
-- to, reason, text}: the blocks are smaller, because memory was refused before the first one),
-- budgets (those that have changed, because of other programs: {{device, from, to, text}}),
-- replayed, kept (texts on arrays that fn has made and keeps)}. A peak that differs from the plan,
-- or an array that is kept, is an error in specs and a prominent warning otherwise; what a function
-- as sink takes is added to the plan. If several devices take the next
-- block when they are free, the plan is a bound, and the peak is what a dry run of the blocks that
-- each device got takes (replayed, by device id).
-- Errors: argument, shape; unsupported (an operator that cannot be cut along this axis); budget
-- (not even one packet fits); those of fn and of the files.
declared.native("chunked(fn: any, inputs: any, options)", OPTIONS)

-- A call is planned again where it did not fit. A function of a block is called in plans anyway.
local function may()
    return true
end
local whole = whole_call.call(function(fn, inputs, options)
    return run(fn, inputs, declared.checked(OPTIONS, options, OP))
end, OP, {exact = false, may = may, again = function(_, args, changes)
    return chunked.plan(args[1], args[2], tables.merged(args[3], changes))
end})

return whole_call.module(chunked, OP, nil, function(_, ...)
    return whole(...)
end, {plan = {exact = false, may = may}})
