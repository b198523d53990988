--- How a volume that we write lies in the shards of a Zarr v3 array.
--
-- A shard is a file with some whole slices, one after another, and its index. A chunk in it is a
-- band of rows of one slice, not compressed: so every row has a known place, the index is known
-- before anything is written, and threads write rows where they belong. Bands of a slice have equal
-- heights, of at most 4 MiB; the last one may have rows of zeros that the array does not show.
--
-- For servers that give whole files alone (HTTP without ranges) a result may have no shards: then a
-- chunk is a whole slice, and a file of its own without an index.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"

local shards = {}

--- Bytes of a band and of a shard, about, and the number of shards, at most. Specs change them.
shards.limits = {band = 4 << 20, shard = 256 << 20, shards = 256}

--- The option of whatever writes OME-Zarr.
shards.option = {"zarr_layout", "choice", "of a .zarr result: shards, few files, of which readers "
    .. "fetch parts; chunks, a file for each slice, for HTTP servers that give whole files alone",
    choices = {"shards", "chunks"}, usual = "shards"}

--- Raises an error where the layout was named for a file of another format.
function shards.check_name(op, name, kind)
    if kind and file_name.problem(name:gsub("/+$", ""), file_name.ZARR) then
        fail("argument", op, "zarr_layout", "'%s': the option zarr_layout is for OME-Zarr (.zarr): "
            .. "leave it out", name)
    end
end

local MISSING = ("\255"):rep(16)

-- CRC-32C (Castagnoli), as the codec of that name has it.
local TABLE = {}
for i = 0, 255 do
    local value = i
    for _ = 1, 8 do
        value = value & 1 == 1 and value >> 1 ~ 0x82f63b78 or value >> 1
    end
    TABLE[i] = value
end

--- The CRC-32C of a text.
function shards.crc32c(text)
    local sum = 0xffffffff
    for i = 1, #text do
        sum = TABLE[(sum ~ text:byte(i)) & 255] ~ sum >> 8
    end
    return sum ~ 0xffffffff
end

--- The layout of an array {nz, ny, nx}: {shape, dtype, rows (of a band), bands (of a slice), slices
-- (of a shard), count (of shards), row_bytes, chunk_bytes, slice_bytes, kind}. `kind`: "shards"
-- (the default), or "chunks": what counts as a shard is a chunk, and has no index.
function shards.layout(shape, dtype, kind)
    local made = {shape = shape, dtype = dtype, kind = kind or "shards"}
    local chunks = kind == "chunks"
    made.row_bytes = shape[3] * core.pool.element_bytes(dtype)
    made.bands = chunks and 1
        or math.max(1, -(-shape[2] * made.row_bytes // shards.limits.band))
    made.rows = -(-shape[2] // made.bands)
    made.bands = -(-shape[2] // made.rows)
    made.chunk_bytes = made.rows * made.row_bytes
    made.slice_bytes = made.bands * made.chunk_bytes
    made.slices = chunks and 1 or math.min(shape[1], math.max(1,
        shards.limits.shard // made.slice_bytes, -(-shape[1] // shards.limits.shards)))
    made.count = -(-shape[1] // made.slices)
    return made
end

--- First and last slice of a shard (both from 1), and the bytes of its slices.
function shards.slices(layout, number)
    local first = (number - 1) * layout.slices + 1
    local last = math.min(layout.shape[1], first + layout.slices - 1)
    return first, last, (last - first + 1) * layout.slice_bytes
end

--- What follows the slices of a shard: the index, and its checksum.
function shards.index(layout, number)
    if layout.kind == "chunks" then
        return ""
    end
    local first, last = shards.slices(layout, number)
    local parts, at = {}, 0
    for slice = 1, layout.slices do
        for _ = 1, layout.bands do
            parts[#parts + 1] = slice <= last - first + 1
                and string.pack("<I8I8", at, layout.chunk_bytes) or MISSING
            at = at + layout.chunk_bytes
        end
    end
    local text = table.concat(parts)
    return text .. string.pack("<I4", shards.crc32c(text))
end

--- The file of a shard, relative to its array. `place`: the indices along axes before the first
-- one, "0/1/"; none by default.
function shards.path(number, place)
    return ("c/%s%d/0/0"):format(place or "", number - 1)
end

--- The bytes of all files of an array, but for its description.
function shards.bytes(layout)
    local index = layout.kind == "chunks" and 0 or 16 * layout.slices * layout.bands + 4
    return layout.shape[1] * layout.slice_bytes + layout.count * index
end

return shards
