local declared = require "moonbeam.internal.declared"
local geometry = require "moonbeam.pipeline.geometry"

return {
    name = "tilt",
    summary = "The axis leans in the plane of the detector.",
    options = declared.options(
        {"angle", "number", "between the axis and the detector's columns; positive: further right "
            .. "in lower rows, like a backslash", unit = "rad", above = -math.pi / 4,
            below = math.pi / 4, required = true}),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    geometry = function(options, g)
        return geometry.with(g, {lean = math.tan(options.angle)})
    end,
    plain = function(options, settings)
        settings.axis_tilt = options.angle
        return true
    end,
    run = function() end,
}
