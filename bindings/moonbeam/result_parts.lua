-- The volume of a result spread over files: a folder beside the result's own file, which shows them as one dataset.
--
-- One file takes bytes from one writer at a time, whatever the number of threads; several files take as many times more. Each
-- file has some slices, is complete when it has its name (as every created file is, runtime/io/h5result.c), and opens by
-- itself. The disk has taken their data when a carrier has ended them, and is made to take the rest of all of them at once, in
-- the end. While the result is being written the folder has a temporary name; it gets its own before the result's file does, so
-- that a result that exists finds its parts. An older folder is put aside until then.

local core = require "moonbeam.core"

local parts = {}
local methods = {}
local metatable = { __name = "moonbeam.result_parts", __index = methods }

local DATASET = "/data"

-- A file that is written takes three descriptors; some are left for the rest of the program.
local DESCRIPTORS, OTHERS = 3, 64

local function fail(message, arg)
    core.error.raise("io", message, { op = "result.create", arg = arg })
end

-- The files of a folder: ours, or of a part of ours that was never completed.
local OURS = "^slices%-%d+%-%d+%.h5"

-- Removes a folder of parts; what is not there is no failure.
local function remove_folder(folder)
    for _, name in ipairs(core.system.folder(folder) or {}) do
        if name:match(OURS) then
            os.remove(folder .. "/" .. name)
        end
    end
    os.remove(folder)
end

-- Raises where the folder is none, or holds anything but parts: it is to be replaced, and what else is in it would be lost.
local function check_replaceable(folder, facts)
    local foreign = facts.kind ~= "folder" and "it is no folder" or nil
    for _, name in ipairs(foreign and {} or core.system.folder(folder) or {}) do
        if not name:match(OURS) then
            foreign = ("'%s' in it is no part of one"):format(name)
        end
    end
    if foreign then
        fail(("'%s' is not a volume's and is not replaced: %s; choose another name, or move it away"):format(folder, foreign),
            "overwrite")
    end
end

--- Prepares the parts of `path`, a volume {nz, ny, nx} in files of `count` slices. Nothing is written yet but the folder.
function parts.create(path, options)
    local shape, count = options.shape, options.slices_per_file
    local folder = path:gsub("%.[^./]*$", "") .. "-slices"
    local facts = core.system.stat(folder)
    if facts and options.overwrite then
        check_replaceable(folder, facts)
    elseif facts then
        core.error.raise("io", ("'%s' exists already: choose another name, or allow overwriting (overwrite = true)"):format(folder),
            { op = "result.create", arg = "overwrite" })
    end
    local self = setmetatable({ folder = folder, written_to = ("%s.part-%d"):format(folder, core.system.pid()), list = {},
        open = {}, opened = 0, most = math.max(1, ((core.system.file_limit() or 1024) - OTHERS) // DESCRIPTORS),
        shape = shape, dtype = options.dtype or "f32", count = count, attributes = options.attributes }, metatable)
    local digits = math.max(4, #tostring(shape[1]))
    for first = 1, shape[1], count do
        local last = math.min(first + count - 1, shape[1])
        self.list[#self.list + 1] = { first = first, last = last, missing = last - first + 1,
            name = ("slices-%0" .. digits .. "d-%0" .. digits .. "d.h5"):format(first, last) }
    end
    remove_folder(self.written_to) -- left by a dead process that had our number
    local made, problem = core.system.mkdir(self.written_to)
    if not made then
        fail(tostring(problem))
    end
    return self
end

--- What shows them as one: the sources of a virtual dataset.
function methods:sources()
    local base = self.folder:match("[^/]*$")
    local list = {}
    for i, part in ipairs(self.list) do
        list[i] = { file = base .. "/" .. part.name, path = DATASET, first = part.first, last = part.last }
    end
    return list
end

local function open_part(self, part)
    part.file = core.h5.create(self.written_to .. "/" .. part.name)
    part.dataset = part.file:create_dataset(DATASET, { shape = { part.last - part.first + 1, self.shape[2], self.shape[3] },
        dtype = self.dtype, sparse = true, attributes = self.attributes })
    part.file:set_attribute("/", "first_slice", part.first)
    self.open[part] = true
    self.opened = self.opened + 1
end

local function finish_part(part)
    part.file:finish(nil, false)
    part.file:close()
    part.file, part.dataset = nil, nil
    part.finished = true
end

-- Completes the files that have all their slices. Not those whose slices are still under way.
local function settle(self, carrier)
    for part in pairs(self.open) do
        if part.missing == 0 and not (carrier and carrier:pending(part.dataset)) then
            finish_part(part)
            self.open[part] = nil
            self.opened = self.opened - 1
        end
    end
end

--- Makes ready for the writing of slices z_first ... z_last: creates their files. What takes its time by itself, and could be
-- done while slices before them are being written; as far as the process may have that many files open.
function methods:prepare(z_first, z_last)
    for i = (z_first - 1) // self.count + 1, (z_last - 1) // self.count + 1 do
        local part = self.list[i]
        if not part.file and not part.finished and self.opened < self.most then
            open_part(self, part)
        end
    end
end

--- Writes slices z_first ... z_last of the volume, which `array` (z, y, x) holds; by a carrier if there is one. Then completes
-- the files that have all of theirs by now.
function methods:write(array, z_first, z_last, carrier)
    for i = (z_first - 1) // self.count + 1, (z_last - 1) // self.count + 1 do
        local part = self.list[i]
        local from, to = math.max(z_first, part.first), math.min(z_last, part.last)
        local own <close> = array:view({ from - z_first + 1, to - z_first + 1 })
        local rows = { from - part.first + 1, to - part.first + 1 }
        if part.finished then
            core.error.raise("argument", ("slices %d ... %d are complete in '%s' already"):format(part.first, part.last, part.name),
                { op = "result:write", arg = "z_first" })
        elseif not part.file then
            if carrier and self.opened >= self.most then -- those that are under way have to be completed first
                carrier:finish()
                settle(self, carrier)
            end
            open_part(self, part)
        end
        part.written = part.written or {}
        for z = from, to do
            if not part.written[z] then
                part.written[z] = true
                part.missing = part.missing - 1
            end
        end
        if not carrier then
            part.dataset:write(own, rows)
        elseif part.missing == 0 then
            carrier:carry_last(part.dataset, own, rows)
        else
            carrier:carry(part.dataset, own, rows)
        end
    end
    settle(self, carrier)
end

--- Completes all files and gives the folder its name. `undo` takes that back, `close` makes it final.
function methods:finish()
    settle(self)
    core.system.sync_files(self.written_to)
    if core.system.stat(self.folder) then
        self.aside = self.written_to .. "-before"
        remove_folder(self.aside)
        assert(os.rename(self.folder, self.aside))
    end
    local ok, problem = os.rename(self.written_to, self.folder)
    if not ok then
        self:undo()
        fail(("cannot give '%s' its name: %s"):format(self.folder, problem))
    end
    self.named = true
    core.system.sync_folder(self.folder .. "/..")
end

function methods:undo()
    if self.named then
        remove_folder(self.folder)
        self.named = false
    end
    if self.aside then
        os.rename(self.aside, self.folder)
        self.aside = nil
    end
end

--- Ends: without finish, or after undo, nothing is left. Any number of times.
function methods:close()
    if self.aside then
        remove_folder(self.aside)
        self.aside = nil
    end
    for _, part in ipairs(self.list) do
        if part.file then
            part.file:close()
            part.file, part.dataset = nil, nil
        end
    end
    if not self.named then
        remove_folder(self.written_to)
    end
end

return parts
