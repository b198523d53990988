local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local windows = require "moonbeam.pipeline.windows"

local SMALLEST <const>, LARGEST <const> = 1e-7, 3e38

-- The rows that the Gaussian needs before and after, for a mean of this shape.
local function reach_of(options, step)
    local mean = {step.shape_before[2], step.shape_before[3]}
    return windows.reach("gaussian_filter", mean, {sigma = options.sigma, mode = options.mode}, 1)
end

-- What smooth does not keep of a mean: their ratio, or their difference.
local function high_pass(mean, options, operation)
    local smooth <close> = mb.gaussian_filter(mean, options.sigma, {mode = options.mode})
    if operation == "div" then
        mb.binary(smooth, "max", {scalar = SMALLEST, out = smooth})
    end
    mb.binary(mean, operation, {b = smooth, out = mean})
end

return {
    name = "double_flat_field",
    summary = "Divides each projection by the mean of all: what does not turn is taken out.",
    doc = "What all projections share belongs to the detector and the beam: rings. The mean over "
        .. "angles of the transmission divides each projection; of line integrals, minus its "
        .. "logarithm is subtracted. It takes the mean of the object out too, so that values are "
        .. "no longer absolute, unless sigma is given: then only what is finer than a Gaussian of "
        .. "that width along rows and columns is taken out, and the mean is divided by its smooth "
        .. "part. With average = \"line_integrals\" the mean of the line integrals is subtracted, "
        .. "less its smooth part. Means below 1e-7 are raised to it. A pixel that is NaN in one "
        .. "projection becomes NaN in all.\n"
        .. "nabu subtracts the smooth part from the mean transmission, and then divides by values "
        .. "around 0; here the ratio is used.",
    reference = "C.-W. Seo et al., Opt. Express 20 (2012) 29048: double flat field",
    options = declared.options(
        {"sigma", "number", "high-pass: the standard deviation of the Gaussian", unit = "px",
            above = 0, max = 1e4, usual = "no high-pass"},
        {"average", "choice", "what is averaged over angles", choices = {"transmission",
            "line_integrals"}, default = "transmission"},
        declared.from("gaussian_filter", {"mode", default = "symmetric"})),
    presets = {nabu = {average = "transmission", mode = "symmetric"}},
    across_angles = true,
    takes = {quantity = {"transmission", "line integrals"}, layout = "frames"},
    cuts = {"rows"},
    check = function(options, _, _, kind)
        if options.average == "line_integrals" and kind.quantity == "transmission" then
            fail("argument", nil, "average", "the data are transmission; put \"minus_log\" before "
                .. "it, or give average = \"transmission\"")
        end
    end,
    needs = function(options, first, last, step)
        if not options.sigma then
            return first, last
        end
        local reach = step.reach or reach_of(options, step)
        step.reach = reach -- used for every block
        return first - reach[1], last + reach[2]
    end,
    run = function(block, options)
        local lines = block.quantity == "line integrals"
        local of_lines = options.average == "line_integrals"
        local mean <close> = mb.mean_projection(block.data, {transmission = lines and not of_lines})
        if options.sigma then
            high_pass(mean, options, of_lines and "sub" or "div")
        end
        if lines then
            if not of_lines then
                mb.minus_log(mean, {min = SMALLEST, max = LARGEST, out = mean})
            end
            mb.binary(block.data, "sub", {b = mean, out = block.data})
        else
            mb.binary(mean, "max", {scalar = SMALLEST, out = mean})
            mb.binary(block.data, "div", {b = mean, out = block.data})
        end
    end,
}
