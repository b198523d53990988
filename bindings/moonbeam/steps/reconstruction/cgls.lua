local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.cgls"

return iterative.step {
    name = "cgls",
    summary = "Slices by least squares with conjugate gradients: the fastest iterative method.",
    doc = "Few iterations regularize: give noise, or 5 to 20 iterations. Values may be "
        .. "negative. The slices are attenuation per meter if the pixel size is known, otherwise "
        .. "per pixel. Each slice is made by itself.",
    reference = "mb.tomo.cgls",
    presets = {httomo = {iterations = 20}},
    own = solvers.options,
    solver = solvers.reconstruct,
}
