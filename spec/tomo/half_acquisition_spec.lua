-- Half acquisition: a whole turn with the axis near an edge of the detector shows a field of view
-- of nearly twice its width.
local mb = require "moonbeam"
local fbp = require "moonbeam.tomo.fbp"
local helper = require "spec.helper"

-- {density, radii, center, angle}: within a radius of 40, most of it outside a detector of 60
-- columns around its middle.
local PHANTOM = {1, 36, 30, 1e6, 2, -3, 0, 0.3, -0.5, 9, 12, 1e6, -22, 10, 0, 0, 0.7, 8, 6, 1e6, 24,
    8, 0, 1}
local COLS, TURN = 60, 2 * math.pi

local function sinograms(angles, cols, center, heights)
    local p <close> = mb.ellipsoid_projections(PHANTOM, angles, heights
        or {0}, cols, {center = center})
    local view <close> = p:permute(2, 1, 3)
    return view:copy()
end

-- Width of the whole field of view, and where the axis is in it.
local function extended(center)
    local left = center < (COLS - 1) / 2
    local wide = math.floor(2 * (left and COLS - 1 - center or center)) + 1
    return wide, left and center + wide - COLS or center
end

describe("half acquisition", function()
    it("reconstructs what a detector of the whole width does", function()
        for _, center in ipairs {44, 44.5, 58, 32.5, 15, 14.5} do
            local wide, axis = extended(center)
            local angles = mb.tomo.angles(120, TURN)
            local scan <close> = sinograms(angles, COLS, center)
            local full <close> = sinograms(angles, wide, axis)
            local expected <close> = mb.tomo.fbp(full, angles,
                {center = axis, size = wide, filter = "ram-lak"})
            local slices <close> = mb.tomo.fbp(scan, angles,
                {center = center, half_acquisition = true, filter = "ram-lak"})
            assert.same({1, wide, wide}, slices.shape)
            helper.assert_close(expected, slices, 1e-5, ("axis at %g"):format(center))
        end
    end)

    it("gives the density of the closed form, for an axis between pixels too", function()
        for _, center in ipairs {44.5, 44.3, 14.8} do
            local wide = extended(center)
            local angles = mb.tomo.angles(240, TURN)
            local scan <close> = sinograms(angles, COLS, center)
            local slices <close> = mb.tomo.fbp(scan, angles,
                {center = center, half_acquisition = true, filter = "shepp-logan"})
            local truth <close> = mb.ellipsoid_volume(PHANTOM, {0}, {wide, wide})
            local values, want = slices:to_table()[1], truth:to_table()[1]
            local sum, square = 0, 0
            for y = 1, wide do
                for x = 1, wide do
                    sum = sum + (values[y][x] - want[y][x]) ^ 2
                    square = square + want[y][x] ^ 2
                end
            end
            assert.is_true(math.sqrt(sum / square) < 0.15, ("axis at %g: %g"):format(center,
                math.sqrt(sum / square)))
            local middle = wide // 2 + 1
            local inside <close> = slices:view(1, {middle - 3, middle + 3},
                {middle - 3, middle + 3})
            assert.near(1, inside:mean(), 0.01)
        end
    end)

    it("equals the reconstruction of the stitched sinogram", function()
        for _, center in ipairs {44.5, 15} do
            local wide, axis = extended(center)
            local angles = mb.tomo.angles(120, TURN)
            local scan <close> = sinograms(angles, COLS, center)
            local stitched <close> = mb.stitch_half_acquisition(scan, center)
            assert.same({1, 60, wide}, stitched.shape)
            local expected <close> = mb.tomo.fbp(stitched, mb.tomo.angles(60),
                {center = axis, size = wide})
            local slices <close> = mb.tomo.fbp(scan, angles,
                {center = center, half_acquisition = true})
            helper.assert_close(expected, slices, 1e-5)
        end
    end)

    it("works in every mode, keeps the sinogram, and is predicted to the byte", function()
        local angles = mb.tomo.angles(40, TURN)
        local scan <close> = sinograms(angles, COLS, 44.5, {-1, 0, 1})
        local before = scan:to_table()
        local expected <close> = mb.tomo.fbp(scan, angles, {center = 44.5, half_acquisition = true})
        local usual = fbp.BATCH_BYTES
        for _, limit in ipairs {usual, 1} do
            for _, mode in ipairs {"fast", "in_place", "auto"} do
                fbp.BATCH_BYTES = limit
                local options = {center = 44.5, half_acquisition = true, mode = mode,
                    consume = true}
                local predicted = mb.plan.peak(function(device)
                    local copy <close> = mb.empty(scan.shape, {device = device})
                    mb.tomo.fbp(copy, angles, options):release()
                end, "host").peak
                mb.collect()
                local scope = mb.pool.scope("host")
                local copy <close> = scan:copy()
                local slices <close> = mb.tomo.fbp(copy, angles, options)
                local measured = scope:finish()
                fbp.BATCH_BYTES = usual
                assert.equal(predicted, measured)
                helper.assert_close(expected, slices, 1e-6, mode)
            end
        end
        assert.same(before, scan:to_table())
    end)

    it("needs a center away from the middle", function()
        local scan <close> = mb.zeros {1, 8, 20}
        local angles = mb.tomo.angles(8, TURN)
        for _, case in ipairs {{nil, "needs center"}, {9.5, "middle of the detector"},
            {25, "outside"}} do
            local text, err = helper.failure(mb.tomo.fbp, scan, angles,
                {half_acquisition = true, center = case[1]})
            assert.equal("center", err.arg)
            assert.matches(case[2], text)
        end
    end)

    it("names the option for an axis that one projection cannot show", function()
        local frame <close> = mb.full({1, 2, 20}, 0.5)
        assert.matches("half a turn apart; give the column of the axis: %-%-center X, or "
            .. "%-%-set center.column=X with a recipe", (helper.failure(mb.recon.find_center,
            mb.scan.of_arrays(frame, {0}), {half_acquisition = true})))
    end)
end)
