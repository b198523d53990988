local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- An image with values c + a y + b x.
local function plane(rows, cols, c, a, b)
    local image = {}
    for y = 0, rows - 1 do
        image[y + 1] = {}
        for x = 0, cols - 1 do
            image[y + 1][x + 1] = c + a * y + b * x
        end
    end
    return image
end

describe("rotate", function()
    helper.each_device(function(device, it)
        it("turns counterclockwise, by quarters without a change, on " .. device, function()
            local a <close> = mb.random({2, 13, 13}, {seed = 1, device = device})
            local old = a:to_table()
            for turns = -2, 4 do
                for _, mode in ipairs {"constant", "symmetric"} do
                    local result <close> = mb.rotate(a, turns * math.pi / 2, {mode = mode,
                        value = 9})
                    local new = result:to_table()
                    for y = 1, 13 do
                        for x = 1, 13 do
                            local from_y, from_x = y, x
                            for _ = 1, turns % 4 do -- the top row comes from the right column
                                from_y, from_x = from_x, 14 - from_y
                            end
                            assert.equal(old[2][from_y][from_x], new[2][y][x])
                        end
                    end
                end
            end
        end)

        it("turns a plane exactly, about any point, on " .. device, function()
            local rows, cols = 40, 57
            local a <close> = mb.array(plane(rows, cols, 3, 0.25, -0.5), {device = device})
            for _, order in ipairs {1, 3} do
                for _, case in ipairs {{0.1, {19.5, 28}}, {-0.07, {3, 50.5}}, {0.3, {20, 31}}} do
                    local angle, center = case[1], case[2]
                    local result <close> = mb.rotate(a, angle, {center = center, order = order,
                        mode = "constant", value = -1000})
                    local got, count = result:to_table(), 0
                    for y = 0, rows - 1 do
                        for x = 0, cols - 1 do
                            local dy, dx = y - center[1], x - center[2]
                            local py = center[1] + math.cos(angle) * dy + math.sin(angle) * dx
                            local px = center[2] - math.sin(angle) * dy + math.cos(angle) * dx
                            local value = got[y + 1][x + 1]
                            local edge = order == 1 and 1e-3 or 12 -- splines bend at edges
                            if py > edge and py < rows - 1 - edge and px > edge
                                and px < cols - 1 - edge then
                                count = count + 1
                                assert.is_true(math.abs(value - (3 + 0.25 * py - 0.5 * px)) < 2e-5)
                            elseif py < -1e-3 or py > rows - 1 + 1e-3 or px < -1e-3
                                or px > cols - 1 + 1e-3 then
                                assert.equal(-1000, value)
                            end
                        end
                    end
                    assert.is_true(count > 300)
                end
            end
        end)

        it("changes nothing without an angle on " .. device, function()
            local a <close> = mb.random({2, 8, 700}, {seed = 2, device = device})
            local result <close> = mb.rotate(a, 0, {center = {3.123, 5.321}, mode = "constant"})
            assert.is_true(a:to_string() == result:to_string())
        end)

        it("makes rows from a part of the frame on " .. device, function()
            local a <close> = mb.random({2, 90, 41}, {seed = 3, device = device})
            for _, order in ipairs {1, 3} do
                local whole <close> = mb.rotate(a, 0.2, {mode = "reflect", order = order})
                for first = 1, 90, 11 do
                    local last = math.min(90, first + 10)
                    local piece = mb.op.piece("rotate", {{"f32", 2, 90, 41}}, {angle = 0.2,
                        mode = "reflect", order = order}, {axis = 2, first = first, last = last})
                    local part <close> = a:view(mb.all, {piece.first, piece.last}, mb.all)
                    local result <close> = mb.rotate(part, 0.2, {mode = "reflect", order = order,
                        part = {piece.first, 90}, rows = {first, last}})
                    local want <close> = whole:view(mb.all, {first, last}, mb.all)
                    assert.is_true(want:to_string() == result:to_string())
                end
            end
        end)
    end)

    it("gives what SciPy gives", function()
        oracle.needs "scipy"
        local a <close> = mb.random({50, 64}, {seed = 5})
        for _, order in ipairs {1, 3} do
            local want <close> = oracle.run("scipy", ([[
from scipy.ndimage import rotate
b = rotate(a.astype(float), 12.5, reshape=False, order=%d, mode='reflect')
]]):format(order), {a = a}, {"b"})
            local result <close> = mb.rotate(a, math.rad(12.5), {mode = "symmetric", order = order})
            assert.is_true(helper.difference(want:to_table(), result) < 3e-6)
        end
    end)

    it("refuses what makes no sense", function()
        local a <close> = mb.zeros {2, 9, 9}
        local _, err = helper.failure(mb.rotate, a, 0.1, {center = {1}})
        assert.equal("center", err.arg)
        _, err = helper.failure(mb.rotate, a, 90)
        assert.equal("angle", err.arg)
    end)
end)
