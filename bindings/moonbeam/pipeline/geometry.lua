--- The geometry of data in a chain: where in the scan they come from. A geometry is never changed;
-- `with` makes a changed copy.
--
-- Fields: angles (rad) and frames (the scan's projection numbers), one of each per projection;
-- first_row, first_column: the scan's row and column, from 1, of the first element; row_step,
-- column_step: detector pixels per element; rows, cols, projections: how many the scan has;
-- first_y, first_x: the pixel of the whole slice, from 1, of the first element; slice: {ny, nx} of
-- the whole slice, nil if the data tell it, false if nothing does before the axis is found;
-- pixel_size (m) of an element, or nil; row_size (m) of a row, or nil; turn: "half" or "whole";
-- half_acquisition, and never_half (the user says that it is none); lean: the slope of the axis in
-- columns per row; vertical_shifts: by how many rows of the scan each projection of the scan was
-- shifted, or nil; timeline, currents: those of the scan (scan/timeline.lua), or nil.

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
        first_x = 1, pixel_size = scan.pixel_size,
        row_size = scan.pixel_size, half_acquisition = false, lean = 0,
        timeline = scan.timeline, currents = scan.currents,
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

--- The row of the data, from 1, of a row of the scan, from 1.
function geometry.row_element(g, row)
    return (row - g.first_row - (g.row_step - 1) / 2) / g.row_step + 1
end

--- The least and the greatest column, 0-based, of an axis: of the detector, or of data with so many
-- columns that reach beyond it.
function geometry.axis_range(g, cols)
    return math.min(0, g.first_column - 1),
        math.max(g.cols - 1, geometry.column(g, cols - 1))
end

--- The elements {first, last}, from 1, of a range of the scan's rows or columns. The data begin at
-- `start`, have `step` pixels per element and `count` elements; `total` is that of the scan.
-- Returns nil and the reason if the range is outside the data or cuts an element.
function geometry.elements(range, start, step, count, total)
    local first = range[1] < 0 and range[1] + total + 1 or range[1]
    local last = range[2] < 0 and range[2] + total + 1 or range[2]
    local low, high = start, start + count * step - 1
    if first > last then
        return nil, ("%d to %d holds nothing"):format(first, last)
    elseif first < low or last > high then
        return nil, ("%d to %d; there are %g to %g"):format(first, last, low, high)
    elseif (first - start) % step ~= 0 or (last + 1 - start) % step ~= 0 then
        return nil, ("%d to %d cuts elements of %g pixels that begin at %g"):format(first, last,
            step, start)
    end
    return {(first - start) // step + 1, (last + 1 - start) // step}
end

return geometry
