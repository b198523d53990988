local mb = require "moonbeam"
local helper = require "spec.helper"

describe("complex_multiply", function()
    local function pair()
        return mb.random({ 3, 4, 5 }, { dtype = "c64", seed = 1, low = -1 }),
            mb.random({ 4, 5 }, { dtype = "c64", seed = 2, low = -1 })
    end

    for _, conj in ipairs { false, true } do
        it(conj and "multiplies by the conjugate" or "multiplies in place, over a batch", function()
            local a, b = pair()
            local x, y = helper.flatten(a:to_table()), helper.flatten(b:to_table())
            local expected, sign = {}, conj and -1 or 1
            for i = 0, #x // 2 - 1 do
                local j = i % (#y // 2)
                local ar, ai, br, bi = x[2 * i + 1], x[2 * i + 2], y[2 * j + 1], sign * y[2 * j + 2]
                expected[2 * i + 1], expected[2 * i + 2] = 3 * (ar * br - ai * bi),
                    3 * (ar * bi + ai * br)
            end
            assert.equal(a, mb.complex_multiply(a, b, { conj = conj, scale = 3 }))
            helper.assert_close(expected, helper.flatten(a:to_table()), 1e-6)
            a:release()
            b:release()
        end)
    end

    it("says when extents do not match", function()
        local a, b = pair()
        assert.matches("must equal", (helper.failure(mb.complex_multiply, b, a)))
        a:release()
        b:release()
    end)
end)
