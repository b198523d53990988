-- Reconstructed volumes in files, with how they came about: NXtomoproc in HDF5, a TIFF stack or
-- OME-Zarr; the name decides. It gets its name only when it is complete (runtime/files/target.h),
-- and what an interrupted run has written can be kept (unfinished.lua), whatever the format.
--
-- A format is a table {extensions, create(path, options), check(path, options), disk_bytes(shape,
-- dtype, kind) where files take more than the volume}. What it creates is the volume of a result
-- that is being written, or one that an earlier process has begun (options.unfinished):
--   write(array, first, last)            slices, at once
--   prepare(first, last)                 slices that carry will soon get
--   carry(carrier, array, first, last)   slices, by a carrier
--   scaling(scale, offset)               value = stored * scale + offset
--   add(what, values)                    to "parameters" or "provenance"
--   skeleton()                           where the bytes go, or nil
--   have(first, last)                    slices that an earlier process has written
--   regions(first, last)                 where they are, for their hash; nil: some are missing
--   finish(), close()                    finish gives the file its name

local arguments = require "moonbeam.internal.arguments"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local hdf5_volume = require "moonbeam.result.hdf5_volume"
local large = require "moonbeam.tiff.large"
local notes = require "moonbeam.result.notes"
local pixel_size = require "moonbeam.scan.pixel_size"
local shards = require "moonbeam.zarr.shards"
local tables = require "moonbeam.internal.tables"
local tiff_volume = require "moonbeam.result.tiff_volume"
local zarr_volume = require "moonbeam.result.zarr_volume"

-- Raises an error unless these are slices of a result.
local function check_slices(op, self, first, last)
    if first < 1 or first > last or last > self.shape[1] then
        fail("argument", op, "z_first", "slices %d to %d are no part of the volume, which has "
            .. "slices 1 to %d", first, last, self.shape[1])
    end
end

local SLICES <const> = {"z_first: count, z_last: count", check_slices}

local result = {}
local methods = declared.class("result", {prepare = SLICES, await = "", arrived = SLICES,
    skeleton = "", have = SLICES, hash = {"z_first: count, z_last: count, of_file: boolean?",
    check_slices}}, {})
local metatable = { __name = "moonbeam.result" }

local FORMATS = {hdf5_volume, tiff_volume, zarr_volume}

local CREATE = declared.options(
    {"shape", "extents", "{nz, ny, nx} of the volume", required = true},
    {"dtype", "string", "element type of the volume", default = "f32"},
    {"units", "string", "of the values", usual = "1/m with pixel_size, else 1/pixel"},
    pixel_size.option,
    {"slice_distance", "number", "between neighboring slices", unit = "m", min = 1e-13, max = 1,
        usual = "pixel_size; of one slice: unknown"},
    {"first_row", "count", "row of the detector that slice 1 is of", min = 1, default = 1},
    {"upward", "boolean", "each slice is of the row above the one before", default = false},
    {"outside", "list", "of each slice: how many projections show it by rows from outside the "
        .. "detector", whole = true, min = 0},
    {"projections", "count", "of how many projections", min = 1},
    {"axis", "table", "what slices are that are not rows: {name, values (numbers, or texts, one "
        .. "for each slice)}"},
    {"parameters", "table", "what the reconstruction was done with"},
    {"input", "string", "the scan's file"},
    {"input_was", "table", "what is said of it: {path, bytes, modified (s)}", usual = "what it is"},
    {"script", "string", "a file name or a text", usual = "the running script"},
    {"title", "string", "of the entry", default = "reconstruction"},
    {"sample", "string", "name of the sample", default = "unknown"},
    {"overwrite", "boolean", "replace an existing result", default = false},
    {"chunks", "extents", "of an HDF5 volume in one file"},
    {"deflate", "count", "compression of an HDF5 volume in one file, 0 to 9"},
    {"slices_per_file", "count", "the volume goes to files of that many slices in a folder \"<path "
        .. "without .h5>-slices-<8 digits>\", a new one in every run; the result's file shows "
        .. "them as one dataset, which is written faster", min = 1},
    {"layout", "choice", "where another program's readers look for the volume of an HDF5 file, "
        .. "beside our own place: nabu: /ENTRY/reconstruction/results/data; httomo: /data, "
        .. "/angles", choices = {"nabu", "httomo"}},
    {"entry", "string", "ENTRY of the layout nabu", default = "entry0000"},
    {"angles", "any", "of the projections, in radians, for the layout httomo"},
    large.option, shards.option,
    {"unfinished", "any", "what keeps the result of a run that is interrupted; pipelines make it"})

-- The format of a name; an error where no result has such a name.
local function format_of(path, op)
    file_name.check(path, file_name.RESULTS, nil, op)
    for _, format in ipairs(FORMATS) do
        if not file_name.problem(path, format.extensions) then
            return format
        end
    end
end

-- Names beside the volume that an axis cannot have.
local DATA = {data = true, x = true, y = true, ["."] = true, [".."] = true}

