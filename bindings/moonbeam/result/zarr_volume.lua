-- The volume of a result as OME-Zarr 0.5 (result/init.lua says what a format has): a folder with a
-- pyramid of Zarr v3 arrays, whose shards have whole slices at known places (zarr/shards.lua).
--
-- The folder is made in that of an unfinished run, whose journal is nobody's where the run cannot
-- be resumed: it goes then with the result. All files are there from the beginning, with the space
-- that they take. The smaller levels are made in the end, from files, row by row. Then the root's
-- zarr.json is written, the disk takes everything, and the folder gets its name.

local activity = require "moonbeam.internal.command_line.activity"
local core = require "moonbeam.core"
local documents = require "moonbeam.zarr.documents"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local on_error = require "moonbeam.internal.on_error"
local origin = require "moonbeam.result.origin"
local progress = require "moonbeam.progress"
local shards = require "moonbeam.zarr.shards"

local zarr_volume = {extensions = file_name.ZARR}
local methods = {}
local metatable = {__index = methods}

local ROOT <const> = "zarr.json"

-- ---------------------------------------------------------------------------------------------
-- Creation

--- Refuses what OME-Zarr does not have.
function zarr_volume.check(path, options)
    if not documents.holds(options.dtype) then
        fail("dtype", "result.create", "dtype", "'%s': OME-Zarr results are u8, u16, f16 or f32, "
            .. "not %s", path, options.dtype)
    end
    for _, name in ipairs {"chunks", "deflate", "slices_per_file"} do
        if options[name] then
            fail("argument", "result.create", name, "'%s': %s is for HDF5 files; OME-Zarr has "
                .. "shards of whole slices without compression", path, name)
        end
    end
end

--- The bytes of all files of a result, nearly.
function zarr_volume.disk_bytes(shape, dtype)
    local bytes = 0
    for _, extents in ipairs(documents.levels(shape)) do
        bytes = bytes + shards.bytes(shards.layout(extents, dtype))
    end
    return bytes
end

local function write_text(name, text)
    local file, problem = io.open(name, "wb")
    local ok = file and file:write(text)
    ok = file and file:close() and ok
    if not ok then
        fail("io", "result.create", "path", "cannot write '%s'%s", name,
            problem and ": " .. problem or "")
    end
end

-- A new folder, or one that an earlier process has made.
local function folder_of(name)
    if not core.system.stat(name) then
        core.system.mkdir(name)
    end
    return name
end

