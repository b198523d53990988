-- Values below 0, not finite or out of range in the files of moonbeam deconvolve: one line each, and
-- never a complete file of zeros or NaN.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local folder

local run, must = helper.programs_in(function() return folder end)

local COMMAND <const> = "scripts/deconvolve.lua -d host -q "

-- Runs that fail with this text in one line, and leave no file.
local function fails(status_wanted, pattern, output, format, ...)
    local text, status = run(format, ...)
    assert.equal(status_wanted, status, text)
    assert.matches(pattern, text, 1, true)
    assert.is_nil(text:find("\n."), text)
    assert.is_nil(mb.system.stat(("%s/%s"):format(folder, output)))
end

local function same(one, other)
    local a <close> = mb.images.read(folder .. "/" .. one)
    local b <close> = mb.images.read(folder .. "/" .. other)
    return a:to_string() == b:to_string()
end

-- The image above an offset of 64, which f32 adds and subtracts exactly here.
local function write_raised()
    local image <close> = mb.images.read(folder .. "/image.npy")
    mb.binary(image, "mul", {scalar = 256, out = image})
    local whole <close> = image:cast("i32")
    local raised <close> = whole:cast("f32")
    mb.binary(raised, "div", {scalar = 256, out = raised})
    local clipped <close> = mb.binary(raised, "max", {scalar = 0})
    mb.npy.write(folder .. "/clipped.npy", clipped, {overwrite = true})
    mb.binary(raised, "add", {scalar = 64, out = raised})
    mb.npy.write(folder .. "/raised.npy", raised, {overwrite = true})
end

