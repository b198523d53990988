local fail = require "moonbeam.internal.fail"
local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_mean",
    summary = "Removes stripes by the filtered mean over the angles.",
    doc = "Works on the sinogram of each row of the detector: the mean over the angles, filtered "
        .. "along the columns, is subtracted, or divided by. Line integrals are subtracted from, "
        .. "transmissions may be divided. A NaN spreads over its sinogram.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.49 where they are concentric with the axis, and "
        .. "from 0.029 to 0.31 where they are 14 pixels off it, in 256 columns.",
    reference = "x - f(mean of x), or x / f(mean of x)",
    presets = {nabu = {mode = "subtract", low_sigma = 0, high_sigma = 30}},
    check = function(options)
        if options.mode == "divide" and options.high_sigma > 0 then
            fail("argument", nil, "high_sigma", "high_sigma is %g, "
                .. "which leaves values about 0 to divide by; give high_sigma = 0, or mode = "
                .. "\"subtract\"", options.high_sigma)
        end
    end,
}
