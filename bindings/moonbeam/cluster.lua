--- The ranks of a run: processes of this program, on one node or several, that mpirun or srun has
-- started. All of them run the same script; `rank` says which one this is, from 0, of `size`.
--
-- Ranks share work by taking the next range of it when they are free (next), and combine what they
-- found in the order of the work (sum), so that results do not depend on the number of ranks. A
-- process that no launcher has started is rank 0 of 1, and everything works in the same way. `node`
-- is the name of the machine, `node_rank` and `node_size` count the ranks on it, `nodes` counts
-- machines.
--
-- next, sum, agree, once, gather and barrier are for all ranks: every rank makes the same calls in
-- the same order. An error in one rank ends all of them, with one message and one exit status.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local differing = require "moonbeam.result.differing"
local fail = require "moonbeam.internal.fail"
local records = require "moonbeam.result.records"

local cluster = core.cluster.place()

-- Seconds between two looks at what this process waits for: so soon it obeys Ctrl-C.
local LOOK <const> = 0.1

-- ---- everybody's values ----

-- The texts of a list without the names of the calls that the ranks have made. Raises where these
-- differ.
local function of_one_call(list)
    local first
    for i, text in ipairs(list) do
        local name, rest = text:match "^([%w.]+) ?(.*)$"
        first = first or name
        if name ~= first then
            fail("argument", nil, nil, "rank 0 is in %s, rank %d in %s: all ranks must make the "
                .. "same calls of mb.cluster in the same order", first, i - 1, name)
        end
        list[i] = rest
    end
    return list
end

-- The call that has begun and has not come to its end; nil: none. After an error in it the answers
-- of the others may still come.
local begun

-- The texts of all ranks, which are in the same call. `waiting()`: called now and then while some
-- are missing.
local function exchanged(name, text, waiting)
    if begun then
        fail("argument", name, nil, "a call of %s has not come to its end (an error in it was "
            .. "caught, or Ctrl-C), so that the ranks cannot go on together", begun)
    end
    begun = cluster.size > 1 and name or nil
    core.cluster.post(name .. " " .. text)
    local list = core.cluster.collect(LOOK)
    while not list do
        core.system.sleep(0) -- a stop (Ctrl-C) is raised here
        if waiting then
            waiting()
        end
        list = core.cluster.collect(LOOK)
    end
    begun = nil
    return of_one_call(list)
end

local MOST_NESTED <const> = 50 -- tables in each other

-- Raises an error where a value has what no other rank could read.
local function check_value(value, op, depth)
    local kind = type(value)
    if kind == "table" and depth == MOST_NESTED then
        fail("argument", op, "value", "value has tables that are nested more than %d deep, or that "
            .. "contain themselves; give fewer", MOST_NESTED)
    elseif kind == "table" then
        for key, element in pairs(value) do
            check_value(key, op, depth + 1)
            check_value(element, op, depth + 1)
        end
    elseif kind ~= "number" and kind ~= "string" and kind ~= "boolean" and kind ~= "nil" then
        fail("argument", op, "value", "a %s cannot go to other ranks; give numbers, strings, "
            .. "booleans, or tables of these", kind)
    end
end

-- The text of a value.
local function text_of(value, op)
    check_value(value, op, 0)
    return records.text {value or false}
end

-- How a message begins whose rest is a string itself: records of megabytes take seconds.
local RAW <const> = "="

-- What all ranks give.
local function gathered(name, value, waiting)
    local raw = type(value) == "string"
    local list = exchanged(name, raw and RAW .. value or text_of(value, name), waiting)
    for i, text in ipairs(list) do
        if text:sub(1, 1) == RAW then
            list[i] = text:sub(2)
        else
            list[i] = records.list(text)[1]
        end
    end
    return list
end

--- Gives a value to all ranks, and returns the list of the values of all ranks, in their order.
--
-- A value is a number, a string, a boolean, or a table of these; nil counts as false. `waiting` is
-- called several times a second while other ranks have not come here yet.
cluster.gather = declared("cluster.gather", {
    {"value", "any?", "this rank's value"},
    {"waiting", "callable?", "a function"},
}, function(value, waiting)
    return gathered("cluster.gather", value, waiting)
end)

--- Returns when all ranks have come here.
cluster.barrier = declared("cluster.barrier", {}, function()
    exchanged("cluster.barrier", "")
end)

--- Calls fn() on rank 0 alone, and returns there and on all other ranks what it returned: numbers,
-- strings, booleans, nil, or tables of these. For what one rank measures, and for files.
cluster.once = declared("cluster.once", {{"fn", "callable", "a function"}}, function(fn)
    if cluster.size == 1 then
        return fn()
    end
    local text = ""
    local results
    if cluster.rank == 0 then
        results = table.pack(fn())
        text = text_of(results, "cluster.once")
    end
    local given = exchanged("cluster.once", text)[1]
    results = results or records.list(given)[1]
    return table.unpack(results, 1, results.n)
end)

