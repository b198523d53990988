local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
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

local ROUNDING <const> = 1e-6 -- of shifts, in rows

-- The rows {first, last} of the data that no projection shows by rows from outside.
local function inside(options, g, rows)
    local low, high = 0, 0
    for _, shift in ipairs(frame_shifts.of(options, g, "rows")) do
        low, high = math.min(low, shift), math.max(high, shift)
    end
    return {math.ceil(1 - low - ROUNDING), math.floor(rows - high + ROUNDING)}
end

-- The rows of the data that the result has.
local function kept(options, g, rows)
    return options.outside == "leave_out" and inside(options, g, rows) or {1, rows}
end

-- The same for a step, cached because every block asks for it.
local function kept_by(step)
    step.kept = step.kept or kept(step.options, step.geometry_before, step.shape_before[2])
    return step.kept
end

return {
    name = "vertical_shift",
    summary = "Shifts each projection by its own number of rows, for a drifting sample stage or a "
        .. "helical scan.",
    doc = "Row r of the result is row r + shift of the projection, interpolated linearly between "
        .. "rows. Beyond the detector the beam is unattenuated. The report and the result say how "
        .. "many projections show each slice by rows from there.",
    options = frame_shifts.options("rows", {"outside", "choice", "rows that a projection shows by "
        .. "rows from outside the detector: marked in the result, or left out of it",
        choices = {"mark", "leave_out"}, default = "mark"}),
    takes = {quantity = {"line integrals", "phase"}, layout = "frames"},
    cuts = {"rows", "frames"},
    prepare = frame_shifts.prepare "rows",
    check = function(options, shape, g)
        frame_shifts.check(options, g, "rows")
        local rows = kept(options, g, shape[2])
        if rows[1] > rows[2] then
            fail("argument", nil, "outside", "outside is \"leave_out\", and the shifts leave no "
                .. "row that all projections show; give \"mark\"")
        end
    end,
    shape = function(options, shape, g)
        local rows = kept(options, g, shape[2])
        return {shape[1], rows[2] - rows[1] + 1, shape[3]}
    end,
    geometry = function(options, g, shape)
        local there = geometry.rows_of(g, 1, shape[2])
        local list = table.move(g.shifted or {}, 1, #(g.shifted or {}), 1, {})
        list[#list + 1] = {shifts = options.shifts, low = there[1], high = there[2]}
        return geometry.with(g, {vertical_shifts = options.shifts, shifted = list, used = false,
            first_row = g.first_row + (kept(options, g, shape[2])[1] - 1) * g.row_step})
    end,
    needs = function(options, first, last, step, cut)
        if cut ~= "rows" then
            return first, last
        end
        local reach = step.reach or reach_of(options, step.geometry_before)
        step.reach = reach -- used for every block
        local before = kept_by(step)[1] - 1
        return first + before + reach[1], last + before + reach[2]
    end,
    plain = function(options, settings)
        settings.vertical_shifts = options.shifts
        return true
    end,
    run = function(block, options)
        mb.vertical_shift(block.data, frame_shifts.of_block(options, block, "rows"),
            {out = block.data})
        local rows, count = kept_by(block.step), block.step.shape_before[2]
        if block.cut == "rows" then -- the engine takes those that are wanted
            block.rows = {block.rows[1] - rows[1] + 1, block.rows[2] - rows[1] + 1}
        elseif rows[2] - rows[1] + 1 < count then
            block:replace(mb.crop(block.data, {before = {0, rows[1] - 1, 0},
                after = {0, count - rows[2], 0}}))
        end
    end,
}
