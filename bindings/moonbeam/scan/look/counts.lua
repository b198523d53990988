--- Counts whose type or sign is not the camera's, and values that are no counts.

local fail = require "moonbeam.internal.fail"
local robust = require "moonbeam.scan.look.robust"
local sample = require "moonbeam.scan.look.sample"

local counts = {}

local NEGATIVE = 0.001 -- part of the values
local SMOOTHER = 0.25 -- of the differences between neighbors, read in another way
local ROUGH = 2000 -- counts between neighbors, of which random bytes have 19000
local WILD = 0.2 -- part of float values that no measurement has
local OFFSET <const> = 32768 -- of signed counts that are stored as unsigned ones
local NEARER, LOW = 0.5, 0.25 -- how much steadier the sums of projections are with it, and counts
local STEADY = 0.002 -- sums that do not tell
local CONSTANT = 256 -- values that are never all alike by chance

local OP <const> = "recon.check_values"

-- The middle row of each frame of the sample: lists of values.
local function lines_of(seen)
    local lines = {}
    for i, rows in ipairs(seen.lines) do
        lines[i] = rows[(#rows + 1) // 2]
    end
    return lines
end

-- The usual difference between neighbors of lines whose values are `read` in some way: the median,
-- or the mean.
local function roughness(lines, read, mean)
    local list, sum, count = {}, 0, 0
    for _, line in ipairs(lines) do
        local before
        for _, value in ipairs(line) do
            value = read(value)
            if before and value then
                local apart = value < before and before - value or value - before
                count, sum = count + 1, sum + apart
                list[#list + 1] = not mean and apart or nil
            end
            before = value
        end
    end
    return mean and sum / math.max(1, count) or robust.median(list) or 0
end

local function as_stored(value)
    return value
end

local function unsigned(value)
    return value < 0 and value + 65536 or value
end

-- The 16 bits of a value with their bytes exchanged, or nil.
local function swapped16(value)
    local bits = math.tointeger(value)
    bits = bits and bits & 0xffff
    return bits and (bits >> 8 | (bits & 0xff) << 8)
end

local function swapped32(form)
    return function(value)
        return (string.unpack(">" .. form, string.pack("<" .. form, value)))
    end
end

-- How a remedy is named: an option of scans in HDF5, else what the user can do.
local function cure(scan, name, otherwise)
    return scan.file and ("the option counts_as = '%s' reads them so"):format(name) or otherwise
end

local function check_bytes(scan, stored, lines)
    local short = stored == "u16" or stored == "i16"
    local other = short and swapped16 or stored == "i32" and swapped32 "i4" or nil
    if not other then
        return
    end
    local own = short and function(value)
        return (math.tointeger(value) or 0) & 0xffff
    end or as_stored
    if roughness(lines, own, true) <= ROUGH / 2 then
        return -- the median is at most twice the mean
    end
    local rough, smooth = roughness(lines, own), roughness(lines, other)
    local whole_bytes = true -- 8 bits that were moved up
    for _, line in ipairs(lines) do
        for _, value in ipairs(line) do
            whole_bytes = whole_bytes and value % 256 == 0
        end
    end
    if rough > ROUGH and smooth < SMOOTHER * rough and not whole_bytes then
        fail("argument", OP, nil, "the bytes of the counts look exchanged: neighbors differ by "
            .. "%.0f (median), and by %.0f with the bytes of each count in the other order; %s",
            rough, smooth, cure(scan, "swapped", "store them again in the right order"))
    end
end

-- Float values that are read in the wrong byte order are mostly tiny, huge or no numbers.
local function check_floats(scan, lines)
    local other, wild, tame, count = swapped32 "f", 0, 0, 0
    local function is_wild(value)
        return value ~= 0 and not (math.abs(value) > 1e-25 and math.abs(value) < 1e25)
    end
    for _, line in ipairs(lines) do
        for _, value in ipairs(line) do
            count = count + 1
            wild = wild + (is_wild(value) and 1 or 0)
        end
    end
    for _, line in ipairs(wild > WILD * count and lines or {}) do
        for _, value in ipairs(line) do
            tame = tame + (is_wild(other(value)) and 0 or 1)
        end
    end
    if wild > WILD * count and tame == count then
        fail("argument", OP, nil, "about %.0f %% of the values are no measurements (below 1e-25, "
            .. "above 1e25 or no numbers), and none with the bytes of each in the other order; %s",
            100 * wild / count, cure(scan, "swapped", "store them again in the right order"))
    end
end

-- Unsigned counts above 32767 that are stored as signed ones are less by 65536.
local function check_sign(scan, lines, flats)
    local negative, count, least, most = 0, 0, math.huge, -math.huge
    for _, line in ipairs(lines) do
        for _, value in ipairs(line) do
            count, negative = count + 1, negative + (value < 0 and 1 or 0)
            least, most = math.min(least, value), math.max(most, value)
        end
    end
    local rough, smooth = roughness(lines, as_stored, true), roughness(lines, unsigned, true)
    local level = flats and robust.median(flats.levels)
    local jumps = negative > NEGATIVE * count and rough > 0 and smooth < 0.5 * rough
    local wraps = level and level < 0 and most >= 0 and level + 65536 >= most
    if jumps or wraps then
        fail("argument", OP, nil, "the counts are signed (int16) and jump from 32767 to -32768: "
            .. "%.2g %% of the projections are negative (%.6g to %.6g)%s. They look like unsigned "
            .. "counts; %s", 100 * negative / count, least, most, level
            and (", the flats have a mean of %.6g"):format(level) or "",
            cure(scan, "unsigned", "store them again as unsigned numbers"))
    end
end

--- Raises where the bytes or the sign of the counts are not those that were measured. `seen`: the
-- sampled projections; `flats`: {levels} or nil.
function counts.check_type(scan, seen, flats)
    local stored, lines = scan.data and scan.data.stored or scan.dtype, lines_of(seen)
    check_bytes(scan, stored, lines)
    if stored == "f32" then
        check_floats(scan, lines)
    elseif stored == "i16" then
        check_sign(scan, lines, flats)
    end
end

--- Raises where there is no beam in the flats: they are no brighter than the darks. `found`: of
-- references.judge.
function counts.check_beam(found)
    if not found.flat or found.beam > 0 then
        return
    elseif not found.darks then
        fail("argument", OP, nil, "the flats have a mean of %.6g counts, and there are no darks: "
            .. "the counts have an offset; name darks with the option darks", found.flat)
    elseif found.beam < 0 then
        fail("argument", OP, nil, "the flats (mean %.6g counts) are darker than the darks (mean "
            .. "%.6g): if they are exchanged, name them with the option flats and the option "
            .. "darks", found.flat, found.dark)
    end
end

-- How much the sums of attenuations vary from projection to projection, as a part of their mean,
-- where `dark` is taken from all counts. In a parallel beam they are equal.
local function variation(seen, flats, flat, dark)
    local sum, squares, count = 0, 0, 0
    for _, lines in ipairs(seen.lines) do
        local profile, own = sample.profile({sample.shared(flats, lines)}, 1, 1), 0
        for column, value in ipairs(profile) do
            local beam = flat[column] - dark
            own = own + (beam > 0 and -math.log(math.max(0.001, (value - dark) / beam)) or 0)
        end
        sum, squares, count = sum + own, squares + own * own, count + 1
    end
    local mean = sum / count
    return math.sqrt(math.max(0, squares / count - mean * mean)) / math.max(1e-9, math.abs(mean))
end

--- Warns where an offset of 32768 was added to all counts, and there are no darks that have it.
-- `low`: the least of projections and flats; `made`: flats and darks of sample.references.
function counts.check_offset(scan, seen, made, low, found, warnings)
    local beam = found.flat and found.flat - OFFSET
    if scan.dtype ~= "u16" or made.darks or low < OFFSET or not beam or beam <= 0
        or #seen.lines < 2 then
        return
    end
    local flat = sample.profile(made.flats.lines, 1, #made.flats.lines)
    local without, with = variation(seen, made.flats, flat, 0), variation(seen, made.flats, flat,
        OFFSET)
    if with < NEARER * without
        or without < STEADY and with < STEADY and low - OFFSET < LOW * beam then
        warnings[#warnings + 1] = ("no count is below %d (the least is %.6g), and there are no "
            .. "darks: an offset of %d looks to have been added to signed counts; the option "
            .. "darks_file ('%d') takes it out"):format(OFFSET, low, OFFSET, OFFSET)
    end
end

--- Raises where all values are 0, which no detector gives, and warns where all are another number.
function counts.check_written(facts, scan, warnings)
    local seen = ("all %d values that were checked, in %d of the %d projections, are %g"):format(
        facts.count, facts.frames, scan.n_angles, facts.low)
    if facts.low == 0 and facts.high == 0 then
        fail("argument", OP, nil, "%s: were they never written?", seen)
    elseif facts.low == facts.high and facts.count >= CONSTANT then
        warnings[#warnings + 1] = seen .. ": they show no sample"
    end
end

--- Are the flats the largest number of their type, and the darks 0: a transmission that was scaled
-- to whole numbers?
function counts.is_scaled(top, found)
    local flats, darks = found.flats, found.darks
    for _, pixels in ipairs(flats.pixels) do
        for _, value in ipairs(pixels) do
            if value ~= top then
                return false
            end
        end
    end
    for _, pixels in ipairs(darks and darks.pixels or {}) do
        for _, value in ipairs(pixels) do
            if value ~= 0 then
                return false
            end
        end
    end
    return top ~= nil and #flats.pixels > 0
end

return counts
