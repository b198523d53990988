--- How densely the directions of a scan are covered: what each angle stands for, and the wedges
-- that no angle is in.
--
-- Parallel beams see the same from opposite sides: their directions repeat after half a turn. The
-- columns of a half acquisition that lie beyond the axis's mirrored edge are seen once in a turn:
-- its directions repeat after a whole turn. A direct reconstruction is a sum over angles, so each
-- angle must count as the part of the directions that it stands for: half of the gaps to the
-- directions beside it. Directions that are (almost) the same share one part, which keeps the noise
-- of all of them low. Plain functions of numbers: they know no arrays and no files.

local tables = require "moonbeam.internal.tables"

local directions = {}

-- Directions closer than this part of the usual step are one.
local SAME <const> = 0.25

-- A gap between directions is a wedge that was not recorded where it is wider than WEDGE degrees,
-- but at least LEAST and at most MOST usual steps. Narrower gaps are uneven steps.
local WEDGE <const>, LEAST <const>, MOST <const> = math.rad(7), 3, 8

-- Of the widest gaps so many, but no more than a quarter of all, do not tell the usual step.
local WIDEST <const> = 4

-- Gaps on either side of one that tell what is usual there.
local BESIDE <const> = 4

--- The order of angles (radians) by their directions, which repeat after `period`, and the gap from
-- each, in this order, to the next one; the last gap is that to the first direction, a period
-- further. Also the directions, by the number of the angle.
function directions.gaps(angles, period)
    local order, direction, gaps, count = {}, {}, {}, #angles
    for i, angle in ipairs(angles) do
        order[i], direction[i] = i, angle % period
    end
    table.sort(order, function(a, b)
        return direction[a] < direction[b] or direction[a] == direction[b] and a < b
    end)
    for i = 1, count do
        local following = i < count and direction[order[i + 1]] or direction[order[1]] + period
        gaps[i] = following - direction[order[i]]
    end
    return order, gaps, direction
end

-- The step that half of the directions lie in, or in a narrower one. Many angles in a narrow part
-- do not change it, and neither do wedges.
local function usual_step(gaps)
    local list, total, sum = tables.sorted(gaps), 0, 0
    local last = #list - math.min(WIDEST, #list // 4)
    for i = 1, last do
        total = total + list[i]
    end
    for i = 1, last do
        sum = sum + list[i]
        if sum >= total / 2 * (1 - 1e-9) then
            return list[i]
        end
    end
end

