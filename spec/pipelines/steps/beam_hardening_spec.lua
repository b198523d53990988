local check = require "spec.support.step_check"
local mb = require "moonbeam"

local LINES <const> = "line integrals"

describe("the step beam_hardening", function()
    it("makes each line integral a polynomial of itself", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1, low = -0.1, high = 3})
        local c = {0.01, 1, 0.2, -0.01}
        local want <close> = mb.polynomial(data, c)
        local scan = check.scan(data)
        local _ <close> = check.gives(want, scan, {{"beam_hardening", coefficients = c}}, LINES)
        local rows <close> = check.gives(nil, scan, {{"beam_hardening", coefficients = c},
            {"fbp", center = 5.5}}, LINES)
        assert.same({7, 12, 12}, rows.shape)
    end)

    it("makes a linear path of a cylinder of known hardening", function()
        -- p = t - 0.05 t^2 of a path t, inverted as a series: t = p + 0.05 p^2 + 0.005 p^3 + ...
        local path <close> = mb.random({3, 2, 40}, {seed = 2, low = 0, high = 0.5})
        local hard <close> = mb.polynomial(path, {0, 1, -0.05})
        local _ <close> = check.gives(path, check.scan(hard), {{"beam_hardening",
            coefficients = {0, 1, 0.05, 0.005, 0.000625}}}, LINES, 1e-5)
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1})
        local scan = check.scan(data)
        check.refused("step beam_hardening: coefficients is missing", scan, {"beam_hardening"},
            LINES)
        check.refused("coefficients has 1 number; give 2 to 16", scan,
            {{"beam_hardening", coefficients = {1}}}, LINES)
        check.refused("it takes line integrals, but the data are transmission", scan,
            {{"beam_hardening", coefficients = {0, 1}}}, "transmission")
    end)
end)
