--- Works on blocks while reading and writing: while the device computes one block, threads read and
-- upload the next block and download and write the previous one. The data are in files or in arrays
-- on the host.
--
-- One carrier reads and another writes (runtime/stream/carrier.h). Each has threads and, unless it
-- moves pinned arrays, a ring of pinned host memory. Two blocks of input and two of output are on
-- the device at a time. With `overlap = false` there is one of each, and every step waits for the
-- previous one; the results are the same.

local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local on_error = require "moonbeam.internal.on_error"

local stream = {}

local OPTIONS = declared.options(
    {"overlap", "boolean", "read and write while computing", default = true},
    {"threads", "count", "threads in each direction", min = 1, max = 64,
        usual = "chosen by the number of processors"},
    {"pinned", "bytes", "pinned host memory for both rings", unit = "bytes", usual = "256 MiB"},
    {"writes", "any", "false: results are not moved off the device", usual = "true"},
    {"files", "any", "there are several files to write to"},
    {"slot", "any", "bytes that a slot of the ring must have room for", unit = "bytes"},
    {"source", "any", "the host arrays that are read, if nothing else is read; pinned arrays "
        .. "need no ring"},
    {"sink", "any", "the host array that is written to; a pinned array needs no ring"},
    {"order", "any", "for several devices: the number of the device that each block goes to, a "
        .. "list that repeats", usual = "the devices in turn"})

--- Opens a single carrier (bindings/files/lua_carrier.c).
stream.carrier = core.carrier.open

--- The default bytes of pinned host memory for both rings together.
stream.PINNED = 256 << 20

-- A list of opened devices, from one device or a list.
local function list_of(devices)
    local list = {}
    for i, device in ipairs(type(devices) == "table" and devices or {devices}) do
        list[i] = core.device.open(device)
    end
    return list
end

