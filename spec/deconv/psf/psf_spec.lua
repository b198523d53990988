local mb = require "moonbeam"
local helper = require "spec.helper"
local psf, metrics = mb.psf, mb.metrics

describe("psf", function()
    it("finds centers", function()
        local h <close> = mb.array { { 0, 1, 0, 0 }, { 0, 2, 5, 0 }, { 0, 0, 0, 0 },
            { 0, 0, 0, 0 } }
        assert.same({ 1, 1 }, psf.center(h))
        assert.same({ 2, 2 }, psf.center(h, "fft"))
        assert.same({ 1, 2, found = true }, psf.center(h, "maximum"))
        local mass = psf.center(h, "mass")
        assert.near(7 / 8, mass[1], 1e-12)
        assert.near(13 / 8, mass[2], 1e-12)
        assert.same({ 0.5, 3 }, psf.center(h, { 0.5, 3 }))
        assert.matches("middle, fft, maximum, mass", (helper.failure(psf.center, h, "peak")))
        assert.matches("0 %.%.%. 3", (helper.failure(psf.center, h, { 0, 4 })))
        local dark <close> = mb.zeros { 3 }
        assert.matches("center of mass", (helper.failure(psf.center, dark, "mass")))
    end)

    it("normalizes, removes background, crops", function()
        local raw <close> = mb.array({ { 3, 3, 3, 3, 3 }, { 3, 4, 9, 4, 3 }, { 3, 3, 3, 3, 3 } },
            { dtype = "u16" })
        local clean <close> = psf.subtract_background(raw)
        helper.assert_close({ { 0, 0, 0, 0, 0 }, { 0, 1, 6, 1, 0 }, { 0, 0, 0, 0, 0 } }, clean, 0)
        local one <close> = psf.normalize(clean)
        assert.near(1, one:sum(), 1e-6)
        local small <close> = psf.crop(clean, { energy = 0.999 })
        assert.same({ 1, 3 }, small.shape)
        helper.assert_close({ { 1, 6, 1 } }, small, 0)
        local dark <close> = mb.zeros { 3 }
        assert.matches("positive", (helper.failure(psf.normalize, dark)))
    end)

    it("finds a camera's offset under a PSF, and leaves light alone", function()
        local function under(array)
            local owned <close> = array
            return psf.background(owned)
        end
        -- Offset 100 with noise of a few counts below a spot of 1500: 96 % of the sum is
        -- background.
        local noise <close> = mb.random({ 17, 33, 33 }, { seed = 3, low = 97, high = 104 })
        local spot <close> = mb.psf_gaussian({ 17, 33, 33 }, 1.5, { normalize = false })
        local light <close> = spot * 1500
        local seen <close> = noise + light
        local counts <close> = seen:cast("u16")
        local found = psf.background(counts)
        assert.near(100.5, found.level, 1)
        assert.is_true(found.share > 0.95 and found.share < 0.97 and found.flat)
        assert.near(found.level * counts.elements / counts:cast("f64"):sum(), found.share, 1e-6)
        local clean <close>, level = psf.subtract_background(counts)
        assert.equal(found.level, level)
        local center = clean:view({ 5, 13 }, { 11, 23 }, { 11, 23 })
        local true_light = light:view({ 5, 13 }, { 11, 23 }, { 11, 23 })
        assert.is_true(metrics.rmse(center, true_light) < 5)
        center:release()
        true_light:release()
        -- Negative values become 0, also with a level of 0.
        local signed <close> = mb.array { { -1, 2 }, { 3, -4 } }
        local same <close> = psf.subtract_background(signed, 0)
        assert.same({ { 0, 2 }, { 3, 0 } }, same:to_table())
        -- Out-of-focus light, cut off by the volume, is no pedestal, nor are a box, a line or a
        -- dark frame.
        for _, na in ipairs { 0.6, 1.2 } do
            local optics = { na = na, wavelength = 0.5, pixel = 0.1, step = 0.4, index = 1.33 }
            assert.is_false(under(psf.born_wolf({ 21, 25, 25 }, optics)).flat)
        end
        assert.is_false(under(mb.psf_gaussian({ 9, 9, 9 }, 2)).flat)
        assert.is_false(under(mb.ones { 5, 5, 5 }).flat)
        assert.is_false(under(mb.array { 1, 2, 1 }).flat)
        assert.same({ level = 0, share = 0, flat = false }, under(mb.zeros { 6, 6, 6 }))
    end)

    it("recenters by fractions of a pixel", function()
        local off <close> = mb.psf_gaussian({ 24, 25 }, 2, { center = { 12.4, 10.7 } })
        local expected <close> = mb.psf_gaussian({ 24, 25 }, 2)
        local centered <close> = psf.recenter(off)
        helper.assert_close(expected, centered, 2e-4)
    end)

    it("models Born and Wolf's: the Airy pattern in focus, its axial zero, symmetry", function()
        local na, wavelength, pixel = 0.8, 0.5, 0.05
        local zero = 2 * 1.33 * wavelength / na ^ 2 -- first dark point of sinc^2 along the axis
        local h <close> = psf.born_wolf({ 9, 33, 33 }, { na = na, wavelength = wavelength,
            index = 1.33, pixel = pixel, step = zero / 4, area = false })
        assert.near(1, h:sum(), 1e-5)
        local peak = h:item(5, 17, 17)
        assert.near(peak, h:max(), 0)
        assert.is_true(h:item(9, 17, 17) < 1e-6 * peak)
        assert.near((math.sin(math.pi / 2) / (math.pi / 2)) ^ 2, h:item(7, 17, 17) / peak, 1e-4)
        assert.near(1, h:item(3, 20, 15) / h:item(7, 14, 19), 1e-6)
        -- [2 J1(v) / v]^2 falls to 0.3692 at v = 2.
        local v = 2 * math.pi / wavelength * na * 4 * pixel
        local bessel_sum, steps = 0, 2000
        for m = 1, steps do
            local rho = (m - 0.5) / steps
            bessel_sum = bessel_sum + psf.bessel_j0(v * rho) * rho / steps
        end
        assert.near((2 * bessel_sum) ^ 2, h:item(5, 17, 21) / peak, 1e-4)
        assert.matches("refractive", (helper.failure(psf.born_wolf, { 3, 3, 3 },
            { na = 1.4, index = 1.33, wavelength = 1, pixel = 1, step = 1 })))
    end)

    it("reduces Gibson and Lanni's to Born and Wolf's where nothing is mismatched", function()
        -- In focus for any aperture; out of focus for small ones, where the paraxial phase holds.
        local optics = { na = 1.4, wavelength = 0.5, pixel = 0.06, step = 0.3, index = 1.515 }
        local wolf <close> = psf.born_wolf({ 1, 33, 33 }, optics)
        local lanni <close> = psf.gibson_lanni({ 1, 33, 33 }, optics)
        helper.assert_close(wolf, lanni, 1e-6)
        optics = { na = 0.2, wavelength = 0.5, pixel = 0.3, step = 3, index = 1.515 }
        local low <close> = psf.born_wolf({ 15, 25, 25 }, optics)
        local same <close> = psf.gibson_lanni({ 15, 25, 25 }, optics)
        helper.assert_close(low, same, 5e-3)
        -- Depth changes nothing where sample and immersion are one medium, nor does the thickness
        -- of a coverslip that is the design's.
        optics.depth, optics.index_sample, optics.glass, optics.glass_design = 20, 1.515, 170, 170
        local deep <close> = psf.gibson_lanni({ 15, 25, 25 }, optics)
        helper.assert_close(same, deep, 1e-5)
    end)

    -- Another rule in another variable: the midpoint rule in t, rho = limit (1 - t^2), and
    -- Bessel's function by its integral.
    it("is Gibson and Lanni's integral where NA exceeds the sample's index", function()
        local optics = { na = 1.4, wavelength = 0.5, pixel = 0.06, step = 0.15, index = 1.515,
            index_sample = 1.33, depth = 2, area = false }
        local got <close> = psf.gibson_lanni({ 5, 9, 9 }, optics)
        local k, limit, points = 2 * math.pi / optics.wavelength, optics.index_sample / optics.na,
            600
        local function bessel(x)
            local sum = 0
            for m = 1, 64 do -- exact to the last digits for x below 60: the integrand is periodic
                sum = sum + math.cos(x * math.sin(math.pi * (m - 0.5) / 64)) / 64
            end
            return sum
        end
        local function along(index, rho)
            return math.sqrt(math.max(0, index ^ 2 - (optics.na * rho) ^ 2))
        end
        local cache = {}
        local function value(z, distance)
            local key = z * 1000 + distance
            if not cache[key] then
                local re, im = 0, 0
                for m = 1, points do
                    local t = (m - 0.5) / points
                    local rho = limit * (1 - t * t)
                    local path = optics.depth * along(optics.index_sample, rho)
                        + (z * optics.step - optics.depth * optics.index / optics.index_sample) * along(optics.index, rho)
                    local part =
                        bessel(k * optics.na * optics.pixel * math.sqrt(distance) * rho) * rho * t
                    re, im = re + part * math.cos(k * path), im + part * math.sin(k * path)
                end
                cache[key] = re * re + im * im
            end
            return cache[key]
        end
        local want, total = {}, 0
        for z = 1, 5 do
            want[z] = {}
            for y = 1, 9 do
                want[z][y] = {}
                for x = 1, 9 do
                    want[z][y][x] = value(z - 3, (y - 5) ^ 2 + (x - 5) ^ 2)
                    total = total + want[z][y][x]
                end
            end
        end
        for _, plane in ipairs(want) do
            for _, row in ipairs(plane) do
                for x = 1, 9 do
                    row[x] = row[x] / total
                end
            end
        end
        helper.assert_close(want, got, 2e-5)
    end)

    it("shows the spherical aberration of a mismatched sample: lower, longer, skewed, focus moved",
        function()
        local optics = { na = 1.4, wavelength = 0.5, pixel = 0.06, step = 0.15, index = 1.515 }
        local ideal <close> = psf.gibson_lanni({ 41, 25, 25 }, optics)
        optics.index_sample, optics.depth = 1.33, 6
        local aberrant <close> = psf.gibson_lanni({ 41, 25, 25 }, optics)
        assert.near(1, aberrant:sum(), 1e-5)
        assert.is_true(aberrant:max() < 0.7 * ideal:max())
        assert.same({ 20, 12, 12 }, { table.unpack(psf.center(ideal, "maximum")) })
        local focus = psf.center(aberrant, "maximum")
        assert.is_true(focus[1] ~= 20 and focus[2] == 12 and focus[3] == 12)
        -- Mirrored planes are equal for the ideal lens alone.
        assert.near(1, ideal:item(26, 13, 15) / ideal:item(16, 13, 15), 1e-2)
        assert.is_true(math.abs(math.log(aberrant:item(26, 13, 13) / aberrant:item(16, 13, 13)))
            > 0.2)
        local function refuses(pattern, changes)
            for key, value in pairs(optics) do
                changes[key] = changes[key] or value
            end
            assert.matches(pattern, (helper.failure(psf.gibson_lanni, { 3, 5, 5 }, changes)))
        end
        refuses("working_distance", { index_design = 1.518 })
        refuses("glass", { index_glass_design = 1.53 })
        refuses("pixel is %-1; it must be a number above 0", { pixel = -1 })
        refuses("did you mean 'depth'", { dept = 1 })
    end)

    it("resamples to other voxels about a center, without loss, in a dry run too", function()
        local fine <close> = mb.psf_gaussian({ 41, 61 }, { 4, 6 }, { center = { 18, 31 } })
        local coarse <close> = psf.resample(fine, { 0.1, 0.05 }, { 0.2, 0.15 })
        assert.same({ 21, 21 }, coarse.shape)
        assert.same({ 10, 10 }, { table.unpack(psf.center(coarse, "maximum")) })
        assert.near(1, coarse:sum(), 1e-6)
        local expected <close> = mb.psf_gaussian({ 21, 21 }, { 2, 2 })
        helper.assert_close(expected, coarse, 0.07) -- the mean over a voxel widens it a little
        local same <close> = psf.resample(fine, 1, 1, { center = { 18, 31 }, size = { 5, 7 } })
        local window <close> = fine:view({ 17, 21 }, { 29, 35 })
        local normal <close> = psf.normalize(window)
        helper.assert_close(normal, same, 1e-6)
        -- Half a voxel by linear interpolation: no negative values.
        local half <close> = psf.resample(fine, 1, 1, { center = { 18.5, 31 } })
        assert.near(half:item(20, 31), half:item(21, 31), 1e-6)
        assert.is_true(half:min() >= 0)
        local function run()
            local raw <close> = mb.ones({ 9, 11 }, { dtype = "u16" })
            psf.resample(raw, 1, { 0.5, 2 }):release()
        end
        assert.equal(mb.dry_run(run), (mb.ledger(run)))
        assert.matches("positive number", (helper.failure(psf.resample, fine, 0, 1)))
    end)

    it("knows J0 at its zeros and at 0", function()
        assert.near(1, psf.bessel_j0(0), 1e-7)
        assert.near(0, psf.bessel_j0(2.404825557695773), 1e-6)
        assert.near(0, psf.bessel_j0(11.791534439014281), 1e-6)
    end)
end)

