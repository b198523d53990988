--- The rotation axis of projections in memory. `mb.tomo` has these functions.

local mb = require "moonbeam"
local arguments = require "moonbeam.arguments"
local fbp = require "moonbeam.fbp"
local finite = require "moonbeam.finite"
local options_of = require "moonbeam.options"
local pick = require "moonbeam.pick"

local FILTER_OPTIONS = fbp.FILTER_OPTIONS

local center = {}

-- How far from a registered pair's centre trial slices look, in pixels: a pair that misses half a turn by a step or two is
-- off by no more.
center.PAIR_RANGE = 3
-- The least part of the width that both projections of a pair must see.
center.MIN_OVERLAP = 0.3
local FINEST_STEP = 0.5 -- px; sub-pixel figures come from a parabola

local function prefix_sums(values)
    local sums, sum = {[0] = 0}, 0
    for i, value in ipairs(values) do
        sum = sum + value
        sums[i] = sum
    end
    return sums
end

-- Vertex of the parabola through three equally spaced values, as an offset in (-0.5, 0.5) from the middle one.
local function parabola_offset(left, middle, right)
    local curvature = left - 2 * middle + right
    if curvature <= 0 then
        return 0
    end
    return math.max(-0.5, math.min(0.5, 0.5 * (left - right) / curvature))
end

--- Rotation centre from a pair of projections half a turn apart.
--
-- `first` and `opposite` are line integrals (row, column). The object seen from behind is mirrored about the axis, so the
-- axis c minimises the mean squared difference of first(x) and opposite(2c - x) over the columns where both exist. Every
-- candidate is evaluated at once: sum of first(x) opposite(m - x) is a convolution, done by FFT; the sums of squares over
-- the overlap come from running sums. The minimum is refined by a parabola. `options.min_overlap` (default 0.3) is the
-- least part of the width that must overlap. Returns the 0-based centre, the relative residual there (0: perfect), and two
-- numbers for every row (nil in a dry run): how well the two match there (1: mirror images; around 0: noise), and the sum of
-- their products.
function center.find_center_pair(first, opposite, options)
    options = options_of(options, "tomo.find_center_pair", {"min_overlap"})
    arguments.array(first, "tomo.find_center_pair", "first", 2, 2, "a projection (row, column)")
    arguments.array(opposite, "tomo.find_center_pair", "opposite", 2, 2, "a projection (row, column)")
    arguments.number(options.min_overlap, "tomo.find_center_pair", "min_overlap", 0, 1)
    local rows, width = first.shape[1], first.shape[2]
    if width < 2 then
        mb.raise("shape", "one column has no axis to be found; give at least 2", {op = "tomo.find_center_pair", arg = "first"})
    elseif opposite.shape[1] ~= rows or opposite.shape[2] ~= width then
        mb.raise("shape", ("first is %d x %d, opposite %d x %d"):format(rows, width, opposite.shape[1],
            opposite.shape[2]), {op = "tomo.find_center_pair", arg = "opposite"})
    end
    local size = mb.fft.good_size(2 * width, {device = first.device})
    local function spectrum(image)
        local padded <close> = mb.pad(image, {after = {0, size - width}})
        return mb.rfft(padded)
    end
    local a <close> = spectrum(first)
    local b <close> = spectrum(opposite)
    mb.binary(a, "mul", {b = b, out = a})
    local rows_convolved <close> = mb.irfft(a, {n = size, consume = true})
    local convolved <close> = mb.reduce(rows_convolved, "sum", {axis = 1})
    local function column_squares(image)
        local squares <close> = mb.unary(image, "square")
        local sums <close> = mb.reduce(squares, "sum", {axis = 1})
        return prefix_sums(mb.bound({}, sums.to_table, sums))
    end
    local function row_squares(image)
        local squares <close> = mb.unary(image, "square")
        local sums <close> = mb.reduce(squares, "sum", {axis = 2})
        return mb.bound({}, sums.to_table, sums)
    end
    local cross, qa, qb = mb.bound({}, convolved.to_table, convolved), column_squares(first), column_squares(opposite)
    local ra, rb = row_squares(first), row_squares(opposite)
    if first.device.dry then
        return (width - 1) / 2, 0 -- there are no values to find it in; the work is the same wherever it is
    end
    local least = math.max(2, math.floor((options.min_overlap or center.MIN_OVERLAP) * width))
    local cost, best = {}, nil
    for m = 0, 2 * width - 2 do -- m = 2c; the overlap is the columns low .. high, 0-based
        local low, high = math.max(0, m - width + 1), math.min(width - 1, m)
        local overlap = high - low + 1
        if overlap >= least then
            local energy = qa[high + 1] - qa[low] + qb[m - low + 1] - qb[m - high]
            cost[m] = energy > 0 and (energy - 2 * cross[m + 1]) / energy or 1
            if not best or cost[m] < cost[best] then
                best = m
            end
        end
    end
    if cost[best] ~= cost[best] then
        local bad = false
        for _, squares in ipairs(ra) do
            bad = bad or squares ~= squares or squares == math.huge
        end
        finite.fail(bad and first or opposite, "tomo.find_center_pair", bad and "first" or "opposite")
    end
    local offset = 0
    if cost[best - 1] and cost[best + 1] then
        offset = parabola_offset(cost[best - 1], cost[best], cost[best + 1])
    end
    local at_best <close> = rows_convolved:view(mb.all, best + 1)
    local match, common = {}, at_best:to_table()
    for i, product in ipairs(common) do
        match[i] = ra[i] + rb[i] > 0 and 2 * product / (ra[i] + rb[i]) or 0
    end
    return (best + offset) / 2, math.max(0, cost[best]), match, common