-- The numbers of threads that read and that write. Both copy memory, for which a few processors are
-- enough. One file takes bytes from one writer at a time, so more than a few writers only hinder
-- each other.
local function threads_of(device, options)
    if options.threads then
        return options.threads, options.threads
    elseif device.kind == "host" then
        return 2, 2 -- the processors compute
    end
    local processors = core.system.processors()
    local many = options.files or options.sink
    return math.max(2, math.min(8, processors // 2)),
        math.max(2, math.min(many and 16 or 4, processors))
end

-- Whether arrays on the host are moved to and from the device without a ring.
local function direct(device, arrays)
    for _, array in ipairs(arrays or {}) do
        if not core.carrier.direct(device, array) then
            return false
        end
    end
    return arrays ~= nil
end

-- A carrier that moves arrays directly: two pieces on the lane in turn.
local DIRECT = {threads = 2, pinned = 0}

local function rings(device, options)
    local reading, writing = threads_of(device, options)
    local pinned = core.device.bytes(options.pinned or stream.PINNED) // 2
    local sink = options.sink and {options.sink}
    local reader = direct(device, options.source) and DIRECT or {threads = reading, pinned = pinned}
    local writer = direct(device, sink) and DIRECT or {threads = writing, pinned = pinned}
    return {threads = reader.threads, pinned = reader.pinned, slot = options.slot},
        options.writes ~= false and {threads = writer.threads, pinned = writer.pinned,
            slot = options.slot, writing = true} or nil
end

--- The pinned bytes that a run on a device, or on a list of devices, takes with these options.
function stream.pinned_bytes(devices, options)
    options = options or {}
    local total = 0
    for _, device in ipairs(list_of(devices)) do
        for _, ring in pairs {rings(device, options)} do
            total = total + core.carrier.plan(ring)
        end
    end
    return total
end

-- Values by the number of their block. A value is released when it is dropped; the rest at the end.
local holder = {}
holder.__index = holder
function holder:__close()
    for i in pairs(self.values) do
        self:drop(i)
    end
end
function holder:drop(i)
    local value = self.values[i]
    self.values[i] = nil
    if value then
        value:release()
    end
end
function holder:take(i)
    local value = self.values[i]
    self.values[i] = nil
    return value
end

local function new_holder()
    return setmetatable({values = {}}, holder)
end

-- ---- lanes ----

-- A lane is one device with its reader, its writer, and the blocks in progress on it.
local lane_methods = {}
lane_methods.__index = lane_methods

local function new_lane(device, options)
    local reading, writing = rings(device, options)
    reading.device = device
    local before = device:pinned()
    local lane = setmetatable({device = device, ahead = new_holder(), behind = new_holder()},
        lane_methods)
    lane.reader = core.carrier.open(reading)
    if writing then
        writing.device = device
        local ok, writer = pcall(core.carrier.open, writing)
        if not ok then
            lane.reader:close()
            error(writer, 0)
        end
        lane.writer = writer
    end
    lane.pinned = device:pinned() - before
    return lane
end

-- The counts of a lane's carriers so far.
function lane_methods:counts()
    local read, written = self.reader:stats(), self.writer and self.writer:stats()
        or {file_seconds = 0, lane_seconds = 0, wait_seconds = 0, bytes = 0, raw_bytes = 0}
    return {read = read.file_seconds, upload = read.lane_seconds,
        download = written.lane_seconds, write = written.file_seconds,
        wait_read = read.wait_seconds, wait_write = written.wait_seconds,
        read_bytes = read.bytes, write_bytes = written.bytes,
        raw_bytes = read.raw_bytes + written.raw_bytes}
end

-- Prepares the lane for a run, without blocks.
function lane_methods:start()
    self.blocks, self.marks, self.at = {}, {}, 0
    self.timer, self.before = core.timer(self.device), self:counts()
end

function lane_methods:__close()
    self.ahead:__close()
    self.behind:__close()
    if self.writer then
        self.writer:close()
    end
    self.reader:close()
end

-- Queues the reading of this lane's n-th block, if there is one.
function lane_methods:read(steps, n)
    if self.blocks[n] then
        self.ahead.values[n] = steps.read(self.blocks[n], self.reader, self.device)
    end
end

-- Advances the lane by one block.
function lane_methods:step(steps, overlap)
    local i = self.at + 1
    local block, writer = self.blocks[i], self.writer
    self.at = i
    self.reader:wait()
    if overlap then
        self:read(steps, i + 1)
    end
    if writer and self.marks[i - 2] then
        writer:wait(self.marks[i - 2])
    end
    self.behind:drop(i - 2) -- it has left the device
    self.timer:start()
    local slices = steps.compute(self.ahead:take(i), block, self.device)
    self.timer:stop()
    self.behind.values[i] = slices
    if steps.prepare then
        steps.prepare(block)
    end
    steps.write(slices, block, writer) -- queued after the previous block, which is still moving
    self.marks[i] = writer and writer:mark()
    if not overlap then
        if writer then
            writer:finish()
        end
        self.behind:drop(i)
        self:read(steps, i + 1)
    end
    if steps.done then
        steps.done(block)
    end
end

-- Waits until everything has left the device. Returns the seconds of computing.
function lane_methods:finish()
    local computed = self.timer:seconds()
    if self.writer then
        self.writer:finish()
    end
    self.behind:drop(#self.blocks - 1)
    self.behind:drop(#self.blocks)
    self.reader:finish()
    return computed
end

local kept = {__name = "moonbeam.lanes", __close = function(lanes)
    for i = #lanes, 1, -1 do
        lanes[i]:__close()
    end
end}

-- Deals blocks to lanes: block i goes to lane i mod n, or to the device in `order`, a list of
-- numbers of devices that repeats. Returns the lane of each block.
local function deal(lanes, blocks, order)
    local turns = {}
    for _, lane in ipairs(lanes) do
        lane:start()
    end
    for i, block in ipairs(blocks) do
        local lane = lanes[order and order[(i - 1) % #order + 1] or (i - 1) % #lanes + 1]
        lane.blocks[#lane.blocks + 1] = block
        turns[i] = lane
    end
    return turns
end

-- The sums over all lanes of what their carriers have counted in a run.
local function times_of(lanes, computed, overlap, began)
    local times = {compute = computed, overlap = overlap, pinned = 0,
        wall = core.system.clock() - began}
    for _, lane in ipairs(lanes) do
        for name, count in pairs(lane:counts()) do
            times[name] = (times[name] or 0) + count - lane.before[name]
        end
        times.pinned = times.pinned + lane.pinned
    end
    return times
end

--- stream.open(devices, options): the carriers of one device or a list of devices, for several
-- runs, one after the other. Give them to stream.run instead of the devices, and close them. Each
-- run has its own overlap and order.
function stream.open(devices, options)
    local lanes = setmetatable({}, kept)
    local _ <close> = on_error(function() kept.__close(lanes) end)
    for i, device in ipairs(list_of(devices)) do
        lanes[i] = new_lane(device, options or {})
    end
    return lanes
end

--- stream.run(devices, blocks, steps, options): works on all blocks, on one device or a list of
-- devices (or on what stream.open returned). For every block, in order on its device:
--   frames = steps.read(block, carrier, device)     makes arrays and queues their reading; frames
--                                            has a method release
--   slices = steps.compute(frames, block, device)   queues the work and releases frames; slices is
--                                            an array or has a method release
--   steps.prepare(block)                     (optional) prepares its writing while the previous
--                                            block is written
--   steps.write(slices, block, carrier)      queues the writing (carrier is nil if options.writes
--                                            is false)
--   steps.done(block)                        (optional) called after steps.write
-- Returns {wall, read, upload, compute, download, write, read_bytes, write_bytes, raw_bytes,
-- waits...}: seconds and bytes, sums over devices.
function stream.run(devices, blocks, steps, options)
    options = options or {}
    local overlap = options.overlap ~= false
    local began = core.system.clock()
    local open = getmetatable(devices) == kept
    local own <close> = not open and stream.open(devices, options) or nil
    local lanes = own or devices
    local turns = deal(lanes, blocks, options.order)
    for _, lane in ipairs(lanes) do
        lane:read(steps, 1)
    end
    for _, lane in ipairs(turns) do
        lane:step(steps, overlap)
    end
    local computed = 0
    for _, lane in ipairs(lanes) do
        computed = computed + lane:finish()
    end
    return times_of(lanes, computed, overlap, began)
end

-- Steps in the order of the data: the name in the times, the name for people, the bytes moved.
local STEPS = {{"read", "reading", "read_bytes"}, {"upload", "the upload", "read_bytes"},
    {"compute", "computing"},
    {"download", "the download", "write_bytes"}, {"write", "writing", "write_bytes"}}

-- If every step is busy for less than this part of the time, there is no bottleneck.
local BUSY = 0.5

--- A summary of the times of a run: {wall, read, ..., gigabytes per second of each step, idle (part
-- of the time in which nothing was computed), bottleneck (the busiest step)}. Its numbers and texts
-- are stored in files.
function stream.summary(times)
    local summary = {wall_seconds = times.wall,
        idle_part = math.max(0, 1 - times.compute / times.wall), overlap = times.overlap,
        unpack_seconds = times.unpack, read_bytes = times.read_bytes,
            write_bytes = times.write_bytes, around_hdf5_bytes = times.raw_bytes}
    local busiest, most = nil, 0
    for _, step in ipairs(STEPS) do
        local name, title, bytes = table.unpack(step)
        local seconds = times[name]
        summary[name .. "_seconds"] = seconds
        summary[name .. "_part"] = seconds / times.wall
        if bytes and seconds > 0 then
            summary[name .. "_gb_per_s"] = times[bytes] / seconds / 1e9
        end
        if seconds > most then
            busiest, most = title, seconds
        end
    end
    summary.bottleneck = most >= BUSY * times.wall and busiest
        or "none: the steps waited for each other"
    return summary
end

--- The same as text for people.
function stream.describe(times)
    local s = stream.summary(times)
    local lines = {("time       %.3f s%s; bottleneck: %s"):format(s.wall_seconds,
        s.overlap and "" or " without overlap",
        s.bottleneck)}
    for _, step in ipairs(STEPS) do
        local name = step[1]
        local rate = s[name .. "_gb_per_s"]
        lines[#lines + 1] = ("  %-9s%8.3f s %4.0f %%%s"):format(name, s[name .. "_seconds"],
            100 * s[name .. "_part"],
            rate and ("  %6.2f GB/s"):format(rate) or ("  idle %.0f %%"):format(100 * s.idle_part))
    end
    if times.unpack then
        lines[#lines + 1] = ("  %.3f s before the run to decode the frames"):format(times.unpack)
    end
    if times.raw_bytes < times.read_bytes + times.write_bytes then
        local form = "  %.0f %% of the bytes went through libhdf5, by one thread at a time"
        lines[#lines + 1] = form:format(
            100 * (1 - times.raw_bytes / (times.read_bytes + times.write_bytes)))
    end
    return table.concat(lines, "\n")
end

return declared.module(stream, "stream", {
    pinned_bytes = {"devices: any", OPTIONS},
        open = {"devices: any", OPTIONS},
        run = {"devices: any, blocks: table, steps: table", OPTIONS},
        summary = "times: times",
    describe = "times: times",
})
