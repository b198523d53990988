local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.landweber"

return iterative.step {
    name = "landweber",
    summary = "Slices by least squares with steps of the gradient: simple and slow.",
    doc = "Use cgls or fista, unless its plain steps are wanted. The slices are attenuation per "
        .. "meter if the pixel size is known, otherwise per pixel. Each slice is made by itself.",
    reference = "mb.tomo.landweber",
    own = solvers.options,
    solver = solvers.reconstruct,
}
