-- What MetaMorph says of a file's planes in its tags UIC1 to UIC4 (33628 to 33631): how many lie
-- behind one directory, their heights, times and wavelengths, and the size of a pixel.
--
-- What each tag holds, and that UIC4 comes before UIC1, is as tifffile (C. Gohlke) has it.

local units = require "moonbeam.internal.quantities.units"

local UIC1 <const>, UIC2 <const>, UIC3 <const>, UIC4 <const> = 33628, 33629, 33630, 33631
local LONG <const>, RATIONAL <const> = 4, 5
-- Of the numbers by which UIC1 and UIC4 name their values.
local CALIBRATED <const>, ACROSS <const>, DOWN <const>, UNIT <const> = 3, 4, 5, 6
local LONGEST_TEXT <const>, MOST_VALUES <const> = 1023, 1000

-- How many bytes a value of UIC4 takes: of itself, and for each plane; or how its end is found.
local SIZES <const> = {[28] = {0, 16}, [29] = {0, 16}, [40] = {0, 8}, [41] = {0, 4}, [46] = {8, 0},
    [50] = {768, 0}}
for _, id in ipairs {ACROSS, DOWN, 16, 17, 21, 22, 23, 24, 38, 39, 52, 53, 57, 58, 62, 63} do
    SIZES[id] = {8, 0}
end
local TEXTS <const> = {[UNIT] = true, [7] = true, [25] = true}
local LABELS <const>, PROPERTY <const>, LAST <const> = 37, 36, 65

-- The place behind a text of which the length comes first; nil where it is none.
local function behind_text(reader, at)
    local length = string.unpack(reader.order .. "I4", reader:at(at, 4))
    return length <= LONGEST_TEXT and at + 4 + length or nil
end

-- The place behind a value of UIC4; nil where that is not known.
local function behind(reader, id, at, planes)
    local size = SIZES[id]
    if size then
        return at + size[1] + size[2] * planes
    elseif TEXTS[id] then
        return behind_text(reader, at)
    elseif id == LABELS then
        for _ = 1, planes do
            at = at and behind_text(reader, at)
        end
        return at
    elseif id == PROPERTY then -- a name, flags, a kind, and a fraction or a text
        at = at + 1 + reader:at(at, 1):byte() + 5
        return reader:at(at - 1, 1):byte() == 1 and at + 8 or at + 1 + reader:at(at, 1):byte()
    end
    return id <= LAST and at + 4 or nil
end

-- The places of the values that tell the size of a pixel, by their numbers. UIC1 has pairs of a
-- number and a value, or the place of one; UIC4 the values themselves behind their numbers.
local function places_of(reader, uic1, uic4, planes)
    local found = {}
    local size = uic1 and uic1.kind == LONG and uic1.count <= reader.bytes // 8 and 8 * uic1.count
        or 0
    local text = reader:at(size > 0 and uic1.at or 0, size)
    for at = 1, size, 8 do
        local id, value = string.unpack(reader.order .. "I4I4", text, at)
        if id == CALIBRATED then
            found[id] = uic1.at + at + 3
        elseif id >= ACROSS and id <= UNIT then
            found[id] = value
        end
    end
    local at = uic4 and uic4.kind == LONG and uic4.count == planes and uic4.at or nil
    for _ = 1, at and MOST_VALUES or 0 do
        local id = string.unpack(reader.order .. "I2", reader:at(at, 2))
        local after = id > 0 and behind(reader, id, at + 2, planes)
        if not after then
            break
        elseif id >= CALIBRATED and id <= UNIT then
            found[id] = at + 2
        end
        at = after
    end
    return found
end

-- The sizes of a pixel in m, {pixel, row}; {} where none is told, or in no unit of length.
local function calibration(reader, places)
    local form = reader.order
    if not places[UNIT] or places[CALIBRATED]
        and string.unpack(form .. "I4", reader:at(places[CALIBRATED], 4)) == 0 then
        return {}
    end
    local length = string.unpack(form .. "I4", reader:at(places[UNIT], 4))
    local unit = reader:at(places[UNIT] + 4, math.min(length, 32)):gsub("%z.*", "")
    local meters = units.meters(utf8.len(unit) and unit or (unit:gsub("\xB5", "\u{B5}")))
    local function length_of(id)
        local over, under = 0, 1
        if places[id] then
            over, under = string.unpack(form .. "I4I4", reader:at(places[id], 8))
        end
        return meters and over > 0 and under > 0 and over / under * meters or nil
    end
    return {pixel = length_of(ACROSS), row = length_of(DOWN)}
end

-- How many wavelengths the planes have, unknown ones left out.
local function wavelengths(reader, uic3, planes)
    local seen, count = {}, 0
    if not uic3 or uic3.kind ~= RATIONAL or uic3.count ~= planes then
        return 0
    end
    local text = reader:at(uic3.at, 8 * planes)
    for i = 1, planes do
        local over, under = string.unpack(reader.order .. "I4I4", text, 8 * i - 7)
        local own = under > 0 and over > 0 and over / under
        if own and not seen[own] then
            seen[own], count = true, count + 1
        end
    end
    return count
end

--- What MetaMorph says of the planes behind a directory: {count, heights (have all planes one?),
-- times (are the times of all planes others?), wavelengths (how many others), voxel ({pixel, row,
-- step} in m, as far as they are told), old (the planes that a version before 2.5 says, whose count
-- no other tag says)}; nil where it is not MetaMorph's. A plane has its distance from the one
-- before in um; the step is that of all planes but the first, where they have one. `reader`: of
-- tiff/pages.lua.
return function(reader, tags)
    local uic1, uic2 = tags[UIC1], tags[UIC2]
    local count = uic2 and uic2.count >= 1 and uic2.count <= reader.bytes // 24 and uic2.count or 1
    if not uic1 and count < 2 then
        return nil
    end
    local made = {count = count, heights = true, times = true,
        wavelengths = wavelengths(reader, tags[UIC3], count),
        voxel = calibration(reader, places_of(reader, uic1, tags[UIC4], count)),
        old = not uic2 and uic1.kind == RATIONAL and uic1.count > 1 and uic1.count or nil}
    local text, before, step = reader:at(uic2 and uic2.at or 0, uic2 and 24 * count or 0), nil, nil
    for i = 1, uic2 and count or 0 do
        local over, under, day, time = string.unpack(reader.order .. "I4I4I4I4", text, 24 * i - 23)
        made.heights = made.heights and over ~= 0 and under ~= 0
        made.times = made.times and before ~= (day << 32 | time)
        before = day << 32 | time
        local own = i > 1 and under ~= 0 and over / under or 0
        step = i <= 2 and own or math.abs(own - step) <= 1e-6 * step and step or 0
    end
    made.voxel.step = step and step > 0 and step * units.length.um or nil
    return made
end
