local mb = require "moonbeam"
local helper = require "spec.helper"
local convolution, psf = mb.convolution, mb.psf

-- Everything naive works on flat lists with three extents, leading ones 1.
local function three(shape)
    local n = { 1, 1, 1 }
    for i, extent in ipairs(shape) do
        n[3 - #shape + i] = extent
    end
    return n
end

-- Element i (0-based, any integer) of an axis of n under a boundary, or nil.
local function source(boundary, i, n)
    if i >= 0 and i < n then
        return i
    elseif boundary == "circular" then
        return i % n
    elseif boundary == "replicate" then
        return i < 0 and 0 or n - 1
    elseif boundary == "reflect" then
        local r = i % (2 * n)
        return r < n and r or 2 * n - 1 - r
    elseif boundary == "mirror" then
        local period = math.max(1, 2 * (n - 1))
        local r = i % period
        return r < n and r or period - r
    end
end

-- result[m] = sum over j of h[j] a[m + first - sign * (j - c)], by definition.
local function naive(a, shape, h, kernel, center, first, extents, boundary, sign)
    local n, k, c, f, e = three(shape), three(kernel), three(center), three(first), three(extents)
    for i = 1, 3 - #shape do
        c[i], f[i] = 0, 0
    end
    local result = {}
    for z = 0, e[1] - 1 do
        for y = 0, e[2] - 1 do
            for x = 0, e[3] - 1 do
                local sum = 0
                for jz = 0, k[1] - 1 do
                    local sz = source(boundary, z + f[1] - sign * (jz - c[1]), n[1])
                    for jy = 0, sz and k[2] - 1 or -1 do
                        local sy = source(boundary, y + f[2] - sign * (jy - c[2]), n[2])
                        for jx = 0, sy and k[3] - 1 or -1 do
                            local sx = source(boundary, x + f[3] - sign * (jx - c[3]), n[3])
                            if sx then
                                sum = sum + h[(jz * k[2] + jy) * k[3] + jx
                                    + 1] * a[(sz * n[2] + sy) * n[3] + sx + 1]
                            end
                        end
                    end
                end
                result[#result + 1] = sum
            end
        end
    end
    return result
end

local function middle(kernel)
    local center = {}
    for i, k in ipairs(kernel) do
        center[i] = (k - 1) // 2
    end
    return center
end

-- Where a mode's result starts, in elements of the image, and its extents: scipy.signal's.
local function window(mode, shape, kernel, center, correlate)
    local first, extents = {}, {}
    for i, n in ipairs(shape) do
        local k, c = kernel[i], center[i]
        local below, above = k - 1 - c, c
        if correlate then
            below, above = above, below
        end
        first[i] = mode == "full" and -above or mode == "valid" and below or 0
        extents[i] = mode == "full" and n + k - 1 or mode == "valid" and n - k + 1 or n
    end
    return first, extents
end

-- Values without symmetry of any kind.
local function image_of(shape)
    return mb.random(shape, { seed = 1, low = -1, high = 2 })
end

local function psf_of(kernel)
    return mb.random(kernel, { seed = 51 })
end

local function check(shape, kernel, options, device)
    local correlate = options.correlate
    local center = options.center or middle(kernel)
    local host_a <close> = image_of(shape)
    local host_h <close> = psf_of(kernel)
    local a <close> = host_a:to(device)
    local h <close> = host_h:to(device)
    local first, extents = window(options.mode or "same", shape, kernel, center, correlate)
    local expected = naive(helper.flatten(host_a:to_table()), shape,
        helper.flatten(host_h:to_table()), kernel, center,
        first, extents, options.boundary or "zero", correlate and -1 or 1)
    local result <close> = convolution(a, h, options)
    assert.same(extents, result.shape)
    assert.is_true(result.contiguous)
    helper.assert_close(expected, helper.flatten(result:to_table()), 1e-5,
        ("%s * %s"):format(table.concat(shape, "x"), table.concat(kernel, "x")))
end

helper.each_device(function(device, test)
    local where = " on " .. device:match("^%a+")
    describe("convolution" .. where, function()
        for _, mode in ipairs { "same", "full", "valid" } do
            test("mode " .. mode .. " is the sum by definition for every parity", function()
                for n = 6, 9 do
                    for k = 1, 6 do
                        check({ n }, { k }, { mode = mode }, device)
                        check({ n }, { k }, { mode = mode, correlate = true }, device)
                    end
                end
                for _, shape in ipairs { { 5, 6 }, { 6, 5 }, { 7, 7 } } do
                    for _, kernel in ipairs { { 2, 3 }, { 3, 4 }, { 4, 2 }, { 5, 1 } } do
                        check(shape, kernel, { mode = mode }, device)
                        check(shape, kernel, { mode = mode, correlate = true }, device)
                    end
                end
                for _, kernel in ipairs { { 2, 3, 4 }, { 3, 2, 1 }, { 4, 5, 3 }, { 1, 1, 2 } } do
                    check({ 4, 5, 6 }, kernel, { mode = mode }, device)
                    check({ 5, 6, 5 }, kernel, { mode = mode, correlate = true }, device)
                end
            end)
        end

        for _, boundary in ipairs { "circular", "reflect", "mirror", "replicate" } do
            test("boundary " .. boundary .. " is scipy.ndimage's", function()
                for n = 5, 8 do
                    for k = 1, 7 do
                        check({ n }, { k }, { boundary = boundary }, device)
                        check({ n }, { k }, { boundary = boundary, center = { k // 2 } }, device)
                    end
                end
                check({ 5, 7 }, { 3, 4 }, { boundary = boundary }, device)
                check({ 4, 5, 6 }, { 3, 2, 5 }, { boundary = boundary }, device)
                check({ 4, 5, 6 }, { 2, 3, 3 }, { boundary = boundary, correlate = true }, device)
            end)
        end

        test("wraps a PSF that is larger than a circular image", function()
            check({ 5 }, { 12 }, { boundary = "circular" }, device)
            check({ 4, 3 }, { 7, 8 }, { boundary = "circular", center = { 6, 1 } }, device)
            check({ 3 }, { 9 }, { boundary = "zero" }, device)
            check({ 3 }, { 9 }, { boundary = "reflect" }, device)
        end)

        test("takes a center anywhere in the PSF", function()
            for c = 0, 4 do
                for _, mode in ipairs { "same", "full", "valid" } do
                    check({ 9 }, { 5 }, { mode = mode, center = { c } }, device)
                end
                check({ 4, 6 }, { 2, 5 }, { center = { 1, c } }, device)
            end
        end)

        test("puts the PSF where a point is", function()
            local image <close> = mb.zeros({ 9, 10, 12 }, { device = device })
            local voxel <close> = image:view({ 5, 5 }, { 4, 4 }, { 7, 7 })
            voxel:fill(1)
            local h <close> = mb.random({ 3, 4, 5 }, { seed = 3, device = device })
            local result <close> = convolution(image, h)
            -- Center (1, 1, 2): the PSF's first element lands at (3, 2, 4), 0-based.
            local copy <close> = result:view({ 4, 6 }, { 3, 6 }, { 5, 9 })
            helper.assert_close(h, copy, 1e-6)
            assert.near(h:sum(), result:sum(), 1e-4)
        end)

        test("is the adjoint pair: <Hx, y> = <x, H'y>", function()
            for _, case in ipairs {
                { { 12, 13 }, { 4, 5 }, "zero" }, { { 6, 7, 8 }, { 3, 4, 2 }, "zero" },
                { { 6, 7, 8 }, { 3, 4, 2 }, "circular" },
            } do
                local shape, kernel, boundary = table.unpack(case)
                local x <close> = mb.random(shape, { seed = 1, device = device })
                local y <close> = mb.random(shape, { seed = 2, device = device })
                local h <close> = mb.random(kernel, { seed = 3, device = device })
                local hx <close> = convolution(x, h, { boundary = boundary })
                local hy <close> = convolution.correlate(y, h, { boundary = boundary })
                local left <close> = hx * y
                local right <close> = x * hy
                local expected = left:sum()
                assert.near(expected, right:sum(), 1e-6 * math.abs(expected))
                -- And it is not the convolution: this PSF has no symmetry.
                local wrong <close> = convolution(y, h, { boundary = boundary })
                local other <close> = x * wrong
                assert.is_true(math.abs(other:sum() - expected) > 1e-4 * expected)
            end
        end)

        test("of two Gaussians is the Gaussian of the summed variances", function()
            local a <close> = mb.psf_gaussian({ 63, 63 }, { 2, 3 }, { device = device })
            local b <close> = mb.psf_gaussian({ 31, 41 }, { 1.5, 4 }, { device = device })
            local expected <close> = mb.psf_gaussian({ 63, 63 }, { 2.5, 5 }, { device = device })
            local result <close> = convolution(a, b)
            helper.assert_close(expected, result, 2e-5) -- tails beyond the window: 1e-5
        end)

        test("wraps around when circular and not otherwise", function()
            local image <close> = mb.zeros({ 16, 20 }, { device = device })
            local corner <close> = image:view({ 1, 1 }, { 20, 20 })
            corner:fill(1)
            local h <close> = mb.psf_gaussian({ 9, 9 }, 2, { device = device })
            local wrapped <close> = convolution(image, h, { boundary = "circular" })
            local clean <close> = convolution(image, h)
            assert.is_true(wrapped:item(16, 1) > 0.5 * wrapped:item(1, 20))
            assert.is_true(math.abs(clean:item(16, 1)) < 1e-7)
            assert.near(1, wrapped:sum(), 1e-5)
            assert.is_true(clean:sum() < 0.5)
        end)

        test("keeps or takes its input, gives views, takes a transfer function", function()
            local function image()
                return mb.random({ 6, 8, 9 }, { seed = 4, device = device })
            end
            local a <close> = image()
            local b = image()
            local h <close> = mb.random({ 3, 3, 3 }, { seed = 5, device = device })
            local expected <close> = convolution(a, h)
            local consumed <close> = convolution(b, h, { consume = true })
            assert.is_true(b.released)
            helper.assert_close(expected, consumed, 0)
            local layout = convolution.layout(a.shape, h.shape, psf.center(h))
            local otf <close> = convolution.transfer(h, layout.grid, { normalize = false })
            local cached <close> = convolution(a, h, { otf = otf })
            helper.assert_close(expected, cached, 1e-6)
            local view <close> = convolution(a, h, { view = true })
            assert.is_false(view.contiguous)
            helper.assert_close(expected, view, 0)
            local original <close> = image()
            helper.assert_close(original, a, 0, "the input is kept")
            local same = convolution(a, h, { out = a })
            assert.equal(a, same)
            helper.assert_close(expected, a, 0)
            local counts <close> = mb.array({ { 1, 2, 3 }, { 4, 5, 6 } },
                { dtype = "u16", device = device })
            local one <close> = mb.ones({ 1, 1 }, { device = device })
            local identity <close> = convolution(counts, one)
            helper.assert_close({ { 1, 2, 3 }, { 4, 5, 6 } }, identity, 1e-6)
        end)

        test("takes the steps of its dry run wherever the center is found", function()
            for _, center in ipairs { "middle", "fft", "maximum", "mass" } do
                for _, boundary in ipairs { "zero", "circular", "reflect" } do
                    local function run()
                        local image <close> = mb.ones({ 9, 31 }, { device = device })
                        -- Off its middle, and between voxels.
                        local h <close> = mb.psf_gaussian({ 5, 12 }, 1,
                            { center = { 0.3, 9.6 }, device = device })
                        convolution(image, h, { boundary = boundary, center = center }):release()
                    end
                    assert.same({}, mb.dry_run(run):diff((mb.ledger(run))), center .. ", "
                        .. boundary)
                end
            end
        end)

        test("takes the memory that a dry run tells, 8 bytes per voxel when it consumes", function()
            local function run(on, options)
                local image = mb.zeros({ 32, 64, 64 }, { device = on })
                local h <close> = mb.psf_gaussian({ 9, 9, 9 }, 1.5, { device = on })
                options = options or {}
                options.consume = true
                local result = convolution(image, h, options)
                result:release()
            end
            for _, options in ipairs { { boundary = "circular" }, { mode = "full" },
                { boundary = "reflect" } } do
                local known = mb.plan.peak(run, device, options)
                assert.equal(known.peak, (mb.pool.peak(run, device, device, options)))
                assert.equal(0, known.live)
            end
            if device == "host" then
                local peak = mb.pool.peak(run, device, device, { boundary = "circular" })
                local voxels = 32 * 64 * 64
                assert.is_true(peak / voxels < 8.3, ("%g bytes per voxel"):format(peak / voxels))
            end
        end)
    end)
end)

describe("convolution", function()
    it("keeps the planes of a thin PSF instead of a whole spectrum, for the same result", function()
        local a <close> = image_of { 40, 12, 15 }
        for _, case in ipairs { { 9, "middle", 9 }, { 9, "mass", 40 }, { 33, "middle", 40 },
            { 4, { 3, 1, 1 }, 7 }, { 5, "maximum", 40 } } do
            local planes, center, kept = table.unpack(case)
            local h <close> = psf_of { planes, 4, 3 }
            local auto <close> = convolution.transfer(h, { 40, 12, 15 }, { center = center })
            local whole <close> = convolution.transfer(h, { 40, 12, 15 }, { center = center,
                form = "whole" })
            assert.same({ kept, 12, 8 }, auto.shape)
            for _, correlate in ipairs { false, true } do
                local options = { boundary = "circular", center = center, otf = whole,
                    correlate = correlate }
                local expected <close> = convolution(a, h, options)
                options.otf = auto
                local got <close> = convolution(a, h, options)
                helper.assert_close(expected, got, 1e-6)
            end
        end
    end)

    it("keeps planes enough for any center that a deconvolution finds", function()
        for _, case in ipairs { { 5, 9 }, { 6, 11 }, { 17, 60 } } do
            local planes, kept = table.unpack(case)
            local h <close> = psf_of { planes, 4, 3 }
            for _, center in ipairs { "maximum", "mass" } do
                local otf <close> = mb.deconv.transfer(h, { 42, 12, 15 }, { center = center,
                    size = { 60, 16, 18 } })
                assert.equal(kept, otf.shape[1])
            end
        end
    end)

    it("explains what does not fit together", function()
        local a <close> = image_of { 5, 6 }
        local h <close> = psf_of { 3, 3 }
        local line <close> = mb.ones { 9 }
        assert.matches("mode", (helper.failure(convolution, a, h, { mode = "sane" })))
        assert.matches("boundary", (helper.failure(convolution, a, h, { boundary = "wrap" })))
        assert.matches("axis", (helper.failure(convolution, a, line)))
        assert.matches("did you mean 'mode'", (helper.failure(convolution, a, h, { mod = "same" })))
        assert.matches("full",
            (helper.failure(convolution, a, h, { mode = "full", boundary = "reflect" })))
        assert.matches("valid", (helper.failure(convolution, h, a, { mode = "valid" })))
        local otf <close> = convolution.transfer(h, { 10, 10 })
        helper.failure(convolution, a, h, { otf = otf })
    end)

    it("gives results that do not share memory from call to call", function()
        local a <close> = image_of { 6, 6 }
        local h <close> = psf_of { 3, 3 }
        local first <close> = convolution(a, h)
        local before = first:to_table()
        local b <close> = a * 2
        local second <close> = convolution(b, h)
        assert.same(before, first:to_table())
        assert.is_true(second:sum() ~= first:sum())
    end)
end)
