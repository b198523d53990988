-- Sweeps over tiles on streams (moonbeam.stream): while a device works on a tile, what the next one
-- needs is read, and what was made of the one before is written. What moonbeam.tiles and
-- moonbeam.tiled_deconv have in common; it is planned by a dry run of the same functions.

local mb = require "moonbeam"
local budget = require "moonbeam.plan.budget"
local deals = require "moonbeam.plan.deals"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local in_a_row = require "moonbeam.plan.in_a_row"
local memory = require "moonbeam.plan.peak"
local on_error = require "moonbeam.internal.on_error"
local promise = require "moonbeam.plan.promise"
local search = require "moonbeam.tiles.search"
local secure = require "moonbeam.plan.secure"
local stream = require "moonbeam.stream"
local tables = require "moonbeam.internal.tables"

local sweep = {}

--- Options of everything that works by tiles.
sweep.options = declared.options(
    {"tile", "extents", "largest extents of a tile", usual = "the quickest that fit"},
    {"budget", "bytes", "what the tiles may take on each device", unit = "bytes",
        usual = "what the device's budget leaves"},
    {"host_budget", "bytes", "what they may take on the host beside GPUs", unit = "bytes",
        usual = "what the host's budget leaves"},
    {"device", "device", "where the tiles are worked on", usual = "that of the PSF or the image"},
    {"devices", "any", "devices that share the tiles: a list, or names such as \"all\" or "
        .. "\"cuda:0,cuda:1\" (mb.device.several)", usual = "device"},
    {"schedule", "choice", "how several devices share the tiles: the next one goes to the device "
        .. "that is free, or tile i to device i mod n. Blended tiles are fixed",
        choices = {"free", "fixed"}, default = "free"},
    {"overlap", "boolean", "read and write while computing, which takes a second set of blocks",
        usual = "where that is quicker and fits"},
    {"pinned", "bytes", "pinned memory for reading and writing", unit = "bytes",
        usual = "four blocks, at least 8 MiB and at most 256 MiB"},
    {"threads", "count", "threads that read, and as many that write", min = 1, max = 64,
        usual = "as the device and the processors suggest"},
    {"plan", "tiling", "what plan returned for the same volumes and options",
        usual = "it is made"})

--- The devices that options name, opened; `usual`: if they name none.
function sweep.devices(options, usual)
    return mb.device.several(options.devices or {options.device or usual})
end

-- ---- one sweep ----

--- What each device keeps during sweeps, to be closed: tables of arrays by the device's id, which
-- make(state, device, psf) fills; the PSF, if there is one, is on the device.
function sweep.states(devices, psf, make)
    local states = tables.group()
    local _ <close> = on_error(function() states:release() end)
    for _, device in ipairs(devices) do
        local there <close> = psf and psf.device ~= device and psf:to(device) or nil
        states[device.id] = tables.group()
        make(states[device.id], device, there or psf)
    end
    return states
end

-- Numbers that tiles give: for each device an array of doubles with a row for each tile. They are
-- added on the host in the order of the tiles, so that sums do not depend on the devices.
local tally = {}
tally.__index = tally
tally.__close = function(self)
    self.rows:release()
end

--- A tally of `width` numbers of each of `total` tiles, to be closed.
function sweep.tally(devices, total, width)
    local rows = sweep.states(devices, nil, function(state, device)
        state[1] = mb.zeros({total, width}, {dtype = "f64", device = device})
    end)
    return setmetatable({width = width, rows = rows, by = {}}, tally)
end

--- Takes the numbers of a tile, an array, and releases it.
function tally:put(device, tile, numbers)
    local _ <close> = numbers
    local from <close> = numbers:reshape(self.width)
    local row <close> = self.rows[device.id][1]:view(tile.number)
    mb.convert(from, "f64", {out = row})
    self.by[tile.number] = device.id
end

--- The numbers of a tile that was worked on, a list. Waits for its device.
function tally:row(tile)
    local row <close> = self.rows[self.by[tile.number]][1]:view(tile.number)
    return row:to_table()
end

--- Takes the numbers of tiles that an earlier process has worked on, lists by number, and forgets
-- all others.
function tally:begin(known)
    self.known, self.by = known, {}
end

--- Forgets the numbers that a device has, which is lost.
function tally:forget(device)
    for number, id in pairs(self.by) do
        self.by[number] = id ~= device.id and id or nil
    end
end

