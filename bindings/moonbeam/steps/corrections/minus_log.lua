local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

return {
    name = "minus_log",
    summary = "Transmission to line integrals: -ln, by the Beer-Lambert law.",
    doc = "Values below min are set to min, and values above max to max.",
    reference = "-ln(a)",
    options = declared.options(declared.from("minus_log", "min", "max")),
    takes = {quantity = "transmission", layout = "frames"},
    gives = {quantity = "line integrals", layout = "same"},
    cuts = {"rows", "frames"},
    plain = function()
        return true
    end,
    run = function(block, options)
        mb.minus_log(block.data, {min = options.min, max = options.max, out = block.data})
    end,
}
