local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local windows = require "moonbeam.pipeline.windows"

return {
    name = "nonfinite",
    summary = "Replaces NaN and infinities by the valid values beside them.",
    doc = "A value that is not finite becomes the median or the mean of the valid values in the "
        .. "smallest square around it, within its frame or slice, that has any. Without this step "
        .. "such values of frames become those of an unattenuated beam when the first step reads "
        .. "them. Where nothing within reach is valid the value stays.",
    reference = "mb.mend",
    options = declared.options(declared.from("mend", "method", "reach")),
    takes = {quantity = "any", layout = {"frames", "slices"}, dtypes = windows.DTYPES},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    needs = function(options, first, last, step, cut)
        local inside = cut == "rows" and step.kind_before.layout == "frames"
        local reach = inside and options.reach or 0
        return first - reach, last + reach
    end,
    run = function(block, options)
        windows.prepare(block)
        local _, counts = mb.mend(block.data, {method = options.method, reach = options.reach,
            counted = windows.counted(block), out = block.data})
        windows.note(block, counts, 1, 0)
    end,
}
