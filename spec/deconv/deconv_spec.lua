local mb = require "moonbeam"
local helper = require "spec.helper"
local convolution, deconv = mb.convolution, mb.deconv

-- A PSF with no symmetry in any axis, sum 1.
local function crooked(shape, device)
    local random <close> = mb.random(shape, { seed = 9, low = 0.05, high = 1, device = device })
    local peak <close> = mb.psf_gaussian(shape, 1,
        { device = device, center = mb.psf.center(random, "middle"),
        normalize = false })
    local h <close> = random * peak
    return mb.psf.normalize(h)
end

-- A few bright boxes on a background.
local function object(shape, device)
    local x = mb.full(shape, 10, { device = device })
    local function box(first, last, value)
        local ranges = {}
        for i = 1, #shape do
            ranges[i] = { math.max(1, math.floor(first * shape[i])),
                math.max(1, math.floor(last * shape[i])) }
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
            local x <close> = deconv.richardson_lucy(image, psf,
                { boundary = "circular", iterations = 5 })
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
                        ("iteration %d: %g after %g"):format(k, metrics[k].divergence,
                            metrics[k - 1].divergence))
                end
                assert.is_true(metrics[15].divergence < 0.5 * metrics[1].divergence)
                if boundary == "circular" then
                    assert.near(image:sum(), metrics[1].flux, 1e-5 * image:sum())
                    assert.near(image:sum(), metrics[15].flux, 1e-5 * image:sum())
                end
            end)
        end

        test("keeps the flux weighted by the normalizer when it looks beyond the edges", function()
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
            local circular <close> = deconv.richardson_lucy(dense, psf,
                { iterations = 60, boundary = "circular" })
            local d_image, d_beyond, d_circular = distance(image, truth), distance(beyond, truth),
                distance(circular, truth)
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
            local same <close> = deconv.richardson_lucy(clean, psf,
                { iterations = 20, weights = ones })
            helper.assert_close(reference, same, 2e-3)
        end)

        test("gets further with momentum in as many iterations", function()
            local truth <close> = object({ 16, 24, 24 }, device)
            local psf <close> = mb.psf_gaussian({ 9, 9, 9 }, { 2, 1.5, 1.5 }, { device = device })
            local image <close> = convolution(truth, psf, { boundary = "circular" })
            local plain <close>, slow = deconv.richardson_lucy(image, psf,
                { boundary = "circular", iterations = 30, metrics = true })
            local fast <close>, quick = deconv.richardson_lucy(image, psf,
                { boundary = "circular", iterations = 30, metrics = true,
                    acceleration = "heavy_ball" })
            assert.is_true(fast:min() >= 0)
            assert.is_true(quick.metrics[30].divergence < 0.3 * slow.metrics[30].divergence)
            assert.is_true(distance(fast, truth) < distance(plain, truth))
        end)

        test("extrapolates as Biggs and Andrews", function()
            -- Their formulas over lists, circular, 1-D, with the prediction of extrapolate.
            local y, h, c = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8 }, { 0.2, 0.5, 0.3 }, 1
            local n, x, previous, guess = #y, {}, {}, {}
            for i = 1, n do
                x[i] = 0
                for j = 1, n do
                    x[i] = x[i] + y[j] / n
                end
                guess[i] = x[i]
            end
            local function blur(a, sign)
                local result = {}
                for i = 1, n do
                    result[i] = 0
                    for j = 1, #h do
                        result[i] = result[i] + h[j] * a[(i - 1 - sign * (j - 1 - c)) % n + 1]
                    end
                end
                return result
            end
            local gradient, lambda = {}, {}
            local count <const> = 26
            for k = 1, count do
                local ratio, blurred = {}, blur(guess, 1)
                for i = 1, n do
                    ratio[i] = y[i] / blurred[i]
                end
                local correction, product, square = blur(ratio, -1), 0, 0
                for i = 1, n do
                    previous[i], x[i] = x[i], guess[i] * correction[i]
                    local change = x[i] - guess[i]
                    product = product + change * (gradient[i] or 0)
                    square = square + (gradient[i] or 0) ^ 2
                    gradient[i] = change
                end
                lambda[k] = square > 0 and math.max(0, math.min(1, product / square)) or 0
                if k > 20 then -- the step of heavy_ball takes over
                    lambda[k] = lambda[k] * 400 / k ^ 2 + (1 - 400 / k ^ 2) * (k - 1) / (k + 2)
                end
                for i = 1, n do
                    local step = lambda[k] * (previous[i] - x[i]) -- what falls, falls by factors
                    guess[i] = step < 0 and x[i] - step or x[i] ^ 2 / (x[i] + step)
                end
            end
            assert.is_true(lambda[8] > 0.1 and lambda[count] < 1)
            local image <close> = mb.array(y, { device = device })
            local psf <close> = mb.array(h, { device = device })
            local got <close> = deconv.richardson_lucy(image, psf,
                { boundary = "circular", iterations = count, acceleration = "biggs_andrews" })
            helper.assert_close(x, got, 2e-5)
        end)

        test("gets further with Biggs and Andrews in as many iterations, at 8 bytes per voxel more",
            function()
            local truth <close> = object({ 16, 24, 24 }, device)
            local psf <close> = mb.psf_gaussian({ 9, 9, 9 }, { 2, 1.5, 1.5 }, { device = device })
            local image <close> = convolution(truth, psf, { boundary = "reflect" })
            local function run(acceleration)
                return deconv.richardson_lucy(image, psf, { iterations = 30, metrics = true,
                    acceleration = acceleration })
            end
            local plain <close>, slow = run "none"
            local fast <close>, quick = run "biggs_andrews"
            assert.is_true(fast:min() >= 0)
            assert.is_true(quick.metrics[30].divergence < 0.3 * slow.metrics[30].divergence)
            assert.is_true(distance(fast, truth) < distance(plain, truth))
            local grid, voxels = deconv.layout(image.shape, psf).grid, 1
            for _, extent in ipairs(grid) do
                voxels = voxels * extent
            end
            local function peak(acceleration)
                return (mb.pool.peak(function()
                    run(acceleration):release()
                end, device))
            end
            assert.near(8 * voxels, peak "biggs_andrews" - peak "none", 1024)
        end)

        test("calms noise with total variation, at no memory", function()
            local truth <close> = object({ 40, 44 }, device)
            local psf <close> = mb.psf_gaussian({ 9, 9 }, 1.5, { device = device })
            local blurred <close> = convolution(truth, psf, { boundary = "circular" })
            local image <close> = mb.poisson(blurred, { seed = 5 })
            local function run(weight)
                return deconv.richardson_lucy(image, psf, { boundary = "circular", iterations = 80,
                    total_variation = weight })
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
            local cached <close> = deconv.richardson_lucy(counts, psf,
                { iterations = 4, otf = otf })
            helper.assert_close(expected, cached, 0)
            local two <close> = deconv.richardson_lucy(counts, psf,
                { iterations = 2, boundary = "circular" })
            local four <close> = deconv.richardson_lucy(counts, psf,
                { iterations = 4, boundary = "circular" })
            local resumed <close> = deconv.richardson_lucy(counts, psf,
                { iterations = 2, start = two, boundary = "circular" })
            helper.assert_close(four, resumed, 1e-6)
            local stopped <close>, report = deconv.richardson_lucy(counts, psf, { iterations = 50,
                on_iteration = function(k)
                    return k < 2
                end })
            assert.equal(2, report.iterations)
            assert.same(counts.shape, stopped.shape)
            local settled <close>, late = deconv.richardson_lucy(counts, psf,
                { iterations = 500, tolerance = 0.02 })
            assert.is_true(late.iterations < 100 and late.metrics[late.iterations].change < 0.02)
            assert.same(counts.shape, settled.shape)
        end)

        test("survives images with nothing in them", function()
            local dark <close> = mb.zeros({ 8, 9 }, { device = device })
            local psf <close> = crooked({ 3, 3 }, device)
            local x <close> = deconv.richardson_lucy(dark, psf, { iterations = 3 })
            assert.equal(0, x:max())
        end)

        test("takes the memory that a dry run tells: 16 bytes per voxel, 12 with few planes",
            function()
            local function run(on, options, dtype, planes)
                local image <close> = mb.ones({ 32, 64, 64 }, { device = on, dtype = dtype
                    or "f32" })
                local psf <close> = mb.psf_gaussian({ planes or 5, 7, 7 }, 1.5, { device = on })
                deconv.richardson_lucy(image, psf, options):release()
            end
            for _, options in ipairs {
                { boundary = "circular", iterations = 2 }, { iterations = 2, metrics = true },
                { iterations = 2, boundary = "reflect" },
                { iterations = 2, acceleration = "heavy_ball" },
                { iterations = 2, acceleration = "biggs_andrews" },
                { iterations = 2, boundary = "mirror", center = "mass" },
                { iterations = 2, center = "maximum" }, { iterations = 2, total_variation = 0.01 },
            } do
                local known = mb.plan.peak(run, device, options)
                assert.equal(known.peak, (mb.pool.peak(run, device, device, options)))
            end
            if device == "host" then
                local voxels = 32 * 64 * 64
                for _, case in ipairs { { "f32", 33, 16.9 }, { "u16", 33, 14.9 }, { "f32", 7, 13.3 },
                    { "u16", 7, 11.3 } } do
                    local dtype, planes, most = table.unpack(case)
                    local peak = mb.pool.peak(run, device, device,
                        { boundary = "circular", iterations = 2 }, dtype, planes)
                    assert.is_true(peak / voxels < most, ("%s, %d planes: %g bytes per voxel")
                        :format(dtype, planes, peak / voxels))
                end
            end
        end)
    end)

    describe("gradient_consensus on " .. device:match("^%a+"), function()
        test("leaves noise alone that Richardson-Lucy amplifies, and still sharpens", function()
            local bright <close> = object({ 48, 50 }, device)
            local truth <close> = bright * 0.1
            local psf <close> = mb.psf_gaussian({ 11, 11 }, 1.8, { device = device })
            local blurred <close> = convolution(truth, psf, { boundary = "reflect" })
            local real <close> = mb.poisson(blurred, { seed = 11 })
            local image <close> = real:cast("u16")
            local rl <close> = deconv.richardson_lucy(image, psf, { iterations = 200 })
            local x <close>, report = deconv.gradient_consensus(image, psf,
                { iterations = 200, seed = 1 })
            assert.same(image.shape, x.shape)
            assert.is_true(x:min() >= 0)
            assert.is_true(report.stopped and report.iterations < 200, tostring(report.iterations))
            assert.near(image:mean(), report.mean, 1e-6)
            assert.is_true(distance(x, truth) < 0.9 * distance(image:cast("f32"), truth))
            assert.is_true(distance(x, truth) < 0.8 * distance(rl, truth),
                ("%g and %g"):format(distance(x, truth), distance(rl, truth)))
            -- The divergences of both halves were lower than the iteration before, in one of them
            -- at least, until the end.
            local metrics = report.metrics
            for k = 12, #metrics do -- of the first ten none is the last
                assert.is_true(metrics[k].first <= metrics[k - 1].first
                    or metrics[k].second <= metrics[k - 1].second)
            end
            -- A flat, noisy background stays much flatter.
            local function spread(a)
                local part <close> = a:view({ 2, 12 }, { 28, 48 })
                local level <close> = part - part:mean()
                return level:norm()
            end
            assert.is_true(spread(x) < 0.7 * spread(rl),
                ("%g and %g"):format(spread(x), spread(rl)))
            mb.collect()
        end)

        test("has a stream of its own for each seed, and makes 10 iterations at least", function()
            local truth <close> = object({ 40, 44 }, device)
            local psf <close> = mb.psf_gaussian({ 9, 9 }, 1.5, { device = device })
            local blurred <close> = convolution(truth, psf, { boundary = "reflect" })
            local dim <close> = blurred * 0.002
            local image <close> = mb.poisson(dim, { seed = 3 })
            local split, dealt = mb.rl_split_ratio, {}
            local function restore()
                rawset(mb, "rl_split_ratio", split)
            end
            local _ <close> = setmetatable({}, { __close = restore })
            for seed = 0, 5 do
                rawset(mb, "rl_split_ratio", function(a, b, y, settings)
                    assert.is_true(dealt[settings.seed] == nil, settings.seed)
                    dealt[settings.seed] = seed
                    return split(a, b, y, settings)
                end)
                local x <close>, report = deconv.gradient_consensus(image, psf,
                    { iterations = 40, seed = seed })
                assert.is_true(x:min() >= 0 and report.iterations >= 10, report.iterations)
            end
            restore()
            -- The first halves that disagree do not end it: they did after 3 to 5 iterations.
            local spheres <close> = mb.phantom.spheres({ 3, 40, 44 }, { count = 6, background = 5,
                margin = 1, radius = { 4, 9 }, device = device })
            local plane <close> = spheres:view(2, mb.all, mb.all)
            local flat <close> = plane:copy()
            local spread <close> = convolution(flat, psf, { boundary = "reflect" })
            local guard <close> = mb.psf_gaussian({ 7, 7 }, 1, { device = device })
            for noise = 1, 4 do
                local few <close> = spread * 0.03
                local real <close> = flat * 0.03
                local photons <close> = mb.poisson(few, { seed = noise })
                local x <close>, report = deconv.gradient_consensus(photons, psf, { seed = 1 })
                assert.is_true(report.stopped and report.iterations >= 10, report.iterations)
                local a <close> = convolution(x, guard, { boundary = "reflect" })
                local b <close> = convolution(photons, guard, { boundary = "reflect" })
                local c <close> = convolution(real, guard, { boundary = "reflect" })
                assert.is_true(distance(a, c) < distance(b, c), distance(a, c) / distance(b, c))
            end
            mb.collect()
        end)

        test("depends on its seed alone, in every boundary, with bad pixels", function()
            local truth <close> = object({ 10, 20, 22 }, device)
            local psf <close> = crooked({ 3, 5, 4 }, device)
            local blurred <close> = convolution(truth, psf, { boundary = "reflect" })
            local image <close> = mb.poisson(blurred, { seed = 3 })
            local weights <close> = mb.ones(image.shape, { device = device })
            local bad <close> = image:view({ 3, 3 }, { 4, 4 }, { 5, 5 })
            local out <close> = weights:view({ 3, 3 }, { 4, 4 }, { 5, 5 })
            for _, options in ipairs {
                { boundary = "zero" }, { boundary = "circular" }, { boundary = "reflect" },
                { boundary = "zero", weights = weights }, { boundary = "circular", smooth = false },
            } do
                options.iterations, options.seed, options.metrics = 6, 5, true
                local one <close>, report = deconv.gradient_consensus(image, psf, options)
                local two <close> = deconv.gradient_consensus(image, psf, options)
                helper.assert_close(one, two, 0)
                assert.is_true(distance(one, truth) < distance(image, truth), options.boundary)
                assert.is_true(report.metrics[1].flux > 0 and report.metrics[1].change > 0)
                options.seed = 6
                local other <close> = deconv.gradient_consensus(image, psf, options)
                assert.is_true(distance(one, other) > 0)
            end
            local before <close> = deconv.gradient_consensus(image, psf,
                { iterations = 4, weights = weights })
            bad:fill(30000)
            out:fill(0)
            local masked <close> = deconv.gradient_consensus(image, psf,
                { iterations = 4, weights = weights })
            assert.is_true(distance(masked, before) < 0.2 * before:norm())
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
            local same <close> = deconv.tikhonov(image, psf,
                { lambda = 1e-4, operator = "identity" })
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
                local x <close> = deconv.landweber(image, psf,
                    { boundary = boundary, iterations = 40, step = 1.8 })
                assert.is_true(x:min() >= 0)
                assert.is_true(distance(x, truth) < 0.7 * distance(image, truth), boundary)
            end
        end)

        test("landweber is its formula, takes u16 as it is, measures, ignores bad pixels",
            function()
            local truth <close> = object({ 20, 22 }, device)
            local psf <close> = crooked({ 5, 4 }, device)
            local blurred <close> = convolution(truth, psf, { boundary = "circular" })
            local counts <close> = blurred:cast("u16")
            local real <close> = counts:cast("f32")
            local x <close> = mb.full({ 20, 22 }, real:mean(), { device = device })
            local residuals = {}
            for k = 1, 5 do
                local hx <close> = convolution(x, psf, { boundary = "circular" })
                local residual <close> = real - hx
                residuals[k] = residual:norm() / math.sqrt(440)
                local gradient <close> = convolution.correlate(residual, psf,
                    { boundary = "circular" })
                mb.binary(gradient, "mul", { scalar = 1.5, out = gradient })
                mb.binary(x, "add", { b = gradient, out = x })
                mb.binary(x, "max", { scalar = 0, out = x })
            end
            local options = { boundary = "circular", iterations = 5, step = 1.5, metrics = true }
            local got <close>, report = deconv.landweber(counts, psf, options)
            helper.assert_close(x, got, 1e-5)
            local from_real <close> = deconv.landweber(real, psf, options)
            helper.assert_close(from_real, got, 0)
            assert.equal(5, report.iterations)
            for k = 1, 5 do
                assert.near(residuals[k], report.metrics[k].residual, 1e-4 * residuals[1])
            end
            local weights <close> = mb.ones({ 20, 22 }, { device = device })
            local one <close> = counts:view({ 7, 7 }, { 8, 8 })
            local out <close> = weights:view({ 7, 7 }, { 8, 8 })
            one:fill(60000)
            out:fill(0)
            local masked <close> = deconv.landweber(counts, psf,
                { boundary = "zero", iterations = 30, weights = weights })
            assert.is_true(distance(masked, truth) < 0.8 * distance(real, truth))
            local early <close>, late = deconv.landweber(real, psf,
                { iterations = 500, tolerance = 0.01 })
            assert.is_true(late.iterations < 200)
            assert.same(real.shape, early.shape)
        end)
    end)
