local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.fista"

return iterative.step {
    name = "fista",
    summary = "Slices by least squares with total variation: for few angles or much noise.",
    doc = "For few angles or much noise. lambda is meant for values per pixel. The slices are "
        .. "attenuation per meter if the pixel size is known, otherwise per pixel. With dimensions "
        .. "= 3 the result is made from slabs of slices with overlap slices beside them: it "
        .. "differs a little near the borders of slabs, and is the same for blocks of any size.",
    reference = "mb.tomo.fista",
    own = solvers.options,
    solver = solvers.reconstruct,
}
