-- The names of element types in NumPy's files and in Zarr's two formats.
--
-- What is no element type of this program is widened to one without a loss, as from TIFF and HDF5:
-- the dtype is then that of the array, and samples (runtime/core/samples.h) what is stored.

local numpy_types = {}

-- {NumPy's code without the byte order, the name, dtype, samples}
local ROWS <const> = {
    {"u1", "uint8", "u8"}, {"u2", "uint16", "u16"}, {"i4", "int32", "i32"},
    {"f2", "float16", "f16"}, {"f4", "float32", "f32"}, {"f8", "float64", "f64"},
    {"c8", "complex64", "c64"}, {"c16", "complex128", "c128"},
    {"i1", "int8", "i32", "i8"}, {"i2", "int16", "i32", "i16"}, {"u4", "uint32", "f64", "u32"},
    {"i8", "int64", "f64", "i64"}, {"u8", "uint64", "f64", "u64"},
}

local by_code <const>, by_name <const>, by_dtype <const> = {}, {}, {}
for _, row in ipairs(ROWS) do
    by_code[row[1]], by_name[row[2]] = row, row
    if not row[4] then
        by_dtype[row[3]] = row
    end
end

--- dtype, samples (nil: the type is stored as it is) and whether the bytes are big-endian of a code
-- such as "<f4"; nothing where the code is unknown. Without a byte order, or with "|", the order is
-- that of this machine, as for NumPy.
function numpy_types.of_code(code)
    local order, kind = code:match "^([<>|]?)(%w+)$"
    local row = by_code[kind]
    if not row then
        return nil
    end
    return row[3], row[4], order == ">"
end

--- dtype and samples of a name such as "float32"; nothing where the name is unknown.
function numpy_types.of_name(name)
    local row = by_name[name] or {}
    return row[3], row[4]
end

--- The code of a dtype, little-endian.
function numpy_types.code(dtype)
    local code = by_dtype[dtype][1]
    return (code == "u1" and "|" or "<") .. code
end

--- The name of a dtype.
function numpy_types.name(dtype)
    return by_dtype[dtype][2]
end

return numpy_types
