-- Results as TIFF stacks: the same protocol as HDF5 results, texts that have room, interrupted
-- runs.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local head = require "moonbeam.tiff.head"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local SHAPE = {5, 20, 30}

describe("a result as a TIFF stack", function()
    local folder, path, values

    before_each(function()
        folder = files.folder()
        path = folder .. "/volume.tif"
        values = mb.random(SHAPE, {seed = 7, device = "host"})
    end)
    after_each(function()
        values:release()
        files.remove(folder)
    end)

    local function create(options)
        options = options or {}
        options.shape = SHAPE
        return mb.result.create(path, options)
    end

    -- Writes all slices, the first of them alone, the others by a carrier.
    local function fill(result)
        local first <close> = values:view(1)
        result:write(first, 1)
        local carrier = core.carrier.open {device = "host", writing = true, threads = 2,
            pinned = "1Mi"}
        for _, z in ipairs {4, 2} do
            local two <close> = values:view {z, z + 1}
            result:carry(carrier, two, z)
            carrier:wait()
        end
        carrier:finish()
        carrier:close()
    end

    -- What tifffile reads: a line of facts, and the sum of all values in another.
    local function by_tifffile(code)
        oracle.needs "tifffile"
        files.write(folder .. "/t.py", ("import tifffile, numpy, json\nt = tifffile.TiffFile(%q)\n")
            :format(path) .. code)
        local text, ok = files.run(("%s %s/t.py"):format(
            os.getenv "MOONBEAM_ORACLES" or "build/oracles/bin/python", folder))
        assert(ok, text)
        return text
    end

    it("has the slices, and ImageJ's metadata", function()
        local result <close> = create {pixel_size = 1.25e-6, slice_distance = 2e-6}
        fill(result)
        result:finish()
        assert.same({"volume.tif"}, files.list(folder))
        local read <close>, meta = mb.tiff.read(path, {device = "host"})
        assert.equal(values:to_string(), read:to_string())
        assert.equal("imagej", meta.kind)
        assert.equal(5, meta.slices)
        assert.equal("micron", meta.unit)
        assert.equal(2, meta.spacing)
        local x = meta.resolution.x
        assert.near(0.8, x[1] / x[2], 1e-6)
    end)

    it("says how it came about, which ImageJ shows", function()
        local result <close> = create {parameters = {filter = "hann µ"}, title = "tooth"}
        fill(result)
        result:provenance {measured = 4096, curve = {1, 2.5, 0 / 0}}
        result:finish()
        local text = by_tifffile [[
info = json.loads(t.imagej_metadata["Info"])
print(t.is_imagej, t.series[0].shape, info["title"], info["parameters"]["filter"],
    info["provenance"]["measured"], info["provenance"]["curve"], "end_time" in info)]]
        assert.equal("True (5, 20, 30) tooth hann µ 4096 [1, 2.5, None] True\n", text)
    end)

    it("has the values of slices that are not rows, and their pixels alone", function()
        local result <close> = create {pixel_size = 1.25e-6,
            axis = {name = "center.column", values = {1, 2.5, 3, 4, 5}}}
        fill(result)
        result:finish()
        local read <close>, meta = mb.tiff.read(path, {device = "host"})
        assert.equal(values:to_string(), read:to_string())
        assert.equal("micron", meta.unit)
        assert.is_nil(meta.spacing)
        local text = by_tifffile [[
j = t.imagej_metadata
own = json.loads(j["Info"])
print(j["Labels"], own["axis"], "first_row" in own)]]
        assert.equal("['center.column = 1', 'center.column = 2.5', 'center.column = 3', "
            .. "'center.column = 4', 'center.column = 5'] {'name': 'center.column', 'values': "
            .. "[1, 2.5, 3, 4, 5]} False\n", text)
    end)

    it("tells ImageJ what stored integers mean", function()
        values:release()
        values = mb.random(SHAPE, {seed = 7, device = "host", dtype = "u16", low = 0, high = 999})
        local result <close> = create {dtype = "u16", units = "1/m"}
        fill(result)
        result:scaling(0.5, -2.0)
        result:finish()
        local _, meta = mb.tiff.read(path, {device = "host"})
        assert.matches("cf=0\nc0=%-2\nc1=0.5\nvunit=1/m\n", meta.text)
        _:release()
    end)

    it("is OME-XML under such a name", function()
        path = folder .. "/volume.ome.tif"
        do
            local result <close> = create {pixel_size = 1.25e-6,
                axis = {name = "a.b", values = {"p", "q", "r", "s", "t"}}}
            fill(result)
            result:finish()
            local text = files.read(path)
            assert.matches('PhysicalSizeX="1.25"', text)
            assert.is_nil(text:find("PhysicalSizeZ", 1, true))
            os.remove(path)
        end
        local result <close> = create {pixel_size = 1.25e-6, title = "<a> & b",
            parameters = {note = "<&>"}}
        fill(result)
        result:finish()
        local text = by_tifffile [[
import xml.etree.ElementTree as tree
root = tree.fromstring(t.ome_metadata)
name = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"
pixels = root.find(name + "Image").find(name + "Pixels").attrib
value = json.loads(root.find(".//" + name + "Value").text)
print(t.is_ome, t.series[0].shape, pixels["PhysicalSizeX"], pixels["PhysicalSizeZUnit"],
    root.find(name + "Image").attrib["Name"], value["parameters"]["note"])]]
        assert.equal("True (5, 20, 30) 1.25 µm <a> & b <&>\n", text)
        local read <close>, meta = mb.tiff.read(path, {device = "host"})
        assert.equal(values:to_string(), read:to_string())
        assert.equal("ome", meta.kind)
    end)

    it("leaves out what has no room, and moves no slice", function()
        local result <close> = create()
        local place = result:skeleton()[1]
        assert.equal(5 * 20 * 30 * 4, place.bytes)
        local curve = {}
        for i = 1, 20000 do
            curve[i] = i + 0.5
        end
        result:provenance {curve = curve, kept = 77}
        fill(result)
        result:finish()
        assert.equal(values:to_string(), files.read(path):sub(place.offset + 1))
        local bytes = files.read(path):gsub("%z", "")
        assert.matches('"curve":"left out: %d+ bytes"', bytes)
        assert.matches('"kept":77', bytes)
    end)

    it("is nothing unless it is complete", function()
        local result = create()
        local one <close> = values:view(1)
        result:write(one, 1)
        assert.has_error(function() result:finish() end)
        result:close()
        assert.same({}, files.list(folder))
        local whole <close> = create()
        fill(whole)
        whole:finish()
        local ok, problem = pcall(create)
        assert.is_false(ok)
        assert.matches("already exists", tostring(problem))
        assert.equal(values:to_string(), files.read(path):sub(-values.bytes))
    end)

    it("refuses what TIFF files do not have", function()
        for options, message in pairs {
            [{dtype = "f16"}] = "cannot hold f16: give u8, u16 or f32, or an HDF5 file",
            [{deflate = 3}] = "deflate is for HDF5 files",
            [{slices_per_file = 2}] = "slices_per_file is for HDF5 files",
        } do
            local ok, problem = pcall(create, options)
            assert.is_false(ok)
            assert.matches(message, tostring(problem), 1, true)
        end
        local result <close> = create()
        local whole <close> = values:cast "u16"
        local ok, problem = pcall(result.write, result, whole, 1)
        assert.is_false(ok)
        assert.matches("the volume is f32, not u16: cast the slices", tostring(problem), 1, true)
    end)

    -- A file of many pages that takes no room on the disk.
    local function large(ome, text, layout)
        local before, data_at, page = head.compose {pages = 1100, rows = 1024, columns = 1024,
            dtype = "f32", text = text, layout = layout, info = not ome and "how" or nil}
        assert.equal(4 << 20, page)
        files.write(path, before)
        local _, ok = files.run(("truncate -s %d '%s'"):format(data_at + 1100 * page, path))
        assert(ok)
        return before
    end

    it("is BigTIFF beyond 4 GB, or has ImageJ's layout", function()
        local compose = require "moonbeam.tiff.meaning.compose"
        local volume = {shape = {1100, 1024, 1024}, dtype = "f32", title = "t"}
        assert.equal("II+\0", large(false, compose.new_imagej(volume)):sub(1, 4))
        assert.equal("True True (1100, 1024, 1024)\n",
            by_tifffile [[print(t.is_bigtiff, t.is_imagej, t.series[0].shape)]])
        assert.equal("II*\0", large(false, compose.new_imagej(volume), "imagej"):sub(1, 4))
        do
            local read <close> = mb.tiff.open(path)
            assert.same({1100, 1024, 1024}, read.shape)
        end
        assert.equal("True (1100, 1024, 1024)\n",
            by_tifffile [[print(t.is_imagej, t.series[0].shape)]])
        assert.equal("II+\0", large(true, compose.new_ome(volume, "")):sub(1, 4))
        local read <close> = mb.tiff.open(path)
        assert.same({1100, 1024, 1024}, read.shape)
        assert.equal("True (1100, 1024, 1024)\n",
            by_tifffile [[print(t.is_bigtiff, t.series[0].shape)]])
    end)

    describe("of a pipeline", function()
        local RUN = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local scan <close> = assert(mb.scan.open "FOLDER/scan.h5")
local p = mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 11.5},
    {"rescale", dtype = "uint16", percentiles = {1, 99}}}, {block = 2, quiet = true})
