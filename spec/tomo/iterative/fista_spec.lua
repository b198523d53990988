-- Iterative reconstruction by FISTA.

local helper = require "spec.helper"
local mb = require "moonbeam"

local N, ANGLES <const> = 40, 14

-- A phantom of blocks inside of the circle (row, y, x).
local function blocks(rows, device)
    local values = {}
    for z = 1, rows do
        values[z] = {}
        for y = 1, N do
            values[z][y] = {}
            for x = 1, N do
                local inside = (x > 12 and x <= 22 and y > 10 and y <= 30) and z or 0
                local hole = (x > 15 and x <= 18 and y > 18 and y <= 24) and -z / 2 or 0
                values[z][y][x] = (inside + hole) / N
            end
        end
    end
    return mb.array(values, {dtype = "f32", device = device})
end

local function error_of(slices, truth)
    local difference <close> = slices - truth
    return difference:norm() / truth:norm()
end

helper.each_device(function(device_id, it)
    describe("tomo.fista on " .. device_id, function()
        local angles = mb.tomo.angles(ANGLES)

        local function data(rows)
            local device = mb.device(device_id)
            local truth = blocks(rows, device)
            return truth, mb.project(truth, angles, {cols = N}), device
        end

        it("lowers the residual, and with total variation comes near to blocks from few angles",
            function()
            local truth, sinograms = data(2)
            local _ <close> = truth
            local _ <close> = sinograms
            local by_fbp <close> = mb.tomo.fbp(sinograms, angles, {circle = 1})
            local last = 1
            for _, count in ipairs {5, 20, 80} do
                local slices <close> = mb.tomo.fista(sinograms, angles, {iterations = count,
                    lambda = 0, model = "pixel"})
                local again <close> = mb.project(slices, angles, {cols = N, circle = 1})
                local residual = error_of(again, sinograms)
                assert.is_true(residual < 0.7 * last, residual)
                last = residual
            end
            local slices <close> = mb.tomo.fista(sinograms, angles, {iterations = 80,
                lambda = 0.02, model = "pixel"})
            assert.is_true(error_of(slices, truth) < 0.4 * error_of(by_fbp, truth),
                error_of(slices, truth))
            assert.is_true(slices:min() >= 0)
        end)

        it("makes a gradient step from zero of the stated length", function()
            local truth, sinograms = data(1)
            local _ <close> = truth
            local _ <close> = sinograms
            local slices <close> = mb.tomo.fista(sinograms, angles, {iterations = 1, lambda = 0,
                nonnegative = false, model = "pixel"})
            local expected <close> = mb.backproject(sinograms, angles, {circle = 1,
                scale = 1 / (1.2 * ANGLES * N), accuracy = "exact"})
            assert.is_true(error_of(slices, expected) < 1e-6)
        end)

        it("takes what its dry run takes, and leaves nothing", function()
            local truth, sinograms, device = data(2)
            local _ <close> = truth
            local _ <close> = sinograms
            local function work()
                mb.tomo.fista(sinograms, angles, {iterations = 3, lambda = 0.01,
                    tv_iterations = 4}):release()
            end
            local planned = mb.plan.peak(work, device).peak
            mb.collect()
            local scope <close> = mb.pool.scope(device)
            work()
            assert.equal(planned, (scope:finish()))
        end)

        it("refuses what does not fit", function()
            local sinograms <close> = mb.zeros({1, ANGLES, N}, {device = mb.device(device_id)})
            assert.matches("angles has 2 numbers", helper.failure(mb.tomo.fista, sinograms,
                {0, 1}))
            assert.matches("lambda is %-1", helper.failure(mb.tomo.fista, sinograms, angles,
                {lambda = -1}))
        end)
    end)
end)
