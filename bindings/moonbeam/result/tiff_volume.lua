-- The volume of a result as a TIFF stack (result/init.lua says what a format has): one page for a
-- slice, uncompressed, at known places.
--
-- How the volume came about is in the file as JSON: ImageJ shows it as information, and in a name
-- that ends in .ome.tif it is an annotation of the OME-XML. These texts have room before the
-- pixels, so that what is measured on the way can be added in the end. What the room does not hold
-- then is left out: the longest parts first.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local head = require "moonbeam.tiff.head"
local json = require "moonbeam.internal.json"
local large = require "moonbeam.tiff.large"
local describe = require "moonbeam.tiff.meaning.compose"
local on_error = require "moonbeam.internal.on_error"
local origin = require "moonbeam.result.origin"
local shown_range = require "moonbeam.result.shown_range"
local tables = require "moonbeam.internal.tables"
local volumes = require "moonbeam.volumes"
local voxel = require "moonbeam.tiff.voxel"

local tiff_volume = {extensions = file_name.TIFF}
local methods = {}
local metatable = {__index = methods}

-- Bytes for what is measured on the way.
local ROOM <const> = 64 << 10

-- ---------------------------------------------------------------------------------------------
-- Texts

-- Leaves out the longest of the facts. Returns whether there was one.
local function shortened(facts)
    local longest, bytes, group
    for _, name in ipairs {"provenance", "parameters"} do
        for key, value in pairs(facts[name]) do
            local own = #json(value, {})
            if own > (bytes or 64) then
                longest, bytes, group = key, own, name
            end
        end
    end
    if longest then
        facts[group][longest] = ("left out: %d bytes"):format(bytes)
    end
    return longest ~= nil
end

-- What ImageJ writes above each slice that is not a row.
local function labels_of(axis)
    return axis and tables.mapped(axis.values, function(value)
        return ("%s = %s"):format(axis.name, type(value) == "number" and ("%.10g"):format(value)
            or value)
    end)
end

-- The head of the file; nil where the facts do not fit before the pixels.
local function compose(self)
    local options, facts = self.options, self.facts
    local text, info
    local description = {shape = self.shape, dtype = self.dtype, title = options.title,
        pixel_size = options.pixel_size,
        slice_distance = not options.axis and options.slice_distance or nil,
        units = origin.units(options), scaling = facts.scaling, shown = self.shown}
    if self.ome then
        text = describe.new_ome(description, json(facts, {"program", "version", "title"}))
    else
        text, info = describe.new_imagej(description), json(facts, {"program", "version", "title"})
    end
    return head.compose {pages = self.shape[1], rows = self.shape[2], columns = self.shape[3],
        dtype = self.dtype, text = text, info = info, labels = labels_of(options.axis),
        resolution = options.pixel_size and voxel.resolution(options.pixel_size) or nil,
        layout = options.tiff_layout, data_at = self.data_at}
end

-- ---------------------------------------------------------------------------------------------
-- Creation

local function is_ome(path)
    return path:lower():find "%.ome%.tiff?$" ~= nil
end

--- Refuses what TIFF files do not have.
function tiff_volume.check(path, options)
    if not head.format(options.dtype) then
        fail("dtype", "result.create", "dtype", "'%s': a TIFF file cannot hold %s: give u8, u16 or "
            .. "f32, or an HDF5 file", path, options.dtype)
    end
    for _, name in ipairs {"chunks", "deflate", "slices_per_file"} do
        if options[name] then
            fail("argument", "result.create", name, "'%s': %s is for HDF5 files; a TIFF stack is "
                .. "one file without compression", path, name)
        end
    end
    if large.is_file(options.shape, volumes.ITEM_BYTES[options.dtype], 1) then
        large.check("result.create", path, options.tiff_layout, is_ome(path))
    end
end

