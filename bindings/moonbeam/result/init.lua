-- Reconstructed volumes as NXtomoproc files: viewers open the volume at once, and how it came about
-- is inside. The file gets its name only when it is complete (runtime/files/target.h).
--
-- First the skeleton is made, all but the volume's bytes, and closed: from then on these are
-- written at known places of the file, without libhdf5 (result:skeleton). What is measured is kept
-- meanwhile (notes.lua), and written in the end, when libhdf5 has opened the file again. A
-- compressed volume in one file has no known places: its file stays open.

local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local notes = require "moonbeam.result.notes"
local on_error = require "moonbeam.internal.on_error"
local pixel_size = require "moonbeam.scan.pixel_size"
local result_parts = require "moonbeam.result.parts"

local result = {}
local methods = {}
local metatable = { __name = "moonbeam.result" }

local CREATE = declared.options(
    {"shape", "extents", "{nz, ny, nx} of the volume", required = true},
    {"dtype", "string", "element type of the volume", default = "f32"},
    {"units", "string", "of the values", usual = "1/m with pixel_size, else 1/pixel"},
    pixel_size.option,
    {"slice_distance", "number", "between neighboring slices", unit = "m", min = 1e-13, max = 1,
        usual = "pixel_size"},
    {"first_row", "count", "row of the detector that slice 1 is of", min = 1, default = 1},
    {"parameters", "table", "what the reconstruction was done with"},
    {"input", "string", "the scan's file"},
    {"script", "string", "a file name or a text", usual = "the running script"},
    {"title", "string", "of the entry", default = "reconstruction"},
    {"sample", "string", "name of the sample", default = "unknown"},
    {"overwrite", "boolean", "replace an existing result", default = false},
    {"chunks", "extents", "of the volume in one file"},
    {"deflate", "count", "compression of the volume in one file, 0 to 9"},
    {"slices_per_file", "count", "the volume goes to files of that many slices in a folder \"<path "
        .. "without .h5>-slices-<8 digits>\", a new one in every run; the result's file shows "
        .. "them as one dataset, which is written faster", min = 1},
    {"unfinished", "any", "what keeps the result of a run that is interrupted; pipelines make it"})

-- ---------------------------------------------------------------------------------------------
-- Provenance

