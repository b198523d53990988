-- HDF5 filters that libraries decode (Blosc, LZ4, bitshuffle, Zstandard): by libhdf5, and by threads
-- beside it; damaged chunks; a library that is not there.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local python = require "spec.support.python"
local filtered = require "spec.files.h5.filtered_file"

local whole <const> = filtered.bytes
local NAMES <const> = {"bits", "bits_lz4", "bits_zstd", "blosc", "blosc_zstd", "lz4", "zstd",
    "zstd_sum"}

-- The values of every dataset of the file.
local function expected()
    local values = {}
    for f = 0, 2 do
        for y = 0, 4 do
            for x = 0, 16 do
                values[#values + 1] = string.pack("<I2", 300 * f + y * x + 7)
            end
        end
    end
    return table.concat(values)
end

-- A dataset by threads that decode beside libhdf5.
local function carried(file, path)
    local dataset <close> = file:dataset(path)
    local out <close> = mb.zeros(dataset.shape, {dtype = dataset.dtype, device = "host"})
    local carrier <close> = core.carrier.open {device = "host", threads = 2, pinned = "1Mi"}
    carrier:carry(dataset, out)
    carrier:wait()
    return out:to_string()
end

local function read(file, path)
    local values <close> = file:read(path, {device = "host"})
    return values:to_string()
end

describe("an HDF5 file whose chunks libraries decode", function()
    local folder, name
    before_each(function()
        folder = files.folder()
        name = folder .. "/f.h5"
        files.write(name, whole)
    end)
    after_each(function()
        files.remove(folder)
    end)

    it("is read by libhdf5 and by threads, without a plug-in", function()
        local file <close> = mb.h5.open(name)
        for _, each in ipairs(NAMES) do
            assert.is_true(read(file, "/" .. each) == expected(), each)
            assert.is_true(carried(file, "/" .. each) == expected(), each)
        end
    end)

    it("is read in part, and through a virtual dataset", function()
        do
            local made <close> = mb.h5.create(folder .. "/v.h5")
            made:create_virtual("/v", {shape = {3, 5, 17}, dtype = "u16",
                sources = {{file = "f.h5", path = "/bits_lz4", first = 1, last = 3}}})
            made:finish()
        end
        local virtual <close> = mb.h5.open(folder .. "/v.h5")
        assert.is_true(read(virtual, "/v") == expected())
        local file <close> = mb.h5.open(name)
        for _, each in ipairs(NAMES) do
            local part <close> = file:read("/" .. each, {2, 3}, {2, 4}, {3, 9},
                {device = "host"})
            assert.same({2, 3, 7}, part.shape)
            local bytes = part:to_string()
            assert.equal(300 + 1 * 2 + 7, (string.unpack("<I2", bytes)), each)
            assert.equal(600 + 3 * 8 + 7, (string.unpack("<I2", bytes, #bytes - 1)), each)
        end
    end)

    it("that is damaged is refused, or has other values of the same number", function()
        local random <close> = mb.random({80, 4}, {seed = 8, low = 0, high = 255, dtype = "u8"})
        local bytes = random:to_string()
        local refused, read_on = 0, 0
        for i = 1, 80 do
            local a, b, c, d = bytes:byte(4 * i - 3, 4 * i)
            local chunk = filtered.chunks[1 + a % #filtered.chunks]
            -- Every other time in the head of the chunk.
            local at = 1 + chunk[1] + b % (i % 2 == 0 and 20 or chunk[2])
            local other = folder .. "/d.h5"
            files.write(other, whole:sub(1, at - 1) .. string.char(c ~ (d | 1)) .. whole:sub(at + 1))
            local file = mb.h5.open(other)
            for _, each in ipairs(file and NAMES or {}) do
                for _, reader in ipairs {read, carried} do
                    local ok, values = pcall(reader, file, "/" .. each)
                    read_on = read_on + (ok and 1 or 0)
                    refused = refused + (ok and 0 or 1)
                    assert.is_nil(not ok and tostring(values):find "\n" or nil)
                end
            end
            if file then
                file:close()
            end
        end
        assert.is_true(refused > 30 and read_on > 1000, refused .. " " .. read_on)
    end)

    it("names the damage of a chunk", function()
        -- Heads of bitshuffle and LZ4: the bytes of all, 170, and of a block.
        local head = "\0\0\0\0\0\0\0\xaa\0\0"
        local changed, count = whole:gsub(head, "\0\0\0\0\0\0\xff\xaa\0\0")
        assert.is_true(count >= 6, count)
        files.write(name, changed)
        local file <close> = mb.h5.open(name)
        for _, each in ipairs {"bits_lz4", "bits_zstd", "lz4"} do
            for reader, problem in pairs {[read] = "the file is damaged",
                [carried] = "a compressed chunk is damaged"} do
                local ok, message = pcall(reader, file, "/" .. each)
                assert.is_false(ok)
                assert.matches(problem, tostring(message), 1, true)
            end
        end
    end)

    it("is refused where a chunk is sound and holds too few bytes, or too many", function()
        for _, held in ipairs {16, 169, 171, 340} do
            local bytes, found = whole, 0
            for _, chunk in ipairs(filtered.chunks) do
                local at = chunk[1] + 1
                if whole:sub(at, at + 1) == "\2\1" and whole:byte(at + 3) == 2 then
                    -- A buffer of Blosc whose bytes are stored, as far as the place goes.
                    found = found + 1
                    local head = string.pack("<BBBBI4I4I4", 2, 1, 2, 2, held, held, held + 16)
                    bytes = bytes:sub(1, at - 1) .. head .. bytes:sub(at + 16)
                end
            end
            assert.equal(6, found)
            files.write(name, bytes)
            local file <close> = mb.h5.open(name)
            for _, each in ipairs {"blosc", "blosc_zstd"} do
                for _, reader in ipairs {read, carried} do
                    local ok, message = pcall(reader, file, "/" .. each)
                    assert.is_false(ok, held)
                    assert.matches("damaged", tostring(message), 1, true)
                end
            end
            assert.is_true(read(file, "/lz4") == expected())
        end
    end)

    it("keeps the check of its sums", function()
        -- Fletcher's sum of what Zstandard has made is the end of a chunk.
        local last = filtered.chunks[#filtered.chunks]
        local at = last[1] + last[2]
        files.write(name, whole:sub(1, at - 1) .. string.char(whole:byte(at) ~ 1)
            .. whole:sub(at + 1))
        local file <close> = mb.h5.open(name)
        assert.equal("shuffle, zstd, fletcher32", file:dataset("/zstd_sum").filters)
        for _, reader in ipairs {read, carried} do
            local ok, message = pcall(reader, file, "/zstd_sum")
            assert.is_false(ok)
            assert.matches("data error detected by Fletcher32 checksum", tostring(message), 1, true)
        end
        assert.is_true(read(file, "/zstd") == expected())
    end)

    -- libzstd is there wherever libhdf5 of Debian is.
    it("names the Debian package of a library that is not there", function()
        if mb.system.stat(helper.program:gsub("[^/]*$", "") .. "../lib/libblosc.so.1") then
            helper.skip "a bundle has its own libraries"
        end
        files.write(folder .. "/s.lua", ([[
            local mb = require "moonbeam"
            local f <close> = mb.h5.open("%s")
            for _, each in ipairs {"bits", "lz4", "bits_lz4", "blosc"} do
                print(each, pcall(f.read, f, "/" .. each))
            end
        ]]):format(name))
        for library, names in pairs {["liblz4.so.1"] = {"lz4", "bits_lz4", package = "liblz4-1"},
            ["libblosc.so.1"] = {"blosc", package = "libblosc1"}} do
            local empty = folder .. "/" .. library .. ".d"
            assert(mb.system.mkdir(empty))
            files.write(empty .. "/" .. library, "no library")
            local output = files.run(("env LD_LIBRARY_PATH='%s' '%s' '%s/s.lua'"):format(empty,
                helper.program, folder))
            assert.matches("bits\ttrue", output, 1, true)
            for _, each in ipairs(names) do
                assert.matches(each .. "\tfalse[^\n]* is compressed by filter %d+ %(%l+%): the library "
                    .. library:gsub("%.", "%%.") .. ", which decodes it, is not on this machine: "
                    .. "install the Debian package " .. names.package:gsub("%-", "%%-"), output)
            end
        end
    end)
end)

describe("what hdf5plugin compresses", function()
    it("is read, whatever its chunks, elements and options", function()
        local folder = files.folder()
        python.prints({"h5py", "hdf5plugin"}, ([[
import numpy as np, h5py, hdf5plugin as hp
rng = np.random.default_rng(1)
n, r, c = 5, 19, 31
base = np.add.outer(np.arange(n) * 3, np.add.outer(np.arange(r), np.arange(c))) \
    + rng.integers(0, 9, (n, r, c))
ways = {}
for cname in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"):
    for shuffle in (0, 1, 2):
        ways[f"blosc_{cname}_{shuffle}"] = dict(hp.Blosc(cname=cname, shuffle=shuffle))
for size in (0, 1000):
    ways[f"lz4_{size}"] = dict(hp.LZ4(nbytes=size))
for cname in ("none", "lz4", "zstd"):
    for count in (0, 8, 64):
        ways[f"bits_{cname}_{count}"] = dict(hp.Bitshuffle(nelems=count, cname=cname))
ways["zstd"] = dict(hp.Zstd())
ways["zstd_shuffle"] = dict(hp.Zstd(), shuffle=True)
ways["lz4_sum"] = dict(hp.LZ4(), fletcher32=True)
with h5py.File("%s/f.h5", "w") as f:
    for kind in ("u1", "u2", "f4", "f8"):
        for way, options in ways.items():
            for tag, chunks in (("frame", (1, r, c)), ("two", (2, r, c)), ("odd", (3, 10, 17))):
                f.create_dataset(f"{kind}/{way}_{tag}", data=base.astype(kind), chunks=chunks,
                    **options)
        f[f"{kind}/plain"] = base.astype(kind)
]]):format(folder))
        local file <close> = mb.h5.open(folder .. "/f.h5")
        local count = 0
        for _, kind in ipairs {"u1", "u2", "f4", "f8"} do
            local want = read(file, "/" .. kind .. "/plain")
            for _, entry in ipairs(file:walk("/" .. kind)) do
                if entry.path:find "_%l+$" then
                    count = count + 1
                    assert.is_true(read(file, entry.path) == want, entry.path)
                    assert.is_true(carried(file, entry.path) == want, entry.path)
                end
            end
        end
        assert.equal(4 * 32 * 3, count)
        files.remove(folder)
    end)
end)
