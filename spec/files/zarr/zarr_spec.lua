-- Zarr as input: formats 2 and 3 as zarr-python writes them, our own results, damaged and hostile
-- folders.
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local python = require "spec.support.python"
local read_json = require "moonbeam.internal.json_reader"
local shards = require "moonbeam.zarr.shards"

describe("JSON", function()
    it("is read as it is written", function()
        assert.same({a = {1, -2.5e3, true, false, false}, b = 'ä"\\\n€😀', c = {}},
            read_json [[ {"a": [1, -2.5e3, true, false, null],
                "b": "\u00e4\"\\\n€\ud83d\ude00", "c": {}} ]])
        assert.equal("integer", math.type(read_json "12"))
    end)

    it("is refused with its line", function()
        for text, problem in pairs {
            ["{\n\"a\": }"] = "line 2: a value is missing", ["[1, 2"] = "']' or a comma is missing",
            ['{"a" 1}'] = "':' is missing", ['"abc'] = "a string does not end",
            ["[1] 2"] = "something follows", [("["):rep(100)] = "nested more than 64 deep",
            ['"\\q"'] = "there is no \\q", [""] = "a value is missing", ["0x10"] = "a value",
        } do
            local value, message = read_json(text)
            assert.is_nil(value)
            assert.matches(problem, message, 1, true)
        end
    end)
end)

