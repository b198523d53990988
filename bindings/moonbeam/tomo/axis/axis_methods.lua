--- The axis of a scan by one method that a user names: Vo's double wedge, phase correlation, the
-- overlap of the halves of a whole turn, or the looks of trial slices. What is read: the first
-- frame of the rows around the middle, and all frames of a band of rows; or two frames.

local mb = require "moonbeam"
local axis_edges = require "moonbeam.tomo.axis.axis_edges"
local axis_overlap = require "moonbeam.tomo.axis.axis_overlap"
local axis_pairs = require "moonbeam.tomo.axis_pairs"
local axis_phase = require "moonbeam.tomo.axis.axis_phase"
local axis_slices = require "moonbeam.tomo.axis.axis_slices"
local axis_stated = require "moonbeam.tomo.axis.axis_stated"
local axis_wedge = require "moonbeam.tomo.axis.axis_wedge"
local center = require "moonbeam.tomo.center"
local fail = require "moonbeam.internal.fail"
local lean = require "moonbeam.tomo.lean"
local scan_center = require "moonbeam.tomo.scan_center"
local scan_frames = require "moonbeam.tomo.scan_frames"
local tables = require "moonbeam.internal.tables"

local axis_methods = {}

local FURTHEST_MISS = math.rad(5) -- of two projections half a turn apart
local FURTHEST = 4 -- of the width the part that the double wedge is searched to either side
local OP = "step center"

--- What methods need of the angles and the geometry; raises where they lack it.
function axis_methods.check(method, angles, half_acquisition)
    local degrees = math.deg(axis_pairs.span(angles))
    if method == "vo" and not axis_wedge.half_turn(angles) then
        fail("argument", nil, "method", "method vo needs projections in equal steps over half a "
            .. "turn; the angles cover %.0f degrees: use auto, or sharpness", degrees)
    elseif method == "overlap" and not axis_pairs.is_turn(angles) then
        fail("argument", nil, "method", "method overlap needs a whole turn; the angles cover %.0f "
            .. "degrees: use auto, or vo", degrees)
    elseif method == "phase_correlation" then
        local _, _, miss = axis_pairs.opposite(angles)
        if miss > FURTHEST_MISS then
            fail("argument", nil, "method", "no two projections are half a turn apart (closest: "
                .. "%.1f degrees off); use sharpness or entropy", math.deg(miss))
        end
    end
    if half_acquisition and method ~= "overlap" and method ~= "phase_correlation" then
        fail("argument", nil, "method", "method %s does not find an axis near the edge, as a half "
            .. "acquisition has it; use overlap, auto or registration", method)
    end
end

-- What the file says of the axis in a band of rows (axis_stated.lua), or nil.
local function stated_of(scan, settings, band)
    return axis_stated.of(scan, lean.at(scan, (band[1] + band[2]) / 2, settings))
end

-- The column of the file with which a search begins, or nil.
local function start_of(axis, stated, scan, settings)
    for _, column in ipairs(not axis.guess and stated and stated.columns or {}) do
        if scan_center.bounded(column, scan, settings) == column then -- else none finds it there
            return column
        end
    end
    return nil
end

-- What search(guess) returns, with the guess of the user, or of the file: without success from
-- there also without one. `range`: how far a search goes whose memory depends on it. Where it ends
-- at an end of the detector, both searches are made whatever comes of them.
local function begun(scan, settings, axis, stated, search, range)
    local start = start_of(axis, stated, scan, settings)
    local column, details = search(axis.guess or start)
    details.start = start
    local cut = range and start and (start < range or start > scan.cols - 1 - range)
    if start and (cut or details.verdict ~= "found") then
        local other, own = search(nil)
        if details.verdict ~= "found" and own.verdict == "found" then
            return other, own
        end
    end
    return column, details
end

local methods = {}

