-- The volume of a result as OME-Zarr 0.5 (result/init.lua says what a format has): a folder with a
-- pyramid of Zarr v3 arrays, whose shards have whole slices at known places (zarr/shards.lua).
--
-- The folder is made in that of an unfinished run, which keeps nothing where the run cannot
-- be resumed: it goes then with the result. All files are there from the beginning, with the space
-- that they take. The smaller levels are made in the end, from files, row by row. Then the root's
-- zarr.json is written, the disk takes everything, and the folder gets its name.
--
-- An image of several channels and times (zarr_image.lua) has axes before z, and several volumes.

local core = require "moonbeam.core"
local documents = require "moonbeam.zarr.documents"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local levels = require "moonbeam.result.zarr_levels"
local on_error = require "moonbeam.internal.on_error"
local open_files = require "moonbeam.result.open_files"
local origin = require "moonbeam.result.origin"
local progress = require "moonbeam.progress"
local shards = require "moonbeam.zarr.shards"
local tables = require "moonbeam.internal.tables"
local unfinished = require "moonbeam.result.unfinished"

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

-- The layouts of the levels. `kind`: shards.option; `whole`: documents.levels.
local function layouts_of(shape, dtype, kind, whole)
    return tables.mapped(documents.levels(shape, whole), function(extents)
        return shards.layout(extents, dtype, kind)
    end)
end

--- The bytes of all files of a result, nearly. `kind`: the layout (shards.option).
function zarr_volume.disk_bytes(shape, dtype, kind)
    local bytes = 0
    for _, layout in ipairs(layouts_of(shape, dtype, kind)) do
        bytes = bytes + shards.bytes(layout)
    end
    return bytes
end

--- How many files have the voxels of `count` volumes, and the bytes of the largest.
function zarr_volume.files(shape, dtype, kind, count)
    local layouts, files = layouts_of(shape, dtype, kind), 0
    for _, layout in ipairs(layouts) do
        files = files + count * layout.count
    end
    local _, _, bytes = shards.slices(layouts[1], 1)
    return files, bytes + #shards.index(layouts[1], 1)
end

-- What is told of the channels, or a list of as many of which nothing is.
local function channels_of(options)
    local list = {{}}
    for _, axis in ipairs(options.lead or {}) do
        for i = 1, axis.name == "c" and axis.extent or 0 do
            list[i] = {}
        end
    end
    return options.channels or list
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
    self.own = unfinished.scratch(self.path)
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
    levels.write_text(draft, documents.group(self.options, self.shapes, self.facts))
    kept:note_result({part_path = draft}, {offset = 0, bytes = 0})
end

-- The places of all volumes: "" without axes before z, else "0/1/", the last axis fastest.
local function places_of(lead)
    local list = {""}
    for _, axis in ipairs(lead) do
        local indices = {}
        for i = 1, axis.extent do
            indices[i] = i - 1
        end
        list = tables.combined(list, indices, function(place, index)
            return ("%s%d/"):format(place, index)
        end)
    end
    return list
end

-- The arrays, and the files of all volumes.
local function open_levels(self)
    local options = self.options
    local places = places_of(options.lead)
    local layouts = layouts_of(self.shape, self.dtype, options.zarr_layout, options.axis ~= nil)
    for i, layout in ipairs(layouts) do
        levels.array(("%s/%d"):format(self.folder, i - 1), layout, options.lead,
            options.axis and options.axis.name or "z")
    end
    for k, place in ipairs(places) do
        self.volumes[k] = {}
        for i, layout in ipairs(layouts) do
            self.volumes[k][i] = levels.open(("%s/%d"):format(self.folder, i - 1), layout, place,
                self.files)
        end
    end
    self.levels = self.volumes[1]
end

--- A new result, or the one that an earlier process has begun. With the option `inside` it is made
-- in that folder, which the caller removes. `lead`: the axes before z, {{name, type, unit, extent,
-- scale}, ...}; `channels`: what is told of them, {{label, color}, ...}. self.volumes has the
-- levels of each volume, the last axis of `lead` fastest.
function zarr_volume.create(path, options)
    path = path:gsub("/+$", "")
    local self = setmetatable({path = path, shape = options.shape, dtype = options.dtype,
        options = setmetatable({lead = options.lead or {}, channels = channels_of(options)},
            {__index = options}),
        facts = origin.facts(options), volumes = {},
        files = open_files.new(options.zarr_layout == "chunks"),
        shapes = documents.levels(options.shape, options.axis ~= nil)}, metatable)
    local _ <close> = on_error(function() self:close() end)
    self.folder = levels.folder(begin(self))
    open_levels(self)
    if options.unfinished then
        note(self, options.unfinished)
    end
    return self
end

-- ---------------------------------------------------------------------------------------------
-- Writing

-- Calls fn(file, offset, part, steps) for the parts of an array in each shard.
local function each_array(self, array, z_first, z_last, op, fn)
    local level = self.levels[1]
    local layout = level.layout
    if array.dtype ~= self.dtype then
        fail("dtype", op, "array", "the volume is %s, not %s: cast the slices", self.dtype,
            array.dtype)
    end
    local steps = {layout.slice_bytes, layout.row_bytes, core.pool.element_bytes(self.dtype)}
    local flat = #array.shape == 2
    levels.each_part(level, z_first, z_last, function(number, offset, from, to)
        local part <close> = flat and array:view()
            or array:view {from - z_first + 1, to - z_first + 1}
        fn(levels.file(level, number), offset, part, flat and {steps[2], steps[3]} or steps)
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
    return levels.shards(self.levels[1])
end

function methods:regions(z_first, z_last)
    local list, level = {}, self.levels[1]
    levels.each_part(level, z_first, z_last, function(number, offset, from, to)
        list[#list + 1] = levels.region(level, number, offset, to - from + 1)
    end)
    return list
end

-- ---------------------------------------------------------------------------------------------
-- The end

-- Makes the smaller levels of all volumes, and finds what is shown of the channels.
local function make_pyramids(self)
    local _ <close> = progress.watch "pyramid"
    local channels = self.options.channels
    for k, own in ipairs(self.volumes) do
        for i = 2, #own do
            levels.halve(own[i - 1], own[i], #self.volumes == 1 and ("level %d, slice"):format(i)
                or ("volume %d, level %d, slice"):format(k, i))
        end
        local channel = channels[(k - 1) % #channels + 1]
        local least, greatest, low, high = levels.range(own[1])
        if least then
            channel.least = math.min(channel.least or least, least)
            channel.greatest = math.max(channel.greatest or greatest, greatest)
            channel.low = math.min(channel.low or low, low)
            channel.high = math.max(channel.high or high, high)
        end
    end
end

function methods:finish()
    make_pyramids(self)
    self.files:close()
    self.facts.end_time = origin.time()
    levels.write_text(self.folder .. "/" .. ROOT, documents.group(self.options, self.shapes,
        self.facts))
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

function methods:close()
    self.files:close()
    local own = self.own
    self.own = nil
    if own then
        own:remove()
    end
end

return zarr_volume
