local mb = require "moonbeam"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

return {
    name = "beam_hardening",
    summary = "Corrects beam hardening: each line integral becomes a polynomial of itself.",
    doc = "A polychromatic beam hardens on its way, so that line integrals grow less than the path "
        .. "does. coefficients c0, c1, c2, ... turn a line integral p into c0 + c1 p + c2 p^2 + "
        .. "..., for a single material. Usually c0 is 0. NaN stays NaN.",
    reference = "G. T. Herman, Phys. Med. Biol. 24 (1979) 81",
    options = declared.options(
        {"coefficients", "list", "factors of the powers 0, 1, 2, ... of a line integral, such as "
            .. "{0, 1, 0.05}; 2 to 16 numbers", required = true}),
    takes = {quantity = "line integrals", layout = "frames"},
    cuts = {"rows", "frames"},
    check = function(options)
        local list = options.coefficients
        if #list < 2 or #list > 16 then
            fail("argument", nil, "coefficients", "coefficients has %s; give 2 to 16, "
                .. "those of the powers 0, 1, 2, ...: {0, 1} changes nothing",
                counted(#list, "number"))
        end
    end,
    run = function(block, options)
        mb.polynomial(block.data, options.coefficients, {out = block.data})
    end,
}
