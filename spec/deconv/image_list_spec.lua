-- Several images in one run of deconvolve: one plan, one transfer function, a summary; and the log
-- beside a result.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local folder

local run, must = helper.programs_in(function() return folder end)

local function fails(status_wanted, pattern, format, ...)
    local text, status = run(format, ...)
    assert.equal(status_wanted, status, text)
    assert.matches(pattern, text, 1, true)
    return text
end

local COMMAND <const> = "scripts/deconvolve.lua -d host --iterations 3 --psf FOLDER/psf.npy "
local IMAGES <const> = "FOLDER/a.tif FOLDER/b.ome.tif FOLDER/c.npy "

describe("several images", function()
    setup(function()
        folder = files.folder()
        for i, name in ipairs {"a.tif", "b.ome.tif", "c.npy"} do
            local image <close> = mb.random({6, 20, 22}, {seed = i, dtype = "u16", high = 900})
            mb.images.write(folder .. "/" .. name, image, {spacing = 0.1 * i, unit = "micron"})
        end
        local psf <close> = mb.psf_gaussian({5, 7, 7}, {1, 1.5, 1.5})
        mb.npy.write(folder .. "/psf.npy", psf)
        local wide <close> = mb.ones {6, 20, 24}
        mb.npy.write(folder .. "/wide.npy", wide)
        files.write(folder .. "/bad.tif", "no TIFF file")
        for _, name in ipairs {"into1", "into2", "into3", "into4", "into5", "into6", "tiles1",
            "tiles2", "tiles3", "whole", "go", "seen", "noise", "axes"} do
            assert(mb.system.mkdir(folder .. "/" .. name))
        end
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("share a transfer function, with the bits of runs for one and the bytes predicted", function()
        -- The spacing of b is not that of a: their voxels differ, which the run says.
        fails(1, "its step is 200 nm; that of the first image is 100 nm", COMMAND
            .. IMAGES .. "--into FOLDER/into1")
        local image <close> = mb.images.read(folder .. "/b.ome.tif")
        mb.tiff.write(folder .. "/b.ome.tif", image, {spacing = 0.1, unit = "micron",
            overwrite = true})
        for i, method in ipairs {"rl", "landweber", "gradient_consensus", "wiener"} do
            local own = COMMAND:gsub("%-%-iterations 3", method == "wiener" and "" or "%0")
            local text = must("--ledger " .. own .. IMAGES .. "-m %s --into FOLDER/into%d", method,
                i + 1)
            assert.matches("difference 0; 0 of", text, 1, true)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            assert.equal(method == "wiener" and 3 or 1, select(2, text:gsub("\n%d+ +otf ", "")))
            assert.matches("images     3 done, 0 skipped, 0 failed of 3", text, 1, true)
            for output, name in pairs {a = "a.tif", b = "b.ome.tif", c = "c.npy"} do
                must(own .. "FOLDER/%s -o FOLDER/one.npy --overwrite -m %s", name, method)
                local want <close> = mb.npy.read(folder .. "/one.npy")
                local got <close>, meta = mb.images.read(("%s/into%d/%s.tif"):format(folder, i + 1,
                    output))
                helper.assert_close(want, got, 0)
                assert.equal(output ~= "c" and 1e-7 or nil, meta.voxel.step
                    and math.floor(meta.voxel.step * 1e10 + 0.5) / 1e10)
            end
        end
    end)

    it("that fail cost no other, and --skip-done goes on with the rest", function()
        local all = COMMAND .. "FOLDER/bad.tif FOLDER/a.tif FOLDER/wide.npy FOLDER/none.tif "
            .. "FOLDER/c.npy --into FOLDER/into6 --format zarr "
        local text = fails(1, "images     2 done, 0 skipped, 3 failed of 5", all .. "--write-log")
        for _, line in ipairs {"failed [^\n]*bad.tif %-> [^\n]*bad.zarr: [^\n]*not a TIFF file",
            "failed [^\n]*wide.npy [^\n]*it is 6 x 20 x 24 f32; the first image is 6 x 20 x 22 u16",
            "failed [^\n]*none.tif [^\n]*cannot open", "done [^\n]*a.tif", "done [^\n]*c.npy"} do
            assert.matches(line, text)
        end
        assert.same({"a.zarr", "a.zarr.log", "c.zarr", "c.zarr.log"},
            files.list(folder .. "/into6"))
        text = must(COMMAND .. "FOLDER/a.tif FOLDER/b.ome.tif FOLDER/c.npy --into FOLDER/into6 "
            .. "--format zarr --skip-done")
        assert.matches("images     1 done, 2 skipped, 0 failed of 3", text, 1, true)
        text = must(COMMAND .. "FOLDER/a.tif FOLDER/c.npy --into FOLDER/into6 --format zarr "
            .. "--skip-done")
        assert.matches("images     0 done, 2 skipped, 0 failed of 2", text, 1, true)
        assert.matches("images     0 done, 0 skipped, 1 failed of 1", fails(1, "not a TIFF file",
            COMMAND .. "FOLDER/bad.tif --into FOLDER/into1"), 1, true)
    end)

    it("in tiles have the bits of runs for one, with one plan and the bytes predicted", function()
        for i, more in ipairs {"--tiles exact --tile 3,8,9", "--tiles blended --tile 3,12,12",
            "--budget 100K"} do
            local text = must("--ledger " .. COMMAND .. IMAGES .. "--into FOLDER/tiles%d " .. more, i)
            assert.matches("images     3 done, 0 skipped, 0 failed of 3", text, 1, true)
            assert.matches("difference 0; 0 of", text, 1, true)
            assert.equal(1, select(2, text:gsub("\ntiles  ", "")))
            -- Reading the .npy takes other memory than reading the .tif: it has a plan of its own.
            local made = select(2, text:gsub("\n%d+ +otf ", ""))
            assert.is_true(i == 2 or made == 2, made)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            for output, name in pairs {a = "a.tif", b = "b.ome.tif", c = "c.npy"} do
                must(COMMAND .. "FOLDER/%s -o FOLDER/one.npy --overwrite " .. more, name)
                local want <close> = mb.npy.read(folder .. "/one.npy")
                local got <close> = mb.images.read(("%s/tiles%d/%s.tif"):format(folder, i, output))
                helper.assert_close(want, got, 0)
            end
        end
    end)

    it("in tiles go on after an interruption: each has a journal of its own", function()
        local command = COMMAND .. IMAGES .. "--tiles exact --tile 3,8,9 --place file --into "
        must(command .. "FOLDER/whole")
        local text, status = run("-e 'require \"moonbeam\".debug.fail_step(500)' " .. command
            .. "FOLDER/go")
        assert.is_true(status == 137 or status == 9, text)
        assert.truthy(core.system.stat(folder .. "/go/a.tif"))
        assert.truthy(core.system.stat(folder .. "/go/b.tif.unfinished/journal"))
        fails(1, "2 done, 0 skipped, 1 failed", command .. "FOLDER/go --overwrite")
        os.remove(folder .. "/go/c.tif")
        text = must(command .. "FOLDER/go --resume")
        assert.matches("b.tif.unfinished' has %d of 3 iterations already", text)
        assert.matches("images     2 done, 1 skipped, 0 failed of 3", text, 1, true)
        assert.same({"a.tif", "b.tif", "c.tif"}, files.list(folder .. "/go"))
        for _, name in ipairs {"a", "b", "c"} do
            local want <close> = mb.images.read(("%s/whole/%s.tif"):format(folder, name))
            local got <close> = mb.images.read(("%s/go/%s.tif"):format(folder, name))
            helper.assert_close(want, got, 0)
        end
    end)

    it("fail where they have other axes than the PSF, also the first, and cost no other", function()
        local flat <close> = mb.ones({20, 22}, {dtype = "u16"})
        mb.npy.write(folder .. "/plane.npy", flat)
        local text = fails(1, "images     1 done, 0 skipped, 1 failed of 2", COMMAND
            .. "FOLDER/plane.npy FOLDER/a.tif --into FOLDER/axes")
        assert.matches("failed [^\n]*plane.tif: it has 2 axes, the PSF has 3\n", text)
        fails(1, "images     0 done, 1 skipped, 1 failed of 2", COMMAND
            .. "FOLDER/plane.npy FOLDER/a.tif --into FOLDER/axes --skip-done")
    end)

    it("have a preview each, named after it, beside the memory that is predicted", function()
        local command = COMMAND .. IMAGES .. "--into FOLDER/seen --preview FOLDER/seen "
            .. "--preview-image FOLDER/seen "
        for _, more in ipairs {"", "--tiles exact --tile 3,8,9 --overwrite"} do
            local text = must("--ledger " .. command .. more)
            assert.matches("difference 0; 0 of", text, 1, true)
            assert.equal(text:match "memory +peak [^\n]-%((%d+) bytes%)",
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            for output, name in pairs {a = "a.tif", b = "b.ome.tif", c = "c.npy"} do
                assert.truthy(files.read(("%s/seen/%s.png"):format(folder, output)):find(
                    name .. ", maximum projections XY, ZY, XZ, ", 1, true))
                assert.truthy(files.read(("%s/seen/%s-image.png"):format(folder, output)):find(
                    "not deconvolved", 1, true))
            end
        end
        os.remove(folder .. "/seen/a.tif")
        fails(1, "--preview " .. folder .. "/seen/a.png already exists", command)
    end)

    it("have the gain and offset of their own noise, and one without costs no other", function()
        local truth <close> = mb.phantom.spheres({10, 58, 58}, {count = 12, background = 2,
            margin = 4})
        local psf <close> = mb.npy.read(folder .. "/psf.npy")
        local blurred <close> = mb.convolution(truth, psf, {boundary = "replicate"})
        local few <close> = blurred * 0.3
        local flat <close> = mb.full({10, 58, 58}, 50, {dtype = "u16"})
        mb.tiff.write(folder .. "/flat.tif", flat)
        for name, camera in pairs {g2 = {2, 100}, g4 = {4, 300}} do
            local photons <close> = mb.poisson(few, {seed = 3})
            local image <close> = mb.convert(photons, "u16", {scale = camera[1],
                offset = camera[2]})
            mb.tiff.write(("%s/%s.tif"):format(folder, name), image)
        end
        local command = COMMAND:gsub("3 ", "auto ", 1) .. "--write-log --overwrite --gain auto "
            .. "--offset auto "
        local text = fails(1, "images     2 done, 0 skipped, 1 failed of 3", command
            .. "FOLDER/flat.tif FOLDER/g2.tif FOLDER/g4.tif --into FOLDER/noise")
        assert.matches("failed [^\n]*flat.tif: the noise of [^\n]*flat.tif does not tell its gain "
            .. "and offset: [^\n]*; give %-%-gain and %-%-offset\n", text)
        assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
            assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
        for name, camera in pairs {g2 = {2, 100}, g4 = {4, 300}} do
            local log = files.read(("%s/noise/%s.tif.log"):format(folder, name))
            assert.near(camera[1], tonumber(log:match "option +gain = (%S+)"), 0.2 * camera[1])
            assert.near(camera[2], tonumber(log:match "option +offset = (%S+)"), 3)
            -- What is said of all images and of this one, not of the others.
            local messages = log:match "\nmessages:\n(.*)$"
            assert.equal(1, select(2, messages:gsub("\nnoise ", "")), messages)
            assert.matches("\nPSF .*\nimage +[^\n]*/" .. name .. ".tif\n.*\nmeasured ", messages)
            must(command .. "FOLDER/%s.tif -o FOLDER/one.npy", name)
            local want <close> = mb.npy.read(folder .. "/one.npy")
            local got <close> = mb.images.read(("%s/noise/%s.tif"):format(folder, name))
            helper.assert_close(want, got, 0)
        end
    end)

    it("are refused where the words do not go together", function()
        fails(2, "several images need --into FOLDER", COMMAND .. IMAGES .. "-o FOLDER/x.tif")
        fails(2, "--into: there is no folder", COMMAND .. IMAGES .. "--into FOLDER/nothing")
        fails(2, "give one of them", COMMAND .. IMAGES .. "--into FOLDER/into1 -o FOLDER/x.tif")
        fails(2, "would have the same result", COMMAND .. "FOLDER/a.tif FOLDER/a.npy --into "
            .. "FOLDER/into1")
        fails(2, "--skip-done is for --into", COMMAND .. "FOLDER/a.tif -o FOLDER/x.tif --skip-done")
        fails(2, "--preview of several images (--into): there is no folder", COMMAND .. IMAGES
            .. "--into FOLDER/into1 --preview FOLDER/x.png")
        fails(2, "--curve is for one image", COMMAND .. IMAGES
            .. "--into FOLDER/into1 --curve FOLDER/x.png")
        fails(1, "already exists; --skip-done leaves out the images that have a result, or "
            .. "--overwrite replaces it", COMMAND .. IMAGES .. "--into FOLDER/into2")
        fails(2, "cannot name a result after the pattern", COMMAND
            .. "'FOLDER/*.tif' --into FOLDER/into1")
    end)

    it("and one: tiles without effect are a warning; a picture of an image of two axes", function()
        local text = must("scripts/deconvolve.lua FOLDER/a.tif FOLDER/psf.npy -o FOLDER/w.npy -d host "
            .. "--iterations 1 --tile 3,8,9")
        assert.matches("warning: --tile is for tiles, and the whole image is worked on at once; "
            .. "--tiles exact cuts it", text, 1, true)
        local flat <close> = mb.random({20, 22}, {seed = 5, high = 9})
        local psf <close> = mb.psf_gaussian({7, 7}, 1.5)
        mb.npy.write(folder .. "/flat.npy", flat)
        mb.npy.write(folder .. "/psf2.npy", psf)
        must("scripts/deconvolve.lua FOLDER/flat.npy FOLDER/psf2.npy -o FOLDER/f.npy -d host "
            .. "--iterations 2 -p FOLDER/f.png --preview-image FOLDER/fi.png")
        assert.truthy(files.read(folder .. "/f.png"):find("flat.npy, the image: method rl, 2 "
            .. "iterations, PSF psf2.npy; black", 1, true))
    end)

    it("and one: the log says what ran, and where the result stands", function()
        must("scripts/deconvolve.lua FOLDER/a.tif FOLDER/psf.npy -o FOLDER/l.h5 -d host "
            .. "--iterations 2 --write-log --pixel 90 -q")
        local text = files.read(folder .. "/l.h5.log")
        local bytes = assert(text:match "measured bytes = (%d+)")
        assert.equal(bytes, text:match "predicted bytes = (%d+)")
        for _, line in ipairs {"^moonbeam +[%d.]+, deconvolution\n", "\ndate +%d+%-%d+%-%d+T",
            "\ncommand +[^\n]*%-%-iterations 2", "\ninput +[^\n]*a.tif, %d+ bytes, modified ",
            "\nversion +moonbeam = " .. core.version:gsub("%p", "%%%0"), "\nversion +hdf5 = ",
            "\noption +iterations = 2\n", "\noption +pixel_nm = 90\n",
            "\noption +psf_shape = 5, 7, 7\n"} do
            assert.matches(line, text)
        end
        must("scripts/deconvolve.lua FOLDER/a.tif FOLDER/psf.npy -o FOLDER/m.tif -d host "
            .. "--iterations 2 --write-log")
        text = files.read(folder .. "/m.tif.log")
        assert.matches("\nmessages:\n.*\nimage +6 x 20 x 22.*\nresult .*\nmeasured +peak ", text)
        fails(1, "--write-log " .. folder .. "/n.tif.log already exists", "scripts/deconvolve.lua "
            .. "FOLDER/a.tif FOLDER/psf.npy -o FOLDER/n.tif -d host --write-log%s",
            (files.write(folder .. "/n.tif.log", "mine") or ""))
        assert.equal("mine", files.read(folder .. "/n.tif.log"))
        assert.is_nil(core.system.stat(folder .. "/n.tif"))
    end)
end)
