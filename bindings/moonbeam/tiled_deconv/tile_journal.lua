-- What an interrupted deconvolution by tiles leaves, so that another process goes on with it:
-- "<result>.unfinished" (moonbeam.result.unfinished). The result's own file is elsewhere and is
-- written in the end. The folder has what it is made of: estimates, ratios or parts, files of plain
-- f32 elements. The journal has a hash for each of their tiles, and nothing is trusted without it.
--
-- A result may have several volumes (channels, times), one after the other. Names of files and
-- values begin with the number of the volume; so do the numbers of sections. The tiles of all
-- volumes are those of the first one: a result depends on how it is cut.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local disk_space = require "moonbeam.pipeline.disk_space"
local fail = require "moonbeam.internal.fail"
local records = require "moonbeam.result.records"
local tables = require "moonbeam.internal.tables"
local tile_ranks = require "moonbeam.tiled_deconv.tile_ranks"
local unfinished = require "moonbeam.result.unfinished"
local volumes = require "moonbeam.volumes"

local tile_journal = {}

--- Estimates in memory are written to files after so many seconds, and after the last iteration.
-- What that takes is at most a tenth of the time.
tile_journal.SECONDS = 60

tile_journal.options = declared.options(
    {"inputs", "table", "the names of the files that are read"},
    {"also", "table", "what else must be the same in a run that goes on: {{name, text}, ...}"},
    {"resume", "boolean", "go on with an interrupted run", default = false},
    {"discard", "boolean", "first remove what an interrupted run has left", default = false},
    {"overwrite", "boolean", "replace an existing result", default = false},
    {"plan", "boolean", "for plans alone: nothing is written", default = false},
    {"ranks", "count", "with plan: how many ranks share the tiles", min = 1,
        usual = "those that a launcher has started"},
    {"tell", "callable", "a function (text) that gets what is kept"})

local OPEN <const> = "tiled_deconv.journal"

-- Sections of a volume: less than this number.
local SECTIONS <const> = 1 << 32

-- Raises an error where nothing can be noted any more.
local function check_open(op, self)
    if self.closed then
        fail("argument", op, "self", "the journal is closed; it can be used only before that")
    end
end

local methods = declared.class("journal", {may_replace = "", was = "name: string", counts = "",
    resumed = "", folder = "", finishing = {"", check_open}, finish = {"", check_open},
    close = "problem: any?"}, {})
local states, parts = {}, nil
local metatable = {__name = "moonbeam.tile_journal", __index = methods}
states.__index = states

-- ---- which run it is ----

-- Options that decide the values, or what is noted.
local DECISIVE <const> = {"mode", "iterations", "acceleration", "boundary", "normalize", "eps",
    "floor", "min", "tolerance", "metrics", "total_variation", "spacing", "margin", "tile",
    "background"}

-- The hash of the elements of an array, which go through a file of this rank in the folder.
local function hash_of_array(self, array)
    local name = self.kept:file_path("psf-" .. tile_ranks.rank)
    local volume <close> = volumes.planned(array.shape, array.dtype)
    volume.file, volume.path = core.rawfile.keep(name), name
    local first = {}
    for i in ipairs(array.shape) do
        first[i] = 0
    end
    volume:write(first, array)
    local hash = tile_journal.hash(volume, first, array.shape)
    os.remove(name)
    return ("%s %s %016x"):format(table.concat(array.shape, " x "), array.dtype, hash)
end

-- An input: a file, or a folder or a series of files with how many there are, their bytes and the
-- time of the last change.
local function input_text(name)
    local facts = core.system.stat(name)
    if facts and facts.kind == "file" then
        return unfinished.file_text(name)
    end
    local folder, base = name:match "^(.*)/([^/]*)$"
    folder, base = facts and name or folder or ".", not facts and (base or name) or "*"
    local pattern = "^" .. base:gsub("%W", "%%%0"):gsub("%%%*", ".*"):gsub("%%%?", ".") .. "$"
    local count, bytes, latest = 0, 0, 0
    for _, entry in ipairs(core.system.folder(folder) or {}) do
        local each = entry:find(pattern) and core.system.stat(folder .. "/" .. entry)
        if each then
            count, bytes = count + 1, bytes + (each.bytes or 0)
            latest = math.max(latest, each.modified or 0)
        end
    end
    return ("%s, %d entries, %d bytes, changed at %.6f"):format(name, count, bytes, latest)
end

