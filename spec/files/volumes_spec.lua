-- Volumes: blocks of arrays and files, and files that are written block by block.
local mb = require "moonbeam"
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"

local folder

local function path(name)
    return folder .. "/" .. name
end

describe("volumes", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    for _, kind in ipairs { "npy", "tif", "h5" } do
        it("are read and written in blocks: ." .. kind, function()
            for _, dtype in ipairs { "u8", "u16", "f32" } do
                local array <close> = mb.random({ 5, 9, 11 },
                    { seed = 1, dtype = dtype, high = 200 })
                local name = path(dtype .. "." .. kind)
                do
                    local out <close> = mb.images.create(name,
                        { shape = { 5, 9, 11 }, dtype = dtype })
                    local target = out:volume()
                    for _, z in ipairs { { 1, 3 }, { 4, 5 } } do
                        for _, x in ipairs { { 1, 4 }, { 5, 11 } } do
                            -- strided, and of another type below
                            local part <close> = array:view(z, mb.all, x)
                            local other <close> = part:cast("f64")
                            target:write({ z[1] - 1, 0, x[1] - 1 }, x[1] == 1 and part or other)
                        end
                    end
                    -- What was written can be read before the file is complete.
                    local early <close> = target:read({ 2, 3, 2 }, { 3, 4, 8 }, mb.device "host")
                    local expected <close> = array:view({ 3, 5 }, { 4, 7 }, { 3, 10 })
                    helper.assert_close(expected, early, 0)
                    assert.is_nil(mb.system.stat(name))
                    out:finish()
                end
                local volume <close> = mb.images.open(name)
                assert.same({ 5, 9, 11 }, volume.shape)
                assert.equal(dtype, volume.dtype)
                assert.equal(5 * 9 * 11 * (dtype == "u8" and 1 or dtype == "u16" and 2 or 4),
                    mb.volumes.bytes(volume))
                local block <close> = volume:read({ 1, 2, 3 }, { 2, 6, 5 }, mb.device "host")
                local expected <close> = array:view({ 2, 3 }, { 3, 8 }, { 4, 8 })
                helper.assert_close(expected, block, 0)
                local all <close> = mb.volumes.load(volume, "host")
                helper.assert_close(array, all, 0)
            end
        end)

        it("leave nothing when they are not finished: ." .. kind, function()
            local before = files.list(folder)
            do
                local out <close> = mb.images.create(path("gone." .. kind),
                    { shape = { 2, 3, 4 }, dtype = "f32" })
                assert.is_true(#files.list(folder) > #before)
                assert.is_truthy(out:volume())
            end
            assert.same(before, files.list(folder))
            local ok = pcall(function()
                local out <close> = mb.images.create(path("gone." .. kind),
                    { shape = { 2, 3, 4 }, dtype = "f32" })
                local wrong <close> = mb.ones { 9, 9, 9 }
                out:volume():write({ 0, 0, 0 }, wrong)
                error("stop")
            end)
            assert.is_false(ok)
            assert.same(before, files.list(folder))
        end)

        it("do not replace a file unless they may: ." .. kind, function()
            local array <close> = mb.ones { 2, 3, 4 }
            mb.images.write(path("there." .. kind), array)
            assert.matches("exists", (helper.failure(mb.images.create, path("there." .. kind),
                { shape = { 2, 3, 4 }, dtype = "f32", overwrite = false })))
        end)
    end

    it("in scratch files have no name and keep what is written", function()
        local before = files.list(folder)
        local volume <close> = mb.volumes.scratch(path "result.npy", { 4, 6, 5 }, "f32")
        assert.same(before, files.list(folder))
        local block <close> = mb.random({ 2, 3, 5 }, { seed = 2 })
        volume:write({ 1, 2, 0 }, block)
        local back <close> = volume:read({ 1, 2, 0 }, { 2, 3, 5 }, mb.device "host")
        helper.assert_close(block, back, 0)
        local rest <close> = volume:read({ 3, 0, 0 }, { 1, 6, 5 }, mb.device "host")
        assert.equal(0, rest:max())
        volume:close()
        assert.matches("closed",
            (helper.failure(volume.read, volume, { 0, 0, 0 }, { 1, 1, 1 }, mb.device "host")))
        assert.matches("cannot create",
            (helper.failure(mb.volumes.scratch, folder .. "/none/x", { 1 }, "u8")))
    end)

    it("of arrays are views where they are, and copies elsewhere", function()
        local array <close> = mb.random({ 3, 4, 5 }, { seed = 3 })
        local volume = mb.volumes.of_array(array)
        local view <close> = volume:read({ 1, 1, 1 }, { 2, 2, 2 }, mb.device "host")
        view:fill(7)
        assert.equal(7, (array:item(2, 2, 2)))
        local part <close> = mb.array({ { { 9, 8 } } }, { dtype = "u16" })
        volume:write({ 0, 0, 0 }, part)
        assert.equal(8, (array:item(1, 1, 2)))
    end)

    helper.gpu_it("pass between a GPU and files through the host's pool", function()
        local array <close> = mb.random({ 5, 9, 11 }, { seed = 1, dtype = "u16", high = 60000,
            device = "cuda:0" })
        mb.images.write(path "g.npy", array)
        local volume <close> = mb.images.open(path "g.npy")
        local block <close> = volume:read({ 1, 2, 3 }, { 2, 6, 5 }, mb.device "cuda:0")
        assert.equal("cuda:0", block.device.id)
        local expected <close> = array:view({ 2, 3 }, { 3, 8 }, { 4, 8 })
        helper.assert_close(expected, block, 0)
        local all <close> = mb.volumes.load(volume, "cuda:0")
        helper.assert_close(array, all, 0)
    end)

    it("say that a file has been cut since it was opened", function()
        local array <close> = mb.ones { 4, 5, 6 }
        mb.npy.write(path "cut.npy", array)
        local volume <close> = mb.npy.open(path "cut.npy")
        assert(os.execute(("truncate -s 300 '%s'"):format(path "cut.npy")))
        assert.matches("truncated",
            (helper.failure(volume.read, volume, { 3, 0, 0 }, { 1, 5, 6 }, mb.device "host")))
    end)

    it("say that the disk is full", function()
        local disk = files.small_disk(folder, "64k")
        if not disk then
            pending("no file system may be mounted here")
            return
        end
        local ok, err = pcall(mb.images.create, disk .. "/x.npy",
            { shape = { 100, 100, 100 }, dtype = "f32" })
        local left = files.list(disk)
        files.unmount(disk)
        assert.is_false(ok)
        assert.equal("io", err.code)
        assert.matches("No space left", tostring(err))
        assert.same({}, left)
    end)
end)

describe("core.rawfile", function()
    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    it("moves elements of any strides, in either byte order", function()
        files.write(path "raw", string.pack(">I2I2I2I2I2I2", 1, 2, 3, 4, 5, 60000) .. "end")
        local file <close> = core.rawfile.open(path "raw")
        assert.equal(15, file:bytes())
        assert.equal("end", file:get(12, 3))
        local block <close> = mb.empty({ 2, 3 }, { dtype = "u16" })
        file:read(block, 0, { 6, 2 }, { swap = true })
        assert.same({ { 1, 2, 3 }, { 4, 5, 60000 } }, block:to_table())
        -- element (i, j) at 2 i + 6 j: the same file, the same place
        local turned <close> = block:permute(2, 1)
        turned:fill(0)
        file:read(turned, 0, { 2, 6 }, { swap = true })
        assert.same({ { 1, 2, 3 }, { 4, 5, 60000 } }, block:to_table())
        local one <close> = mb.empty({ 2 }, { dtype = "u16" })
        file:read(one, 4, { 6 }, { swap = true })
        assert.same({ 3, 60000 }, one:to_table())
    end)

    it("names what is wrong", function()
        files.write(path "raw", "12345678")
        local file <close> = core.rawfile.open(path "raw")
        local block <close> = mb.empty({ 4 }, { dtype = "f32" })
        assert.matches("truncated", (helper.failure(file.read, file, block, 0, { 4 })))
        assert.matches("one number of bytes for each axis",
            (helper.failure(file.read, file, block, 0, { 4, 4 })))
        assert.matches("for reading", (helper.failure(file.write, file, block, 0, { 4 })))
        assert.matches("truncated", (helper.failure(file.get, file, 7, 2)))
        assert.matches("No such file", (helper.failure(core.rawfile.open, path "none")))
        assert.matches("not an ordinary file", (helper.failure(core.rawfile.open, folder)))
        file:close()
        assert.matches("closed", (helper.failure(file.read, file, block, 0, { 4 })))
    end)
end)