end

--- What a good centre makes small. Each takes a slice (ny, nx) and returns a number.
center.metrics = {
    -- Total of the negative values: a wrong centre breeds streaks that dip below zero.
    negativity = function(slice)
        local negative <close> = mb.binary(slice, "min", {scalar = 0})
        return -negative:sum()
    end,
    -- Minus the sum of squares: a right centre piles contrast up. Needs an object that fits the field of view.
    sharpness = function(slice)
        local squares <close> = mb.unary(slice, "square")
        return -squares:sum()
    end,
}

--- Rotation centre by trial reconstruction: the candidate whose slice minimises a metric.
--
-- `sino` (angles, columns) of line integrals. Options: `guess` (default the middle), `range` (px either side, default a
-- quarter of the width), `metric` ("negativity", "sharpness" or a function), and the options
-- of `ramp_filter`. The search goes from coarse to fine, a grid of steps that shrinks fourfold around the best candidate, and
-- ends with a parabola fitted to the metric at half-pixel steps. How many slices it tries does not depend on the data, so a
-- dry run takes the same steps (and returns the guess).
-- Returns the 0-based centre.
function center.find_center_metric(sino, angles, options)
    options = options_of(options, "tomo.find_center_metric", {"guess", "range", "metric", "accuracy"}, FILTER_OPTIONS)
    arguments.array(sino, "tomo.find_center_metric", "sino", 2, 2, "a sinogram (angle, column)")
    arguments.angles(angles, "tomo.find_center_metric", "angles", sino.shape[1])
    local width = sino.shape[2]
    arguments.number(options.guess, "tomo.find_center_metric", "guess", -1, width)
    arguments.number(options.range, "tomo.find_center_metric", "range", 0, width)
    fbp.check_pad_width(options.pad_width, width, "tomo.find_center_metric")
    local metric = options.metric or "negativity"
    if type(metric) ~= "function" then
        metric = center.metrics[metric]
            or mb.raise("argument", ("unknown metric \"%s\"; there are negativity and sharpness, or give a function"):format(
                tostring(metric)), {op = "tomo.find_center_metric", arg = "metric"})
    end
    local column = options.guess or (width - 1) / 2
    local reach = options.range or width / 4
    -- Judge only the disc that every candidate sees from every angle; outside it the metric follows the field of view.
    local seen = math.min(column - reach, width - 1 - column - reach)
    local circle = math.max(0.3, math.min(0.95, 2 * seen / width))
    local filtered <close> = mb.ramp_filter(sino, pick(options, FILTER_OPTIONS))
    local function cost(candidate)
        local slice <close> = mb.backproject(filtered, angles, {center = candidate, circle = circle, accuracy = options.accuracy})
        local plane <close> = slice:reshape(slice.shape[slice.rank - 1], slice.shape[slice.rank])
        local value = mb.bound(0, metric, plane)
        if value ~= value then
            finite.fail(sino, "tomo.find_center_metric", "the sinogram")
        end
        return type(value) == "number" and value or mb.raise("argument", ("metric gave a %s; it must return a number"):format(
            type(value)), {op = "tomo.find_center_metric", arg = "metric"})
    end
    local step = math.max(math.min(reach / 8, 4), FINEST_STEP)
    while true do
        local best, best_cost = column, cost(column)
        local steps = math.floor(reach / step)
        for k = -steps, steps do
            local candidate = column + k * step
            if k ~= 0 then
                candidate = math.max(0, math.min(width - 1, candidate)) -- beyond the edge: the edge once more
                local value = cost(candidate)
                if value < best_cost then
                    best, best_cost = candidate, value
                end
            end
        end
        column = best
        if step <= FINEST_STEP then
            break
        end
        reach, step = step, math.max(step / 4, FINEST_STEP)
    end
    -- Least squares parabola through five candidates: noise moves single values, hardly the vertex.
    local curvature, slope = 0, 0
    for k = -2, 2 do
        local value = cost(column + k * FINEST_STEP)
        curvature = curvature + (k * k - 2) * value / 14
        slope = slope + k * value / 10
    end
    if curvature <= 0 then
        return column
    end
    return column + FINEST_STEP * math.max(-1, math.min(1, -slope / (2 * curvature)))
