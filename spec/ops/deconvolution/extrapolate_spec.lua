local mb = require "moonbeam"
local helper = require "spec.helper"

describe("extrapolate", function()
    it("goes on along the last step, not below the bound", function()
        local x <close> = mb.array { { 4, 1, 3 } }
        local q <close> = mb.array { { 2, 4, 3 } }
        local t <close> = mb.array { { 0, 0, 0, 7 } }
        mb.extrapolate(x, q, t, { alpha = 0.5, min = 0.5 })
        helper.assert_close({ { 5, 0.5, 3 } }, x, 0)
        helper.assert_close({ { 4, 1, 3 } }, q, 0)
        helper.assert_close({ { 5, 0.5, 3, 7 } }, t, 0)
    end)

    it("leaves what is positive positive: what falls, falls by factors", function()
        local x <close> = mb.array { 1, 64, 0, 0, 2 ^ -126 }
        local q <close> = mb.array { 4, 256, 2, 0, 2 ^ -126 }
        local t <close> = mb.array { 0, 0, 0, 0, 0, 7 }
        mb.extrapolate(x, q, t, { alpha = 1 })
        helper.assert_close({ 0.25, 16, 0, 0, 2 ^ -126 }, x, 0)
        helper.assert_close({ 0.25, 16, 0, 0, 2 ^ -126, 7 }, t, 0)
    end)

    it("makes the relative difference of two estimates three times as large at most", function()
        for ratio = 0.05, 2, 0.05 do
            local x <close> = mb.array { 1, 1.001, 1, 1.001 }
            local q <close> = mb.array { ratio, ratio, ratio * 1.001, ratio * 1.001 }
            local t <close> = mb.zeros { 6 }
            mb.extrapolate(x, q, t, { alpha = 1 })
            local found = x:to_table()
            for i = 2, 4 do
                assert.is_true(math.abs(found[i] / found[1] - 1) < 3.01e-3)
            end
        end
    end)

    it("explains wrong shapes", function()
        local x <close> = mb.ones { 4 }
        local t <close> = mb.ones { 4 }
        local q <close> = mb.ones { 4 }
        assert.matches("padded rows", (helper.failure(mb.extrapolate, x, q, t)))
    end)
end)
