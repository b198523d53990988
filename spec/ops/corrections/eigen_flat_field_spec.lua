local mb = require "moonbeam"
local helper = require "spec.helper"

-- The inverse of a matrix of two rows.
local function inverse_of(m)
    local det = m[1][1] * m[2][2] - m[1][2] * m[2][1]
    return {m[2][2] / det, -m[1][2] / det, -m[2][1] / det, m[1][1] / det}
end

-- Arrays of a beam with two images, and projections of an object that leaves the strips free.
local function simulated(n, h, w, width)
    local mean = mb.random({h, w}, {seed = 1, low = -8, high = -6})
    local basis = mb.random({2, h, w}, {seed = 2, low = -1, high = 1})
    local m, b, products = mean:to_table(), basis:to_table(), {{0, 0}, {0, 0}}
    local function in_strip(x)
        return x <= width or x > w - width
    end
    local data, want = {}, {}
    for i = 1, n do
        data[i], want[i] = {}, {}
        for y = 1, h do
            data[i][y], want[i][y] = {}, {}
            for x = 1, w do
                local through = in_strip(x) and 1 or 0.3 + 0.5 * math.sin(x + y + i) ^ 2
                local beam = math.exp(-(m[y][x] + 0.3 * math.sin(i) * b[1][y][x]
                    - 0.1 * i * b[2][y][x]))
                data[i][y][x], want[i][y][x] = 50 + beam * through, through
            end
        end
    end
    for y = 1, h do
        for x = 1, w do
            for k = 1, in_strip(x) and 2 or 0 do
                for l = 1, 2 do
                    products[k][l] = products[k][l] + b[k][y][x] * b[l][y][x]
                end
            end
        end
    end
    return {mean = mean, basis = basis, data = mb.array(data), want = want,
        dark = mb.full({h, w}, 50), inverse = inverse_of(products)}
end

local function release(s)
    for _, name in ipairs {"mean", "basis", "data", "dark"} do
        s[name]:release()
    end
end

describe("eigen_flat_field", function()
    it("finds the beam of each frame", function()
        for _, shape in ipairs {{4, 5, 20, 4}, {3, 2, 600, 300}, {1, 9, 33, 1}} do
            local s = simulated(table.unpack(shape))
            local result, counts = mb.eigen_flat_field(s.data, s.mean, s.basis, s.inverse,
                {dark = s.dark, width = shape[4]})
            helper.assert_close(s.want, result, 3e-5)
            assert.same({0, 0, 0}, counts:to_table())
            local whole = result:to_string()
            result:release()
            counts:release()
            local _, again = mb.eigen_flat_field(s.data, s.mean, s.basis, s.inverse,
                {dark = s.dark, width = shape[4], out = s.data})
            assert.is_true(whole == s.data:to_string(), "in place")
            again:release()
            release(s)
        end
    end)

    it("takes raw frames of any type", function()
        local mean <close> = mb.full({3, 12}, -math.log(100))
        local basis <close> = mb.full({1, 3, 12}, 1)
        for _, dtype in ipairs {"u8", "u16", "i32", "f16", "f32"} do
            local data <close> = mb.full({2, 3, 12}, 50, {dtype = dtype})
            local part <close> = data:view(mb.all, mb.all, {5, 8})
            mb.fill(part, 25)
            local result, counts = mb.eigen_flat_field(data, mean, basis, {1 / 18}, {width = 3})
            local rows = result:to_table()
            assert.near(1, rows[2][3][1], 1e-5)
            assert.near(0.5, rows[1][1][6], 1e-5)
            result:release()
            counts:release()
        end
    end)

    it("leaves dead pixels of the strips out, and replaces what is not finite", function()
        local mean <close> = mb.full({2, 10}, -math.log(100))
        local basis <close> = mb.full({1, 2, 10}, 1)
        local data <close> = mb.array {{{100, 0, 30, 30, 0 / 0, 30, -7, 30, 100, 100},
            {100, 100, 30, 30, 30, 30, 30, 30, 0 / 0, 100}}}
        local result, counts = mb.eigen_flat_field(data, mean, basis, {1 / 8}, {width = 2,
            nonfinite = 9})
        local rows = result:to_table()[1]
        assert.near(1, rows[1][1], 1e-6)
        assert.equal(0, rows[1][2])
        assert.equal(9, rows[1][5])
        assert.equal(9, rows[2][9])
        assert.same({2, 0, 2}, counts:to_table())
        result:release()
        counts:release()
    end)

    it("says what is wrong", function()
        local data <close> = mb.zeros {2, 3, 8}
        local mean <close> = mb.zeros {3, 8}
        local basis <close> = mb.zeros {2, 3, 8}
        local small <close> = mb.zeros {3, 7}
        local function refused(arg, ...)
            local _, err = helper.failure(mb.eigen_flat_field, ...)
            assert.equal(arg, err.arg)
        end
        refused("mean", data, small, basis, {1, 0, 0, 1})
        refused("inverse", data, mean, basis, {1, 0, 0})
        refused("width", data, mean, basis, {1, 0, 0, 1}, {width = 5})
        refused("dark", data, mean, basis, {1, 0, 0, 1}, {dark = small})
    end)
end)
