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

    it("counts negative values as 0, adds the background, and keeps NaN", function()
        local grid <close> = mb.array { { 1, 2, 1, 0 }, { 1, 2, 3, 0 } }
        local image <close> = mb.array { { -5, 8, 0 }, { 3, -1e-3, 9 } }
        local _, metric = mb.rl_ratio(grid, image, { background = 2, metrics = true })
        helper.assert_close({ { 0, 2, 0, 0 }, { 1, 0, 9 / 5, 0 } }, grid, 1e-6)
        local expected = 3 + (8 * math.log(2) - 8 + 4) + 3 + 0 + 4 + (9 * math.log(9 / 5) - 9 + 5)
        assert.near(expected, (metric:item(1)), 1e-5)
        assert.near(22, (metric:item(2)), 1e-6)
        metric:release()
        grid:fill(1)
        image:view(1, 1):fill(0 / 0)
        mb.rl_ratio(grid, image)
        local value = grid:item(1, 1)
        assert.is_true(value ~= value)
    end)

    it("says when the image does not fit the padded rows", function()
        local grid <close> = mb.ones { 4, 8 }
        local image <close> = mb.ones { 4, 8 }
        assert.matches("the image has 8 elements and the grid has room for 7",
            (helper.failure(mb.rl_ratio, grid, image)))
    end)
end)

helper.each_device(function(device, test)
    describe("rl_ratio of tiles on " .. device:match("^%a+"), function()
        test("is the whole step on views, and its misfits add up over tiles", function()
            local grid <close> = mb.random({ 5, 7, 12 },
                { seed = 1, low = 0.2, high = 2, device = device })
            local image <close> = mb.random({ 5, 7, 11 },
                { seed = 2, dtype = "u16", high = 9, device = device })
            local whole <close> = grid:copy()
            local _, all = mb.rl_ratio(whole, image, { eps = 0.5, metrics = true })
            local _ <close> = all
            local divergence, blurred = 0, 0
            for _, rows in ipairs { { 1, 3 }, { 4, 7 } } do
                for _, columns in ipairs { { 1, 6 }, { 7, 11 } } do
                    local tile <close> = grid:view(mb.all, rows, columns)
                    local seen <close> = image:view(mb.all, rows, columns)
                    local same, metric = mb.rl_ratio(tile, seen,
                        { tile = true, eps = 0.5, metrics = true })
                    assert.equal(tile, same)
                    divergence, blurred = divergence + metric:item(1), blurred + metric:item(2)
                    metric:release()
                end
            end
            local got <close> = grid:view(mb.all, mb.all, { 1, 11 })
            local expected <close> = whole:view(mb.all, mb.all, { 1, 11 })
            helper.assert_close(expected, got, 0)
            assert.near(all:item(1), divergence, 1e-9 * all:item(1))
            assert.near(all:item(2), blurred, 1e-9 * all:item(2))
        end)
    end)
end)

describe("rl_ratio of tiles", function()
    it("never divides by zero, and wants equal shapes", function()
        local tile <close> = mb.array { { 0, -1, 2 } }
        local image <close> = mb.array({ { 0, 3, 1 } }, { dtype = "u8" })
        mb.rl_ratio(tile, image, { tile = true, eps = 0.5 })
        helper.assert_close({ { 0, 6, 0.5 } }, tile, 0)
        local other <close> = mb.ones { 1, 4 }
        assert.matches("shape of blurred",
            (helper.failure(mb.rl_ratio, tile, other, { tile = true })))
    end)
end)
