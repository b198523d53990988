-- Least squares with total variation: the objective that is told, and the rules that end the work.

local helper = require "spec.helper"
local mb = require "moonbeam"
local ray_model = require "moonbeam.tomo.iterative.ray_model"

local N, ANGLES, ROWS <const> = 16, 9, 3
local NOISE <const> = 0.05

helper.each_device(function(device_id, it)
    describe("rules with total variation on " .. device_id, function()
        local angles = mb.tomo.angles(ANGLES)

        -- Sinograms of blocks with noise, each slice with its own, and a weight of each ray.
        local function data(device)
            local truth <close> = mb.zeros({ROWS, N, N}, {device = device})
            for z = 1, ROWS do
                truth:view(z, {4, 7 + z}, {5, 11}):fill(0.5 * z)
            end
            local sinograms = mb.project(truth, angles, {cols = N})
            local noise <close> = mb.random(sinograms.shape, {seed = 4, low = -1, high = 1,
                device = device})
            mb.binary(noise, "mul", {scalar = NOISE * math.sqrt(3), out = noise})
            mb.binary(sinograms, "add", {b = noise, out = sinograms})
            return sinograms, mb.random({ANGLES, N}, {seed = 2, low = 0.2, high = 1,
                device = device})
        end

        -- The lengths of the gradients of slice z of values, summed.
        local function variation(values, z, dimensions)
            local sum = 0
            for y = 1, N do
                for x = 1, N do
                    local v, length = values[z][y][x], 0
                    for _, near in ipairs {{z, y + 1, x}, {z, y, x + 1}, {z + 1, y, x}} do
                        local plane = (near[1] == z or dimensions == 3) and values[near[1]]
                        local other = plane and plane[near[2]] and plane[near[2]][near[3]]
                        length = length + (other and (other - v) ^ 2 or 0)
                    end
                    sum = sum + math.sqrt(length)
                end
            end
            return sum
        end

        -- The half of the square of A x - b of each slice: x A'A x - 2 x A'b + b b.
        local function banded(slices, sinograms)
            local model = ray_model.models.fourier {angles = angles, cols = N, side = N, circle = 1}
            local kernel <close> = model.kernel(sinograms.device, 0)
            local square <close> = mb.normal_operator(slices, kernel, {circle = 1})
            local back <close> = mb.empty(slices.shape, {device = sinograms.device})
            model.adjoint(sinograms, back)
            local list = {}
            for k, pair in ipairs {{slices, square}, {slices, back}, {sinograms, sinograms}} do
                local dots <close> = mb.slice_dot(pair[1], pair[2])
                for z, value in ipairs(dots:to_table()) do
                    list[z] = (list[z] or 0) + (k == 2 and -1 or 0.5) * value
                end
            end
            return list
        end

        -- The half of the weighted square of A x - b of each slice.
        local function misfits(slices, sinograms, model, weights)
            if model == "fourier" then
                return banded(slices, sinograms)
            end
            local rays <close> = mb.project(slices, angles, {cols = N, circle = 1})
            local difference <close> = rays - sinograms
            if weights then
                local square <close> = difference * difference
                local weighted <close> = square * weights
                mb.unary(weighted, "sqrt", {out = difference})
            end
            local sums <close> = mb.slice_dot(difference, difference)
            local list = sums:to_table()
            for z = 1, ROWS do
                list[z] = list[z] / 2
            end
            return list
        end

        for method, own in pairs {fista = {tikhonov = 0.3}, admm_tv = {inner = 3}} do
            local function options(...)
                local made = {lambda = 0.2, tv_iterations = 20}
                for _, list in ipairs {own, ...} do
                    for name, value in pairs(list) do
                        made[name] = value
                    end
                end
                return made
            end

            it("the history of " .. method .. " is the objective of the slices", function()
                local device = mb.device(device_id)
                local sinograms, weights = data(device)
                local _ <close> = sinograms
                local _ <close> = weights
                for _, case in ipairs {{model = "pixel"}, {model = "fourier"},
                    {model = "pixel", dimensions = 3}, {model = "pixel", weights = weights},
                    {model = "fourier", dimensions = 3, lambda = 0}} do
                    local wanted = {}
                    local all = options(case, {iterations = 4, history = true,
                        callback = function(k, x)
                            local values, sums = x:to_table(), misfits(x, sinograms, case.model,
                                case.weights)
                            local squares <close> = mb.slice_dot(x, x)
                            local norms = squares:to_table()
                            wanted[k + 1] = {}
                            for z = 1, ROWS do
                                wanted[k + 1][z] = sums[z] + (own.tikhonov or 0) / 2 * norms[z]
                                    + (case.lambda or 0.2) * variation(values, z, case.dimensions)
                            end
                        end})
                    local slices, facts = mb.tomo[method](sinograms, angles, all)
                    slices:release()
                    local history <close> = facts.history
                    local got = history:to_table()
                    for k = 2, 4 do
                        for z = 1, ROWS do
                            assert.is_true(math.abs(got[k][z] - wanted[k][z])
                                <= 1e-4 * wanted[k][z] + 1e-4 * got[1][z],
                                ("%d %d %.8g %.8g"):format(k, z, got[k][z], wanted[k][z]))
                        end
                    end
                end
            end)

            it(method .. " stops where the slices fit the data as well as noise does", function()
                local device = mb.device(device_id)
                local sinograms, weights = data(device)
                local _ <close> = sinograms
                weights:release()
                local rule = {lambda = 0.02, iterations = 400, noise = 1.5 * NOISE, check = 1,
                    model = "pixel"}
                local goal = rule.noise ^ 2 * ANGLES * N / 2
                for z = 1, ROWS do
                    local one <close> = sinograms:view({z, z})
                    local slices, facts = mb.tomo[method](one, angles, options(rule))
                    local _ <close> = slices
                    assert.equal(1, facts.done)
                    assert.is_true(facts.iterations > 2 and facts.iterations < 399)
                    local before <close> = mb.tomo[method](one, angles, options(rule,
                        {iterations = facts.iterations - 1}))
                    local plain = options(rule, {iterations = facts.iterations})
                    plain.noise = nil
                    local same <close> = mb.tomo[method](one, angles, plain)
                    assert.is_true(same:to_string() == slices:to_string())
                    local function misfit(x)
                        local rays <close> = mb.project(x, angles, {cols = N, circle = 1})
                        local difference <close> = rays - one
                        return difference:norm() ^ 2 / 2
                    end
                    assert.is_true(misfit(slices) <= goal * (1 + 1e-5))
                    assert.is_true(misfit(before) > goal * (1 - 1e-5))
                end
            end)

            it(method .. " stops where the objective hardly changes", function()
                local device = mb.device(device_id)
                local sinograms, weights = data(device)
                local _ <close> = sinograms
                weights:release()
                local one <close> = sinograms:view({2, 2})
                local rule = options {iterations = 500, tolerance = 1e-3, check = 3}
                local slices, facts = mb.tomo[method](one, angles, rule)
                local _ <close> = slices
                assert.equal(1, facts.done)
                assert.is_true(facts.iterations % 3 == 0 and facts.iterations < 500)
                rule.tolerance, rule.history, rule.iterations = nil, true, facts.iterations + 1
                local again, told = mb.tomo[method](one, angles, rule)
                again:release()
                local history <close> = told.history
                local list = history:to_table()
                local k = facts.iterations + 1
                assert.is_true(math.abs(list[k][1] - list[k - 3][1]) <= 1e-3 * list[k - 3][1])
                assert.is_true(math.abs(list[k - 3][1] - list[k - 6][1]) > 1e-3 * list[k - 6][1])
            end)

            it(method .. " ends all slices of a volume together", function()
                local device = mb.device(device_id)
                local sinograms, weights = data(device)
                local _ <close> = sinograms
                weights:release()
                for _, rule in ipairs {{tolerance = 0.02}, {noise = 2 * NOISE, lambda = 0.02}} do
                    local all = options(rule, {iterations = 300, check = 2, dimensions = 3,
                        model = "pixel"})
                    local slices, facts = mb.tomo[method](sinograms, angles, all)
                    local _ <close> = slices
                    assert.equal(ROWS, facts.done)
                    assert.is_true(facts.iterations < 300)
                    all.tolerance, all.noise, all.iterations = nil, nil, facts.iterations
                    local plain <close> = mb.tomo[method](sinograms, angles, all)
                    assert.is_true(plain:to_string() == slices:to_string())
                end
                -- slices by themselves end one after the other
                local flat = options {iterations = 300, check = 1, noise = 2 * NOISE,
                    lambda = 0.02, model = "pixel"}
                local ends = {}
                for z = 1, ROWS do
                    local one <close> = sinograms:view({z, z})
                    local slices, facts = mb.tomo[method](one, angles, flat)
                    slices:release()
                    ends[facts.iterations] = true
                end
                assert.is_true(next(ends, (next(ends))) ~= nil)
            end)

            it("measuring takes what was planned and changes no bit of " .. method, function()
                local device = mb.device(device_id)
                local sinograms, weights = data(device)
                local _ <close> = sinograms
                weights:release()
                local texts = {}
                for _, more in ipairs {{}, {history = true}, {dimensions = 3},
                    {dimensions = 3, history = true}, {noise = 1e-9, check = 1}} do
                    local function work()
                        local slices, facts = mb.tomo[method](sinograms, angles, options(more,
                            {iterations = 3}))
                        texts[#texts + 1] = facts.done and mb.bound("", function()
                            return slices:to_string()
                        end) or nil
                        slices:release()
                        if facts.history then
                            facts.history:release()
                        end
                    end
                    local planned = mb.plan.peak(work, device).peak
                    mb.collect()
                    local scope <close> = mb.pool.scope(device)
                    work()
                    assert.equal(planned, (scope:finish()))
                end
                assert.is_true(texts[2] == texts[4] and texts[6] == texts[8]
                    and texts[2] == texts[10] and texts[2] ~= texts[6] and #texts[2] > 0)
            end)
        end
    end)
end)
