-- The volume of a result as NXtomoproc in HDF5 (result/init.lua says what a format has): viewers
-- open the volume at once, and how it came about is inside.
--
-- First the skeleton is made, all but the volume's bytes, and closed: from then on these are
-- written at known places of the file, without libhdf5. What is measured is kept meanwhile
-- (notes.lua), and written in the end, when libhdf5 has opened the file again. A compressed volume
-- in one file has no known places: its file stays open.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local notes = require "moonbeam.result.notes"
local on_error = require "moonbeam.internal.on_error"
local origin = require "moonbeam.result.origin"
local result_parts = require "moonbeam.result.parts"

local hdf5_volume = {extensions = file_name.HDF5}
local methods = {}
local metatable = {__index = methods}

-- ---------------------------------------------------------------------------------------------
-- The skeleton

-- Which way the axes go. Viewers that place rows by the values of an axis draw larger ones
-- further up, those that do not draw the first row at the top, as PNG files have it: with y going
-- down along the rows, both show the same.
local DIRECTIONS = {
    z = "rows of the detector, from its top downwards",
    y = "upwards: the first row of a slice is its top, with the largest y",
    x = "to the right",
}

-- z of frames that are upside down: the first slice is of the lowest row.
local UPWARDS <const> = "rows of the detector, from its top downwards; the first slice is of the "
    .. "last row, because the frames were flipped"

-- The axis of slices that are not rows. Texts are beside the volume, not its axis: viewers draw
-- by numbers.
local function write_own_axis(file, axis)
    local numbers = type(axis.values[1]) == "number"
    file:set_attribute("/entry/data", "axes", {numbers and axis.name or ".", "y", "x"})
    file:write("/entry/data/" .. axis.name, axis.values, {dtype = numbers and "f64" or nil,
        attributes = {long_name = axis.name, description = "of each slice"}})
end

local function write_axes(file, options)
    local shape = options.shape
    local step = options.pixel_size or 1
    local unit = options.pixel_size and "m" or "pixel"
    if options.axis then
        write_own_axis(file, options.axis)
    else
        file:set_attribute("/entry/data", "axes", {"z", "y", "x"})
    end
    for axis = options.axis and 2 or 1, 3 do
        local name = ("zyx"):sub(axis, axis)
        local values = {}
        local first = axis == 1 and options.first_row - 1 or 0
        local sign = axis == 1 and options.upward and -1 or 1
        local own = axis == 1 and options.pixel_size and options.slice_distance or step
        for i = 1, shape[axis] do
            values[i] = (name == "y" and shape[axis] - i or first + sign * (i - 1)) * own
        end
        file:write("/entry/data/" .. name, values, {
            dtype = "f64",
            attributes = { units = unit, long_name = ("%s [%s]"):format(name, unit),
            description = sign < 0 and UPWARDS or DIRECTIONS[name] },
        })
    end
end

-- Slices that are not wholly of rows of the detector.
local function write_outside(file, options)
    if options.outside then
        file:write("/entry/data/projections_outside", options.outside, {dtype = "i32",
            attributes = {long_name = "projections outside", projections = options.projections,
            description = "of each slice: how many projections show it by rows from outside the "
            .. "detector, which count as open beam"}})
    end
end

local function write_process(file, options)
    local process = "/entry/reconstruction"
    file:group(process, "NXprocess")
    file:write(process .. "/program", "moonbeam")
    file:write(process .. "/version", core.version)
    file:write(process .. "/date", origin.time())
    file:write(process .. "/sequence_index", 1)
    file:group(process .. "/parameters", "NXparameters")
    notes.write_table(file, process .. "/parameters", origin.parameters(options))
end

local function write_provenance(file, options)
    local group = "/entry/provenance"
    file:group(group, "NXcollection")
    notes.write_table(file, group, origin.provenance(options))
end

-- The volume under the names of other programs, as links.
local LAYOUTS = {}

function LAYOUTS.nabu(file, options)
    local results = "/" .. options.entry:gsub("^/+", ""):gsub("/+$", "")
        .. "/reconstruction/results"
    file:group(results)
    file:link("/entry/data/data", results .. "/data")
end

function LAYOUTS.httomo(file, options)
    file:link("/entry/data/data", "/data")
    if options.angles then
        file:write("/angles", options.angles, {dtype = "f64"})
    end
    file:group "/data_dims"
    file:write("/data_dims/detector_x_y", {0, 0}, {dtype = "i32"})
end

local function fill(file, options, parts)
    file:set_attribute("/", "NX_class", "NXroot")
    file:set_attribute("/", "default", "entry")
    file:set_attribute("/", "creator", "moonbeam " .. core.version)
    file:set_attribute("/", "file_time", origin.time())
    file:group("/entry", "NXentry")
    file:set_attribute("/entry", "default", "data")
    file:write("/entry/definition", "NXtomoproc")
    file:write("/entry/title", options.title)
    file:write("/entry/start_time", origin.time())
    file:group("/entry/sample", "NXsample")
    file:write("/entry/sample/name", options.sample)

    -- The volume first: a disk that is too small is an error before anything else happens.
    file:group("/entry/data", "NXdata")
    file:set_attribute("/entry/data", "signal", "data")
    local units = origin.units(options)
    local description = {
        shape = options.shape,
        dtype = options.dtype,
        chunks = options.chunks,
        deflate = options.deflate,
        attributes = {
            units = units,
            interpretation = "image",
            long_name = ("%s [%s]"):format(units:find "^1/" and "attenuation"
                or options.title, units),
        },
    }
    local volume
    if parts then
        description.sources = parts:sources()
        volume = file:create_virtual("/entry/data/data", description)
    else
        description.early = true
        volume = file:create_dataset("/entry/data/data", description)
    end
    if options.pixel_size then
        file:set_attribute("/entry/data/data", "pixel_size", options.pixel_size)
    end
    if options.layout then
        LAYOUTS[options.layout](file, options)
    end
    write_axes(file, options)
    write_outside(file, options)
    write_process(file, options)
    write_provenance(file, options)
    return volume
