-- The steps fista and admm_tv with three-dimensional total variation: all slices in one block, or
-- in sweeps over more slices than fit, which give the same.

local check = require "spec.support.step_check"
local mb = require "moonbeam"

local ANGLES, ROWS, COLS <const> = 12, 9, 20
local LINES <const> = "line integrals"

for method, own_options in pairs {fista = {}, admm_tv = {inner = 3, rho = 0.7}} do
describe(("the step %s in sweeps"):format(method), function()
    local function step_of(sweep, options)
        local step = {method, center = 9.25, iterations = 3, lambda = 5, tv_iterations = 7,
            dimensions = 3, sweep = sweep}
        for _, list in ipairs {own_options, options or {}} do
            for name, value in pairs(list) do
                step[name] = value
            end
        end
        return step
    end

    local function scan_of(angles, rows, cols)
        return check.scan(mb.random({angles, rows, cols}, {seed = 3, device = "host"}),
            {pixel_size = 2e-6})
    end

    it("gives the bits of the volume in one block, for blocks of any size", function()
        local scan = scan_of(ANGLES, ROWS, COLS)
        for _, options in ipairs {{}, {nonnegative = false, size = 15, start = 0.1,
            tikhonov = method == "fista" and 0.5 or nil}, {start = "fbp"}} do
            local whole <close> = check.result(scan, {step_of(nil, options)}, 1, LINES)
            for _, count in ipairs {1, 4} do
                local got <close> = check.result(scan, {step_of(count * 2, options)}, count, LINES)
                assert.is_true(whole:to_string() == got:to_string())
            end
        end
        local sinograms <close> = mb.random({ANGLES, ROWS, COLS}, {seed = 3, device = "host"})
        local rays <close> = sinograms:permute(2, 1, 3)
        local options = step_of()
        options[1] = nil
        local own <close> = mb.tomo[method](rays, mb.tomo.angles(ANGLES), options)
        options.dimensions = 2
        local flat <close> = mb.tomo[method](rays, mb.tomo.angles(ANGLES), options)
        local expected <close> = own * (1 / 2e-6)
        local other <close> = flat * (1 / 2e-6)
        local _ <close> = check.gives(expected, scan, {step_of(8)}, LINES)
        local difference <close> = other - expected
        assert.is_true(difference:norm() > 1e-3 * expected:norm()) -- slices depend on each other
    end)

    -- The axis off the middle, masks and starts, with the normal operator.
    it("gives the bits of one block about any axis and with any mask", function()
        local scan = scan_of(ANGLES, ROWS, COLS)
        for _, options in ipairs {{center = 13, beyond = "nothing", start = "fbp"},
            {center = 10.5, circle = 0.6, size = 24}, {circle = 0, beyond = "nothing"}} do
            local whole <close> = check.result(scan, {step_of(nil, options)}, 1, LINES)
            local got <close> = check.result(scan, {step_of(8, options)}, 4, LINES)
            assert.is_true(whole:norm() > 0)
            assert.is_true(whole:to_string() == got:to_string())
        end
    end)

    it("gives the same to rounding where rays have no normal operator", function()
        local scan = scan_of(ANGLES, ROWS, COLS)
        for _, options in ipairs {{model = "pixel"}, {margin = 3}, {center = 12,
            beyond = "unknown", start = "fbp"}, {model = "pixel", circle = 0.5, start = "fbp"},
            {circle = 0}} do
            local whole <close> = check.result(scan, {step_of(nil, options)}, 1, LINES)
            local got <close> = check.result(scan, {step_of(8, options)}, 4, LINES)
            local difference <close> = got - whole
            assert.is_true(difference:norm() < 1e-6 * whole:norm())
        end
    end)

    it("reconstructs half acquisitions, the axis given or found", function()
        local angles = {}
        for i = 1, 24 do
            angles[i] = (i - 1) * math.pi / 12
        end
        local head <const> = mb.phantom.scale({{1, 0.7, 0.5, 2, 0.1, 0, 0, 20},
            {-0.5, 0.2, 0.3, 2, -0.2, 0.1, 0, 0}}, 15, nil, 0.1)
        local heights = {}
        for z = 1, ROWS do
            heights[z] = z - ROWS / 2
        end
        local frames <close> = mb.ellipsoid_projections(head, angles, heights, 20, {center = 15})
        local scan = mb.scan.of_arrays(frames, angles, {})
        for _, options in ipairs {{center = 15}, {center = 15, start = "fbp", margin = 2},
            {size = 30, iterations = 2}} do
            local recipe, swept = {"half_acquisition"}, {"half_acquisition"}
            if not options.center then
                recipe[2], swept[2] = "center", "center"
            end
            recipe[#recipe + 1], swept[#swept + 1] = step_of(nil, options), step_of(8, options)
            if not options.center then
                recipe[#recipe].center, swept[#swept].center = nil, nil
            end
            local whole <close> = check.result(scan, recipe, 1, LINES)
            local got <close> = check.result(scan, swept, 4, LINES)
            local difference <close> = got - whole
            assert.same(whole.shape, got.shape)
            assert.is_true(whole:norm() > 0)
            assert.is_true(difference:norm() <= 1e-6 * whole:norm(), difference:norm())
        end
        check.refused("give size, or center", scan, {"half_acquisition", "center",
            (function()
                local step = step_of(8)
                step.center = nil
                return step
            end)()}, LINES)
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

    it("is what a budget too small for all slices is told to take", function()
        local ok, problem = pcall(function()
            mb.pipeline(scan_of(4, 300, COLS), {step_of()}, {quiet = true, input = LINES,
                devices = {"host:1"}, budget = 300000}):plan()
        end)
        assert.is_false(ok)
        assert.matches(("300 rows of this scan need .*; give the option budget at least %%S+ %%S+ "
            .. "%%(%%d+ bytes%%) for pipeline:plan, or give step %s of a recipe sweep = 12"):format(method), tostring(problem))
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
        if method == "fista" then
            refused("preconditioner is 0.05, which does not go with total variation",
                {preconditioner = 0.05})
        end
        check.refused("step " .. method .. ": it takes line integrals or phase, but the data are transmission",
            scan, {step_of(4)}, "transmission")
        check.refused("slab is for dimensions = 3", scan, {step_of(nil, {dimensions = 2,
            slab = 3})}, LINES)
    end)
end)
end
