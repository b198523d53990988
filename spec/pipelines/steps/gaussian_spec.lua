local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local LINES <const> = "line integrals"

describe("the step gaussian", function()
    it("has the defaults of scikit-image and SciPy", function()
        oracle.needs "skimage"
        oracle.needs "scipy"
        local data <close> = mb.random({5, 9, 12}, {seed = 1})
        local scan = check.scan(data)
        local first, second = oracle.run("skimage", [[
from skimage.filters import gaussian
from scipy.ndimage import gaussian_filter
b = np.stack([gaussian(x) for x in a])
c = np.stack([gaussian_filter(x, 1.5) for x in a])]], {a = data}, {"b", "c"})
        local _ <close> = first
        local _ <close> = second
        local own <close> = check.gives(first, scan, {{"gaussian", preset = "scikit-image"}},
            LINES, 1e-6)
        assert.same(first.shape, own.shape)
        local other <close> = check.gives(second, scan, {{"gaussian", preset = "scipy",
            sigma = 1.5}}, LINES, 1e-6)
        assert.same(second.shape, other.shape)
    end)

    it("smooths slices by themselves, or in three dimensions, with the slices beside", function()
        local data <close> = mb.random({9, 8, 12}, {seed = 1})
        local scan = check.scan(data)
        local head = {"fbp", center = 5.5}
        local slices <close> = check.result(scan, {head}, nil, LINES)
        for _, sigma in ipairs {0.8, {1, 0.5}, {0.7, 1, 2}} do
            local solid = type(sigma) == "table" and #sigma == 3
            local want <close> = mb.gaussian_filter(slices, sigma, {axes = not solid and {2, 3}
                or nil})
            local made <close> = check.gives(want, scan, {head, {"gaussian", sigma = sigma}},
                LINES)
            helper.assert_close(want, made, 0)
        end
        check.refused("sigma has 4 numbers", scan, {head, {"gaussian", sigma = {1, 2, 3, 4}}},
            LINES)
        check.refused("sigma has 3 numbers", scan, {{"gaussian", sigma = {1, 2, 3}}}, LINES)
    end)
end)
