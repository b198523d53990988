-- What a process reads is never overwritten by it, whatever files came and went before.

local files = require "spec.support.files"
local mb = require "moonbeam"

describe("a file that is read", function()
    local folder

    setup(function()
        folder = files.folder()
    end)

    teardown(function()
        files.remove(folder)
    end)

    -- A file system gives the number of a removed file to the next one.
    it("is kept where a file of ours had its number before", function()
        local array <close> = mb.random({2, 3}, {seed = 1})
        local name, other = folder .. "/a.npy", folder .. "/b.npy"
        for round = 1, 20 do
            mb.npy.write(name, array, {overwrite = true})
            local bytes = files.read(name)
            os.remove(name)
            files.write(other, bytes) -- a stranger's, often with the number of ours
            local read <close> = mb.npy.read(other)
            assert.same(array:to_table(), read:to_table())
            local ok, err = pcall(mb.npy.write, other, array, {overwrite = true})
            assert.is_false(ok, round)
            assert.equal("io", err.code)
            assert.equal("path", err.arg)
            assert.equal(bytes, files.read(other))
            os.remove(other)
        end
    end)

    it("keeps nobody from its name once it is gone, nor from its number", function()
        local array <close> = mb.random({2, 3}, {seed = 1})
        local name, other = folder .. "/c.npy", folder .. "/d.npy"
        mb.npy.write(folder .. "/e.npy", array)
        local bytes = files.read(folder .. "/e.npy")
        for _ = 1, 20 do
            files.write(name, bytes)
            local read <close> = mb.npy.read(name)
            assert.equal(2, read.shape[1])
            os.remove(name)
            files.write(other, bytes) -- nobody reads this one
            mb.npy.write(other, array, {overwrite = true})
            mb.npy.write(name, array)
            os.remove(name)
            os.remove(other)
        end
    end)
end)
