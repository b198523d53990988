-- Library functions whose n-th allocation fails, for every n: nothing of the call stays live, not even garbage.

local mb = require "moonbeam"
local helper = require "spec.helper"

describe("after an error, nothing is left by", function()
    local made = {}

    local function keep(array)
        made[#made + 1] = array
        return array
    end

    local image, psf, volume, psf3, sino, angles, turn, raw, flats, darks, p

    setup(function()
        image, psf = keep(mb.random({20, 24}, {seed = 1})), keep(mb.random({5, 7}, {seed = 2}))
        volume, psf3 = keep(mb.random({8, 10, 12}, {seed = 5})), keep(mb.random({3, 3, 5}, {seed = 6}))
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
        helper.keep_live()
    end)

    -- Calls f(...) with the n-th allocation failing, n = 1, 2, ..., until it succeeds. Returns how often it failed.
    local function failures(f, ...)
        local n, ok = 0, false
        while not ok do
            n = n + 1
            mb.collect()
            local before = mb.pool.stats().live
            collectgarbage "stop"
            mb.pool.fail_nth(n)
            local results = table.pack(pcall(f, ...))
            mb.pool.fail_nth(0)
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
        return {{sino, angles}, {sino, angles, {mode = "in_place"}}, {sino, angles, {mode = "auto"}},
            {sino, turn, {half_acquisition = true, center = 40}}, {sino, angles, {slice_shifts = {0, 1, 2}}},
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
    test("deconv.richardson_lucy", function()
        return {{image, psf, {iterations = 2}}, {volume, psf3, {iterations = 2, acceleration = "biggs_andrews"}}}
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
        local centred = {flats = flats, darks = darks, quiet = true, center = 23.5}
        local packed = {flats = flats, darks = darks, quiet = true, center = 23.5, dtype = "u16"}
        return {{raw, angles, references}, {raw, angles, centred}, {raw, angles, packed}}
    end)
    for _, name in ipairs {"gaussian", "born_wolf"} do
        test("psf." .. name, function()
            return {name == "gaussian" and {{5, 7}, {1, 1.5}} or {{3, 8, 8}, {na = 0.8, wavelength = 0.5, index = 1,
                pixel = 0.1, step = 0.3}}}
        end)
    end
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
            assert.matches("budget is [%d.e-]+, less than a byte; it is a number of bytes such as 8000000", text)
        end
        assert.matches('not 50%%', (helper.failure(mb.device, "host", {budget = "50%"})))
        assert.matches("less than a byte", (helper.failure(mb.plan.max_count, print, {available = 0.25})))
        assert.equal(before, mb.device("host"):budget())
    end)
end)
