local check = require "spec.support.step_check"
local mb = require "moonbeam"

local LINES <const> = "line integrals"

describe("the step circular_mask", function()
    it("is the circle of the reconstruction", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1})
        local scan = check.scan(data)
        local want <close> = check.result(scan, {{"fbp", center = 5.5, circle = 0.95,
            circle_value = 2}}, nil, LINES)
        local _ <close> = check.gives(want, scan, {{"fbp", center = 5.5, circle = 0},
            {"circular_mask", preset = "httomo", value = 2}}, LINES)
    end)

    it("has the middle of the whole slice where a part is made", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1})
        local scan = check.scan(data)
        for _, part in ipairs {{y = {2, 9}, x = {-4, -1}}, {y = {-5, 12}}, {size = 20},
            {size = 20, x = {3, 6}}} do
            local own, masked = {"fbp", center = 5.5, circle = 0}, {"fbp", center = 5.5,
                circle = 0.6}
            for name, value in pairs(part) do
                own[name], masked[name] = value, value
            end
            local want <close> = check.result(scan, {masked}, nil, LINES)
            local _ <close> = check.gives(want, scan, {own, {"circular_mask", radius = 0.6}},
                LINES)
        end
    end)

    it("follows the width of a half acquisition", function()
        local data <close> = mb.random({12, 3, 12}, {seed = 1})
        local scan = check.scan(data, {angles = mb.tomo.angles(12, 2 * math.pi)})
        local want <close> = check.result(scan, {"half_acquisition", {"center", column = 3},
            {"fbp", circle = 0.8}}, nil, LINES)
        local _ <close> = check.gives(want, scan, {"half_acquisition", {"center", column = 3},
            {"fbp", circle = 0}, {"circular_mask", radius = 0.8}}, LINES)
        check.refused("the middle of the whole slice follows from the axis", scan,
            {"half_acquisition", {"center", column = 3}, {"fbp", circle = 0, y = {2, 5}},
                "circular_mask"}, LINES)
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1})
        local scan = check.scan(data)
        check.refused("radius is 0; it must be a number between 0 and 10", scan, {{"fbp", center = 5},
            {"circular_mask", radius = 0}}, LINES)
        check.refused("radius is 0.01, less than a pixel", scan, {{"fbp", center = 5},
            {"circular_mask", radius = 0.01}}, LINES)
        check.refused("it takes slices, but the data are frames", scan, {"circular_mask"}, LINES)
    end)
end)
