local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local timeline = require "moonbeam.scan.timeline"

-- The groups of flats of the scan, or nil where they count as one.
local function groups_of(options, g)
    if options.interpolation ~= "linear" then
        return nil
    end
    g.timeline.groups = g.timeline.groups or timeline.groups(g.timeline)
    return g.timeline.groups
end

-- The ring currents by which frames are divided, or nil.
local function currents_of(options, g)
    return timeline.used(g.currents, options.normalize_current)
end

-- The values of the projections {first, last} of the data, from a list of the scan's projections.
local function of_projections(list, g, first, last)
    local own = {}
    for i = first or 1, last or #g.frames do
        own[#own + 1] = list[g.frames[i]]
    end
    return own
end

-- What the operator needs to know of flats and projections first to last beside their values.
local function lists_of(options, g, first, last)
    local groups, own = groups_of(options, g), {}
    if groups and #groups.counts > 1 then
        own.groups, own.positions = groups.counts, groups.positions
        own.frames = of_projections(g.timeline.frames, g, first, last)
    end
    local currents = currents_of(options, g)
    own.scale, own.flat_scale = timeline.scales(g.exposures, currents, function(list)
        return of_projections(list, g, first, last)
    end, "step flat_field")
    return own
end

local function check(options, _, g)
    local line, currents = g.timeline, g.currents
    if options.interpolation == "linear" and not line then
        fail("argument", nil, "interpolation", "the scan does not say when its flats were taken, "
            .. "before or after the projections; give the option flat_positions, or "
            .. "interpolation = \"mean\"")
    elseif options.normalize_current == "yes" and not currents_of(options, g) then
        fail("argument", nil, "normalize_current", "the ring current at the %s is not known; give "
            .. "%s, or normalize_current = \"no\"", currents and "flats" or "projections",
            (currents and "" or "the option current and ") .. "the option flats_current")
    end
    lists_of(options, g) -- raises where a current makes no sense
end

-- What packages do that know no ring current.
local OTHERS <const> = {mode = "mean", interpolation = "mean", normalize_current = "no"}

return {
    name = "flat_field",
    summary = "Counts to transmission: what the beam and the dark frames would have been is taken "
        .. "out.",
    doc = "Subtracts the mean dark frame from each projection and from the mean flat frame, and "
        .. "divides the projection by the flat frame. Values that are not finite become 1, no "
        .. "attenuation.\n"
        .. "Flats between which no projection was taken are a group. With interpolation = "
        .. "\"linear\" each group is averaged alone and lies at its mean place in the scan; a "
        .. "projection is divided by what lies linearly between the groups before and after it, "
        .. "and by the nearest group outside. NXtomo files say by their image keys when flats were "
        .. "taken, others by an option of the scan, flat_positions.\n"
        .. "normalize_current divides flats and projections, less the dark, by the ring current at "
        .. "each of them, before flats are averaged and interpolated: a beam that decays or is "
        .. "refilled leaves no trace. Currents are those of control/data in NXtomo, or options of "
        .. "the scan. Nothing is divided where they vary by less than 0.1 %.\n"
        .. "Where the scan says that flats and projections were not exposed equally long, both, "
        .. "less the dark, are divided by their exposure times. The option flats_exposure of the "
        .. "scan says otherwise.",
    reference = "(data - dark) / (flat - dark)",
    options = declared.options(
        {"mode", "choice", "how flats and darks are averaged", choices = {"mean", "median"},
            default = "mean"},
        {"interpolation", "choice", "mean: all flats are averaged; linear: between groups of "
            .. "flats, by frame number", choices = {"mean", "linear"}, default = "mean"},
        timeline.normalize,
        declared.from("flat_field", "dark_mode", "floor", "nonfinite")),
    -- Other packages differ in these.
    presets = {httomo = OTHERS,
        nabu = {mode = "median", dark_mode = "mean", interpolation = "linear",
            normalize_current = "if_known"},
        tomocupy = OTHERS,
        algotom = OTHERS},
    takes = {quantity = "counts", layout = "frames", dtypes = {"u8", "u16", "i32", "f16"}},
    gives = {quantity = "transmission", layout = "same"},
    cuts = {"rows", "frames"},
    check = check,
    plain = function(options, settings)
        settings.flat_mode, settings.flat_interpolation = options.mode, options.interpolation
        settings.normalize_current = options.normalize_current
        return options.dark_mode == "same"
    end,
    run = function(block, options)
        local frames = block.cut == "frames" and block.rows or block.frames or {}
        local own = lists_of(options, block.geometry, frames[1], frames[2])
        own.darks, own.flats, own.mode = block.darks, block.flats, options.mode
        own.dark_mode = options.dark_mode
        own.floor, own.nonfinite = options.floor, options.nonfinite
        own.log, own.consume = false, true
        block.data, block.mended = mb.tomo.line_integrals(block.data, own)
        block:drop_references()
    end,
}
