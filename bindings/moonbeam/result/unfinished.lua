-- What an interrupted run leaves, so that another process goes on with it: the folder
-- "<result>.unfinished" (runtime/files/unfinished.h) with the result's file and a journal.
--
-- The journal says which run it is (`identity`: names and texts that must be the same), which
-- values were measured, and which rows of which section are in the files, each range with the sum
-- of the hashes of its lines. Nothing that is noted is trusted: every range is read and hashed
-- before a run goes on, and what differs is made again. So nothing is synced but the beginning: the
-- first records, and the head of the result's file, without which the rest is worth nothing.
--
-- The result's file may also be elsewhere (the option beside): then the folder has what it is made
-- of, and the identity is told when it is known (identify).
--
-- docs/formats.md lists the records.

local core = require "moonbeam.core"
local differing = require "moonbeam.result.differing"
local fail = require "moonbeam.internal.fail"
local kept_folder = require "moonbeam.result.kept_folder"
local records = require "moonbeam.result.records"
local result_parts = require "moonbeam.result.parts"

local unfinished = {}
local methods = {}
local metatable = {__name = "moonbeam.result.unfinished", __index = methods}

-- The first record: the format, and its version.
local FORMAT <const>, VERSION <const> = "moonbeam-unfinished", 1

local ANEW <const> = "remove it and start anew with the option discard = true"

-- Files of stores in a scratch folder; nothing else there is ever removed.
local STORE <const> = "^moonbeam%-store%-%x+%-%d+$"

local function base_of(path)
    return path:match "[^/]*$"
end

-- ---------------------------------------------------------------------------------------------
-- The journal

local readers = {}

