-- Says how many slices fit several budgets: for one operator and for a function of your own.
-- usage: moonbeam scripts/examples/max_slices.lua [ANGLES COLUMNS]
local mb = require "moonbeam"

local count, columns = mb.usage(1500, 2048)
local angles = mb.tomo.angles(count)

-- The input of n slices, and the work. Both are planned: nothing is allocated or computed.
local function make_input(n, device)
    return mb.empty({n, count, columns}, {device = device})
end
local function reconstruct(sinograms)
    local smooth <close> = mb.gaussian_filter(sinograms, {0, 0, 1})
    return mb.tomo.fbp(smooth, angles)
end

for _, budget in ipairs {"1Gi", "8Gi", "40Gi"} do
    local filter, dtype = mb.op.max_slices("ramp_filter", {pattern = "sinogram",
        dims = {count, columns}, dtype = "f32", available = budget})
    local all, peak = mb.plan.max_slices(reconstruct, make_input, budget)
    print(("%-5s ramp_filter alone %5d slices (%s); smoothing and FBP %5d slices, %d bytes"):format(
        budget, filter, dtype, all, peak))
end
