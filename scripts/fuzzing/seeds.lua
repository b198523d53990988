--- The undamaged files that mutants are made of, small ones of every kind that is read.
--
-- A seed is {name, kind = "scan", "image", "texts" (texts.lua) or one of commands.lua, extension,
-- text, values, protected}: `values` are the byte ranges of numbers of which any is plausible
-- (angles, image keys, pixel sizes), `protected` those and the pixels. A seed that is a folder has
-- no text but `parts`, a list of {name, text} with names relative to the folder.

local mb = require "moonbeam"
local commands = require "scripts.fuzzing.commands"
local core = require "moonbeam.core"
local read = require("scripts.fuzzing.report").read
local texts = require "scripts.fuzzing.texts"
local tiff_encoder = require "spec.support.tiff_encoder"

local seeds = {}

local function run(...)
    local words = {}
    for i, word in ipairs {core.system.program(), ...} do
        words[i] = ("'%s'"):format(word)
    end
    assert(os.execute(table.concat(words, " ") .. " >/dev/null"), "a seed could not be made")
end

-- Appends the ranges of `bytes` in `text`.
local function locate(ranges, text, bytes)
    local at = 1
    while #bytes > 0 do
        local first, last = text:find(bytes, at, true)
        if not first then
            return
        end
        ranges[#ranges + 1] = {first, last}
        at = last + 1
    end
end

local function packed(format, array)
    local parts = {}
    local function add(value)
        if type(value) == "table" then
            for _, item in ipairs(value) do
                add(item)
            end
        else
            parts[#parts + 1] = string.pack(format, value)
        end
    end
    add(array:to_table())
    return table.concat(parts)
end

local FORMATS = {u8 = "I1", u16 = "<I2", i32 = "<i4", f32 = "<f", f64 = "<d"}

-- The seed of a scan's file: which of its bytes are values, and which pixels.
local function scan_seed(name, path, frames)
    local text = read(path)
    local seed = {name = name, kind = "scan", extension = "h5", text = text, values = {},
        protected = {}}
    local file <close> = assert(mb.h5.open(path))
    for _, object in ipairs(file:walk()) do
        if object.kind == "dataset" and object.shape and FORMATS[object.dtype] then
            local array <close> = file:read(object.path, {device = "host"})
            local is_frames = #object.shape == 3
            if not is_frames and not object.path:find("^/simulation") then
                locate(seed.values, text, packed(FORMATS[object.dtype], array))
            end
            locate(seed.protected, text, packed(FORMATS[object.dtype], array))
        end
    end
    for _, unit in ipairs {"deg\0", "degree\0", "um\0", "m\0"} do
        locate(seed.protected, text, unit)
    end
    seed.frames = frames
    return seed
end

-- A scan whose frames are chunked and packed, of text attributes and f32 counts.
local function write_packed(path)
    local angles, count = {}, 24
    for i = 1, count do
        angles[i] = (i - 1) * 180 / count
    end
    local file <close> = mb.h5.create(path, {overwrite = true})
    file:group("/exchange")
    file:write("/exchange/theta", mb.array(angles, {dtype = "f64"}), {attributes = {units = "deg"}})
    for frames, name in pairs {[count] = "data", [2] = "data_white", [3] = "data_dark"} do
        local low = ({data = 400, data_white = 900, data_dark = 10})[name]
        local counts <close> = mb.random({frames, 4, 16}, {seed = frames, low = low,
            high = low + 50})
        local dataset = file:create_dataset("/exchange/" .. name,
            {shape = {frames, 4, 16}, dtype = "f32", chunks = {1, 4, 16},
            deflate = 4})
        dataset:write(counts, {1, frames})
    end
    file:finish()
end

-- A folder as a seed: the files below it, sorted.
local function folder_seed(name, extension, path)
    local parts = {}
    local function add(below)
        local names = core.system.folder(path .. below)
        table.sort(names)
        for _, each in ipairs(names) do
            local inner = below .. "/" .. each
            if core.system.stat(path .. inner).kind == "folder" then
                add(inner)
            else
                parts[#parts + 1] = {name = inner:sub(2), text = read(path .. inner)}
            end
        end
    end
    add("")
    assert(#parts > 1, "a seed has no files")
    return {name = name, kind = "image", extension = extension, parts = parts, values = {},
        protected = {}}
end

local SHAPE <const> = {3, 20, 21}

-- Our own result: format 3, shards, a pyramid.
local function write_shards(path)
    local result = mb.result.create(path, {shape = SHAPE, overwrite = true})
    local slices <close> = mb.random(SHAPE, {seed = 3})
    result:write(slices, 1)
    result:finish()
end

-- Format 2 or 3 in chunks of {2, 8, 21}, of u16, big-endian in format 2; each chunk through
-- `encoded`.
local function write_chunks(path, version, codec, encoded)
    local three = version == 3
    for _, inner in ipairs {"", "/c", "/c/0", "/c/1"} do
        assert(inner ~= "" and not three or core.system.mkdir(path .. inner))
    end
    local json <close> = assert(io.open(path .. (three and "/zarr.json" or "/.zarray"), "w"))
    json:write(three and ([[{"zarr_format": 3, "node_type": "array", "shape": [3, 20, 21],
"data_type": "uint16", "chunk_grid": {"name": "regular", "configuration":
{"chunk_shape": [2, 8, 21]}}, "chunk_key_encoding": {"name": "default", "configuration":
{"separator": "/"}}, "fill_value": 0, "codecs": [{"name": "bytes", "configuration":
{"endian": "little"}}%s], "attributes": {}}]]):format(codec)
        or ([[{"zarr_format": 2, "shape": [3, 20, 21], "chunks": [2, 8, 21], "dtype": ">u2",
"compressor": %s, "fill_value": 0, "order": "C", "filters": null}]]):format(codec))
    for z = 0, 1 do
        assert(not three or core.system.mkdir(("%s/c/%d"):format(path, z)))
        for y = 0, 2 do
            local values = {}
            for i = 1, 2 * 8 * 21 do
                values[i] = string.pack(three and "<I2" or ">I2", (z * 7919 + y * 104 + i * i)
                    % 4096)
            end
            assert(not three or core.system.mkdir(("%s/c/%d/%d"):format(path, z, y)))
            local name = (three and "%s/c/%d/%d/0" or "%s/%d.%d.0"):format(path, z, y)
            local chunk <close> = assert(io.open(name, "wb"))
            chunk:write(encoded(table.concat(values)))
        end
    end
end

-- What gzip(1) makes of a text.
local function gzipped(text)
    local name = os.tmpname()
    local file <close> = assert(io.open(name, "wb"))
    file:write(text)
    file:close()
    local pipe <close> = assert(io.popen(("gzip -nc '%s'"):format(name), "r"))
    local bytes = pipe:read("a")
    os.remove(name)
    return bytes
end

local function unchanged(text)
    return text
end

-- Zarr in both formats, and a series of TIFF files.
local function add_folders(list, folder)
    local path = folder .. "/shards.zarr"
    write_shards(path)
    list[#list + 1] = folder_seed("Zarr 3 shards", "zarr", path)
    for _, case in ipairs {
        {"Zarr 3 gzip", 3, [[, {"name": "gzip", "configuration": {"level": 5}}]], gzipped},
        {"Zarr 2 zlib", 2, [[{"id": "zlib", "level": 1}]], tiff_encoder.deflate},
        {"Zarr 2 plain", 2, "null", unchanged},
    } do
        path = ("%s/%s.zarr"):format(folder, case[1]:gsub("%W", "-"))
        write_chunks(path, case[2], case[3], case[4])
        list[#list + 1] = folder_seed(case[1], "zarr", path)
    end
    path = folder .. "/series"
    assert(core.system.mkdir(path))
    for i = 1, 3 do
        local file <close> = assert(io.open(("%s/frame_%02d.tif"):format(path, i), "wb"))
        file:write(tiff_encoder.encode(tiff_encoder.sample(1, 20, 21, "u16"),
            {dtype = "u16", method = i == 2 and "lzw" or nil}))
    end
    list[#list + 1] = folder_seed("TIFF series", "series", path)
end

--- Makes all seeds, in a folder that may be removed afterwards.
function seeds.make(folder)
    local list = {}
    local simulate = "scripts/simulate.lua"
    for _, format in ipairs {"dx", "nxtomo"} do
        local path = ("%s/%s.h5"):format(folder, format)
        run(simulate, path, "-n", "16", "--rows", "4", "-a", "24", "--flats", "2", "--darks", "2",
            "--photons", "1000", "-q",
            "--format", format, "--overwrite")
        list[#list + 1] = scan_seed(format, path)
    end
    local path = folder .. "/packed.h5"
    write_packed(path)
    list[#list + 1] = scan_seed("packed", path)
    for _, kind in ipairs {
        {"strips", dtype = "u16"},
        {"big tiles", dtype = "f32", order = ">", big = true, tile = {16, 16}},
        {"LZW", dtype = "u8", method = "lzw", rows = 8},
        {"Deflate", dtype = "u16", method = "deflate", predictor = 2},
        {"PackBits", dtype = "i32", method = "packbits"},
        {"12 bits", dtype = "b12", rows = 7},
        {"10 bits LZW", dtype = "b10", method = "lzw", order = ">", tile = {16, 16}},
        {"Zstandard", dtype = "u16", method = "zstd", predictor = 2},
        {"Zstandard floats", dtype = "f32", method = "zstd", predictor = 3, tile = {16, 16}},
        {"ImageJ", dtype = "u16",
            text = "ImageJ=1.53t\nimages=3\nslices=3\nspacing=0.3\nunit=micron\n"},
    } do
        local encodable = kind.method ~= "zstd" or not core.rawfile.lacks "zstd"
        list[#list + 1] = encodable and {name = kind[1], kind = "image", extension = "tif",
            values = {}, protected = {},
            text = tiff_encoder.encode(tiff_encoder.sample(3, 20, 21, kind.dtype), kind)} or nil
    end
    add_folders(list, folder)
    for _, more in ipairs {texts.seeds(), commands.seeds(folder, list)} do
        table.move(more, 1, #more, #list + 1, list)
    end
    return list
end

return seeds
