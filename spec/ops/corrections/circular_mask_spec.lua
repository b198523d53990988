local mb = require "moonbeam"
local helper = require "spec.helper"

-- Pixels whose center is farther from (cy, cx), 0-based, than r become `value`.
local function masked(a, cy, cx, r, value)
    local rows = a:to_table()
    for y, row in ipairs(rows) do
        for x in ipairs(row) do
            if (y - 1 - cy) ^ 2 + (x - 1 - cx) ^ 2 > r * r then
                row[x] = value
            end
        end
    end
    return mb.array(rows)
end

describe("circular_mask", function()
    it("keeps what is inside", function()
        for _, case in ipairs {{9, 9, 1}, {8, 13, 0.9}, {5, 4, 0.3}, {1, 1, 1}, {7, 1, 1},
            {6, 6, 1.3}, {16, 15, 0.55}} do
            local ny, nx, radius = table.unpack(case)
            local a <close> = mb.random({ny, nx}, {seed = ny, low = 1, high = 2})
            local want <close> = masked(a, (ny - 1) / 2, (nx - 1) / 2, radius * math.min(ny, nx)
                / 2, -3)
            local found <close> = mb.circular_mask(a, {radius = radius, value = -3})
            assert.is_true(want:to_string() == found:to_string(), table.concat(case, " "))
            mb.circular_mask(a, {radius = radius, value = -3, out = a})
            assert.is_true(want:to_string() == a:to_string(), table.concat(case, " "))
        end
    end)

    it("gives parts of a slice what the whole has", function()
        local a <close> = mb.random({3, 21, 30}, {seed = 1, low = 1, high = 2})
        local whole <close> = mb.circular_mask(a, {radius = 0.8})
        for _, part in ipairs {{1, 21, 1, 30}, {4, 9, 11, 12}, {21, 21, 30, 30}} do
            local y, x = {part[1], part[2]}, {part[3], part[4]}
            local from <close> = a:view(mb.all, y, x)
            local want <close> = whole:view(mb.all, y, x)
            local found <close> = mb.circular_mask(from, {radius = 0.8, size = {21, 30},
                origin = {part[1] - 1, part[3] - 1}})
            assert.is_true(want:to_string() == found:to_string())
        end
    end)

    it("is the mask of back-projection", function()
        local angles = mb.tomo.angles(11)
        local sino <close> = mb.random({2, 11, 25}, {seed = 2})
        local open <close> = mb.backproject(sino, angles)
        local want <close> = mb.backproject(sino, angles, {circle = 0.7,
            circle_value = 4})
        local found <close> = mb.circular_mask(open, {radius = 0.7, value = 4})
        assert.is_true(want:to_string() == found:to_string())
    end)

    it("keeps NaN inside", function()
        local a <close> = mb.full({3, 3}, 0 / 0)
        local kept <close> = mb.circular_mask(a, {radius = 0.9, value = 5})
        assert.equal(5, (kept:item(1, 1)))
        assert.truthy(kept:item(2, 2) ~= kept:item(2, 2))
    end)

    it("takes empty lists as none", function()
        local a <close> = mb.random({6, 7}, {seed = 1})
        local want <close> = mb.circular_mask(a)
        local found <close> = mb.circular_mask(a, {size = {}, origin = {}})
        assert.is_true(want:to_string() == found:to_string())
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros {4, 6}
        for _, case in ipairs {{"size", {size = {4, 5}}}, {"size", {size = {1, 2, 3}}},
            {"origin", {origin = {1, 0}}}, {"size", {size = {8}, origin = {3, 3}}},
            {"origin", {origin = {0.5, 0}, size = {20}}}, {"radius", {radius = -1}}} do
            local _, err = helper.failure(mb.circular_mask, a, case[2])
            assert.equal(case[1], err.arg)
        end
    end)
end)
