--- What the steps share that shift projections, each by its own number of rows or columns:
-- vertical_shift and horizontal_shift. `unit` is "rows" or "columns".

local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local lists = require "moonbeam.scan.lists"
local tables = require "moonbeam.internal.tables"
local vertical_shifts = require "moonbeam.tomo.vertical_shifts"

local frame_shifts = {}

-- Fields of the geometry, and words.
local UNITS = {
    rows = {step = "row_step", extent = "rows", ways = "up or down"},
    columns = {step = "column_step", extent = "cols", ways = "left or right"},
}

--- The options of a step: shifts, and further ones.
function frame_shifts.options(unit, ...)
    return declared.options({"shifts", "list", "one number per projection of the scan: "
        .. lists.FORMS, unit = unit, also = "string",
        path = true, dataset = true, required = true}, ...)
end

--- The shifts of all projections, or of first to last, in rows or columns of the data.
function frame_shifts.of(options, g, unit, first, last)
    local shifts = {}
    for i = first or 1, last or #g.frames do
        shifts[#shifts + 1] = options.shifts[g.frames[i]] / g[UNITS[unit].step]
    end
    return shifts
end

--- Those of the projections of a block.
function frame_shifts.of_block(options, block, unit)
    local frames = block.cut == "frames" and block.rows or block.frames or {}
    return frame_shifts.of(options, block.geometry, unit, frames[1], frames[2])
end

--- The function `prepare` of a step: reads shifts that are in a file.
function frame_shifts.prepare(unit)
    return function(options, _, source)
        local own = tables.merged(options)
        if type(own.shifts) == "string" and source.scan then
            own.shifts = vertical_shifts.read(source.scan, own.shifts, unit)
        end
        return own
    end
end

--- Raises an error if the shifts are not those of the scan's projections.
function frame_shifts.check(options, g, unit)
    local words = UNITS[unit]
    if type(options.shifts) == "string" then
        fail("argument", nil, "shifts", "shifts is the file '%s', but without a scan the number of "
            .. "shifts is not known", options.shifts)
    elseif #options.shifts ~= g.projections then
        fail("shape", nil, "shifts", "shifts has %s; the scan has %s: give one for each",
            counted(#options.shifts, "number"), counted(g.projections, "projection"))
    end
    for i, shift in ipairs(options.shifts) do
        if math.abs(shift) > g[words.extent] then
            fail("argument", nil, "shifts", "shift %d is %g; it must be within the detector's %d "
                .. "%s, %s", i, shift, g[words.extent], unit, words.ways)
        end
    end
end

return frame_shifts
