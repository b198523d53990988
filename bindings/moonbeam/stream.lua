--- Work in blocks with reading and writing beside it: while the device computes one block, threads
-- read and upload the next one and download and write the one before. What is read and written are
-- files, or arrays on the host.
--
-- One carrier reads, one writes (runtime/stream/carrier.h); each has threads and, unless it moves
-- pinned arrays, a ring of pinned host memory. Two blocks of input and two of output are on the
-- device at a time. With `overlap = false` there is one of each, and every step waits for the one
-- before; what is computed is the same.

local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local options_of = require "moonbeam.internal.options"

local stream = {}

local NAMES = {"overlap", "threads", "pinned", "writes", "files", "slot", "source", "sink"}

--- A carrier by itself (bindings/files/lua_carrier.c).
stream.carrier = core.carrier.open

--- Pinned host memory, for both rings together, unless told otherwise.
stream.PINNED = 256 << 20

-- Threads that read and that write. Both are copies, which a few processors do; one file takes
-- bytes from one writer at a time, and more than a few only stand in each other's way there.
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

-- Do arrays on the host go to and from the device without a ring?
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

--- The pinned bytes that a run with these options takes: {threads, pinned, writes, files, source,
-- sink}.
function stream.pinned_bytes(device, options)
    options = options_of(options, "stream.pinned_bytes", NAMES)
    local total = 0
    for _, ring in pairs {rings(device, options)} do
        total = total + core.carrier.plan(ring)
    end
    return total
end

-- Values by the number of their block, released when they are dropped and all at the end.
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

--- stream.run(device, blocks, steps, options): for every block, in order,
--   frames = steps.read(block, carrier)      makes arrays and queues their reading; frames has a
--                                            method release
--   slices = steps.compute(frames, block)    queues the work and releases frames; slices is an
--                                            array or has a method release
--   steps.prepare(block)                     (optional) what can be done for its writing while the
--                                            block before it is written
--   steps.write(slices, block, carrier)      queues the writing (carrier is nil where
--                                            options.writes is false)
--   steps.done(block)                        (optional) after that
-- Options: overlap, threads (in each direction), pinned (bytes), writes (default true), files (are
-- there several to write to?), slot (bytes that a piece should have room for), source (the arrays
-- on the host that are read, where nothing else is), sink (the array on the host that is written
-- to): where they are pinned for the device there is no ring for them. Returns {wall, read, upload,
-- compute, download, write, read_bytes, write_bytes, raw_bytes, waits...}: seconds and bytes.
function stream.run(device, blocks, steps, options)
    options = options_of(options, "stream.run", NAMES)
    local overlap = options.overlap ~= false
    local began = core.system.clock()
    local reading, writing = rings(device, options)
    reading.device = device
    local before = device:pinned()
    local reader <close> = core.carrier.open(reading)
    if writing then
        writing.device = device
    end
    local writer <close> = writing and core.carrier.open(writing)
    local pinned = device:pinned() - before
    local timer = core.timer(device)
    local ahead <close> = new_holder()
    local behind <close> = new_holder()
    local marks = {}
    ahead.values[1] = steps.read(blocks[1], reader)
    for i, block in ipairs(blocks) do
        reader:wait()
        local frames = ahead:take(i)
        if overlap and blocks[i + 1] then
            ahead.values[i + 1] = steps.read(blocks[i + 1], reader)
        end
        if writer and marks[i - 2] then
            writer:wait(marks[i - 2])
        end
        behind:drop(i - 2) -- they have left the device
        timer:start()
        local slices = steps.compute(frames, block)
        timer:stop()
        behind.values[i] = slices
        if steps.prepare then
            steps.prepare(block)
        end
        steps.write(slices, block, writer) -- queued behind the block before, which is on its way
        marks[i] = writer and writer:mark()
        if not overlap then
            if writer then
                writer:finish()
            end
            behind:drop(i)
            if blocks[i + 1] then
                ahead.values[i + 1] = steps.read(blocks[i + 1], reader)
            end
        end
        if steps.done then
            steps.done(block)
        end
    end
    local computed = timer:seconds()
    if writer then
        writer:finish()
    end
    behind:drop(#blocks - 1)
    behind:drop(#blocks)
    reader:finish()
    local read, written = reader:stats(), writer and writer:stats()
        or {file_seconds = 0, lane_seconds = 0, wait_seconds = 0, bytes = 0, raw_bytes = 0}
    return {
        wall = core.system.clock() - began,
        read = read.file_seconds,
        upload = read.lane_seconds,
        compute = computed,
        download = written.lane_seconds,
        write = written.file_seconds,
        wait_read = read.wait_seconds,
        wait_write = written.wait_seconds,
        read_bytes = read.bytes,
        write_bytes = written.bytes,
        raw_bytes = read.raw_bytes + written.raw_bytes,
        pinned = pinned,
        overlap = overlap,
    }
end

-- Steps in the order of the data: name in the times, what it is called, the bytes that it moves.
local STEPS = {{"read", "reading", "read_bytes"}, {"upload", "the upload", "read_bytes"},
    {"compute", "computing"},
    {"download", "the download", "write_bytes"}, {"write", "writing", "write_bytes"}}

-- Below this part of the time no step is what holds the others up.
local BUSY = 0.5

--- What the times of a run say: {wall, read, ..., gigabytes per second of each step, idle (part of
-- the time in which nothing was computed), bottleneck (the busiest step)}: numbers and texts, for
-- files.
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
        s.overlap and "" or " one step after the other",
        s.bottleneck)}
    for _, step in ipairs(STEPS) do
        local name = step[1]
        local rate = s[name .. "_gb_per_s"]
        lines[#lines + 1] = ("  %-9s%8.3f s %4.0f %%%s"):format(name, s[name .. "_seconds"],
            100 * s[name .. "_part"],
            rate and ("  %6.2f GB/s"):format(rate) or ("  idle %.0f %%"):format(100 * s.idle_part))
    end
    if times.unpack then
        lines[#lines + 1] = ("  %.3f s before that to decode the frames"):format(times.unpack)
    end
    if times.raw_bytes < times.read_bytes + times.write_bytes then
        local form = "  %.0f %% of the bytes went through libhdf5, by one thread at a time"
        lines[#lines + 1] = form:format(
            100 * (1 - times.raw_bytes / (times.read_bytes + times.write_bytes)))
    end
    return table.concat(lines, "\n")
end

return declared.module(stream, "stream", {
    pinned_bytes = "device: device", run = "device: device, blocks: table, steps: table",
        summary = "times: times",
    describe = "times: times",
})
