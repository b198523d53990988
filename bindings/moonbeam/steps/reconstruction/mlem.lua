local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.mlem"

return iterative.step {
    name = "mlem",
    summary = "Slices of greatest likelihood for Poisson data: emission, fluorescence, 0 or more.",
    doc = "For data that are not negative; negative = \"zero\" counts negative ones as 0, "
        .. "otherwise they are an error, which is found in each block when it is computed. Slices "
        .. "are never negative. They are per meter if the pixel size is known, otherwise per "
        .. "pixel. Each slice is made by itself.",
    reference = "mb.tomo.mlem",
    own = solvers.options,
    solver = solvers.reconstruct,
}
