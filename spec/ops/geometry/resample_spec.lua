local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- {index, weight} of the pixels, from 1, of which element i, from 1, of n is made.
local function taps(method, i, m, n)
    local list, s = {}, m / n
    if method == "linear" then
        local c = math.max(0, math.min(m - 1, (i - 0.5) * s - 0.5))
        local low = math.floor(c)
        list[1] = {low + 1, 1 - (c - low)}
        list[2] = c > low and {low + 2, c - low} or nil
        return list
    end
    for k = 1, m do
        local part = math.min(k, i * s) - math.max(k - 1, (i - 1) * s)
        if part > 1e-7 then
            list[#list + 1] = {k, part / s}
        end
    end
    return list
end

local function expected(frame, size, method)
    local result = {}
    for y = 1, size[1] do
        result[y] = {}
        for x = 1, size[2] do
            local sum = 0
            for _, v in ipairs(taps(method, y, #frame, size[1])) do
                for _, u in ipairs(taps(method, x, #frame[1], size[2])) do
                    sum = sum + v[2] * u[2] * frame[v[1]][u[1]]
                end
            end
            result[y][x] = sum
        end
    end
    return result
end

describe("resample", function()
    helper.each_device(function(device, it)
        it("makes means and interpolates, to any size, on " .. device, function()
            local a <close> = mb.random({2, 13, 31}, {seed = 1, device = device})
            local frames = a:to_table()
            for _, method in ipairs {"box", "linear"} do
                for _, size in ipairs {{5, 7}, {13, 31}, {1, 1}, {30, 64}, {12, 32}} do
                    local result <close> = mb.resample(a, size, {method = method})
                    local want = {}
                    for k, frame in ipairs(frames) do
                        want[k] = expected(frame, size, method)
                    end
                    helper.assert_close(want, result, 2e-6)
                end
                local same <close> = mb.resample(a, {13, 31}, {method = method})
                assert.is_true(a:to_string() == same:to_string())
            end
        end)

        it("makes rows from a part of the frame on " .. device, function()
            local a <close> = mb.random({2, 60, 33}, {seed = 3, device = device})
            for _, method in ipairs {"box", "linear"} do
                local whole <close> = mb.resample(a, {23, 40}, {method = method})
                for first = 1, 23, 4 do
                    local last = math.min(23, first + 3)
                    local piece = mb.op.piece("resample", {{"f32", 2, 60, 33}}, {size = {23, 40},
                        method = method}, {axis = 2, first = first, last = last})
                    local part <close> = a:view(mb.all, {piece.first, piece.last}, mb.all)
                    local result <close> = mb.resample(part, {23, 40}, {method = method,
                        part = {piece.first, 60}, rows = {first, last}})
                    local want <close> = whole:view(mb.all, {first, last}, mb.all)
                    assert.is_true(want:to_string() == result:to_string())
                end
            end
        end)
    end)

    it("by whole numbers is bin", function()
        local a <close> = mb.random({2, 12, 30}, {seed = 2})
        local binned <close> = mb.bin(a, {1, 3, 5})
        local result <close> = mb.resample(a, {4, 6})
        helper.assert_close(binned:to_table(), result, 1e-6)
    end)

    it("gives what SciPy gives", function()
        oracle.needs "scipy"
        local a <close> = mb.random({20, 30}, {seed = 4})
        local want <close> = oracle.run("scipy", [[
from scipy.ndimage import zoom
b = zoom(a.astype(float), (0.65, 1.9), order=1, mode='nearest', grid_mode=True)
]], {a = a}, {"b"})
        local result <close> = mb.resample(a, {13, 57}, {method = "linear"})
        helper.assert_close(want:to_table(), result, 2e-6)
    end)

    it("refuses what makes no sense", function()
        local a <close> = mb.zeros {2, 9, 9}
        assert.matches("size has 1 numbers", (helper.failure(mb.resample, a, {3})))
        assert.matches("size has 0 numbers", (helper.failure(mb.resample, a, {})))
        assert.matches("need rows 1 to 12 of 12; a has 1 to 9", (helper.failure(mb.resample, a,
            {3, 3}, {part = {1, 12}})))
    end)
end)
