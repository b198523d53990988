-- Numbers of a zarr.json that no file stands for: they drive no loop and no list.
local files = require "spec.support.files"
local helper = require "spec.helper"
local json = require "moonbeam.internal.json"
local mb = require "moonbeam"

-- Within these a plan or an error comes, whatever a file says; a run that hangs ends after a minute.
local KIB <const>, SECONDS <const> = 300000, 60

-- A sanitized program does not start under a limit of addresses.
local LIMIT <const> = helper.program:find "/sanitize/" and "" or ("ulimit -v %d; "):format(10 * KIB)

describe("a Zarr array of absurd extents and no chunks", function()
    local folder, psf
    setup(function()
        folder = files.folder()
        psf = folder .. "/psf.npy"
        local array <close> = mb.ones({3, 3, 3}, {device = "host"})
        mb.npy.write(psf, array)
    end)
    teardown(function()
        files.remove(folder)
    end)

    local function written(shape, chunks)
        local root = ("%s/%s.zarr"):format(folder, table.concat(shape, "_"))
        assert(mb.system.mkdir(root))
        files.write(root .. "/zarr.json", json({zarr_format = 3, node_type = "array",
            shape = shape, data_type = "uint16", fill_value = 0,
            chunk_grid = {name = "regular", configuration = {chunk_shape = chunks}},
            chunk_key_encoding = {name = "default", configuration = {separator = "/"}},
            codecs = {{name = "bytes", configuration = {endian = "little"}}}}, {}))
        return root
    end

    local function ended(...)
        local output, _, status = files.run(("%stimeout %d '%s' %s"):format(LIMIT, SECONDS,
            mb.system.program(), string.format(...)))
        return status, output
    end

    for _, case in ipairs {
        {{1 << 31, 10, 14}, {4, 10, 14}, "2147483648 frames, and at most 1048576 can be read"},
        {{12, 10, 1 << 40}, {4, 10, 14}, "12 of the 12 frames of .* are missing, the first is 1"},
        {{1 << 18, 1 << 20, 4}, {4, 10, 14}, "at least 4096 of the 262144 frames of .* are missing"},
        {{1 << 20, 1 << 20, 4}, {1, 9, 4}, "at least 4096 of the 1048576 frames of .* are missing"},
    } do
        it(("is refused as a scan and as an image, %d x %d x %d"):format(table.unpack(case[1])),
            function()
                local root = written(case[1], case[2])
                local status, text = ended("reconstruct '%s' --angles 0:180 --angle-unit deg "
                    .. "--no-log --plan", root)
                assert.equal(1, status)
                assert.matches(case[3], text)
                status, text = ended("deconvolve '%s' '%s' -o '%s/o.npy' --plan --pixel 100 "
                    .. "--step 100", root, psf, folder)
                assert.equal(1, status)
                assert.matches("deconvolve: .* exceed the 2 TiB of addresses that a plan has",
                    text)
            end)
    end

    it("is looked through for the first 4096 that are missing", function()
        for count, more in pairs {[4096] = false, [4097] = true, [1 << 20] = true} do
            local volume <close> = mb.images.open(written({count, 2, 3}, {1, 2, 3}))
            assert.same({first = 1, count = 4096, more = more or nil}, volume:missing())
        end
    end)

    it("tells the frames of which one chunk of several is missing", function()
        local root = written({7, 5, 6}, {2, 5, 3})
        for _, each in ipairs {"0/0/0", "0/0/1", "1/0/0", "2/0/0", "2/0/1"} do
            local name = ("%s/c/%s"):format(root, each)
            assert(mb.system.mkdir(name:match "^(.*)/"))
            files.write(name, ("\1"):rep(2 * 5 * 3 * 2))
        end
        local volume <close> = mb.images.open(root)
        assert.same({first = 3, count = 3}, volume:missing())
    end)
end)
