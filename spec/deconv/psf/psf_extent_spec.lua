-- Models of a PSF: pixels that have areas, and the size and the model that follow from the optics.
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"
local psf = mb.psf

local OIL <const> = {na = 1.4, wavelength = 520, index = 1.515, pixel = 100, step = 400}
local DRY <const> = {na = 0.6, wavelength = 520, index = 1, pixel = 200, step = 2000}

local function with(base, changes)
    local copy = {}
    for _, list in ipairs {base, changes} do
        for key, value in pairs(list) do
            copy[key] = value
        end
    end
    return copy
end

-- The mean over blocks of n x n samples of a finer PSF, sum 1.
local function binned(fine, size, n)
    local list, total = fine:to_table(), 0
    for z = 1, size[1] do
        local plane = {}
        for y = 1, size[2] do
            plane[y] = {}
            for x = 1, size[3] do
                local sum = 0
                for v = 1, n do
                    for u = 1, n do
                        sum = sum + list[z][(y - 1) * n + v][(x - 1) * n + u]
                    end
                end
                plane[y][x], total = sum, total + sum
            end
        end
        list[z] = plane
    end
    local array <close> = mb.array(list)
    return array * (1 / total)
end

describe("models of a PSF", function()
    it("are means over pixels: sums of samples at their centers that are 9 times finer", function()
        for _, case in ipairs {{"born_wolf"}, {"gibson_lanni", {depth = 3000, index_sample = 1.36}},
            {"richards_wolf"}, {"richards_wolf", {polarization = "x"}},
            {"richards_wolf", {polarization = "y"}}, {"light_sheet", {sheet = 2000}}} do
            local size, optics = {3, 9, 13}, with(OIL, case[2] or {})
            local fine <close> = psf[case[1]]({3, 81, 117}, with(optics, {pixel = 100 / 9,
                area = false}))
            local want <close> = binned(fine, size, 9)
            local got <close> = psf[case[1]](size, optics)
            -- What the middles of 9 x 9 parts leave out of an integral is a part of 1 / 81 of what
            -- the center of the pixel does, 12 % here.
            helper.assert_close(want, got, 1.6e-3)
            local points <close> = psf[case[1]](size, with(optics, {area = false}))
            assert.is_true(points:max() > 1.03 * got:max(), case[1])
        end
    end)

    it("hold the light that is said, in every plane", function()
        for _, case in ipairs {{"born_wolf", DRY}, {"gibson_lanni", OIL}, {"richards_wolf", OIL},
            {"gibson_lanni", with(OIL, {depth = 4000, index_sample = 1.4})}} do
            local name, optics = case[1], case[2]
            local size = psf.size_for(name, {3, 300, 280}, optics)
            assert.equal(5, size[1])
            assert.equal(size[2], size[3])
            assert.is_true(psf.light_within(name, size, optics) >= 0.98)
            assert.is_true(psf.light_within(name, {5, size[2] - 2, size[2] - 2}, optics) < 0.98)
            local large = {5, size[2] + 120, size[3] + 120}
            local h <close> = psf[name](size, optics)
            local wide <close> = psf[name](large, optics)
            local all = psf.light_within(name, large, optics)
            for z = 1, 5 do
                local window <close> = wide:view(z, {61, 60 + size[2]}, {61, 60 + size[3]})
                local plane <close> = wide:view(z)
                assert.is_true(window:sum() / plane:sum() >= 0.98)
                assert.is_true(window:sum() / plane:sum() * all <= 1)
                local own <close> = h:view(z)
                -- All planes have the same light.
                assert.near(window:sum() / plane:sum(), own:sum() * 5 / 0.99, 0.03)
            end
        end
    end)

    it("are no larger than twice the image, and small where the light is", function()
        local far = {41, 64, 48}
        assert.same({81, 127, 95}, psf.size_for("richards_wolf", far, with(OIL, {step = 1000})))
        assert.same({1, 81, 81}, psf.size_for("richards_wolf", {1, 500, 500}, OIL))
        local share, height = psf.light_within("richards_wolf", {81, 65, 65},
            with(OIL, {step = 300}))
        assert.near(0.071, share, 0.005)
        assert.equal(12000, math.abs(height))
        local scanned = psf.size_for("two_photon", {41, 512, 512}, {na = 1.4, excitation = 900,
            pixel = 100, step = 300})
        assert.is_true(scanned[2] < 81 and scanned[2] > 15)
        assert.matches('model is "airy"', (helper.failure(psf.size_for, "airy", far, OIL)))
        assert.matches("wavelength", (helper.failure(psf.size_for, "richards_wolf", far,
            {na = 1.4, pixel = 100, step = 300})))
    end)
end)

