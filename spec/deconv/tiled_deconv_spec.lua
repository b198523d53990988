local cutting = require "moonbeam.tiles.search"
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"
local deconv, tiled, volumes = mb.deconv, mb.tiled_deconv, mb.volumes

-- A PSF with no symmetry in any axis.
local function crooked(shape, device)
    local random <close> = mb.random(shape, { seed = 9, low = 0.05, high = 1, device = device })
    local peak <close> = mb.psf_gaussian(shape, 1.2,
        { device = device, center = mb.psf.center(random), normalize = false })
    return random * peak
end

-- Counts with bright boxes, some at the edges.
local function measured(shape, device, dtype)
    local x <close> = mb.full(shape, 12, { device = device })
    for _, part in ipairs { { 0.3, 0.45, 200 }, { 0.6, 0.65, 500 }, { 0.9, 1, 300 } } do
        local ranges = {}
        for i, n in ipairs(shape) do
            ranges[i] = { math.max(1, math.floor(part[1] * n)),
                math.max(1, math.floor(part[2] * n)) }
        end
        local box <close> = x:view(table.unpack(ranges))
        box:fill(part[3])
    end
    local noisy <close> = mb.poisson(x, { seed = 4 })
    return noisy:cast(dtype or "f32")
end

-- Calls fn and returns its results after the peaks above what is live: on the device, on the host.
local function with_peaks(device, fn)
    mb.collect()
    local host_scope <close> = mb.pool.scope(mb.device "host")
    local scope <close> = mb.pool.scope(mb.device(device))
    local results = table.pack(fn())
    local peak, host = scope:finish(), device ~= "host" and host_scope:finish() or 0
    return peak, host, table.unpack(results, 1, results.n)
end

