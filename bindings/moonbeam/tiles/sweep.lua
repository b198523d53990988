-- Sweeps over tiles on streams (moonbeam.stream): while a device works on a tile, what the next one
-- needs is read, and what was made of the one before is written. What moonbeam.tiles and
-- moonbeam.tiled_deconv have in common; it is planned by a dry run of the same functions.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local memory = require "moonbeam.plan.peak"
local on_error = require "moonbeam.internal.on_error"
local promise = require "moonbeam.plan.promise"
local search = require "moonbeam.tiles.search"
local stream = require "moonbeam.stream"

local sweep = {}

--- Options of everything that works by tiles.
sweep.options = declared.options(
    {"tile", "extents", "largest extents of a tile", usual = "the quickest that fit"},
    {"budget", "bytes", "what the tiles may take on each device", unit = "bytes",
        usual = "what the device's budget leaves"},
    {"host_budget", "bytes", "what they may take on the host beside GPUs", unit = "bytes",
        usual = "what the host's budget leaves"},
    {"device", "device", "where the tiles are worked on", usual = "that of the PSF or the image"},
    {"devices", "table", "a list of devices, which take the tiles in turn", usual = "device"},
    {"overlap", "boolean", "read and write while computing, which takes a second set of blocks",
        usual = "where that is quicker and fits"},
    {"pinned", "bytes", "pinned memory for reading and writing", unit = "bytes",
        usual = "four blocks, at least 8 MiB and at most 256 MiB"},
    {"threads", "count", "threads that read, and as many that write", min = 1, max = 64,
        usual = "as the device and the processors suggest"},
    {"plan", "tiling", "what plan returned for the same volumes and options",
        usual = "it is made"})

--- The devices that options name, opened; `usual`: where they name none.
function sweep.devices(options, usual, what)
    local list = {}
    for i, device in ipairs(options.devices or {options.device or usual}) do
        list[i] = mb.device(device)
    end
    if #list == 0 then
        fail("argument", what, "devices", "devices is an empty list; give one or more")
    end
    return list
end

-- ---- one sweep ----

-- Arrays by the number of their volume, released together.
local group = {}
group.__index = group
function group:release()
    for _, array in pairs(self) do
        array:release()
    end
end
group.__close = group.release

--- What is read of a volume for a tile: what the tile needs of it, or the tile itself.
function sweep.around(tile)
    return tile.from, tile.take
end
function sweep.own(tile)
    return tile.first, tile.extents
end

