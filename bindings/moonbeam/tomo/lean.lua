--- An axis that leans in the plane of the detector.
--
-- `axis_tilt` (rad) is the angle between the axis and the detector's columns, in its plane: the
-- axis is at column `center` in the middle of the detector's height and moves tan(axis_tilt)
-- columns to the right for each row further down, like a backslash. Every row is reconstructed
-- about its own column. That corrects the shear of the lean. The rows of the object stay level, so
-- a slice is d sin(axis_tilt) rows off at d columns from the axis. If that matters, rotate the
-- projections first.

local fail = require "moonbeam.internal.fail"

local lean = {}

-- Columns per row, 0 for an upright axis.
function lean.of(settings)
    local tilt = settings.axis_tilt or 0
    if tilt ~= 0 and settings.half_acquisition then
        fail("argument", "recon", "axis_tilt",
            "half acquisition weights all rows about one axis: it does not go with axis_tilt; "
            .. "leave the tilt out, or give the option half_acquisition = false")
    elseif tilt ~= tilt or math.abs(tilt) >= math.pi / 4 then
        fail("argument", "recon", "axis_tilt",
            "axis_tilt is %g rad; it must be between -pi / 4 and pi / 4", tilt)
    end
    return math.tan(tilt)
end

-- By how many columns the axis of a row, or of the middle of some rows, is to the right of
-- `center`. A part of a detector has `middle_row`: where the middle of the whole one is.
function lean.at(scan, row, settings)
    return lean.of(settings) * (row - (scan.middle_row or (scan.rows + 1) / 2))
end

return lean
