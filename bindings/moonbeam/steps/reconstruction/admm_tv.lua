local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.admm_tv"

return iterative.step {
    name = "admm_tv",
    summary = "Slices by least squares with total variation, by alternating directions.",
    doc = "For few angles or much noise. lambda is meant for values per pixel. The slices are "
        .. "attenuation per meter if the pixel size is known, otherwise per pixel. With dimensions "
        .. "= 3 the result is made from slabs of slices with overlap slices beside them: it "
        .. "differs a little near the borders of slabs, and is the same for blocks of any size.",
    reference = "mb.tomo.admm_tv",
    own = solvers.options,
    solver = solvers.reconstruct,
}
