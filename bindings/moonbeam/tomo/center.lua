--- The rotation axis of projections in memory. `mb.tomo` has these functions.

local mb = require "moonbeam"
local activity = require "moonbeam.internal.command_line.activity"
local arguments = require "moonbeam.internal.arguments"
local fail = require "moonbeam.internal.fail"
local axis_moments = require "moonbeam.tomo.axis_moments"
local axis_pairs = require "moonbeam.tomo.axis_pairs"
local axis_register = require "moonbeam.tomo.axis_register"
local declared = require "moonbeam.internal.declared"
local fbp = require "moonbeam.tomo.fbp"
local finite = require "moonbeam.internal.finite"
local tables = require "moonbeam.internal.tables"

local center = {}

-- How far from a registered pair's axis trial slices look, in pixels.
center.PAIR_RANGE = 3
-- The least part of the width that both projections of a pair must see.
center.MIN_OVERLAP = axis_register.MIN_OVERLAP
-- Registered pair and trial slices that are further apart than this differ: in pixels, and as a
-- part of the width, whichever is more.
center.AGREEMENT = 1
local AGREEMENT_PART = 1 / 500
function center.agreement(width)
    return math.max(center.AGREEMENT, width * AGREEMENT_PART)
end
-- Residual of opposite projections above which noise or motion decides what trial slices look like.
local NOISY = 0.01
-- And above which the projections match so poorly that another way must confirm the column: stripes
-- and zingers match themselves.
center.WEAK = 0.3
-- The same of a column that noise leaves this uncertain, in pixels (one standard deviation).
center.UNSURE = 0.3
-- What noise does not explain of a residual, and above which another way must confirm the column;
-- and by how much more than is measured noise may make.
center.UNEXPLAINED = 0.03
local SUSPECT = 0.01 -- the same, above which any other way must confirm it
local NOISE_FACTOR = 2
-- How closely two ways must agree where the axis is beside a column that shows no sample (px).
center.CLOSE = 0.25
local SIGMAS = 3 -- by which noise may part two registrations
local NOISE_GROUPS = 2 -- of which the noise is measured
local FINEST_STEP = 0.5 -- px; sub-pixel figures come from a parabola

local PAIR_OPTIONS = declared.options(
    {"min_overlap", "number", "the least part of the width that both projections of a pair must "
        .. "see",
        min = 0, max = 1, default = center.MIN_OVERLAP})

--- Rotation axis from a pair of projections half a turn apart.
--
-- Seen from behind, the object is mirrored about the axis. The axis is where the variance of the
-- difference is least (formulas: axis_register.lua).
-- Returns the 0-based column, the relative residual there (0: mirror images; about 1: nothing in
-- common), and a table with more: uncertainty (px), verdict ("found", "ambiguous", "edge", "flat"),
-- curve, match and common (see axis_register.lua).
-- Errors: shape, argument (values that are not finite), budget.
center.find_center_pair = declared("tomo.find_center_pair", {
    {"first", "array", "line integrals (row, column)", rank = {2, 2}},
    {"opposite", "array", "line integrals (row, column), half a turn on", rank = {2, 2}},
    options = PAIR_OPTIONS,
}, function(first, opposite, options)
    local rows, width = first.shape[1], first.shape[2]
    if width < 2 then
        fail("shape", "tomo.find_center_pair", "first",
            "one column has no axis to be found; give at least 2")
    elseif opposite.shape[1] ~= rows or opposite.shape[2] ~= width then
        fail("shape", "tomo.find_center_pair", "opposite", "first is %d x %d, opposite %d x %d; "
            .. "both must have one shape",
            rows, width, opposite.shape[1], opposite.shape[2])
    end
    local register <close> = axis_register.new(rows, width, first.device)
    register:add(first, opposite)
    local found = register:solve(options.min_overlap)
    if not found then
        axis_register.fail(first, opposite, "tomo.find_center_pair")
    end
    return found.column, found.residual, found
end)

