--- NumPy's .npy files (format versions 1 to 3, C order), whole and by blocks (moonbeam.volumes).
--
-- Reads either byte order. int8 and int16 are read as i32; uint32, int64 and uint64 as f64: an
-- integer of 64 bits that f64 does not have is an error, as from TIFF, Zarr and HDF5. Writes
-- little-endian.

local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local numpy_types = require "moonbeam.internal.quantities.numpy_types"
local on_error = require "moonbeam.internal.on_error"
local tables = require "moonbeam.internal.tables"
local volumes = require "moonbeam.volumes"

local npy = {}

-- Versions of the format, and the longest header that NumPy writes or reads by itself.
local NEWEST <const>, MOST_HEADER <const> = 3, 10000

local MOST_AXES <const>, MOST_ELEMENTS <const> = 32, math.maxinteger // 16

-- The extents in the text of a shape; raises an error if they have no meaning or their product is
-- beyond 64 bits.
local function extents_of(list, name)
    local shape, product = {}, 1
    for word in list:gmatch "[^,%s]+" do
        local extent = word:match "^%d+$" and math.tointeger(tonumber(word))
        if not extent or product > MOST_ELEMENTS // math.max(1, extent) then
            fail("io", "npy", nil, "%s: the shape (%s) is none: %s", name, list, extent
                and "it has more elements than a file can" or ("'%s' is no extent"):format(word))
        end
        product, shape[#shape + 1] = product * math.max(1, extent), extent
    end
    if #shape > MOST_AXES then
        fail("io", "npy", nil, "%s: the shape has %d axes; NumPy has %d at most", name, #shape,
            MOST_AXES)
    end
    return shape
end

-- Reads the header: {dtype, samples, swap, shape, offset (of the elements)}.
local function header_of(file, name)
    local magic = file:get(0, math.min(12, file:bytes()))
    if #magic < 12 or magic:sub(1, 6) ~= "\x93NUMPY" then
        fail("io", "npy", nil, "%s: this is not an .npy file", name)
    end
    local version = magic:byte(7)
    if version < 1 or version > NEWEST then
        fail("io", "npy", nil, "%s: version %d of the format is not read, 1 to %d are", name,
            version, NEWEST)
    end
    local long = version > 1
    local start = long and 12 or 10
    local length = string.unpack(long and "<I4" or "<I2", magic, 9)
    if length > MOST_HEADER or length > file:bytes() - start then
        fail("io", "npy", nil, "%s: the header has %d bytes; %s", name, length,
            length > MOST_HEADER and ("%d are read at most"):format(MOST_HEADER)
            or "the file is truncated")
    end
    local header = file:get(start, length)
    local descr, order, list = header:match("'descr':%s*'([^']+)'"),
        header:match("'fortran_order':%s*(%a+)"),
        header:match("'shape':%s*%(([^)]*)%)")
    if not (descr and order and list) then
        fail("io", "npy", nil, "%s: the header cannot be read", name)
    elseif order ~= "False" then
        fail("io", "npy", nil, "%s: the elements are in Fortran order: save "
            .. "numpy.ascontiguousarray(a)", name)
    end
    local dtype, samples, swap = numpy_types.of_code(descr)
    if not dtype then
        fail("io", "npy", nil, "%s: elements of type %s are not supported; integers, f2, f4, f8, "
            .. "c8 and c16 are", name, descr)
    end
    return {dtype = dtype, samples = samples, swap = swap or nil,
        shape = extents_of(list, name), offset = start + length}
end

--- The elements of a file as a volume.
function npy.open(name)
    local file = core.rawfile.open(name, "npy.open")
    local _ <close> = on_error(function() file:close() end)
    local facts = header_of(file, name)
    facts.file, facts.meta = file, {}
    local volume <const> = volumes.raw(facts)
    local bytes = #volume.shape > 0 and volume.steps[1] * volume.shape[1]
        or volume.stored_bytes
    if file:bytes() - volume.offset ~= bytes then
        fail("io", "npy", nil,
            "%s: the file is truncated or too long: the header names %d bytes of elements, the "
            .. "file has %d", name, bytes, file:bytes() - volume.offset)
    end
    return volume
end

--- The array in a .npy file, on the host.
function npy.read(name)
    local volume <close> = npy.open(name)
    return volumes.load(volume, "host")
end

local writer = volumes.writer_class {}

function writer:volume()
    return self.target
end

--- A new file to be written block by block: an object with volume(), finish() and close(); without
-- finish nothing is left.
function npy.create(name, options)
    file_name.check(name, file_name.NPY, nil, "npy.create")
    local extents = tables.mapped(options.shape, function(extent) return ("%d,"):format(extent) end)
    local header = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(
        numpy_types.code(options.dtype), table.concat(extents, " "))
    header = header .. (" "):rep(63 - (10 + #header) % 64) .. "\n"
    local made, magic = setmetatable({}, writer), "\x93NUMPY\1\0" .. string.pack("<I2", #header)
    made.target = volumes.raw {shape = options.shape, dtype = options.dtype,
        offset = #magic + #header}
    local bytes = #magic + #header + volumes.bytes(made.target)
    made:start(name, options.overwrite, bytes, magic .. header)
    made.target.file = made.file
    return made
end

--- Writes an array (any device) as a .npy file; the file gets its name when it is complete.
function npy.write(name, array, options)
    options.shape, options.dtype = array.shape, array.dtype
    volumes.complete(npy.create(name, options), array)
end

local OVERWRITE = {"overwrite", "boolean", "replace an existing file", default = false}

return declared.module(npy, "npy", {
    create = {"name: string", declared.options(
        {"shape", "list", "its extents", required = true},
        {"dtype", "choice", "its element type", required = true,
            choices = {"u8", "u16", "i32", "f16", "f32", "f64", "c64", "c128"}}, OVERWRITE)},
    write = {"name: string, array: array", declared.options(OVERWRITE)},
})
