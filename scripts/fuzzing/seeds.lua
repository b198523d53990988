--- The undamaged files that mutants are made of, small ones of every kind that is read.
--
-- A seed is {name, kind = "scan" or "image", extension, text, values, protected}: `values` are
-- the byte ranges of numbers of which any is plausible (angles, image keys, pixel sizes),
-- `protected` those and the pixels.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local read = require("scripts.fuzzing.report").read
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
        {"ImageJ", dtype = "u16",
            text = "ImageJ=1.53t\nimages=3\nslices=3\nspacing=0.3\nunit=micron\n"},
    } do
        list[#list + 1] = {name = kind[1], kind = "image", extension = "tif", values = {},
            protected = {},
            text = tiff_encoder.encode(tiff_encoder.sample(3, 20, 21, kind.dtype), kind)}
    end
    return list
end

return seeds
