local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"

local LINES <const> = "line integrals"

describe("the step total_variation", function()
    it("denoises frames, and slices by themselves or as a volume", function()
        local data <close> = mb.random({9, 8, 12}, {seed = 1})
        local scan = check.scan(data)
        local frames <close> = check.result(scan, {{"total_variation", lambda = 0.1,
            iterations = 7}}, nil, LINES)
        local want <close> = mb.total_variation(data, 0.1, {iterations = 7})
        helper.assert_close(want, frames, 0)
        local head = {"fbp", center = 5.5}
        local slices <close> = check.result(scan, {head}, nil, LINES)
        for dimensions = 2, 3 do
            for _, method in ipairs {"primal_dual", "rof"} do
                local options = {dimensions = dimensions, method = method, iterations = 2,
                    step = 0.01}
                local expected <close> = mb.total_variation(slices, 0.1, options)
                options[1], options.lambda = "total_variation", 0.1
                local _ <close> = check.gives(expected, scan, {head, options}, LINES)
            end
        end
    end)

    it("makes slabs with what is beside them, the same for any blocks", function()
        local data <close> = mb.random({9, 11, 12}, {seed = 1})
        local scan = check.scan(data)
        local head = {"fbp", center = 5.5}
        local slices <close> = check.result(scan, {head}, nil, LINES)
        local step = {"total_variation", lambda = 0.1, iterations = 50, dimensions = 3, slab = 4,
            overlap = 2}
        local made <close> = check.gives(nil, scan, {head, step}, LINES)
        for _, slab in ipairs {{1, 4, 1, 6}, {5, 8, 3, 10}, {9, 11, 7, 11}} do
            local near <close> = slices:view({slab[3], slab[4]})
            local smooth <close> = mb.total_variation(near, 0.1, {iterations = 50, dimensions = 3})
            local expected <close> = smooth:view({slab[1] - slab[3] + 1, slab[2] - slab[3] + 1})
            local own <close> = made:view({slab[1], slab[2]})
            helper.assert_close(expected, own, 0)
        end
        local _ <close> = check.gives(nil, scan, {head, step, {"gaussian", sigma = {1, 1, 1}}},
            LINES)
    end)

    it("has the defaults of other packages", function()
        local data <close> = mb.random({5, 4, 12}, {seed = 1})
        local scan = check.scan(data)
        for preset, options in pairs {
            httomo = {lambda = 1e-5, iterations = 1000, tau = 0.1, sigma = 1.25},
            httomo_rof = {lambda = 1e-5, iterations = 3000, method = "rof", step = 1e-3,
                epsilon = 1e-8},
            ["scikit-image"] = {lambda = 0.1, iterations = 200},
        } do
            local made <close> = check.result(scan, {{"total_variation", preset = preset}}, nil,
                LINES)
            local lambda = options.lambda
            options.lambda = nil
            local want <close> = mb.total_variation(data, lambda, options)
            helper.assert_close(want, made, 0)
        end
    end)

    it("refuses what makes no sense", function()
        local data <close> = mb.random({9, 7, 12}, {seed = 1})
        local scan = check.scan(data)
        check.refused("lambda is missing", scan, {"total_variation"}, LINES)
        check.refused("dimensions is 3, but frames are no volume", scan,
            {{"total_variation", lambda = 1, dimensions = 3}}, LINES)
        check.refused("slab is for dimensions = 3", scan,
            {{"fbp", center = 5}, {"total_variation", lambda = 1, slab = 4}}, LINES)
        check.refused("lambda is -1; it must be a number from 0 to 1e+30", scan,
            {{"total_variation", lambda = -1}}, LINES)
    end)
end)
