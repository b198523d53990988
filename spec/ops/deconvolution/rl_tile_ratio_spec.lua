local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("rl_tile_ratio on " .. device:match("^%a+"), function()
        test("is rl_ratio on views, and its misfits add up over tiles", function()
            local grid <close> = mb.random({ 5, 7, 12 },
                { seed = 1, low = 0.2, high = 2, device = device })
            local image <close> = mb.random({ 5, 7, 11 }, { seed = 2, dtype = "u16", high = 9,
                device = device })
            local whole <close> = grid:copy()
            local _, all = mb.rl_ratio(whole, image, { eps = 0.5, metrics = true })
            local _ <close> = all
            local divergence, blurred = 0, 0
            for _, rows in ipairs { { 1, 3 }, { 4, 7 } } do
                for _, columns in ipairs { { 1, 6 }, { 7, 11 } } do
                    local tile <close> = grid:view(mb.all, rows, columns)
                    local seen <close> = image:view(mb.all, rows, columns)
                    local same, metric = mb.rl_tile_ratio(tile, seen, { eps = 0.5, metrics = true })
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

describe("rl_tile_ratio", function()
    it("never divides by zero, and wants equal shapes", function()
        local tile <close> = mb.array { { 0, -1, 2 } }
        local image <close> = mb.array({ { 0, 3, 1 } }, { dtype = "u8" })
        mb.rl_tile_ratio(tile, image, { eps = 0.5 })
        helper.assert_close({ { 0, 6, 0.5 } }, tile, 0)
        local other <close> = mb.ones { 1, 4 }
        assert.matches("shape of blurred", (helper.failure(mb.rl_tile_ratio, tile, other)))
    end)
end)
