--- What a pipeline takes, known before a frame is read.
--
-- Nothing is modeled: the functions that run are dry-run. What steps measure (the axis, a range of
-- values) is found in the frames, so there are two plans. Plan A holds for every value that the
-- measuring steps may return. Plan B is made when the values are known, at the block sizes of A.
-- What a run takes is B to the byte, and B is never more than A.

local mb = require "moonbeam"
local block = require "moonbeam.pipeline.block"
local deals = require "moonbeam.plan.deals"
local budget = require "moonbeam.plan.budget"
local fail = require "moonbeam.internal.fail"
local in_a_row = require "moonbeam.plan.in_a_row"
local largest = require "moonbeam.plan.largest"
local memory = require "moonbeam.plan.peak"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local places = require "moonbeam.pipeline.shares.places"
local scan_values = require "moonbeam.scan.values"
local schedule = require "moonbeam.stream.schedule"
local sections = require "moonbeam.pipeline.sections"
local store = require "moonbeam.pipeline.store"
local stream = require "moonbeam.stream"
local tables = require "moonbeam.internal.tables"
local team = require "moonbeam.pipeline.shares.team"
local view = require "moonbeam.pipeline.view"
local work = require "moonbeam.pipeline.work"

local plan = {}

-- Rows at a time beyond which nothing gets faster: what the back-projection kernels take.
plan.BLOCK_ROWS = 64

-- ---- values ----

--- The name by which a step's measured value goes.
function plan.value_name(step)
    return step.def.gives_value or step.label
end

