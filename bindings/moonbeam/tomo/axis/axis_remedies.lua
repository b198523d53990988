--- What to do where the search for the axis of a scan (scan_center.lua) has not found it: one
-- sentence for each verdict.

local axis_edges = require "moonbeam.tomo.axis.axis_edges"
local center = require "moonbeam.tomo.center"

local axis_remedies = {}

local LEAST_UNSURE = 0.1 -- px: an uncertainty worth a word
local MATCH = 0.3 -- a residual above which projections do not match

--- How well opposite projections match, in words; with what noise leaves open, if that counts.
function axis_remedies.residual_of(found)
    local unsure = found.uncertainty >= LEAST_UNSURE and found.uncertainty < math.huge
    return ("residual %.2g"):format(found.residual)
        .. (unsure and (", uncertain by %.1f px"):format(found.uncertainty) or "")
end

local residual_of = axis_remedies.residual_of
local remedies = {}

-- What a whole turn looks like whose object is beyond an edge; nil where it does not.
local function looks_like(facts)
    return facts.turn and axis_edges.looks_like(facts.sides, facts.whole) or nil
end

function remedies.edge(found, _, facts)
    local turn = facts.turn
    if found and found.beyond and not (found.beyond_end and looks_like(facts)) then
        return ("the axis lies nearer to the edge than the search goes: opposite projections match "
            .. "at column %.1f (residual %.2g against %.2g); %s"):format(found.beyond - found.lean,
            found.beyond_residual, found.residual,
            turn and "try --half-acquisition" or "give --center")
    end
    return looks_like(facts) or "the axis is at the edge of the search and may lie beyond it; "
        .. (turn and "try --half-acquisition, or give --center" or "give --center")
end

function remedies.ambiguous(found, _, facts)
    if facts.name == "seam" then
        return ("the axis at column %.2f is within a pixel of a column that is dead or stuck, "
            .. "where what does not move looks like an axis, and no second way confirms it to "
            .. "%.2g px; compare slices, and give --center"):format(found.column, center.CLOSE)
    elseif facts.name == "weak" then
        return looks_like(facts) or center.is_unexplained(found)
            and ("opposite projections match worse than noise explains (%s, of which noise makes "
            .. "%.2g), and nothing else confirms that the axis is at column %.2f; give --center")
            :format(residual_of(found), found.noise, found.column)
            or ("opposite projections match poorly (%s; 0 is perfect), and nothing else confirms "
            .. "that the axis is at column %.2f; give --center"):format(residual_of(found),
            found.column)
    end
    return looks_like(facts) or ("the axis is ambiguous: opposite projections match at column %.2f "
        .. "(residual %.2g) and at %.2f (residual %.2g); give --center"):format(found.column,
        found.residual, found.other - found.lean, found.other_residual)
end

function remedies.flat(found, _, facts)
    if 2 * facts.left_out > facts.cols then
        return ("%d of %d columns are dead or stuck, or nothing is known of them: the axis may be "
            .. "anywhere; give --center"):format(facts.left_out, facts.cols)
    end
    local like = looks_like(facts)
    if like then
        return like
    elseif found.residual < MATCH then
        return ("opposite projections match (residual %.2g, 0 is perfect), but %d rows of %d "
            .. "columns are too few to tell a match from chance; give --center"):format(
            found.residual, facts.rows, facts.cols)
    end
    return ("opposite projections hardly match (residual %.2g, 0 is perfect): the axis may be "
        .. "anywhere; give --center"):format(found.residual)
end

function remedies.slices()
    return "no projections are opposite, and trial slices alone are a weak sign of the axis; "
        .. "compare slices, and give --center"
end

local NAMES = {slices = "trial slices", mass = "centers of mass", wedge = "the double wedge"}

function remedies.differ(found, others, facts)
    local name, weak = facts.name, center.is_weak(found) -- then the other one is taken
    return ("two ways to find the axis differ by %.2f px: opposite projections give %.2f, "
        .. "%s %.2f. The %s is taken; compare with --center %.2f"):format(
        math.abs(others[name] - found.column), found.column, NAMES[name], others[name],
        weak and "latter" or "former", weak and found.column or others[name])
end

--- The sentence for a verdict, or nil. `found` and `others` as in center.decide, with columns of
-- the scan; `facts`: {turn (a whole turn that is no half acquisition), name (the third result of
-- center.decide), cols, rows, left_out (columns), sides and whole (axis_edges.lua)}.
function axis_remedies.of(verdict, found, others, facts)
    if facts.name == "spread" then
        return "dead or stuck columns have been spread by steps before the search, and what they "
            .. "made may look like an axis; move step center before these steps, or give --center"
    end
    return remedies[verdict] and remedies[verdict](found, others, facts) or nil
end

return axis_remedies
