local mb = require "moonbeam"
local helper = require "spec.helper"

-- What dezinger does, from the medians of median_filter, on nested tables.
local function naive(values, medians, threshold, options)
    local result, replaced = {}, 0
    for i, value in ipairs(values) do
        local median = medians[i]
        if type(value) == "table" then
            local own, count = naive(value, median, threshold, options)
            result[i], replaced = own, replaced + count
        else
            local above = value - median
            local far = ({both = math.abs(above), bright = above, dark = -above})[
                options.which or "both"]
            local out = far > (options.relative and threshold * math.abs(median) or threshold)
            result[i], replaced = out and median or value, replaced + (out and 1 or 0)
        end
    end
    return result, replaced
end

local function same(expected, result, what)
    helper.assert_close(expected, result, 0, what)
end

-- The result, to be closed, and how many values were replaced.
local function dezinger(...)
    local result, counts = mb.dezinger(...)
    local _ <close> = counts
    return result, counts:item(1)
end

-- A ramp with a zinger at each place {z, y, x, height}.
local function ramp(shape, places, dtype, device)
    local values = {}
    for z = 1, shape[1] do
        values[z] = {}
        for y = 1, shape[2] do
            values[z][y] = {}
            for x = 1, shape[3] do
                values[z][y][x] = 1000 + 3 * x + 2 * y + z
            end
        end
    end
    local clean = mb.array(values, {dtype = dtype, device = device})
    for _, place in ipairs(places) do
        values[place[1]][place[2]][place[3]] = values[place[1]][place[2]][place[3]] + place[4]
    end
    return mb.array(values, {dtype = dtype, device = device}), clean
end

helper.each_device(function(device, test)
    describe("dezinger on " .. device:match "^%a+", function()
        test("replaces by the median where the threshold is passed, and counts", function()
            local cases = {{{1, 3, 3}}, {{1, 5, 5}, "bright"}, {{1, 7, 7}, "dark"}, {3, "bright"},
                {5}, {7, "dark"}, {{3, 5, 1}, "bright"}, {{1, 9, 9}}}
            for i, case in ipairs(cases) do
                for _, dtype in ipairs {"f32", "u16", "u8"} do
                    for _, relative in ipairs {false, true} do
                        local a <close> = mb.random({5, 11, 150}, {seed = i, dtype = dtype,
                            high = dtype == "f32" and 1 or 250, device = device})
                        local medians <close> = mb.median_filter(a, case[1])
                        local threshold = relative and 0.45 or dtype == "f32" and 0.25 or 70
                        local options = {which = case[2], relative = relative}
                        local expected, count = naive(a:to_table(), medians:to_table(), threshold,
                            options)
                        local got <close>, counts = dezinger(a, case[1], threshold,
                            options)
                        assert.equal(dtype, got.dtype)
                        same(expected, got, ("case %d, %s"):format(i, dtype))
                        assert.equal(count, counts)
                        assert.is_true(count > 100)
                    end
                end
            end
        end)

        test("takes known zingers out and changes nothing else", function()
            local places = {{1, 1, 1, 900}, {3, 7, 64, -800}, {4, 5, 129, 700}, {6, 12, 131, 500},
                {2, 9, 30, 450}, {5, 2, 5, -600}}
            for _, dtype in ipairs {"u16", "f32"} do
                for _, size in ipairs {3, 5, {1, 3, 3}, {1, 5, 5}} do
                    local a <close>, ramps = ramp({6, 12, 131}, places, dtype, device)
                    local clean <close> = ramps
                    local got <close>, counts = dezinger(a, size, 200)
                    assert.equal(#places, counts)
                    local far = helper.difference(clean, got)
                    assert.is_true(far <= 20, far .. " of the ramp") -- a median of a neighbor
                    local kept, all = got:to_table(), a:to_table()
                    local changed = 0
                    for z, plane in ipairs(all) do
                        for y, row in ipairs(plane) do
                            for x, value in ipairs(row) do
                                changed = changed + (kept[z][y][x] ~= value and 1 or 0)
                            end
                        end
                    end
                    assert.equal(#places, changed)
                    local up <close>, ups = dezinger(a, size, 200, {which = "bright"})
                    local down <close>, downs = dezinger(a, size, 200, {which = "dark"})
                    assert.same({4, 2}, {ups, downs})
                    assert.is_true(helper.difference(up, down) >= 800)
                end
            end
        end)

        test("keeps a constant, windows larger than the image, and what is not a number", function()
            local nan, inf = 0 / 0, 1 / 0
            for _, size in ipairs {3, 5, 7, {3, 3, 5}} do
                local flat <close> = mb.full({2, 1, 3}, 4, {device = device})
                local got <close>, counts = dezinger(flat, size, 0)
                same(flat, got)
                assert.equal(0, counts)
                local none <close> = mb.full({3, 6, 20}, nan, {device = device})
                local kept <close>, zero = dezinger(none, size, 1)
                same(none, kept)
                assert.equal(0, zero)
            end
            local row = {}
            for x = 1, 40 do
                row[x] = x % 10
            end
            row[7], row[20], row[33] = nan, inf, -inf
            local a <close> = mb.array({{row, row, row}}, {device = device})
            local got <close>, counts = dezinger(a, {1, 3, 3}, 100)
            local values = got:to_table()[1][2]
            assert.is_true(values[7] ~= values[7])
            assert.same({9, 2, 6}, {values[20], values[33], counts})
        end)

        test("counts in a part of the array", function()
            local a <close> = mb.random({4, 30, 70}, {seed = 5, device = device})
            local sum = 0
            for first = 1, 30, 7 do
                local last = math.min(30, first + 6)
                local part <close>, counts = dezinger(a, 3, 0.3,
                    {counted = {1, 4, first, last, 1, 70}})
                assert.same(a.shape, part.shape)
                sum = sum + counts
            end
            local whole <close>, counts = dezinger(a, 3, 0.3)
            assert.same(a.shape, whole.shape)
            assert.equal(counts, sum)
        end)
    end)
end)

describe("dezinger", function()
    it("explains wrong arguments", function()
        local a <close> = mb.ones {4, 5}
        assert.matches("extents must be odd", (helper.failure(mb.dezinger, a, 4, 1)))
        assert.matches("threshold", (helper.failure(mb.dezinger, a, 3, -1)))
        assert.matches("first and the last of each of the 2 axes",
            (helper.failure(mb.dezinger, a, 3, 1, {counted = {1, 2}})))
        assert.matches("did you mean 'bright'",
            (helper.failure(mb.dezinger, a, 3, 1, {which = "brigth"})))
    end)
end)
