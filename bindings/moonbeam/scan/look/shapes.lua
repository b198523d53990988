--- Groups of flats that differ in shape: the profile of the beam has changed between them, so that
-- their mean is right for no projection.
--
-- What such a change does to slices follows from its roughness, as slices are made with a ramp
-- filter: the sum of the squared differences over 1, 2, 4, ... columns, each divided by its
-- distance. The error of a slice by the mean of two groups is 0.2 times the roughness of the
-- logarithm of their ratio, as a part of the roughness of the projections (boxes of 3 to 50 % of
-- the columns and stripes: 0.21 to 0.24; a beam that tilts: 0.1).

local robust = require "moonbeam.scan.look.robust"
local sample = require "moonbeam.scan.look.sample"
local timeline = require "moonbeam.scan.timeline"

local shapes = {}

local MATTERS = 0.08 -- of the roughness of the projections: an error of 0.018
local NOISE = 3 -- times the roughness that noise alone has
local DIM = 0.02 -- of the usual beam: columns without beam
local LEAST = 16 -- columns
local STEP = 5 -- times the other changes from flat to flat: the place where a group ends
local TYPED = 12 -- numbers that a message gives as a list

-- A list in which each value is the median of it and its neighbors.
local function smoothed(list)
    local result = {}
    for i = 1, #list do
        local a, b, c = list[math.max(1, i - 1)], list[i], list[math.min(#list, i + 1)]
        result[i] = math.max(math.min(a, b), math.min(math.max(a, b), c))
    end
    return result
end

-- The logarithm of the ratio of two profiles in the columns that have a beam in both.
local function ratio_of(over, under, dark, least)
    local logs = {}
    for column = 1, #over do
        local a, b = over[column] - dark[column], under[column] - dark[column]
        logs[#logs + 1] = b > least and a > least * 0.01 and math.log(a / b) or nil
    end
    return smoothed(logs)
end

local function roughness(list)
    local total, distance = 0, 1
    while distance <= #list // 8 do
        local sum = 0
        for i = 1, #list - distance do
            sum = sum + (list[i + distance] - list[i]) ^ 2
        end
        total, distance = total + sum / (#list - distance) / distance, 2 * distance
    end
    return total
end

-- The roughness that noise gives to the ratio of two groups: that between the halves of each, or,
-- of single flats, that of neighbors.
local function noise_of(lines, groups, dark, least, ratio)
    local sum = 0
    for _, group in ipairs(groups) do
        local first, last = group[1], group[2]
        if first == last then
            local apart = {}
            for i = 2, #ratio do
                apart[i - 1] = math.abs(ratio[i] - ratio[i - 1])
            end
            return 4 * (robust.median(apart) or 0) ^ 2
        end
        local middle = (first + last) // 2
        local early, late = sample.profile(lines, first, middle), sample.profile(lines,
            middle + 1, last)
        sum = sum + roughness(ratio_of(early, late, dark, least)) / 4
    end
    return sum
end

-- The roughness of the sampled projections: the median of their attenuations.
local function of_projections(seen, made, flat, dark, least)
    local list = {}
    for i, lines in ipairs(seen.lines) do
        local profile = sample.profile({sample.shared(made, lines)}, 1, 1)
        list[i] = roughness(ratio_of(profile, flat, dark, least))
    end
    return robust.median(list) or 0
end

-- The groups of flats by the timeline, as places {first, last} in the sample; nil where flats are
-- one group, or the sample has not all of them.
local function groups_of(scan, made)
    local line = scan.timeline
    if #made.numbers ~= scan.n_flats then
        return nil
    end
    line.groups = line.groups or timeline.groups(line)
    local groups, at = {}, 0
    for i, count in ipairs(line.groups.counts) do
        groups[i] = {at + 1, at + count}
        at = at + count
    end
    return #groups > 1 and groups or nil
end

-- The two groups that flats of an unknown time fall into: those before and after the place where
-- the levels of bins change most, if they change there far more than elsewhere.
local function groups_by_step(bins)
    local steps, worst = {}, 1
    for i = 2, #bins do
        local apart = {}
        for b, value in ipairs(bins[i]) do
            apart[b] = math.log(math.max(1e-9, value) / math.max(1e-9, bins[i - 1][b]))
        end
        local middle, sum = robust.median(apart) or 0, 0
        for _, value in ipairs(apart) do
            sum = sum + (value - middle) ^ 2
        end
        steps[i - 1] = sum
        worst = sum > steps[worst] and i - 1 or worst
    end
    if worst < 2 or worst > #steps - 1 then
        return nil
    end
    local rest = 0
    for i, step in ipairs(steps) do
        rest = math.max(rest, i ~= worst and step or 0)
    end
    return steps[worst] > STEP ^ 2 * rest and {{1, worst}, {worst + 1, #bins}} or nil
end

-- How two profiles differ after scaling: the part of the columns, and by how much at most.
local function difference_of(ratio)
    local middle, most, count = robust.median(ratio), 0, 0
    for _, value in ipairs(ratio) do
        most = math.max(most, math.abs(value - middle))
    end
    for _, value in ipairs(ratio) do
        count = count + (math.abs(value - middle) > most / 4 and 1 or 0)
    end
    return count / #ratio, 1 - math.exp(-most)
end

local function range_text(numbers, group)
    local first, last = numbers[group[1]], numbers[group[2]]
    return first == last and tostring(first) or ("%d to %d"):format(first, last)
end

-- "the option flat_positions ('0,0,150,150')", or in words where there are many flats.
local function positions_text(scan, first, last)
    local before, after = first[2], last[2] - first[2]
    if before + after > TYPED then
        return ("the option flat_positions (a list: %d times 0, %d times %d)"):format(before, after,
            scan.n_projections or scan.n_angles)
    end
    return ("the option flat_positions ('%s%s')"):format(("0,"):rep(before),
        (",%d"):format(scan.n_projections or scan.n_angles):rep(after):sub(2))
end

--- Warns where groups of flats differ in shape, by more than noise and by enough to matter, and
-- their mean is to be taken. `made`: flats and darks of sample.references; `bins`: the levels of
-- flats in bins of columns.
function shapes.judge(scan, seen, made, bins, settings, warnings)
    local flats, cols = made.flats, scan.cols
    if settings.flat_interpolation ~= "mean" or #flats.lines < 2 or cols < LEAST then
        return
    end
    local groups
    if scan.timeline then
        groups = groups_of(scan, flats)
    elseif #bins >= 4 and #flats.numbers == scan.n_flats then
        groups = groups_by_step(bins)
    end
    if not groups then
        return
    end
    local lines = flats.lines
    local dark = made.darks and sample.profile(made.darks.lines, 1, #made.darks.lines) or {}
    for column = 1, cols do
        dark[column] = dark[column] or 0
    end
    local first = sample.profile(lines, table.unpack(groups[1]))
    local least = DIM * math.max(0, (robust.median(first) or 0) - (robust.median(dark) or 0))
    local worst = {roughness = 0}
    for g = 2, #groups do
        local ratio = ratio_of(sample.profile(lines, table.unpack(groups[g])), first, dark, least)
        local noise = noise_of(lines, {groups[1], groups[g]}, dark, least, ratio)
        local rough = roughness(ratio)
        if #ratio >= cols / 2 and rough > NOISE ^ 2 * noise and rough - noise > worst.roughness then
            worst = {roughness = rough - noise, ratio = ratio, group = groups[g]}
        end
    end
    if not worst.ratio then
        return
    end
    local flat = sample.profile(lines, 1, #lines)
    if worst.roughness <= MATTERS ^ 2 * of_projections(seen, flats, flat, dark, least) then
        return
    end
    local part, most = difference_of(worst.ratio)
    local text = ("flats %s and %s of %d differ in shape, by up to %.2g %% in %.2g %% of the "
        .. "columns, and their mean fits none of the projections: "):format(range_text(
        flats.numbers, groups[1]), range_text(flats.numbers, worst.group), scan.n_flats,
        100 * most, 100 * part)
    local linear = 'the option flat_interpolation = "linear"'
    warnings[#warnings + 1] = text .. (scan.timeline
        and linear .. " takes those that were recorded before and after each"
        or ("if the latter were taken after the projections, say so with %s and take %s"):format(
            positions_text(scan, groups[1], worst.group), linear))
end

return shapes
