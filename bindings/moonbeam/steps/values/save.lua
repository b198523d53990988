local declared = require "moonbeam.internal.declared"
local large = require "moonbeam.tiff.large"
local shards = require "moonbeam.zarr.shards"

return {
    name = "save",
    summary = "Names the result file; the last step of a recipe.",
    doc = "The program and p:run may name another file. Without this step they must name one. The "
        .. "step is omitted if the recipe of a result runs again.",
    options = declared.options(
        {"file", "string", "the result's name, relative to the recipe", path = true,
            required = true},
        {"slices_per_file", "count", "write the volume as files of this many slices, beside the "
            .. "result, which shows them as one volume", min = 1, max = 1 << 20,
            usual = "one file"},
        large.option, shards.option),
    takes = {quantity = "any", layout = "any", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    last = true,
    run = function() end,
}
