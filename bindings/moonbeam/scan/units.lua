--- Units of a file's numbers: what each is in meters or electronvolts, and the reading of a number
-- with its unit. Units are read, never guessed.

local source = require "moonbeam.scan.source"

local units = {}

--- Lengths in meters.
units.length = {
    m = 1, meter = 1, metre = 1, meters = 1, metres = 1,
    cm = 1e-2, centimeter = 1e-2, centimetre = 1e-2, centimeters = 1e-2, centimetres = 1e-2,
    mm = 1e-3, millimeter = 1e-3, millimetre = 1e-3, millimeters = 1e-3, millimetres = 1e-3,
    um = 1e-6, ["µm"] = 1e-6, ["μm"] = 1e-6, micron = 1e-6, microns = 1e-6, micrometer = 1e-6,
    micrometre = 1e-6, micrometers = 1e-6, micrometres = 1e-6,
    nm = 1e-9, nanometer = 1e-9, nanometre = 1e-9, nanometers = 1e-9, nanometres = 1e-9,
    angstrom = 1e-10, angstroms = 1e-10, ["\u{E5}"] = 1e-10, ["\u{C5}"] = 1e-10,
    ["\u{212B}"] = 1e-10,
    pm = 1e-12, picometer = 1e-12, picometers = 1e-12,
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

--- The factor of the unit of an object of a kind (a table of this module), and its name; nil and
-- why it has none.
function units.factor(file, path, kind)
    local unit = source.units(file, path)
    local factor = unit and kind[unit]
    if factor then
        return factor, unit
    end
    return nil, unit and ("has the unknown unit '%s'"):format(source.shown(unit)) or "has no unit"
end

return units
