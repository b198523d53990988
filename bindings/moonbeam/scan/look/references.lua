--- Flats and darks that are unlike the others of their group: a dark that is a flat, a flat that is
-- a dark, a flat with the sample in it.
--
-- Frames are sorted by their levels, and a gap between neighbors divides them. So a beam that
-- drifts or decays is one group, however far it goes. What is not in the larger half is odd; where
-- no half is larger, nobody can say which is wrong.

local sources = require "moonbeam.scan.references"
local robust = require "moonbeam.scan.look.robust"
local sample = require "moonbeam.scan.look.sample"
local tables = require "moonbeam.internal.tables"

local references = {}

local DARK_GAP = 0.07 -- of the beam, between darks; scintillators shine on with less
local NOISE_GAP = 8 -- standard errors
local FLAT_GAP, PAIR_GAP = 1.5, 2 -- ratio of flats; of two, and of blocks of neighbors
local BINS, LEAST_BIN = 32, 8 -- of columns that shadows are looked for in; pixels
local SHADOW, SHADOW_WIDTH = 0.75, 0.1 -- of the beam of other flats; of the columns
local NOISY = 0.06 -- standard error of a bin, with which shadows cannot be told
local DIM = 0.1 -- of the beam: bins that tell nothing of shadows
local TOLD = 4 -- frames that a message names
local ALIKE = 0.9 -- of a gap, and less, between means
local SCREEN = 0.84 -- of the brightest ratio to other flats: no shadow

-- The group of `made` (sample.references) as pixels by frames, with the mean of each.
local function group_of(made, cols)
    local group = {numbers = made.numbers, columns = sample.columns(cols, made.rows.count),
        rows = made.rows, pixels = {}, levels = {}}
    for i, lines in ipairs(made.lines) do
        local pixels, sum = sample.pixels(lines, group.columns), 0
        for j = 1, #pixels do
            sum = sum + pixels[j]
        end
        group.pixels[i], group.levels[i] = pixels, sum / #pixels
    end
    return group
end

-- Levels that a few odd pixels do not change, instead of means.
local function make_robust(group)
    for i, pixels in ipairs(group.pixels) do
        group.levels[i] = robust.mean(pixels) or 0 / 0
    end
end

-- The means of frames in bins of columns: lists.
local function bins_of(group)
    local cols, rows = #group.columns, group.rows.count
    local count, frames = math.min(BINS, cols), {}
    for i, pixels in ipairs(group.pixels) do
        local bins = {}
        for b = 1, count do
            local first, last, sum = (b - 1) * cols // count + 1, b * cols // count, 0
            for r = 0, rows - 1 do
                for j = r * cols + first, r * cols + last do
                    sum = sum + pixels[j]
                end
            end
            bins[b] = sum / rows / (last - first + 1)
        end
        frames[i] = bins
    end
    return frames
end

local function bounds_of(list)
    local low, high = math.huge, -math.huge
    for _, value in ipairs(list) do
        if not robust.finite(value) then
            return nil
        end
        low, high = math.min(low, value), math.max(high, value)
    end
    return low, high
end

-- Is no frame of the flats or darks unlike the others, at first sight? Means are quick, and what
-- they do not show needs no closer look.
local function are_alike(flats, darks, dark)
    local low, high = bounds_of(flats.levels)
    local dark_low, dark_high = bounds_of(darks and darks.levels or {0})
    if not (low and dark_low and low > dark and high - dark < ALIKE * FLAT_GAP * (low - dark)
        and dark_high - dark_low < ALIKE * DARK_GAP * (low - dark)) then
        return false
    end
    local under, mean = darks and bins_of(darks)[1], {}
    for _, bins in ipairs(flats.bins) do
        for b, value in ipairs(bins) do
            mean[b] = (mean[b] or 0) + (value - (under and under[b] or 0)) / #flats.bins
        end
    end
    local _, brightest = bounds_of(mean)
    for _, bins in ipairs(flats.bins) do
        local least, most = math.huge, 0
        for b, value in ipairs(bins) do
            if mean[b] > DIM * brightest then
                local ratio = (value - (under and under[b] or 0)) / mean[b]
                least, most = math.min(least, ratio), math.max(most, ratio)
            end
        end
        if least <= SCREEN * most then
            return false
        end
    end
    return true
end