describe("Zarr", function()
    local folder
    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    -- What zarr-python writes: code that has `a`, (7, 20, 33), and put(name, a, **options).
    local function written(code)
        return python.prints({"zarr"}, ([[
import numcodecs, warnings, zarr, numpy as np
from numcodecs import Zlib, GZip, Blosc, LZ4, LZMA
warnings.simplefilter("ignore")
def lz4_3(): # of format 3
    import zarr.codecs.numcodecs as codecs
    return codecs.LZ4()
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec
f = "%s"
a = np.random.default_rng(1).random((7, 20, 33)) * 200
def put(name, a, **options):
    z = zarr.create_array(f"{f}/{name}.zarr", shape=a.shape, dtype=a.dtype, **options)
    z[...] = a
    np.save(f"{f}/{name}.npy", a.astype(a.dtype.newbyteorder("<")))
]]):format(folder) .. code)
    end

    local function check(name)
        local got <close> = mb.images.read(folder .. "/" .. name .. ".zarr", "host")
        local expected <close> = mb.npy.read(folder .. "/" .. name .. ".npy", {device = "host"})
        assert.equal(expected.dtype, got.dtype, name)
        assert.same(expected.shape, got.shape, name)
        assert.is_true(expected:to_string() == got:to_string(), name)
        if #expected.shape == 3 then -- and a block of it
            local volume <close> = mb.images.open(folder .. "/" .. name .. ".zarr")
            local block <close> = volume:read({1, 5, 9}, {4, 11, 20}, mb.device "host")
            local part <close> = expected:view({2, 5}, {6, 16}, {10, 29})
            local dense <close> = part:copy()
            assert.is_true(dense:to_string() == block:to_string(), name)
        end
    end

    it("is read in both formats, in chunks and shards, plain and with gzip and zlib", function()
        written [[
put("v3_plain", a.astype("f4"), chunks=(2, 6, 10), compressors=None)
put("v3_big", a.astype("u2"), chunks=(2, 6, 10), compressors=None,
    serializer=BytesCodec(endian="big"))
put("v3_gzip", a.astype("u2"), chunks=(2, 6, 10), compressors=GzipCodec())
put("v3_shard", a.astype("f8"), shards=(4, 12, 20), chunks=(2, 6, 10), compressors=None)
put("v3_shardgz", a.astype("i4"), shards=(4, 12, 20), chunks=(2, 6, 10), compressors=GzipCodec())
put("v2_plain", a.astype(">u2"), chunks=(3, 6, 10), compressors=None, zarr_format=2)
put("v2_zlib", a.astype("f4"), chunks=(3, 6, 10), compressors=Zlib(), zarr_format=2)
put("v2_gzip", a.astype("u1"), chunks=(3, 6, 10), compressors=GZip(), zarr_format=2)
put("v2_flat", a[0].astype("f2"), chunks=(6, 10), compressors=None, zarr_format=2)
b = zarr.create_array(f"{f}/holes.zarr", shape=a.shape, dtype="f4", chunks=(2, 6, 10),
    shards=(4, 12, 20), compressors=None, fill_value=7.5)
b[0:2, 0:6, 0:10] = a[0:2, 0:6, 0:10]
np.save(f"{f}/holes.npy", b[...])
]]
        for _, name in ipairs {"v3_plain", "v3_big", "v3_gzip", "v3_shard", "v3_shardgz",
            "v2_plain", "v2_zlib", "v2_gzip", "v2_flat", "holes"} do
            check(name)
        end
    end)

    it("is read with what zarr-python takes by itself, Zstandard and Blosc", function()
        -- Blosc splits blocks of equal size and leaves the last one whole; noise is copied.
        written [[
put("zstd", a.astype("f4"), chunks=(2, 6, 10), compressors=ZstdCodec())
put("usual", a.astype("u2"), shards=(4, 12, 20), chunks=(2, 6, 10))
put("blosc3", a.astype("f4"), chunks=(7, 20, 33), compressors=BloscCodec(typesize=4))
put("usual2", a.astype("f4"), chunks=(7, 20, 33), compressors=Blosc(), zarr_format=2)
smooth = np.add.outer(np.arange(7), np.add.outer(np.arange(20), np.arange(33))) // 3
noise = np.random.default_rng(2).integers(0, 256, a.shape)
put("lz4", a.astype("f4"), chunks=(2, 6, 10), compressors=LZ4(), zarr_format=2)
put("lz4_big", smooth.astype(">u2"), chunks=(5, 20, 33), compressors=LZ4(), zarr_format=2)
put("lz4_3", smooth.astype("u2"), shards=(4, 20, 33), chunks=(2, 20, 33), compressors=lz4_3())
for cname in ("blosclz", "snappy"):
    if cname in numcodecs.blosc.list_compressors():
        put(cname, smooth.astype("u2"), chunks=(5, 20, 33), compressors=Blosc(cname, 5, 1),
            zarr_format=2)
for cname in ("lz4", "lz4hc", "zlib", "zstd"):
    for shuffle in (0, 1, 2):
        for kind in ("u1", "u2", "f4", "f8"):
            for block in (0, 1024, 7000):
                put(f"{cname}_{shuffle}_{kind}_{block}", smooth.astype(kind), chunks=(5, 20, 33),
                    compressors=Blosc(cname, 5, shuffle, block), zarr_format=2)
put("noise", noise.astype("u1"), chunks=(5, 20, 33), compressors=Blosc(), zarr_format=2)
put("big_endian", smooth.astype(">f4"), chunks=(5, 20, 33), compressors=Blosc(), zarr_format=2)
]]
        for _, name in ipairs(files.list(folder)) do
            if name:find "%.npy$" then
                check(name:gsub("%.npy$", ""))
            end
        end
    end)

    it("is read in int8, int16 and uint32, which are widened without a loss", function()
        written [[
import warnings
s = (a * 20).astype("i8") - 2000
for name, kind, wide in (("i1", "i1", "i4"), ("i2", "i2", "i4"), ("u4", "u4", "f8")):
    own = (s // 20 if kind == "i1" else s if kind == "i2" else s + 4_000_000_000).astype(kind)
    for fmt, codec, order in ((2, None, "<"), (2, Blosc(), ">" if kind != "i1" else "|"),
        (3, None, "<"), (3, ZstdCodec(), "<")):
        stored = own.astype(own.dtype.newbyteorder(order)) if kind != "i1" else own
        full = f"{name}_{fmt}_{codec is not None}"
        put(full, stored if fmt == 2 else own, chunks=(2, 6, 10), compressors=codec, zarr_format=fmt)
        np.save(f"{f}/{full}.npy", own.astype(wide))
]]
        for _, name in ipairs(files.list(folder)) do
            if name:find "%.npy$" then
                check(name:gsub("%.npy$", ""))
            end
        end
    end)

    -- Damages the one chunk of an array in 200 ways.
    local function damage(name)
        local path = name .. "/0.0.0"
        local whole = files.read(path)
        local random <close> = mb.random({200, 3}, {seed = 5, low = 0, high = 255, dtype = "u8"})
        local bytes = random:to_string()
        local refused = 0
        for i = 1, 200 do
            local a, b, c = bytes:byte(3 * i - 2, 3 * i)
            local at = 1 + (a * 256 + b) % #whole
            files.write(path, i % 4 == 0 and whole:sub(1, at)
                or whole:sub(1, at - 1) .. string.char(c) .. whole:sub(at + 1))
            local ok, message = pcall(mb.images.read, name, "host")
            if ok then
                message:release()
            else
                refused = refused + 1
                assert.matches("damaged", tostring(message))
            end
        end
        assert.is_true(refused > 60, refused)
    end

    it("with damaged chunks of Blosc and LZ4 is refused, and nothing is read beyond them", function()
        written [[
smooth = np.add.outer(np.arange(7), np.add.outer(np.arange(20), np.arange(33)))
for name, codec in ("b", Blosc()), ("bits", Blosc("zstd", 5, 2, 2048)), ("l", LZ4()):
    put(name, smooth.astype("u2"), chunks=(7, 20, 33), compressors=codec, zarr_format=2)
]]
        for _, name in ipairs {"b", "bits", "l"} do
            damage(folder .. "/" .. name .. ".zarr")
        end
    end)

    it("with a chunk whose head says too much is refused before memory is taken", function()
        written [[
smooth = np.add.outer(np.arange(7), np.add.outer(np.arange(20), np.arange(33)))
put("b", smooth.astype("u2"), chunks=(7, 20, 33), compressors=Blosc(), zarr_format=2)
put("l", smooth.astype("u2"), chunks=(7, 20, 33), compressors=LZ4(), zarr_format=2)
]]
        -- Of Blosc: bytes of all, of a block, of the buffer; of LZ4: bytes of all.
        for _, change in ipairs {{"b", 5}, {"b", 9}, {"b", 13}, {"l", 1}} do
            local name = ("%s/%s.zarr"):format(folder, change[1])
            local path = name .. "/0.0.0"
            local whole = files.read(path)
            for _, size in ipairs {0x7ffffff0, 0xffffffff, 0, 9241, 9239} do
                files.write(path, whole:sub(1, change[2] - 1) .. string.pack("<I4", size)
                    .. whole:sub(change[2] + 4))
                local ok, message = pcall(mb.images.read, name, "host")
                if ok then
                    message:release()
                end
                -- More behind a buffer is not looked at; a block's size may be another.
                assert.is_true(not ok or change[2] == 9 and size < 9240, change[2] .. " " .. size)
                assert.is_true(ok or tostring(message):find("damaged", 1, true) ~= nil)
            end
            files.write(path, whole)
        end
    end)

    it("whose codec has no library here names its Debian package", function()
        if mb.system.stat(helper.program:gsub("[^/]*$", "") .. "../lib/libblosc.so.1") then
            helper.skip "a bundle has its own libraries"
        end
        written [[
put("blosc", a.astype("u2"), chunks=(7, 20, 33), compressors=Blosc(), zarr_format=2)
put("lz4", a.astype("u2"), chunks=(7, 20, 33), compressors=LZ4(), zarr_format=2)
]]
        files.write(folder .. "/s.lua", ([[
            local mb = require "moonbeam"
            for _, name in ipairs {"blosc", "lz4"} do
                print(name, pcall(mb.images.open, "%s/" .. name .. ".zarr"))
            end
        ]]):format(folder))
        for library, package in pairs {["liblz4.so.1"] = "liblz4-1",
            ["libblosc.so.1"] = "libblosc1"} do
            local empty = folder .. "/" .. package
            assert(mb.system.mkdir(empty))
            files.write(empty .. "/" .. library, "no library")
            local output = files.run(("env LD_LIBRARY_PATH='%s' '%s' '%s/s.lua'"):format(empty,
                helper.program, folder))
            local lost = library:match "^lib(%w+)"
            assert.matches(lost .. "\tfalse[^\n]*the library " .. library:gsub("%.", "%%.")
                .. ", which decodes it, is not on this machine: install the Debian package "
                .. package:gsub("%-", "%%-") .. ", or save the array with gzip", output)
        end
    end)

    it("of channels and times is all pages or one volume, in the memory that is planned", function()
        written [[
five = np.stack([np.stack([a + 50 * c + 9 * t for c in range(2)]) for t in range(3)])
put("five", five.astype("u2"), shards=(1, 2, 4, 12, 20), chunks=(1, 1, 2, 6, 10))
put("planes", five[:, :, 0].astype("f4"), chunks=(2, 1, 6, 10), compressors=None,
    dimension_names=("t", "c", "y", "x"))
put("wells", five.astype("u1"), chunks=(1, 1, 2, 6, 10), dimension_names=("t", "w", "z", "y", "x"))
]]
        for name, slices in pairs {five = 7, planes = 1} do
            local all <close> = mb.npy.read(("%s/%s.npy"):format(folder, name), {device = "host"})
            local want <close> = all:reshape(6 * slices, 20, 33)
            local path = ("%s/%s.zarr"):format(folder, name)
            local volume <close> = mb.images.open(path)
            assert.same({2, 3, slices}, {volume.meta.channels, volume.meta.frames,
                volume.meta.slices})
            local function read(device)
                local block <close> = volume:read({slices - 1, 5, 9}, {2 * slices + 1, 11, 20},
                    device, device)
                return not device.dry and block:to_string()
            end
            local part <close> = want:view({slices, 3 * slices}, {6, 16}, {10, 29})
            local dense <close> = part:copy()
            assert.is_true(dense:to_string() == read(mb.device "host"))
            assert.equal(mb.plan.peak(read, "host").peak, mb.pool.peak(read, "host",
                mb.device "host"))
            local one <close> = mb.images.open(path, {channel = 2, frame = 3})
            local values <close> = mb.volumes.load(one, "host")
            assert.same(name == "five" and {7, 20, 33} or {20, 33}, one.shape)
            local own <close> = all:view(3, 2)
            local copy <close> = own:copy()
            assert.is_true(copy:to_string() == values:to_string())
        end
        local ok, message = pcall(mb.images.open, folder .. "/wells.zarr")
        assert.is_false(ok)
        assert.matches("axis 2 ('w') has the extent 2, which no volume has", tostring(message), 1,
            true)
    end)

    it("takes the memory that a dry run takes", function()
        written [[
put("v3_gzip", a.astype("u2"), chunks=(2, 6, 10), compressors=GzipCodec())
put("v3_plain", a.astype("u2"), chunks=(2, 6, 10), compressors=None)
put("blosc", a.astype("u2"), chunks=(2, 6, 10), compressors=Blosc(), zarr_format=2)
put("lz4", a.astype("u2"), chunks=(2, 6, 10), compressors=LZ4(), zarr_format=2)
]]
        local peaks = {}
        for _, name in ipairs {"v3_gzip", "v3_plain", "blosc", "lz4"} do
            local volume <close> = mb.images.open(folder .. "/" .. name .. ".zarr")
            local function read(device)
                local block <close> = volume:read({1, 5, 9}, {4, 11, 20}, device, device)
                return block.bytes
            end
            peaks[name] = mb.pool.peak(read, "host", mb.device "host")
            assert.equal(mb.plan.peak(read, "host").peak, peaks[name])
        end
        -- Beside a chunk of 240 bytes libblosc takes two blocks and its 128 KiB.
        assert.is_true(peaks.v3_gzip > peaks.v3_plain)
        assert.equal(peaks.v3_gzip, peaks.lz4)
        assert.is_true(peaks.blosc >= peaks.lz4 + 480 + (128 << 10), peaks.blosc - peaks.lz4)
    end)

    it("is refused where it is compressed otherwise, or of other types", function()
        written [[
put("twice", a.astype("f4"), chunks=(2, 6, 10), compressors=(ZstdCodec(), GzipCodec()))
put("lzma", a.astype("f4"), chunks=(2, 6, 10), compressors=LZMA(), zarr_format=2)
put("bits", (a > 3), chunks=(2, 6, 10), compressors=None)
]]
        for name, problem in pairs {twice = "compressed twice, by 'gzip' too",
            lzma = "the codec 'lzma', which is not read", bits = "elements of type 'bool'"} do
            local ok, message = pcall(mb.images.open, folder .. "/" .. name .. ".zarr")
            assert.is_false(ok)
            assert.matches(problem, tostring(message), 1, true)
        end
    end)

    -- A group of format 2 with an image (t, c, z, y, x), by hand.
    local function image(chunk)
        local name = folder .. "/i.zarr"
        mb.system.mkdir(name)
        mb.system.mkdir(name .. "/s0")
        files.write(name .. "/.zgroup", '{"zarr_format": 2}')
        files.write(name .. "/.zattrs", [[{"multiscales": [{"version": "0.4", "axes": [
            {"name": "t"}, {"name": "c"}, {"name": "z", "unit": "micrometer"}, {"name": "y"},
            {"name": "x"}], "datasets": [{"path": "s0", "coordinateTransformations":
            [{"type": "scale", "scale": [1, 1, 2.5, 1, 1]}]}]}]}]])
        files.write(name .. "/s0/.zarray", [[{"zarr_format": 2, "shape": [1, 2, 2, 1, 3],
            "chunks": [1, 1, 2, 1, 2], "dtype": "|u1", "compressor": null, "filters": null,
            "order": "C", "fill_value": 9, "dimension_separator": "/"}]])
        for _, part in ipairs {"0", "0/1", "0/1/0", "0/1/0/0"} do
            mb.system.mkdir(name .. "/s0/" .. part)
        end
        files.write(name .. "/s0/0/1/0/0/0", chunk or "abcd")
        return name
    end

    it("has channels, sizes, and values for chunks that are not there", function()
        local name = image()
        local volume <close> = mb.images.open(name, {channel = 2})
        assert.same({2, 1, 3}, volume.shape)
        assert.equal(2.5, volume.meta.spacing)
        assert.equal("micrometer", volume.meta.unit)
        local all <close> = mb.volumes.load(volume, "host")
        assert.equal("ab\9cd\9", all:to_string())
        local one <close> = mb.images.open(name .. "/s0", {channel = 1})
        local empty <close> = mb.volumes.load(one, "host")
        assert.equal(("\9"):rep(6), empty:to_string())
        for options, problem in pairs {[{frame = 2}] = "there is no frame 2: it has 1",
            [{channel = 3}] = "there is no channel 3: it has 2"} do
            local ok, message = pcall(mb.images.open, name, options)
            assert.is_false(ok)
            assert.matches(problem, tostring(message), 1, true)
        end
        -- The pages of all channels, as of a TIFF hyperstack.
        local pages <close> = mb.images.read(name, "host")
        assert.same({4, 1, 3}, pages.shape)
        assert.equal(("\9"):rep(6) .. "ab\9cd\9", pages:to_string())
    end)

    it("says what is damaged, and stays in its folder", function()
        local function refused(name, problem)
            local ok, message = pcall(mb.images.open, name, {channel = 2})
            if ok then
                local volume <close> = message
                ok, message = pcall(mb.volumes.load, volume, "host")
            end
            assert.is_false(ok)
            assert.matches(problem, tostring(message), 1, true)
            assert.is_nil(tostring(message):find "\n")
        end
        refused(image "abc", "a chunk has 3 bytes instead of 4")
        local name = image()
        local text = files.read(name .. "/.zattrs")
        files.write(name .. "/.zattrs", (text:gsub('"s0"', '"a/../../b"')))
        refused(name, "outside the folder")
        files.write(name .. "/.zattrs", text:sub(1, 90))
        refused(name, "it is not the JSON of a Zarr array or group (line ")
        files.write(name .. "/.zattrs", "{}")
        refused(name, "has no image (multiscales): name the array")
        refused(folder .. "/none.zarr", "there is no such folder")
        files.write(name .. "/.zattrs", text)

        -- Of a plate, the advice names an image that exists: the first wells have none.
        local plate = folder .. "/plate.zarr"
        local wells = {}
        for i, path in ipairs {"A/1", "A/2", "B/3"} do
            wells[i] = ('{"path": "%s"}'):format(path)
        end
        for _, path in ipairs {"", "/A", "/A/2", "/B", "/B/3", "/B/3/1"} do
            assert(mb.system.mkdir(plate .. path))
        end
        files.write(plate .. "/.zattrs", ('{"plate": {"wells": [%s]}}'):format(
            table.concat(wells, ",")))
        local well = '{"well": {"images": [{"path": "0"}, {"path": "1"}]}}'
        files.write(plate .. "/A/2/.zattrs", well)
        refused(plate, "this is a plate of 3 wells, and none of its images is here")
        refused(plate .. "/A/2", "this is a well, and none of its images is here")
        files.write(plate .. "/B/3/.zattrs", well)
        files.write(plate .. "/B/3/1/.zattrs", text)
        local advice = "name one of its images, such as " .. plate .. "/B/3/1"
        refused(plate, "this is a plate of 3 wells: " .. advice)
        refused(plate .. "/B/3", "this is a well: " .. advice)
        refused(plate .. "/B/3/1", "there is no array")
        files.write(plate .. "/.zattrs", ('{"ome": {"plate": {"wells": [%s]}}}'):format(wells[3]))
        refused(plate, "this is a plate of 1 well: " .. advice)
        assert(mb.system.mkdir(folder .. "/empty.zarr"))
        refused(folder .. "/empty.zarr", "there is no Zarr array or group here")
    end)

    it("is read back from a result, and its damage is found", function()
        local path = folder .. "/v.zarr"
        local values <close> = mb.random({5, 20, 30}, {seed = 2, device = "host"})
        shards.limits.band, shards.limits.shard = 900, 5000
        local result <close> = mb.result.create(path, {shape = values.shape, pixel_size = 1e-6})
        shards.limits.band, shards.limits.shard = 4 << 20, 256 << 20
        result:write(values, 1)
        result:finish()
        local read <close>, meta = mb.images.read(path, "host")
        assert.is_true(values:to_string() == read:to_string())
        assert.equal(1, meta.spacing)
        local name = path .. "/0/c/1/0/0"
        local bytes = files.read(name)
        files.write(name, bytes:sub(1, -2) .. "x")
        local ok, message = pcall(mb.images.read, path, "host")
        assert.is_false(ok)
        assert.matches("the checksum of its index is wrong", tostring(message), 1, true)
        files.write(name, bytes:sub(-40))
        ok, message = pcall(mb.images.read, path, "host")
        assert.is_false(ok)
        assert.is_table(message)
    end)

    -- Changes bytes of a file; all that comes of it is a volume or an error of one line.
    local function mutate(name, path, seed, options)
        local original, state, opened = files.read(path), seed, 0
        local function random(n)
            state = (state * 1103515245 + 12345) & 0x7fffffff
            return (state >> 8) % n
        end
        local words = {"0", "-1", "9007199254740993", "1e400", "null", "[]", "{}", '"x"', "true",
            ""}
        for _ = 1, 150 do
            local text = original
            for _ = 1, 1 + random(2) do
                local at = 1 + random(#text)
                if random(2) == 0 then
                    text = text:sub(1, at - 1) .. string.char(32 + random(95)) .. text:sub(at + 1)
                else -- a value
                    local from, to = text:find('[%w%-.]+', at)
                    local word = words[1 + random(#words)]
                    text = from and text:sub(1, from - 1) .. word .. text:sub(to + 1) or text
                end
            end
            files.write(path, text)
            local ok, problem = pcall(function()
                local volume <close> = mb.images.open(name, options)
                if mb.volumes.bytes(volume) < 1 << 20 then
                    mb.volumes.load(volume, "host"):release()
                end
            end)
            opened = opened + (ok and 1 or 0)
            assert(ok or type(problem) == "table", text .. "\n" .. tostring(problem))
            assert(ok or not tostring(problem):find "\n", tostring(problem))
        end
        files.write(path, original)
        return opened
    end

    it("is a volume or one line, whatever is in it", function()
        local name = image()
        assert.is_true(mutate(name, name .. "/.zattrs", 1, {channel = 2}) > 10)
        assert.is_true(mutate(name, name .. "/s0/.zarray", 2, {channel = 2}) > 10)
        assert.is_true(mutate(name, name .. "/.zattrs", 5) > 10)
        assert.is_true(mutate(name, name .. "/s0/.zarray", 6) > 10)
        local path = folder .. "/v.zarr"
        local values <close> = mb.random({3, 20, 30}, {seed = 2, device = "host"})
        local result <close> = mb.result.create(path, {shape = values.shape})
        result:write(values, 1)
        result:finish()
        assert.is_true(mutate(path, path .. "/zarr.json", 3) > 10)
        assert.is_true(mutate(path, path .. "/0/zarr.json", 4) > 10)
    end)
end)

describe("a series of TIFF files", function()
    local folder
    before_each(function()
        folder = files.folder()
        for i = 1, 11 do
            local page <close> = mb.full({4, 5}, i, {dtype = "u16", device = "host"})
            mb.tiff.write(("%s/p_%d.tif"):format(folder, i), page)
        end
    end)
    after_each(function()
        files.remove(folder)
    end)

    it("is a volume in the order of its numbers, as a folder and as a pattern", function()
        for _, name in ipairs {folder, folder .. "/", folder .. "/p_*.tif"} do
            local all <close> = mb.images.read(name, "host")
            assert.same({11, 4, 5}, all.shape)
            for i = 1, 11 do
                assert.equal(i, all:item(i, 1, 5))
            end
        end
        local few <close> = mb.images.read(folder .. "/p_1?.tif", "host")
        assert.same({2, 4, 5}, few.shape)
        local volume <close> = mb.images.open(folder)
        local block <close> = volume:read({8, 1, 2}, {2, 2, 3}, mb.device "host")
        assert.same({{{9, 9, 9}, {9, 9, 9}}, {{10, 10, 10}, {10, 10, 10}}}, block:to_table())
    end)

    it("is refused where files differ or are missing", function()
        local function refused(name, problem)
            local ok, message = pcall(mb.images.open, name)
            assert.is_false(ok)
            assert.matches(problem, tostring(message), 1, true)
        end
        refused(folder .. "/q_*.tif", "no file has such a name")
        refused(folder .. "/nowhere/*.tif", "there is no folder")
        refused(folder:gsub("[^/]*$", "*") .. "/p_1.tif", "only the last part of a name")
        local page <close> = mb.full({4, 6}, 1, {dtype = "u16", device = "host"})
        mb.tiff.write(folder .. "/p_5.tif", page, {overwrite = true})
        refused(folder, "p_5.tif is 4 x 6 u16, but the first file of the series")
        local stack <close> = mb.full({2, 4, 5}, 1, {dtype = "u16", device = "host"})
        mb.tiff.write(folder .. "/p_5.tif", stack, {overwrite = true})
        refused(folder, "has 2 pages; a file of a series has one")
        files.write(folder .. "/p_5.tif", "II*\0nothing")
        refused(folder, "p_5.tif")
    end)
end)
