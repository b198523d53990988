local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

local MODES = {"symmetric", "reflect", "edge", "wrap"}

-- The results of scipy.ndimage.median_filter for the modes in MODES.
local function scipy(a, size)
    return oracle.run("scipy", ([[
from scipy.ndimage import median_filter
symmetric, reflect, edge, wrap = (median_filter(a, size=(%s), mode=mode)
                                  for mode in ("reflect", "mirror", "nearest", "wrap"))]])
        :format(table.concat(size, ",")), {a = a}, MODES)
end

-- The index (from 1) of position i of an axis of n elements, by walking.
local function source(mode, i, n)
    local step = i < 1 and 1 or -1
    while i < 1 or i > n do
        if mode == "edge" then
            i = i < 1 and 1 or n
        elseif mode == "wrap" then
            i = i + step * n
        elseif mode == "symmetric" then
            i = i < 1 and 1 - i or 2 * n + 1 - i
        else
            i = n == 1 and 1 or i < 1 and 2 - i or 2 * n - i
        end
    end
    return i
end

local function above(x, y) -- NaN is above all
    return x == x and (y ~= y or x < y)
end

-- Medians of nested tables {z}{y}{x}, by sorting.
local function naive(values, size, mode)
    local nz, ny, nx = #values, #values[1], #values[1][1]
    local result = {}
    for z = 1, nz do
        result[z] = {}
        for y = 1, ny do
            result[z][y] = {}
            for x = 1, nx do
                local window = {}
                for dz = -(size[1] // 2), size[1] // 2 do
                    local plane = values[source(mode, z + dz, nz)]
                    for dy = -(size[2] // 2), size[2] // 2 do
                        local row = plane[source(mode, y + dy, ny)]
                        for dx = -(size[3] // 2), size[3] // 2 do
                            window[#window + 1] = row[source(mode, x + dx, nx)]
                        end
                    end
                end
                table.sort(window, above)
                result[z][y][x] = window[#window // 2 + 1]
            end
        end
    end
    return result
end

local function same(expected, result, what)
    helper.assert_close(expected, result, 0, what)
end

helper.each_device(function(device, test)
    describe("median_filter on " .. device:match "^%a+", function()
        test("is scipy.ndimage.median_filter for 3, 5 and 7 in two and three dimensions", function()
            oracle.needs "scipy"
            local cases = {}
            for _, k in ipairs {3, 5, 7} do
                cases[#cases + 1] = {{k, k}, {23, 71}}
                cases[#cases + 1] = {{k, k, k}, {9, 11, 67}}
            end
            for i, case in ipairs(cases) do
                for _, dtype in ipairs {"f32", "u16"} do
                    local a <close> = mb.random(case[2], {seed = i, dtype = dtype,
                        high = dtype == "u16" and 50 or 1})
                    local on <close> = a:to(device)
                    for m, expected in ipairs {scipy(a, case[1])} do
                        local mode, close <close> = MODES[m], expected
                        local got <close> = mb.median_filter(on, case[1], {mode = mode})
                        assert.equal(dtype, got.dtype)
                        same(close, got, ("%s, %s, %s"):format(table.concat(case[1], "x"), dtype,
                            mode))
                    end
                end
            end
        end)

        test("is the middle of the sorted window for any odd extents", function()
            for i, size in ipairs {{1, 1, 1}, {3, 1, 1}, {1, 1, 9}, {5, 3, 1}, {3, 3, 5}, {1, 9, 15},
                {1, 1, 31}, {7, 1, 13}, {1, 7, 7}, {5, 5, 5}} do
                local a <close> = mb.random({4, 6, 35}, {seed = i, device = device})
                local mode = MODES[i % 4 + 1]
                local got <close> = mb.median_filter(a, size, {mode = mode})
                same(naive(a:to_table(), size, mode), got, table.concat(size, "x") .. " " .. mode)
            end
        end)

        test("keeps a constant, and copies with a window of one element", function()
            local a <close> = mb.full({3, 8, 40}, 7.25, {device = device})
            local b <close> = mb.median_filter(a, 5)
            same(a, b)
            local c <close> = mb.random({5, 33}, {seed = 3, device = device})
            local d <close> = mb.median_filter(c, 1)
            same(c, d)
        end)

        test("takes windows larger than the image, one plane, one row, one column", function()
            for _, shape in ipairs {{1, 1, 1}, {1, 1, 5}, {1, 4, 1}, {2, 1, 3}, {1, 3, 130}} do
                for _, k in ipairs {3, 5, 7} do
                    for _, mode in ipairs(MODES) do
                        local a <close> = mb.random(shape, {seed = k, device = device})
                        local got <close> = mb.median_filter(a, k, {mode = mode})
                        same(naive(a:to_table(), {k, k, k}, mode), got,
                            ("%s, %d, %s"):format(table.concat(shape, "x"), k, mode))
                    end
                end
            end
        end)

        test("sorts NaN above infinity, and ties are no matter", function()
            local nan, inf = 0 / 0, 1 / 0
            local values = {{}}
            for y = 1, 6 do
                values[1][y] = {}
                for x = 1, 40 do
                    local v = (x * 7 + y * 5) % 4
                    values[1][y][x] = v == 0 and -nan or v == 1 and inf or v == 2 and x // 9 or -inf
                end
            end
            local a <close> = mb.array(values, {device = device})
            for _, k in ipairs {3, 5, 7, 9} do
                local got <close> = mb.median_filter(a, {1, k, k})
                same(naive(values, {1, k, k}, "symmetric"), got, tostring(k))
            end
            local all <close> = mb.full({4, 9, 9}, nan, {device = device})
            for _, k in ipairs {3, 5, 7} do
                local got <close> = mb.median_filter(all, k)
                same(all, got)
            end
        end)
    end)
end)

describe("median_filter", function()
    it("explains wrong extents", function()
        local a <close> = mb.ones {4, 5}
        assert.matches("extent 4; extents must be odd, for example 5",
            (helper.failure(mb.median_filter, a, 4)))
        assert.matches("one for each of the 2 axes",
            (helper.failure(mb.median_filter, a, {3, 3, 3})))
        local b <close> = mb.ones {4, 5, 6}
        assert.matches("has 1331 elements; it may have 1023 at most",
            (helper.failure(mb.median_filter, b, 11)))
        assert.matches("did you mean 'symmetric'",
            (helper.failure(mb.median_filter, a, 3, {mode = "symetric"})))
    end)

    it("takes rows of keys as scratch on the host, not an array", function()
        local known = mb.op.estimate("median_filter", {{"f32", 64, 256, 256}}, {size = 5},
            {device = "host"})
        assert.is_true(known.scratch < 4 * 64 * 256 * 256 / 10, tostring(known.scratch))
    end)
end)
