local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local vertical_shifts = require "moonbeam.tomo.vertical_shifts"

-- The shifts of projections first to last, in columns of the data.
local function own_shifts(options, g, first, last)
    local shifts = {}
    for i = first or 1, last or #g.frames do
        shifts[#shifts + 1] = options.shifts[g.frames[i]] / g.column_step
    end
    return shifts
end

return {
    name = "horizontal_shift",
    summary = "Shifts each projection by its own number of columns, for a sample that moves.",
    doc = "Column x of the result is column x + shift of the projection, interpolated linearly "
        .. "between columns. A NaN spreads to the columns that it is mixed into. Place it before "
        .. "step center.",
    options = declared.options(
        {"shifts", "list", "one number per projection of the scan; or a text file, a dataset of "
            .. "the scan (\"/path\"), or FILE:/path", unit = "columns", also = "string",
            path = true, dataset = true, required = true},
        declared.from("horizontal_shift", "mode", {"value", usual = "the open beam: 1 in "
            .. "transmission, otherwise 0", default = "auto"})),
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows", "frames"},
    prepare = function(options, _, source)
        local own = {}
        for name, value in pairs(options) do
            own[name] = value
        end
        if type(own.shifts) == "string" and source.scan then
            own.shifts = vertical_shifts.read(source.scan, own.shifts, "columns")
        end
        return own
    end,
    check = function(options, _, g, _, before)
        geometry.before_center(before)
        if type(options.shifts) == "string" then
            fail("argument", nil, "shifts", "shifts is the file '%s', but without a scan the "
                .. "number of shifts is not known", options.shifts)
        elseif #options.shifts ~= g.projections then
            fail("shape", nil, "shifts", "shifts has %d numbers; the scan has %d projections: "
                .. "give one for each", #options.shifts, g.projections)
        end
        for i, shift in ipairs(options.shifts) do
            if math.abs(shift) > g.cols then
                fail("argument", nil, "shifts", "shift %d is %g; it must be within the detector's "
                    .. "%d columns, left or right", i, shift, g.cols)
            end
        end
    end,
    run = function(block, options)
        local frames = block.cut == "frames" and block.rows or block.frames or {}
        mb.horizontal_shift(block.data, own_shifts(options, block.geometry, frames[1], frames[2]),
            {mode = options.mode, value = options.value
                or (block.quantity == "transmission" and 1 or 0), out = block.data})
    end,
}