helper.each_device(function(device, test)
    describe("tiled_deconv on " .. device:match("^%a+"), function()
        for _, case in ipairs {
            { { 61 }, { 8 }, { 25, 16, 9 } }, { { 40, 37 }, { 6, 5 }, { 20, 13, 9 } },
            { { 13, 26, 31 }, { 4, 7, 6 }, { 20, 14, 10 } },
        } do
            local shape, kernel, extents = table.unpack(case)
            test(("has exact seams, at the bytes it tells: %s"):format(table.concat(shape, " x ")),
                function()
                for _, center in ipairs(#shape < 3 and { "middle", "fft" } or { "fft" }) do
                    local image <close> = measured(shape, device)
                    local psf <close> = crooked(kernel, device)
                    local iterations = #shape == 1 and 20 or 5
                    local whole <close>, report = deconv.richardson_lucy(image, psf,
                        { iterations = iterations, metrics = true, center = center })
                    for _, extent in ipairs(extents) do
                        local tile = {}
                        for i = 1, #shape do
                            tile[i] = extent
                        end
                        local peak, host_peak, got, made, plan = with_peaks(device, function()
                            return tiled.richardson_lucy(image, psf,
                                { iterations = iterations, metrics = true, tile = tile,
                                    center = center })
                        end)
                        local _ <close> = got
                        assert.is_true(plan.total > 1)
                        assert.equal(plan.peak, peak)
                        assert.equal(plan.host_peak, host_peak)
                        helper.assert_close(whole, got, 1e-4, ("%d tiles"):format(plan.total))
                        for _, name in ipairs { "divergence", "blurred", "flux", "change" } do
                            local expected = report.metrics[iterations][name]
                            assert.near(expected, made.metrics[iterations][name],
                                1e-3 * math.abs(expected), name)
                        end
                    end
                end
            end)
        end

        test("equals the untiled result at three budgets, in 12 bytes per voxel and the tiles",
            function()
            local shape = { 24, 64, 64 }
            local image <close> = measured(shape, device)
            local psf <close> = crooked({ 3, 4, 5 }, device)
            local whole <close> = deconv.richardson_lucy(image, psf, { iterations = 3 })
            local bytes, before = 4 * 24 * 64 * 64, nil
            local estimate = 4 * 26 * 67 * 68
            for _, part in ipairs { 0.35, 0.8, 1.6 } do
                -- The image is there; estimate and ratio come to it.
                local budget = estimate + bytes + math.floor(part * bytes)
                local peak, _, got, _, plan = with_peaks(device, function()
                    return tiled.richardson_lucy(image, psf, { iterations = 3, budget = budget,
                        place = "device" })
                end)
                local _ <close> = got
                helper.assert_close(whole, got, 1e-4)
                assert.equal(plan.peak, peak)
                assert.is_true(peak <= budget, ("%d of %d"):format(peak, budget))
                assert.is_true(plan.total > 1 and (before == nil or plan.total <= before))
                before = plan.total
            end
            local _, err = helper.failure(tiled.richardson_lucy, image, psf,
                { budget = bytes, place = "device" })
            assert.equal("budget", err.code)
            assert.matches("place = \"host\" or \"file\"", tostring(err))
        end)

        test("has momentum, the same at 4 bytes per voxel more", function()
            local image <close> = measured({ 12, 26, 31 }, device)
            local psf <close> = crooked({ 4, 5, 6 }, device)
            local options = { iterations = 6, acceleration = "heavy_ball", metrics = true }
            local whole <close>, report = deconv.richardson_lucy(image, psf, options)
            local plain = tiled.plan(volumes.of_array(image), psf, nil,
                { iterations = 6, metrics = true, tile = { 8, 16, 18 } })
            local scratch = os.tmpname()
            options.tile, options.scratch = { 8, 16, 18 }, scratch
            for _, place in ipairs { "device", "file" } do
                options.place = place
                local peak, host_peak, got, made, plan = with_peaks(device, function()
                    return tiled.richardson_lucy(image, psf, options)
                end)
                local _ <close> = got
                helper.assert_close(whole, got, 1e-4, place)
                assert.near(report.metrics[6].divergence, made.metrics[6].divergence,
                    1e-3 * report.metrics[6].divergence)
                assert.equal(plan.peak, peak)
                assert.equal(plan.host_peak, host_peak)
                if place == "device" then
                    assert.equal(plain.peak + mb.pool.ceil_1d(4 * 15 * 30 * 36), peak)
                end
            end
            os.remove(scratch)
        end)

        test("works from file to file beyond the memory of device and host, the same", function()
            local folder = files.folder()
            local _ <close> = setmetatable({}, { __close = function()
                files.remove(folder)
            end })
            local shape, kernel = { 20, 56, 60 }, { 3, 5, 4 }
            local bytes = 4 * 20 * 56 * 60 -- of the result
            do
                local image <close> = measured(shape, "host", "u16")
                mb.tiff.write(folder .. "/image.tif", image)
                mb.npy.write(folder .. "/image.npy", image)
                mb.images.write(folder .. "/image.h5", image)
            end
            local psf <close> = crooked(kernel, device)
            local image <close> = mb.images.read(folder .. "/image.npy", device)
            local whole <close> = deconv.richardson_lucy(image, psf, { iterations = 3 })
            image:release()
            for _, case in ipairs { { "tif", "npy", 0.4 }, { "npy", "h5", 0.55 },
                { "h5", "tif", 0.75 } } do
                local from, to, part = table.unpack(case)
                local listed = #files.list(folder)
                local result = folder .. "/result." .. to
                local source <close> = mb.images.open(folder .. "/image." .. from)
                local budget = math.floor(part * bytes)
                local peak, host_peak, report, plan = with_peaks(device, function()
                    local out <close> = mb.images.create(result, { shape = shape, dtype = "f32" })
                    local report, plan = tiled.richardson_lucy_volume(source, psf, out:volume(),
                        { iterations = 3, budget = budget, host_budget = budget // 4,
                            place = "file", scratch = result })
                    out:finish()
                    return report, plan
                end)
                assert.equal(3, report.iterations)
                assert.equal("file", plan.place)
                assert.equal(plan.peak, peak)
                assert.equal(plan.host_peak, host_peak)
                assert.is_true(peak + host_peak < bytes, ("%d and %d of %d"):format(peak, host_peak,
                    bytes))
                assert.equal(listed + 1, #files.list(folder)) -- scratch files are gone
                do
                    local got <close> = mb.images.read(result, "host")
                    helper.assert_close(whole, got, 1e-4)
                end
                os.remove(result)
            end
        end)

        test("takes what stays resident where the budgets allow", function()
            local image <close> = measured({ 12, 40, 40 }, "host", "u16")
            local psf <close> = crooked({ 3, 3, 3 }, device)
            local source, sink = volumes.of_array(image), volumes.planned({ 12, 40, 40 }, "f32")
            local scratch = os.tmpname()
            local function place_of(options)
                options.scratch = scratch
                return tiled.plan(source, psf, sink, options).place
            end
            assert.equal("device", place_of {})
            if device == "host" then
                assert.equal("file", place_of { budget = 100000 })
            else
                assert.equal("host", place_of { budget = 200000 })
                assert.equal("file", place_of { budget = 200000, host_budget = 100000 })
            end
            local _, err = helper.failure(place_of, { budget = 2000 })
            assert.equal("budget", err.code)
            os.remove(scratch)
        end)

        test("blends independent tiles, at the bytes it tells", function()
            local image <close> = measured({ 14, 60, 64 }, device)
            local psf <close> = crooked({ 3, 5, 5 }, device)
            local whole <close> = deconv.richardson_lucy(image, psf,
                { iterations = 5, acceleration = "heavy_ball" })
            for _, tile in ipairs { { 14, 30, 64 }, { 7, 20, 22 } } do
                local peak, host_peak, got, report, plan = with_peaks(device, function()
                    return tiled.richardson_lucy(image, psf,
                        { mode = "blended", iterations = 5, acceleration = "heavy_ball",
                            tile = tile })
                end)
                local _ <close> = got
                assert.equal(plan.peak, peak)
                assert.equal(plan.host_peak, host_peak)
                assert.is_true(plan.total > 1)
                local difference <close> = got - whole
                assert.is_true(difference:norm() < 0.05 * whole:norm(),
                    ("%g"):format(difference:norm() / whole:norm()))
                assert.is_true(report.seam > 0.5 and report.seam < 1.5)
            end
            -- The ramps add up to one.
            local flat <close> = mb.full({ 9, 50, 41 }, 3, { device = device })
            local same <close> = tiled.richardson_lucy(flat, psf,
                { mode = "blended", iterations = 2, tile = { 5, 11, 9 } })
            helper.assert_close(flat, same, 1e-3) -- the edges of tiles are not seen whole
        end)
    end)
end)

describe("tiled_deconv", function()
    helper.gpu_it("keeps image, estimate and ratio on the host and works on a GPU", function()
        local image <close> = measured({ 14, 40, 44 }, "host", "u16")
        local psf <close> = crooked({ 3, 5, 4 }, "cuda:0")
        local there <close> = image:to("cuda:0")
        local whole <close> = deconv.richardson_lucy(there, psf, { iterations = 6 })
        there:release()
        local peak, host_peak, got, _, plan = with_peaks("cuda:0", function()
            local result = mb.empty(image.shape)
            local report, made = tiled.richardson_lucy_volume(volumes.of_array(image), psf,
                volumes.of_array(result),
                { iterations = 6, place = "host", tile = { 7, 20, 22 } })
            return result, report, made
        end)
        local _ <close> = got
        helper.assert_close(whole, got, 1e-4)
        assert.equal(plan.peak, peak)
        assert.equal(plan.host_peak, host_peak - mb.pool.ceil_1d(got.bytes))
    end)

    it("has the same bits at every place, beside reading and writing or not, on any devices", function()
        local folder = files.folder()
        local _ <close> = setmetatable({}, { __close = function() files.remove(folder) end })
        local shape = { 9, 20, 22 }
        local image <close> = measured(shape, "host", "u16")
        local psf <close> = crooked({ 3, 4, 5 }, "host")
        mb.npy.write(folder .. "/i.npy", image)
        local function check(options, bits, metrics, seam)
            local what = ("%s, %s, %s, %s"):format(options.mode, options.place,
                table.concat(options.devices, " "), options.overlap)
            local stored <close> = mb.npy.open(folder .. "/i.npy")
            local result <close> = mb.zeros(shape)
            for _, source in ipairs { stored, volumes.of_array(image) } do
                local report, plan
                do
                    local out <close> = mb.images.create(folder .. "/o.h5",
                        { shape = shape, dtype = "f32", overwrite = true })
                    local sink = source == stored and out:volume() or volumes.of_array(result)
                    report, plan = tiled.richardson_lucy_volume(source, psf, sink, options)
                    if source == stored then
                        out:finish()
                    end
                end
                local read <close> = source == stored and mb.images.read(folder .. "/o.h5", "host")
                    or nil
                assert.same(bits, (read or result):to_table(), what)
                assert.same(metrics, report.metrics, what)
                assert.equal(seam, report.seam, what)
                assert.same(report.replayed or plan.peaks, report.peaks, what)
                assert.equal(#options.devices > 1 and options.mode ~= "blended",
                    report.replayed ~= nil, what)
                for id, bytes in pairs(plan.peaks) do
                    assert.is_true(report.peaks[id] <= bytes, what)
                end
                assert.equal(plan.pinned, report.pinned, what)
                assert.is_true(report.as_planned)
                if source == stored then
                    assert.equal(options.overlap, plan.overlap, what)
                end
            end
        end
        for _, options in ipairs { { metrics = true, acceleration = "heavy_ball" }, {},
            { mode = "blended" } } do
            options.iterations, options.tile = 3, { 5, 9, 12 }
            local expected <close>, report, plan = tiled.richardson_lucy(image, psf, options)
            local bits, metrics, seam = expected:to_table(), report.metrics, report.seam
            assert.is_true(plan.total > 3)
            options.scratch = folder .. "/scratch"
            for _, devices in ipairs { { "host" }, { "host:1", "host" }, { "host", "host:1" },
                { "host:1", "host:2", "host" } } do
                local places = options.mode and { false } or { #devices > 1 and "host" or "device",
                    "file" }
                for _, place in ipairs(places) do
                    for _, overlap in ipairs { true, false } do
                        options.devices, options.overlap = devices, overlap
                        options.place = place or nil
                        check(options, bits, metrics, seam)
                    end
                end
            end
        end
    end)

    it("keeps the transfer functions in the plan for the next volume, and what it tells", function()
        local shape = { 9, 20, 22 }
        local image <close> = measured(shape, "host")
        local psf <close> = crooked({ 3, 4, 5 }, "host")
        local other <close> = psf * psf
        for _, devices in ipairs { { "host" }, { "host", "host:1" } } do
            local options = { iterations = 2, tile = { 5, 9, 12 }, devices = devices }
            local want <close> = tiled.richardson_lucy(image, psf, options)
            local want_other <close> = tiled.richardson_lucy(image, other, options)
            options.keep = true
            local result <close> = mb.zeros(shape)
            local volume, sink = volumes.of_array(image), volumes.of_array(result)
            local plan = tiled.plan(volume, psf, sink, options)
            assert.is_nil(plan.kept)
            options.plan = plan
            for k, each in ipairs { psf, psf, other, other, psf } do
                local before, live = plan.kept, mb.pool.stats("host").live
                local report = tiled.richardson_lucy_volume(volume, each, sink, options)
                helper.assert_close(rawequal(each, psf) and want or want_other, result, 0)
                assert.is_true(report.as_planned)
                assert.same(report.replayed or plan.peaks, report.peaks)
                assert.equal(k == 2 or k == 4, before == plan.kept)
                assert.equal(k == 1, mb.pool.stats("host").live > live)
            end
            plan.kept:release()
        end
    end)

    it("plans for a GPU that is not here what its dry run takes", function()
        local shape = { 20, 60, 64 }
        local source, sink = volumes.planned(shape, "u16"), volumes.planned(shape, "f32")
        local psf <close> = crooked({ 3, 5, 4 }, "host")
        local scratch = os.tmpname()
        for _, options in ipairs { { place = "device" }, { place = "host", metrics = true },
            { place = "file", acceleration = "heavy_ball" }, { mode = "blended" } } do
            options.device, options.tile, options.iterations = "planned:h200", { 10, 30, 64 }, 4
            options.scratch = scratch
            local plan = tiled.plan(source, psf, sink, options)
            local again = mb.plan.peaks(function()
                local report = tiled.richardson_lucy_volume(source, psf, sink, options)
                assert.same(plan.peaks, report.peaks)
                assert.equal(plan.pinned, report.pinned)
                assert.is_true(report.as_planned)
            end, { "planned:h200" }).peak
            assert.equal(plan.peak, again["planned:h200"])
            assert.equal(plan.host_peak, again.host)
            assert.is_true(plan.pinned > 0)
        end
        os.remove(scratch)
    end)

    it("measures seams: 1 without any, more where faces show", function()
        local smooth <close> = mb.random({ 12, 20, 24 }, { seed = 3 })
        local axes = cutting.cut({ 12, 20, 24 }, { 12, 20, 24 }, { 1, 1, 1 }, { 0, 0, 0 },
            { 2, 2, 3 })
        local host = mb.device "host"
        assert.near(1, tiled.seam(volumes.of_array(smooth), axes, host, host), 0.1)
        for _, tile in ipairs(cutting.tiles(axes)) do
            local ranges = {}
            for i, at in ipairs(tile.first) do
                ranges[i] = { at + 1, at + tile.extents[i] }
            end
            local part <close> = smooth:view(table.unpack(ranges))
            mb.binary(part, "add", { scalar = tile.number % 2, out = part })
        end
        assert.is_true(tiled.seam(volumes.of_array(smooth), axes, host, host) > tiled.SEAM_LIMIT)
        local one = cutting.cut({ 12, 20, 24 }, { 12, 20, 24 }, { 1, 1, 1 }, { 0, 0, 0 },
            { 1, 1, 1 })
        assert.is_nil(tiled.seam(volumes.of_array(smooth), one, host, host))
    end)

    it("stops when it is told to, and keeps its place in the iterations", function()
        local image <close> = measured({ 20, 22 }, "host")
        local psf <close> = crooked({ 3, 4 }, "host")
        local expected <close> = deconv.richardson_lucy(image, psf, { iterations = 3 })
        local calls, steps = {}, 0
        local got <close>, report, plan = tiled.richardson_lucy(image, psf,
            { iterations = 50, tile = { 8, 8 },
            on_iteration = function(k)
                calls[#calls + 1] = k
                return k < 3
            end, on_tile = function()
                steps = steps + 1
            end })
        assert.same({ 1, 2, 3 }, calls)
        assert.equal(3, report.iterations)
        assert.equal(3 * 2 * plan.total, steps)
        helper.assert_close(expected, got, 1e-5)
        local _ <close>, settled = tiled.richardson_lucy(image, psf,
            { iterations = 500, tolerance = 0.02, tile = { 8, 8 } })
        assert.is_true(settled.iterations < 100)
    end)

    it("says what it cannot do", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        assert.matches("not for mode exact",
            (helper.failure(tiled.richardson_lucy, image, psf, { margin = 3 })))
        assert.matches("step may change sign",
            (helper.failure(tiled.richardson_lucy, image, psf, { total_variation = 0.9 })))
        assert.matches("not for mode blended",
            (helper.failure(tiled.richardson_lucy, image, psf,
            { mode = "blended", metrics = true })))
        assert.matches("exact or blended",
            (helper.failure(tiled.richardson_lucy, image, psf, { mode = "exakt" })))
        assert.matches("did you mean 'iterations'",
            (helper.failure(tiled.richardson_lucy, image, psf, { iteration = 3 })))
        assert.matches("needs scratch",
            (helper.failure(tiled.richardson_lucy, image, psf, { place = "file" })))
        assert.matches("for one device, not for 2", (helper.failure(tiled.richardson_lucy, image,
            psf, { place = "device", devices = { "host", "host:1" } })))
        local line <close> = mb.ones { 3 }
        assert.matches("axis", (helper.failure(tiled.richardson_lucy, image, line)))
    end)

    it("leaves nothing behind when memory runs out in any allocation", function()
        local image <close> = mb.ones { 12, 13 }
        local psf <close> = mb.ones { 3, 3 }
        for _, options in ipairs { { iterations = 1, metrics = true, tile = { 7, 8 } },
            { iterations = 1, tile = { 7, 8 }, place = "file", scratch = os.tmpname() },
            { iterations = 1, tile = { 7, 8 }, devices = { "host", "host:1" }, metrics = true,
                schedule = "fixed" },
            { iterations = 1, mode = "blended", tile = { 7, 8 } } } do
            mb.collect()
            local live = mb.pool.stats().live
            local plan = tiled.plan(volumes.of_array(image), psf, nil, options)
            options.plan = plan
            local start = mb.pool.stats().allocs
            tiled.richardson_lucy(image, psf, options):release()
            for n = 1, mb.pool.stats().allocs - start do
                mb.debug.fail_nth(n)
                local ok, err = pcall(tiled.richardson_lucy, image, psf, options)
                mb.debug.fail_nth(0)
                assert.is_false(ok)
                assert.equal("memory", err.code)
                assert.equal(live, mb.pool.stats().live)
            end
            os.remove(options.scratch or "")
        end
    end)
end)
