--- Units of the numbers in an HDF5 file (internal/quantities/units.lua): the reading of a number
-- with its unit.

local source = require "moonbeam.scan.source"

local units = setmetatable({}, {__index = require "moonbeam.internal.quantities.units"})

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
