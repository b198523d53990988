local mb = require "moonbeam"
local windows = require "moonbeam.pipeline.windows"

return {
    name = "median",
    summary = "Replaces each value by the median of a window around it.",
    doc = "The window lies in each frame or slice, or with three extents also over the frames or "
        .. "slices before and after. At the edges values are mirrored with the edge value repeated "
        .. "(symmetric, the default of the other filters and of SciPy), mirrored without it "
        .. "(reflect), or the edge value goes on (edge). NaN counts as greater than infinity.",
    reference = "mb.median_filter",
    options = windows.options("median_filter", {default = 3}),
    takes = {quantity = "any", layout = {"frames", "slices"}, dtypes = windows.DTYPES},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = windows.check,
    needs = windows.needs,
    run = function(block, options)
        windows.prepare(block)
        block:replace(mb.median_filter(block.data, windows.size(options), {mode = options.mode}))
    end,
}