--- Raises the same error on all ranks if they do not have the same value. Returns the value.
--
-- `what` says in the message what the value is. Errors: argument (the ranks, with their nodes and
-- values).
cluster.agree = declared("cluster.agree", {
    {"value", "any?", "a number, a string, a boolean, or a table of these"},
    {"what", "string", "what it is, for the message"},
}, function(value, what)
    local list = gathered("cluster.agree", {value or false, cluster.node})
    local first = list[1]
    for i, other in ipairs(list) do
        if records.text {other[1]} ~= records.text {first[1]} then
            local one, two = differing(first[1], other[1])
            fail("argument", "cluster.agree", nil, "%s must be the same on all ranks: rank 0 on "
                .. "%s has %s, rank %d on %s has %s", what, first[2], one, i - 1, other[2], two)
        end
    end
    return value
end)

-- ---- sums ----

-- Adds numbers, or lists of numbers one by one.
local function added(a, b)
    if type(a) == "number" and type(b) == "number" then
        return a + b
    elseif type(a) ~= "table" or type(b) ~= "table" or #a ~= #b then
        fail("argument", "cluster.sum", "parts", "partial results must be numbers, or lists of "
            .. "numbers of one length")
    end
    local sum = {}
    for i, value in ipairs(a) do
        sum[i] = value + b[i]
    end
    return sum
end

--- Adds the partial results of all ranks in the order of their packets, and returns the sum on all
-- ranks.
--
-- `parts` has what this rank has found, by the numbers of packets: numbers, or lists of numbers.
-- Because the order is that of the packets, the sum has the same bits for any number of ranks.
-- `combine(a, b)` takes the place of adding. Returns nil if no rank has a part. Errors: argument
-- (two ranks have the same packet).
cluster.sum = declared("cluster.sum", {
    {"parts", "table", "partial results by the numbers of packets"},
    {"combine", "callable?", "a function of two partial results"},
}, function(parts, combine)
    local all, numbers = {}, {}
    for rank, own in ipairs(gathered("cluster.sum", parts)) do
        for number, part in pairs(own) do
            if math.type(number) ~= "integer" then
                fail("argument", "cluster.sum", "parts", "parts has the key %s; it must have the "
                    .. "numbers of packets", tostring(number))
            elseif all[number] ~= nil then
                fail("argument", "cluster.sum", "parts", "rank %d has a result of packet %d, which "
                    .. "another rank has, too", rank - 1, number)
            end
            all[number], numbers[#numbers + 1] = part, number
        end
    end
    table.sort(numbers)
    local sum
    for _, number in ipairs(numbers) do
        sum = sum == nil and all[number] or (combine or added)(sum, all[number])
    end
    return sum
end)

-- ---- shares of work ----

--- Begins to deal the elements of a list, which is the same on all ranks: returns a function that
-- returns the next element that no rank has got yet, or nil if all have gone.
--
-- The function takes the amount of work that this rank has finished since it was called last, of
-- which `done()` tells the sum.
cluster.deal = declared("cluster.deal", {{"list", "table", "what is dealt"}}, function(list)
    local over = false
    core.cluster.deal(#list)
    return function(done)
        done = done or 0
        local number = (done > 0 or not over) and core.cluster.next(done) or nil
        over = number == nil
        return number and list[number]
    end
end)

--- How much work of the latest deal all ranks have told of. Only rank 0 knows.
function cluster.done()
    return core.cluster.done()
end

-- Whole units of `unit` that make at least `count`.
local function up_to_units(count, unit)
    return (count + unit - 1) // unit * unit
end

-- The ranges that are dealt. A range is whole packets, and whole files where there are several.
local function ranges_of(first, last, options)
    local unit = options.file and up_to_units(options.packet, options.file) or options.packet
    local count, list = up_to_units(options.count or 1, unit), {}
    for from = first, last, count do
        list[#list + 1] = {from, math.min(from + count - 1, last)}
    end
    return list
end

-- The deal that calls of next go on with.
local dealing

--- The next range of rows (or slices, or whatever is counted) that no rank has got yet: its first
-- and last one; or nil when all have gone.
--
-- The first call begins with first to last, and the calls after it have the same arguments; the
-- call after nil begins anew. A range is whole packets, counted from `first`, and whole files, so
-- that each file has one writer.
cluster.next = declared("cluster.next", {
    {"first", "count", "the first row", min = 0},
    {"last", "count", "the last row", min = 0},
    options = declared.options(
        {"packet", "count", "rows that stay together", min = 1, default = 1},
        {"file", "count", "rows of a file, if there are several", min = 1},
        {"count", "count", "rows at a time", min = 1, usual = "a packet, or a file"}),
}, function(first, last, options)
    dealing = dealing or cluster.deal(ranges_of(first, last, options))
    local range = dealing()
    if range then
        return range[1], range[2]
    end
    dealing = nil
end)

-- ---- ending ----

--- Ends all ranks with exit status 1. Rank 0 prints the text, with this rank and its node; without
-- them if all ranks end with the same text.
cluster.abort = declared("cluster.abort", {{"text", "string", "why"}}, function(text)
    local line = core.error.printable(text)
    if not core.cluster.note_failure(line) then
        io.stderr:write(line, "\n")
    end
    os.exit(1, true)
end)

return declared.module(cluster, "cluster", {done = ""})
