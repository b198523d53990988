local cutting = require "moonbeam.tiles.search"
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"
local convolution, tiles = mb.convolution, mb.tiles

helper.each_device(function(device, test)
    describe("tiles.convolve on " .. device:match("^%a+"), function()
        for _, boundary in ipairs { "zero", "reflect", "mirror", "replicate" } do
            test("gives the untiled result: " .. boundary, function()
                local image <close> = mb.random({ 11, 26, 31 },
                    { seed = 1, low = -1, device = device })
                for _, kernel in ipairs { { 3, 4, 5 }, { 1, 6, 3 }, { 4, 1, 8 } } do
                    local psf <close> = mb.random(kernel, { seed = 2, device = device })
                    for _, correlate in ipairs { false, true } do
                        local whole <close> = convolution(image, psf,
                            { boundary = boundary, correlate = correlate })
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
            local image <close> = mb.random({ 24, 60, 64 },
                { seed = 3, device = device, dtype = "u16", high = 1000 })
            local psf <close> = mb.psf_gaussian({ 5, 9, 9 }, 2, { device = device })
            local whole <close> = convolution(image, psf, { boundary = "reflect" })
            local before, out = nil, mb.zeros({ 24, 60, 64 }, { device = device })
            for _, budget in ipairs { 300000, 600000, 1000000 } do
                local plan
                local peak = mb.pool.peak(function()
                    local _, made = tiles.convolve(image, psf,
                        { boundary = "reflect", budget = budget, out = out })
                    plan = made
                end, device)
                helper.assert_close(whole, out, 1e-5)
                assert.is_true(plan.total > 1 and peak <= budget,
                    ("%d of %d, %d tiles"):format(peak, budget, plan.total))
                assert.equal(plan.peak, peak)
                assert.is_true(before == nil or plan.total <= before)
                before = plan.total
            end
            out:release()
            local _, err = helper.failure(tiles.convolve, image, psf, { budget = 1000 })
            assert.equal("budget", err.code)
        end)

        test("goes from file to file beyond the memory of device and host", function()
            local folder = files.folder()
            local _ <close> = setmetatable({}, { __close = function()
                files.remove(folder)
            end })
            local shape = { 24, 60, 64 }
            local bytes = 4 * 24 * 60 * 64
            do
                local image <close> = mb.random(shape, { seed = 3, dtype = "u16", high = 1000 })
                mb.tiff.write(folder .. "/i.tif", image, { spacing = 0.5 })
            end
            local psf <close> = mb.psf_gaussian({ 5, 9, 9 }, 2, { device = device })
            local image <close> = mb.tiff.read(folder .. "/i.tif", { device = device })
            local whole <close> = convolution(image, psf, { boundary = "mirror" })
            image:release()
            for _, case in ipairs { { "npy", 0.4 }, { "tif", 0.6 }, { "h5", 0.8 } } do
                local name, budget = folder .. "/o." .. case[1], math.floor(case[2] * bytes)
                local source <close> = mb.images.open(folder .. "/i.tif")
                local host_scope <close> = mb.pool.scope(mb.device "host")
                local scope <close> = mb.pool.scope(mb.device(device))
                local plan
                do
                    local out <close> = mb.images.create(name,
                        { shape = shape, dtype = "f32", meta = source.meta })
                    plan = tiles.convolve_volume(source, psf, out:volume(),
                        { boundary = "mirror", budget = budget, host_budget = budget // 3 })
                    out:finish()
                end
                local peak, host_peak = scope:finish(), device ~= "host" and host_scope:finish()
                    or 0
                assert.equal(plan.peak, peak)
                assert.equal(plan.host_peak, host_peak)
                assert.is_true(peak + host_peak < bytes and plan.total > 1)
                local got <close> = mb.images.read(name, "host")
                helper.assert_close(whole, got, 1e-5)
            end
        end)
    end)
end)

describe("tiles.convolve", function()
    it("tells what it would do, and what else there is", function()
        local psf <close> = mb.psf_gaussian({ 5, 9, 9 }, 2)
        local image <close> = mb.zeros { 24, 60, 64 }
        local plan = tiles.plan(mb.volumes.of_array(image), psf, nil, { budget = 400000 })
        local text = tiles.table(plan)
        assert.matches("tiles +tile +block +bytes", text)
        assert.matches("does not fit\n", text)
        assert.matches("<%- taken$", text)
        -- The quickest that fits is taken: those before it do not.
        for i, made in ipairs(plan.candidates) do
            assert.is_true(i == #plan.candidates or not made.fits)
            assert.is_true(i == 1 or made.seconds >= plan.candidates[i - 1].seconds)
        end
        assert.is_true(plan.peak <= 400000 and plan.work > 1)
        assert.near(plan.total * plan.points / (24 * 60 * 64), plan.work, 1e-9)
        -- More memory, less time.
        local more = tiles.plan(mb.volumes.of_array(image), psf, nil, { budget = 4000000 })
        assert.is_true(more.seconds < plan.seconds and more.total < plan.total)
    end)

    it("cuts what it is told to, whole and without overlap", function()
        local seen = mb.zeros { 7, 11 }
        local _ <close> = seen
        cutting.each(cutting.cut({ 7, 11 }, { 7, 11 }, { 3, 4 }, { -1, -2 }, { 3, 4 }),
            function(tile)
            local part <close> = seen:view({ tile.first[1] + 1, tile.first[1] + tile.extents[1] },
                { tile.first[2] + 1, tile.first[2] + tile.extents[2] })
            mb.binary(part, "add", { scalar = 1, out = part })
            for i, n in ipairs { 7, 11 } do
                local low = tile.first[i] + (i == 1 and -1 or -2)
                assert.equal(math.max(0, low), tile.from[i])
                assert.equal(tile.from[i] - low, tile.before[i])
                assert.equal(math.min(n, low + tile.extents[i] + (i == 1 and 2 or 3))
                    - tile.from[i], tile.take[i])
            end
        end)
        assert.equal(1, seen:min())
        assert.equal(1, seen:max())
    end)

    helper.gpu_it("works on a GPU for an image on the host", function()
        local image <close> = mb.random({ 20, 40, 44 }, { seed = 4, device = "host" })
        local psf <close> = mb.psf_gaussian({ 5, 7, 7 }, 2, { device = "host" })
        local whole <close> = convolution(image, psf)
        local got <close>, plan = tiles.convolve(image, psf,
            { device = "cuda:0", tile = { 10, 20, 22 } })
        assert.equal("host", got.device.id)
        assert.equal(8, plan.total)
        helper.assert_close(whole, got, 1e-5)
    end)

    it("says what tiles cannot do", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        assert.matches("wrap",
            (helper.failure(tiles.convolve, image, psf, { boundary = "circular" })))
        assert.matches("whole",
            (helper.failure(tiles.convolve, image, psf, { center = { 0.5, 1 } })))
    end)
end)
