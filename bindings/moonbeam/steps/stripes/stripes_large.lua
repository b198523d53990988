local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

return {
    name = "stripes_large",
    summary = "Finds wide stripes of sinograms, and replaces them alone.",
    doc = "A column whose mean is far from that of its neighborhood is a stripe, and gets filtered "
        .. "values as in stripes_sorting. With normalize, the other columns are divided by how far "
        .. "their means are off. Every row of the detector is on its own. Rows of fewer than 8 "
        .. "columns stay as they are. NaN counts as larger than every number.",
    reference = "N. T. Vo et al., Optics Express 26, 28396 (2018), algorithms 4 and 5",
    options = declared.options(declared.from("stripes_large")),
    presets = {
        httomo = {size = 61, snr = 3, normalize = false},
        tomocupy = {size = 61, snr = 3, normalize = true},
        algotom = {size = 51, snr = 3, drop_ratio = 0.1, normalize = true},
    },
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows"},
    run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb.stripes_large(sinograms, {size = options.size, snr = options.snr,
            drop_ratio = options.drop_ratio, normalize = options.normalize, out = sinograms})
    end,
}
