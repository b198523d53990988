local iterative = require "moonbeam.pipeline.iterative"
local solvers = require "moonbeam.tomo.iterative.mlem"

return iterative.step {
    name = "osem",
    summary = "Slices of greatest likelihood by parts of the angles: faster than mlem.",
    doc = "For data that are not negative; negative = \"zero\" counts negative ones as 0, "
        .. "otherwise they are an error, which is found in each block when it is computed. Slices "
        .. "are never negative. They are per meter if the pixel size is known, otherwise per "
        .. "pixel. Each slice is made by itself.",
    reference = "mb.tomo.osem",
    -- Theirs multiplies by the sums of pixels; ours divides.
    presets = {httomo = {iterations = 20, subsets = 12}},
    own = solvers.osem_options,
    solver = solvers.osem,
}