-- Groups of directions that are one: {places (means, rising), counts, of (group by angle)}.
local function grouped(angles, period)
    local order, gaps, direction = directions.gaps(angles, period)
    local count, widest = #order, 1
    for i = 2, count do
        widest = gaps[i] > gaps[widest] and i or widest
    end
    local reach = SAME * usual_step(gaps)
    local places, counts, of, first = {}, {}, {}, nil
    for k = 1, count do -- from behind the widest gap, so that no group is cut in two
        local at = (widest + k - 1) % count + 1
        local place = direction[order[at]] + (at <= widest and period or 0)
        if not first or place - first > reach then
            first, places[#places + 1], counts[#counts + 1] = place, 0, 0
        end
        local group = #places
        places[group], counts[group] = places[group] + place, counts[group] + 1
        of[order[at]] = group
    end
    for group, total in ipairs(places) do
        places[group] = total / counts[group]
    end
    return {places = places, counts = counts, of = of}
end

-- The usual step beside gap i, where that is more than the usual step of all.
local function step_beside(gaps, i, usual)
    local beside, count = {}, #gaps
    for k = 1, math.min(BESIDE, (count - 1) // 2) do
        beside[#beside + 1] = gaps[(i - 1 + k) % count + 1]
        beside[#beside + 1] = gaps[(i - 1 - k) % count + 1]
    end
    table.sort(beside)
    return math.max(usual, beside[(#beside + 1) // 2] or 0)
end

-- The gaps behind the groups, a wedge cut to the usual step beside it; the wedges, {from, to, step}
-- each; the usual step.
local function covered(places, period)
    local gaps, cut, wedges, count = {}, {}, {}, #places
    for i = 1, count do
        gaps[i] = (i < count and places[i + 1] or places[1] + period) - places[i]
    end
    local usual = usual_step(gaps)
    for i, gap in ipairs(gaps) do
        local step = gap > LEAST * usual and count > 1 and step_beside(gaps, i, usual) or gap
        local limit = math.max(LEAST * step, math.min(MOST * step, WEDGE))
        cut[i] = gap
        if gap > limit * (1 + 1e-9) then
            cut[i], wedges[#wedges + 1] = step, {places[i], places[i] + gap, step}
        end
    end
    return cut, wedges, usual
end

-- Does each part of what is covered have its share of the angles? By how much the place of an angle
-- differs from where it would be if all were even: less than a usual step. So a few percent of a
-- step that angles are off, one view that is there twice (0 and 180 degrees) and one that is lost
-- do not count.
local function is_even(counts, cut, usual, total, angles)
    local low, high, at, before = math.huge, -math.huge, 0, 0
    for group, count in ipairs(counts) do
        local off = (before + count / 2) * total / angles - at
        low, high = math.min(low, off), math.max(high, off)
        before, at = before + count, at + cut[group]
    end
    return high - low <= usual
end

--- How the directions of angles (radians), which repeat after `period` (pi, or 2 pi), are covered:
-- {weights, wedges, step}. `weights` is one factor per angle, of mean 1: the part of what is
-- covered that it stands for; nil where the coverage is even, as far as there is any. `wedges` are
-- the gaps in which nothing was recorded, {from, to, step beside it} each, in radians: they are not
-- filled by the angles at their ends. `step` is the usual step.
function directions.covered(angles, period)
    local count = #angles
    if count < 2 then
        return {wedges = {}, step = period}
    end
    local groups = grouped(angles, period)
    local cut, wedges, usual = covered(groups.places, period)
    local total = 0
    for _, gap in ipairs(cut) do
        total = total + gap
    end
    local found = {wedges = wedges, step = usual}
    if not is_even(groups.counts, cut, usual, total, count) then
        local parts, weights = {}, {}
        for i, gap in ipairs(cut) do
            parts[i] = (gap + cut[(i - 2) % #cut + 1]) / (2 * groups.counts[i]) * count / total
        end
        for i, group in ipairs(groups.of) do
            weights[i] = parts[group]
        end
        found.weights = weights
    end
    return found
end

-- Degrees: steps beyond which few views are meant, and any gap between them may be; what may be
-- missing without a word, a last step that was left out; and how far rounding goes.
local FEW_VIEWS <const>, UNNOTICED <const>, ROUNDING <const> = 30, 1, 1e-6

--- A text about the directions of these angles in which nothing was recorded, and what that costs;
-- nil where there are none. `period` as for directions.covered.
function directions.missing(angles, period)
    local all, missing, count, widest, usual = math.deg(period), 0, 0, nil, nil
    for _, wedge in ipairs(directions.covered(angles, period).wedges) do
        local gap, step = math.deg(wedge[2] - wedge[1]), math.deg(wedge[3])
        if step <= FEW_VIEWS and gap - step > UNNOTICED then
            missing, count = missing + gap - step, count + 1
            if not widest or gap > widest[2] - widest[1] + ROUNDING then
                local from = (math.deg(wedge[1]) + ROUNDING) % all - ROUNDING
                widest, usual = {from, from + gap}, step
            end
        end
    end
    if not widest then
        return nil
    end
    local more = count > 1 and ("; %d more gap%s"):format(count - 1, count > 2 and "s" or "") or ""
    return ("there is no projection between %.7g and %.7g degrees (modulo %.0f), a gap of %.7g "
        .. "where the usual step is %.7g%s: %.0f %% of the directions are missing, so edges along "
        .. "them are blurred"):format(widest[1], widest[2], all, widest[2] - widest[1], usual, more,
        100 * missing / all)
end

return directions
