--- Works on blocks while reading and writing: while the device computes one block, threads read and
-- upload the next block and download and write the previous one. The data are in files or in arrays
-- on the host.
--
-- One carrier reads and another writes (runtime/stream/carrier.h). Each has threads and, unless it
-- moves pinned arrays, a ring of pinned host memory. Two blocks of input and two of output are on
-- the device at a time. With `overlap = false` there is one of each, and every step waits for the
-- previous one; the results are the same.

local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local lane = require "moonbeam.stream.lane"
local on_error = require "moonbeam.internal.on_error"
local schedule = require "moonbeam.stream.schedule"
local shares = require "moonbeam.stream.shares"
local tables = require "moonbeam.internal.tables"

local stream = {}

local OPTIONS = declared.options(
    {"overlap", "boolean", "read and write while computing", default = true},
    {"threads", "count", "threads in each direction, of all devices together", min = 1, max = 64,
        usual = "chosen by the number of processors"},
    {"pinned", "bytes", "pinned host memory for the rings of all devices", unit = "bytes",
        usual = "256 MiB for each device, at most 1 GiB"},
    {"writes", "any", "false: results are not moved off the device", usual = "true"},
    {"files", "any", "there are several files to write to"},
    {"slot", "any", "bytes that a slot of the ring must have room for", unit = "bytes"},
    {"source", "any", "the host arrays that are read, if nothing else is read; pinned arrays "
        .. "need no ring"},
    {"sink", "any", "the host array that is written to; a pinned array needs no ring"},
    {"tallies", "count", "numbers that compute counts for each block", min = 1},
    {"hashes", "boolean", "hash the bytes of each block"},
    {"schedule", "choice", "how several devices share the blocks: block i goes to device i mod n, "
        .. "or the next block to the device that is free", choices = {"fixed", "free"},
        default = "fixed"},
    {"order", "any", "a fixed schedule: the number of the device that each block goes to, a list "
        .. "that repeats"},
    {"lists", "any", "the blocks of each device, {{blocks} by round} by device"},
    {"sums", "boolean", "devices sum over their blocks"},
    {"sharing", "count", "how many devices share the threads and the pinned memory", min = 1,
        usual = "those of the run"})

--- Opens a single carrier (bindings/files/lua_carrier.c).
stream.carrier = core.carrier.open

--- The default bytes of pinned host memory for the rings of a device.
stream.PINNED = shares.PINNED

-- A list of opened devices, from one device or a list.
local function list_of(devices)
    return tables.mapped(type(devices) == "table" and devices or {devices}, core.device.open)
end

-- The options with tallies if something must tell that a device has got on: if several devices
-- write nothing, a number goes to the host with each block.
local function with_tallies(options, count)
    if count > 1 and options.writes == false and not options.tallies then
        return setmetatable({tallies = 1}, {__index = options})
    end
    return options
end