function methods.vo(scan, device, settings, axis)
    local sino <close>, band, facts = scan_center.sinogram(scan, device, settings, axis.row)
    local part <close> = sino:view(axis_wedge.half_turn(scan.angles), mb.all)
    local half <close> = part:copy()
    local stated = stated_of(scan, settings, band)
    local range = axis.range and math.min(axis.range, scan.cols / FURTHEST)
    local column, details = begun(scan, settings, axis, stated, function(guess)
        return axis_wedge.search(half, {guess = guess, stated = stated, range = range,
            radius = axis.radius or 4, step = axis.step or 0.25, coarse_step = 1,
            ratio = axis.ratio, drop = axis.drop, downsample = axis.downsample}, OP)
    end, range or scan.cols / 16)
    return column, details, band, facts
end

function methods.overlap(scan, device, settings, axis)
    local sino <close>, band, facts = scan_center.sinogram(scan, device, settings, axis.row)
    local column, details = axis_overlap.search(sino, {window = axis.window, side = axis.side,
        denoise = axis.denoise, normalize = axis.normalize, blend = axis.blend,
        stated = stated_of(scan, settings, band)}, OP)
    return column, details, band, facts
end

function methods.sharpness(scan, device, settings, axis)
    local sino <close>, band, facts = scan_center.sinogram(scan, device, settings, axis.row)
    local stated = stated_of(scan, settings, band)
    local column, details = begun(scan, settings, axis, stated, function(guess)
        return axis_slices.search(sino, scan.angles, {metric = axis.method, guess = guess,
            stated = stated, range = axis.range, coarse_step = 1, radius = axis.radius or 2,
            step = axis.step or 0.5, sigma = 2, filter = "hann", accuracy = settings.accuracy}, OP)
    end)
    return column, details, band, facts
end
methods.entropy = methods.sharpness

function methods.phase_correlation(scan, device, settings, axis)
    local rows = axis.row and {axis.row, axis.row} or scan_center.rows_of(scan, settings)
    local bad <close> = scan_center.defects(scan, device, rows, settings)
    local first, other = axis_pairs.opposite(scan.angles)
    local function frame(number)
        local frames <close> = scan_frames.integrals_only(scan, device, rows, {number, number},
            settings, bad)
        local plane <close> = frames:view(1, mb.all, mb.all)
        return plane:copy()
    end
    local one <close> = frame(first)
    local opposite <close> = frame(other)
    local column, details = axis_phase.search(one, opposite, axis.step or 0.05, OP,
        stated_of(scan, settings, rows))
    return column, details, rows, scan_center.facts_of(bad)
end

local NAMES = {vo = "the double wedge", overlap = "the overlap of both halves of the turn",
    sharpness = "the sharpness of trial slices", entropy = "the entropy of trial slices",
    phase_correlation = "phase correlation of opposite projections"}

local REMEDIES = {
    edge = "the axis by %s is at the edge of the search and may lie beyond it; give center.guess "
        .. "or center.range, or --center",
    ambiguous = "the axis by %s is ambiguous: another column is nearly as good; give --center, or "
        .. "use another method",
    flat = "%s shows no axis: it may be anywhere; use another method, or give --center",
    blind = "defects of the detector have spread over what %s looks at, by steps before the "
        .. "search; move step center before them, or give --center",
    seam = "the axis by %s is within a pixel of a column that is dead or stuck, where what does "
        .. "not move looks like an axis, and opposite projections do not confirm it to 0.25 px; "
        .. "compare slices, and give --center",
}

-- What opposite projections say of a column that a method has found, and what is seen at the edges:
-- the name of a remedy, or nil; and the column by them.
local function checked(scan, device, settings, column, verdict, facts)
    local rows = scan_center.rows_of(scan, settings)
    local bad <close>, found = scan_center.registered(scan, device, rows, settings) -- luacheck: ignore
    if facts.blind then
        return "blind", found
    elseif verdict ~= "found" then
        return nil, found
    end
    local two = found and found.verdict == "ambiguous" and found.other
    if two and math.abs(two - found.lean - column) < math.abs(found.column - column) then
        found.column = two - found.lean -- of two that match alike the nearer one
    end
    local sure = found and (two or found.verdict == "found") and not center.is_weak(found)
    local apart = sure and math.abs(found.column - column)
    if facts.near(column) and not (sure and not two and apart <= center.CLOSE + found.open) then
        return "seam", found
    elseif sure and apart > center.agreement(scan.cols) + found.open then
        return "differ", found
    end
    return nil, found
