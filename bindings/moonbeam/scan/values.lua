--- What the values of a scan are: counts with flats, transmission, or line integrals; and whether
-- anything is left in them.
--
-- A few rows of a few frames are read before the work begins, because a scan without flats, a
-- saturated or an unreadable one gives a complete volume of nothing. What the whole scan lost is
-- counted while it runs, and judged at the end (`losses`).

local mb = require "moonbeam"
local look_counts = require "moonbeam.scan.look.counts"
local fail = require "moonbeam.internal.fail"
local references = require "moonbeam.scan.look.references"
local sample = require "moonbeam.scan.look.sample"
local shapes = require "moonbeam.scan.look.shapes"
local transmission = require "moonbeam.scan.look.transmission"

local scan_values = {}

local MOST_TRANSMISSION = 1.5 -- noise and refraction lift it above 1
local NEAR_TOP = 0.9 -- of the top of a type: what neighbors of a saturated pixel have
local MOST_INTEGRAL = 30 -- of 1e13 photons one comes through
local TOP = {u8 = 255, u16 = 65535}

local NO_FLATS = "name them with the option flats_file, the option flats or the option image_key, "
    .. "or give the option log = false if the frames are line integrals"

-- Are the stored values whole numbers? Those are counts.
local function whole(scan)
    local stored = scan.data and scan.data.stored or scan.dtype
    return stored:match("^[ui]%d+$") ~= nil
end

--- How the frames become line integrals, without reading any: "flats", "line integrals" or
-- "transmission", and a line of text. Counts without flats are an error.
function scan_values.kind(scan, settings)
    if settings.log == false then
        return "line integrals", "the frames are read as line integrals"
    elseif scan.n_flats > 0 and settings.quantity ~= "transmission" then
        return "flats", ("%d flats, %d darks"):format(scan.n_flats, scan.n_darks)
    elseif whole(scan) then
        local stored <const> = scan.data and scan.data.stored or scan.dtype
        fail("argument", "recon.check_values", nil, scan.n_flats > 0 and "counts (%s) are no "
            .. "transmission, from 0 to 1: leave the option input out, so that the flats are used"
            or "there are no flats, and counts (%s) cannot be normalized without them: %s", stored,
            NO_FLATS)
    end
    return "transmission", ("no flats; the frames must be transmission, from 0 to %g; this is "
        .. "checked before the run"):format(MOST_TRANSMISSION)
end

