-- Rings of pinned host memory and threads: the devices of a run have equal shares of one account.

local core = require "moonbeam.core"

local shares = {}

--- The default bytes of pinned host memory: for each device, and for all of them together.
shares.PINNED = 256 << 20
shares.MOST = 1 << 30

-- The least bytes of a slot, and the slots that each thread has (runtime/stream/carrier.c).
local SLOT <const>, SLOTS <const> = 64 << 10, 2

-- The numbers of threads of a device that read and that write. Both copy memory, for which a few
-- processors are enough. One file takes bytes from one writer at a time, so more than a few writers
-- only hinder each other.
local function threads_of(device, options, count)
    if options.threads then
        local own = math.max(1, options.threads // count)
        return own, own
    end
    local least = count == 1 and 2 or 1
    if device.kind == "host" then
        local own = math.max(least, 2 // count) -- the processors compute
        return own, own
    end
    local processors = core.system.processors() // count
    local many = options.files or options.sink
    return math.max(least, math.min(8, processors // 2)),
        math.max(least, math.min(many and 16 or 4, processors))
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

-- A ring of so many bytes. Several devices have fewer threads if their shares are small.
local function ring(pinned, threads, count)
    if count > 1 then
        threads = math.max(1, math.min(threads, pinned // (SLOT * SLOTS)))
    end
    return {threads = threads, pinned = pinned}
end

--- The options of the reader and of the writer of a device that is one of `count` in a run. The
-- writer is nil if nothing is written and there are no tallies.
function shares.rings(device, options, count)
    local reading, writing = threads_of(device, options, count)
    local total = options.pinned and core.device.bytes(options.pinned)
        or math.min(count * shares.PINNED, shares.MOST)
    local pinned = total // count // 2
    -- A carrier that moves arrays directly: two pieces on the lane in turn.
    local reader = direct(device, options.source) and {threads = 2, pinned = 0}
        or ring(pinned, reading, count)
    local writer
    if options.writes ~= false then
        writer = direct(device, options.sink and {options.sink}) and {threads = 2, pinned = 0}
            or ring(pinned, writing, count)
    elseif options.tallies then
        writer = {threads = 1, pinned = 0}
    end
    reader.slot = options.slot
    if writer then
        writer.slot, writer.writing = options.slot, true
    end
    return reader, writer
end

--- The bytes of pinned memory for tallies on a device: two blocks of float64 numbers.
function shares.tally_bytes(options)
    return 2 * 8 * (options.tallies or 0)
end

return shares