local before = mb.debug.steps()
STEP
local done = p:run {output = "FOLDER/volume.EXTENSION",
    resume = core.unfinished.exists "FOLDER/volume.EXTENSION"}
assert(done.complete or done.as_planned)
print(mb.debug.steps() - before)
]]

        local function run(extension, step)
            local text = RUN:gsub("FOLDER", folder):gsub("EXTENSION", extension)
                :gsub("STEP", step or "")
            local output, _, status = files.run_script(folder, text)
            return output, status
        end

        before_each(function()
            local output, ok = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 "
                .. "--angles 30 -d host -q"):format(os.getenv "MOONBEAM_BIN"
                or mb.system.program(), folder))
            assert(ok, output)
        end)

        it("has the bits of HDF5, also after a kill at any step", function()
            assert(tonumber((run "h5")))
            local expected <close> = mb.images.read(folder .. "/volume.h5", "host")
            local steps = assert(tonumber((run "tif")))
            local resumed = 0
            for n = 3, steps, math.max(2, steps // 6) do
                os.remove(path)
                files.run(("rm -rf '%s.unfinished'"):format(path))
                local _, status = run("tif", ("mb.debug.fail_step(%d)"):format(n))
                assert.is_true(status == 137 or status == 9, tostring(status))
                if core.unfinished.exists(path) or not mb.system.stat(path) then
                    resumed = resumed + (core.unfinished.exists(path) and 1 or 0)
                    local output = run "tif"
                    assert(tonumber(output), output)
                end
                core.target.scavenge(path .. ".unfinished", "")
                local read <close>, meta = mb.tiff.read(path, {device = "host"})
                helper.assert_close(expected, read, 0)
                assert.matches("c1=", meta.text)
                assert.is_nil(mb.system.stat(path .. ".unfinished"))
            end
            assert.is_true(resumed >= 1)
        end)

        it("is written by the program, with its picture", function()
            local program = os.getenv "MOONBEAM_BIN" or mb.system.program()
            local output, ok = files.run(("'%s' scripts/reconstruct.lua '%s/scan.h5' -o '%s' "
                .. "-d host -q -c 11.5 -p '%s/p.png'"):format(program, folder, path, folder))
            assert(ok, output)
            local volume <close> = mb.tiff.open(path)
            assert.same({6, 24, 24}, volume.shape)
            assert.equal("micron", volume.meta.unit)
            assert(mb.system.stat(folder .. "/p.png"))
            output, ok = files.run(("'%s' scripts/reconstruct.lua '%s/scan.h5' -o '%s/v.png' "
                .. "-d host"):format(program, folder, folder))
            assert.is_false(ok)
            assert.matches("must end in .h5, .hdf5, .hdf, .nxs, .nx, .tif, .tiff or .zarr", output,
                1,
                true)
        end)
    end)
end)
