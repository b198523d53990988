--- NumPy's .npy files (format versions 1 to 3, little-endian, C order) as host arrays.

local mb = require "moonbeam"
local ledger = require "moonbeam.ledger"

local npy = {}

local from_numpy = {["|u1"] = "u8", ["<u2"] = "u16", ["<i4"] = "i32", ["<f2"] = "f16", ["<f4"] = "f32", ["<f8"] = "f64",
    ["<c8"] = "c64", ["<c16"] = "c128"}
local element_bytes = {u8 = 1, u16 = 2, i32 = 4, f16 = 2, f32 = 4, f64 = 8, c64 = 8, c128 = 16}
local to_numpy = {}
for theirs, ours in pairs(from_numpy) do
    to_numpy[ours] = theirs
end

local function fail(name, message)
    mb.raise("io", ("%s: %s"):format(name, message), {op = "npy"})
end

-- Reads the header of an open file: dtype, shape.
local function header_of(file, name)
    local magic = file:read(8)
    if not magic or #magic < 8 or magic:sub(1, 6) ~= "\x93NUMPY" then
        fail(name, "no .npy file")
    end
    local long = magic:byte(7) > 1
    local length = string.unpack(long and "<I4" or "<I2", file:read(long and 4 or 2))
    local header = file:read(length) or ""
    local descr, order, list = header:match("'descr':%s*'([^']+)'"), header:match("'fortran_order':%s*(%a+)"),
        header:match("'shape':%s*%(([^)]*)%)")
    if not (descr and order and list) then
        fail(name, "the header cannot be read")
    elseif order ~= "False" then
        fail(name, "Fortran order: save numpy.ascontiguousarray(a)")
    end
    local dtype = from_numpy[descr] or fail(name, ("elements of type %s; there are %s"):format(descr, "u1 u2 i4 f2 f4 f8 c8 c16"))
    local shape = {}
    for extent in list:gmatch("%d+") do
        shape[#shape + 1] = math.tointeger(tonumber(extent))
    end
    return dtype, shape
end

--- The array in a .npy file, on the host.
function npy.read(name)
    local opened, problem = io.open(name, "rb")
    if not opened then
        fail(name, problem)
    end
    local file <close> = opened
    local dtype, shape = header_of(file, name)
    local bytes = element_bytes[dtype]
    for _, extent in ipairs(shape) do
        bytes = bytes * extent
    end
    if ledger.dry() then -- the same step, with nothing in it
        return mb.from_string(("\0"):rep(bytes), shape, {dtype = dtype, device = "host"})
    end
    local text = bytes > 0 and file:read(bytes) or ""
    if not text or #text ~= bytes then
        fail(name, ("%d bytes of elements are expected, %d are there"):format(bytes, text and #text or 0))
    end
    return mb.from_string(text, shape, {dtype = dtype, device = "host"})
end

--- Writes an array (any device) as a .npy file; the file gets its name when it is complete.
function npy.write(name, array)
    if array.device.dry then
        return
    end
    local extents = {}
    for i, extent in ipairs(array.shape) do
        extents[i] = ("%d,"):format(extent)
    end
    local header = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(to_numpy[array.dtype],
        table.concat(extents, " "))
    header = header .. (" "):rep(63 - (10 + #header) % 64) .. "\n"
    local part = name .. ".part"
    local file, problem = io.open(part, "wb")
    if not file then
        fail(name, problem)
    end
    local dense <close> = not array.contiguous and array:copy() or nil
    local ok, message = file:write("\x93NUMPY\1\0", string.pack("<I2", #header), header, (dense or array):to_string())
    local closed, trouble = file:close()
    if not (ok and closed) then
        os.remove(part)
        fail(name, message or trouble)
    end
    os.rename(part, name)
end

return npy
