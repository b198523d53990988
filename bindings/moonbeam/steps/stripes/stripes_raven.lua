local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_raven",
    summary = "Removes stripes by filtering the lowest rows of the Fourier transform.",
    doc = "Works on the sinogram of each row of the detector. What hardly changes along the angles "
        .. "and is fast along the columns is removed. A NaN spreads over its sinogram.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.14 where they are concentric with the axis, and "
        .. "from 0.029 to 0.087 where they are 14 pixels off it, in 256 columns.",
    reference = "C. Raven, Rev. Sci. Instrum. 69 (1998) 2978",
    presets = {
        httomo = {cutoff = 20, order = 4, rows = 2, padding = "edge", pad = 20, origin = 1},
        algotom = {cutoff = 20, order = 8, rows = 1, padding = "mean", pad = 0, origin = 1},
    },
}
