-- Result files: NXtomoproc as viewers want it, provenance, and nothing unless complete.
local mb = require "moonbeam"
local helper = require "spec.helper"
local files = require "spec.support.files"

describe("result", function()
    local folder, path

    before_each(function()
        folder = files.folder()
        path = folder .. "/volume.h5"
    end)

    after_each(function()
        files.remove(folder)
    end)

    -- The only folder of slices in `where`.
    local function slices_of(where)
        local found = {}
        for _, name in ipairs(files.list(where)) do
            if name:match("^volume%-slices%-%x%x%x%x%x%x%x%x$") then
                found[#found + 1] = where .. "/" .. name
            end
        end
        assert.equal(1, #found, table.concat(found, " "))
        return found[1]
    end

    -- What `where` holds, with the digits of slices folders left out.
    local function names_in(where)
        local names = files.list(where)
        for i, name in ipairs(names) do
            names[i] = name:gsub("%-slices%-%x%x%x%x%x%x%x%x$", "-slices")
        end
        return names
    end

    local function volume()
        local flat <close> = mb.arange(1, 60)
        return flat:reshape(3, 4, 5)
    end

    local function write(options)
        options = options or {}
        options.shape = { 3, 4, 5 }
        local v <close> = volume()
        local r <close> = mb.result.create(path, options)
        local two, one = v:view { 2, 3 }, v:view(1)
        r:write(two, 2)
        r:write(one, 1)
        two:release()
        one:release()
        r:provenance { predicted_peak = 4096, measured_peak = 4096, steps = { log = 1, fbp = 2 } }
        assert.equal(path, r:finish())
    end

    it("has an axis of its own where slices are not rows", function()
        for _, axis in ipairs { {}, { name = "a", values = { 1, 2 } },
            { name = "x", values = { 1, 2, 3 } }, { name = "a/b", values = { 1, 2, 3 } },
            { name = "a", values = { 1, "b", 3 } } } do
            assert.matches("axis must be {name = a word that is not data, x or y, "
                .. "values = 3 numbers or texts",
                (helper.failure(mb.result.create, path, { shape = { 3, 4, 5 }, axis = axis })))
        end
        assert.same({}, files.list(folder))
        write { pixel_size = 2e-6, axis = { name = "fbp.cut", values = { 0.5, 1, 2 } } }
        local f <close> = assert(mb.h5.open(path))
        assert.same({ "fbp.cut", "y", "x" }, f:attribute("/entry/data", "axes"))
        assert.same({ 0.5, 1, 2 }, f:value "/entry/data/fbp.cut")
        assert.is_false(f:exists "/entry/data/z")
        assert.equal("m", f:attribute("/entry/data/y", "units"))
    end)

    it("has the attributes that viewers need", function()
        write { pixel_size = 2e-6, title = "tooth" }
        local f <close> = assert(mb.h5.open(path))
        assert.equal("entry", f:attribute("/", "default"))
        assert.equal("NXroot", f:attribute("/", "NX_class"))
        assert.equal("data", f:attribute("/entry", "default"))
        assert.equal("NXtomoproc", f:value "/entry/definition")
        assert.equal("tooth", f:value "/entry/title")
        assert.same({ NX_class = "NXdata", signal = "data", axes = { "z", "y", "x" } },
            f:attributes "/entry/data")
        local data = f:attributes "/entry/data/data"
        assert.equal("image", data.interpretation)
        assert.equal("1/m", data.units)
        assert.equal("NXprocess", f:attribute("/entry/reconstruction", "NX_class"))
        assert.same({ 0, 2e-6, 4e-6 }, f:value "/entry/data/z")
        -- y is up: the first row is the top
        assert.same({ 3 * 2e-6, 2 * 2e-6, 2e-6, 0 }, f:value "/entry/data/y")
        assert.same({ 0, 2e-6, 2 * 2e-6, 3 * 2e-6, 4 * 2e-6 }, f:value "/entry/data/x")
        assert.matches("the first row of a slice is its top",
            f:attribute("/entry/data/y", "description"))
        assert.equal("m", f:attribute("/entry/data/x", "units"))
        assert.equal(5, #f:value "/entry/data/x")
        assert.is_true(f:exists "/entry/end_time")
        local a <close> = f:read "/entry/data/data"
        local v <close> = volume()
        assert.equal("f32", a.dtype)
        helper.assert_close(v, a, 0)
    end)

    it("says how it came about", function()
        local input = folder .. "/input"
        files.write(input, "12345")
        write {
            parameters = { filter = "ramp", center = 2.5, clip = { 0, 1 }, mask = true,
                pad = { mode = "edge" } },
            input = input,
            script = "-- the script\nreturn 1",
        }
        local f <close> = assert(mb.h5.open(path))
        local process = "/entry/reconstruction/"
        assert.equal("moonbeam", f:value(process .. "program"))
        assert.equal(mb.version, f:value(process .. "version"))
        assert.equal(2.5, f:value(process .. "parameters/center"))
        assert.same({ 0, 1 }, f:value(process .. "parameters/clip"))
        assert.equal("true", f:value(process .. "parameters/mask"))
        assert.equal("edge", f:value(process .. "parameters/pad/mode"))
        assert.equal(input, f:value(process .. "parameters/raw_file"))
        local provenance = "/entry/provenance/"
        assert.equal("-- the script\nreturn 1", f:value(provenance .. "script"))
        assert.equal(5, f:value(provenance .. "input/bytes"))
        assert.is_truthy(f:value(provenance .. "input/modified"):match("^20%d%d%-"))
        assert.equal(mb.h5.version, f:value(provenance .. "versions/hdf5"))
        assert.matches("fftw", f:value(provenance .. "versions/fft"))
        assert.equal(4096, f:value(provenance .. "measured_peak"))
        assert.equal(2, f:value(provenance .. "steps/fbp"))
    end)

    it("takes no tables that lie in themselves, or too deep in each other", function()
        local r <close> = mb.result.create(path, { shape = { 1, 4, 5 } })
        local itself, a, deep = {}, {}, {}
        itself.x, itself.y = { z = itself }, 1
        for _, letter in ipairs { "p", "q", "r", "s", "t", "u", "v", "w" } do
            a[letter] = { [letter] = a }
        end
        local inner = deep
        for _ = 1, 200 do
            inner.x = {}
            inner = inner.x
        end
        for words, value in pairs {
            ["the table 'z' contains itself"] = itself, ["contains itself"] = a,
                ["more than 16 deep"] = deep,
        } do
            assert.matches(words, (helper.failure(r.provenance, r, value)))
            assert.matches(words, (helper.failure(mb.result.create, folder .. "/other.h5",
                { shape = { 1, 4, 5 }, parameters = value })))
        end
        local shared = { b = 1 }
        r:provenance { c = shared, d = { e = shared } }
        r:close()
        assert.same({}, files.list(folder))
    end)

    it("has a pixel size that can be", function()
        for _, wrong in ipairs { 0, -1, 1e308, 1e-320, 0 / 0, "1" } do
            assert.matches("pixel_size is .* a number from 1e%-13 to 1", (helper.failure(
                mb.result.create, path, { shape = { 1, 4, 5 }, pixel_size = wrong })))
        end
        assert.same({}, files.list(folder))
    end)

    it("takes a script's text from its file", function()
        local script = folder .. "/recipe.lua"
        files.write(script, "print 'recipe'")
        write { script = script }
        local f <close> = assert(mb.h5.open(path))
        assert.equal("print 'recipe'", f:value "/entry/provenance/script")
        assert.equal(script, f:value "/entry/provenance/script_name")
    end)

    it("can be compressed", function()
        write { deflate = 3, chunks = { 1, 4, 5 }, dtype = "f64" }
        local f <close> = assert(mb.h5.open(path))
        local d <close> = f:dataset "/entry/data/data"
        assert.same({ 1, 4, 5 }, d.chunks)
        assert.equal("f64", d.dtype)
    end)

    it("is not finished while slices are missing", function()
        local r <close> = mb.result.create(path, { shape = { 3, 4, 5 } })
        local one <close> = mb.zeros { 4, 5 }
        r:write(one, 1)
        r:write(one, 3)
        r:write(one, 3)
        local text = helper.failure(r.finish, r)
        assert.is_truthy(text:find("1 of 3 slices were never written; the first is 2", 1,
            true),
            text)
        r:write(one, 2)
        r:finish()
        assert.same({ "volume.h5" }, files.list(folder))
    end)

    it("leaves nothing when it is abandoned", function()
        local ok = pcall(function()
            local r <close> = mb.result.create(path, { shape = { 1, 4, 5 } })
            assert.equal(1, #files.list(folder))
            assert.is_not_nil(r)
            error "stop"
        end)
        assert.is_false(ok)
        assert.same({}, files.list(folder))
        assert.is_false(pcall(mb.result.create, path, { shape = { 1, 4, 5 }, input = "/nothing" }))
        assert.same({}, files.list(folder))
    end)

    it("rejects what does not fit", function()
        local function bad(options, words)
            local text = helper.failure(mb.result.create, path, options)
            assert.is_truthy(text:find(words, 1, true), text)
        end
        bad({}, "shape")
        bad({ shape = { 1, 2 } }, "shape")
        bad({ shape = { 1, 0, 2 } }, "above 0")
        bad({ shape = { 1, 1, 1 }, pixelsize = 1 }, "pixel_size")
        bad({ shape = { 1, 1, 1 }, dtype = "f23" }, "f23")
        assert.same({}, files.list(folder))
        local r <close> = mb.result.create(path, { shape = { 2, 4, 5 } })
        local one <close> = mb.zeros { 4, 5 }
        local odd <close> = mb.zeros { 5, 4 }
        assert.matches("z_first is 3; 1 slice of a volume of 2 must begin at 1 to 2",
            (helper.failure(r.write, r, one, 3)))
        assert.matches("z_first is missing", (helper.failure(r.write, r, one)))
        local text, err = helper.failure(r.write, r, odd, 1)
        assert.matches("the array is 5 x 4; slices of this volume must be 4 x 5", text)
        assert.equal("shape", err.code)
    end)

    it("keeps an old result until the new one is complete", function()
        write()
        assert.is_truthy(helper.failure(mb.result.create, path, { shape = { 1, 1, 1 } })
            :find("overwrite"))
        local r <close> = mb.result.create(path, { shape = { 1, 1, 1 }, overwrite = true })
        local f <close> = assert(mb.h5.open(path))
        assert.same({ 3, 4, 5 }, f:dataset("/entry/data/data").shape)
        r:close()
        assert.same({ "volume.h5" }, files.list(folder))
    end)

    it("is refused on a disk that is too small, at once", function()
        local disk = files.small_disk(folder, "2m")
        if not disk then
            pending "a small file system cannot be mounted here (not root)"
        end
        local ok, err = pcall(mb.result.create, disk .. "/v.h5", { shape = { 4, 512, 512 } })
        local left = files.list(disk)
        files.unmount(disk)
        assert.is_false(ok)
        assert.equal("io", err.code)
        assert.equal(4 << 20, err.need)
        assert.same({}, left)
    end)

    it("of one slice has the distance of slices that is given, and no other", function()
        local one <close> = mb.ones {1, 3, 4}
        for _, name in ipairs {"one.tif", "one.ome.tif", "one.zarr"} do
            for _, distance in ipairs {false, 3e-6} do
                local result <close> = mb.result.create(folder .. "/" .. name, {shape = {1, 3, 4},
                    pixel_size = 2e-6, slice_distance = distance or nil, overwrite = true})
                result:write(one, 1)
                result:finish()
                local opened <close> = mb.images.open(folder .. "/" .. name)
                assert.near(2e-6, opened.meta.voxel.pixel, 1e-12)
                assert.near(distance or 0, opened.meta.voxel.step or 0, 1e-12)
            end
        end
    end)

    it("says what stored integers mean", function()
        for _, count in ipairs {false, 2} do
            local r <close> = mb.result.create(path, {shape = {3, 4, 5}, dtype = "u16",
                slices_per_file = count or nil, overwrite = true})
            r:scaling(0.5, -3)
            local v <close> = mb.full({3, 4, 5}, 7, {dtype = "u16"})
            r:write(v, 1)
            r:finish()
            local f <close> = assert(mb.h5.open(path))
            assert.equal(0.5, f:attribute("/entry/data/data", "scale_factor"))
            assert.equal(-3, f:attribute("/entry/data/data", "add_offset"))
            assert.equal(0.5, f:value "/entry/data/data_scaling_factor")
            assert.equal(-6, f:value "/entry/data/data_offset")
        end
        local part <close> = assert(mb.h5.open(slices_of(folder) .. "/slices-0003-0003.h5"))
        assert.equal(0.5, part:attribute("/data", "scale_factor"))
    end)

    it("refuses a scale that cannot be undone", function()
        local r <close> = mb.result.create(path, {shape = {3, 4, 5}, dtype = "u16"})
        for _, case in ipairs {{0, 1}, {0 / 0, 1}, {math.huge, 0}, {1e-320, 1}, {1, 1 / 0},
            {"1", 2}} do
            assert.matches("scal", (helper.failure(r.scaling, r, case[1], case[2])))
        end
    end)

    it("counts z from the detector's first row", function()
        for _, pixel in ipairs {false, 2e-6} do
            write {first_row = 10, pixel_size = pixel or nil, overwrite = true}
            local f <close> = assert(mb.h5.open(path))
            local step = pixel or 1
            assert.same({9 * step, 10 * step, 11 * step}, f:value "/entry/data/z")
        end
        do -- slices may be further apart than their pixels
            write {first_row = 10, pixel_size = 2e-6, slice_distance = 3e-6, overwrite = true}
            local f <close> = assert(mb.h5.open(path))
            assert.same({9 * 3e-6, 10 * 3e-6, 11 * 3e-6}, f:value "/entry/data/z")
            assert.equal(2e-6, f:value("/entry/data/x")[2])
        end
        assert.matches("first_row", (helper.failure(mb.result.create, path,
            {shape = {1, 1, 1}, first_row = 0})))
    end)

    describe("in several files", function()
        local function write_parts(options)
            options = options or {}
            options.shape = {7, 4, 5}
            options.slices_per_file = options.slices_per_file or 3
            local r <close> = mb.result.create(path, options)
            local v <close> = mb.random({7, 4, 5}, {seed = options.slices_per_file})
            for z = 1, 7, 2 do
                local part <close> = v:view({z, math.min(z + 1, 7)})
                r:write(part, z)
            end
            assert.equal(path, r:finish())
            return v:to_table()
        end

        it("shows the volume as one dataset", function()
            local expected = write_parts()
            assert.same({"volume-slices", "volume.h5"}, names_in(folder))
            assert.same({"slices-0001-0003.h5", "slices-0004-0006.h5", "slices-0007-0007.h5"},
                files.list(slices_of(folder)))
            local f <close> = assert(mb.h5.open(path))
            local got <close> = f:read "/entry/data/data"
            assert.same(expected, got:to_table())
            local p <close> = assert(mb.h5.open(slices_of(folder) .. "/slices-0004-0006.h5"))
            local part <close> = p:read "/data"
            assert.same({expected[4], expected[5], expected[6]}, part:to_table())
        end)

        it("can be moved, and says when a file is missing", function()
            local expected = write_parts {slices_per_file = 1}
            local moved = folder .. "/moved"
            assert(mb.system.mkdir(moved))
            assert(os.execute(("mv '%s' '%s' '%s'"):format(path, slices_of(folder), moved)))
            do
                local f <close> = assert(mb.h5.open(moved .. "/volume.h5"))
                local got <close> = f:read "/entry/data/data"
                assert.same(expected, got:to_table())
            end
            assert(os.remove(slices_of(moved) .. "/slices-0002-0002.h5"))
            local f <close> = assert(mb.h5.open(moved .. "/volume.h5"))
            assert.matches("slices%-0002%-0002.h5', which is missing",
                (helper.failure(f.read, f, "/entry/data/data")))
        end)

        it("is found by every reader, whatever characters its name has", function()
            local python = files.python "h5py"
            for _, name in ipairs {"a%%b", "100%", "%b", "%5b", "a b", "[x]", "é", "%%%"} do
                path = ("%s/%s.h5"):format(folder, name)
                local expected = write_parts()
                do
                    local f <close> = assert(mb.h5.open(path))
                    local got <close> = f:read "/entry/data/data"
                    assert.same(expected, got:to_table())
                end
                if python then
                    local output, ok = files.run(([[%s -c '
import h5py
with h5py.File("%s") as f:
    print("%%.9g" %% f["/entry/data/data"][6, 3, 4])']]):format(python, path))
                    assert.is_true(ok, output)
                    assert.equal(("%.9g"):format(expected[7][4][5]), (output:gsub("%s+$", "")))
                end
            end
        end)

        it("is not finished where it would not show its slices", function()
            local r <close> = mb.result.create(path, {shape = {7, 4, 5}, slices_per_file = 3})
            local v <close> = mb.ones {7, 4, 5}
            r:write(v, 1)
            -- Another file in the place of one of them, after it was complete.
            local part = slices_of(folder) .. "/slices-0004-0006.h5"
            assert(os.remove(part))
            local text = helper.failure(r.finish, r)
            assert.matches("slices%-0004%-0006", text)
            r:close()
            assert.same({}, files.list(folder))
        end)

        it("that is missing in part reads as NaN elsewhere, not as zeros", function()
            local python = files.python "h5py"
            if not python then
                pending "h5py is not installed (python3-h5py)"
            end
            write_parts()
            assert(os.remove(slices_of(folder) .. "/slices-0004-0006.h5"))
            local output, ok = files.run(([[%s -c '
import h5py
with h5py.File("%s") as f:
    print(f["/entry/data/data"][4, 3, 4])']]):format(python, path))
            assert.is_true(ok, output)
            assert.equal("nan", (output:gsub("%s+$", "")))
        end)

        it("leaves nothing when it is abandoned or not complete", function()
            for _, until_slice in ipairs {0, 2, 5} do
                local r = mb.result.create(path, {shape = {7, 4, 5}, slices_per_file = 2})
                local one <close> = mb.zeros {1, 4, 5}
                for z = 1, until_slice do
                    r:write(one, z)
                end
                assert.matches("never written", (helper.failure(r.finish, r)))
                r:close()
                r:close()
                assert.same({}, files.list(folder))
            end
        end)

        it("replaces an older result only when it is complete, and whole", function()
            local old = write_parts()
            assert.matches("already exists",
                (helper.failure(mb.result.create, path, {shape = {7, 4, 5}, slices_per_file = 1})))
            local function stored()
                local f <close> = assert(mb.h5.open(path))
                local got <close> = f:read "/entry/data/data"
                return got:to_table()
            end
            local r = mb.result.create(path, {shape = {7, 4, 5}, slices_per_file = 2,
                overwrite = true})
            local one <close> = mb.zeros {4, 5}
            r:write(one, 1)
            assert.same(old, stored())
            r:close()
            assert.same(old, stored())
            local new = write_parts {overwrite = true, slices_per_file = 4}
            assert.same(new, stored())
            assert.same({"slices-0001-0004.h5", "slices-0005-0007.h5"},
                files.list(slices_of(folder)))
            assert.same({"volume-slices", "volume.h5"}, names_in(folder))
        end)

        it("removes the folder of the result that it replaces, but nothing that is not its own",
            function()
            for _, count in ipairs {2, false} do
                write_parts {overwrite = true}
                local old = slices_of(folder)
                files.write(old .. "/notes.txt", "precious")
                files.write(old .. "/slices-of-bread.h5", "precious")
                local r <close> = mb.result.create(path,
                    {shape = {1, 4, 5}, slices_per_file = count or nil, overwrite = true})
                local one <close> = mb.zeros {1, 4, 5}
                r:write(one, 1)
                r:finish()
                assert.same({"notes.txt", "slices-of-bread.h5"}, files.list(old))
                files.remove(old)
                assert.same(count and {"volume-slices", "volume.h5"} or {"volume.h5"},
                    names_in(folder))
            end
        end)

        it("never takes a folder for its own that its name does not claim", function()
            for _, name in ipairs {"../other", "other-slices-12345678", "volume-slices-",
                "volume-slices-12345678/..", "volume-slices"} do
                do
                    local f <close> = mb.h5.create(path, {overwrite = true})
                    f:set_attribute("/", "slices_folder", name)
                    f:finish()
                end
                for _, there in ipairs {"other", "other-slices-12345678", "volume-slices",
                    "volume-slices-12345678"} do
                    assert(mb.system.mkdir(folder .. "/" .. there))
                    files.write(folder .. "/" .. there .. "/slices-0001-0001.h5", "precious")
                end
                local before = files.list(folder)
                write {overwrite = true}
                assert.same(before, files.list(folder))
                for _, there in ipairs {"other", "other-slices-12345678", "volume-slices",
                    "volume-slices-12345678"} do
                    assert.equal("precious", files.read(folder .. "/" .. there
                        .. "/slices-0001-0001.h5"))
                end
            end
        end)

        it("takes its files back when the result's own file fails", function()
            local old = write_parts()
            local r = mb.result.create(path, {shape = {7, 4, 5}, slices_per_file = 2,
                overwrite = true})
            local all <close> = mb.zeros {7, 4, 5}
            r:write(all, 1)
            assert(os.remove(r.file.part_path))
            assert.is_false((pcall(r.finish, r)))
            r:close()
            assert.same({"volume-slices", "volume.h5"}, names_in(folder))
            local f <close> = assert(mb.h5.open(path))
            local got <close> = f:read "/entry/data/data"
            assert.same(old, got:to_table())
        end)

        it("is refused on a disk that is too small, at once", function()
            local disk = files.small_disk(folder, "2m")
            if not disk then
                pending "a small file system cannot be mounted here (not root)"
            end
            local ok, err = pcall(mb.result.create, disk .. "/v.h5",
                {shape = {4, 512, 512}, slices_per_file = 1})
            local left = files.list(disk)
            files.unmount(disk)
            assert.is_false(ok)
            assert.equal("io", err.code)
            assert.equal(4 << 20, err.need)
            assert.same({}, left)
        end)

        it("rejects what does not go together", function()
            for _, options in ipairs {{slices_per_file = 0}, {slices_per_file = 2, deflate = 1},
                {slices_per_file = 2, chunks = {1, 4, 5}}} do
                options.shape = {7, 4, 5}
                assert.matches("slices_per_file", (helper.failure(mb.result.create, path, options)))
            end
        end)
    end)

    it("opens in silx as an image stack", function()
        local python = files.python "silx.io.nxdata"
        if not python then
            pending "silx is not installed (python3-silx)"
        end
        for _, count in ipairs { false, 2 } do
        write { pixel_size = 1e-6, slices_per_file = count or nil, overwrite = true }
        local output, ok = files.run(([==[%s -c '
import silx.io
from silx.io import nxdata
with silx.io.open("%s") as f:
    d = nxdata.get_default(f)
    assert d is not None and d.is_valid, d.issues
    print(d.signal.shape, d.signal_name, d.axes_names, d.interpretation, d.signal_is_3d)
    print(d.signal[2, 3, 4], d.group.name)
    # What silx draws: rows upwards for a positive slope, downwards for a negative one.
    from silx.math.calibration import ArrayCalibration
    y = ArrayCalibration(d.axes[1][()])
    assert y.is_affine() and y.get_slope() < 0, y.get_slope()']==]):format(python, path))
        assert.is_true(ok, output)
        local last = output:match("([^\n]*\n[^\n]*)\n*$")
        assert.is_truthy(last:find("(3, 4, 5)", 1, true), output)
        assert.is_truthy(last:find("image", 1, true), output)
        assert.is_truthy(last:find("60.0 /entry/data", 1, true), output)
        end
    end)
end)
