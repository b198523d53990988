local declared = require "moonbeam.internal.declared"
local sinogram_step = require "moonbeam.pipeline.definitions.sinogram_step"

return sinogram_step {
    name = "stripes_sorting",
    summary = "Removes stripes of sinograms, rings of slices, by sorting: full, partial and small "
        .. "ones.",
    doc = "The values of each detector element are sorted, and those of equal rank are filtered "
        .. "with a median across neighboring elements. Every row of the detector is on its own; "
        .. "columns beyond the border are reflected. NaN counts as larger than every number. "
        .. "Presets give the window of other packages.\n"
        .. "Real circles about the axis look like stripes: with default options the error of "
        .. "disks in a disk grows from 0.027 to 0.065 where they are concentric with the axis, and "
        .. "from 0.029 to 0.055 where they are 14 pixels off it, in 256 columns.",
    reference = "N. T. Vo et al., Optics Express 26, 28396 (2018), algorithm 3",
    options = declared.options(
        {"size", "int", "window of the median, wider than the stripes", unit = "columns", min = 1,
            max = 1 << 20, usual = "11, or 21 if there are more than 2000 columns"}),
    presets = {httomo = {}, algotom = {size = 21}},
    usual = function(block)
        return {size = block.data.shape[3] > 2000 and 21 or 11}
    end,
}