local function quote(word)
    if word:match("^[%w%-%._/=:,+@%%]+$") then
        return word
    end
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- The command line of the running program, or nil.
local function command_line()
    local words = {}
    if type(arg) ~= "table" then
        return nil
    end
    local first = 0
    while arg[first - 1] do
        first = first - 1
    end
    for i = first, #arg do
        words[#words + 1] = quote(tostring(arg[i]))
    end
    return table.concat(words, " ")
end

local function read_all(name)
    local file = io.open(name, "rb")
    if not file then
        return nil
    end
    local text = file:read "a"
    file:close()
    return text
end

-- `script`: a file name or the text itself; by default the program's own script.
local function script_of(script)
    local own = type(arg) == "table" and type(arg[0]) == "string" and arg[0] or nil
    local name = script or own
    local facts = name and #name < 4096 and not name:find("[\n%z]") and core.system.stat(name)
    if facts and facts.kind == "file" and facts.bytes < 1 << 20 then
        return name, read_all(name)
    end
    return nil, script
end

-- `device`: the id of the one that computes, or nil for the default device.
local function versions(device)
    return { moonbeam = core.version, hdf5 = core.h5.version, lua = _VERSION,
        fft = (core.fft.library(device)) }
end

local function iso_time(seconds)
    return os.date("!%Y-%m-%dT%H:%M:%S+00:00", seconds and math.floor(seconds))
end

-- Identity of the input: enough to tell whether a file is still the one that was read.
local function input_facts(input)
    local facts, err = core.system.stat(input)
    if not facts then
        error(err, 0)
    end
    return {
        path = core.system.real_path(input) or input,
        bytes = facts.bytes,
        modified = iso_time(facts.modified),
    }
end

-- ---------------------------------------------------------------------------------------------
-- Creation

-- Which way the axes go. Viewers that place rows by the values of an axis draw larger ones
-- further up, those that do not draw the first row at the top, as PNG files have it: with y going
-- down along the rows, both show the same.
local DIRECTIONS = {
    z = "rows of the detector, from its top downwards",
    y = "upwards: the first row of a slice is its top, with the largest y",
    x = "to the right",
}

local function write_axes(file, options)
    local shape = options.shape
    local step = options.pixel_size or 1
    local unit = options.pixel_size and "m" or "pixel"
    for axis, name in ipairs { "z", "y", "x" } do
        local values = {}
        local first = axis == 1 and options.first_row - 1 or 0
        local own = axis == 1 and options.pixel_size and options.slice_distance or step
        for i = 1, shape[axis] do
            values[i] = (name == "y" and shape[axis] - i or first + i - 1) * own
        end
        file:write("/entry/data/" .. name, values, {
            dtype = "f64",
            attributes = { units = unit, long_name = ("%s [%s]"):format(name, unit),
            description = DIRECTIONS[name] },
        })
    end
end

local function write_process(file, options)
    local process = "/entry/reconstruction"
    file:group(process, "NXprocess")
    file:write(process .. "/program", "moonbeam")
    file:write(process .. "/version", core.version)
    file:write(process .. "/date", iso_time())
    file:write(process .. "/sequence_index", 1)
    file:group(process .. "/parameters", "NXparameters")
    local parameters = {}
    for name, value in pairs(options.parameters or {}) do
        parameters[name] = value
    end
    if options.input then
        parameters.raw_file = core.system.real_path(options.input) or options.input
    end
    notes.write_table(file, process .. "/parameters", parameters)
end

local function write_provenance(file, options)
    local group = "/entry/provenance"
    file:group(group, "NXcollection")
    local script_name, script = script_of(options.script)
    notes.write_table(file, group, {
        command_line = command_line(),
        folder = core.system.cwd and core.system.cwd(),
        host = core.system.hostname and core.system.hostname(),
        script_name = script_name,
        script = script,
        input = options.input and input_facts(options.input),
        versions = versions(options.parameters and options.parameters.device),
    })
end

local function check_options(options)
    if #options.shape ~= 3 or math.min(table.unpack(options.shape)) < 1 then
        fail("shape", "result.create", "shape",
            "shape must be {nz, ny, nx}, each an integer above 0")
    elseif options.slices_per_file and (options.chunks or options.deflate) then
        fail("argument", "result.create", "slices_per_file",
            "a volume in several files (slices_per_file) cannot have chunks or deflate")
    end
    notes.check(options.parameters or {}, "result.create")
end

local function fill(file, options, parts)
    file:set_attribute("/", "NX_class", "NXroot")
    file:set_attribute("/", "default", "entry")
    file:set_attribute("/", "creator", "moonbeam " .. core.version)
    file:set_attribute("/", "file_time", iso_time())
    file:group("/entry", "NXentry")
    file:set_attribute("/entry", "default", "data")
    file:write("/entry/definition", "NXtomoproc")
    file:write("/entry/title", options.title)
    file:write("/entry/start_time", iso_time())
    file:group("/entry/sample", "NXsample")
    file:write("/entry/sample/name", options.sample)

    -- The volume first: a disk that is too small is an error before anything else happens.
    file:group("/entry/data", "NXdata")
    file:set_attribute("/entry/data", "signal", "data")
    file:set_attribute("/entry/data", "axes", { "z", "y", "x" })
    local units = options.units or (options.pixel_size and "1/m" or "1/pixel")
    local description = {
        shape = options.shape,
        dtype = options.dtype,
        chunks = options.chunks,
        deflate = options.deflate,
        attributes = {
            units = units,
            interpretation = "image",
            long_name = ("attenuation [%s]"):format(units),
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
    write_axes(file, options)
    write_process(file, options)
    write_provenance(file, options)
    return volume
end

-- What a dry run writes to: it checks what is given to it, and there is no file.
local nothing = setmetatable({}, {__index = function()
    return function() end
end})

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
    local place = self.notes.keeping and (self.parts and {offset = 0, bytes = 0}
        or self.volume:place())
    if not place then
        fail("argument", "result.create", "unfinished", "only libhdf5 knows where the bytes of "
            .. "this volume go: nobody could go on with it")
    end
    kept:note_result(self.file, place, self.parts and self.parts.folder)
end

--- A new result file for a volume (z, y, x). Write all slices, then call finish(). A result that is
-- closed before has left nothing behind, unless it is one that others go on with (`unfinished`).
result.create = declared("result.create", {
    {"path", "string", "its name, an HDF5 file"}, options = CREATE,
}, function(path, options)
    file_name.check(path, file_name.HDF5, "results are HDF5 files", "result.create")
    check_options(options)
    local self = setmetatable({path = path, shape = options.shape, dtype = options.dtype,
        file = nothing, notes = nothing, volume = nothing, written = {},
        missing = options.shape[1]}, metatable)
    if core.dry.on() then
        return self
    end
    local kept = options.unfinished
    self.unfinished = kept
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
end)

-- ---------------------------------------------------------------------------------------------
-- Writing

-- Marks the slices of an array as written; returns the first and the last.
local function take(self, array, z_first, op)
    local count = #array.shape == 2 and 1 or array.shape[1]
    if math.type(z_first) ~= "integer" or z_first < 1 or z_first + count - 1 > self.shape[1] then
        fail("argument", op, "z_first", "slices %s to %s are outside the volume, which has %d",
            tostring(z_first), math.type(z_first) and z_first + count - 1 or "?", self.shape[1])
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
    if self.parts then
        local slices <close> = #array.shape == 2 and array:reshape(1, table.unpack(array.shape))
            or array:view(core.array.all)
        self.parts:write(slices, first, last)
    elseif not array.device.dry then
        self.volume:write(array, { first, last })
    end
    mark(self, first, last)
end)

--- Makes ready for the writing of slices z_first ... z_last, which is worth its while before carry.
function methods:prepare(z_first, z_last)
    if self.parts then
        self.parts:prepare(z_first, z_last)
    end
end

--- Queues the writing of slices by a carrier (mb.stream). The array may be released after the
-- carrier's wait, and the result finished after its finish.
methods.carry = declared.method("result:carry(carrier: any, array: array, z_first: any)",
    nil, function(self, carrier, array, z_first)
    local first, last = take(self, array, z_first, "result:carry")
    if self.parts then
        self.parts:write(array, first, last, carrier)
    elseif not core.dry.on() then
        carrier:carry(self.volume, array, { first, last })
    end
    mark(self, first, last)
end)

--- Says what the stored integers mean: value = stored * scale + offset. It has to be called before
-- the first slice is written. The file gets the attributes of CF, and the fields of NeXus, where
-- value = (stored + data_offset) * data_scaling_factor.
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
    local attributes = { scale_factor = scale, add_offset = offset }
    for name, value in pairs(attributes) do
        self.notes:set_attribute("/entry/data/data", name, value)
    end
    self.notes:write("/entry/data/data_scaling_factor", scale)
    self.notes:write("/entry/data/data_offset", shift)
    if self.parts then
        self.parts.attributes = attributes
    end
end)

-- A method that adds a table to a group.
local function adding(name, group)
    return function(self, values)
        notes.check(values, "result:" .. name)
        notes.write_table(self.notes, group, values)
    end
end

--- Adds to the parameters of the reconstruction, such as what was found on the way: a table as
-- `provenance` takes it.
methods.parameters = declared.method("result:parameters(values: table)", nil,
    adding("parameters", "/entry/reconstruction/parameters"))

--- Adds to the provenance block: a table of numbers, strings, lists and tables of them.
-- Predicted and measured peaks, times and counters go here, before finish().
methods.provenance = declared.method("result:provenance(values: table)", nil,
    adding("provenance", "/entry/provenance"))

--- Where the volume's bytes go: a list of {path (of the file, which has no name of its own yet),
-- offset and bytes (of its slices, dense), first and last (slice)}; nil where only libhdf5 knows.
-- All else in these files is complete, but for what has been noted since. Of a volume in several
-- files, those that are being written.
function methods:skeleton()
    if self.parts then
        return self.parts:skeleton()
    end
    local place = self.notes.keeping and self.volume:place()
    return place and {{path = self.file.part_path, offset = place.offset, bytes = place.bytes,
        first = 1, last = self.shape[1]}} or nil
