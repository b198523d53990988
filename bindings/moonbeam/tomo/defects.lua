--- Pixels of a detector that mislead a search for the axis, because they show no sample: those
-- without beam, those that are saturated without a sample, those that are stuck at one value, and
-- columns that do not follow their neighbors, or are much noisier. What stays in its place while
-- the sample turns looks like an axis in the middle of the detector.
--
-- What is read: darks and flats of the rows that are searched, and up to 16 projections, spread
-- over the scan. How many arrays that takes follows from the scan alone, never from its values.
--
-- Behind steps that the search does not know (pipeline/view.lua), `scan.origin` says where the
-- frames come from: the defects are those of the detector there. They are filled in before the
-- first step, so that no step spreads them, and their columns are mapped to those of the data.
-- Behind several stores nobody sees how far columns have spread: then no axis is found.

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
local MOST_SPREAD = 0.2 -- of the columns
local REACH = 15 -- px, of what fills a gap between the modules of a detector
-- Columns follow their neighbors (correlation over frames). Between columns that do, one does not
-- that follows by less than so much of that, and by so many standard deviations less.
local ALIKE, UNLIKE, SIGMAS = 0.5, 0.4, 5
local STANDS_OUT = 0.15 -- of the range of all means, between those on both sides
-- Times the changes of those on both sides: of noise, which differs from row to row, and of
-- anything. Rows of noise add up to so many times what chance makes of them, and so much, at most.
local LIVELY, LIVELIEST = 1.5, 3
local BY_CHANCE, IN_STEP = 2, 0.8
local RUN = 8 -- columns within which there is one that does
local NOISY = 4 -- times the changes from frame to frame of columns on both sides
local FOLLOWING_ROWS = 64 -- rows around the middle that are looked at for it
-- More is no beam and no sample: of a transmission, and of line integrals.
local BRIGHTEST, MOST = 1.5, 100

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

-- Rows around the middle of a frame (1, row, column), no value beyond `most`; to be closed.
local function middle_rows(frame, most)
    local rows = frame.shape[2]
    local count = math.min(FOLLOWING_ROWS, rows)
    local first = (rows - count) // 2 + 1
    local part <close> = frame:view(mb.all, {first, first + count - 1}, mb.all)
    local dense = part:copy()
    mb.binary(dense, "min", {scalar = most, out = dense})
    mb.binary(dense, "max", {scalar = -most, out = dense})
    return dense
end

-- Covariances over frames of columns with themselves and with the next one. They are summed over
-- rows. `lags`: for each of the two the sums by column.
local covariances = {}
covariances.__index = covariances

local function new_covariances(most)
    local self = setmetatable({count = 0, lags = {}, means = {}, changes = {}, steps = {},
        most = most}, covariances)
    for lag = 0, 1 do
        self.lags[lag] = {}
    end
    return self
end

function covariances:__close()
    if self.base then
        self.base:release()
    end
    if self.sum then
        self.sum:release()
    end
    if self.before then
        self.before:release()
    end
end

-- Adds `factor` times the products of a frame's columns to the sums.
function covariances:products(frame, factor)
    for lag, sums in pairs(self.lags) do
        if lag < self.cols then
            local left <close> = frame:view(1, mb.all, {1, self.cols - lag})
            local right <close> = frame:view(1, mb.all, {lag + 1, self.cols})
            local product <close> = mb.binary(left, "mul", {b = right})
            local columns <close> = mb.reduce(product, "sum", {axis = 1})
            for x, value in ipairs(mb.bound({}, columns.to_table, columns)) do
                sums[x] = (sums[x] or 0) + factor * value
            end
        end
    end
end

-- Adds the sums of columns, or their magnitudes.
local function add_columns(sums, image, magnitude)
    local columns <close> = mb.reduce(image, "sum", {axis = 2})
    for x, value in ipairs(mb.bound({{}}, columns.to_table, columns)[1]) do
        sums[x] = (sums[x] or 0) + (magnitude and math.abs(value) or value)
    end
end

-- Adds a frame (1, row, column).
function covariances:add(frame)
    local part = middle_rows(frame, self.most)
    do
        local _ <close> = on_error(function() part:release() end)
        add_columns(self.means, part)
    end
    if not self.base then
        self.base, self.count, self.cols, self.rows = part, 1, part.shape[3], part.shape[2]
        self.sum = mb.zeros(part.shape, {device = part.device})
        self.before = part:copy()
        return
    end
    local change <close> = part
    mb.binary(self.before, "sub", {b = part, out = self.before})
    add_columns(self.steps, self.before, true)
    mb.unary(self.before, "abs", {out = self.before})
    add_columns(self.changes, self.before)
    mb.convert(part, "f32", {out = self.before})
    mb.binary(change, "sub", {b = self.base, out = change})
    mb.binary(self.sum, "add", {b = change, out = self.sum})
    self:products(change, 1)
    self.count = self.count + 1
