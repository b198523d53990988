-- Iterative methods about axes off the middle of the detector: the normal operator is the product
-- of projection and back-projection, and is what least squares iterate with.

local helper = require "spec.helper"
local mb = require "moonbeam"
local ray_model = require "moonbeam.tomo.iterative.ray_model"

local N, ANGLES, ROWS <const> = 33, 12, 3
local angles = mb.tomo.angles(ANGLES)
local MIDDLE <const> = (N - 1) / 2

local shifts = {}
for i = 1, ANGLES do
    angles[i] = angles[i] + 0.05
    shifts[i] = 1.5 * math.sin(i)
end

-- Axes, in px from the middle, with other options of the geometry.
local CASES = {
    {0.7}, {-3.25}, {N / 8}, {2, shifts = shifts}, {9, beyond = "nothing"},
    {-15.5, beyond = "nothing"}, {2.5, circle = 0, beyond = "nothing"},
    {3, side = 40, beyond = "nothing"}, {6, circle = 0.6},
}

local function geometry_of(case)
    return {angles = angles, cols = N, side = case.side or N, circle = case.circle or 1,
        center = MIDDLE + case[1], shifts = case.shifts, beyond = case.beyond}
end

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

local METHODS = {cgls = {}, landweber = {}, fista = {lambda = 0.01, tv_iterations = 3},
    admm_tv = {lambda = 0.01, tv_iterations = 3, inner = 2}}

local function merged(...)
    local made = {}
    for _, list in ipairs {...} do
        for name, value in pairs(list) do
            made[name] = value
        end
    end
    return made
end

-- A model of a detector as wide as the period, whose first columns are those of `model`.
local function wide_pair(model, g)
    local pair = {cols = model.period, side = g.side, angles = ANGLES, bound = model.bound}
    function pair.forward(x, out)
        mb.fourier_project(x, angles, {cols = model.period, center = g.center, shifts = g.shifts,
            circle = g.circle, period = model.period, accuracy = "exact", out = out})
    end
    function pair.adjoint(rays, out, scale)
        mb.fourier_reconstruct(rays, angles, {size = {g.side, g.side}, center = g.center,
            shifts = g.shifts, circle = g.circle, period = model.period, filter = "none",
            scale = scale or 1, accuracy = "exact", out = out})
    end
    return pair
end

describe("rows of the band-limited model", function()
    it("are as long as a good size that no pixel sees the end of", function()
        for cols = 1, 1500, 61 do
            for off = 0, cols // 2, math.max(1, cols // 5) do
                local side, part = cols + 2 * off, math.max(1, cols / 8)
                local far = off == 0 and 0 or math.ceil(off / part) * part
                local period = ray_model.period {angles = {0}, cols = cols, side = side,
                    circle = 1, center = (cols - 1) / 2 + off}
                assert.equal(mb.fft.good_size(math.ceil(math.max(2 * cols,
                    cols + side + 2 * far))), period)
                assert.equal(0, period % 2)
            end
        end
    end)
end)

