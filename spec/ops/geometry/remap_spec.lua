local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- Tables of rows and columns, from 0, that leave each pixel where it is.
local function identity(rows, cols)
    local y, x = {}, {}
    for i = 1, rows do
        y[i], x[i] = {}, {}
        for j = 1, cols do
            y[i][j], x[i][j] = i - 1, j - 1
        end
    end
    return y, x
end

describe("remap", function()
    helper.each_device(function(device, it)
        it("moves pixels as the map says on " .. device, function()
            local a <close> = mb.random({2, 9, 12}, {seed = 1, device = device})
            local y, x = identity(9, 12)
            for _, dtype in ipairs {"f32", "f64"} do
                local rows <close> = mb.array(y, {dtype = dtype, device = device})
                local columns <close> = mb.array(x, {dtype = dtype, device = device})
                for _, mode in ipairs {"constant", "edge", "reflect", "symmetric"} do
                    local same <close> = mb.remap(a, rows, columns, {mode = mode})
                    assert.is_true(a:to_string() == same:to_string())
                end
            end
            local old = a:to_table()
            local rows <close> = mb.array({{0, 8, 2.5}, {0 / 0, -1, 9}}, {device = device})
            local columns <close> = mb.array({{11, 0.25, 3}, {1, 1, 11}}, {dtype = "f64",
                device = device})
            local result <close> = mb.remap(a, rows, columns, {mode = "constant", value = 7})
            for k = 1, 2 do
                local frame = old[k]
                helper.assert_close({{frame[1][12], 0.75 * frame[9][1] + 0.25 * frame[9][2],
                    0.5 * frame[3][4] + 0.5 * frame[4][4]}, {7, 7, 7}}, result:to_table()[k], 1e-6)
            end
            local edge <close> = mb.remap(a, rows, columns, {value = 7})
            assert.same({7, old[1][1][2], old[1][9][12]}, edge:to_table()[1][2])
        end)

        it("does what undistort does, by its places, on " .. device, function()
            local a <close> = mb.random({3, 31, 40}, {seed = 2, device = device})
            local y, x = identity(31, 40)
            for i = 1, 31 do
                for j = 1, 40 do
                    local dy, dx = y[i][j] - 14.5, x[i][j] - 21
                    local f = 1.01 + 1e-3 * math.sqrt(dy * dy + dx * dx)
                    y[i][j], x[i][j] = 14.5 + f * dy, 21 + f * dx
                end
            end
            local rows <close> = mb.array(y, {dtype = "f64", device = device})
            local columns <close> = mb.array(x, {dtype = "f64", device = device})
            for _, order in ipairs {1, 3} do
                local want <close> = mb.undistort(a, {14.5, 21}, {1.01, 1e-3}, {order = order,
                    mode = "symmetric"})
                local result <close> = mb.remap(a, rows, columns, {order = order,
                    mode = "symmetric"})
                helper.assert_close(want:to_table(), result, 1e-5)
            end
        end)

        it("takes places of whole frames in a part of the rows on " .. device, function()
            local a <close> = mb.random({2, 30, 17}, {seed = 3, device = device})
            local y, x = identity(30, 17)
            local rows <close> = mb.array(y, {device = device})
            local columns <close> = mb.array(x, {device = device})
            mb.binary(rows, "add", {scalar = 0.3, out = rows})
            local whole <close> = mb.remap(a, rows, columns)
            local part <close> = a:view(mb.all, {10, 21}, mb.all)
            local own_rows <close> = rows:view({11, 20}, mb.all)
            local own_columns <close> = columns:view({11, 20}, mb.all)
            local result <close> = mb.remap(part, own_rows, own_columns, {part = {10, 30}})
            local want <close> = whole:view(mb.all, {11, 20}, mb.all)
            assert.is_true(want:to_string() == result:to_string())
        end)
    end)

    it("gives what SciPy gives", function()
        oracle.needs "scipy"
        local a <close> = mb.random({30, 44}, {seed = 5})
        local rows <close> = mb.random({25, 50}, {seed = 6, low = -20, high = 50, dtype = "f64"})
        local columns <close> = mb.random({25, 50}, {seed = 7, low = -60, high = 99,
            dtype = "f64"})
        for _, order in ipairs {1, 3} do
            local want <close> = oracle.run("scipy", ([[
from scipy.ndimage import map_coordinates
b = map_coordinates(a.astype(float), [y, x], order=%d, mode='reflect')
]]):format(order), {a = a, y = rows, x = columns}, {"b"})
            local result <close> = mb.remap(a, rows, columns, {mode = "symmetric", order = order})
            assert.is_true(helper.difference(want:to_table(), result) < 3e-6)
        end
    end)

    it("refuses maps that do not fit together", function()
        local a <close> = mb.zeros {2, 9, 9}
        local rows <close> = mb.zeros {3, 4}
        local columns <close> = mb.zeros {4, 3}
        local text, err = helper.failure(mb.remap, a, rows, columns)
        assert.equal("shape", err.code)
        assert.matches("columns is 4 x 3 and rows is 3 x 4", text)
    end)
end)
