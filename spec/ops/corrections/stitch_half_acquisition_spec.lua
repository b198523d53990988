local mb = require "moonbeam"
local helper = require "spec.helper"

-- Smooth enough to interpolate, lopsided enough to show a mistake.
local PHANTOM = { 1, 30, 24, 1e6, 5, -4, 0, 0.3, -0.5, 9, 12, 1e6, -12, 10, 0, 0, 0.7, 8, 6, 1e6,
    20, 8, 0, 1 }

-- Sinogram (1, angles, cols) over `span`.
local function sinogram(angles, span, cols, center, device)
    local p <close> = mb.ellipsoid_projections(PHANTOM, mb.tomo.angles(angles, span), { 0 }, cols,
        { center = center })
    local view <close> = p:permute(2, 1, 3)
    local dense <close> = view:copy()
    return dense:to(device)
end

describe("stitch_half_acquisition", function()
    helper.each_device(function(device, it)
        it("gives the sinogram of the whole field of view on " .. device, function()
            -- On half pixels nothing is interpolated: the closed form to rounding. Between them, to
            -- the interpolation.
            for _, case in ipairs {
                { 60, 44, 0, 1e-5 }, { 60, 44.5, 0, 1e-5 }, { 60, 59, 0, 1e-5 },
                { 61, 15, -1, 1e-5 }, { 60, 14.5, -1, 1e-5 },
                { 60, 44.3, 0, 0.05 }, { 60, 14.8, -1, 0.05 },
            } do
                local cols, center, side, tolerance = table.unpack(case)
                local scan <close> = sinogram(48, 2 * math.pi, cols, center, device)
                local got <close> = mb.stitch_half_acquisition(scan, center)
                local axis = side < 0 and cols - 1 - center or center
                local wide = math.floor(2 * axis) + 1
                assert.same({ 1, 24, wide }, got.shape)
                local want <close> = sinogram(24, math.pi, wide, side < 0 and center + wide - cols
                    or center, device)
                helper.assert_close(want, got, tolerance, ("axis at %g of %d"):format(center, cols))
            end
        end)

        it("treats an odd number of angles as if zeros followed on " .. device, function()
            local scan <close> = mb.random({ 7, 20 }, { seed = 2, device = device })
            local padded <close> = mb.pad(scan, { after = { 1, 0 } })
            local odd <close> = mb.stitch_half_acquisition(scan, 14)
            local even <close> = mb.stitch_half_acquisition(padded, 14)
            assert.same({ 4, 29 }, odd.shape)
            assert.same(even:to_table(), odd:to_table())
        end)

        it("pairs exactly when both ends of the turn were taken on " .. device, function()
            local cols, center = 60, 44.5
            local scan <close> = sinogram(49, 2 * math.pi * 49 / 48, cols, center, device)
            local got <close> = mb.stitch_half_acquisition(scan, center, { half = 24 })
            local want <close> = sinogram(24, math.pi, 90, center, device)
            helper.assert_close(want, got, 1e-5)
        end)

        it("mirrors: a left axis is the right one seen from behind on " .. device, function()
            local scan <close> = mb.random({ 2, 10, 21 }, { seed = 3, device = device })
            local mirrored <close> = scan:view(mb.all, mb.all, { 21, 1, -1 })
            local dense <close> = mirrored:copy()
            local right <close> = mb.stitch_half_acquisition(scan, 15.25)
            local left <close> = mb.stitch_half_acquisition(dense, 20 - 15.25)
            local back <close> = left:view(mb.all, mb.all, { left.shape[3], 1, -1 })
            helper.assert_close(right, back, 1e-6)
        end)
    end)

    it("refuses an axis in the middle or outside, and too long a half turn", function()
        local scan <close> = mb.zeros { 8, 21 }
        local function refused(arg, pattern, ...)
            local text, err = helper.failure(mb.stitch_half_acquisition, scan, ...)
            assert.equal("argument", err.code)
            assert.equal(arg, err.arg)
            assert.matches(pattern, text)
        end
        for _, center in ipairs { 10, 10.9, 9.1 } do
            refused("center", "middle of the detector", center)
        end
        refused("center", "outside", 21)
        refused("center", "outside", -0.5)
        refused("half", "half is 9", 15, { half = 9 })
        mb.stitch_half_acquisition(scan, 11):release()
    end)

    it("needs no scratch", function()
        assert.equal(0, mb.op.estimate("stitch_half_acquisition", { { "f32", 4, 8, 21 } },
            { center = 15 }).scratch)
    end)
end)
