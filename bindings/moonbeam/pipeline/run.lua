--- Running a planned pipeline: measuring, and section after section over its blocks.

local mb = require "moonbeam"
local activate = require "moonbeam.pipeline.activate"
local block = require "moonbeam.pipeline.block"
local core = require "moonbeam.core"
local directions = require "moonbeam.scan.directions"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local fail = require "moonbeam.internal.fail"
local in_a_row = require "moonbeam.plan.in_a_row"
local ledger = require "moonbeam.ledger"
local on_error = require "moonbeam.internal.on_error"
local own_step = require "moonbeam.pipeline.definitions.own_step"
local plan = require "moonbeam.pipeline.plan"
local progress = require "moonbeam.progress"
local promise = require "moonbeam.plan.promise"
local scan_values = require "moonbeam.scan.values"
local schedule = require "moonbeam.stream.schedule"
local stops = require "moonbeam.stream.stops"
local rank_run = require "moonbeam.pipeline.shares.rank_run"
local store = require "moonbeam.pipeline.store"
local tables = require "moonbeam.internal.tables"
local team = require "moonbeam.pipeline.shares.team"
local unpack = require "moonbeam.internal.unpack"
local view = require "moonbeam.pipeline.view"
local work = require "moonbeam.pipeline.work"

local run = {}

run.check_bytes = promise.check_bytes

-- ---- measuring ----

-- What a step measures, with its verdict. What it takes of memory is what its dry run takes with
-- the values that are known by now, and no more than plan A says.
local function value_of(made, section, measure, known)
    local step, device = measure.step, made.job.devices[1]
    mb.collect()
    local scope <close> = mb.pool.scope(device)
    local watched <close> = progress.watch(("measuring, step %s"):format(step.label))
    local value, verdict = step.def.measure(view.of(section, measure.before, device, known),
        step.options, step)
    getmetatable(watched).__close()
    local stores = made.job.open_stores
    local bytes = scope:finish() + (stores and device.id == "host" and stores.live or 0)
    measure.peak = bytes
    local what = ("step %s"):format(step.label)
    local peaks = dry_work.measure_peaks(made.job, section, measure, known)
    run.check_bytes(what, bytes, peaks[device.id])
    local most = 0 -- planned for the first device, which may be lost by now
    for _, planned in pairs(measure.peaks) do
        most = math.max(most, planned)
    end
    run.check_bytes(what, bytes, most, bytes <= most)
    return value, verdict or {}
end

-- Measures what a section needs and nobody knows: adds to `values` and `verdicts`. `found` has
-- what is known already, by name; a journal has it, too, and it is told of the rest.
local function measure_section(made, section, values, verdicts, found, journal)
    for _, measure in ipairs(section.measures) do
        local name = dry_work.value_name(measure.step)
        if made.job.values[name] == nil and values[name] == nil then
            local value = found and found[name]
            if value == nil and journal then
                value, verdicts[name] = journal:value(name)
            end
            if value == nil then
                local known = setmetatable({}, {__index = function(_, key)
                    return values[key] or made.job.values[key]
                end})
                value, verdicts[name] = team.of(made.job.options).once(function()
                    return value_of(made, section, measure, known)
                end)
                if journal then
                    journal:measured(name, value, verdicts[name])
                end
            end
            -- A dry run has no frames to find it in: it goes on with the value that takes most.
            local worst = section.worst and section.worst[name]
            values[name] = ledger.found(worst == nil and measure.bounds[1] or worst, value)
        end
    end
end

--- Measures what the first section needs, unless `found` (values by name) or a journal has it, and
-- makes plan B of plan A. Returns the plan and what was found: {name = verdict}. Of a plan that is
-- exact: the plan itself.
function run.settle(made, found, journal)
    local values, verdicts, planned = {}, {}, made
    local settled = plan.on_alive(made, function(own)
        planned = own
        measure_section(own, own.sections[1], values, verdicts, found, journal)
        return next(values) == nil and own or plan.settle(own, values)
    end)
    if next(values) ~= nil then
        local most = settled.at_most_of or planned.at_most_of
        for id, bytes in pairs(settled.reserved) do
            run.check_bytes("the plan for the values that were measured", bytes,
                most[id], bytes <= most[id])
        end
    end
    return settled, verdicts
