local cutting = require "moonbeam.tiles.search"
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"
local tiff_encoder = require "spec.support.tiff_encoder"
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
            for _, case in ipairs { { "npy", 0.4, true }, { "tif", 0.6 }, { "h5", 0.8, false } } do
                local name, budget = folder .. "/o." .. case[1], math.floor(case[2] * bytes)
                local source <close> = mb.images.open(folder .. "/i.tif")
                local host_scope <close> = mb.pool.scope(mb.device "host")
                local scope <close> = mb.pool.scope(mb.device(device))
                local plan, report
                do
                    local out <close> = mb.images.create(name,
                        { shape = shape, dtype = "f32", meta = source.meta })
                    plan, report = tiles.convolve_volume(source, psf, out:volume(),
                        { boundary = "mirror", budget = budget, host_budget = budget // 3,
                            overlap = case[3] })
                    out:finish()
                end
                local peak, host_peak = scope:finish(), device ~= "host" and host_scope:finish()
                    or 0
                assert.equal(plan.peak, peak)
                assert.equal(plan.host_peak, host_peak)
                assert.same(plan.peaks, report.peaks)
                assert.equal(plan.pinned, report.pinned)
                assert.is_true(plan.pinned > 0 and report.as_planned)
                if case[3] ~= nil then
                    assert.equal(case[3], plan.overlap)
                end
                assert.is_true(peak + host_peak < bytes and plan.total > 1)
                local got <close> = mb.images.read(name, "host")
                helper.assert_close(whole, got, 1e-5)
            end
        end)
    end)
end)

local SHAPE = { 9, 26, 31 }