end

-- A copy of the options with columns and rows of the data instead of the scan's.
local function in_data(axis, place)
    local own = tables.merged(axis)
    if place then
        own.guess = axis.guess and place.element_of(axis.guess)
        own.range = axis.range and axis.range / place.step
        own.radius = axis.radius and axis.radius / place.step
        own.step = axis.step and axis.step / place.step
        own.row = axis.row and math.tointeger(math.floor(place.row_element(axis.row) + 0.5))
    end
    return own
end

--- The axis of a scan by axis.method, as scan_center.find: the column at half the height, words,
-- and details: {column, verdict, remedy, columns and metric (the curve), ...}. `axis` has the
-- options of step center.
function axis_methods.find(scan, settings, axis)
    local device = mb.device(settings.device or "host")
    axis = in_data(axis, scan.place)
    local column, details, band, facts = methods[axis.method](scan, device, settings, axis)
    column = column - lean.at(scan, (band[1] + band[2]) / 2, settings)
    if device.dry and settings.half_acquisition then -- the axis of the widest volume
        column = scan_center.bounds(scan, settings)[2]
    end
    local inside = scan_center.bounded(column, scan, settings)
    details.verdict = inside ~= column and details.verdict == "found" and "edge" or details.verdict
    column = inside
    local doubt, pair = checked(scan, device, settings, column, details.verdict, facts)
    local sides = pair and axis_edges.sides(pair.edges, column, scan.cols)
    details.pair = pair and pair.column
    if scan.place then
        column = scan.place.column_of(column)
        details.pair = details.pair and scan.place.column_of(details.pair)
        details.other = details.other and scan.place.column_of(details.other)
        details.start = details.start and scan.place.column_of(details.start)
        for _, list in ipairs {details.columns, details.fine_columns or {}} do
            for i, value in ipairs(list) do
                list[i] = scan.place.column_of(value)
            end
        end
        local one, other = scan.place.row_of(band[1]), scan.place.row_of(band[2])
        band = {math.min(one, other), math.max(one, other)}
    end
    local name = NAMES[axis.method]
    details.column, details.method, details.curve = column, axis.method, nil
    if doubt == "differ" then
        details.verdict, details.remedy = "differ", ("two ways to find the axis differ by %.2f px: "
            .. "%s gives %.2f, opposite projections %.2f. The former is taken; compare with "
            .. "--center %.2f"):format(math.abs(details.pair - column), name, column,
            details.pair, details.pair)
    else
        details.verdict = doubt == "blind" and "flat" or doubt == "seam" and "ambiguous"
            or details.verdict
        local text = REMEDIES[doubt or details.verdict]
        details.remedy = text and text:format(name)
    end
    if details.remedy and details.start then
        details.remedy = ("%s (the search began at column %.2f, as the file says; center.guess "
            .. "is another start)"):format(details.remedy, details.start)
    end
    details.searched = scan_center.searched(scan, settings).searched
    details.notice = not details.remedy and axis_edges.notice(scan, settings, column, sides) or nil
    local rows = band[1] == band[2] and ("row %.6g"):format(band[1])
        or ("rows %g to %g"):format(band[1], band[2])
    local words = ("%s of %s"):format(name, rows)
    if details.as_stated and details.verdict == "found" then
        words = ("%s, as the file says (%.2f is nearly as good)"):format(words, details.other)
    end
    return column, facts.words and words .. ", " .. facts.words or words, details
end

return axis_methods
