local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_titarenko",
    summary = "Removes stripes that are the same at all angles, by a regularized mean.",
    doc = "Works on the sinogram of each row of the detector: the mean over the angles, less its "
        .. "smooth part, is subtracted. Fast, and good for narrow, full stripes. A NaN spreads "
        .. "over its sinogram.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.20 where they are concentric with the axis, and "
        .. "from 0.029 to 0.084 where they are 14 pixels off it, in 256 columns.",
    reference = "S. Titarenko et al., Appl. Math. Lett. 23 (2010) 1489",
    presets = {httomo = {beta = 0.1}, tomocupy = {beta = 0.022}},
}
