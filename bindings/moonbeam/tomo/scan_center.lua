--- The rotation axis of a scan, from as few frames and rows as tell it. `mb.recon.find_center`,
-- `center_bounds` and `center_picture` are these.
--
-- What is read: darks and flats of at most 256 rows around the middle; 16 frames of these rows, for
-- pixels that are stuck; opposite frames of them, at most 8 + 8 of half a turn and 64 + 64 of a
-- whole turn, and some of these once more; one band of at most 8 rows of all frames, and its darks
-- and flats. Pixels that show no sample are filled in from their neighbors (defects.lua). How many
-- arrays that takes, and how large they are, follows from the scan and the options, never from what
-- the frames hold, so a dry run takes the same.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local axis_edges = require "moonbeam.tomo.axis.axis_edges"
local axis_pairs = require "moonbeam.tomo.axis_pairs"
local axis_remedies = require "moonbeam.tomo.axis.axis_remedies"
local axis_stated = require "moonbeam.tomo.axis.axis_stated"
local axis_wedge = require "moonbeam.tomo.axis.axis_wedge"
local center = require "moonbeam.tomo.center"
local defects = require "moonbeam.tomo.defects"
local fail = require "moonbeam.internal.fail"
local lean = require "moonbeam.tomo.lean"
local on_error = require "moonbeam.internal.on_error"
local scan_frames = require "moonbeam.tomo.scan_frames"
local tables = require "moonbeam.internal.tables"

local scan_center = {}

--- Half acquisition: the least part of the detector that must be seen twice for the axis to be
-- found.
scan_center.HALF_OVERLAP = 0.05

local LEAST_COLS = 4 -- fewer cannot be registered
local MOST_ROWS = 256 -- of opposite frames
local MOST_BAND = 8 -- rows of trial slices
local WEDGE_COLS = 16 -- fewer have no double wedge to speak of
local ZINGER = 0.5 -- above the median of the neighbors, in transmission
-- Trial slices are judged without the finest detail, which is noise.
local TRIAL_FILTER, TRIAL_CUTOFF = "hann", 0.5

-- The least part of the detector that both frames of a pair must see.
local function min_overlap(options)
    return options.half_acquisition and scan_center.HALF_OVERLAP or center.MIN_OVERLAP
end

-- Public as mb.recon.center_bounds.
function scan_center.bounds(scan, options)
    local reach = math.max(0, scan.cols - math.max(2, math.floor(min_overlap(options)
        * scan.cols))) / 2
    local middle = (scan.cols - 1) / 2
    return {math.max(0, middle - reach), math.min(scan.cols - 1, middle + reach)}
end

-- A column brought between the bounds.
local function bounded(column, scan, options)
    local bounds = scan_center.bounds(scan, options)
    return math.max(bounds[1], math.min(bounds[2], column))
end

-- The rows that are searched, {first, last}: those around the middle of the rows asked for.
local function rows_of(scan, options)
    local low = options.rows and options.rows[1] or 1
    local high = options.rows and options.rows[2] or scan.rows
    local middle = (low + high) // 2
    local half = MOST_ROWS // 2
    return {math.max(low, middle - half + 1), math.min(high, middle + half)}, middle
end

-- Frames with their vertical shifts undone. Rows from outside the frame are open beam.
local function unshifted(frames, first, last, options)
    local shifts = options.vertical_shifts
    if shifts then
        local open = options.log == false and 0 or 1
        mb.binary(frames, "sub", {scalar = open, out = frames})
        mb.vertical_shift(frames, table.move(shifts, first, last, 1, {}), {out = frames})
        mb.binary(frames, "add", {scalar = open, out = frames})
    end
    return frames
end

-- Frames, which are gone when it returns, without zingers: a stray photon in one of two opposite
-- frames looks like a great difference.
local function without_zingers(frames, options)
    if options.log == false then
        return frames -- line integrals, of which nothing is known
    end
    local _ <close> = frames
    local clean, counts = mb.dezinger(frames, {1, 3, 3}, ZINGER, {which = "bright"})
    counts:release()
    return clean
end

-- Registers opposite frames (center.register_groups); nil if there are none. A leaning axis is
-- taken to half the height of the detector.
local function register(scan, device, rows, options, references, bad)
    local lists, first, last = axis_pairs.groups(scan.angles, scan.cols)
    if not lists or scan.cols < LEAST_COLS then
        return nil
    end
    local leaning = lean.at(scan, (rows[1] + rows[2]) / 2, options)
    local found = center.register_groups({rows = rows[2] - rows[1] + 1, cols = scan.cols,
        angles = scan.angles, device = device, stated = axis_stated.of(scan, leaning),
        transmission = options.log ~= false, bad = bad.listed, frames = function(from, to)
            local frames = scan_frames.transmissions(scan, device, rows, {from, to}, references,
                options, bad)
            do
                local _ <close> = on_error(function() frames:release() end)
                bad:fill(frames, rows, not (scan.origin and scan.origin.some))
            end
            return unshifted(without_zingers(frames, options), from, to, options)
        end}, lists, min_overlap(options))
    found.first, found.last = first, last
    found.lean = leaning
    found.column = found.column - leaning
    return found
