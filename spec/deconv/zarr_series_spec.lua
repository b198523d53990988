-- Images of several channels and times as OME-Zarr: what deconvolve makes of them against its TIFF
-- result, their axes and scales, what other readers see, and what is left of a run that fails.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local python = require "spec.support.python"
local read_json = require "moonbeam.internal.json_reader"
local shards = require "moonbeam.zarr.shards"
local tables = require "moonbeam.internal.tables"

local folder
local SHAPE <const>, CHANNELS <const>, FRAMES <const> = {6, 14, 300}, 2, 3
local TEXT <const> = "ImageJ=1.54f\nimages=36\nchannels=2\nslices=6\nframes=3\nhyperstack=true\n"
    .. "spacing=0.3\nunit=um\nfinterval=2.5\n"

local function path(name)
    return folder .. "/" .. name
end

local run, must = helper.programs_in(function() return folder end)

local COMMAND <const> = "scripts/deconvolve.lua FOLDER/image.tif FOLDER/psf.npy --iterations 2 "
    .. "-d host --overwrite "

-- An image of channels and times, whose volumes differ.
local function write_image(name, options)
    local out <close> = mb.images.create(path(name), tables.merged({shape = SHAPE, dtype = "u16",
        channels = CHANNELS, frames = FRAMES}, options))
    for channel = 1, CHANNELS do
        for frame = 1, FRAMES do
            local values <close> = mb.random(SHAPE, {seed = 10 * channel + frame, dtype = "u16",
                low = 100 * channel, high = 300 * channel})
            mb.volumes.store(out:volume(channel, frame), values)
        end
    end
    out:finish()
end

-- Are all volumes of two images equal, to the bit?
local function same(one, other)
    for channel = 1, CHANNELS do
        for frame = 1, FRAMES do
            local a <close> = mb.images.open(path(one), {channel = channel, frame = frame})
            local b <close> = mb.images.open(path(other), {channel = channel, frame = frame})
            local x <close> = mb.volumes.load(a)
            local y <close> = mb.volumes.load(b)
            assert.same(SHAPE, y.shape)
            helper.assert_close(x, y, 0)
        end
    end
end

-- What zarr.json of a group says of its image.
local function ome_of(name)
    return read_json(files.read(path(name .. "/zarr.json"))).attributes.ome
end

