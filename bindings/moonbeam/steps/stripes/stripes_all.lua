local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_all",
    summary = "Removes stripes of sinograms, rings of slices, of all kinds: dead, wide and small.",
    doc = "What stripes_dead (without residual), stripes_large and stripes_sorting do, in this "
        .. "order, with one sorting of the columns. Every row of the detector is on its own. NaN "
        .. "counts as larger than every number. Presets give the numbers of other packages.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.14 where they are concentric with the axis, and "
        .. "from 0.029 to 0.083 where they are 14 pixels off it, in 256 columns.",
    reference = "N. T. Vo et al., Optics Express 26, 28396 (2018), algorithms 3 to 6",
    presets = {
        httomo = {snr = 3, large_size = 61, small_size = 21, normalize = false},
        tomocupy = {snr = 3, large_size = 61, small_size = 21, normalize = true},
        nabu = {snr = 3, large_size = 51, small_size = 21, normalize = true},
        algotom = {snr = 3, large_size = 51, small_size = 21, drop_ratio = 0.1, normalize = true},
    },
}
