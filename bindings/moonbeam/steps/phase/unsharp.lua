local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local windows = require "moonbeam.pipeline.windows"

-- The factors of the image and of the smoothed image.
local FACTORS = {
    gaussian = function(c) return 1 + c, -c end,
    log = function(c) return 1, c end,
    imagej = function(c) return 1 / (1 - c), -c / (1 - c) end,
}

-- Rows that the operator needs before and after, where rows are cut.
local function reach_of(step)
    local axis = step.kind_before.layout == "frames" and 2 or 1
    local options = step.options
    return windows.reach("gaussian_filter", step.shape_before, {sigma = options.sigma,
        axes = {2, 3}, mode = options.mode, truncate = options.truncate}, axis)
end

return {
    name = "unsharp",
    summary = "Unsharp mask: emphasizes edges, which phase retrieval smooths.",
    doc = "With the image I, the image G smoothed by a Gaussian along the rows and columns of a "
        .. "frame, or y and x of a slice, and the coefficient c: gaussian (1 + c) I - c G, log I "
        .. "+ c G, imagej (I - c G) / (1 - c). Beyond its edges the image is mirrored. Values "
        .. "that are not finite spread as far as the Gaussian.",
    reference = "nabu, misc.unsharp; ImageJ, Process > Filters > Unsharp Mask",
    presets = {nabu = {}},
    options = declared.options(
        {"sigma", "number", "standard deviation of the Gaussian", unit = "px", above = 0,
            max = 1e4, required = true},
        {"coefficient", "number", "weight of the smoothed image", min = -1e3, max = 1e3,
            required = true},
        {"method", "choice", "the formula", choices = {"gaussian", "log", "imagej"},
            default = "gaussian"},
        declared.from("gaussian_filter", "mode", "truncate")),
    takes = {quantity = {"transmission", "line integrals", "phase", "attenuation", "intensity"},
        layout = {"frames", "slices"}},
    check = function(options)
        if options.method == "imagej" and options.coefficient == 1 then
            fail("argument", nil, "coefficient", "coefficient is 1, and imagej divides by 1 - "
                .. "coefficient; give another one, such as 0.6")
        end
    end,
    needs = function(_, first, last, step, cut)
        if cut ~= "rows" or step.kind_before.layout == "slices" then
            return first, last
        end
        step.reach = step.reach or reach_of(step)
        return first - step.reach[1], last + step.reach[2]
    end,
    run = function(block, options)
        local own, smoothed = FACTORS[options.method](options.coefficient)
        local blurred <close> = mb.gaussian_filter(block.data, options.sigma, {axes = {2, 3},
            mode = options.mode, truncate = options.truncate})
        if own ~= 1 then
            mb.binary(block.data, "mul", {scalar = own, out = block.data})
        end
        mb.binary(blurred, "mul", {scalar = smoothed, out = blurred})
        mb.binary(block.data, "add", {b = blurred, out = block.data})
    end,
}
