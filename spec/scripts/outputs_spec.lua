-- Names of what commands and library functions write: the format that a name promises, files that
-- are there already, and links.
local files = require "spec.support.files"
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
        local text, status = helper.run_program(("scripts/simulate.lua %s --size 16 --rows 3 "
            .. "--angles 12 -d host -q"):format(
            path "scan.h5"))
        assert.equal(0, status, text)
        local image <close> = mb.random({ 4, 12, 12 }, { seed = 1 })
        mb.npy.write(path "image.npy", image)
        mb.npy.write(path "psf.npy", image)
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("of another format are refused by every command, before any work", function()
        local before = files.list(folder)
        for _, name in ipairs { "out.tif", "out.zarr", "out.npy", "out", "out.h5.png", "./-",
            "-" } do
            local where = name == "-" and name or path(name)
            if name ~= "out.tif" and name ~= "out.zarr" then
                refuses(2, "must end in .h5, .hdf5, .hdf, .nxs, .nx, .tif, .tiff or .zarr",
                    "reconstruct.lua %s -o %s -d host", path "scan.h5", where)
            end
            if name ~= "-" then
                refuses(2, "must end in .h5, .hdf5, .hdf, .nxs or .nx: scans are HDF5 files",
                    "simulate.lua %s -d host", where)
            end
        end
        for _, name in ipairs { path "out.gif", path "out", path "out.nxs", path "out.jpg:/a",
            "-" } do
            refuses(2, "must end in .tif, .tiff, .npy, .h5, .hdf5 or .zarr",
                "convolve.lua -n 4,8,8 -d host -o %s", name)
            refuses(2, "must end in .tif, .tiff, .npy, .h5, .hdf5 or .zarr",
                "deconvolve.lua %s %s -d host -o %s", path "image.npy",
                path "image.npy", name)
        end
        refuses(2, "must end in .png", "reconstruct.lua %s -o %s -d host --preview %s",
            path "scan.h5", path "v.h5", path "x.jpg")
        refuses(2, "must end in .png", "convolve.lua -n 4,8,8 -d host --preview -")
        refuses(2, "%-%-preview and %-%-preview%-image are the same file",
            "convolve.lua -n 4,8,8 -d host --preview %s --preview-image %s",
            path "x.png", path "x.png")
        assert.same(before, files.list(folder))
        assert.is_nil(mb.system.stat "-")
    end)

    it("of another format are refused by every function of the library", function()
        local before = files.list(folder)
        local cube <close> = mb.zeros { 2, 3, 4 }
        local plane <close> = mb.zeros { 3, 4 }
        for _, name in ipairs { "out.jpg", "out", "-", "out.zarr.gif" } do
            for what, call in pairs {
                ["view.save"] = { mb.view.save, plane },
                    ["view.projections"] = { mb.view.projections, cube },
                write_png = { mb.picture.write_png, plane, { low = 0, high = 1 } },
                ["images.write"] = { mb.images.write, cube },
                ["tiff.write"] = { mb.tiff.write, cube },
                ["npy.write"] = { mb.npy.write, cube },
                ["result.create"] = { mb.result.create, { shape = { 2, 3, 4 } } },
            } do
                local _, err = helper.failure(call[1], path(name), table.unpack(call, 2))
                assert.equal("argument", err.code, what)
            end
        end
        for _, name in ipairs { "out.tif", "out.npy", "out.zarr", "out.png" } do
            assert.matches("not a name for an HDF5 file; give one that ends in .h5",
                (helper.failure(mb.h5.create, path(name))))
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
        refuses(1, "p.png already exists; .*%-%-overwrite", "reconstruct.lua %s --preview %s",
            scan, path "p.png")
        refuses(1, "p.png already exists; .*%-%-overwrite",
            "convolve.lua -n 4,8,8 -d host --preview %s", path "p.png")
        refuses(1, "q.png already exists; .*%-%-overwrite",
            "convolve.lua -n 4,8,8 -d host --preview-image %s", path "q.png")
        refuses(1, "p.png already exists; .*%-%-overwrite",
            "deconvolve.lua %s %s -d host -o %s --preview %s", path "image.npy",
            path "psf.npy", path "d.npy", path "p.png")
        local cube <close> = mb.zeros { 2, 3, 4 }
        for _, name in ipairs { "there.npy", "there.tif", "there.h5" } do
            assert.matches("already exists: .*overwrite = true",
                (helper.failure(mb.images.write, path(name), cube)))
            assert.equal("old", files.read(path(name)))
            mb.images.write(path(name), cube, { overwrite = true })
            local back <close> = mb.images.read(path(name), "host")
            helper.assert_close(cube, back, 0)
        end
        assert.equal("old", files.read(path "p.png"))
        for _, command in ipairs { ("scripts/reconstruct.lua %s --overwrite --preview %s"):format(
            scan, path "p.png"),
            ("scripts/convolve.lua -n 4,8,8 -d host --overwrite --preview %s"):format(
                path "q.png") } do
            local text, status = helper.run_program(command)
            assert.equal(0, status, text)
        end
        assert.matches("^\x89PNG", files.read(path "p.png"))
        assert.matches("^\x89PNG", files.read(path "q.png"))
    end)

    it("that are links to nothing, or in a folder that cannot be, are refused before any work",
        function()
        assert(os.execute(("ln -s nowhere '%s'"):format(path "L.h5")))
        assert(mb.system.mkdir(path "x:"))
        files.write(path "x:/y.h5", "old")
        local before, inside = files.list(folder), files.list(path "x:")
        for _, more in ipairs { "", "--overwrite" } do
            refuses(1, "L.h5 cannot be written: it is a symbolic link to nothing",
                "reconstruct.lua %s -o %s %s", path "scan.h5",
                path "L.h5", more)
        end
        assert.matches("symbolic link to nothing", (helper.failure(mb.result.create, path "L.h5",
            { shape = { 1, 1, 1 } })))
        refuses(1, "x:/y.h5 already exists", "reconstruct.lua %s -o %s", path "scan.h5",
            path "x:/y.h5")
        refuses(1, "no:/y.h5 cannot be written: folder .*No such file", "reconstruct.lua %s -o %s",
            path "scan.h5", path "no:/y.h5")
        refuses(1, "no/p.png cannot be written: folder .*No such file",
            "reconstruct.lua %s -o %s -p %s", path "scan.h5",
            path "v2.h5", path "no/p.png")
        local long = ("n"):rep(200) .. ".h5"
        refuses(1, "has 203 characters; give one of 159 at most", "reconstruct.lua %s -o %s",
            path "scan.h5", path(long))
        assert.same(before, files.list(folder))
        assert.same(inside, files.list(path "x:"))
        local text, status = helper.run_program(("scripts/reconstruct.lua %s -o %s --overwrite "
            .. "-d host -q --center 7.5"):format(
            path "scan.h5", path "x:/y.h5"))
        assert.equal(0, status, text)
        assert.same({ "y.h5" }, files.list(path "x:"))
        assert.same(before, files.list(folder))
    end)

    it("of simulate.lua have a default plot", function()
        local python = files.python "silx.io.nxdata"
        for format, signal in pairs { dx = "/exchange/data", nxtomo = "/entry/data/data" } do
            local name = path(format .. "-plot.h5")
            local text, status = helper.run_program(("scripts/simulate.lua %s --size 16 --rows 3 "
                .. "--angles 12 --format %s -d host -q")
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

    it("that cannot be written end the program with status 1 and one line, not by a signal, and "
        .. "leave nothing", function()
        local out = path "cut"
        assert(mb.system.mkdir(out))
        local scan, image = path "scan.h5", path "image.npy"
        for _, case in ipairs {
            { "scripts/reconstruct.lua %s -o v.h5 -d host -q --center 7.5", scan },
            { "scripts/reconstruct.lua %s -o v.h5 -d host -q --center 7.5 --slices-per-file 1",
                scan },
            { "scripts/convolve.lua -i %s -o v.npy -d host", image },
            { "scripts/convolve.lua -i %s -o v.tif -d host", image },
            { "scripts/simulate.lua s.h5 --size 64 -d host -q", "" },
            { "scripts/convolve.lua -n 4,128,128 -d host --preview v.png", "" },
        } do
            local command = case[1]:format(case[2]):gsub("scripts/",
                '"$0/scripts/') :gsub("%.lua ", '.lua" ', 1)
            local text, ok, status =
                files.run(([[bash -c 'cd "%s"; ulimit -f 1; "$1" %s >/dev/null' "$PWD" "%s"]]):format(out, command,
                os.getenv "MOONBEAM_BIN" or mb.system.program()))
            assert.is_false(ok)
            assert.equal(1, status, text)
            assert.matches("File too large", text)
            assert.same({}, files.list(out), text)
        end
    end)

    it("of text to a reader that has gone end the program with status 1 and one line, and leave "
        .. "nothing", function()
        local out = path "gone"
        assert(mb.system.mkdir(out))
        local text, _, status = files.run(([[bash -c 'cd "%s"; exec 3> >(exit 0); wait $!
            "$1" "$0/scripts/reconstruct.lua" %s -o v.h5 -d host --center 7.5 2>&1 >&3' "$PWD" "%s"]]):format(out, path "scan.h5",
            os.getenv "MOONBEAM_BIN" or mb.system.program()))
        assert.equal(1, status, text)
        assert.matches("cannot write all of the standard output: Broken pipe\n$", text)
        assert.equal(1, select(2, text:gsub("\n", "")))
        assert.same({}, files.list(out))
        -- What the program starts is not kept alive by that.
        local child = files.run_script(out,
            "os.execute [[bash -c 'yes | head -1; echo ${PIPESTATUS[0]}']]")
        assert.equal("y\n141\n", child)
    end)

    it("for a while, decoded frames, have no name", function()
        local out = path "decoded"
        assert(mb.system.mkdir(out))
        do
            local scan <close> = assert(mb.h5.open(path "scan.h5"))
            local packed <close> = mb.h5.create(path "packed.h5")
            packed:write("/implements", "exchange")
            for _, name in ipairs { "data", "data_white", "data_dark" } do
                local frames <close> = scan:read("/exchange/" .. name)
                local dataset <close> = packed:create_dataset("/exchange/" .. name,
                    { shape = frames.shape, dtype = frames.dtype,
                    chunks = { 1, 3, 16 }, deflate = 1 })
                dataset:write(frames)
            end
            packed:write("/exchange/theta", scan:value "/exchange/theta",
                { attributes = { units = "deg" } })
            packed:finish()
        end
        -- A file that another run has left, or that another user has made, is in nobody's way.
        local text, ok = files.run(([[bash -c 'cd "%s"; echo x > moonbeam-$$.h5; ln -s moonbeam-$$.h5 moonbeam-$$.h5.part-$$
            TMPDIR="%s" exec "$1" "$0/scripts/reconstruct.lua" ../packed.h5 -o ../packed-v.h5 -v -d host -c 7.5 --chunk 1' "$PWD" "%s"]])
            :format(out, out, os.getenv "MOONBEAM_BIN" or mb.system.program()))
        assert.is_true(ok, text)
        assert.matches("to decode the frames", text)
        assert.equal(2, #files.list(out))
        assert.equal("x\n", files.read(out .. "/" .. files.list(out)[1]))
        -- While one is there, and when the program is killed.
        assert(os.execute(("rm '%s'/*"):format(out)))
        text = files.run_script(folder, ([[
            local core = require "moonbeam.core"
            local f = core.h5.scratch("%s")
            local d = f:create_dataset("/data", {shape = {4, 3, 2}, dtype = "f32", sparse = true})
            local v <close> = require("moonbeam").ones {4, 3, 2}
            d:write(v)
            io.write(d:read():sum(), " ", #core.system.folder("%s")) io.stdout:flush()
            os.execute("kill -9 $PPID")]]):format(out, out))
        assert.matches("^24%.?0? 0", text)
        assert.same({}, files.list(out))
    end)
end)