--- What a good center makes small. Each takes a slice (ny, nx) and returns a number.
center.metrics = {
    -- Total of the negative values: a wrong center breeds streaks that dip below zero.
    negativity = function(slice)
        local negative <close> = mb.binary(slice, "min", {scalar = 0})
        return -negative:sum()
    end,
    -- Minus the sum of squares: a right center piles contrast up. Needs an object that fits the
    -- field of view.
    sharpness = function(slice)
        local squares <close> = mb.unary(slice, "square")
        return -squares:sum()
    end,
}

--- The metric for trial slices of a scan. Over a whole turn both views of a ray add up where the
-- axis is right: "sharpness". Over half a turn the squares hardly depend on the axis: "negativity".
function center.metric_for(angles)
    return axis_pairs.is_turn(angles) and "sharpness" or "negativity"
end

-- The candidate of the least cost within `reach` of a column. Beyond the detector's edge it takes
-- the edge once more.
local function lowest_of_grid(cost, column, reach, step, width)
    local best, best_cost = column, cost(column)
    local steps = math.floor(reach / step)
    for k = -steps, steps do
        if k ~= 0 then
            local candidate = math.max(0, math.min(width - 1, column + k * step))
            local value = cost(candidate)
            if value < best_cost then
                best, best_cost = candidate, value
            end
        end
    end
    return best
end

-- Vertex of the least squares parabola through five candidates: noise moves single values, hardly
-- the vertex.
local function vertex_of_five(cost, column)
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

local METRIC_OPTIONS = declared.options(
    {"guess", "number", "where the search begins, a 0-based column", unit = "px",
        usual = "the middle"},
    {"range", "number", "how far the search goes to either side", unit = "px",
        usual = "a quarter of the width"},
    {"metric", "any", "negativity, sharpness, or a function of a slice (ny, nx) that returns a "
        .. "number",
        default = "negativity"},
    declared.from("ramp_filter", "filter", "cutoff", "padding", "pad_width"),
    declared.from("backproject", "accuracy"))

--- Rotation center by trial reconstruction: the candidate whose slice minimizes a metric.
--
-- The search goes from coarse to fine, a grid of steps that shrinks fourfold around the best
-- candidate, and ends with a parabola fitted to the metric at half-pixel steps. How many slices it
-- tries does not depend on the data, so a dry run takes the same steps (and returns the guess).
-- Returns the 0-based column, and {edge = whether it is at the end of the range}.
-- Errors: shape, argument (values that are not finite), budget.
center.find_center_metric = declared("tomo.find_center_metric", {
    {"sino", "array", "line integrals (angle, column)", rank = {2, 2}},
    {"angles", "angles", "one per projection", unit = "rad"},
    options = METRIC_OPTIONS,
}, function(sino, angles, options)
    arguments.angles(angles, "tomo.find_center_metric", "angles", sino.shape[1])
    local width = sino.shape[2]
    arguments.number(options.guess, "tomo.find_center_metric", "guess",
        {min = -1, max = width})
    arguments.number(options.range, "tomo.find_center_metric", "range",
        {min = 0, max = width})
    fbp.check_pad_width(options.pad_width, width, "tomo.find_center_metric")
    local metric = options.metric
    if type(metric) ~= "function" then
        metric = center.metrics[metric] or fail("argument", "tomo.find_center_metric", "metric",
            'unknown metric "%s"; there are negativity and sharpness, or give a function',
            tostring(metric))
    end
    local column = options.guess or (width - 1) / 2
    local reach = options.range or width / 4
    -- Judge only the disc that every candidate sees from every angle; outside it the metric follows
    -- the field of view.
    local seen = math.min(column - reach, width - 1 - column - reach)
    local circle = math.max(0.3, math.min(0.95, 2 * seen / width))
    local filtered <close> = mb.ramp_filter(sino,
        declared.part(METRIC_OPTIONS, options, "ramp_filter"))
    local function cost(candidate)
        local slice <close> = mb.backproject(filtered, angles, {center = candidate, circle = circle,
            accuracy = options.accuracy})
        local plane <close> = slice:reshape(slice.shape[slice.rank - 1], slice.shape[slice.rank])
        local value = mb.bound(0, metric, plane)
        if value ~= value then
            finite.fail(sino, "tomo.find_center_metric", "the sinogram")
        end
        return type(value) == "number" and value or fail("argument", "tomo.find_center_metric",
            "metric", "metric gave a %s; it must return a number", type(value))
    end
    local from, to = math.max(0, column - reach), math.min(width - 1, column + reach)
    local step = math.max(math.min(reach / 8, 4), FINEST_STEP)
    while true do
        column = lowest_of_grid(cost, column, reach, step, width)
        if step <= FINEST_STEP then
            break
        end
        reach, step = step, math.max(step / 4, FINEST_STEP)
    end
    local found = vertex_of_five(cost, column)
    return found, {edge = found < from + FINEST_STEP or found > to - FINEST_STEP}
end)

