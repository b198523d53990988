--- What a pipeline takes, known before a frame is read.
--
-- Nothing is modeled: the functions that run are dry-run. What steps measure (the axis, a range of
-- values) is found in the frames, so there are two plans. Plan A holds for every value that the
-- measuring steps may return. Plan B is made when the values are known, at the block sizes of A.
-- What a run takes is B to the byte, and B is never more than A.

local mb = require "moonbeam"
local block = require "moonbeam.pipeline.block"
local block_choice = require "moonbeam.pipeline.planning.block_choice"
local budget = require "moonbeam.plan.budget"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local in_a_row = require "moonbeam.plan.in_a_row"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local places = require "moonbeam.pipeline.shares.places"
local schedule = require "moonbeam.stream.schedule"
local sections = require "moonbeam.pipeline.sections"
local stream = require "moonbeam.stream"
local tables = require "moonbeam.internal.tables"
local team = require "moonbeam.pipeline.shares.team"
local work = require "moonbeam.pipeline.work"

local plan = {}

-- The part of a plan that measured values decide.
local function settle_section(job, section, known)
    local made = dry_work.section_memory(job, section, section.count, known)
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
        dry_work.larger(made.peaks, section.peaks)
        dry_work.larger(made.reserved, section.reserved)
        for _, measure in ipairs(section.measures) do
            dry_work.larger(made.peaks, measure.peaks)
            made.exact = made.exact and job.values[dry_work.value_name(measure.step)] ~= nil
        end
    end
    dry_work.larger(made.peaks, job.look)
    dry_work.larger(made.reserved, made.peaks)
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
            measured[dry_work.value_name(step)] = measure
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
            job.values[dry_work.value_name(step)] = step.def.known(step.options, step)
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
        block_choice.choose(job, section)
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

-- Fits the budgets of the host to the limit of the process, beside what the plan takes of it.
local function fit_budgets(job)
    local pinned = 0
    for _, section in ipairs(job.sections) do
        pinned = math.max(pinned, stream.pinned_bytes(job.devices, plan.stream_options(job,
            section)))
    end
    local threads = job.options.threads
    budget.fit(job.devices, pinned, dry_work.decoding_bytes(job), threads and 2 * threads)
end

-- Plan A: chooses blocks and ways of all sections of a job. Raises where the least do not fit. Of
-- several ranks, stores go to files if blocks do not fit beside them.
local function make(job, agreed)
    local _ <close> = in_a_row()
    fit_budgets(job)
    job.available, job.live = room_of(job, agreed)
    job.places = places.of(job, places.left(job, agreed))
    job.look = dry_work.look_peaks(job)
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
        local known = job.values[dry_work.value_name(measure.step)] ~= nil
        list[i] = known and measure or setmetatable({peaks = dry_work.measure_peaks(job, section,
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
    without.at_most_of = dry_work.larger(dry_work.larger({}, made.at_most_of), without.reserved)
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
    local ways = block_choice.ways_of(job, section)
    if block_choice.set_blocks(job, section, ways, available, section.count) then
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
    section.pending, section.peaks_memo = dry_work.whole_packets(section, ranges), {}
    section.blocks = dry_work.blocks_of(section, section.count)
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
        local name = dry_work.value_name(measure.step)
        list[i] = news and setmetatable({peaks = dry_work.measure_peaks(job, section, measure,
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
        block_choice.first_way(job, section)
        section.overlap, section.count = job.options.overlap ~= false, count
        most = math.max(most, dry_work.least_of(job, section, count))
        for _, measure in ipairs(section.measures) do
            most = math.max(most, dry_work.measure_peaks(job, section, measure, job.values)[id])
        end
    end
    return most
end

return plan
