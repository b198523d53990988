local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

return {
    name = "mend",
    summary = "Replaces values that are not finite (NaN, infinite).",
    doc = "For scans without flats and darks, whose values are transmission or line integrals "
        .. "already; flat_field does the same for counts.",
    options = declared.options(
        {"value", "number", "what stands in their place; no attenuation is 1 in transmission and "
            .. "0 in line integrals", required = true}),
    takes = {quantity = "any", layout = "frames", dtypes = {"u8", "u16", "i32", "f16"}},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows", "frames"},
    run = function(block, options)
        block.data, block.mended = mb.tomo.line_integrals(block.data, {nonfinite = options.value,
            log = false, consume = true})
    end,
}
