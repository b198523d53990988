local mb = require "moonbeam"

-- Line integrals of a few blobs with the axis at `center`.
local function scan(n, angles, center, rows)
    local ellipsoids = {1, 9, 5, 1e6, 10, 4, 0, 0.3, 0.7, 4, 6, 1e6, -12, -9, 0, 1, 1.5, 3, 3, 1e6,
        -3, 14, 0, 0}
    return mb.ellipsoid_projections(ellipsoids, angles, mb.phantom.heights(rows or 3), n,
        {center = center})
end

local function half_turn(count) -- the end included, so that the first and last frame are opposite
    local angles = {}
    for i = 1, count do
        angles[i] = math.pi * (i - 1) / (count - 1)
    end
    return angles
end

describe("tomo.find_center", function()
    for _, case in ipairs {{64, 31.5}, {64, 28.2}, {65, 36.75}, {80, 45.4}} do
        local n, center = table.unpack(case)
        it(("finds %g of %d columns from an opposite pair, to a tenth of a pixel"):format(center,
            n), function()
            local p <close> = scan(n, {0, math.pi}, center)
            local a <close> = p:view(1, mb.all, mb.all)
            local b <close> = p:view(2, mb.all, mb.all)
            local found, residual = mb.tomo.find_center_pair(a, b)
            assert.near(center, found, 0.1)
            assert.is_true(residual < 0.01)
        end)

        it(("finds %g of %d columns from trial slices"):format(center, n), function()
            local angles = half_turn(61)
            local p <close> = scan(n, angles, center)
            local found, details = mb.tomo.find_center(p, angles)
            assert.near(center, found, 0.3)
            assert.near(center, details.pair, 0.1)
        end)
    end

    it("picks the pair closest to half a turn in any order of angles", function()
        local i, j, miss = mb.tomo.opposite_pair({3.3, 0.1, 1, 3.2416, 2})
        assert.same({2, 4}, {i, j})
        assert.near(0, miss, 1e-4)
        i, j, miss = mb.tomo.opposite_pair({0.5})
        assert.same({1, 1}, {i, j})
        assert.is_true(miss > 1)
    end)

    it("says so when there is no opposite pair", function()
        local angles = mb.tomo.angles(10, 1)
        local p <close> = scan(32, angles, 16)
        local ok, err = pcall(mb.tomo.find_center, p, angles, {method = "pair"})
        assert.is_false(ok)
        assert.equal("argument", err.code)
        assert.matches("half a turn", err.message)
    end)

    it("goes by a row with something in it, where there is nothing but air in the middle of a scan",
        function()
        local angles, center = half_turn(61), 33.5
        local p <close> = scan(64, angles, center, 9)
        local thickness <close> = mb.unary(p, "neg")
        local transmission <close> = mb.unary(thickness, "exp")
        for seed = 1, 3 do
            local air <close> = mb.random({61, 5, 64}, {seed = seed, low = 0.98, high = 1.01})
            local middle <close> = transmission:view(mb.all, {3, 7}, mb.all)
            mb.convert(air, "f32", {out = middle})
            local frames <close> = mb.scan.of_arrays(transmission, angles)
            local found, how = mb.recon.find_center(frames, {quiet = true})
            assert.near(center, found, 0.25)
            assert.matches("trial slices of row 2 give", how, 1, true)
        end
    end)

    it("names what is not finite, instead of an axis that it cannot find", function()
        local angles = half_turn(61)
        for _, value in ipairs {0 / 0, 3e38} do -- the second is finite, but its square is not
            for _, frame in ipairs {1, 61} do
                local p <close> = scan(64, angles, 33.5)
                local bad <close> = p:view(frame, 2, {20, 21})
                bad:fill(value)
                local words = value ~= value and "2 of 192 values of " .. (frame == 1 and "first"
                    or "opposite") .. " are not finite"
                    or "finite but too large"
                local problem = select(2, pcall(mb.tomo.find_center, p, angles))
                assert.matches(words, problem.message, 1, true)
                assert.equal("argument", problem.code)
            end
        end
        local p <close> = scan(64, angles, 33.5)
        p:view(30, 2, {20, 20}):fill(0 / 0)
        local problem = select(2, pcall(mb.tomo.find_center, p, angles))
        assert.matches("1 of 3904 values of the sinogram are not finite", problem.message, 1, true)
    end)
end)

describe("recon.center_bounds", function()
    it("are the columns between which the search returns its axis, whatever the frames hold",
        function()
        local frames <close> = mb.full({4, 2, 40}, 0.5)
        local held <close> = mb.scan.of_arrays(frames, mb.tomo.angles(4))
        assert.same({5.5, 33.5}, mb.recon.center_bounds(held, {})) -- both see 12 of the 40 columns
        assert.same({0.5, 38.5}, mb.recon.center_bounds(held, {half_acquisition = true}))
        assert.has_error(function() mb.recon.center_bounds(held, {zzz = 1}) end)
        for seed = 1, 5 do
            local noise <close> = mb.random({31, 3, 40}, {seed = seed, low = 0.1, high = 1})
            for _, span in ipairs {math.pi, 2 * math.pi, 1} do
                local turn <close> = mb.scan.of_arrays(noise, mb.tomo.angles(31, span))
                local column = mb.recon.find_center(turn, {quiet = true})
                assert.is_true(column >= 5.5 and column <= 33.5)
            end
        end
    end)
end)
