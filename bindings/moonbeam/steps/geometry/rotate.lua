local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local frame_warp = require "moonbeam.pipeline.frame_warp"
local geometry = require "moonbeam.pipeline.geometry"

return frame_warp.step({
    name = "rotate",
    summary = "Turns frames in the plane of the detector.",
    doc = "Makes an axis upright that leans, and the rows of the object level with it: an axis "
        .. "that step tilt describes with an angle is upright after rotate with minus this angle, "
        .. "about any center. A row needs rows beside it; turns by more than a few degrees "
        .. "need whole frames at a time. Pixels that need a NaN become NaN. Place it before step "
        .. "center.",
    presets = {tomocupy = {order = 1, mode = "constant"}},
    options = declared.options(
        {"angle", "number", "counterclockwise, with row 1 at the top", unit = "rad",
            above = -math.pi, below = math.pi, required = true},
        {"center", "list", "{row, column} of the scan that stays, from 0", unit = "px", count = 2,
            usual = "the middle of the detector"},
        frame_warp.options "rotate"),
    check = function(_, _, g, _, before)
        geometry.before_center(before)
        if g.lean ~= 0 then
            fail("argument", nil, nil, "the axis leans already, by an earlier step tilt; remove "
                .. "one of the two")
        elseif math.abs(math.abs(g.row_step) - g.column_step) > 1e-9 * g.column_step then
            fail("argument", nil, nil, "pixels are %g rows high and %g columns wide; frames of "
                .. "square pixels can be turned: move it before the step that changes them",
                math.abs(g.row_step), g.column_step)
        end
    end,
}, {
    operator = "rotate",
    required = {"angle"},
    parameters = function(options, g)
        local center = options.center or {(g.rows - 1) / 2, (g.cols - 1) / 2}
        local angle = g.row_step > 0 and options.angle or -options.angle -- of the stored frames
        return {angle = angle, center = {geometry.row_element(g, center[1] + 1) - 1,
            geometry.element(g, center[2])}}
    end,
})
