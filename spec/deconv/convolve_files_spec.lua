-- The files of moonbeam convolve: values and lengths that are refused or told as moonbeam deconvolve
-- does, signed PSFs, and PSFs of one plane.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local tiff_encoder = require "spec.support.tiff_encoder"

local folder

local run, must = helper.programs_in(function() return folder end)

local CONVOLVE <const> = "scripts/convolve.lua -d host --overwrite -i FOLDER/%s -o FOLDER/o.tif "
local TILES <const> = "-t always --tile 6,12,12 "

-- Runs that fail with this text in the one line of the error, and leave no file.
local function fails(status_wanted, pattern, format, ...)
    os.remove(folder .. "/o.tif")
    local text, status = run(format, ...)
    assert.equal(status_wanted, status, text)
    assert.matches("convolve: " .. pattern, text, 1, true)
    assert.equal(1, select(2, text:gsub("convolve: ", "")), text)
    assert.is_nil(mb.system.stat(folder .. "/o.tif"))
end

local function same_bytes(text)
    assert.equal(assert(text:match "predicted peak [^\n]-%((%d+) bytes%)", text),
        assert(text:match "measured peak [^\n]-%((%d+) bytes%)", text))
    return text
end

local function result()
    return mb.images.read(folder .. "/o.tif")
end

local function keep(name, array, change)
    local _ <close> = array
    if change then
        change(array)
    end
    mb.npy.write(folder .. "/" .. name, array, {overwrite = true})
end

local function image()
    return mb.random({6, 20, 22}, {seed = 1, low = 1, high = 5})
end

local function psf()
    return mb.psf.gaussian({3, 5, 5}, {1, 1, 1})
end

