local mb = require "moonbeam"
local frame_shifts = require "moonbeam.pipeline.definitions.frame_shifts"
local geometry = require "moonbeam.pipeline.geometry"

-- Rows that are needed above and below.
local function reach_of(options, g)
    local low, high = 0, 0
    for _, shift in ipairs(frame_shifts.of(options, g, "rows")) do
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
    options = frame_shifts.options "rows",
    takes = {quantity = {"line integrals", "phase"}, layout = "frames"},
    cuts = {"rows", "frames"},
    prepare = frame_shifts.prepare "rows",
    check = function(options, _, g)
        frame_shifts.check(options, g, "rows")
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
        mb.vertical_shift(block.data, frame_shifts.of_block(options, block, "rows"),
            {out = block.data})
    end,
}
