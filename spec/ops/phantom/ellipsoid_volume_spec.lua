local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("ellipsoid_volume on " .. device:match("^%a+"), function()
        local ellipsoids = { 2, 6, 4, 5, 1.3, -0.6, 0.4, 0.3, 1, 3, 3, 2, -4, 2, -1, 0 }

        test("averages sections over the height of a slice", function()
            local slices <close> = mb.ellipsoid_volume(ellipsoids, { -2, 0, 4, 5 }, { 18, 20 },
                { subslices = 4, device = device })
            for i, height in ipairs { -2, 0, 4, 5 } do
                local heights = {}
                for j = 1, 4 do
                    heights[j] = height + (j - 0.5) / 4 - 0.5
                end
                local sections <close> = mb.ellipsoid_volume(ellipsoids, heights, { 18, 20 },
                    { device = device })
                local mean <close> = mb.reduce(sections, "mean", { axis = 1 })
                local slice <close> = slices[i]
                helper.assert_close(mean, slice, 1e-6)
            end
        end)

        test("holds the ellipsoids' volumes, wherever they are", function()
            local heights = {}
            for z = 1, 24 do
                heights[z] = z - 12.5
            end
            local volume <close> = mb.ellipsoid_volume(ellipsoids, heights, { 24, 26 },
                { subslices = 8, device = device })
            local expected = 4 / 3 * math.pi * (2 * 6 * 4 * 5 + 3 * 3 * 2)
            assert.near(expected, volume:sum(), 0.003 * expected)
        end)
    end)
end)
