--- The rotation axis by the looks of trial slices: their gradient, or the entropy of their values.

local mb = require "moonbeam"
local activity = require "moonbeam.internal.command_line.activity"
local arguments = require "moonbeam.internal.arguments"
local axis_curve = require "moonbeam.tomo.axis.axis_curve"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"

local axis_slices = {}

local BINS, WINDOW = 256, 7 -- of the histogram, and of its running sums

-- The difference of pixels on both sides, along one axis, without the slice's border; squared.
local function squared_slope(slice, dy, dx)
    local ny, nx = slice.shape[1], slice.shape[2]
    local after <close> = slice:view({2 + dy, ny - 1 + dy}, {2 + dx, nx - 1 + dx})
    local before <close> = slice:view({2 - dy, ny - 1 - dy}, {2 - dx, nx - 1 - dx})
    local slope = mb.binary(after, "sub", {b = before})
    mb.unary(slope, "square", {out = slope})
    return slope
end

local function gradient_of(slice)
    local down <close> = squared_slope(slice, 1, 0)
    local across <close> = squared_slope(slice, 0, 1)
    mb.binary(down, "add", {b = across, out = down})
    mb.unary(down, "sqrt", {out = down})
    local mean <close> = mb.reduce(down, "mean")
    return mb.bound(0, mean.item, mean) / 2
end

-- A histogram smoothed by running sums: minus the sum of h log2 h.
local function entropy_of(slice, low, high)
    local counts <close> = mb.histogram(slice, {bins = BINS, low = low, high = high})
    local list = mb.bound({}, counts.to_table, counts)
    if #list == 0 then
        return 0
    end
    list[1], list[BINS] = list[1] + list[BINS + 1], list[BINS] + list[BINS + 2]
    local sum, running = 0, 0
    for i = 1, BINS do
        running = running + 1 + list[i] - (i > WINDOW and 1 + list[i - WINDOW] or 0)
        if i >= WINDOW then
            sum = sum - running * math.log(running, 2)
        end
    end
    return sum
end

axis_slices.options = declared.options(
    {"metric", "choice", "sharpness: the mean gradient, which streaks of a wrong axis enlarge; "
        .. "entropy: that of the histogram of the values, which a right axis concentrates",
        choices = {"sharpness", "entropy"}, default = "entropy"},
    {"guess", "number", "where the search begins, a 0-based column", unit = "px",
        usual = "the middle"},
    {"range", "number", "how far the coarse search goes to either side", unit = "px", min = 0,
        usual = "a sixteenth of the width"},
    {"coarse_step", "number", "between trials of the coarse search", unit = "px", above = 0,
        default = 1},
    {"radius", "number", "how far the fine search goes to either side of what the coarse one "
        .. "finds", unit = "px", min = 0, default = 2},
    {"step", "number", "between trials of the fine search", unit = "px", above = 0, default = 0.5},
    {"sigma", "number", "of a Gaussian along the columns of the sinogram, before", unit = "px",
        min = 0, max = 100, default = 2},
    declared.from("ramp_filter", {"filter", default = "hann"}),
    declared.from("backproject", "accuracy"))

-- The slices of a sinogram: {filtered, angles, circle, accuracy}.
local trials = {}
trials.__index = trials

function trials.slice(self, column)
    local slice <close> = mb.backproject(self.filtered, self.angles, {center = column,
        circle = self.circle, accuracy = self.accuracy})
    return slice:reshape(slice.shape[slice.rank - 1], slice.shape[slice.rank])
end

-- The window of the histogram, from one slice.
function trials.open(self, column)
    local slice <close> = self:slice(column)
    self.low, self.high = mb.bound(0, slice.min, slice), mb.bound(1, slice.max, slice)
    if self.low ~= self.low or self.high ~= self.high then
        finite.fail(self.sino, self.op, "the sinogram")
    end
    self.high = self.high > self.low and self.high or self.low + 1
end

function trials.metric(self, columns)
    local list = {}
    for i, column in ipairs(columns) do
        activity.at("trial slice", i, #columns)
        local slice <close> = self:slice(column)
        list[i] = self.kind == "entropy" and entropy_of(slice, self.low, self.high)
            or gradient_of(slice)
    end
    return list
end

--- The column, and {verdict, columns, metric, fine_columns, fine_metric, other, as_stated (of two
-- columns that are alike it is the one that options.stated says)}. The number of
-- slices does not depend on the data.
function axis_slices.search(sino, angles, options, op)
    local width = sino.shape[2]
    local guess, range = options.guess or (width - 1) / 2, options.range or width / 16
    if width < 4 then
        fail("shape", op, "sino", "slices of %d columns have no looks; give at least 4", width)
    elseif guess < 0 or guess > width - 1 then
        fail("argument", op, "guess", "guess is %g; the sinogram has columns 0 to %d", guess,
            width - 1)
    end
    local low, high = math.max(0, guess - range), math.min(width - 1, guess + range)
    local smooth <close> = mb.gaussian_filter(sino, {0, options.sigma}, {mode = "symmetric"})
    mb.ramp_filter(smooth, {filter = options.filter, out = smooth})
    local seen = math.min(low, width - 1 - high)
    local self = setmetatable({filtered = smooth, angles = angles, accuracy = options.accuracy,
        circle = math.max(0.3, math.min(0.95, 2 * seen / width)), kind = options.metric,
        sino = sino, op = op}, trials)
    self:open((low + high) / 2)
    local count = math.floor((high - low) / options.coarse_step + 1e-9) + 1
    local columns = axis_curve.centers(low, options.coarse_step, count, width)
    local metric = self:metric(columns)
    local best, verdict, other, as_stated = axis_curve.judge_stated(metric, columns, options.stated)
    count = 2 * math.floor(options.radius / options.step + 1e-9) + 1
    local near = axis_curve.centers(columns[best] - (count - 1) // 2 * options.step, options.step,
        count, width)
    local fine = self:metric(near)
    return axis_curve.vertex(near, fine), {verdict = verdict, columns = columns, metric = metric,
        fine_columns = near, fine_metric = fine, other = other and columns[other],
        as_stated = as_stated}
end

--- Rotation axis by trial slices: the column whose slice has the least mean gradient or entropy.
--
-- The coarse search tries columns at whole steps; the fine one tries the columns around the best,
-- and a parabola through the best three gives the part of a step. The entropy is that of a
-- histogram of 256 bins between the least and the largest value of the slice in the middle of the
-- range, plus 1 each and summed over 7 neighbors (Donath, Beckmann, Schreyer 2006; as in algotom).
-- Slices are a weaker sign of the axis than opposite projections: few angles, noise and rays from
-- outside the field of view mislead them.
-- Returns the 0-based column, and a table: verdict ("found"; "edge": the lowest value is at an end
-- of the range; "flat": no value stands out; "ambiguous": `other` is nearly as good), columns and
-- metric of the coarse search, fine_columns and fine_metric.
-- Errors: shape, argument (values that are not finite), budget.
-- Reference: T. Donath, F. Beckmann, A. Schreyer, J. Opt. Soc. Am. A 23 (2006) 1048.
axis_slices.find = declared("tomo.find_center_slices", {
    {"sino", "array", "line integrals (angle, column)", rank = {2, 2}},
    {"angles", "angles", "one per projection", unit = "rad"},
    options = axis_slices.options,
}, function(sino, angles, options)
    arguments.angles(angles, "tomo.find_center_slices", "angles", sino.shape[1])
    return axis_slices.search(sino, angles, options, "tomo.find_center_slices")
end)

return axis_slices