describe("metrics", function()
    it("take integers for what they are: no difference wraps around", function()
        local a <close> = mb.array({ { 1, 200 }, { 3, 60000 } }, { dtype = "u16" })
        local b <close> = mb.array({ { 5, 1 }, { 3, 1 } }, { dtype = "u16" })
        local x <close> = a:cast("f32")
        local y <close> = b:cast("f32")
        for _, name in ipairs { "rmse", "psnr", "ncc", "i_divergence" } do
            assert.near(metrics[name](x, y), metrics[name](a, b),
                1e-6 * math.abs(metrics[name](x, y)))
            assert.near(metrics[name](x, y), metrics[name](a, y),
                1e-6 * math.abs(metrics[name](x, y)))
        end
        assert.near(math.sqrt((16 + 199 ^ 2 + 59999 ^ 2) / 4), metrics.rmse(a, b), 1e-2)
    end)

    it("ssim does not suffer from a bright background, and wants images larger than its window",
        function()
        local a <close> = mb.random({ 24, 25 }, { seed = 1 })
        local noise <close> = mb.random({ 24, 25 }, { seed = 2, low = -0.1, high = 0.1 })
        local b <close> = a + noise
        local far_a <close> = a + 1000
        local far_b <close> = b + 1000
        -- Luminance is 1 there; contrast and structure are the same.
        local near, far = metrics.ssim(b, a), metrics.ssim(far_b, far_a)
        assert.near(near, far, 2e-3)
        local small <close> = mb.ones { 10, 30 }
        assert.matches("window has 11", (helper.failure(metrics.ssim, small, small)))
    end)

    it("are what they say on small images", function()
        local a <close> = mb.array { { 1, 2 }, { 3, 6 } }
        local b <close> = mb.array { { 1, 4 }, { 3, 2 } }
        assert.near(math.sqrt(20 / 4), metrics.rmse(a, b), 1e-6)
        assert.near(20 * math.log(3 / math.sqrt(5), 10), metrics.psnr(a, b), 1e-5)
        assert.equal(math.huge, metrics.psnr(a, a))
        local c <close> = a * -2
        local d <close> = c + 7
        assert.near(-1, metrics.ncc(a, d), 1e-6)
        assert.near(1, metrics.ncc(a, a), 1e-6)
        local expected = 4 * math.log(4 / 2) - 4 + 2 + 2 * math.log(2 / 6) - 2 + 6
        assert.near(expected, metrics.i_divergence(a, b), 1e-5)
        assert.near(0, metrics.i_divergence(a, a), 1e-6)
    end)

    it("ssim is 1 for equal images, falls with noise, and is the formula for flat ones", function()
        local a <close> = mb.random({ 20, 24 }, { seed = 1 })
        local noise <close> = mb.random({ 20, 24 }, { seed = 2, low = -0.1, high = 0.1 })
        local b <close> = a + noise
        assert.near(1, metrics.ssim(a, a), 1e-6)
        local near = metrics.ssim(b, a)
        assert.is_true(near < 0.99 and near > 0.8)
        local two <close> = mb.full({ 16, 16 }, 2)
        local three <close> = mb.full({ 16, 16 }, 3)
        assert.near((12 + 1e-4) / (13 + 1e-4), metrics.ssim(two, three, { range = 1 }), 1e-3)
    end)

    it("refuses lengths whose units differ, instead of working for hours", function()
        local optics = {na = 1.4, index = 1.515, wavelength = 520, pixel = 100, step = 200}
        local function with(changes)
            local copy = {}
            for _, list in ipairs {optics, changes} do
                for key, value in pairs(list) do
                    copy[key] = value
                end
            end
            return copy
        end
        for _, changes in ipairs {{wavelength = 0.52}, {wavelength = 1e-9}, {pixel = 1e9},
            {step = 1e12}} do
            assert.matches("are wavelength, pixel, step and depth in one unit",
                (helper.failure(mb.psf.born_wolf, {31, 65, 65},
                with(changes))), 1, true)
        end
        assert.matches("out of proportion",
            (helper.failure(mb.psf.gibson_lanni, {31, 65, 65},
            with {depth = 1e12, index_sample = 1.33})))
        assert.matches("a model of 3 x 100000 x 100000",
            (helper.failure(mb.psf.born_wolf, {3, 100000, 100000}, optics)))
        local a <close> = mb.psf.gaussian({5, 5, 5}, {1, 1, 1})
        assert.matches("give both distances in one unit",
            (helper.failure(mb.psf.resample, a, {1e9, 1, 1}, {200, 100, 100})))
    end)
end)
