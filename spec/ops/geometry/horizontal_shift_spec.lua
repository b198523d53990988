local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

local function moved(frames, shifts, edge, value)
    local result = {}
    for j, frame in ipairs(frames) do
        local s0 = math.floor(shifts[j])
        local f = shifts[j] - s0
        result[j] = {}
        for y, row in ipairs(frame) do
            local function at(x)
                return row[edge and math.max(1, math.min(#row, x)) or x] or value
            end
            result[j][y] = {}
            for x = 1, #row do
                result[j][y][x] = (1 - f) * at(x + s0) + f * at(x + s0 + 1)
            end
        end
    end
    return result
end

describe("horizontal_shift", function()
    helper.each_device(function(device, it)
        it("moves each frame by its own amount, apart and in place, on " .. device, function()
            for _, cols in ipairs {1, 13, 2500} do
                local shifts = {0.25, -3.5, 12, -1, 0, 3000, -2222.75}
                for _, edge in ipairs {true, false} do
                    local a <close> = mb.random({7, 3, cols}, {seed = 1, device = device})
                    local options = {mode = edge and "edge" or "constant", value = 0.5}
                    local want = moved(a:to_table(), shifts, edge, 0.5)
                    local apart <close> = mb.horizontal_shift(a, shifts, options)
                    helper.assert_close(want, apart, 1e-6)
                    options.out = a
                    mb.horizontal_shift(a, shifts, options)
                    assert.is_true(apart:to_string() == a:to_string())
                end
            end
        end)

        it("pairs a subset with its own shifts, of frames in any order of axes, on " .. device,
            function()
                local a <close> = mb.random({3, 5, 20}, {seed = 2, device = device})
                local frames <close> = a:permute(2, 1, 3)
                local dense <close> = frames:copy()
                local shifts = {1.5, 2.25, -3, 4, 5.125, -6.5, 7}
                local want = moved(dense:to_table(), {7, 1.5, 1.5, -6.5, -3}, false, 0)
                local result <close> = mb.horizontal_shift(frames, shifts,
                    {indices = {7, 1, 1, 6, 3}})
                helper.assert_close(want, result, 1e-6)
            end)
    end)

    it("is vertical_shift of the transposed frames", function()
        local a <close> = mb.random({4, 9, 17}, {seed = 3})
        local shifts = {0.5, -2.25, 3.125, 8}
        local turned <close> = a:permute(1, 3, 2)
        local dense <close> = turned:copy()
        mb.vertical_shift(dense, shifts, {out = dense})
        local back <close> = dense:permute(1, 3, 2)
        local result <close> = mb.horizontal_shift(a, shifts)
        helper.assert_close(back:to_table(), result, 1e-6)
    end)

    it("gives what SciPy gives", function()
        oracle.needs "scipy"
        local a <close> = mb.random({6, 40}, {seed = 4})
        local want <close> = oracle.run("scipy", [[
from scipy.ndimage import shift
b = shift(a.astype(float), (0, -2.375), order=1, mode='nearest')
]], {a = a}, {"b"})
        local result <close> = mb.horizontal_shift(a, 2.375, {mode = "edge"})
        helper.assert_close(want:to_table(), result, 1e-6)
    end)

    it("needs no scratch, and refuses shifts that do not fit", function()
        local known = mb.op.estimate("horizontal_shift", {{"f32", 3, 50, 8}}, {shifts = {1, 2, 3}},
            {given = {"result"}})
        assert.equal(0, known.peak)
        local a <close> = mb.zeros {3, 4, 5}
        assert.matches("2 shifts were given for 3", (helper.failure(mb.horizontal_shift, a,
            {1, 2})))
        assert.matches("a whole number of 1 to 2, the number of shifts", (helper.failure(mb.horizontal_shift, a, {1, 2},
            {indices = {1, 2, 3}})))
    end)
end)
