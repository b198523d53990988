local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local N, H, W <const> = 12, 9, 20
local LINES <const> = "line integrals"

-- An object that turns (random), times a pattern of the detector that does not.
local function patterned(pattern)
    local data = mb.random({N, H, W}, {seed = 1, low = 0.2, high = 0.9})
    mb.binary(data, "mul", {b = pattern, out = data})
    return data
end

describe("the step double_flat_field", function()
    it("divides by the mean over all projections", function()
        local pattern <close> = mb.random({H, W}, {seed = 2, low = 0.8, high = 1.2})
        local data <close> = patterned(pattern)
        local mean <close> = mb.mean_projection(data)
        local want <close> = mb.binary(data, "div", {b = mean})
        local found <close> = check.gives(want, check.scan(data), {"double_flat_field"},
            "transmission")
        local after <close> = mb.mean_projection(found)
        local ones <close> = mb.full({H, W}, 1)
        helper.assert_close(ones, after, 1e-6)
        -- line integrals become those of the corrected transmission
        local lines <close> = mb.minus_log(data)
        local want_lines <close> = mb.minus_log(want)
        local _ <close> = check.gives(want_lines, check.scan(lines), {"double_flat_field"}, LINES,
            2e-6)
    end)

    it("does not depend on a pattern of the detector", function()
        local one <close> = mb.full({H, W}, 1)
        local pattern <close> = mb.random({H, W}, {seed = 3, low = 0.5, high = 1.5})
        local clean <close> = patterned(one)
        local data <close> = patterned(pattern)
        local want <close> = check.result(check.scan(clean), {"double_flat_field"}, nil,
            "transmission")
        local _ <close> = check.gives(want, check.scan(data), {"double_flat_field"},
            "transmission", 2e-6)
    end)

    it("takes out what is finer than sigma, with the rows around", function()
        oracle.needs "scipy"
        local data <close> = mb.random({N, H, W}, {seed = 4, low = 0, high = 3})
        local want <close>, average = oracle.run("scipy", [[
from scipy.ndimage import gaussian_filter
t = np.exp(-a.astype(float))
d = t.mean(0)
r = -np.log(t / (d / gaussian_filter(d, 1.5, mode="reflect")))
m = a.astype(float).mean(0)
s = a - (m - gaussian_filter(m, 1.5, mode="reflect"))
]], {a = data}, {"r", "s"})
        local _ <close> = average
        local scan = check.scan(data)
        local _ <close> = check.gives(want, scan, {{"double_flat_field", sigma = 1.5}}, LINES,
            3e-6)
        local _ <close> = check.gives(average, scan, {{"double_flat_field", sigma = 1.5,
            average = "line_integrals"}}, LINES, 3e-6)
    end)

    it("keeps the mean of an object where sigma is given", function()
        local data <close> = mb.full({N, H, W}, 0.4)
        local _ <close> = check.gives(data, check.scan(data), {{"double_flat_field", sigma = 2}},
            "transmission", 1e-6)
    end)

    it("survives pixels without beam", function()
        local data <close> = mb.full({40, 20, 30}, 0.5)
        local dead <close> = data:view(mb.all, 2, 2)
        mb.fill(dead, 0)
        local found <close> = check.gives(nil, check.scan(data), {"double_flat_field"},
            "transmission")
        assert.equal(0, (found:item(1, 2, 2)))
        assert.equal(1, (found:item(7, 2, 3)))
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.full({N, H, W}, 0.4)
        local scan = check.scan(data)
        check.refused("the data are transmission; put \"minus_log\" before it", scan,
            {{"double_flat_field", average = "line_integrals"}}, "transmission")
        check.refused("sigma is 0", scan, {{"double_flat_field", sigma = 0}}, "transmission")
    end)
end)