end

-- For each column how well it follows the better of its two neighbors (correlation).
function covariances:followed()
    local own, lags = {}, self.lags
    local function correlation(x)
        local a, b = lags[0][x] or 0, lags[0][x + 1] or 0
        return a > 0 and b > 0 and (lags[1][x] or 0) / math.sqrt(a * b) or 0
    end
    for x = 1, self.cols do
        own[x] = math.max(x > 1 and correlation(x - 1) or 0, correlation(x))
    end
    return own
end

-- Do the rows of a column change each by itself, as noise does and no sample?
function covariances:is_noise(x)
    local most = math.min(IN_STEP, BY_CHANCE / math.sqrt(self.rows))
    return self.steps[x] < most * self.changes[x]
end

-- Does a column differ from those on both sides by its mean, or by how much it changes?
function covariances:stands_out(x, left, right)
    local means, changes, low, high = self.means, self.changes, math.huge, -math.huge
    for _, value in ipairs(means) do
        low, high = math.min(low, value), math.max(high, value)
    end
    local part = (x - left) / (right - left)
    local between = means[left] + part * (means[right] - means[left])
    return math.abs(means[x] - between) > STANDS_OUT * (high - low)
        or changes[x] > (self:is_noise(x) and LIVELY or LIVELIEST)
            * math.max(changes[left], changes[right])
end

-- For each column whether it follows neither neighbor, in a run of a few between columns that do
-- follow theirs, and stands out, or whether it changes far more than columns on both sides.
function covariances:unlike()
    self:products(self.sum, -1 / self.count)
    local flags, own, changes = {}, self:followed(), self.changes
    local chance = SIGMAS / math.sqrt(self.rows * math.max(1, self.count - 1))
    local function nearest(x, step, is) -- in that direction
        for k = 1, RUN do
            local beside = x + k * step
            if beside >= 1 and beside <= self.cols and is(beside) then
                return beside
            end
        end
    end
    for x = 1, self.cols do
        local function alive(beside)
            return own[beside] > ALIKE and own[x] < UNLIKE * own[beside]
                and own[beside] - own[x] > chance
        end
        local function calm(beside)
            local change = changes[beside] or 0 -- 0: it is stuck
            return change > 0 and change * NOISY < changes[x]
        end
        flags[x] = 0
        for _, is in ipairs {alive, calm} do
            local left = own[x] < UNLIKE and nearest(x, -1, is)
            local right = left and nearest(x, 1, is)
            if right and (is == calm and self:is_noise(x)
                or is == alive and self:stands_out(x, left, right)) then
                flags[x] = 1
            end
        end
    end
    return flags
end

-- The mask of pixels whose transmission is the same in all of some frames, in runs of a few.
-- `follow`: covariances to which the frames are added, or nil.
local function stuck(frame_of, count, step, follow)
    local low <close> = frame_of(1)
    local high <close> = low:copy()
    if follow then
        follow:add(low)
    end
    for i = 2, count do
        local frame <close> = frame_of(1 + (i - 1) * step)
        mb.binary(low, "min", {b = frame, out = low})
        mb.binary(high, "max", {b = frame, out = high})
        if follow then
            follow:add(frame)
        end
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

