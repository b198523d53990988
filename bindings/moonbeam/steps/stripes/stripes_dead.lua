local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_dead",
    summary = "Fills in the columns of sinograms that do not respond, or that fluctuate.",
    doc = "A column that varies much less or much more along the angles than its neighborhood is "
        .. "interpolated between the nearest columns that are sound, unless a third of the columns "
        .. "or more are like that. With residual, stripes_large follows. Every row of the detector "
        .. "is on its own. Rows of fewer than 8 columns, and the two first and last columns, stay "
        .. "as they are. A column with NaN or infinite values is filled in.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.14 where they are concentric with the axis, and "
        .. "from 0.029 to 0.083 where they are 14 pixels off it, in 256 columns.",
    reference = "N. T. Vo et al., Optics Express 26, 28396 (2018), algorithms 4 and 6",
    presets = {algotom = {size = 51, snr = 3, residual = true}},
}
