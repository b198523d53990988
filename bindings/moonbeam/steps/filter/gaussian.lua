local mb = require "moonbeam"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local windows = require "moonbeam.pipeline.windows"

-- How many times the longest axis a standard deviation may be: beyond that nothing is left but
-- means, for which hours would be worked.
local MOST <const> = 10

-- The standard deviations and their axes, which depend on how many numbers are given.
local function axes_of(options)
    local sigma = options.sigma
    sigma = type(sigma) == "number" and {sigma, sigma} or sigma
    return sigma, #sigma == 3 and {1, 2, 3} or {2, 3}
end

-- The standard deviations and the other parameters of the operator.
local function parameters(options)
    local sigma, axes = axes_of(options)
    return sigma, {axes = axes, mode = options.mode, value = options.value,
        truncate = options.truncate}
end

-- The axis of the data that is cut: rows are the second of frames and the first of slices.
local function axis_of(step, cut)
    return cut == "rows" and step.kind_before.layout == "frames" and 2 or 1
end

-- How many rows the operator needs before and after.
local function reach_of(step, cut)
    local sigma, own = parameters(step.options)
    own.sigma = sigma
    return windows.reach("gaussian_filter", step.shape_before, own, axis_of(step, cut))
end

return {
    name = "gaussian",
    summary = "Smooths frames or slices with a Gaussian.",
    doc = "Smooths along the rows and columns of each frame, or along y and x of each slice; with "
        .. "three numbers, also from slice to slice.",
    reference = "mb.gaussian_filter",
    -- scikit-image continues edges by their last value. The defaults here are those of SciPy.
    presets = {["scikit-image"] = {sigma = 1, mode = "edge", truncate = 4}, scipy = {
        mode = "symmetric", truncate = 4}},
    options = declared.options(
        {"sigma", "vector", "standard deviation: one number, {row, column} of frames, {y, x} or "
            .. "{row, y, x} of slices; 0 leaves an axis as it is", unit = "px", min = 0, max = 1e6,
            required = true},
        declared.from("gaussian_filter", "mode", "value", "truncate")),
    takes = {quantity = {"transmission", "line integrals", "phase", "attenuation", "intensity",
        "weights"}, layout = {"frames", "slices"}},
    check = function(options, shape, _, kind)
        local count = type(options.sigma) == "table" and #options.sigma or 2
        local most = kind.layout == "frames" and 2 or 3
        if count < 2 or count > most then
            fail("argument", nil, "sigma", "sigma has %s; give one, {row, column} for "
                .. "frames, {y, x} or {row, y, x} for slices", counted(count, "number"))
        end
        local extent = math.max(table.unpack(shape))
        for _, sigma in ipairs(axes_of(options)) do
            if sigma > MOST * extent then
                fail("argument", nil, "sigma", "sigma is %g px, more than %d times the longest "
                    .. "axis of the data (%d): that leaves means; give less, such as %d", sigma,
                    MOST, extent, extent // 4)
            end
        end
    end,
    needs = function(_, first, last, step, cut)
        step.reach = step.reach or {rows = reach_of(step, "rows"), frames = reach_of(step,
            "frames")}
        local reach = step.reach[cut]
        return first - reach[1], last + reach[2]
    end,
    run = function(block, options)
        block:replace(mb.gaussian_filter(block.data, parameters(options)))
    end,
}