end

--- Slices z_first ... z_last are in the file already: an earlier process has written them.
function methods:have(z_first, z_last)
    mark(self, z_first, z_last)
    if self.parts then
        self.parts:have(z_first, z_last)
    end
end

--- The hash of slices z_first ... z_last as they are in the files: that of a carrier that wrote
-- them; nil where they are not all there. For a result with `unfinished`.
function methods:hash(z_first, z_last)
    local kept = self.unfinished
    local file = kept.files[self.path:match "[^/]*$"]
    local places = self.parts and self.parts:places(z_first, z_last) or not self.parts
        and {{path = kept:file_path(), base = file.offset, start = 1, first = z_first,
            last = z_last}}
    local line = self.shape[3] * core.pool.element_bytes(self.dtype)
    local sum = 0
    for _, place in ipairs(places or {}) do
        local lines = (place.last - place.first + 1) * self.shape[2]
        local own = core.unfinished.hash(place.path, {
            offset = place.base + (place.first - place.start) * self.shape[2] * line,
            base = place.base, frames = 1, lines = lines, line_bytes = line,
            frame_pitch = lines * line, line_pitch = line})
        if not own then
            return nil
        end
        sum = sum + own
    end
    return places and sum
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
    if core.dry.on() then
        return self.path
    end
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
    return self.path
end)

--- Closes the file. A result that was not finished is removed. A second call does nothing.
methods.close = declared.method("result:close()", nil, function(self)
    if self.parts then
        self.parts:close()
    end
    self.file:close()
end)

metatable.__index = methods
metatable.__close = methods.close

function metatable:__tostring()
    return ("result '%s' (%d x %d x %d)"):format(self.path, table.unpack(self.shape))
end

return declared.module(result, "result")
