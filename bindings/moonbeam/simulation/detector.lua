--- A simulated detector and its beam: vignetting, a lens, gains that drift, defective columns,
-- photon noise and zingers.

local mb = require "moonbeam"

local detector = {}
local methods = {}
methods.__index = methods

local DARK_LEVEL <const> = 100
local BRIGHTEST <const> = 65000

detector.MOST_PHOTONS = 60000 - DARK_LEVEL

-- The kinds of defects, in the order in which columns get them: `width` columns whose gain during
-- the scan is `gain(u, part)`, u being a random number and part the part of the scan that is over;
-- dead columns count nothing in flats either.
local KINDS <const> = {
    {name = "full", width = 1, gain = function(u) return u < 0.5 and 0.85 or 1.15 end},
    {name = "partial", width = 1, gain = function(u, part)
        return math.abs(part - 0.25 - u / 2) < 0.2 and 1.2 or 1
    end},
    {name = "large", width = 5, gain = function(u) return u < 0.5 and 0.9 or 1.1 end},
    {name = "dead", width = 1, dead = true, gain = function() return 0 end},
    {name = "fluctuating", width = 1, gain = function(u, part)
        return 1 + 0.25 * math.sin((part + u) * 12345.678)
    end},
}

-- Numbers between 0 and 1 by a fixed rule: the same in a dry run, where arrays have no values.
local function random_numbers(seed)
    local state = seed
    return function()
        state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
        return (state >> 24) / (math.maxinteger >> 24)
    end
end

-- Where the defects are: {kind, first, width, u}, spread over the columns, apart from each other.
local function defects_of(count, cols, seed)
    local list, random = {}, random_numbers(seed)
    local room = cols / math.max(count, 1)
    for i = 1, count do
        local kind = KINDS[(i - 1) % #KINDS + 1]
        local slack = math.max(0, room - kind.width - 1)
        local first = math.floor((i - 1) * room + random() * slack)
        list[i] = {kind = kind, first = math.min(first, cols - kind.width) + 1, u = random()}
    end
    return list
end

--- A detector. Fields: rows, cols, frames (projections of the scan), photons (of the open beam),
-- exact (no noise), rings (drift of column gains between flats and scan), stripes (number of
-- defective columns), zingers (part of the elements that is hit), beam_drift (what the beam loses
-- until the end of the scan, as a part), lens ({center = {row, column}, factors} of its radial
-- distortion, as mb.undistort takes them, or nil), seed, device.
function detector.new(fields)
    local self = setmetatable(fields, methods)
    self.element, self.seeds = 0, 0 -- positions in streams of random numbers
    self.defects = defects_of(self.stripes, self.cols, self.seed)
    local pattern <close> = mb.random({self.rows, self.cols},
        {seed = self.seed, low = 0.98, high = 1.02, device = self.device})
    local x <close> = mb.linspace(-1, 1, self.cols, {device = self.device})
    local vignetting <close> = 1 - 0.3 * x * x
    self.gains = pattern * vignetting
    if self.rings > 0 then
        local drift <close> = mb.random({self.cols}, {seed = self.seed + 1, low = 1 - self.rings,
            high = 1 + self.rings, device = self.device})
        self.scan_gains = self.gains * drift
    end
    return self
end

-- Multiplies frames by the gains of defective columns; `part_of(i)`: the part of the scan that is
-- over at frame i, or nil for frames without a sample.
local function apply_defects(self, frames, part_of)
    for _, defect in ipairs(self.defects) do
        local kind = defect.kind
        if part_of or kind.dead then
            local gains = {}
            for i = 1, frames.shape[1] do
                gains[i] = {{part_of and kind.gain(defect.u, part_of(i)) or 0}}
            end
            local factors <close> = mb.array(gains, {dtype = "f32", device = self.device})
            local columns <close> = frames:view(mb.all, mb.all,
                {defect.first, defect.first + kind.width - 1})
            mb.binary(columns, "mul", {b = factors, out = columns})
        end
    end
end

-- Multiplies frames by what is left of the beam.
local function apply_beam_drift(self, frames, part_of)
    local left = {}
    for i = 1, frames.shape[1] do
        left[i] = {{1 - self.beam_drift * part_of(i)}}
    end
    local factors <close> = mb.array(left, {dtype = "f32", device = self.device})
    mb.binary(frames, "mul", {b = factors, out = frames})
end

-- Some elements are hit by stray photons and count as much as the detector can.
local function hit(self, counts)
    self.seeds = self.seeds + 1
    local hits <close> = mb.random(counts.shape, {seed = self.seed + 1000 * self.seeds, low = 0,
        high = 1, device = self.device})
    local level = math.min(BRIGHTEST, 3 * (self.photons + DARK_LEVEL))
    mb.binary(hits, "sub", {scalar = 1 - self.zingers, out = hits})
    mb.binary(hits, "mul", {scalar = 1e12, out = hits})
    mb.binary(hits, "max", {scalar = 0, out = hits})
    mb.binary(hits, "min", {scalar = level, out = hits})
    mb.binary(counts, "max", {b = hits, out = counts})
end

-- The counts of frames with the given means, as they are stored. Consumes the means.
local function stored(self, means)
    mb.binary(means, "mul", {scalar = self.photons, out = means})
    mb.binary(means, "add", {scalar = DARK_LEVEL, out = means})
    if not self.exact then
        mb.poisson(means, {seed = self.seed, first = self.element, out = means})
        self.element = self.element + means.elements
    end
    if self.zingers > 0 then
        hit(self, means)
    end
    local counts = means:cast(self:dtype())
    if counts ~= means then
        means:release()
    end
    return counts
end

--- The element type of the frames.
function methods:dtype()
    return self.exact and "f32" or "u16"
end

--- The counts of `frames` flats (open = 1) or darks (open = 0). `part`: when they are taken, as the
-- part of the scan that is over.
function methods:reference(frames, open, part)
    local full <close> = mb.full({frames, self.rows, self.cols}, open, {device = self.device})
    local means = full * self.gains
    apply_defects(self, means)
    if self.beam_drift > 0 and part > 0 then
        apply_beam_drift(self, means, function() return part end)
    end
    return stored(self, means)
end

--- The counts of projections with the given transmission (angle, row, column), the first having
-- this number.
function methods:expose(transmission, first)
    local lens = self.lens
    local seen <close> = lens and mb.undistort(transmission, lens.center, lens.factors,
        {inverse = true}) or nil
    local means = (seen or transmission) * (self.scan_gains or self.gains)
    local function part_of(i)
        return self.frames > 1 and (first + i - 2) / (self.frames - 1) or 0
    end
    apply_defects(self, means, part_of)
    if self.beam_drift > 0 then
        apply_beam_drift(self, means, part_of)
    end
    return stored(self, means)
end

--- {first column (0-based), width, number of the kind} of each defect, and the names of the kinds.
function methods:described()
    local list, names = {}, {}
    for i, kind in ipairs(KINDS) do
        names[i] = kind.name
    end
    for i, defect in ipairs(self.defects) do
        for k, kind in ipairs(KINDS) do
            if kind == defect.kind then
                list[i] = {defect.first - 1, kind.width, k}
            end
        end
    end
    return list, table.concat(names, ", ")
end

function methods:release()
    self.gains:release()
    if self.scan_gains then
        self.scan_gains:release()
    end
end
methods.__close = methods.release

return detector
