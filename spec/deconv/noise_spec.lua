-- What an image says about its noise, and where iterations end because of it.
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"
local deconv = mb.deconv

-- Spheres with `peak` photons: {blurred, truth, psf}, to be closed.
local function simulated(device, peak, shape)
    local spheres <close> = mb.phantom.spheres(shape or { 12, 58, 58 },
        { count = 12, background = 2, margin = 4, device = device })
    local psf = mb.psf.gaussian({ 9, 9, 9 }, { 1.5, 1.5, 1.5 }, { device = device })
    local plain <close> = mb.convolution(spheres, psf, { boundary = "replicate" })
    local factor = peak / plain:max()
    return setmetatable({ blurred = plain * factor, truth = spheres * factor, psf = psf },
        { __close = function(all)
            for _, array in pairs(all) do
                array:release()
            end
        end })
end

-- Counts of a camera that sees `blurred` photons.
local function camera(blurred, gain, offset, readout, seed)
    local counts = mb.poisson(blurred, { seed = seed or 4 })
    mb.binary(counts, "mul", { scalar = gain, out = counts })
    mb.binary(counts, "add", { scalar = offset, out = counts })
    -- A sum of uniform numbers has nearly the normal distribution.
    for i = 1, 12 do
        local noise <close> = mb.random(blurred.shape,
            { seed = 100 + i, low = -readout, high = readout, device = blurred.device })
        local half <close> = noise * 0.5
        mb.binary(counts, "add", { b = half, out = counts })
    end
    return counts
end

local function away(value, from, by)
    return math.abs(value - from) / by
end

describe("deconv.noise", function()
    it("finds gain and offset of a camera within its own errors", function()
        for _, case in ipairs { { 1, 0, 0, 40 }, { 2.2, 100, 2, 40 }, { 0.4, 100, 1, 300 },
            { 5, 400, 3, 1000 } } do
            local gain, offset, readout, peak = table.unpack(case)
            local s <close> = simulated("host", peak)
            local image <close> = camera(s.blurred, gain, offset, readout)
            local found = deconv.noise(image)
            assert.is_true(found.reliable, found.why)
            local text = ("gain %g: %g +- %g, offset %g +- %g"):format(gain, found.gain,
                found.gain_error, found.offset, found.offset_error)
            assert.is_true(away(found.gain, gain, found.gain_error + 0.08 * gain) < 2, text)
            -- Where the variance would be 0: the camera's offset, less that of the readout noise.
            local zero = offset - readout ^ 2 / gain
            assert.is_true(away(found.offset, zero, found.offset_error + 0.3 * gain) < 3, text)
            assert.is_true(found.gain_error < 0.2 * found.gain)
            assert.equal(0, found.silent)
        end
    end)

    it("takes integers, volumes and images of two axes", function()
        local s <close> = simulated("host", 200, { 9, 200, 200 })
        local counts <close> = camera(s.blurred, 3, 50, 0)
        local plane <close> = counts:view(5, mb.all, mb.all)
        local image <close> = plane:cast("u16")
        local found = deconv.noise(image)
        assert.is_true(found.reliable, found.why)
        assert.is_true(math.abs(found.gain / 3 - 1) < 0.25)
        local same = deconv.noise(mb.volumes.of_array(image))
        assert.equal(found.gain, same.gain)
    end)

    it("leaves out pixels that are saturated, equal or no numbers", function()
        local s <close> = simulated("host", 40)
        local good <close> = camera(s.blurred, 2, 10, 0)
        local function with(value, dtype)
            local copy <close> = good:copy()
            local part <close> = copy:view(mb.all, { 1, 17 }, mb.all)
            part:fill(value)
            local image <close> = copy:cast(dtype)
            return deconv.noise(image)
        end
        for _, case in ipairs { { 65535, "u16" }, { 0 / 0, "f32" }, { 7, "f32" } } do
            local found = with(table.unpack(case))
            assert.is_true(found.silent > 0)
            assert.is_true(found.reliable and math.abs(found.gain / 2 - 1) < 0.25,
                ("%g: gain %s"):format(case[1], found.gain))
        end
    end)

    it("says why it knows nothing", function()
        local flat <close> = mb.full({ 4, 40, 40 }, 7)
        assert.matches("0 tiles of 8 x 8 pixels with noise are too few, of 64",
            deconv.noise(flat).why)
        local line <close> = mb.random({ 500 })
        assert.matches("one axis", deconv.noise(line).why)
        -- The same noise everywhere: no line through it.
        local even <close> = mb.random({ 8, 64, 64 }, { low = 90, high = 110 })
        local found = deconv.noise(even)
        assert.is_false(found.reliable)
        assert.is_truthy(found.why)
        local small <close> = mb.random({ 3, 4 })
        assert.is_false(deconv.noise(small).reliable)
    end)

    it("takes no memory that a plan would not know", function()
        local image <close> = mb.random({ 4, 40, 300 })
        local function run()
            deconv.noise(image)
        end
        local planned = mb.plan.peaks(run, { mb.device "host" }).peak.host
        local scope <close> = mb.pool.scope(mb.device "host")
        local before = mb.pool.stats("host").live
        run()
        assert.equal(planned, scope:finish())
        assert.equal(before, mb.pool.stats("host").live)
    end)

    it("finds the gain of a real image", function()
        local path = files.data("dapi_001.tif")
        if not path then
            return pending "the data are not here"
        end
        local volume <close> = mb.images.open(path)
        local found = deconv.noise(volume)
        assert.is_true(found.reliable, found.why)
        assert.is_true(math.abs(found.gain - 7.6) < 0.5, found.gain)
        assert.is_true(math.abs(found.offset - 670) < 100, found.offset)
    end)
end)