-- Files of an image: those that carriers move, and those that have to be turned around or decoded.
local function write_all(folder, image)
    local names = {}
    for _, kind in ipairs { "npy", "h5", "tif" } do
        names[#names + 1] = folder .. "/i." .. kind
        mb.images.write(names[#names], image)
    end
    for i, options in ipairs { { order = ">" }, { method = "lzw" } } do
        options.dtype = image.dtype
        names[#names + 1] = ("%s/%d.tif"):format(folder, i)
        files.write(names[#names], tiff_encoder.encode(image:to_table(), options))
    end
    return names
end

-- Calls run(source, sink, what) for files, mapped files and arrays, and check(result, what).
local function everywhere(folder, names, image, run, check)
    local kinds = { "h5", "tif", "npy" }
    for i, name in ipairs { table.unpack(names), names[1] } do
        local stored <close> = mb.images.open(name)
        local source = i <= #names and stored or mb.volumes.map(stored, "f32", function(block)
            return block:cast("f32")
        end)
        local result = folder .. "/o." .. kinds[i % 3 + 1]
        do
            local out <close> = mb.images.create(result,
                { shape = SHAPE, dtype = "f32", overwrite = true })
            run(source, out:volume(), name)
            out:finish()
        end
        local got <close> = mb.images.read(result, "host")
        check(got, name)
    end
    local result <close> = mb.zeros(SHAPE)
    run(mb.volumes.of_array(image), mb.volumes.of_array(result), "arrays")
    check(result, "arrays")
end

describe("tiles.convolve", function()
    it("has the same bits wherever the volumes are, beside reading and writing or not, on any devices", function()
        local folder = files.folder()
        local _ <close> = setmetatable({}, { __close = function() files.remove(folder) end })
        local image <close> = mb.random(SHAPE, { seed = 5, dtype = "u16", high = 4000 })
        local psf <close> = mb.random({ 3, 4, 5 }, { seed = 6 })
        local names = write_all(folder, image)
        for _, tile in ipairs { { 5, 14, 12 }, { 9, 9, 31 } } do
            local expected <close>, first = tiles.convolve(image, psf,
                { boundary = "mirror", tile = tile })
            local bits = expected:to_table()
            assert.is_true(first.total > 2)
            for i, devices in ipairs { { "host" }, { "host", "host:1" }, { "host:1", "host" },
                { "host:2", "host", "host:1" }, { "host:1" } } do
                for _, overlap in ipairs { true, i > 3 } do
                    everywhere(folder, names, image, function(source, sink, what)
                        what = ("%s on %s"):format(what, table.concat(devices, ", "))
                        local plan, report = tiles.convolve_volume(source, psf, sink,
                            { boundary = "mirror", tile = tile, devices = devices,
                                overlap = overlap })
                        assert.same(report.replayed or plan.peaks, report.peaks, what)
                        assert.equal(#devices > 1, report.replayed ~= nil)
                        for id, bytes in pairs(plan.peaks) do
                            assert.is_true(report.peaks[id] <= bytes, what)
                        end
                        assert.equal(plan.pinned, report.pinned, what)
                        assert.equal(overlap and (what:find "^arrays" == nil or i > 1),
                            plan.overlap, what)
                    end, function(result, what)
                        assert.same(bits, result:to_table(), what)
                    end)
                end
            end
        end
    end)

    it("plans for a GPU that is not here what its dry run takes", function()
        local shape = { 24, 60, 64 }
        local source, sink = mb.volumes.planned(shape, "u16"), mb.volumes.planned(shape, "f32")
        local psf <close> = mb.psf_gaussian({ 5, 9, 9 }, 2)
        for _, overlap in ipairs { true, false } do
            local options = { device = "planned:h200", tile = { 12, 30, 64 }, overlap = overlap }
            local plan = tiles.plan(source, psf, sink, options)
            local again = mb.plan.peaks(function()
                options.plan = nil
                local inner, report = tiles.convolve_volume(source, psf, sink, options)
                assert.same(plan.peaks, inner.peaks)
                assert.same(plan.peaks, report.peaks)
                assert.is_true(report.as_planned)
            end, { "planned:h200" }).peak
            assert.equal(plan.peak, again["planned:h200"])
            assert.equal(plan.host_peak, again.host)
            assert.equal(plan.pinned, again.pinned)
        end
        local arrays <close> = mb.zeros(shape)
        local plan = tiles.plan(mb.volumes.of_array(arrays), psf, nil, { device = "planned:h200" })
        assert.is_true(plan.peak > 0 and plan.pinned > 0 and plan.host_peak == 0)
    end)

    it("leaves nothing behind when memory runs out in any allocation", function()
        local folder = files.folder()
        local _ <close> = setmetatable({}, { __close = function() files.remove(folder) end })
        local image <close> = mb.ones { 12, 13 }
        local psf <close> = mb.ones { 3, 3 }
        mb.npy.write(folder .. "/i.npy", image)
        local source <close> = mb.npy.open(folder .. "/i.npy")
        local options = { tile = { 7, 8 }, devices = { "host", "host:1" },
            schedule = "fixed" }
        local function run()
            local out <close> = mb.npy.create(folder .. "/o.npy",
                { shape = image.shape, dtype = "f32", overwrite = true })
            tiles.convolve_volume(source, psf, out:volume(), options)
        end
        options.plan = tiles.plan(source, psf, mb.volumes.planned(image.shape, "f32"), options)
        mb.collect()
        local live, start = mb.pool.stats().live, mb.pool.stats().allocs
        run()
        for n = 1, mb.pool.stats().allocs - start do
            mb.debug.fail_nth(n)
            local ok, err = pcall(run)
            mb.debug.fail_nth(0)
            assert.is_false(ok)
            assert.equal("memory", err.code)
            assert.equal(live, mb.pool.stats().live)
        end
    end)

    it("calls back after each tile, and says what is not finite", function()
        local image <close> = mb.ones { 12, 13 }
        local psf <close> = mb.ones { 3, 3 }
        local calls = {}
        local got <close>, plan, report = tiles.convolve(image, psf, { tile = { 4, 5 },
            on_tile = function(number, total)
                calls[#calls + 1] = number
                assert.equal(9, total)
                mb.zeros({ 100 }):release() -- the caller's memory is no part of the plan
            end })
        assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9 }, calls)
        assert.equal(got.elements, 156)
        assert.equal(plan.peak, report.peak)
        for _, at in ipairs { { 1, 1 }, { 12, 13 } } do
            local bad <close> = image:copy()
            local element <close> = bad:view({ at[1], at[1] }, { at[2], at[2] })
            element:fill(0 / 0)
            assert.matches("1 of %d+ values of the image's block from",
                (helper.failure(tiles.convolve, bad, psf, { tile = { 4, 5 } })))
        end
    end)

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
        local axes = cutting.cut({ 7, 11 }, { 7, 11 }, { 3, 4 }, { -1, -2 }, { 3, 4 })
        for number, tile in ipairs(cutting.tiles(axes)) do
            assert.equal(number, tile.number)
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
        end
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

    it("goes on with the other device where one is lost, late as well", function()
        for _, calls in ipairs {"40 20", "150 10"} do
            local output, status = helper.run_program("--leaks spec/fixtures/lose_convolve.lua "
                .. calls)
            assert.equal(0, status, output)
            assert.equal("lost 6\n", output)
        end
    end)

    it("sees a result that has left f32, wherever it is", function()
        local psf <close> = mb.full({3, 3}, 20)
        for _, at in ipairs {{1, 1}, {9, 12}, {20, 22}} do
            local image <close> = mb.zeros {20, 22}
            image:view(at[1], at[2]):fill(3e38)
            local message, problem = helper.failure(tiles.convolve, image, psf, {tile = {8, 8}})
            assert.equal("argument", problem.code)
            assert.matches("the image's block from %(%d+, %d+%) on are finite but too large", message)
        end
    end)

    it("says what tiles cannot do", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        assert.matches("wrap",
            (helper.failure(tiles.convolve, image, psf, { boundary = "circular" })))
    end)
end)
