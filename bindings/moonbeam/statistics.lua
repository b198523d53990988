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

local NAN = 0.0 / 0.0

local function check_percents(percents, op)
    arguments.list(percents, op, "percents", "each from 0 to 100")
    for _, percent in ipairs(percents) do
        arguments.number(percent, op, "percents", {min = 0, max = 100})
    end
end

-- Counts as a table of numbers.
local function numbers_of(counts)
    return type(counts) == "table" and counts or counts:to_table()
end

-- Where element `rank` (from 0) of the sorted values lies, of which counts[offset + i] have half
-- i - 1: its half, and its rank among those of that half.
local function locate(counts, offset, rank)
    for i = 1, HALVES do
        local here = counts[offset + i]
        if rank < here then
            return i - 1, rank
        end
        rank = rank - here
    end
end

-- The two order statistics that a percentile lies between: a list of {high half, rank in it}, two
-- for each percent, and a list of how far each percentile is from the first to the second.
local function neighbors(high, percents)
    local n = 0
    for i = 1, HALVES do
        n = n + high[i]
    end
    local list, parts = {}, {}
    for i, percent in ipairs(percents) do
        local position = math.max(0, (n - 1) * (percent / 100))
        local first = math.floor(position)
        for k, rank in ipairs {first, math.min(first + 1, n - 1)} do
            list[2 * i - 2 + k] = n > 0 and {locate(high, 0, rank)} or {0, 0}
        end
        parts[i] = n > 0 and position - first or NAN
    end
    return list, parts
end

--- The prefixes for the second pass of mb.histogram, bits = "low": two for each percent.
--
-- `high` is what bits = "high" counted (the sum over all blocks), an array or a table of numbers. A
-- call of mb.histogram takes up to 16 prefixes, so that there may be up to 8 percents.
function statistics.prefixes(high, percents)
    check_percents(percents, "statistics.prefixes")
    return tables.mapped((neighbors(numbers_of(high), percents)), 1)
end

-- The f32 whose ordered bits these are.
local function value_of(key)
    local bits = key >= 1 << 31 and key - (1 << 31) or ~key & 0xffffffff
    return (string.unpack("<f", string.pack("<I4", bits))) + 0.0
end

local function between(a, b, part)
    return (part == 0 or a == b) and a or a + (b - a) * part
end

--- Percentiles from the counts of both passes: `high`, and `low` for the prefixes of these percents
-- (statistics.prefixes). Arrays or tables of numbers. See statistics.percentiles.
function statistics.from_counts(high, low, percents)
    check_percents(percents, "statistics.from_counts")
    low = numbers_of(low)
    local list, parts = neighbors(numbers_of(high), percents)
    if #low ~= #list * HALVES + 3 then
        fail("shape", "statistics.from_counts", "low",
            "low has %d counts; %d percents have %d prefixes, which is %d counts", #low,
            #percents, #list, #list * HALVES + 3)
    end
    local first_of, values, found = {}, {}, {}
    for i, neighbor in ipairs(list) do
        local prefix, rank = table.unpack(neighbor)
        first_of[prefix] = first_of[prefix] or i
        local half = locate(low, (first_of[prefix] - 1) * HALVES, rank)
        found[i] = half and value_of(prefix << 16 | half) or NAN
    end
    for i, part in ipairs(parts) do
        values[i] = part == part and between(found[2 * i - 1], found[2 * i], part) + 0.0 or NAN
    end
    return values
end

-- The counts of all arrays of a source, as a table of numbers; nil in a dry run, which has none.
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
        local part = counts:to_table()
        for i = 1, sums and #part or 0 do
            sums[i] = sums[i] + part[i]
        end
        sums = sums or part
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
    local values = {}
    for first = 1, #percents, GROUP do
        local group = table.move(percents, first, math.min(first + GROUP - 1, #percents), 1, {})
        local prefixes = high and statistics.prefixes(high, group)
        for i = 1, not high and 2 * #group or 0 do
            prefixes = prefixes or {}
            prefixes[i] = 0
        end
        local low = count(source, "low", prefixes)
        if low then
            table.move(statistics.from_counts(high, low, group), 1, #group, first, values)
        end
    end
    if not high then
        core.error.raise("dry_run", core.unknown.message)
    end
    return values
end

return declared.module(statistics, "statistics", {
    prefixes = "high: any, percents: table",
    from_counts = "high: any, low: any, percents: table",
    percentiles = "source: any, percents: table",
})
