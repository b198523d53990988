--- The blocks of a pipeline's sections: the way of each, and how many rows are done at a time, so
-- that it fits what its devices may take.

local mb = require "moonbeam"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local largest = require "moonbeam.plan.largest"
local sections = require "moonbeam.pipeline.sections"
local tables = require "moonbeam.internal.tables"

local block_choice = {}

-- Rows at a time beyond which nothing gets faster: what the back-projection kernels take.
local BLOCK_ROWS <const> = 64

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
    local enough = total // (job.options.out and 32 or 16)
    return math.min(math.max(BLOCK_ROWS, enough, packet), rows_for_each(job, section))
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
    local made = dry_work.section_memory(job, section, count, job.values)
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
    return asked and packet > BLOCK_ROWS and math.max(asked, packet) or asked
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

--- The ways to go about a section: combinations of what its steps offer that give the same values,
-- the quickest first, and then those that would give others.
function block_choice.ways_of(job, section)
    local list = {{options = {}, taken = true}}
    for _, step in ipairs(section.steps) do
        if step.def.ways then
            local ways = step.def.ways(step.options, step, job.devices[1])
            list = tables.combined(list, ways, function(one, way)
                local own = setmetatable(way.options, {__index = step.options})
                return {taken = one.taken and way.taken, name = way.name, reason = way.reason,
                    way = way,
                    options = setmetatable({[step.label] = own}, {__index = one.options})}
            end)
        end
    end
    return list
end

-- Sets a way; values that decided for another one are forgotten.
local function take(section, way)
    section.options, section.memo, section.peaks_memo = way.options, {}, {}
end

--- Sets the first way of a section.
function block_choice.first_way(job, section)
    local way = block_choice.ways_of(job, section)[1]
    take(section, way)
    section.way = way.way or {}
end

--- The values of a name that decide what blocks of these heights take.
function block_choice.deciding_values(job, name, heights)
    local list = dry_work.deciding(job, job.sections[1], heights, job.values)
    return tables.mapped(list, function(values)
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

-- Raises a budget error with what is enough: `least` bytes beyond what is live, or as much by the
-- option that limits.
local function fail_budget(job, err, problem, least)
    local id = job.devices[1].id
    err.problem, err.enough, err.device = problem, least + job.live[id], id
    err.limited_by = job.options.available
        and (job.op == "recon.plan" and "available" or "budget") or nil
    error(err, 0)
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
        local peak = math.max(dry_work.least_of(job, section, packet), others)
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
    err.also = table.concat(remedies)
    fail_budget(job, err, problem, least)
end

-- Raises that the block that was asked for does not fit.
local function fail_block(job, section, ways, available)
    local bytes = mb.device.format_bytes
    take(section, ways[1])
    section.overlap = job.options.overlap == true
    local count = math.min(job.options.block, section.last - section.first + 1)
    section.count = count
    local least = dry_work.least_of(job, section, count)
    local problem = ("a chunk of %d rows needs %s, %s are available"):format(count, bytes(least),
        bytes(available[job.devices[1].id]))
    local err = mb.error("budget", problem .. "; smaller chunks need less (leave --chunk out to "
        .. "have it chosen)", {op = job.op, arg = "chunk"})
    err.also = ", or leave --chunk out to have it chosen"
    fail_budget(job, err, problem, least)
end

--- Sets way, overlap and blocks of a section: the first way that fits with the holes between its
-- arrays, else without them. `most`: rows at a time at most. Returns whether one fits.
function block_choice.set_blocks(job, section, ways, available, most)
    local way, count, why = way_that_fits(job, section, ways, available, true, most)
    if not way then
        way, count, why = way_that_fits(job, section, ways, available, false, most)
    end
    if not way then
        return false
    end
    section.way, section.reason = way.way or {}, why
    section.count = job.options.block and not most and count or even(section, count)
    section.blocks = dry_work.blocks_of(section, section.count)
    return true
end

--- Chooses way, overlap and block of a section.
function block_choice.choose(job, section)
    local ways = block_choice.ways_of(job, section)
    local way = block_choice.set_blocks(job, section, ways, job.available)
    if not way and job.options.block and asked_of(job, section) == job.options.block then
        fail_block(job, section, ways, job.available)
    end
    local others = section.number == 1 and job.look[job.devices[1].id] or 0
    if not way then
        fail_least(job, section, ways, job.available, others)
    end
    for _, measure in ipairs(section.measures) do
        measure.peaks = dry_work.measure_peaks(job, section, measure, job.values)
        others = math.max(others, measure.peaks[job.devices[1].id])
    end
    if others > job.available[job.devices[1].id] then
        fail_least(job, section, ways, job.available, others)
    end
end

return block_choice
