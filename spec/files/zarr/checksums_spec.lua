-- Checksums at the end of compressed data.

local commands = require "spec.support.commands"
local core = require "moonbeam.core"
local helper = require "spec.helper"
local files = require "spec.support.files"
local mb = require "moonbeam"

-- The checksum of zlib's format (RFC 1950).
local function adler32(data)
    local a, b = 1, 0
    for i = 1, #data do
        a = (a + data:byte(i)) % 65521
        b = (b + a) % 65521
    end
    return b << 16 | a
end

-- The data in zlib's format, in one block without compression, before its checksum.
local function packed(data)
    return "\x78\x01\1" .. string.pack("<I2I2", #data, ~#data & 0xffff) .. data
end

describe("the checksum of a compressed chunk", function()
    local folder, data

    before_each(function()
        folder = files.folder()
        assert(mb.system.mkdir(folder .. "/a.zarr"))
        files.write(folder .. "/a.zarr/.zarray", [[{"zarr_format": 2, "shape": [2, 4, 4],
            "chunks": [2, 4, 4], "dtype": "<u2", "order": "C", "fill_value": 0, "filters": null,
            "compressor": {"id": "zlib", "level": 0}}]])
        local values = {}
        for i = 1, 32 do
            values[i] = string.pack("<I2", 1000 + i)
        end
        data = table.concat(values)
    end)

    after_each(function()
        files.remove(folder)
    end)

    local function read(chunk)
        files.write(folder .. "/a.zarr/0.0.0", chunk)
        local array <close> = mb.images.read(folder .. "/a.zarr")
        return {array:min(), array:max()}
    end

    it("is that of the data", function()
        assert.same({1001, 1032}, read(packed(data) .. string.pack(">I4", adler32(data))))
    end)

    it("is compared: other data are an error that names the array", function()
        local sum = string.pack(">I4", adler32(data))
        for at = 1, #data, 7 do
            local other = data:sub(1, at - 1) .. string.char(data:byte(at) ~ 4) .. data:sub(at + 1)
            local err = helper.failure(read, packed(other) .. sum)
            assert.matches(("'%s/a.zarr/0.0.0' is truncated or damaged: a chunk of '%s/a.zarr' is "
                .. "incomplete, or its checksum is wrong"):format(folder, folder), err, 1, true)
        end
        assert.matches("a.zarr", (helper.failure(read, packed(data) .. "\0\0\0\0")), 1, true)
    end)

    it("may be cut off behind complete data, which is noted", function()
        assert.same({1001, 1032}, read(packed(data) .. string.pack(">I4", adler32(data))))
        assert.is_nil((core.rawfile.unchecked()))
        for _, rest in ipairs {"", "\1\2", string.pack(">I4", adler32(data)):sub(1, 3)} do
            assert.same({1001, 1032}, read(packed(data) .. rest))
            assert.same({folder .. "/a.zarr/0.0.0", false}, {core.rawfile.unchecked()})
        end
        assert.is_nil((core.rawfile.unchecked()))
    end)

    it("is told once by a command, however many chunks have none", function()
        files.write(folder .. "/a.zarr/.zarray", [[{"zarr_format": 2, "shape": [6, 4, 4],
            "chunks": [2, 4, 4], "dtype": "<u2", "order": "C", "fill_value": 0, "filters": null,
            "compressor": {"id": "zlib", "level": 0}}]])
        for chunk = 0, 2 do
            files.write(("%s/a.zarr/%d.0.0"):format(folder, chunk), packed(data))
        end
        local psf <close> = mb.ones({1, 3, 3}, {device = "host"})
        mb.npy.write(folder .. "/psf.npy", psf)
        local text = commands.must("deconvolve.lua", ("%s/a.zarr %s/psf.npy -o %s/r.npy -q "
            .. "--iterations 2 --pixel 100 --step 100"):format(folder, folder, folder))
        assert.equal(1, select(2, text:gsub("deconvolve: warning: the checksum behind compressed "
            .. "data of '[^']*a.zarr/0.0.0' and of other files is cut off", "")))
        assert.equal(1, select(2, text:gsub("checksum", "")))
    end)

    it("is looked for behind data that are longer than the chunk", function()
        local longer = data .. ("\1"):rep(40)
        assert.same({1001, 1032}, read(packed(longer) .. string.pack(">I4", adler32(longer))))
        helper.failure(read, packed(longer) .. "\0\0\0\0")
    end)
end)