end

-- The defects of some rows, to be closed, and what `register` finds in them.
local function registered(scan, device, rows, options)
    local references <close> = scan_frames.references(scan, device, rows)
    local bad = defects.find(scan, device, rows, references, options)
    local _ <close> = on_error(function() bad:release() end)
    return bad, register(scan, device, rows, options, references, bad)
end

-- How well rows tell, where no opposite frames say it: by the attenuation in the first frame.
local function attenuation_of(scan, device, rows, options, bad)
    local frames <close> = scan_frames.integrals_only(scan, device, rows, {1, 1}, options, bad)
    local frame <close> = frames:view(1, mb.all, mb.all)
    local norms <close> = mb.reduce(frame, "norm", {axis = 2})
    local match, common = {}, mb.bound({}, norms.to_table, norms)
    for row, norm in ipairs(common) do
        match[row], common[row] = 1, norm ^ 2
    end
    return match, common
end

-- The row nearest to `middle` that tells where the axis is: where a pair of opposite projections
-- match half as well as in the best row at least, and have in common a tenth of what they have
-- there. In a row of air trial slices would find anything.
local function telling_row(match, common, middle)
    local best, most = 0, 0
    for i, value in ipairs(match) do
        best, most = math.max(best, value), math.max(most, common[i])
    end
    for distance = 0, #match do
        for _, row in ipairs {middle - distance, middle + distance} do
            if match[row] and match[row] >= best / 2 and common[row] >= most / 10 then
                return row
            end
        end
    end
    return middle
end

