-- Mistakes that other programs made: each of these is one, and would be seen here.
local mb = require "moonbeam"
local helper = require "spec.helper"
local deconv = mb.deconv

-- A PSF that is a shift by `by` from its middle, with a little blur: no symmetry about the middle
-- in any axis.
local function shifted(kernel, by, device)
    local at = {}
    for i, k in ipairs(kernel) do
        at[i] = (k - 1) // 2 + by[i]
    end
    return mb.psf_gaussian(kernel, 0.6, { center = at, device = device })
end

local function centroid(a)
    return mb.psf.center(a, "mass")
end

helper.each_device(function(device, test)
    local function point(shape, at, value)
        local image = mb.zeros(shape, { device = device })
        local ranges = {}
        for i, n in ipairs(at) do
            ranges[i] = { n, n }
        end
        local voxel <close> = image:view(table.unpack(ranges))
        voxel:fill(value or 1000)
        return image
    end

    describe("traps on " .. device:match("^%a+"), function()
        -- The back-projection multiplied by the transfer function instead of its conjugate; or
        -- mirrored the PSF along the first two axes only. Both are right for symmetric PSFs alone.
        for axis = 1, 3 do
            test(("the adjoint mirrors every axis of the PSF: %d"):format(axis), function()
                local kernel, by = { 9, 9, 9 }, { 0, 0, 0 }
                by[axis] = 2
                local psf <close> = shifted(kernel, by, device)
                local truth <close> = point({ 13, 14, 15 }, { 7, 7, 8 })
                for _, boundary in ipairs { "zero", "circular" } do
                    local image <close> = mb.convolution(truth, psf, { boundary = boundary })
                    local seen = centroid(image)
                    assert.near(6 + by[1], seen[1], 0.05)
                    for method, options in pairs { richardson_lucy = { iterations = 20 },
                        landweber = { iterations = 20 },
                        gradient_consensus = { iterations = 8 } } do
                        options.boundary = boundary
                        local x <close> = deconv[method](image, psf, options)
                        local found = mb.psf.center(x, "maximum")
                        assert.same({ 6, 6, 7 }, { table.unpack(found) },
                            ("%s, %s"):format(method, boundary))
                    end
                    for _, method in ipairs { "wiener", "tikhonov" } do
                        local x <close> = deconv[method](image, psf,
                            { boundary = boundary == "zero" and "reflect" or boundary })
                        assert.same({ 6, 6, 7 }, { table.unpack(mb.psf.center(x, "maximum")) },
                            method)
                    end
                end
            end)
        end

        -- Convolution and deconvolution centered even PSFs differently, by a voxel.
        test("an even PSF blurs and sharpens about the same voxel", function()
            for _, center in ipairs { "middle", "fft", "maximum" } do
                local made <close> = mb.psf_gaussian({ 6, 8 }, 1.2,
                    { center = { 2.4, 3.7 }, device = device })
                local moved <close>, whole = mb.psf.on_voxel(made, mb.psf.center(made, "maximum"))
                local psf <close> = center == "maximum" and moved:copy() or made:copy()
                center = center == "maximum" and whole or center
                local truth <close> = point({ 21, 22 }, { 11, 12 })
                local image <close> = mb.convolution(truth, psf,
                    { boundary = "circular", center = center })
                local x <close> = deconv.richardson_lucy(image, psf,
                    { boundary = "circular", center = center, iterations = 50 })
                local at = centroid(x)
                -- The centroid of a top that its samples cut in steps is not quite the center.
                local near = center == whole and 0.05 or 0.02
                assert.near(10, at[1], near)
                assert.near(11, at[2], near)
                assert.is_true(x:max() > 5 * image:max())
            end
        end)

        -- Grids without room for the PSF: what leaves at one edge comes in at the other.
        test("deconvolution does not wrap around, and circular does", function()
            local psf <close> = mb.psf_gaussian({ 9, 9 }, 1.5, { device = device })
            local truth <close> = mb.full({ 30, 32 }, 10, { device = device })
            local bright <close> = truth:view(mb.all, { 1, 5 })
            bright:fill(1000) -- at the left edge; beyond the right one there is none
            local image <close> = mb.convolution(truth, psf, { boundary = "reflect" })
            local function error_at_right(boundary)
                local x <close> = deconv.richardson_lucy(image, psf,
                    { boundary = boundary, iterations = 30 })
                local right <close> = x:view({ 8, 22 }, { 29, 32 })
                local difference <close> = right - 10
                local size <close> = mb.unary(difference, "abs")
                return size:max()
            end
            assert.is_true(error_at_right "zero" < 1, tostring(error_at_right "zero"))
            assert.is_true(error_at_right "circular" > 5, tostring(error_at_right "circular"))
        end)

        -- A helper that returned the same buffer at every call: two results held at once were one.
        test("results have memory of their own", function()
            local psf <close> = mb.psf_gaussian({ 5, 5 }, 1, { device = device })
            local a <close> = point({ 16, 18 }, { 5, 6 })
            local b <close> = point({ 16, 18 }, { 12, 13 })
            for method, options in pairs { richardson_lucy = { iterations = 3 },
                gradient_consensus = { iterations = 2 },
                landweber = { iterations = 3 }, wiener = {}, tikhonov = {} } do
                local first <close> = deconv[method](a, psf, options)
                local before = first:to_table()
                local second <close> = deconv[method](b, psf, options)
                assert.same(before, first:to_table(), method)
                assert.same({ 11, 12 }, { table.unpack(mb.psf.center(second, "maximum")) }, method)
            end
        end)

        -- Allocation trouble went to the screen and a dark or garbled image came back.
        test("too little memory is an error, and odd extents are no trouble", function()
            local psf <close> = mb.psf_gaussian({ 3, 4, 5 }, 1, { device = device })
            local image <close> = point({ 9, 11, 13 }, { 5, 6, 7 })
            local device_handle = mb.device(device)
            local budget = device_handle:budget()
            local function run()
                deconv.richardson_lucy(image, psf, { iterations = 2 }):release()
            end
            mb.collect()
            local live = mb.pool.stats(device).live
            local need = mb.pool.peak(run, device)
            device_handle:budget(live + need - 512)
            local ok, err = pcall(run)
            local after = mb.pool.stats(device).live
            device_handle:budget(live + need)
            local enough, trouble = pcall(run)
            device_handle:budget(budget)
            assert.is_false(ok)
            assert.equal("budget", err.code)
            assert.equal(live, after)
            assert.is_true(enough, tostring(trouble))
            local x <close> = deconv.richardson_lucy(image, psf, { iterations = 20 })
            assert.same({ 9, 11, 13 }, x.shape)
            assert.same({ 4, 5, 6 }, { table.unpack(mb.psf.center(x, "maximum")) })
        end)

        -- A PSF larger than the image raised an error, or needed the image padded by hand.
        test("the PSF may be larger than the image", function()
            local psf <close> = mb.psf_gaussian({ 9, 15, 13 }, { 1, 1.2, 1.2 }, { device = device })
            local truth <close> = point({ 5, 8, 9 }, { 3, 4, 5 })
            local image <close> = mb.convolution(truth, psf, { boundary = "circular" })
            for _, boundary in ipairs { "zero", "circular", "reflect" } do
                local x <close> = deconv.richardson_lucy(image, psf,
                    { iterations = 30, boundary = boundary })
                assert.same({ 5, 8, 9 }, x.shape)
                assert.same({ 2, 3, 4 }, { table.unpack(mb.psf.center(x, "maximum")) }, boundary)
                assert.is_true(x:max() > 3 * image:max(), boundary)
            end
        end)

        -- Transfer function or plans were made inside the loop: what did not fit failed in the
        -- middle of the work.
        test("the first iteration reaches the peak of all", function()
            local psf <close> = mb.psf_gaussian({ 3, 5, 5 }, 1, { device = device })
            local image <close> = mb.ones({ 12, 20, 22 }, { device = device })
            for _, case in ipairs {
                { "richardson_lucy", {} }, { "richardson_lucy", { acceleration = "heavy_ball" } },
                { "richardson_lucy", { acceleration = "biggs_andrews" } },
                { "richardson_lucy", { metrics = true } },
                { "gradient_consensus", {} }, { "landweber", {} },
            } do
                local method, options = table.unpack(case)
                local function peak(iterations)
                    options.iterations = iterations
                    return mb.plan.peak(function(dry)
                        local y <close> = mb.empty(image.shape, { device = dry })
                        local h <close> = mb.empty(psf.shape, { device = dry })
                        deconv[method](y, h, options):release()
                    end, device).peak
                end
                assert.equal(peak(1), peak(7), method)
                local plans
                options.iterations = 3
                options.on_iteration = function()
                    local count = mb.fft.plans(device).count
                    assert.equal(plans or count, count, method)
                    plans = count
                end
                deconv[method](image, psf, options):release()
                options.on_iteration = nil
            end
        end)

        -- 0 / 0 in dark regions became NaN and spread over the image.
        test("dark regions stay dark, not NaN", function()
            local psf <close> = mb.psf_gaussian({ 5, 5 }, 1, { device = device })
            local image <close> = point({ 30, 32 }, { 5, 5 })
            for method, options in pairs { richardson_lucy = { iterations = 40 },
                gradient_consensus = { iterations = 10 } } do
                local x <close> = deconv[method](image, psf, options)
                local sum = x:sum()
                assert.is_true(sum == sum and sum < math.huge, method)
                local dark <close> = x:view({ 15, 30 }, { 15, 32 })
                assert.is_true(dark:max() < 1e-3, method)
            end
        end)
    end)
end)
