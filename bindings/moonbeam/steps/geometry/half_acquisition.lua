local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

return {
    name = "half_acquisition",
    summary = "A whole turn with the axis near an edge of the detector: a field of view of up to "
        .. "twice the detector's width.",
    doc = "Declares how the scan was made: the search for the axis goes nearer to the edges, and "
        .. "step fbp weights the columns that are measured twice and makes slices of the whole "
        .. "field of view. Place it before step center.",
    reference = "G. Wang, Med. Phys. 29 (2002) 1634",
    options = declared.options(),
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = function(_, shape, g, _, before)
        geometry.before_center(before)
        local least, most = math.huge, -math.huge
        for _, angle in ipairs(g.angles) do
            least, most = math.min(least, angle), math.max(most, angle)
        end
        if (most - least) * shape[1] < 2 * math.pi * 0.95 * (shape[1] - 1) then
            fail("argument", nil, nil, "half acquisition needs a whole turn; the angles cover "
                .. "%.0f degrees: remove it", math.deg(most - least))
        elseif g.lean ~= 0 then
            fail("argument", nil, nil, "half acquisition weights all rows about one axis: it does "
                .. "not go with step tilt; remove one of the two")
        end
    end,
    geometry = function(_, g)
        return geometry.with(g, {half_acquisition = true})
    end,
    plain = function(_, settings)
        settings.half_acquisition = true
        return true
    end,
    run = function() end,
}
