local mb = require "moonbeam"
local helper = require "spec.helper"

describe("maximum_projection", function()
    it("is the maximum along each axis, in the array's type, of views too", function()
        local v <close> = mb.random({ 4, 5, 6 }, { dtype = "u16", seed = 1, high = 60000 })
        local turned <close> = v:permute(3, 1, 2)
        for _, a in ipairs { v, turned } do
            for axis = 1, 3 do
                local expected <close> = mb.reduce(a, "max", { axis = axis })
                local got <close> = mb.maximum_projection(a, { axis = axis })
                local same <close> = mb.maximum_projection(a, { axis = axis - 4 })
                assert.equal("u16", got.dtype)
                helper.assert_close(expected, got, 0)
                helper.assert_close(got, same, 0)
            end
        end
    end)

    it("lets NaN win and refuses what has no maximum", function()
        local a <close> = mb.array { { 1, 0 / 0, 3 }, { 4, 2, 0 / 0 } }
        local got <close> = mb.maximum_projection(a)
        local values = got:to_table()
        assert.equal(4, values[1])
        assert.is_true(values[2] ~= values[2] and values[3] ~= values[3])
        local empty <close> = mb.zeros { 0, 3 }
        assert.matches("empty", (helper.failure(mb.maximum_projection, empty)))
        assert.matches("axis is 3", (helper.failure(mb.maximum_projection, a, { axis = 3 })))
    end)
end)