end

-- ---- one section ----

-- The ends of a section whose results go to a store.
local function store_ends(section, own, bar)
    return {write = function(data, rows, carrier)
        own:write(carrier, data, rows[1], rows[2], section.axis)
    end, done = function(rows)
        bar:step(rows[2] - rows[1] + 1)
    end, writes = true, bar = bar}
end

-- The ends of the last section: a result (prepare, carry), an array on the host, or a function
-- (data, first, last). `each` looks at the data before.
local function final_ends(section, final, others, bar)
    local beside = type(final.sink) ~= "function"
    local out, first = final.out, section.first
    local result = beside and not out and final.sink or nil
    if result then
        result:await()
    end
    return {
        prepare = function(rows)
            if result then
                result:prepare(rows[1] - first + 1, rows[2] - first + 1)
            end
        end,
        write = function(data, rows, carrier)
            local z = rows[1] - first + 1
            if final.each then
                others.call(final.each, data, z)
            end
            if out then
                local ranges = tables.mapped(out.shape, function(extent) return {1, extent} end)
                ranges[block.axis(section.cut, section.layout)] = {z, rows[2] - first + 1}
                local own <close> = out:view(table.unpack(ranges))
                carrier:carry(own, data)
            elseif result then
                result:carry(carrier, data, z)
            else
                others.call(final.sink, data, z)
            end
        end,
        done = function(rows)
            bar:step(rows[2] - rows[1] + 1)
        end,
        finished = result and function(rows)
            result:arrived(rows[1] - first + 1, rows[2] - first + 1)
        end,
        writes = beside, files = final.files, sink = out, bar = bar,
    }
end

-- Scopes of the devices, and of the host beside them.
local function scopes_of(devices)
    local scopes, host = setmetatable({}, {__close = function(list)
        for _, scope in pairs(list) do
            scope:finish()
        end
    end}), mb.device "host"
    for _, device in ipairs(devices) do
        scopes[device.id] = mb.pool.scope(device)
    end
    scopes[host.id] = scopes[host.id] or mb.pool.scope(host)
    return scopes
end

-- What a section takes of the devices that have got these blocks and are not lost: the plan if it
-- knows the blocks.
local function expected(job, section, passes, live, stopped)
    if not stopped and #live == #job.devices and schedule.order_of(#live, job.options) then
        return section.peaks
    end
    local lists = {}
    for pass, by_id in ipairs(passes) do
        lists[pass] = {}
        for k, device in ipairs(live) do
            lists[pass][k] = by_id[device.id] or {}
        end
    end
    return dry_work.replayed(setmetatable({devices = live}, {__index = job}), section, lists)
end

-- The blocks that each device has got in a pass, lists by round, by the ids of the devices.
local function lists_of(times)
    local lists = {}
    for _, lane in ipairs(times.lanes) do
        lists[lane.device.id] = lane.lists
    end
    return lists
end

