--- Reads Zarr arrays, formats 2 and 3, and the finest level of OME-Zarr images, as volumes
-- (moonbeam.volumes): chunks and shards, uncompressed or with gzip, zlib, Zstandard, LZ4 or
-- Blosc, either byte order. Several chunks are decoded at a time, by threads (runtime/files/
-- tiff_segments.h).
--
-- Nothing in a file is trusted: extents, places and names are checked before they are used.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local ome_image = require "moonbeam.zarr.ome_image"
local on_error = require "moonbeam.internal.on_error"
local shards = require "moonbeam.zarr.shards"
local tables = require "moonbeam.internal.tables"
local tiff = require "moonbeam.tiff"
local volumes = require "moonbeam.volumes"
local zarr_array = require "moonbeam.zarr.zarr_array"

local zarr = {}

local MISSING <const> = -1 -- 2^64 - 1 in an index

-- Bytes of memory for decoding several chunks at a time, at most.
local DECODING <const> = 256 << 20

-- ---------------------------------------------------------------------------------------------
-- Chunks

-- Is there a file of this name? One that a link leads out of the array's folder to is an error, as
-- what an array names could be anybody's file.
local function is_inside(array, path)
    local real = core.system.stat(path) and core.system.real_path(path)
    array.real_name = array.real_name or core.system.real_path(array.name)
    if real and real:sub(1, #array.real_name + 1) ~= array.real_name:gsub("/$", "") .. "/" then
        fail("io", "zarr", nil, "%s is a link to '%s', which is not in the folder of the array: "
            .. "copy the file there", path, real)
    end
    return real ~= nil
end

-- The file of a chunk or shard, opened; nil where there is none. The last one stays open, and those
-- before it while chunks of them are queued.
local function file_of(self, key)
    if self.key ~= key then
        if self.used then
            self.left[#self.left + 1], self.used = self.file, false
        elseif self.file then
            self.file:close()
        end
        local path = self.array.name .. "/" .. key
        self.key, self.index = key, nil
        self.file = is_inside(self.array, path) and core.rawfile.open(path, "zarr", true) or nil
    end
    return self.file
end

-- The index of the shard that is open, as text.
local function index_of(self, count)
    if not self.index then
        local shard, bytes = self.array.shard, 16 * count + (self.array.shard.checksum and 4 or 0)
        if bytes > self.file:bytes() then
            fail("io", "zarr", nil, "%s/%s: the file is truncated: its index has %d bytes, the "
                .. "file %d", self.array.name, self.key, bytes, self.file:bytes())
        end
        local text = self.file:get(shard.at_start and 0 or self.file:bytes() - bytes, bytes)
        self.index = text:sub(1, 16 * count)
        if shard.checksum and string.unpack("<I4", text, 16 * count + 1)
            ~= shards.crc32c(self.index) then
            fail("io", "zarr", nil, "%s/%s: the file is damaged: the checksum of its index is "
                .. "wrong", self.array.name, self.key)
        end
    end
    return self.index
end

-- Where a chunk is: file, offset and bytes; nil where it is not there. `at`: its 0-based place in
-- the grid of chunks.
local function find(self, at)
    local array = self.array
    if not array.shard then
        local file = file_of(self, array.key(at))
        return file, 0, file and file:bytes()
    end
    local own, place, count = {}, 0, 1
    for axis, extent in ipairs(array.shard.chunks) do
        local each = extent // array.chunks[axis]
        own[axis] = at[axis] // each
        place, count = place * each + at[axis] % each, count * each
    end
    local file = file_of(self, array.key(own))
    if not file then
        return nil
    end
    local offset, bytes = string.unpack("<i8i8", index_of(self, count), 16 * place + 1)
    if offset == MISSING and bytes == MISSING then
        return nil
    elseif offset < 0 or bytes < 0 or bytes > file:bytes() or offset > file:bytes() - bytes then
        fail("io", "zarr", nil, "%s/%s: the file is damaged: its index refers to %d bytes at %d, "
            .. "the file has %d", array.name, self.key, bytes, offset, file:bytes())
    end
    local index = 16 * count + (array.shard.checksum and 4 or 0)
    if bytes > 0 and (array.shard.at_start and offset < index
        or not array.shard.at_start and offset + bytes > file:bytes() - index) then
        fail("io", "zarr", nil, "%s/%s: the file is damaged: its index refers to %d bytes at %d, "
            .. "where the index itself is", array.name, self.key, bytes, offset)
    end
    return file, offset, bytes
end

-- The codecs, by the numbers of files/tiff_segments.h.
local COMPRESSIONS <const> = {zlib = 8, zstd = 50000, blosc = -1, lz4 = -2}

-- A chunk as a page of one strip.
local function page_of(array, offset, bytes)
    local columns = array.chunks[#array.chunks]
    local rows = tables.product(array.chunks) // columns
    return {compression = COMPRESSIONS[array.codec] or 1, samples = array.samples, rows = rows,
        columns = columns, segment_rows = rows, segment_columns = columns, offsets = {offset},
        bytes = {bytes}, swap = array.swap}
end

-- The most bytes that a chunk can have: what zlib and Zstandard make of noise.
local function most_bytes(array, dtype)
    local bytes = volumes.ITEM_BYTES[dtype] * tables.product(array.chunks)
    return bytes + bytes // 250 + 128
end

-- Are elements what the bytes of a chunk are, in the order of the volume? Chunks in another order
-- are read whole.
local function is_plain(self)
    return self.array.codec == "none" and not self.array.samples and not self.turned
end

-- How many chunks a block of these extents meets at most, wherever it begins.
local function most_chunks(self, extents)
    local array, count, before = self.array, 1, #extents - #self.space
    for k, extent in ipairs(extents) do
        local axis = not (self.counts and k == 1) and self.space[k - before]
        local chunk, all = axis and array.chunks[axis] or 1, axis and array.shape[axis] or extent
        count = count * math.min((extent + chunk - 2) // chunk + 1, -(-all // chunk))
    end
    return count
end

-- Memory for decoded chunks and for decoding them, as many as threads decode at a time: {count,
-- rows, scratch}; empty where chunks are read as they are. It depends on the extents of a block
-- alone: not on its place, nor on the processors of this machine.
local function decoder(self, block)
    local made = tables.group()
    if is_plain(self) then
        return made
    end
    local _ <close> = on_error(function() made:release() end)
    local page = page_of(self.array, 0, most_bytes(self.array, self.dtype))
    local scratch = core.rawfile.tiff_scratch_bytes(page, self.dtype)
    local each = scratch + page.rows * page.columns * volumes.ITEM_BYTES[self.dtype]
    local count = math.max(1, math.min(self.threads, most_chunks(self, block.shape),
        DECODING // each))
    made.rows = mb.empty({count, page.rows, page.columns}, {dtype = self.dtype,
        device = block.device})
    made.scratch = scratch > 0 and mb.empty({count * scratch}, {dtype = "u8",
        device = block.device}) or nil
    return made, count
end

-- Where the chunk at `at` lies in the array, and what of it is taken: the part from the 0-based
-- element `from` on. Elements beyond the array's shape may be anything.
local function place_of(self, part, at, from)
    local array = self.array
    local place = {name = array.name, origin = {}, extents = array.chunks,
        first = table.move(from, 1, #from, 1, {}), count = {}}
    for axis, index in ipairs(at) do
        place.origin[axis], place.count[axis] = index * array.chunks[axis], 1
    end
    for k, axis in ipairs(self.space) do
        place.count[axis] = part.shape[k]
    end
    return place
end

-- Fills a part of a block with the value of chunks that are not there.
local function fill_empty(self, part, at)
    local fill = self.array.fill
    if self.array.inexact_fill then
        fail("unsupported", "zarr", nil, "%s: the chunk '%s' is not there, and the fill_value is "
            .. "%s: integers of 64 bits are read as float64, which does not have this one; save "
            .. "the image as float32", self.array.name, self.array.key(at),
            self.array.inexact_fill)
    end
    part:fill(self.dtype:find "^[ui]" and (fill ~= fill and 0
        or math.max(-2^31, math.min(2^31 - 1, fill)) // 1 | 0) or fill)
end

-- A decoded chunk as an array of the axes of the volume, from the 0-based element `from` on.
local function view_of(self, decoded, from, part)
    local whole <close> = decoded:reshape(table.unpack(self.array.chunks))
    local ranges, order = {}, {}
    for axis, first in ipairs(from) do
        ranges[axis] = first + 1
    end
    for k, axis in ipairs(self.space) do
        ranges[axis] = {from[axis] + 1, from[axis] + part.shape[k]}
        order[k] = 1
        for _, other in ipairs(self.space) do
            order[k] = order[k] + (other < axis and 1 or 0)
        end
    end
    local own = whole:view(table.unpack(ranges))
    if not self.turned then
        return own
    end
    local straight <close> = own
    return straight:permute(table.unpack(order))
end

-- Closes the files of chunks that are queued no more, but for the last one.
local function close_left(self)
    for i, file in ipairs(self.left) do
        file:close()
        self.left[i] = nil
    end
    self.used = false
end

-- Chunks of a block that are decoded at a time, by threads, each {part, from, file, page}.
local queue = {}
queue.__index = queue

-- Decodes the chunks that are queued, and copies what is wanted of them.
function queue:empty()
    local files, pages, volume = {}, {}, self.volume
    for i, each in ipairs(self) do
        files[i], pages[i] = each.file, each.page
    end
    if #self > 0 then
        core.rawfile.read_chunks(files, self.memory.rows, pages, self.memory.scratch)
    end
    for i, each in ipairs(self) do
        local decoded <close> = self.memory.rows:view(i)
        local own <close> = view_of(volume, decoded, each.from, each.part)
        mb.convert(own, volume.dtype, {out = each.part})
        each.part:release()
        self[i] = nil
    end
    close_left(volume)
end

-- Takes a chunk; the part of the block is the queue's.
function queue:add(part, from, file, page)
    self[#self + 1] = {part = part, from = table.move(from, 1, #from, 1, {}), file = file,
        page = page}
    self.volume.used = true
    if #self == self.most then
        self:empty()
    end
end

-- Gives back what is left after an error.
function queue:__close()
    for _, each in ipairs(self) do
        each.part:release()
    end
    close_left(self.volume)
    self.memory:release()
end

-- A queue for a block.
local function queue_of(self, block)
    local memory, count = decoder(self, block)
    return setmetatable({volume = self, memory = memory, most = count}, queue)
end

-- The part of a chunk that a view takes: `from` is the 0-based first element in the chunk. Returns
-- true where the view is the queue's.
local function copy_chunk(self, part, at, from, waiting)
    local array = self.array
    local file, offset, bytes = find(self, at)
    if not file then
        fill_empty(self, part, at)
        return false
    end
    local steps = volumes.dense_steps(array.chunks, self.dtype)
    if array.codec == "none" and not array.samples and bytes < steps[1] * array.chunks[1] then
        fail("io", "zarr", nil, "%s/%s: the file is truncated or damaged: a chunk has %d bytes "
            .. "instead of %d", array.name, self.key, bytes, steps[1] * array.chunks[1])
    end
    if is_plain(self) then
        local own = {}
        for axis, first in ipairs(from) do
            offset = offset + first * steps[axis]
        end
        for k, axis in ipairs(self.space) do
            own[k] = steps[axis]
        end
        file:read(part, offset, own, {swap = array.swap})
        return false
    end
    if bytes > most_bytes(array, self.dtype) then
        fail("io", "zarr", nil, "%s/%s: the file is damaged: a chunk has %d bytes, more than it "
            .. "can have", array.name, self.key, bytes)
    end
    local page = page_of(array, offset, bytes)
    page.place = place_of(self, part, at, from)
    waiting:add(part, from, file, page)
    return true
end

-- ---------------------------------------------------------------------------------------------
-- Volumes

local volume = volumes.file_class {}

-- Calls fn(at, from, ranges) for the chunks that a block of one volume meets, until it returns
-- true. `place`: the 0-based indices along the axes that are none of the volume.
local function each_chunk(self, place, first, extents, fn)
    local chunks = self.array.chunks
    local at, from, ranges, low, high, own = {}, {}, {}, {}, {}, {}
    for i, axis in ipairs(self.others) do
        low[axis], high[axis] = place[i], place[i]
    end
    for k, axis in ipairs(self.space) do
        low[axis], high[axis], own[axis] = first[k], first[k] + extents[k] - 1, k
    end
    local function along(axis)
        if axis > #chunks then
            return fn(at, from, ranges)
        end
        for c = low[axis] // chunks[axis], high[axis] // chunks[axis] do
            local begin = math.max(low[axis], c * chunks[axis])
            local last = math.min(high[axis], c * chunks[axis] + chunks[axis] - 1)
            at[axis], from[axis] = c, begin - c * chunks[axis]
            if own[axis] then
                ranges[own[axis]] = {begin - low[axis] + 1, last - low[axis] + 1}
            end
            if along(axis + 1) then
                return true
            end
        end
        return false
    end
    along(1)
end

-- Calls fn(place, low, high, first, extents) for the volumes that pages first[1] ... of a block
-- belong to: pages low to high of the block (from 1) are a block of the volume at `place`.
local function each_volume(self, first, extents, fn)
    local own, last = self.own, first[1] + extents[1] - 1
    local depth = #own == 3 and own[1] or 1
    for number = first[1] // depth, last // depth do
        local place, rest = {}, number
        for axis = #self.counts, 1, -1 do
            place[axis], rest = rest % self.counts[axis], rest // self.counts[axis]
        end
        local low = math.max(first[1], number * depth)
        local high = math.min(last, number * depth + depth - 1)
        local from = {table.unpack(first, 2)}
        local count = {table.unpack(extents, 2)}
        if #own == 3 then
            table.insert(from, 1, low - number * depth)
            table.insert(count, 1, high - low + 1)
        end
        fn(place, low - first[1] + 1, high - first[1] + 1, from, count)
    end
end

-- Fills a dense block of the volume at `place`.
local function fill_from(self, place, block, first, waiting)
    each_chunk(self, place, first, block.shape, function(at, from, ranges)
        local part = block:view(table.unpack(ranges))
        local _ <close> = on_error(function() part:release() end)
        if not copy_chunk(self, part, at, from, waiting) then
            part:release()
        end
    end)
end

function volume:fill(block, first)
    local waiting <close> = queue_of(self, block)
    if block.device.dry then
        return
    elseif not self.counts then
        fill_from(self, self.lead, block, first, waiting)
    else
        each_volume(self, first, block.shape, function(place, low, high, from)
            local pages <close> = #self.own == 3 and block:view {low, high} or block:view(low)
            fill_from(self, place, pages, from, waiting)
        end)
    end
    waiting:empty()
end

-- How many indices that are missing are counted: the extents of an array without files may be any.
local MOST_LOST <const> = 4096

--- The indices of the first axis that no chunk was written for, or not all: {first, count, more
-- (there may be others)}; nil: none. Readers take them for the fill value. One chunk that is not
-- there decides for the indices that it has, so that the extents of an array without files cost
-- nothing.
function volume:missing()
    local lost, gap, zero = {}, {count = 0}, {}
    for axis = 1, #self.shape do
        zero[axis] = 0
    end
    local function lose(row)
        gap.more = gap.more or gap.count == MOST_LOST and not lost[row] or nil
        if not gap.more then
            gap.count = gap.count + (lost[row] and 0 or 1)
            lost[row] = true
            gap.first = math.min(gap.first or row, row)
        end
    end
    local function look(place, before, first, extents, flat)
        local depth = flat and 1 or self.array.chunks[self.space[1]]
        local at, last = first[1], flat and first[1] or first[1] + extents[1] - 1
        while at <= last and not gap.more do
            local beyond = flat and last + 1 or math.min(last + 1, (at // depth + 1) * depth)
            local from, count = {table.unpack(first)}, {table.unpack(extents)}
            if not flat then
                from[1], count[1] = at, beyond - at
            end
            each_chunk(self, place, from, count, function(chunk)
                if find(self, chunk) then
                    return false
                end
                for row = at - first[1] + 1, beyond - first[1] do
                    lose(before + row)
                end
                return true
            end)
            at = beyond
        end
    end
    if not self.counts then
        look(self.lead, 0, zero, self.shape)
    else
        each_volume(self, zero, self.shape, function(place, low, _, from, extents)
            look(place, low - 1, from, extents, #self.own == 2)
        end)
    end
    return gap.first and gap
end

-- ---------------------------------------------------------------------------------------------
-- Opening

-- Text of a file for a message.
local function refuse(name, format, ...)
    fail("io", "zarr.open", "name", "%s: " .. format, name, ...)
end

--- Does a name mean a Zarr array or group, rather than a file?
function zarr.is(name)
    local folder = name:gsub(":/", "/")
    if folder:find "%.zarr$" or folder:find "%.zarr/" then
        return true
    end
    for _, inside in ipairs {"zarr.json", ".zarray", ".zgroup"} do
        if core.system.stat(folder .. "/" .. inside) then
            return true
        end
    end
    return false
end

-- The array that a name means, and its image ({axes = {}} without one).
local function found(name)
    local folder = name:gsub(":/", "/"):gsub("/+$", "")
    local image, array = {axes = {}}, zarr_array.describe(folder)
    if not array then
        local attributes = zarr_array.attributes(folder)
        if not attributes then
            refuse(name, core.system.stat(folder) and "there is no Zarr array or group here"
                or "there is no such folder")
        end
        image = ome_image.of(folder, attributes)
        array = zarr_array.describe(image.folder)
            or refuse(name, "there is no array '%s'", image.folder)
    end
    if #array.shape < 2 then
        refuse(name, "the array has %s; a volume has two or three", counted(#array.shape, "axis",
            "axes"))
    end
    for _, extent in ipairs(array.shape) do
        if extent < 1 then
            refuse(name, "the array is empty")
        end
    end
    return array, image
end

-- Do axes follow each other as in the array?
local function ordered(space)
    for k = 2, #space do
        if space[k] < space[k - 1] then
            return false
        end
    end
    return true
end

--- A Zarr array as a volume (moonbeam.volumes): FOLDER.zarr (the finest level of an OME-Zarr image,
-- or the array itself) or FOLDER.zarr/PATH. `meta`: {spacing, unit} as the image has them, voxel
-- (in m: {pixel, row, step}, as far as they are told), channels, frames, slices, axes (of one
-- volume: 2 or 3), interval (of frames in s) and named (what is told of the channels). The axes are
-- found by their names, in any order; a volume is always (z, y, x). An array with the axes c and t
-- is read as a TIFF hyperstack is: all pages, (page, y, x), those of a channel and frame one after
-- another; with `channel` or `frame` (1-based) one volume.
function zarr.open(name, options)
    local array, image = found(name)
    local names, space = ome_image.axes(array, image, name)
    local others = ome_image.others(names, space)
    local lead, counts = ome_image.leading(array, names, others, options, name)
    local own, turned = #space, not ordered(space)
    local function extents(axes)
        return tables.mapped(axes, function(axis) return array.shape[axis] end)
    end
    if array.swap and (array.codec ~= "none" or turned) and array.dtype:find "^c" then
        refuse(name, "complex numbers in big-endian order and %s are not read",
            turned and "with axes in another order than z, y, x" or "compressed")
    end
    local shape = extents(space)
    local units, scale = image.units or {}, own == 3 and image.scale or nil
    local meta = {unit = units.z, spacing = scale and tonumber(scale[space[1]]) or nil,
        voxel = ome_image.voxel(image, names, space), axes = own, channels = counts.channel or 1,
        frames = counts.frame or 1, slices = own == 3 and shape[1] or 1, named = image.named,
        interval = ome_image.interval(image, names), channel = options.channel}
    local self = setmetatable({array = array, dtype = array.dtype, place = "file", meta = meta,
        compressed = array.codec ~= "none", lead = lead, own = shape, shape = shape,
        space = space, others = others, turned = turned, left = {}, threads = options.threads},
        volume)
    if not lead then
        self.counts = extents(others)
        self.shape = {meta.channels * meta.frames * meta.slices, shape[own - 1], shape[own]}
    end
    return self
end

return declared.module(zarr, "zarr", {
    is = "name: string",
    open = {"name: string", declared.of(tiff.open).options},
})
