local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

describe("normalize_background", function()
    it("divides by a line through both edges", function()
        for _, case in ipairs {{2, 1}, {7, 3}, {33, 10}, {300, 150}} do
            local n, width = table.unpack(case)
            local a <close> = mb.random({3, n}, {seed = n, low = 1, high = 2})
            local rows = a:to_table()
            for _, row in ipairs(rows) do
                local left, right = 0, 0
                for x = 1, width do
                    left, right = left + row[x] / width, right + row[n + 1 - x] / width
                end
                local x0, x1 = (width + 1) / 2, n - (width - 1) / 2
                for x = 1, n do
                    row[x] = row[x] / (left + (right - left) * (x - x0) / (x1 - x0))
                end
            end
            local found <close> = mb.normalize_background(a, {width = width})
            helper.assert_close(rows, found, 1e-6)
        end
    end)

    it("takes a beam out that flickers and tilts, exactly", function()
        local want, beam = {}, {}
        for y = 1, 5 do
            want[y], beam[y] = {}, {}
            for x = 1, 40 do
                want[y][x] = (x > 10 and x < 31) and 0.3 + 0.02 * x or 1
                beam[y][x] = want[y][x] * (0.7 + 0.1 * y + 0.01 * y * x)
            end
        end
        local a <close> = mb.array(beam)
        local found <close> = mb.normalize_background(a, {width = 8})
        helper.assert_close(want, found, 1e-6)
        for y = 1, 5 do
            for x = 1, 40 do
                beam[y][x] = 0.4 * y - 0.003 * y * x + want[y][x]
                want[y][x] = want[y][x] - 1
            end
        end
        local b <close> = mb.array(beam)
        local subtracted <close> = mb.normalize_background(b, {width = 10, operation = "subtract"})
        helper.assert_close(want, subtracted, 1e-6)
    end)

    it("subtracts the parabola of least squares", function()
        oracle.needs "numpy"
        for _, n in ipairs {1, 2, 3, 4, 65, 300} do
            local a <close> = mb.random({6, n}, {seed = n, low = -1, high = 2})
            local want <close> = oracle.run("numpy", [[
n = a.shape[1]
x = np.linspace(-1, 1, n)
r = np.empty_like(a)
for i in range(a.shape[0]):
    r[i] = a[i] - np.polyval(np.polyfit(x, a[i].astype(float), min(2, n - 1)), x)
]], {a = a}, {"r"})
            local found <close> = mb.normalize_background(a, {method = "chebyshev",
                operation = "subtract"})
            assert.is_true(helper.difference(want, found) < 3e-6, n)
        end
    end)

    it("is nabu's normalization but for terms of 1 / n^2", function()
        oracle.needs "numpy"
        local a <close> = mb.random({4, 500}, {seed = 1, low = 1, high = 2})
        local want <close> = oracle.run("numpy", [[
n = a.shape[1]
x = 2 * (np.arange(n) + 0.5 - n / 2) / n
f2 = 3 * x * x - 1
r = np.empty_like(a)
for i in range(a.shape[0]):
    row = a[i].astype(float)
    r[i] = row - (row.sum() / n + (x * row).sum() * x / (x * x).sum()
                  + (f2 * row).sum() * f2 / (f2 * f2).sum())
]], {a = a}, {"r"})
        local found <close> = mb.normalize_background(a, {method = "chebyshev",
            operation = "subtract"})
        assert.is_true(helper.difference(want, found) < 10 * 1.5 / 500 ^ 2 * 1.5 + 1e-5)
    end)

    it("works on rows anywhere, in place", function()
        local a <close> = mb.random({3, 5, 24}, {seed = 2, low = 1, high = 3})
        for _, method in ipairs {"edges", "chebyshev"} do
            local want <close> = mb.normalize_background(a, {method = method, width = 3})
            local copy <close> = a:copy()
            local sinograms <close> = copy:permute(2, 1, 3)
            mb.normalize_background(sinograms, {method = method, width = 3, out = sinograms})
            assert.is_true(want:to_string() == copy:to_string(), method)
        end
    end)

    it("raises divisors below the floor, and spoils rows with a NaN at an edge", function()
        local a <close> = mb.array {{0, 5, 5, 0}, {0 / 0, 1, 1, 1}, {1, 0 / 0, 1, 1}}
        local found <close> = mb.normalize_background(a, {width = 1, floor = 0.5})
        local rows = found:to_table()
        assert.same({0, 10, 10, 0}, rows[1])
        for x = 1, 4 do
            assert.truthy(rows[2][x] ~= rows[2][x])
            assert.equal(x == 2, rows[3][x] ~= rows[3][x])
        end
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros {3, 9}
        local text, err = helper.failure(mb.normalize_background, a, {width = 5})
        assert.equal("width", err.arg)
        assert.is_truthy(text:find("give a width of at most 4", 1, true), text)
        local _, other = helper.failure(mb.normalize_background, a, {method = "edge"})
        assert.equal("method", other.arg)
    end)
end)
