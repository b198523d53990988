local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local windows = require "moonbeam.pipeline.windows"

local function parameters(options)
    return {sigma_spatial = options.sigma_spatial, radius = options.radius,
        dimensions = options.dimensions, mode = options.mode, value = options.value}
end

-- How many slices the operator needs before and after.
local function reach_of(step)
    local options = step.options
    local own = parameters(options)
    own.sigma_value = options.sigma_value
    return windows.reach("bilateral_filter", step.shape_before, own, 1)
end

return {
    name = "bilateral",
    summary = "Smooths frames or slices with weights for distance and for difference of values.",
    doc = "Edges that are high against sigma_value stay. Each frame or slice by itself, or the "
        .. "slices as a volume: see mb.bilateral_filter. sigma_value is in units of the data: "
        .. "about twice the noise is a beginning. Neighbors that are not finite do not count, and "
        .. "values that are not finite stay.",
    reference = "mb.bilateral_filter",
    options = declared.options(
        {"sigma_value", "number", "standard deviation of the weight of values, in units of the "
            .. "data", min = 1e-18, max = 1e18, required = true},
        declared.from("bilateral_filter")),
    takes = {quantity = {"transmission", "line integrals", "phase", "attenuation", "intensity",
        "weights"}, layout = {"frames", "slices"}},
    cuts = function(_, step)
        return {step.kind_before.layout == "frames" and "frames" or "rows"}
    end,
    check = function(options, _, _, kind)
        if options.dimensions == 3 and kind.layout == "frames" then
            fail("argument", nil, "dimensions", "dimensions is 3, but frames are no volume; give "
                .. "dimensions = 2, or put the step behind the one that makes slices")
        end
    end,
    needs = function(_, first, last, step)
        step.reach = step.reach or reach_of(step)
        return first - step.reach[1], last + step.reach[2]
    end,
    run = function(block, options)
        block:replace(mb.bilateral_filter(block.data, options.sigma_value, parameters(options)))
    end,
}
