-- Filtered back-projection against closed forms.
local mb = require "moonbeam"

-- Relative L2 inside r < 0.9 of what a method makes of the Shepp-Logan phantom: 8 rays a bin,
-- anti-aliased truth.
local function phantom_error(n, angles, method)
    local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, n / 2)
    local height = -0.15 * n / 2
    local theta = mb.tomo.angles(angles)
    local projections <close> = mb.ellipsoid_projections(ellipsoids, theta, {height}, n,
        {subrays = 8})
    local sino <close> = projections:permute(2, 1, 3)
    local slice <close> = mb.tomo.reconstruct(sino, theta, {method = method, filter = "ram-lak"})
    local truth <close> = mb.ellipsoid_volume(ellipsoids, {height}, {n, n})
    local disc <close> = mb.ellipsoid_volume({1, 0.9 * n / 2, 0.9 * n / 2, 1e9, 0, 0, 0, 0}, {0},
        {n, n}, {subsamples = 1})
    local difference <close> = slice - truth
    mb.binary(difference, "mul", {b = disc, out = difference})
    mb.binary(truth, "mul", {b = disc, out = truth})
    return difference:norm() / truth:norm()
end

describe("tomo.fbp", function()
    -- What the methods themselves are wrong by, unwindowed: more is a fault, and so is less.
    for _, case in ipairs {{256, 400, "fbp", 7.15e-2}, {512, 750, "fbp", 5.09e-2},
        {256, 400, "fourier", 6.06e-2},
        {512, 750, "fourier", 4.61e-2}} do
        local n, angles, method, expected = table.unpack(case)
        it(("has the method's own error on the Shepp-Logan phantom: %s, %d x %d, %d angles"):format(
            method, n, n, angles), function()
            assert.near(expected, phantom_error(n, angles, method), 0.01 * expected)
        end)
    end

    it("gives the density of a disc within 1 %", function()
        for _, n in ipairs {127, 128} do
            local theta = mb.tomo.angles(201)
            local radius, density = 0.6 * n / 2, 0.02
            local p <close> = mb.ellipsoid_projections({density, radius, radius, 1e6, 0, 0, 0, 0},
                theta, {0}, n)
            local sino <close> = p:permute(2, 1, 3)
            local slice <close> = mb.tomo.fbp(sino, theta, {filter = "ram-lak"})
            local middle = n // 2 + 1
            local inside <close> = slice:view(1, {middle - 10, middle + 10},
                {middle - 10, middle + 10})
            assert.near(density, inside:mean(), 0.01 * density)
        end
    end)

    it("has the same scale over a half turn and a whole one", function()
        local n, density = 64, 0.5
        for _, span in ipairs {math.pi, 2 * math.pi} do
            local theta = mb.tomo.angles(180, span)
            local p <close> = mb.ellipsoid_projections({density, 20, 20, 1e6, 3, 0, 0, 0}, theta,
                {0}, n)
            local sino <close> = p:permute(2, 1, 3)
            local slice <close> = mb.tomo.fbp(sino, theta)
            local inside <close> = slice:view(1, {28, 36}, {30, 40})
            assert.near(density, inside:mean(), 0.015 * density)
        end
    end)

    it("follows an off-center axis and per-angle shifts", function()
        local n, center = 96, 52.25
        local theta = mb.tomo.angles(150)
        local shifts = {}
        for i = 1, #theta do
            shifts[i] = 2 * math.sin(i)
        end
        local p <close> = mb.ellipsoid_projections({1, 6, 6, 1e6, 10, 15, 0, 0}, theta, {0}, n,
            {center = center, shifts = shifts})
        local sino <close> = p:permute(2, 1, 3)
        local slice <close> = mb.tomo.fbp(sino, theta, {center = center, shifts = shifts})
        -- X = x - 47.5, Y = 47.5 - y
        assert.near(1, slice:item(1, 1 + 33, 1 + 57), 0.05)
        assert.near(0, slice:item(1, 1 + 61, 1 + 57), 0.05)
    end)

    it("consumes the sinogram when told, with the same result and less memory", function()
        local theta = mb.tomo.angles(61)
        local p <close> = mb.random({3, 61, 50}, {seed = 4})
        local expected <close> = mb.tomo.fbp(p, theta)
        local kept = mb.plan.peak(function(device)
            local sino <close> = mb.empty({3, 61, 50}, {device = device})
            mb.tomo.fbp(sino, theta):release()
        end, "host").peak
        local consumed = mb.plan.peak(function(device)
            local sino <close> = mb.empty({3, 61, 50}, {device = device})
            mb.tomo.fbp(sino, theta, {consume = true}):release()
        end, "host").peak
        assert.equal(kept - mb.pool.round(p.bytes), consumed)
        local slice <close> = mb.tomo.fbp(p, theta, {consume = true})
        assert.same(expected:to_table(), slice:to_table())
    end)

    it("predicts its peak to the byte", function()
        local theta = mb.tomo.angles(37)
        local function work(device)
            local sino <close> = mb.zeros({5, 37, 41}, {device = device})
            local slice <close> = mb.tomo.fbp(sino, theta, {filter = "hann"})
            return slice.rank
        end
        local predicted = mb.plan.peak(work, "host").peak
        local scope = mb.pool.scope("host")
        work("host")
        assert.equal(predicted, scope:finish())
    end)

    it("refuses a padded width out of proportion, which would take hours", function()
        local sino <close> = mb.zeros({4, 16})
        local angles = mb.tomo.angles(4)
        for _, width in ipairs {516, 1e9, 1 << 26, math.huge} do
            for name, call in pairs {["tomo.fbp"] = mb.tomo.fbp, ["tomo.reconstruct"] = function(a,
                b, options)
                options.method = "fourier"
                return (mb.tomo.reconstruct(a, b, options))
            end, ["tomo.find_center_metric"] = mb.tomo.find_center_metric} do
                local ok, problem = pcall(call, sino, angles, {pad_width = width})
                assert.is_false(ok)
                assert.equal("argument", problem.code)
                assert.equal(name, problem.op)
                assert.equal("pad_width", problem.arg)
                assert.matches("512, and twice is enough", problem.message, 1, true)
            end
        end
        mb.tomo.fbp(sino, angles, {pad_width = 512}):release()
    end)

    it("names an unknown mode", function()
        local sino <close> = mb.zeros({1, 4, 8})
        local ok, err = pcall(mb.tomo.fbp, sino, mb.tomo.angles(4), {mode = "slow"})
        assert.is_false(ok)
        assert.equal("mode", err.arg)
        assert.matches("it must be fast, in_place or auto", err.message, 1, true)
    end)

    it("names an unknown option and the nearest one", function()
        local sino <close> = mb.zeros({1, 4, 8})
        local ok, err = pcall(mb.tomo.fbp, sino, mb.tomo.angles(4), {fliter = "hann"})
        assert.is_false(ok)
        assert.equal("argument", err.code)
        assert.matches("did you mean 'filter'", err.message, 1, true)
    end)
end)
