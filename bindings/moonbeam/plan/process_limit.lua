--- The limit on the memory of the whole process, and what of it is for the pools of the host.
--
-- A batch job, a container or a shell limits the process: control groups and ulimit -d what it
-- uses, ulimit -v its addresses. The process takes more than its pools: what it has when the work
-- is planned (program, libraries, Lua tables), pinned memory, and what reading and writing files
-- need. So the pools have what the limit leaves beside that. The part that is not counted to the
-- byte is an upper bound.

local core = require "moonbeam.core"

local process_limit = {}

-- File buffers and caches of HDF5, tables of FFT plans, stacks of threads, pages at the edges of
-- holes.
local OTHER <const> = 48 << 20

--- What each GPU takes of the host from its context on: code of kernels and of cuFFT, loaded at
-- the first launch. Two H200 took 35 MiB more than what a host takes.
process_limit.OTHER_OF_GPU = 32 << 20

-- The stack of a thread that reads or writes, as ulimit -s usually has it. All of it counts for
-- ulimit -v and -d, and what is touched of it for a control group.
local STACK <const> = 8 << 20
-- Addresses that are kept beside these stacks (host_limits.c).
local KEPT <const> = 128 << 20
-- So many threads are in what is kept free of these limits (host_limits.c).
local USUAL_THREADS <const> = 4

-- The devices on the host that are open.
local function pools()
    local list = {}
    for _, device in ipairs(core.device.opened()) do
        list[#list + 1] = device.kind == "host" and not device.planned and device or nil
    end
    return list
end

--- What the process takes beside its pools and what it has now: `pinned` bytes of pinned memory,
-- `buffers`, other known bytes of the work, and what is not known to the byte.
function process_limit.beside(pinned, buffers)
    local gpus = 0
    for _, device in ipairs(core.device.opened()) do
        gpus = gpus + (device.kind ~= "host" and not device.planned and 1 or 0)
    end
    return pinned + (buffers or 0) + OTHER + gpus * process_limit.OTHER_OF_GPU
end

--- Such bytes without what is kept for the growth of the process between its plan and its work.
function process_limit.without_slack(beside)
    return beside - OTHER // 2
end

--- The limits of the process (system.process_limits). Specs put others in its place.
process_limit.read = core.system.process_limits

--- The bytes that the pools of the host have committed.
function process_limit.committed()
    local bytes = 0
    for _, device in ipairs(pools()) do
        bytes = bytes + core.pool.stats(device).committed
    end
    return bytes
end

-- `beside` bytes with the stacks of so many threads (nil: the usual ones).
local function with_stacks(beside, threads)
    return beside + STACK * math.max(0, (threads or 0) - USUAL_THREADS)
end

-- What `beside` bytes are for a limit on the memory that is used.
local function counted_by(used, beside, threads)
    return used.name:find "^RLIMIT" and with_stacks(beside, threads) or beside
end

--- Has the process addresses for `beside` bytes, with the stacks of so many threads?
function process_limit.has_addresses(beside, threads)
    local addresses = process_limit.read().addresses
    return not addresses or with_stacks(beside, threads) <= addresses.left
end

--- The bytes that the pools of the host may have in all, where the process takes `beside` bytes
-- more (process_limit.beside) and `threads` threads read and write; nil where nothing limits it.
function process_limit.room(beside, threads)
    local limits = process_limit.read()
    local used, room = limits.used, nil
    if used then
        room = process_limit.committed() + used.left // limits.processes
            - counted_by(used, beside, threads)
    end
    if not process_limit.has_addresses(beside, threads) then
        room = 0
    end
    return room and math.max(0, room)
end

-- Planning takes up to so much for a while.
local PLANNING <const> = 32 << 20

--- Does the limit leave less than planning takes? Then what a work needs cannot be found out.
function process_limit.is_starved()
    local limits = process_limit.read()
    return limits.used ~= nil and limits.used.left // limits.processes < PLANNING
        or not process_limit.has_addresses(OTHER)
end

-- What is asked for is a multiple of so many MiB: the process has some more or less from call to
-- call.
local ASKED <const> = 16

--- What to ask a batch system for, in MiB, where a process takes so many bytes at most.
function process_limit.megabytes(bytes)
    return math.ceil(bytes / (ASKED << 20)) * ASKED
end

-- The process has so much more or less when it starts again.
local SLACK <const> = 4 << 20

-- The addresses that are enough for a pool of so many bytes and `own` bytes beside it, where the
-- process has `now` (host_limits.c: for_pool, of which a budget is nine tenths). Each of `count`
-- pools leaves a quarter to the next one.
local function addresses_for(pool, own, kept, now, count)
    local others = own <= kept and 2 * kept or 4 * own
    return now + (1 << 2 * (count - 1))
        * math.max(pool * 10 // 9 + kept, 40 * pool // 27, others)
end

-- The limit of addresses that is enough where a pool takes so many bytes.
local function addresses_of(limits, pool, beside, threads)
    local reserved, stacks = 0, limits.kept - KEPT
    for _, device in ipairs(pools()) do
        reserved = reserved + core.pool.stats(device).reserved
    end
    local now = limits.addresses.most - limits.addresses.left - stacks - reserved
    return addresses_for(pool, with_stacks(beside, threads) + stacks, limits.kept, now, #pools())
end

-- The limit that is needed, in bytes, where a pool takes so many bytes.
local function needed_of(limits, pool, beside, threads)
    local used, addresses, committed = limits.used, limits.addresses, process_limit.committed()
    local grows = math.max(0, pool - committed)
        + (used and counted_by(used, beside, threads) or beside)
    if used and grows > used.left // limits.processes then
        return used, used.most - used.left + limits.processes * grows + SLACK
    elseif addresses then
        return addresses, addresses_of(limits, pool, beside, threads) + SLACK
    end
end

--- That the limit leaves too little to plan anything, as text.
function process_limit.starved_text()
    local limits = process_limit.read()
    local used = limits.used
    local limit = used and used.left // limits.processes < PLANNING and used or limits.addresses
    local least = process_limit.megabytes(limit == used and limit.most - limit.left
        + limits.processes * 2 * PLANNING or addresses_of(limits, 0, OTHER) + SLACK)
    local option = limit.name:match "%((ulimit %-%a)%)"
    return ("the limit of the process is %s (%s), which leaves too little to plan the work: raise "
        .. "it to %d MiB or more, as by %s; then --plan says what the work takes"):format(
        core.device.format_bytes(limit.most), limit.name, least, option
        and ("%s %d"):format(option, least << 10) or ("Slurm's --mem=%dM"):format(least))
end

--- How to raise the limit that is in the way, as text, and the bytes of the limit that is enough:
-- where the pools of the host take `pool` bytes in all. nil where no limit is in the way.
function process_limit.remedy(pool, beside, threads)
    local limits = process_limit.read()
    local limit, bytes = needed_of(limits, pool, beside, threads)
    if not limit then
        return nil
    end
    bytes = math.max(bytes, limit.most + (ASKED << 20))
    local megabytes, format = process_limit.megabytes(bytes), core.device.format_bytes
    local option = limit.name:match "%((ulimit %-%a)%)"
    local who = limits.processes > 1
        and ("the %d processes of this machine need"):format(limits.processes)
        or "the process needs"
    return ("with pinned memory, program and buffers %s %s, and the limit is %s (%s): raise the "
        .. "limit to at least %d MiB, as by %s"):format(who, format(bytes),
        format(limit.most), limit.name, megabytes, option
        and ("%s %d"):format(option, megabytes << 10)
        or ("Slurm's --mem=%dM"):format(megabytes)), megabytes << 20
end

return process_limit
