--- Steps that an operator of the same name does, in place, with the sinogram of each row.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

-- How many times the columns a width in columns may be: wider ones change nothing but the time.
local MOST <const> = 10

-- Raises where a window or a pad is absurdly wide for so many columns.
local function check_widths(entries, given, columns)
    for _, name in ipairs {"pad", "size"} do
        local value = entries[name] and given[name]
        if math.type(value) == "integer" and value > math.max(MOST * columns, 1000) then
            fail("argument", nil, name, "%s is %d, more than %d times the %d columns: give less, "
                .. "such as %d", name, value, MOST, columns, columns)
        end
    end
end

-- Completes the definition: the options are those of the operator, unless it has its own;
-- `usual(block)` gives numbers for options that are absent.
return function(definition)
    local name, usual = definition.name, definition.usual
    definition.usual = nil
    definition.options = definition.options or declared.options(declared.from(name))
    local own = definition.check
    definition.check = function(given, shape, ...)
        check_widths(definition.options, given, shape[#shape])
        if own then
            own(given, shape, ...)
        end
    end
    definition.takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"}
    definition.cuts = {"rows"}
    definition.across_angles = true
    definition.run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb[name](sinograms, tables.merged(usual and usual(block), options, {out = sinograms}))
    end
    return definition
end
