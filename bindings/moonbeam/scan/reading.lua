--- The reading methods of a scan in a file: projections, flats and darks by rows, one projection.

local core = require "moonbeam.core"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local frames = require "moonbeam.scan.frames"
local references = require "moonbeam.scan.references"

local reading = {methods = {}}
local methods = reading.methods

local FRAME = declared.options(
    {"dtype", "string", "u8, u16, i32, f16, f32, f64, c64 or c128", usual = "as stored"},
    {"device", "device", "where the array is made", usual = "the default device"},
    {"out", "array", "the array for the result"})
--- Options of flats and darks.
reading.references = declared.options(FRAME,
    {"carrier", "carrier", "a carrier fills the array; the array is complete after its wait"})
--- Options of projections.
reading.projections = declared.options(reading.references,
    {"angles", "any", "{first, last} of the projections", usual = "all"})

-- How many rows `rows` selects; nil for an integer, which drops the axis.
local function row_extent(self, rows)
    local _, _, _, count = core.range.within(rows, self.rows, "the rows")
    return count
end

-- Reads runs of frames of a dataset into one array, or has a carrier do so.
local function read_runs(self, dataset, runs, rows, options)
    local carrier = options.carrier
    if #runs == 1 and not carrier then
        return dataset:read(runs[1], rows, declared.part(FRAME, options))
    end
    local count, extent = frames.count(runs), row_extent(self, rows)
    local shape = extent and {count, extent, self.cols} or {count, self.cols}
    local array = options.out or core.array.empty(shape, {device = options.device,
        dtype = options.dtype or dataset.dtype})
    local ok, err = pcall(function()
        local at = 1
        for _, run in ipairs(runs) do
            local n = run[2] - run[1] + 1
            local part <close> = array:view({at, at + n - 1})
            if carrier then
                carrier:carry(dataset, part, run, rows)
            else
                dataset:read(run, rows, {out = part})
            end
            at = at + n
        end
        if count ~= array.shape[1] then
            fail("shape", "scan.read", "out", "out has %d frames, but %d were read", array.shape[1],
                count)
        end
    end)
    if not ok then
        if not options.out then
            array:release()
        end
        error(err, 0)
    end
    return array
end

--- Projections as an array (angle, row, column). `rows` is {first, last}, `mb.all` (the default),
-- or one row, which drops the axis.
methods.projections = declared.method("scan:projections(rows: any?, options)",
    reading.projections, function(self, rows, options)
    local first, last, step, count = core.range.within(options.angles, self.n_angles,
        "the projections")
    if not count or count == 0 then
        fail("argument", "scan:projections", "angles",
            "angles must be a range {first, last} of projections")
    end
    local indices = {}
    for i = first, last, step do
        indices[#indices + 1] = self.frames[i]
    end
    return read_runs(self, self.data, frames.runs(indices), rows or core.array.all, options)
end)

-- Flats or darks.
local function reference_reader(field)
    return function(self, rows, options)
        local source = self[field]
        rows = rows or core.array.all
        return source and references.read(source, rows, row_extent(self, rows), self.cols, options)
    end
end

--- Flats (frame, row, column) of some rows, or nil if the scan has none.
methods.flats = declared.method("scan:flats(rows: any?, options)", reading.references,
    reference_reader "flat_source")

--- Darks (frame, row, column) of some rows, or nil if the scan has none.
methods.darks = declared.method("scan:darks(rows: any?, options)", reading.references,
    reference_reader "dark_source")

--- One projection (row, column).
methods.frame = declared.method("scan:frame(i: any, options)", FRAME, function(self, i, options)
    local index = math.type(i) == "integer" and i < 0 and i + self.n_angles + 1 or i
    local frame = self.frames[index]
    if not frame then
        fail("argument", "scan:frame", "i", "i is %s; it must be a projection, 1 to %d, or -1 for "
            .. "the last", arguments.described(i), self.n_angles)
    end
    return self.data:read(frame, core.array.all, options)
end)

return reading
