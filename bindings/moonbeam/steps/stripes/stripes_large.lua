local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_large",
    summary = "Finds wide stripes of sinograms, and replaces them alone.",
    doc = "A column whose mean is far from that of its neighborhood is a stripe, and gets filtered "
        .. "values as in stripes_sorting. With normalize, the other columns are divided by how far "
        .. "their means are off. Every row of the detector is on its own. Rows of fewer than 8 "
        .. "columns stay as they are. NaN counts as larger than every number.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.14 where they are concentric with the axis, and "
        .. "from 0.029 to 0.083 where they are 14 pixels off it, in 256 columns.",
    reference = "N. T. Vo et al., Optics Express 26, 28396 (2018), algorithms 4 and 5",
    presets = {
        httomo = {size = 61, snr = 3, normalize = false},
        tomocupy = {size = 61, snr = 3, normalize = true},
        algotom = {size = 51, snr = 3, drop_ratio = 0.1, normalize = true},
    },
}