-- A TIFF of ImageJ with sizes of voxels in nm.
local function sized(name, pages, n, pixel, step)
    local per = {5, string.pack("<I4I4", 1000000000 // 1000, math.tointeger(pixel * 1000 // 1))}
    files.write(folder .. "/" .. name, tiff_encoder.encode(tiff_encoder.sample(pages, n, n,
        "u16"), {dtype = "u16", extra = {[282] = per, [283] = per, [296] = {3, {1}}}, texts = {
        ("ImageJ=1.53t\nimages=%d\nslices=%d\nunit=um\nspacing=%g\n"):format(pages, pages,
        step / 1000)}}))
end

describe("the files of convolve", function()
    setup(function()
        folder = files.folder()
        keep("image.npy", image())
        keep("nan.npy", image(), function(a) a:view(6, 20, 22):fill(0 / 0) end)
        keep("bright.npy", mb.zeros {6, 20, 22}, function(a) a:view(3, 11, 11):fill(3e38) end)
        keep("plane.npy", mb.random({20, 22}, {seed = 2}))
        keep("line.npy", mb.random({90}, {seed = 2}))
        keep("psf.npy", psf())
        keep("loud.npy", psf(), function(a) mb.binary(a, "mul", {scalar = 90, out = a}) end)
        keep("bad.npy", psf(), function(a) a:view(3, 5, 5):fill(0 / 0) end)
        keep("none.npy", mb.zeros {3, 5, 5})
        keep("tiny.npy", psf(), function(a) mb.binary(a, "mul", {scalar = 1e-38, out = a}) end)
        keep("edge.npy", mb.full({3, 3, 3}, -1), function(a) a:view(2, 2, 2):fill(26) end)
        keep("flat.npy", mb.random({5, 6}, {seed = 3, low = -0.2, high = 1}))
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("are refused for values of the PSF that nothing can be made of", function()
        for name, text in pairs {bad = "1 of 75 values of the PSF are not finite",
            none = "the PSF is 0 everywhere", tiny = "the values of the PSF are too small for "
            .. "float32: their norm is 1.71e-39, and it must be at least 1e-32"} do
            for _, more in ipairs {"", TILES .. "--normalize", "--plan"} do
                fails(1, text, CONVOLVE .. "--psf FOLDER/%s.npy %s", "image.npy", name, more)
            end
            fails(1, text, "scripts/convolve.lua -d host -n 6,20,22 --overwrite -o FOLDER/o.tif "
                .. "--psf FOLDER/%s.npy", name)
        end
        for _, more in ipairs {"", TILES} do
            fails(1, "the PSF sums to 0, its values have a norm of 26.5, and it cannot be divided "
                .. "by such a sum: leaving --normalize out takes it as it is", CONVOLVE
                .. "--psf FOLDER/edge.npy --normalize %s", "image.npy", more)
        end
    end)

    it("may have a PSF with values below 0 and of sum 0", function()
        local source <close> = image()
        local edge <close> = mb.npy.read(folder .. "/edge.npy")
        local expected <close> = mb.convolution(source, edge)
        assert.is_true(expected:min() < 0)
        for _, more in ipairs {"", TILES} do
            local text = same_bytes(must(CONVOLVE .. "--psf FOLDER/edge.npy %s", "image.npy", more))
            assert.is_nil(text:find("warning", 1, true))
            local got <close> = result()
            helper.assert_close(expected, got, 1e-5)
        end
    end)

    it("are refused for values of the image that are not finite, or become so", function()
        for _, more in ipairs {"", TILES} do
            fails(1, more == "" and "1 of 2640 values of the image are not finite"
                or "1 of 936 values of the image's block from (0, 8, 9) on are not finite",
                CONVOLVE .. "--psf FOLDER/psf.npy --progress none %s", "nan.npy", more)
            fails(1, "the values of the image", CONVOLVE .. "--psf FOLDER/loud.npy --progress none "
                .. "%s", "bright.npy", more)
        end
    end)

    it("may have a PSF of one plane, for every plane of the stack", function()
        local source <close> = image()
        local flat <close> = mb.npy.read(folder .. "/flat.npy")
        for _, more in ipairs {"", TILES, "--boundary mirror"} do
            local text = same_bytes(must(CONVOLVE .. "--psf FOLDER/flat.npy %s", "image.npy", more))
            assert.matches("one plane: every plane of the stack is convolved by itself", text, 1,
                true)
            local got <close> = result()
            for z = 1, 6 do
                local plane <close> = source:view(z, mb.all, mb.all)
                local own <close> = mb.convolution(plane, flat,
                    {boundary = more:match "mirror" or "zero"})
                local there <close> = got:view(z, mb.all, mb.all)
                helper.assert_close(own, there, 2e-6)
            end
        end
        for _, more in ipairs {"", "--naive", "-t always --boundary zero"} do
            assert.matches("convolved by itself", must("scripts/convolve.lua -d host -n 6,20,22 "
                .. "--psf FOLDER/flat.npy --overwrite -o FOLDER/o.tif " .. more), 1, true)
        end
        fails(2, "the PSF " .. folder .. "/psf.npy has 3 axes, and the image 2: give a PSF of (y, x)",
            CONVOLVE .. "--psf FOLDER/psf.npy", "plane.npy")
    end)

    it("may be one plane, with the plane in focus of a model", function()
        local text = same_bytes(must(CONVOLVE .. "--psf-size 9,7,7 --sigma 4,1,2", "plane.npy"))
        assert.matches("the image is one plane: the PSF is the plane in focus", text, 1, true)
        local plane <close> = mb.npy.read(folder .. "/plane.npy")
        local focus <close> = mb.psf.gaussian({7, 7}, {1, 2})
        local expected <close> = mb.convolution(plane, focus)
        local got <close> = result()
        helper.assert_close(expected, got, 1e-6)
        must(CONVOLVE .. "--psf-size 9,7,7 --model born_wolf --na 0.9", "plane.npy")
        fails(2, "the model of a PSF is for planes and stacks, and this image has one axis: give a "
            .. "measured PSF with --psf", CONVOLVE, "line.npy")
        keep("short.npy", mb.ones {3})
        must(CONVOLVE:gsub("o.tif", "o.npy") .. "--psf FOLDER/short.npy", "line.npy")
    end)
end)

describe("lengths in the files of convolve", function()
    setup(function()
        folder = files.folder()
        sized("image.tif", 4, 20, 130, 300)
        sized("same.tif", 3, 5, 130, 300)
        sized("other.tif", 3, 5, 65, 150)
        sized("wrong.tif", 4, 20, 0.013, 300)
    end)

    teardown(function()
        files.remove(folder)
    end)

    local DECONVOLVE <const> = "scripts/deconvolve.lua -d host --overwrite --iterations 1 "
        .. "--psf-background none FOLDER/%s FOLDER/%s -o FOLDER/o.tif "

    local function warnings(text)
        local list = {}
        for line in text:gmatch "warning: ([^\n]*)" do
            list[#list + 1] = line
        end
        return list
    end

    it("of image and PSF are compared as deconvolve compares them", function()
        local convolve = CONVOLVE .. "--psf FOLDER/%s "
        local told = warnings(must(convolve, "image.tif", "other.tif"))
        assert.same({("%s/other.tif says that its pixel is 65 nm; that of the image is 130 nm: "
            .. "--psf-spacing resamples the PSF"):format(folder), ("%s/other.tif says that its step is 150 "
            .. "nm; that of the image is 300 nm: --psf-spacing resamples the PSF"):format(folder)},
            told)
        assert.same(told, warnings(must(DECONVOLVE, "image.tif", "other.tif")))
        assert.same({}, warnings(must(convolve, "image.tif", "same.tif")))
        -- The advice works: the sum stays, at the distances of the image.
        local text = same_bytes(must(convolve .. "--psf-spacing 150,65,65", "image.tif",
            "other.tif"))
        assert.same({}, warnings(text))
        local psf_there <close> = mb.images.read(folder .. "/other.tif")
        local near <close> = mb.psf.resample(psf_there, {150, 65, 65}, {300, 130, 130},
            {center = "middle"})
        mb.binary(near, "mul", {scalar = psf_there:sum(), out = near})
        local stack <close> = mb.images.read(folder .. "/image.tif")
        local expected <close> = mb.convolution(stack, near)
        local got <close> = result()
        helper.assert_close(expected, got, 1e-6)
        -- Typed lengths win over those of the file, and go to the result.
        told = warnings(must(convolve .. "--pixel 65 --step 150", "image.tif", "other.tif"))
        assert.equal(2, #told)
        assert.matches("--pixel is 65 nm, but", told[1], 1, true)
        local opened <close> = mb.images.open(folder .. "/o.tif")
        assert.near(65e-9, opened.meta.voxel.pixel, 1e-12)
        assert.near(150e-9, opened.meta.voxel.step, 1e-12)
    end)

    it("of a PSF of one plane are those of a plane: it has no step", function()
        sized("flat.tif", 1, 5, 130, 150)
        sized("fine.tif", 1, 5, 65, 150)
        sized("plane.tif", 1, 20, 130, 300)
        for _, command in ipairs {CONVOLVE .. "--psf FOLDER/%s ", DECONVOLVE} do
            assert.same({}, warnings(must(command, "image.tif", "flat.tif")))
            local told = warnings(must(command, "image.tif", "fine.tif"))
            assert.equal(1, #told)
            assert.matches("fine.tif says that its pixel is 65 nm; that of the image is 130 nm: "
                .. "--psf-spacing resamples the PSF", told[1], 1, true)
            -- The advice works, for a stack and for a plane, which has no step either.
            for _, name in ipairs {"image.tif", "plane.tif"} do
                local text = must(command .. "--psf-spacing 65,65", name, "fine.tif")
                assert.same({}, warnings(text))
                assert.matches("3 x 3", text, 1, true)
                assert.equal(assert(text:match "peak [^\n]-%((%d+) bytes%)"),
                    assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            end
        end
        local got <close> = result()
        assert.equal(2, got.rank)
        local convolve = CONVOLVE .. "--psf FOLDER/%s "
        fails(2, "--psf-spacing has 3 numbers, and the PSF " .. folder .. "/fine.tif has 2 axes: "
            .. "give Y,X", convolve .. "--psf-spacing 150,65,65", "image.tif", "fine.tif")
        fails(2, "--psf-spacing has 2 numbers, and the PSF " .. folder .. "/other.tif has 3 axes: "
            .. "give Z,Y,X", convolve .. "--psf-spacing 65,65", "image.tif", "other.tif")
    end)

    it("that no microscope has are refused where they count; what is typed is taken", function()
        local message = folder .. "/wrong.tif says that its pixel is 0.013 nm; a microscope's is "
            .. "from 1 nm to 0.1 mm: give --pixel in nm"
        local optics = "--model born_wolf --na 0.9 --psf-size 3,5,5 "
        for _, more in ipairs {"--psf FOLDER/same.tif ", optics} do
            fails(2, message, CONVOLVE .. more, "wrong.tif")
            must(CONVOLVE .. more .. "--pixel 130", "wrong.tif")
        end
        -- A Gaussian in pixels has no lengths.
        assert.same({}, warnings(must(CONVOLVE .. "--psf-size 3,5,5 --sigma 1,1,1", "wrong.tif")))
    end)

    it("of the image are those of the model, unless they are typed", function()
        local optics = "--model born_wolf --na 0.9 --psf-size 3,7,7 "
        local function bits(name, more)
            local text = must(CONVOLVE .. optics .. more, name)
            local got <close> = result()
            return got:to_string(), text
        end
        local own, text = bits("image.tif", "")
        assert.matches("voxel pixel 130 nm, step 300 nm: ", text, 1, true)
        assert.same({}, warnings(text))
        local stack <close> = mb.images.read(folder .. "/image.tif")
        keep("image.npy", stack:cast "f32")
        assert.equal(own, (bits("image.npy", "--pixel 130 --step 300")))
        assert.not_equal(own, (bits("image.npy", "")))
        assert.equal((bits("image.npy", "--pixel 100 --step 200")), (bits("image.npy", "")))
    end)
end)
