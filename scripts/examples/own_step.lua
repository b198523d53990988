-- A step of your own for a recipe: the background of each slice, its mean in a ring, is removed.
-- usage: moonbeam reconstruct SCAN --steps scripts/examples/own_step.lua --recipe RECIPE -o RESULT
local mb = require "moonbeam"

-- The mean of a slice between two radii, as parts of half its width; a dry run knows none: 0.
local function background(slice, options)
    local values = mb.bound({}, slice.to_table, slice)
    local sum, count, middle = 0, 0, (#values + 1) / 2
    for y, row in ipairs(values) do
        for x, value in ipairs(row) do
            local radius = ((y - middle) ^ 2 + (x - middle) ^ 2) ^ 0.5 / middle
            if radius >= options.inner and radius <= options.outer then
                sum, count = sum + value, count + 1
            end
        end
    end
    return count > 0 and sum / count or 0
end

return {
    name = "remove_background",
    summary = "Subtracts the mean of a ring around the object from each slice.",
    options = {
        {"inner", "number", "where the ring begins, part of the half-width", min = 0, max = 1,
            default = 0.8},
        {"outer", "number", "where the ring ends", min = 0, max = 1, default = 0.95},
    },
    takes = {quantity = "attenuation", layout = "slices"},
    gives = {quantity = "same", layout = "same"},
    run = function(block, options)
        for z = 1, block.data.shape[1] do
            local slice <close> = block.data:view(z)
            mb.binary(slice, "sub", {scalar = background(slice, options), out = slice})
        end
    end,
}
