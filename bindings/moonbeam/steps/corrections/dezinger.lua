local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local windows = require "moonbeam.pipeline.windows"

return {
    name = "dezinger",
    summary = "Takes zingers out: values far from the median of a window around them become that "
        .. "median.",
    doc = "Works on counts before flat_field (integers stay integers), on transmission and on line "
        .. "integrals, whose unit the threshold has. The window lies in each frame, or with three "
        .. "extents also over the frames before and after. At the edges values are mirrored with "
        .. "the edge value repeated, unless mode says otherwise; httomo takes the value itself "
        .. "there, which differs for extents of 5 and more. Values that differ by more than "
        .. "threshold are replaced; httomo also replaces those that differ by exactly that. NaN "
        .. "stays; nonfinite replaces it.",
    reference = "|a - median(a)| > threshold",
    options = declared.options(
        windows.options("dezinger", {default = 3}),
        {"threshold", "number", "a value farther from the median than this is replaced; in the "
            .. "unit of the data, or with relative a part of the median", min = 0, required = true},
        declared.from("dezinger", "relative", "which"),
        {"references", "boolean", "flats and darks, too, where the data are counts",
            default = true}),
    presets = {
        httomo = {size = {3, 3, 3}, threshold = 1000, which = "both", references = false},
        tomocupy = {size = 3, threshold = 5000, which = "bright", references = false},
        nabu = {size = 3, threshold = 0.04, which = "bright"},
    },
    takes = {quantity = {"counts", "transmission", "line integrals"}, layout = "frames",
        dtypes = windows.DTYPES},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = windows.check,
    needs = windows.needs,
    run = function(block, options)
        windows.prepare(block)
        local size = windows.size(options)
        local own = {relative = options.relative, which = options.which, mode = options.mode}
        for _, name in ipairs {"flats", "darks"} do
            if options.references and block[name] then
                local before <close> = block[name]
                local counts
                block[name], counts = mb.dezinger(before, size, options.threshold, own)
                counts:release()
            end
        end
        own.counted = windows.counted(block)
        local result, counts = mb.dezinger(block.data, size, options.threshold, own)
        block:replace(result)
        windows.note(block, counts, 0, 2)
    end,
}
