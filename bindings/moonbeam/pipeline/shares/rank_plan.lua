--- What a run takes that several ranks share (mpirun, srun): bytes of each device, rank and node,
-- about how long it takes, and the lines of a batch script.
--
-- All ranks have the same plan (pipeline/shares/team.lua), which holds whatever blocks a rank gets.
-- What is stored between sections is in the memory of all of them, or in files that all see.

local mb = require "moonbeam"
local budget = require "moonbeam.plan.budget"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local fail = require "moonbeam.internal.fail"
local pace = require "moonbeam.pipeline.shares.pace"
local process_memory = require "moonbeam.internal.process_memory"
local sections = require "moonbeam.pipeline.sections"

local rank_plan = {}

-- ---- what it takes ----

-- What a plan takes of the pools of the host, and beside them.
local function host_of(made)
    local job = made.job
    local pool, host, contexts = 0, false, process_memory.of_planned(job.devices)
    for _, device in ipairs(job.devices) do
        pool = pool + (device.kind == "host" and not device.planned
            and mb.pool.stats(device).live + made.at_most_of[device.id] or 0)
        host = host or device.id == "host"
    end
    if not host then
        pool = pool + mb.pool.stats("host").live + (made.at_most_of.host or 0)
    end
    pool = math.max(pool, made.beside or 0)
    return pool, made.pinned, dry_work.decoding_bytes(job) + contexts
end

--- Raises where a plan takes more of the host than the limit of the process leaves (budget.admit).
function rank_plan.admit(made)
    local threads = made.job.options.threads
    local pool, pinned, buffers = host_of(made)
    budget.admit("the work", pool, pinned, buffers, threads and 2 * threads)
end

--- A bound for the resident bytes of the process of a plan. `made.beside`, if it is there: what the
-- command takes of the host's pool before and after the run, such as for pictures. What the process
-- has already counts when the plan is first asked: its texts and its batch script name one figure.
function rank_plan.process(made)
    made.process = made.process or process_memory.bound(host_of(made))
    return made.process
end

-- Processors of a rank for each of its GPUs: with more, blocks are not copied more quickly.
local OF_GPU <const> = 8

--- How many of these devices are GPUs, also such as are only planned for.
function rank_plan.gpus(devices)
    local count = 0
    for _, device in ipairs(devices) do
        count = count + (device.kind ~= "host" and 1 or 0)
    end
    return count
end

--- The processors of a rank: those of a host that computes, as the plan has them (OMP_NUM_THREADS
-- says how many the nodes have); with GPUs those that read and write, `threads` each (nil: not
-- given).
function rank_plan.processors(devices, threads)
    local gpus, most = rank_plan.gpus(devices), 1
    for _, device in ipairs(devices) do
        most = math.max(most, device.kind == "host" and device.threads or 1)
    end
    return gpus == 0 and most or threads and 2 * threads or OF_GPU * gpus
end

