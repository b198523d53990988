-- psf: models of point spread functions in files that deconvolve reads.
local mb = require "moonbeam"
local files = require "spec.support.files"
local helper = require "spec.helper"

local folder

local run, must = helper.programs_in(function() return folder end)

local OPTICS <const> = " --na 1.2 --index 1.33 --wavelength 520 --pixel 80 --step 200 -d host "
local SIZE <const> = "--size 9,13,15 "

describe("psf.lua", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("writes what the library makes, with its voxels and how it was made", function()
        local want <close> = mb.psf.confocal({9, 13, 15}, {na = 1.2, index = 1.33,
            wavelength = 520, excitation = 488, pinhole = 0.8, pixel = 80, step = 200})
        for _, name in ipairs {"c.tif", "c.ome.tif", "c.h5", "c.zarr", "c.npy"} do
            local text = must("scripts/psf.lua -o FOLDER/%s --model confocal --excitation 488 "
                .. "--pinhole 0.8 %s%s", name, SIZE, OPTICS)
            assert.matches("confocal, NA 1.2, 520 nm, excited at 488 nm", text, 1, true)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            local got <close>, meta = mb.images.read(folder .. "/" .. name)
            helper.assert_close(want, got, 0)
            if name:find "tif$" then
                assert.near(80e-9, meta.voxel.pixel, 1e-12)
                assert.near(200e-9, meta.voxel.step, 1e-12)
            end
        end
        local file <close> = assert(mb.h5.open(folder .. "/c.h5"))
        local found
        for _, object in ipairs(file:walk()) do
            found = found or object.path:find "pinhole$" and object.path
        end
        local pinhole <close> = file:read(found)
        assert.near(0.8, pinhole:item(), 1e-12)
        for _, name in ipairs {"c.tif", "c.ome.tif", "c.zarr/zarr.json"} do
            local bytes = files.read(folder .. "/" .. name):gsub("%z", "")
            assert.is_true(bytes:find "excitation[^,]-488" ~= nil, name)
        end
    end)

    it("of one plane has no step but a typed one", function()
        for _, name in ipairs {"f.tif", "f.ome.tif", "f.zarr", "f.h5"} do
            for _, step in ipairs {false, 300} do
                must("scripts/psf.lua -o FOLDER/%s -n 8,7 --overwrite --na 1.2 --index 1.33 "
                    .. "--wavelength 520 --pixel 80%s -d host -q", name,
                    step and " --step " .. step or "")
                local got <close>, meta = mb.images.read(folder .. "/" .. name)
                assert.equal(56, got.elements)
                local is_h5 = name == "f.h5"
                assert.same(is_h5 and {} or {pixel = 80, step = step or nil}, {
                    pixel = meta.voxel and math.floor(meta.voxel.pixel * 1e9 + 0.5),
                    step = meta.voxel and meta.voxel.step
                        and math.floor(meta.voxel.step * 1e9 + 0.5)}, name)
            end
        end
        local text = files.read(folder .. "/f.zarr/zarr.json") -- how it was made
        assert.matches('"pixel":80,"step":300,', text, 1, true)
        must("scripts/psf.lua -o FOLDER/f.zarr -n 8,7 --overwrite --na 1.2 --index 1.33 "
            .. "--wavelength 520 --pixel 80 -d host -q")
        text = files.read(folder .. "/f.zarr/zarr.json")
        assert.matches('"pixel":80,"wavelength":520', text, 1, true)
    end)

    it("has equal ledgers, planned and run, and a picture", function()
        for _, more in ipairs {"--model richards_wolf --polarization x", "--model light_sheet "
            .. "--sheet 900", "--model gibson_lanni --depth 2000 --index-sample 1.36"} do
            local text = must("--ledger scripts/psf.lua -o FOLDER/p.h5 --overwrite %s %s%s", more,
                SIZE, OPTICS)
            assert.matches("difference 0; 0 of", text, 1, true)
            must("scripts/psf.lua -o FOLDER/p.h5 --overwrite --preview FOLDER/p.png %s %s%s", more,
                SIZE, OPTICS)
        end
        local planned = must("scripts/psf.lua --plan %s%s", SIZE, OPTICS)
        assert.is_nil(planned:find("measured", 1, true))
        assert.matches("PNG", files.read(folder .. "/p.png"):sub(1, 8), 1, true)
    end)

    it("says the widths: sinc and Airy for a small aperture", function()
        local text = must("scripts/psf.lua -o FOLDER/w.npy --na 0.2 --index 1 --wavelength 500 "
            .. "--pixel 50 --step 500 --size 129,5,129 -d host")
        local across, along = text:match "width +([%d.]+) um across, ([%d.]+) um along"
        assert.near(1.61634 / math.pi * 0.5 / 0.2, tonumber(across), 0.01)
        assert.near(1.39156 * 4 / math.pi * 0.5 / 0.2 ^ 2, tonumber(along), 0.2)
        assert.matches("wider than the file along", must("scripts/psf.lua -o FOLDER/n.npy --size "
            .. "3,9,9" .. OPTICS), 1, true)
    end)

    it("is what deconvolve makes by itself", function()
        local image <close> = mb.random({5, 20, 22}, {seed = 2, dtype = "u16", high = 900})
        mb.tiff.write(folder .. "/image.tif", image)
        for _, more in ipairs {"--model two_photon --excitation 920", "--model confocal "
            .. "--excitation 488 --wavelength 520", "--model light_sheet --sheet-na 0.1 "
            .. "--excitation 488 --wavelength 520", "--model richards_wolf --wavelength 520"} do
            local optics = " --na 1.1 --index 1.33 --pixel 80 --step 200 -d host --overwrite "
            must("scripts/psf.lua -o FOLDER/psf.tif --size 9,13,13 %s%s", more, optics)
            local text = must("scripts/deconvolve.lua FOLDER/image.tif FOLDER/psf.tif -o "
                .. "FOLDER/a.npy --pixel 80 --step 200 --iterations 3 --psf-background none -d "
                .. "host --overwrite")
            assert.is_nil(text:find("warning: [^\n]*psf.tif"))
            text = must("--ledger scripts/deconvolve.lua FOLDER/image.tif -o FOLDER/b.npy "
                .. "--psf-size 13 --iterations 3 %s%s", more, optics)
            assert.matches("difference 0; 0 of", text, 1, true)
            local a <close> = mb.npy.read(folder .. "/a.npy")
            local b <close> = mb.npy.read(folder .. "/b.npy")
            helper.assert_close(a, b, 4e-6)
        end
        assert.matches("psf.tif says that its step is 200 nm; that of the image is 300 nm: "
            .. "--psf-spacing", must("scripts/deconvolve.lua FOLDER/image.tif FOLDER/psf.tif "
            .. "--plan --pixel 80 --step 300 -d host"), 1, true)
    end)

    it("is never taken for light on a camera's offset, however tight it is cut", function()
        local image <close> = mb.random({5, 20, 22}, {seed = 2, dtype = "u16", high = 900})
        mb.tiff.write(folder .. "/image.tif", image, {overwrite = true})
        local told = 0
        for _, more in ipairs {"--model born_wolf --size 9,9,9 --na 0.6 --pixel 50 --step 100",
            "--model richards_wolf --size 7,31,31 --na 1.2 --pixel 50 --step 1000"} do
            for _, name in ipairs {"t.tif", "t.ome.tif", "t.h5", "t.zarr", "t.npy"} do
                must("scripts/psf.lua -o FOLDER/%s --overwrite --index 1.33 --wavelength 520 -d "
                    .. "host %s", name, more)
                local said = must("scripts/deconvolve.lua FOLDER/image.tif FOLDER/%s --plan -d "
                    .. "host", name) .. must("scripts/deconvolve.lua FOLDER/image.tif FOLDER/%s "
                    .. "--psf-crop 0.8 --plan -d host", name) .. must("scripts/convolve.lua -i "
                    .. "FOLDER/image.tif --psf FOLDER/%s --plan -d host", name)
                told = told + select(2, said:gsub("background", ""))
                assert.equal(name == "t.npy", said:find("background", 1, true) ~= nil, said)
            end
        end
        assert.is_true(told > 0) -- what .npy files cannot say
        -- The same values with an offset, in a file that says nothing of a model.
        local psf <close> = mb.images.read(folder .. "/t.h5")
        local light <close> = psf * (4000 / psf:max())
        local seen <close> = light + 100
        mb.images.write(folder .. "/seen.tif", seen)
        assert.matches("background 10%d[^\n]* subtracted", must("scripts/deconvolve.lua "
            .. "FOLDER/image.tif FOLDER/seen.tif --plan -d host"))
        assert.matches("background 7", must("scripts/deconvolve.lua FOLDER/image.tif FOLDER/t.h5 "
            .. "--psf-background 7 --plan -d host"), 1, true)
    end)

    it("refuses in one line, with the remedy", function()
        for arguments, pattern in pairs {
            [""] = "--output, --na, --wavelength, --pixel and --step are missing",
            ["-o FOLDER/x.tif --model two_photon"] =
                "--na, --pixel, --step and --excitation are missing",
            ["-o FOLDER/x.tif --pinhole 1" .. OPTICS] = "--pinhole is for --model confocal",
            ["-o FOLDER/x.png" .. OPTICS] = "must end in",
            ["-o FOLDER/x.tif --model confocal --excitation 488,561" .. OPTICS] =
                "a file has one PSF",
            ["-o FOLDER/x.tif --model light_sheet" .. OPTICS] =
                "give --sheet, or --sheet-na with --excitation",
            ["-o FOLDER/x.tif --na 1.4 --index 1.33 --wavelength 5 --pixel 1 --step 1"] =
                "--na 1.4 must not be above the refractive index 1.33",
            ["-o FOLDER/x.tif --model born_wolf --na 1.4 --index 1.33 --wavelength 5 --pixel 1 "
                .. "--step 1"] = "--na 1.4 must lie below the refractive index 1.33",
            ["-o FOLDER/x.tif --model richards_wolf --na 1.4 --index 1.33 --wavelength 5 --pixel 1 "
                .. "--step 1"] = "na 1.4 must not be above the refractive index 1.33",
            ["-o FOLDER/x.tif --model confocl" .. OPTICS] = "did you mean confocal",
        } do
            local text, status = run("scripts/psf.lua %s", arguments)
            assert.is_true(status == 1 or status == 2, text)
            assert.matches(pattern, text, 1, true)
            assert.equal(1, select(2, text:gsub("psf: ", "")), text)
        end
    end)
end)