-- Compares what was measured with a dry run of the blocks that each device has got, and with the
-- plan. Returns whether both promises were kept, and the bytes of the dry run. Lost devices are not
-- compared.
local function compare(made, section, measured, passes, others, times)
    local job, kept = made.job, true
    local live = work.alive(job.devices)
    if #live == 0 and team.of(job.options).size > 1 then
        return true, {} -- the other ranks did its blocks
    elseif #live == 0 then
        job.devices[1]:sync() -- raises that it is lost
    end
    local peaks = expected(job, section, passes, live, times.stopped)
    for _, more in ipairs(times.again or {}) do
        for id, bytes in pairs(expected(job, section, {lists_of(more)}, live, times.stopped)) do
            peaks[id] = math.max(peaks[id] or 0, bytes)
        end
    end
    if times.kept_by[1] then -- steps of the user: no promise was made for them
        for _, device in ipairs(live) do
            kept = kept and measured[device.id] == peaks[device.id]
        end
        return kept, peaks
    end
    -- In a fixed schedule the blocks of a lost device are reserved for.
    local bounds = #live == #job.devices and section.peaks or section.reserved
    for _, device in ipairs(live) do
        local bytes, exact, most = measured[device.id], peaks[device.id], bounds[device.id]
        local more, less = others.bytes[device.id] or 0, others.bytes.less[device.id] or 0
        kept = run.check_bytes("the run", bytes, exact, bytes >= exact - less
            and bytes <= exact + more) and kept
        kept = run.check_bytes("the run", bytes, most, bytes <= most + more) and kept
    end
    if section.beside then
        kept = run.check_bytes("the run's pinned memory", times.pinned, section.pinned,
            times.pinned == section.pinned
            or #live < #job.devices and times.pinned < section.pinned) and kept
    end
    return kept, peaks
end

-- How the blocks of a section are shared and moved.
local function settings_of(job, section)
    return {overlap = section.overlap, threads = job.options.threads, pinned = job.options.pinned,
        order = job.options.order, schedule = job.options.ranks and "free" or job.options.schedule,
        team = team.of(job.options)}
end

-- Ends the first pass of a section's reductions and makes the later ones, over what it has stored.
-- Returns the values that they end with, by name. Adds to `passes` which blocks the devices got.
local function reduce(made, section, passes)
    local job, values, list = made.job, {}, section.reductions
    for pass = 1, section.reduced and dry_work.passes(section) or 0 do
        if pass > 1 then
            local again = dry_work.later_pass(section, pass, job.open_stores[section.number])
            list = again.reductions
            local _, times = rank_run.work(again, job.devices, section.blocks, {},
                {writes = false}, settings_of(job, section))
            passes[pass] = lists_of(times)
        end
        for _, reduction in ipairs(list) do
            reduction.of.found = reduction.result
            values[dry_work.value_name(reduction.step)] = reduction.result
        end
    end
    return values
end

-- Runs a section whose memory is there. Returns its totals and times, the bytes by device, whether
-- they are those of the plan, the bytes that a dry run of its blocks takes, and the values that its
-- reductions found.
local function run_section(made, section, ends, others)
    local job = made.job
    section.beside = ends.writes ~= false
    local scopes <close> = scopes_of(job.devices)
    local live = job.open_stores.live
    section.reductions = dry_work.reductions(section, 1)
    local settings = settings_of(job, section)
    settings.seen = job.options.seen and function(...)
        others.call(job.options.seen, ...)
    end
    local watched = own_step.watch(section.steps, job.devices)
    local totals, times = rank_run.work(section, job.devices, section.blocks, job.values, ends,
        settings)
    local passes = {lists_of(times)}
    local found = not times.stopped and reduce(made, section, passes) or {}
    local measured = {}
    for id, scope in pairs(scopes) do
        measured[id] = scope:finish() + (id == "host" and live or 0)
    end
    times.kept_by = watched and not times.stopped and watched() or {}
    if times.kept_by[1] and os.getenv "MOONBEAM_STRICT" then
        fail("argument", "pipeline.run", "steps", "%s", times.kept_by[1])
    end
    times.unpack = (section.source.scan or {}).unpack_seconds
    local kept, peaks = compare(made, section, measured, passes, others, times)
    return totals, times, measured, kept, peaks, found
end

-- How many values, detector pixels and voxels a run goes through, rows that are read twice
-- counted twice.
local function sizes_of(section, volume)
    local rows, scan = 0, section.source.scan
    local blocks = work.blocks(section.first, section.last, section.count)
    for _, range in ipairs(work.reads(section, blocks)) do
        rows = rows + range[2] - range[1] + 1
    end
    local each = section.cut == "rows" and scan.n_angles or scan.rows
    return {values = rows * each * scan.cols,
        pixels = (section.cut == "rows" and rows or scan.rows) * scan.cols,
        voxels = volume[1] * volume[2] * volume[3]}
end

-- Stores that are open while a pipeline runs, by the numbers of their sections, and the bytes of
-- host memory that they take.
local function new_stores()
    return setmetatable({live = 0}, {__close = function(list)
        for key, each in pairs(list) do
            if key ~= "live" then
                each:close()
            end
        end
    end})
end

-- While blocks are noted that a run which goes on need not make again, a stop (Ctrl-C) waits until
-- those in flight are finished.
local function hold_stops(journal, section, ends)
    if not (journal and journal:keeps(section)) then
        return nil
    end
    ends.stops = stops.waits
    return stops.hold()
end

-- Has the journal told of each block of a section that is finished.
local function told(ends, section, journal)
    if journal then
        local finished = ends.finished
        ends.hashes = true
        function ends.finished(rows, facts)
            journal:finished(section, rows, facts)
            if finished then
                finished(rows)
            end
        end
    end
    return ends
end

-- What a run of a plan goes through: {made, job, values, verdicts, stores, paths (of the files of
-- stores), others, bar, report, team}.
local state_methods = {}
state_methods.__index = state_methods

-- The ends of section i.
function state_methods:ends_of(section, final)
    if not section.stored then
        return told(final_ends(section, final, self.others, self.bar), section, final.journal)
    end
    local place = self.made.job.places[section.number]
    self:open_store(section, place, final.journal)
    self.stores.live = self.stores.live + place.host_bytes
    return told(store_ends(section, self.stores[section.number], self.bar), section, final.journal)
end

-- Opens the store of a section.
function state_methods:open_store(section, place, journal)
    local path = journal and journal:store_path(section, place)
    self.stores[section.number] = rank_run.open_store(self.team, place, path, section.number)
end

-- Section i with its values known.
function state_methods:known(i, journal)
    local section = self.made.sections[i]
    section.source.store = self.stores[section.source.section or 0]
    measure_section(self.made, section, self.values, self.verdicts, nil, journal)
    if next(self.values) ~= nil then
        self.made, self.values = plan.settle(self.made, self.values), {}
    end
    return self.made.sections[i]
end

-- The same with what it reads from open, and only the blocks that are left.
function state_methods:ready(i, journal)
    local section = self:known(i, journal)
    local pending = journal and journal:pending(section)
    if pending then
        self.made = plan.only(self.made, i, pending)
    end
    return self.made.sections[i]
end

function state_methods:drop_store(number)
    local own = self.stores[number or 0]
    if own then
        self.stores.live = self.stores.live - own.plan.host_bytes
        self.stores[number] = nil
        rank_run.close_store(self.team, own)
    end
end

-- Goes on without the devices that are lost, if there are others: notes which these are. `i`: the
-- section; 0: before the first one.
function state_methods:drop_lost(i)
    local job, noted = self.made.job, self.report.lost
    for _, device in ipairs(job.all or job.devices) do
        local lost, reason = device:lost()
        if lost and not noted[device.id] then
            noted[device.id] = true
            noted[#noted + 1] = {device = device.id, section = i, reason = reason, text = ("%s was "
                .. "lost %s (%s); the other %s did its blocks"):format(device.id,
                i == 0 and "before the first section" or "in section " .. i, reason,
                rank_run.is_over(job.devices) and "ranks" or "devices")}
        end
    end
    local live = work.alive(job.devices)
    if #live > 0 and #live < #job.devices then
        self.made = plan.without(self.made, live)
    end
