-- The angles of a scan, in a file or in memory, examined before anything is made of them: what
-- would make garbage is an error, what is merely odd is one warning.

local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local TURN = 2 * math.pi

-- Degrees beyond which an angle has lost its precision, and nobody has turned so far.
local MOST = 1e9

-- Degrees by which equal angles may differ.
local SAME <const> = 1e-6

local MOST_NAMED <const> = 12 -- projections that a message names

local REMEDY = "correct the file, or give the option angles (the first and the last) "
    .. "and the option angle_unit"

local function number(value)
    return ("%.7g"):format(value)
end

-- Values in rising order.
local function sorted(values)
    local list = table.move(values, 1, #values, 1, {})
    table.sort(list)
    return list
end

-- Sorted values that differ, and how often each is there.
local function distinct(list)
    local values, counts = {}, {}
    for _, value in ipairs(list) do
        if #values > 0 and value - values[#values] <= SAME then
            counts[#counts] = counts[#counts] + 1
        else
            values[#values + 1], counts[#counts + 1] = value, 1
        end
    end
    return values, counts
end

local function median(values)
    local list = sorted(values)
    return list[(#list + 1) // 2]
end

-- Steps between neighbors; `period`: and from the last to the first, a period further.
local function steps_of(values, period)
    local steps = {}
    for i = 2, #values do
        steps[i - 1] = values[i] - values[i - 1]
    end
    if period then
        steps[#values] = values[1] + period - values[#values]
    end
    return steps
end

-- ---- garbage ----

local function refuse(facts, format, ...)
    fail(facts.code, facts.op, "angles", format .. " " .. REMEDY, ...)
end

local function check_magnitude(degrees, facts)
    for i, angle in ipairs(degrees) do
        if angle ~= angle or math.abs(angle) == math.huge then
            refuse(facts, "angle %d is not a finite number:", i)
        elseif math.abs(angle) > MOST then
            refuse(facts, "angle %d is %g degrees, which is beyond what a scan can reach:", i,
                angle)
        end
    end
end

-- One value that is there much more often than others: angles that were never written, or a record
-- that stopped.
local function check_repeats(values, counts, total, facts)
    local most, where = 0, nil
    for i, count in ipairs(counts) do
        if count > most then
            most, where = count, values[i]
        end
    end
    if most == total then
        refuse(facts, "all %d angles are %s degrees; were they never written?", total,
            number(where))
    elseif most >= 4 and most >= total / 4 and most > 4 * median(counts) then
        refuse(facts, "%d of %d angles are %s degrees; were they not all written?", most, total,
            number(where))
    end
end

-- An angle that is far from where all others are.
local function check_wild(degrees, list, facts)
    local quarter = #list // 4
    if quarter == 0 then
        return
    end
    local low, high = list[quarter + 1], list[#list - quarter]
    local reach = 360 + 4 * (high - low)
    for i, angle in ipairs(degrees) do
        if angle < low - reach or angle > high + reach then
            refuse(facts, "angle %d is %s degrees, far from the others (half of them are between "
                .. "%s and %s):", i, number(angle), number(low), number(high))
        end
    end
end

local function near(value, targets, part)
    for _, target in ipairs(targets) do
        if math.abs(value - target) <= part * target then
            return true
        end
    end
    return false
end

-- Radians that are degrees, and degrees that are radians. `facts.given`: the caller has named the
-- unit.
local function check_unit(span, step, facts)
    local radians = math.rad(span)
    if facts.unit == "rad" and radians > 2 * TURN * (1 + 1e-9) then
        local looks = near(radians, {180, 360}, 0.02)
            or near(radians + math.rad(step), {180, 360}, 0.02)
        if looks or step > 90 or not facts.given then
            local other = facts.given and "" or ", or 'rad' if they are radians"
            fail(facts.code, facts.op, "angle_unit", "the angles%s span %s rad, %.1f "
                .. "turns: are they degrees? Give the option angle_unit ('deg'%s)", facts.where,
                number(radians), radians / TURN, other)
        end
    elseif facts.unit == "deg" and not facts.given and step < 1
        and (near(span, {math.pi, TURN}, 0.01) or near(span + step, {math.pi, TURN}, 0.01)) then
        fail(facts.code, facts.op, "angle_unit", "the angles%s span %s degrees: are they "
            .. "in radians? Give the option angle_unit ('rad', or 'deg' if they are degrees)",
            facts.where, number(span))
    end
end

-- ---- what is odd ----

-- Do the angles cover 180 degrees or whole turns, with the last step or without? Of large steps
-- everything may.
local function covers(span, step)
    if step > 30 then
        return true
    end
    for _, covered in ipairs {span, span + step} do
        local turns = math.max(1, math.floor(covered / 360 + 0.5)) * 360
        local tolerance = math.max(1, 1.5 * step)
        if math.abs(covered - 180) <= tolerance or math.abs(covered - turns) <= tolerance then
            return true
        end
    end
    return false
end

-- The largest gap between directions, which repeat after half a turn: from, to and the usual
-- step, or nil where it is as the others.
local function largest_gap(list)
    local within = tables.mapped(list, function(angle) return angle % 180 end)
    local values = distinct(sorted(within))
    local steps, widest = steps_of(values, 180), 1
    for i, step in ipairs(steps) do
        widest = step > steps[widest] and i or widest
    end
    if steps[widest] > math.max(5, 4 * median(steps)) then
        return values[widest], values[widest] + steps[widest], median(steps)
    end
    return nil
end

-- The step that leaves projections out, by their numbers.
local function leaves_out(indices)
    local shown = table.move(indices, 1, math.min(#indices, MOST_NAMED), 1, {})
    shown[#shown + 1] = #indices > MOST_NAMED and "..." or nil
    return ("a recipe with {\"select\", bad = {%s}} leaves %s out"):format(
        table.concat(shown, ", "), #indices == 1 and "one" or "them")
end

-- The numbers of the projections whose angle an earlier one has, and, where every angle is there
-- several times in a row and equally often, how often.
local function repeats(degrees)
    local order, indices, run = {}, {}, 0
    for i in ipairs(degrees) do
        order[i] = i
        run = i > 1 and math.abs(degrees[i] - degrees[i - 1]) <= SAME and run or i
    end
    table.sort(order, function(a, b)
        return degrees[a] < degrees[b] or degrees[a] == degrees[b] and a < b
    end)
    local first, together = 1, #degrees - run + 1
    for k = 2, #order + 1 do
        if k > #order or degrees[order[k]] - degrees[order[first]] > SAME then
            local low, high = math.huge, 0
            for j = first, k - 1 do
                low, high = math.min(low, order[j]), math.max(high, order[j])
            end
            together = k - first == together and high - low == together - 1 and together
            for j = first, k - 1 do
                indices[#indices + 1] = order[j] ~= low and order[j] or nil
            end
            first = k
        end
    end
    table.sort(indices)
    return indices, together or nil
end

-- Frames at the end of a scan that repeat earlier ones are taken after it, as those that show
-- whether the sample has moved. The one before them belongs to them if its direction is there as
-- well, seen from behind: without it no opposite projection is one of them.
local function with_opposite(indices, degrees)
    local first = indices[1]
    if #indices < 2 or first < 3 or indices[#indices] ~= #degrees
        or #degrees - first + 1 ~= #indices then
        return indices
    end
    for i = 1, first - 2 do
        local apart = (degrees[first - 1] - degrees[i]) % 180
        if math.min(apart, 180 - apart) <= SAME then
            return {first - 1, table.unpack(indices)}
        end
    end
    return indices
end

-- Projections of one angle, and what to do about them.
local function repeats_text(degrees)
    local indices, together = repeats(degrees)
    return ("%d of %d angles occur%s more than once, and direct methods count them as often: take "
        .. "an iterative method (--method sirt), or %s"):format(#indices, #degrees,
        #indices == 1 and "s" or "", together and ("a recipe with {\"average\", frames = %d}")
        :format(together) or leaves_out(with_opposite(indices, degrees)))
end

local function oddities(list, values, span, step, degrees)
    local warnings = {}
    local from, to, usual = largest_gap(list)
    if not covers(span, step) then
        warnings[1] = ("the angles span %.3f degrees, neither 180 nor whole turns%s"):format(span,
            span < 10 and ": are they in radians?" or "")
    elseif from then
        warnings[1] = ("there is no projection between %s and %s degrees (modulo 180), a gap of "
            .. "%s where the usual step is %s"):format(number(from), number(to), number(to - from),
            number(usual))
    end
    if #values > 2 and math.abs(span - 360) < step / 4 then
        local last = 1
        for i, angle in ipairs(degrees) do
            last = angle > degrees[last] and i or last
        end
        warnings[#warnings + 1] = ("the views at %s and %s degrees are the same view, which direct "
            .. "methods count twice: %s"):format(number(values[1]), number(values[#values]),
            leaves_out {last})
    end
    if #values < #list then
        warnings[#warnings + 1] = repeats_text(degrees)
    end
    return warnings
end

--- Examines angles in radians: {angles, warnings, span_deg, step_deg, turns}; `angles` are those
-- given, or, where they span more than two turns, those modulo a turn. `facts`: op, code (of
-- errors), unit ("deg" or "rad", as stored), given (the caller has named the unit), where (text
-- after "the angles").
return function(radians, facts)
    local degrees = tables.mapped(radians, math.deg)
    check_magnitude(degrees, facts)
    if #degrees < 2 then
        return {angles = radians, warnings = {"there is only one projection"}}
    end
    local list = sorted(degrees)
    local values, counts = distinct(list)
    check_repeats(values, counts, #list, facts)
    check_wild(degrees, list, facts)
    local span, step = list[#list] - list[1], median(steps_of(values))
    check_unit(span, step, facts)
    local angles = radians
    if span > 720 * (1 + 1e-9) then
        angles = {}
        for i, angle in ipairs(radians) do
            angles[i] = angle % TURN
        end
    end
    return {angles = angles, warnings = oddities(list, values, span, step, degrees),
        span_deg = span, step_deg = step, turns = span / 360}
end
