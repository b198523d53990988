--- A metric over trial columns of the axis, of which the lowest value is the best: where it is, and
-- what the curve says about it.

local axis_curve = {}

-- Of the depth of the lowest valley: how much higher a second one is, at least.
local AMBIGUOUS = 0.07
-- Depth of a valley, as a part of the median: less is rounding.
local LEAST_DEPTH = 1e-4
-- Depth of a valley in steps of the curve's roughness, at least.
local LEAST_STEPS = 6

--- Centers from `low` on, brought to the columns of the sinogram. How many there are does not
-- depend on where the detector ends.
function axis_curve.centers(low, step, count, width)
    local list = {}
    for i = 1, count do
        list[i] = math.max(0, math.min(width - 1, low + (i - 1) * step))
    end
    return list
end

local function median(values)
    local sorted = table.move(values, 1, #values, 1, {})
    table.sort(sorted)
    local middle = (#sorted + 1) // 2
    return (sorted[middle] + sorted[#sorted - middle + 1]) / 2
end

--- The number of the lowest value, of those from `first` to `last` (default: of all); the first of
-- equal ones.
function axis_curve.lowest(values, first, last)
    local best = first or 1
    for i = best, last or #values do
        if values[i] < values[best] then
            best = i
        end
    end
    return best
end

--- The number of the lowest value outside the valley around number `best`, or nil.
function axis_curve.second_of(values, best)
    local left, right, other = best, best, nil
    while left > 1 and values[left - 1] >= values[left] do
        left = left - 1
    end
    while right < #values and values[right + 1] >= values[right] do
        right = right + 1
    end
    for i, value in ipairs(values) do
        if (i < left or i > right) and (not other or value < values[other]) then
            other = i
        end
    end
    return other
end

-- How far neighbors are from the line between theirs: the median, which a few kinks do not change.
local function roughness_of(values)
    local list = {}
    for i = 2, #values - 1 do
        list[#list + 1] = math.abs(values[i] - (values[i - 1] + values[i + 1]) / 2)
    end
    return #list > 0 and median(list) or 0
end

--- The vertex of the parabola through the lowest value and its neighbors, or that value's column
-- where it has not two.
function axis_curve.vertex(columns, values)
    local i = axis_curve.lowest(values)
    if i == 1 or i == #values then
        return columns[i]
    end
    local left, right = columns[i] - columns[i - 1], columns[i + 1] - columns[i]
    local curvature = values[i - 1] - 2 * values[i] + values[i + 1]
    if curvature <= 0 or math.abs(left - right) > 1e-6 * left then
        return columns[i]
    end
    return columns[i] + left * 0.5 * (values[i - 1] - values[i + 1]) / curvature
end

--- What a curve says: the place of its lowest value, and a verdict: "found", "edge" (it is at an
-- end), "flat" (the valley is no deeper than the curve is rough), "ambiguous" (another valley is
-- nearly as deep; its place is the third value). `least`: the depth of a valley that counts, as a
-- part of the median; `alike`: how much higher a second one is, at least, as a part of that depth.
function axis_curve.judge(values, least, alike)
    local best, middle = axis_curve.lowest(values), median(values)
    local depth = middle - values[best]
    local other = axis_curve.second_of(values, best)
    local ends = best == 1 or best == #values -- the rest of the valley is not seen
    if not (depth > (not ends and least or LEAST_DEPTH) * math.abs(middle)
        and depth > LEAST_STEPS * roughness_of(values)) then
        return best, "flat"
    elseif ends then
        return best, "edge"
    elseif other and values[other] < values[best] + (alike or AMBIGUOUS) * depth then
        return best, "ambiguous", other
    end
    return best, "found"
end

--- The same where the file of a scan says a column (axis_stated.lua; nil: nothing). Of two places
-- that are alike, the one that it says is "found"; then the fourth value is true.
function axis_curve.judge_stated(values, columns, stated, least, alike)
    local best, verdict, other = axis_curve.judge(values, least, alike)
    if verdict ~= "ambiguous" or not stated then
        return best, verdict, other
    end
    local slack = math.abs(columns[best] - columns[best > 1 and best - 1 or best + 1]) / 2
    local choice = stated.choice(columns[best], columns[other], slack)
    if not choice or choice == 2 and (other == 1 or other == #values) then
        return best, verdict, other
    elseif choice == 2 then
        best, other = other, best
    end
    return best, "found", other, true
end

return axis_curve
