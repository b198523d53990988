local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

-- Whether the angles cover a whole turn, and what they cover.
local function whole_turn(g)
    local least, most = math.huge, -math.huge
    for _, angle in ipairs(g.angles) do
        least, most = math.min(least, angle), math.max(most, angle)
    end
    local span, count = most - least, #g.angles
    return span * count >= 2 * math.pi * 0.95 * (count - 1), span
end

-- Whether it is one, by what the scan says. Less than a whole turn is none, without a word.
local function decided(g)
    local says = (g.says or {}).half_acquisition
    if says == nil and whole_turn(g) then
        local problems = g.stated and g.stated.problems and g.stated.problems.half_acquisition
        fail("argument", nil, "when", "when is auto, and the scan, a whole turn, does not say "
            .. "whether it is a half acquisition%s; give when = \"always\" or when = \"never\"",
            problems and (" (%s)"):format(table.concat(problems, ", ")) or "")
    end
    return says and "always" or "never"
end

return {
    name = "half_acquisition",
    summary = "A whole turn with the axis near an edge of the detector: a field of view of up to "
        .. "twice the detector's width.",
    doc = "Declares how the scan was made: the search for the axis goes nearer to the edges, and "
        .. "step fbp weights the columns that are measured twice and makes slices of the whole "
        .. "field of view. Place it before step center.",
    reference = "G. Wang, Med. Phys. 29 (2002) 1634",
    options = declared.options({"when", "choice", "always; never; or auto: if the scan says that "
        .. "it is a half acquisition, and an error if it says nothing and is a whole turn",
        choices = {"always", "never", "auto"}, default = "always"}),
    prepare = function(options, g)
        return {when = options.when == "auto" and decided(g) or options.when}
    end,
    takes = {quantity = "any", layout = "frames", dtypes = "any"},
    gives = {quantity = "same", layout = "same", dtype = "same"},
    cuts = {"rows", "frames"},
    check = function(options, _, g, _, before)
        if options.when == "never" then
            return
        end
        geometry.before_center(before)
        local turn, span = whole_turn(g)
        if not turn then
            fail("argument", nil, nil, "half acquisition needs a whole turn; the angles cover "
                .. "%.0f degrees: remove it", math.deg(span))
        elseif g.lean ~= 0 then
            fail("argument", nil, nil, "half acquisition weights all rows about one axis: it does "
                .. "not go with step tilt; remove one of the two")
        end
    end,
    geometry = function(options, g)
        return geometry.with(g, {half_acquisition = options.when ~= "never",
            never_half = options.when == "never" or nil})
    end,
    plain = function(options, settings)
        settings.half_acquisition = options.when ~= "never"
        return true
    end,
    run = function() end,
}
