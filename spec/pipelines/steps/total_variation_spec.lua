local chain = require "moonbeam.pipeline.chain"
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

    it("gives the same bits in sweeps, for any blocks and devices", function()
        local data <close> = mb.random({9, 31, 12}, {seed = 1})
        local scan = check.scan(data)
        local head = {"fbp", center = 5.5}
        local function step(sweep)
            return {"total_variation", lambda = 0.1, iterations = 19, dimensions = 3, sweep = sweep,
                nonnegative = true}
        end
        local whole <close> = check.result(scan, {head, step()}, nil, LINES)
        for _, sweep in ipairs {7, 20} do
            local _ <close> = check.gives(whole, scan, {head, step(sweep)}, LINES)
        end
        local p = mb.pipeline(scan, {head, step(6), {"gaussian", sigma = {1, 0, 0}}},
            {block = 2, quiet = true, input = LINES, devices = {"host:1", "host:2"}})
        assert.equal(4, #p:plan().sections)
        local resolved = chain.resolved(p.chain)
        assert.equal(3, #resolved)
        assert.equal(6, resolved[2].sweep)
        local got <close>, report = p:slices()
        assert.is_true(report.as_planned)
        local want <close> = mb.gaussian_filter(whole, {1, 0, 0})
        helper.assert_close(want, got, 0)
        local row <close> = p:slices {16, 16}
        local own <close> = want:view({16, 16})
        helper.assert_close(own, row, 0)
    end)

    it("takes a tenth of the volume in sweeps, and gives its bits", function()
        local data <close> = mb.random({3, 640, 16}, {seed = 4})
        local scan, budget = check.scan(data), 4 * 640 * 16 * 16 // 10
        local head = {"fbp", center = 7.5}
        local function recipe(sweep)
            return {head, {"total_variation", lambda = 0.1, iterations = 13, dimensions = 3,
                sweep = sweep}}
        end
        local want <close> = check.result(scan, recipe(), 1000, LINES)
        local options = {quiet = true, input = LINES, devices = {"host:1"}, budget = budget}
        local p = mb.pipeline(scan, recipe(3), options)
        local got <close>, report = p:slices()
        assert.is_true(report.as_planned)
        assert.is_true(report.peaks["host:1"] <= budget)
        assert.equal(p:plan().peaks["host:1"], report.peaks["host:1"])
        assert.is_true(want:to_string() == got:to_string())
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
        check.refused("sweep is for dimensions = 3", scan,
            {{"total_variation", lambda = 1, sweep = 4}}, LINES)
        local function both(name, value)
            return {{"fbp", center = 5}, {"total_variation", lambda = 1, dimensions = 3,
                sweep = 4, [name] = value}}
        end
        check.refused("sweep is exact, slab is not", scan, both("slab", 2), LINES)
        check.refused("sweep is for method primal_dual", scan, both("method", "rof"), LINES)
        check.refused("lambda is -1; it must be a number from 0 to 1e+30", scan,
            {{"total_variation", lambda = -1}}, LINES)
    end)
end)
