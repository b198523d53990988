local mb = require "moonbeam"
local helper = require "spec.helper"

local INF, NAN = math.huge, 0 / 0

-- The ordered bits of a value as f32, from its definition.
local function key(v)
    local bits = string.unpack("<I4", string.pack("<f", v))
    return bits >= 1 << 31 and ~bits & 0xffffffff or bits | 1 << 31
end

-- Counts by the definition: {[counter] = n}, the last three below, above, NaN.
local function counted(values, bins, counter_of)
    local counts = {}
    for i = 1, bins + 3 do
        counts[i] = 0
    end
    for _, v in ipairs(values) do
        local i = v ~= v and bins + 3 or counter_of(v)
        counts[i] = counts[i] + 1
    end
    return counts
end

local function in_bins(bins, low, high)
    return function(v)
        if v < low or v > high then
            return bins + (v < low and 1 or 2)
        end
        return math.min(math.floor((v - low) * (bins / (high - low))), bins - 1) + 1
    end
end

local function by_high(v)
    return (key(v) >> 16) + 1
end

local function by_low(prefixes)
    return function(v)
        local high, low = key(v) >> 16, key(v) & 0xffff
        for i, prefix in ipairs(prefixes) do
            if prefix == high then
                return (i - 1) * 65536 + low + 1
            end
        end
        return #prefixes * 65536 + (high < prefixes[1] and 1 or 2)
    end
end

