-- What napari's own readers from PyPI (napari-tiff, napari-ome-zarr) make of our results: shapes,
-- values, sizes of voxels, channels. Where they are not installed the specs are skipped.
local files = require "spec.support.files"
local mb = require "moonbeam"
local python = require "spec.support.python"

describe("napari's readers", function()
    local folder, values
    before_each(function()
        folder = files.folder()
        values = mb.random({5, 6, 300}, {seed = 3, device = "host"})
        mb.npy.write(folder .. "/v.npy", values)
    end)
    after_each(function()
        values:release()
        files.remove(folder)
    end)

    local function result(name)
        local path = folder .. "/" .. name
        local made <close> = mb.result.create(path, {shape = values.shape, title = "tooth",
            pixel_size = 1.5e-6, slice_distance = 2e-6})
        made:write(values, 1)
        made:finish()
        return path
    end

    -- The layers that a reader makes of a file: data as arrays, and what they say.
    local LAYERS <const> = [[
import numpy as np
path = "%s"
v = np.load("%s/v.npy")
def layers(reader):
    for data, facts, kind in reader(path):
        data = data[0] if isinstance(data, list) else data
        yield np.asarray(data), facts, kind
]]

    for _, name in ipairs {"a.tif", "a.ome.tif"} do
        it("open a TIFF stack, " .. name, function()
            assert.equal("image True [2.0, 1.5, 1.5]\n", python.prints({"napari_tiff"},
                LAYERS:format(result(name), folder) .. [=[
from napari_tiff.napari_tiff_reader import napari_get_reader
for data, facts, kind in layers(napari_get_reader(path)):
    print(kind, bool((data == v).all()), [float(x) for x in facts["scale"]])
]=]))
        end)
    end

    it("open a deconvolved stack of two channels", function()
        local path = folder .. "/two.tif"
        local out <close> = mb.images.create(path, {shape = values.shape, dtype = "f32",
            channels = 2, frames = 1, voxel = {pixel = 100e-9, step = 300e-9},
            meta = {kind = "imagej", channels = 2, slices = 5, frames = 1, spacing = 0.3,
                unit = "um", resolution = {x = {10, 1}, y = {10, 1}, unit = 1},
                text = "ImageJ=1.54f\nimages=10\nchannels=2\nslices=5\nhyperstack=true\n"
                    .. "spacing=0.3\nunit=um\n"}})
        for channel = 1, 2 do
            out:volume(channel, 1):write({0, 0, 0}, values)
        end
        out:finish()
        assert.equal("image (5, 2, 6, 300) True 1 [0.3, 0.1, 0.1]\n", python.prints({"napari_tiff"},
            LAYERS:format(path, folder) .. [=[
from napari_tiff.napari_tiff_reader import napari_get_reader
for data, facts, kind in layers(napari_get_reader(path)):
    print(kind, data.shape, bool((data[:, 1] == v).all()), facts["channel_axis"],
        [round(float(x), 6) for x in facts["scale"]])
]=]))
    end)

    it("open a deconvolved OME-Zarr, each channel by its name, in its limits", function()
        local path = folder .. "/two.zarr"
        local out <close> = mb.images.create(path, {shape = values.shape, dtype = "f32",
            channels = 2, frames = 1, voxel = {pixel = 100e-9, step = 300e-9},
            meta = {channels = 2, frames = 1, named = {{label = "DAPI", color = "0000FF"},
                {label = "GFP", color = "00FF00"}}}})
        local bright <close> = mb.binary(values, "mul", {scalar = 7})
        bright:view(1, 1, {1, 9}):fill(1e6) -- which would burn out nothing
        out:volume(1, 1):write({0, 0, 0}, values)
        out:volume(2, 1):write({0, 0, 0}, bright)
        out:finish()
        local text = python.prints({"napari_ome_zarr"}, LAYERS:format(path, folder) .. [=[
import contextlib, io
from napari_ome_zarr import napari_get_reader
with contextlib.redirect_stdout(io.StringIO()):
    found = list(layers(napari_get_reader(path)))
for data, facts, kind in found:
    print(kind, data.shape, facts["channel_axis"], [round(float(x), 6) for x in facts["scale"]],
        [name[-4:].strip() for name in facts["name"]],
        [0 <= low < 0.3 * top and 0.7 * top < high <= top # those of the coarsest level
         for (low, high), top in zip(facts["contrast_limits"], (1, 7))])
]=])
        assert.equal("image (2, 5, 6, 300) 0 [0.3, 0.1, 0.1] ['DAPI', 'GFP'] [True, True]\n", text)
    end)

    it("open OME-Zarr, with its pyramid", function()
        assert.equal("image True ('z', 'y', 'x') [2.0, 1.5, 1.5] ('micrometer', 'micrometer', "
            .. "'micrometer')\n", python.prints({"napari_ome_zarr"},
            LAYERS:format(result "a.zarr", folder) .. [=[
import contextlib, io
from napari_ome_zarr import napari_get_reader
with contextlib.redirect_stdout(io.StringIO()):
    found = list(layers(napari_get_reader(path)))
for data, facts, kind in found:
    print(kind, bool((data == v).all()), facts["axis_labels"],
        [float(x) for x in facts["scale"]], facts["units"])
]=]))
    end)
end)