helper.each_device(function(device_id, it)
    describe("an axis off the middle on " .. device_id, function()
        local where = {device = device_id}

        local function sinograms(seed)
            return mb.random({ROWS, ANGLES, N}, {seed = seed, device = device_id})
        end

        for i, case in ipairs(CASES) do
            it(("has a normal operator that is A'A: case %d, %g px"):format(i, case[1]), function()
                local g = geometry_of(case)
                local model = ray_model.of("fourier", g, "spec")
                local pair = wide_pair(model, g)
                local kernel <close> = model.kernel(device_id, 0)
                local x <close> = mb.random({2, g.side, g.side}, {seed = 3, low = -1,
                    device = device_id})
                local q <close> = mb.normal_operator(x, kernel, {circle = g.circle})
                local rays <close> = mb.empty({2, ANGLES, model.period}, where)
                local back <close> = mb.empty(x.shape, where)
                pair.forward(x, rays)
                pair.adjoint(rays, back)
                assert.is_true(relative(back, q) < 1e-6, relative(back, q))
                -- of those rays the model's projector gives the detector's columns
                local seen <close> = rays:view(mb.all, mb.all, {1, N})
                local own <close> = mb.empty({2, ANGLES, N}, where)
                model.forward(x, own)
                assert.is_true(relative(own, seen) < 2e-4, relative(own, seen))
            end)
        end

        it("makes least squares iterate with it, as with the pair on a wide detector", function()
            local data <close> = sinograms(4)
            for _, case in ipairs {{0.7}, {-4}, {10, beyond = "nothing"}} do
                local g = geometry_of(case)
                local model = ray_model.of("fourier", g, "spec")
                local wide <close> = mb.pad(data, {after = {0, 0, model.period - N}})
                for name, options in pairs(METHODS) do
                    local function run(rays, own)
                        return (mb.tomo[name](rays, angles, merged(options, {iterations = 4,
                            center = g.center, beyond = case.beyond}, own)))
                    end
                    local expected <close> = run(wide, {model = wide_pair(model, g), size = N})
                    local made <close> = run(data, {})
                    assert.is_true(relative(made, expected) < 1e-3, name)
                    local apart <close> = run(data, {beyond = "unknown"})
                    local least = name == "landweber" and 1e-4 or 1e-2
                    assert.is_true(math.abs(case[1]) < 1 or relative(apart, expected) > least,
                        name) -- another problem
                end
            end
        end)

        it("makes no projection in an iteration", function()
            local project, count = mb.fourier_project, 0
            rawset(mb, "fourier_project", function(...)
                count = count + 1
                return project(...)
            end)
            local _ <close> = setmetatable({}, {__close = function()
                rawset(mb, "fourier_project", project)
            end})
            local data <close> = sinograms(5)
            for name, options in pairs(METHODS) do
                for _, center in ipairs {MIDDLE, MIDDLE + 0.6, MIDDLE - 4} do
                    mb.tomo[name](data, angles, merged(options, {iterations = 3,
                        center = center})):release()
                end
                assert.equal(0, count, name)
                -- left out: half acquisitions, larger masks, and what is asked for
                for i, more in ipairs {{center = 3}, {center = MIDDLE + 1, margin = 4},
                    {center = MIDDLE + 1, circle = 0}, {center = MIDDLE + 1, beyond = "unknown"}} do
                    count = 0
                    mb.tomo[name](data, angles, merged(options, {iterations = 3}, more)):release()
                    assert.is_true(count > 0, ("%s %d"):format(name, i))
                end
                count = 0
            end
        end)

        it("takes what its dry run takes", function()
            local device = mb.device(device_id)
            local data <close> = sinograms(6)
            for name, options in pairs(METHODS) do
                for _, off in ipairs {0, 0.5, 0.6, 4, 7} do
                    for _, beyond in ipairs {"nothing", "unknown"} do
                        local function work()
                            mb.tomo[name](data, angles, merged(options, {iterations = 2,
                                center = MIDDLE + off, beyond = beyond, history = false}))
                                :release()
                        end
                        local planned = mb.plan.peak(work, device).peak
                        mb.collect()
                        local scope <close> = mb.pool.scope(device)
                        work()
                        assert.equal(planned, (scope:finish()))
                    end
                end
            end
        end)

        it("is refused where it is none", function()
            local data <close> = sinograms(8)
            for _, center in ipairs {math.huge, -math.huge, 0 / 0, 1e9, -1e300} do
                for name in pairs(METHODS) do
                    for _, beyond in ipairs {"nothing", "unknown"} do
                        local text = helper.failure(mb.tomo[name], data, angles, {center = center,
                            beyond = beyond})
                        assert.is_truthy(text:find("center is", 1, true)
                            or text:find("period is", 1, true), text)
                    end
                end
            end
            assert.matches("beyond is the string 'none'; it must be nothing or unknown",
                helper.failure(mb.tomo.cgls, data, angles, {beyond = "none"}))
        end)

        it("makes each slice by itself", function()
            local data <close> = sinograms(7)
            for name, options in pairs(METHODS) do
                local function run(rays)
                    return (mb.tomo[name](rays, angles, merged(options, {iterations = 3,
                        center = MIDDLE + 3})))
                end
                local whole <close> = run(data)
                for first = 1, ROWS, 2 do
                    local last = math.min(first + 1, ROWS)
                    local part <close> = data:view({first, last})
                    local own <close> = run(part)
                    local expected <close> = whole:view({first, last})
                    assert.is_true(expected:to_string() == own:to_string(), name)
                end
            end
        end)

        it("reconstructs an object in view as well as with rays left out", function()
            local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.85 * N / 2)
            local many = mb.tomo.angles(40)
            local truth <close> = mb.ellipsoid_volume(head, {0}, {N, N}, where)
            for _, off in ipairs {0.9, 2.6, -2.2} do
                local frames <close> = mb.ellipsoid_projections(head, many, {0}, N,
                    {center = MIDDLE + off, device = device_id})
                local data <close> = frames:permute(2, 1, 3)
                local errors = {}
                for i, beyond in ipairs {"unknown", "nothing"} do
                    local slices <close> = mb.tomo.cgls(data, many, {center = MIDDLE + off,
                        iterations = 12, beyond = beyond})
                    errors[i] = relative(slices, truth)
                end
                assert.is_true(errors[2] < 1.02 * errors[1], errors[2] / errors[1])
            end
        end)
    end)
end)