-- The files of a level. What an earlier process has left stays.
local function open_level(folder, layout, first)
    folder_of(folder)
    write_text(folder .. "/" .. ROOT, documents.array(layout, first))
    folder_of(folder .. "/c")
    local level = {layout = layout, files = {}, folder = folder}
    local _ <close> = on_error(function()
        for _, file in ipairs(level.files) do
            file:close()
        end
    end)
    for number = 1, layout.count do
        folder_of(("%s/c/%d"):format(folder, number - 1))
        folder_of(("%s/c/%d/0"):format(folder, number - 1))
        local file = core.rawfile.keep(folder .. "/" .. shards.path(number), true)
        level.files[number] = file
        local _, _, bytes = shards.slices(layout, number)
        local index = shards.index(layout, number)
        if file:bytes() > bytes + #index then
            file:resize(0)
        end
        file:resize(bytes + #index)
        file:put(bytes, index)
    end
    return level
end

-- The folder that the result is made in, and what keeps it: that of the caller, or our own.
local function begin(self)
    local kept = self.options.unfinished
    if kept then
        return kept:file_path()
    end
    core.target.check(self.path, self.options.overwrite)
    local base = "/" .. self.path:match "[^/]*$"
    if self.options.inside then
        return self.options.inside .. base
    end
    self.own = core.unfinished.begin(self.path)
    if core.system.stat(self.own:folder() .. base) then
        self.own:remove() -- of a process that was killed
        self.own = core.unfinished.begin(self.path)
    end
    return self.own:folder() .. base
end

-- Notes the result in the journal: its description so far stands for it.
local function note(self, kept)
    local draft, base = kept:file_path(ROOT), self.path:match "[^/]*$"
    if kept:has_file() then
        if not kept:restore(base, draft) then
            fail("io", nil, "resume", "the head of the result in '%s' is damaged, so that the run "
                .. "cannot go on: remove it and start anew with the option discard = true",
                kept.folder)
        end
        return
    end
    write_text(draft, documents.group(self.options, self.shapes, self.facts))
    kept:note_result({part_path = draft}, {offset = 0, bytes = 0})
end

--- A new result, or the one that an earlier process has begun. With the option `inside` it is made
-- in that folder, which the caller removes.
function zarr_volume.create(path, options)
    path = path:gsub("/+$", "")
    local self = setmetatable({path = path, shape = options.shape, dtype = options.dtype,
        options = setmetatable({slice_distance = options.slice_distance or options.pixel_size},
        {__index = options}), facts = origin.facts(options), levels = {},
        shapes = documents.levels(options.shape, options.axis ~= nil)}, metatable)
    local _ <close> = on_error(function() self:close() end)
    self.folder = folder_of(begin(self))
    for i, shape in ipairs(self.shapes) do
        self.levels[i] = open_level(("%s/%d"):format(self.folder, i - 1),
            shards.layout(shape, options.dtype), options.axis and options.axis.name or "z")
    end
    if options.unfinished then
        note(self, options.unfinished)
    end
    return self
end

-- ---------------------------------------------------------------------------------------------
-- Writing

-- Calls fn(file, offset, first, last) for the parts of slices z_first ... z_last in each shard.
local function each_part(level, z_first, z_last, fn)
    local layout = level.layout
    for number = (z_first - 1) // layout.slices + 1, (z_last - 1) // layout.slices + 1 do
        local first, last = shards.slices(layout, number)
        local from, to = math.max(z_first, first), math.min(z_last, last)
        fn(level.files[number], (from - first) * layout.slice_bytes, from, to, number)
    end
end

-- Calls fn(file, offset, part, steps) for the parts of an array in each shard.
local function each_array(self, array, z_first, z_last, op, fn)
    local layout = self.levels[1].layout
    if array.dtype ~= self.dtype then
        fail("dtype", op, "array", "the volume is %s, not %s: cast the slices", self.dtype,
            array.dtype)
    end
    local steps = {layout.slice_bytes, layout.row_bytes, core.pool.element_bytes(self.dtype)}
    local flat = #array.shape == 2
    each_part(self.levels[1], z_first, z_last, function(file, offset, from, to)
        local part <close> = flat and array:view()
            or array:view {from - z_first + 1, to - z_first + 1}
        fn(file, offset, part, flat and {steps[2], steps[3]} or steps)
    end)
end

function methods:write(array, first, last)
    if array.device.id ~= "host" then
        local here <close> = array:to "host"
        return self:write(here, first, last)
    end
    each_array(self, array, first, last, "result:write", function(file, offset, part, steps)
        file:write(part, offset, steps)
    end)
end

function methods:carry(carrier, array, first, last)
    each_array(self, array, first, last, "result:carry", function(file, offset, part, steps)
        carrier:carry(file, part, offset, steps)
    end)
end

function methods:scaling(scale, offset)
    self.facts.scaling = {scale_factor = scale, add_offset = offset}
end

function methods:add(what, values)
    for name, value in pairs(values) do
        self.facts[what][name] = value
    end
end

function methods:skeleton()
    local list, layout = {}, self.levels[1].layout
    for number = 1, layout.count do
        local first, last, bytes = shards.slices(layout, number)
        list[number] = {path = self.levels[1].folder .. "/" .. shards.path(number), offset = 0,
            bytes = bytes, first = first, last = last}
    end
    return list
end

function methods:regions(z_first, z_last)
    local list, level = {}, self.levels[1]
    local layout = level.layout
    each_part(level, z_first, z_last, function(_, offset, from, to, number)
        list[#list + 1] = {path = level.folder .. "/" .. shards.path(number), offset = offset,
            base = 0, frames = to - from + 1, lines = layout.shape[2],
            line_bytes = layout.row_bytes, line_pitch = layout.row_bytes,
            frame_pitch = layout.slice_bytes}
    end)
    return list
end

-- ---------------------------------------------------------------------------------------------
-- The end

-- The file of a slice, and its offset there.
local function slice_at(level, z)
    local layout = level.layout
    local number = (z - 1) // layout.slices + 1
    return level.files[number], (z - 1) % layout.slices * layout.slice_bytes
end

-- Makes a level from the one before it.
local function halve(from, to, what)
    local shape, count = from.layout.shape, to.layout.shape[1]
    local all = count == shape[1] -- slices that are not rows are not mixed
    for z = 1, count do
        activity.at(what, z, count)
        local one, one_at = slice_at(from, all and z or 2 * z - 1)
        local two, two_at = slice_at(from, all and z or math.min(2 * z, shape[1]))
        local out, at = slice_at(to, z)
        core.rawfile.halve({out, one, two}, {at, one_at, two_at}, {shape[2], shape[3]},
            from.layout.dtype)
    end
end

function methods:finish()
    do
        local _ <close> = progress.watch("pyramid")
        for i = 2, #self.levels do
            halve(self.levels[i - 1], self.levels[i], ("level %d, slice"):format(i))
        end
    end
    self:close_files()
    self.facts.end_time = origin.time()
    write_text(self.folder .. "/" .. ROOT, documents.group(self.options, self.shapes, self.facts))
    core.system.sync_files(self.folder)
    local kept = self.options.unfinished
    if kept then
        kept:note_end()
    end
    core.target.name_folder(self.folder, self.path, self.options.overwrite)
    if kept then
        kept:remove()
    else
        self:close()
    end
end

function methods:close_files()
    for _, level in ipairs(self.levels) do
        for _, file in ipairs(level.files) do
            file:close()
        end
    end
end

function methods:close()
    self:close_files()
    local own = self.own
    self.own = nil
    if own then
        own:remove()
    end
end

return zarr_volume
