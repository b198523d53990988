--- The rotation axis by Vo's double wedge, from one sinogram over half a turn.

local mb = require "moonbeam"
local axis_curve = require "moonbeam.tomo.axis.axis_curve"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local tables = require "moonbeam.internal.tables"

local axis_wedge = {}

-- Noise and stripes make valleys of an eighth to a fourth of the median, all alike; an object makes
-- one of a half at least.
local LEAST_DEPTH, ALIKE = 0.35, 0.5
-- The metric in parts of the sinogram's norm: less is rounding.
local ROUNDING = 1e-6

-- The smoothing before a search: standard deviations along angles and columns.
local COARSE_SIGMA, FINE_SIGMA = {3, 1}, {2, 2}

axis_wedge.options = declared.options(
    {"guess", "number", "where the search begins, a 0-based column", unit = "px",
        usual = "the middle, rounded up"},
    {"range", "number", "how far the coarse search goes to either side", unit = "px", min = 0,
        usual = "a sixteenth of the width"},
    {"radius", "number", "how far the fine search goes to either side of what the coarse one "
        .. "finds", unit = "px", min = 0, default = 4},
    {"step", "number", "between trials of the fine search", unit = "px", above = 0,
        default = 0.25},
    {"coarse_step", "number", "between trials of the coarse search", unit = "px", above = 0,
        default = 1},
    {"downsample", "boolean", "search coarsely in a smaller sinogram: columns are averaged where "
        .. "there are more than 1000, in groups of a 640th of them, and so are more than 1000 "
        .. "angles, in groups of a 900th"},
    declared.from("double_wedge", "ratio", "drop"))

local WEDGE = {"ratio", "drop"}

local function wedge_of(options)
    local list = {}
    for _, name in ipairs(WEDGE) do
        list[name] = options[name]
    end
    return list
end

local function metric_of(sino, sigma, centers, options)
    local smooth <close> = mb.gaussian_filter(sino, sigma, {mode = "symmetric"})
    local metric <close> = mb.double_wedge(smooth, centers, wedge_of(options))
    return mb.bound({}, metric.to_table, metric)
end

-- The sinogram smoothed, and the means of groups of its angles and columns.
local function reduced(sino, down, across)
    local smooth <close> = mb.gaussian_filter(sino, COARSE_SIGMA, {mode = "symmetric"})
    local height, width = sino.shape[1] // down, sino.shape[2] // across
    local part <close> = smooth:view({1, height * down}, {1, width * across})
    local dense <close> = part:copy()
    local groups <close> = dense:reshape(height, down, width, across)
    local lines <close> = mb.reduce(groups, "mean", {axis = 4})
    local means <close> = mb.reduce(lines, "mean", {axis = 2})
    return means:cast("f32")
end

-- The coarse search: columns and their metric.
local function coarse(sino, guess, range, options)
    local height, width = sino.shape[1], sino.shape[2]
    local across = options.downsample and width > 1000 and width // 640 or 1
    local down = options.downsample and height > 1000 and height // 900 or 1
    local step = options.coarse_step * across
    local low, high = math.max(0, guess - range), math.min(width - 1, guess + range)
    local count = math.floor((high - low) / step + 1e-9) + 1
    if options.fixed then -- trials beyond the detector are those at its edge
        local reach = math.floor(range / step)
        count, low = 2 * reach + 1, guess - reach * step
    end
    if across == 1 and down == 1 then
        local columns = axis_curve.centers(low, step, count, width)
        return columns, metric_of(sino, COARSE_SIGMA, columns, options)
    end
    -- Centers of the reduced sinogram are whole columns of it.
    local small <close> = reduced(sino, down, across)
    local first = math.floor(low / across)
    local trials = axis_curve.centers(first, 1, math.ceil(high / across) - first + 1,
        small.shape[2])
    local metric <close> = mb.double_wedge(small, trials, wedge_of(options))
    local columns = tables.mapped(trials, function(trial) return trial * across + 0.5 * across end)
    return columns, mb.bound({}, metric.to_table, metric)
end