-- How many pixels a mask has, and the columns, 0-based, of which half are in it.
local function counted(mask)
    local sums <close> = mb.reduce(mask, "sum", {axis = 1})
    local pixels, columns = 0, {}
    for x, sum in ipairs(mb.bound({}, sums.to_table, sums)) do
        pixels = pixels + sum
        columns[#columns + 1] = 2 * sum >= mask.shape[1] and x - 1 or nil
    end
    return math.tointeger(pixels), columns
end

-- The mask of the rows {first, last} of a scan, to be closed.
local function mask_of(scan, device, rows, references, settings, bad)
    local mask = mb.zeros({rows[2] - rows[1] + 1, scan.cols}, {dtype = "u8", device = device})
    local _ <close> = on_error(function() mask:release() end)
    if references.flats then
        by_references(mask, scan, references)
    end
    local count = math.min(FRAMES, scan.n_angles)
    if count >= LEAST_FRAMES then
        local follow <close> = not scan.origin and new_covariances(settings.log == false and MOST
            or BRIGHTEST) or nil
        unite(mask, stuck(function(i)
            return scan_frames.transmissions(scan, device, rows, {i, i}, references, settings, bad)
        end, count, (scan.n_angles - 1) // (count - 1), follow))
        if follow then
            local columns <close> = mb.array({follow:unlike()}, {dtype = "u8", device = device})
            mb.binary(mask, "max", {b = columns, out = mask})
        end
    end
    return mask
end

-- Adds the defects of the detector from which the rows of a scan come.
local function add_origin(self, scan, device, rows)
    local origin = scan.origin
    local own = origin.rows_of(rows)
    local references <close> = scan_frames.references(origin.scan, device, own,
        nil, origin.alone)
    self.source = mask_of(origin.scan, device, own, references, origin.settings)
    self.source_first = own[1]
    local pixels, columns = counted(self.source)
    self.listed, self.columns = origin.columns_of(columns, device, rows)
    self.pixels = pixels
    if origin.reached then
        self.reached = origin.reached(device, rows, self)
        local _, far = counted(self.reached)
        self.spread, self.unseen = #far, not origin.some and self.columns > 0
    end
end

-- Adds what is found in the rows themselves.
local function add_own(self, scan, device, rows, references, settings)
    self.mask = mask_of(scan, device, rows, references, settings, self)
    local pixels, columns = counted(self.mask)
    local known = {}
    for _, x in ipairs(self.listed) do
        known[x] = true
    end
    for _, x in ipairs(columns) do
        if not known[x] then
            self.listed[#self.listed + 1] = x
            self.columns = self.columns + 1
        end
    end
    self.pixels = math.max(pixels, self.pixels)
    table.sort(self.listed)
end

--- The defects of the rows {first, last} of a scan, to be closed: {pixels, columns} are how many
-- pixels, and columns with half of them at least; `listed`: the 0-based columns of the data that
-- are left out; `unseen`: columns have spread, and nobody knows how far. `references`: darks and
-- flats of these rows.
function defects.find(scan, device, rows, references, settings)
    local self = setmetatable({first = rows[1], listed = {}, pixels = 0, columns = 0,
        spread = 0}, methods)
    local _ <close> = on_error(function() self:release() end)
    if scan.origin then
        add_origin(self, scan, device, rows)
    end
    add_own(self, scan, device, rows, references, settings)
    return self
end

function methods:release()
    for _, name in ipairs {"mask", "source", "reached"} do
        if self[name] then
            self[name]:release()
            self[name] = nil
        end
    end
end
methods.__close = methods.release

--- Fills the defects in frames (frame, row, column) of the rows {first, last} from their neighbors.
-- `stored`: also what the defects of the detector have reached in stored frames.
function methods:fill(frames, rows, stored)
    local part = {rows[1] - self.first + 1, rows[2] - self.first + 1}
    for _, name in ipairs {"mask", stored and "reached" or nil} do
        if self[name] then
            local mask <close> = self[name]:view(part, mb.all)
            local _, counts = mb.mend(frames, {mask = mask, reach = REACH, nonfinite = false,
                out = frames})
            counts:release()
        end
    end
end

--- Have the defects reached so much of what was stored that no sinogram tells of the axis?
function methods:is_blind()
    return self.spread > MOST_SPREAD * self.mask.shape[2]
end

-- The types that op mend takes; other counts become f32.
local TAKEN = {u8 = true, u16 = true, f32 = true}

--- Fills the defects of the detector in what was read of it: `made` (pipeline/block.lua), before
-- the first step, has the rows {first, last} of the origin.
function methods:fill_source(made, rows)
    local low = self.source_first - 1
    local mask <close> = self.source:view({rows[1] - low, rows[2] - low}, mb.all)
    for _, name in ipairs {"data", "flats", "darks"} do
        local array = made[name]
        if array and (name == "data" or array.shape[2] == mask.shape[1]) then
            if not TAKEN[array.dtype] or not array.contiguous then
                made[name] = TAKEN[array.dtype] and array:copy() or array:cast "f32"
                array:release()
            end
            local _, counts = mb.mend(made[name], {mask = mask, reach = REACH, nonfinite = false,
                out = made[name]})
            counts:release()
        end
    end
end

--- Is a column, 0-based, within a pixel of one that is left out?
function methods:is_near(column)
    for _, x in ipairs(self.listed) do
        if math.abs(x - column) <= 1 then
            return true
        end
    end
    return false
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