-- Does any of the volumes travel to or from one of the devices? If those that do are all arrays:
-- the arrays.
local function travelers(volumes_of, devices)
    local any, arrays = false, {}
    for _, volume in ipairs(volumes_of) do
        for _, device in ipairs(devices) do
            if volume:carries(device) then
                any = true
                arrays = arrays and volume.array and arrays or nil
                if arrays then
                    arrays[#arrays + 1] = volume.array
                end
            end
        end
    end
    return any, arrays
end

--- Does anything travel between the volumes and the devices?
function sweep.travels(devices, ...)
    return (travelers({...}, devices))
end

-- The pinned memory of a sweep on grids of these extents: a few blocks, and room for a row in every
-- slot that the threads may have.
local function pinned_of(settings, grid)
    local points = 1
    for _, n in ipairs(grid) do
        points = points * n
    end
    local row = grid[#grid]
    return settings.pinned or math.max(8 << 20, 512 * row, math.min(stream.PINNED, 16 * points))
end

-- What is read of a tile before the work on it.
local function fetch(each, tile, carrier, device)
    local blocks = setmetatable({}, group)
    local _ <close> = on_error(function() blocks:release() end)
    for i, read in ipairs(each.reads) do
        local volume, where = table.unpack(read)
        if volume:carries(device) then
            local first, extents = where(tile)
            blocks[i] = volume:fetch(carrier, first, extents, device)
        end
    end
    return blocks
end

-- The work on a tile. Returns what has to travel to the volumes that are written.
local function compute(each, blocks, tile, device)
    local _ <close> = blocks
    for i, read in ipairs(each.reads) do
        local volume, where = table.unpack(read)
        if blocks[i] then
            blocks[i] = volume:incoming(blocks[i])
        else
            local first, extents = where(tile)
            blocks[i] = volume:read(first, extents, device)
        end
    end
    local parts = setmetatable({}, group)
    local _ <close> = on_error(function() parts:release() end)
    each.compute(blocks, tile, device, function(i, part, whole)
        local volume = each.writes[i]
        if volume:carries(device) then
            parts[i] = whole and part:view() or volume:outgoing(part)
        else
            volume:write(tile.first, part)
        end
    end)
    return parts
end

--- Goes through tiles. `each`: reads, a list of {volume, sweep.around or sweep.own}; writes, a list
-- of volumes, at the tiles' own places; compute(blocks, tile, device, give), which gets what was
-- read, may release it, and calls give(i, part) with what goes to the i-th volume (give(i, part,
-- true) with a dense array of the volume's dtype that nobody changes any more); done(tile).
-- `settings`: devices, overlap, pinned, threads. Returns the times of stream.run.
function sweep.run(settings, grid, tiles, each)
    local reading = {}
    for i, read in ipairs(each.reads) do
        reading[i] = read[1]
    end
    local _, sources = travelers(reading, settings.devices)
    local writes, sinks = travelers(each.writes, settings.devices)
    return stream.run(settings.devices, tiles, {
        read = function(tile, carrier, device)
            return fetch(each, tile, carrier, device)
        end,
        compute = function(blocks, tile, device)
            return compute(each, blocks, tile, device)
        end,
        write = function(parts, tile, carrier)
            for i, volume in ipairs(each.writes) do
                if parts[i] then
                    volume:carry(carrier, parts[i], tile.first)
                end
            end
        end,
        done = each.done,
    }, {overlap = settings.overlap, threads = settings.threads,
        pinned = pinned_of(settings, grid), writes = writes, source = sources,
        sink = sinks and sinks[1]})
end

-- ---- plans and promises ----

--- Plans fn(devices): bytes by device id, the host included, and `pinned`.
function sweep.peaks(devices, fn)
    return memory.peaks(function(...)
        fn({table.unpack({...}, 1, #devices)})
    end, devices).peak
end

--- Sets what a plan takes: peaks (by device id), peak (of the first device), host_peak (beside it)
-- and pinned.
function sweep.note(plan, devices, peaks)
    plan.pinned, peaks.pinned = peaks.pinned, nil
    plan.peaks, plan.peak = peaks, peaks[devices[1].id]
    plan.host_peak = devices[1].kind == "host" and 0 or peaks.host
end

--- Chooses how to cut (search.best) by planning run(devices, candidate, tiles), where `tiles` are a
-- few of all at first, and all of the candidate that is taken. job.axes(candidate) cuts.
function sweep.plan(job, run)
    function job.peaks(made, all)
        local axes = job.axes(made)
        local tiles = all and search.tiles(axes) or search.few(axes, 3 * #job.devices)
        sweep.note(made, job.devices, sweep.peaks(job.devices, function(devices)
            run(devices, made, tiles)
        end))
    end
    return search.best(job)
end

--- Runs fn(call) and compares what it takes with the plan; call(f, ...) is for functions of the
-- caller, which are no part of it. fn returns a list of the times of its sweeps. Returns {peak (of
-- the first device), peaks, pinned, times, as_planned}.
function sweep.promised(what, devices, plan, fn)
    mb.collect()
    local call, others = promise.others(devices)
    local peaks, times = promise.measured(devices, function()
        return fn(call)
    end)
    local pinned = 0
    for _, each in ipairs(times) do
        pinned = math.max(pinned, each.pinned)
    end
    return {peak = peaks[devices[1].id], peaks = peaks, pinned = pinned, times = times,
        as_planned = promise.compare(what, {peak = plan.peaks, pinned = plan.pinned},
            {peak = peaks, pinned = pinned}, others)}
end

return sweep
