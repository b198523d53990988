--- What several ranks do together while a pipeline runs: blocks that are dealt, memory that all
-- have before the first block, stores in the memory of all or in files, and one report.

local core = require "moonbeam.core"
local plan = require "moonbeam.pipeline.plan"
local store = require "moonbeam.pipeline.store"
local team = require "moonbeam.pipeline.shares.team"
local unfinished = require "moonbeam.result.unfinished"
local work = require "moonbeam.pipeline.work"

local rank_run = {}

--- Has this process lost all of these devices?
function rank_run.is_over(devices)
    return #work.alive(devices) == 0
end

-- Times of work that has not been done.
local function no_times(began)
    return {wall = core.system.clock() - began, read = 0, upload = 0, compute = 0, download = 0,
        write = 0, wait_read = 0, wait_write = 0, read_bytes = 0, write_bytes = 0, raw_bytes = 0,
        blocks = 0, pinned = 0, lanes = {}}
end

-- work.run with dealt blocks. Returns its totals and times; the blocks that are left where this
-- rank has lost all of its devices, and nothing is summed on them; and how many are finished.
local function attempt(section, devices, dealt, values, ends, settings)
    local began, finished, totals, done = core.system.clock(), {}, {}, 0
    local own = setmetatable({finished = function(rows, facts)
        done = done + (finished[rows] and 0 or 1)
        finished[rows] = true
        work.add(totals, facts.tallies)
        if ends.finished then
            ends.finished(rows, facts)
        end
    end}, {__index = ends})
    local ok, all, times = pcall(work.run, section, devices, dealt, values, own, settings)
    if ok then
        return all, times, {}, done
    elseif not rank_run.is_over(devices) or #section.reductions > 0 then
        error(all, 0)
    end
    local left = {}
    for i = 1, #dealt do
        left[#left + 1] = not finished[dealt[i]] and dealt[i] or nil
    end
    return totals, no_times(began), left, done
end

-- Adds the times of more work. What each device got then is in `again`.
local function add_times(times, more)
    for name, value in pairs(more) do
        if math.type(value) then
            times[name] = name == "pinned" and math.max(times[name] or 0, value)
                or (times[name] or 0) + value
        end
    end
    times.again = times.again or {}
    table.insert(times.again, more)
    times.stopped = more.stopped
end

--- work.run with blocks that are dealt to the ranks of settings.team. Returns when all blocks of
-- all ranks are finished; the times have the seconds that this rank has waited for that (`waited`)
-- and for blocks (`asked`), and `again`, the times of blocks that ranks have left which have lost
-- all of their devices. Raises where no rank has a device, or where sums were on a device.
function rank_run.work(section, devices, blocks, values, ends, settings)
    local own = settings.team
    if own.size == 1 then
        return work.run(section, devices, blocks, values, ends, settings)
    end
    local totals, times, asked, waited = {}, nil, 0, 0
    repeat
        local dealt, count = own.deal(blocks, ends.bar)
        local counted = setmetatable({done = ends.bar and function(rows)
            count:step(rows[2] - rows[1] + 1)
        end}, {__index = ends})
        local left, done = {}, 0
        if not rank_run.is_over(devices) then
            local some, more
            some, more, left, done = attempt(section, devices, dealt, values, counted, settings)
            work.add(totals, some)
            times = times and add_times(times, more) or times or more
        elseif #section.reductions > 0 then
            devices[1]:sync() -- raises that it is lost
        end
        asked = asked + count.asked
        if times and times.stopped then
            break
        end
        local over = core.system.clock()
        blocks = own.dealt(count, {all = #blocks, done = done, left = left,
            over = rank_run.is_over(devices)})
        waited = waited + core.system.clock() - over
        if not blocks then
            devices[1]:sync()
        end
    until #blocks == 0
    times = times or no_times(core.system.clock())
    times.asked, times.waited = asked, waited
    return totals, times
end

--- Commits the memory of section i on all ranks, in blocks that all of them can have:
-- commit(made) does it on this one, for its plan or the given one, as activate.section. Returns
-- what it returns.
function rank_run.secured(own, i, commit)
    local secured = commit()
    while own.size > 1 do
        local counts = own.gather(secured.section.count)
        local least, most = math.min(table.unpack(counts)), math.max(table.unpack(counts))
        if least == most then
            break
        elseif secured.section.count > least then
            local before, section = secured, secured.made.sections[i]
            secured = commit(plan.only(secured.made, i, section.pending
                or {{section.first, section.last}}, least))
            secured.replanned = before.replanned
        end
    end
    return secured
end

--- Opens the store of section `number`: memory of all ranks, or a file that rank 0 makes, and the
-- others open then. `path`: its name in a journal.
function rank_run.open_store(own, place, path, number)
    if own.size == 1 then
        return store.open(place, path)
    elseif place.place == "memory" then
        local made = store.open(place)
        own.gather(true) -- a rank that is asked has opened it
        return made
    end
    local name, made = path or team.store_path(own, place, number), nil
    own.once(function()
        made = store.open(place, name)
    end)
    made = made or store.open(place, name)
    made.name, made.removes = name, not path
    return made
end

--- Closes the file of a section that is complete, on all ranks, and opens it again: what others
-- have written there is seen then on network file systems, too.
function rank_run.reopen_store(own, stores, number)
    local before = stores[number]
    if own.size > 1 and before and before.place == "file" then
        before:close()
        own.gather(true)
        stores[number] = store.open(before.plan, before.name)
        stores[number].name, stores[number].removes = before.name, before.removes
    end
end

--- Closes a store that is needed no more: all ranks have read what they need.
function rank_run.close_store(own, closed)
    closed:close()
    if closed.removes and own.rank == 0 then
        os.remove(closed.name)
    end
end

-- What a rank has done in all sections, and what it has waited for: seconds.
local function times_of(report)
    local sums = {blocks = 0, wall = 0, compute = 0, wait_read = 0, wait_write = 0, asked = 0,
        waited = 0}
    for _, section in ipairs(report.sections) do
        for name in pairs(sums) do
            sums[name] = sums[name] + (section.times[name] or 0)
        end
    end
    return sums
end

-- What a rank tells of its run.
local function facts_of(ended, report)
    local names, predicted, measured = {}, {}, {}
    local beside = (report.expected.host or 0) > 0
    for i, device in ipairs(ended.job.devices) do
        if not device:lost() then
            names[#names + 1] = device.id
            predicted[#names] = i == 1 and report.predicted or report.expected[device.id] or 0
            measured[#names] = report.peaks[device.id] or 0
        end
        beside = beside and device.id ~= "host"
    end
    if beside then -- what stores take of the host
        names[#names + 1] = "host"
        predicted[#names], measured[#names] = report.expected.host, report.peaks.host or 0
    end
    return {devices = names, predicted = predicted, measured = measured,
        planned_pinned = ended.pinned, pinned = report.pinned, as_planned = report.as_planned,
        models = unfinished.models(ended.job.devices), warnings = report.warnings,
        node = core.cluster.place().node, seconds = report.seconds, times = times_of(report)}
end

--- Puts what all ranks tell into the report of each: `ranks`, {devices, predicted and measured
-- (bytes by device), pinned, node, times, ...} by rank; and warnings of the others.
function rank_run.reported(own, ended, report)
    if own.size == 1 then
        return
    end
    report.ranks = own.gather(facts_of(ended, report))
    local known, warnings = {}, {}
    for rank, facts in ipairs(report.ranks) do
        report.as_planned = report.as_planned and facts.as_planned
        for _, text in ipairs(facts.warnings) do
            if not known[text] then
                warnings[#warnings + 1] = rank == 1 and text
                    or ("%s (rank %d on %s)"):format(text, rank - 1, facts.node)
            end
            known[text] = true
        end
        if facts.models ~= report.ranks[1].models and not known.models then
            known.models = true
            warnings[#warnings + 1] = ("rank 0 works on %s, rank %d on %s: the bits of the result "
                .. "may be others than those of either"):format(report.ranks[1].models, rank - 1,
                facts.models)
        end
    end
    report.warnings = warnings
end

--- The ranks of a report in words, a line for each; nil for one rank.
function rank_run.text(report)
    local lines = {}
    for rank, facts in ipairs(report.ranks or {}) do
        for i, id in ipairs(facts.devices) do
            lines[#lines + 1] = ("rank %d on %s: %s, predicted %d bytes, measured %d bytes"):format(
                rank - 1, facts.node, id, facts.predicted[i], facts.measured[i])
        end
        local times = facts.times
        lines[#lines + 1] = ("rank %d on %s: %d block%s in %.3f s, computing %.3f s; waited %.3f s "
            .. "for blocks, %.3f s for reading, %.3f s for writing, %.3f s for the last rank")
            :format(rank - 1, facts.node, times.blocks, times.blocks == 1 and "" or "s", times.wall,
            times.compute, times.asked, times.wait_read, times.wait_write, times.waited)
    end
    return lines[1] and table.concat(lines, "\n")
end

return rank_run