end)

-- Every method: rows of the dry run and of the run, and bytes per voxel of the grid.
helper.each_device(function(device, test)
    describe("deconv on " .. device:match("^%a+"), function()
        for _, case in ipairs {
            { "richardson_lucy", { iterations = 3, metrics = true }, 16, 14 },
            { "richardson_lucy", { iterations = 3, acceleration = "heavy_ball" }, 20, 18 },
            { "richardson_lucy", { iterations = 3, acceleration = "biggs_andrews" }, 24, 22 },
            { "richardson_lucy", { iterations = 3, total_variation = 0.01 }, 16, 14 },
            { "gradient_consensus", { iterations = 3 }, 24, 22 },
            { "landweber", { iterations = 3, metrics = true }, 16, 14 },
            { "wiener", {}, 12, 12 },
            { "tikhonov", {}, 12, 12 },
        } do
            local method, options, f32, u16 = table.unpack(case)
            test(("%s (%s) takes the steps of its dry run, %d bytes per voxel"):format(method,
                options.acceleration or options.total_variation and "tv" or "plain", f32),
                    function()
                for _, center in ipairs { "middle", "maximum", "mass" } do
                    for _, boundary in ipairs { "zero", "circular", "reflect" } do
                        local function run()
                            local image <close> = mb.ones({ 7, 12, 13 },
                                { device = device, dtype = "u16" })
                            local psf <close> = crooked({ 3, 4, 5 }, device)
                            local copy = { boundary = boundary, center = center }
                            for key, value in pairs(options) do
                                copy[key] = value
                            end
                            deconv[method](image, psf, copy):release()
                        end
                        assert.same({}, mb.dry_run(run):diff((mb.ledger(run))), boundary .. ", "
                            .. center)
                    end
                end
                local function peak(dtype)
                    return mb.pool.peak(function()
                        local image <close> = mb.ones({ 32, 64, 64 },
                            { device = device, dtype = dtype })
                        local psf <close> = mb.psf_gaussian({ 3, 3, 3 }, 1, { device = device })
                        local copy = { boundary = "circular" }
                        for key, value in pairs(options) do
                            copy[key] = value
                        end
                        deconv[method](image, psf, copy):release()
                    end, device) / (32 * 64 * 64)
                end
                if device == "host" then
                    -- Padded rows and partial sums: 1/32 and a little of the arrays on the grid.
                    assert.is_true(peak "f32" < 1.05 * f32, tostring(peak "f32"))
                    assert.is_true(peak "u16" < 1.05 * u16, tostring(peak "u16"))
                end
            end)
        end
    end)
end)

