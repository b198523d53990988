-- What readers of TIFF results meet: the layout of files above 4 GB, which commands say, and the
-- range of values that ImageJ shows.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local large = require "moonbeam.tiff.large"
local mb = require "moonbeam"
local shown_range = require "moonbeam.result.shown_range"

describe("a TIFF result", function()
    local folder
    local run = helper.programs_in(function() return folder end)

    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    -- An .npy file of zeros that takes no room on the disk.
    local function zeros(name, shape, dtype)
        local facts = ("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d, %d), }"):format(
            dtype == "u8" and "|u1" or "<f4", table.unpack(shape))
        files.write(folder .. "/" .. name, "\x93NUMPY\1\0" .. string.pack("<I2", 118) .. facts
            .. (" "):rep(117 - #facts) .. "\n")
        local bytes = shape[1] * shape[2] * shape[3] * mb.pool.element_bytes(dtype)
        local text, ok = files.run(("truncate -s %d '%s/%s'"):format(128 + bytes, folder, name))
        assert(ok, text)
    end

    it("above 4 GB says who reads it, in plans and before it is written", function()
        zeros("large.npy", {1030, 1024, 1024}, "u8")
        zeros("below.npy", {1010, 1024, 1024}, "u8")
        local psf <close> = mb.ones({3, 3, 3})
        mb.npy.write(folder .. "/psf.npy", psf)
        local BIG <const> = "tiff       BigTIFF above 4 GB: tifffile, libtiff, PIL and Bio-Formats "
            .. "read it, ImageJ alone does not"
        local WAY <const> = "; --tiff-layout imagej is for ImageJ\n"
        local OWN <const> = "tiff       ImageJ's layout above 4 GB: ImageJ and tifffile read all "
            .. "pages, libtiff and PIL the first one\n"
        for _, command in ipairs {"deconvolve FOLDER/%s FOLDER/psf.npy -d host %s",
            "convolve --image FOLDER/%s --psf FOLDER/psf.npy -d host %s"} do
            command = "scripts/" .. command:gsub("^%l+", "%0.lua") .. " --plan"
            for _, case in ipairs {{"large", "-o FOLDER/r.tif", BIG .. WAY},
                {"large", "-o FOLDER/r.ome.tif", BIG .. "\n"},
                {"large", "-o FOLDER/r.tif --tiff-layout bigtiff", BIG .. WAY},
                {"large", "-o FOLDER/r.tif --tiff-layout imagej", OWN},
                {"large", "-o FOLDER/r.npy"}, {"below", "-o FOLDER/r.tif"},
                {"below", "-o FOLDER/r.tif --tiff-layout imagej"}} do
                local text, status = run(command, case[1] .. ".npy", case[2])
                assert.equal(0, status, text)
                if case[3] then
                    assert.matches(case[3], text, 1, true)
                else
                    assert.is_nil(text:find("\ntiff ", 1, true), text)
                end
            end
            local text, status = run(command, "large.npy", "-o FOLDER/r.ome.tif --tiff-layout imagej")
            assert.equal(1, status, text)
            assert.matches("and this one has OME-XML: leave the option out", text, 1, true)
            text, status = run(command, "below.npy", "-o FOLDER/r.npy --tiff-layout imagej")
            assert.equal(2, status, text)
            assert.matches("--tiff-layout is for TIFF files; --output is", text, 1, true)
        end
    end)

    it("of 16-bit integers is large where its own bytes are", function()
        assert.is_false(large.is_file({2000, 1024, 1024}, 2, 1))
        assert.is_true(large.is_file({2000, 1024, 1024}, 2, 2)) -- of two channels
        assert.is_true(large.is_file({1100, 1024, 1024}, 4, 1))
        assert.is_false(large.is_file({1024, 1024}, 4, 1000))
        assert.is_true(large.is_file({1024, 1024}, 4, 1024))
    end)

    it("above 4 GB refuses ImageJ's layout with OME-XML, and for other formats", function()
        local function refused(fn, ...)
            local message, problem = helper.failure(fn, ...)
            assert.equal("argument", problem.code, message)
            assert.equal("tiff_layout", problem.arg, message)
        end
        local options = {shape = {1100, 1024, 1024}, dtype = "f32", tiff_layout = "imagej"}
        refused(mb.tiff.create, folder .. "/x.ome.tif", options)
        refused(mb.result.create, folder .. "/x.ome.tif", options)
        refused(mb.images.create, folder .. "/x.npy", options)
        refused(mb.result.create, folder .. "/x.h5", options)
        assert.same({}, files.list(folder))
        -- Below it decides nothing.
        local image <close> = mb.random({2, 5, 6}, {seed = 1})
        mb.tiff.write(folder .. "/x.ome.tif", image, {tiff_layout = "imagej"})
        mb.tiff.write(folder .. "/a.tif", image, {tiff_layout = "imagej"})
        mb.tiff.write(folder .. "/b.tif", image, {tiff_layout = "bigtiff"})
        assert.equal(files.read(folder .. "/a.tif"), files.read(folder .. "/b.tif"))
    end)

    it("above 4 GB goes on in the layout that it was begun with", function()
        local tiff_volume = require "moonbeam.result.tiff_volume"
        local rawfile <const>, path <const> = core.rawfile, folder .. "/v.tif"
        local create, note = rawfile.create_kept, nil
        rawfile.create_kept = function(...) -- takes no room on the disk
            local file = create(...)
            return {resize = function(_, bytes) file:put(bytes - 1, "\0") end,
                put = function(_, ...) file:put(...) end, now = function() return file:now() end,
                close = function() file:close() end}
        end
        local kept = {folder = folder, has_file = function() return note ~= nil end,
            file_path = function() return folder .. "/kept" end,
            note_result = function(_, _, facts) note = facts end,
            restore_result = function() return note end}
        local function make(layout)
            return pcall(tiff_volume.create, path, {shape = {1100, 1024, 1024}, dtype = "f32",
                tiff_layout = layout, unfinished = kept, title = "t", parameters = {}})
        end
        for layout, other in pairs {imagej = "bigtiff", bigtiff = "imagej"} do
            note = nil
            local ok, begun = make(layout)
            assert(ok, begun)
            begun:close()
            local same, resumed = make(layout)
            assert(same, resumed)
            resumed:close()
            local wrong, problem = make(other)
            assert.is_false(wrong)
            assert.equal("tiff_layout", problem.arg)
            assert.matches(("was begun with the layout %s, and this run has %s: go on with the option "
                .. "tiff_layout = \"%s\", or start anew with the option discard = true"):format(layout,
                other, layout), problem.message, 1, true)
            os.remove(folder .. "/kept")
        end
        rawfile.create_kept = create
    end)

    -- ---- the range that is shown ----

    local function shown_in(name)
        local volume <close> = mb.tiff.open(folder .. "/" .. name)
        local low, high = volume.meta.text:match "\nmin=(%S+)\nmax=(%S+)\n$"
        return tonumber(low), tonumber(high)
    end

    -- The 0.5 and 99.5 percentiles by sorting all values.
    local function percentiles(array)
        local flat <close> = array:reshape(array.elements)
        local list = flat:to_table()
        table.sort(list)
        return list[(#list - 1) * 5 // 1000 + 1], list[(#list - 1) * 995 // 1000 + 1]
    end

    it("has the 0.5 and 99.5 percentiles, whoever writes it and in whatever order", function()
        for _, dtype in ipairs {"f32", "u16", "u8"} do
            local source <close> = mb.random({7, 33, 41}, {seed = 5, low = -3, high = 250,
                device = "host"})
            local values <close> = source:cast(dtype)
            mb.tiff.write(folder .. "/a.tif", values, {overwrite = true})
            local low, high = shown_in "a.tif"
            local least, greatest = percentiles(values)
            assert.is_true(math.abs(low - least) < 1.5 and math.abs(high - greatest) < 1.5,
                ("%g %g, not %g %g"):format(low, high, least, greatest))
            local result <close> = mb.result.create(folder .. "/b.tif", {shape = values.shape,
                dtype = dtype, overwrite = true})
            for _, z in ipairs {5, 1, 7, 2, 3, 6, 4} do
                local slice <close> = values:view(z)
                result:write(slice, z)
            end
            result:finish()
            assert.same({low, high}, {shown_in "b.tif"})
            local out <close> = mb.tiff.create(folder .. "/c.tif", {shape = values.shape,
                dtype = dtype, overwrite = true})
            for y = 32, 0, -1 do
                local rows <close> = values:view(mb.all, {y + 1, y + 1})
                local dense <close> = rows:copy()
                out:volume():write({0, y, 0}, dense)
            end
            out:finish()
            assert.equal(files.read(folder .. "/a.tif"), files.read(folder .. "/c.tif"))
        end
    end)

    it("has the range of all channels, and one of equal or unknown values", function()
        local out <close> = mb.tiff.create(folder .. "/c.tif", {shape = {2, 8, 9}, dtype = "f32",
            channels = 2, meta = {kind = "imagej", text = "ImageJ=1.53\nmin=5\nmax=6\n"}})
        for channel, value in ipairs {3, 70} do
            local ones <close> = mb.ones({2, 8, 9})
            local volume <close> = ones * value
            mb.volumes.store(out:volume(channel), volume)
        end
        out:finish()
        assert.same({3, 70}, {shown_in "c.tif"})
        local equal <close> = mb.ones({4, 5})
        mb.tiff.write(folder .. "/e.tif", equal)
        assert.same({1, 2}, {shown_in "e.tif"})
        local none <close> = mb.zeros({4, 5})
        local unknown <close> = none / none
        mb.tiff.write(folder .. "/n.tif", unknown)
        assert.same({}, {shown_in "n.tif"})
        mb.tiff.write(folder .. "/o.ome.tif", equal)
        local ome <close> = mb.tiff.open(folder .. "/o.ome.tif")
        assert.is_nil(ome.meta.text:find("min=", 1, true))
    end)

    it("is looked at in rows at all heights, of one column too", function()
        local rows = {}
        local file = {get = function(_, offset, bytes)
            rows[#rows + 1] = offset // bytes
            return ("<f"):rep(1024):pack(table.unpack(setmetatable({}, {__index = function()
                return 1
            end, __len = function() return 1024 end}), 1, 1024))
        end}
        shown_range.of_file(file, 0, {2048, 1024, 1024}, "f32")
        assert.is_true(#rows <= 1024 and #rows > 1000)
        local heights, count = {}, 0
        for _, row in ipairs(rows) do
            count = count + (heights[row % 1024] and 0 or 1)
            heights[row % 1024] = true
        end
        assert.is_true(count > 500, tostring(count))
        assert.same({0, 1}, shown_range.of_file({get = function() return "\0" end}, 0,
            {2, 1 << 18, 1}, "u8"))
    end)

    it("is written for half precision to OME-Zarr", function()
        local source <close> = mb.random({5, 33, 41}, {seed = 5, low = -3, high = 250,
            device = "host"})
        local values <close> = source:cast "f16"
        local result <close> = mb.result.create(folder .. "/v.zarr", {shape = values.shape,
            dtype = "f16"})
        result:write(values, 1)
        result:finish()
        local read = require "moonbeam.internal.json_reader"
        local window = read(files.read(folder .. "/v.zarr/zarr.json")).attributes.ome.omero
            .channels[1].window
        local real <close> = values:cast "f32"
        local flat <close> = real:reshape(real.elements)
        local list = flat:to_table()
        table.sort(list)
        assert.equal(list[1], window.min)
        assert.equal(list[#list], window.max)
        assert.is_true(math.abs(window.start - list[#list * 5 // 1000]) < 1.5)
        assert.is_true(math.abs(window["end"] - list[#list * 995 // 1000]) < 1.5)
    end)
end)
