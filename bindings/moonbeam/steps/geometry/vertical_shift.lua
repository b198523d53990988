local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local vertical_shifts = require "moonbeam.tomo.vertical_shifts"

-- The shifts of all projections, or of first to last, in rows of the data.
local function own_shifts(options, g, first, last)
    local shifts = {}
    for i = first or 1, last or #g.frames do
        shifts[#shifts + 1] = options.shifts[g.frames[i]] / g.row_step
    end
    return shifts
end

-- Rows that are needed above and below.
local function reach_of(options, g)
    local low, high = 0, 0
    for _, shift in ipairs(own_shifts(options, g)) do
        low, high = math.min(low, math.floor(shift)), math.max(high, math.ceil(shift))
    end
    return {math.tointeger(low), math.tointeger(high)}
end

return {
    name = "vertical_shift",
    summary = "Shifts each projection by its own number of rows, for a drifting sample stage or a "
        .. "helical scan.",
    doc = "Row r of the result is row r + shift of the projection, interpolated linearly between "
        .. "rows. Beyond the detector the beam is unattenuated.",
    options = declared.options(
        {"shifts", "list", "one number per projection of the scan; or a text file, a dataset of "
            .. "the scan (\"/path\"), or FILE:/path", unit = "rows", also = "string", path = true,
            dataset = true, required = true}),
    takes = {quantity = {"line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows", "frames"},
    prepare = function(options, _, source)
        local shifts = options.shifts
        if type(shifts) == "string" and source.scan then
            shifts = vertical_shifts.read(source.scan, shifts)
        end
        return {shifts = shifts}
    end,
    check = function(options, _, g)
        if type(options.shifts) == "string" then
            fail("argument", nil, "shifts", "shifts is the file '%s', but without a scan the "
                .. "number of shifts is not known", options.shifts)
        elseif #options.shifts ~= g.projections then
            fail("shape", nil, "shifts", "shifts has %d numbers; the scan has %d projections: "
                .. "give one for each", #options.shifts, g.projections)
        end
        for i, shift in ipairs(options.shifts) do
            if math.abs(shift) > g.rows then
                fail("argument", nil, "shifts", "shift %d is %g; it must be within the detector's "
                    .. "%d rows, up or down", i, shift, g.rows)
            end
        end
    end,
    geometry = function(options, g)
        return geometry.with(g, {vertical_shifts = options.shifts})
    end,
    needs = function(options, first, last, step, cut)
        if cut ~= "rows" then
            return first, last
        end
        local reach = step.reach or reach_of(options, step.geometry_before)
        step.reach = reach -- used for every block
        return first + reach[1], last + reach[2]
    end,
    plain = function(options, settings)
        settings.vertical_shifts = options.shifts
        return true
    end,
    run = function(block, options)
        local frames = block.cut == "frames" and block.rows or block.frames or {}
        mb.vertical_shift(block.data, own_shifts(options, block.geometry, frames[1], frames[2]),
            {out = block.data})
    end,
}
