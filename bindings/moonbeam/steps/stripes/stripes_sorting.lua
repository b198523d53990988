local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"

-- Detectors of more columns get the wider window.
local function size_of(options, columns)
    return options.size ~= "auto" and options.size or columns > 2000 and 21 or 11
end

return {
    name = "stripes_sorting",
    summary = "Removes stripes of sinograms, rings of slices, by sorting: full, partial and small "
        .. "ones.",
    doc = "The values of each detector element are sorted, and those of equal rank are filtered "
        .. "with a median across neighboring elements. Works on every row by itself; columns "
        .. "beyond the border are reflected. NaN counts as larger than every number. Presets "
        .. "give the window of the other packages.",
    reference = "N. T. Vo et al., Optics Express 26, 28396 (2018), algorithm 3",
    options = declared.options(
        {"size", "integer", "window of the median, wider than the stripes; auto: 11, or 21 for "
            .. "more than 2000 columns", unit = "columns", min = 1, max = 1 << 20,
            default = "auto"}),
    presets = {httomo = {size = "auto"}, algotom = {size = 21}},
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows"},
    run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb.stripes_sorting(sinograms, {size = size_of(options, block.data.shape[3]),
            out = sinograms})
    end,
}
