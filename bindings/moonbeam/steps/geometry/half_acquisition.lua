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
    options = declared.options(
        {"when", "choice", "always; stated: where the scan says that it is one (field_of_view "
            .. "\"Half\" of an NXtomo file); never: the scan looks like one and is none",
            choices = {"always", "stated", "never"}, default = "always"}),
    prepare = function(options, _, source)
        local says = source.scan and source.scan.says
        if options.when ~= "stated" then
            return options
        end
        return {when = says and says.half_acquisition and "always" or "stated"}
    end,
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = function(options, shape, g, _, before)
        if options.when ~= "always" then
            return
        end
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
    geometry = function(options, g)
        return options.when == "always" and geometry.with(g, {half_acquisition = true})
            or options.when == "never" and geometry.with(g, {never_half = true}) or g
    end,
    plain = function(options, settings)
        if options.when == "always" then
            settings.half_acquisition = true
        elseif options.when == "never" then
            settings.half_acquisition = false
        end
        return true
    end,
    run = function() end,
}