readers["is"] = function(self, name, text)
    self.was[name] = text
    self.was[#self.was + 1] = name
end

function readers.file(self, name, offset, bytes, length, sum)
    self.files[name] = {offset = offset, bytes = bytes, length = length, sum = sum}
end

function readers.folder(self, name)
    self.slices = name
end

function readers.value(self, name, value, verdict)
    self.values[name] = {value = value, verdict = verdict}
end

local function section_of(self, number)
    self.sections[number] = self.sections[number] or {rows = {}}
    return self.sections[number]
end

function readers.rows(self, number, first, last, hash, tallies)
    local list = section_of(self, number).rows
    list[#list + 1] = {first = first, last = last, hash = hash, tallies = tallies}
end

function readers.section(self, number, tallies)
    local section = section_of(self, number)
    section.done, section.tallies = true, tallies
end

function readers.again(self, number)
    self.sections[number] = nil
end

function readers.store(self, number, path)
    self.stores[number] = path
end

function readers.resumed(self)
    self.resumed = self.resumed + 1
end

readers["end"] = function(self, device, inode)
    self.ended = {device = device, inode = inode}
end

-- Takes a record: from the journal, or from this run.
local function take(self, record)
    local reader = readers[record[1]]
    if reader then
        reader(self, table.unpack(record, 2))
    end
end

local function note(self, ...)
    local record = {...}
    self.run:append(records.text(record))
    take(self, record)
end

local function damaged(self, what)
    fail("io", nil, "resume", "%s in '%s' is damaged, so that the run cannot go on: %s", what,
        self.folder, ANEW)
end

-- Reads the journal. Returns whether it has a beginning.
local function read(self)
    local first = true
    for line in self.run:read():gmatch "[^\n]+" do
        local record = records.list(line)
        if not record or first and record[1] ~= FORMAT then
            damaged(self, "the journal")
        elseif first and record[2] ~= VERSION then
            fail("io", nil, "resume", "the journal in '%s' has version %s of its format; this "
                .. "program knows %d: go on with the program that began it, or %s", self.folder,
                tostring(record[2]), VERSION, ANEW)
        end
        first = false
        take(self, record)
    end
    return not first
end

-- The journals that other ranks have kept in the folder: names.
local function others_of(self)
    local names = {}
    for name in pairs(core.unfinished.entries(self.folder)) do
        names[#names + 1] = name:find "^journal%-%d+$" and name or nil
    end
    table.sort(names)
    return names
end

-- Have other ranks noted anything?
local function others_have(self)
    for _, name in ipairs(others_of(self)) do
        if (core.system.stat(self:file_path(name)) or {bytes = 0}).bytes > 0 then
            return true
        end
    end
    return false
end

-- Calls fn(record) for each record of the journals of other ranks.
local function each_of_others(self, fn)
    for _, name in ipairs(others_of(self)) do
        local other = core.unfinished.join(self.folder, name, false)
        local text = other:read()
        other:close()
        for line in text:gmatch "[^\n]+" do
            fn(records.list(line) or damaged(self, "the journal '" .. name .. "'"))
        end
    end
end

-- Takes what other ranks have noted into the journal, from which their own go.
local function absorb(self)
    each_of_others(self, function(record)
        note(self, table.unpack(record))
    end)
    for _, name in ipairs(others_of(self)) do
        os.remove(self:file_path(name))
    end
end

-- Raises where this run is another one than the journal's.
local function check_identity(self, identity)
    local problems, known = {}, {}
    for _, each in ipairs(identity) do
        local name, text = table.unpack(each)
        known[name] = true
        if self.was[name] ~= text then
            problems[#problems + 1] = ("%s (it was %s, now it is %s)"):format(name,
                differing(self.was[name], text))
        end
    end
    for _, name in ipairs(self.was) do
        problems[#problems + 1] = not known[name] and ("%s (it was %s)"):format(name,
            (differing(self.was[name], nil))) or nil
    end
    if #problems > 0 then
        fail("argument", nil, "resume", "'%s' is of another run; what differs: %s. Go on with "
            .. "what it was begun with, or %s", self.folder, table.concat(problems, "; "), ANEW)
    end
end

-- ---------------------------------------------------------------------------------------------
-- Beginning

local function note_identity(self, identity)
    for _, each in ipairs(identity) do
        note(self, "is", each[1], each[2])
    end
end

local function begin(self, options)
    if core.unfinished.state(self.path) ~= "kept" then
        kept_folder.check(self.path)
    end
    self.run, self.removed = core.unfinished.begin(self.path), false
    self.folder = self.run:folder()
    note(self, FORMAT, VERSION)
    note_identity(self, options.identity or {})
end

local function remove_stores(self)
    for _, path in pairs(self.stores) do
        if base_of(path):find(STORE) then
            os.remove(path)
        end
    end
end

-- Removes the folder, and the files of stores elsewhere. What no run has made stays.
local function remove(self)
    remove_stores(self)
    self.removed = true
    self.run:end_journal()
    self.run:remove((kept_folder.others(self.path)))
end

local function is_file_of(name, facts)
    local now = core.system.stat(name)
    return now and facts and now.device == facts.device and now.inode == facts.inode
end

-- Where a process was killed while the result got its name: the file is put back, or, where it has
-- its name already, the rest of the work is done. Returns whether the result is complete.
local function settle_end(self)
    local now, swap = self:file_path(), self:file_path() .. ".swap"
    if core.system.stat(now) then
        return false
    elseif is_file_of(swap, self.ended) then
        assert(os.rename(swap, now))
        return false
    elseif is_file_of(self.path, self.ended) then
        if core.system.stat(swap) then
            result_parts.replaced(self.path, swap)
        end
        result_parts.scavenge(self.path)
        return true
    end
    damaged(self, "the file of the result")
end

-- The value that says that all of the identity of a run beside its result is there.
local BEGUN <const> = "begun"

-- Is there something to go on with? Not without the result's file, or without the identity.
local function has_begun(self, beside)
    if beside then
        return self.values[BEGUN] ~= nil
    end
    return self.files[base_of(self.path)] ~= nil
end

-- Starts anew where nothing was finished. A run of the other kind stays.
local function begin_again(self, options)
    if self.values[BEGUN] or next(self.files) then
        check_identity(self, options.identity or {})
    end
    kept_folder.check(self.path)
    remove(self)
    self.was, self.values, self.files, self.sections, self.stores = {}, {}, {}, {}, {}
    begin(self, options)
end

local function resume(self, options)
    self.run = core.unfinished.resume(self.path)
    self.folder = self.run:folder()
    local begun = read(self)
    if begun then
        absorb(self)
    end
    if not begun and core.system.stat(self:file_path()) then
        damaged(self, "the journal")
    elseif not has_begun(self, options.beside) then
        return begin_again(self, options)
    elseif options.beside then
        return note(self, "resumed")
    end
    check_identity(self, options.identity)
    if settle_end(self) then
        self.complete = true
        return
    end
    note(self, "resumed")
end

local function new(path)
    return setmetatable({path = path, was = {}, files = {}, values = {}, sections = {}, stores = {},
        resumed = 0}, metatable)
end

-- Removes what an earlier run has left, whatever has happened to its journal.
local function discard(path)
    if core.unfinished.exists(path) then
        local self <close> = new(path)
        kept_folder.check(path)
        self.run = core.unfinished.take(path)
        self.folder = self.run:folder()
        pcall(read, self) -- for the files of stores
        remove(self)
    end
end

--- Begins what keeps nothing: a folder for the result `path` while it is made, {folder(),
-- remove()}.
-- Errors: io (there is an unfinished run, or something else).
function unfinished.scratch(path)
    if core.unfinished.state(path) == "damaged" then
        kept_folder.check(path)
    end
    return core.unfinished.begin(path, true)
end

-- ---------------------------------------------------------------------------------------------
-- Which run it is

--- The models of devices, for an identity: results on one model are equal to the bit.
function unfinished.models(devices)
    local names, seen = {}, {}
    for _, device in ipairs(devices) do
        local name = device.kind == "host" and "host" or device.name
        names[#names + 1] = not seen[name] and name or nil
        seen[name] = true
    end
    table.sort(names)
    return table.concat(names, ", ")
end

--- A file that is read, for an identity: path, size and time.
function unfinished.file_text(name)
    local facts = core.system.stat(name)
    return facts and ("%s, %d bytes, changed at %.6f"):format(core.system.real_path(name) or name,
        facts.bytes, facts.modified) or name
end

--- Begins the run that makes the result `path`, or goes on with it. Options: resume, discard (first
-- removes what is there), overwrite, identity = {{name, text}, ...}, beside (the result's file is
-- elsewhere, and the identity comes later). Returns nil in a dry run.
-- Fields: resumed (how often the run was), complete (the result has its name already; nothing but
-- remove() is left to do).
-- Errors: io (there is one, or none, or another process is at work on it; a damaged one), argument
-- (another run).
function unfinished.open(path, options)
    if core.dry.on() then
        return nil
    elseif options.resume and options.discard then
        fail("argument", nil, "discard", "the option resume = true goes on with what the option "
            .. "discard = true removes: give one of them")
    end
    if not options.resume then
        core.target.check(path, options.overwrite)
    end
    if options.discard then
        discard(path)
    end
    local self = new(path)
    local ok, problem = pcall(options.resume and resume or begin, self, options)
    if not ok then
        if self.run and not options.resume then
            pcall(remove, self) -- nothing is in it yet: it was begun here
        elseif self.run then
            self.run:close()
        end
        error(problem, 0)
    end
    return self
end

-- ---------------------------------------------------------------------------------------------
-- Files

--- Of a run beside its result: notes which run it is, or raises where an earlier process had
-- another one.
function methods:identify(identity)
    if self.values[BEGUN] then
        return check_identity(self, identity)
    end
    note_identity(self, identity)
    note(self, "value", BEGUN, true)
    self.run:sync()
end

--- The path of a file in the folder; without a name that of the result.
function methods:file_path(name)
    return self.folder .. "/" .. (name or base_of(self.path))
end

--- A new HDF5 file in the folder that becomes the result.
function methods:create(overwrite)
    return core.unfinished.keep_h5(self.path, self:file_path(), overwrite)
end

--- Where the bytes of a dataset are in its file. Errors: io (a later process could not go on).
function methods:place_of(dataset)
    local place, why
    if dataset then
        place, why = dataset:place()
    end
    return place or fail("io", "result.create", "unfinished", "only libhdf5 knows where the bytes "
        .. "of '%s' go%s: nobody could go on with it", self.path, why and (" (%s)"):format(why)
        or "")
end

--- Notes a file that is at rest, called `now`: all but `place`, {offset, bytes}, is kept.
function methods:note_file(name, now, place, sync)
    local length, sum = core.unfinished.save_head(now, self:file_path(name .. ".head"), place, sync)
    note(self, "file", name, place.offset, place.bytes, length, sum)
    if sync then
        self.run:sync()
    end
end

--- Notes the result's own file, from which on there is something to resume.
function methods:note_result(file, place, slices)
    if slices then
        note(self, "folder", base_of(slices))
    end
    self:note_file(base_of(self.path), file.part_path, place or {offset = 0, bytes = 0}, true)
end

--- Has an earlier process made the result's file?
function methods:has_file()
    return self.files[base_of(self.path)] ~= nil
end

--- Gives a file that is called `now` the head that it had. Returns false where that is lost.
function methods:restore(name, now)
    local ok = pcall(core.unfinished.restore_head, now, self:file_path(name .. ".head"),
        self.files[name])
    return ok
end

--- The result's file is again as it was before its first row. Returns {offset, bytes}, where the
-- volume is.
function methods:restore_result()
    if not self:restore(base_of(self.path), self:file_path()) then
        damaged(self, "the head of the result")
    end
    return self.files[base_of(self.path)]
end

--- The same, and opens it: an HDF5 file.
function methods:reopen(overwrite)
    self:restore_result()
    return core.unfinished.resume_h5(self.path, self:file_path(), overwrite, self.slices)
end

--- Forgets a file whose bytes are lost.
function methods:forget_file(name)
    self.files[name] = nil
end

--- The file of a section's store: the one that it has, or a new name in `scratch`.
function methods:store_path(number, scratch)
    if not self.stores[number] then
        local id = ("%08x"):format(math.random(0) & 0xffffffff)
        note(self, "store", number, ("%s/moonbeam-store-%s-%d"):format(
            core.system.real_path(scratch) or scratch, id, number))
    end
    return self.stores[number]
end

--- Removes the file of a store that nobody needs any more.
function methods:drop_store(number)
    local path = self.stores[number]
    if path and base_of(path):find(STORE) then
        os.remove(path)
    end
end

-- ---------------------------------------------------------------------------------------------
-- What is finished

--- Notes a measured value.
function methods:note_value(name, value, verdict)
    note(self, "value", name, value, verdict or {})
end

--- Notes that rows of a section are in its file. `tallies`: counts by name.
function methods:note_rows(number, first, last, hash, tallies)
    note(self, "rows", number, first, last, hash, tallies)
end

--- Notes that a section is complete. `tallies`: those of all its rows.
function methods:note_section(number, tallies)
    note(self, "section", number, tallies)
end

--- Forgets what is known of a section, which is made again.
function methods:again(number)
    if self.sections[number] then
        note(self, "again", number)
    end
end

--- The tallies of a complete section, or nil.
function methods:section_done(number)
    local section = self.sections[number]
    return section and section.done and section.tallies or nil
end

local function overlaps(list, first, last)
    for _, each in ipairs(list) do
        if first <= each.last and each.first <= last then
            return true
        end
    end
    return false
end

-- The ranges {first, last} that a sorted list leaves.
local function rest_of(list, first, last)
    local rest, from = {}, first
    for _, each in ipairs(list) do
        if each.first > from then
            rest[#rest + 1] = {from, each.first - 1}
        end
        from = each.last + 1
    end
    if from <= last then
        rest[#rest + 1] = {from, last}
    end
    return rest
end

--- The rows of a section, of first to last, that are still to be made: a list of {first, last}; and
-- the noted ones whose bytes are there, {first, last, tallies} each. `hash(first, last, of_file)`
-- gives the hash of what is there; of_file: if it was written at places of the file, and not of a
-- dataset in it. Of ranges that overlap, the later one counts.
function methods:pending(number, first, last, hash)
    local noted = self.sections[number] and self.sections[number].rows or {}
    local seen, good = {}, {}
    for i = #noted, 1, -1 do
        local each = noted[i]
        if not overlaps(seen, each.first, each.last) then
            seen[#seen + 1] = each
            if each.first >= first and each.last <= last
                and (hash(each.first, each.last) == each.hash
                or hash(each.first, each.last, true) == each.hash) then
                good[#good + 1] = each
            end
        end
    end
    table.sort(good, function(a, b) return a.first < b.first end)
    return rest_of(good, first, last), good
end

--- The number of rows of a section that were noted, by any rank.
function methods:count(number)
    local rows, count = {}, 0
    local function add(first, last)
        for row = first, last do
            count = count + (rows[row] and 0 or 1)
            rows[row] = true
        end
    end
    for _, each in ipairs(self.sections[number] and self.sections[number].rows or {}) do
        add(each.first, each.last)
    end
    each_of_others(self, function(record)
        if record[1] == "rows" and record[2] == number then
            add(record[3], record[4])
        end
    end)
    return count
end

-- Has anything been finished?
local function has_any(self)
    return next(self.sections) ~= nil or self.resumed > 0 or others_have(self)
end

-- What is noted in a folder, for a rank that has not begun the run itself.
local function look(folder)
    local self = new()
    self.folder, self.run = folder, core.unfinished.join(folder, "journal", false)
    local ok, problem = pcall(read, self)
    self.run:close()
    if not ok then
        error(problem, 0)
    end
    return self
end

--- The number of rows of a section that were noted in a folder, by any rank.
function unfinished.count(folder, number)
    return look(folder):count(number)
end

--- Is anything noted in a folder that another process can go on with?
function unfinished.holds(folder)
    return has_any(look(folder))
end

-- ---------------------------------------------------------------------------------------------
-- Ending

--- Notes which file is about to get the result's name. A later process knows it by that.
function methods:note_end()
    local facts = assert(core.system.stat(self:file_path()))
    note(self, "end", facts.device, facts.inode)
    self.run:sync()
end

--- Removes the folder: the result has its name.
function methods:remove()
    remove(self)
end

--- Is there anything that another process can go on with? This one notes nothing afterwards: its
-- journal is closed, so that there is room for the folder where few files may be open.
function methods:keeps()
    if self.run and not self.removed then
        self.run:end_journal()
    end
    return not self.removed and not self.void and has_any(self)
end

--- Ends this process's work. What nothing was finished of goes. Any number of times.
function methods:close()
    local run = self.run
    if not run or self.removed then
        return
    elseif not self:keeps() then
        core.cluster.failing() -- other ranks have files there
        remove(self)
    else
        run:close()
    end
    self.run = nil
end
metatable.__close = methods.close

return unfinished
