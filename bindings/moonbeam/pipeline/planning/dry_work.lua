--- What sections of a pipeline take: their functions are run on dry devices, with the values that
-- are known or, of those that are measured, with the values that take most.

local mb = require "moonbeam"
local deals = require "moonbeam.plan.deals"
local in_a_row = require "moonbeam.plan.in_a_row"
local memory = require "moonbeam.plan.peak"
local scan_values = require "moonbeam.scan.values"
local schedule = require "moonbeam.stream.schedule"
local sections = require "moonbeam.pipeline.sections"
local store = require "moonbeam.pipeline.store"
local tables = require "moonbeam.internal.tables"
local view = require "moonbeam.pipeline.view"
local work = require "moonbeam.pipeline.work"

local dry_work = {}

--- What a section sums over all its results in one pass of its reductions.
function dry_work.reductions(section, pass)
    local list = {}
    for _, reduced in ipairs(section.reduced or {}) do
        if pass <= reduced.def.reduce.passes then
            list[#list + 1] = {step = reduced.step, def = reduced.def, pass = pass, of = reduced,
                found = reduced.found}
        end
    end
    return list
end

--- What decoding frames takes beside the pools: threads decode beside each other.
function dry_work.decoding_bytes(job)
    local scan = job.chain.source.scan
    return scan and scan.chunk_rows and (job.options.threads or 8) * scan.decoding_bytes or 0
end

--- The number of passes that the reductions of a section take.
function dry_work.passes(section)
    local most = 1
    for _, reduced in ipairs(section.reduced or {}) do
        most = math.max(most, reduced.def.reduce.passes)
    end
    return most
end

--- A section that reads what another one has stored, and sums over it in a later pass.
function dry_work.later_pass(section, pass, own)
    local source = {section = section.number, shape = section.shape, dtype = section.dtype,
        layout = section.layout, kind = "scaled", store = own}
    return {number = section.number, cut = section.cut, axis = section.axis, steps = {},
        packets = {}, options = {}, measures = {}, first = section.first, last = section.last,
        reductions = dry_work.reductions(section, pass), dtype = section.dtype,
        shape = section.shape, layout = section.layout, kind = "scaled", source = source}
end

--- The name by which a step's measured value goes.
function dry_work.value_name(step)
    return step.def.gives_value or step.label
end

--- The combinations of measured values among which is the one for which blocks of these heights
-- take most, with those that are known.
function dry_work.deciding(job, section, heights, known)
    local list = {known}
    for name, measure in pairs(job.measured) do
        local consumer
        for _, step in ipairs(section.steps) do
            for _, used in ipairs(step.def.uses or {}) do
                consumer = used == name and step or consumer
            end
            consumer = step.label == name and step or consumer
        end
        if consumer and known[name] == nil then
            local def, options = consumer.def, section.options[consumer.label] or consumer.options
            local values = def.deciding and def.deciding(measure.bounds, options, heights,
                {step = consumer, device = job.devices[1], memo = section.memo})
                or {measure.bounds[1]}
            list = tables.combined(list, values, function(one, value)
                return setmetatable({[name] = value}, {__index = one})
            end)
        end
    end
    return list
end

