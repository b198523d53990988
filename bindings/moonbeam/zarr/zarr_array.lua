--- What the description of a Zarr array says: formats 2 and 3, checked, in one form.
--
-- A description: {name (the array's folder), shape, names (of its axes, or nil), dtype, samples
-- (what is stored, where it is no element type: "i8", "i16", "u32", "i64", "u64", as
-- runtime/core/samples.h has them), swap (big-endian), chunks, key (chunk indices -> file), fill
-- (of chunks that are not there), inexact_fill (its text, where it is an integer of 64 bits that no
-- float64 is), codec ("none", "zlib" for this and gzip, "zstd", "lz4", "blosc"), shard = {chunks
-- (extents of a shard), at_start (its index), checksum}}. Anything else is refused with one line
-- that names it.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local input_file = require "moonbeam.internal.files.input_file"
local numpy_types = require "moonbeam.internal.quantities.numpy_types"
local read_json = require "moonbeam.internal.json_reader"

local zarr_array = {}

local MOST_AXES <const>, LARGEST <const> = 8, 1 << 53

local function refuse(name, format, ...)
    fail("io", "zarr", nil, "%s: " .. format, name, ...)
end

local function shown(value)
    if type(value) == "table" then
        value = value.name or value.id or value.digits or "an object"
    end
    return ("'%s'"):format(tostring(value):sub(1, 40))
end

-- A list of whole numbers from 1 (or `least`) on, as many as `count` says if it does.
local function extents(name, what, list, count, least)
    local product = 1
    if type(list) ~= "table" or count and #list ~= count or #list > MOST_AXES then
        refuse(name, "%s is not a list of %s extents", what, count or ("at most %d"):format(
            MOST_AXES))
    end
    for _, extent in ipairs(list) do
        if math.type(extent) ~= "integer" or extent < (least or 1) or extent > LARGEST then
            refuse(name, "%s has the extent %s", what, shown(extent))
        end
        if product > LARGEST // math.max(1, extent) then
            refuse(name, "%s is larger than any volume", what)
        end
        product = product * math.max(1, extent)
    end
    return list
end

local function configuration(codec)
    return type(codec) == "table" and type(codec.configuration) == "table" and codec.configuration
        or {}
end

local COMPRESSED <const> = "its chunks have the codec %s, which is not read: save it without "
    .. "compression, or with gzip, zlib, zstd, lz4 or Blosc"

-- Blosc's compressors, and the codecs that libraries decode, which may not be on the machine.
local BLOSC <const> = {blosclz = true, lz4 = true, lz4hc = true, snappy = true, zlib = true,
    zstd = true}
local BY_LIBRARY <const> = {blosc = true, lz4 = true, zstd = true}

-- What decodes the codec of this name, with the compressor that a Blosc codec names; nil: nothing.
local function decoder_of(name, kind, inner, codec)
    if kind == "gzip" or kind == "zlib" then
        return "zlib"
    elseif not BY_LIBRARY[kind] or kind == "blosc" and not BLOSC[inner] then
        return nil
    end
    local lacking = core.rawfile.lacks(kind, kind == "blosc" and inner or nil)
    if lacking then
        refuse(name, "its chunks have the codec %s: %s, or save the array with gzip", shown(codec),
            lacking)
    end
    return kind
end

-- ---------------------------------------------------------------------------------------------
-- Format 2

local function format_2(name, facts)
    local made = {name = name}
    made.shape = extents(name, "shape", facts.shape)
    made.chunks = extents(name, "chunks", facts.chunks, #made.shape)
    local text = type(facts.dtype) == "string" and facts.dtype or ""
    made.dtype, made.samples, made.swap = numpy_types.of_code(text)
    if not made.dtype then
        refuse(name, "elements of type %s are not read: save them as integers or floats of "
            .. "64 bits or fewer", shown(facts.dtype))
    elseif facts.order ~= "C" then
        refuse(name, "order %s is not read: save it in order 'C'", shown(facts.order))
    elseif facts.filters and (type(facts.filters) ~= "table" or next(facts.filters)) then
        refuse(name, "filters (%s) are not read: save it without them",
            shown(type(facts.filters) == "table" and facts.filters[1] or facts.filters))
    end
    local own = facts.compressor
    if own then
        made.codec = type(own) == "table" and decoder_of(name, own.id, own.cname, own)
            or refuse(name, COMPRESSED, shown(own))
    else
        made.codec = "none"
    end
    local separator = facts.dimension_separator or "."
    if separator ~= "." and separator ~= "/" then
        refuse(name, "chunk keys with the separator %s are not read", shown(separator))
    end
    function made.key(indices)
        return #indices == 0 and "0" or table.concat(indices, separator)
    end
    made.fill = facts.fill_value
    return made
end

-- ---------------------------------------------------------------------------------------------
-- Format 3

-- The codecs of chunks: sets codec, swap and, where they are in shards, shard.
local function take_codecs(made, codecs, inner)
    if type(codecs) ~= "table" or #codecs == 0 then
        refuse(made.name, "there are no codecs")
    end
    made.codec = "none"
    for _, codec in ipairs(codecs) do
        local kind, facts = type(codec) == "table" and codec.name, configuration(codec)
        -- Format 3 has no LZ4 of its own.
        local plain = type(kind) == "string" and kind ~= "lz4" and kind:gsub("^numcodecs%.", "")
        local decoder = plain and decoder_of(made.name, plain, facts.cname, codec)
        if kind == "bytes" then
            if facts.endian ~= nil and facts.endian ~= "big" and facts.endian ~= "little" then
                refuse(made.name, "bytes of the order %s are not read", shown(facts.endian))
            end
            made.swap = facts.endian == "big"
        elseif decoder and made.codec ~= "none" then
            refuse(made.name, "its chunks are compressed twice, by %s too: save it with one of "
                .. "them", shown(codec))
        elseif decoder then
            made.codec = decoder
        elseif kind == "sharding_indexed" and not inner and #codecs == 1 then
            local shard = {chunks = made.chunks, at_start = facts.index_location == "start"}
            made.chunks = extents(made.name, "chunk_shape of shards", facts.chunk_shape,
                #made.shape)
            for axis, extent in ipairs(made.chunks) do
                if shard.chunks[axis] % extent ~= 0 then
                    refuse(made.name, "chunks of %d do not divide shards of %d", extent,
                        shard.chunks[axis])
                end
            end
            for _, each in ipairs(type(facts.index_codecs) == "table" and facts.index_codecs
                or {}) do
                local own = type(each) == "table" and each.name
                shard.checksum = shard.checksum or own == "crc32c"
                if own ~= "crc32c" and (own ~= "bytes" or configuration(each).endian == "big") then
                    refuse(made.name, "shards whose index has the codec %s are not read",
                        shown(each))
                end
            end
            take_codecs(made, facts.codecs, true)
            made.shard = shard
        else
            refuse(made.name, kind == "transpose" and "the codec 'transpose' is not read: save it "
                .. "in order C" or COMPRESSED, shown(codec))
        end
    end
end

-- The names of axes, if all have one.
local function names_of(list, rank)
    local names = type(list) == "table" and #list == rank and list or nil
    for _, each in ipairs(names or {}) do
        if type(each) ~= "string" then
            return nil
        end
    end
    return names
end

local function format_3(name, facts)
    local made = {name = name}
    made.shape = extents(name, "shape", facts.shape)
    local stored = type(facts.data_type) == "string" and facts.data_type or ""
    made.dtype, made.samples = numpy_types.of_name(stored)
    local grid, keys = facts.chunk_grid, facts.chunk_key_encoding
    if not made.dtype then
        refuse(name, "elements of type %s are not read: save them as integers or floats of "
            .. "64 bits or fewer", shown(facts.data_type))
    elseif type(grid) ~= "table" or grid.name ~= "regular" then
        refuse(name, "chunk grid %s is not read", shown(grid))
    elseif type(keys) ~= "table" or keys.name ~= "default" and keys.name ~= "v2" then
        refuse(name, "chunk keys %s are not read", shown(keys))
    end
    made.chunks = extents(name, "chunk_shape", configuration(grid).chunk_shape, #made.shape)
    local separator = configuration(keys).separator or keys.name == "v2" and "." or "/"
    if separator ~= "." and separator ~= "/" then
        refuse(name, "chunk keys with the separator %s are not read", shown(separator))
    end
    local prefix = keys.name == "default" and {"c"} or {}
    function made.key(indices)
        local list = table.move(indices, 1, #indices, #prefix + 1, {prefix[1]})
        return #list == 0 and "0" or table.concat(list, separator)
    end
    take_codecs(made, facts.codecs, false)
    made.fill = facts.fill_value
    made.names = names_of(facts.dimension_names, #made.shape)
    return made
end

-- ---------------------------------------------------------------------------------------------

-- The JSON of a file as a table, or nil where there is no such file. `options`: of the reader.
local function document(path, options)
    local facts = core.system.stat(path)
    if facts and facts.kind ~= "file" then
        refuse(path, "it is no file")
    end
    local file = input_file.open(path)
    if not file then
        return nil
    end
    local text = file:read((16 << 20) + 1)
    file:close()
    local value, problem = read_json(text or "", options)
    if type(value) ~= "table" then
        refuse(path, "it is not the JSON of a Zarr array or group (%s)", problem or "no object")
    end
    return value
end

-- The facts, of the format that their file is for.
local function of_format(name, facts, format)
    if facts.zarr_format ~= format then
        refuse(name, "zarr_format is %s instead of %d", shown(facts.zarr_format), format)
    end
    return facts
end

-- What integers can be: the least and the greatest, by what is stored.
local RANGES <const> = {u8 = {0, 255}, u16 = {0, 65535}, i32 = {-2^31, 2^31 - 1},
    i8 = {-128, 127}, i16 = {-32768, 32767}, u32 = {0, 2^32 - 1},
    i64 = {math.mininteger, math.maxinteger}, u64 = {0, math.maxinteger}}
-- The greatest integer of 64 bits without a sign, which Lua's numbers do not have.
local LARGEST_U64 <const> = "18446744073709551615"
local WORDS <const> = {NaN = 0 / 0, Infinity = math.huge, ["-Infinity"] = -math.huge}

-- The value of a float that is told by its bits, "0x7fc00000"; nil where it is not.
local function of_bits(text, dtype)
    local form = ({f32 = {"<I4", "<f", 8}, f64 = {"<I8", "<d", 16}})[dtype]
    local digits = form and text:match "^0x(%x+)$"
    return digits and #digits == form[3]
        and string.unpack(form[2], string.pack(form[1], tonumber(digits, 16))) or nil
end

-- The number of a fill value that is beyond Lua's integers, and its text where that is another
-- number; nil where no integer of 64 bits is it.
local function of_digits(digits, stored)
    if stored ~= "u64" or not digits:find "^[1-9]" or #digits > #LARGEST_U64
        or #digits == #LARGEST_U64 and digits > LARGEST_U64 then
        return nil
    end
    local number = tonumber(digits) + 0.0
    return number, ("%.0f"):format(number) ~= digits and digits or nil
end

-- The value of chunks that are not there, and its text where that is an integer that no float64 is.
-- Format 2 may have none (null, which JSON gives as false): that is 0, as zarr-python has it.
-- Complex ones, in two parts, count as their first one.
local function fill_of(made, format)
    local stored = made.samples or made.dtype
    local value, range = made.fill, RANGES[stored]
    if not value and format == 2 then
        return 0
    elseif made.dtype:find "^c" and type(value) == "table" then
        value = value[1]
    end
    local number, text = type(value) == "number" and value or not range and WORDS[value]
        or type(value) == "string" and of_bits(value, made.dtype), nil
    if type(value) == "table" and value.digits then
        if range then
            number, text = of_digits(value.digits, stored)
        else
            number = tonumber(value.digits) + 0.0
        end
    elseif range and (not number or number % 1 ~= 0 or number < range[1] or number > range[2]
        or math.type(number) == "float" and math.abs(number) >= 2^53) then
        number = nil -- a float from 2^53 on may be another number than the text
    elseif math.type(number) == "integer" and (stored == "i64" or stored == "u64") then
        text = number + 0.0 ~= number and ("%d"):format(number) or nil
        number = number + 0.0
    end
    if not number then
        refuse(made.name, "fill_value is %s, which no element of type %s is", shown(made.fill),
            stored)
    end
    return number, text
end

--- The description of the array in a folder, or nil where there is none.
function zarr_array.describe(folder)
    local facts = document(folder .. "/zarr.json", {digits = true})
    local made
    if facts and facts.node_type == "array" then
        made = format_3(folder, of_format(folder, facts, 3))
    elseif not facts then
        facts = document(folder .. "/.zarray", {digits = true})
        made = facts and format_2(folder, of_format(folder, facts, 2))
    end
    if made then
        made.fill, made.inexact_fill = fill_of(made, facts.zarr_format)
        core.target.reads(folder)
    end
    return made
end

--- The attributes of a group in a folder, or nil where there is none.
function zarr_array.attributes(folder)
    local facts = document(folder .. "/zarr.json")
    if facts then
        return facts.node_type == "group" and (type(facts.attributes) == "table"
            and facts.attributes or {}) or nil
    end
    return document(folder .. "/.zattrs") or document(folder .. "/.zgroup") and {} or nil
end

return zarr_array
