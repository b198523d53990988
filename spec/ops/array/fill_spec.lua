local mb = require "moonbeam"
local helper = require "spec.helper"

describe("fill", function()
    it("fills every type", function()
        for _, dtype in ipairs { "u8", "u16", "i32", "f16", "f32", "f64" } do
            local a <close> = mb.zeros({ 2, 3 }, { dtype = dtype })
            assert.equal(a, mb.fill(a, 7))
            assert.same({ { 7, 7, 7 }, { 7, 7, 7 } }, a:to_table())
        end
    end)

    it("rounds and clamps for integers, as convert does", function()
        local a <close> = mb.zeros({ 2 }, { dtype = "u16" })
        mb.fill(a, 70000)
        assert.same({ 65535, 65535 }, a:to_table())
        mb.fill(a, 2.5)
        assert.same({ 2, 2 }, a:to_table())
    end)

    it("fills with NaN", function()
        local a <close> = mb.zeros { 2 }
        mb.fill(a, 0 / 0)
        assert.truthy(a:item(1) ~= a:item(1))
    end)

    it("fills complex numbers", function()
        for _, dtype in ipairs { "c64", "c128" } do
            local a <close> = mb.zeros({ 2 }, { dtype = dtype })
            mb.fill(a, 1.5, { imag = -2 })
            assert.same({ { 1.5, -2 }, { 1.5, -2 } }, a:to_table())
        end
    end)

    it("touches only the view", function()
        local a <close> = mb.zeros { 3, 5 }
        local view <close> = a:view({ 1, 3, 2 }, { 2, 5, 3 })
        mb.fill(view, 1)
        assert.same({ { 0, 1, 0, 0, 1 }, { 0, 0, 0, 0, 0 }, { 0, 1, 0, 0, 1 } }, a:to_table())
    end)

    it("refuses an imaginary part for real arrays", function()
        local a <close> = mb.zeros { 2 }
        local _, err = helper.failure(mb.fill, a, 1, { imag = 1 })
        assert.equal("dtype", err.code)
        assert.equal("imag", err.arg)
    end)
end)