-- The rows of trial slices, first and last: a band around the row that tells, an eighth of those
-- searched.
local function band_of(rows, middle, match, common)
    local count = math.max(1, math.min(MOST_BAND, (rows[2] - rows[1] + 1) // 8))
    middle = telling_row(match, common, middle - rows[1] + 1) + rows[1] - 1
    local first = math.max(rows[1], math.min(rows[2] - count + 1, middle - count // 2))
    return first, first + count - 1
end

-- What the double wedge tells about a sinogram, and its verdict; nil where its angles are not half
-- a turn in equal steps. Without opposite projections that match well it is searched around the
-- middle.
local function wedge_of(sinogram, scan, found, leaning)
    local turn = axis_wedge.half_turn(scan.angles)
    if not turn or sinogram.shape[2] < WEDGE_COLS then
        return nil
    end
    local part <close> = sinogram:view(turn, mb.all)
    local half <close> = part:copy()
    local weak = not found or found.verdict ~= "found" or center.is_weak(found)
    local column, details = axis_wedge.around(half, weak and (sinogram.shape[2] - 1) / 2
        or found.column + leaning)
    return column - leaning, details.verdict
end

-- What the mean of a band of rows tells about the axis at half the height (`others` of
-- center.decide).
local function others_of(scan, device, band, found, options, bad)
    local lines <close> = scan_frames.integrals_only(scan, device, band, nil, options, bad)
    local mean <close> = mb.reduce(lines, "mean", {axis = 2})
    local sinogram <close> = mean:cast("f32")
    local leaning = lean.at(scan, (band[1] + band[2]) / 2, options)
    local column, trial = center.find_center_metric(sinogram, scan.angles, {
        guess = found and found.column + leaning,
        range = found and center.PAIR_RANGE or nil,
        metric = center.metric_for(scan.angles),
        filter = TRIAL_FILTER,
        cutoff = TRIAL_CUTOFF,
        accuracy = options.accuracy,
    })
    local mass = center.mass(found, sinogram, scan.angles)
    local wedge, verdict = nil, nil
    if options.wedge ~= false then
        wedge, verdict = wedge_of(sinogram, scan, found, leaning)
    end
    local doubt = found and found.doubt
    local counts = verdict == "found" and doubt ~= "few angles" -- which mislead it
    return {slices = column - leaning, edge = trial.edge, mass = mass and mass - leaning,
        wedge = counts and wedge or nil, wedge_column = wedge, wedge_verdict = verdict}
end

-- Columns and rows of a part of a detector, as `place` (column_of, row_of) has them in the whole.
local function put_in_scan(place, found, others, band)
    for list, names in pairs {[found or {}] = {"column", "beyond", "other"},
        [others] = {"slices", "mass", "wedge", "wedge_column"}} do
        for _, name in ipairs(names) do
            list[name] = list[name] and place.column_of(list[name])
        end
    end
    local one, other = place.row_of(band and band[1] or 1), place.row_of(band and band[2] or 1)
    return band and {math.min(one, other), math.max(one, other)}
end

-- How the axis was found, in words.
local function words_of(found, others, band, bad)
    local words = {}
    if not found then
        words[1] = "no opposite projections"
    elseif found.frames > 1 then
        words[1] = ("%d pairs of opposite projections give %.2f (%s)"):format(found.frames,
            found.column, axis_remedies.residual_of(found))
    else
        words[1] = ("projections %d and %d give %.2f (%s)"):format(found.first, found.last,
            found.column, axis_remedies.residual_of(found))
    end
    if found and found.as_stated then
        words[2] = ("as the file says (%.2f matches, too: residual %.2g)"):format(
            found.other - found.lean, found.other_residual)
    end
    if others.mass then
        words[#words + 1] = ("centers of mass give %.2f"):format(others.mass)
    end
    if others.slices then
        local rows = band[1] == band[2] and ("row %.6g"):format(band[1])
            or ("rows %.6g to %.6g"):format(band[1], band[2]) -- of a resampled scan between two
        words[#words + 1] = ("trial slices of %s give %.2f"):format(rows, others.slices)
        if found and found.doubt and math.abs(others.slices - found.column) > center.AGREEMENT then
            words[#words] = words[#words] .. (", which does not count: %s"):format(found.doubt)
        end
    end
    if others.wedge_column then
        words[#words + 1] = ("the double wedge gives %.2f"):format(others.wedge_column)
        if not others.wedge then
            words[#words] = words[#words] .. (", which does not count: %s"):format(
                others.wedge_verdict ~= "found" and others.wedge_verdict or found.doubt)
        end
    end
    words[#words + 1] = bad:words()
    return table.concat(words, ", ")
end

-- What other searches need of this one.
scan_center.rows_of, scan_center.bounded, scan_center.registered = rows_of, bounded, registered
scan_center.WEAK = center.WEAK

--- The defects of the rows {first, last} (defects.find), to be closed.
function scan_center.defects(scan, device, rows, options)
    local references <close> = scan_frames.references(scan, device, rows)
    return defects.find(scan, device, rows, references, options)
end

--- The band {first, last} of rows around one that tells, by what the first frame shows; and the
-- mean of the line integrals of these rows, a sinogram (angle, column), to be closed. With `row`,
-- that row alone. Also facts about the defects that were filled in (scan_center.facts_of).
function scan_center.sinogram(scan, device, options, row)
    local rows, middle = rows_of(scan, options)
    local band = {row, row}
    local bad <close> = scan_center.defects(scan, device, row and band or rows, options)
    if not row then
        band = {band_of(rows, middle, attenuation_of(scan, device, rows, options, bad))}
    end
    local lines <close> = scan_frames.integrals_only(scan, device, band, nil, options, bad)
    local mean <close> = mb.reduce(lines, "mean", {axis = 2})
    return mean:cast("f32"), band, scan_center.facts_of(bad)
end

--- What searches need to know of defects that are closed: {words, listed (their columns), blind
-- (they have spread too far, or nobody knows how far), near(column)}.
function scan_center.facts_of(bad)
    return {words = bad:words(), listed = bad.listed, blind = bad.unseen or bad:is_blind(),
        near = function(column)
            return bad:is_near(column)
        end}
end

--- Details of a search of which the file says a column: {searched = the first and the last column
-- of the scan, 0-based, between which an axis is found}. Otherwise none.
function scan_center.searched(scan, options)
    if not axis_stated.of(scan) then
        return {}
    end
    local bounds = scan_center.bounds(scan, options)
    return {searched = scan.place and tables.mapped(bounds, scan.place.column_of) or bounds}
end

-- Public as mb.recon.find_center.
function scan_center.find(scan, options)
    local device = mb.device(options.device or "host")
    local rows, middle = rows_of(scan, options)
    local bad <close>, found = registered(scan, device, rows, options)
    local others, band = {}, nil
    if not options.half_acquisition then
        local match, common
        if found then
            match, common = found.match or {}, found.common or {}
        else
            match, common = attenuation_of(scan, device, rows, options, bad)
        end
        band = {band_of(rows, middle, match, common)}
        others = others_of(scan, device, band, found, options, bad)
        if found and bad:is_blind() then -- a stored sinogram that the defects have spread over
            others = {}
        end
    elseif not found then
        fail("argument", "recon.find_center", "center",
            "no two projections are half a turn apart; give the column of the axis: --center X, or "
            .. "--set center.column=X with a recipe")
    end
    local details = scan_center.searched(scan, options)
    local turn = axis_pairs.is_turn(scan.angles) and not options.half_acquisition
    if turn and found and found.beyond and found.verdict ~= "flat" then
        found.verdict = "edge" -- another column matches far better than the best of the search
    end
    local column, verdict, name = center.decide(found, others, scan.cols, function(column)
        return bad:is_near(column)
    end)
    if bad.unseen then
        verdict, name = verdict == "found" and "ambiguous" or verdict, "spread"
    end
    if options.half_acquisition and mb.device.dry() then -- no frames: the axis of the widest volume
        column = scan_center.bounds(scan, options)[2]
    end
    column = bounded(column, scan, options)
    local sides = found and axis_edges.sides(found.edges, column, scan.cols)
    if scan.place then
        column = scan.place.column_of(column)
        band = put_in_scan(scan.place, found, others, band)
    end
    local words = words_of(found, others, band, bad)
    local facts = {turn = turn, name = name, cols = scan.cols, rows = rows[2] - rows[1] + 1,
        left_out = #bad.listed, sides = sides, whole = axis_edges.whole_of(scan)}
    local remedy = axis_remedies.of(verdict, found, others, facts)
    local notice = not remedy and axis_edges.notice(scan, options, column, sides) or nil
    found = found or {}
    return column, words, tables.merged(details, {column = column, verdict = verdict,
        remedy = remedy, notice = notice, pair = found.column, residual = found.residual,
        uncertainty = found.uncertainty, noise = found.noise, slices = others.slices,
        mass = others.mass, wedge = others.wedge, curve = found.curve,
        left_out = {pixels = bad.pixels, columns = bad.columns}})
end

-- ---- picture ----

local PICTURE_ROWS, PICTURE_COLUMNS = 240, 640
local PICTURE_TOP = 1.2 -- residual at the upper edge
local WHITE, BLACK, RED, BLUE = "\255\255\255", "\0\0\0", "\208\32\32", "\32\80\208"

-- Draws the curve as rows of pixels, {column -> color} each.
local function drawn(details)
    local curve = details.curve
    local last = curve.first + (#curve.values - 1) * curve.step
    local rows = {}
    for y = 1, PICTURE_ROWS do
        rows[y] = {}
    end
    local function place(column)
        local part = math.max(0, math.min(1, (column - curve.first) / (last - curve.first)))
        return 1 + math.floor(part * (PICTURE_COLUMNS - 1) + 0.5)
    end
    for _, line in ipairs {{details.slices or details.column, BLUE}, {details.column, RED}} do
        for y = 1, PICTURE_ROWS do
            rows[y][place(line[1])] = line[2]
        end
    end
    local before
    for x = 1, PICTURE_COLUMNS do
        local i = 1 + math.floor((x - 1) / (PICTURE_COLUMNS - 1) * (#curve.values - 1) + 0.5)
        local height = math.min(1, curve.values[i] / PICTURE_TOP)
        local y = PICTURE_ROWS - math.floor(height * (PICTURE_ROWS - 1) + 0.5)
        for between = math.min(y, before or y), math.max(y, before or y) do
            rows[between][x] = BLACK
        end
        before = y
    end
    return rows
end

-- Public as mb.recon.center_picture.
function scan_center.picture(path, details, options)
    if mb.device.dry() then -- which has no curve; what drawing one takes is the same
        mb.empty({PICTURE_ROWS, PICTURE_COLUMNS, 3}, {dtype = "u8", device = "host"}):release()
        return
    elseif type(rawget(details, "curve")) ~= "table" then
        fail("argument", "recon.center_picture", "details", "details has no curve: the scan has no "
            .. "opposite projections, and the picture shows how they match; give the third result "
            .. "of recon.find_center")
    end
    for name, optional in pairs {column = false, slices = true} do
        arguments.entry({name = name, kind = "number", optional = optional}, details[name],
            "recon.center_picture")
    end
    arguments.list(details.curve.values, "recon.center_picture", "details", "its curve")
    local rows = drawn(details)
    for y, row in ipairs(rows) do
        for x = 1, PICTURE_COLUMNS do
            row[x] = row[x] or WHITE
        end
        rows[y] = table.concat(row)
    end
    local picture <close> = mb.from_string(table.concat(rows), {PICTURE_ROWS, PICTURE_COLUMNS, 3},
        {dtype = "u8", device = "host"})
    local first = details.curve.first
    local last = first + (#details.curve.values - 1) * details.curve.step
    mb.view.save(path, picture, {overwrite = options.overwrite, legend = ("residual of opposite "
        .. "projections (0 to %g, upwards) over the axis, columns %.1f to %.1f; red: %.2f, the "
        .. "axis; blue: trial slices"):format(PICTURE_TOP, first, last, details.column)})
end

return scan_center
