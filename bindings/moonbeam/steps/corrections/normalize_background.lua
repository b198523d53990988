local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

return {
    name = "normalize_background",
    summary = "Takes the background of each row out: what its edges have, where there is air.",
    doc = "Air normalization: a line through the means of width columns at both edges of each row "
        .. "of each projection. Transmission is divided by it, it is subtracted from line "
        .. "integrals, so that air becomes 1 or 0: a beam that flickers leaves no trace where both "
        .. "edges of the detector see air. method = \"chebyshev\" takes a parabola out that fits "
        .. "the whole row best, for objects wider than the detector. A NaN among the columns that "
        .. "are used makes the whole row NaN.",
    reference = "normalize_bg of TomoPy, whose line begins and ends at the outermost columns; "
        .. "sinogram normalization of nabu",
    options = declared.options(declared.from("normalize_background", "method", "width", "floor")),
    presets = {nabu = {method = "chebyshev"}},
    takes = {quantity = {"transmission", "line integrals"}, layout = "frames"},
    cuts = {"rows", "frames"},
    check = function(options, shape)
        if options.method == "edges" and 2 * options.width > shape[3] then
            fail("argument", nil, "width", "two edges of %d columns do not fit into %d columns; "
                .. "give a width of at most %d", options.width, shape[3], shape[3] // 2)
        end
    end,
    run = function(block, options)
        mb.normalize_background(block.data, {method = options.method, width = options.width,
            floor = options.floor, operation = block.quantity == "transmission" and "divide"
                or "subtract", out = block.data})
    end,
}
