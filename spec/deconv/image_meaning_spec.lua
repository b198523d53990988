-- What the file of an image says, in deconvolve and convolve: planes that may be slices, aborted
-- runs, lengths that no microscope has; and OME-Zarr's scales, axes, levels and windows.

local files = require "spec.support.files"
local helper = require "spec.helper"
local json = require "moonbeam.internal.json"
local mb = require "moonbeam"
local tiff_encoder = require "spec.support.tiff_encoder"

local folder

local run, must = helper.programs_in(function() return folder end)

local function fails(status_wanted, pattern, format, ...)
    local text, status = run(format, ...)
    assert.equal(status_wanted, status, text)
    assert.matches(pattern, text)
    return text
end

local function write(name, pages, texts, extra)
    files.write(folder .. "/" .. name, tiff_encoder.encode(tiff_encoder.sample(pages, 12, 14,
        "u16"), {dtype = "u16", texts = texts, extra = extra}))
end

local DECONVOLVE <const> = "scripts/deconvolve.lua -d host --iterations 1 --overwrite "
local CONVOLVE <const> = "scripts/convolve.lua -d host --overwrite --psf FOLDER/psf.npy "
local MODEL <const> = "--na 1.2 --index 1.33 --wavelength 520 --psf-size 5 "

describe("what the file of an image says", function()
    setup(function()
        folder = files.folder()
        local psf <close> = mb.psf_gaussian({3, 5, 5}, {1, 1, 1})
        mb.npy.write(folder .. "/psf.npy", psf)
        assert(mb.system.mkdir(folder .. "/into"))
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("is planned on a device that is not here, in any order of the words", function()
        write("p.tif", 3)
        local function plan(format)
            return (must(format):gsub("\nestimate[^\n]*", ""))
        end
        local files_of = "FOLDER/p.tif FOLDER/psf.npy --iterations 2 "
        local expected = plan("--plan --device planned:h200 scripts/deconvolve.lua " .. files_of
            .. "-o FOLDER/p.npy")
        assert.matches("\npeak [^\n]+ %(%d+ bytes%), not run", expected)
        for _, words in ipairs {"--plan --device planned:h200 " .. files_of,
            "--device planned:h200 " .. files_of .. "-o FOLDER/p.npy --plan",
            files_of .. "--plan -d planned:h200"} do
            assert.equal(expected, plan("scripts/deconvolve.lua " .. words), words)
        end
        assert.is_nil(mb.system.stat(folder .. "/p.npy"))
        must("scripts/convolve.lua --plan --device planned:h200 --psf FOLDER/psf.npy "
            .. "--image FOLDER/p.tif -o FOLDER/p.npy")
        fails(2, "planned:h200 holds no data; moonbeam %-%-plan %-%-device planned:h200 deconvolve",
            "scripts/deconvolve.lua --device planned:h200 " .. files_of .. "-o FOLDER/p.npy")
    end)

    it("of planes that may be slices is asked, and the advice works", function()
        write("c.tif", 8, {"ImageJ=1.53t\nimages=8\nchannels=8\nhyperstack=true\nmode=grayscale\n"})
        local told = "c.tif has 8 channels and 1 time of one plane; where these are slices, "
            .. "%-%-axes Z says so"
        fails(2, told, DECONVOLVE .. "FOLDER/c.tif FOLDER/psf.npy -o FOLDER/o.tif")
        fails(2, told, DECONVOLVE .. MODEL .. "--pixel 100 --step 300 FOLDER/c.tif -o FOLDER/o.tif")
        fails(1, "it has 8 channels and 1 time of one plane; where these are slices, %-%-axes Z",
            DECONVOLVE .. "FOLDER/c.tif --psf FOLDER/psf.npy --into FOLDER/into")
        fails(2, "or, where they are slices, %-%-axes Z", CONVOLVE
            .. "--image FOLDER/c.tif -o FOLDER/o.tif")
        for _, command in ipairs {DECONVOLVE .. "FOLDER/c.tif FOLDER/psf.npy ",
            DECONVOLVE .. MODEL .. "--pixel 100 --step 300 FOLDER/c.tif ", CONVOLVE
            .. "--image FOLDER/c.tif "} do
            must(command .. "-o FOLDER/o.tif --axes Z")
            local out <close> = mb.images.open(folder .. "/o.tif")
            assert.same({8, 12, 14}, out.shape)
            assert.same({1, 8}, {out.meta.channels, out.meta.slices})
        end
        must(DECONVOLVE .. "FOLDER/c.tif --psf FOLDER/psf.npy --into FOLDER/into --axes Z")
        must(DECONVOLVE .. "FOLDER/c.tif FOLDER/psf.npy -o FOLDER/o.tif --pages 2:5")
        local out <close> = mb.images.open(folder .. "/o.tif")
        assert.same({4, 12, 14}, out.shape)
    end)

    it("of a run that was aborted is told in one line, and read", function()
        write("a.tif", 9, {"ImageJ=1.53t\nimages=12\nchannels=2\nslices=3\nframes=2\n"
            .. "hyperstack=true\n"})
        local text = must(DECONVOLVE .. "FOLDER/a.tif FOLDER/psf.npy -o FOLDER/o.tif")
        assert.equal(1, select(2, text:gsub("times are complete", "")))
        assert.matches("warning: [^\n]*1 of 2 times are complete", text)
        assert.matches("warning: the median of the PSF's faces", text) -- which this PSF has
        assert.equal(2, select(2, text:gsub("warning:", "")))
        fails(1, "say what the pages are with %-%-axes %(from slow to fast", DECONVOLVE
            .. "FOLDER/b.tif FOLDER/psf.npy -o FOLDER/o.tif"
            .. (write("b.tif", 5, {"ImageJ=1.53t\nimages=12\nchannels=2\nslices=3\nframes=2\n"})
            or ""))
    end)

    it("of a set takes the scratch of its most packed file for every time", function()
        local blocks = {}
        for t = 0, 2 do
            blocks[t + 1] = ('<TiffData FirstT="%d" IFD="0" PlaneCount="4"><UUID FileName="'
                .. 's%d.ome.tif">urn:uuid:%d</UUID></TiffData>'):format(t, t, t)
        end
        for t = 0, 2 do
            files.write(("%s/s%d.ome.tif"):format(folder, t), tiff_encoder.encode(
                tiff_encoder.sample(4, 12, 14, "u16"), {dtype = "u16",
                method = t == 2 and "lzw" or nil, rows = t == 1 and 5 or nil, texts = {
                ('<OME UUID="urn:uuid:%d"><Image><Pixels DimensionOrder="XYZCT" Type="uint16" '
                .. 'SizeX="14" SizeY="12" SizeZ="4" SizeC="1" SizeT="3">%s</Pixels></Image></OME>')
                :format(t, table.concat(blocks))}}))
        end
        local text = must(DECONVOLVE .. "FOLDER/s0.ome.tif FOLDER/psf.npy -v -o FOLDER/o.tif")
        local said, measured = text:match "memory[^\n]*%((%d+) bytes%)",
            text:match "measured[^\n]*%((%d+) bytes%)"
        assert.is_string(said, text)
        assert.equal(said, measured)
        local own <close> = mb.images.open(folder .. "/s0.ome.tif", {frame = 1})
        assert.is_true(own.decoding > 0)
    end)

    it("of lengths that no microscope has is an error; what is typed is taken", function()
        local function resolution(per)
            return {[282] = {5, string.pack("<I4I4", per, 1)},
                [283] = {5, string.pack("<I4I4", per, 1)}, [296] = {3, {1}}}
        end
        write("l.tif", 4, {"ImageJ=1.53t\nimages=4\nslices=4\nunit=um\nspacing=0.3\n"},
            resolution(76923))
        fails(2, "l.tif says that its pixel is 0.013 nm; .*give %-%-pixel in nm", DECONVOLVE .. MODEL
            .. "FOLDER/l.tif -o FOLDER/o.tif")
        local text = must(DECONVOLVE .. MODEL .. "FOLDER/l.tif -o FOLDER/o.tif --pixel 130")
        assert.matches("%-%-pixel is 130 nm, but", text)
        write("l.tif", 4, {"ImageJ=1.53t\nimages=4\nslices=4\nunit=mm\nspacing=0.3\n"})
        fails(2, "its step is 3e%+05 nm; .*give %-%-step in nm", DECONVOLVE .. MODEL
            .. "--pixel 100 FOLDER/l.tif -o FOLDER/o.tif")
        must(DECONVOLVE .. MODEL .. "--pixel 100 --step 300 FOLDER/l.tif -o FOLDER/o.tif")
    end)

    -- An OME-Zarr 0.4 image of one chunk for each level.
    local function zarr(name, axes, levels, more)
        local root, datasets = folder .. "/" .. name, {}
        assert(mb.system.mkdir(root))
        files.write(root .. "/.zgroup", '{"zarr_format": 2}')
        for i, level in ipairs(levels) do
            local path = ("%s/%d"):format(root, i - 1)
            assert(mb.system.mkdir(path))
            files.write(path .. "/.zarray", json({zarr_format = 2, shape = level.shape,
                chunks = level.shape, dtype = "|u1", fill_value = 0, order = "C"}, {}):gsub("}%s*$",
                ', "compressor": null, "filters": null}'))
            local count = 1
            for _, extent in ipairs(level.shape) do
                count = count * extent
            end
            files.write(path .. "/" .. ("0."):rep(#level.shape - 1) .. "0", ("\7"):rep(count))
            datasets[i] = {path = tostring(i - 1), coordinateTransformations = level.scale
                and {{type = "scale", scale = level.scale}}}
        end
        local image = {version = "0.4", axes = axes, datasets = datasets}
        for key, value in pairs(more or {}) do
            image[key] = value
        end
        files.write(root .. "/.zattrs", json({multiscales = {image}}, {}))
        return root
    end

    local function axes_of(names, unit)
        local list = {}
        for letter in names:gmatch "." do
            list[#list + 1] = {name = letter, unit = unit}
        end
        return list
    end

    it("in OME-Zarr are both scales, the finest level, and units of each axis", function()
        local one = {shape = {3, 4, 5}, scale = {1.0, 1.0, 1.0}}
        local volume <close> = mb.images.open(zarr("s.zarr", axes_of("zyx", "micrometer"), {one},
            {coordinateTransformations = {{type = "scale", scale = {0.3, 0.13, 0.13}}}}))
        assert.near(130e-9, volume.meta.voxel.pixel, 1e-15)
        assert.near(300e-9, volume.meta.voxel.step, 1e-15)
        local axes = axes_of("zyx", "nanometer")
        axes[1].unit = "micrometer"
        local turned <close> = mb.images.open(zarr("f.zarr", axes, {
            {shape = {3, 2, 3}, scale = {0.3, 260.0, 260.0}},
            {shape = {3, 4, 5}, scale = {0.3, 130.0, 130.0}}}))
        assert.same({3, 4, 5}, turned.shape)
        assert.near(130e-9, turned.meta.voxel.pixel, 1e-15)
        assert.near(300e-9, turned.meta.voxel.step, 1e-15)
        local level = {shape = {5, 3, 4}, scale = {130.0, 0.3, 140.0}}
        axes = axes_of("xzy", "nanometer")
        axes[2].unit = "micrometer"
        local mixed <close> = mb.images.open(zarr("x.zarr", axes, {
            {shape = {3, 3, 4}, scale = {260.0, 0.3, 140.0}}, level}))
        assert.same({3, 4, 5}, mixed.shape)
        assert.near(130e-9, mixed.meta.voxel.pixel, 1e-15)
        assert.near(140e-9, mixed.meta.voxel.row, 1e-15)
        assert.near(300e-9, mixed.meta.voxel.step, 1e-15)
        local message = helper.failure(mb.images.open, zarr("two.zarr", axes_of "xyx", {level}))
        assert.matches("its axes are x, y, x: two have the name 'x'", message)
    end)

    it("in OME-Zarr that is written are windows without what a few voxels are", function()
        local image <close> = mb.random({4, 30, 40}, {seed = 3, low = 10, high = 20})
        local spot <close> = image:view({2, 2}, {3, 3}, {4, 5})
        spot:fill(1e6)
        mb.images.write(folder .. "/w.zarr", image, {})
        local window = files.read(folder .. "/w.zarr/zarr.json"):match '"window":%s*(%b{})'
        local function number(name)
            return tonumber(window:match('"' .. name .. '":%s*([%-+%d.e]+)'))
        end
        assert.is_true(number "end" <= 20 and number "end" > 19, window)
        assert.is_true(number "start" >= 10 and number "start" < 11, window)
        assert.equal(1e6, number "max")
    end)

    it("in OME-Zarr that is written are windows of the finest level", function()
        local image <close> = mb.random({2, 300, 301}, {seed = 4})
        mb.images.write(folder .. "/n.zarr", image, {})
        local text = files.read(folder .. "/n.zarr/zarr.json"):match '"window":%s*(%b{})'
        assert.near(0.005, tonumber(text:match '"start":%s*([%d.e-]+)'), 0.002)
        assert.near(0.995, tonumber(text:match '"end":%s*([%d.e-]+)'), 0.002)
    end)
end)
