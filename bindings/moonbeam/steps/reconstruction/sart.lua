local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.sirt"

return iterative.step {
    name = "sart",
    summary = "Slices by SART, or SIRT with ordered subsets: a part of the angles at a time.",
    doc = "A pass gets about as far as subsets iterations of sirt; with noise a relaxation below 1 "
        .. "helps. The slices are attenuation per meter if the pixel size is known, otherwise per "
        .. "pixel. Each slice is made by itself.",
    reference = "mb.tomo.sart",
    -- scikit-image takes one angle at a time, in another order.
    presets = {["scikit-image"] = {iterations = 1, subsets = 1 << 24, relaxation = 0.15}},
    own = solvers.sart_options,
    solver = solvers.sart,
}
