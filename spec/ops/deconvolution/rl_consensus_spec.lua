local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("rl_consensus on " .. device:match("^%a+"), function()
        test("gives the mean and the product of gradients", function()
            local first <close> = mb.array({ { 1.5, 0.5, 2, 7 }, { 1, 3, 4, 7 } },
                { device = device })
            local second <close> = mb.array({ { 1.25, 2, 3, 7 }, { 1, 1, 0, 7 } },
                { device = device })
            mb.rl_consensus(first, second, 3)
            helper.assert_close({ { 1.375, 1.25, 2.5, 0 }, { 1, 2, 2, 0 } }, first, 1e-7)
            helper.assert_close({ { 0.125, -0.5, 2, 0 }, { 0, 0, -3, 0 } }, second, 1e-7)
        end)

        test("divides by the table as by the array", function()
            local h <close> = mb.random({ 3, 4, 5 }, { seed = 5, device = device })
            local sum <close> = mb.psf.normalize(h)
            local window, center, grid = { 5, 6, 7 }, { 1, 2, 2 }, { 8, 9, 12 }
            local ones <close> = mb.ones(window, { device = device })
            local padded <close> = mb.embed(ones, grid)
            local otf <close> = mb.convolution.transfer(h, grid, { center = center })
            mb.convolution.apply(padded, otf, 12, true)
            local samples <close> = padded:view(mb.all, mb.all, { 1, 12 })
            local normalizer <close> = samples:copy()
            local summed <close> = mb.summed_area(sum)
            local function run(options)
                local first <close> = mb.random({ 8, 9, 14 },
                    { seed = 1, high = 2, device = device })
                local second <close> = mb.random({ 8, 9, 14 },
                    { seed = 2, high = 2, device = device })
                options.floor = 0.01
                mb.rl_consensus(first, second, 12, options)
                return second:to_table()
            end
            helper.assert_close(run { normalizer = normalizer },
                run { table = summed, window = window, center = center }, 1e-3)
        end)
    end)
end)

describe("rl_consensus", function()
    it("explains what does not fit", function()
        local a <close> = mb.ones { 4, 8 }
        assert.matches("rows of 9 samples", (helper.failure(mb.rl_consensus, a, a, 9)))
    end)
end)
