-- The step fista with three-dimensional total variation: all slices in one block, or in sweeps over
-- more slices than fit, which give the same.

local check = require "spec.support.step_check"
local mb = require "moonbeam"

local ANGLES, ROWS, COLS <const> = 12, 9, 20
local LINES <const> = "line integrals"

describe("the step fista in sweeps", function()
    local function step_of(sweep, options)
        local step = {"fista", center = 9.25, iterations = 3, lambda = 5, tv_iterations = 7,
            dimensions = 3, sweep = sweep}
        for name, value in pairs(options or {}) do
            step[name] = value
        end
        return step
    end

    local function scan_of(angles, rows, cols)
        return check.scan(mb.random({angles, rows, cols}, {seed = 3, device = "host"}),
            {pixel_size = 2e-6})
    end

    it("gives the bits of the volume in one block, for blocks of any size", function()
        local scan = scan_of(ANGLES, ROWS, COLS)
        for _, options in ipairs {{}, {tikhonov = 0.5, nonnegative = false, size = 15, start = 0.1},
            {start = "fbp"}} do
            local whole <close> = check.result(scan, {step_of(nil, options)}, 1, LINES)
            for _, count in ipairs {1, 4} do
                local got <close> = check.result(scan, {step_of(count * 2, options)}, count, LINES)
                assert.is_true(whole:to_string() == got:to_string())
            end
        end
        local sinograms <close> = mb.random({ANGLES, ROWS, COLS}, {seed = 3, device = "host"})
        local rays <close> = sinograms:permute(2, 1, 3)
        local own <close> = mb.tomo.fista(rays, mb.tomo.angles(ANGLES), {center = 9.25,
            iterations = 3, lambda = 5, tv_iterations = 7, dimensions = 3})
        local flat <close> = mb.tomo.fista(rays, mb.tomo.angles(ANGLES), {center = 9.25,
            iterations = 3, lambda = 5, tv_iterations = 7})
        local expected <close> = own * (1 / 2e-6)
        local other <close> = flat * (1 / 2e-6)
        local _ <close> = check.gives(expected, scan, {step_of(8)}, LINES)
        local difference <close> = other - expected
        assert.is_true(difference:norm() > 1e-3 * expected:norm()) -- slices depend on each other
    end)

    it("gives the same to rounding where rays have no normal operator", function()
        local scan = scan_of(ANGLES, ROWS, COLS)
        for _, options in ipairs {{model = "pixel"}, {margin = 3}} do
            local whole <close> = check.result(scan, {step_of(nil, options)}, 1, LINES)
            local got <close> = check.result(scan, {step_of(8, options)}, 4, LINES)
            local difference <close> = got - whole
            assert.is_true(difference:norm() < 1e-6 * whole:norm())
        end
    end)

    it("finds the axis before, on two devices", function()
        local scan = scan_of(ANGLES, ROWS, COLS)
        local recipe = {"center", step_of(8)}
        recipe[2].center = nil
        local function result(devices, block)
            local p = mb.pipeline(scan, recipe, {quiet = true, input = LINES, devices = devices,
                block = block})
            local made, report = p:slices()
            assert.is_true(report.as_planned)
            return made
        end
        local one <close> = result({"host"}, ROWS)
        local two <close> = result({"host:1", "host:2"}, 4)
        assert.is_true(one:to_string() == two:to_string())
    end)

    it("takes a tenth of the volume, and gives its bits", function()
        local rows, cols = 2100, 20
        local scan, budget = scan_of(4, rows, cols), 4 * rows * cols * cols // 10
        local function step(sweep)
            return step_of(sweep, {center = 9.5, iterations = 2, tv_iterations = 3})
        end
        local want <close> = check.result(scan, {step()}, rows, LINES)
        local p = mb.pipeline(scan, {step(4)}, {quiet = true, input = LINES,
            devices = {"host:1"}, budget = budget})
        local got <close>, report = p:slices()
        assert.is_true(report.as_planned)
        assert.equal(p:plan().peaks["host:1"], report.peaks["host:1"])
        assert.is_true(report.peaks["host:1"] <= budget)
        assert.is_true(want:to_string() == got:to_string())
    end)

    it("refuses what sweeps cannot do", function()
        local scan = scan_of(5, 4, 12)
        local function refused(part, options)
            check.refused(part, scan, {step_of(4, options)}, LINES)
        end
        refused("sweep is for dimensions = 3", {dimensions = 2})
        refused("sweep is exact, slab is not", {slab = 2})
        refused("every iteration needs the sinograms", {weights = "poisson"})
        refused("noise = 0.5 ends the work early", {noise = 0.5})
        refused("tolerance = 0.01 ends the work early", {tolerance = 0.01})
        check.refused("step fista: it takes line integrals or phase, but the data are transmission",
            scan, {step_of(4)}, "transmission")
        check.refused("slab is for dimensions = 3", scan, {step_of(nil, {dimensions = 2,
            slab = 3})}, LINES)
    end)
end)