--- The mean or median of each pixel over the frames of a group; not finite where one frame of a
-- mean is not, as in a reconstruction.
function references.averaged(group, mode)
    local average, count = {}, #group.pixels
    for j = 1, #(group.pixels[1] or {}) do
        local list, sum = {}, 0
        for i, pixels in ipairs(group.pixels) do
            list[i], sum = pixels[j], sum + pixels[j]
        end
        average[j] = mode == "median" and (robust.median(list) or 0 / 0) or sum / count
    end
    return average
end

-- The usual standard error of a frame's level, by its differences from the middle frame.
local function standard_error(group, middle)
    local errors = {}
    for i, pixels in ipairs(group.pixels) do
        local apart = {}
        for j, value in ipairs(pixels) do
            apart[j] = value - middle[j]
        end
        errors[i] = robust.deviation(apart) / math.sqrt(#pixels)
    end
    return robust.median(errors)
end

-- Divides frames by the gaps between their levels: lists of places, in the order of the levels.
local function clusters_of(levels, apart)
    local order, clusters = {}, {}
    for i, level in ipairs(levels) do
        order[#order + 1] = robust.finite(level) and i or nil
    end
    table.sort(order, function(a, b)
        return levels[a] < levels[b] or levels[a] == levels[b] and a < b
    end)
    for k, i in ipairs(order) do
        if k == 1 or apart(levels[order[k - 1]], levels[i]) then
            clusters[#clusters + 1] = {}
        end
        table.insert(clusters[#clusters], i)
    end
    return clusters, #order
end

-- The frames that are not in the larger half: {odd = places, usual = places or nil}; nil where all
-- are alike.
local function divided(levels, apart)
    local clusters, count = clusters_of(levels, apart)
    if #clusters < 2 then
        return nil
    end
    local found = {odd = {}, clusters = clusters}
    for _, cluster in ipairs(clusters) do
        if 2 * #cluster > count then
            found.usual = cluster
        else
            table.move(cluster, 1, #cluster, #found.odd + 1, found.odd)
        end
    end
    table.sort(found.odd)
    return found
end

-- Are these blocks of frames that were taken one after the other, with levels that a beam may have
-- at the start and the end of a scan?
local function are_blocks(clusters, levels)
    local least, most = math.huge, -math.huge
    for _, cluster in ipairs(clusters) do
        local low, high = math.min(table.unpack(cluster)), math.max(table.unpack(cluster))
        if #cluster < 2 or high - low + 1 ~= #cluster then
            return false
        end
        for _, i in ipairs(cluster) do
            least, most = math.min(least, levels[i]), math.max(most, levels[i])
        end
    end
    return most < PAIR_GAP * least
end

local function odd_darks(darks, beam, middle)
    local function by_gaps(least)
        return divided(darks.levels, function(a, b)
            return b - a > least
        end)
    end
    return by_gaps(DARK_GAP * beam) and by_gaps(math.max(DARK_GAP * beam,
        NOISE_GAP * standard_error(darks, middle)))
end

local function odd_flats(flats, dark, beam, middle)
    local gap = #flats.levels == 2 and PAIR_GAP or FLAT_GAP
    local function by_gaps(noise)
        return divided(flats.levels, function(a, b)
            return b - a > noise and b - dark > gap * math.max(a - dark, 0.02 * beam)
        end)
    end
    local found = by_gaps(0) and by_gaps(NOISE_GAP * standard_error(flats, middle))
    local net = {}
    for i, level in ipairs(flats.levels) do
        net[i] = level - dark
    end
    return found and not are_blocks(found.clusters, net) and found or nil
end

-- The ratio of a flat to the middle one in bins of columns, with its noise: lists, or nil where
-- there are too few pixels.
local function ratios_of(pixels, middle, dark, group)
    local cols, rows = #group.columns, group.rows.count
    local bins = math.min(BINS, cols * rows // LEAST_BIN, cols)
    local ratios, noise = {}, {}
    for b = 1, bins >= 8 and bins or 0 do
        local list, sum = {}, 0
        for r = 0, rows - 1 do
            for c = (b - 1) * cols // bins + 1, b * cols // bins do
                local j = r * cols + c
                local beam = middle[j] - dark[j]
                if robust.finite(pixels[j]) and beam > 0 then
                    list[#list + 1], sum = (pixels[j] - dark[j]) / beam, sum + beam
                end
            end
        end
        local _, spread = robust.spread(list)
        ratios[b] = {value = robust.mean(list), beam = sum,
            noise = #list > 0 and spread / math.sqrt(#list)}
        noise[#noise + 1] = ratios[b].noise or nil
    end
    return ratios, robust.quantile(robust.sorted(noise), 0.75)
end

-- The part of its columns where a flat is darker than others, and the least of its beam there.
local function shadow_of(ratios, noise)
    local values, brightest = {}, 0
    for _, ratio in ipairs(ratios) do
        brightest = math.max(brightest, ratio.beam)
    end
    for _, ratio in ipairs(ratios) do
        if ratio.value and ratio.beam > DIM * brightest then
            values[#values + 1] = ratio.value
        end
    end
    local sorted, dark, least = robust.sorted(values), 0, math.huge
    local usual = robust.quantile(sorted, 0.8)
    for _, value in ipairs(#sorted >= 8 and usual > 0 and sorted or {}) do
        least = math.min(least, value / usual)
        dark = dark + (value / usual < SHADOW - 5 * noise and 1 or 0)
    end
    return dark / math.max(1, #sorted), least
end

-- The flats that have a shadow: {odd = places, part, least}, or nil.
local function shadowed(flats, middle, dark, skipped)
    local found = {odd = {}, part = 0, least = math.huge}
    for i, pixels in ipairs(flats.pixels) do
        local ratios, noise = ratios_of(pixels, middle, dark, flats)
        local part, least = shadow_of(ratios, noise or math.huge)
        if part > SHADOW_WIDTH and noise and noise < NOISY and not skipped[i] then
            found.odd[#found.odd + 1] = i
            found.part, found.least = math.max(found.part, part), math.min(found.least, least)
        end
    end
    return #found.odd > 0 and found or nil
end

-- "1", "1 and 3", "1 to 5, 8, 12 and 16 more"
local function listed(numbers)
    local parts, at, shown = {}, 1, 0
    while at <= #numbers and #parts < TOLD do
        local last = at
        while numbers[last + 1] == numbers[last] + 1 do
            last = last + 1
        end
        last = last == at + 1 and at or last -- two are no range
        parts[#parts + 1] = last > at and ("%d to %d"):format(numbers[at], numbers[last])
            or tostring(numbers[at])
        shown, at = shown + last - at + 1, last + 1
    end
    local more = #numbers - shown
    local last = more > 0 and ("%d more"):format(more) or #parts > 1 and table.remove(parts) or nil
    return table.concat(parts, ", ") .. (last and " and " .. last or "")
end

local function means_of(levels, places)
    local least, most = math.huge, -math.huge
    for _, i in ipairs(places) do
        if robust.finite(levels[i]) then
            least, most = math.min(least, levels[i]), math.max(most, levels[i])
        end
    end
    return most - least > 0.01 * math.abs(most) and ("%.6g to %.6g"):format(least, most)
        or ("%.6g"):format((least + most) / 2)
end

-- The numbers of frames in the dataset that has them, and a word that says so where these are not
-- their numbers among the flats or darks.
local function stored_numbers(scan, name, places)
    local source = scan[name:sub(1, -2) .. "_source"]
    local numbers = source and sources.numbers(source)
        or scan.numbers and scan.numbers[name] or {}
    return tables.mapped(places, function(place) return numbers[place] or place end)
end

-- The options that leave these frames out.
local function remedy(scan, name, places, settings, few)
    local them = #places == 1 and "it" or "them"
    local option = scan.path and ("the option bad_%s ('%s') leaves %s out"):format(name,
        table.concat(stored_numbers(scan, name, places), ","), them)
        or ("an array of %s without %s is right"):format(name, them)
    if few and settings.flat_mode and not (name == "darks" and settings.dark_mode) then
        return ("the option flat_mode = \"median\" makes %s harmless, and %s"):format(them, option)
    end
    return option
end

-- Which frames: "dark 1 of 4", with the numbers in the dataset where they differ.
local function named(scan, name, group, places)
    local word, count = name:sub(1, -2), scan["n_" .. name]
    local numbers = {}
    for k, i in ipairs(places) do
        numbers[k] = group.numbers[i]
    end
    local stored <const> = stored_numbers(scan, name, numbers)
    local where = scan.data_path and stored[1] ~= numbers[1]
        and (" (frame%s %s of %s)"):format(#stored == 1 and "" or "s", listed(stored),
            scan.data_path) or ""
    return ("%s%s %s of %d%s"):format(word, #places == 1 and "" or "s", listed(numbers), count,
        where), numbers
end

-- The places without the odd frames, or all.
local function rest_of(group, found)
    local odd, rest = {}, {}
    for _, i in ipairs(found and found.odd or {}) do
        odd[i] = true
    end
    for i = 1, #group.levels do
        rest[#rest + 1] = not odd[i] and i or nil
    end
    return rest
end

-- Tells of frames whose level is odd; `like`: what their level is like, or nil.
local function tell_level(scan, name, group, found, settings, warnings, like)
    local subject, numbers = named(scan, name, group, found.odd)
    local one = #found.odd == 1
    local text
    if found.usual then
        text = ("%s %s a mean of %s counts, the others %s%s: "):format(subject,
            one and "has" or "have", means_of(group.levels, found.odd),
            means_of(group.levels, found.usual), like and like(found.odd) or "")
            .. remedy(scan, name, numbers, settings, true)
    else
        local list = {}
        for k, cluster in ipairs(found.clusters) do
            table.sort(cluster)
            list[k] = ("%s with a mean of %s"):format(named(scan, name, group, cluster),
                means_of(group.levels, cluster))
        end
        text = ("%s differ, and which are wrong they do not say: %s; the option bad_%s "
            .. "('NUMBER,...') leaves those out"):format(name, table.concat(list, ", "), name)
    end
    warnings[#warnings + 1] = text
end

-- Does the average that the settings ask for bear so many odd frames?
local function is_borne(found, count, mode)
    return mode == "median" and 2 * #found.odd < count
end

-- A closer look at frames that are not all alike.
local function judge_closely(scan, found, settings, warnings)
    local flats, darks = found.flats, found.darks
    make_robust(flats)
    if darks then
        make_robust(darks)
    end
    local middle = references.averaged(flats, "median")
    local dark_middle = darks and references.averaged(darks, "median")
    local levels = robust.sorted(darks and darks.levels or {0})
    found.flat, found.dark = robust.median(flats.levels), robust.median(levels) or 0
    if not found.flat then
        return
    end
    local beam = found.flat - (levels[1] or 0) -- less than the lowest dark
    found.beam = found.flat - found.dark
    local function unlike_darks(level)
        return math.abs(level - found.flat) < 0.3 * beam
    end
    local dark_mode = settings.dark_mode or settings.flat_mode
    local odd = darks and beam > 0 and odd_darks(darks, beam, dark_middle)
    if odd and not is_borne(odd, #darks.levels, dark_mode) then
        tell_level(scan, "darks", darks, odd, settings, warnings, function(places)
            return unlike_darks(darks.levels[places[#places]]) and unlike_darks(
                darks.levels[places[1]]) and ", like the flats" or ""
        end)
        found.odd = true
    end
    local low = odd and odd.usual and robust.median({darks.levels[odd.usual[1]]}) or levels[1] or 0
    odd = beam > 0 and odd_flats(flats, low, beam, middle)
    local skipped = {}
    if odd then
        for _, i in ipairs(odd.odd) do
            skipped[i] = true
        end
        if not is_borne(odd, #flats.levels, settings.flat_mode) then
            tell_level(scan, "flats", flats, odd, settings, warnings)
            found.odd = true
        end
    end
    local rest = rest_of(flats, odd)
    if beam > 0 and #flats.levels > 1 and #rest > 0 and not (odd and not odd.usual) then
        local zero = {}
        for j = 1, #middle do
            zero[j] = dark_middle and (found.odd and low or dark_middle[j]) or 0
        end
        local shadow = shadowed(flats, middle, zero, skipped)
        if shadow and not is_borne(shadow, #flats.levels, settings.flat_mode) then
            local few = 2 * #shadow.odd < #flats.levels
            local subject, numbers = named(scan, "flats", flats, shadow.odd)
            warnings[#warnings + 1] = ("%s %s a shadow that other flats do not have: down to %.2g "
                .. "of the beam, in %.0f %% of the columns: was the sample in it? "):format(subject,
                #numbers == 1 and "has" or "have", shadow.least, 100 * shadow.part)
                .. remedy(scan, "flats", numbers, settings, few)
            found.odd = true
        end
    end
end

--- Compares flats and darks (sample.references; darks may be nil): {flats and darks = their groups,
-- dark and beam = levels, odd = was something told?}. Adds warnings.
function references.judge(scan, made, settings, warnings)
    local flats = group_of(made.flats, scan.cols)
    local darks = made.darks and group_of(made.darks, scan.cols)
    local found = {flats = flats, darks = darks, flat = robust.median(flats.levels),
        dark = darks and robust.median(darks.levels) or 0}
    flats.bins = bins_of(flats)
    if found.flat and are_alike(flats, darks, found.dark) then
        found.beam = found.flat - found.dark
    else
        judge_closely(scan, found, settings, warnings)
    end
    return found
end

return references
