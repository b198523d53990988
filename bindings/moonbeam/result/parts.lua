-- The volume of a result spread over files: a folder beside the result's own file, which shows them
-- as one dataset.
--
-- One file takes bytes from one writer at a time, whatever the number of threads; several files
-- take as many times more. Each file has some slices, is complete when it has its name
-- (runtime/files/target.h), and opens by itself. The disk has taken their data when a carrier has
-- ended them, and is made to take the rest of all of them at once, in the end. The folder has a
-- name of its own in every run, "<result without .h5>-slices-<8 digits>", to which the result's
-- file refers: so the rename of that file replaces the whole result, and no kill and no second
-- process can mix two. The folder of a replaced result goes after that.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local parts = {}
local methods = {}
local metatable = { __name = "moonbeam.result.parts", __index = methods }

local DATASET = "/data"

-- A file that is written takes three descriptors; some are left for the rest of the program.
local DESCRIPTORS, OTHERS = 3, 64

-- Root attribute of a result's file: the name of its folder.
local FOLDER = "slices_folder"

-- The name of the folder that the result `path` has, or nil: only a name that a result of this
-- name gets. `file`: where its contents are, if that is elsewhere.
local function folder_of(path, file)
    local opened = core.system.stat(file or path)
        and core.h5.open(file or path, {replaceable = true})
    if not opened then
        return nil
    end
    local contents <close> = opened
    local ok, name = pcall(contents.attribute, contents, "/", FOLDER)
    local stem = path:match("[^/]*$"):gsub("%.[^.]*$", "") .. "-slices-"
    if ok and type(name) == "string" and name:sub(1, #stem) == stem
        and name:match("^%x+$", #stem + 1) then
        return name
    end
    return nil
end

-- Is it the same file, with the same contents?
local function same_file(a, b)
    for _, name in ipairs {"device", "inode", "bytes", "modified"} do
        if not (a and b) or a[name] ~= b[name] then
            return false
        end
    end
    return true
end

-- Removes a folder of the result `path` which that does not refer to (any more).
local function remove_folder(path, name)
    if name and name ~= folder_of(path) then
        core.target.remove_folder((path:match("^.*/") or "") .. name)
    end
end

--- Removes what killed runs have left of the result `path`.
function parts.scavenge(path)
    core.target.scavenge(path, folder_of(path) or "")
    for swap in core.target.dead_swap, path do
        remove_folder(path, folder_of(path, swap))
        if not os.remove(swap) then
            break
        end
    end
end

--- Removes the folder of the result that `path` has replaced, which is called `held` now.
function parts.replaced(path, held)
    remove_folder(path, folder_of(path, held))
end

--- Gives `file`, the complete result `path`, its name, and removes the folder of the result which
-- that replaces.
function parts.publish(file, path)
    local looked_at = core.system.stat(path)
    local before = folder_of(path)
    local held = file:finish("/entry/end_time", {hold = true})
    -- What was replaced, to the letter; on some file systems what was there a moment before.
    if held and not same_file(looked_at, core.system.stat(held)) then
        before = folder_of(path, held)
    end
    remove_folder(path, before)
    file:close()
end

--- Prepares the parts of a volume {nz, ny, nx} in files of `count` slices beside `file`, which is
-- being written. Nothing is written yet but the folder.
function parts.create(file, options)
    local self = parts.new(file:make_folder(), options)
    file:set_attribute("/", FOLDER, self.folder:match("[^/]*$"))
    return self
end

-- The parts in a folder. `options.unfinished`: they stay there when the process ends.
function parts.new(folder, options)
    local shape, count = options.shape, options.slices_per_file
    local self = setmetatable({ folder = folder, list = {}, open = {}, opened = 0,
        kept = options.unfinished,
        most = math.max(1, ((core.system.file_limit() or 1024) - OTHERS) // DESCRIPTORS),
        shape = shape, dtype = options.dtype or "f32", count = count,
        attributes = options.attributes }, metatable)
    local digits = math.max(4, #tostring(shape[1]))
    for first = 1, shape[1], count do
        local last = math.min(first + count - 1, shape[1])
        -- coming: slices that carriers have; carriers: which these are.
        self.list[#self.list + 1] = { first = first, last = last, missing = last - first + 1,
            coming = {}, carriers = setmetatable({}, { __mode = "k" }),
            name = ("slices-%0" .. digits .. "d-%0" .. digits .. "d.h5"):format(first, last) }
        local part = self.list[#self.list]
        part.path = self.folder .. "/" .. part.name
        part.now = part.path .. ".unfinished"
    end
    return self
end

--- The parts that an earlier process has begun: each is as it was before its first slice, but for
-- the bytes of slices. What has lost its head is lost.
function parts.resume(options)
    local kept = options.unfinished
    local self = parts.new(kept:file_path(kept.slices), options)
    for _, part in ipairs(self.list) do
        if not kept.files[part.name] then
            os.remove(part.now)
            os.remove(part.path)
        else
            if core.system.stat(part.path) then
                os.rename(part.path, part.now)
            end
            if not kept:restore(part.name, part.now) then
                os.remove(part.now)
                kept:forget_file(part.name)
            end
        end
    end
    return self
end

--- Slices z_first ... z_last are there already.
function methods:have(z_first, z_last)
    for i = (z_first - 1) // self.count + 1, (z_last - 1) // self.count + 1 do
        local part = self.list[i]
        part.written = part.written or {}
        for z = math.max(z_first, part.first), math.min(z_last, part.last) do
            part.missing = part.missing - (part.written[z] and 0 or 1)
            part.written[z] = true
        end
    end
end

--- Where slices are: a list of {path, offset, base, first, last}; nil where a part is missing.
function methods:places(z_first, z_last)
    local list = {}
    for i = (z_first - 1) // self.count + 1, (z_last - 1) // self.count + 1 do
        local part = self.list[i]
        local file = self.kept.files[part.name]
        if not file then
            return nil
        end
        list[#list + 1] = { path = part.now, base = file.offset, start = part.first,
            first = math.max(z_first, part.first), last = math.min(z_last, part.last) }
    end
    return list
end

--- What shows them as one: the sources of a virtual dataset.
function methods:sources()
    local base = self.folder:match("[^/]*$")
    local list = {}
    for i, part in ipairs(self.list) do
        list[i] = { file = base .. "/" .. part.name, path = DATASET, first = part.first,
            last = part.last }
    end
    return list
end

-- The file of a part that an earlier process has begun.
local function reopen_part(part)
    part.file = core.unfinished.resume_h5(part.path, part.now, false)
    part.dataset = part.file:dataset(DATASET)
end

local function create_part(self, part)
    part.file = self.kept and core.unfinished.keep_h5(part.path, part.now, false)
        or core.h5.create(part.path)
    part.dataset = part.file:create_dataset(DATASET,
        { shape = { part.last - part.first + 1, self.shape[2], self.shape[3] },
        dtype = self.dtype, sparse = true, early = true, attributes = self.attributes })
    part.file:set_attribute("/", "first_slice", part.first)
end

local function open_part(self, part)
    local begun = self.kept and self.kept.files[part.name]
    if begun then
        reopen_part(part)
    else
        create_part(self, part)
    end
    part.file:rest()
    if self.kept and not begun then
        self.kept:note_file(part.name, part.now, self.kept:place_of(part.dataset))
    end
    self.open[part] = true
    self.opened = self.opened + 1
end

local function finish_part(part)
    part.file:finish(nil, {sync = false})
    part.file:close()
    part.file, part.dataset = nil, nil
    part.finished = true
end

-- Have all slices of a part arrived? It may have got them from carriers of several devices.
-- Somebody tells which have (`told`), or no carrier has any left.
local function is_there(part, told)
    if part.missing > 0 then
        return false
    elseif told then
        return next(part.coming) == nil
    end
    for carrier in pairs(part.carriers) do
        local open, pending = pcall(carrier.pending, carrier, part.dataset)
        if open and pending then
            return false
        end
    end
    return true
end

-- Completes the files whose slices have all arrived.
local function settle(self, told)
    for part in pairs(self.open) do
        if is_there(part, told) then
            finish_part(part)
            self.open[part] = nil
            self.opened = self.opened - 1
        end
    end
end

--- From now on `arrived` tells which slices are there. Then files are completed by that.
function methods:await()
    self.told = true
end

--- All bytes of slices z_first ... z_last are there.
function methods:arrived(z_first, z_last)
    for i = (z_first - 1) // self.count + 1, (z_last - 1) // self.count + 1 do
        local part = self.list[i]
        for z = math.max(z_first, part.first), math.min(z_last, part.last) do
            part.coming[z] = nil
        end
    end
    settle(self, true)
end

--- Makes ready for the writing of slices z_first ... z_last: creates their files. What takes its
-- time by itself, and could be done while slices before them are being written; as far as the
-- process may have that many files open.
function methods:prepare(z_first, z_last)
    for i = (z_first - 1) // self.count + 1, (z_last - 1) // self.count + 1 do
        local part = self.list[i]
        if not part.file and not part.finished and self.opened < self.most then
            open_part(self, part)
        end
    end
end

-- Waits for all slices that carriers have for the open files, and completes these.
local function make_room(self)
    for part in pairs(self.open) do
        for carrier in pairs(part.carriers) do
            pcall(carrier.finish, carrier) -- one that has failed keeps its files open
        end
    end
    settle(self, false)
end

--- Writes slices z_first ... z_last of the volume, which `array` (z, y, x) holds; by a carrier if
-- there is one. Then completes the files that have all of theirs by now.
function methods:write(array, z_first, z_last, carrier)
    for i = (z_first - 1) // self.count + 1, (z_last - 1) // self.count + 1 do
        local part = self.list[i]
        local from, to = math.max(z_first, part.first), math.min(z_last, part.last)
        local own <close> = array:view({ from - z_first + 1, to - z_first + 1 })
        local rows = { from - part.first + 1, to - part.first + 1 }
        if part.finished then
            fail("argument", "result:write", "z_first",
                "slices %d to %d are already complete in '%s'", part.first, part.last, part.name)
        elseif not part.file then
            -- those that are under way have to be completed first
            if carrier and self.opened >= self.most then
                make_room(self)
            end
            open_part(self, part)
        end
        part.written = part.written or {}
        for z = from, to do
            if not part.written[z] then
                part.written[z] = true
                part.missing = part.missing - 1
            end
            part.coming[z] = carrier and true
        end
        if carrier then
            part.carriers[carrier] = true
        end
        if not carrier then
            part.dataset:write(own, rows)
        elseif part.missing == 0 then
            carrier:carry_last(part.dataset, own, rows)
        else
            carrier:carry(part.dataset, own, rows)
        end
    end
    settle(self, self.told)
end

--- The files that are being written, as result:skeleton.
function methods:skeleton()
    local list = {}
    for _, part in ipairs(self.list) do
        local place = part.file and part.dataset:place()
        list[#list + 1] = place and { path = part.file.part_path, offset = place.offset,
            bytes = place.bytes, first = part.first, last = part.last } or nil
    end
    return list
end

--- Completes all files; the disk has them then.
function methods:finish()
    for _, part in ipairs(self.list) do
        if part.missing == 0 and not part.file and not part.finished then
            open_part(self, part) -- of an earlier process
            settle(self, true)
        end
    end
    for part in pairs(self.open) do -- the carriers are closed
        part.coming = {}
    end
    settle(self, true)
    core.system.sync_files(self.folder)
    core.system.sync_folder(self.folder)
end

--- Closes the files; what is not complete goes, and the folder goes with the result's own file.
-- Any number of times.
function methods:close()
    for _, part in ipairs(self.list) do
        if part.file then
            part.file:close()
            part.file, part.dataset = nil, nil
        end
    end
end

return parts