end

--- Rotation centre of a set of projections: registration of the pair that is closest to half a turn apart, then a search
-- of a few pixels around it.
--
-- `projections` (angle, row, column) of line integrals, `angles` in radians. Options: `method` "auto" (both), "pair" or
-- "metric", `row` (1-based row for the metric, default the middle), and those of the two functions above.
-- Returns the 0-based centre and a table {pair =, residual =, metric =, angles = {i, j}} that says how it came about.
function center.find_center(projections, angles, options)
    options = options_of(options, "tomo.find_center", {"method", "row", "min_overlap", "guess", "range", "metric", "accuracy"},
        FILTER_OPTIONS)
    arguments.array(projections, "tomo.find_center", "projections", 3, 3, "projections (angle, row, column)")
    arguments.angles(angles, "tomo.find_center", "angles", projections.shape[1])
    arguments.name(options.method, "tomo.find_center", "method", {"auto", "pair", "metric"})
    arguments.count(options.row, "tomo.find_center", "row", 1, projections.shape[2])
    local method = options.method or "auto"
    local details = {}
    if method ~= "metric" then
        local first, other, miss = center.opposite_pair(angles)
        if miss < math.rad(5) then
            local a <close> = projections:view(first, mb.all, mb.all)
            local b <close> = projections:view(other, mb.all, mb.all)
            details.pair, details.residual = center.find_center_pair(a, b, {min_overlap = options.min_overlap})
            details.angles = {first, other}
        elseif method == "pair" then
            mb.raise("argument", ("no two projections are half a turn apart (closest: %.1f degrees off); "
                .. "use method = \"metric\""):format(math.deg(miss)), {op = "tomo.find_center", arg = "angles"})
        end
        if method == "pair" then
            return details.pair, details
        end
    end
    local row = options.row or (projections.shape[2] + 1) // 2
    local view <close> = projections:view(mb.all, row, mb.all)
    local sino <close> = view:copy()
    local search = pick(options, FILTER_OPTIONS)
    search.metric, search.accuracy = options.metric, options.accuracy
    search.guess = options.guess or details.pair
    search.range = options.range or (details.pair and center.PAIR_RANGE) or nil
    details.metric = center.find_center_metric(sino, angles, search)
    return details.metric, details
end

--- The two projections whose angles differ by half a turn most exactly: indices and by how much they miss it (rad).
-- Ties go to the pair that starts first.
function center.opposite_pair(angles)
    arguments.angles(angles, "tomo.opposite_pair", "angles")
    local order = {}
    for i = 1, #angles do
        order[i] = i
    end
    table.sort(order, function(i, j)
        if angles[i] ~= angles[j] then
            return angles[i] < angles[j]
        end
        return i < j
    end)
    local best, best_other, best_miss = 1, 1, math.huge
    local j = 1
    for _, i in ipairs(order) do -- both indices only move forward
        while j < #order and angles[order[j]] - angles[i] < math.pi do
            j = j + 1
        end
        for _, k in ipairs {j - 1, j} do
            local other = order[k]
            local miss = other and math.abs(angles[other] - angles[i] - math.pi) or math.huge
            if miss < best_miss - 1e-12 then
                best, best_other, best_miss = i, other, miss
            end
        end
    end
    return best, best_other, best_miss
end

return center
