--- The ways in which the steps fbp and fourier may go about it, and the axes for which they take
-- most.

local mb = require "moonbeam"
local geometry = require "moonbeam.pipeline.geometry"
local methods = require "moonbeam.tomo.method"

local slice_work = {}

-- Slices from which on fourier_reconstruct works in batches of its largest size: what it takes
-- stays the same.
local FULL_BATCH = 16

-- The options of fourier_reconstruct that decide its scratch.
local NAMES = {"filter", "cutoff", "padding", "pad_width", "circle", "size", "scale", "accuracy",
    "roi"}

--- The ways to reconstruct with one of the two methods, for a step's `ways`.
function slice_work.ways(method)
    return function(options, step, device)
        local g, list = step.geometry_before, {}
        local shape = step.shape_before
        local asked = {method = method, mode = options.mode or "auto",
            accuracy = options.accuracy, half_acquisition = g.half_acquisition or nil,
            slice_shifts = g.lean ~= 0 and {0} or nil}
        for i, way in ipairs(methods.ways(shape[1], shape[3], asked, device)) do
            list[i] = {options = {method = way.method, mode = way.mode}, taken = way.taken,
                name = way.name, reason = way.reason, method = way.method, mode = way.mode}
        end
        return list
    end
end

--- The axis, an element of the data, for which the direct Fourier method takes most for so many
-- slices, of those between two.
--
-- Its rows are extended to N samples, so that no pixel sees their repetition: N is the next
-- length that suits an FFT from need = middle + radius + |axis - middle|, rounded up to even. The
-- scratch depends on the axis by N alone, but does not grow with N everywhere: a batch of pairs
-- is halved where it would exceed its limit, and not all lengths have fused kernels. N changes at
-- most once in 2 px of |axis - middle|, so steps of 1 px from the nearest to the farthest axis
-- meet every N that there is, but the last, which the farthest axis has.
local function costliest_axis(bounds, options, rows, context)
    local shape = context.step.shape_before
    local middle = (shape[3] - 1) / 2
    local nearest = math.max(bounds[1], math.min(bounds[2], middle))
    local farthest = middle - bounds[1] > bounds[2] - middle and bounds[1] or bounds[2]
    local params, worst, most = {}, nearest, -1
    for _, name in ipairs(NAMES) do
        params[name] = options[name]
    end
    local function try(axis)
        params.center = axis
        local scratch = mb.op.estimate("fourier_reconstruct", {{"f32", rows, shape[1], shape[3]}},
            params, {device = context.device}).scratch
        if scratch > most then
            worst, most = axis, scratch
        end
    end
    for i = 0, math.floor(math.abs(farthest - nearest)) do
        try(nearest + (farthest > nearest and i or -i))
    end
    try(farthest)
    return worst
end

--- The axes, columns of the scan, among which is the one for which blocks of these heights take
-- most: the peak of a block is that of one of its steps, and nothing that is live at a step
-- depends on the axis but what the field of view of a half acquisition makes wider.
function slice_work.deciding(bounds, options, heights, context)
    local g = context.step.geometry_before
    if g.half_acquisition then
        -- the field is widest for an axis at either end, and a wider one takes more (see fbp.lua)
        return bounds
    elseif options.method ~= "fourier" then
        return {(bounds[1] + bounds[2]) / 2} -- filter and back-projection take the same for all
    end
    local elements = {geometry.element(g, bounds[1]), geometry.element(g, bounds[2])}
    local axes, seen, memo = {}, {}, context.memo
    for _, rows in ipairs(heights) do
        rows = math.min(rows, FULL_BATCH)
        memo[rows] = memo[rows] or geometry.column(g, costliest_axis(elements, options, rows,
            context))
        if not seen[memo[rows]] then
            seen[memo[rows]] = true
            axes[#axes + 1] = memo[rows]
        end
    end
    return axes
end

return slice_work
