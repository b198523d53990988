local mb = require "moonbeam"
local helper = require "spec.helper"

describe("rl_total_variation", function()
    it("is its formula on a row", function()
        local x, lambda, epsilon = { 1, 3, 2, 2, 7 }, 0.2, 0.5
        local unit, expected = { [0] = 0 }, {}
        for i = 1, 5 do
            local d = i < 5 and x[i + 1] - x[i] or 0
            unit[i] = d / math.sqrt(d * d + epsilon * epsilon)
            expected[i] = i / (1 - lambda * (unit[i] - unit[i - 1]))
        end
        expected[6] = 9
        local estimate <close> = mb.array(x)
        local correction <close> = mb.array { 1, 2, 3, 4, 5, 9 }
        mb.rl_total_variation(estimate, correction, { lambda = lambda, epsilon = epsilon })
        helper.assert_close(expected, correction, 1e-6)
    end)

    it("changes nothing on flat ground, with no weight, or where volumes go on", function()
        local flat <close> = mb.ones { 3, 4, 5 }
        local t <close> = mb.random({ 3, 4, 6 }, { seed = 1 })
        local before <close> = t:copy()
        mb.rl_total_variation(flat, t, { lambda = 0.5 })
        helper.assert_close(before, t, 0)
        local rough <close> = mb.random({ 3, 4, 5 }, { seed = 2 })
        mb.rl_total_variation(rough, t, { lambda = 0 })
        helper.assert_close(before, t, 0)
    end)

    it("does not depend on units: spacing and values scale together", function()
        local x <close> = mb.random({ 4, 5, 6 }, { seed = 3 })
        local larger <close> = x * 2
        local a <close> = mb.ones { 4, 5, 8 }
        local b <close> = mb.ones { 4, 5, 8 }
        mb.rl_total_variation(x, a, { lambda = 0.1, epsilon = 0.1 })
        mb.rl_total_variation(larger, b, { lambda = 0.2, epsilon = 0.1, spacing = 2 })
        helper.assert_close(a, b, 1e-5)
        assert.matches("spacing",
            (helper.failure(mb.rl_total_variation, x, a, { spacing = { 1, 2 } })))
    end)
end)
