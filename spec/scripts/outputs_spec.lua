-- Names of what recipes and library functions write: the format that a name promises, files that are there already, and links.
local files = require "spec.io.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("outputs", function()
    local folder

    local function path(name)
        return folder .. "/" .. name
    end

    local function refuses(status, pattern, command, ...)
        local text, got = helper.run_program("scripts/" .. command:format(...))
        assert.matches(pattern, text)
        assert.equal(status, got, text)
        local _, lines = text:gsub("\n", "")
        assert.equal(1, lines, text)
    end

    setup(function()
        folder = files.folder()
        local text, status = helper.run_program(("scripts/simulate.lua %s --size 16 --rows 3 --angles 12 -d host -q"):format(
            path "scan.h5"))
        assert.equal(0, status, text)
        local image <close> = mb.random({ 4, 12, 12 }, { seed = 1 })
        mb.npy.write(path "image.npy", image)
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("of another format are refused by every recipe, before any work", function()
        local before = files.list(folder)
        for _, name in ipairs { "out.tif", "out.zarr", "out.npy", "out", "out.h5.png", "./-", "-" } do
            local where = name == "-" and name or path(name)
            refuses(2, "must end in .h5, .hdf5, .hdf, .nxs or .nx: results are HDF5 files", "reconstruct.lua %s -o %s -d host",
                path "scan.h5", where)
            if name ~= "-" then
                refuses(2, "must end in .h5, .hdf5, .hdf, .nxs or .nx: scans are HDF5 files", "simulate.lua %s -d host", where)
            end
        end
        for _, name in ipairs { path "out.zarr", path "out", path "out.nxs", path "out.jpg:/a", "-" } do
            refuses(2, "must end in .tif, .tiff, .npy, .h5 or .hdf5", "convolve.lua -n 4,8,8 -d host -o %s", name)
            refuses(2, "must end in .tif, .tiff, .npy, .h5 or .hdf5", "deconvolve.lua %s %s -d host -o %s", path "image.npy",
                path "image.npy", name)
        end
        refuses(2, "must end in .png", "reconstruct.lua %s -o %s -d host --preview %s", path "scan.h5", path "v.h5", path "x.jpg")
        refuses(2, "must end in .png", "convolve.lua -n 4,8,8 -d host --png -")
        assert.same(before, files.list(folder))
        assert.is_nil(mb.system.stat "-")
    end)

    it("of another format are refused by every function of the library", function()
        local before = files.list(folder)
        local cube <close> = mb.zeros { 2, 3, 4 }
        local plane <close> = mb.zeros { 3, 4 }
        for _, name in ipairs { "out.jpg", "out", "-", "out.png.zarr" } do
            for what, call in pairs {
                ["view.save"] = { mb.view.save, plane }, ["view.projections"] = { mb.view.projections, cube },
                write_png = { mb.picture.write_png, plane, { low = 0, high = 1 } },
                ["images.write"] = { mb.images.write, cube }, ["tiff.write"] = { mb.tiff.write, cube },
                ["npy.write"] = { mb.npy.write, cube },
                ["result.create"] = { mb.result.create, { shape = { 2, 3, 4 } } },
            } do
                local _, err = helper.failure(call[1], path(name), table.unpack(call, 2))
                assert.equal("argument", err.code, what)
            end
        end
        for _, name in ipairs { "out.tif", "out.npy", "out.zarr", "out.png" } do
            assert.matches("no name for an HDF5 file; give one that ends in .h5", (helper.failure(mb.h5.create, path(name))))
        end
        assert.same(before, files.list(folder))
        mb.view.save(path "UPPER.PNG", plane)
        assert(os.remove(path "UPPER.PNG"))
    end)

    it("that exist are replaced with --overwrite alone, pictures too", function()
        for _, name in ipairs { "p.png", "q.png", "there.npy", "there.tif", "there.h5" } do
            files.write(path(name), "old")
        end
        local scan = ("%s -o %s -d host -q --center 7.5"):format(path "scan.h5", path "v.h5")
        refuses(1, "p.png exists already; .*%-%-overwrite", "reconstruct.lua %s --preview %s", scan, path "p.png")
        refuses(1, "p.png exists already; .*%-%-overwrite", "convolve.lua -n 4,8,8 -d host --png %s", path "p.png")
        refuses(1, "q.png exists already; .*%-%-overwrite", "convolve.lua -n 4,8,8 -d host --png-image %s", path "q.png")
        refuses(1, "p.png exists already; .*%-%-overwrite", "deconvolve.lua %s %s -d host -o %s --preview %s", path "image.npy",
            path "image.npy", path "d.npy", path "p.png")
        local cube <close> = mb.zeros { 2, 3, 4 }
        for _, name in ipairs { "there.npy", "there.tif", "there.h5" } do
            assert.matches("exists already: .*overwrite = true", (helper.failure(mb.images.write, path(name), cube)))
            assert.equal("old", files.read(path(name)))
            mb.images.write(path(name), cube, { overwrite = true })
            local back <close> = mb.images.read(path(name), "host")
            helper.assert_close(cube, back, 0)
        end
        assert.equal("old", files.read(path "p.png"))
        for _, command in ipairs { ("scripts/reconstruct.lua %s --overwrite --preview %s"):format(scan, path "p.png"),
            ("scripts/convolve.lua -n 4,8,8 -d host --overwrite --png %s"):format(path "q.png") } do
            local text, status = helper.run_program(command)
            assert.equal(0, status, text)
        end
        assert.matches("^\x89PNG", files.read(path "p.png"))
        assert.matches("^\x89PNG", files.read(path "q.png"))
    end)

    it("that are links to nothing, or in a folder that cannot be, are refused before any work", function()
        assert(os.execute(("ln -s nowhere '%s'"):format(path "L.h5")))
        assert(mb.system.mkdir(path "x:"))
        files.write(path "x:/y.h5", "old")
        local before, inside = files.list(folder), files.list(path "x:")
        for _, more in ipairs { "", "--overwrite" } do
            refuses(1, "L.h5 cannot be written: it is a symbolic link to nothing", "reconstruct.lua %s -o %s %s", path "scan.h5",
                path "L.h5", more)
        end
        assert.matches("symbolic link to nothing", (helper.failure(mb.result.create, path "L.h5", { shape = { 1, 1, 1 } })))
        refuses(1, "x:/y.h5 exists already", "reconstruct.lua %s -o %s", path "scan.h5", path "x:/y.h5")
        refuses(1, "no:/y.h5 cannot be written: folder .*No such file", "reconstruct.lua %s -o %s", path "scan.h5", path "no:/y.h5")
        refuses(1, "no/p.png cannot be written: folder .*No such file", "reconstruct.lua %s -o %s -p %s", path "scan.h5",
            path "v2.h5", path "no/p.png")
        local long = ("n"):rep(200) .. ".h5"
        refuses(1, "has 203 characters; give one of 159 at most", "reconstruct.lua %s -o %s", path "scan.h5", path(long))
        assert.same(before, files.list(folder))
        assert.same(inside, files.list(path "x:"))
        local text, status = helper.run_program(("scripts/reconstruct.lua %s -o %s --overwrite -d host -q --center 7.5"):format(
            path "scan.h5", path "x:/y.h5"))
        assert.equal(0, status, text)
        assert.same({ "y.h5" }, files.list(path "x:"))
        assert.same(before, files.list(folder))
    end)

    it("of simulate.lua have a default plot", function()
        local python = files.python "silx.io.nxdata"
        for format, signal in pairs { dx = "/exchange/data", nxtomo = "/entry/data/data" } do
            local name = path(format .. "-plot.h5")
            local text, status = helper.run_program(("scripts/simulate.lua %s --size 16 --rows 3 --angles 12 --format %s -d host -q")
                :format(name, format))
            assert.equal(0, status, text)
            local f <close> = assert(mb.h5.open(name))
            local at, steps = "/", 0
            while f:attribute(at, "signal") == nil and steps < 3 do
                at, steps = (at == "/" and "" or at) .. "/" .. f:attribute(at, "default"), steps + 1
            end
            assert.equal(signal, at .. "/" .. f:attribute(at, "signal"))
            assert.equal("NXdata", f:attribute(at, "NX_class"))
            assert.equal(3, #f:attribute(at, "axes"))
            if python then
                local output, ok = files.run(([[%s -c '
import silx.io
from silx.io import nxdata
d = nxdata.get_default(silx.io.open("%s"))
assert d is not None and d.is_valid and len(d.signal.shape) == 3']]):format(python, name))
                assert.is_true(ok, output)
            end
        end
    end)
end)
