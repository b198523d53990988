--- The weights of the angles in direct methods: the option, declared once, and what its values
-- stand for.

local arguments = require "moonbeam.internal.arguments"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local directions = require "moonbeam.scan.directions"
local fail = require "moonbeam.internal.fail"

local angle_weights = {}

--- The option of direct methods and of their steps.
angle_weights.option = declared.options({"weights", "list", "one factor per angle, of mean 1; "
    .. "auto: by how densely its direction is covered, nothing where that is even; none: every "
    .. "angle counts the same", words = {"auto", "none"}, default = "auto"})

-- The last coverage: a run asks for that of the same angles for every block.
local latest = {}

local function is_latest(angles, period)
    if latest.period ~= period or #latest.angles ~= #angles then
        return false
    end
    for i, angle in ipairs(latest.angles) do
        if angle ~= angles[i] then
            return false
        end
    end
    return true
end

--- The coverage of angles (directions.covered), of parallel beams or of a half acquisition.
function angle_weights.coverage(angles, half_acquisition)
    local period = (half_acquisition and 2 or 1) * math.pi
    if not is_latest(angles, period) then
        latest = {angles = table.move(angles, 1, #angles, 1, {}), period = period,
            found = directions.covered(angles, period)}
    end
    return latest.found
end

--- The weights that a value of the option stands for: one number per angle, or nil where all count
-- the same. `angles`: a table, an array of one axis (in a dry run it has no values, and counts as
-- even), or the angle of the only projection. Raises an error where there are not `count` numbers.
function angle_weights.of(value, angles, count, half_acquisition, op)
    if type(value) == "table" then
        if #value ~= count then
            fail("shape", op, "weights", "weights has %s; there are %d angles: give one for each",
                counted(#value, "number"), count)
        end
        return value
    elseif value == "none" or count < 2 then
        return nil
    elseif arguments.is_array(angles) then
        angles = not angles.device.dry and angles:to_table() or {}
    end
    return angle_weights.coverage(angles, half_acquisition).weights
end

return angle_weights
