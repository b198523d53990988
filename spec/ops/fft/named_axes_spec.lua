-- mb.fft.rfftn, irfftn, fftn, ifftn, fftshift, ifftshift: over named axes, as numpy.fft and
-- scipy.fft.
local mb = require "moonbeam"
local helper = require "spec.helper"
local inputs = require "spec.fixtures.inputs"
local reference = require "spec.fixtures.scipy_fft"
local fft = mb.fft

helper.each_device(function(device, test)
    describe("fft over named axes on " .. device:match("^%a+"), function()
        for _, case in ipairs(reference.rfftn) do
            test(("rfftn is scipy's: %s over %s"):format(table.concat(case.shape, "x"),
                table.concat(case.axes, ", ")), function()
                local a <close> = inputs.array(case.shape, 5, device)
                local f <close> = fft.rfftn(a, { axes = case.axes })
                helper.assert_close(case.result, f, 1e-6)
                local halved = case.axes[#case.axes]
                local back <close> = fft.irfftn(f, { axes = case.axes, n = case.shape[halved] })
                helper.assert_close(a, back, 1e-6)
            end)
        end
        for _, case in ipairs(reference.fftn) do
            test(("fftn is scipy's: %s over %s"):format(table.concat(case.shape, "x"),
                table.concat(case.axes, ", ")), function()
                local a <close> = inputs.array(case.shape, 5, device)
                local f <close> = fft.fftn(a, { axes = case.axes })
                assert.equal("c64", f.dtype)
                helper.assert_close(case.result, f, 1e-6)
                local back <close> = fft.ifftn(f, { axes = case.axes })
                local real <close> = mb.convert(a, "c64")
                helper.assert_close(real, back, 1e-6)
            end)
        end
        for _, case in ipairs(reference.fftshift) do
            test(("fftshift is scipy's: %s over %s"):format(table.concat(case.shape, "x"),
                table.concat(case.axes, ", ")), function()
                local a <close> = mb.random(case.shape, { seed = 6, device = device })
                local before = helper.flatten(a:to_table())
                local shifted <close> = fft.fftshift(a, { axes = case.axes })
                for i, value in ipairs(helper.flatten(shifted:to_table())) do
                    assert.equal(before[case.shifted[i] + 1], value)
                end
                local unshifted <close> = fft.ifftshift(a, { axes = case.axes })
                for i, value in ipairs(helper.flatten(unshifted:to_table())) do
                    assert.equal(before[case.unshifted[i] + 1], value)
                end
                local back <close> = fft.ifftshift(shifted, { axes = case.axes })
                helper.assert_close(a, back, 0)
            end)
        end

        test("takes all axes without names, four as well", function()
            local a <close> = mb.random({ 3, 4, 5, 6 }, { seed = 1, device = device })
            local f <close> = fft.fftn(a)
            assert.near(a:sum(), (f:item(1, 1, 1, 1)), 1e-4)
            local energy = a:norm() ^ 2
            assert.near(energy, f:norm() ^ 2 / 360, 1e-5 * energy)
            local back <close> = fft.ifftn(f)
            local real <close> = mb.convert(a, "c64")
            helper.assert_close(real, back, 1e-6)
        end)

        test("takes the memory that a dry run tells", function()
            local function run()
                local a <close> = mb.zeros({ 8, 9, 10 }, { device = device })
                fft.rfftn(a, { axes = { 1, 3, 2 } }):release()
                fft.fftn(a, { axes = { 1 } }):release()
            end
            assert.equal(mb.dry_run(run), (mb.ledger(run)))
        end)
    end)
end)

describe("fft over named axes", function()
    it("explains wrong axes", function()
        local a <close> = mb.ones { 4, 5 }
        assert.matches("1 to 2", (helper.failure(fft.fftn, a, { axes = { 3 } })))
        assert.matches("different", (helper.failure(fft.rfftn, a, { axes = { 2, -1 } })))
        assert.matches("empty", (helper.failure(fft.fftn, a, { axes = {} })))
        assert.matches("did you mean 'axes'", (helper.failure(fft.fftn, a, { axis = { 1 } })))
        local b <close> = mb.ones { 2, 2, 2, 2 }
        assert.matches("at most three", (helper.failure(fft.rfftn, b)))
    end)
end)