-- The combinations of measured values among which is the one for which blocks of these heights
-- take most, with those that are known.
local function deciding(job, section, heights, known)
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
            local product = {}
            for _, one in ipairs(list) do
                for _, value in ipairs(values) do
                    product[#product + 1] = setmetatable({[name] = value}, {__index = one})
                end
            end
            list = product
        end
    end
    return list
end

-- ---- dry work ----

-- Rows of a section as whole packets: ranges in their order that neither meet nor overlap.
local function whole_packets(section, ranges)
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

-- The blocks of a section, of so many rows each: of all its rows, or of those that are to be done.
local function blocks_of(section, count)
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
local function dry_work(job, section, passes, values, devices, own)
    section.reductions = plan.reductions(section, 1)
    local final = section.number == #job.sections -- whose sink may need no pinned ring
    work.run(section, devices, {}, values, {sink = final and job.options.out or nil,
        files = final and job.options.files or nil},
        {overlap = section.overlap, lists = passes[1]})
    for pass = 2, plan.passes(section) do
        work.run(plan.later_pass(section, pass, own), devices, {}, {}, {writes = false},
            {overlap = section.overlap, lists = passes[pass] or passes[#passes]})
    end
end

-- The run of a section in blocks of so many rows on dry devices. `any`: each device may get any.
local function dry_run(job, section, count, values, devices, any)
    local stores <close> = with_stores(job, section)
    for _, deal in ipairs(deals_of(job, section, blocks_of(section, count), false, nil, any)) do
        dry_work(job, section, {deal}, values, devices, stores[#stores])
    end
end

-- How far the pool of a device reaches from its two ends.
local function extent_of(device)
    local stats = mb.pool.stats(device)
    return stats.reach_arrays + stats.reach_scratch
end

-- The events of the first device in dry runs while plan.events collects them: {list, name, part =
-- number of the part of the work}.
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

local function larger(a, b)
    for id, bytes in pairs(b) do
        a[id] = math.max(a[id] or 0, bytes)
    end
    return a
end

-- What a section takes in blocks of so many rows: {peaks, reserved (with the blocks of devices that
-- are lost, whichever) and grown, by devices, worst = the values that take most on the first one}.
local function new_section_memory(job, section, count, known)
    local heights, made, most = {}, {peaks = {}, grown = {}, reserved = {}}, -1
    for i, rows in ipairs(work.shortened(section, blocks_of(section, count))) do
        heights[i] = rows[2] - rows[1] + 1
    end
    for _, values in ipairs(deciding(job, section, heights, known)) do
        local own = memory_of(job, function(devices)
            dry_run(job, section, count, values, devices)
        end)
        local first = own.peak[job.devices[1].id]
        if first > most then
            most, made.worst = first, values
        end
        larger(made.peaks, own.peak)
        larger(made.grown, own.grown)
        local any = is_dealt(job) and memory_of(job, function(devices)
            dry_run(job, section, count, values, devices, true)
        end) or own
        larger(larger(made.reserved, own.peak), any.peak)
        larger(made.grown, any.grown)
    end
    return made
end

-- The same, made once for the same question.
local function section_memory(job, section, count, known)
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

-- What a section in blocks of so many rows must have on the first device.
local function least_of(job, section, count)
    return section_memory(job, section, count, job.values).reserved[job.devices[1].id]
end

--- How far the run of a section takes the pools from both ends, {low, high} by the ids of devices:
-- with the values that are known, with all its blocks, from what is live now, stores included.
function plan.reach(job, section)
    local likes = likes_of(job.devices)
    local reach = memory_of(job, function(devices)
        for _, any in ipairs {false, is_dealt(job) or nil} do
            for _, deal in ipairs(deals_of(job, section, section.blocks, true, likes, any)) do
                dry_work(job, section, {deal}, job.values, devices,
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
function plan.replayed(job, section, passes)
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
        dry_work(job, section, short, job.values, devices, stores[#stores])
    end)
end

--- What measuring takes, by devices, with the values that are known.
function plan.measure_peaks(job, section, measure, known)
    local peaks, step = {}, measure.step
    for _, values in ipairs(deciding(job, section, {1}, known)) do
        larger(peaks, peaks_of(job, function(devices)
            local _ <close> = with_stores(job, section, true)
            step.def.measure(view.of(section, measure.before, devices[1], values), step.options,
                step)
        end))
    end
    return peaks
end

-- What a look at the values of the scan takes (scan_values.lua), unless it has been done, and what
-- steps took when they were prepared.
local function look_peaks(job)
    local scan = job.chain.source.scan
    local unseen = setmetatable({values_planned = false}, {__index = scan})
    local peaks = not scan.values_found and scan.n_flats and peaks_of(job, function(devices)
        scan_values.check(unseen, {device = devices[1], rows = job.options.rows,
            log = job.chain.source.kind.quantity ~= "line integrals"})
    end) or {}
    return plan.prepared(job, peaks)
end

--- `peaks` raised to what steps took when they were prepared, by device.
function plan.prepared(job, peaks)
    for _, step in ipairs(job.chain.steps) do
        larger(peaks, step.took or {})
    end
    return peaks
end

--- What a planned run allocates and frees on its first device, in order, as mb.pool.trace tells of
-- a real one: the look at the values, what is measured, and each section with the values that take
-- most. Equal blocks are there once. The most that is live, less what is live now, is made.peak.
function plan.events(made)
    local job, list = made.job, {}
    local _ <close> = setmetatable({}, {__close = function()
        collected = nil
    end})
    local row <close> = in_a_row() -- luacheck: ignore
    collected = {list = list, name = "look at the values", part = 0}
    look_peaks(job)
    for i, section in ipairs(made.sections) do
        for _, measure in ipairs(section.measures) do
            collected.name, collected.part = measure.step.label, -i
            plan.measure_peaks(job, section, measure, job.values)
        end
        collected.name, collected.part = "frames and blocks", i
        memory_of(job, function(devices)
            dry_run(job, section, section.count, section.worst or job.values, devices)
        end)
    end
    return list
end

-- ---- reductions ----

--- What a section sums over all its results in one pass of its reductions.
function plan.reductions(section, pass)
    local list = {}
    for _, reduced in ipairs(section.reduced or {}) do
        if pass <= reduced.def.reduce.passes then
            list[#list + 1] = {step = reduced.step, def = reduced.def, pass = pass, of = reduced,
                found = reduced.found}
        end
    end
    return list
end

--- The number of passes that the reductions of a section take.
function plan.passes(section)
    local most = 1
    for _, reduced in ipairs(section.reduced or {}) do
        most = math.max(most, reduced.def.reduce.passes)
    end
    return most
end

--- A section that reads what another one has stored, and sums over it in a later pass.
function plan.later_pass(section, pass, own)
    local source = {section = section.number, shape = section.shape, dtype = section.dtype,
        layout = section.layout, kind = "scaled", store = own}
    return {number = section.number, cut = section.cut, axis = section.axis, steps = {},
        packets = {}, options = {}, measures = {}, first = section.first, last = section.last,
        reductions = plan.reductions(section, pass), dtype = section.dtype,
        shape = section.shape, layout = section.layout, kind = "scaled", source = source}
end

-- ---- plan A ----

-- The most rows of a block with which each of several devices gets one, or each packet is one.
local function rows_for_each(job, section)
    local total, packet = section.last - section.first + 1, sections.packet(section)
    local packets = math.ceil(total / packet)
    local count = math.min(#job.devices * (job.options.ranks or 1), packets)
    local each = math.ceil(packets / count)
    if math.ceil(packets / each) < count then
        each = packets // count
    end
    return math.min(total, each * packet)
end

-- More rows than this at a time gain no speed; fewer show progress, and obey Ctrl-C, sooner.
-- Files are written with fewer halts in larger blocks; in memory the first upload and the last
-- download, which nothing hides, are shorter in smaller ones. Blocks of less than a packet would
-- each make the whole packet.
local function most_rows(job, section)
    local total, packet = section.last - section.first + 1, sections.packet(section)
    return math.min(math.max(plan.BLOCK_ROWS, total // (job.options.out and 32 or 16), packet),
        rows_for_each(job, section))
end

local function within(list, available)
    for id, bytes in pairs(list) do
        if available[id] and bytes > available[id] then
            return false
        end
    end
    return true
end

-- Do blocks of so many rows fit? `whole`: with the holes between their arrays, so that all of it
-- can be committed before the first block.
local function fits(job, section, count, available, whole)
    section.count = count
    local made = section_memory(job, section, count, job.values)
    return within(made.reserved, available) and not (whole and not within(made.grown, available))
end

-- The most rows up to `limit`, in whole packets, that fit; or 0.
local function most_that_fit(job, section, limit, available, whole)
    local packet = math.min(sections.packet(section), limit)
    return packet * largest(limit // packet, function(n)
        return fits(job, section, n * packet, available, whole)
    end)
end

-- The rows of a block as asked for, or nil: a packet of many rows at least, as smaller blocks would
-- each make it.
local function asked_of(job, section)
    local asked, packet = job.options.block, sections.packet(section)
    return asked and packet > plan.BLOCK_ROWS and math.max(asked, packet) or asked
end

-- The most rows at a time that fit, or 0: as asked, or whole packets, or all. `most`: no more than
-- so many, whatever was asked.
local function rows_that_fit(job, section, available, whole, most)
    local total, asked = section.last - section.first + 1, asked_of(job, section)
    if most then
        return most_that_fit(job, section, math.min(most, most_rows(job, section)), available,
            whole)
    elseif asked or total <= most_rows(job, section) then
        local count = math.min(asked or total, total)
        if fits(job, section, count, available, whole) then
            return count
        elseif asked then
            return 0
        end
    end
    return most_that_fit(job, section, most_rows(job, section), available, whole)
end

-- Even blocks: the same number of them, but none much smaller than the others; whole packets.
local function even(section, count)
    local total, packet = section.last - section.first + 1, sections.packet(section)
    local unit = 8 % packet == 0 and 8 or packet
    local each = math.ceil(total / math.ceil(total / count))
    return math.min(count, (each + unit - 1) // unit * unit)
end

-- The ways to go about a section: combinations of what its steps offer that give the same values,
-- the quickest first, and then those that would give others.
local function ways_of(job, section)
    local list = {{options = {}, taken = true}}
    for _, step in ipairs(section.steps) do
        if step.def.ways then
            local product = {}
            for _, one in ipairs(list) do
                for _, way in ipairs(step.def.ways(step.options, step, job.devices[1])) do
                    local own = setmetatable(way.options, {__index = step.options})
                    product[#product + 1] = {taken = one.taken and way.taken, name = way.name,
                        reason = way.reason, way = way,
                        options = setmetatable({[step.label] = own}, {__index = one.options})}
                end
            end
            list = product
        end
    end
    return list
end

-- Sets a way; values that decided for another one are forgotten.
local function take(section, way)
    section.options, section.memo, section.peaks_memo = way.options, {}, {}
end

--- Sets the first way of a section.
function plan.first_way(job, section)
    local way = ways_of(job, section)[1]
    take(section, way)
    section.way = way.way or {}
end

--- The values of a name that decide what blocks of these heights take.
function plan.deciding_values(job, name, heights)
    return tables.mapped(deciding(job, job.sections[1], heights, job.values), function(values)
        return values[name]
    end)
end

-- The first way that fits, its rows at a time, and why it is taken; nil where none does.
local function way_that_fits(job, section, ways, available, whole, most)
    local first
    for _, overlap in ipairs {true, false} do
        if job.options.overlap == "auto" or job.options.overlap == overlap then
            section.overlap = overlap
            for _, way in ipairs(ways) do
                if way.taken then
                    first = first or way
                    take(section, way)
                    local rows = rows_that_fit(job, section, available, whole, most)
                    if rows > 0 then
                        return way, rows, way ~= first and way.name
                            .. " (the faster mode takes more than there is)" or way.reason
                    end
                end
            end
        end
    end
end

local function rows_text(count, cut)
    return count == 1 and (cut == "rows" and "one row" or "one frame")
        or count == 2 and cut == "rows" and "a pair of rows" or count .. " " .. cut
end

-- What makes smaller blocks where a step makes all slices together, or nil.
local function apart(section)
    for _, step in ipairs(section.steps) do
        local options = step.def.options or {}
        if options.sweep and options.slab and step.options.dimensions == 3
            and not step.options.slab then
            return (", or give step %s of a recipe sweep = 12, which is exact, or slab = 32, an "
                .. "approximation"):format(step.def.name)
        end
    end
    return nil
end

-- Raises that the least block does not fit, with what would do; `others` is what is needed beside
-- the run.
local function fail_least(job, section, ways, available, others)
    local bytes, device = mb.device.format_bytes, job.devices[1]
    local least, rows, remedies = math.huge, 1, {}
    local there, live = available[device.id], job.live[device.id]
    section.overlap = job.options.overlap == true
    for _, way in ipairs(ways) do
        take(section, way)
        local packet = math.min(sections.packet(section), section.last - section.first + 1)
        section.count = packet
        local peak = math.max(least_of(job, section, packet), others)
        if way.taken then
            least, rows = math.min(least, peak), packet
        elseif peak <= there then
            remedies[#remedies + 1] = (", or take the option method = %s and the option "
                .. "mode = %s, which needs %s and gives "
                .. "slightly other values"):format(way.way.method, way.way.mode, bytes(peak))
        end
    end
    remedies[#remedies + 1] = apart(section)
    local problem = ("%s of this scan%s %s %s, %s are available"):format(
        rows_text(rows, section.cut), others == least
        and ", with the search in the frames before the run," or "",
        rows_text(rows, section.cut):find "^%d" and "need" or "needs", bytes(least), bytes(there))
    local err = mb.error("budget", ("%s; give a budget of at least %d bytes%s"):format(problem,
        least + live, table.concat(remedies)), {op = job.op})
    err.problem, err.enough, err.device = problem, least + live, device.id
    err.also = table.concat(remedies)
    error(err, 0)
end

-- Raises that the block that was asked for does not fit.
local function fail_block(job, section, ways, available)
    local bytes = mb.device.format_bytes
    take(section, ways[1])
    section.overlap = job.options.overlap == true
    local count = math.min(job.options.block, section.last - section.first + 1)
    section.count = count
    fail("budget", job.op, "chunk", "a chunk of %d rows needs %s, %s are available; smaller "
        .. "chunks need less (leave --chunk out to have it chosen)", count,
        bytes(least_of(job, section, count)), bytes(available[job.devices[1].id]))
end

-- Sets way, overlap and blocks of a section: the first way that fits with the holes between its
-- arrays, else without them. `most`: rows at a time at most. Returns whether one fits.
local function set_blocks(job, section, ways, available, most)
    local way, count, why = way_that_fits(job, section, ways, available, true, most)
    if not way then
        way, count, why = way_that_fits(job, section, ways, available, false, most)
    end
    if not way then
        return false
    end
    section.way, section.reason = way.way or {}, why
    section.count = job.options.block and not most and count or even(section, count)
    section.blocks = blocks_of(section, section.count)
    return true
end

-- Chooses way, overlap and block of a section.
local function choose(job, section)
    local ways = ways_of(job, section)
    local way = set_blocks(job, section, ways, job.available)
    if not way and job.options.block and asked_of(job, section) == job.options.block then
        fail_block(job, section, ways, job.available)
    end
    local others = section.number == 1 and job.look[job.devices[1].id] or 0
    if not way then
        fail_least(job, section, ways, job.available, others)
    end
    for _, measure in ipairs(section.measures) do
        measure.peaks = plan.measure_peaks(job, section, measure, job.values)
        others = math.max(others, measure.peaks[job.devices[1].id])
    end
    if others > job.available[job.devices[1].id] then
        fail_least(job, section, ways, job.available, others)
    end
end

-- The part of a plan that measured values decide.
local function settle_section(job, section, known)
    local made = section_memory(job, section, section.count, known)
    section.peaks, section.reserved, section.worst = made.peaks, made.reserved, made.worst
end

-- The bytes that a section reads and writes, rows that several blocks need counted for each.
local function count_moves(section)
    local source, shape, rows = section.source, section.shape, 0
    for _, range in ipairs(work.reads(section, section.blocks)) do
        rows = rows + range[2] - range[1] + 1
    end
    local axis = block.axis(section.cut, source.layout)
    local all = source.shape[1] * source.shape[2] * source.shape[3]
    section.read_bytes = all // source.shape[axis] * rows * mb.pool.element_bytes(source.dtype)
    section.write_bytes = shape[1] * shape[2] * shape[3] // shape[section.axis]
        * (section.last - section.first + 1) * mb.pool.element_bytes(section.dtype)
end

-- The sums of a plan from its sections.
local function sum(job, made)
    made.peaks, made.reserved = {}, {}
    made.exact = true
    for _, section in ipairs(job.sections) do
        larger(made.peaks, section.peaks)
        larger(made.reserved, section.reserved)
        for _, measure in ipairs(section.measures) do
            larger(made.peaks, measure.peaks)
            made.exact = made.exact and job.values[plan.value_name(measure.step)] ~= nil
        end
    end
    larger(made.peaks, job.look)
    larger(made.reserved, made.peaks)
    made.peak = made.peaks[job.devices[1].id]
    made.values = job.values
    return made
end

-- What each of these devices may take, false for one that is lost; and the first error of these.
local function offers_of(job, devices)
    local list, problem = {}, nil
    for k, device in ipairs(devices) do
        local ok, bytes = true, job.options.available
        if not bytes then
            ok, bytes = pcall(budget.available, device)
        end
        if not ok and not device:lost() then
            error(bytes, 0)
        end
        list[k], problem = ok and bytes, problem or not ok and bytes or nil
    end
    return list, problem
end

-- What devices may take, and what is live there, by their ids. Ranks agree once, on all devices:
-- `agreed` is a table for what they have said, which a plan on fewer devices takes.
local function room_of(job, agreed)
    local own, devices = team.of(job.options), job.all or job.devices
    local available, live, problem = agreed.available, {}, nil
    if not available or own.size == 1 then
        local list
        available, devices = {}, own.size > 1 and devices or job.devices
        list, problem = offers_of(job, devices)
        for k, bytes in ipairs(own.least(list, "the number of devices")) do
            available[devices[k].id] = bytes
        end
        agreed.available = available
    end
    if problem then
        error(problem, 0)
    end
    for _, device in ipairs(job.devices) do
        live[device.id] = job.options.available and 0 or mb.pool.stats(device).live
    end
    return available, live
end

-- The measuring steps by the names of their values, with their bounds.
local function measured_of(job)
    local measured = {}
    for _, section in ipairs(job.sections) do
        for _, measure in ipairs(section.measures) do
            local step = measure.step
            measure.bounds = step.def.bounds(step.options, job.chain.source, step)
            measured[plan.value_name(step)] = measure
        end
    end
    return measured
end

--- A job, what all dry runs of one plan share: {chain, sections, devices, options, values}.
function plan.job(chain, devices, options)
    local job = {chain = chain, devices = devices, options = options, op = options.op
        or "pipeline.plan", values = {}, places = {}}
    job.sections = sections.of(chain, devices[1])
    for _, step in ipairs(chain.steps) do
        if step.def.known then
            job.values[plan.value_name(step)] = step.def.known(step.options, step)
        end
    end
    sections.require(job.sections, options.rows, work.ranges)
    if options.part then
        part_rows.restrict(job.sections, options.part, work.ranges)
    end
    job.measured = measured_of(job)
    return job
end

-- Plan A with stores where they are.
local function made_of(job)
    local made = {job = job, sections = job.sections, pinned = 0, scratch = 0}
    for _, section in ipairs(job.sections) do
        choose(job, section)
        settle_section(job, section, job.values)
        count_moves(section)
        section.pinned = stream.pinned_bytes(job.devices, plan.stream_options(job, section))
        made.pinned = math.max(made.pinned, section.pinned)
        local place = job.places[section.number]
        made.scratch = made.scratch + (place and place.disk_bytes or 0)
    end
    sum(job, made)
    made.at_most_of = made.reserved
    made.at_most = made.reserved[job.devices[1].id]
    return made
end

-- Plan A: chooses blocks and ways of all sections of a job. Raises where the least do not fit. Of
-- several ranks, stores go to files if blocks do not fit beside them.
local function make(job, agreed)
    local _ <close> = in_a_row()
    job.available, job.live = room_of(job, agreed)
    job.places = places.of(job, places.left(job, agreed))
    job.look = look_peaks(job)
    if not (job.options.scratch and places.are_shared(job)) then
        return made_of(job)
    end
    local ok, made = pcall(made_of, job)
    if not ok and type(made) == "table" and made.code == "budget" then
        job.places = places.of(job, 0)
        return made_of(job)
    end
    return ok and made or error(made, 0)
end

-- The options with which fewer devices do the same.
local function for_fewer(devices, options)
    local order = schedule.order_of(#devices, options)
    return setmetatable({order = false, schedule = order and "fixed" or "free"},
        {__index = options})
end

--- Plan A on those of the devices that are not lost; again if one of several is lost meanwhile:
-- blocks and ways of all sections. `job_on(devices, options)` makes the job. Raises where the least
-- do not fit.
function plan.on(devices, options, job_on)
    local agreed = {}
    return work.on_alive(devices, function(live)
        if #live == #devices then
            return make(job_on(devices, options), agreed)
        end
        local job = job_on(live, for_fewer(devices, options))
        job.all = devices
        return make(job, agreed)
    end)
end

--- A section that reads from another scan of the same data.
function plan.reading_from(section, scan)
    return setmetatable({source = setmetatable({scan = scan}, {__index = section.source})},
        {__index = section})
end

--- A plan that reads from another scan of the same data, such as one whose frames are decoded.
function plan.with_scan(made, scan)
    local source = made.sections[1].source
    if source.scan == scan then
        return made
    end
    local list = table.move(made.sections, 1, #made.sections, 1, {})
    list[1] = plan.reading_from(list[1], scan)
    local own = tables.merged(made)
    own.sections, own.job = list, setmetatable({sections = list}, {__index = made.job})
    return own
end

-- What a section measures, on the first device of the job.
local function measures_on(job, section)
    local list = {}
    for i, measure in ipairs(section.measures) do
        local known = job.values[plan.value_name(measure.step)] ~= nil
        list[i] = known and measure or setmetatable({peaks = plan.measure_peaks(job, section,
            measure, job.values)}, {__index = measure})
    end
    return list
end

--- A plan without the devices that are lost: on these ones, of which the first measures.
function plan.without(made, devices)
    local _ <close> = in_a_row()
    local without = tables.merged(made)
    without.job = setmetatable({devices = devices, all = made.job.all or made.job.devices,
        options = for_fewer(made.job.devices, made.job.options)}, {__index = made.job})
    without = plan.settle(without, {})
    for _, section in ipairs(without.sections) do
        section.pinned = stream.pinned_bytes(devices, plan.stream_options(without.job, section))
        section.measures = measures_on(without.job, section)
    end
    sum(without.job, without)
    without.at_most_of = larger(larger({}, made.at_most_of), without.reserved)
    without.at_most = without.at_most_of[devices[1].id]
    return without
end

--- Calls fn(plan) with a plan on those of its devices that are not lost; again if one of several is
-- lost meanwhile. Returns what fn returns.
function plan.on_alive(made, fn)
    return work.on_alive(made.job.devices, function(live)
        return fn(#live < #made.job.devices and plan.without(made, live) or made)
    end)
end

--- Plans a section of a settled plan again, in blocks of no more rows than it has, for less memory:
-- `available`, bytes by the ids of devices. Returns the plan; nil where not even a packet fits.
function plan.again(made, number, available)
    local _ <close> = in_a_row()
    local again = plan.settle(made, {})
    local job, section = again.job, again.sections[number]
    if set_blocks(job, section, ways_of(job, section), available, section.count) then
        settle_section(job, section, job.values)
        count_moves(section)
        return sum(job, again)
    end
end

--- A settled plan of which section `number` makes only some rows: `ranges`, a list of {first,
-- last}, which become whole packets; `count`: so many at a time. Returns the plan.
function plan.only(made, number, ranges, count)
    local _ <close> = in_a_row()
    local again = plan.settle(made, {})
    local section = again.sections[number]
    section.count = count or section.count
    section.pending, section.peaks_memo = whole_packets(section, ranges), {}
    section.blocks = blocks_of(section, section.count)
    settle_section(again.job, section, again.job.values)
    count_moves(section)
    return sum(again.job, again)
end

--- What stream.run is told of a section's ends.
function plan.stream_options(job, section)
    local final, options = section == job.sections[#job.sections], job.options
    return {threads = options.threads, pinned = options.pinned, tallies = work.TALLIES,
        files = final and options.files or nil,
        source = section.source.scan and section.source.scan.arrays,
        sink = final and options.out or nil}
end

--- The shape of the data after the steps of a section, with the values that are known; a value
-- that is not leaves the largest one.
function plan.shape_of(section, known)
    local shape = table.move(section.source.shape, 1, #section.source.shape, 1, {})
    for _, step in ipairs(section.steps) do
        local own = {}
        for _, name in ipairs(step.def.uses or {}) do
            own[name] = known[name]
        end
        if step.def.shape then
            shape = step.def.shape(setmetatable(own, {__index = step.options}), shape,
                step.geometry_before)
        end
    end
    return shape
end

-- Shapes of sections and of stores between them, where measured values decide them: the axis of a
-- half acquisition makes the width of its slices.
local function settle_shapes(job)
    local before
    for _, section in ipairs(job.sections) do
        if before then
            section.source = setmetatable({shape = before.shape}, {__index = section.source})
        end
        local shape = plan.shape_of(section, job.values)
        before = nil
        if table.concat(shape, " ") ~= table.concat(section.shape, " ") then
            section.shape, before = shape, section
            local place = job.places[section.number]
            if place then
                job.places = setmetatable({}, {__index = job.places})
                job.places[section.number] = places.resized(place, shape)
            end
        end
    end
end

-- What a section measures. What is measured after a value that is known now (`before` is the job
-- that did not know it) takes what it takes with this value.
local function settled_measures(job, before, section)
    local list, news = {}, false
    for i, measure in ipairs(section.measures) do
        local name = plan.value_name(measure.step)
        list[i] = news and setmetatable({peaks = plan.measure_peaks(job, section, measure,
            job.values)}, {__index = measure}) or measure
        news = news or before.values[name] == nil and job.values[name] ~= nil
    end
    return list
end

--- Plan B of one section, when its values are known: makes job.values theirs.
function plan.settle(made, values)
    local _ <close> = in_a_row()
    local found = next(values) ~= nil
    local settled = setmetatable(tables.merged(made), {__index = made})
    local job = setmetatable({values = setmetatable(values, {__index = made.job.values})},
        {__index = made.job})
    settled.job = job
    settled.sections = {}
    for i, section in ipairs(made.sections) do
        settled.sections[i] = setmetatable({}, {__index = section})
    end
    job.sections = settled.sections
    settle_shapes(job)
    for _, section in ipairs(settled.sections) do
        settle_section(job, section, job.values)
        section.measures = found and settled_measures(job, made.job, section) or section.measures
    end
    sum(job, settled)
    return settled
end

--- The peak of a job in blocks of so many rows, with what is looked for before, on its first
-- device: for `plan.required_memory`. The first way is taken.
function plan.peak(job, count)
    local _ <close> = in_a_row()
    local most, id = 0, job.devices[1].id
    for _, section in ipairs(job.sections) do
        plan.first_way(job, section)
        section.overlap, section.count = job.options.overlap ~= false, count
        most = math.max(most, least_of(job, section, count))
        for _, measure in ipairs(section.measures) do
            most = math.max(most, plan.measure_peaks(job, section, measure, job.values)[id])
        end
    end
    return most
end

return plan