--- Rows of a section as whole packets: ranges in their order that neither meet nor overlap.
function dry_work.whole_packets(section, ranges)
    local packet, first, list = sections.packet(section), section.first, {}
    ranges = table.move(ranges, 1, #ranges, 1, {})
    table.sort(ranges, function(a, b) return a[1] < b[1] end)
    for _, rows in ipairs(ranges) do
        local from = first + (rows[1] - first) // packet * packet
        local to = math.min(section.last, first + (rows[2] - first) // packet * packet + packet - 1)
        local before = list[#list]
        if before and from <= before[2] + 1 then
            before[2] = math.max(before[2], to)
        else
            list[#list + 1] = {from, to}
        end
    end
    return list
end

--- The blocks of a section, of so many rows each: of all its rows, or of those that are to be done.
function dry_work.blocks_of(section, count)
    local list = {}
    for _, rows in ipairs(section.pending or {{section.first, section.last}}) do
        local own = work.blocks(rows[1], rows[2], count)
        table.move(own, 1, #own, #list + 1, list)
    end
    return list
end

-- For each device the first one like it: of its model, where nothing is live either.
local function likes_of(devices)
    local likes, known = {}, {}
    for k, device in ipairs(devices) do
        local stats = mb.pool.stats(device)
        local key = ("%s %s %d"):format(device.kind, device.name, stats.budget)
        likes[k] = stats.live == 0 and known[key] or k
        known[key] = known[key] or stats.live == 0 and k or nil
    end
    return likes
end

-- Do several devices have blocks of their own, of which the others get some if one is lost?
local function is_dealt(job)
    return #job.devices > 1 and schedule.order_of(#job.devices, job.options) ~= nil
end

-- What the devices may get of these blocks: a list of lists by device. `whole`: lists that tell how
-- far the pools are taken, otherwise the fewest that tell what is live at most. Of devices that are
-- alike (`likes`) the first gets all lists. `any`: whatever becomes of the other devices.
local function deals_of(job, section, blocks, whole, likes, any)
    local function extents_of(rows)
        return work.extents(section, rows)
    end
    local count = #job.devices
    local order = schedule.order_of(count, job.options)
    if not order then
        return whole and deals.all(blocks, extents_of, count, likes)
            or deals.most(work.shortened(section, blocks), extents_of, count)
    elseif any then
        return deals.most(whole and blocks or work.shortened(section, blocks), extents_of, count)
    end
    local lists = deals.fixed(blocks, order, count)
    return {whole and lists or (deals.shortened(lists, extents_of))}
end

-- The section with what it reads from and, unless it only measures, stores to there, until the
-- returned value is closed.
local function with_stores(job, section, measures)
    local before = section.source.store
    local opened = setmetatable({}, {__close = function(list)
        section.source.store = before
        for _, each in ipairs(list) do
            each:close()
        end
    end})
    for _, number in ipairs {section.source.section or 0, not measures and section.number} do
        local place = job.places[number]
        if place then
            opened[#opened + 1] = store.open(place)
        end
    end
    section.source.store = section.source.section and opened[1]
    return opened
end

-- What a section does on dry devices. `passes`: for each pass over the data the lists of blocks by
-- device, each a list by round; the last pass stands for later ones. `own`: the section's store,
-- which later passes read.
local function run_passes(job, section, passes, values, devices, own)
    section.reductions = dry_work.reductions(section, 1)
    local final = section.number == #job.sections -- whose sink may need no pinned ring
    work.run(section, devices, {}, values, {sink = final and job.options.out or nil,
        files = final and job.options.files or nil},
        {overlap = section.overlap, lists = passes[1]})
    for pass = 2, dry_work.passes(section) do
        work.run(dry_work.later_pass(section, pass, own), devices, {}, {}, {writes = false},
            {overlap = section.overlap, lists = passes[pass] or passes[#passes]})
    end
end

-- The run of a section in blocks of so many rows on dry devices. `any`: each device may get any.
local function dry_run(job, section, count, values, devices, any)
    local stores <close> = with_stores(job, section)
    local blocks = dry_work.blocks_of(section, count)
    for _, deal in ipairs(deals_of(job, section, blocks, false, nil, any)) do
        run_passes(job, section, {deal}, values, devices, stores[#stores])
    end
end

-- How far the pool of a device reaches from its two ends.
local function extent_of(device)
    local stats = mb.pool.stats(device)
    return stats.reach_arrays + stats.reach_scratch
end

-- The events of the first device in dry runs while dry_work.events collects them: {list, name,
-- part = number of the part of the work}.
local collected

-- Adds what the pool of a dry device has done; where no step has set a tag it is the part's name.
local function collect(device)
    for _, event in ipairs(mb.pool.trace(device)) do
        event.tag = event.tag ~= "" and event.tag or collected.name
        event.part = collected.part
        table.insert(collected.list, event)
    end
end

-- What fn(devices) takes on each of the job's devices and on the host: {peak =, reach =, grown =
-- the bytes by which both ends grow}, by the ids of the devices.
local function memory_of(job, fn)
    local before = {}
    local made = memory.peaks(function(...)
        local devices = {table.unpack({...}, 1, #job.devices)}
        for _, device in ipairs(devices) do
            before[device.id] = extent_of(device)
        end
        fn(devices)
        if collected then
            collect(devices[1])
        end
    end, job.devices)
    made.grown = {}
    for id, bytes in pairs(before) do
        made.grown[id] = made.reach[id][1] + made.reach[id][2] - bytes
    end
    return made
end

-- The bytes of fn(devices) on each of the job's devices, by their ids, and on the host.
local function peaks_of(job, fn)
    return memory_of(job, fn).peak
end

--- Raises the bytes of `a`, by device, to those of `b`.
function dry_work.larger(a, b)
    for id, bytes in pairs(b) do
        a[id] = math.max(a[id] or 0, bytes)
    end
    return a
end

-- What a section takes in blocks of so many rows: {peaks, reserved (with the blocks of devices that
-- are lost, whichever) and grown, by devices, worst = the values that take most on the first one}.
local function new_section_memory(job, section, count, known)
    local heights, made, most = {}, {peaks = {}, grown = {}, reserved = {}}, -1
    for i, rows in ipairs(work.shortened(section, dry_work.blocks_of(section, count))) do
        heights[i] = rows[2] - rows[1] + 1
    end
    for _, values in ipairs(dry_work.deciding(job, section, heights, known)) do
        local own = memory_of(job, function(devices)
            dry_run(job, section, count, values, devices)
        end)
        local first = own.peak[job.devices[1].id]
        if first > most then
            most, made.worst = first, values
        end
        dry_work.larger(made.peaks, own.peak)
        dry_work.larger(made.grown, own.grown)
        local any = is_dealt(job) and memory_of(job, function(devices)
            dry_run(job, section, count, values, devices, true)
        end) or own
        dry_work.larger(dry_work.larger(made.reserved, own.peak), any.peak)
        dry_work.larger(made.grown, any.grown)
    end
    return made
end

--- The same, made once for the same question.
function dry_work.section_memory(job, section, count, known)
    local memo = section.peaks_memo
    memo[known] = memo[known] or {}
    local key = count * 2 + (section.overlap and 1 or 0)
    local made = memo[known][key]
    if not made then
        made = new_section_memory(job, section, count, known)
        memo[known][key] = made
    end
    return made
end

--- What a section in blocks of so many rows must have on the first device.
function dry_work.least_of(job, section, count)
    return dry_work.section_memory(job, section, count, job.values).reserved[job.devices[1].id]
end

--- How far the run of a section takes the pools from both ends, {low, high} by the ids of devices:
-- with the values that are known, with all its blocks, from what is live now, stores included.
function dry_work.reach(job, section)
    local likes = likes_of(job.devices)
    local reach = memory_of(job, function(devices)
        for _, any in ipairs {false, is_dealt(job) or nil} do
            for _, deal in ipairs(deals_of(job, section, section.blocks, true, likes, any)) do
                run_passes(job, section, {deal}, job.values, devices,
                    job.open_stores[section.number])
            end
        end
    end).reach
    for k, device in ipairs(job.devices) do
        for i, bytes in ipairs(reach[job.devices[likes[k]].id]) do
            reach[device.id][i] = math.max(reach[device.id][i], bytes)
        end
    end
    return reach
end

--- What a section takes, by devices, if they get these blocks: for each pass the lists by device,
-- each a list by round.
function dry_work.replayed(job, section, passes)
    local short = {}
    for pass, by_device in ipairs(passes) do
        short[pass] = {}
        for k, rounds in ipairs(by_device) do
            short[pass][k] = {}
            for r, blocks in ipairs(rounds) do
                short[pass][k][r] = work.shortened(section, blocks)
            end
        end
    end
    return peaks_of(job, function(devices)
        local stores <close> = with_stores(job, section)
        run_passes(job, section, short, job.values, devices, stores[#stores])
    end)
end

--- What measuring takes, by devices, with the values that are known.
function dry_work.measure_peaks(job, section, measure, known)
    local peaks, step = {}, measure.step
    for _, values in ipairs(dry_work.deciding(job, section, {1}, known)) do
        dry_work.larger(peaks, peaks_of(job, function(devices)
            local _ <close> = with_stores(job, section, true)
            step.def.measure(view.of(section, measure.before, devices[1], values), step.options,
                step)
        end))
    end
    return peaks
end

--- The settings with which the values of a job's scan are looked at: what its chain makes of them.
function dry_work.look_settings(job, device)
    local source = job.chain.source
    local settings = {rows = job.options.rows, device = device,
        log = source.kind.quantity ~= "line integrals", quantity = source.kind.quantity}
    for _, step in ipairs(job.chain.steps) do
        if step.name == "flat_field" then
            settings.flat_interpolation = step.options.interpolation
        end
        if step.name == "flat_field" and step.options.interpolation == "mean" then
            settings.flat_mode = step.options.mode
            settings.dark_mode = step.options.dark_mode ~= "same" and step.options.dark_mode or nil
        end
        settings.background = settings.background or step.name == "normalize_background"
    end
    local g = job.chain.geometry
    settings.frames = g and (g.used or g.frames) or nil
    return settings
end

--- What a look at the values of the scan takes (scan_values.lua), unless it has been done, and what
-- steps took when they were prepared.
function dry_work.look_peaks(job)
    local scan = job.chain.source.scan
    local unseen = setmetatable({values_planned = false}, {__index = scan})
    local peaks = not scan.values_found and scan.n_flats and peaks_of(job, function(devices)
        scan_values.check(unseen, dry_work.look_settings(job, devices[1]))
    end) or {}
    return dry_work.prepared(job, peaks)
end

--- `peaks` raised to what steps took when they were prepared, by device.
function dry_work.prepared(job, peaks)
    for _, step in ipairs(job.chain.steps) do
        dry_work.larger(peaks, step.took or {})
    end
    return peaks
end

--- What a planned run allocates and frees on its first device, in order, as mb.pool.trace tells of
-- a real one: the look at the values, what is measured, and each section with the values that take
-- most. Equal blocks are there once. The most that is live, less what is live now, is made.peak.
function dry_work.events(made)
    local job, list = made.job, {}
    local _ <close> = setmetatable({}, {__close = function()
        collected = nil
    end})
    local row <close> = in_a_row() -- luacheck: ignore
    collected = {list = list, name = "look at the values", part = 0}
    dry_work.look_peaks(job)
    for i, section in ipairs(made.sections) do
        for _, measure in ipairs(section.measures) do
            collected.name, collected.part = measure.step.label, -i
            dry_work.measure_peaks(job, section, measure, job.values)
        end
        collected.name, collected.part = "frames and blocks", i
        memory_of(job, function(devices)
            dry_run(job, section, section.count, section.worst or job.values, devices)
        end)
    end
    return list
end

return dry_work
