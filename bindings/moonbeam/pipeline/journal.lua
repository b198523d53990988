--- A pipeline's run into a result that others can go on with: which rows of which section are still
-- to be made, and what is noted while they are (result/unfinished.lua has the files).
--
-- A section whose results are in a store in memory runs again if a later section is unfinished. One
-- whose store is a file goes on. A section that sums over all its results (reductions) goes on only
-- as a whole: its sums are noted when it is complete.

local core = require "moonbeam.core"
local catalog = require "moonbeam.pipeline.catalog"
local chain = require "moonbeam.pipeline.chain"
local recipe_text = require "moonbeam.pipeline.recipe"
local references = require "moonbeam.scan.references"
local tables = require "moonbeam.internal.tables"
local team = require "moonbeam.pipeline.shares.team"
local unfinished = require "moonbeam.result.unfinished"
local work = require "moonbeam.pipeline.work"

local journal = {}
local methods = {}
local metatable = {__name = "moonbeam.pipeline.journal", __index = methods}

-- ---- which run it is ----

--- The names of the files of a scan.
function journal.scan_files(scan)
    local names, seen = {scan.path}, {[scan.path] = true}
    for _, file in ipairs(scan.files or {}) do
        names[#names + 1] = not seen[file.path] and file.path or nil
        seen[file.path] = true
    end
    return names
end

local MOST_TOLD <const> = 16 -- linked files that are listed; of more their sums are

-- The files that frames come from by links, and as parts of virtual datasets.
local function linked_files(scan)
    local names, seen, datasets = {}, {}, {scan.data}
    for _, source in ipairs {scan.flat_source or {}, scan.dark_source or {}} do
        for _, part in ipairs(source.parts or {}) do
            datasets[#datasets + 1] = part.dataset
        end
    end
    for _, name in ipairs(journal.scan_files(scan)) do
        seen[name] = true
    end
    for _, dataset in ipairs(datasets) do
        for _, name in ipairs(dataset:sources()) do
            names[#names + 1] = not seen[name] and name or nil
            seen[name] = true
        end
    end
    return names
end

-- Linked files as texts.
local function linked_texts(scan)
    local names, bytes, times = linked_files(scan), 0, 0
    if #names <= MOST_TOLD then
        return tables.mapped(names, unfinished.file_text)
    end
    for _, name in ipairs(names) do
        local facts = core.system.stat(name)
        bytes = bytes + (facts and facts.bytes or 0)
        times = times + (facts and math.floor(facts.modified * 1000) or 0)
    end
    return {("%d linked files, %d bytes, changed at %d"):format(#names, bytes, times)}
end

-- The files of a scan: path, size and time of each.
local function files_of(scan)
    local texts = tables.mapped(journal.scan_files(scan), unfinished.file_text)
    local linked = linked_texts(scan)
    return table.concat(table.move(linked, 1, #linked, #texts + 1, texts), "; ")
end

-- Which frames of its files a scan takes, and what they are scaled by, as one word.
local function frames_of(scan)
    local words = {references.text(scan.flat_source), references.text(scan.dark_source),
        scan.data and type(scan.frames) == "table" and table.concat(scan.frames, " ") or ""}
    for _, scaled in ipairs {scan.exposures or {}, scan.currents or {}} do
        for _, name in ipairs {"frames", "flats"} do
            words[#words + 1] = scaled[name] and table.concat(tables.mapped(scaled[name],
                function(value) return ("%a"):format(value) end), " ")
        end
    end
    return catalog.hash(table.concat(words, "; "))
end

-- The angles of a scan as one word.
local function angles_of(scan)
    local words = tables.mapped(scan.angles, function(angle) return ("%a"):format(angle) end)
    return catalog.hash(table.concat(words, " "))
end

-- When flats were taken, and the ring currents, as one word; nil where a scan has neither.
local function in_time_of(scan)
    local words = {}
    for _, lists in ipairs {scan.timeline or {}, scan.currents or {}} do
        for _, name in ipairs {"frames", "flats"} do
            words[#words + 1] = lists[name] and table.concat(tables.mapped(lists[name],
                function(number) return ("%a"):format(number) end), " ")
        end
    end
    return #words > 0 and catalog.hash(table.concat(words, "; ")) or nil
end

-- Where else the volume of an HDF5 result is, as a text; nil: nowhere.
local function layout_of(options)
    return options.layout and options.layout == "nabu" and "nabu, in " .. (options.entry
        or "entry0000") or options.layout
end

-- The sizes of pixels that a result says, as a text; nil where it says none.
local function sizes_of(section)
    local g = section.geometry
    return g.pixel_size and ("%.9g x %.9g"):format(g.pixel_size, g.row_size or g.pixel_size) or nil
end

--- What identifies a run: a list of {name, text}. `options`: those of journal.open.
function journal.identity(made, options)
    local job, scan = made.job, made.job.chain.source.scan
    local last = made.sections[#made.sections]
    local rows = last.whole or {last.first, last.last}
    local list = {{"moonbeam", core.version}, {"scan", files_of(scan)},
        {"shape of the scan", ("%d x %d x %d %s"):format(scan.n_angles, scan.rows, scan.cols,
            scan.dtype)}, {"angles", angles_of(scan)}, {"frames", frames_of(scan)},
        {"recipe", recipe_text.text(chain.resolved(job.chain))},
        {"rows", ("%d:%d"):format(rows[1], rows[2])}, {"dtype", last.dtype},
        {"slices_per_file", tostring(options.slices_per_file or "all")},
        {"devices", unfinished.models(job.devices)}}
    local in_time = in_time_of(scan)
    list[#list + 1] = in_time and {"flats in time and ring currents", in_time}
    for _, each in ipairs {{"layout", layout_of(options)}, {"pixel size", sizes_of(last)},
        {"title", options.title}} do
        list[#list + 1] = each[2] and each
    end
    list[#list + 1] = last.whole and {"part", table.concat(job.options.part, "/")} or nil
    for _, record in ipairs(job.chain.recorded or {}) do
        list[#list + 1] = {"steps of " .. (record.path or "the script"), record.hash or "?"}
    end
    return list
end

--- Begins the run of a plan into `path`, or goes on with it. Options: resume, discard, overwrite,
-- slices_per_file, tell (a function that gets a line on what is kept). Returns nil where nobody
-- could go on with it: in a dry run, and for a scan that is in memory only. Close it after the
-- result.
function journal.open(made, path, options)
    local scan = made.job.chain.source.scan
    if not scan.path then
        return nil
    end
    local kept = unfinished.open(path, {resume = options.resume, discard = options.discard,
        overwrite = options.overwrite, identity = journal.identity(made, options)})
    return kept and journal.of(made, kept, options.tell) or nil
end

--- The journal of a plan that keeps its files in `kept` (result/unfinished.lua).
function journal.of(made, kept, tell)
    return setmetatable({kept = kept, sections = {}, last = made.sections[#made.sections],
        tell = tell, team = team.of {}, totals = work.no_tallies()}, metatable)
end

-- ---- values ----

--- A value that an earlier process has measured, and its verdict; or nil.
function methods:value(name)
    local found = self.kept.values[name]
    if found then
        return found.value, found.verdict
    end
end

--- Notes a value that was measured, or that the sums of a section gave.
function methods:measured(name, value, verdict)
    self.kept:note_value(name, value, verdict)
end

-- ---- what is left ----

-- The hash of rows first to last of a section's store, as they are in its file; or nil.
local function store_hash(place, path, axis, first, last)
    local element, shape = core.pool.element_bytes(place.dtype), {1, 1, 1}
    table.move(place.shape, 1, #place.shape, 4 - #place.shape, shape)
    axis = axis + 3 - #place.shape
    local line = shape[3] * element
    local frame, count = shape[2] * line, last - first + 1
    local region = {base = 0, line_bytes = line, line_pitch = line, frame_pitch = frame}
    if axis == 1 then
        region.offset, region.frames, region.lines = (first - 1) * frame, 1, count * shape[2]
    else
        region.offset, region.frames, region.lines = (first - 1) * line, shape[1], count
    end
    return core.unfinished.hash(path, region)
end

-- What is left of the last section: its rows in the result.
local function look_at_result(self, section, result)
    local first = section.first
    local pending, good = self.kept:pending(section.number, first, section.last,
        function(a, b, of_file) return result:hash(a - first + 1, b - first + 1, of_file) end)
    local count = 0
    for _, each in ipairs(good) do
        result:have(each.first - first + 1, each.last - first + 1)
        count = count + each.last - each.first + 1
    end
    if self.tell and self:resumed() then
        self.tell(("'%s' has %d of %d rows already"):format(self.kept.folder, count,
            section.last - first + 1))
    end
    return pending, good
end

-- What is left of a section whose store is a file.
local function look_at_store(self, section, place)
    local path = self.kept.stores[section.number]
    if not path or not core.system.stat(path) then
        return {{section.first, section.last}}, {}
    end
    return self.kept:pending(section.number, section.first, section.last,
        function(a, b) return store_hash(place, path, section.axis, a, b) end)
end

-- Does a section go on, rather than run again as a whole? Then what is left of it.
local function left_of(self, made, section)
    local place, done = made.job.places[section.number],
        self.kept:section_done(section.number) ~= nil
    if place.place ~= "file" or (section.reduced and not done) then
        return nil
    end
    local pending, good = look_at_store(self, section, place)
    if section.reduced and #pending > 0 then
        return nil
    end
    return pending, good
end

local function look(self, made, result)
    local needed = true
    for i = #made.sections, 1, -1 do
        local section = made.sections[i]
        local own = {number = section.number, tallies = {}}
        self.sections[section.number] = own
        if not needed then
            own.skipped = true
            work.add(own.tallies, self.kept:section_done(section.number) or {})
        else
            local good
            if section.stored then
                own.pending, good = left_of(self, made, section)
            else
                own.pending, good = look_at_result(self, section, result)
            end
            for _, each in ipairs(good or {}) do
                work.add(own.tallies, each.tallies or {})
            end
            own.skipped = own.pending and #own.pending == 0
            needed = not own.skipped
            if not own.pending then
                self.kept:again(section.number)
            end
        end
        work.add(self.totals, own.tallies)
    end
end

--- Finds out what is left of a settled plan: reads and hashes what was noted. `result`: where the
-- last section goes. Before the first section.
function methods:look(made, result)
    self.sections, self.totals = self.team.once(function()
        look(self, made, result)
        return self.sections, self.totals
    end)
    self.looked = true
end

--- Is there nothing left of a section?
function methods:skips(section)
    return self.sections[section.number].skipped
end

--- The rows of a section that are left, {{first, last}, ...}; nil: all of them.
function methods:pending(section)
    local own = self.sections[section.number]
    return own.pending
end

--- The file of a section's store; nil for one in memory.
function methods:store_path(section, place)
    if place.place == "file" then
        self.kept.stores[section.number] = self.team.once(function()
            return self.kept:store_path(section.number, place.scratch)
        end)
        return self.kept.stores[section.number]
    end
end

-- ---- what is finished ----

--- Does a run that goes on need only the blocks of a section that are not noted?
function methods:keeps(section)
    return not section.stored or self.kept.stores[section.number] ~= nil and not section.reduced
end

--- Notes a block whose bytes are where they belong.
function methods:finished(section, rows, facts)
    if not section.stored or self.kept.stores[section.number] then
        self.kept:note_rows(section.number, rows[1], rows[2], facts.hash, facts.tallies)
    end
end

--- Notes a section that is complete, with what this run has counted and the values that its sums
-- gave.
function methods:complete(section, tallies, values)
    local all = {}
    work.add(all, self.sections[section.number].tallies)
    work.add(all, tallies or {})
    for name, value in pairs(values) do
        self.kept:note_value(name, value)
    end
    self.kept:note_section(section.number, all)
end

--- The store of a section is needed no more.
function methods:drop_store(number)
    self.kept:drop_store(number)
end

--- The tallies of what earlier processes have made.
function methods:tallies()
    return self.totals
end

--- How often the run was resumed; nil: never.
function methods:resumed()
    return self.kept.resumed > 0 and self.kept.resumed or nil
end

--- Nobody shall go on with this run: it would fail again.
function methods:void()
    self.kept.void = true
end

--- Has the result its name already? Then what was kept goes.
function methods:is_complete()
    if self.kept.complete then
        self.kept:remove()
        return true
    end
    return false
end

--- Ends this process's work: the folder stays if another process can go on with it. What is kept is
-- told where this process could go on itself: where it could not, its error says why.
function methods:close()
    local kept, last = self.kept, self.last
    if self.tell and self.looked and kept.run and kept:keeps() then
        core.cluster.await_others()
        self.tell(("'%s' keeps %d of %d rows: go on with the option resume = true, or start anew "
            .. "with the option discard = true"):format(kept.folder, kept:count(last.number),
            last.last - last.first + 1))
    end
    kept:close()
end
metatable.__close = methods.close

return journal
