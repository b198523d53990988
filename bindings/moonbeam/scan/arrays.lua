-- A scan whose frames are arrays on the host: what `mb.scan.of_arrays` gives. It is planned,
-- reconstructed and searched for its axis as a scan in a file is (scan.lua); its frames are read by
-- views, or by a carrier straight from the array's memory.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local is_array = require("moonbeam.array").is_array
local arguments = require "moonbeam.internal.arguments"
local examine = require "moonbeam.scan.angles"
local options_of = require "moonbeam.internal.options"

local scan_arrays = {}
local methods = {}
local metatable = { __name = "moonbeam.scan", __index = methods }

local READ_NAMES = { "device", "angles", "carrier" }

local function check_frames(array, name, rows, cols)
    if not is_array(array) or array.released then
        fail("argument", "scan.of_arrays", name, "%s must be an array (frame, row, column)", name)
    elseif array.device.kind ~= "host" then
        fail("argument", "scan.of_arrays", name, "%s must be on the host, not on %s", name,
            array.device.id)
    end
    local shape = array.shape
    if #shape ~= 3 or array.elements == 0 or rows and (shape[2] ~= rows or shape[3] ~= cols) then
        fail("shape", "scan.of_arrays", name,
            "%s have shape %s; they must be (frame, row, column)%s", name,
                table.concat(shape, " x "),
            rows and (" with %d x %d pixels, like the projections"):format(rows, cols) or "")
    end
end

--- A scan of arrays on the host: `projections` (angle, row, column), as the detector gave them or
-- as line integrals, `angles` in radians. Options: flats, darks (frame, row, column), pixel_size
-- (m). The arrays are not copied and not released; they must stay as they are while the scan is
-- used. Those in pinned memory (mb.empty(shape, {pinned = device})) go to a device without being
-- copied first.
function scan_arrays.new(projections, angles, options)
    options = options_of(options, "scan.of_arrays", { "flats", "darks", "pixel_size" })
    arguments.number(options.pixel_size, "scan.of_arrays", "pixel_size",
        {min = 1e-13, max = 1})
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
            format = "arrays", n_flats = 0, n_darks = 0 }
    for _, name in ipairs { "flats", "darks" } do
        local array = options[name]
        if array then
            check_frames(array, name, rows, cols)
            self["n_" .. name], self["own_" .. name] = array.shape[1], array
            self.arrays[#self.arrays + 1] = array
        end
    end
    return setmetatable(self, metatable)
end

-- Some rows of some frames on a device: filled by the carrier if there is one, else at once.
local function read(array, rows, options, what)
    options = options_of(options, what, READ_NAMES)
    local part <close> = array:view(options.angles or core.array.all, rows or core.array.all)
    if not options.carrier then
        return part:to(options.device or core.device.default())
    end
    local result = core.array.empty(part.shape, { dtype = array.dtype, device = options.device })
    local ok, err = pcall(options.carrier.carry, options.carrier, part, result)
    if not ok then
        result:release()
        error(err, 0)
    end
    return result
end

--- As those of a scan in a file, with the options device, carrier and, for projections, angles.
function methods:projections(rows, options)
    return read(self.frames, rows, options, "scan:projections")
end

function methods:flats(rows, options)
    return self.own_flats and read(self.own_flats, rows, options, "scan:flats")
end

function methods:darks(rows, options)
    return self.own_darks and read(self.own_darks, rows, options, "scan:darks")
end

--- What there is, as text.
function methods:describe()

    local text = "%-11s%d projections of %d rows x %d columns, %s, in memory\n"
        .. "%-11s%d flats, %d darks"
    return text:format("scan", self.n_angles, self.rows, self.cols, self.dtype, "reference",
        self.n_flats, self.n_darks)
end

--- There is nothing to close: the arrays are the caller's.
function methods.close()
end

metatable.__close = methods.close

function metatable:__tostring()
    return ("scan of arrays (%d projections of %d x %d)"):format(self.n_angles, self.rows,
        self.cols)
end

return scan_arrays
