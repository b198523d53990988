--- A scan whose frames are arrays on the host: what `mb.scan.of_arrays` gives. It is planned,
-- reconstructed and searched for its axis as a scan in a file is (scan/init.lua); its frames are
-- read by views, or by a carrier straight from the array's memory.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local fields = require "moonbeam.scan.fields"
local arguments = require "moonbeam.internal.arguments"
local examine = require "moonbeam.scan.angles"
local on_error = require "moonbeam.internal.on_error"
local pixel_size = require "moonbeam.scan.pixel_size"
local reading = require "moonbeam.scan.reading"
local report_lines = require "moonbeam.scan.report_lines"
local timeline = require "moonbeam.scan.timeline"

local scan_arrays = {}
local methods = {}
local metatable = { __name = "moonbeam.scan", __index = fields(methods) }

-- `array` may be frames that stay in a file (stored_frames.lua).
local function check_frames(array, name, rows, cols)
    if type(array) ~= "table" and array.device.kind ~= "host" then
        fail("argument", "scan.of_arrays", name, "%s must be on the host, not on %s", name,
            array.device.id)
    end
    local shape = array.shape
    if #shape ~= 3 or shape[1] * shape[2] * shape[3] == 0
        or rows and (shape[2] ~= rows or shape[3] ~= cols) then
        fail("shape", "scan.of_arrays", name,
            "%s have shape %s; they must be (frame, row, column)%s", name,
            table.concat(shape, " x "),
            rows and (" with %d x %d pixels, like the projections"):format(rows, cols) or "")
    end
end

--- What scan_arrays.new returns; each of projections, flats and darks may also be frames that stay
-- in a file.
function scan_arrays.made(projections, angles, options)
    check_frames(projections, "projections")
    local n_angles, rows, cols = table.unpack(projections.shape)
    if type(angles) ~= "table" or #angles ~= n_angles then
        fail("shape", "scan.of_arrays", "angles", "%s angles were given for %d projections",
            type(angles) == "table" and #angles or "no", n_angles)
    end
    arguments.angles(angles, "scan.of_arrays", "angles", n_angles)
    local found = examine(angles, { op = "scan.of_arrays", code = "argument", unit = "rad",
        given = true, where = "" })
    local self = { frames = projections, arrays = { projections }, angles = angles,
        n_angles = n_angles, rows = rows, cols = cols,
        dtype = projections.dtype, pixel_size = options.pixel_size, warnings = found.warnings,
            format = "arrays", n_flats = 0, n_darks = 0, says = {}, stated = {} }
    for _, name in ipairs { "flats", "darks" } do
        local array = options[name]
        if array then
            check_frames(array, name, rows, cols)
            self["n_" .. name], self["own_" .. name] = array.shape[1], array
            self.arrays[#self.arrays + 1] = array
        end
    end
    for _, array in ipairs(self.arrays) do
        if type(array) == "table" then
            self.arrays = nil -- a carrier's ring is needed
            break
        end
    end
    timeline.of_arrays(self, options)
    return setmetatable(self, metatable)
end

--- A scan whose frames are arrays on the host: `projections` (angle, row, column), as the detector
-- gave them or as line integrals, `angles` in radians.
--
-- The arrays are not copied and not released; they must stay as they are while the scan is used.
-- Those in pinned memory (mb.empty(shape, {pinned = device})) go to a device without being copied
-- first.
scan_arrays.new = declared("scan.of_arrays", {
    {"projections", "array", "(angle, row, column)"},
    {"angles", "angles", "in radians, one for each projection"},
    options = declared.options({"flats", "array", "(frame, row, column)"},
        {"darks", "array", "(frame, row, column)"}, pixel_size.option,
        {"flat_positions", "list", "how many projections were taken before each flat"},
        {"current", "list", "ring current of each projection"},
        {"flats_current", "list", "ring current of each flat"}, timeline.options[4]),
}, scan_arrays.made)

-- Some rows of some frames on a device: filled by the carrier if there is one, else at once. All
-- frames take the options of projections but those that say how stored values are read.
local READ = declared.without(reading.projections, "dtype", "out")

local function reader(name, field)
    return declared("scan:" .. name, {{"self", "scan"}, {"rows", "any?"}, options = READ},
        function(self, rows, options)
        local array, carrier = self[field], options.carrier
        if type(array) == "table" and not array.part then
            fail("argument", "scan:" .. name, "self", "self is a scan of files; methods are called "
                .. "with a colon, as scan:%s()", name)
        end
        if not array then
            return nil
        elseif type(array) == "table" then
            return array:part(options.angles, rows, options)
        end
        local part <close> = array:view(options.angles or core.array.all, rows or core.array.all)
        if not carrier then
            return part:to(options.device or core.device.default())
        end
        local result = core.array.empty(part.shape, {dtype = array.dtype, device = options.device})
        local _ <close> = on_error(function() result:release() end)
        carrier:carry(part, result)
        return result
    end)
end

methods.projections = reader("projections", "frames")
methods.flats = reader("flats", "own_flats")
methods.darks = reader("darks", "own_darks")

--- What there is, as text; of images with the angles and the size of a pixel.
function methods:describe()
    arguments.entry({name = "self", kind = "scan"}, self, "scan:describe")
    local groups = self.timeline and #timeline.groups(self.timeline).counts or 1
    local lines = {report_lines.line("scan", "%d projection%s of %d rows x %d columns, %s, in %s",
        self.n_angles, self.n_angles == 1 and "" or "s", self.rows, self.cols, self.dtype,
        self.path or "memory"), report_lines.line("reference", "%d flats%s, %d darks%s",
        self.n_flats, groups > 1 and (" in %d groups"):format(groups) or "", self.n_darks,
        self.currents and ", ring current of each frame" or "")}
    if self.path then
        lines[3], lines[4] = report_lines.angles(self), report_lines.pixel(self)
    end
    return table.concat(lines, "\n")
end

--- Closes the scan's files and releases the arrays that it has read from files itself; those of
-- the caller stay.
function methods:close()
    arguments.entry({name = "self", kind = "scan"}, self, "scan:close")
    for _, each in ipairs(self.owned or {}) do
        local _ <close> = each -- an array or a volume
    end
end

metatable.__close = methods.close

function metatable:__tostring()
    return ("scan of arrays (%d projections of %d x %d)"):format(self.n_angles, self.rows,
        self.cols)
end

return scan_arrays
