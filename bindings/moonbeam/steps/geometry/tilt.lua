local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

return {
    name = "tilt",
    summary = "The axis leans in the plane of the detector.",
    doc = "The column of the axis is given or found at the middle of the detector's height. It "
        .. "moves tan(angle) columns to the right for each row further down. Step fbp reconstructs "
        .. "every row about its own column. That corrects the shear of the lean; the rows of the "
        .. "object stay level. Place it before step center.",
    options = declared.options(
        {"angle", "number", "between the axis and the detector's columns; positive: further right "
            .. "in lower rows, like a backslash", unit = "rad", above = -math.pi / 4,
            below = math.pi / 4, required = true}),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = function(_, _, g, _, before)
        geometry.before_center(before)
        if g.half_acquisition then
            fail("argument", nil, nil, "it does not go with step half_acquisition, which weights "
                .. "all rows about one axis; remove one of the two")
        elseif g.lean ~= 0 then
            fail("argument", nil, nil, "the axis leans already, by an earlier step tilt; remove "
                .. "one of the two")
        end
    end,
    geometry = function(options, g)
        return geometry.with(g, {lean = math.tan(options.angle)})
    end,
    plain = function(options, settings)
        settings.axis_tilt = options.angle
        return true
    end,
    run = function() end,
}
