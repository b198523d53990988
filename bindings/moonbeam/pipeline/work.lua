--- The work of a pipeline's section on blocks, both run and planned: reading, the steps, writing.
--
-- A section is {cut = "rows" or "frames", steps, measures, source = {scan =} or {section = n,
-- shape, dtype, layout, geometry, kind}, shape (of its result), dtype, layout}; sections.lua makes
-- them. Each step's `needs` tells which rows it needs for rows of its result; here these are
-- composed from the last step to the first, so that data are read once.

local mb = require "moonbeam"
local alive = require "moonbeam.stream.alive"
local block = require "moonbeam.pipeline.block"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local deals = require "moonbeam.plan.deals"
local on_error = require "moonbeam.internal.on_error"
local scan_frames = require "moonbeam.tomo.scan_frames"
local stream = require "moonbeam.stream"
local tables = require "moonbeam.internal.tables"

local work = {}

-- The value of an unattenuated beam, by quantity; nil for counts.
local OPEN = {transmission = 1, ["line integrals"] = 0, phase = 0}

-- ---- ranges ----

-- The extent of the cut axis in data of a layout.
local function extent_of(shape, cut, layout)
    return shape[block.axis(cut, layout)]
end

--- The rows that each of the first `count` steps of a section (nil: all) needs for rows of the
-- result: {{from = {first, last}, to = {first, last}}, ..., read = {first, last}, result = {first,
-- last}}. Steps work on whole packets, counted from their first row.
function work.ranges(section, first, last, count)
    local ranges = {result = {first, last}}
    for k = count or #section.steps, 1, -1 do
        local step = section.steps[k]
        local own = {to = {first, last}}
        local packet = section.packets[k]
        local out = extent_of(step.shape, section.cut, step.kind.layout)
        first = (first - 1) // packet * packet + 1
        last = math.min(out, (last + packet - 1) // packet * packet)
        if step.def.needs then
            first, last = step.def.needs(step.options, first, last, step, section.cut)
        end
        first = math.max(1, math.tointeger(first))
        last = math.min(extent_of(step.shape_before, section.cut, step.kind_before.layout),
            math.tointeger(last))
        own.from = {first, last}
        ranges[k] = own
    end
    ranges.read = {first, last}
    return ranges
end

--- A list of blocks {first, last} of `count` rows each, for the rows first to last.
function work.blocks(first, last, count)
    local list = {}
    for from = first, last, count do
        list[#list + 1] = {from, math.min(from + count - 1, last)}
    end
    return list
end

--- The ranges of rows that blocks read.
function work.reads(section, blocks)
    local list = {}
    for i, rows in ipairs(blocks) do
        list[i] = work.ranges(section, rows[1], rows[2]).read
    end
    return list
end

--- The numbers of rows of a block: of the result, and before and after each step. Blocks with equal
-- numbers take the same memory.
function work.extents(section, rows)
    local ranges = work.ranges(section, rows[1], rows[2])
    local extents = {rows[2] - rows[1] + 1}
    for _, range in ipairs(ranges) do
        extents[#extents + 1] = range.to[2] - range.to[1] + 1
        extents[#extents + 1] = range.from[2] - range.from[1] + 1
    end
    return extents
end

--- Fewer blocks of a device that take the same memory.
function work.shortened(section, blocks)
    return deals.shortened({{blocks}}, function(rows)
        return work.extents(section, rows)
    end)[1][1]
end

-- ---- reading ----

-- A view of a whole array, which can be released separately.
local function shared(array)
    return array and array:view()
end

-- A block of a scan: rows of all frames, or all rows of some frames. With `frames`, {first, last},
-- only of these frames. `known` are the references of whole frames, if they have been read.
local function read_scan(section, device, rows, options)
    local scan, whole = section.source.scan, section.cut == "frames"
    local own, known = whole and {1, scan.rows} or rows, options.references
    local frames = options.frames or whole and rows or nil
    local read = scan_frames.read(scan, device, own, frames, options.carrier,
        known or section.source.kind ~= "counts")
    known = known or read
    if known ~= read then
        read.flats, read.darks = shared(known.flats), shared(known.darks)
    end
    return block.new {data = read.raw, flats = read.flats, darks = read.darks, raw = true,
        rows = rows, frames = frames or {1, scan.n_angles}}
end

local function read_store(section, device, rows, options)
    local source, carrier, frames = section.source, options.carrier, options.frames
    local shape = table.move(source.shape, 1, 3, 1, {})
    local ranges = {{1, shape[1]}, {1, shape[2]}, {1, shape[3]}}
    ranges[block.axis(section.cut, source.layout)] = rows
    if frames then
        ranges[1] = frames
    end
    for i, range in ipairs(ranges) do
        shape[i] = range[2] - range[1] + 1
    end
    local data = mb.empty(shape, {dtype = source.dtype,
        device = carrier and device or mb.device "host"})
    local _ <close> = on_error(function() data:release() end)
    source.store:read(carrier, data, ranges)
    if not carrier and device.id ~= "host" then
        local there = data:to(device)
        data:release()
        data = there
    end
    return block.new {data = data, rows = rows, frames = source.layout == "frames" and ranges[1]
        or nil}
end

--- The projections of the source that become {first, last} after the first `count` steps.
function work.source_frames(section, frames, count)
    for k = count or #section.steps, 1, -1 do
        local step = section.steps[k]
        if frames and step.def.sources then
            frames = {step.def.sources(step.options, frames[1], frames[2], step.geometry_before)}
        elseif frames and step.def.selects then
            local kept = step.def.selects(step.options, step.geometry_before)
            frames = {kept[frames[1]], kept[frames[2]]}
        end
    end
    return frames
end

--- Queues the reading of the data that rows {first, last} of the result need. Options: carrier
-- (without one the data are read at once), frames ({first, last}: only these), count (the number of
-- steps that the block will pass; nil: all), references.
function work.read(section, device, rows, options)
    options = options or {}
    local ranges = work.ranges(section, rows[1], rows[2], options.count)
    if section.cut == "rows" then
        options.frames = work.source_frames(section, options.frames, options.count)
    end
    local read = section.source.scan and read_scan or read_store
    local made = read(section, device, ranges.read, options)
    made.cut, made.layout, made.device = section.cut, section.source.layout, device
    made.quantity, made.geometry = section.source.kind, section.source.geometry
    made.ranges = ranges
    return made
end

-- ---- computing ----

-- The names of the tallies, three counts each, in the order in which they go to the host.
local TALLIES <const> = scan_frames.TALLIES

--- How many numbers the tallies of a block have.
work.TALLIES = 3 * #TALLIES

local function tally(made, sums)
    for _, name in ipairs(TALLIES) do
        local counts = made[name]
        made[name] = nil
        if counts then
            local _ <close> = counts
            if sums then
                mb.binary(sums[name], "add", {b = counts, out = sums[name]})
            end
        end
    end
end

-- What a step allocates has its label as the tag (mb.pool.tag), for charts of the memory.
local function run_step(step, made, options, values)
    local _ <close> = mb.pool.tag(step.label)
    step.def.run(made, options, values)
end

--- Runs the first `count` steps of a section (nil: all) on a block. `values` are the measured
-- values, `sums` are tallies on the device, and `seen(step, block)` is called after each step.
-- Returns the data and releases the block.
function work.compute(section, made, values, sums, seen, count)
    local _ <close> = made
    for k = 1, count or #section.steps do
        local step, ranges = section.steps[k], made.ranges[k]
        made:trim(table.unpack(ranges.from))
        made.step, made.geometry, made.layout = step, step.geometry_before, step.kind_before.layout
        made.wanted = ranges.to
        if not step.takes_raw then
            made:finite(OPEN[made.quantity])
            tally(made, sums)
        end
        run_step(step, made, section.options[step.label] or step.options, values)
        made.raw = made.raw and step.gives.dtype == "same"
        made.layout, made.quantity = step.kind.layout, step.kind.quantity
        tally(made, sums)
        made:trim(table.unpack(ranges.to))
        if seen then
            seen(step, made)
        end
    end
    if (count or #section.steps) == 0 then
        made:finite(OPEN[made.quantity])
        tally(made, sums)
    end
    made:drop_references()
    if made.data.contiguous then
        return made:hand_over()
    end
    return made.data:copy()
end

-- Tallies by name from a list of numbers.
local function named(numbers)
    local tallies = {}
    for k, name in ipairs(TALLIES) do
        tallies[name] = {}
        for i = 1, 3 do
            tallies[name][i] = math.tointeger(numbers[3 * (k - 1) + i])
        end
    end
    return tallies
end

--- Tallies of nothing: {name = three zeros}.
function work.no_tallies()
    local zeros = {}
    for i = 1, work.TALLIES do
        zeros[i] = 0
    end
    return named(zeros)
end

-- Views of an array of tallies by name.
local function views_of(counts)
    local views = setmetatable({}, scan_frames.metatable)
    local _ <close> = on_error(function() views:release() end)
    for k, name in ipairs(TALLIES) do
        views[name] = counts:view {3 * k - 2, 3 * k}
    end
    return views
end

-- What a device keeps while a section runs: references of whole frames, what steps hold for all
-- blocks (block.held, by keys of their own), and sums of reductions.
local state_methods = {}
state_methods.__index = state_methods

function state_methods:release()
    if self.references then
        self.references:release()
    end
    self.held:release()
    self.reduced:release()
end

local function new_states(section, devices)
    local states = tables.group()
    local _ <close> = on_error(function() states:release() end)
    for _, device in ipairs(devices) do
        local state = setmetatable({held = tables.group(), reduced = tables.group()},
            state_methods)
        states[device.id] = state
        if section.cut == "frames" and section.source.scan and section.source.kind == "counts" then
            state.references = scan_frames.references(section.source.scan, device,
                {1, section.source.scan.rows})
        end
        for _, reduction in ipairs(section.reductions) do
            state.reduced[reduction] = reduction.def.reduce.start(reduction.step.options, device,
                reduction.pass, reduction.found)
        end
    end
    return states
end

--- Adds tallies to totals, tables by name.
function work.add(totals, tallies)
    for name, counts in pairs(tallies) do
        totals[name] = totals[name] or {0, 0, 0}
        for i, count in ipairs(counts) do
            totals[name][i] = totals[name][i] + count
        end
    end
end

-- ---- all blocks ----

-- The only rank.
local ALONE <const> = {size = 1}

work.alive, work.on_alive = alive.of, alive.on

-- The work of a section as stream.run takes it; `counted(rows, facts)` is called for each block
-- that is over.
local function steps_of(section, states, values, ends, settings, counted)
    return {
        read = function(rows, carrier, device)
            return work.read(section, device, rows,
                {carrier = carrier, references = states[device.id].references})
        end,
        compute = function(made, _, device, counts)
            local sums <close> = views_of(counts) -- luacheck: ignore
            made.held = states[device.id].held
            local data = work.compute(section, made, values, sums, settings.seen)
            local _ <close> = on_error(function() data:release() end)
            for _, reduction in ipairs(section.reductions) do
                reduction.def.reduce.add(states[device.id].reduced[reduction], data,
                    reduction.step.options, reduction.pass, reduction.found)
            end
            return data
        end,
        prepare = ends.prepare,
        write = ends.write or function() end,
        done = ends.done,
        finished = counted,
        stops = ends.stops,
    }
end

-- What the devices that are not lost have summed, by reduction: lists of states; of several ranks
-- what this one shares.
local function sums_of(section, lanes, states, own)
    local sums = {}
    for k, reduction in ipairs(section.reductions) do
        local list, reduce = {}, reduction.def.reduce
        for _, lane in ipairs(lanes) do
            list[#list + 1] = not lane.lost and states[lane.device.id].reduced[reduction] or nil
        end
        if own.size > 1 and not reduce.share then
            fail("argument", "pipeline:run", "steps", "step %s sums over all data, and several "
                .. "ranks cannot add what each has: its reduce needs share(list), which returns a "
                .. "state of numbers and texts", reduction.step.label)
        end
        sums[k] = own.size > 1 and reduce.share(list) or list
    end
    return sums
end

-- Gives each reduction its result. Ranks add what each has shared.
local function finish_reductions(section, sums, own)
    for k, reduction in ipairs(section.reductions) do
        local list = own.size > 1 and own.gather(sums[k]) or sums[k]
        reduction.result = reduction.def.reduce.finish(list, reduction.step.options,
            reduction.pass, reduction.found)
    end
end

-- Gives up lanes that were lost after their last block. Returns whether there are any.
local function give_up(lanes)
    local any = false
    for _, lane in ipairs(lanes) do
        local lost, reason = lane.device:lost()
        if lost and not lane.lost then
            lane:abandon(reason)
            any = true
        end
    end
    return any
end

-- The blocks whose sums went with lanes since `times` were noted; notes that these are lost.
local function lost_blocks(lanes, times)
    local blocks = {}
    for k, noted in ipairs(times.lanes) do
        if lanes[k].lost and not noted.lost then
            noted.lost = lanes[k].lost
            for _, list in ipairs(noted.lists) do
                table.move(list, 1, #list, #blocks + 1, blocks)
            end
        end
    end
    return blocks
end

-- Reduces. If a device is lost meanwhile, the others do its blocks again, without writing them.
-- After that no device of several ranks is asked: all of them exchange their sums once.
local function reduce(section, lanes, states, times, own, again)
    while true do
        local sums
        local ok, err = pcall(function()
            sums = sums_of(section, lanes, states, own)
            if own.size == 1 then
                finish_reductions(section, sums, own)
            end
        end)
        if ok then
            return own.size > 1 and finish_reductions(section, sums, own)
        elseif #lanes == 1 or not give_up(lanes) then
            error(err, 0)
        end
        local blocks = lost_blocks(lanes, times)
        while #blocks > 0 do
            local more = again(blocks)
            for k, noted in ipairs(times.lanes) do
                local lists = more.lanes[k].lists
                table.move(lists, 1, #lists, #noted.lists + 1, noted.lists)
                noted.blocks = noted.blocks + more.lanes[k].blocks
            end
            blocks = lost_blocks(lanes, times)
        end
    end
end

--- The whole work of a section on some blocks. `ends` has the steps prepare, write, done, stops
-- and finished(rows, {device, tallies, hash}) of stream.run and its options writes, files, sink and
-- hashes; `settings` has overlap, threads, pinned, schedule, order, lists, seen, and team (ranks
-- that sum together). Tallies are
-- by name, three counts each. Returns their sums and the times. Each reduction
-- gets its `result`. Devices that are lost leave their blocks to the others.
function work.run(section, devices, blocks, values, ends, settings)
    local options = {overlap = settings.overlap, threads = settings.threads,
        pinned = settings.pinned, order = settings.order, schedule = settings.schedule,
        lists = settings.lists, writes = ends.writes, files = ends.files, hashes = ends.hashes,
        tallies = work.TALLIES, source = section.source.scan and section.source.scan.arrays,
        sink = ends.sink, sums = #section.reductions > 0, sharing = #devices}
    local began = core.system.clock()
    local made, opened = work.on_alive(devices, function(live)
        local made = new_states(section, live)
        local _ <close> = on_error(function() getmetatable(made).__close(made) end)
        return made, stream.open(live, options)
    end)
    local states <close> = made
    local lanes <close> = opened
    local opening = core.system.clock() - began
    local totals = work.no_tallies()
    local times = stream.run(lanes, blocks, steps_of(section, states, values, ends, settings,
        function(rows, facts)
            facts.tallies = named(facts.tallies)
            work.add(totals, facts.tallies)
            if ends.finished then
                ends.finished(rows, facts)
            end
        end), options)
    times.wall = times.wall + opening
    if times.stopped then
        return totals, times
    end
    reduce(section, lanes, states, times, settings.team or ALONE, function(lost)
        return stream.run(lanes, lost, steps_of(section, states, values, {}, settings), options)
    end)
    return totals, times
end

return work
