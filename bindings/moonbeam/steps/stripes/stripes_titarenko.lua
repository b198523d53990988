local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

return {
    name = "stripes_titarenko",
    summary = "Removes stripes that are the same at all angles, by a regularized mean.",
    doc = "Works on the sinogram of each row of the detector: the mean over the angles, less its "
        .. "smooth part, is subtracted. Fast, and good for narrow, full stripes. A NaN spreads "
        .. "over its sinogram.",
    reference = "S. Titarenko et al., Appl. Math. Lett. 23 (2010) 1489",
    options = declared.options(declared.from("stripes_titarenko")),
    presets = {httomo = {beta = 0.1}, tomocupy = {beta = 0.022}},
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows"},
    run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb.stripes_titarenko(sinograms, {beta = options.beta, out = sinograms})
    end,
}
