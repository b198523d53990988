--- What is seen at the edges of the detector, and what that says: whether the object is larger than
-- the field of view, and whether a whole turn looks like a half acquisition.
--
-- An object that ends within the field of view leaves air at both edges. In a half acquisition the
-- axis is off the middle, and the object goes on beyond the edge that is nearer to it.

local mb = require "moonbeam"
local axis_pairs = require "moonbeam.tomo.axis_pairs"
local scan_frames = require "moonbeam.tomo.scan_frames"

local axis_edges = {}

-- What is looked at where no search is made: frames, spread over the scan, and rows.
local FRAMES, ROWS = 16, 8
-- At an edge, the part of the most attenuation and the least line integral that no air has.
local CUT, LEAST = 0.05, 0.03

-- Of the most attenuation: what an object makes at an edge, and less than which is air.
local SEEN, AIR = 0.1, 0.03
-- How far off the middle the axis of a half acquisition is, as parts of the width: where the other
-- edge sees air, and where it does not.
local OFF, FAR_OFF = 0.03, 0.1
local LEAST_OFF = 3 -- px

--- What edges {left, right} (in parts of the most attenuation) say about an axis at a column:
-- {near (the name of the edge that is nearer to the axis), near_seen and far_seen (whether the
-- object reaches that edge, and the other one), far_air, off (px off the middle), cols}. Nil
-- without edges.
function axis_edges.sides(edges, column, cols)
    if not edges then
        return nil
    end
    local off = column - (cols - 1) / 2
    local near, far = edges[off < 0 and 1 or 2], edges[off < 0 and 2 or 1]
    return {near = off < 0 and "left" or "right", near_seen = near > SEEN, far_seen = far > SEEN,
        far_air = far < AIR, off = math.abs(off), cols = cols}
end

-- Does a whole turn look like a half acquisition?
local function is_half(sides)
    return sides.near_seen and sides.off >= math.max(LEAST_OFF, (sides.far_air and OFF or FAR_OFF)
        * sides.cols)
end

--- The columns of the whole detector of a scan, or of that of which its data are a part.
function axis_edges.whole_of(scan)
    return scan.place and scan.place.cols or scan.cols
end

--- What a whole turn looks like of which the axis was not found: a sentence, or nil where no edge
-- or both see the object.
function axis_edges.looks_like(sides)
    local seen = sides and (sides.near_seen and not sides.far_seen and sides.near
        or sides.far_seen and not sides.near_seen and (sides.near == "left" and "right" or "left"))
    return seen and ("a whole turn whose object goes on beyond the %s edge looks like a half "
        .. "acquisition: try --half-acquisition. Where the axis is at that edge or beyond the "
        .. "detector, opposite projections have too little in common for any search: step stitch "
        .. "of a recipe joins them, {\"stitch\", center = X}"):format(seen) or nil
end

-- Has the user, or the file, said that it is no half acquisition?
local function is_denied(scan, options)
    local says = (scan.origin and scan.origin.scan or scan).says
    return options.half_acquisition == false or says and says.half_acquisition == false
end

--- A sentence about a scan whose axis is known, at a column of the scan: that it looks like a half
-- acquisition. Nil where it does not, where it is one, and where the user or the file say that it
-- is none.
function axis_edges.notice(scan, options, column, sides)
    if not sides or options.half_acquisition or is_denied(scan, options)
        or not axis_pairs.is_turn(scan.angles) or not is_half(sides) then
        return nil
    end
    return ("a whole turn, the axis at %.2f of %d columns, and an object that goes on beyond the "
        .. "%s edge: this looks like a half acquisition, of which the slices show a part, and too "
        .. "little attenuation; --half-acquisition reconstructs the whole of it"):format(column,
        axis_edges.whole_of(scan), sides.near)
end

-- The means of columns (line integrals) of some rows over some frames. Transmissions are averaged
-- before the logarithm, which noise would shift.
local function columns_of(scan, options)
    local device = mb.device(options.device or "host")
    local low, high = table.unpack(options.rows or {1, scan.rows})
    local first = math.max(low, (low + high) // 2 - ROWS // 2 + 1)
    local rows, sums = {first, math.min(high, first + ROWS - 1)}, {}
    local references <close> = scan_frames.references(scan, device, rows)
    local count = math.min(FRAMES, scan.n_angles)
    for i = 0, count - 1 do
        local k = 1 + i * (scan.n_angles - 1) // math.max(1, count - 1)
        local frame <close> = scan_frames.transmissions(scan, device, rows, {k, k}, references,
            options)
        local line <close> = mb.reduce(frame, "mean", {axis = 2})
        for x, value in ipairs(mb.bound({{}}, line.to_table, line)[1]) do
            sums[x] = (sums[x] or 0) + value / count
        end
    end
    for x, value in ipairs(sums) do
        sums[x] = options.log == false and value or -math.log(math.max(value, 1e-6))
    end
    return sums
end

--- A look at a few rows of a few frames of a scan whose axis is given, at a column: a sentence
-- about a half acquisition, or nil; and a sentence about an object that is larger than the field of
-- view, or nil. Reads at most 16 frames of 8 rows.
function axis_edges.look(scan, options, column)
    local columns, most, edges = columns_of(scan, options), LEAST, {0, 0}
    local width = math.max(1, #columns // 32)
    for x, value in ipairs(columns) do
        most = math.max(most, value)
        if x <= width then
            edges[1] = edges[1] + value / width
        elseif x > #columns - width then
            edges[2] = edges[2] + value / width
        end
    end
    local seen = {edges[1] > math.max(LEAST, CUT * most), edges[2] > math.max(LEAST, CUT * most)}
    local sides = axis_edges.sides({seen[1] and edges[1] / most or 0, seen[2] and edges[2] / most
        or 0}, column, #columns)
    local where = seen[1] and seen[2] and "both edges" or seen[1] and "the left edge"
        or seen[2] and "the right edge" or nil
    return axis_edges.notice(scan, options, column, sides), where and not options.half_acquisition
        and ("the object is larger than the field of view: it goes on beyond %s of the detector")
        :format(where) or nil
end

return axis_edges
