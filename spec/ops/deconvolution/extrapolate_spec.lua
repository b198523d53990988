local mb = require "moonbeam"
local helper = require "spec.helper"

describe("extrapolate", function()
    it("goes on along the last step, not below the bound", function()
        local x <close> = mb.array { { 4, 1, 3 } }
        local q <close> = mb.array { { 2, 3, 3 } }
        local t <close> = mb.array { { 0, 0, 0, 7 } }
        mb.extrapolate(x, q, t, { alpha = 0.5, min = 0.25 })
        helper.assert_close({ { 5, 0.25, 3 } }, x, 0)
        helper.assert_close({ { 4, 1, 3 } }, q, 0)
        helper.assert_close({ { 5, 0.25, 3, 7 } }, t, 0)
    end)

    it("leaves what is positive positive: a 64th at least", function()
        local x <close> = mb.array { 1, 64, 0 }
        local q <close> = mb.array { 4, 256, 2 }
        local t <close> = mb.array { 0, 0, 0, 7 }
        mb.extrapolate(x, q, t, { alpha = 1 })
        helper.assert_close({ 1 / 64, 1, 0 }, x, 0)
        helper.assert_close({ 1 / 64, 1, 0, 7 }, t, 0)
    end)

    it("explains wrong shapes", function()
        local x <close> = mb.ones { 4 }
        local t <close> = mb.ones { 4 }
        local q <close> = mb.ones { 4 }
        assert.matches("padded rows", (helper.failure(mb.extrapolate, x, q, t)))
    end)
end)
