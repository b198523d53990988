local declared = require "moonbeam.internal.declared"
local geometry = require "moonbeam.pipeline.geometry"

return {
    name = "reverse_rotation",
    summary = "The stage turns the other way than the angles say.",
    doc = "All angles count as their negatives. Without it the slices of such a scan are mirrored. "
        .. "Options of later steps are still in the angles of the scan. No data move.",
    options = declared.options(),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    geometry = function(_, g)
        return geometry.reversed(g)
    end,
    plain = function()
        return true
    end,
    run = function() end,
}
