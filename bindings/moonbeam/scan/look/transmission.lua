--- What flats and darks make of the sampled projections: shares of transmissions below 0 and far
-- above 1, the level of the air at the edges, contrast that is inverted, projections without beam.
--
-- Everything is judged by medians over bins of a few columns in all rows of the sample, and by
-- their standard errors, so that noise, zingers and single defective columns say nothing.

local fail = require "moonbeam.internal.fail"
local references = require "moonbeam.scan.look.references"
local robust = require "moonbeam.scan.look.robust"
local sample = require "moonbeam.scan.look.sample"
local tables = require "moonbeam.internal.tables"

local transmission = {}

local DIM = 0.02 -- of the beam: less is a pixel without beam
local BINS, LEAST_BIN, LEAST_BINS = 64, 8, 12 -- across the columns; pixels of a bin
local ERRORS = 5 -- standard errors that count as noise
local BELOW, ABOVE = -0.03, 1.5 -- what a transmission is not
local SHARE = 0.02 -- of the bins
local EDGE = 1 / 32 -- of the columns, twice at both sides
local LOW_AIR, HIGH_AIR = 0.7, 1.3 -- the beam decays and is refilled between these
local STEADY, SLOPE, LEVEL_ERROR = 0.1, 0.0025, 0.005 -- of air that is darker than 1
local CONTRAST = 0.8 -- of the air, what the sample has at most
local NOTHING, BEAM = 0.02, 0.1 -- transmission without beam, and that of others
local BRIGHT, BRIGHT_SHARE = 1.2, 0.1 -- of the air, and of the bins

