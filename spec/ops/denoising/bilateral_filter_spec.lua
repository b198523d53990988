local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- By loops over all neighbors; edges continue symmetrically.
local function naive(values, sigma_value, sigma, radius, dimensions)
    local nz, ny, nx = #values, #values[1], #values[1][1]
    local function inside(i, n)
        i = (i - 1) % (2 * n)
        return (i < n and i or 2 * n - 1 - i) + 1
    end
    local deep, made = dimensions == 3 and radius or 0, {}
    for z = 1, nz do
        made[z] = {}
        for y = 1, ny do
            made[z][y] = {}
            for x = 1, nx do
                local c, sum, weights = values[z][y][x], 0, 0
                for dz = -deep, deep do
                    for dy = -radius, radius do
                        for dx = -radius, radius do
                            local v = values[inside(z + dz, nz)][inside(y + dy, ny)]
                                [inside(x + dx, nx)]
                            local w = math.exp(-(dz ^ 2 + dy ^ 2 + dx ^ 2) / (2 * sigma ^ 2)
                                - (v - c) ^ 2 / (2 * sigma_value ^ 2))
                            sum, weights = sum + w * v, weights + w
                        end
                    end
                end
                made[z][y][x] = sum / weights
            end
        end
    end
    return made
end

helper.each_device(function(device, test)
    describe("bilateral_filter on " .. device:match("^%a+"), function()
        test("is the weighted mean of the neighbors, in 2 and 3 dimensions", function()
            for _, case in ipairs {
                {{1, 1, 1}, 2, 1}, {{1, 1, 7}, 2, 0.5}, {{2, 9, 1}, 2, 1}, {{2, 19, 37}, 2, 1.3},
                {{3, 5, 34}, 3, 0.6}, {{1, 7, 5}, 3, 0.7}, {{2, 17, 33}, 2, 1, 1},
            } do
                local a <close> = mb.random(case[1], {seed = 3, low = -1, device = device})
                local made <close> = mb.bilateral_filter(a, 0.4, {sigma_spatial = case[3],
                    dimensions = case[2], radius = case[4]})
                local radius = case[4] or math.max(2, math.ceil(3 * case[3]))
                helper.assert_close(naive(a:to_table(), 0.4, case[3], radius, case[2]), made, 2e-6)
            end
        end)

        -- Its weights of distances lie beside their places (0.26), so here all of them are 1.
        test("weighs values as skimage.restoration.denoise_bilateral does", function()
            oracle.needs "skimage"
            local noise <close> = mb.random({41, 37}, {seed = 8})
            for _, mode in ipairs {"constant", "edge", "symmetric", "reflect", "wrap"} do
                local want <close> = oracle.run("skimage", ([[
from skimage.restoration import denoise_bilateral
b = denoise_bilateral(a, sigma_color=0.3, sigma_spatial=1e6, win_size=7, bins=1000000, mode='%s')
]]):format(mode), {a = noise}, {"b"})
                local a <close> = noise:to(device)
                local made <close> = mb.bilateral_filter(a, 0.3, {sigma_spatial = 1000, radius = 3,
                    mode = mode})
                helper.assert_close(want, made, 2e-5)
            end
        end)

        test("leaves constants to the bit, and edges higher than the noise", function()
            local a <close> = mb.full({3, 20, 40}, 0.7, {device = device})
            for dimensions = 2, 3 do
                local b <close> = mb.bilateral_filter(a, 0.1, {dimensions = dimensions})
                helper.assert_close(a, b, 0)
            end
            local right <close> = a:view(mb.all, mb.all, {21, 40})
            right:fill(3)
            local b <close> = mb.bilateral_filter(a, 0.01, {dimensions = 3})
            helper.assert_close(a, b, 0)
        end)

        test("leaves out what is not finite, and leaves it as it is", function()
            local values = {}
            for z = 1, 3 do
                values[z] = {}
                for y = 1, 20 do
                    values[z][y] = {}
                    for x = 1, 40 do
                        values[z][y][x] = 0.5
                    end
                end
            end
            values[2][9][7], values[2][9][20], values[2][9][33] = 0 / 0, 1 / 0, -1 / 0
            local a <close> = mb.array(values, {device = device})
            for dimensions = 2, 3 do
                local b <close> = mb.bilateral_filter(a, 0.1, {dimensions = dimensions})
                assert.is_true(a:to_string() == b:to_string())
            end
        end)

        test("takes rows at any stride, and gives the same bits for any number of slices",
            function()
            local wide <close> = mb.random({4, 30, 60}, {seed = 4, device = device})
            local part <close> = wide:view(mb.all, {3, 28}, {2, 55})
            local dense <close> = part:copy()
            for dimensions = 2, 3 do
                local options = {dimensions = dimensions, sigma_spatial = 0.7}
                local expected <close> = mb.bilateral_filter(dense, 0.3, options)
                local other <close> = mb.bilateral_filter(part, 0.3, options)
                helper.assert_close(expected, other, 0)
            end
            local whole <close> = mb.bilateral_filter(dense, 0.3)
            local slice <close> = dense:view({3, 3})
            local one <close> = mb.bilateral_filter(slice, 0.3)
            local same <close> = whole:view({3, 3})
            helper.assert_close(same, one, 0)
        end)
    end)
end)

describe("bilateral_filter", function()
    it("explains what does not fit", function()
        local a <close> = mb.ones {4, 5}
        assert.matches("dimensions is 3, but the array has 2 axes",
            (helper.failure(mb.bilateral_filter, a, 1, {dimensions = 3})))
        assert.matches("sigma_value", (helper.failure(mb.bilateral_filter, a, 0)))
        assert.matches("takes 60 neighbors on each side",
            (helper.failure(mb.bilateral_filter, a, 1, {sigma_spatial = 20})))
    end)
end)