--- The pinned bytes that a run on a device, or on a list of devices, takes with these options.
function stream.pinned_bytes(devices, options)
    local list = list_of(devices)
    options = with_tallies(options or {}, #list)
    local total = 0
    for _, device in ipairs(list) do
        for _, ring in pairs {shares.rings(device, options, #list)} do
            total = total + core.carrier.plan(ring)
        end
        total = total + shares.tally_bytes(options)
    end
    return total
end

local kept = {__name = "moonbeam.lanes", __close = function(lanes)
    for i = #lanes, 1, -1 do
        lanes[i]:__close()
    end
end}

-- What a run tells of its lanes, and the sums over them.
local function times_of(lanes, overlap, began)
    local times = {overlap = overlap, pinned = 0, lanes = {}, wall = core.system.clock() - began}
    for i, each in ipairs(lanes) do
        local counts = each:counts()
        for name, count in pairs(counts) do
            times[name] = (times[name] or 0) + count
        end
        times.pinned = times.pinned + each.pinned
        counts.device, counts.lost, counts.lists = each.device, each.lost, each.lists or {}
        times.lanes[i] = counts
    end
    return times
end

--- stream.open(devices, options): the carriers of one device or a list of devices, for several
-- runs, one after the other. Give them to stream.run instead of the devices, and close them. Each
-- run has its own overlap and order.
function stream.open(devices, options)
    local lanes, list = setmetatable({}, kept), list_of(devices)
    local _ <close> = on_error(function() kept.__close(lanes) end)
    options = with_tallies(options or {}, #list)
    for i, device in ipairs(list) do
        lanes[i] = lane.new(device, options, options.sharing or #list)
    end
    return lanes
end

-- The functions of a run, and whether they may be left out.
local FUNCTIONS <const> = {read = false, compute = false, write = false, prepare = true,
    done = true, finished = true, stops = true}

--- stream.run(devices, blocks, steps, options): works on all blocks, on one device or a list of
-- devices (or on what stream.open returned). For every block, in order on its device:
--   frames = steps.read(block, carrier, device)     makes arrays and queues their reading; frames
--                                            has a method release
--   slices = steps.compute(frames, block, device, counts)     queues the work and releases frames;
--                                            slices is an array or has a method release; counts
--                                            is a device array of as many zeros as options.tallies
--   steps.prepare(block)                     (optional) prepares its writing while the previous
--                                            block is written
--   steps.write(slices, block, carrier)      queues the writing (carrier is nil if options.writes
--                                            is false)
--   steps.done(block)                        (optional) called after steps.write
--   steps.finished(block, facts)             (optional) called when all bytes of the block have
--                                            arrived, in any order, at the latest before
--                                            stream.run returns. facts: device, tallies (what
--                                            compute has counted, a list of numbers), and hash of
--                                            the bytes (with options.hashes)
--   steps.stops()                            (optional) is asked before each block is read: true
--                                            stops the run; the blocks in flight are finished
-- Several devices share the pinned memory and the threads. In a fixed schedule block i goes to
-- device i mod n, or as `order` says. In a free one the next block goes to the device whose oldest
-- block has left. A device that is lost leaves its blocks to the others; `sums` says that the
-- devices sum over their blocks, so that all of its blocks are done again.
-- Returns {wall, read, upload, compute, download, write, read_bytes, write_bytes, raw_bytes,
-- waits..., lanes, stopped}: seconds and bytes, sums over devices; lanes has the same by device,
-- with the number of blocks, and lists (of its blocks). stopped: not all blocks were begun.
-- Errors: those of the steps; device (no device is left).
function stream.run(devices, blocks, steps, options)
    options = options or {}
    for name, optional in pairs(FUNCTIONS) do
        if steps[name] or not optional then -- false: none, also of a metatable
            arguments.entry({name = "steps." .. name, kind = "callable"}, steps[name], "stream.run")
        end
    end
    local overlap = options.overlap ~= false
    local began = core.system.clock()
    local open = getmetatable(devices) == kept
    local own <close> = not open and stream.open(devices, options) or nil
    local lanes = own or devices
    schedule.start(lanes, overlap)
    local stopped
    if #lanes == 1 and not options.lists then
        stopped = schedule.alone(lanes[1], blocks, steps)
    else
        stopped = schedule.together(lanes, blocks, steps, {sums = options.sums,
            lists = options.lists, order = schedule.order_of(#lanes, options)})
    end
    local times = times_of(lanes, overlap, began)
    times.stopped = stopped
    return times
end

-- Steps in the order of the data: the name in the times, the name for people, the bytes moved.
local STEPS = {{"read", "reading", "read_bytes"}, {"upload", "the upload", "read_bytes"},
    {"compute", "computing"},
    {"download", "the download", "write_bytes"}, {"write", "writing", "write_bytes"}}

-- If every step is busy for less than this part of the time, there is no bottleneck.
local BUSY = 0.5

-- What each device of several did, as texts; an empty list for one device.
local function shares_text(times)
    local list = {}
    for i, each in ipairs(times.lanes and #times.lanes > 1 and times.lanes or {}) do
        list[i] = ("%s: %d block%s, %s in, %s out, computing %.3f s%s"):format(each.device.id,
            each.blocks, each.blocks == 1 and "" or "s", core.device.format_bytes(each.read_bytes),
            core.device.format_bytes(each.write_bytes), each.compute,
            each.lost and ", lost: " .. each.lost or "")
    end
    return list
end

--- A summary of the times of a run: {wall_seconds, read_seconds, ..., gigabytes per second of each
-- step, idle_part (of the time, in which nothing was computed), bottleneck (the busiest step),
-- devices (text: the blocks, bytes and seconds of each one of several)}. Seconds are sums over
-- devices, parts are those of a device on average. Its numbers and texts are stored in files.
function stream.summary(times)
    local shared = shares_text(times)
    local wall = times.wall * math.max(1, #shared)
    local summary = {wall_seconds = times.wall,
        idle_part = math.max(0, 1 - times.compute / wall), overlap = times.overlap,
        unpack_seconds = times.unpack, read_bytes = times.read_bytes,
        write_bytes = times.write_bytes, around_hdf5_bytes = times.raw_bytes,
        devices = shared[1] and table.concat(shared, "; ")}
    local busiest, most = nil, 0
    for _, step in ipairs(STEPS) do
        local name, title, bytes = table.unpack(step)
        local seconds = times[name]
        summary[name .. "_seconds"] = seconds
        summary[name .. "_part"] = seconds / wall
        if bytes and seconds > 0 then
            summary[name .. "_gb_per_s"] = times[bytes] / seconds / 1e9
        end
        if seconds > most then
            busiest, most = title, seconds
        end
    end
    summary.bottleneck = most >= BUSY * wall and busiest
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
    for _, line in ipairs(shares_text(times)) do
        lines[#lines + 1] = "  " .. line
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