-- Equal lists; assert.same takes seconds for some of these.
local function assert_counts(expected, got)
    assert.equal(#expected, #got)
    for i, n in ipairs(expected) do
        if n ~= got[i] then
            error(("counter %d is %g, not %g"):format(i, got[i], n), 2)
        end
    end
end

local VALUES <const> = {0.0, -0.0, 1, 0.5, 0.25, -1, 2, INF, -INF, NAN, 1e-40, -1e-40, 3.4e38, -3.4e38,
    0.75, 1 + 2 ^ -23}

helper.each_device(function(device, test)
    describe("histogram on " .. device, function()
        local function counts_of(a, options)
            local counts <close> = mb.histogram(a, options)
            return counts:to_table()
        end

        test("counts in bins of equal width, the last with its end, and what is outside", function()
            local a <close> = mb.array(VALUES, {device = device})
            assert_counts(counted(VALUES, 4, in_bins(4, 0, 1)), counts_of(a, {bins = 4}))
            assert.same({3, 1, 1, 2, 4, 4, 1}, counts_of(a, {bins = 4}))
            assert_counts(counted(VALUES, 256, in_bins(256, 0, 1)), counts_of(a))
            assert.same({11, 2, 2, 1}, counts_of(a, {bins = 1, low = -1, high = 2}))
        end)

        test("counts by the halves of the ordered bits, whatever the values are", function()
            local a <close> = mb.array(VALUES, {device = device})
            assert_counts(counted(VALUES, 65536, by_high), counts_of(a, {bits = "high"}))
            for _, prefixes in ipairs {{key(0) >> 16}, {key(1) >> 16, key(-0.0) >> 16, key(1) >> 16, 65535}} do
                assert_counts(counted(VALUES, 65536 * #prefixes, by_low(prefixes)),
                    counts_of(a, {bits = "low", prefix = prefixes}))
            end
            assert.equal(0x80000000, key(0.0))
            assert.equal(0x7fffffff, key(-0.0))
        end)

        test("counts all element types as f32, at odd sizes and any strides", function()
            for _, dtype in ipairs {"u8", "u16", "f16", "f32"} do
                local columns = dtype == "f32" and 601 or 61 -- more than one worker counts, and one
                local a <close> = mb.random({3, 37, columns}, {dtype = dtype, seed = 5, device = device,
                    low = 0, high = dtype:match("^f") and 2 or dtype == "u8" and 256 or 65536})
                local values = helper.flatten(a:to_table())
                local high = dtype:match("^f") and 1.5 or 200
                assert_counts(counted(values, 17, in_bins(17, 0, high)),
                    counts_of(a, {bins = 17, high = high}))
                assert_counts(counted(values, 65536, by_high), counts_of(a, {bits = "high"}))
                local prefixes = {key(values[1]) >> 16, key(values[2]) >> 16}
                assert_counts(counted(values, 131072, by_low(prefixes)),
                    counts_of(a, {bits = "low", prefix = prefixes}))
                local part <close> = a:view({1, 3, 2}, {2, 36}, {columns, 3, -7})
                assert_counts(counted(helper.flatten(part:to_table()), 65536, by_high),
                    counts_of(part, {bits = "high"}))
            end
        end)

        test("adds to given counts: blocks give the counts of the whole, for any cut", function()
            local a <close> = mb.random({41, 70, 33}, {seed = 9, device = device, low = -1, high = 1})
            for _, options in ipairs {{bins = 1000, low = -0.5, high = 0.9}, {bits = "high"},
                {bits = "low", prefix = {key(-0.7) >> 16, key(0.3) >> 16}}} do
                local whole = counts_of(a, options)
                for _, size in ipairs {7, 40} do
                    local total
                    for z = 1, 41, size do
                        local block <close> = a:view {z, math.min(z + size - 1, 41)}
                        options.into = total
                        local made, given = mb.histogram(block, options)
                        assert.equal(total, given)
                        assert.equal(total == nil, made ~= nil)
                        total = total or made
                    end
                    assert_counts(whole, total:to_table())
                    total:release()
                    options.into = nil
                end
            end
        end)

        test("counts exactly where one counter gets everything", function()
            local a <close> = mb.full({3000, 1001}, 0.5, {device = device})
            local counts = counts_of(a, {bins = 3})
            assert.same({0, 3003000, 0, 0, 0, 0}, counts)
            assert.equal(3003000, counts_of(a, {bits = "high"})[by_high(0.5)])
            local total <close> = mb.full({6}, 2 ^ 52, {dtype = "f64", device = device})
            mb.histogram(a, {bins = 3, into = total})
            assert.equal(2 ^ 52 + 3003000, total:item(2))
            local none <close> = mb.zeros({0, 4}, {device = device})
            assert.same({0, 0, 0, 0}, counts_of(none, {bins = 1}))
            local one <close> = mb.full({}, 7, {device = device})
            assert.same({0, 0, 1, 0}, counts_of(one, {bins = 1}))
        end)

        test("counts into a strided part of a larger array", function()
            local a <close> = mb.arange(10):to(device)
            local large <close> = mb.zeros({2, 20}, {dtype = "f64", device = device})
            local column <close> = large:view(2, {3, 15, 2})
            mb.histogram(a, {bins = 4, low = 2, high = 6, into = column})
            assert.same({1, 1, 1, 2, 1, 4, 0}, column:to_table())
            assert.equal(10, large:sum())
        end)
    end)
end)

describe("histogram", function()
    it("takes scratch for its tables, and says how much", function()
        local known = mb.op.estimate("histogram", {{"f32", 100}}, {bits = "low", prefix = {1, 2}})
        local counters = 2 * 65536 + 3
        assert.equal(mb.pool.round(8 * counters), known.result)
        assert.equal(mb.pool.round(8 * counters), known.scratch)
        local large = mb.op.estimate("histogram", {{"f32", 1 << 24}}, {bits = "high"})
        local workers = math.min(mb.device("host").threads, (64 << 20) // (8 * 65539))
        assert.equal(mb.pool.round(8 * 65539 * workers), large.scratch)
        local planned = mb.op.estimate("histogram", {{"f32", 1 << 24}}, {bits = "high"}, {device = "planned:h200"})
        assert.equal(mb.pool.round(8 * 65539), planned.scratch)
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros {2}
        for _, case in ipairs {
            {{low = 1}, "high", "high must lie above low, both finite; low is 1, high is 1"},
            {{high = 1 / 0}, "high", "high is infinite"},
            {{low = -1e308, high = 1e308}, "high", "both finite"},
            {{bins = 0}, "bins", "bins is 0"},
            {{prefix = 1}, "prefix", 'prefix goes with bits = "low"; bits is "value"'},
            {{bits = "low"}, "prefix", "1 to 16 prefixes; 0 are given"},
            {{bits = "low", prefix = {1, 2.5}}, "prefix", "2.5; it must be a whole number"},
            {{bits = "low", prefix = {65536}}, "prefix", "65536"},
            {{bits = "middle"}, "bits", "middle"},
        } do
            local options, arg, words = table.unpack(case)
            local text, err = helper.failure(mb.histogram, a, options)
            assert.equal(arg, err.arg)
            assert.matches(words, text, 1, true)
        end
        local many = {}
        for i = 1, 17 do
            many[i] = i
        end
        assert.matches("17 are given", (helper.failure(mb.histogram, a, {bits = "low", prefix = many})))
        local wrong <close> = mb.zeros({9}, {dtype = "f64"})
        local text, err = helper.failure(mb.histogram, a, {bins = 4, into = wrong})
        assert.equal("into", err.arg)
        assert.matches("into has 9 elements; these counts have 7", text)
    end)
end)
