--- Units of numbers in files: what each is in meters, seconds, electronvolts or degrees. Units are
-- read, never guessed.

local units = {}

--- Lengths in meters.
units.length = {
    m = 1, meter = 1, metre = 1, meters = 1, metres = 1,
    cm = 1e-2, centimeter = 1e-2, centimetre = 1e-2, centimeters = 1e-2, centimetres = 1e-2,
    mm = 1e-3, millimeter = 1e-3, millimetre = 1e-3, millimeters = 1e-3, millimetres = 1e-3,
    um = 1e-6, ["\u{B5}m"] = 1e-6, ["\u{3BC}m"] = 1e-6, ["\\u00b5m"] = 1e-6, micron = 1e-6,
    microns = 1e-6, micrometer = 1e-6,
    micrometre = 1e-6, micrometers = 1e-6, micrometres = 1e-6,
    nm = 1e-9, nanometer = 1e-9, nanometre = 1e-9, nanometers = 1e-9, nanometres = 1e-9,
    angstrom = 1e-10, angstroms = 1e-10, ["\u{E5}"] = 1e-10, ["\u{C5}"] = 1e-10,
    ["\u{212B}"] = 1e-10,
    pm = 1e-12, picometer = 1e-12, picometers = 1e-12, fm = 1e-15,
    inch = 0.0254, inches = 0.0254, ["in"] = 0.0254,
}

--- Energies in electronvolts.
units.energy = {
    ev = 1, electronvolt = 1, electronvolts = 1, electron_volt = 1,
    kev = 1e3, kiloelectronvolt = 1e3, kiloelectronvolts = 1e3, kiloelectron_volt = 1e3,
    mev = 1e6, megaelectronvolt = 1e6, megaelectronvolts = 1e6,
    j = 1 / 1.602176634e-19, joule = 1 / 1.602176634e-19, joules = 1 / 1.602176634e-19,
}

--- h c in eV m: an energy is this divided by a wavelength.
units.ENERGY_LENGTH = 1.2398419843320026e-6

--- Angles in degrees.
units.angle = {
    deg = 1, degs = 1, degree = 1, degrees = 1, ["°"] = 1,
    rad = 180 / math.pi, rads = 180 / math.pi, radian = 180 / math.pi, radians = 180 / math.pi,
}

--- Times in seconds.
units.time = {
    s = 1, sec = 1, second = 1, seconds = 1, ms = 1e-3, msec = 1e-3, millisecond = 1e-3,
    us = 1e-6, ["\u{B5}s"] = 1e-6, microsecond = 1e-6, ns = 1e-9, nanosecond = 1e-9, min = 60,
    minute = 60, h = 3600, hour = 3600, day = 86400, d = 86400,
}

--- A unit of length in meters, or nil. Short ones are as they are written: "Mm" is no millimeter.
function units.meters(unit)
    local word = unit and unit:match "^%s*(.-)%s*$"
    return word and (units.length[word] or #word > 2 and units.length[word:lower()]) or nil
end

-- Limits of what microscopes resolve and see, in m.
local LEAST <const>, MOST <const> = 1e-9, 1e-4

--- Can a length, in m, be that of a voxel of a microscope, from 1 nm to 0.1 mm?
function units.microscopic(meters)
    return meters >= LEAST * (1 - 1e-9) and meters <= MOST * (1 + 1e-9)
end

return units
