local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("gradient_step on " .. device:match("^%a+"), function()
        test("steps along the gradient, not below the bound", function()
            local x <close> = mb.array({ { 1, 2, 3 }, { 4, 5, 6 } }, { device = device })
            local g <close> = mb.array({ { 1, -8, 2, 9 }, { 0, 1, -1, 9 } }, { device = device })
            local _, _, metric = mb.gradient_step(x, g, { step = 0.5, min = 0, metrics = true })
            helper.assert_close({ { 1.5, 0, 4 }, { 4, 5.5, 5.5 } }, x, 0)
            local rows <close> = g:view(mb.all, { 1, 3 })
            helper.assert_close(x, rows, 0)
            assert.near(20.5, (metric:item(1)), 1e-6)
            assert.near(0.25 + 4 + 1 + 0.25 + 0.25, (metric:item(2)), 1e-6)
            assert.near(x:norm() ^ 2, (metric:item(3)), 1e-4)
            metric:release()
            local free <close> = mb.array({ { -2, 1 } }, { device = device })
            local down <close> = mb.array({ { -3, 1, 0, 0 } }, { device = device })
            mb.gradient_step(free, down)
            helper.assert_close({ { -5, 2 } }, free, 0)
        end)
    end)
end)

describe("gradient_step", function()
    it("explains what does not fit", function()
        local x <close> = mb.ones { 4, 5 }
        local g <close> = mb.ones { 4, 8 }
        assert.matches("padded rows", (helper.failure(mb.gradient_step, x, g)))
    end)
end)
