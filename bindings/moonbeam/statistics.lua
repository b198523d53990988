--- Percentiles, exact, of arrays and of what comes in blocks.
--
-- Nothing is sorted: the operator `histogram` counts the values by the high half of their bits,
-- which tells the high half of every order statistic, and then those with these halves by the low
-- half, which tells the rest. Counts of blocks add up to those of the whole, so a percentile is the
-- same to the bit for any blocks, devices and threads.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local statistics = {}

local HALVES = 1 << 16

-- Percents of a pass over the low halves: two order statistics each, and 16 prefixes a call.
local GROUP = 8

-- Numbers of a table that are packed together.
local AT_ONCE = 128

local NAN = 0.0 / 0.0

local function check_percents(percents, op)
    arguments.list(percents, op, "percents", "each from 0 to 100")
    for _, percent in ipairs(percents) do
        arguments.number(percent, op, "percents", {min = 0, max = 100})
    end
end

-- Counts as a string (core.counts), from an array or a table of numbers.
local function packed(counts, op, arg)
    if type(counts) == "string" then
        return counts
    elseif type(counts) ~= "table" and counts.dtype == "f64" then
        return counts:to_string()
    end
    counts = type(counts) == "table" and counts or counts:to_table()
    local pieces = {}
    for first = 1, #counts, AT_ONCE do
        local last = math.min(first + AT_ONCE - 1, #counts)
        local some = table.pack(table.unpack(counts, first, last))
        for i = 1, some.n do
            if type(some[i]) ~= "number" then
                fail("argument", op, arg, "element %d of %s is %s; give what mb.histogram has "
                    .. "counted", first + i - 1, arg, arguments.described(some[i]))
            end
        end
        pieces[#pieces + 1] = string.pack(("d"):rep(some.n), table.unpack(some, 1, some.n))
    end
    return table.concat(pieces)
end

-- Where elements of these ranks (from 0) of the sorted values lie: for each its half (nil: there
-- are fewer values), and its rank among those of that half. The counts from `first` (from 0) on
-- are those of the halves. One walk for all.
local function locate(counts, first, ranks)
    local order, sorted, halves, rests = {}, {}, {}, {}
    for k in ipairs(ranks) do
        order[k] = k
    end
    table.sort(order, function(a, b) return ranks[a] < ranks[b] end)
    for i, k in ipairs(order) do
        sorted[i] = ranks[k]
    end
    local places = core.counts.locate(counts, first, HALVES, sorted)
    for i, k in ipairs(order) do
        local half = places[i][1]
        halves[k], rests[k] = half < HALVES and half or nil, places[i][2]
    end
    return halves, rests
end

-- The two order statistics that a percentile lies between: a list of {high half, rank in it}, two
-- for each percent, and a list of how far each percentile is from the first to the second.
local function neighbors(high, percents)
    local n = core.counts.total(high, HALVES)
    local ranks, parts, list = {}, {}, {}
    for i, percent in ipairs(percents) do
        local position = math.max(0, (n - 1) * (percent / 100))
        local first = math.floor(position)
        ranks[2 * i - 1], ranks[2 * i] = first, math.min(first + 1, n - 1)
        parts[i] = n > 0 and position - first or NAN
    end
    local halves, rests = locate(high, 0, n > 0 and ranks or {})
    for k in ipairs(ranks) do
        list[k] = {halves[k] or 0, rests[k] or 0}
    end
    return list, parts
end

-- Packed counts of high halves.
local function packed_high(counts, op)
    local high = packed(counts, op, "high")
    if #high // 8 < HALVES then
        fail("shape", op, "high", "high has %d counts; mb.histogram with bits = \"high\" makes %d",
            #high // 8, HALVES + 3)
    end
    return high
end

--- The prefixes for the second pass of mb.histogram, bits = "low": two for each percent.
--
-- `high` is what bits = "high" counted (the sum over all blocks), an array or a table of numbers. A
-- call of mb.histogram takes up to 16 prefixes, so that there may be up to 8 percents.
function statistics.prefixes(high, percents)
    check_percents(percents, "statistics.prefixes")
    return tables.mapped((neighbors(packed_high(high, "statistics.prefixes"), percents)), 1)
end

-- The f32 whose ordered bits these are.
local function value_of(key)
    local bits = key >= 1 << 31 and key - (1 << 31) or ~key & 0xffffffff
    return (string.unpack("<f", string.pack("<I4", bits))) + 0.0
end

local function between(a, b, part)
    return (part == 0 or a == b) and a or a + (b - a) * part
end

-- Percentiles from what `neighbors` tells, and from the low halves of these.
local function values_of(list, parts, low)
    local first_of, ranks_of, values, found = {}, {}, {}, {}
    for i, neighbor in ipairs(list) do
        local prefix = neighbor[1]
        first_of[prefix] = first_of[prefix] or i
        ranks_of[prefix] = ranks_of[prefix] or {}
        table.insert(ranks_of[prefix], neighbor[2])
    end
    local halves_of, next_of = {}, {}
    for prefix, ranks in pairs(ranks_of) do
        halves_of[prefix], next_of[prefix] = locate(low, (first_of[prefix] - 1) * HALVES, ranks), 0
    end
    for i, neighbor in ipairs(list) do
        local prefix = neighbor[1]
        next_of[prefix] = next_of[prefix] + 1
        local half = halves_of[prefix][next_of[prefix]]
        found[i] = half and value_of(prefix << 16 | half) or NAN
    end
    for i, part in ipairs(parts) do
        values[i] = part == part and between(found[2 * i - 1], found[2 * i], part) + 0.0 or NAN
    end
    return values
end

--- Percentiles from the counts of both passes: `high`, and `low` for the prefixes of these percents
-- (statistics.prefixes). Arrays or tables of numbers. See statistics.percentiles.
function statistics.from_counts(high, low, percents)
    check_percents(percents, "statistics.from_counts")
    low = packed(low, "statistics.from_counts", "low")
    local list, parts = neighbors(packed_high(high, "statistics.from_counts"), percents)
    local count = #low // 8
    if count ~= #list * HALVES + 3 then
        fail("shape", "statistics.from_counts", "low",
            "low has %d counts; %d percents have %d prefixes, which is %d counts", count,
            #percents, #list, #list * HALVES + 3)
    end
    return values_of(list, parts, low)
end

-- The counts of all arrays of a source, packed; nil in a dry run, which has none.
local function count(source, bits, prefixes)
    local totals <close> = tables.group() -- by device
    local function visit(array)
        arguments.array(array, "statistics.percentiles", "source", 0, math.huge, "or a function")
        local into = totals[array.device.id]
        local made = mb.histogram(array, {bits = bits, prefix = prefixes, into = into})
        totals[array.device.id] = into or made
    end
    if type(source) == "function" then
        source(visit)
    else
        visit(source)
    end
    local sums
    for _, counts in pairs(totals) do
        if counts.device.dry then
            return nil
        end
        local part = counts:to_string()
        sums = sums and core.counts.add(sums, part) or part
    end
    return sums or fail("argument", "statistics.percentiles", "source",
        "source has no arrays: it must call what it is given with each block")
end

--- Exact percentiles: what numpy.nanpercentile gives, with linear interpolation between the two
-- nearest order statistics, in double precision.
--
-- `source` is an array (f32, f16, u16 or u8) or, for what comes in blocks, a function: it is called
-- with a function `visit`, and calls visit(array) for every block, on any devices. A function is
-- called twice, and once more for every 8 percents beyond the first 8. NaN is left out; infinities
-- are values. Returns a table of numbers, one for each percent; NaN where there are no values.
-- Memory: that of mb.histogram, 0.5 MiB, then 1 MiB for each percent, and the same for each of its
-- workers. In a dry run both passes are counted; then it raises what mb.bound turns into the bound.
function statistics.percentiles(source, percents)
    check_percents(percents, "statistics.percentiles")
    local high = count(source, "high")
    local values, list, parts = {}, nil, nil
    if high then
        list, parts = neighbors(high, percents)
    end
    for first = 1, #percents, GROUP do
        local last = math.min(first + GROUP - 1, #percents)
        local group, prefixes = {}, {}
        for k = 2 * first - 1, 2 * last do
            group[#group + 1] = list and list[k]
            prefixes[#prefixes + 1] = list and list[k][1] or 0
        end
        local low = count(source, "low", prefixes)
        if low then
            table.move(values_of(group, table.move(parts, first, last, 1, {}), low), 1,
                last - first + 1, first, values)
        end
    end
    if not high then
        core.error.raise("dry_run", core.unknown.message)
    end
    return values
end

return declared.module(statistics, "statistics", {
    prefixes = "high: counts, percents: table",
    from_counts = "high: counts, low: counts, percents: table",
    percentiles = "source: any, percents: table",
})