local function sound_axis(axis, count)
    local name, values = axis.name, axis.values
    if type(name) ~= "string" or DATA[name] or not name:find "^[%w_.]+$"
        or type(values) ~= "table" or #values ~= count then
        return false
    end
    for _, value in ipairs(values) do
        if type(value) ~= type(values[1]) or not (type(value) == "number"
            or type(value) == "string") then
            return false
        end
    end
    return true
end

local function check_options(options)
    if #options.shape ~= 3 or math.min(table.unpack(options.shape)) < 1 then
        fail("shape", "result.create", "shape",
            "shape must be {nz, ny, nx}, each an integer above 0")
    elseif options.slices_per_file and (options.chunks or options.deflate) then
        fail("argument", "result.create", "slices_per_file",
            "a volume in several files (slices_per_file) cannot have chunks or deflate")
    end
    if options.axis and not sound_axis(options.axis, options.shape[1]) then
        fail("argument", "result.create", "axis", "axis must be {name = a word that is not data, "
            .. "x or y, values = %d numbers or texts, one for each slice}", options.shape[1])
    end
    if options.outside and #options.outside ~= options.shape[1] then
        fail("shape", "result.create", "outside", "outside has %s for %s",
            counted(#options.outside, "number"), counted(options.shape[1], "slice"))
    end
    notes.check(options.parameters or {}, "result.create")
end

-- What a dry run writes to: nothing.
local nothing = setmetatable({}, {__index = function()
    return function() end
end})

--- The bytes that the files of a result will take, nearly: more than its volume's for a pyramid.
result.disk_bytes = declared("result.disk_bytes", {
    {"path", "string", "its name"}, {"shape", "extents", "{nz, ny, nx} of the volume"},
    {"dtype", "string", "element type of the volume"}, options = declared.options(shards.option),
}, function(path, shape, dtype, options)
    local format = format_of(path, "result.disk_bytes")
    shards.check_name("result.disk_bytes", path, options.zarr_layout)
    return format.disk_bytes and format.disk_bytes(shape, dtype, options.zarr_layout)
        or core.pool.element_bytes(dtype) * tables.product(shape)
end)

--- A new result file for a volume (z, y, x). Write all slices, then call finish(). A result that is
-- closed before has left nothing behind, unless it is one that others go on with (`unfinished`).
result.create = declared("result.create", {
    {"path", "string", "its name: an HDF5 file, a TIFF stack, or an OME-Zarr folder"},
    options = CREATE,
}, function(path, options)
    local format = format_of(path, "result.create")
    check_options(options)
    if options.layout and format ~= hdf5_volume then
        fail("argument", "result.create", "layout", "'%s': layout is for HDF5 files, such as %s.h5",
            path, (path:match("([^/]*)$"):gsub("%.[^.]*$", "")))
    end
    large.check_name("result.create", path, options.tiff_layout)
    shards.check_name("result.create", path, options.zarr_layout)
    format.check(path, options)
    if not options.slice_distance then -- false: unknown
        options.slice_distance = options.shape[1] > 1 and options.pixel_size or false
    end
    local self = setmetatable({path = path, shape = options.shape, dtype = options.dtype,
        volume = nothing, written = {}, missing = options.shape[1],
        kept = options.unfinished ~= nil}, metatable)
    if not core.dry.on() then
        self.volume = format.create(path, options)
        self.file, self.parts = self.volume.file, self.volume.parts
    end
    return self
end)

-- ---------------------------------------------------------------------------------------------
-- Writing

-- Marks the slices of an array as written; returns the first and the last.
local function take(self, array, z_first, op)
    local rank, shape = array.rank, array.shape
    local count = rank == 2 and 1 or shape[1]
    if rank < 2 or rank > 3 or shape[rank - 1] ~= self.shape[2] or shape[rank] ~= self.shape[3]
    then
        fail("shape", op, "array", "the array is %s; slices of this volume must be %d x %d",
            table.concat(shape, " x "), self.shape[2], self.shape[3])
    end
    if math.type(z_first) ~= "integer" or z_first < 1 or z_first + count - 1 > self.shape[1] then
        fail("argument", op, "z_first", "z_first is %s; %d slice%s of a volume of %d must begin at "
            .. "1 to %d", arguments.described(z_first), count, count == 1 and "" or "s",
            self.shape[1], self.shape[1] - count + 1)
    end
    return z_first, z_first + count - 1
end

local function mark(self, first, last)
    for z = first, last do
        if not self.written[z] then
            self.written[z] = true
            self.missing = self.missing - 1
        end
    end
end

--- Writes slices: an array (z, y, x), or (y, x) for one, from slice z_first (1-based) on.
methods.write = declared.method("result:write(array: array, z_first: any)",
    nil, function(self, array, z_first)
    local first, last = take(self, array, z_first, "result:write")
    if not array.device.dry then
        self.volume:write(array, first, last)
    end
    mark(self, first, last)
end)

-- Calls a method of the volume that not all formats have.
local function tell(self, name, ...)
    local method = self.volume[name]
    if method then
        method(self.volume, ...)
    end
end

--- Makes ready for the writing of slices z_first ... z_last, which is worth its while before carry.
function methods:prepare(z_first, z_last)
    tell(self, "prepare", z_first, z_last)
end

--- Queues the writing of slices by a carrier (mb.stream). The array may be released after the
-- carrier's wait, and the result finished after its finish.
methods.carry = declared.method("result:carry(carrier: carrier, array: array, z_first: any)",
    nil, function(self, carrier, array, z_first)
    local first, last = take(self, array, z_first, "result:carry")
    if not core.dry.on() then
        self.volume:carry(carrier, array, first, last)
    end
    mark(self, first, last)
end)

--- Says that `arrived` will tell which slices of those that carry has queued are there. A volume in
-- several files (slices_per_file) completes each file by that; otherwise when no carrier has any of
-- its slices left. A device that is lost leaves slices to others, and does not know which.
function methods:await()
    tell(self, "await")
end

--- All bytes of slices z_first ... z_last are in the files.
function methods:arrived(z_first, z_last)
    tell(self, "arrived", z_first, z_last)
end

--- Says what the stored integers mean: value = stored * scale + offset. It has to be called before
-- the first slice is written. An HDF5 file gets the attributes of CF, and the fields of NeXus:
-- value = (stored + data_offset) * data_scaling_factor; a TIFF stack gets ImageJ's calibration.
methods.scaling = declared.method("result:scaling(scale: number, offset: number)",
    nil, function(self, scale, offset)
    for name, value in pairs { scale = scale, offset = offset } do
        if value ~= value or math.abs(value) == math.huge then
            fail("argument", "result:scaling", name, "%s is %s; it must be a finite number", name,
                tostring(value))
        end
    end
    local shift = offset / scale
    if shift ~= shift or math.abs(shift) == math.huge then
        fail("argument", "result:scaling", "scale",
            "a scale of %g is too small to be inverted; give a larger one", scale)
    end
    self.volume:scaling(scale, offset)
end)

-- A method that adds a table to what is said beside the volume.
local function adding(name)
    return function(self, values)
        notes.check(values, "result:" .. name)
        self.volume:add(name, values)
    end
end

--- Adds to the parameters of the reconstruction, such as what was found on the way: a table as
-- `provenance` takes it.
methods.parameters = declared.method("result:parameters(values: table)", nil,
    adding "parameters")

--- Adds to the provenance block: a table of numbers, strings, lists and tables of them.
-- Predicted and measured peaks, times and counters go here, before finish().
methods.provenance = declared.method("result:provenance(values: table)", nil,
    adding "provenance")

--- Where the volume's bytes go: a list of {path (of the file, which has no name of its own yet),
-- offset and bytes (of its slices, dense), first and last (slice)}; nil where only libhdf5 knows.
-- All else in these files is complete, but for what has been noted since. Of a volume in several
-- files, those that are being written.
function methods:skeleton()
    return self.volume:skeleton()
end

--- Slices z_first ... z_last are in the file already: an earlier process has written them.
function methods:have(z_first, z_last)
    mark(self, z_first, z_last)
    tell(self, "have", z_first, z_last)
end

--- The hash of slices z_first ... z_last as they are in the files: that of a carrier that wrote
-- them; nil where they are not all there. For a result with `unfinished`. `of_file`: of one that
-- wrote them at known places of the file, as ranks after the first do, and not into its dataset.
function methods:hash(z_first, z_last, of_file)
    if not self.kept then
        fail("argument", "result:hash", "self", "the result keeps no hashes; only one that is made "
            .. "with the option unfinished can be asked for them")
    end
    local regions, sum = self.volume:regions(z_first, z_last), 0
    for _, region in ipairs(regions or {}) do
        region.base = not of_file and region.base or 0
        local own = core.unfinished.hash(region.path, region)
        if not own then
            return nil
        end
        sum = sum + own
    end
    return regions and sum
end

--- Completes the file: verifies it, and gives it its name. Returns the name.
methods.finish = declared.method("result:finish()", nil, function(self)
    if self.missing > 0 then
        local first = 1
        while self.written[first] do
            first = first + 1
        end
        fail("argument", "result:finish", nil,
            "%d of %d slices were never written; the first is %d", self.missing, self.shape[1],
            first)
    end
    if not core.dry.on() then
        self.volume:finish()
    end
    return self.path
end)

--- Closes the file. A result that was not finished is removed. A second call does nothing.
methods.close = declared.method("result:close()", nil, function(self)
    self.volume:close()
end)

metatable.__index = methods
metatable.__close = methods.close

function metatable:__tostring()
    return ("result '%s' (%d x %d x %d)"):format(self.path, table.unpack(self.shape))
end

return declared.module(result, "result")
