local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.admm_tv"

return iterative.step {
    name = "admm_tv",
    summary = "Slices by least squares with total variation, by alternating directions.",
    doc = "For few angles or much noise. lambda is meant for values per pixel. The slices are "
        .. "attenuation per meter if the pixel size is known, otherwise per pixel. With dimensions "
        .. "= 3 all slices are in one block. Where they do not fit, sweep = 12 goes over all "
        .. "slices again and again, exactly, and slab = 32 makes the result from slabs of 32 "
        .. "slices with overlap slices beside them, which is not exact (both as in fista).",
    reference = "mb.tomo.admm_tv",
    own = solvers.options,
    solver = solvers.reconstruct,
    sweeps = solvers.sweeps,
}
