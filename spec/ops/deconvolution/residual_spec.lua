local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("residual on " .. device:match("^%a+"), function()
        test("subtracts inside the image, clears outside, weighs and measures", function()
            for _, dtype in ipairs { "u8", "u16", "f32" } do
                local grid <close> = mb.random({ 3, 4, 8 }, { seed = 1, high = 9, device = device })
                local image <close> = mb.random({ 2, 3, 5 }, { seed = 2, high = 9, dtype = dtype,
                    device = device })
                local weights <close> = mb.random({ 2, 3, 5 }, { seed = 3, device = device })
                local b, y, w = grid:to_table(), image:to_table(), weights:to_table()
                local expected, squares = {}, 0
                for z = 1, 3 do
                    for r = 1, 4 do
                        for x = 1, 8 do
                            local inside = z <= 2 and r <= 3 and x <= 5
                            local d = inside and y[z][r][x] - b[z][r][x] or 0
                            local weight = inside and w[z][r][x] or 0
                            squares = squares + weight * d * d
                            expected[#expected + 1] = weight * d
                        end
                    end
                end
                local same, metric = mb.residual(grid, image, { weights = weights, metrics = true })
                assert.equal(grid, same)
                helper.assert_close(expected, grid, 1e-6)
                assert.near(squares, (metric:item(1)), 1e-4 * squares)
                metric:release()
            end
        end)
    end)
end)

describe("residual", function()
    it("explains what does not fit", function()
        local grid <close> = mb.ones { 4, 8 }
        local image <close> = mb.ones { 5, 5 }
        local line <close> = mb.ones { 5 }
        local odd <close> = mb.ones { 4, 7 }
        local small <close> = mb.ones { 4, 5 }
        assert.matches("rows have 7 elements; padded rows have",
            (helper.failure(mb.residual, odd, small)))
        assert.matches("axis 1: the image has 5 elements",
            (helper.failure(mb.residual, grid, image)))
        assert.matches("axes", (helper.failure(mb.residual, grid, line)))
    end)
end)
