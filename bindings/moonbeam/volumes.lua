--- Volumes wherever they are: on a device, on the host, in a file. What works block by block takes
-- volumes, and so does not know whether the whole fits anywhere.
--
-- A volume has `shape`, `dtype`, and `place`: a device id, or "file". Its methods, first 0-based:
--   read(first, extents, device, host)   the block as an array on `device`, a view of the volume
-- where that is possible: the
--                                        caller releases it, and does not change it
--   write(first, part, host)             an array or view on any device, converted to the volume's
-- dtype
--   close()                              releases the file (an array belongs to its maker)
-- Blocks pass through arrays of the pool of `host` (default: the host), so what a run takes there
-- is counted like everything else. On dry devices nothing is read or written: the same
-- calls tell the memory.
--
-- Blocks of files of plain elements, of datasets and of arrays on the host can also travel while
-- the device computes (moonbeam.stream). Methods for that:
--   carries(device)                      can a carrier of the device move blocks of this volume?
--   fetch(carrier, first, extents, device)   an array on the device that the carrier will fill
--   incoming(block)                      what read would return, from a block that has been
-- fetched and is there; takes ownership
--   outgoing(part)                       a dense copy of a part with the volume's dtype
--   carry(carrier, array, first)         queues the transfer of such a copy to the volume

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local tables = require "moonbeam.internal.tables"

local volumes = {}

-- Ranges for a:view from 0-based firsts and extents.
local function ranges(first, extents)
    local list = {}
    for i, n in ipairs(extents) do
        list[i] = {first[i] + 1, first[i] + n}
    end
    return table.unpack(list)
end

local ITEM_BYTES = {u8 = 1, u16 = 2, i32 = 4, f16 = 2, f32 = 4, f64 = 8, c64 = 8, c128 = 16}
volumes.ITEM_BYTES = ITEM_BYTES
-- The same of what is no element type, and is widened while it is read (runtime/core/samples.h).
local SAMPLE_BYTES <const> = {i8 = 1, i16 = 2, u32 = 4, i64 = 8, u64 = 8}

--- Bytes of all elements.
function volumes.bytes(volume)
    return ITEM_BYTES[volume.dtype] * tables.product(volume.shape)
end

-- ---------------------------------------------------------------------------------------------
-- What methods are called with

-- Raises an error unless `value` is a list of whole numbers, one for each axis.
local function check_numbers(op, value, arg, what, rank)
    arguments.list(value, op, arg, what, rank)
    for i, number in ipairs(value) do
        arguments.count(number, op, ("element %d of %s"):format(i, arg), 0, 1 << 53)
    end
end

