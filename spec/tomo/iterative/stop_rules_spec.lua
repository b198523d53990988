-- The discrepancy principle where rays have weights, and for counts; and the end of conjugate
-- gradients where rounding is all that is left.

local helper = require "spec.helper"
local mb = require "moonbeam"

local N, ANGLES, ROWS <const> = 24, 20, 3
local NOISE <const> = 0.02

helper.each_device(function(device_id, it)
    describe("the discrepancy principle on " .. device_id, function()
        local where = {device = device_id}
        local angles = mb.tomo.angles(ANGLES)
        local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.45 * N, nil, 2 / N)

        local function lines()
            local frames <close> = mb.ellipsoid_projections(head, angles, {0, 0.1, 0.2}, N, where)
            return frames:permute(2, 1, 3):copy()
        end

        -- Line integrals with noise; half of the angles have no weight and mean nothing.
        local function half_weighted()
            local data, weights = lines(), mb.zeros({ANGLES, N}, where)
            local noise <close> = mb.random(data.shape, {seed = 4, low = -1, device = device_id})
            mb.binary(noise, "mul", {scalar = NOISE * math.sqrt(3), out = noise})
            mb.binary(data, "add", {b = noise, out = data})
            local kept, seen = data:view(mb.all, {1, ANGLES, 2}), {}
            for i = 1, ANGLES, 2 do
                weights:view {i, i}:fill(1)
                data:view(mb.all, {i + 1, i + 1}):fill(7)
                seen[#seen + 1] = angles[i]
            end
            local part = kept:copy()
            kept:release()
            return data, weights, part, seen
        end

        it("does not count rays without weight", function()
            local data, weights, part, seen = half_weighted()
            local _ <close> = data
            local _ <close> = weights
            local _ <close> = part
            local many <close> = mb.ones({ROWS, ANGLES, N}, where)
            mb.binary(many, "mul", {b = weights, out = many})
            for name, own in pairs {cgls = {}, landweber = {iterations = 400}, sirt = {},
                sart = {subsets = 1}, fista = {lambda = 0.001, tv_iterations = 5},
                admm_tv = {lambda = 0.001, tv_iterations = 5}} do
                own.model, own.check, own.noise = "pixel", 1, 1.6 * NOISE
                own.iterations = own.iterations or 200
                local expected, facts = mb.tomo[name](part, seen, own)
                expected:release()
                assert.is_true(facts.done == ROWS and facts.iterations > 0
                    and facts.iterations < own.iterations, name)
                -- of methods whose step does not depend on the number of angles
                local same = name == "cgls" or name == "sirt" or name == "sart"
                for _, list in ipairs {weights, many} do
                    own.weights = list
                    local slices, told = mb.tomo[name](data, angles, own)
                    slices:release()
                    assert.equal(ROWS, told.done)
                    assert.is_true(told.iterations >= facts.iterations and not (same
                        and told.iterations > facts.iterations), ("%s %d %d"):format(name,
                        told.iterations, facts.iterations))
                end
            end
        end)

        -- Twice the divergence of the data from A x, by ray.
        local function discrepancy(slices, counts, z)
            local rays <close> = mb.project(slices, angles, {cols = N, circle = 1})
            local a, b, sum = rays:to_table()[z], counts:to_table()[z], 0
            for i = 1, ANGLES do
                for u = 1, N do
                    local ax, n = a[i][u], b[i][u]
                    sum = sum + ax - n + (n > 0 and n * math.log(n / ax) or 0)
                end
            end
            return 2 * sum / (ANGLES * N)
        end

        it("ends mlem and osem where A x differs from counts as counts do", function()
            local mean <close> = lines()
            mb.binary(mean, "mul", {scalar = 60, out = mean})
            mb.binary(mean, "max", {scalar = 0, out = mean})
            local drawn <close> = mb.poisson(mean, {seed = 3})
            local counts <close> = drawn:cast "f32"
            local of_mlem = {discrepancy = 1, check = 1, iterations = 200}
            for z = 1, ROWS do
                local one <close> = counts:view {z, z}
                local slices, facts = mb.tomo.mlem(one, angles, of_mlem)
                local _ <close> = slices
                assert.equal(1, facts.done)
                assert.is_true(facts.iterations > 1 and facts.iterations < 100, facts.iterations)
                local before <close> = mb.tomo.mlem(one, angles,
                    {iterations = facts.iterations - 1})
                local now, last = discrepancy(slices, one, 1), discrepancy(before, one, 1)
                assert.is_true(now <= 1.0001 and last > 0.9999, ("%g %g"):format(now, last))
            end
            local slices, facts = mb.tomo.osem(counts, angles, {discrepancy = 1.2,
                check = 1, iterations = 60, subsets = 4})
            local _ <close> = slices
            assert.is_true(facts.done == ROWS and facts.iterations < 10, facts.iterations)
            for z = 1, ROWS do -- the objective is that of the parts, before the last of them
                assert.is_true(discrepancy(slices, counts, z) < 1.3)
            end
            local never, none = mb.tomo.mlem(counts, angles, {discrepancy = 1e-9, check = 1,
                iterations = 5})
            never:release()
            assert.same({5, 0}, {none.iterations, none.done})
        end)

        it("takes what its dry run takes", function()
            local data, weights, part = half_weighted()
            local _ <close> = data
            local _ <close> = weights
            local _ <close> = part
            local device = mb.device(device_id)
            local counts <close> = data * data
            for _, case in ipairs {{"cgls", data, {weights = weights, noise = 0.1}},
                {"sirt", data, {weights = "poisson", noise = 0.1}},
                {"mlem", counts, {discrepancy = 1}}, {"osem", counts, {discrepancy = 0.1,
                    history = true}}} do
                local name, sinograms, options = table.unpack(case)
                options.iterations, options.check = 3, 1
                local function work()
                    local slices, facts = mb.tomo[name](sinograms, angles, options)
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
        end)

        -- By default every method looks at its rules a few times.
        it("ends every method early without further options, and so does tolerance", function()
            local data <close> = lines()
            mb.binary(data, "max", {scalar = 0, out = data})
            for _, case in ipairs {{"cgls", "noise", 0.1}, {"landweber", "noise", 0.1},
                {"fista", "noise", 0.1}, {"admm_tv", "noise", 0.1}, {"sirt", "noise", 0.1},
                {"sart", "noise", 0.1}, {"mlem", "discrepancy", 0.5},
                {"osem", "discrepancy", 0.5}} do
                local name, rule, value = table.unpack(case)
                for _, options in ipairs {{[rule] = value}, {tolerance = 0.5}} do
                    local slices, facts = mb.tomo[name](data, angles, options)
                    slices:release()
                    local plain, all = mb.tomo[name](data, angles)
                    plain:release()
                    assert.is_true(facts.done == ROWS and facts.iterations < all.iterations,
                        ("%s %d %d"):format(name, facts.done, facts.iterations))
                end
            end
        end)

        it("refuses what is no discrepancy", function()
            local data <close> = lines()
            for _, name in ipairs {"mlem", "osem"} do
                assert.matches("discrepancy is 0; it must be a number above 0", helper.failure(
                    mb.tomo[name], data, angles, {discrepancy = 0}))
                assert.matches("unknown option 'noise'", helper.failure(mb.tomo[name], data,
                    angles, {noise = 1}))
            end
        end)
    end)

    describe("cgls on " .. device_id, function()
        local where = {device = device_id}

        -- The gradient of few angles and a penalty falls to rounding in some ten steps.
        it("falls in every step, and ends at rounding, by whatever operators", function()
            for _, case in ipairs {{48, 20, 200, {beyond = "unknown"}}, {52, 5, 50,
                {model = "pixel"}}, {48, 20, 200, {weights = "poisson"}}, {33, 12, 40,
                {margin = 3}}, {62, 1, 0, {beyond = "unknown"}}, {40, 8, 30, {}}, {40, 8, 30,
                {preconditioner = 0.05}}, {30, 10, 60, {x0 = true, beyond = "unknown"}}} do
                local n, count, tikhonov, options = table.unpack(case)
                local angles = mb.tomo.angles(count)
                local data <close> = mb.random({2, count, n}, {seed = 3, device = device_id})
                local ones <close> = mb.ones({2, n, n}, where)
                options.x0 = options.x0 and ones
                options.tikhonov, options.iterations, options.history = tikhonov, 80, true
                options.center = (n - 1) / 2 + 3
                local slices, facts = mb.tomo.cgls(data, angles, options)
                local history <close> = facts.history
                local values = history:to_table()
                for k = 2, 80 do
                    for z = 1, 2 do
                        assert.is_true(values[k][z] <= values[k - 1][z] * (1 + 1e-6),
                            ("%d, step %d: %g after %g"):format(n, k, values[k][z],
                            values[k - 1][z]))
                    end
                end
                if not options.margin then -- what it is where the slices are begun with
                    options.x0, options.iterations = slices, 1
                    local again, told = mb.tomo.cgls(data, angles, options)
                    again:release()
                    local _ <close> = told.history
                    for z = 1, 2 do
                        local own = told.history:item(1, z)
                        assert.is_true(math.abs(own - values[80][z]) < 1e-4 * values[1][z])
                    end
                end
                slices:release()
            end
        end)
    end)
end)
