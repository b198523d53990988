-- What h5web gets of our HDF5 results from the server that it comes with (h5grove, from PyPI): the
-- default plot, its axes, values, and what is beside them. Where it is not installed the specs are
-- skipped.
local files = require "spec.support.files"
local mb = require "moonbeam"
local python = require "spec.support.python"

-- What h5web asks for a file whose default it shows: the attributes "default" down to a group of
-- class NXdata, its signal and axes, a slice, and every object of the file once.
local ASKS <const> = [[
import h5py
import numpy as np
from h5grove import create_content
from h5grove.encoders import orjson_encode
path, v = "%s", np.load("%s/v.npy")
with h5py.File(path) as file:
    at = "/"
    while "default" in create_content(file, at).attributes():
        at = at.rstrip("/") + "/" + create_content(file, at).attributes()["default"]
    shown = create_content(file, at).attributes()
    assert shown["NX_class"] == "NXdata", shown
    signal = create_content(file, at + "/" + shown["signal"])
    assert signal.metadata()["shape"] == v.shape, signal.metadata()
    assert np.array_equal(signal.data("2,:,1:4"), v[2, :, 1:4])
    print("signal", at, shown["signal"], signal.attributes().get("interpretation"))
    for name, count in zip(shown["axes"], v.shape):
        axis = create_content(file, at + "/" + name)
        assert axis.metadata()["shape"] == (count,), axis.metadata()
        print("axis", name, axis.attributes()["units"], "%%g" %% (axis.data("1") - axis.data("0")))
    names = []
    file.visit(lambda name: names.append(name))
    for name in names:
        content = create_content(file, name)
        orjson_encode([content.metadata(), content.attributes()])
        if content.metadata().get("shape") == ():
            orjson_encode(content.data(None))
    print("asked", len(names))
]]

describe("h5web", function()
    local folder, values
    before_each(function()
        folder = files.folder()
        values = mb.random({5, 6, 7}, {seed = 3, device = "host"})
        mb.npy.write(folder .. "/v.npy", values)
    end)
    after_each(function()
        values:release()
        files.remove(folder)
    end)

    for _, count in ipairs {0, 2} do
        it(count > 0 and "shows a volume that is spread over files" or "shows a volume", function()
            local path = folder .. "/volume.h5"
            local made <close> = mb.result.create(path, {shape = values.shape, title = "tooth",
                pixel_size = 1.5e-6, slice_distance = 2e-6,
                slices_per_file = count > 0 and count or nil})
            made:write(values, 1)
            made:finish()
            local text = python.prints({"h5grove"}, ASKS:format(path, folder))
            assert.matches("signal /entry/data data image\n", text)
            assert.matches("axis z m 2e%-06\n", text)
            assert.matches("axis x m 1.5e%-06\n", text)
            assert.is_true(tonumber(text:match "asked (%d+)") > 10, text)
        end)
    end
end)
