--- Steps that an operator of the same name does, in place, with the sinogram of each row.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local tables = require "moonbeam.internal.tables"

-- Completes the definition: the options are those of the operator, unless it has its own;
-- `usual(block)` gives numbers for options that are absent.
return function(definition)
    local name, usual = definition.name, definition.usual
    definition.usual = nil
    definition.options = definition.options or declared.options(declared.from(name))
    definition.takes = {quantity = {"transmission", "line integrals", "phase"}, layout = "frames"}
    definition.cuts = {"rows"}
    definition.across_angles = true
    definition.run = function(block, options)
        local sinograms <close> = block.data:permute(2, 1, 3)
        mb[name](sinograms, tables.merged(usual and usual(block), options, {out = sinograms}))
    end
    return definition
end
