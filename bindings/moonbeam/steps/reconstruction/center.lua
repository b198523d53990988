local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local scan_center = require "moonbeam.tomo.scan_center"

return {
    name = "center",
    summary = "The column of the rotation axis: given, or found from opposite projections.",
    doc = "Opposite projections are registered, and the column is checked by centers of mass and "
        .. "trial slices. The verdict of the search (found, differ, edge, ambiguous, flat) is "
        .. "stored in the result. The column of a leaning axis is that at half the height of the "
        .. "detector.",
    options = declared.options(
        {"method", "choice", "auto: by opposite projections, checked by centers of mass and trial "
            .. "slices", choices = {"auto"}, default = "auto"},
        {"column", "number", "0-based column of the scan, if it is known; skips the search",
            unit = "px"}),
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    gives_value = "center",
    known = function(options)
        return options.column
    end,
    check = function(options, _, g)
        if options.column and not (options.column >= 0 and options.column <= g.cols - 1) then
            fail("argument", nil, "column", "column is %g; the detector has columns 0 to %d",
                options.column, g.cols - 1)
        end
    end,
    bounds = function(options, _, step)
        local g = step.geometry_before
        if options.column then
            return {options.column, options.column}
        end
        local bounds = scan_center.bounds({cols = step.shape_before[3]},
            {half_acquisition = g.half_acquisition})
        return {geometry.column(g, bounds[1]), geometry.column(g, bounds[2])}
    end,
    measuring = function(options)
        return not options.column
    end,
    -- The verdict is that of scan_center.lua: {verdict, remedy, pair, slices, ..., how}.
    measure = function(view)
        local scan, settings = view:as_scan()
        local column, how, details = scan_center.find(scan, settings)
        details.how = how
        return column, details
    end,
}
