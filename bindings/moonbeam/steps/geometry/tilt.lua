local axis_tilt = require "moonbeam.tomo.axis.axis_tilt"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local mb = require "moonbeam"
local memory = require "moonbeam.plan.peak"
local promise = require "moonbeam.plan.promise"

-- The angle of a scan, and the bytes that measuring takes by device; raises where it is not sure.
local function measured(source)
    if not source.scan then
        fail("argument", nil, "angle", "angle is \"auto\", but without a scan there is nothing to "
            .. "measure; give a number of radians")
    end
    local function find()
        return {axis_tilt.find(source.scan, {device = "host",
            log = source.kind.quantity ~= "line integrals"})}
    end
    local devices = {mb.device("host")}
    local planned = memory.peaks(find, devices).peak
    local peaks, found = promise.measured(devices, find)
    promise.check_bytes("step tilt", peaks.host, planned.host)
    local angle, details = table.unpack(found)
    if details.remedy then
        fail("argument", nil, "angle", "angle is \"auto\": %s", details.remedy)
    end
    return angle, planned
end

return {
    name = "tilt",
    summary = "The axis leans in the plane of the detector.",
    doc = "The column of the axis is given or found at the middle of the detector's height. It "
        .. "moves tan(angle) columns to the right for each row further down. Step fbp reconstructs "
        .. "every row about its own column. That corrects the shear of the lean; the rows of the "
        .. "object stay level. Place it before step center.\n"
        .. "With angle = \"auto\" the angle is measured when the pipeline is made, on the host, "
        .. "from opposite projections of the scan at four heights: that reads a few frames, for a "
        .. "plan too, and the plan counts what it takes. The recipe in the result has the angle. "
        .. "An axis whose columns are not on a line, or known at less than three heights, is an "
        .. "error.",
    options = declared.options(
        {"angle", "number", "between the axis and the detector's columns; positive: further right "
            .. "in lower rows, like a backslash; \"auto\" measures it", unit = "rad",
            above = -math.pi / 4, below = math.pi / 4, also = "string", required = true}),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    prepare = function(options, _, source)
        if options.angle ~= "auto" then
            return {angle = options.angle}
        end
        local angle, took = measured(source)
        return {angle = angle}, took
    end,
    check = function(options, _, g, _, before)
        if type(options.angle) ~= "number" then
            fail("argument", nil, "angle", "angle is '%s'; give a number of radians, or \"auto\"",
                tostring(options.angle))
        end
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
