local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

return {
    name = "stripes_raven",
    summary = "Removes stripes by filtering the lowest rows of the Fourier transform.",
    doc = "Works on the sinogram of each row of the detector. What hardly changes along the angles "
        .. "and is fast along the columns is removed. A NaN spreads over its sinogram.",
    reference = "C. Raven, Rev. Sci. Instrum. 69 (1998) 2978",
    options = declared.options(declared.from("stripes_raven")),
    presets = {
        httomo = {cutoff = 20, order = 4, rows = 2, padding = "edge", pad = 20, origin = 1},
        algotom = {cutoff = 20, order = 8, rows = 1, padding = "mean", pad = 0, origin = 1},
    },
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows"},
    run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb.stripes_raven(sinograms, {cutoff = options.cutoff, order = options.order,
            rows = options.rows, padding = options.padding, pad = options.pad,
            origin = options.origin, out = sinograms})
    end,
}
