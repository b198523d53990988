--- The memory of the whole process, which a batch system's limit must allow.
--
-- A pool never commits more than its budget, except for parts of pages at the edges of its holes.
-- So the process takes the budget of the host's pool, pinned memory, what it has now (program,
-- libraries, the context of a GPU, Lua tables), and what reading and writing files need. The sum is
-- a bound, not exact to the byte.

local mb = require "moonbeam"
local process_limit = require "moonbeam.plan.process_limit"

local process_memory = {}

-- What MPI takes of a rank before it works: Open MPI 4 on one node took 9 MiB.
process_memory.OTHER_OF_RANK = 16 << 20

-- What a GPU takes of the host with its context, where it can only be planned for.
local CONTEXT <const> = 512 << 20

--- What planned devices take of the host, beside their work, where they are devices of a process.
function process_memory.of_planned(devices)
    local bytes = 0
    for _, device in ipairs(devices) do
        bytes = bytes + (device.planned and device.kind ~= "host"
            and CONTEXT + process_limit.OTHER_OF_GPU or 0)
    end
    return bytes
end

--- What a rank takes more than this process has: MPI, where it is only planned for.
function process_memory.of_rank()
    return mb.cluster.library ~= "" and 0 or process_memory.OTHER_OF_RANK
end

-- A field of /proc/self/status in bytes, or nil if the system does not have it.
local function status_field(name)
    local file <close> = io.open("/proc/self/status")
    local kilobytes = file and file:read("a"):match("\n" .. name .. ":%s*(%d+) kB")
    return kilobytes and math.tointeger(kilobytes) * 1024
end

--- The resident bytes of the process now, and their peak so far. 0 if the system does not say.
function process_memory.resident()
    return status_field("VmRSS") or 0, status_field("VmHWM") or 0
end

--- A bound for the resident bytes of the process: `pool` bytes of the host's pool (its budget, or
-- a peak that becomes its budget), `pinned` bytes of pinned host memory, and `buffers`, other known
-- bytes of the work.
function process_memory.bound(pool, pinned, buffers)
    local now = process_memory.resident()
    local committed = mb.pool.stats("host").committed
    return math.max(0, now - committed) + math.max(pool, committed)
        + process_limit.beside(pinned, buffers)
end

--- Lowers the budget of the host device to `bytes` above what is live, if it is larger, until the
-- returned value is closed, or its `release` called. A plan is exact, so the work needs no more,
-- and the process stays within its bound. Does nothing for other devices.
function process_memory.hold(device, bytes)
    local before = device:budget()
    if device.kind == "host" then
        device:budget(math.min(before, mb.pool.stats(device).live + bytes))
    end
    local held = {}
    function held.release()
        device:budget(before)
    end
    return setmetatable(held, {__close = held.release})
end

--- Watches the most that is live on a device and, if that is no host, on the host, until the
-- returned value is closed. Its method peak() returns both numbers so far, the second one nil for a
-- host.
function process_memory.watch(device)
    local host, watched = mb.device "host", {}
    mb.collect()
    local function begin(own)
        own.live, own.scope = mb.pool.stats(own.device).live, mb.pool.scope(own.device)
    end
    for i, each in ipairs {device, device.kind ~= "host" and host or nil} do
        watched[i] = {device = each, most = 0}
        begin(watched[i])
    end
    local self = setmetatable({}, {__close = function()
        for _, own in ipairs(watched) do
            own.scope:finish()
        end
    end})
    function self.peak()
        for _, own in ipairs(watched) do
            own.most = math.max(own.most, own.live + own.scope:finish())
            begin(own)
        end
        return watched[1].most, watched[2] and watched[2].most
    end
    return self
end

--- Calls fn(). Returns the most that was live on the device meanwhile, and, if that is no host, on
-- the host.
function process_memory.measured(device, fn)
    local watched <close> = process_memory.watch(device)
    fn()
    return watched.peak()
end

--- The bound, where `on_host` bytes of the host's pool are taken beside what is live there, and
-- `pinned` bytes, as a line of text.
function process_memory.bound_text(on_host, pinned)
    return process_memory.text(process_memory.bound(mb.pool.stats("host").live + on_host, pinned))
end

--- What to ask a batch system for, in MiB, where a process takes so many bytes at most.
process_memory.megabytes = process_limit.megabytes

--- A line of text for people: the bound, and what to do with it, unless a line about ranks says
-- that.
function process_memory.text(bytes, ranks)
    local form = "process    at most %s in all" .. (ranks and ""
        or "; what to give a batch system, as in Slurm's --mem=%dM")
    return form:format(mb.device.format_bytes(bytes), process_memory.megabytes(bytes))
end

return process_memory