end

-- ---------------------------------------------------------------------------------------------
-- Creation

-- The result that an earlier process has begun.
local function go_on(self, options)
    result_parts.scavenge(self.path)
    self.file = options.unfinished:reopen(options.overwrite)
    local _ <close> = on_error(function() self:close() end)
    self.notes = notes.new(self.file)
    self.volume = self.file:dataset "/entry/data/data"
    if table.concat(self.volume.shape, " ") ~= table.concat(self.shape, " ")
        or self.volume.dtype ~= options.dtype then
        fail("argument", "result.create", "resume", "the volume in '%s' is %s %s; this run makes "
            .. "%s %s", options.unfinished.folder, table.concat(self.volume.shape, " x "),
            self.volume.dtype, table.concat(self.shape, " x "), options.dtype)
    end
    if options.slices_per_file then
        self.parts = result_parts.resume(options)
        self.volume:close()
    end
    self.notes:keep(self.file:rest())
    return self
end

-- What a later process needs to go on with a new result.
local function begin_unfinished(self, kept)
    local place = self.notes.keeping and self.parts and {offset = 0, bytes = 0}
        or kept:place_of(self.notes.keeping and self.volume)
    kept:note_result(self.file, place, self.parts and self.parts.folder)
end

--- Everything that can be wrong is found by libhdf5.
function hdf5_volume.check() end

--- A new result, or the one that an earlier process has begun.
function hdf5_volume.create(path, options)
    local kept = options.unfinished
    local self = setmetatable({path = path, shape = options.shape, dtype = options.dtype,
        unfinished = kept}, metatable)
    if kept and kept:has_file() then
        return go_on(self, options)
    end
    self.file = kept and kept:create(options.overwrite)
        or core.h5.create(path, {overwrite = options.overwrite})
    local _ <close> = on_error(function() self:close() end)
    self.notes = notes.new(self.file)
    result_parts.scavenge(path)
    self.parts = options.slices_per_file and result_parts.create(self.file, options)
    self.volume = fill(self.notes, options, self.parts)
    if self.parts then
        self.volume:close() -- it shows what is written elsewhere
    end
    self.notes:keep(self.file:rest())
    if kept then
        begin_unfinished(self, kept)
    end
    return self
end

-- ---------------------------------------------------------------------------------------------
-- Writing

function methods:write(array, first, last)
    if self.parts then
        local slices <close> = #array.shape == 2 and array:reshape(1, table.unpack(array.shape))
            or array:view(core.array.all)
        self.parts:write(slices, first, last)
    else
        self.volume:write(array, { first, last })
    end
end

-- What only a volume in several files has to know.
for _, name in ipairs {"prepare", "await", "arrived", "have"} do
    methods[name] = function(self, ...)
        if self.parts then
            self.parts[name](self.parts, ...)
        end
    end
end

function methods:carry(carrier, array, first, last)
    if self.parts then
        self.parts:write(array, first, last, carrier)
    else
        carrier:carry(self.volume, array, { first, last })
    end
end

-- The attributes of CF, and the fields of NeXus.
function methods:scaling(scale, offset)
    local attributes = { scale_factor = scale, add_offset = offset }
    for name, value in pairs(attributes) do
        self.notes:set_attribute("/entry/data/data", name, value)
    end
    self.notes:write("/entry/data/data_scaling_factor", scale)
    self.notes:write("/entry/data/data_offset", offset / scale)
    if self.parts then
        self.parts.attributes = attributes
    end
end

local GROUPS = {parameters = "/entry/reconstruction/parameters", provenance = "/entry/provenance"}

function methods:add(what, values)
    notes.write_table(self.notes, GROUPS[what], values)
end

function methods:skeleton()
    if self.parts then
        return self.parts:skeleton()
    end
    local place = self.notes.keeping and self.volume:place()
    return place and {{path = self.file.part_path, offset = place.offset, bytes = place.bytes,
        first = 1, last = self.shape[1]}} or nil
end

-- Where slices are: a list of regions of lines (core.unfinished.hash); nil where some are missing.
function methods:regions(z_first, z_last)
    local kept = self.unfinished
    local file = kept.files[self.path:match "[^/]*$"]
    local places = self.parts and self.parts:places(z_first, z_last) or not self.parts
        and {{path = kept:file_path(), base = file.offset, start = 1, first = z_first,
            last = z_last}}
    local line, list = self.shape[3] * core.pool.element_bytes(self.dtype), {}
    for i, place in ipairs(places or {}) do
        local lines = (place.last - place.first + 1) * self.shape[2]
        list[i] = {path = place.path,
            offset = place.base + (place.first - place.start) * self.shape[2] * line,
            base = place.base, frames = 1, lines = lines, line_bytes = line,
            frame_pitch = lines * line, line_pitch = line}
    end
    return places and list
end

function methods:finish()
    if self.parts then
        self.parts:finish()
    end
    self.notes:write_kept()
    if self.unfinished then
        self.unfinished:note_end()
    end
    result_parts.publish(self.file, self.path)
    if self.unfinished then
        self.unfinished:remove()
    end
end

function methods:close()
    if self.parts then
        self.parts:close()
    end
    self.file:close()
end

return hdf5_volume