describe("deconvolve.lua with a wavelength for each channel", function()
    local optics = " --na 0.8 --index 1.33 --pixel 100 --step 300 --psf-size 15 --iterations 3 "
        .. "-d host --overwrite "

    setup(function()
        folder = files.folder()
        local out <close> = mb.tiff.create(folder .. "/two.tif", {shape = {6, 24, 26},
            dtype = "u16", channels = 2, frames = 2})
        for channel = 1, 2 do
            for frame = 1, 2 do
                local a <close> = mb.random({6, 24, 26}, {seed = channel + 2 * frame,
                    dtype = "u16", high = 900})
                out:volume(channel, frame):write({0, 0, 0}, a)
            end
        end
        out:finish()
    end)

    teardown(function()
        files.remove(folder)
    end)

    local function volume(name, channel, frame)
        local opened <close> = mb.images.open(folder .. "/" .. name,
            {channel = channel, frame = frame})
        return mb.volumes.load(opened, "host")
    end

    it("deconvolves each with its own PSF: the bits of runs for one channel", function()
        for _, more in ipairs {"", "-m landweber", "-m wiener", "-m gradient_consensus",
            "--boundary reflect"} do
            local method = more:match "%-m (%w+)"
            local own = optics:gsub("%-%-iterations 3", method == "wiener" and "" or "%0")
            local text = must("--ledger scripts/deconvolve.lua FOLDER/two.tif -o FOLDER/out.tif "
                .. "--wavelength 520,640 %s%s", own, more)
            assert.matches("channel 2: born_wolf, NA 0.8, 640 nm", text, 1, true)
            assert.matches("difference 0; 0 of", text, 1, true)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            -- One transfer function for each PSF, not for each of the four volumes.
            assert.equal(method == "wiener" and 4 or 2, select(2, text:gsub("\n%d+ +otf ", "")))
            for channel, wavelength in ipairs {520, 640} do
                for frame = 1, 2 do
                    must("scripts/deconvolve.lua FOLDER/two.tif -o FOLDER/one.npy --wavelength %d "
                        .. "--channel %d --frame %d %s%s", wavelength, channel, frame, own, more)
                    local want <close> = mb.npy.read(folder .. "/one.npy")
                    local got <close> = volume("out.tif", channel, frame)
                    helper.assert_close(want, got, 0)
                end
            end
        end
    end)

    it("in tiles too, and with --channel", function()
        must("scripts/deconvolve.lua FOLDER/two.tif -o FOLDER/out.tif --wavelength 520,640 %s",
            optics)
        local text = must("scripts/deconvolve.lua FOLDER/two.tif -o FOLDER/tiled.tif --wavelength "
            .. "520,640 --tiles exact --tile 6,12,26 %s", optics)
        assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
            assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
        must("scripts/deconvolve.lua FOLDER/two.tif -o FOLDER/one.npy --wavelength 520,640 "
            .. "--channel 2 --frame 1 %s", optics)
        local want <close> = volume("out.tif", 2, 1)
        local tiled <close> = volume("tiled.tif", 2, 1)
        helper.assert_close(want, tiled, 1e-4)
        local one <close> = mb.npy.read(folder .. "/one.npy")
        helper.assert_close(want, one, 0)
        local other <close> = volume("out.tif", 1, 1)
        assert.is_true(mb.metrics.rmse(want, other) > 1)
    end)

    it("takes the wavelengths that OME-XML says, and compares what is typed with them", function()
        local text = '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="I:0">'
            .. '<Pixels ID="P:0" DimensionOrder="XYCZT" Type="uint16" SizeX="26" SizeY="24" '
            .. 'SizeC="2" SizeZ="6" SizeT="1" PhysicalSizeX="0.1" PhysicalSizeZ="0.3">'
            .. '<Channel ID="C:0" EmissionWavelength="520" ExcitationWavelength="488"/>'
            .. '<Channel ID="C:1" EmissionWavelength="0.64" EmissionWavelengthUnit="\u{b5}m" '
            .. 'ExcitationWavelength="561"/><TiffData/></Pixels></Image></OME>'
        do
            local out <close> = mb.tiff.create(folder .. "/light.ome.tif", {shape = {6, 24, 26},
                dtype = "u16", channels = 2, meta = {kind = "ome", text = text, order = "CZT"}})
            for channel = 1, 2 do
                local a <close> = volume("two.tif", channel, 1)
                out:volume(channel, 1):write({0, 0, 0}, a)
            end
            out:finish()
        end
        local command = "scripts/deconvolve.lua FOLDER/light.ome.tif -o FOLDER/l%d.tif --na 0.8 "
            .. "--index 1.33 --psf-size 15 --iterations 3 -d host --overwrite --model confocal "
        local said = must(command, 1)
        assert.matches("light      excitation 488, 561 nm; wavelength 520, 640 nm: ", said, 1, true)
        assert.matches("channel 2: confocal, NA 0.8, 640 nm, excited at 561 nm", said, 1, true)
        assert.is_nil(must(command .. "--wavelength 520,640 --excitation 488,561", 2):find
            "warning: --wave")
        for channel = 1, 2 do
            local want <close> = volume("l2.tif", channel, 1)
            local got <close> = volume("l1.tif", channel, 1)
            helper.assert_close(want, got, 0)
        end
        assert.matches("--wavelength of channel 2 is 520 nm, but the image says 640 nm: the typed "
            .. "one is taken", must(command .. "--wavelength 520", 3), 1, true)
    end)

    it("refuses as many wavelengths as there are no channels, and boxes that differ", function()
        local text, status = run("scripts/deconvolve.lua FOLDER/two.tif -o FOLDER/out.tif "
            .. "--wavelength 520,600,640 %s", optics)
        assert.equal(2, status)
        assert.matches("--wavelength has 3 wavelengths, and there are 2 channels: give one, or one "
            .. "for each channel", text, 1, true)
        text, status = run("scripts/deconvolve.lua FOLDER/two.tif -o FOLDER/out.tif "
            .. "--wavelength 520,640 --psf-crop 0.9 %s", optics)
        assert.equal(2, status)
        assert.matches("deconvolve the channels one by one (--channel)", text, 1, true)
    end)
end)
