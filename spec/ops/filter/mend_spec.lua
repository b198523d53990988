local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

local NAN <const>, INF <const> = 0 / 0, 1 / 0

-- The result, to be closed, and {replaced, left}.
local function mend(...)
    local result, counts = mb.mend(...)
    local _ <close> = counts
    return result, counts:to_table()
end

local function finite(v)
    return v == v and v ~= INF and v ~= -INF
end

-- What a broken value becomes, from values[y][x] and bad[y][x].
local function neighbors(values, bad, y, x, reach)
    local list = {}
    for r = 1, reach do
        for v = math.max(1, y - r), math.min(#values, y + r) do
            for u = math.max(1, x - r), math.min(#values[1], x + r) do
                if not bad[v][u] then
                    list[#list + 1] = values[v][u]
                end
            end
        end
        if list[1] then
            return list
        end
    end
end

local function middle(list, method)
    local n, sum = #list, 0
    for _, v in ipairs(list) do
        sum = sum + v
    end
    if method == "mean" then
        return sum / n
    end
    table.sort(list)
    return (list[(n + 1) // 2] + list[n // 2 + 1]) / 2
end

local function naive(values, mask, method, reach)
    local result, counts, bad = {}, {0, 0}, {}
    for y, row in ipairs(values) do
        bad[y] = {}
        for x, v in ipairs(row) do
            bad[y][x] = not finite(v) or mask and mask[y][x] ~= 0
        end
    end
    for y, row in ipairs(values) do
        result[y] = {}
        for x, v in ipairs(row) do
            local list = bad[y][x] and neighbors(values, bad, y, x, reach)
            result[y][x] = list and middle(list, method) or v
            if bad[y][x] then
                counts[list and 1 or 2] = counts[list and 1 or 2] + 1
            end
        end
    end
    return result, counts
end

helper.each_device(function(device, test)
    describe("mend on " .. device:match "^%a+", function()
        test("takes the middle of the valid neighbors in the smallest square", function()
            math.randomseed(3)
            local planes, mask = {}, {}
            for z = 1, 2 do
                planes[z] = {}
                for y = 1, 13 do
                    planes[z][y], mask[y] = {}, mask[y] or {}
                    for x = 1, 70 do
                        local dice = math.random(40)
                        planes[z][y][x] = dice == 1 and NAN or dice == 2 and INF or dice == 3 and -INF
                            or math.random(1000)
                        mask[y][x] = (x > 30 and x < 41 and y > 4 and 7 or x == 60 and 1
                            or math.random(50) == 1 and 1) or 0
                    end
                end
            end
            local a <close> = mb.array(planes, {device = device})
            local m <close> = mb.array(mask, {dtype = "u8", device = device})
            for _, method in ipairs {"median", "mean"} do
                for _, reach in ipairs {1, 2, 6} do
                    local expected, sums = {}, {0, 0}
                    for z = 1, 2 do
                        local counts
                        expected[z], counts = naive(planes[z], mask, method, reach)
                        sums = {sums[1] + counts[1], sums[2] + counts[2]}
                    end
                    local got <close>, counts = mend(a, {mask = m, method = method, reach = reach})
                    helper.assert_close(expected, got, 1e-7, method .. reach)
                    assert.same(sums, counts)
                    assert.is_true(sums[1] > 50 and (sums[2] > 0) == (reach < 6))
                    local own <close> = a:copy()
                    local same, again = mend(own, {mask = m, method = method,
                        reach = reach, out = own})
                    assert.is_true(same:to_string() == got:to_string())
                    assert.same(sums, again)
                end
            end
        end)

        test("keeps integers, rounded, and all values that are valid", function()
            local a <close> = mb.array({{1, 2, 3, 4}, {5, 600, 7, 8}, {9, 10, 11, 12}},
                {dtype = "u16", device = device})
            local m <close> = mb.array({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}},
                {dtype = "u8", device = device})
            local mean <close> = mend(a, {mask = m, method = "mean"})
            assert.same({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}, mean:to_table())
            local median <close> = mend(a, {mask = m})
            assert.equal("u16", median.dtype)
            assert.equal(6, median:item(2, 2))
            local none <close>, counts = mend(a)
            assert.is_true(none:to_string() == a:to_string())
            assert.same({0, 0}, counts)
        end)

        test("leaves what has no valid neighbor, and NaN if asked", function()
            local all <close> = mb.full({2, 5, 40}, NAN, {device = device})
            local got <close>, counts = mend(all)
            helper.assert_close(all, got, 0)
            assert.same({0, 400}, counts)
            local one <close> = mb.array({{NAN}}, {device = device})
            local kept <close>, left = mend(one)
            helper.assert_close(one, kept, 0)
            assert.same({0, 1}, left)
            local row <close> = mb.array({{1, NAN, 3}}, {device = device})
            local filled <close> = mend(row)
            assert.same({{1, 2, 3}}, filled:to_table())
            local same <close>, zero = mend(row, {nonfinite = false})
            helper.assert_close(row, same, 0)
            assert.same({0, 0}, zero)
        end)
    end)
end)

describe("mend", function()
    it("agrees with SciPy's generic filter where each square has valid values", function()
        oracle.needs "scipy"
        local a <close> = mb.random({30, 40}, {seed = 4})
        local m <close> = mb.random({30, 40}, {seed = 5, dtype = "u8", high = 6})
        local expected <close> = oracle.run("scipy", [[
from scipy.ndimage import generic_filter
b = np.where(m == 1, np.nan, a.astype(float))
result = np.where(m == 1, generic_filter(b, np.nanmedian, 3, mode="constant", cval=np.nan), a)]],
            {a = a, m = m}, {"result"})
        local list = m:to_table()
        for _, row in ipairs(list) do
            for x, v in ipairs(row) do
                row[x] = v == 1 and 1 or 0
            end
        end
        local mask <close> = mb.array(list, {dtype = "u8"})
        local got <close> = mend(a, {mask = mask})
        helper.assert_close(expected, got, 1e-7)
    end)

    it("explains a mask that does not fit", function()
        local a <close> = mb.ones {2, 4, 5}
        local m <close> = mb.zeros({4, 6}, {dtype = "u8"})
        assert.matches("mask has 4 x 6 pixels and the images of a have 4 x 5",
            (helper.failure(mb.mend, a, {mask = m})))
    end)
end)
