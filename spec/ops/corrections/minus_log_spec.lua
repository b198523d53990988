local mb = require "moonbeam"
local helper = require "spec.helper"

describe("minus_log", function()
    it("is -ln to a few units in the last place", function()
        local n = 4099
        local values = {}
        for i = 1, n do
            values[i] = 1e-6 * (10 / 1e-6) ^ ((i - 1) / (n - 1))
        end
        local b <close> = mb.array(values)
        local stored = b:to_table()
        local r <close> = mb.minus_log(b)
        for i, x in ipairs(r:to_table()) do
            local want = -math.log(stored[i])
            assert.near(want, x, 2.5e-7 * math.max(math.abs(want), 2 ^ -10))
        end
    end)

    it("clips first", function()
        local a <close> = mb.array { 0, -1, 1e-9, 100, math.huge, -math.huge, 1 }
        local r <close> = mb.minus_log(a)
        local low, high = -math.log(1e-6), -math.log(10)
        helper.assert_close({ low, low, low, high, high, low, 0 }, r, 1e-7)
        local s <close> = mb.minus_log(a, { min = 0.5, max = 2 })
        low, high = math.log(2), -math.log(2)
        helper.assert_close({ low, low, low, high, high, low, 0 }, s, 1e-7)
    end)

    it("keeps NaN", function()
        local a <close> = mb.array { 0 / 0, 1 }
        local r <close> = mb.minus_log(a)
        assert.truthy(r:item(1) ~= r:item(1))
        assert.equal(0, r:item(2))
    end)

    it("runs in place, on views too", function()
        local a <close> = mb.full({ 5, 40 }, 0.5)
        local view <close> = a:view(mb.all, { 2, 39, 3 })
        mb.minus_log(view, { out = view })
        assert.equal(0.5, a:item(3, 1))
        assert.near(math.log(2), a:item(3, 2), 1e-7)
        assert.equal(0.5, a:item(3, 3))
    end)

    it("gives the same bits for any strides", function()
        local wide <close> = mb.random({ 40, 99 }, { low = 1e-3, high = 2 })
        for _, view in ipairs { wide:view(mb.all, { 1, 99, 2 }), wide:permute(2, 1) } do
            local _ <close> = view
            local dense <close> = view:copy()
            local a <close> = mb.minus_log(view)
            local b <close> = mb.minus_log(dense)
            assert.is_true(a:to_string() == b:to_string())
        end
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros { 2 }
        for _, case in ipairs {
            { "max", { min = 2, max = 2 } }, { "max", { min = 11 } }, { "min", { min = 0 } },
            { "min", { min = -1 } },
        } do
            local _, err = helper.failure(mb.minus_log, a, case[2])
            assert.equal("argument", err.code)
            assert.equal(case[1], err.arg)
        end
        local d <close> = mb.zeros({ 2 }, { dtype = "f64" })
        local _, err = helper.failure(mb.minus_log, d)
        assert.equal("dtype", err.code)
    end)
end)