-- The value and the standard error of each bin of a frame's transmissions; nil for a bin without.
local function bins_of(values, columns, rows, count)
    local cols, bins = #columns, {}
    for b = 1, count do
        local list = {}
        for r = 0, rows - 1 do
            for c = (b - 1) * cols // count + 1, b * cols // count do
                local value = values[r * cols + c]
                list[#list + 1] = robust.finite(value) and value or nil
            end
        end
        if #list >= LEAST_BIN // 2 then
            local value, spread = robust.spread(list)
            bins[b] = {value = value, error = 1.25 * spread / math.sqrt(#list)}
        end
    end
    return bins
end

-- The transmissions of a frame at the pixels of the references; NaN where there is no beam.
local function transmissions(pixels, dark, flat, least)
    local values = {}
    for j, value in ipairs(pixels) do
        local beam = flat[j] - dark[j]
        values[j] = beam > least and (value - dark[j]) / beam or 0 / 0
    end
    return values
end

-- The transmissions of the sampled frames at the pixels of the references, and how many bins they
-- have.
local function measured(seen, found, settings)
    local flats, rows = found.flats, found.flats.rows
    local flat = references.averaged(flats, settings.flat_mode)
    local dark = found.darks and references.averaged(found.darks, settings.dark_mode
        or settings.flat_mode) or {}
    for j = 1, #flat do
        dark[j] = dark[j] or 0
    end
    local frames = {}
    for i, lines in ipairs(seen.lines) do
        frames[i] = transmissions(sample.pixels(sample.shared(flats, lines), flats.columns), dark,
            flat, DIM * found.beam)
    end
    return frames, math.min(BINS, #flats.columns * rows.count // LEAST_BIN, #flats.columns // 2)
end

-- The means of bins of a frame's transmissions; false for a bin without any.
local function means_of(values, cols, rows, count)
    local bins = {}
    for b = 1, count do
        local first, last, sum, finite = (b - 1) * cols // count + 1, b * cols // count, 0, 0
        for r = 0, rows - 1 do
            for j = r * cols + first, r * cols + last do
                local value = values[j]
                if value - value == 0 then
                    sum, finite = sum + value, finite + 1
                end
            end
        end
        bins[b] = finite > 0 and sum / finite
    end
    return bins
end

-- Is there nothing to be told, at first sight? Means are quick, and what they do not show needs no
-- closer look.
local function is_plain(frames, columns, rows, count)
    local all, below, above, bright, k = 0, 0, 0, 0, math.max(1, count * EDGE // 1)
    for _, values in ipairs(frames) do
        local bins, most, edges = means_of(values, #columns, rows, count), 0, 0
        for b = 1, k do
            edges = edges + ((bins[b] or 0) + (bins[count + 1 - b] or 0)) / 2 / k
        end
        for b = 1, count do
            local value = bins[b]
            if value then
                all, most = all + 1, math.max(most, value)
                below = below + (value < BELOW / 2 and 1 or 0)
                above = above + (value > 0.9 * ABOVE and 1 or 0)
                bright = bright + (value > 0.9 * BRIGHT * edges and 1 or 0)
            end
        end
        if most < BEAM or edges < LOW_AIR + 0.05 or edges > HIGH_AIR - 0.05 then
            return false
        end
    end
    return below + above <= SHARE / 2 * all and bright <= BRIGHT_SHARE / 2 * all
end

-- The bins of all frames that have a value.
local function all_of(frames, count)
    local all = {}
    for _, bins in ipairs(frames) do
        for b = 1, count do
            all[#all + 1] = bins[b]
        end
    end
    return all
end

-- The mean of the bins first to last, and its standard error.
local function mean_of(bins, first, last)
    local sum, variance, count = 0, 0, 0
    for b = first, last do
        if bins[b] then
            sum, variance, count = sum + bins[b].value, variance + bins[b].error ^ 2, count + 1
        end
    end
    return count > 0 and sum / count or nil, count > 0 and math.sqrt(variance) / count or nil
end

-- The level at both edges of the view: {left, right, level, steady, slope, error}, medians over the
-- frames; nil where an edge has no beam.
local function edges_of(frames, count)
    local lists, k = {left = {}, right = {}, level = {}, slope = {}, error = {}},
        math.max(1, count * EDGE // 1)
    for i, bins in ipairs(frames) do
        local left, e1 = mean_of(bins, 1, k)
        local right, e2 = mean_of(bins, count - k + 1, count)
        local inner_left, e3 = mean_of(bins, k + 1, 2 * k)
        local inner_right, e4 = mean_of(bins, count - 2 * k + 1, count - k)
        if not (left and right and inner_left and inner_right) then
            return nil
        end
        lists.left[i], lists.right[i], lists.level[i] = left, right, (left + right) / 2
        lists.slope[i] = math.max(math.abs(inner_left - left), math.abs(inner_right - right))
            / math.max(1e-9, math.abs(left + right) / 2)
        lists.error[i] = math.sqrt(e1 ^ 2 + e2 ^ 2 + e3 ^ 2 + e4 ^ 2)
    end
    local edges = {}
    for name, list in pairs(lists) do
        edges[name] = robust.median(list)
    end
    local sorted = robust.sorted(lists.level)
    edges.steady = (sorted[#sorted] - sorted[1]) / math.max(1e-9, math.abs(edges.level))
    edges.error = edges.error / math.max(1e-9, math.abs(edges.level))
    return edges
end

-- Is what is at the edges surely air? Where it is brighter than 1, nothing else can be there.
-- Darker than 1 may be a sample that is larger than the view: then the edges differ, or the level
-- rises towards them, or turns with the sample.
local function is_air(edges, all)
    local apart = math.abs(edges.left - edges.right)
    if edges.level > 1 then
        return apart < 0.2 * edges.level and edges.steady < 2 * STEADY
    end
    local least = math.huge
    for _, bin in ipairs(all) do
        least = math.min(least, bin.value + ERRORS * bin.error)
    end
    return apart < 0.03 * edges.level and edges.steady < STEADY and edges.error < LEVEL_ERROR
        and edges.slope < SLOPE + 2 * edges.error and least < CONTRAST * edges.level
end

local BACKGROUND = "a recipe with the step normalize_background makes it 1"

local function tell_air(edges, all, warnings)
    if not (edges.level < LOW_AIR or edges.level > HIGH_AIR)
        or not is_air(edges, all) then
        return false
    end
    warnings[#warnings + 1] = ("the air at both edges has a transmission of %.3g in all "
        .. "projections that were looked at, not 1: flats and projections differ in exposure or "
        .. "beam, or the flats are those of another scan; name others with the option flats, or %s")
        :format(edges.level, BACKGROUND)
    return true
end

-- The parts of the bins below 0 and far above 1.
local function shares(all)
    local below, above, least, most = 0, 0, math.huge, -math.huge
    for _, bin in ipairs(all) do
        local noise = ERRORS * bin.error
        below = below + (bin.value < math.min(BELOW, -noise) and 1 or 0)
        above = above + (bin.value - noise > ABOVE and 1 or 0)
        least, most = math.min(least, bin.value), math.max(most, bin.value)
    end
    return below / #all, above / #all, least, most
end

local function tell_shares(all, found, settings, warnings)
    local below, above, least, most = shares(all)
    above = settings.background and 0 or above -- air becomes 1
    if below > SHARE then
        warnings[#warnings + 1] = ("about %.2g %% of the transmissions are below 0, down to %.3g: "
            .. "%s; name %s with the option darks"):format(100 * below, least, found.darks
            and ("the darks (mean %.6g) are brighter than the projections there"):format(found.dark)
            or "the counts are negative without darks", found.darks and "other darks" or "darks")
    end
    if above > SHARE then
        warnings[#warnings + 1] = ("about %.2g %% of the transmissions are above %g, up to %.3g: "
            .. "the projections are brighter than the flats (mean %.6g) there; name other flats "
            .. "with the option flats, or %s"):format(100 * above, ABOVE, most, found.flat,
            BACKGROUND)
    end
end

-- A sample that is brighter than the air beside it.
local function tell_inverted(edges, all, warnings)
    local bright, dark = 0, 0
    for _, bin in ipairs(all) do
        local noise = ERRORS * bin.error
        bright = bright + (bin.value - noise > BRIGHT * edges.level and 1 or 0)
        dark = dark + (bin.value + noise < 0.9 * edges.level and 1 or 0)
    end
    if bright > BRIGHT_SHARE * #all and dark <= SHARE * #all and edges.steady < STEADY
        and math.abs(edges.left - edges.right) < STEADY * edges.level then
        warnings[#warnings + 1] = ("about %.2g %% of the projections are brighter than the air "
            .. "beside the sample (transmission %.3g): the contrast looks inverted, and the slices "
            .. "will be negative"):format(100 * bright / #all, edges.level)
        return true
    end
    return false
end

-- The numbers that projections have among all that are stored.
local function stored_numbers(scan, list)
    return tables.mapped(list, function(number)
        return scan.positions and scan.positions[number] or number
    end)
end

-- Without the projections that are not used.
local function used_of(seen, frames, used)
    local set, numbers, kept = {}, {}, {}
    for _, number in ipairs(used or seen.frames) do
        set[number] = true
    end
    for i, number in ipairs(seen.frames) do
        if set[number] then
            numbers[#numbers + 1], kept[#kept + 1] = number, frames[i]
        end
    end
    return {frames = numbers, lines = seen.lines}, kept
end

-- Projections without beam among others that have one: warned of. All without: refused.
local function check_beam(seen, frames, found, scan, warnings)
    local dead, brightest, least = {}, -math.huge, -math.huge
    for i, bins in ipairs(frames) do
        local high, low = {}, {}
        for _, bin in pairs(bins) do
            high[#high + 1] = bin.value + ERRORS * bin.error
            low[#low + 1] = bin.value - ERRORS * bin.error
        end
        local most = robust.quantile(robust.sorted(high), 0.95) or math.huge
        dead[#dead + 1] = most < NOTHING and seen.frames[i] or nil
        brightest = math.max(brightest, most)
        least = math.max(least, robust.quantile(robust.sorted(low), 0.95) or -math.huge)
    end
    if brightest < NOTHING / 4 then
        local values = {}
        for _, lines in ipairs(seen.lines) do
            table.move(lines[1], 1, #lines[1], #values + 1, values)
        end
        local sorted = robust.sorted(values)
        fail("argument", "recon.check_values", nil, "the projections have values from %.6g to "
            .. "%.6g, the flats a mean of %.6g and the darks of %.6g: nothing has come through. "
            .. "If the frames are line integrals or a transmission already, say so with the option "
            .. "log = false or the option input = transmission", sorted[1], sorted[#sorted],
            found.flat, found.dark)
    elseif least > BEAM and #dead > 0 then
        local one, stored = #dead == 1, stored_numbers(scan, dead)
        warnings[#warnings + 1] = ("projection%s %s of %d ha%s no beam (transmission below %g), of "
            .. "the %d that were looked at%s: %s leaves %s out"):format(one and "" or "s",
            table.concat(stored, ", "), scan.n_projections or scan.n_angles, one and "s" or "ve",
            NOTHING, #seen.frames, #seen.frames < scan.n_angles and " (others may have none, too)"
            or "", scan.path and ("the option bad_projections ('%s')"):format(
            table.concat(stored, ",")) or ("a recipe with the step select (bad = {%s})"):format(
            table.concat(dead, ", ")), one and "it" or "them")
    end
    local kept = {}
    for i, number in ipairs(seen.frames) do
        local is_dead = false
        for _, other in ipairs(dead) do
            is_dead = is_dead or other == number
        end
        kept[#kept + 1] = not is_dead and frames[i] or nil
    end
    return kept
end

--- Judges the sampled projections by flats and darks, as references.judge has found them. Adds
-- warnings; raises where nothing has come through.
function transmission.judge(scan, seen, found, settings, warnings)
    local flats = found.flats
    local frames, count = measured(seen, found, settings)
    seen, frames = used_of(seen, frames, settings.frames)
    if is_plain(frames, flats.columns, flats.rows.count, count) then
        return
    end
    for i, values in ipairs(frames) do
        frames[i] = bins_of(values, flats.columns, flats.rows.count, count)
    end
    if #all_of(frames, count) == 0 then
        return
    end
    frames = check_beam(seen, frames, found, scan, warnings)
    if found.odd or #frames == 0 then
        return -- these are the consequences
    end
    local all = all_of(frames, count)
    local edges = count >= LEAST_BINS and not settings.background and edges_of(frames, count)
    if not edges or not tell_air(edges, all, warnings)
        and not tell_inverted(edges, all, warnings) then
        tell_shares(all, found, settings, warnings)
    end
end

return transmission
