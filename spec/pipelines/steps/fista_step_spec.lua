-- The step fista: through a pipeline, in blocks of any size, it gives what the function gives, and
-- takes what was planned.

local mb = require "moonbeam"

local ANGLES, ROWS, COLS <const> = 12, 5, 20

describe("the step fista", function()
    local data, scan

    setup(function()
        data = mb.random({ANGLES, ROWS, COLS}, {seed = 3, low = 0, high = 1, device = "host"})
        scan = mb.scan.of_arrays(data, mb.tomo.angles(ANGLES), {pixel_size = 2e-6})
    end)
    teardown(function() data:release() end)

    local function slices_of(block, options)
        local step = {"fista", center = 9.25, iterations = 3, lambda = 0.01, tv_iterations = 5}
        for name, value in pairs(options or {}) do
            step[name] = value
        end
        local p = mb.pipeline(scan, {step}, {block = block, quiet = true,
            input = "line integrals"})
        local slices, report = p:slices()
        assert.is_true(report.as_planned)
        return slices
    end

    it("gives what the function gives, per meter, in blocks of any size", function()
        local sinograms <close> = data:permute(2, 1, 3)
        local own <close> = mb.tomo.fista(sinograms, mb.tomo.angles(ANGLES), {center = 9.25,
            iterations = 3, lambda = 0.01, tv_iterations = 5})
        local expected <close> = own * (1 / 2e-6)
        for _, block in ipairs {1, 2, 5} do
            local slices <close> = slices_of(block)
            assert.same({ROWS, COLS, COLS}, slices.shape)
            assert.is_true(expected:to_string() == slices:to_string(), block)
        end
    end)

    it("makes slices of another size", function()
        local slices <close> = slices_of(2, {size = 13})
        assert.same({ROWS, 13, 13}, slices.shape)
    end)

    it("refuses a leaning axis and an axis outside of the detector", function()
        local function refused(recipe, pattern)
            local ok, problem = pcall(function()
                mb.pipeline(scan, recipe, {input = "line integrals"}):plan()
            end)
            assert.is_false(ok)
            assert.matches(pattern, tostring(problem))
        end
        refused({{"tilt", angle = 0.02}, {"fista", center = 9}}, "step fista: it does not support "
            .. "a leaning axis")
        refused({{"fista", center = 20}}, "step fista: center is 20; the detector has columns 0 to "
            .. "19")
        refused({{"fista", center = 9, lambda = -1}}, "lambda is %-1")
    end)
end)