-- The stores of a plan in the order of their sections: {number, place} each.
local function stores_of(made)
    local list = {}
    for _, section in ipairs(made.sections) do
        local place = made.job.places[section.number]
        list[#list + 1] = place and {number = section.number, place = place} or nil
    end
    return list
end

--- Raises where so many ranks cannot share nodes, each with these devices. Errors: argument.
function rank_plan.check(ranks, per_node, devices)
    if per_node > ranks then
        fail("argument", "pipeline.plan", "ranks_per_node", "%d ranks on a node are more than all "
            .. "%d", per_node, ranks)
    elseif per_node > 1 and #devices > 1 then
        fail("argument", "pipeline.plan", "ranks_per_node", "%d ranks on a node with %d devices "
            .. "for each would all take the same ones: give one rank for each node, which drives "
            .. "all of its devices, or one device for each rank", per_node, #devices)
    end
end

--- What a plan takes over ranks. Options: ranks (nil: one process without MPI), ranks_per_node
-- (default 1), slices_per_file.
-- Returns {ranks, per_node, nodes, rows (the most of a rank), idle (ranks without any), peaks (of a
-- rank's devices, by id), pinned, process, gpus, processors (all of a rank), scratch, result,
-- seconds (pace.lua; nil where they are not known)}.
function rank_plan.of(made, options)
    local ranks, per_node = options.ranks or 1, options.ranks_per_node or 1
    rank_plan.check(ranks, per_node, made.job.devices)
    local last = made.sections[#made.sections]
    local rows, packet = last.last - last.first + 1, sections.packet(last)
    local packets = math.ceil(rows / packet)
    local own = {ranks = ranks, per_node = per_node, nodes = math.ceil(ranks / per_node),
        all_rows = rows, cut = last.cut,
        rows = math.min(rows, math.ceil(packets / math.min(ranks, packets)) * packet),
        idle = math.max(0, ranks - packets), peaks = made.peaks, pinned = made.pinned,
        process = rank_plan.process(made) + (options.ranks and process_memory.of_rank() or 0),
        scratch = made.scratch, result = last.write_bytes,
        gpus = rank_plan.gpus(made.job.devices), devices = made.job.devices,
        stores = stores_of(made)}
    own.processors = rank_plan.processors(made.job.devices, made.job.options.threads)
    own.seconds = pace.of(made, ranks, own.nodes, options.slices_per_file)
    return own
end

-- ---- as text ----

local function bytes_text(bytes)
    return ("%s (%d bytes)"):format(mb.device.format_bytes(bytes), bytes)
end

--- Where a store is, and what it takes there.
function rank_plan.place_text(place)
    if place.place == "file" then
        return ("%s in %s"):format(bytes_text(place.disk_bytes), place.scratch)
    end
    return bytes_text(place.host_bytes) .. (place.ranks > 1
        and (" in memory of each of %d ranks"):format(place.ranks) or " in memory")
end

--- The lines of text about ranks.
function rank_plan.text(own)
    local lines = {}
    local function line(name, format, ...)
        lines[#lines + 1] = ("%-11s"):format(name) .. format:format(...)
    end
    line("ranks", "%d on %d node%s, %d on each; at most %d of %d %s for each%s", own.ranks,
        own.nodes, own.nodes == 1 and "" or "s", own.per_node, own.rows, own.all_rows, own.cut,
        own.idle > 0 and (", nothing for %d of them"):format(own.idle) or "")
    for _, device in ipairs(own.devices) do
        line("  rank", "at most %s on %s", bytes_text(own.peaks[device.id]), device.id)
    end
    if own.devices[1].kind ~= "host" and (own.peaks.host or 0) > 0 then
        line("  rank", "at most %s of host memory beside that", bytes_text(own.peaks.host))
    end
    for _, store in ipairs(own.stores) do
        line("  store", "after section %d: %s", store.number, rank_plan.place_text(store.place))
    end
    line("  rank", "%s of pinned memory; the process at most %s", bytes_text(own.pinned),
        mb.device.format_bytes(own.process))
    line("  node", "%s%s of pinned memory; the processes at most %s: --mem=%dM", own.gpus > 0
        and ("%d GPU%s, "):format(own.gpus * own.per_node, own.gpus * own.per_node == 1 and ""
            or "s") or "",
        bytes_text(own.pinned * own.per_node),
        mb.device.format_bytes(own.process * own.per_node), rank_plan.megabytes(own))
    line("  disk", "%s for the result%s", mb.device.format_bytes(own.result), own.scratch > 0
        and (", %s of scratch files"):format(mb.device.format_bytes(own.scratch)) or "")
    if own.seconds then
        line("  seconds", "%s", pace.text(own.seconds))
    else
        line("  seconds", "not known for the processors of this host")
    end
    return table.concat(lines, "\n")
end

--- The memory to ask for on each node, in MiB.
function rank_plan.megabytes(own)
    return process_memory.megabytes(own.process * own.per_node)
end

return rank_plan