--- The numbers by tile, a list of lists, and their sums; nil in a dry run.
function tally:read()
    local tiles, sums, used = tables.merged(self.known), {}, {}
    for _, id in pairs(self.by) do
        used[id] = true -- a device that is lost may not be
    end
    for id, state in pairs(self.rows) do
        if state[1].device.dry then
            return nil
        end
        for number, row in ipairs(used[id] and state[1]:to_table() or {}) do
            tiles[number] = self.by[number] == id and row or tiles[number] or {}
        end
    end
    for _, row in ipairs(tiles) do
        for i, value in ipairs(row) do
            sums[i] = (sums[i] or 0) + value
        end
    end
    return tiles, sums
end

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

--- Sets which of overlap and no overlap a search looks at: job.overlaps. `travels`: does anything
-- travel at all?
function sweep.set_overlaps(job, travels)
    local wanted = job.options.overlap
    job.overlaps = not travels and {false} or wanted == nil and {true, false} or {wanted}
end

-- The pinned memory of a sweep on grids of these extents: a few blocks, and room for a row in every
-- slot that the threads may have.
local function pinned_of(settings, grid)
    local points, row = tables.product(grid), grid[#grid]
    return settings.pinned or math.max(8 << 20, 512 * row, math.min(stream.PINNED, 16 * points))
end

-- What is read of a tile before the work on it.
local function fetch(each, tile, carrier, device)
    local blocks = tables.group()
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
    local parts = tables.group()
    local _ <close> = on_error(function() parts:release() end)
    each.compute(blocks, tile, device, function(i, part, changed)
        local volume = each.writes[i]
        if volume:carries(device) then
            parts[i] = changed and part:view() or volume:outgoing(part)
        elseif not changed then
            volume:write(tile.first, part)
        end
    end)
    return parts
end

--- Opens the carriers of several sweeps, one after the other, between the devices and these lists
-- of volumes: settings.lanes of sweep.run. Close them.
function sweep.lanes(settings, grid, reads, writes)
    local _, sources = travelers(reads, settings.devices)
    local writing, sinks = travelers(writes, settings.devices)
    return stream.open(settings.devices, {threads = settings.threads, writes = writing,
        pinned = pinned_of(settings, grid), sharing = settings.sharing, source = sources,
        sink = sinks and sinks[1],
        hashes = settings.hashes and not mb.device.dry() or nil})
end

-- What decides the memory of a tile. It may have `extra`, elements that are copied, and `edges`,
-- other numbers.
local function extents_of(tile)
    local take, own = 1, 1
    for i, n in ipairs(tile.take) do
        take, own = take * n, own * tile.extents[i]
    end
    return {take, own, tile.extra, kind = table.concat(tile.take, " ") .. " "
        .. table.concat(tile.extents, " ") .. " " .. table.concat(tile.before or {}, " ")
        .. (tile.edges and " " .. table.concat(tile.edges, " ") or "")}
end

-- Does a job go on with what an earlier process has left? Then its tiles are any of them.
local function goes_on(job)
    return job.kept and job.kept:goes_on()
end

-- Do other ranks do some of a job's tiles?
local function is_shared(job)
    return job.kept and job.kept:is_shared()
end

-- Do the devices of a job take the next tile when they are free, so that its plan is a bound?
local function is_free(job)
    return goes_on(job) or is_shared(job)
        or #job.devices > 1 and not job.ordered and job.options.schedule ~= "fixed"
end

--- The settings of the n-th sweep of a job's run. While it is planned, `job.dry` says which tiles
-- the devices get (dealt), or have got (lists, by the number of the sweep), and whether reading and
-- writing were beside the work (overlaps, the same way).
function sweep.settings(job, devices, plan, n)
    local options, dry = job.options, job.dry or {}
    local overlap = plan.overlap
    if dry.overlaps and dry.overlaps[n] ~= nil then
        overlap = dry.overlaps[n]
    end
    return {devices = devices, overlap = overlap, pinned = options.pinned,
        threads = options.threads,
        free = is_free(job) or dry.any and #devices > 1,
        dealt = dry.dealt or deals.most, lists = dry.lists and dry.lists[n] or nil}
end

-- Raises that a device was lost, unless its tiles could be done again.
local function check_lost(times, each)
    for _, lane in ipairs(times.lanes) do
        if lane.lost and not each.again then
            fail("device", "tiles", nil, "%s is lost (%s); its tiles cannot be done again, because "
                .. "what they change may be changed already: run again on other devices, or go "
                .. "on there if there is a journal",
                lane.device.id, lane.lost)
        end
    end
end

--- Gives up the lanes of devices that are lost: the files that they write to are not spoiled.
function sweep.give_up(lanes)
    for _, lane in ipairs(lanes) do
        local lost, reason = lane.device:lost()
        if lost and not lane.lost then
            lane:abandon(reason)
        end
    end
end

-- The sweeps of a planned run: one for each deal of the tiles.
local function rehearse(settings, tiles, go)
    if settings.lists then
        return go(settings.lists)
    end
    local times
    for _, lists in ipairs(settings.dealt(tiles, extents_of, #settings.devices)) do
        times = go(lists)
    end
    return times
end

--- Goes through tiles. `each`: reads, a list of {volume, sweep.around or sweep.own}; writes, a list
-- of volumes, at the tiles' own places; compute(blocks, tile, device, give), which gets what was
-- read, may release it, and calls give(i, part) with what goes to the i-th volume, or give(i,
-- block, true) with what was read of it and has been changed in place; done(tile); finished(tile,
-- facts) and stops(), see stream.run, the former for real runs. each.writer is the carrier that
-- moves what was given last. each.again: tiles of a lost device may be done again; each.sums: all
-- of them are, because the device has their numbers. `settings`:
-- those of sweep.settings, lanes, and hashes (facts have the hash of a tile). Returns the times of
-- stream.run.
function sweep.run(settings, grid, tiles, each)
    local reads = tables.mapped(each.reads, 1)
    local own <close> = not settings.lanes and sweep.lanes(settings, grid, reads, each.writes)
        or nil
    local steps = {
        read = function(tile, carrier, device)
            return fetch(each, tile, carrier, device)
        end,
        compute = function(blocks, tile, device)
            return compute(each, blocks, tile, device)
        end,
        write = function(parts, tile, carrier)
            each.writer = carrier
            for i, volume in ipairs(each.writes) do
                if parts[i] then
                    volume:carry(carrier, parts[i], tile.first)
                end
            end
        end,
        done = each.done, stops = each.stops,
        finished = not mb.device.dry() and each.finished or nil,
    }
    local function go(lists)
        return stream.run(settings.lanes or own, tiles, steps, {overlap = settings.overlap,
            schedule = settings.free and "free" or "fixed", lists = lists, sums = each.sums})
    end
    if (settings.free or settings.lists) and mb.device.dry() then
        return rehearse(settings, tiles, go)
    end
    local times = go()
    check_lost(times, each)
    return times
end

-- ---- plans and promises ----

-- The pinned memory of sweeps, which come one after the other.
local function pinned_by(times)
    local pinned = 0
    for _, each in ipairs(times) do
        pinned = math.max(pinned, each.pinned)
    end
    return pinned
end

-- What a run of a candidate takes: of all its tiles, or of a few that take as much or a little
-- more. `dry` says which tiles the devices get. Returns plan.peaks, and the pinned bytes.
local function run_of(job, made, all, dry)
    local pinned, on = nil, dry and dry.devices or job.devices
    job.dry = dry or {}
    local _ <close> = setmetatable({}, {__close = function() job.dry = nil end})
    local taken = memory.peaks(function(...)
        local devices = {...}
        pinned = pinned_by(job:run(devices, made, all and search.tiles or function(axes)
            return search.few(axes, is_free(job) and 3 or 3 * #devices)
        end))
    end, on)
    taken.peak.pinned = nil
    return taken, pinned
end

-- Have several devices tiles of their own, of which the others get some if one is lost?
local function is_dealt(job)
    return #job.devices > 1 and not is_free(job) and (not job.ordered or job.kept ~= nil)
end

-- What a run takes at most if any device gets any tile, if that may be, by device: the bytes, and
-- how far it takes the pools. `taken`: what run_of says.
local function reserve_of(job, made, all, taken)
    local reserved, reach = {}, {}
    local any = is_dealt(job) and run_of(job, made, all, {any = true}) or taken
    for id, bytes in pairs(taken.peak) do
        reserved[id] = math.max(bytes, any.peak[id])
        reach[id] = {math.max(taken.reach[id][1], any.reach[id][1]),
            math.max(taken.reach[id][2], any.reach[id][2])}
    end
    return reserved, reach
end

--- Chooses how to cut (search.best) by planning job:run(devices, candidate, tiles_of), which
-- returns the times of its sweeps. tiles_of(axes) gives a few tiles at first, and all of the
-- candidate that is taken. Returns it with peaks (by device id, the host included), reserved (with
-- the tiles of devices that are lost), peak (of the first device), host_peak (beside it), pinned.
function sweep.plan(job)
    function job.peaks(made, all)
        local taken, pinned = run_of(job, made, all)
        made.peaks, made.pinned = taken.peak, pinned
        made.reserved, made.reach = reserve_of(job, made, all, taken)
        made.peak = made.peaks[job.devices[1].id]
        made.host_peak = job.devices[1].kind == "host" and 0 or made.peaks.host
    end
    return search.best(job)
end

-- A plan of a job that takes no more than these bytes, by the ids of devices, or nil.
local function smaller(job, available)
    local options = job.options
    job.available, job.limits = search.available(job.devices, options)
    for id, bytes in pairs(available) do
        job.available[id] = math.min(job.available[id], bytes)
    end
    local ok, plan = pcall(job.again, job)
    if ok then
        return plan
    elseif type(plan) ~= "table" or plan.code ~= "budget" then
        error(plan, 0)
    end
end

-- What the memory of a pair of sweeps, those after the n-th, depends on.
local function pair_text(times, texts, n)
    local words = {}
    for i = n + 1, n + 2 do
        words[#words + 1] = (texts[i] or "") .. tostring(times[i].overlap)
    end
    return table.concat(words, "; ")
end

-- Did all sweeps read and write beside the work, or none, as planned?
local function overlapped_as_planned(plan, times)
    for _, each in ipairs(times) do
        if each.overlap ~= plan.overlap then
            return false
        end
    end
    return true
end

-- The devices that were lost in sweeps, true by their ids.
local function lost_of(times)
    local lost = {}
    for _, each in ipairs(times) do
        for _, lane in ipairs(each.lanes) do
            lost[lane.device.id] = lane.lost and true or lost[lane.device.id]
        end
    end
    return lost
end

-- Was a device lost that had its share of all sweeps? What it took after them is known of no other.
local function lost_later(times, list)
    local lost = lost_of(times)
    for _, each in ipairs(list) do
        if not lost[each.device] then
            return true
        end
    end
    return false
end

-- The bytes of a run by device: of a dry run of the tiles that each device has got. Nil if the plan
-- has them. `times` are those of its sweeps; times.iterations pairs of sweeps, after the first
-- times.before, are alike, and those of the same kinds of tiles are run once.
local function replayed(job, plan, times)
    local lists, texts, seen, devices, lost = {}, {}, {}, nil, lost_of(times)
    for n, each in ipairs(times) do
        local own, on = deals.of(each, lost, is_shared(job))
        if own then
            lists[n], texts[n] = deals.shortened(own, extents_of)
        end
        devices = devices or on
    end
    if not is_free(job) and not next(lost) and overlapped_as_planned(plan, times) then
        return nil
    end
    local dry, before = {lists = {}, overlaps = {}, iterations = 0, devices = devices},
        times.before or #times
    local last = before + 2 * (times.iterations or 0)
    for n = 1, #times do
        local pair = n > before and n <= last and (n - before - 1) // 2
        local key = pair and pair_text(times, texts, before + 2 * pair)
        if not pair or not seen[key] or seen[key] == pair then
            dry.iterations = dry.iterations + (key and not seen[key] and 1 or 0)
            seen[key or ""] = pair
            dry.lists[#dry.lists + 1] = lists[n] or false
            dry.overlaps[#dry.lists] = times[n].overlap
        end
    end
    return run_of(job, plan, true, dry).peak
end

-- Adds to bytes by device those that a plan keeps of a run, times `sign`: the next run of the plan
-- finds them, and takes less.
local function add_kept(bytes, kept, sign)
    for id, arrays in pairs(kept or {}) do
        for _, array in pairs(arrays) do
            bytes[id] = bytes[id] and bytes[id] + sign * mb.pool.round(array.bytes)
        end
    end
    return bytes
end

-- Commits the memory of a planned job. Returns the plan that is committed, which is another one if
-- memory is refused, and what there is to report.
local function commit(job, plan)
    local _ <close> = in_a_row() -- what is garbage does not count
    budget.admit(job.what, budget.taken(job.devices, plan.reserved), plan.pinned)
    local own, committed, reason, budgets = secure.commit({devices = job.devices, op = job.what,
        what = "the work in tiles", reach = function(each)
            local taken = run_of(job, each, true, {dealt = deals.all})
            return (select(2, reserve_of(job, each, true, taken)))
        end, peaks = function(each)
            return add_kept(tables.merged(each.reserved), each.kept, -1)
        end, smaller = function(_, available)
            return smaller(job, available)
        end}, plan)
    local function extents(each)
        return ("%s%s"):format(table.concat(each.tile, " x "),
            each.overlap and ", reading and writing beside" or "")
    end
    return own, {committed = committed, budgets = budgets,
        replanned = reason and {from = plan.tile, to = own.tile, reason = reason,
            text = ("tiles have %s, not %s, because the memory for these was refused: %s"):format(
                extents(own), extents(plan), reason)}}
end

-- Does a run that goes on, with some of the tiles, stay within its plan?
local function within(job, plan, report, others)
    local pinned = math.min(report.pinned, plan.pinned) -- there may be no tiles left
    return promise.check_bytes(("the pinned memory of %s"):format(job.what), report.pinned, pinned)
        and promise.compare(job.what, {peak = plan.reserved, pinned = pinned},
            {peak = report.peaks, pinned = pinned, replayed = report.peaks}, others)
end

--- Commits the memory of sweeps that are left, again: other programs may have taken what was there.
-- `work`: devices, op, what, peaks_of(overlap), which returns plan.peaks of these sweeps, with
-- reading and writing beside the work or not. Returns whether they are beside the work, and nil or
-- why not, and the budgets that have changed. Errors: budget.
function sweep.commit_again(work, overlap)
    local function made_of(beside)
        local taken = work.peaks_of(beside)
        taken.peak.pinned = nil
        return {overlap = beside, peaks = taken.peak, reach = taken.reach}
    end
    local own, _, reason, budgets = secure.commit({devices = work.devices, op = work.op,
        what = work.what, reach = function(each)
            return each.reach
        end, peaks = function(each)
            return each.peaks
        end, smaller = function(each, available)
            local made = each.overlap and made_of(false)
            for id, bytes in pairs(made and available or {}) do
                made = made and made.peaks[id] <= bytes and made or nil
            end
            return made or nil
        end}, made_of(overlap))
    return own.overlap, reason, budgets
end

--- Commits the memory of a planned job, runs fn(plan, call) and compares what it takes with the
-- plan; call(f, ...) is for functions of the caller, which are no part of it. fn returns the times
-- of its sweeps. job:again() plans the job again for job.available. Returns {peak (of the first
-- device), peaks, pinned, times, as_planned, committed (whether all memory was committed before the
-- first tile), lost ({{device, reason, text}}), replanned (nil, or {from, to, reason, text}: the
-- tiles are smaller, because memory was refused), again ({{iteration, overlap, text}}: from these
-- iterations on reading and writing are beside the work, or not any more), budgets (those that have
-- changed: {{device, from, to, text}}), replayed (if the devices took the next tile when they were
-- free: what a dry run of their tiles takes, which is what the run took, and the plan is a bound)}
-- and the plan.
function sweep.promised(job, plan, fn)
    local devices = job.devices
    local own, report = commit(job, plan)
    local call, others = promise.others(devices)
    local kept = own.kept
    local peaks, times = promise.measured(devices, function()
        return fn(own, call)
    end)
    add_kept(peaks, kept, 1)
    report.peak, report.peaks, report.times = peaks[devices[1].id], peaks, times
    report.again = times.again or {}
    table.move(times.budgets or {}, 1, #(times.budgets or {}), #report.budgets + 1, report.budgets)
    report.pinned = pinned_by(times)
    report.lost = {}
    for _, device in ipairs(job.all or devices) do
        local lost, why = device:lost()
        report.lost[#report.lost + 1] = lost and {device = device.id, reason = why,
            text = ("%s was lost (%s); the other devices did its tiles"):format(device.id, why)}
            or nil
    end
    local some = goes_on(job)
    report.replayed = not (some or times.repeated or lost_later(times, report.lost))
        and replayed(job, own, times) or nil
    add_kept(report.replayed or {}, own.kept, 1)
    if some or not report.replayed and #report.lost > 0 then -- also after the last tile
        report.as_planned = within(job, own, report, others)
        return report, own
    end
    report.as_planned = promise.compare(job.what,
        {peak = #report.lost > 0 and own.reserved or own.peaks, pinned = own.pinned},
        {peak = peaks, pinned = report.pinned, replayed = report.replayed}, others)
    return report, own
end

return sweep
