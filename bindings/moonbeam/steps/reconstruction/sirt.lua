local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.sirt"

return iterative.step {
    name = "sirt",
    summary = "Slices by SIRT: corrections by all rays at once.",
    doc = "Slow and even: the number of iterations regularizes. The slices are attenuation per "
        .. "meter if the pixel size is known, otherwise per pixel. Each slice is made by itself.",
    reference = "mb.tomo.sirt",
    -- The numbers of other packages, whose projectors differ.
    presets = {httomo = {iterations = 300, start = 1, nonnegative = true},
        tomopy = {iterations = 1, start = 1e-6}},
    own = solvers.options,
    solver = solvers.reconstruct,
}