describe("deconv", function()
    it("explains wrong options", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        local line <close> = mb.ones { 3 }
        local dark <close> = mb.zeros { 3, 3 }
        local rl = deconv.richardson_lucy
        assert.matches("did you mean 'iterations'",
            (helper.failure(rl, image, psf, { iteration = 3 })))
        assert.matches("axis", (helper.failure(rl, image, line)))
        assert.matches("positive", (helper.failure(rl, image, dark)))
        assert.matches("boundary", (helper.failure(rl, image, psf, { boundary = "odd" })))
        assert.matches("heavy_ball", (helper.failure(rl, image, psf, { acceleration = "x" })))
        assert.matches("lambda", (helper.failure(deconv.wiener, image, psf, { lambda = -1 })))
        assert.matches("biggs_andrews",
            (helper.failure(rl, image, psf, { acceleration = "biggs" })))
        assert.matches("did you mean 'smooth'",
            (helper.failure(deconv.gradient_consensus, image, psf, { smoth = true })))
        local weights <close> = mb.ones { 8, 8 }
        assert.matches("zero or circular", (helper.failure(deconv.gradient_consensus, image, psf,
            { weights = weights, boundary = "reflect" })))
        assert.matches("step", (helper.failure(deconv.landweber, image, psf, { step = 3 })))
    end)

    it("does not depend on the FFT grid, beyond which nothing is seen", function()
        local flat <close> = mb.full({ 9, 14, 15 }, 30)
        local corner <close> = flat:view({ 1, 3 }, { 1, 5 }, { 1, 4 })
        corner:fill(200)
        local image <close> = mb.poisson(flat, { seed = 4 })
        local psf <close> = mb.psf_gaussian({ 4, 5, 4 }, 1)
        for _, options in ipairs {
            { acceleration = "biggs_andrews", iterations = 4 },
            { total_variation = 0.01, iterations = 4 },
            { total_variation = 0.01, acceleration = "biggs_andrews", iterations = 4,
                start = "image" },
        } do
            options.metrics, options.size = true, nil
            local expected <close>, report = deconv.richardson_lucy(image, psf, options)
            for _, size in ipairs { { 12, 18, 18 }, { 15, 20, 24 }, { 20, 30, 32 } } do
                options.size = size
                local got <close>, own = deconv.richardson_lucy(image, psf, options)
                helper.assert_close(expected, got, 1e-5)
                for k, metric in ipairs(report.metrics) do
                    assert.near(metric.change, own.metrics[k].change, 1e-3 * metric.change)
                end
            end
        end
    end)

    it("leaves nothing behind when memory runs out in any allocation", function()
        local image <close> = mb.ones { 8, 8 }
        local psf <close> = mb.ones { 3, 3 }
        mb.collect()
        local before = mb.pool.stats().live
        for _, case in ipairs {
            { "richardson_lucy", { iterations = 2, metrics = true,
                acceleration = "biggs_andrews" } },
            { "gradient_consensus", { iterations = 2, boundary = "reflect" } },
            { "landweber", { iterations = 2, metrics = true } },
            { "wiener", {} },
        } do
            local method, options = deconv[case[1]], case[2]
            local start = mb.pool.stats().allocs
            method(image, psf, options):release()
            for n = 1, mb.pool.stats().allocs - start do
                mb.debug.fail_nth(n)
                local ok, err = pcall(method, image, psf, options)
                mb.debug.fail_nth(0)
                assert.is_false(ok)
                assert.equal("memory", err.code)
                assert.equal(before, mb.pool.stats().live)
            end
        end
    end)
end)
