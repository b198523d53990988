local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_wavelet",
    summary = "Removes stripes by damping the vertical details of a wavelet transform.",
    doc = "Works on the sinogram of each row of the detector. In each level of the transform, "
        .. "details along the columns that are slow along the angles are damped. Removes wide "
        .. "stripes too. A NaN spreads over its sinogram.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.97 where they are concentric with the axis, and "
        .. "from 0.029 to 0.93 where they are 14 pixels off it, in 256 columns.",
    reference = "B. Muench et al., Opt. Express 17 (2009) 8567",
    -- Other packages differ in the wavelet, the levels, the padding, and in the frequency that they
    -- take for the lowest one.
    presets = {
        httomo = {wavelet = "db5", sigma = 2, level = 0, boundary = "symmetric",
            padding = "angles", origin = 0.5},
        tomocupy = {wavelet = "sym16", sigma = 1, level = 7, boundary = "symmetric",
            padding = "angles", origin = 0.5},
        nabu = {wavelet = "db15", sigma = 1, level = 10, boundary = "periodic",
            padding = "columns", origin = 0},
        algotom = {wavelet = "db9", sigma = 1, level = 5, boundary = "symmetric",
            padding = "both", origin = 1},
    },
}
