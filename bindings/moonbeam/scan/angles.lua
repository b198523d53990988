-- The angles of a scan, in a file or in memory, examined before anything is made of them: what
-- would make garbage is an error, what is merely odd is one warning.

local arguments = require "moonbeam.internal.arguments"
local directions = require "moonbeam.scan.directions"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local TURN = 2 * math.pi

-- Degrees beyond which an angle has lost its precision, and nobody has turned so far.
local MOST = 1e9

-- Degrees by which equal angles may differ.
local SAME <const> = 1e-6

local REMEDY = "correct the file, or give the option angles (the first and the last) "
    .. "and the option angle_unit"

local function number(value)
    return ("%.7g"):format(value)
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
    local list = tables.sorted(values)
    return list[(#list + 1) // 2]
end

local function steps_of(values)
    local steps = {}
    for i = 2, #values do
        steps[i - 1] = values[i] - values[i - 1]
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
            refuse(facts, "angle %d is %s, which is no finite number:", i,
                arguments.described(angle))
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

-- Of what is left out of half a turn no weights make anything (directions.lua).
local function oddities(radians, span)
    if span < 10 then
        return {("the angles span %.3f degrees: are they in radians?"):format(span)}
    end
    return {directions.missing(radians, math.pi)}
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
    local list = tables.sorted(degrees)
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
    return {angles = angles, warnings = oddities(radians, span),
        span_deg = span, step_deg = step, turns = span / 360}
end
