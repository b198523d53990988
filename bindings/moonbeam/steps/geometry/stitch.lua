local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"

-- The overlap and the side of the axis, for frames with so many columns.
local function place_of(options, cols, g)
    local overlap, side = options.overlap, options.side
    if options.center then
        local element = geometry.element(g, options.center)
        side = element < (cols - 1) / 2 and "left" or "right"
        overlap = side == "left" and 2 * element + 1 or 2 * (cols - element) - 1
    end
    if options.even then
        overlap = math.floor(overlap + 0.5)
        overlap = overlap + overlap % 2
    end
    return overlap, side
end

-- The axis, a column of the scan.
local function axis_of(options, cols, g)
    if options.center and not options.even then
        return options.center
    end
    local overlap, side = place_of(options, cols, g)
    return geometry.column(g, side == "left" and (overlap - 1) / 2
        or cols - (overlap + 1) / 2)
end

-- How many projections are half a turn.
local function half_of(g)
    local count = #g.angles
    local span = math.abs(g.angles[count] - g.angles[1])
    local each = span / math.max(1, count - 1)
    return each > 0 and math.floor(math.pi / each + 0.5) or count
end

-- Columns that are added left and right.
local function margins(options, overlap)
    local added = options.pad and math.max(0, math.floor(overlap / 2)) or 0
    return added, added
end

local function columns(overlap, cols)
    return math.floor(2 * cols - overlap + 1e-9)
end

return {
    name = "stitch",
    summary = "A whole turn with the axis near an edge of the detector, joined to frames of half a "
        .. "turn and up to twice the width.",
    doc = "Each projection is joined with the mirrored one half a turn later. Columns that both "
        .. "see are blended linearly; columns that none sees, of a negative overlap, are filled. "
        .. "Step half_acquisition reconstructs such a scan without joining frames, about an axis "
        .. "that step center finds; this step needs to know the axis or the overlap, also of an "
        .. "axis beyond the detector, and hands the axis on: later steps need no center. Step "
        .. "center after it searches the joined frames. Columns are still those of the scan, also "
        .. "where they lie beyond its detector. A NaN stays in its column.",
    reference = "N. T. Vo et al., Opt. Express 29 (2021) 17849",
    presets = {httomo = {gap = "edge", pad = true, even = true}, algotom = {gap = "linear"}},
    options = declared.options(
        {"overlap", "number", "columns of the data that both halves see; negative: columns between "
            .. "them that none sees", unit = "px"},
        {"side", "choice", "of the detector where the axis is", choices = {"left", "right"}},
        {"center", "number", "the axis instead of overlap and side: 0-based column of the scan, "
            .. "which may be beyond the detector", unit = "px"},
        declared.from("stitch_turn", "gap"),
        {"pad", "boolean", "repeat the edges, for twice the columns of the detector",
            default = false},
        {"even", "boolean", "round the overlap to an even number", default = false}),
    takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"},
    cuts = {"rows"},
    sources = function(_, first, last, g)
        return first, last + half_of(g)
    end,
    check = function(options, shape, g, _, before)
        geometry.before_center(before)
        if options.center and (options.overlap or options.side) then
            fail("argument", nil, "center", "center and %s both say where the axis is; remove one",
                options.overlap and "overlap" or "side")
        elseif not options.center and not (options.overlap and options.side) then
            fail("argument", nil, options.overlap and "side" or "overlap", "give overlap and side, "
                .. "or center; without either, use step half_acquisition")
        elseif g.half_acquisition then
            fail("argument", nil, nil, "step half_acquisition does the same; remove one of the two")
        elseif g.lean ~= 0 then
            fail("argument", nil, nil, "it joins all rows about one axis: use step rotate instead "
                .. "of step tilt, before it")
        end
        local half = half_of(g)
        if half >= shape[1] or shape[1] < 1.9 * half then
            fail("argument", nil, nil, "it needs a whole turn; the angles cover %.0f degrees",
                math.deg(math.abs(g.angles[shape[1]] - g.angles[1])))
        end
        local overlap = place_of(options, shape[3], g)
        if math.abs(overlap) > shape[3] then
            fail("argument", nil, options.center and "center" or "overlap", "the overlap is %g "
                .. "columns; it must be from %d to %d, the columns of the data", overlap,
                -shape[3], shape[3])
        end
    end,
    shape = function(options, shape, g)
        local overlap, half = place_of(options, shape[3], g), half_of(g)
        local before, after = margins(options, overlap)
        return {math.min(half, shape[1] - half), shape[2],
            columns(overlap, shape[3]) + before + after}
    end,
    geometry = function(options, g, shape)
        local overlap, side = place_of(options, shape[3], g)
        local before, half = margins(options, overlap), half_of(g)
        local count = math.min(half, shape[1] - half)
        local moved = before + (side == "left" and columns(overlap, shape[3]) - shape[3] or 0)
        return geometry.with(g, {angles = table.move(g.angles, 1, count, 1, {}),
            frames = table.move(g.frames, 1, count, 1, {}), turn = "half",
            used = table.move(g.frames, 1, half + count, 1, {}),
            axis = axis_of(options, shape[3], g), axis_given = options.center,
            first_column = g.first_column - moved * g.column_step})
    end,
    run = function(block, options)
        local g, cols = block.geometry, block.data.shape[3]
        local overlap, side = place_of(options, cols, g)
        local before, after = margins(options, overlap)
        local half, frames = half_of(g), block.frames
        block:replace(mb.stitch_turn(block.data, overlap, side, {half = half, gap = options.gap,
            before = before, after = after}))
        local first = frames and frames[1] or 1
        block.frames = {first, first + block.data.shape[1] - 1}
    end,
}
