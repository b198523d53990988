--- The numbers in the names of files: do some lack, are some there twice, is a name no member of
-- the series?
--
-- Names of one form differ in their numbers alone. One of the numbers counts the files, if any
-- does: it rises from name to name by the same step, or by a multiple of the step where files
-- lack. Angles, times and dates count nothing. Where a number counts without a gap, nothing lacks,
-- whatever the other numbers do.

local numbering = {}

-- Words before and after a number that say that it counts nothing.
local BEFORE <const> = {"angle", "ang", "theta", "omega", "phi", "deg", "time", "date", "energy"}
local ANGLES <const> = {deg = true, degree = true, degrees = true, ["°"] = true, rad = true}
local UNITS <const> = {
    ms = true, s = true, sec = true, us = true, um = true, mm = true, nm = true, kev = true,
    ev = true, min = true}

-- The share of steps that are the usual one, at least, in a series in which files lack.
local USUAL <const> = 1 / 3

-- A name without its extension, cut: {form, numbers = {{text, value, exact}, ...}}. `exact`: it may
-- be a counter.
local function cut(name)
    local stem = name:gsub("%.[Tt][Ii][Ff][Ff]?$", "")
    local parts, numbers, at = {}, {}, 1
    while true do
        local from, to = stem:find("%d+", at)
        if not from then
            break
        end
        local before, decimal = stem:sub(at, from - 1), false
        -- 12.5 and 12p5 are one number each
        local fraction = stem:match("^[.pP](%d+)%f[%D]", to + 1)
        if fraction then
            to, decimal = to + 1 + #fraction, true
        end
        local after = (stem:sub(to + 1):match "^[%a°]+" or ""):lower()
        local angle = (stem:sub(to + 1):match "^[_ -]?([%a°]+)" or ""):lower()
        local word = (before:match "(%a+)[^%a]?$" or ""):lower()
        local text = stem:sub(from, to)
        local other = decimal or UNITS[after] or ANGLES[angle] or false
        for _, known in ipairs(BEFORE) do
            other = other or word == known
        end
        -- a sign is no part of the form; neither is the m or p that stands for one
        before = before:gsub("([^%w])[-+]$", "%1"):gsub("^[-+]$", "")
        if decimal or other then
            before = before:gsub("([^%w])[mpMPnN]$", "%1")
        end
        parts[#parts + 1] = before
        numbers[#numbers + 1] = {text = text, value = math.tointeger(tonumber(text)),
            exact = not other}
        at = to + 1
    end
    parts[#parts + 1] = stem:sub(at)
    return {form = table.concat(parts, "\0"), numbers = numbers}
end

-- ---- dates and times ----

local function is_date(text)
    local year, month, day = text:match "^([12][09]%d%d)([01]%d)([0-3]%d)"
    return year and tonumber(month) >= 1 and tonumber(month) <= 12 and tonumber(day) >= 1
        and tonumber(day) <= 31
end

local function is_time(text)
    local hour, minute, second = text:match "^(%d%d)(%d%d)(%d%d)$"
    return hour and tonumber(hour) < 24 and tonumber(minute) < 60 and tonumber(second) < 60
end

-- Are the numbers at a place dates or times in all names? Six digits are a time beside a date, or
-- where hours are not 0.
local function are_times(cuts, place)
    local dates, times, epochs, dated, hours = true, true, true, false, false
    for _, each in ipairs(cuts) do
        local text = each.numbers[place].text
        dates = dates and #text >= 8 and is_date(text)
        epochs = epochs and #text >= 10 and text:sub(1, 1) ~= "0"
        times = times and is_time(text)
        hours = hours or text:sub(1, 2) ~= "00"
        for _, number in ipairs(each.numbers) do
            dated = dated or #number.text == 8 and is_date(number.text)
        end
    end
    return dates or epochs or times and (dated or hours)
end

-- ---- counters ----

-- Do the numbers before a place say to which group a name belongs, as the one before?
local function same_group(one, other, place)
    for i = 1, place - 1 do
        if one.numbers[i].text ~= other.numbers[i].text then
            return false
        end
    end
    return true
end

-- What a number at a place says of the files: {places, full, step, gaps, twice}, or nil where it is
-- no counter. `grouped`: it begins anew where a number before it changes.
local function counted(cuts, place, grouped)
    local steps, usual = {}, math.maxinteger
    for i = 2, #cuts do
        if not cuts[i].numbers[place].value or not cuts[1].numbers[place].value then
            return nil
        elseif not grouped or same_group(cuts[i - 1], cuts[i], place) then
            local step = cuts[i].numbers[place].value - cuts[i - 1].numbers[place].value
            if step < 0 then
                return nil
            end
            steps[i] = step
            usual = step > 0 and math.min(usual, step) or usual
        end
    end
    local as_usual, known = 0, 0
    for _, step in pairs(steps) do
        if step % usual ~= 0 then
            return nil
        end
        known = known + 1
        as_usual = as_usual + (step == usual and 1 or 0)
    end
    if as_usual < known * USUAL or as_usual == 0 then
        return nil
    end
    local made = {places = {1}, step = usual, gaps = {}, numbers = {}}
    for i, each in ipairs(cuts) do
        made.numbers[i] = each.numbers[place].value
        local step = steps[i] and steps[i] // usual or 1
        if i > 1 then
            made.places[i] = made.places[i - 1] + step
        end
        if step == 0 then
            made.twice = made.twice or i
        elseif step > 1 then
            made.gaps[#made.gaps + 1] = {after = i - 1, count = step - 1,
                first = made.numbers[i - 1] + usual, last = made.numbers[i] - usual}
        end
    end
    return made
end

-- Which of two counters is the better one: that with the fewer gaps, then that of smaller steps.
local function better(one, other)
    if (one.twice ~= nil) ~= (other.twice ~= nil) then
        return not one.twice
    elseif #one.gaps ~= #other.gaps then
        return #one.gaps < #other.gaps
    end
    return one.step <= other.step
end

-- The number that counts the names, or nil. One without a gap is enough.
local function counter(cuts)
    local found
    for _, grouped in ipairs {false, true} do
        for place = grouped and 2 or 1, #cuts[1].numbers do
            local made = cuts[1].numbers[place].exact and not are_times(cuts, place)
                and counted(cuts, place, grouped)
            if made and not made.twice and #made.gaps == 0 then
                return made
            end
            found = made and (not found or better(made, found)) and made or found
        end
        if found and not found.twice then
            return found
        end
    end
    return found
end

-- The form that most names have, where it is that of more than half of them.
local function usual_form(cuts, chosen)
    local counts, most = {}, nil
    for _, i in ipairs(chosen) do
        local form = cuts[i].form
        counts[form] = (counts[form] or 0) + 1
        most = (not most or counts[form] > counts[most]) and form or most
    end
    return counts[most] > 1 and most or nil
end

--- What the names of a series say, in their order: {strangers, places, full, gaps, step, numbers,
-- twice}. `chosen`: the indices of the names that count; a file between two of them is there, but
-- has no place.
--   strangers  the chosen names that have not the form of most others
--   places     of each chosen file, from 1: its number among those that there would be; nil where
--              the names have no counter
--   full       how many there would be
--   gaps       {{first, last, count}, ...}, the numbers that lack
--   twice      two names with one number, or nil
--   numbers    the number of each chosen file
function numbering.of(names, chosen)
    local cuts = {}
    for i = chosen[1], chosen[#chosen] do
        cuts[i] = cut(names[i])
    end
    local form = usual_form(cuts, chosen)
    local made = {strangers = {}, gaps = {}, full = #chosen}
    if not form then
        return made -- every name is of its own
    end
    local is_chosen, members, of_member = {}, {}, {}
    for _, i in ipairs(chosen) do
        is_chosen[i] = true
        if cuts[i].form ~= form then
            made.strangers[#made.strangers + 1] = names[i]
        end
    end
    for i = chosen[1], chosen[#chosen] do
        if cuts[i].form == form then
            members[#members + 1], of_member[#of_member + 1] = cuts[i], i
        end
    end
    if #made.strangers > 0 or #members < 3 and #chosen < 3 then
        local twice = #members > 1 and counter(members)
        made.twice = twice and twice.twice and {names[of_member[twice.twice - 1]],
            names[of_member[twice.twice]], number = twice.numbers[twice.twice]} or nil
        return made
    end
    local found = counter(members)
    if not found then
        return made
    end
    made.step, made.gaps, made.places, made.numbers = found.step, found.gaps, {}, {}
    if found.twice then
        made.twice = {names[of_member[found.twice - 1]], names[of_member[found.twice]],
            number = found.numbers[found.twice]}
    end
    local others = 0 -- files that are there and were not chosen
    for k, i in ipairs(of_member) do
        if is_chosen[i] then
            made.places[#made.places + 1] = found.places[k] - others
            made.numbers[#made.numbers + 1] = found.numbers[k]
        else
            others = others + 1
        end
    end
    made.full = made.places[#made.places]
    return made
end

return numbering
