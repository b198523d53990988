-- convolve.lua and deconvolve.lua as a user runs them.
local mb = require "moonbeam"
local helper = require "spec.helper"

local folder

local function run(arguments)
    return helper.run_program(arguments)
end

local function must(arguments)
    local text, status = run(arguments)
    assert(status == 0, ("%s ended with %s:\n%s"):format(arguments, status, text))
    return text
end

local function exists(name)
    local file <close> = io.open(folder .. "/" .. name)
    return file ~= nil
end

local real = (os.getenv("MOONBEAM_DATA") or "../shared/data") .. "/dapi_001.tif"
local model = " --na 1.45 --index 1.512 --wavelength 461 --pixel 130 --step 300"

describe("convolve.lua", function()
    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
    end)

    teardown(function()
        os.execute(("rm -r '%s'"):format(folder))
    end)

    local small = "scripts/convolve.lua -d host --size 16,48,40 --psf-size 7,9,9 --sigma 1.5,2,2 "

    it("takes what it predicts, a quarter of the naive way", function()
        local text = must(small .. ("-p %s/ours.png -o %s/ours.npy"):format(folder, folder))
        local predicted = text:match("predicted peak [%d.]+ GiB %((%d+) bytes%)")
        local peak = text:match("; peak [%d.]+ GiB %((%d+) bytes%)")
        assert.equal(predicted, peak)
        assert.is_true(exists "ours.png")
        local naive = must(small .. ("--naive -o %s/naive.npy"):format(folder))
        local naive_peak = naive:match("; peak [%d.]+ GiB %((%d+) bytes%)")
        assert.is_true(tonumber(naive_peak) > 3.5 * tonumber(peak))
        local a <close> = mb.npy.read(folder .. "/ours.npy")
        local b <close> = mb.npy.read(folder .. "/naive.npy")
        helper.assert_close(a, b, 1e-6)
    end)

    it("shows the wrap-around and shows it gone", function()
        must(small .. ("-b circular -o %s/circular.npy"):format(folder))
        must(small .. ("-b zero -o %s/zero.npy"):format(folder))
        local circular <close> = mb.npy.read(folder .. "/circular.npy")
        local zero <close> = mb.npy.read(folder .. "/zero.npy")
        local wrapped <close> = circular - zero
        assert.is_true(wrapped:max() > 1)
        local inside <close> = wrapped:view({ 4, 13 }, { 5, 44 }, { 5, 36 })
        assert.is_true(inside:norm() < 1e-4 * zero:norm())
    end)

    it("runs out of memory on purpose with advice", function()
        local text, status = run(small .. "--budget 200000")
        assert.equal(1, status)
        assert.matches("do not fit", text)
        assert.matches("enough", text)
        -- Image and result alone take 250 kB; tiles make do with what is left.
        local tiled = must(small .. ("--budget 500000 --tiles -b zero -o %s/tiled.npy"):format(folder))
        assert.is_true(tonumber(tiled:match("(%d+) tiles of")) > 1)
        must(small .. ("-b zero -o %s/whole.npy"):format(folder))
        local a <close> = mb.npy.read(folder .. "/tiled.npy")
        local b <close> = mb.npy.read(folder .. "/whole.npy")
        helper.assert_close(b, a, 1e-5)
    end)

    it("has equal ledgers, planned and run", function()
        for _, more in ipairs { "", "--naive", "-b reflect", "--keep -b zero -m full" } do
            assert.matches("difference 0; 0 of", must("--ledger " .. small .. more))
        end
    end)
end)

describe("deconvolve.lua", function()
    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
        local truth <close> = mb.zeros { 10, 24, 26 }
        local spot <close> = truth:view({ 5, 6 }, { 12, 13 }, { 3, 4 })
        spot:fill(900)
        local psf <close> = mb.psf_gaussian({ 5, 9, 9 }, { 1, 1.5, 1.5 })
        local blurred <close> = mb.convolution(truth, psf, { boundary = "reflect" })
        local image <close> = mb.convert(blurred, "u16", { offset = 10 })
        mb.tiff.write(folder .. "/image.tif", image)
        mb.npy.write(folder .. "/psf.npy", psf)
    end)

    teardown(function()
        os.execute(("rm -r '%s'"):format(folder))
    end)

    for _, method in ipairs { "rl", "wiener", "tikhonov", "landweber" } do
        it("sharpens from file to file, with the memory it predicts: " .. method, function()
            local text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/%s.h5 -d host -m %s -q"):format(folder, folder,
                folder, method, method))
            assert.equal("", text:gsub("[^\n]*moonbeam[^\n]*\n", ""))
            local image <close> = mb.images.read(folder .. "/image.tif")
            local result <close> = mb.images.read(("%s/%s.h5"):format(folder, method))
            assert.same(image.shape, result.shape)
            assert.equal("f32", result.dtype)
            assert.is_true(result:max() > 1.3 * image:max())
        end)
    end

    it("prints the same peak before and after", function()
        local text = must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/x.tif -d host -n 3 --metrics -a heavy_ball"):format(
            folder, folder, folder))
        local predicted, measured = text:match("memory +peak [^\n]-%((%d+) bytes%)"), text:match("measured +peak [^\n]-%((%d+) bytes%)")
        assert.equal(predicted, measured)
        assert.matches("3  I%-divergence", text)
        local again, status = run(("scripts/deconvolve.lua %s/image.tif %s/psf.npy -o %s/x.tif -d host"):format(folder, folder, folder))
        assert.equal(1, status)
        assert.matches("overwrite", again)
    end)

    it("plans without writing, and says what the model lacks", function()
        assert.matches("memory +peak", must(("scripts/deconvolve.lua %s/image.tif %s/psf.npy --plan -d host"):format(folder, folder)))
        local text, status = run(("scripts/deconvolve.lua %s/image.tif -o %s/y.tif -d host"):format(folder, folder))
        assert.equal(1, status)
        assert.matches("%-%-na is missing", text)
        assert.is_false(exists "y.tif")
    end)

    it("makes a real nucleus sharper without bright edges", function()
        local file <close> = io.open(real)
        if not file then
            pending("no " .. real)
            return
        end
        must(("scripts/deconvolve.lua %s -o %s/nucleus.tif -d host -n 12 -a heavy_ball -q --psf-size 33 -p %s/nucleus.png %s"):format(
            real, folder, folder, model))
        local raw <close> = mb.images.read(real)
        local image <close> = raw:cast("f32")
        local result <close> = mb.images.read(folder .. "/nucleus.tif")
        assert.same({ 40, 201, 101 }, result.shape)
        assert.is_true(exists "nucleus.png")
        -- Sharper: the relative energy of differences between neighbours in a plane of the middle rises.
        local function detail(volume)
            local left <close> = volume:view({ 15, 25 }, { 40, 160 }, { 20, 79 })
            local right <close> = volume:view({ 15, 25 }, { 40, 160 }, { 21, 80 })
            local difference <close> = left - right
            return difference:norm() / left:norm()
        end
        assert.is_true(detail(result) > 1.5 * detail(image), ("%g, %g"):format(detail(image), detail(result)))
        -- No ringing at the edges: the outermost pixels of the middle plane stay below its brightest inside.
        local inside <close> = result:view(20, { 10, 190 }, { 10, 90 })
        local edge <close> = result:view(20, mb.all, { 1, 3 })
        assert.is_true(edge:max() < inside:max())
    end)
end)
