-- Image files: .npy, TIFF and HDF5 by their names.
local mb = require "moonbeam"
local helper = require "spec.helper"

local folder

local function path(name)
    return folder .. "/" .. name
end

local function write(name, bytes)
    local file <close> = assert(io.open(path(name), "wb"))
    file:write(bytes)
    return path(name)
end

describe("image files", function()
    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute(("mkdir '%s'"):format(folder)))
    end)

    teardown(function()
        os.execute(("rm -r '%s'"):format(folder))
    end)

    for _, case in ipairs { { "npy", "u8" }, { "npy", "f32" }, { "npy", "c64" }, { "npy", "f64" },
        { "tif", "u8" }, { "tif", "u16" },
        { "tiff", "f32" }, { "h5", "u16" }, { "h5", "f32" } } do
        local kind, dtype = table.unpack(case)
        it(("come back from .%s as %s"):format(kind, dtype), function()
            local volume <close> = mb.random({ 4, 5, 7 }, { dtype = dtype, seed = 1, high = 200 })
            local turned <close> = volume:permute(2, 1, 3) -- a strided view is written as it looks
            for number, array in ipairs { volume, turned } do
                local name = path(("%s%d.%s"):format(dtype, number, kind))
                mb.images.write(name, array)
                local read <close> = mb.images.read(name)
                assert.equal(dtype, read.dtype)
                assert.same(array.shape, read.shape)
                helper.assert_close(array, read, 0)
            end
        end)
    end

    it("keep the spacing of ImageJ, single pages, big-endian strips and ImageJ's large form",
        function()
        local volume <close> = mb.random({ 3, 4, 5 }, { dtype = "u16", seed = 2, high = 60000 })
        mb.tiff.write(path "s.tif", volume, { spacing = 0.3, unit = "um" })
        local read <close>, meta = mb.tiff.read(path "s.tif")
        assert.equal(0.3, meta.spacing)
        assert.matches("^ImageJ=", meta.description)
        assert.same({ 3, 4, 5 }, read.shape)
        local page <close> = volume:view(2)
        mb.tiff.write(path "page.tif", page)
        local single <close> = mb.tiff.read(path "page.tif")
        helper.assert_close(page, single, 0)

        -- Big-endian, two strips: 2 rows of 3 elements of 16 bits.
        local function entry(tag, kind, count, value)
            return kind == 3 and string.pack(">I2I2I4I2I2", tag, kind, count, value, 0)
                or string.pack(">I2I2I4I4", tag, kind, count, value)
        end
        local entries = entry(256, 3, 1, 3) .. entry(257, 3, 1, 2) .. entry(258, 3, 1, 16)
            .. entry(273, 4, 2, 200)
            .. entry(278, 3, 1, 1) .. entry(279, 4, 2, 208)
        local head = "MM\0*" .. string.pack(">I4", 8) .. string.pack(">I2", 6) .. entries
            .. string.pack(">I4", 0)
        head = head .. ("\0"):rep(200 - #head) .. string.pack(">I4I4I4I4", 216, 222, 6, 6)
        write("big.tif", head .. string.pack(">I2I2I2I2I2I2", 1, 2, 3, 400, 500, 65535))
        local swapped <close> = mb.tiff.read(path "big.tif")
        assert.same({ { 1, 2, 3 }, { 400, 500, 65535 } }, swapped:to_table())

        -- One directory, "images=3", contiguous pages.
        local text = "ImageJ=1.54f\nimages=3\n\0"
        local function little(tag, kind, count, value)
            return string.pack("<I2I2I4I4", tag, kind, count, value)
        end
        local large = "II*\0" .. string.pack("<I4", 8) .. string.pack("<I2", 5) .. little(256, 4, 1,
            2) .. little(257, 4, 1, 1)
            .. little(258, 3, 1, 8) .. little(270, 2, #text, 100) .. little(273, 4, 1, 150)
                .. string.pack("<I4", 0)
        large = large .. ("\0"):rep(100 - #large) .. text
        write("large.tif", large .. ("\0"):rep(150 - #large) .. "\1\2\3\4\5\6")
        local stack <close> = mb.tiff.read(path "large.tif")
        assert.same({ { { 1, 2 } }, { { 3, 4 } }, { { 5, 6 } } }, stack:to_table())
    end)

    it("are TIFF under every name that programs give it, in small and capital letters", function()
        local volume <close> = mb.ones {2, 3, 4}
        mb.tiff.write(path "all.tif", volume)
        local file <close> = assert(io.open(path "all.tif", "rb"))
        local bytes = file:read "a"
        for name in ("stk lsm tf2 tf8 btf ome.tf2 ome.tf8 ome.btf qptiff qpi pcoraw ptif ptiff gel "
            .. "seq svs avs scn zif ndpi bif eer flex tif tiff"):gmatch "%S+" do
            for _, own in ipairs {name, name:upper()} do
                local volume_of <close> = mb.images.open(write("all." .. own, bytes))
                assert.same({2, 3, 4}, volume_of.shape, own)
            end
        end
        for _, own in ipairs {"all", "all.dat", "all.jpg"} do
            local message, err = helper.failure(mb.images.open, write(own, bytes))
            assert.matches(own .. ": the file is a TIFF file, and the name does not say so: give "
                .. "the file a name that ends in .tif", message, 1, true)
            assert.same({"argument", "name"}, {err.code, err.arg})
        end
        assert.matches("x.seq: this is not a TIFF file", (helper.failure(mb.images.open,
            write("x.seq", "nothing of the kind"))), 1, true)
    end)

    it("say what is wrong with them", function()
        assert.matches("not a TIFF",
            (helper.failure(mb.tiff.read, write("x.tif", "nothing of the kind"))))
        assert.matches("not an .npy",
            (helper.failure(mb.npy.read, write("x.npy", "nothing of the kind"))))
        assert.matches("No such file", (helper.failure(mb.npy.read, path "absent.npy")))
        assert.matches("images are", (helper.failure(mb.images.read, path "x.jpg")))
        local volume <close> = mb.ones { 2, 3, 4 }
        mb.npy.write(path "cut.npy", volume)
        local file <close> = assert(io.open(path "cut.npy", "rb"))
        local bytes = file:read("a")
        assert.matches("truncated or too long",
            (helper.failure(mb.npy.read, write("cut.npy", bytes:sub(1, -5)))))
        mb.tiff.write(path "cut.tif", volume)
        local whole <close> = assert(io.open(path "cut.tif", "rb"))
        local all = whole:read("a")
        assert.matches("truncated",
            (helper.failure(mb.tiff.read, write("cut.tif", all:sub(1, -5)))))
    end)
end)

describe("view.projections", function()
    it("puts XY, ZY and XZ side by side, stretched", function()
        local volume <close> = mb.zeros { 2, 3, 4 }
        for _, at in ipairs { { 1, 2, 3, 5 }, { 2, 3, 1, 7 } } do
            local voxel <close> = volume:view({ at[1], at[1] }, { at[2], at[2] }, { at[3], at[3] })
            voxel:fill(at[4])
        end
        local picture <close> = mb.view.projections(nil, volume, { gap = 1, sz = 2 })
        assert.same({ 3 + 1 + 4, 4 + 1 + 4 }, picture.shape)
        assert.same({
            { 0, 0, 0, 0, 0, 0, 0, 0, 0 },
            { 0, 0, 5, 0, 0, 5, 5, 0, 0 },
            { 7, 0, 0, 0, 0, 0, 0, 7, 7 },
            { 0, 0, 0, 0, 0, 0, 0, 0, 0 },
            { 0, 0, 5, 0, 0, 0, 0, 0, 0 },
            { 0, 0, 5, 0, 0, 0, 0, 0, 0 },
            { 7, 0, 0, 0, 0, 0, 0, 0, 0 },
            { 7, 0, 0, 0, 0, 0, 0, 0, 0 },
        }, picture:to_table())
    end)
end)