describe("files with values below 0", function()
    setup(function()
        folder = files.folder()
        local function write(name, array, change)
            local _ <close> = array
            if change then
                change(array)
            end
            mb.npy.write(folder .. "/" .. name, array)
        end
        local function image()
            return mb.random({6, 20, 22}, {seed = 1, low = -30, high = 70})
        end
        local function psf()
            return mb.psf.gaussian({9, 13, 13}, {1.2, 1.6, 1.6})
        end
        write("image.npy", image())
        write("clipped.npy", image(), function(a) mb.binary(a, "max", {scalar = 0, out = a}) end)
        write("dark.npy", image(), function(a) mb.binary(a, "sub", {scalar = 80, out = a}) end)
        write("huge.npy", image(), function(a) mb.binary(a, "mul", {scalar = 1e33, out = a}) end)
        write("tiny.npy", image(), function(a) mb.binary(a, "mul", {scalar = 1e-39, out = a}) end)
        write("nan.npy", image(), function(a) a:view(2, 3, 4):fill(0 / 0) end)
        write("spot.npy", mb.zeros {6, 20, 22}, function(a) a:view(2, 3, 4):fill(9) end)
        write("hidden.npy", mb.ones {6, 20, 22}, function(a) a:view(2, 3, 4):fill(0) end)
        write("negative.npy", mb.ones {6, 20, 22}, function(a) a:view(2, 3, 4):fill(-1) end)
        write("psf.npy", psf())
        write("over.npy", psf(), function(a) mb.binary(a, "sub", {scalar = 5e-4, out = a}) end)
        write("rough.npy", psf(), function(a)
            local noise <close> = mb.random(a.shape, {seed = 2, low = -5e-4, high = 5e-4})
            mb.binary(a, "add", {b = noise, out = a})
        end)
        write("bad.npy", psf(), function(a) a:view(2, 3, 4):fill(0 / 0) end)
        for _, name in ipairs {"into", "tiles"} do
            assert(mb.system.mkdir(folder .. "/" .. name))
        end
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("take the bytes predicted, and give the result of their clipped values", function()
        for i, options in ipairs {"", "--tiles exact --tile 6,12,12", "--acceleration heavy_ball",
            "--tiles blended --tile 6,12,12",
            "--method gradient_consensus --iterations 4 --background 3"} do
            local told = must("--ledger scripts/deconvolve.lua -d host FOLDER/image.npy "
                .. "FOLDER/psf.npy -o FOLDER/one%d.npy %s", i, options)
            assert.matches("difference 0; 0 of", told, 1, true)
            assert.equal(assert(told:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(told:match "measured +peak [^\n]-%((%d+) bytes%)"))
            assert.equal(1, select(2, told:gsub("deconvolve: warning: 29.4 %% of the values of the "
                .. "image are below 0, and count as 0\n", "")))
            assert.is_nil(must(COMMAND .. "FOLDER/clipped.npy FOLDER/psf.npy "
                .. "-o FOLDER/other%d.npy %s", i, options):find("warning", 1, true))
            assert.is_true(same(("one%d.npy"):format(i), ("other%d.npy"):format(i)), options)
        end
    end)

    it("are refused where nothing can be made of them", function()
        for name, text in pairs {dark = "no value of the image is above 0",
            huge = "too large for float32", tiny = "too small for float32",
            nan = "1 of 2640 values of the image are not finite"} do
            fails(1, text, "no.tif", COMMAND .. "FOLDER/%s.npy FOLDER/psf.npy -o FOLDER/no.tif",
                name)
        end
        fails(1, "values of the image", "no.tif", COMMAND .. "FOLDER/nan.npy FOLDER/psf.npy "
            .. "-o FOLDER/no.tif --tiles exact --tile 6,12,12 --discard")
        fails(1, "the result is 0 everywhere, and the image is not", "no.tif", COMMAND
            .. "FOLDER/spot.npy FOLDER/psf.npy -o FOLDER/no.tif --mask FOLDER/hidden.npy")
        fails(1, "or is the background above it?", "no.tif", COMMAND
            .. "FOLDER/spot.npy FOLDER/psf.npy -o FOLDER/no.tif --background 400000")
        fails(2, "1 of 2640 values of --mask", "no.tif", COMMAND
            .. "FOLDER/spot.npy FOLDER/psf.npy -o FOLDER/no.tif --mask FOLDER/negative.npy")
        fails(1, "--total-variation is 0.3, and from 0.211 on", "no.tif", COMMAND .. "FOLDER/clipped.npy "
            .. "FOLDER/psf.npy -o FOLDER/no.tif --total-variation 0.3")
    end)

    it("are said, not warned about, where an offset is subtracted; too large a one is refused",
        function()
            write_raised()
            local told = must("scripts/deconvolve.lua -d host FOLDER/raised.npy FOLDER/psf.npy "
                .. "-o FOLDER/offset.npy --offset 64")
            assert.matches("clipped +29.4 %% of the values of the image are below 0", told)
            assert.is_nil(told:find("warning", 1, true))
            must(COMMAND .. "FOLDER/clipped.npy FOLDER/psf.npy -o FOLDER/known.npy")
            assert.is_true(same("offset.npy", "known.npy"))
            -- A negative offset adds.
            must(COMMAND .. "FOLDER/image.npy FOLDER/psf.npy -o FOLDER/added.npy --offset -9 "
                .. "--background 4")
            for _, method in ipairs {"rl", "gradient_consensus"} do
                fails(1, "no value of the image is above 0", "no.tif", COMMAND
                    .. "FOLDER/raised.npy FOLDER/psf.npy -o FOLDER/no.tif --offset 1000 -m %s",
                    method)
            end
        end)

    it("stay where an offset is subtracted for methods that take them as they are", function()
        write_raised()
        local raised <close> = mb.images.read(folder .. "/raised.npy")
        mb.binary(raised, "sub", {scalar = 64, out = raised})
        mb.npy.write(folder .. "/lowered.npy", raised, {overwrite = true})
        for _, method in ipairs {"landweber --iterations 3", "wiener", "tikhonov"} do
            must(COMMAND .. "--overwrite FOLDER/raised.npy FOLDER/psf.npy -o FOLDER/one.npy "
                .. "--offset 64 -m " .. method)
            must(COMMAND .. "--overwrite FOLDER/lowered.npy FOLDER/psf.npy -o FOLDER/two.npy -m "
                .. method)
            must(COMMAND .. "--overwrite FOLDER/clipped.npy FOLDER/psf.npy -o FOLDER/three.npy -m "
                .. method)
            assert.is_true(same("one.npy", "two.npy"), method)
            assert.is_false(same("one.npy", "three.npy"), method)
        end
    end)

    it("of a PSF are told, added again, or refused", function()
        assert.matches("^deconvolve: warning: values of the PSF below 0, [%d.]+ %% of its |sum|, "
            .. "count as 0\n$", must(COMMAND
            .. "FOLDER/clipped.npy FOLDER/rough.npy -o FOLDER/rough.tif"))
        for _, method in ipairs {"rl", "landweber", "gradient_consensus"} do
            fails(1, "41.3 % of the PSF's |sum| is below 0, more than 25 %", "no.tif", COMMAND
                .. "FOLDER/clipped.npy FOLDER/over.npy -o FOLDER/no.tif --psf-background none "
                .. "--method %s", method)
        end
        fails(1, "1 of 1521 values of the PSF are not finite", "no.tif", COMMAND
            .. "FOLDER/clipped.npy FOLDER/bad.npy -o FOLDER/no.tif")
        local told = must("scripts/deconvolve.lua -d host FOLDER/clipped.npy FOLDER/over.npy "
            .. "-o FOLDER/over.tif")
        assert.matches("background %-0.000%d+, the median of the PSF's faces, is below 0", told)
        assert.is_nil(told:find("warning", 1, true))
        -- Both ways out of the message.
        must(COMMAND .. "FOLDER/clipped.npy FOLDER/over.npy -o FOLDER/level.tif "
            .. "--psf-background -0.0005")
        must(COMMAND .. "FOLDER/clipped.npy FOLDER/psf.npy -o FOLDER/true.tif")
        local right <close> = mb.images.read(folder .. "/true.tif")
        for _, name in ipairs {"over", "level"} do
            local result <close> = mb.images.read(("%s/%s.tif"):format(folder, name))
            local d <close> = mb.binary(result, "sub", {b = right})
            assert.is_true(d:norm() < 0.02 * right:norm(), name)
        end
    end)

    it("cost no other image of the run", function()
        local text, status = run(COMMAND .. "--psf FOLDER/psf.npy FOLDER/image.npy FOLDER/dark.npy "
            .. "FOLDER/nan.npy FOLDER/clipped.npy --into FOLDER/into --format npy")
        assert.equal(1, status, text)
        assert.matches("2 done, 0 skipped, 2 failed of 4", text, 1, true)
        assert.is_not_nil(mb.system.stat(folder .. "/into/clipped.npy"))
        assert.is_not_nil(mb.system.stat(folder .. "/into/image.npy"))
        assert.is_nil(mb.system.stat(folder .. "/into/dark.npy"))
        assert.is_nil(mb.system.stat(folder .. "/into/nan.npy"))
    end)

    it("of 0 everywhere give 0, and no advice about iterations", function()
        local black <close> = mb.zeros {6, 20, 22}
        mb.npy.write(folder .. "/black.npy", black)
        for _, more in ipairs {"-m gradient_consensus", "-m gradient_consensus --background 3",
            "--background 3", "--background 3 --tiles blended --tile 6,12,12"} do
            local told = must("scripts/deconvolve.lua -d host FOLDER/black.npy FOLDER/psf.npy "
                .. "-o FOLDER/black-out.npy --overwrite %s", more)
            assert.is_nil(told:find("\nended", 1, true))
            assert.is_nil(told:find("warning", 1, true))
            assert.equal(assert(told:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(told:match "measured +peak [^\n]-%((%d+) bytes%)"))
            local got <close> = mb.npy.read(folder .. "/black-out.npy")
            assert.equal(0, got:max())
        end
    end)

    it("have a background only where the noise is that of photons", function()
        for _, method in ipairs {"landweber", "wiener", "tikhonov"} do
            fails(2, "--background is not for --method " .. method, "no.tif", COMMAND
                .. "FOLDER/clipped.npy FOLDER/psf.npy -o FOLDER/no.tif --background 3 -m %s",
                method)
        end
    end)
end)
