local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

describe("polynomial", function()
    it("is the sum of powers", function()
        local values = {-1.5, 0, 0.25, 1, 3}
        local a <close> = mb.array(values)
        for _, c in ipairs {{2}, {0, 1}, {0.5, -1, 2}, {0, 1, 0.1, 0.02, -0.004}} do
            local expected = {}
            for i, x in ipairs(values) do
                expected[i] = 0
                for k, factor in ipairs(c) do
                    expected[i] = expected[i] + factor * x ^ (k - 1)
                end
            end
            local r <close> = mb.polynomial(a, c)
            helper.assert_close(expected, r, 1e-6)
        end
    end)

    it("changes nothing with {0, 1}, to the bit", function()
        local a <close> = mb.random({7, 33}, {seed = 3, low = -5, high = 5})
        local r <close> = mb.polynomial(a, {0, 1})
        assert.is_true(a:to_string() == r:to_string())
    end)

    it("is undone by the inverse of a line", function()
        local a <close> = mb.random({129}, {seed = 4})
        local line <close> = mb.polynomial(a, {0.25, 2})
        local back <close> = mb.polynomial(line, {-0.125, 0.5})
        helper.assert_close(a, back, 1e-6)
    end)

    it("keeps NaN, also with c0 alone", function()
        local a <close> = mb.array {0 / 0, 2}
        for _, c in ipairs {{7}, {1, 2, 3}} do
            local r <close> = mb.polynomial(a, c)
            assert.truthy(r:item(1) ~= r:item(1))
        end
    end)

    it("gives dense and strided arrays the same bits, in place too", function()
        local a <close> = mb.random({9, 70}, {seed = 5, low = 0, high = 3})
        local c = {0, 1, 0.3, -0.02}
        local view <close> = a:view(mb.all, {3, 69, 3})
        local part <close> = view:copy()
        local expected <close> = mb.polynomial(part, c)
        mb.polynomial(view, c, {out = view})
        local found <close> = view:copy()
        assert.is_true(expected:to_string() == found:to_string())
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros {2}
        local many = {}
        for i = 1, 17 do
            many[i] = i
        end
        for _, c in ipairs {{}, many} do
            local text, err = helper.failure(mb.polynomial, a, c)
            assert.equal("coefficients", err.arg)
            assert.is_truthy(text:find("coefficients", 1, true))
        end
    end)

    it("agrees with NumPy", function()
        oracle.needs "numpy"
        local a <close> = mb.random({20, 31}, {seed = 6, low = -1, high = 4})
        local want <close> = oracle.run("numpy",
            "r = np.polynomial.polynomial.polyval(a.astype(float), [0.1, 1, 0.2, -0.03, 0.004])",
            {a = a}, {"r"})
        local r <close> = mb.polynomial(a, {0.1, 1, 0.2, -0.03, 0.004})
        helper.assert_close(want, r, 1e-6)
    end)
end)
