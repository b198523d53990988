-- Percentiles by counting, against sorting.

local mb = require "moonbeam"
local helper = require "spec.helper"

local INF, NAN = math.huge, 0 / 0
local PERCENTS <const> = {0, 0.1, 61.8, 100}

-- By sorting, as NumPy does.
local function sorted_percentiles(values, percents)
    local list, found = {}, {}
    for _, v in ipairs(values) do
        list[#list + 1] = v == v and v or nil
    end
    table.sort(list)
    for i, percent in ipairs(percents) do
        local position = (#list - 1) * (percent / 100)
        local first = math.floor(position)
        local a, b = list[first + 1], list[math.min(first + 2, #list)]
        found[i] = (position == first or a == b) and a or a + (b - a) * (position - first)
    end
    return found
end

-- Equal to the bit, NaN being equal to NaN.
local function assert_equal(expected, got)
    assert.equal(#expected, #got)
    for i, v in ipairs(expected) do
        assert.is_true(v == got[i] or v ~= v and got[i] ~= got[i],
            ("percentile %d is %.17g, not %.17g"):format(i, got[i], v))
    end
end

helper.each_device(function(device, test)
    describe("percentiles on " .. device, function()
        test("are those of the sorted values, to the bit", function()
            for _, case in ipairs {
                {{1}}, {{2}, low = -1}, {{7, 11}}, {{3, 33, 101}, low = -5, high = 9},
                {{4099}, dtype = "u16", low = 0, high = 60000}, {{5001}, dtype = "u8", low = 3, high = 250},
                {{53, 77}, dtype = "f16", low = -1}, {{10001}, low = 1e-40, high = 3e-39},
                {{10001}, low = 1, high = 1 + 1e-4},
            } do
                local a <close> = mb.random(case[1], {dtype = case.dtype, low = case.low, high = case.high,
                    seed = 11, device = device})
                assert_equal(sorted_percentiles(helper.flatten(a:to_table()), PERCENTS),
                    mb.statistics.percentiles(a, PERCENTS))
            end
        end)

        test("leave NaN out, and take infinities and zeros of both signs for values", function()
            for _, values in ipairs {
                {NAN, 1, 2, NAN, 3}, {-0.0, 0.0, -0.0}, {-1, -0.0, 0.0, 1, -2, 2, NAN}, {INF, INF, -INF, 5},
                {-INF, -INF, -1, INF}, {2 ^ -149, -2 ^ -149, 0}, {2 ^ 127, -2 ^ 127},
            } do
                local a <close> = mb.array(values, {device = device})
                assert_equal(sorted_percentiles(values, PERCENTS), mb.statistics.percentiles(a, PERCENTS))
            end
            local none <close> = mb.full({3}, NAN, {device = device})
            assert_equal({NAN, NAN}, mb.statistics.percentiles(none, {0, 50}))
            local zero <close> = mb.array({-0.0}, {device = device})
            assert.equal("0.0", tostring(mb.statistics.percentiles(zero, {50})[1]))
        end)

        test("do not depend on blocks", function()
            local a <close> = mb.random({29, 31, 37}, {seed = 4, device = device, low = -1, high = 1})
            local percents = {0.1, 61.8}
            local whole = mb.statistics.percentiles(a, percents)
            for _, size in ipairs {2, 5, 28} do
                local passes = 0
                assert_equal(whole, mb.statistics.percentiles(function(visit)
                    passes = passes + 1
                    for z = 29, 1, -size do
                        local block <close> = a:view {math.max(1, z - size + 1), z}
                        visit(block)
                    end
                end, percents))
                assert.equal(2, passes)
            end
        end)

        test("take any number of percents", function()
            local a <close> = mb.random({999}, {seed = 8, device = device})
            local percents = {}
            for i = 0, 20 do
                percents[i + 1] = 5 * i
            end
            assert_equal(sorted_percentiles(a:to_table(), percents), mb.statistics.percentiles(a, percents))
            assert.same({}, mb.statistics.percentiles(a, {}))
        end)

        test("take the memory that was planned, step by step", function()
            local a <close> = mb.random({100, 100}, {seed = 8, device = device})
            local function fn()
                return mb.bound(0, function() return mb.statistics.percentiles(a, {2, 98})[1] end)
            end
            local dry, real = mb.dry_run(fn), mb.ledger(fn)
            assert.same(dry:rows(), real:rows())
            assert.is_true(real.peak > 2 << 20)
        end)
    end)
end)

describe("percentiles", function()
    it("add up over devices", function()
        local a <close> = mb.random({100, 7}, {seed = 2})
        local b <close> = a:view({61, 100}):copy():to("host:1")
        assert_equal(mb.statistics.percentiles(a, PERCENTS), mb.statistics.percentiles(function(visit)
            local first <close> = a:view {1, 60}
            visit(first)
            visit(b)
        end, PERCENTS))
    end)

    it("come from counts that were added elsewhere", function()
        local a <close> = mb.random({50, 9}, {seed = 2, low = -1, high = 1})
        local percents = {0.1, 99.9}
        local high <close> = mb.histogram(a, {bits = "high"})
        local prefixes = mb.statistics.prefixes(high, percents)
        assert.equal(4, #prefixes)
        assert.same(prefixes, mb.statistics.prefixes(high:to_table(), percents))
        local single <close> = high:cast("f32") -- counts below 2^24 are exact
        assert.same(prefixes, mb.statistics.prefixes(single, percents))
        assert.matches("high has 3 counts; .* makes 65539",
            (helper.failure(mb.statistics.prefixes, {1, 2, 3}, percents)))
        local low <close> = mb.histogram(a, {bits = "low", prefix = prefixes})
        assert_equal(mb.statistics.percentiles(a, percents),
            mb.statistics.from_counts(high, low:to_table(), percents))
        assert.matches("low has 65539 counts; 2 percents have 4 prefixes, which is 262147 counts",
            (helper.failure(mb.statistics.from_counts, high, high, percents)))
    end)

    it("read counts once, however many percents there are", function()
        local a <close> = mb.random({5000}, {seed = 4, low = -2, high = 3})
        local percents, reads = {99, 0.1, 50, 1, 99.9, 5, 95, 50}, 0
        local function watched(counts)
            local values = counts:to_table()
            return setmetatable({}, {__len = function() return #values end,
                __index = function(_, i)
                    reads = reads + 1
                    return values[i]
                end})
        end
        local high <close> = mb.histogram(a, {bits = "high"})
        local seen = watched(high)
        local prefixes = mb.statistics.prefixes(seen, percents)
        assert.equal(65536 + 3, reads)
        local low <close> = mb.histogram(a, {bits = "low", prefix = prefixes})
        reads = 0
        assert.same(mb.statistics.percentiles(a, percents),
            mb.statistics.from_counts(seen, watched(low), percents))
        assert.equal((1 + #prefixes) * 65536 + 6, reads)
    end)

    it("say what is wrong", function()
        local a <close> = mb.zeros {2}
        assert.matches("percents is 101; it must be a number from 0 to 100",
            (helper.failure(mb.statistics.percentiles, a, {101})))
        assert.matches("percents is %-1", (helper.failure(mb.statistics.percentiles, a, {-1})))
        assert.matches("source is 5; give an array, or a function",
            (helper.failure(mb.statistics.percentiles, 5, {1})))
        assert.matches("source has no arrays", (helper.failure(mb.statistics.percentiles, function() end, {1})))
        local double <close> = mb.zeros({2}, {dtype = "f64"})
        assert.matches("a is f64; accepted: u8, u16, f16, f32", (helper.failure(mb.statistics.percentiles, double, {1})))
    end)
end)
