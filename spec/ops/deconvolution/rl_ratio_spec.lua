local mb = require "moonbeam"
local helper = require "spec.helper"

describe("rl_ratio", function()
    it("divides inside the image, clears outside, and measures", function()
        local grid <close> = mb.random({ 4, 8 }, { seed = 1, low = 0.5, high = 2 })
        local image <close> = mb.array({ { 3, 0, 2, 1, 4 }, { 1, 5, 0, 2, 2 }, { 0, 0, 1, 1, 9 } },
            { dtype = "u16" })
        local b, y = grid:to_table(), image:to_table()
        local expected, divergence, total = {}, 0, 0
        for i = 1, 4 do
            expected[i] = {}
            for j = 1, 8 do
                local inside = i <= 3 and j <= 5
                expected[i][j] = inside and y[i][j] / b[i][j] or 0
                if inside then
                    total = total + b[i][j]
                    divergence = divergence + b[i][j] - y[i][j] + (y[i][j] > 0
                        and y[i][j] * math.log(y[i][j] / b[i][j]) or 0)
                end
            end
        end
        local same, metric = mb.rl_ratio(grid, image, { metrics = true })
        assert.equal(grid, same)
        helper.assert_close(expected, grid, 1e-6)
        assert.near(divergence, (metric:item(1)), 1e-4)
        assert.near(total, (metric:item(2)), 1e-4)
        metric:release()
    end)

    it("never divides by zero: zero over zero is zero", function()
        local grid <close> = mb.array { { 0, -1e-9, 1, 0 }, { 0, 0, 2, 0 } }
        local image <close> = mb.array { { 0, 0, 1 }, { 1, 0, 0 } }
        mb.rl_ratio(grid, image, { eps = 0.5 })
        helper.assert_close({ { 0, 0, 1, 0 }, { 2, 0, 0, 0 } }, grid, 1e-6)
    end)

    it("says when the image does not fit the padded rows", function()
        local grid <close> = mb.ones { 4, 8 }
        local image <close> = mb.ones { 4, 8 }
        assert.matches("image of 8 on a grid of 8", (helper.failure(mb.rl_ratio, grid, image)))
    end)
end)
