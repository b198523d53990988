local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"

local LINES <const> = "line integrals"

describe("the step bilateral", function()
    it("smooths frames, and slices by themselves or as a volume", function()
        local data <close> = mb.random({9, 8, 12}, {seed = 1})
        local scan = check.scan(data)
        local frames <close> = check.result(scan, {{"bilateral", sigma_value = 0.3}}, nil, LINES)
        local want <close> = mb.bilateral_filter(data, 0.3)
        helper.assert_close(want, frames, 0)
        local head = {"fbp", center = 5.5}
        local slices <close> = check.result(scan, {head}, nil, LINES)
        for dimensions = 2, 3 do
            local options = {dimensions = dimensions, sigma_spatial = 0.6}
            local expected <close> = mb.bilateral_filter(slices, 0.3, options)
            options[1], options.sigma_value = "bilateral", 0.3
            local _ <close> = check.gives(expected, scan, {head, options}, LINES)
        end
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1})
        local scan = check.scan(data)
        check.refused("sigma_value is missing", scan, {"bilateral"}, LINES)
        check.refused("dimensions is 3, but frames are no volume", scan,
            {{"bilateral", sigma_value = 1, dimensions = 3}}, LINES)
    end)
end)