describe("deconvolve.lua without a PSF", function()
    local folder
    local run, must = helper.programs_in(function() return folder end)
    local optics = " --wavelength 520 --pixel 100 --iterations 2 -d host --overwrite "

    setup(function()
        folder = files.folder()
        local stack <close> = mb.random({4, 40, 30}, {seed = 2, dtype = "u16", high = 900})
        local plane <close> = mb.random({40, 31}, {seed = 3, dtype = "u16", high = 900})
        mb.tiff.write(folder .. "/stack.tif", stack)
        mb.tiff.write(folder .. "/plane.tif", plane)
    end)

    teardown(function()
        files.remove(folder)
    end)

    local function exact(text)
        assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
            assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
        return text
    end

    it("makes a model and a size that follow from the optics, and says so", function()
        local text = exact(must("scripts/deconvolve.lua FOLDER/stack.tif -o FOLDER/a.npy --na 1.4 "
            .. "--step 300 %s", optics))
        assert.matches("richards_wolf: NA / n is 0.924, above 0.7 (--model)", text, 1, true)
        assert.matches("extent +7 x 79 x 59 px hold [%d.]+ %% [^\n]*; the image sees no more",
            text)
        assert.matches("the grid is 21.6 times the image", text, 1, true)
        text = exact(must("scripts/deconvolve.lua FOLDER/stack.tif -o FOLDER/a.npy --na 0.8 "
            .. "--step 300 --psf-size 9 %s", optics))
        assert.matches("born_wolf: NA / n is 0.528, not above 0.7", text, 1, true)
        local more = assert(text:match "7 x 9 x 9 px hold [^\n]*: %-%-psf%-size (%d+) holds more")
        text = must("scripts/deconvolve.lua FOLDER/stack.tif -o FOLDER/a.npy --na 0.8 --step 300 "
            .. "--psf-size %s %s", more, optics) -- the advice
        assert.is_nil(text:find("holds more", 1, true))
        assert.matches("PSF +7 x " .. more .. " x " .. more .. ", born_wolf", text)
    end)

    it("warns of a typed born_wolf at large apertures alone", function()
        for na, count in pairs {["1.4"] = 1, ["0.8"] = 0} do
            for _, program in ipairs {"deconvolve.lua FOLDER/stack.tif --psf-size 9 --iterations 1",
                "psf.lua --size 3,9,9"} do
                local text = must("scripts/%s -o FOLDER/b.npy --na %s --model born_wolf --step 300 "
                    .. "--wavelength 520 --pixel 100 -d host --overwrite", program, na)
                assert.equal(count, select(2, text:gsub("richards_wolf has it", "")), text)
            end
        end
        local simulated = "scripts/convolve.lua -n 6,32,32 --psf-size 3,9,9 --na 1.4 -d host "
            .. "--overwrite -o FOLDER/b.npy --model "
        assert.matches("--model richards_wolf has it", must(simulated .. "born_wolf"), 1, true)
        assert.is_nil(must(simulated .. "richards_wolf"):find("has it", 1, true)) -- the advice
        assert.matches("gibson_lanni: --depth is for it", must("scripts/psf.lua -o FOLDER/b.npy "
            .. "--na 1.2 --depth 2000 --index-sample 1.36 --size 3,9,9 --step 300 --wavelength 520 "
            .. "--pixel 100 -d host --overwrite"), 1, true)
    end)

    it("has a model of one plane for an image of one, without --step", function()
        local text = exact(must("scripts/deconvolve.lua FOLDER/plane.tif -o FOLDER/a.npy --na 0.8 "
            .. "--psf-size 15 %s", optics))
        assert.matches("the image is one plane: the PSF is the plane in focus", text, 1, true)
        local model <close> = psf.born_wolf({1, 15, 15}, {na = 0.8, wavelength = 520, pixel = 100,
            step = 1})
        local flat <close> = model:reshape {15, 15}
        local image <close> = mb.images.read(folder .. "/plane.tif", "host")
        local want <close> = mb.deconv.richardson_lucy(image, flat, {iterations = 2})
        local got <close> = mb.npy.read(folder .. "/a.npy")
        helper.assert_close(want, got, 0)
        exact(must("scripts/deconvolve.lua FOLDER/plane.tif -o FOLDER/a.npy --na 1.4 %s", optics))
    end)

    it("asks whether channels are slices, and the advice works", function()
        local out <close> = mb.tiff.create(folder .. "/channels.tif", {shape = {20, 24},
            dtype = "u16", channels = 3, frames = 1})
        for channel = 1, 3 do
            local plane <close> = mb.random({20, 24}, {seed = channel, dtype = "u16", high = 900})
            out:volume(channel, 1):write({0, 0}, plane)
        end
        out:finish()
        local command = "scripts/deconvolve.lua FOLDER/channels.tif -o FOLDER/c.tif --na 0.8 "
            .. "--step 300 --psf-size 9 " .. optics
        local text, status = run(command)
        assert.equal(2, status)
        assert.matches("--axes Z says so, and --axes C that they are not", text, 1, true)
        assert.matches("PSF +9 x 9, born_wolf", must(command .. " --axes C"))
        assert.matches("PSF +5 x 9 x 9, born_wolf", must(command .. " --axes Z"))
    end)

    it("works on a stack plane by plane with a model of one plane", function()
        local text = exact(must("scripts/deconvolve.lua FOLDER/stack.tif -o FOLDER/a.npy --na 0.8 "
            .. "--psf-size 15,15 %s", optics))
        assert.equal(1, select(2, text:gsub("\n +one plane: every plane of the stack is "
            .. "deconvolved by itself\n", "")))
        local model <close> = psf.born_wolf({1, 15, 15}, {na = 0.8, wavelength = 520, pixel = 100,
            step = 1})
        local flat <close> = model:reshape {15, 15}
        local stack <close> = mb.images.read(folder .. "/stack.tif", "host")
        local got <close> = mb.npy.read(folder .. "/a.npy")
        -- Their start, the mean of the stack, and least value are common to all planes.
        local real <close> = mb.convert(stack, "f32")
        local mean = real:mean()
        for z = 1, 4 do
            local image <close> = stack:view(z)
            local own <close> = got:view(z)
            local start <close> = mb.full({40, 30}, mean)
            local want <close> = mb.deconv.richardson_lucy(image, flat, {iterations = 2,
                start = start, eps = 1e-6 * mean})
            helper.assert_close(want, own, 1e-4)
        end
        local written = must("scripts/psf.lua -o FOLDER/p.npy --na 0.8 --size 15,15 --wavelength "
            .. "520 --pixel 100 -d host --overwrite")
        assert.matches("one plane", written, 1, true)
        local file <close> = mb.npy.read(folder .. "/p.npy")
        helper.assert_close(model, file, 0)
        local _, status = run("scripts/deconvolve.lua FOLDER/stack.tif -o FOLDER/a.npy --na 0.8 "
            .. "--psf-size 1,2,3,4 --step 300 %s", optics)
        assert.equal(2, status)
    end)
end)