-- What identifies the run of a job: a list of {name, text}.
local function identity_of(self, job)
    local list, sink = {{"moonbeam", core.version}, {"work", job.what}}, job.sink
    for i, name in ipairs(self.options.inputs or {}) do
        list[#list + 1] = {("input %d"):format(i), input_text(name)}
    end
    for _, each in ipairs(self.options.also or {}) do
        list[#list + 1] = each
    end
    list[#list + 1] = {"image", table.concat(job.source.shape, " x ") .. " " .. job.source.dtype}
    list[#list + 1] = {"psf", hash_of_array(self, job.psf)}
    list[#list + 1] = {"center", type(job.options.center) == "table"
        and table.concat(job.options.center, ", ") or tostring(job.options.center)}
    for _, name in ipairs(DECISIVE) do
        local value = job.options[name]
        list[#list + 1] = {name, type(value) == "table" and table.concat(value, " x ")
            or records.text {value == nil and "usual" or value}:gsub('"', "")}
    end
    list[#list + 1] = {"dtype", type(sink) == "table" and sink.dtype or "f32"}
    list[#list + 1] = {"devices", unfinished.models(job.devices)}
    return list
end

-- ---- beginning and ending ----

-- Raises an error if inputs are no names, or what else identifies the run no pairs of texts.
local function check_options(options)
    for i, name in ipairs(options.inputs or {}) do
        if type(name) ~= "string" then
            fail("argument", OPEN, "inputs", "inputs are the names of files; name %d is %s", i,
                tostring(name))
        end
    end
    for i, each in ipairs(options.also or {}) do
        if type(each) ~= "table" or type(each[1]) ~= "string" or type(each[2]) ~= "string" then
            fail("argument", OPEN, "also", "also has lists {name, text}; element %d is %s", i,
                tostring(each))
        end
    end
    if options.resume and options.discard then
        fail("argument", OPEN, "discard", "the option resume = true goes on with what the option "
            .. "discard = true removes: give one of them")
    end
end

-- What keeps the run of a process, or of the first rank.
local function open_kept(self)
    local path, options = self.path, self.options
    self.kept = unfinished.open(path, {resume = options.resume, discard = options.discard,
        overwrite = options.overwrite, beside = true})
    local ok, problem = pcall(function()
        if not self:may_replace() then
            core.target.check(path, false)
        end
    end)
    if not ok then
        self.kept:close()
        error(problem, 0)
    end
end

-- The same of all ranks.
local function open_on_ranks(self)
    tile_ranks.agree(self.path, "the name of the result")
    local begun = tile_ranks.once(function()
        open_kept(self)
        local kept = self.kept
        return {folder = kept.folder, resumed = kept.resumed, values = kept.values,
            was = kept.was}
    end)
    self.kept = self.kept or tile_ranks.notes(begun)
    tile_ranks.wait() -- rank 0 removes the folder where it fails next
end

--- Begins the work on the result `path`, or goes on with it. Ranks begin it together.
-- Errors: io (there is one, or none, or another process is at work on it; damaged).
function tile_journal.open(path, options)
    check_options(options)
    local self = setmetatable({path = path, options = options, count = 0}, metatable)
    if options.plan or core.dry.on() then
        return self
    elseif tile_ranks.shared() then
        open_on_ranks(self)
    else
        open_kept(self)
    end
    return self
end

--- May the result replace a file of its name?
function methods:may_replace()
    return self.options.overwrite or self.kept ~= nil and self.kept.values.replaces ~= nil
end

-- Raises where ranks work on other runs. Rank 0 alone writes the result; clocks may differ.
local function agree_on(identity)
    for _, each in ipairs(identity) do
        local name, text = each[1], each[2]:gsub(", changed at [%d.]+", "")
        if name ~= "dtype" then
            tile_ranks.agree(text, name == "devices" and "the model of the devices" or name)
        end
    end
end

--- Compares the run with that of the earlier process, or notes which run it is.
-- Errors: argument (it is another one).
function tile_journal.identify(self, job)
    if self.kept and not self.known and not core.dry.on() then
        self.known = true
        local identity = identity_of(self, job)
        agree_on(identity)
        if not tile_ranks.leads() then
            return
        end
        self.kept:identify(identity)
        self.is_same = true
        if self.options.overwrite and not self.kept.values.replaces then
            self.kept:note_value("replaces", true)
        end
    end
end

--- An option of the earlier process as text, or nil.
function methods:was(name)
    return self.kept and self.kept.was[name]
end

--- The numbers of tiles along the axes that are noted, or nil.
function methods:counts()
    return self.kept and self.kept.values.counts and self.kept.values.counts.value
end

--- How often the run was resumed, or nil.
function methods:resumed()
    return self.kept and self.kept.resumed > 0 and self.kept.resumed or nil
end

--- The folder of what is kept, or nil.
function methods:folder()
    return self.kept and self.kept.folder
end

--- The result gets its name next: a later process may replace it.
function methods:finishing()
    if self.kept and not self.kept.values.replaces then
        self.kept:note_value("replaces", true)
    end
end

--- The result has its name: removes what was kept.
function methods:finish()
    if self.kept then
        self.kept:remove()
    end
end

--- Ends this process's work: the folder stays if another process can go on with it. `problem`: what
-- ended the work, or nil. With values that were refused it would end again.
function methods:close(problem)
    local kept = self.kept
    self.closed = true
    if not kept then
        return
    elseif self.options.tell and core.cluster.speaks() and kept.run and not kept.removed
        and kept:keeps() then
        core.cluster.await_others()
        local again = self.is_same and type(problem) == "table" and problem.code == "argument"
        self.options.tell(("'%s' keeps %s: %s the option discard = true"):format(kept.folder,
            self.progress or "what was there", again and "with these values it ends again; remove "
            .. "it with" or "go on with the option resume = true, or start anew with"))
    end
    kept:close()
end
metatable.__close = methods.close

-- ---- volumes ----

--- The state of the next volume; `planning`: the same one is asked for again.
function tile_journal.volume(self, planning)
    self.count = self.count + (planning and 0 or 1)
    return setmetatable({journal = self, kept = self.kept,
        number = self.count + (planning and 1 or 0)}, states)
end

-- Is there anything to be read and noted?
local function is_real(self)
    return self.kept and not core.dry.on()
end

local function name_of(self, name)
    return ("volume%d.%s"):format(self.number, name)
end

-- A volume's file in the folder, as it is, or new.
local function open_file(self, volume, name)
    volume.path = self.kept:file_path(name_of(self, name))
    volume.file = core.rawfile.keep(volume.path)
    local bytes = volumes.bytes(volume)
    if volume.file:bytes() ~= bytes then
        local ok, problem = pcall(volume.file.resize, volume.file, bytes)
        if not ok then
            volume.file:close()
            error(problem, 0)
        end
    end
    return volume
end

local function keep(self, volume, name)
    return tile_ranks.first(function()
        return open_file(self, volume, name)
    end)
end

--- A volume in a file of the folder, closed by the caller.
function states:file(name, shape)
    local volume = volumes.planned(shape, "f32")
    return is_real(self) and keep(self, volume, name) or volume
end

--- The same for parts that overlap: one after the other, each with its own elements.
function states:parts(name, tiles)
    local volume = setmetatable({shape = {0}, dtype = "f32", place = "file", offsets = {}}, parts)
    for _, tile in ipairs(tiles) do
        volume.offsets[table.concat(tile.first, " ")] = 4 * volume.shape[1]
        volume.shape[1] = volume.shape[1] + tables.product(tile.extents)
    end
    return is_real(self) and keep(self, volume, name) or volume
end

--- Removes a file that is needed no more.
function states:drop(name)
    if is_real(self) and tile_ranks.leads() then
        os.remove(self.kept:file_path(name_of(self, name)))
    end
end

--- Raises an error if the disk lacks room for files of so many bytes that are not there yet.
function states:check_disk(bytes)
    if is_real(self) and self.kept.resumed == 0 and self.number == 1 then
        disk_space.check({{folder = self.kept.folder, bytes = bytes,
            what = ("what is kept in '%s'"):format(self.kept.folder)}}, "tiled_deconv")
    end
end

-- Where elements of parts are.
local function place_in(self, first, extents)
    return self.offsets[table.concat(first, " ")], volumes.dense_steps(extents, "f32")
end

parts = volumes.file_class {
    fill = function(self, block, first)
        if not block.device.dry then
            self.file:read(block, place_in(self, first, block.shape))
        end
    end,
    carries = function()
        return true
    end,
    carry = function(self, carrier, array, first)
        if not array.device.dry then
            carrier:carry(self.file, array, place_in(self, first, array.shape))
        end
    end,
}

--- The hash of a block of a volume, as its file has it; nil where it does not have all of it.
function tile_journal.hash(volume, first, extents)
    local rank, offset, steps = #extents, 0, volume.steps
    if volume.offsets then
        offset, steps = place_in(volume, first, extents)
    else
        for i, at in ipairs(first) do
            offset = offset + at * steps[i]
        end
    end
    local line = steps[rank] * (rank > 1 and extents[rank] or 1)
    local pitch = rank > 1 and steps[rank - 1] or line
    local lines = extents[rank > 1 and rank - 1 or 1]
    return core.unfinished.hash(volume.path, {base = 0, offset = offset, line_bytes = line,
        line_pitch = pitch, lines = lines, frames = rank > 2 and extents[1] or 1,
        frame_pitch = rank > 2 and steps[1] or pitch * lines})
end

-- ---- what is finished ----

-- The number of a section in the journal.
local function section_of(self, section)
    return (self.number - 1) * SECTIONS + section
end

-- The hash of a tile in all these volumes, or nil.
local function hash_of(tile, files)
    local sum = 0
    for _, volume in ipairs(files) do
        local hash = tile_journal.hash(volume, tile.first, tile.extents)
        sum = hash and sum and sum + hash
    end
    return sum or nil
end

--- Has an earlier process left some of the tiles?
function states:goes_on()
    return self.kept ~= nil and self.kept.resumed > 0
end

--- Do other ranks do some of the tiles?
function states:is_shared()
    return (self.journal.options.ranks or tile_ranks.size) > 1
end

-- The numbers of the tiles of a section that are not in these volumes, and what was noted with the
-- others, by their numbers.
local function pending(self, section, tiles, files)
    local rest, good = self.kept:pending(section_of(self, section), 1, #tiles, function(number)
        return hash_of(tiles[number], files)
    end)
    local left, noted = {}, {}
    for _, range in ipairs(rest) do
        for number = range[1], range[2] do
            left[#left + 1] = number
        end
    end
    for _, each in ipairs(good) do
        noted[each.first] = each.tallies or {}
    end
    return left, noted
end

--- The tiles of a section that are not in these volumes, of several ranks those that this one
-- takes (tile_ranks.deal); what was noted with the others, by their numbers; and how many are left
-- in all.
function states:pending(section, tiles, files)
    if not is_real(self) then
        return tiles, {}, #tiles
    end
    local left = {}
    local numbers, noted = tile_ranks.once(function()
        return pending(self, section, tiles, files)
    end)
    for i, number in ipairs(numbers) do
        left[i] = tiles[number]
    end
    return tile_ranks.deal(left), noted, #numbers
end

--- Notes a tile of a section. Without a hash it is read from these volumes.
function states:note(section, tile, hash, numbers, files)
    if is_real(self) then
        self.kept:note_rows(section_of(self, section), tile.number, tile.number,
            hash or hash_of(tile, files), numbers or {})
    end
end

-- The sections that have this many tiles or more, and what was noted with the last tile.
local function noted(self, count)
    local list = {}
    for number, section in pairs(self.kept.sections) do
        if (number // SECTIONS) + 1 == self.number and #section.rows >= count then
            list[#list + 1] = {number % SECTIONS, section.rows[#section.rows].tallies}
        end
    end
    table.sort(list, function(a, b) return a[1] > b[1] end)
    return list
end

--- The sections that have this many tiles or more, and what was noted with the last tile:
-- {{section, numbers}, ...}, the last section first.
function states:noted(count)
    if not is_real(self) then
        return {}
    end
    return tile_ranks.once(function()
        return noted(self, count)
    end)
end

--- A value of this volume that is noted, or nil.
function states:value(name)
    local found = is_real(self) and self.kept.values[name_of(self, name)]
    return found and found.value
end

function states:note_value(name, value)
    if is_real(self) then
        self.kept:note_value(name_of(self, name), value)
    end
end

--- Notes how the run is cut, from its first tile on.
function states:note_counts(counts)
    if is_real(self) and not self.journal:counts() then
        self.kept:note_value("counts", table.move(counts, 1, #counts, 1, {}))
    end
end

--- Says how far the work is, for what is told in the end.
function states:reached(form, ...)
    if is_real(self) then -- of what other ranks have done only they know
        self.journal.progress = (tile_ranks.shared() and "at least " or "") .. form:format(...)
    end
end

--- Tells a process that goes on what there is.
function states:has(form, ...)
    if is_real(self) and tile_ranks.leads() and self.journal.options.tell
        and self.journal:resumed() then
        self.journal.options.tell(("'%s' has %s already"):format(self.kept.folder,
            form:format(...)))
    end
end

--- Raises an error if this is no journal.
function tile_journal.check(given)
    if getmetatable(given) ~= metatable then
        fail("argument", "tiled_deconv", "journal",
            "journal is what tiled_deconv.journal returns, not a %s", type(given))
    end
end

return tile_journal
