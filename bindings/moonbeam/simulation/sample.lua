--- The sample of a simulated scan: transmission of ellipsoids in a parallel beam, with an axis that
-- leans, a stage that drifts, and propagation behind the sample.

local mb = require "moonbeam"
local tables = require "moonbeam.internal.tables"

local sample = {}
local methods = {}
methods.__index = methods

local PLANCK_TIMES_LIGHT <const> = 1.23984198e-6 -- eV m

--- The wavelength (m) of photons with this energy (eV).
local function wavelength(energy)
    return PLANCK_TIMES_LIGHT / energy
end

--- A sample. Fields: ellipsoids, angles, rows, cols, center, lean (columns per row), tilt (rad, of
-- all that is seen, about the middle of the axis), vertical_shifts and horizontal_shifts (px, one
-- per projection, or nil), phase ({energy, distance, delta_beta} in eV and m, or nil), pixel_size
-- (m), device.
function sample.new(fields)
    local self = setmetatable(fields, methods)
    self.heights = mb.phantom.heights(self.rows)
    if self.phase then
        -- Paganin et al. 2020: a / W^2 of 1 - a laplace
        self.strength = wavelength(self.phase.energy) * self.phase.distance
            * self.phase.delta_beta / (4 * math.pi) / self.pixel_size ^ 2
    end
    return self
end

-- Line integrals of one projection's rows, each about its own column.
local function leaning(self, angle, heights, center, to)
    for row = 1, self.rows do
        local column = center + self.lean * (row - (self.rows + 1) / 2)
        local part <close> = to:view(mb.all, {row, row}, mb.all)
        local from <close> = mb.ellipsoid_projections(self.ellipsoids, angle, {heights[row]},
            self.cols, {center = column, device = self.device})
        mb.convert(from, "f32", {out = part})
    end
end

-- Line integrals of projections first to last, each with its own shifts.
local function shifted(self, first, last)
    local integrals = mb.empty({last - first + 1, self.rows, self.cols}, {device = self.device})
    for i = first, last do
        local down = self.vertical_shifts and self.vertical_shifts[i] or 0
        local center = self.center + (self.horizontal_shifts and self.horizontal_shifts[i] or 0)
        local heights = tables.mapped(self.heights, function(height) return height + down end)
        local to <close> = integrals:view({i - first + 1, i - first + 1}, mb.all, mb.all)
        if self.lean ~= 0 then
            leaning(self, {self.angles[i]}, heights, center, to)
        else
            local from <close> = mb.ellipsoid_projections(self.ellipsoids, {self.angles[i]},
                heights, self.cols, {center = center, device = self.device})
            mb.convert(from, "f32", {out = to})
        end
    end
    return integrals
end

local function integrals_of(self, first, last)
    local angles = table.move(self.angles, first, last, 1, {})
    if self.vertical_shifts or self.horizontal_shifts then
        return shifted(self, first, last)
    elseif self.lean == 0 then
        return mb.ellipsoid_projections(self.ellipsoids, angles, self.heights, self.cols,
            {center = self.center, device = self.device})
    end
    local integrals = mb.empty({#angles, self.rows, self.cols}, {device = self.device})
    leaning(self, angles, self.heights, self.center, integrals)
    return integrals
end

-- Intensity behind the sample: (1 - a laplace) of the transmission (transport of intensity, one
-- material), with the discrete operator that generalized Paganin filters invert.
local function propagate(transmission, strength)
    local rows, cols = transmission.shape[2], transmission.shape[3]
    local wide <close> = mb.pad(transmission, {before = {0, 1, 1}, after = {0, 1, 1},
        mode = "edge"})
    mb.binary(transmission, "mul", {scalar = 1 + 4 * strength, out = transmission})
    for _, offset in ipairs {{0, 1}, {2, 1}, {1, 0}, {1, 2}} do
        local neighbor <close> = wide:view(mb.all, {1 + offset[1], rows + offset[1]},
            {1 + offset[2], cols + offset[2]})
        local part <close> = neighbor * strength
        mb.binary(transmission, "sub", {b = part, out = transmission})
    end
    mb.binary(transmission, "max", {scalar = 1e-3, out = transmission})
end

--- The transmission (angle, row, column) of projections first to last; the caller closes it.
function methods:transmission(first, last)
    local values = integrals_of(self, first, last)
    mb.unary(values, "neg", {out = values})
    mb.unary(values, "exp", {out = values})
    if self.strength then
        propagate(values, self.strength)
    end
    if self.tilt ~= 0 then
        local turned = mb.rotate(values, self.tilt, {center = {(self.rows - 1) / 2, self.center}})
        values:release()
        values = turned
    end
    return values
end

return sample
