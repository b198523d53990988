--- When the frames of a scan were taken, how long, and the current of the storage ring then: what a
-- flat field needs for a beam that changes.
--
-- A scan's `timeline` is {frames, flats}: numbers that ascend in the order of acquisition, one for
-- each projection and one for each flat; nil where it is not known when the flats were taken.
-- `currents` is {frames, flats, name}, in any unit; nil where they are not known. `exposures` is
-- {frames, flats, text}; nil where all were exposed equally, as far as is known.

local arguments = require "moonbeam.internal.arguments"
local counted = require "moonbeam.internal.quantities.counted"
local fail = require "moonbeam.internal.fail"
local frames = require "moonbeam.scan.frames"
local lists = require "moonbeam.scan.lists"
local picked = require "moonbeam.scan.picked"
local references = require "moonbeam.scan.references"
local source = require "moonbeam.scan.source"
local tables = require "moonbeam.internal.tables"

local timeline = {}

--- The options of these names.
timeline.options = {
    {"flat_positions", "any", "how many projections were taken before each flat: "
        .. lists.FORMS, usual = "by the image keys, by ranges of one series, or by the mode of "
        .. "flats that the file names"},
    {"current", "any", "ring current of each projection, or of all frames: " .. lists.FORMS,
        usual = "control/data of NXtomo"},
    {"flats_current", "any", "ring current of each flat: " .. lists.FORMS},
    {"flats_exposure", "number", "how many times longer flats were exposed than projections; 1: "
        .. "equally", min = 1e-3, max = 1e3, usual = "as the file says"},
}

--- The option of the step flat_field and of mb.recon.
timeline.normalize = {"normalize_current", "choice", "divide by the ring current: no, yes, or "
    .. "if_known, where the scan has it", choices = {"no", "yes", "if_known"},
    default = "if_known"}

-- What the numbers of an option are.
local WHAT <const> = {flat_positions = "flat positions", current = "ring currents",
    flats_current = "ring currents of the flats"}

-- Numbers that an option gives, a list or a text that means one (scan/lists), for one of the
-- counts; the count is returned too.
local function given(s, value, name, counts, op)
    local list = value
    if type(value) == "string" then
        list = lists.read(s, value, {op = op, option = name, what = WHAT[name],
            most = math.max(table.unpack(counts)), fits = function(count)
                for _, each in ipairs(counts) do
                    if count == each then
                        return true
                    end
                end
                return false
            end})
    elseif type(value) ~= "table" then
        fail("argument", op, name, "%s is a %s; give %s", name, type(value), lists.FORMS)
    end
    local have = list.count or #list
    for _, count in ipairs(counts) do
        if have == count then
            for i, number in ipairs(list) do
                if type(number) ~= "number" or number ~= number
                    or math.abs(number) == math.huge then
                    fail("argument", op, name, "element %d of %s is %s; it must be a finite "
                        .. "number", i, name, arguments.described(number))
                end
            end
            return list, count
        end
    end
    fail("shape", op, name, "%s has %s; give one for each of the %d", name,
        counted(have, "number"), counts[1])
end

-- A timeline in which a projection has its number, less one half, and a flat the number of
-- projections before it.
local function by_projections(numbers, positions, most, op)
    local list = tables.mapped(numbers, function(number) return number - 0.5 end)
    for i, position in ipairs(positions) do
        if i > 1 and position < positions[i - 1] then
            fail("argument", op, "flat_positions", "element %d of flat_positions is %g, after %g; "
                .. "they must ascend", i, position, positions[i - 1])
        elseif position < 0 or position > most then
            fail("argument", op, "flat_positions", "element %d of flat_positions is %g; there are "
                .. "%d projections", i, position, most)
        end
    end
    return {frames = list, flats = positions}
end

-- How many projections were before each flat, by the mode that Data Exchange files of some
-- beamlines name: flats at the start, at the end, or half of them at both. nil where there is
-- none.
local function by_mode(s, layout)
    local path = layout.flat_mode
    local mode = path and #s.flat_source.parts == 1 and s.file:exists(path) and s.file:value(path)
    mode = type(mode) == "table" and mode[1] or mode
    mode = type(mode) == "string" and mode:lower():match "%a+"
    local list, count = {}, references.listed(s.flat_source)
    if not (mode == "start" or mode == "end" or mode == "both" and count % 2 == 0) then
        return nil
    end
    for i = 1, count do
        local late = mode == "end" or mode == "both" and i > count // 2
        list[i] = late and s.n_projections or 0
    end
    return references.picked(s.flat_source, list)
end

