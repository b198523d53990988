-- Library functions whose n-th allocation fails, for every n: nothing of the call stays live, not
-- even garbage.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("after an error, nothing is left by", function()
    local made = {}

    local function keep(array)
        made[#made + 1] = array
        return array
    end

    local image, psf, volume, psf3, weights, sino, angles, turn, raw, flats, darks, p, folder

    setup(function()
        image, psf = keep(mb.random({20, 24}, {seed = 1})), keep(mb.random({5, 7}, {seed = 2}))
        volume, psf3 = keep(mb.random({8, 10, 12}, {seed = 5})),
            keep(mb.random({3, 3, 5}, {seed = 6}))
        weights = keep(mb.ones {20, 24})
        folder = files.folder()
        sino, angles, turn = keep(mb.random({3, 30, 48}, {seed = 3})), mb.tomo.angles(30), {}
        for i = 1, 30 do
            turn[i] = (i - 1) * 2 * math.pi / 30
        end
        raw = keep(mb.random({30, 3, 48}, {dtype = "u16", low = 100, high = 200, seed = 4}))
        flats = keep(mb.full({2, 3, 48}, 300, {dtype = "u16"}))
        darks = keep(mb.zeros({2, 3, 48}, {dtype = "u16"}))
        p = keep(mb.random({30, 3, 48}, {seed = 7}))
        helper.keep_live()
    end)

    teardown(function()
        for _, array in ipairs(made) do
            array:release()
        end
        files.remove(folder)
        helper.keep_live()
    end)

    -- Calls f(...) with the n-th allocation failing, n = 1, 2, ..., until it succeeds. Returns
    -- how often it failed.
    local function failures(f, ...)
        local n, ok = 0, false
        while not ok do
            n = n + 1
            mb.collect()
            local before = mb.pool.stats().live
            collectgarbage "stop"
            mb.debug.fail_nth(n)
            local results = table.pack(pcall(f, ...))
            mb.debug.fail_nth(0)
            collectgarbage "restart"
            ok = results[1]
            if not ok then
                assert.matches("injected", tostring(results[2]))
                assert.equal(before, mb.pool.stats().live, ("allocation %d failed"):format(n))
            end
        end
        mb.collect()
        return n - 1
    end

    local function test(name, make_calls)
        it(name, function()
            local module, key = name:match("(.*)%.(.*)")
            for _, arguments in ipairs(make_calls()) do
                assert.is_true(failures(mb[module][key], table.unpack(arguments)) > 0)
            end
        end)
    end

    test("tomo.fbp", function()
        return {{sino, angles}, {sino, angles, {mode = "in_place"}},
            {sino, angles, {mode = "auto"}},
            {sino, turn, {half_acquisition = true, center = 40}},
                {sino, angles, {slice_shifts = {0, 1, 2}}},
            {sino, turn, {half_acquisition = true, center = 40, mode = "in_place"}}}
    end)
    test("tomo.reconstruct", function()
        return {{sino, angles, {method = "fourier"}}, {sino, angles, {method = "fbp"}}}
    end)
    test("tomo.line_integrals", function()
        return {{raw, {flats = flats, darks = darks}}, {p}}
    end)
    test("tomo.find_center_pair", function()
        return {{keep(p[1]), keep(p[16])}}
    end)
    test("tomo.find_center", function()
        return {{p, angles}}
    end)
    test("convolution.convolve", function()
        return {{image, psf}, {volume, psf3, {boundary = "reflect"}}}
    end)
    test("convolution.correlate", function()
        return {{image, psf}}
    end)
    test("convolution.transfer", function()
        return {{psf, {32, 32}}, {psf, {32, 32}, {center = "mass", normalize = true}}}
    end)
    test("deconv.richardson_lucy", function()
        local calls = {{volume, psf3, {iterations = 2, acceleration = "biggs_andrews"}}}
        for _, options in ipairs {{}, {acceleration = "biggs_andrews"},
            {acceleration = "heavy_ball", metrics = true},
            {total_variation = 0.01, tolerance = 1e-9}, {weights = weights},
                {boundary = "circular", center = "mass"},
            {boundary = "mirror", start = image}, {boundary = "circular", weights = weights,
                start = "image"}} do
            options.iterations = 2
            calls[#calls + 1] = {image, psf, options}
        end
        return calls
    end)
    test("deconv.gradient_consensus", function()
        return {{image, psf, {iterations = 2}}, {image, psf,
            {iterations = 2, weights = weights, metrics = true, smooth = true}},
            {volume, psf3, {iterations = 2, boundary = "mirror"}}}
    end)
    test("deconv.transfer", function()
        return {{psf, {20, 24}}}
    end)
    test("tiled_deconv.richardson_lucy", function()
        local calls = {}
        for _, options in ipairs {{tile = {9, 11}, metrics = true},
            {tile = {9, 11}, acceleration = "heavy_ball"},
            {place = "host"}, {place = "file", scratch = folder .. "/x"},
            {mode = "blended", tile = {9, 11}, acceleration = "biggs_andrews"},
            {mode = "blended", tile = {9, 11}, total_variation = 0.01}} do
            options.iterations = 2
            calls[#calls + 1] = {image, psf, options}
        end
        return calls
    end)
    test("tiles.convolve", function()
        return {{image, psf, {tile = {7, 9}}}, {volume, psf3,
            {boundary = "reflect", correlate = true, normalize = true}}}
    end)
    for _, name in ipairs {"wiener", "tikhonov"} do
        test("deconv." .. name, function()
            return {{image, psf}}
        end)
    end
    test("deconv.landweber", function()
        return {{image, psf, {iterations = 2}}}
    end)
    test("recon.reconstruct", function()
        local references = {flats = flats, darks = darks, quiet = true}
        local centered = {flats = flats, darks = darks, quiet = true, center = 23.5}
        local packed = {flats = flats, darks = darks, quiet = true, center = 23.5, dtype = "u16"}
        return {{raw, angles, references}, {raw, angles, centered}, {raw, angles, packed}}
    end)
    for _, name in ipairs {"gaussian", "born_wolf"} do
        test("psf." .. name, function()
            return {name == "gaussian" and {{5, 7}, {1, 1.5}}
                or {{3, 8, 8}, {na = 0.8, wavelength = 0.5, index = 1,
                pixel = 0.1, step = 0.3}}}
        end)
    end
    for name, more in pairs {richards_wolf = {wavelength = 0.5}, two_photon = {excitation = 0.9},
        confocal = {wavelength = 0.5, excitation = 0.45}, light_sheet = {wavelength = 0.5,
            sheet = 1}} do
        test("psf." .. name, function()
            local options = {na = 0.8, index = 1, pixel = 0.1, step = 0.3}
            for key, value in pairs(more) do
                options[key] = value
            end
            return {{{3, 8, 8}, options}}
        end)
    end
    test("psf.gibson_lanni", function()
        return {{{3, 8, 8}, {na = 1.2, wavelength = 0.5, index = 1.5, index_sample = 1.33,
            pixel = 0.1, step = 0.3}}}
    end)
    for name, more in pairs {center = {"mass"}, sum = {}, background = {},
        subtract_background = {}, normalize = {}, crop = {},
        recenter = {}, resample = {{1, 1}, {0.5, 2}}} do
        test("psf." .. name, function()
            return {{psf, table.unpack(more)}}
        end)
    end
    test("phantom.spheres", function()
        return {{{6, 12, 12}, {count = 2, background = 1}}}
    end)
    test("view.projections", function()
        return {{folder .. "/p.png", volume, {overwrite = true}}, {nil, volume, {sxy = 2}}}
    end)
    for _, kind in ipairs {"tif", "npy", "h5"} do
        test("images.write", function()
            local part = keep(volume:view(nil, {2, 9}, {1, 12, 2}))
            return {{("%s/%s.%s"):format(folder, "written", kind), part, {overwrite = true}}}
        end)
        test("images.read", function()
            local name = ("%s/read.%s"):format(folder, kind)
            mb.images.write(name, volume)
            return {{name}}
        end)
    end
    for _, name in ipairs {"fftn", "ifftn", "rfftn", "fftshift", "ifftshift"} do
        test("fft." .. name, function()
            return {{image}, {volume, {axes = {1, 3}}}}
        end)
    end
    test("metrics.i_divergence", function()
        return {{image, image}}
    end)
    for _, name in ipairs {"rmse", "psnr", "ssim", "ncc"} do
        test("metrics." .. name, function()
            return {{image, image}}
        end)
    end
end)

describe("sizes in bytes", function()
    it("are whole bytes: a fraction is no part of the memory", function()
        local before = mb.device("host"):budget()
        for _, part in ipairs {0.5, "0.5", 1e-9} do
            local text, err = helper.failure(mb.device, "host", {budget = part})
            assert.equal("argument", err.code)
            assert.matches("budget is [%d.e-]+, less than a byte; it is a number of bytes such "
                .. "as 8000000", text)
        end
        assert.matches('not 50%%', (helper.failure(mb.device, "host", {budget = "50%"})))
        assert.matches("less than a byte", (helper.failure(mb.plan.max_count, print,
            {available = 0.25})))
        assert.equal(before, mb.device("host"):budget())
    end)
end)
