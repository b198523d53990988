local mb = require "moonbeam"
local helper = require "spec.helper"

-- Back-projection of a window of ones by an array as the table should give it.
local function normaliser_of(h, window, grid, center)
    local ones <close> = mb.ones(window)
    local padded <close> = mb.embed(ones, grid)
    local n = grid[#grid]
    local otf <close> = mb.convolution.transfer(h, grid, { center = center, normalise = false })
    mb.convolution.apply(padded, otf, n, true)
    local ranges = {}
    for i, extent in ipairs(grid) do
        ranges[i] = { 1, extent }
    end
    local view <close> = padded:view(table.unpack(ranges))
    return view:copy()
end

describe("rl_update", function()
    it("multiplies, bounds, and writes both arrays", function()
        local x <close> = mb.array { { 1, 2, 3 }, { 4, 5, 6 } }
        local t <close> = mb.array { { 2, 0.5, -1, 9 }, { 1, 0, 3, 9 } }
        local _, _, metric = mb.rl_update(x, t, { min = 0.25, metrics = true })
        helper.assert_close({ { 2, 1, 0.25 }, { 4, 0.25, 18 } }, x, 1e-7)
        local samples <close> = t:view(mb.all, { 1, 3 })
        helper.assert_close(x, samples, 0)
        assert.near(25.5, (metric:item(1)), 1e-6)
        assert.near(1 + 1 + 2.75 ^ 2 + 4.75 ^ 2 + 144, (metric:item(2)), 1e-5)
        metric:release()
    end)

    for _, case in ipairs {
        { { 9 }, { 4 }, { 1 }, { 12 } }, { { 5, 6 }, { 3, 4 }, { 0, 3 }, { 8, 9 } },
        { { 5, 6, 7 }, { 3, 2, 5 }, { 1, 1, 2 }, { 8, 8, 12 } },
        { { 3, 3, 3 }, { 5, 7, 4 }, { 4, 2, 0 }, { 7, 9, 6 } },
    } do
        local window, kernel, center, grid = table.unpack(case)
        it(("normalises by table as by the array: window %s, PSF %s"):format(table.concat(window,
            "x"),
            table.concat(kernel, "x")), function()
            local h <close> = mb.random(kernel, { seed = 5 }) -- asymmetric in every axis
            local normaliser <close> = normaliser_of(h, window, grid, center)
            local sums <close> = mb.summed_area(h)
            local padded = { table.unpack(grid) }
            padded[#padded] = 2 * (padded[#padded] // 2 + 1)
            local x1 <close> = mb.random(grid, { seed = 6, low = 1, high = 2 })
            local x2 <close> = x1:copy()
            local t1 <close> = mb.ones(padded)
            local t2 <close> = mb.ones(padded)
            -- The floor is above the rounding of the transforms.
            mb.rl_update(x1, t1, { table = sums, window = window, center = center, floor = 1e-3 })
            mb.rl_update(x2, t2, { normaliser = normaliser, floor = 1e-3 })
            helper.assert_close(x2, x1, 1e-4)
            helper.assert_close(t2, t1, 1e-4)
        end)
    end

    it("leaves the estimate where the consensus is negative", function()
        local x <close> = mb.array { { 1, 2, 3 }, { 4, 5, 6 } }
        local t <close> = mb.array { { 2, 2, 2, 9 }, { 2, 2, 2, 9 } }
        local consensus <close> = mb.array { { 1, -1e-9, 0, -9 }, { -3, 2, 5, -9 } }
        mb.rl_update(x, t, { consensus = consensus })
        helper.assert_close({ { 2, 2, 6 }, { 4, 10, 12 } }, x, 0)
        local samples <close> = t:view(mb.all, { 1, 3 })
        helper.assert_close(x, samples, 0)
    end)

    it("replaces the gradient, and sums what Biggs and Andrews need", function()
        local x <close> = mb.array { { 1, 2, 3 } }
        local t <close> = mb.array { { 2, 0.5, 1, 9 } }
        local gradient <close> = mb.array { { 3, 1, -2 } }
        local _, _, metric, same = mb.rl_update(x, t, { gradient = gradient, metrics = true })
        assert.equal(gradient, same)
        helper.assert_close({ { 1, -1, 0 } }, gradient, 0)
        assert.near(3 * 1 + 1 * -1, (metric:item(4)), 1e-6)
        assert.near(9 + 1 + 4, (metric:item(5)), 1e-6)
        metric:release()
    end)

    it("explains grids that are too small for the table", function()
        local x <close> = mb.ones { 8 }
        local t <close> = mb.ones { 10 }
        local sums <close> = mb.zeros({ 5 }, { dtype = "f64" })
        assert.matches("need a grid of 9",
            (helper.failure(mb.rl_update, x, t, { table = sums, window = { 6 }, center = { 1 } })))
    end)
end)