describe("a series as OME-Zarr", function()
    local limits

    setup(function()
        folder = files.folder()
        limits = {band = shards.limits.band, shard = shards.limits.shard}
        shards.limits.band, shards.limits.shard = 2400, 40000
        local psf <close> = mb.psf_gaussian({5, 7, 7}, {1, 1.5, 1.5})
        mb.npy.write(path "psf.npy", psf)
        write_image("image.tif", {meta = {kind = "imagej", text = TEXT, spacing = 0.3, unit = "um",
            resolution = {x = {10, 1}, y = {10, 1}, unit = 1}}})
        must("%s -o FOLDER/want.tif", COMMAND)
    end)

    teardown(function()
        shards.limits.band, shards.limits.shard = limits.band, limits.shard
        files.remove(folder)
    end)

    it("has the values of the TIFF result, whole and by tiles, with the predicted bytes", function()
        for _, more in ipairs {"", "--tiles exact --tile 3,14,300",
            "--tiles blended --tile 6,14,200", "-m gradient_consensus", "--output-dtype uint16 -m landweber"} do
            local text = must("--ledger %s -o FOLDER/o.zarr %s", COMMAND, more)
            assert.matches("2 channels, 3 times", text, 1, true)
            assert.matches("difference 0; 0 of", text, 1, true)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            must("%s -o FOLDER/o.tif %s", COMMAND, more)
            same("o.tif", "o.zarr")
            assert.is_nil(core.system.stat(path "o.zarr.unfinished"))
        end
    end)

    it("says its axes, their sizes and units, and a pyramid of z, y, x", function()
        must("%s -o FOLDER/o.zarr", COMMAND)
        local image = ome_of("o.zarr").multiscales[1]
        assert.same({{name = "t", type = "time", unit = "second"}, {name = "c", type = "channel"},
            {name = "z", type = "space", unit = "micrometer"},
            {name = "y", type = "space", unit = "micrometer"},
            {name = "x", type = "space", unit = "micrometer"}}, image.axes)
        assert.equal(2, #image.datasets)
        for level, want in ipairs {{{2.5, 1, 0.3, 0.1, 0.1}, {0, 0, 0, 0, 0}},
            {{2.5, 1, 0.6, 0.2, 0.2}, {0, 0, 0.15, 0.05, 0.05}}} do
            local steps = image.datasets[level].coordinateTransformations
            for axis = 1, 5 do
                assert.near(want[1][axis], steps[1].scale[axis], 1e-12)
                assert.near(want[2][axis], steps[2].translation[axis], 1e-12)
            end
        end
        for level, shape in ipairs {{3, 2, 6, 14, 300}, {3, 2, 3, 7, 150}} do
            local facts = read_json(files.read(path(("o.zarr/%d/zarr.json"):format(level - 1))))
            assert.same(shape, facts.shape)
            assert.same({"t", "c", "z", "y", "x"}, facts.dimension_names)
            assert.same({1, 1}, {facts.chunk_grid.configuration.chunk_shape[1],
                facts.chunk_grid.configuration.chunk_shape[2]})
        end
        assert.same({"0"}, files.list(path "o.zarr/0/c/2/1")) -- one shard of one volume
        for i, channel in ipairs(ome_of("o.zarr").omero.channels) do -- what is shown of each
            assert.equal("channel " .. i, channel.label)
            assert.is_true(channel.window.start < channel.window["end"])
        end
    end)

    it("has only the axes of which there are several", function()
        for axes, counts in pairs {["t z y x"] = {1, 2}, ["c z y x"] = {2, 1},
            ["z y x"] = {1, 1}} do
            local out <close> = mb.images.create(path "axes.zarr", {shape = {2, 3, 4},
                dtype = "f32", channels = counts[1], frames = counts[2], overwrite = true})
            for number = 1, 2 do
                local values <close> = mb.full({2, 3, 4}, number)
                mb.volumes.store(out:volume(math.min(number, counts[1]),
                    math.min(number, counts[2])), values)
            end
            out:finish()
            local names = {}
            for i, axis in ipairs(ome_of("axes.zarr").multiscales[1].axes) do
                names[i] = axis.name
                assert.equal(axis.type ~= "time" and axis.type ~= "channel" and "space"
                    or axis.type, axis.type)
                assert.is_nil(axis.unit)
            end
            assert.equal(axes, table.concat(names, " "))
            for _, name in ipairs {"axes.zarr", "axes.zarr/0"} do
                local back <close> = mb.images.open(path(name))
                assert.same({counts[1], counts[2], 2}, {back.meta.channels, back.meta.frames,
                    back.meta.slices})
                assert.same({2 * counts[1] * counts[2], 3, 4}, back.shape)
                local pages <close> = mb.volumes.load(back, "host")
                assert.equal(2, pages:item(pages.shape[1], 3, 4))
                -- A block across two volumes.
                local block <close> = back:read({1, 1, 0}, {back.shape[1] - 1, 2, 3},
                    mb.device "host")
                local part <close> = pages:view({2, pages.shape[1]}, {2, 3}, {1, 3})
                helper.assert_close(part, block, 0)
                assert.is_nil(back:missing())
            end
        end
    end)

    it("is deconvolved again: all volumes, or one", function()
        must("%s -o FOLDER/o.zarr", COMMAND)
        local again = "scripts/deconvolve.lua FOLDER/o.%s FOLDER/psf.npy --iterations 2 -d host "
            .. "--overwrite -o FOLDER/%s"
        must("%s -o FOLDER/o.tif", COMMAND)
        for _, more in ipairs {"", " --tiles exact --tile 3,14,300"} do
            local text = must("--ledger " .. again .. more, "zarr", "two.zarr")
            assert.matches("2 channels, 3 times", text, 1, true)
            assert.matches("voxel +pixel 100 nm, step 300 nm: [^\n]*o.zarr", text)
            assert.equal(assert(text:match "memory +peak [^\n]-%((%d+) bytes%)"),
                assert(text:match "measured +peak [^\n]-%((%d+) bytes%)"))
            must(again .. more, "tif", "two.tif")
            same("two.tif", "two.zarr")
            must(again .. more, "zarr", "three.tif")
            same("two.tif", "three.tif")
        end
        local back <close> = mb.images.open(path "three.tif")
        assert.equal(2.5, back.meta.interval)
        assert.near(1e-7, back.meta.voxel.pixel, 1e-12)
        assert.equal(2.5, ome_of("two.zarr").multiscales[1].datasets[1]
            .coordinateTransformations[1].scale[1])
        must(again .. " --channel 2 --frame 3 --tiles exact --tile 3,14,300", "zarr", "one.npy")
        local one <close> = mb.npy.read(path "one.npy")
        local volume <close> = mb.images.open(path "two.tif", {channel = 2, frame = 3})
        local want <close> = mb.volumes.load(volume)
        helper.assert_close(want, one, 0)
        local text, status = run(again .. " --channel 3", "zarr", "none.npy")
        assert.is_true(status ~= 0)
        assert.matches("there is no channel 3: it has 2", text, 1, true)
    end)

    it("goes into a folder of results, and its picture is of the first volume", function()
        assert(mb.system.mkdir(path "into"))
        must("scripts/deconvolve.lua FOLDER/image.tif --psf FOLDER/psf.npy --iterations 2 -d host "
            .. "--into FOLDER/into --format zarr --preview FOLDER/into")
        same("want.tif", "into/image.zarr")
        assert.is_table(core.system.stat(path "into/image.png"))
    end)

    it("is refused where it exists, and is replaced with --overwrite", function()
        write_image "there.zarr"
        local before = files.read(path "there.zarr/0/c/0/0/0/0/0")
        local command = COMMAND:gsub("%-%-overwrite", "")
        local text, status = run("%s -o FOLDER/there.zarr", command)
        assert.is_true(status ~= 0)
        assert.matches("already exists; choose another name, or --overwrite", text, 1, true)
        assert.is_true(before == files.read(path "there.zarr/0/c/0/0/0/0/0"))
        must("%s -o FOLDER/there.zarr --overwrite", command)
        same("want.tif", "there.zarr")
    end)

    it("is not there after an error in the middle", function()
        local ok, message = pcall(function()
            local out <close> = mb.images.create(path "half.zarr", {shape = SHAPE, dtype = "u16",
                channels = CHANNELS, frames = FRAMES})
            local values <close> = mb.full(SHAPE, 3, {dtype = "u16"})
            mb.volumes.store(out:volume(2, 1), values)
            assert.matches("there is no channel 3 of frame 1; the image has channels 1 to 2 and "
                .. "frames 1 to 3", (helper.failure(out.volume, out, 3, 1)), 1, true)
            error("stopped here", 0)
        end)
        assert.is_false(ok)
        assert.equal("stopped here", message)
        for _, name in ipairs(files.list(folder)) do
            assert.is_nil(name:find "half")
        end
    end)

    it("is not there after a kill at any step, and is made by the next process", function()
        local SCRIPT <const> = [[
local mb = require "moonbeam"
local before = mb.debug.steps()
%s
local out = mb.images.create("%s", {shape = {3, 4, 300}, dtype = "u8", channels = 2, frames = 2})
for frame = 1, 2 do
    for channel = 1, 2 do
        local values = mb.full({3, 4, 300}, 2 * frame + channel, {dtype = "u8", device = "host"})
        mb.volumes.store(out:volume(channel, frame), values)
    end
end
out:finish()
out:close()
print(mb.debug.steps() - before)
]]
        local name = path "killed.zarr"
        local output = files.run_script(folder, SCRIPT:format("", name))
        local steps = assert(tonumber(output:match "(%d+)%s*$"), output)
        assert.is_true(steps > 4)
        for step = 1, steps do
            files.remove(name)
            local _, _, status = files.run_script(folder, SCRIPT:format(
                ("mb.debug.fail_step(%d)"):format(step), name))
            assert.is_true(status == 137 or status == 9, tostring(status))
            if core.system.stat(name) then -- it is complete
                local pages <close> = mb.images.read(name, "host")
                assert.same({12, 4, 300}, pages.shape)
                assert.equal(6, pages:item(12, 4, 300))
            else
                files.run_script(folder, SCRIPT:format("", name))
                assert.is_table(core.system.stat(name .. "/1/c/1/1/0/0/0"))
                assert.is_nil(core.system.stat(name .. ".unfinished"))
            end
        end
    end)

    it("goes on after an interruption, with the same bits", function()
        local journals = require "moonbeam.tiled_deconv.tile_journal"
        local seconds = journals.SECONDS
        journals.SECONDS = 0
        local psf <close> = mb.npy.read(path "psf.npy")
        local function deconvolve(name, stop_at)
            local journal <close> = mb.tiled_deconv.journal(path(name), {
                inputs = {path "image.tif"}, resume = core.unfinished.exists(path(name))})
            local out <close> = mb.images.create(path(name), {shape = SHAPE, dtype = "f32",
                channels = CHANNELS, frames = FRAMES, overwrite = journal:may_replace(),
                inside = journal:folder()})
            local tiles = 0
            for channel = 1, CHANNELS do
                for frame = 1, FRAMES do
                    local source <close> = mb.images.open(path "image.tif", {channel = channel,
                        frame = frame})
                    mb.tiled_deconv.richardson_lucy_volume(source, psf, out:volume(channel, frame),
                        {iterations = 2, tile = {3, 14, 300}, mode = "exact", journal = journal,
                        on_tile = function()
                        tiles = tiles + 1
                        if tiles == stop_at then
                            error("stopped here", 0)
                        end
                    end})
                end
            end
            journal:finishing()
            out:finish()
            journal:finish()
        end
        must("%s --tiles exact --tile 3,14,300 -o FOLDER/tiled.tif", COMMAND)
        for _, stop_at in ipairs {20, 100, 380} do
            local name = ("cut%d.zarr"):format(stop_at)
            local ok, problem = pcall(deconvolve, name, stop_at)
            assert.is_true(not ok and tostring(problem):find "stopped here" ~= nil,
                tostring(problem))
            assert.is_nil(core.system.stat(path(name)))
            assert.equal(stop_at > 32, core.unfinished.exists(path(name)), stop_at)
            deconvolve(name)
            same("tiled.tif", name)
            assert.is_true(#files.list(path(name .. "/0/c/2/1")) > 1) -- shards of one volume
            assert.is_nil(core.system.stat(path(name .. ".unfinished")))
        end
        journals.SECONDS = seconds
    end)

    it("has more files than a process may have open", function()
        files.write(path "long.lua", ([[
local mb = require "moonbeam"
local out <close> = mb.images.create("%s", {shape = {2, 3, 270}, dtype = "u8", channels = 2,
    frames = 40})
for frame = 1, 40 do
    for channel = 1, 2 do
        local values <close> = mb.full({2, 3, 270}, frame + channel, {dtype = "u8",
            device = "host"})
        mb.volumes.store(out:volume(channel, frame), values)
    end
end
out:finish()
]]):format(path "long.zarr"))
        local text, ok = files.run(("ulimit -n 60; '%s' '%s'"):format(os.getenv "MOONBEAM_BIN"
            or mb.system.program(), path "long.lua"))
        assert(ok, text)
        local back <close> = mb.images.open(path "long.zarr", {channel = 2, frame = 39})
        local values <close> = mb.volumes.load(back)
        assert.equal(41, values:item(2, 3, 270))
    end)
end)

describe("channels of a series as OME-Zarr", function()
    local NAMED <const> = '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/'
        .. 'OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" '
        .. 'Type="uint16" SizeX="300" SizeY="14" SizeZ="6" SizeC="2" SizeT="3" '
        .. 'TimeIncrement="500" TimeIncrementUnit="ms" PhysicalSizeX="0.1" PhysicalSizeY="0.1" '
        .. 'PhysicalSizeZ="0.3"><Channel ID="Channel:0:0" Name="DAPI &amp; co" Color="65535" '
        .. 'EmissionWavelength="460"/>'
        .. '<Channel ID="Channel:0:1" Name="GFP" Color="16711935" EmissionWavelength="510"/></Pixels></Image></OME>'

    setup(function()
        folder = files.folder()
        local psf <close> = mb.psf_gaussian({5, 7, 7}, {1, 1.5, 1.5})
        mb.npy.write(path "psf.npy", psf)
        write_image("image.tif", {meta = {kind = "ome", text = NAMED, order = "CZT"}})
        must("%s -o FOLDER/o.zarr", COMMAND)
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("have the names and colors of the image, and a window of values", function()
        local ome = ome_of "o.zarr"
        local channels = ome.omero.channels
        assert.same({"DAPI & co", "0000FF", "GFP", "00FF00"}, {channels[1].label,
            channels[1].color, channels[2].label, channels[2].color})
        for channel = 1, 2 do
            local window = channels[channel].window
            assert.is_true(window.start < window["end"] and window.min <= window.start
                and window.max >= window["end"])
        end
        assert.is_true(channels[2].window["end"] > channels[1].window["end"])
        assert.equal(0.5, ome.multiscales[1].datasets[1].coordinateTransformations[1].scale[1])
        -- And so has what is made of it.
        must("scripts/deconvolve.lua FOLDER/o.zarr FOLDER/psf.npy --iterations 2 -d host "
            .. "--output-dtype uint16 -o FOLDER/two.zarr")
        local again = ome_of("two.zarr").omero.channels
        assert.same({"DAPI & co", "0000FF", "GFP", "00FF00"}, {again[1].label, again[1].color,
            again[2].label, again[2].color})
        assert.same({460, 510}, {again[1].emissionWave, again[2].emissionWave})
        assert.matches("light +wavelength 460, 510 nm: [^\n]*two.zarr", must("scripts/deconvolve.lua "
            .. "FOLDER/two.zarr --plan --iterations 2 -d host --na 1.2 --psf-size 9"))
        assert.same({0, 65535}, {again[1].window.min, again[1].window.max})
    end)

    -- The values of channel 2, time 3.
    local function write_one()
        local volume <close> = mb.images.open(path "o.zarr", {channel = 2, frame = 3})
        local values <close> = mb.volumes.load(volume, "host")
        mb.npy.write(path "one.npy", values, {overwrite = true})
    end

    it("are what zarr-python and ome-zarr-models read", function()
        write_one()
        assert.equal("(3, 2, 6, 14, 300) (3, 2, 3, 7, 150) True True ['t', 'c', 'z', 'y', 'x'] second "
            .. "[0.5, 1.0, 0.6, 0.2, 0.2] ['0000FF', '00FF00']\n", python.prints(
            {"zarr", "ome_zarr_models"}, ([=[
import zarr, numpy as np, ome_zarr_models
g = zarr.open_group("%s/o.zarr", mode="r")
ome = ome_zarr_models.open_ome_zarr(g).attributes.ome
m = ome.multiscales[0]
a, one = g["0"][:], np.load("%s/one.npy")
p = a.reshape(3, 2, 3, 2, 7, 2, 150, 2).mean((3, 5, 7))
print(g["0"].shape, g["1"].shape, bool((a[2, 1] == one).all()),
    bool(np.abs(g["1"][:] - p).max() < 1e-3), [x.name for x in m.axes], m.axes[0].unit,
    [round(x, 9) for x in m.datasets[1].coordinateTransformations[0].scale],
    [c["color"] for c in ome.omero["channels"]])]=]):format(folder, folder)))
    end)

    it("are what napari's reader shows", function()
        write_one()
        assert.equal("image (3, 2, 6, 14, 300) True ['deconvolution: DAPI & co', 'deconvolution: GFP'] 1 [0.5, 0.3, 0.1, 0.1]\n",
            python.prints({"napari_ome_zarr"}, ([=[
import contextlib, io, numpy as np
from napari_ome_zarr import napari_get_reader
one = np.load("%s/one.npy")
with contextlib.redirect_stdout(io.StringIO()):
    found = list(napari_get_reader("%s/o.zarr")("%s/o.zarr"))
for data, facts, kind in found:
    a = np.asarray(data[0] if isinstance(data, list) else data)
    print(kind, a.shape, bool((a[2, 1] == one).all()), facts["name"], facts["channel_axis"],
        [round(float(x), 6) for x in facts["scale"]])]=]):format(folder, folder, folder)))
    end)
end)