-- Raises an error unless the block of these extents at `first` lies inside the volume.
local function check_inside(op, self, first, extents)
    local shape = self.shape
    if self.offsets then -- parts that lie anywhere: they have no common shape
        return
    end
    check_numbers(op, first, "first", "where the block begins, from 0, one for each axis", #shape)
    check_numbers(op, extents, "extents", "the extents of the block, one for each axis", #shape)
    for i, extent in ipairs(shape) do
        if first[i] > extent - extents[i] then
            fail("argument", op, "first", "a block of %d elements from %d on axis %d is not inside "
                .. "the volume, whose axis has %d; first counts from 0", extents[i], first[i], i,
                extent)
        end
    end
end

-- The same of an array that is moved as it is: it has the volume's dtype.
local function check_array(op, self, array, first)
    check_inside(op, self, first, array.shape)
    if array.dtype ~= self.dtype then
        fail("dtype", op, "array", "the array has elements of type %s, the volume of %s; "
            .. "volume:outgoing converts it", array.dtype, self.dtype)
    end
end

local METHODS <const> = {
    read = {"first: any?, extents: any?, device: device?, host: device?", check_inside},
    write = {"first: any?, part: array, host: device?", function(op, self, first, part)
        check_inside(op, self, first, part.shape)
    end},
    carries = "device: device",
    fetch = {"carrier: carrier, first: any?, extents: any?, device: device",
        function(op, self, _, first, extents)
            check_inside(op, self, first, extents)
        end},
    incoming = "block: array",
    outgoing = "part: array",
    carry = {"carrier: carrier, array: array, first: any?", function(op, self, _, array, first)
        check_array(op, self, array, first)
    end},
    fill = {"block: array, first: any?", check_array},
    take = {"block: array, first: any?", check_array},
    missing = "",
    close = "",
}

-- A class of volumes that has these methods, and others of its parent.
local function class_of(methods, parent)
    local class = declared.class("volume", METHODS, methods, parent)
    class.__index = class
    return class
end

-- What all volumes have in common: they do not travel unless they say so.
local any = class_of {}

function any.carries()
    return false
end

function any.carry()
    fail("argument", "volume:carry", "self", "the blocks of this volume do not travel, as "
        .. "volume:carries() says; volume:read() and volume:write() move them")
end

function any:fetch(carrier, first, extents, device)
    local block = mb.empty(extents, {dtype = self.dtype, device = device})
    local _ <close> = on_error(function() block:release() end)
    self:carry(carrier, block, first)
    return block
end

function any.incoming(_, block)
    return block
end

function any:outgoing(part)
    return part:cast(self.dtype)
end

-- ---------------------------------------------------------------------------------------------
-- Arrays

local of_array = class_of({}, any)

function of_array:read(first, extents, device)
    local view = self.array:view(ranges(first, extents))
    if not device or view.device == device then
        return view
    end
    local owned <close> = view
    return owned:to(device)
end

function of_array:write(first, part)
    local target <close> = self.array:view(ranges(first, part.shape))
    if part.device == target.device then
        mb.convert(part, self.dtype, {out = target})
        return
    end
    local there <close> = part:to(target.device)
    mb.convert(there, self.dtype, {out = target})
end

function of_array:carries(device)
    local own = self.array
    return own.device ~= device and own.device.kind == "host" and own.contiguous
end

function of_array:carry(carrier, array, first)
    local own <close> = self.array:view(ranges(first, array.shape))
    carrier:carry(own, array)
end

function of_array.close() end
of_array.__close = of_array.close

--- An array as a volume; the array stays its maker's.
function volumes.of_array(array)
    return setmetatable({array = array, shape = array.shape, dtype = array.dtype,
        place = array.device.id}, of_array)
end

-- ---------------------------------------------------------------------------------------------
-- Files: a subclass fills a dense host block, or takes one

local in_file = class_of({}, any)

function in_file:read(first, extents, device, host)
    host = host or mb.device("host")
    local block = mb.empty(extents, {dtype = self.dtype, device = host})
    local _ <close> = on_error(function() block:release() end)
    self:fill(block, first)
    if not device or device == host then
        return block
    end
    local here <close> = block
    return here:to(device)
end

function in_file:write(first, part, host)
    host = host or mb.device("host")
    if part.device ~= host then
        local here <close> = part:to(host)
        return self:write(first, here, host)
    elseif part.dtype ~= self.dtype or not part.contiguous then
        local dense <close> = part:cast(self.dtype)
        return self:take(dense, first)
    end
    return self:take(part, first)
end

function in_file:close()
    if self.file then
        self.file:close()
    end
end
in_file.__close = in_file.close

--- A class of volumes in files: methods fill(block, first) and take(block, first) move dense host
-- blocks.
function volumes.file_class(methods)
    local class = class_of(methods, in_file)
    class.__close = function(self)
        self:close()
    end
    return class
end

-- Elements of a plain file.
local raw = volumes.file_class {}

local function position(self, first)
    local at = self.offset
    for i, step in ipairs(self.steps) do
        at = at + first[i] * step
    end
    return at
end

function raw:fill(block, first)
    if not block.device.dry then
        self.file:read(block, position(self, first), self.steps, {swap = self.swap,
            samples = self.samples, first = first})
    end
end

function raw:take(block, first)
    if not block.device.dry then
        self.file:write(block, position(self, first), self.steps)
    end
end

-- Carriers do not turn bytes around, and widen nothing.
function raw:carries()
    return not self.swap and not self.samples
end

function raw:carry(carrier, array, first)
    if not array.device.dry then
        carrier:carry(self.file, array, position(self, first), self.steps)
    end
end

-- Steps in bytes of a dense row-major array of elements, or of samples that are widened.
local function dense_steps(shape, dtype)
    local steps, step = {}, ITEM_BYTES[dtype] or SAMPLE_BYTES[dtype]
    for i = #shape, 1, -1 do
        steps[i] = step
        step = step * shape[i]
    end
    return steps
end

--- Steps in bytes of a dense row-major array of elements.
function volumes.dense_steps(shape, dtype)
    return dense_steps(shape, dtype)
end

--- Elements of a rawfile: {file, shape, dtype, offset, steps (default: dense), swap (big-endian),
-- samples (what is stored, where that is widened to dtype: "i8" and "i16" to i32; "u32", "i64" and
-- "u64" to f64)}. `file` is nil in a dry run. Reading an integer of 64 bits that f64 does not have
-- is an error with its value and its place.
function volumes.raw(facts)
    local stored <const> = facts.samples or facts.dtype
    facts.steps = facts.steps or dense_steps(facts.shape, stored)
    facts.stored_bytes = ITEM_BYTES[stored] or SAMPLE_BYTES[stored] -- of an element
    facts.place = "file"
    return setmetatable(facts, raw)
end

-- A new file of that many bytes that begins with `head`, or an error and nothing left.
local function prepared(file, bytes, head)
    local _ <close> = on_error(function() file:close() end)
    file:resize(bytes)
    file:put(0, head or "")
    return file
end

--- A volume that a plan takes for a file which does not exist yet.
function volumes.planned(shape, dtype)
    return volumes.raw {shape = shape, dtype = dtype, offset = 0}
end

--- A volume in a file without a name in the folder of `beside`; it is gone when it is closed, or
-- with the process.
function volumes.scratch(beside, shape, dtype)
    local made = volumes.planned(shape, dtype)
    if not core.dry.on() then
        made.file = prepared(core.rawfile.scratch(beside), volumes.bytes(made))
    end
    return made
end

-- A dataset of an HDF5 file.
local hdf5 = volumes.file_class {}

function hdf5:fill(block, first)
    local options = {ranges(first, block.shape)}
    options[#options + 1] = {out = block}
    if not block.device.dry then
        self.dataset:read(table.unpack(options))
    end
end

function hdf5:take(block, first)
    if not block.device.dry then
        self.dataset:write(block, ranges(first, block.shape))
    end
end

function hdf5.carries()
    return true
end

function hdf5:carry(carrier, array, first)
    if not array.device.dry then
        carrier:carry(self.dataset, array, ranges(first, array.shape))
    end
end

--- A dataset of an open file (closed with the volume); `dataset` is nil in a dry run that creates
-- it.
function volumes.hdf5(file, dataset, shape, dtype)
    return setmetatable({file = file, dataset = dataset, shape = shape, dtype = dtype,
        place = "file"}, hdf5)
end

-- ---------------------------------------------------------------------------------------------
-- Volumes that stand before another

local picked = volumes.file_class {}

-- Calls fn(part, first) for each run of pages that lie one after the other in the file: the part of
-- a block that they fill, and where they begin.
local function each_run(self, block, first, fn)
    local pages, at = self.pages, 1
    while at <= block.shape[1] do
        local page, last = pages[first[1] + at], at
        while last < block.shape[1] and pages[first[1] + last + 1] == page + last + 1 - at do
            last = last + 1
        end
        local part <close> = block:view({at, last})
        fn(part, {page - 1, table.unpack(first, 2)})
        at = last + 1
    end
end

function picked:fill(block, first)
    each_run(self, block, first, function(part, from)
        self.inner:fill(part, from)
    end)
end

function picked:carries(device)
    return self.inner:carries(device)
end

function picked:carry(carrier, array, first)
    each_run(self, array, first, function(part, from)
        self.inner:carry(carrier, part, from)
    end)
end

function picked:close()
    self.inner:close()
end
picked.__close = picked.close

--- Some pages of a volume in a file, to be read: `pages` are their numbers from 1, ascending. It
-- closes the volume.
function volumes.pages(volume, pages)
    return setmetatable({inner = volume, pages = pages, dtype = volume.dtype, place = volume.place,
        meta = volume.meta, compressed = volume.compressed,
        shape = {#pages, table.unpack(volume.shape, 2)}}, picked)
end

local mapped = class_of({}, any)

-- What the function makes of a block.
local function made_of(self, block)
    local made = self.fn(block)
    if not arguments.is_array(made) then
        fail("argument", "volumes.map", "fn", "the function returned %s; it must return a new array"
            .. "%s", made == nil and "nothing" or arguments.described(made),
            made == nil and " (is a 'return' missing?)" or "")
    end
    return made
end

function mapped:read(first, extents, device, host)
    local block <close> = self.inner:read(first, extents, device, host)
    return made_of(self, block)
end

function mapped:carries(device)
    return self.inner:carries(device)
end

function mapped:fetch(...)
    return self.inner:fetch(...)
end

function mapped:incoming(block)
    local stored <close> = self.inner:incoming(block)
    return made_of(self, stored)
end

function mapped:close()
    self.inner:close()
end
mapped.__close = mapped.close

--- A volume to be read: the blocks of another through a function that returns a new array of that
-- dtype.
function volumes.map(volume, dtype, fn)
    return setmetatable({inner = volume, shape = volume.shape, dtype = dtype, place = volume.place,
        meta = volume.meta, fn = fn},
        mapped)
end

local watched = class_of({}, any)

local function look(self, part)
    local low <close> = mb.reduce(part, "min")
    local high <close> = mb.reduce(part, "max")
    if not low.device.dry then
        self.least = math.min(self.least or math.huge, (low:item()))
        self.greatest = math.max(self.greatest or -math.huge, (high:item()))
    end
end

function watched:write(first, part, host)
    look(self, part)
    self.inner:write(first, part, host)
end

function watched:carries(device)
    return self.inner:carries(device)
end

function watched:outgoing(part)
    look(self, part)
    return self.inner:outgoing(part)
end

function watched:carry(...)
    self.inner:carry(...)
end

--- A volume to be written that remembers `least` and `greatest` of what is written to it.
function volumes.watch(volume)
    return setmetatable({inner = volume, shape = volume.shape, dtype = volume.dtype,
        place = volume.place}, watched)
end

-- ---------------------------------------------------------------------------------------------
-- Files that are being written

-- A file that is being written: its volumes share it, and are not closed themselves.
local WRITING <const> = {start = "name: string, overwrite: boolean?, bytes: bytes, head: string?",
    volume = {"channel: count?, frame: count?", function(op, self, channel, frame)
        local c, t, counts = channel or 1, frame or 1, self.counts or {channels = 1, frames = 1}
        if c < 1 or t < 1 or c > counts.channels or t > counts.frames then
            fail("argument", op, "channel", "there is no channel %d of frame %d; the image has "
                .. "channels 1 to %d and frames 1 to %d", c, t, counts.channels, counts.frames)
        end
    end},
    finish = "", close = ""}
local unfinished = declared.class("file", WRITING, {})
unfinished.__index = unfinished

-- Creates the file of a plain format: its size, and what stands before the elements. Not in a dry
-- run.
function unfinished:start(name, overwrite, bytes, head)
    if not core.dry.on() then
        self.file = prepared(core.rawfile.create(name, overwrite or false), bytes, head)
    end
end

function unfinished:finish()
    if self.file then
        self.file:finish()
    end
end

function unfinished:close()
    if self.file then
        self.file:close()
    end
end

--- A class of files that are being written, with `file` (nil in a dry run): finish() gives the
-- complete file its name, close() without that leaves nothing. methods: volume(channel, frame), the
-- volume to write to.
function volumes.writer_class(methods)
    local class = declared.class("file", WRITING, methods, unfinished)
    class.__index = class
    class.__close = unfinished.close
    return class
end

-- ---------------------------------------------------------------------------------------------
-- Whole volumes

-- Calls fn(first, extents) for slabs of the first axis of at most 64 MiB.
local function each_slab(volume, fn)
    local first, extents = {}, {}
    for i, n in ipairs(volume.shape) do
        first[i], extents[i] = 0, n
    end
    if #first == 0 then
        return fn(first, extents)
    end
    local most = math.max(1, (64 << 20) * volume.shape[1] // math.max(1, volumes.bytes(volume)))
    for at = 0, volume.shape[1] - 1, most do
        first[1], extents[1] = at, math.min(most, volume.shape[1] - at)
        fn(first, extents)
    end
end

--- All of a volume as one array on a device. What comes from a file to another device passes
-- through the host in slabs of 64 MiB.
function volumes.load(volume, device, host)
    device, host = mb.device(device or "host"), host or mb.device("host")
    local all = mb.empty(volume.shape, {dtype = volume.dtype, device = device})
    local _ <close> = on_error(function() all:release() end)
    if volume.fill and device == host then
        local first = {}
        for i = 1, #volume.shape do
            first[i] = 0
        end
        volume:fill(all, first)
        return all
    end
    local target = volumes.of_array(all)
    each_slab(volume, function(first, extents)
        local block <close> = volume:read(first, extents, device, host)
        target:write(first, block)
    end)
    return all
end

--- An array as transforms take it: itself if it is u8, u16 or f32, else a copy as f32 in its place.
function volumes.real(array)
    if array.dtype == "u8" or array.dtype == "u16" or array.dtype == "f32" then
        return array
    end
    local owned <close> = array
    return owned:cast("f32")
end

--- All of a volume as transforms take it.
function volumes.load_real(volume, device, host)
    return volumes.real(volumes.load(volume, device, host))
end

--- An array into a volume of its shape, slab by slab.
function volumes.store(volume, array, host)
    if table.concat(array.shape, " x ") ~= table.concat(volume.shape, " x ") then
        fail("shape", "volumes.store", "array", "array is %s; it must be %s as the volume",
            table.concat(array.shape, " x "), table.concat(volume.shape, " x "))
    end
    each_slab({shape = array.shape, dtype = array.dtype}, function(first, extents)
        local part <close> = array:view(ranges(first, extents))
        local dense <close> = not part.contiguous and part:copy() or nil
        volume:write(first, dense or part, host)
    end)
end

--- Writes the only volume of a file that is being written, and completes the file.
function volumes.complete(file, array)
    local made <close> = file
    volumes.store(made:volume(), array)
    made:finish()
end

return declared.module(volumes, "volumes", {
    bytes = "volume: volume", of_array = "array: array", file_class = "methods: table",
        writer_class = "methods: table",
    dense_steps = "shape: extents, dtype: dtype", raw = "facts: volume",
        planned = "shape: extents, dtype: dtype",
    scratch = "beside: string, shape: extents, dtype: dtype",
        hdf5 = "file: any, dataset: any?, shape: extents, dtype: dtype",
    pages = "volume: volume, pages: table",
    map = "volume: volume, dtype: string, fn: callable", watch = "volume: volume",
        load = "volume: volume, device: device?", load_real = "volume: volume, device: device?",
    real = "array: array",
    store = "volume: volume, array: array", complete = "file: writer, array: array",
})
