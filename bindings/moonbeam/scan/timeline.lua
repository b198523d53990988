--- When the frames of a scan were taken, and the current of the storage ring then: what a flat
-- field needs for a beam that changes.
--
-- A scan's `timeline` is {frames, flats}: numbers that ascend in the order of acquisition, one for
-- each projection and one for each flat; nil where it is not known when the flats were taken.
-- `currents` is {frames, flats, name}, in any unit; nil where they are not known.

local fail = require "moonbeam.internal.fail"
local lists = require "moonbeam.scan.lists"
local picked = require "moonbeam.scan.picked"
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
}

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
                    fail("argument", op, name, "element %d of %s is not a number", i, name)
                end
            end
            return list, count
        end
    end
    fail("shape", op, name, "%s has %d numbers; give one for each of the %d", name, have,
        counts[1])
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

-- The frames of a source of flats that are there, of all that its dataset has.
local function there(flat_source, list)
    local kept = {}
    for _, run in ipairs(flat_source.runs) do
        table.move(list, run[1], run[2], #kept + 1, kept)
    end
    return kept
end

-- How many projections were before each flat, by the mode that Data Exchange files of some
-- beamlines name: flats at the start, at the end, or half of them at both. nil where there is
-- none.
local function by_mode(s, layout)
    local path = layout.flat_mode
    local mode = path and s.file:exists(path) and s.file:value(path)
    mode = type(mode) == "table" and mode[1] or mode
    mode = type(mode) == "string" and mode:lower():match "%a+"
    local shape, list = s.flat_source.dataset.shape, {}
    local count = #shape == 3 and shape[1] or 1
    if not (mode == "start" or mode == "end" or mode == "both" and count % 2 == 0) then
        return nil
    end
    for i = 1, count do
        local late = mode == "end" or mode == "both" and i > count // 2
        list[i] = late and s.n_projections or 0
    end
    return there(s.flat_source, list)
end

-- The current at all frames of the file, which NXtomo has beside the data; nil where it is not
-- there or is something else.
local function stored_currents(s, layout)
    local path = layout.current
    local object = path and s.file:exists(path) and s.file:dataset(path)
    if object and object.dtype and #object.shape == 1 and object.shape[1] == s.n_frames then
        return source.numbers(s.file, path, s.n_frames)
    end
end

--- Sets `timeline` and `currents` of a scan in a file. `flats`: the indices of those among the
-- projections.
function timeline.find(s, layout, options, flats)
    local own = s.flat_source and s.flat_source.dataset ~= s.data
    if not s.flat_source then
        flats = {}
    elseif own then
        flats = nil
    end
    if options.flat_positions and s.flat_source then
        local list, count = given(s, options.flat_positions, "flat_positions",
            {s.n_flats, own and s.flat_source.dataset.shape[1] or s.n_flats}, "scan.open")
        s.timeline = by_projections(s.positions, count ~= s.n_flats
            and there(s.flat_source, list) or list, s.n_projections, "scan.open")
    elseif flats and #flats > 0 then
        s.timeline = {frames = s.frames, flats = flats}
    elseif own then
        local list = by_mode(s, layout)
        s.timeline = list and by_projections(s.positions, list, s.n_projections, "scan.open")
    end
    local all, of_frames, of_flats
    if options.current then
        local list, count = given(s, options.current, "current", {#s.frames, s.n_projections,
            s.n_frames}, "scan.open")
        all = count == s.n_frames and list or nil
        of_frames = count == #s.frames and list or count == s.n_projections
            and picked(list, s.positions) or nil
    else
        all = stored_currents(s, layout)
    end
    if all then
        of_frames = of_frames or picked(all, s.frames)
        of_flats = flats and picked(all, flats)
    end
    if options.flats_current then
        of_flats = given(s, options.flats_current, "flats_current", {s.n_flats}, "scan.open")
    end
    s.currents = of_frames and {frames = of_frames, flats = of_flats} or nil
end

--- Sets `timeline` and `currents` of a scan of arrays, from its options; options.lists: the scan
-- that is being opened, whose files a list may be in.
function timeline.of_arrays(s, options)
    local numbers, own = {}, options.lists or s
    for i = 1, s.n_angles do
        numbers[i] = i
    end
    if options.flat_positions then
        s.timeline = by_projections(numbers, (given(own, options.flat_positions, "flat_positions",
            {s.n_flats}, "scan.of_arrays")), s.n_angles, "scan.of_arrays")
    end
    if options.current then
        local list, count = given(own, options.current, "current", {s.n_angles, own.n_frames},
            "scan.of_arrays")
        local all = count ~= s.n_angles -- of a series with flats and darks
        s.currents = {frames = all and picked(list, own.chosen) or list,
            flats = options.flats_current and given(own, options.flats_current, "flats_current",
            {s.n_flats}, "scan.of_arrays") or all and own.keyed_flats
            and picked(list, own.keyed_flats) or nil}
    end
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