describe("deconv.noise by tiles", function()
    -- The mean of either half of the pixels and the variance of the noise, from the definition.
    local function tile_at(rows, top, left)
        local sums, squares = { [0] = 0, 0 }, 0
        for y = top + 1, top + 8 do
            for x = left + 1, left + 8 do
                local d = 0
                for i = -1, 1 do
                    for j = -1, 1 do
                        local weight = (i == 0 and -2 or 1) * (j == 0 and -2 or 1)
                        d = d + weight * rows[y + 1 + i][x + 1 + j]
                    end
                end
                sums[(y + x) % 2] = sums[(y + x) % 2] + rows[y + 1][x + 1]
                squares = squares + d * d
            end
        end
        return sums[0] / 32, sums[1] / 32, squares / (36 * 64)
    end

    it("is their definition, of every type, in 2-D and 3-D, wide and narrow", function()
        for _, shape in ipairs { { 5, 30, 600 }, { 3, 26, 27 }, { 61, 299 }, { 10, 10 }, { 700, 11 } } do
            for _, dtype in ipairs { "u8", "u16", "i32", "f32", "f64" } do
                local noise <close> = mb.random(shape, { seed = 5, low = 0, high = 200 })
                local image <close> = noise:cast(dtype)
                local planes = image:to_table()
                planes = #shape == 2 and { planes } or planes
                local found = deconv.noise(image)
                assert.equal(0, found.silent)
                assert.equal(found.tiles, #found.samples)
                assert.is_true(found.tiles > 0)
                for i = 1, found.tiles, 7 do
                    local tile = found.samples[i]
                    local z, y, x = table.unpack(tile, 4, 6)
                    local expected = { tile_at(planes[z + 1], y, x) }
                    for k, value in ipairs(expected) do
                        assert.is_true(math.abs(tile[k] / value - 1) < 1e-12,
                            ("%s, tile %d, %d: %.17g, %.17g"):format(dtype, i, k, tile[k], value))
                    end
                end
            end
        end
    end)
end)

describe("deconv.noise_divergence", function()
    it("is the sum over the Poisson distribution", function()
        for _, m in ipairs { 0.003, 0.1, 1, 3.7, 15, 19.9, 20.1, 60, 99, 400 } do
            local sum = 0
            local logp = -m
            for y = 0, math.ceil(m + 20 * math.sqrt(m) + 30) do
                logp = y == 0 and -m or logp + math.log(m / y)
                local p = math.exp(logp)
                sum = sum + p * ((y > 0 and y * math.log(y / m) or 0) - y + m)
            end
            local each = deconv.noise_divergence({ gain = 1, offset = 0, samples = { { m, m } } })
            assert.is_true(math.abs(each / sum - 1) < 4e-7, ("%g: %.12g, %.12g"):format(m, each, sum))
        end
    end)

    it("is what noise leaves between an image and its true mean", function()
        for _, case in ipairs { { 0.5, 1, 0 }, { 3, 1, 0 }, { 40, 1, 0 }, { 40, 5, 0 },
            { 40, 2, 30 } } do
            local peak, gain, offset = table.unpack(case)
            local s <close> = simulated("host", peak)
            local image <close> = camera(s.blurred, gain, offset, 0)
            -- The I-divergence of the image as it is from its mean.
            local mean <close> = s.blurred * gain
            mb.binary(mean, "add", { scalar = offset, out = mean })
            -- That of the pixels that tiles cover.
            local a <close> = mean:view(mb.all, { 2, 57 }, { 2, 57 })
            local b <close> = image:view(mb.all, { 2, 57 }, { 2, 57 })
            local _, sums = mb.rl_ratio(a, b, { tile = true, metrics = true, eps = 1e-6 })
            local measured = sums:item(1) / b.elements
            sums:release()
            local found = deconv.noise(image)
            found.gain, found.offset = gain, offset -- the line alone is tested above
            local expected = deconv.noise_divergence(found)
            -- Edges within tiles and noise of their means are worth some percent.
            assert.is_true(math.abs(expected / measured - 1) < 0.12,
                ("peak %g, gain %g, offset %g: %g, measured %g"):format(peak, gain, offset,
                expected, measured))
            -- In photons it is less by the gain.
            assert.is_true(math.abs(deconv.noise_divergence(found, 0, gain) * gain / expected - 1)
                < 1e-12)
        end
    end)
end)

helper.each_device(function(device, test)
    describe("deconv.find_iterations on " .. device:match("^%a+"), function()
        -- Mean square of the second differences: noise from pixel to pixel.
        local function roughness(a, b)
            local difference <close> = a - b
            local n = difference.shape[3]
            local left <close> = difference:view(mb.all, mb.all, { 1, n - 2 })
            local middle <close> = difference:view(mb.all, mb.all, { 2, n - 1 })
            local right <close> = difference:view(mb.all, mb.all, { 3, n })
            local sides <close> = left + right
            local twice <close> = middle * 2
            local second <close> = sides - twice
            return second:norm() / math.sqrt(second.elements)
        end

        test("ends near the least error, before noise shows", function()
            for _, case in ipairs { { 3, 1.05 }, { 100, 1.25 } } do
                local peak, most = table.unpack(case)
                local s <close> = simulated(device, peak)
                local image <close> = mb.poisson(s.blurred, { seed = 2 })
                local errors, rough = {}, {}
                local sharp = deconv.richardson_lucy(image, s.psf, { iterations = 45,
                    on_iteration = function(k, _, look)
                        local now <close> = look({ 0, 0, 0 }, image.shape)
                        errors[k] = mb.metrics.rmse(now, s.truth)
                        rough[k] = roughness(now, s.truth)
                    end })
                sharp:release()
                local least = math.min(table.unpack(errors))
                for _, options in ipairs { { gain = 1 }, {} } do
                    options.iterations = 45
                    local found = deconv.find_iterations(image, s.psf, options)
                    assert.is_true(found.reliable, found.why)
                    local k = found.iterations
                    local text = ("peak %g: %d iterations, error %g of %g, rough %g of %g"):format(
                        peak, k, errors[k], least, rough[k], rough[1])
                    assert.is_true(errors[k] <= most * least, text)
                    -- Not rougher than the edges that the first iteration has not found yet.
                    assert.is_true(rough[k] <= 1.1 * rough[1], text)
                end
            end
        end)

        test("goes on the longer the more photons there are", function()
            local before = 0
            for _, peak in ipairs { 3, 30, 300 } do
                local s <close> = simulated(device, peak)
                local image <close> = mb.poisson(s.blurred, { seed = 2 })
                local found = deconv.find_iterations(image, s.psf, { gain = 1, iterations = 40 })
                assert.is_true(found.iterations > before)
                assert.equal(found.iterations == 40, found.limited)
                before = found.iterations
            end
        end)

        test("asks a judge before each iteration", function()
            local s <close> = simulated(device, 30)
            local image <close> = mb.poisson(s.blurred, { seed = 2 })
            local other <close> = mb.poisson(s.blurred, { seed = 3 })
            local mask <close> = mb.random(image.shape, { device = device, seed = 4 })
            local own = mb.device(device)
            for _, more in ipairs { {}, { boundary = "circular" }, { weights = mask },
                { background = 0.5 }, { acceleration = "biggs_andrews" } } do
                local function options(list)
                    for name, value in pairs(more) do
                        list[name] = value
                    end
                    return list
                end
                local whole, report = deconv.richardson_lucy(image, s.psf,
                    options { iterations = 5, held_out = other })
                whole:release()
                local three <close> = deconv.richardson_lucy(image, s.psf,
                    options { iterations = 3, held_out = other })
                local asked = {}
                local function run()
                    local result, found = deconv.richardson_lucy(image, s.psf, options {
                        iterations = 40, held_out = other, judge = function(done, misfit)
                            asked[#asked + 1] = { done, misfit(), misfit "image" }
                            return done < 3
                        end })
                    local _ <close> = result
                    return found, not mb.device.dry() and mb.metrics.rmse(result, three)
                end
                local planned = mb.plan.peaks(run, { own }).peak[own.id]
                assert.same({}, asked)
                local scope <close> = mb.pool.scope(own)
                local found, away_from = run()
                assert.equal(planned, scope:finish())
                assert.equal(0, away_from)
                assert.same({ 3, "judge" }, { found.iterations, found.because })
                for k = 1, 4 do
                    local metric = report.metrics[k]
                    assert.same({ k - 1, metric.held_out, metric.divergence }, asked[k])
                end
                assert.equal(4, #asked)
            end
        end)

        test("does not depend on the unit of the image", function()
            local s <close> = simulated(device, 30)
            local photons <close> = mb.poisson(s.blurred, { seed = 2 })
            local counts <close> = photons * 4
            local one = deconv.find_iterations(photons, s.psf, { gain = 1 })
            assert.equal(one.iterations,
                deconv.find_iterations(counts, s.psf, { gain = 4 }).iterations)
            -- Twice as many photons as there are would let noise pass for signal.
            assert.is_true(deconv.find_iterations(counts, s.psf, { gain = 1 }).iterations
                > 2 * one.iterations)
        end)

        test("falls back where the noise is not known, and says so", function()
            local psf <close> = mb.psf.gaussian({ 5, 5, 5 }, { 1, 1, 1 }, { device = device })
            local flat <close> = mb.full({ 4, 40, 40 }, 7, { device = device })
            local found = deconv.find_iterations(flat, psf)
            assert.same({ 10, false }, { found.iterations, found.reliable })
            assert.matches("too few", found.why)
            assert.equal(3, deconv.find_iterations(flat, psf, { iterations = 3 }).iterations)
            local dark <close> = mb.full({ 4, 10, 10 }, 0.001, { device = device })
            assert.matches("photons are too few",
                deconv.find_iterations(dark, psf, { gain = 1 }).why)
        end)

        test("takes the memory that its dry run takes", function()
            local s <close> = simulated(device, 30, { 10, 40, 36 })
            local image <close> = mb.poisson(s.blurred, { seed = 2 })
            local small <close> = image:cast("u16")
            local mask <close> = mb.ones(image.shape, { device = device })
            local own = mb.device(device)
            for _, options in ipairs { { gain = 1 }, { gain = 1, acceleration = "heavy_ball" },
                { gain = 1, acceleration = "biggs_andrews", boundary = "circular" },
                { gain = 1, total_variation = 0.002 }, { gain = 1, weights = mask }, {} } do
                for _, each in ipairs { image, small } do
                    local found
                    local function run()
                        found = deconv.find_iterations(each, s.psf, options)
                    end
                    local planned = mb.plan.peaks(run, { own }).peak[own.id]
                    local before = mb.pool.stats(own).live
                    local scope <close> = mb.pool.scope(own)
                    run()
                    assert.equal(planned, scope:finish())
                    assert.equal(before, mb.pool.stats(own).live)
                    assert.is_true(found.reliable, found.why)
                end
            end
        end)
    end)
end)

describe("deconv.find_iterations", function()
    it("makes at most as many iterations as it chooses, of few photons, too", function()
        local psf <close> = mb.psf.gaussian({ 5, 7, 7 }, { 1.2, 1.8, 1.8 })
        for _, seed in ipairs { 2, 6, 7, 10 } do
            local truth <close> = mb.phantom.spheres({ 8, 32, 32 }, { count = 3, radius = { 5, 9 },
                density = { 1, 2 }, seed = seed })
            local blurred <close> = mb.convolution(truth, psf, { boundary = "replicate" })
            mb.binary(blurred, "max", { scalar = 0, out = blurred })
            mb.binary(blurred, "add", { scalar = 0.1, out = blurred })
            mb.binary(blurred, "mul", { scalar = 0.3, out = blurred })
            local image <close> = mb.poisson(blurred, { seed = seed + 500 })
            local found = deconv.find_iterations(image, psf, { gain = 1, offset = 0 })
            assert.is_true(found.reliable)
            assert.is_true(found.tried <= found.iterations,
                ("%d: %d for %d"):format(seed, found.tried, found.iterations))
            assert.equal(found.tried, found.curve[#found.curve].iterations)
            assert.equal(found.tried - 3, #found.curve) -- after 4 iterations and on
        end
        for most = 1, 6 do
            local image <close> = mb.poisson(mb.full({ 4, 16, 16 }, 20), { seed = 3 })
            local found = deconv.find_iterations(image, psf, { gain = 1, iterations = most })
            assert.is_true(found.iterations <= most and found.tried <= most)
        end
    end)

    it("takes fewer passes over the image than two runs of five iterations", function()
        local psf <close> = mb.psf.gaussian({ 5, 5, 5 }, { 1, 1, 1 })
        local truth <close> = mb.phantom.spheres({ 12, 48, 48 }, { count = 3, radius = { 12, 16 },
            density = { 1, 2 }, seed = 2 })
        local blurred <close> = mb.convolution(truth, psf, { boundary = "replicate" })
        mb.binary(blurred, "max", { scalar = 0, out = blurred })
        mb.binary(blurred, "mul", { scalar = 0.05, out = blurred })
        local image <close> = mb.poisson(blurred, { seed = 7 })
        local NAMES <const> = { "apply_otf", "rl_ratio", "rl_update", "rl_step", "rl_split_ratio" }
        local calls, own = {}, {}
        for _, name in ipairs(NAMES) do
            calls[name], own[name] = 0, mb[name]
            mb[name] = function(...)
                calls[name] = calls[name] + 1
                return own[name](...)
            end
        end
        local ok, found = pcall(deconv.find_iterations, image, psf, { gain = 1 })
        for _, name in ipairs(NAMES) do
            mb[name] = own[name]
        end
        assert(ok, found)
        assert.equal(5, found.iterations)
        -- Five iterations, each with two convolutions, and half of one, which only looks. Looks are
        -- at the held-out photons after 4 and 5 iterations, and at the others where it matters.
        assert.is_true(calls.rl_ratio <= 5 + 2 + 2, calls.rl_ratio)
        calls.rl_ratio = nil
        assert.same({ rl_step = 0, rl_update = 5, apply_otf = 11, rl_split_ratio = 1 }, calls)
    end)

    it("has the same bits in whatever budget, and keeps to it", function()
        local image <close> = mb.random({5, 70, 90}, {seed = 3, low = 10, high = 60,
            device = "host"})
        local host, wanted = mb.device "host", nil
        local before = host:budget()
        for _, room in ipairs {1 << 30, 17 << 10, 40 << 10, 300 << 10} do
            mb.collect()
            local live = mb.pool.stats(host).live
            local _ <close> = setmetatable({}, {__close = function() host:budget(before) end})
            host:budget(live + room)
            local found = mb.deconv.noise(image) -- within the budget, or an error
            wanted = wanted or found
            assert.same(wanted, found)
            assert.is_true(#found.samples > 100)
        end
    end)

    it("measures noise by operators, not pixel by pixel", function()
        local truth <close> = mb.full({ 16, 96, 96 }, 3)
        local image <close> = mb.poisson(truth, { seed = 7 })
        local psf <close> = mb.psf.gaussian({ 5, 5, 5 }, { 1, 1, 1 })
        local tiles = 16 * 11 * 11
        -- Instructions of Lua, in hundreds.
        local function work_of(run)
            local count, hook, mask, every = 0, debug.gethook()
            debug.sethook(function() count = count + 1 end, "", 100)
            run()
            debug.sethook(hook, mask, every)
            return 100 * count / tiles
        end
        assert.equal(tiles, deconv.noise(image).tiles)
        -- A tile has 64 pixels.
        local noise = work_of(function() deconv.noise(image) end)
        assert.is_true(noise < 64 * 5, noise)
        local search = work_of(function() deconv.find_iterations(image, psf, { gain = 1 }) end)
        assert.is_true(search < 64 * 7, search)
    end)

    it("estimates no noise where the gain is known", function()
        local image <close> = mb.poisson(mb.full({ 16, 40, 40 }, 3), { seed = 7 })
        local psf <close> = mb.psf.gaussian({ 5, 5, 5 }, { 1, 1, 1 })
        assert.is_nil(deconv.find_iterations(image, psf, { gain = 1 }).noise)
        assert.is_table(deconv.find_iterations(image, psf).noise)
    end)

    it("judges a large image by a box of it", function()
        local found
        mb.plan.peaks(function()
            local image <close> = mb.zeros({ 100, 600, 500 }, { dtype = "u16" })
            local psf <close> = mb.zeros { 5, 5, 5 }
            found = deconv.find_iterations(image, psf)
        end, { mb.device "host" })
        assert.same({ 100, 150, 250 }, found.extents)
        assert.same({ 0, 225, 125 }, found.first)
    end)

    it("refuses a judge of nothing", function()
        local image <close> = mb.ones { 4, 8, 8 }
        local psf <close> = mb.ones { 3, 3, 3 }
        local text, err = helper.failure(function()
            deconv.richardson_lucy(image, psf, { judge = print })
        end)
        assert.equal("argument", err.code)
        assert.matches("judge is for held_out, which is missing", text)
    end)

    it("refuses held-out photons that are of another image", function()
        local image <close> = mb.ones { 4, 8, 8 }
        local psf <close> = mb.ones { 3, 3, 3 }
        local other <close> = mb.ones { 4, 8, 6 }
        local text, err = helper.failure(function()
            deconv.richardson_lucy(image, psf, { held_out = other })
        end)
        assert.equal("shape", err.code)
        assert.matches("held_out is 4 x 8 x 6, the image 4 x 8 x 8", text)
        text, err = helper.failure(function()
            deconv.richardson_lucy(image, psf, { held_out = image, boundary = "reflect" })
        end)
        assert.equal("argument", err.code)
        assert.matches("boundary zero or circular", text)
    end)

    it("answers nonsense with what can be done", function()
        local image <close> = mb.full({ 4, 40, 40 }, 7)
        local psf <close> = mb.ones { 3, 3, 3 }
        local flat <close> = mb.ones { 3, 3 }
        local mask <close> = mb.ones { 4, 40, 39 }
        local complex <close> = image:cast "c64"
        local nan <close> = mb.full({ 4, 40, 40 }, 0 / 0)
        for _, case in ipairs { { "x", "source is the string 'x'; give an array" },
            { {}, "source is a table; give an array" }, { complex, "source is complex" },
            { nan, "not finite", psf, { gain = 1 } },
            { image, "the PSF has 2 axes, the image 3", flat },
            { image, "weights is 4 x 40 x 39, the image 4 x 40 x 40", psf, { weights = mask } },
        } do
            local text = helper.failure(deconv.find_iterations, case[1], case[3] or psf, case[4])
            assert.matches(case[2], text, 1, true)
        end
        -- Counts of so many photons cannot be dealt, and have no noise that matters.
        local bright <close> = mb.random({ 4, 40, 40 }, { low = 1, high = 2 })
        assert.equal(5, deconv.find_iterations(bright, psf,
            { gain = 1e-12, iterations = 5 }).iterations)
        -- The image is not changed.
        local before <close> = bright:copy()
        deconv.find_iterations(bright, psf, { gain = 0.01, iterations = 2 })
        assert.equal(0, helper.difference(before, bright))
    end)
end)

-- Differences of neighbors that are not common to two estimates, as a part of those that are, after
-- a blur of one pixel: noise alone gives 1.
local function salt(one, other)
    local spread <close> = mb.psf.gaussian({ 5, 5, 5 }, { 1, 1, 1 })
    local function detail(sharp)
        local volume <close> = mb.convolution(sharp, spread, { boundary = "reflect" })
        local n = volume.shape
        local left <close> = volume:view({ 3, n[1] - 2 }, { 4, n[2] - 3 }, { 4, n[3] - 4 })
        local right <close> = volume:view({ 3, n[1] - 2 }, { 4, n[2] - 3 }, { 5, n[3] - 3 })
        return left - right
    end
    local a <close> = detail(one)
    local c <close> = detail(other)
    local apart <close> = a - c
    local common <close> = a + c
    return apart:norm() / common:norm()
end

describe("--iterations auto of a real nucleus", function()
    it("leaves no salt and pepper, for few photons and for many; 500 iterations do", function()
        local name = files.data "dapi_001.tif"
        if not name then
            pending "dapi_001.tif is not here (set MOONBEAM_DATA to its folder)"
            return
        end
        local whole <close> = mb.images.read(name, "host")
        local slab <close> = whole:view({ 15, 26 }, { 70, 113 }, { 31, 74 })
        local mean <close> = slab:cast "f32"
        mb.binary(mean, "sub", { scalar = 1000, out = mean })
        local psf <close> = mb.psf.gibson_lanni({ 15, 17, 17 }, { na = 1.45, index = 1.512,
            index_sample = 1.512, depth = 0, wavelength = 461, pixel = 130, step = 300,
            device = "host" })
        local function sharp(photons, seed, count)
            local scaled <close> = mean * (photons / mean:mean())
            local image <close> = mb.poisson(scaled, { seed = seed })
            count = count or deconv.find_iterations(image, psf, { gain = 1 }).iterations
            return deconv.richardson_lucy(image, psf, { iterations = count }), count
        end
        local before = 0
        for _, photons in ipairs { 10, 30, 300 } do
            local one <close>, count = sharp(photons, 1)
            local other <close> = sharp(photons, 2)
            assert.is_true(salt(one, other) < 0.6, ("%g photons, %d iterations: %.3f"):format(photons,
                count, salt(one, other)))
            assert.is_true(count >= before, count)
            before = count
        end
        assert.is_true(before > 8, before)
        local one <close> = sharp(30, 1, 500)
        local other <close> = sharp(30, 2, 500)
        assert.is_true(salt(one, other) > 0.75, salt(one, other))
        -- The noise of the camera as it is: some tens of iterations.
        local raw <close> = slab:copy()
        local found = deconv.find_iterations(raw, psf)
        assert.is_true(found.reliable and found.iterations >= 10, found.why)
    end)
end)
