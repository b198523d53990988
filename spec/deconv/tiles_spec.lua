local mb = require "moonbeam"
local helper = require "spec.helper"
local convolution, tiles = mb.convolution, mb.tiles

helper.each_device(function(device, test)
    describe("tiles.convolve on " .. device:match("^%a+"), function()
        for _, boundary in ipairs { "zero", "reflect", "mirror", "replicate" } do
            test("gives the untiled result: " .. boundary, function()
                local image <close> = mb.random({ 11, 26, 31 }, { seed = 1, low = -1, device = device })
                for _, kernel in ipairs { { 3, 4, 5 }, { 1, 6, 3 }, { 4, 1, 8 } } do
                    local psf <close> = mb.random(kernel, { seed = 2, device = device })
                    for _, correlate in ipairs { false, true } do
                        local whole <close> = convolution(image, psf, { boundary = boundary, correlate = correlate })
                        for _, tile in ipairs { { 11, 9, 31 }, { 5, 14, 12 } } do
                            local got <close>, plan = tiles.convolve(image, psf,
                                { boundary = boundary, correlate = correlate, tile = tile })
                            assert.is_true(plan.total > 1)
                            helper.assert_close(whole, got, 1e-5, ("%d tiles"):format(plan.total))
                        end
                    end
                end
            end)
        end

        test("stays within three budgets, with the bytes it tells", function()
            local image <close> = mb.random({ 24, 60, 64 }, { seed = 3, device = device, dtype = "u16", high = 1000 })
            local psf <close> = mb.psf_gaussian({ 5, 9, 9 }, 2, { device = device })
            local whole <close> = convolution(image, psf, { boundary = "reflect" })
            local before, out = nil, mb.zeros({ 24, 60, 64 }, { device = device })
            for _, budget in ipairs { 300000, 600000, 1000000 } do
                local plan
                local peak = mb.pool.peak(function()
                    local _, made = tiles.convolve(image, psf, { boundary = "reflect", budget = budget, out = out })
                    plan = made
                end, device)
                helper.assert_close(whole, out, 1e-5)
                assert.is_true(plan.total > 1 and peak <= budget, ("%d of %d, %d tiles"):format(peak, budget, plan.total))
                assert.is_true(before == nil or plan.total <= before)
                before = plan.total
            end
            out:release()
            local _, err = helper.failure(tiles.convolve, image, psf, { budget = 1000 })
            assert.equal("budget", err.code)
        end)
    end)
end)

describe("tiles.convolve", function()
    helper.gpu_it("works on a GPU for an image on the host", function()
        local image <close> = mb.random({ 20, 40, 44 }, { seed = 4, device = "host" })
        local psf <close> = mb.psf_gaussian({ 5, 7, 7 }, 2, { device = "host" })
        local whole <close> = convolution(image, psf)
        local got <close>, plan = tiles.convolve(image, psf, { device = "cuda:0", tile = { 10, 20, 22 } })
        assert.equal("host", got.device.id)
        assert.equal(8, plan.total)
        helper.assert_close(whole, got, 1e-5)
    end)

    it("says what tiles cannot do", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        assert.matches("wrap", (helper.failure(tiles.convolve, image, psf, { boundary = "circular" })))
        assert.matches("whole", (helper.failure(tiles.convolve, image, psf, { center = { 0.5, 1 } })))
    end)
end)
