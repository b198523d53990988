local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

return {
    name = "stripes_mean",
    summary = "Removes stripes by the filtered mean over the angles.",
    doc = "Works on the sinogram of each row of the detector: the mean over the angles, filtered "
        .. "along the columns, is subtracted, or divided by. Line integrals are subtracted from, "
        .. "transmissions may be divided. A NaN spreads over its sinogram.",
    reference = "x - f(mean of x), or x / f(mean of x)",
    options = declared.options(declared.from("stripes_mean")),
    presets = {nabu = {mode = "subtract", low_sigma = 0, high_sigma = 30}},
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows"},
    check = function(options)
        if options.mode == "divide" and options.high_sigma > 0 then
            fail("argument", nil, "high_sigma", "high_sigma is %g, "
                .. "which leaves values about 0 to divide by; give high_sigma = 0, or mode = "
                .. "\"subtract\"", options.high_sigma)
        end
    end,
    run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb.stripes_mean(sinograms, {mode = options.mode, low_sigma = options.low_sigma,
            high_sigma = options.high_sigma, out = sinograms})
    end,
}
