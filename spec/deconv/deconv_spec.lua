local mb = require "moonbeam"
local helper = require "spec.helper"
local convolution, deconv = mb.convolution, mb.deconv

-- A PSF with no symmetry in any axis, sum 1.
local function crooked(shape, device)
    local random <close> = mb.random(shape, { seed = 9, low = 0.05, high = 1, device = device })
    local peak <close> = mb.psf_gaussian(shape, 1, { device = device, center = mb.psf.center(random, "middle"),
        normalise = false })
    local h <close> = random * peak
    return mb.psf.normalise(h)
end

-- A few bright boxes on a background.
local function object(shape, device)
    local x = mb.full(shape, 10, { device = device })
    local function box(first, last, value)
        local ranges = {}
        for i = 1, #shape do
            ranges[i] = { math.max(1, math.floor(first * shape[i])), math.max(1, math.floor(last * shape[i])) }
        end
        local part <close> = x:view(table.unpack(ranges))
        part:fill(value)
    end
    box(0.3, 0.45, 200)
    box(0.6, 0.65, 500)
    return x
end

local function distance(a, b)
    local difference <close> = a - b
    return difference:norm()
end

helper.each_device(function(device, test)
    describe("richardson_lucy on " .. device:match("^%a+"), function()
        -- By the formula, in Lua over lists, circular, 1-D.
        local function by_formula(y, h, c, iterations)
            local n, x, mean = #y, {}, 0
            for _, value in ipairs(y) do
                mean = mean + value / #y
            end
            for i = 1, n do
                x[i] = mean
            end
            for _ = 1, iterations do
                local ratio, next_x = {}, {}
                for i = 1, n do
                    local sum = 0
                    for j = 1, #h do
                        sum = sum + h[j] * x[(i - 1 - (j - 1) + c) % n + 1]
                    end
                    ratio[i] = y[i] / sum
                end
                for i = 1, n do
                    local sum = 0
                    for j = 1, #h do
                        sum = sum + h[j] * ratio[(i - 1 + (j - 1) - c) % n + 1]
                    end
                    next_x[i] = x[i] * sum
                end
                x = next_x
            end
            return x
        end

        test("is the formula, with the adjoint of an asymmetric even PSF", function()
            local y = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5 }
            local h = { 0.1, 0.5, 0.15, 0.25 }
            local image <close> = mb.array(y, { device = device })
            local psf <close> = mb.array(h, { device = device })
            local x <close> = deconv.richardson_lucy(image, psf, { boundary = "circular", iterations = 5 })
            helper.assert_close(by_formula(y, h, 1, 5), x, 1e-5)
            local shifted <close> = deconv.richardson_lucy(image, psf,
                { boundary = "circular", iterations = 5, center = { 3 } })
            helper.assert_close(by_formula(y, h, 3, 5), shifted, 1e-5)
        end)

        for _, boundary in ipairs { "circular", "zero", "reflect" } do
            test("keeps flux, stays positive, and its I-divergence falls: " .. boundary, function()
                local truth <close> = object({ 12, 20, 22 }, device)
                local psf <close> = crooked({ 4, 5, 6 }, device)
                local blurred <close> = convolution(truth, psf, { boundary = "reflect" })
                local image <close> = mb.poisson(blurred, { seed = 3 })
                local x <close>, report = deconv.richardson_lucy(image, psf,
                    { boundary = boundary, iterations = 15, metrics = true })
                assert.same(image.shape, x.shape)
                assert.is_true(x:min() >= 0)
                local metrics = report.metrics
                assert.equal(15, #metrics)
                for k = 2, 15 do
                    assert.is_true(metrics[k].divergence <= metrics[k - 1].divergence * (1 + 1e-6),
                        ("iteration %d: %g after %g"):format(k, metrics[k].divergence, metrics[k - 1].divergence))
                end
                assert.is_true(metrics[15].divergence < 0.5 * metrics[1].divergence)
                if boundary == "circular" then
                    assert.near(image:sum(), metrics[1].flux, 1e-5 * image:sum())
                    assert.near(image:sum(), metrics[15].flux, 1e-5 * image:sum())
                end
            end)
        end

        test("keeps the flux weighted by the normaliser when it looks beyond the edges", function()
            local truth <close> = object({ 24, 22 }, device)
            local psf <close> = crooked({ 5, 6 }, device)
            local image <close> = convolution(truth, psf)
            -- H x sums, over the window, to the image's flux: from the blurred side.
            local fluxes = {}
            deconv.richardson_lucy(image, psf, { iterations = 6, metrics = true, floor = 1e-6,
                on_iteration = function(_, metric)
                    fluxes[#fluxes + 1] = metric.blurred
                end }):release()
            for k = 2, 6 do
                assert.near(image:sum(), fluxes[k], 2e-5 * image:sum())
            end
        end)

        test("undoes blur, also at the edges that a circular model spoils", function()
            local whole <close> = mb.full({ 60, 60 }, 5, { device = device })
            for _, at in ipairs { { 22, 22 }, { 30, 41 }, { 40, 14 } } do
                local spot <close> = whole:view({ at[1], at[1] + 1 }, { at[2], at[2] + 1 })
                spot:fill(400)
            end
            local psf <close> = crooked({ 7, 7 }, device)
            local blurred <close> = convolution(whole, psf, { boundary = "reflect" })
            -- The window cuts through the emitters at (22, 22) and (40, 14).
            local image <close> = blurred:view({ 23, 50 }, { 14, 41 })
            local dense <close> = image:copy()
            local truth <close> = whole:view({ 23, 50 }, { 14, 41 })
            local beyond <close> = deconv.richardson_lucy(dense, psf, { iterations = 60 })
            local circular <close> = deconv.richardson_lucy(dense, psf, { iterations = 60, boundary = "circular" })
            local d_image, d_beyond, d_circular = distance(image, truth), distance(beyond, truth), distance(circular, truth)
            assert.is_true(d_beyond < 0.6 * d_image, ("%g of %g"):format(d_beyond, d_image))
            assert.is_true(d_beyond < 0.9 * d_circular, ("%g and %g"):format(d_beyond, d_circular))
        end)

        test("ignores bad pixels that the weights name", function()
            local truth <close> = object({ 30, 32 }, device)
            local psf <close> = crooked({ 5, 5 }, device)
            local clean <close> = convolution(truth, psf, { boundary = "reflect" })
            local image <close> = clean:copy()
            local weights <close> = mb.ones({ 30, 32 }, { device = device })
            for _, at in ipairs { { 10, 12 }, { 20, 5 }, { 15, 25 } } do
                local hot <close> = image:view({ at[1], at[1] }, { at[2], at[2] })
                hot:fill(5000)
                local weight <close> = weights:view({ at[1], at[1] }, { at[2], at[2] })
                weight:fill(0)
            end
            local options = { iterations = 20, weights = weights }
            local masked <close> = deconv.richardson_lucy(image, psf, options)
            local reference <close> = deconv.richardson_lucy(clean, psf, { iterations = 20 })
            local spoilt <close> = deconv.richardson_lucy(image, psf, { iterations = 20 })
            assert.is_true(distance(masked, reference) < 0.05 * distance(spoilt, reference))
            -- Weights of one are no weights.
            local ones <close> = mb.ones({ 30, 32 }, { device = device })
            local same <close> = deconv.richardson_lucy(clean, psf, { iterations = 20, weights = ones })
            helper.assert_close(reference, same, 2e-3)
        end)

        test("gets further with momentum in as many iterations", function()
            local truth <close> = object({ 16, 24, 24 }, device)
            local psf <close> = mb.psf_gaussian({ 9, 9, 9 }, { 2, 1.5, 1.5 }, { device = device })
            local image <close> = convolution(truth, psf, { boundary = "circular" })
            local plain <close>, slow = deconv.richardson_lucy(image, psf,
                { boundary = "circular", iterations = 30, metrics = true })
            local fast <close>, quick = deconv.richardson_lucy(image, psf,
                { boundary = "circular", iterations = 30, metrics = true, acceleration = "heavy_ball" })
            assert.is_true(fast:min() >= 0)
            assert.is_true(quick.metrics[30].divergence < 0.3 * slow.metrics[30].divergence)
            assert.is_true(distance(fast, truth) < distance(plain, truth))
        end)

        test("calms noise with total variation, at no memory", function()
            local truth <close> = object({ 40, 44 }, device)
            local psf <close> = mb.psf_gaussian({ 9, 9 }, 1.5, { device = device })
            local blurred <close> = convolution(truth, psf, { boundary = "circular" })
            local image <close> = mb.poisson(blurred, { seed = 5 })
            local function run(weight)
                return deconv.richardson_lucy(image, psf, { boundary = "circular", iterations = 80, total_variation = weight })
            end
            local plain <close> = run(nil)
            local calm <close> = run(0.02)
            local same <close> = run(0)
            helper.assert_close(plain, same, 0)
            assert.is_true(distance(calm, truth) < 0.9 * distance(plain, truth),
                ("%g and %g"):format(distance(calm, truth), distance(plain, truth)))
            local function peak(weight)
                return (mb.pool.peak(function()
                    run(weight):release()
                end, device))
            end
            assert.equal(peak(nil), peak(0.02))
        end)

        test("takes u16 as it is, a transfer function, a start; stops when told", function()
            local truth <close> = object({ 20, 22 }, device)
            local psf <close> = crooked({ 5, 4 }, device)
            local blurred <close> = convolution(truth, psf, { boundary = "reflect" })
            local counts <close> = blurred:cast("u16")
            local real <close> = counts:cast("f32")
            local expected <close> = deconv.richardson_lucy(real, psf, { iterations = 4 })
            local from_counts <close> = deconv.richardson_lucy(counts, psf, { iterations = 4 })
            helper.assert_close(expected, from_counts, 0)
            local otf <close> = deconv.transfer(psf, counts.shape)
            local cached <close> = deconv.richardson_lucy(counts, psf, { iterations = 4, otf = otf })
            helper.assert_close(expected, cached, 0)
            local two <close> = deconv.richardson_lucy(counts, psf, { iterations = 2, boundary = "circular" })
            local four <close> = deconv.richardson_lucy(counts, psf, { iterations = 4, boundary = "circular" })
            local resumed <close> = deconv.richardson_lucy(counts, psf,
                { iterations = 2, start = two, boundary = "circular" })
            helper.assert_close(four, resumed, 1e-6)
            local stopped <close>, report = deconv.richardson_lucy(counts, psf, { iterations = 50,
                on_iteration = function(k)
                    return k < 2
                end })
            assert.equal(2, report.iterations)
            assert.same(counts.shape, stopped.shape)
            local settled <close>, late = deconv.richardson_lucy(counts, psf, { iterations = 500, tolerance = 0.02 })
            assert.is_true(late.iterations < 100 and late.metrics[late.iterations].change < 0.02)
            assert.same(counts.shape, settled.shape)
        end)

        test("survives images with nothing in them", function()
            local dark <close> = mb.zeros({ 8, 9 }, { device = device })
            local psf <close> = crooked({ 3, 3 }, device)
            local x <close> = deconv.richardson_lucy(dark, psf, { iterations = 3 })
            assert.equal(0, x:max())
        end)

        test("takes the memory that a dry run tells: 16 bytes per voxel", function()
            local function run(on, options, dtype)
                local image <close> = mb.ones({ 32, 64, 64 }, { device = on, dtype = dtype or "f32" })
                local psf <close> = mb.psf_gaussian({ 5, 7, 7 }, 1.5, { device = on })
                deconv.richardson_lucy(image, psf, options):release()
            end
            for _, options in ipairs {
                { boundary = "circular", iterations = 2 }, { iterations = 2, metrics = true },
                { iterations = 2, boundary = "reflect" }, { iterations = 2, acceleration = "heavy_ball" },
            } do
                local known = mb.plan.peak(run, device, options)
                assert.equal(known.peak, (mb.pool.peak(run, device, device, options)))
            end
            if device == "host" then
                local voxels = 32 * 64 * 64
                local f32 = mb.pool.peak(run, device, device, { boundary = "circular", iterations = 2 })
                local u16 = mb.pool.peak(run, device, device, { boundary = "circular", iterations = 2 }, "u16")
                assert.is_true(f32 / voxels < 16.6, ("%g bytes per voxel"):format(f32 / voxels))
                assert.is_true(u16 / voxels < 14.6, ("%g bytes per voxel"):format(u16 / voxels))
            end
        end)
    end)

    describe("linear methods on " .. device:match("^%a+"), function()
        test("wiener and tikhonov invert what they can", function()
            local truth <close> = object({ 40, 44 }, device)
            local psf <close> = mb.psf_gaussian({ 9, 9 }, 1.2, { device = device })
            local image <close> = convolution(truth, psf, { boundary = "reflect" })
            local before = distance(image, truth)
            local wiener <close> = deconv.wiener(image, psf, { lambda = 1e-4 })
            local tikhonov <close> = deconv.tikhonov(image, psf, { lambda = 1e-5 })
            assert.is_true(distance(wiener, truth) < 0.7 * before)
            assert.is_true(distance(tikhonov, truth) < 0.7 * before)
            assert.near(image:mean(), wiener:mean(), 0.01 * image:mean())
            -- A large lambda leaves little; the identity is Wiener's filter.
            local same <close> = deconv.tikhonov(image, psf, { lambda = 1e-4, operator = "identity" })
            helper.assert_close(wiener, same, 0)
            local shift <close> = mb.array({ { 0, 0, 0 }, { 0, 0, 1 } }, { device = device })
            local moved <close> = convolution(truth, shift, { boundary = "circular" })
            local back <close> = deconv.wiener(moved, shift, { boundary = "circular", lambda = 0 })
            helper.assert_close(truth, back, 1e-5)
        end)

        test("landweber sharpens and stays positive", function()
            local truth <close> = object({ 26, 28 }, device)
            local psf <close> = crooked({ 5, 6 }, device)
            local image <close> = convolution(truth, psf, { boundary = "reflect" })
            for _, boundary in ipairs { "zero", "circular", "reflect" } do
                local x <close> = deconv.landweber(image, psf, { boundary = boundary, iterations = 40, step = 1.8 })
                assert.is_true(x:min() >= 0)
                assert.is_true(distance(x, truth) < 0.7 * distance(image, truth), boundary)
            end
        end)
    end)
end)

describe("deconv", function()
    it("explains wrong options", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        local line <close> = mb.ones { 3 }
        local dark <close> = mb.zeros { 3, 3 }
        local rl = deconv.richardson_lucy
        assert.matches("did you mean 'iterations'", (helper.failure(rl, image, psf, { iteration = 3 })))
        assert.matches("axes", (helper.failure(rl, image, line)))
        assert.matches("positive", (helper.failure(rl, image, dark)))
        assert.matches("boundary", (helper.failure(rl, image, psf, { boundary = "odd" })))
        assert.matches("heavy_ball", (helper.failure(rl, image, psf, { acceleration = "x" })))
        assert.matches("lambda", (helper.failure(deconv.wiener, image, psf, { lambda = -1 })))
        assert.matches("step", (helper.failure(deconv.landweber, image, psf, { step = 3 })))
    end)

    it("leaves nothing behind when memory runs out in any allocation", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        mb.collect()
        local before = mb.pool.stats().live
        local options = { iterations = 2, metrics = true, acceleration = "heavy_ball" }
        local start = mb.pool.stats().allocs
        deconv.richardson_lucy(image, psf, options):release()
        for n = 1, mb.pool.stats().allocs - start do
            mb.pool.fail_nth(n)
            local ok, err = pcall(deconv.richardson_lucy, image, psf, options)
            mb.pool.fail_nth(0)
            assert.is_false(ok)
            assert.equal("memory", err.code)
            assert.equal(before, mb.pool.stats().live)
        end
    end)
end)
