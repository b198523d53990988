local declared = require "moonbeam.internal.declared"
local geometry = require "moonbeam.pipeline.geometry"

return {
    name = "half_acquisition",
    summary = "A whole turn with the axis near an edge of the detector.",
    options = declared.options(),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    geometry = function(_, g)
        return geometry.with(g, {half_acquisition = true})
    end,
    plain = function(_, settings)
        settings.half_acquisition = true
        return true
    end,
    run = function() end,
}
