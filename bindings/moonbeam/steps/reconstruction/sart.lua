local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.sirt"

return iterative.step {
    name = "sart",
    summary = "Slices by SART, or SIRT with ordered subsets: a part of the angles at a time.",
    doc = "A pass gets about as far as subsets iterations of sirt; with noise a relaxation below "
        .. "1 helps. The middle of a ray is corrected more than its ends; taper = 0 suits an "
        .. "object that fills the field of view. The slices are attenuation per meter if the pixel "
        .. "size is known, otherwise per pixel. Each slice is made by itself.",
    reference = "mb.tomo.sart",
    -- scikit-image takes one angle at a time, in another order, with a Hamming window along
    -- rays. It divides by sums of squared weights and not by the angles of a pixel, so that its
    -- 0.15 moves the middle of a slice as far as 0.4 does here.
    presets = {["scikit-image"] = {iterations = 1, subsets = 1 << 24, relaxation = 0.4,
        taper = 1.5}},
    own = solvers.sart_options,
    solver = solvers.sart,
}