-- Values of a dry run, which has none.
local function without_values(columns)
    local values = {}
    for i = 1, #columns do
        values[i] = math.abs(i - (#columns + 1) // 2)
    end
    return values
end

-- Each column once.
local function once(columns, metric)
    local kept, values = {}, {}
    for i, column in ipairs(columns) do
        if column ~= kept[#kept] then
            kept[#kept + 1], values[#values + 1] = column, metric[i]
        end
    end
    return kept, values
end

--- Both searches in a sinogram (angle, column): the column, and {verdict, columns, metric (of the
-- coarse search), fine_columns, fine_metric, other (the second best column, if it is ambiguous),
-- as_stated (of two columns that are alike it is the one that options.stated says)}.
-- The number of trials does not depend on the data.
function axis_wedge.search(sino, options, op)
    local width = sino.shape[2]
    local guess = options.guess or width // 2
    local range = options.range or width // 16
    if guess < 0 or guess > width - 1 then
        fail("argument", op, "guess", "guess is %g; the sinogram has columns 0 to %d", guess,
            width - 1)
    end
    local columns, metric = coarse(sino, guess, range, options)
    metric = #metric > 0 and metric or without_values(columns)
    for _, value in ipairs(metric) do
        if value ~= value or value == math.huge then
            finite.fail(sino, op, "the sinogram")
        end
    end
    columns, metric = once(columns, metric)
    local best, verdict, other, as_stated = axis_curve.judge_stated(metric, columns,
        options.stated, LEAST_DEPTH, ALIKE)
    local norm <close> = mb.reduce(sino, "norm")
    local most = math.max(table.unpack(metric, 1, math.min(#metric, 200)))
    if verdict ~= "flat" and most < ROUNDING * mb.bound(0, norm.item, norm) then
        verdict = "flat"
    end
    local radius = options.downsample and math.max(options.radius, width > 1000 and width // 640
        or 1) or options.radius
    local count = 2 * math.floor(radius / options.step + 1e-9) + 1
    local near = axis_curve.centers(columns[best] - (count - 1) // 2 * options.step, options.step,
        count, width)
    local fine = metric_of(sino, FINE_SIGMA, near, options)
    fine = #fine > 0 and fine or without_values(near)
    return axis_curve.vertex(near, fine), {verdict = verdict, columns = columns, metric = metric,
        fine_columns = near, fine_metric = fine, trial = near[axis_curve.lowest(fine)],
        other = other and columns[other], as_stated = as_stated}
end

--- The same near a column, which is rounded to half a column. How many trials there are does not
-- depend on the column.
function axis_wedge.around(sino, column)
    local width = sino.shape[2]
    local guess = math.max(0, math.min(width - 1, math.floor(2 * column + 0.5) / 2))
    return axis_wedge.search(sino, {guess = guess, range = width / 16, radius = 4, step = 0.25,
        coarse_step = 1, fixed = true}, "recon.find_center")
end

--- Rotation axis by Vo's double wedge, from a sinogram over half a turn.
--
-- The coarse search tries columns at whole steps; the fine one tries the columns around the best,
-- and a parabola through the best three gives the part of a step. The metric is that of
-- `double_wedge`, of a sinogram smoothed by Gaussians: sigma 3 along angles and 1 along columns for
-- the coarse search, 2 and 2 for the fine one. With downsample = true the search goes as that of
-- algotom does with its defaults, and without it as with dsp = False.
-- Angles must be equally spaced, in order, and cover half a turn.
-- Returns the 0-based column, and a table: verdict ("found"; "edge": the lowest value is at an end
-- of the range; "flat": no value stands out; "ambiguous": `other` is nearly as good), columns and
-- metric of the coarse search, fine_columns and fine_metric, and trial, the best of these columns.
-- Errors: shape, argument (values that are not finite), budget.
-- Reference: N. T. Vo, M. Drakopoulos, R. C. Atwood, C. Reinhard, Opt. Express 22 (2014) 19078.
axis_wedge.find = declared("tomo.find_center_vo", {
    {"sino", "array", "line integrals or transmissions (angle, column) over half a turn",
        rank = {2, 2}},
    options = axis_wedge.options,
}, function(sino, options)
    return axis_wedge.search(sino, options, "tomo.find_center_vo")
end)

--- The frames {first, last} of a scan's angles that cover half a turn in equal steps; nil if there
-- are none.
function axis_wedge.half_turn(angles)
    local step = #angles > 1 and (angles[#angles] - angles[1]) / (#angles - 1) or 0
    for i = 2, #angles do
        if math.abs(angles[i] - angles[1] - (i - 1) * step) > 0.2 * math.abs(step) then
            return nil
        end
    end
    local count = step ~= 0 and math.floor(math.pi / math.abs(step) + 1e-3) + 1 or 0
    if count < 4 or #angles < count - 1 then
        return nil
    end
    return {1, math.min(count, #angles)}
end

return axis_wedge