-- The sum of frames (frame, row, column), weighted: one frame (row, column). `consume`: the frames
-- are gone.
local function weighted(frames, weights, consume)
    local list = tables.mapped(weights, function(weight) return {{weight}} end)
    local factors <close> = mb.array(list, {device = frames.device})
    local products = mb.binary(frames, "mul", {b = factors, out = consume and frames or nil})
    local _ <close> = not consume and products or nil
    local sum <close> = mb.reduce(products, "sum", {axis = 1})
    return sum:cast("f32")
end

-- Frames of a block, weighted and added up: one frame (row, column).
local function synthesized(source, block)
    local frames <close> = source.frames(block.first, block.last)
    return weighted(frames, block.weights, true)
end

-- Adds what noise makes of the frame that a block becomes.
local function add_noise(register, source, block)
    local of = axis_pairs.noise_block(source.angles, block)
    if of then
        local frames <close> = source.frames(of.first, of.last)
        local frame <close> = weighted(frames, of.weights)
        local noise <close> = weighted(frames, of.noise, true)
        register:add_noise(frame, noise)
    end
end

local CUT = "the object is larger than the field of view"

-- Why trial slices of a registered scan may mislead, in words; nil where they do not: by streaks of
-- few angles, by rays seen twice beside rays seen once, by noise, by what lies outside the field of
-- view.
local function doubt_of(found, angles, width)
    local turns = axis_pairs.span(angles) / math.pi
    if #angles < width / 4 then
        return "few angles"
    elseif math.abs(turns - math.max(1, math.floor(turns + 0.5))) > 0.05 then
        return "neither half a turn nor a whole one"
    elseif found.residual > NOISY then
        return "noise"
    elseif found.cut then
        return CUT
    end
    return nil
end

