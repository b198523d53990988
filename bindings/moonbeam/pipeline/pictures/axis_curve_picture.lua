--- A picture of the search for the axis: the metric over the trial columns.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"

local axis_curve_picture = {}

local ROWS <const>, COLUMNS <const> = 240, 640
local MARGIN <const> = 8 -- rows above and below the curve
local WHITE, BLACK, RED, BLUE = "\255\255\255", "\0\0\0", "\208\32\32", "\32\80\208"

-- The curve of a search as step center returns it: columns and values; nil without one.
local function curve_of(verdict)
    if verdict.metric and #verdict.metric > 1 then
        return verdict.columns, verdict.metric
    elseif verdict.curve then
        local columns = {}
        for i = 1, #verdict.curve.values do
            columns[i] = verdict.curve.first + (i - 1) * verdict.curve.step
        end
        return columns, verdict.curve.values
    end
end

--- Has a search, as step center returns it, a curve to show?
function axis_curve_picture.has_curve(verdict)
    return mb.device.dry() or verdict and curve_of(verdict) ~= nil
end

-- Rows of pixels, {column -> color} each.
local function drawn(columns, values, marks)
    local low, high = math.huge, -math.huge
    for _, value in ipairs(values) do
        low, high = math.min(low, value), math.max(high, value)
    end
    local first, last, rows = columns[1], columns[#columns], {}
    for y = 1, ROWS do
        rows[y] = {}
    end
    local function x_of(column)
        local part = (column - first) / math.max(last - first, 1e-9)
        return 1 + math.floor(math.max(0, math.min(1, part)) * (COLUMNS - 1) + 0.5)
    end
    local function y_of(value)
        local part = high > low and (value - low) / (high - low) or 0
        return ROWS - MARGIN - math.floor(part * (ROWS - 2 * MARGIN - 1) + 0.5)
    end
    for _, mark in ipairs(marks) do
        for y = 1, ROWS do
            rows[y][x_of(mark[1])] = mark[2]
        end
    end
    for i = 1, #values - 1 do
        local x0, x1, y0, y1 = x_of(columns[i]), x_of(columns[i + 1]), y_of(values[i]),
            y_of(values[i + 1])
        local steps = math.max(1, math.abs(x1 - x0), math.abs(y1 - y0))
        for k = 0, steps do
            local x = math.floor(x0 + (x1 - x0) * k / steps + 0.5)
            rows[math.floor(y0 + (y1 - y0) * k / steps + 0.5)][x] = BLACK
        end
    end
    return rows, low, high
end

--- Writes the metric of a search as a PNG: upwards over the trial columns, with the axis in red and
-- the second best column, if the search names one, in blue. `verdict` is what step center returns
-- about its search. Options: overwrite.
function axis_curve_picture.save(path, verdict, options)
    if mb.device.dry() then -- which has no curve; what drawing one takes is the same
        mb.empty({ROWS, COLUMNS, 3}, {dtype = "u8", device = "host"}):release()
        return
    end
    local columns, values = curve_of(verdict)
    if not columns then
        fail("argument", "pipeline", "center-picture", "the search for the axis has no curve to "
            .. "show: no projections are opposite")
    end
    local marks = {{verdict.column, RED}}
    if verdict.other then
        table.insert(marks, 1, {verdict.other, BLUE})
    end
    local rows, low, high = drawn(columns, values, marks)
    for y, row in ipairs(rows) do
        for x = 1, COLUMNS do
            row[x] = row[x] or WHITE
        end
        rows[y] = table.concat(row, "", 1, COLUMNS)
    end
    local picture <close> = mb.from_string(table.concat(rows), {ROWS, COLUMNS, 3}, {dtype = "u8",
        device = "host"})
    mb.view.save(path, picture, {overwrite = options and options.overwrite, legend = ("metric of "
        .. "the search for the axis (%.6g to %.6g, upwards) over columns %.2f to %.2f; red: %.2f, "
        .. "the axis%s"):format(low, high, columns[1], columns[#columns], verdict.column,
        verdict.other and ("; blue: %.2f, nearly as good"):format(verdict.other) or "")})
end

return axis_curve_picture
