-- The analytic phantom: closed forms for projections, and the volume they belong to.
local mb = require "moonbeam"

describe("ellipsoid_projections", function()
    it("gives chord lengths of a ball", function()
        local radius, density = 9.5, 2.5
        local p <close> = mb.ellipsoid_projections({density, radius, radius, radius, 0, 0, 0, 0},
            {0, 0.4}, {0, 5}, 31,
            {subrays = 1})
        for row, height in ipairs {0, 5} do
            for x = 0, 30 do
                local square = radius ^ 2 - height ^ 2 - (x - 15) ^ 2
                local expected = square > 0 and 2 * density * math.sqrt(square) or 0
                for angle = 1, 2 do
                    assert.near(expected, p:item(angle, row, x + 1), 1e-4 * density * radius)
                end
            end
        end
    end)

    it("conserves mass at every angle for an off-center, tilted ellipsoid", function()
        local a, b, c, density = 8, 5, 6, 1.5
        local p <close> = mb.ellipsoid_projections({density, a, b, c, 4, -3, 1, 0.7},
            {0, 0.3, 1.2, 2.9}, {1}, 64,
            {center = 30})
        local mass <close> = mb.reduce(p, "sum", {axis = 3})
        for angle = 1, 4 do
            assert.near(density * math.pi * a * b, mass:item(angle, 1),
                0.02 * density * math.pi * a * b)
        end
    end)

    it("puts the shadow where the geometry says: u = X cos t + Y sin t + center + shift", function()
        local x, y = 6, 3
        local angles, shifts = {0, math.pi / 2, math.pi, 1}, {0, 2, 0, -1.5}
        local p <close> = mb.ellipsoid_projections({1, 2, 2, 2, x, y, 0, 0}, angles, {0}, 41,
            {center = 18.5, shifts = shifts, subrays = 64})
        for k, angle in ipairs(angles) do
            local sum, moment = 0, 0
            for u = 0, 40 do
                local value = p:item(k, 1, u + 1)
                sum, moment = sum + value, moment + value * u
            end
            assert.near(x * math.cos(angle) + y * math.sin(angle) + 18.5 + shifts[k], moment / sum,
                0.02)
        end
    end)

    it("refuses bad ellipsoids, naming the argument", function()
        local ok, err = pcall(mb.ellipsoid_projections, {1, 2, 3}, {0}, {0}, 8)
        assert.is_false(ok)
        assert.equal("argument", err.code)
        assert.equal("ellipsoids", err.arg)
        ok, err = pcall(mb.ellipsoid_projections, {1, 2, 0, 2, 0, 0, 0, 0}, {0}, {0}, 8)
        assert.is_false(ok)
        assert.matches("half axes", err.message)
    end)
end)

describe("ellipsoid_volume", function()
    it("has the mass of its ellipsoids and agrees with the projections", function()
        local ellipsoids = {1, 7, 5, 9, 2, -1, 0, 0.5, -0.4, 2, 3, 4, 1, 1, 0, 0}
        local volume <close> = mb.ellipsoid_volume(ellipsoids, {0, 2}, {24, 25}, {subsamples = 16})
        local p <close> = mb.ellipsoid_projections(ellipsoids, {0.9}, {0, 2}, 40)
        for row = 1, 2 do
            local slice <close> = volume:view(row, mb.all, mb.all)
            local line <close> = p:view(1, row, mb.all)
            assert.near(line:sum(), slice:sum(), 0.02 * line:sum())
        end
    end)

    it("is upright: Y points up, row 1 on top", function()
        local v <close> = mb.ellipsoid_volume({1, 1, 1, 1, 0, 5, 0, 0}, {0}, {16, 16})
        local top <close> = v:view(1, {1, 8}, mb.all)
        local bottom <close> = v:view(1, {9, 16}, mb.all)
        assert.is_true(top:sum() > 3)
        assert.equal(0, bottom:sum())
    end)

    it("sees nothing of ellipsoids that are far away, however far, and all of one without end",
        function()
        for _, far in ipairs {1e9, -1e9, 1e19, -1e19, 1e300, -1e300} do
            local ellipsoids = {1, 2, 3, 4, far, 0, 0, 0.5}
            local volume <close> = mb.ellipsoid_volume(ellipsoids, {0}, {8, 9})
            assert.equal(0, volume:sum())
            local p <close> = mb.ellipsoid_projections(ellipsoids, {0, 0.3}, {0}, 9)
            assert.equal(0, p:sum())
        end
        local volume <close> = mb.ellipsoid_volume({1, 1e200, 1e200, 4, 0, 0, 0, 0}, {0}, {8, 9})
        assert.equal(72, volume:sum())
    end)
end)