-- The file that an earlier process has begun.
local function go_on(self, kept)
    self.data_at = kept:restore_result().offset
    self.file = core.rawfile.resume_kept(self.path, kept:file_path(), self.options.overwrite)
    local _ <close> = on_error(function() self:close() end)
    local layout = large.is_file(self.shape, volumes.ITEM_BYTES[self.dtype], 1)
        and (self.file:get(0, 3) == "II+" and "bigtiff" or "imagej")
    local asked = self.options.tiff_layout or "bigtiff"
    if layout and layout ~= asked then
        fail("argument", "result.create", "tiff_layout", "the result in '%s' was begun with the "
            .. "layout %s, and this run has %s: go on with the option tiff_layout = \"%s\", or "
            .. "start anew with the option discard = true", kept.folder, layout, asked, layout)
    end
    return self
end

--- A new result, or the one that an earlier process has begun.
function tiff_volume.create(path, options)
    local kept = options.unfinished
    local self = setmetatable({path = path, shape = options.shape, dtype = options.dtype,
        unfinished = kept, options = options, facts = origin.facts(options),
        ome = is_ome(path)}, metatable)
    self.steps = volumes.dense_steps(self.shape, self.dtype)
    if kept and kept:has_file() then
        return go_on(self, kept)
    end
    local _, least = compose(self)
    self.data_at = least + ROOM
    local before = compose(self)
    self.file = kept and core.rawfile.create_kept(path, kept:file_path(), options.overwrite)
        or core.rawfile.create(path, options.overwrite)
    local _ <close> = on_error(function() self:close() end)
    local bytes = self.shape[1] * self.steps[1]
    self.file:resize(self.data_at + bytes)
    self.file:put(0, before)
    if kept then
        kept:note_result({part_path = self.file:now()}, {offset = self.data_at, bytes = bytes})
    end
    return self
end

-- ---------------------------------------------------------------------------------------------
-- Writing

local function check_type(self, array, op)
    if array.dtype ~= self.dtype then
        fail("dtype", op, "array", "the volume is %s, not %s: cast the slices", self.dtype,
            array.dtype)
    end
end

-- The offset of a slice, and the steps of an array of slices or of one.
local function place_of(self, array, first)
    local at = self.data_at + (first - 1) * self.steps[1]
    return at, #array.shape == 2 and {self.steps[2], self.steps[3]} or self.steps
end

function methods:write(array, first)
    check_type(self, array, "result:write")
    if array.device.id ~= "host" then
        local here <close> = array:to "host"
        return self:write(here, first)
    end
    self.file:write(array, place_of(self, array, first))
end

function methods:carry(carrier, array, first)
    check_type(self, array, "result:carry")
    carrier:carry(self.file, array, place_of(self, array, first))
end

-- ImageJ's calibration is a line of the description.
function methods:scaling(scale, offset)
    self.facts.scaling = {scale_factor = scale, add_offset = offset}
end

function methods:add(what, values)
    for name, value in pairs(values) do
        self.facts[what][name] = value
    end
end

function methods:skeleton()
    return {{path = self.file:now(), offset = self.data_at, bytes = self.shape[1] * self.steps[1],
        first = 1, last = self.shape[1]}}
end

function methods:regions(first, last)
    local line, lines = self.steps[2], (last - first + 1) * self.shape[2]
    return {{path = self.unfinished:file_path(), offset = self.data_at + (first - 1)
        * self.steps[1], base = 0, frames = 1, lines = lines, line_bytes = line,
        frame_pitch = lines * line, line_pitch = line}}
end

function methods:finish()
    self.facts.end_time = origin.time()
    if not self.ome then
        self.shown = shown_range.of_file(self.file, self.data_at, self.shape, self.dtype)
    end
    local before = compose(self)
    while not before and shortened(self.facts) do
        before = compose(self)
    end
    if before then
        self.file:put(0, before)
    end
    if self.unfinished then
        self.unfinished:note_end()
    end
    self.file:finish()
    if self.unfinished then
        self.unfinished:remove()
    end
end

function methods:close()
    if self.file then
        self.file:close()
    end
end

return tiff_volume
