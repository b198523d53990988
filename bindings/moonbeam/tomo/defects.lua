--- Pixels of a detector that mislead a search for the axis, because they show no sample: those
-- without beam, those that are saturated without a sample, and those that are stuck at one value.
-- What stays in its place while the sample turns looks like an axis in the middle of the detector.
--
-- What is read: darks and flats of the rows that are searched, and up to 16 projections, spread
-- over the scan. How many arrays that takes follows from the scan alone, never from its values.

local mb = require "moonbeam"
local on_error = require "moonbeam.internal.on_error"
local scan_frames = require "moonbeam.tomo.scan_frames"

local defects = {}
local methods = {}
methods.__index = methods

-- The largest values of stored types; wider integers are read as f32, which rounds them.
local TOP = {u8 = 255, u16 = 65535, i16 = 32767, u32 = 2 ^ 32, i32 = 2147483647}
local DIM = 0.02 -- of the usual beam: less is no beam, but noise of the detector
local FRAMES, LEAST_FRAMES = 16, 4 -- in which a pixel is stuck
-- A wider run of constant pixels is air without noise.
local WIDEST = 5
local REACH = 15 -- px, of what fills a gap between the modules of a detector

-- The middle of the means of all columns, which a few columns do not change.
local function usual(frames)
    local pixels <close> = mb.reduce(frames, "mean", {axis = 1})
    local columns <close> = mb.reduce(pixels, "mean", {axis = 1})
    local means = mb.bound({0}, columns.to_table, columns)
    table.sort(means, function(a, b) return a < b end)
    return means[(#means + 1) // 2]
end

-- The mask of pixels whose frames less darks are at most `least`.
local function dim(frames, darks, least)
    local mask, counts = mb.dead_pixels(frames, {darks = darks, least = least})
    counts:release()
    return mask
end

local function unite(mask, other)
    local _ <close> = other
    mb.binary(mask, "max", {b = other, out = mask})
end

-- Adds what flats and darks tell to a mask.
local function by_references(mask, scan, references)
    local flats, darks = references.flats, references.darks
    local beam = usual(flats) - (darks and usual(darks) or 0)
    local least = beam > 0 and beam < math.huge and DIM * beam or 0
    unite(mask, dim(flats, darks, least))
    local source = scan.flat_source -- what is in memory has the type of the flats
    local top = TOP[source and source.stored or flats.dtype]
    if top then
        local most <close> = mb.full({1, flats.shape[2], flats.shape[3]}, top,
            {dtype = flats.dtype, device = flats.device})
        unite(mask, dim(most, flats, 0))
    end
end

-- The mask of pixels whose transmission is the same in all of some frames, in runs of a few.
local function stuck(frame_of, count, step)
    local low <close> = frame_of(1)
    local high <close> = low:copy()
    for i = 2, count do
        local frame <close> = frame_of(1 + (i - 1) * step)
        mb.binary(low, "min", {b = frame, out = low})
        mb.binary(high, "max", {b = frame, out = high})
    end
    mb.binary(high, "sub", {b = low, out = high})
    local mask = dim(high, nil, 0)
    local _ <close> = on_error(function() mask:release() end)
    local side = math.min(WIDEST, mask.shape[2] // 8)
    local wide <close> = mb.median_filter(mask, {1, 2 * side + 1}, {mode = "edge"})
    mb.binary(mask, "max", {b = wide, out = mask})
    mb.binary(mask, "sub", {b = wide, out = mask})
    return mask
end

-- How many pixels a mask has, and how many columns where it has half of them.
local function counted(mask)
    local sums <close> = mb.reduce(mask, "sum", {axis = 1})
    local pixels, columns = 0, 0
    for _, sum in ipairs(mb.bound({}, sums.to_table, sums)) do
        pixels = pixels + sum
        columns = columns + (2 * sum >= mask.shape[1] and 1 or 0)
    end
    return math.tointeger(pixels), columns
end

--- The defects of the rows {first, last} of a scan, to be closed: {pixels, columns} are how many
-- pixels, and columns with half of them at least. `references`: darks and flats of these rows.
function defects.find(scan, device, rows, references, settings)
    local mask = mb.zeros({rows[2] - rows[1] + 1, scan.cols}, {dtype = "u8", device = device})
    local self = setmetatable({mask = mask, first = rows[1]}, methods)
    local _ <close> = on_error(function() mask:release() end)
    if references.flats then
        by_references(mask, scan, references)
    end
    local count = math.min(FRAMES, scan.n_angles)
    if count >= LEAST_FRAMES then
        unite(mask, stuck(function(i)
            return scan_frames.transmissions(scan, device, rows, {i, i}, references, settings)
        end, count, (scan.n_angles - 1) // (count - 1)))
    end
    self.pixels, self.columns = counted(mask)
    return self
end

function methods:release()
    self.mask:release()
end
methods.__close = methods.release

--- Fills the defects in frames (frame, row, column) of the rows {first, last} from their neighbors.
function methods:fill(frames, rows)
    local mask <close> = self.mask:view({rows[1] - self.first + 1, rows[2] - self.first + 1},
        mb.all)
    local _, counts = mb.mend(frames, {mask = mask, reach = REACH, nonfinite = false, out = frames})
    counts:release()
end

--- What was filled, in words; nil where nothing was.
function methods:words()
    local many, what = self.columns, "column"
    if many == 0 then
        many, what = self.pixels, "pixel"
    end
    return many > 0 and ("%d dead or stuck %s%s left out"):format(many, what,
        many == 1 and " is" or "s are") or nil
end

return defects
