--- The geometry of data in a chain: where in the scan they come from. A geometry is never changed;
-- `with` makes a changed copy.
--
-- Fields: angles (rad) and frames (the scan's projection numbers), one of each per projection;
-- first_row, first_column: the scan's row and column, from 1, of the first element; row_step,
-- column_step: detector pixels per element, row_step negative where the rows go up the detector
-- (step flip); rows, cols, projections: how many the scan has; turned, sense: an angle is sense (1
-- or -1) times the stored one plus turned;
-- first_y, first_x: the pixel of the whole slice, from 1, of the first element; slice: {ny, nx} of
-- the whole slice, nil if the data tell it, false if nothing does before the axis is found;
-- pixel_size (m) of an element, or nil; row_size (m) of a row, or nil; turn: "half" or "whole";
-- half_acquisition, and never_half (the user or the scan says that it is none); axis, axis_given:
-- the column of the axis about which step stitch has joined frames, and the one that it was given,
-- or nil; lean: the slope of the axis in columns per row; vertical_shifts: by how many rows of the
-- scan each projection of the scan was shifted, or nil; shifted: for each step that did so
-- {shifts, low, high}, the first and last row that it had, or nil; used: the projections that are
-- in averaged or joined ones since, or nil; timeline, currents, exposures: those of the scan
-- (scan/timeline.lua), or nil; says, stated: what its file states (scan/statements).

local axis_pairs = require "moonbeam.tomo.axis_pairs"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local geometry = {}

--- The geometry of a scan's projections as they are stored.
function geometry.of_scan(scan)
    local frames = {}
    for i = 1, #scan.angles do
        frames[i] = i
    end
    return {angles = scan.angles, frames = frames, first_row = 1, first_column = 1, row_step = 1,
        column_step = 1, rows = scan.rows, cols = scan.cols, projections = #frames, first_y = 1,
        first_x = 1, turned = 0, sense = 1, pixel_size = scan.pixel_size,
        row_size = scan.pixel_size, half_acquisition = false, lean = 0,
        timeline = scan.timeline, currents = scan.currents, exposures = scan.exposures,
        says = scan.says, stated = scan.stated,
        turn = axis_pairs.is_turn(scan.angles) and "whole" or "half"}
end

--- A copy with these fields changed; false removes a field.
function geometry.with(old, changes)
    return tables.merged(old, changes)
end

--- Raises an error if an earlier step finds the axis: for steps that the search must know about.
function geometry.before_center(steps)
    for _, step in ipairs(steps) do
        if step.def.gives_value == "center" then
            fail("argument", nil, nil, "the search for the axis must know about it; move it before "
                .. "step %s", step.label)
        end
    end
end

--- The element, 0-based, of a column of the scan, 0-based.
function geometry.element(g, column)
    return (column - (g.first_column - 1) - (g.column_step - 1) / 2) / g.column_step
end

--- The column of the scan, 0-based, of an element, 0-based.
function geometry.column(g, element)
    return element * g.column_step + (g.column_step - 1) / 2 + g.first_column - 1
end

-- 1 where rows go down the detector, else -1.
local function sign_of(g)
    return g.row_step < 0 and -1 or 1
end

--- The row of the data, from 1, of a row of the scan, from 1.
function geometry.row_element(g, row)
    return (row - g.first_row - (g.row_step - sign_of(g)) / 2) / g.row_step + 1
end

--- The row of the scan, from 1, of a row of the data, from 1.
function geometry.row(g, element)
    return g.first_row + (element - 1) * g.row_step + (g.row_step - sign_of(g)) / 2
end

--- The rows {first, last} of the scan, from 1, that rows first to last of the data are made of.
function geometry.rows_of(g, first, last)
    local one = g.first_row + (first - 1) * g.row_step
    local other = g.first_row + last * g.row_step - sign_of(g)
    return {math.min(one, other), math.max(one, other)}
end

--- The rows {first, last} of the data, from 1, that hold rows first to last of the scan. `count`:
-- how many rows the data have. Returns nil and the rows of the scan that there are if these are
-- outside.
function geometry.row_elements(g, rows, count)
    local low, high = table.unpack(geometry.rows_of(g, 1, count))
    if rows[1] < low or rows[2] > high or rows[1] > rows[2] then
        return nil, {low, high}
    end
    local one = (rows[1] - g.first_row) // g.row_step + 1
    local other = (rows[2] - g.first_row) // g.row_step + 1
    return {math.tointeger(math.min(one, other)), math.tointeger(math.max(one, other))}
end

--- What a result with these rows calls its first one, a row of the data (its row of the detector;
-- of binned ones, counted in these), and whether the next one is above it on the detector.
function geometry.result_row(g, first)
    local sign, size = sign_of(g), math.abs(g.row_step)
    local row = sign > 0 and (g.first_row - 1) // size + first or g.first_row // size - first + 1
    return math.max(1, row), sign < 0
end

-- Rows by which a row may be beyond the last one that there is: rounding of shifts.
local ROUNDING <const> = 1e-6

--- How many projections show each row, first to last of the data, by rows from outside the
-- detector, which step vertical_shift has counted as open beam: a list, and the number of
-- projections. nil where there are none.
function geometry.outside(g, first, last)
    local counts, any, used = {}, false, g.used or g.frames
    for row = first, g.shifted and last or first - 1 do
        local from, to = table.unpack(geometry.rows_of(g, row, row))
        local count = 0
        for _, frame in ipairs(used) do
            local out = false
            for _, step in ipairs(g.shifted) do
                local shift = step.shifts[frame]
                out = out or from + shift < step.low - ROUNDING or to + shift > step.high + ROUNDING
            end
            count = count + (out and 1 or 0)
        end
        counts[#counts + 1], any = count, any or count > 0
    end
    if any then
        return counts, #used
    end
end

--- The same in words; nil where there are none.
function geometry.outside_text(g, first, last)
    local counts, projections = geometry.outside(g, first, last)
    local rows, most = 0, 0
    for _, count in ipairs(counts or {}) do
        rows, most = rows + (count > 0 and 1 or 0), math.max(most, count)
    end
    return counts and ("%d of %d row%s use%s rows from outside the detector in up to %d of %d "
        .. "projections"):format(rows, #counts, #counts == 1 and "" or "s", rows == 1 and "s" or "",
        most, projections)
end

--- What reports call rows {first, last} of a section: those of the detector, or frames as they are.
function geometry.told_rows(section, first, last)
    if section.cut ~= "rows" then
        return first, last
    end
    local rows = geometry.rows_of(section.geometry, first, last)
    return math.ceil(rows[1]), math.floor(rows[2])
end

--- The geometry of these data with their `count` rows in reverse order.
function geometry.flipped_rows(g, count)
    return geometry.with(g, {first_row = g.first_row + count * g.row_step - sign_of(g),
        row_step = -g.row_step})
end

--- The geometry with half a turn added to all angles; taken off again the second time.
function geometry.turned(g)
    local by = g.turned > 0 and -math.pi or math.pi
    return geometry.with(g, {turned = g.turned + by, angles = tables.mapped(g.angles,
        function(angle) return angle + by end)})
end

--- The geometry with all angles negated.
function geometry.reversed(g)
    return geometry.with(g, {turned = -g.turned, sense = -g.sense, angles = tables.mapped(g.angles,
        function(angle) return -angle end)})
end

--- The angles as the scan has them.
function geometry.stored_angles(g)
    if g.turned == 0 and g.sense == 1 then
        return g.angles
    end
    return tables.mapped(g.angles, function(angle)
        return (angle - g.turned) * g.sense + 0 -- no -0
    end)
end

--- The least and the greatest column, 0-based, of an axis: of the detector, or of data with so many
-- columns that reach beyond it.
function geometry.axis_range(g, cols)
    return math.min(0, g.first_column - 1),
        math.max(g.cols - 1, geometry.column(g, cols - 1))
end

-- Columns by which an axis that is given twice may differ.
local SAME_AXIS <const> = 0.01

--- Raises an error if an earlier step has joined frames about another axis than this column.
function geometry.check_axis(g, name, column)
    if g.axis and math.abs(column - g.axis) > SAME_AXIS
        and math.abs(column - (g.axis_given or g.axis)) > SAME_AXIS then
        fail("argument", nil, name, "%s is %g; step stitch has joined the frames about column %g: "
            .. "leave it out, or give step stitch center = %g", name, column, g.axis, column)
    end
end

--- What to do about an axis at this column, which is beyond the detector; "" where nothing helps.
function geometry.beyond_text(g, column)
    local overlap = 2 * math.min(column, g.cols - 1 - column) + 1
    if g.turn ~= "whole" or overlap < -g.cols or g.axis then
        return ""
    end
    return ("; step stitch joins a whole turn about an axis beyond the detector: {\"stitch\", "
        .. "center = %g}%s"):format(column, g.half_acquisition and " instead of half_acquisition"
        or "")
end

--- The elements {first, last}, from 1, of a range of the scan's rows or columns. The data begin at
-- `start`, have `step` pixels per element (negative: they go back from there) and `count` elements;
-- `total` is that of the scan. Returns nil and the reason if the range is outside the data or cuts
-- an element.
function geometry.elements(range, start, step, count, total)
    local first = range[1] < 0 and range[1] + total + 1 or range[1]
    local last = range[2] < 0 and range[2] + total + 1 or range[2]
    local size = math.abs(step)
    local low = step > 0 and start or start - count * size + 1
    local high = low + count * size - 1
    local from = step > 0 and first - start or start - last -- pixels from the first element
    local to = step > 0 and last + 1 - start or start - first + 1
    if first > last then
        return nil, ("%d to %d holds nothing"):format(first, last)
    elseif first < low or last > high then
        return nil, ("%d to %d; there are %g to %g"):format(first, last, low, high)
    elseif from % size ~= 0 or to % size ~= 0 then
        return nil, ("%d to %d cuts elements of %g pixels that begin at %g"):format(first, last,
            size, start)
    end
    return {from // size + 1, to // size}
end

return geometry