-- Of the values of frames: {count, finite, inside, top, low, high}. A single value at the top of
-- its type, whose neighbors are far below, is a hit by a particle: not among `top`.
local function facts_of(frames, top)
    local low, high, count, finite, inside, most = math.huge, -math.huge, 0, 0, 0, 0
    local ceiling, near = top or math.huge, NEAR_TOP * (top or math.huge)
    for _, rows in ipairs(frames) do
        for _, line in ipairs(rows) do
            count = count + #line
            for i = 1, #line do
                local value = line[i]
                if value - value == 0 then
                    finite = finite + 1
                    if value < low then low = value end
                    if value > high then high = value end
                    if value > 0 and value <= MOST_TRANSMISSION then inside = inside + 1 end
                    if value == ceiling and ((line[i - 1] or 0) >= near
                        or (line[i + 1] or 0) >= near or #line == 1) then
                        most = most + 1
                    end
                end
            end
        end
    end
    return {count = count, finite = finite, inside = inside, top = most, low = low, high = high}
end

-- As float32, which is what is computed with; infinite beyond its range.
local function single(value)
    return (string.unpack("f", string.pack("f", value)))
end

-- What is left of the differences between values in float32: an error where that is nothing.
local function check_rounding(frames, facts, warnings)
    if math.max(math.abs(facts.low), math.abs(facts.high)) <= 2 ^ 24 then
        return
    end
    local range, worst, low, high = facts.high - facts.low, 0, math.huge, -math.huge
    for _, rows in ipairs(frames) do
        for _, line in ipairs(rows) do
            for _, value in ipairs(line) do
                if value == value and math.abs(value) < math.huge then
                    local rounded = single(value)
                    worst = math.max(worst, math.abs(rounded - value))
                    low, high = math.min(low, rounded), math.max(high, rounded)
                end
            end
        end
    end
    if low == high then
        fail("argument", "recon.check_values", nil, "the values lie from %.17g to %.17g, which are "
            .. "one number in float32: subtract the offset and store them again", facts.low,
            facts.high)
    elseif worst > 1e-3 * range then
        warnings[#warnings + 1] = ("the values lie from %.10g to %.10g; float32 rounds them by up "
            .. "to %.2g %% of that range"):format(facts.low, facts.high, 100 * worst / range)
    end
end

local function check_saturation(facts, what, warnings)
    if facts.top == facts.count then
        fail("argument", "recon.check_values", nil, "all values of the %s that were checked "
            .. "are %d, the largest of their type: the detector was saturated", what, facts.high)
    elseif facts.top >= 0.001 * facts.count then
        warnings[#warnings + 1] = ("about %.2g %% of the values of the %s are %d, the largest of "
            .. "their type: the detector was saturated there"):format(
                100 * facts.top / facts.count, what, facts.high)
    end
end

-- One flat that is not finite spoils the mean or median of all.
local function check_finite(facts, warnings)
    if facts.finite < facts.count then
        warnings[#warnings + 1] = ("about %.2g %% of the values of the flats are not finite; where "
            .. "one flat is not, the projections count as no attenuation: leave it out with the "
            .. "option bad_flats, or name other flats with the option flats"):format(
            100 * (1 - facts.finite / facts.count))
    end
end

-- Counts that are taken for line integrals give a volume without a meaning.
local function check_integrals(found, facts, counts)
    found.text = ("values from %.6g to %.6g are read as line integrals"):format(facts.low,
        facts.high)
    if counts or facts.high > MOST_INTEGRAL then
        found.warnings[#found.warnings + 1] = ("%s, but look like counts (%s): the slices then "
            .. "mean nothing; leave --no-log out (log = false, input = \"line integrals\" of a "
            .. "recipe), and name flats where the scan has none"):format(found.text, counts
            and "whole numbers" or ("a line integral is seldom above %d"):format(MOST_INTEGRAL))
    end
end

-- Flats and darks, and the transmissions that they make of the projections.
local function check_references(found, scan, seen, made, facts, top, settings)
    local judged = references.judge(scan, made, settings, found.warnings)
    look_counts.check_type(scan, seen, judged.flats)
    look_counts.check_written(facts, scan, found.warnings)
    if look_counts.is_scaled(top, judged) and facts.low < (top or 0) then
        found.text = ("the flats are all %d, the largest of their type, and the darks %s: the "
            .. "projections are a transmission that was scaled to it"):format(top,
            judged.darks and "all 0" or "are missing")
        if not judged.darks then
            found.warnings[#found.warnings + 1] = found.text .. "; if the detector was saturated "
                .. "instead, name other flats with the option flats"
        end
        return
    end
    check_saturation(facts, "projections", found.warnings)
    local of_flats = facts_of(made.flats.lines, top)
    check_saturation(of_flats, "flats", found.warnings)
    check_finite(of_flats, found.warnings)
    look_counts.check_beam(judged)
    look_counts.check_offset(scan, seen, made, math.min(facts.low, of_flats.low), judged,
        found.warnings)
    if not judged.odd and judged.beam and judged.beam > 0 then
        shapes.judge(scan, seen, made, judged.flats.bins, settings, found.warnings)
    end
    if judged.beam and judged.beam > 0 then
        transmission.judge(scan, seen, judged, settings, found.warnings)
    end
end

local function check(scan, settings)
    local kind, text = scan_values.kind(scan, settings)
    local found = {kind = kind, text = text, warnings = {}}
    local seen, top = sample.projections(scan, settings), TOP[scan.dtype]
    local made = {}
    if kind == "flats" then
        made.flats = sample.references(scan, settings, "flats", seen.rows)
        made.darks = sample.references(scan, settings, "darks", seen.rows)
    end
    if #seen.lines == 0 then
        return found -- a dry run
    end
    local facts = facts_of(seen.lines, top)
    facts.frames = #seen.frames
    if facts.finite == 0 then
        fail("argument", "recon.check_values", nil,
            "none of the %d values that were checked (in %d frames) is finite", facts.count,
            facts.frames)
    end
    check_rounding(seen.lines, facts, found.warnings)
    if kind == "flats" then
        check_references(found, scan, seen, made, facts, top, settings)
        return found
    end
    look_counts.check_type(scan, seen)
    check_saturation(facts, "projections", found.warnings)
    if kind == "transmission" then
        if facts.inside < 0.98 * facts.finite then
            fail("argument", "recon.check_values", nil,
                "there are no flats, and values from %.6g to %.6g are not a transmission: %s",
                facts.low, facts.high, NO_FLATS)
        end
        found.text = ("no flats; values from %.4g to %.4g are read as transmission"):format(
            facts.low, facts.high)
        found.warnings[#found.warnings + 1] = found.text
    else
        check_integrals(found, facts, whole(scan))
    end
    return found
end

--- Looks at a few frames of a scan before anything is made of them: {kind = "flats",
-- "transmission" or "line integrals", text, warnings}. Raises where a volume would be made of
-- nothing: counts without flats, values that are all not finite, all saturated, all 0 or all the
-- same number in float32, counts of a wrong sign or byte order, flats without beam. Settings: rows,
-- log, device, quantity ("transmission": flats and darks are not used), flat_mode and dark_mode
-- (how flats and darks are averaged; nil: neither), flat_interpolation ("mean": shapes of flats are
-- compared), background (air is made 1 later), frames (the numbers of
-- the projections that are used; nil: all). Looked at once for a scan.
function scan_values.check(scan, settings)
    local dry = mb.device.dry() -- which judges nothing
    local found = scan.values_found or dry and scan.values_planned or check(scan, settings)
    scan[dry and "values_planned" or "values_found"] = found
    return found
end

-- ---- after the run ----

local function nothing_left(format, ...)
    fail("io", "recon.run", nil, "nothing is left: " .. format, ...)
end

--- What a run has lost, as warnings; raises where everything was, unless it was only a `part`.
-- `totals` = {mended = {nonfinite, clamped, nonpositive}, clipped = {below, above, NaN}, spoiled =
-- {slices that are not finite, rows whose object is cut off}}; `sizes` = {values, pixels, voxels}
-- that the run went through; `log`: was the logarithm taken?
function scan_values.losses(totals, sizes, log, part)
    local warnings = {}
    -- `one` and `many` are what one and several of them are said to be.
    local function lose(lost, of, one, many, remedy)
        if lost >= of and not part then
            nothing_left("all %d %s", of, many)
        elseif lost > 0 then
            warnings[#warnings + 1] = ("%s%d %s (%.2g %%)%s"):format(
                2 * lost >= of and "MOST OF THE DATA IS LOST: " or "", lost,
                lost == 1 and one or many, 100 * lost / of, remedy or "")
        end
    end
    local nonfinite, clamped, nonpositive = table.unpack(totals.mended)
    lose(nonfinite, sizes.values, "value was not finite and counts as no attenuation",
        "values were not finite and count as no attenuation")
    local floor = " no beam in the flats (flat minus dark below the floor)"
    lose(clamped, sizes.pixels, "detector pixel has" .. floor, "detector pixels have" .. floor,
        ": they make rings; a recipe with the step dead_pixels mends them")
    if log then
        lose(nonpositive, sizes.values,
            "value had a transmission of zero or less and was clipped",
            "values had a transmission of zero or less and were clipped")
        if nonpositive + nonfinite >= sizes.values and not part then
            nothing_left("every value is not finite or had a transmission of zero or less")
        end
    end
    local below, above, nan = table.unpack(totals.clipped)
    local range = (" lay outside the range that is stored (%d below, %d above, %d not numbers) "
        .. "and "):format(below, above, nan)
    lose(below + above + nan, sizes.voxels, "value" .. range .. "was clipped",
        "values" .. range .. "were clipped")
    local spoiled = totals.spoiled[1]
    if spoiled > 0 then
        warnings[#warnings + 1] = ("%d %s values that are not finite, by the iterative method: "
            .. "check the axis and its input, take fewer iterations, or take another method")
            :format(spoiled, spoiled == 1 and "slice has" or "slices have")
    end
    local cut = totals.spoiled[2]
    if cut > 0 then
        warnings[#warnings + 1] = ("in %d %s the object reaches an edge of the detector, and "
            .. "what is beyond counts as nothing: give a margin (--margin) for an object larger "
            .. "than the field of view, or beyond = \"unknown\" (--beyond unknown) about an axis "
            .. "off the middle"):format(cut, cut == 1 and "row" or "rows")
    end
    return warnings
end

return scan_values
