--- By how much two images overlap, and the rotation axis near an edge of the detector from it.

local mb = require "moonbeam"
local axis_curve = require "moonbeam.tomo.axis.axis_curve"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"

local axis_overlap = {}

local LEAST_WINDOW = 6
local SIGMA = {2, 2}
-- The correlation of the best windows: less is chance.
local LEAST_CORRELATION = 0.5
-- A second valley as low as this many times the first is another place. The metric of the first
-- one is 0 without noise, so a part of the highest counts as well.
local AMBIGUOUS, AMBIGUOUS_PART = 1.5, 0.01

axis_overlap.options = declared.options(
    {"window", "count", "columns that are compared: as wide as the overlap, at most", unit = "px",
        min = LEAST_WINDOW, default = 10},
    {"side", "choice", "the side of the first image that the second one overlaps; auto: the one "
        .. "with the sharper valley", choices = {"auto", "left", "right"}, default = "auto"},
    {"denoise", "boolean", "smooth both by a Gaussian of 2 pixels before", default = true},
    {"normalize", "boolean", "scale rows to equal mean magnitudes", default = false},
    {"blend", "boolean", "compare both with their blend, too", default = false})

-- Where the lowest value is and how sharp: the curvature of the parabola through five values around
-- it, in parts of the lowest, and the vertex of that through three. `at`: of the value there.
local function valley_of(values, at)
    local lowest = at or axis_curve.lowest(values)
    local i = math.max(3, math.min(#values - 2, lowest))
    local curvature = 0
    for k = -2, 2 do
        curvature = curvature + (k * k - 2) * values[i + k] / 14
    end
    local left, middle, right = values[i - 1], values[i], values[i + 1]
    local bend = left - 2 * middle + right
    local offset = bend ~= 0 and 0.5 * (left - right) / bend or 0
    curvature = curvature / (values[lowest] > 0 and values[lowest] or 1)
    return i - 1 + (math.abs(offset) <= 1 and offset or 0), math.abs(curvature), lowest
end

local function verdict_of(values, lowest)
    local highest = 0
    for _, value in ipairs(values) do
        highest = math.max(highest, value)
    end
    local other = axis_curve.second_of(values, lowest)
    if values[lowest] > 1 - LEAST_CORRELATION then
        return "flat"
    elseif lowest <= 2 or lowest >= #values - 1 then
        return "edge"
    elseif other and values[other] <= AMBIGUOUS * values[lowest] + AMBIGUOUS_PART * highest then
        return "ambiguous", other
    end
    return "found"
end

-- The overlap for the middle of a window in the first image, and the axis of it.
local function overlap_of(position, side, window, width)
    return (side == "right" and width - position or position) + window // 2
end

local function column_of(overlap, side, width)
    return side == "right" and width - overlap / 2 - 0.5 or overlap / 2 - 0.5
end

-- One side: {overlap, position, curvature, verdict, values}.
local function search_side(first, second, side, window, options, op)
    local width = first.shape[2]
    local metric <close> = mb.overlap_metric(first, second, {window = window, side = side,
        mirror = options.mirror, normalize = options.normalize, blend = options.blend})
    local values = mb.bound({}, metric.to_table, metric)
    if #values == 0 then -- a dry run
        for i = 1, width - window + 1 do
            values[i] = 1
        end
    end
    local flat = true
    for i, value in ipairs(values) do
        flat = flat and value ~= value
        values[i] = value == value and value or 2 -- a window without contrast matches nothing
    end
    if flat then
        local norm <close> = mb.reduce(second, "norm")
        local size = mb.bound(0, norm.item, norm)
        if size ~= size or size == math.huge then
            finite.fail(second, op, "second")
        end
    end
    local place, curvature, lowest = valley_of(values)
    local verdict, other = verdict_of(values, lowest)
    local found = {values = values, curvature = curvature, position = place + window // 2,
        side = side, verdict = flat and "flat" or verdict, window = window}
    local function column_at(value) -- of the axis
        return column_of(overlap_of(value - 1 + window // 2, side, window, width), side, width)
    end
    local choice = found.verdict == "ambiguous" and options.stated
        and options.stated.choice(column_at(lowest), column_at(other), 0.5)
    if choice == 1 or choice == 2 and other > 2 and other < #values - 1 then
        found.verdict, found.as_stated, found.other = "found", true, column_at(other)
        if choice == 2 then
            found.position = valley_of(values, other) + window // 2
            found.other = column_at(lowest)
        end
    end
    found.overlap = overlap_of(found.position, side, window, width)
    return found
end

-- Both sides, or the one that is asked for. `mirror`: the second image is mirrored.
local function search(first, second, options, op)
    local width = math.min(first.shape[2], second.shape[2])
    if first.shape[1] ~= second.shape[1] then
        fail("shape", op, "second", "second has %d rows and first has %d; give images of as many "
            .. "rows", second.shape[1], first.shape[1])
    elseif width < 2 * LEAST_WINDOW + 4 then
        fail("shape", op, "first", "images of %d columns are too narrow to be laid over each "
            .. "other; give at least %d", width, 2 * LEAST_WINDOW + 4)
    end
    local window = math.max(LEAST_WINDOW, math.min(options.window, width // 2 - 1)) // 2 * 2
    local a <close> = options.denoise and mb.gaussian_filter(first, SIGMA, {mode = "symmetric"})
        or first:view()
    local b <close> = options.denoise and mb.gaussian_filter(second, SIGMA, {mode = "symmetric"})
        or second:view()
    local best
    for _, side in ipairs {"right", "left"} do
        if options.side == "auto" or options.side == side then
            local found = search_side(a, b, side, window, options, op)
            best = (not best or found.curvature >= best.curvature) and found or best
        end
    end
    return best
end

--- By how many columns two images overlap, and on which side of the first.
--
-- A window at the end of the second image slides over the first one; the metric is 1 - correlation
-- (`overlap_metric`). The place is where it is least, to a part of a column by a parabola.
-- Returns the overlap in columns, the side ("left" or "right"), and a table: position (of the
-- middle of the window in the first image), verdict ("found"; "flat": the images have little in
-- common; "edge": at an end of the search; "ambiguous": another place is nearly as good), metric
-- (of windows from each column on), curvature.
-- Errors: shape, argument (values that are not finite), budget.
-- Reference: N. T. Vo et al., Opt. Express 29 (2021) 17849.
axis_overlap.find_overlap = declared("tomo.find_overlap", {
    {"first", "array", "image or sinogram", rank = {2, 2}},
    {"second", "array", "image or sinogram of as many rows", rank = {2, 2}},
    options = axis_overlap.options,
}, function(first, second, options)
    local found = search(first, second, options, "tomo.find_overlap")
    return found.overlap, found.side, {position = found.position, verdict = found.verdict,
        metric = found.values, curvature = found.curvature}
end)

--- The column, and {verdict, overlap, side, position, columns, metric, as_stated and other (of two
-- columns that are alike it is the one that options.stated says, axis_stated.lua)}, of a sinogram
-- over a whole turn.
function axis_overlap.search(sino, options, op)
    local height, width = sino.shape[1], sino.shape[2]
    local half = height // 2 + 1
    if half > height then
        fail("shape", op, "sino", "one angle is not a whole turn")
    end
    local first <close> = sino:view({1, half}, mb.all)
    local second <close> = sino:view({height - half + 1, height}, mb.all)
    local own = setmetatable({mirror = true}, {__index = options})
    local found = search(first, second, own, op)
    local columns = {}
    for i = 1, #found.values do
        local overlap = overlap_of(i - 1 + found.window // 2, found.side, found.window, width)
        columns[i] = column_of(overlap, found.side, width)
    end
    local column = column_of(found.overlap, found.side, width)
    return column, {verdict = found.verdict, overlap = found.overlap, side = found.side,
        position = found.position, columns = columns, metric = found.values,
        as_stated = found.as_stated, other = found.other}
end

--- Rotation axis near an edge of the detector, from a sinogram over a whole turn.
--
-- The second half of the turn, mirrored, continues the first half on the side of the axis. The
-- overlap of the two, in columns, says where the axis is: overlap / 2 - 0.5 from that edge.
-- Angles must be equally spaced, in order, and cover a whole turn.
-- Returns the 0-based column, and a table: verdict (as in `tomo.find_overlap`), overlap (columns),
-- side ("left" or "right"), position, columns and metric.
-- Errors: shape, argument (values that are not finite), budget.
-- Reference: N. T. Vo et al., Opt. Express 29 (2021) 17849.
axis_overlap.find = declared("tomo.find_center_overlap", {
    {"sino", "array", "line integrals or transmissions (angle, column) over a whole turn",
        rank = {2, 2}},
    options = axis_overlap.options,
}, function(sino, options)
    return axis_overlap.search(sino, options, "tomo.find_center_overlap")
end)

return axis_overlap