-- Registers groups of opposite frames: what axis_register says, and `open`, groups and frames.
local function registered_groups(source, groups, min_overlap)
    local register <close> = axis_register.new(source.rows, source.cols, source.device,
        source.transmission, source.bad)
    local miss = 0
    for i, group in ipairs(groups) do
        activity.at("opposite projections", i, #groups)
        local first <close> = synthesized(source, group.left)
        local opposite <close> = synthesized(source, group.right)
        register:add(first, opposite)
        miss = math.max(miss, group.miss)
        if i <= NOISE_GROUPS then
            add_noise(register, source, group.left)
        end
    end
    local found = register:solve(min_overlap, source.stated)
    if not found then
        for _, group in ipairs(groups) do
            local first <close> = synthesized(source, group.left)
            local opposite <close> = synthesized(source, group.right)
            axis_register.fail(first, opposite, "tomo.find_center_pair")
        end
    end
    found.open = miss * source.cols / 16
    found.groups = #groups
    found.frames = #groups * #groups[1].left.weights
    return found
end

-- Of two registrations the one that is less uncertain, unless only the other one has found
-- anything. Where they have found two columns, that is ambiguous, unless the file says one of them.
local function better(one, two, agreement, stated)
    local first = two.verdict == "flat" or one.verdict ~= "flat"
        and one.uncertainty <= two.uncertainty
    local best, other = first and one or two, first and two or one
    local unsure = SIGMAS * (one.uncertainty + two.uncertainty)
    if one.verdict == "found" and two.verdict == "found"
        and math.abs(one.column - two.column) > agreement + unsure then
        local choice = stated and stated.choice(best.column, other.column)
        if choice == 2 then
            best, other = other, best
        end
        best.verdict, best.as_stated = choice and "found" or "ambiguous", choice and true
        best.other, best.other_residual = other.column, other.residual
    end
    return best
end

--- Registers the groups of opposite frames of a source: {rows, cols, device, angles, frames =
-- function(first, last) that gives them (frame, row, column) as f32, transmission = whether they
-- are that, bad = 0-based columns that do not count, stated = what the file says of the axis
-- (axis/axis_stated.lua)}, in one of the `lists` of axis_pairs.groups:
-- that which tells the column best. Returns what axis_register says; `open`: how far from the
-- column the axis may be, in pixels, because an angle misses half a turn; and `doubt`: why trial
-- slices may mislead, nil where they do not.
function center.register_groups(source, lists, min_overlap)
    local best
    for _, groups in ipairs(lists) do
        local found = registered_groups(source, groups, min_overlap)
        best = best and better(best, found, center.agreement(source.cols), source.stated) or found
    end
    best.doubt = doubt_of(best, source.angles, source.cols)
    return best
end

--- The axis by centers of mass, or nil; what they tell of the object adds to `found.doubt`.
function center.mass(found, sino, angles)
    local mass, _, cut = axis_moments.find(sino, angles)
    if found and cut then
        found.doubt = found.doubt or CUT
    end
    return mass
end

-- What noise does not explain of a residual.
local function unexplained(found)
    return found.noise and found.residual - NOISE_FACTOR * found.noise or 0
end

--- Is the residual of opposite projections larger than the noise of the frames makes it?
function center.is_unexplained(found)
    return unexplained(found) > SUSPECT
end

--- Do opposite projections match so poorly that another way must confirm the column?
function center.is_weak(found)
    return found.residual > center.WEAK or found.uncertainty > center.UNSURE
        or unexplained(found) > center.UNEXPLAINED
end

-- Does another way give the column to a quarter of a pixel?
local function confirmed(column, found, others)
    local trial = not found.doubt and not others.edge and others.slices or nil
    for _, name in ipairs {"mass", "wedge", "trial"} do
        local other = others[name] or name == "trial" and trial
        if other and math.abs(other - column) <= center.CLOSE then
            return true
        end
    end
    return false
end

-- The same as center.decide for opposite projections that match poorly.
local function decide_weak(found, others, agreement)
    local name = others.wedge and "wedge" or others.mass and "mass"
    if not name then
        return found.column, "ambiguous", "weak"
    elseif math.abs(others[name] - found.column) <= agreement then
        return found.column, "found", name
    end
    return others[name], "differ", name
end

-- The same as center.decide, except beside columns that show no sample.
local function decide(found, others, width)
    local agreement = center.agreement(width)
    if not found then
        local verdict = others.mass and "mass" or others.edge and "edge" or "slices"
        return others.mass or others.slices, verdict
    elseif found.verdict ~= "found" then
        return found.column, found.verdict
    elseif center.is_weak(found) then
        return decide_weak(found, others, found.open
            + (center.is_unexplained(found) and center.CLOSE or agreement))
    end
    local name = others.mass and "mass" or not found.doubt and others.slices and "slices" or nil
    local off = name and others[name] - found.column or 0
    if math.abs(off) > found.open + agreement or name == "slices" and others.edge then
        return found.column, "differ", name
    elseif others.wedge and math.abs(others.wedge - found.column) > found.open + agreement then
        return found.column, "differ", "wedge"
    end
    return found.column + math.max(-found.open, math.min(found.open, off)), "found", name
end

--- Weighs the registration of opposite projections (`found`; nil if there are none) against
-- `others`: slices (the axis of trial slices; nil if there are none), edge (at the end of their
-- range), mass (the axis by centers of mass, nil where they do not tell) and wedge (that of the
-- double wedge, nil where it does not tell). `width`: columns of the detector.
--
-- Opposite projections decide. That one is the mirror image of the other about the axis holds
-- for every object, also for one that is larger than the field of view. The others move the axis
-- only within `found.open`, what the registration leaves open. Centers of mass know all angles
-- of an object that is seen whole. Trial slices are judged by their looks, and do not count
-- where it is known that these mislead (`found.doubt`). The double wedge never moves the axis,
-- but is heard where it differs. Where opposite projections match poorly (center.is_weak), the
-- double wedge or centers of mass must confirm them, and are taken where they differ. Returns
-- the axis, a verdict, and the name of the other that was weighed ("weak": none confirms it).
-- `is_near(column)`, if given, tells whether a column is beside one that shows no sample: what does
-- not move looks like an axis there, so that two ways must agree to a quarter of a pixel ("seam":
-- none does).
-- Verdicts: that of the registration ("found", "ambiguous", "edge", "flat"); "differ" if the
-- other is further off than center.AGREEMENT; without a registration "mass", else "slices", or
-- "edge" of their range.
function center.decide(found, others, width, is_near)
    local column, verdict, name = decide(found, others, width)
    local near = is_near and is_near(column)
    if verdict == "found" and (near or center.is_unexplained(found))
        and not confirmed(column, found, others) then
        return column, "ambiguous", near and "seam" or "weak"
    end
    return column, verdict, name
end

-- Registers projections in memory; nil without opposite ones. Also which two are closest to half a
-- turn apart, and by how much they miss it.
local function registered(projections, angles, min_overlap)
    local lists, first, other, miss = axis_pairs.groups(angles, projections.shape[3])
    local found = lists and center.register_groups({rows = projections.shape[2],
        cols = projections.shape[3], angles = angles, device = projections.device,
        frames = function(from, to)
            local view <close> = projections:view({from, to}, mb.all, mb.all)
            return view:copy()
        end}, lists, min_overlap)
    return found, first, other, miss
end

--- Rotation axis of a set of projections: registration of opposite projections, and trial slices.
--
-- Half a turn has opposite projections at its two ends, a whole turn everywhere. Up to 64 pairs of
-- them are registered (axis_pairs.lua), and they decide (center.decide).
-- Returns the 0-based column and a table {verdict =, pair =, residual =, uncertainty =, metric =,
-- angles = {i, j}, curve =} that says how it came about.
-- Errors: argument (method "pair" without opposite projections; values that are not finite),
-- budget.
center.find_center = declared("tomo.find_center", {
    {"projections", "array", "line integrals (angle, row, column)", rank = {3, 3}},
    {"angles", "angles", "one per projection", unit = "rad"},
    options = declared.options(
        {"method", "choice", "pair: register opposite projections; metric: trial slices; auto: "
            .. "both",
            choices = {"auto", "pair", "metric"}, default = "auto"},
        {"row", "count", "the row of the trial slices", min = 1, usual = "the middle"},
        {"metric", "any", "as in tomo.find_center_metric", usual = "what suits the angles"},
        PAIR_OPTIONS, METRIC_OPTIONS),
}, function(projections, angles, options)
    arguments.angles(angles, "tomo.find_center", "angles", projections.shape[1])
    arguments.count(options.row, "tomo.find_center", "row", 1, projections.shape[2])
    local method, found, details = options.method, nil, {}
    if method ~= "metric" then
        local first, other, miss
        found, first, other, miss = registered(projections, angles, options.min_overlap)
        if found then
            details = {pair = found.column, residual = found.residual, curve = found.curve,
                uncertainty = found.uncertainty, angles = {first, other}, verdict = found.verdict}
        elseif method == "pair" then
            fail("argument", "tomo.find_center", "angles", 'no two projections are half a turn '
                .. 'apart (closest: %.1f degrees off); use method = "metric"', math.deg(miss))
        end
        if method == "pair" then
            return details.pair, details
        end
    end
    local row = options.row or (projections.shape[2] + 1) // 2
    local view <close> = projections:view(mb.all, row, mb.all)
    local sino <close> = view:copy()
    local search = declared.part(METRIC_OPTIONS, options)
    search.metric = options.metric or center.metric_for(angles)
    search.guess = options.guess or details.pair
    search.range = options.range or (details.pair and center.PAIR_RANGE) or nil
    local trial, column
    details.metric, trial = center.find_center_metric(sino, angles, search)
    details.mass = method ~= "metric" and center.mass(found, sino, angles) or nil
    column, details.verdict = center.decide(found, {slices = details.metric, edge = trial.edge,
        mass = details.mass}, projections.shape[3])
    return column, details
end)

center.opposite_pair = axis_pairs.opposite

return center
