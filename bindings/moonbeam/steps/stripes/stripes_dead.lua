local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

return {
    name = "stripes_dead",
    summary = "Fills in the columns of sinograms that do not respond, or that fluctuate.",
    doc = "A column that varies much less or much more along the angles than its neighborhood is "
        .. "interpolated between the nearest columns that are sound, unless a third of the columns "
        .. "or more are like that. With residual, stripes_large follows. Every row of the detector "
        .. "is on its own. Rows of fewer than 8 columns, and the two first and last columns, stay "
        .. "as they are. A column with NaN or infinite values is filled in.",
    reference = "N. T. Vo et al., Optics Express 26, 28396 (2018), algorithms 4 and 6",
    options = declared.options(declared.from("stripes_dead")),
    presets = {algotom = {size = 51, snr = 3, residual = true}},
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows"},
    run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb.stripes_dead(sinograms, {size = options.size, snr = options.snr,
            residual = options.residual, out = sinograms})
    end,
}