end

-- Calls fn(); again without a device that is lost meanwhile. Returns what fn returns.
function state_methods:guarded(i, fn)
    while true do
        self:drop_lost(i)
        if #self.made.job.devices == 1 then
            return fn()
        end
        local results = table.pack(pcall(fn))
        if results[1] then
            return table.unpack(results, 2, results.n)
        end
        local live = #work.alive(self.made.job.devices)
        if live == 0 or live == #self.made.job.devices then
            error(results[2], 0)
        end
    end
end

-- Commits the memory of section i, for the given plan or its own. A rank that has lost all of its
-- devices needs none.
function state_methods:secured(i, made, unpacked)
    local ok, secured = pcall(self.guarded, self, i, function()
        return activate.section(made or self.made, i, unpacked)
    end)
    if ok then
        return secured
    elseif self.team.size == 1 or not rank_run.is_over(self.made.job.devices) then
        error(secured, 0)
    end
    made = made or self.made
    return {made = made, section = made.sections[i], committed = false, budgets = {}}
end

-- Section i with the memory committed that it takes when nothing is garbage.
function state_methods:committed(i, unpacked)
    local _ <close> = in_a_row()
    return rank_run.secured(self.team, i, function(made)
        return self:secured(i, made, unpacked)
    end)
end

function state_methods:run(i, final)
    local report = self.report
    local section = self:guarded(i, function()
        return self:ready(i, final.journal)
    end)
    self.made.job.open_stores = self.stores
    self.bar:section(i)
    local ends = self:ends_of(section, final)
    local unpacked <close> = section.source.scan and section.cut == "rows"
        and unpack.if_needed(section.source.scan, work.reads(section, section.blocks)) or nil
    local secured = self:committed(i, unpacked)
    self.made = secured.made
    report.replanned[#report.replanned + 1] = secured.replanned
    table.move(secured.budgets, 1, #secured.budgets, #report.budgets + 1, report.budgets)
    local held <close> = hold_stops(final.journal, section, ends)
    local totals, times, measured, kept, peaks, found = run_section(self.made, secured.section,
        ends, self.others)
    if times.stopped then
        stops.raise(held)
    end
    table.move(times.kept_by, 1, #times.kept_by, #report.kept_by + 1, report.kept_by)
    totals = self.team.sum(totals)
    work.add(report.totals, totals)
    report.as_planned = kept and report.as_planned
    for id, bytes in pairs(peaks) do
        report.expected[id] = math.max(report.expected[id] or 0, bytes)
    end
    report.pinned = math.max(report.pinned, times.pinned)
    report.sections[i] = {peaks = measured, times = times, committed = secured.committed}
    report.times = times
    for id, bytes in pairs(measured) do
        report.peaks[id] = math.max(report.peaks[id] or 0, bytes)
    end
    self.values = found
    rank_run.reopen_store(self.team, self.stores, section.number)
    self:drop_lost(i)
    self:completed(section, final.journal, totals, found)
end

-- A section is complete: what it read from is needed no more.
function state_methods:completed(section, journal, totals, found)
    if journal and totals then
        journal:complete(section, totals, found)
    end
    self:drop_store(section.source.section)
    if journal and section.source.section then
        journal:drop_store(section.source.section)
    end
end

-- What a section takes that an earlier process has completed.
local NOTHING <const> = {wall = 0, read = 0, upload = 0, compute = 0, download = 0, write = 0,
    wait_read = 0, wait_write = 0, read_bytes = 0, write_bytes = 0, raw_bytes = 0, pinned = 0}

-- Goes past section i, which an earlier process has completed.
function state_methods:skip(i, journal)
    local section = self:known(i, journal)
    self.bar:section(i)
    self.bar:step(section.last - section.first + 1)
    for _, reduced in ipairs(section.reduced or {}) do
        local name = dry_work.value_name(reduced.step)
        self.values[name] = journal:value(name)
    end
    local place = self.made.job.places[section.number]
    if place and not journal:skips(self.made.sections[i + 1]) then
        self:open_store(section, place, journal)
    end
    self.report.times = NOTHING
    self.report.sections[i] = {peaks = {}, times = NOTHING, skipped = true}
    self:completed(section, journal)
end

--- Looks at the values of the scan of a plan, where nobody has: scan_values.check's result, or nil
-- of a scan that has no frames of its own.
function run.look(made)
    local scan, job = made.sections[1].source.scan, made.job
    return scan.n_flats and work.on_alive(job.devices, function(live)
        return scan_values.check(scan, dry_work.look_settings(job, live[1]))
    end) or nil
end

-- The directions that slices lack, where the scan's own angles do not tell (scan/angles.lua has
-- warned of those): those of a half acquisition, and of the projections that steps have left.
local function missing_directions(made)
    local texts = {}
    for _, section in ipairs(made.sections) do
        for _, step in ipairs(section.steps) do
            local g = step.geometry_before
            if step.kind_before.layout == "frames" and step.kind.layout == "slices"
                and (g.half_acquisition or #g.angles ~= g.projections) then
                texts[#texts + 1] = directions.missing(g.angles,
                    (g.half_acquisition and 2 or 1) * math.pi)
            end
        end
    end
    return texts
end

--- Runs a plan. `final`: {sink = a result, or a function (data, first), out = an array on the host,
-- each = a function like that, which sees the data before, files, quiet, label, unit, journal
-- (pipeline/journal.lua)}. Returns {seconds, peaks (by device), peak (of the first one), predicted
-- (its plan), pinned, totals (tallies by name), times (of the last section), sections =
-- {{peaks, times, committed, skipped}}, replanned = {{section, from, to, reason, text}} (sections
-- that ran in smaller blocks, because memory was refused), budgets = {{device, from, to, text}}
-- (those that changed, because of other programs), lost = {{device, section, reason, text}},
-- values, verdicts, plan, as_planned, warnings, sizes and logarithm (what the
-- warnings depend on)}. The times of a section have lanes: for each device
-- the blocks that it got, bytes and seconds.
-- Raises where everything was lost.
function run.execute(made, final)
    local own <const> = team.of(made.job.options)
    own.once(function()
        if not (final.journal and final.journal:resumed()) then -- which has taken its space
            store.check_disks(made.job.places, nil, "pipeline.run")
        end
    end)
    local freed <close> = on_error(core.garbage.collect) -- luacheck: ignore (what steps have made)
    run.look(made)
    local settled, verdicts = run.settle(made, nil, final.journal)
    local total = {}
    for i, section in ipairs(settled.sections) do
        total[i] = {name = (section.steps[#section.steps] or {}).label,
            count = section.last - section.first + 1,
            weight = section.read_bytes + section.write_bytes}
    end
    local stores <close> = new_stores()
    local call, others = promise.others(made.job.devices)
    local bar <close> = progress.new(final.label or "working", total,
        {unit = final.unit or "rows", quiet = final.quiet or mb.device.dry()})
    local state = setmetatable({made = settled, values = {}, verdicts = verdicts, stores = stores,
        others = {call = call, bytes = others}, bar = bar, team = own,
        report = {expected = {}, peaks = {}, totals = {}, sections = {}, replanned = {},
            budgets = {}, lost = {}, kept_by = {}, pinned = 0, as_planned = true}},
        state_methods)
    local journal = final.journal
    state:drop_lost(0)
    if journal then
        journal:look(settled, final.sink)
    end
    for i, section in ipairs(settled.sections) do
        if journal and journal:skips(section) then
            state:skip(i, journal)
        else
            state:run(i, final)
        end
    end
    local report, ended = state.report, state.made
    work.add(report.totals, journal and journal:tallies() or {})
    report.seconds, report.plan, report.verdicts = state.bar:finish(), ended, verdicts
    report.named = {} -- the values that are known, by name
    dry_work.prepared(ended.job, report.peaks)
    local id = ended.job.devices[1].id
    local predicted = report.expected[id] or 0
    for _, section in ipairs(ended.sections) do
        for _, each in ipairs(section.measures) do
            local name = dry_work.value_name(each.step)
            report.named[name] = ended.job.values[name]
            report.peaks[id] = math.max(report.peaks[id] or 0, each.peak or 0)
            predicted = math.max(predicted, each.peak or 0)
        end
        for _, each in ipairs(section.reduced or {}) do
            local name = dry_work.value_name(each.step)
            report.named[name] = ended.job.values[name]
        end
    end
    -- Of a run that goes on, or on other devices than planned, what it has done itself is compared.
    report.predicted = (#report.lost > 0 or journal and journal:resumed() or own.size > 1)
        and predicted or ended.peak
    report.values, report.peak = ended.job.values, report.peaks[id] or 0
    local first, last = ended.sections[1], ended.sections[#ended.sections]
    local volume = {table.unpack(last.shape)}
    volume[last.axis] = last.last - last.first + 1
    local _ <close> = on_error(function() -- all was lost, and would be again
        if journal then
            journal:void()
        end
    end)
    report.sizes = sizes_of(first, volume)
    report.logarithm = first.source.kind ~= "line integrals"
    report.warnings = mb.device.dry() and {} or scan_values.losses(report.totals,
        report.sizes, report.logarithm, last.whole ~= nil)
    for _, text in ipairs(mb.device.dry() and {} or missing_directions(ended)) do
        report.warnings[#report.warnings + 1] = text
    end
    for i, each in ipairs(report.replanned) do
        table.insert(report.warnings, i, each.text)
    end
    for _, each in ipairs(report.lost) do
        table.insert(report.warnings, 1, each.text)
    end
    for _, text in ipairs(report.kept_by) do
        report.warnings[#report.warnings + 1] = text
    end
    for _, each in ipairs(report.budgets) do
        report.warnings[#report.warnings + 1] = each.text
    end
    rank_run.reported(own, ended, report)
    return report
end

return run