-- The same by the datasets that the flats are in: before the projections, or after them. nil where
-- one of them is neither.
local function by_place(s)
    local list = {}
    for _, part in ipairs(s.flat_source.parts) do
        if not part.place then
            return nil
        end
        for _ = 1, part.count do
            list[#list + 1] = part.place == "after" and s.n_projections or 0
        end
    end
    return list
end

local SAME <const> = 1e-3 -- part by which equal exposure times and currents may differ

-- Do currents vary by more than 0.1 %?
local function is_varied(currents)
    local least, most = math.huge, 0
    for _, list in ipairs {currents.frames, currents.flats} do
        for _, value in ipairs(list) do
            least, most = math.min(least, value), math.max(most, value)
        end
    end
    return most > least * (1 + SAME)
end

-- The current at all frames of the file, which NXtomo has beside the data; nil where it is not
-- there or is something else.
local function stored_currents(s, layout)
    local path = layout.current
    local object = path and s.file:exists(path) and s.file:dataset(path)
    local count = object and object.dtype and #object.shape == 1 and object.shape[1]
    if count == s.n_frames then
        return source.numbers(s.file, path, count), path
    elseif count == s.n_projections and s.flat_source then
        local list = source.numbers(s.file, path, count)
        if is_varied({frames = list, flats = list}) then
            s:warn(("the ring current '%s' is not used: it has no numbers for the flats; the "
                .. "option current takes it with those of the option flats_current"):format(path))
        end
    end
end

-- Says that currents of the projections alone are of no use.
local function warn_of_flats(s, options, of_flats)
    if options.current and not of_flats and (s.n_flats or 1) > 0 then
        s.warnings[#s.warnings + 1] = "the ring current at the flats is not known, so that "
            .. "nothing is divided by that at the projections: add the option flats_current"
    end
end

-- How many numbers are no currents, not above 0.
local function count_of_none(list)
    local count = 0
    for _, value in ipairs(list) do
        count = count + (value > 0 and value < math.huge and 0 or 1)
    end
    return count
end

-- ---- exposure times ----

local MOST_RATIO <const> = 1e3

-- Seconds by the names of units; without one the numbers are compared as they are.
local TIMES <const> = {none = 1, s = 1, sec = 1, second = 1, seconds = 1, ms = 1e-3, msec = 1e-3,
    millisecond = 1e-3, milliseconds = 1e-3, us = 1e-6, ["µs"] = 1e-6, microseconds = 1e-6}

-- The numbers at the first of these places that the file has, the place and the unit; nil where
-- there is none, or no numbers.
local function numbers_at(s, places, most)
    for _, path in ipairs(places or {}) do
        local object = s.file:exists(path) and s.file:dataset(path)
        if object and object.dtype then
            return source.numbers(s.file, path, most), path, source.units(s.file, path) or "none"
        end
    end
end

-- Does a file of tomoscan say that flats are exposed as projections are? Texts of EPICS may be
-- lists of characters.
local function said_same(s, places)
    for _, path in ipairs(places or {}) do
        local value = s.file:exists(path) and s.file:value(path)
        while type(value) == "table" and #value == 1 do
            value = value[1]
        end
        if type(value) == "table" and math.type(value[1]) == "integer" then
            local bytes = {}
            for i, byte in ipairs(value) do
                bytes[i] = byte > 0 and byte < 128 and string.char(byte) or ""
            end
            value = table.concat(bytes)
        end
        if type(value) == "string" then
            return value:lower():match "^%s*same" ~= nil or value:lower():match "^%s*no" ~= nil
        end
    end
    return false
end

-- The middle of positive numbers, and whether they are all the same; nil where one is no exposure
-- time.
local function exposure_of(list)
    local low, high, sum = math.huge, 0, 0
    for _, value in ipairs(list) do
        if type(value) ~= "number" or not (value > 0 and value < math.huge) then
            return nil
        end
        low, high, sum = math.min(low, value), math.max(high, value), sum + value
    end
    return sum / #list, high <= low * (1 + SAME)
end

-- The same number, `count` times.
local function repeated(value, count)
    local list = {}
    for i = 1, count do
        list[i] = value
    end
    return list
end

-- The exposure times of projections, flats and darks of the file: lists by name, with the path.
-- `keyed`: the indices of flats and darks among the projections.
local function stored_exposures(s, layout, options, keyed)
    local places = layout.exposures
    local list, path, unit = numbers_at(s, places and places.frames, s.n_frames)
    local at = list and #list > 1 and frames.within(s, #list)
    if not list or list.count or not at and #list ~= 1 then
        return nil
    end
    local found = {path = path, listed = at ~= false,
        frames = at and picked(list, at) or repeated(list[1], #s.frames)}
    for what, indices in pairs(keyed) do
        local from = s[what == "flats" and "flat_source" or "dark_source"]
        local own = from and not from.keyed and not options[what] and not options[what .. "_file"]
            and not (what == "flats" and said_same(s, places.same))
        if from and from.keyed and at and #list == s.n_frames then
            found[what] = picked(list, indices)
        elseif own and not (s.constants and s.constants[what]) then
            local others, _, other = numbers_at(s, places[what], 1)
            if others and #others == 1 then
                local factor = unit == other and 1 or unit ~= "none" and other ~= "none"
                    and TIMES[unit] and TIMES[other] and TIMES[other] / TIMES[unit] or 0
                found[what] = repeated(type(others[1]) == "number" and others[1] * factor or 0,
                    s["n_" .. what])
            end
        end
    end
    return found
end

-- What the file's exposure times are good for: those of projections and flats, or nil. What makes
-- no sense is told, and darks that were exposed otherwise.
local function judged_exposures(s, layout, options, keyed)
    local found = stored_exposures(s, layout, options, keyed)
    if not found then
        return nil
    end
    local usual, same = exposure_of(found.frames)
    local flats, flats_same = nil, true
    if found.flats then
        flats, flats_same = exposure_of(found.flats)
    end
    local ratio = usual and flats and flats / usual
    if found.flats and not ratio or ratio and (ratio > MOST_RATIO or ratio < 1 / MOST_RATIO)
        or not usual and found.listed then
        s:warn(("the exposure times in '%s' are not used: %s; the option flats_exposure says how "
            .. "flats were exposed"):format(found.path, ratio and ("those of the flats are %.4g "
            .. "times those of the projections"):format(ratio)
            or "some are not above 0, or have another unit"))
        return nil
    end
    local darks = usual and found.darks and exposure_of(found.darks)
    if darks and math.abs(darks / usual - 1) > SAME then
        s:warn(("the darks were exposed for %.6g, the projections for %.6g ('%s'): if the dark "
            .. "current matters, name other darks with the option darks"):format(darks, usual,
            found.path))
    end
    if not found.flats and usual and not same then
        s:warn(("the projections were exposed differently ('%s'), and it is not known how the "
            .. "flats were: the exposure times are not used"):format(found.path))
    end
    if not ratio or math.abs(ratio - 1) <= SAME and same and flats_same then
        return nil
    end
    return {frames = found.frames, flats = found.flats, path = found.path, ratio = ratio}
end

-- Sets `exposures` of a scan where its flats or projections were not all exposed equally.
local function find_exposures(s, layout, options, keyed)
    local ratio = s.n_flats > 0 and options.flats_exposure
    local stored = layout and s.n_flats > 0 and judged_exposures(s, layout, options, keyed)
    if ratio and stored and math.abs(ratio / stored.ratio - 1) > SAME then
        s:warn(("the option flats_exposure is %g, and '%s' says %.6g: the former is taken"):format(
            ratio, stored.path, stored.ratio))
    end
    if ratio then
        s.exposures = math.abs(ratio - 1) > SAME and {frames = repeated(1, s.n_angles or #s.frames),
            flats = repeated(ratio, s.n_flats),
            text = ("flats exposed %g times as long, and scaled"):format(ratio)} or nil
    elseif stored then
        s.exposures = stored
        stored.text = math.abs(stored.ratio - 1) <= SAME
            and ("scaled by the exposure times in '%s'"):format(stored.path)
            or ("flats exposed %.6g times as long ('%s'), and scaled"):format(stored.ratio,
                stored.path)
    end
end

--- Sets `timeline`, `currents` and `exposures` of a scan in a file. `flats`, `darks`: the indices
-- of those among the projections.
function timeline.find(s, layout, options, flats, darks)
    find_exposures(s, layout, options, {flats = flats, darks = darks})
    local own = s.flat_source and not s.flat_source.keyed
    if not s.flat_source then
        flats = {}
    elseif own then
        flats = nil
    end
    if options.flat_positions and s.flat_source then
        local list, count = given(s, options.flat_positions, "flat_positions",
            {s.n_flats, own and references.listed(s.flat_source) or s.n_flats}, "scan.open")
        s.timeline = by_projections(s.positions, count ~= s.n_flats
            and references.picked(s.flat_source, list) or list, s.n_projections, "scan.open")
    elseif flats and #flats > 0 then
        s.timeline = {frames = s.frames, flats = flats}
    elseif own then
        local list = by_place(s) or by_mode(s, layout)
        s.timeline = list and by_projections(s.positions, list, s.n_projections, "scan.open")
    end
    local all, path, of_frames, of_flats
    if options.current then
        local list, count = given(s, options.current, "current", {#s.frames, s.n_projections,
            s.n_frames}, "scan.open")
        all = count == s.n_frames and list or nil
        of_frames = count == #s.frames and list or count == s.n_projections
            and picked(list, s.positions) or nil
    else
        all, path = stored_currents(s, layout)
    end
    if all then
        of_frames = of_frames or picked(all, s.frames)
        of_flats = flats and picked(all, flats)
    end
    if options.flats_current then
        of_flats = given(s, options.flats_current, "flats_current", {s.n_flats}, "scan.open")
    end
    warn_of_flats(s, options, of_flats)
    local none = path and count_of_none(of_frames) + count_of_none(of_flats or {}) or 0
    if none > 0 then
        if none < #of_frames + #(of_flats or {}) then
            s:warn(("the ring current '%s' is not above 0 at %d frame%s: it is not used; the "
                .. "option current gives another one"):format(path, none, none == 1 and "" or "s"))
        end
        of_frames = nil
    end
    s.currents = of_frames and {frames = of_frames, flats = of_flats, path = path} or nil
end

--- The currents of a scan that frames are divided by, or nil. `wanted`: a value of the option
-- normalize_current, nil for its default.
function timeline.used(currents, wanted)
    if not (currents and currents.flats and #currents.flats > 0) or wanted == "no" then
        return nil
    end
    return (wanted == "yes" or is_varied(currents)) and currents or nil
end

--- Sets `timeline` and `currents` of a scan of arrays, from its options; options.lists: the scan
-- that is being opened, whose files a list may be in.
function timeline.of_arrays(s, options)
    local numbers, own = options.lists and options.lists.positions or {}, options.lists or s
    for i = #numbers + 1, s.n_angles do
        numbers[i] = i
    end
    local projections = options.lists and own.n_projections or s.n_angles
    if options.flat_positions then
        s.timeline = by_projections(numbers, (given(own, options.flat_positions, "flat_positions",
            {s.n_flats}, "scan.of_arrays")), projections, "scan.of_arrays")
    end
    if options.current then
        local list, count = given(own, options.current, "current", {s.n_angles, projections,
            own.n_frames}, "scan.of_arrays")
        local all = count ~= s.n_angles and count ~= projections -- with flats and darks
        local of_frames = all and picked(list, own.chosen) or list
        s.currents = {frames = #of_frames ~= s.n_angles and picked(of_frames, numbers) or of_frames,
            flats = options.flats_current and given(own, options.flats_current, "flats_current",
            {s.n_flats}, "scan.of_arrays") or all and own.keyed_flats
            and picked(list, own.keyed_flats) or nil}
        warn_of_flats(own, options, s.currents.flats)
    end
    find_exposures(s, nil, options)
end

-- ---- what a flat field makes of it ----

--- The groups of flats between which no projection was taken: {counts, positions}, how many flats
-- each group has and where it lies, its mean.
function timeline.groups(line)
    local sorted = table.move(line.frames, 1, #line.frames, 1, {})
    table.sort(sorted)
    local groups, at, sum = {counts = {}, positions = {}}, 1, 0
    for i, position in ipairs(line.flats) do
        local between = false
        while sorted[at] and sorted[at] < position do
            between, at = true, at + 1
        end
        if i == 1 or between then
            groups.counts[#groups.counts + 1], sum = 0, 0
        end
        local n = #groups.counts
        groups.counts[n], sum = groups.counts[n] + 1, sum + position
        groups.positions[n] = sum / groups.counts[n]
    end
    return groups
end

--- The factors of projections and flats, less the dark, that exposures and currents ask for: two
-- lists, or nothing where neither is given. `own(list)`: the values of the projections that are
-- meant, out of those of all.
function timeline.scales(exposures, currents, own, op)
    local scale, flat_scale
    for _, each in ipairs {exposures or false, currents or false} do
        if each then
            local of_frames = timeline.factors(own(each.frames), each.flats, "projection", op)
            local of_flats = timeline.factors(each.flats, each.flats, "flat", op)
            for i, factor in ipairs(scale or {}) do
                of_frames[i] = of_frames[i] * factor
            end
            for i, factor in ipairs(flat_scale or {}) do
                of_flats[i] = of_flats[i] * factor
            end
            scale, flat_scale = of_frames, of_flats
        end
    end
    return scale, flat_scale
end

--- The factors by which a usual current exceeds those of a list: the mean of `usual` over each.
-- `what` names the frames in errors.
function timeline.factors(list, usual, what, op)
    local sum, factors = 0, {}
    for _, value in ipairs(usual) do
        sum = sum + value
    end
    for i, value in ipairs(list) do
        local factor = sum / #usual / value
        if not (value > 0 and factor > 1e-6 and factor < 1e6) then
            fail("argument", op, "normalize_current", "the ring current at %s %d is %g; leave such "
                .. "frames out, or give the currents (current, flats_current)", what, i, value)
        end
        factors[i] = factor
    end
    return factors
end

return timeline
