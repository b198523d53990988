local mb = require "moonbeam"
local helper = require "spec.helper"

describe("psf_gaussian", function()
    it("has the widths and the center that were asked for, and sums to 1", function()
        local g <close> = mb.psf_gaussian({ 21, 31, 41 }, { 1.5, 2, 3 },
            { center = { 10, 14, 20.5 } })
        assert.near(1, g:sum(), 1e-6)
        local center = mb.psf.center(g, "mass")
        assert.near(10, center[1], 1e-4)
        assert.near(14, center[2], 1e-4)
        assert.near(20.5, center[3], 1e-4)
        local peak, off = g:item(11, 15, 21), g:item(11, 15, 18)
        assert.near(math.exp(-(0.25 - 3.5 ^ 2) / 18), peak / off, 1e-4)
    end)

    it("is 1 at the peak without normalization", function()
        local g <close> = mb.psf_gaussian({ 9 }, 2, { normalize = false })
        assert.near(1, (g:item(5)), 1e-7)
        assert.near(math.exp(-0.5), (g:item(7)), 1e-7)
    end)

    it("explains wrong arguments", function()
        assert.matches("sigma", (helper.failure(mb.psf_gaussian, { 5, 5 }, { 1, 2, 3 })))
        assert.matches("give one to three", (helper.failure(mb.psf_gaussian, { 5, 5, 5, 5 }, 1)))
    end)
end)
