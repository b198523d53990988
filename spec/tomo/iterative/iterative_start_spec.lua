-- Iterative methods that start from a direct reconstruction.

local helper = require "spec.helper"
local mb = require "moonbeam"
local ray_model = require "moonbeam.tomo.iterative.ray_model"

local N, ROWS <const> = 64, 3

local METHODS = {cgls = {}, landweber = {}, fista = {lambda = 0.01, tv_iterations = 3},
    admm_tv = {lambda = 0.01, tv_iterations = 3, inner = 2}, sirt = {}, sart = {subsets = 3},
    mlem = {negative = "zero"}, osem = {subsets = 3, negative = "zero"}}

local function merged(...)
    local made = {}
    for _, list in ipairs {...} do
        for name, value in pairs(list) do
            made[name] = value
        end
    end
    return made
end

local function distance(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

helper.each_device(function(device_id, it)
    describe("start = \"fbp\" on " .. device_id, function()
        local where = {device = device_id}
        local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.9 * N / 2)

        -- Sinograms of the phantom with noise, about an axis `off` the middle.
        local function data_of(angles, off)
            local heights = {}
            for z = 1, ROWS do
                heights[z] = 0.1 * z
            end
            local frames <close> = mb.ellipsoid_projections(head, angles, heights, N,
                {center = (N - 1) / 2 + (off or 0), device = device_id})
            local data <close> = frames:permute(2, 1, 3)
            local noise <close> = mb.random(data.shape, {seed = 5, low = -1, device = device_id})
            mb.binary(noise, "mul", {scalar = 0.2, out = noise})
            return noise + data
        end

        -- Slices of so short a step from the start that they are those of the start.
        local function start_of(data, angles, options)
            return (mb.tomo.landweber(data, angles, merged({start = "fbp", iterations = 1,
                relaxation = 1e-9}, options)))
        end

        it("is the direct reconstruction, whatever the angles cover", function()
            local half = mb.tomo.angles(60)
            local whole, doubled, wedge = {}, {}, {}
            for i = 1, 60 do
                whole[i] = 2 * half[i]
                doubled[i], doubled[i + 60] = half[i], half[61 - i]
                wedge[i] = half[i] / 3
            end
            for _, case in ipairs {{half, 1}, {whole, 1}, {doubled, 1}, {wedge, 1 / 3}} do
                local angles, part = table.unpack(case)
                local data <close> = data_of(angles, 2.5)
                local center = (N - 1) / 2 + 2.5
                local period = ray_model.period {cols = N, side = N, circle = 1, center = center}
                local expected <close> = mb.fourier_reconstruct(data, angles, {center = center,
                    circle = 1, filter = "shepp-logan", padding = "edge", period = period,
                    scale = part * math.pi / #angles})
                for _, model in ipairs {"fourier", "pixel"} do
                    local made <close> = start_of(data, angles, {center = center, model = model})
                    assert.is_true(distance(made, expected) < 1e-4, distance(made, expected))
                end
            end
        end)

        it("does in 2 iterations of cgls what 8 do from zero", function()
            local angles = mb.tomo.angles(100)
            local data <close> = data_of(angles)
            local heights = {}
            for z = 1, ROWS do
                heights[z] = 0.1 * z
            end
            local truth <close> = mb.ellipsoid_volume(head, heights, {N, N}, where)
            local from_zero <close> = mb.tomo.cgls(data, angles, {iterations = 8})
            local from_fbp <close> = mb.tomo.cgls(data, angles, {iterations = 2, start = "fbp"})
            assert.is_true(distance(from_fbp, truth) < distance(from_zero, truth),
                ("%g %g"):format(distance(from_fbp, truth), distance(from_zero, truth)))
        end)

        it("lowers the objective of mlem sooner, with no value below 0", function()
            local angles = mb.tomo.angles(60)
            local data <close> = data_of(angles)
            local values = {}
            for i, start in ipairs {1, "fbp"} do
                local slices, facts = mb.tomo.mlem(data, angles, {iterations = 5, start = start,
                    negative = "zero", history = true})
                local _ <close> = slices
                local history <close> = facts.history
                values[i] = history:to_table()[5]
                assert.is_true(slices:min() >= 0)
            end
            for z = 1, ROWS do
                assert.is_true(values[2][z] < values[1][z])
            end
        end)

        for name, options in pairs(METHODS) do
            it(name .. " takes what its dry run takes, and leaves nothing", function()
                local device, angles = mb.device(device_id), mb.tomo.angles(12)
                local data <close> = data_of(angles)
                for _, more in ipairs {{}, {margin = 5}, {center = N / 2 + 5}, {center = 9},
                    {size = 20, circle = 0}, {tolerance = 1e-30, check = 1}} do
                    local function work()
                        mb.tomo[name](data, angles, merged(options, more, {iterations = 2,
                            start = "fbp"})):release()
                    end
                    local planned = mb.plan.peak(work, device).peak
                    mb.collect()
                    local scope <close> = mb.pool.scope(device)
                    work()
                    assert.equal(planned, (scope:finish()))
                end
            end)

            it(name .. " makes each pair of slices by itself, on any device", function()
                local angles = mb.tomo.angles(12)
                local data <close> = data_of(angles)
                local function run(rays)
                    return (mb.tomo[name](rays, angles, merged(options, {iterations = 2,
                        start = "fbp"})))
                end
                local whole <close> = run(data)
                for first = 1, ROWS, 2 do
                    local last = math.min(first + 1, ROWS)
                    local part <close> = data:view({first, last})
                    local own <close> = run(part)
                    local expected <close> = whole:view({first, last})
                    assert.is_true(expected:to_string() == own:to_string())
                end
                if device_id == "host" then
                    local other <close> = data:to "host:1"
                    local there <close> = run(other)
                    assert.is_true(whole:to_string() == there:to_string())
                end
            end)

            it(name .. " refuses other words, and takes x0 before it", function()
                local angles = mb.tomo.angles(5)
                local data <close> = data_of(angles)
                assert.matches("start is the string 'fpb'; it must be a number.*or \"fbp\"",
                    helper.failure(mb.tomo[name], data, angles, {start = "fpb"}))
                assert.matches("start is a boolean; it must be a number.*or \"fbp\"",
                    helper.failure(mb.tomo[name], data, angles, {start = true}))
                local x0 <close> = mb.ones({ROWS, N, N}, where)
                local with_x0 = merged(options, {x0 = x0, iterations = 2})
                local plain <close> = mb.tomo[name](data, angles, with_x0)
                local both <close> = mb.tomo[name](data, angles, merged(with_x0, {start = "fbp"}))
                assert.is_true(plain:to_string() == both:to_string())
            end)
        end
    end)
end)
