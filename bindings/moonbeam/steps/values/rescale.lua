local mb = require "moonbeam"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local value_range = require "moonbeam.tomo.value_range"

local DTYPES = {uint8 = "u8", uint16 = "u16", float16 = "f16", float32 = "f32"}
local ZERO = ("\0"):rep(8)
local WHOLE = {u8 = "uint8", u16 = "uint16"}

-- The sums of a pass over all values, on one device.
local sums = {__index = {release = function(self)
    if self.counts then
        self.counts:release()
        self.counts = nil
    end
end}}

-- The counts of a state, packed (core.counts), or nil: those on a device, or those of a rank as
-- text, in which -N stands for N zeros: most counts of a small volume are 0, and a rank reads the
-- text of every rank.
local function counts_of(state)
    if not state.text then
        return state.counts and state.counts:to_string()
    end
    local pieces = {}
    for word in state.text:gmatch "%S+" do
        local count = tonumber(word)
        pieces[#pieces + 1] = count < 0 and ZERO:rep(-count) or string.pack("d", count)
    end
    return #pieces > 0 and table.concat(pieces) or nil
end

-- The counts of all devices, packed; nil in a dry run, which does not count.
local function total_of(list)
    local total
    for _, state in ipairs(list) do
        if state.counts and state.counts.device.dry then
            return nil
        end
        local part = counts_of(state)
        total = total and part and core.counts.add(total, part) or total or part
    end
    return total
end

-- The percentiles that give the range: those asked for, or least and largest value.
local function percents_of(options)
    return options.percentiles or {0, 100}
end

-- Percentiles of all values, by two passes of the operator histogram (see statistics.lua).
local percentiles = {passes = 2}

function percentiles.start()
    return setmetatable({}, sums)
end

function percentiles.add(state, data, _, pass, found)
    -- A plan made after both passes has the range in `found`: all prefixes take the same memory.
    local prefix = pass == 2 and (found and found.prefixes or {0, 0, 0, 0}) or nil
    local made = mb.histogram(data, {bits = pass == 1 and "high" or "low", prefix = prefix,
        into = state.counts})
    state.counts = state.counts or made
end

function percentiles.share(list)
    local words, counts = {}, total_of(list) or ""
    local done = 0 -- counts that are in words
    while true do
        local byte = counts:find("[^\0]", 8 * done + 1)
        local zeros = ((byte or #counts + 1) - 1) // 8 - done
        words[#words + 1] = zeros > 0 and -zeros or nil
        if not byte then
            return {text = table.concat(words, " ")}
        end
        words[#words + 1] = ("%.0f"):format((string.unpack("d", counts, 8 * (done + zeros) + 1)))
        done = done + zeros + 1
    end
end

function percentiles.finish(list, options, pass, found)
    local counts = total_of(list)
    if not counts then
        return pass == 1 and {prefixes = {0, 0, 0, 0}} or {0, 1}
    elseif pass == 1 then
        return {high = counts, prefixes = mb.statistics.prefixes(counts, percents_of(options))}
    end
    local percents, part = percents_of(options), options.percent_of_range
    local range = mb.statistics.from_counts(found.high, counts, percents)
    if not (range[1] > -math.huge and range[2] < math.huge) then
        fail("argument", "step rescale", part and "percent_of_range" or "percentiles",
            "the values at {%g, %g} percent are %g and %g; give range = {low, high}",
            percents[1], percents[2], range[1], range[2])
    end
    if part then
        local span = range[2] - range[1]
        range = {range[1] + part[1] / 100 * span, range[1] + part[2] / 100 * span}
    end
    return range[1] < range[2] and range or {range[1] - 1, range[2] + 1}
end

return {
    name = "rescale",
    summary = "Converts values to another type, scaled from a range.",
    doc = "The lower end of the range becomes 0. The upper end becomes the largest code of uint8 "
        .. "and uint16, and 1 in float16 and float32. The result says how values are scaled. "
        .. "Percentiles are those of all values and need a second pass; sample takes the range "
        .. "from a few rows instead: an object that is denser between them is clipped, which the "
        .. "report counts. float16 and float32 without a range are not scaled.\n"
        .. "percent_of_range is no percentile: {5, 95} leaves 5 % of the way from the least to the "
        .. "largest value out at both ends. Values below the range become its lower end, values "
        .. "above it its upper end. NaN becomes 0 in integers and stays in float16 and float32; "
        .. "percentiles leave it out. With nonfinite, NaN and infinities count as that value. An "
        .. "infinity as least or largest value of a percent_of_range is an error.",
    options = declared.options(
        {"dtype", "choice", "type of the stored values",
            choices = {"uint8", "uint16", "float16", "float32"}, required = true,
            synonyms = {u8 = "uint8", u16 = "uint16", f16 = "float16", f32 = "float32"}},
        {"range", "pair", "{low, high}: the values that become 0 and the largest code"},
        {"percentiles", "pair", "{low, high}: the range as percentiles of all values, such as "
            .. "{0.1, 99.9}", min = 0, max = 100, unit = "%"},
        {"percent_of_range", "pair", "{low, high}: the range as parts of the way from the least to "
            .. "the largest of all values, such as {0, 100}", min = 0, max = 100, unit = "%"},
        {"sample", "count", "take the range from this many rows, spread from the first to the "
            .. "last, plus a quarter on both sides", min = 1, max = 1000},
        {"rounding", "choice", "of uint8 and uint16: to the nearest code, or down",
            choices = {"nearest", "down"}, default = "nearest"},
        {"nonfinite", "number", "what NaN and infinities count as, not in float32",
            usual = "NaN is stored as 0, infinities as the ends"}),
    -- Other packages differ in the range, rounding, and what NaN becomes.
    presets = {httomo = {dtype = "uint8", percent_of_range = {0, 100}, rounding = "down",
        nonfinite = 0}, nabu = {dtype = "uint16", percentiles = {0.1, 99.9}}},
    takes = {quantity = {"transmission", "line integrals", "phase", "attenuation", "intensity",
        "weights"}, layout = "any"},
    gives = function(options)
        return {quantity = "scaled", layout = "same", dtype = DTYPES[options.dtype]}
    end,
    check = function(options)
        local ways = {}
        for _, name in ipairs {"range", "percentiles", "percent_of_range", "sample"} do
            ways[#ways + 1] = options[name] and name or nil
        end
        if #ways > 1 then
            fail("argument", nil, ways[2], "%s and %s both give the range; remove one",
                ways[1], ways[2])
        elseif #ways == 0 and WHOLE[DTYPES[options.dtype]] then
            fail("argument", nil, "range", "%s needs a range: give range = {low, high}, "
                .. "percentiles = {0.1, 99.9} or sample = 3", options.dtype)
        elseif options.nonfinite and options.dtype == "float32" then
            fail("argument", nil, "nonfinite", "float32 keeps NaN and infinities; leave nonfinite "
                .. "out, or give another dtype")
        end
    end,
    -- The range {low, high}, if the options give it.
    known = function(options)
        return options.dtype ~= "uint16" and options.range
            or not (options.range or options.percentiles or options.percent_of_range
                or options.sample) and {0, 1} or nil
    end,
    gives_value = "range",
    bounds = function()
        return {{0, 1}} -- the stored values take the same memory for any range
    end,
    measuring = function(options)
        return options.sample or options.range and options.dtype == "uint16"
    end,
    measure = function(view, options)
        local own = value_range.find(view, DTYPES[options.dtype], options.sample)
        if options.range then
            return options.range, {codes = value_range.codes(own, options.range, "step rescale")}
        end
        return own
    end,
    reduce = percentiles,
    reducing = function(options)
        return options.percentiles or options.percent_of_range
    end,
    -- The value of one stored step, and the value that is stored as 0.
    scaling = function(options, values)
        local range = values.range or options.range or {0, 1}
        local top = options.dtype == "uint8" and 255 or options.dtype == "uint16" and 65535 or 1
        return {(range[2] - range[1]) / top, range[1]}
    end,
    run = function(block, options, values)
        local range = options.range or values and values.range or {0, 1}
        if options.dtype == "float32" then
            if range[1] ~= 0 or range[2] ~= 1 then
                mb.binary(block.data, "sub", {scalar = range[1], out = block.data})
                mb.binary(block.data, "div", {scalar = range[2] - range[1], out = block.data})
            end
            return
        end
        local stored, counts = mb.quantize(block.data, DTYPES[options.dtype], {low = range[1],
            high = range[2], rounding = options.rounding, nonfinite = options.nonfinite})
        block.clipped = counts
        block:replace(stored)
    end,
}
