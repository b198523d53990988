local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.fista"

return iterative.step {
    name = "fista",
    summary = "Slices by least squares with total variation: for few angles or much noise.",
    doc = "For few angles or much noise. lambda is meant for values per pixel. The slices are "
        .. "attenuation per meter if the pixel size is known, otherwise per pixel. With dimensions "
        .. "= 3 all slices are in one block. Where they do not fit, sweep = 12 goes over all "
        .. "slices again and again: a block takes 12 slices on both sides, and the result is the "
        .. "same, to the bit if the rays have a normal operator (model fourier), otherwise to "
        .. "rounding. Three volumes are in a store between two iterations, seven between two "
        .. "sweeps of one, and twice as many while a sweep runs: a sweep above tv_iterations, "
        .. "where so many slices fit, stores three. Without a store, slab = 32 makes the result "
        .. "from slabs of 32 slices with overlap slices beside them, which is not exact: it "
        .. "differs near the borders of slabs, and is the same for blocks of any size. On blobs "
        .. "with noise, after 30 iterations, the largest difference with an overlap of 16 was 3e-4 "
        .. "of the range of values with a small lambda, 2e-3 with the best lambda and 1e-2 with "
        .. "five times that; with an overlap of 4 it was two to three times as much.",
    reference = "mb.tomo.fista",
    own = solvers.options,
    solver = solvers.reconstruct,
    sweeps = solvers.sweeps,
}
