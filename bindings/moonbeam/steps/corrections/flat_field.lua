local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

return {
    name = "flat_field",
    summary = "Counts to transmission: what the beam and the dark frames would have been is taken "
        .. "out.",
    doc = "Subtracts the mean dark frame from each projection and from the mean flat frame, and "
        .. "divides the projection by the flat frame. Values that are not finite become 1, no "
        .. "attenuation.",
    reference = "(data - dark) / (flat - dark)",
    options = declared.options(
        {"mode", "choice", "how flats and darks are averaged", choices = {"mean", "median"},
            default = "mean"},
        declared.from("flat_field", "floor", "nonfinite")),
    takes = {quantity = "counts", layout = "frames", dtypes = {"u8", "u16", "i32", "f16"}},
    gives = {quantity = "transmission", layout = "same"},
    cuts = {"rows", "frames"},
    plain = function(options, settings)
        settings.flat_mode = options.mode
        return true
    end,
    run = function(block, options)
        block.data, block.mended = mb.tomo.line_integrals(block.data, {darks = block.darks,
            flats = block.flats, mode = options.mode, floor = options.floor,
            nonfinite = options.nonfinite, log = false, consume = true})
        block:drop_references()
    end,
}
