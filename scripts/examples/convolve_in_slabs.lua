-- Convolves a volume in slabs that fit a budget, and compares the result with the whole.
-- usage: moonbeam scripts/examples/convolve_in_slabs.lua [BUDGET]
local mb = require "moonbeam"

local budget = mb.usage("4M")
local nz, ny, nx, reach = 48, 96, 96, 8                 -- the PSF reaches 8 planes up and down
local volume <close> = mb.phantom.spheres({nz, ny, nx})
local psf <close> = mb.psf.gaussian({2 * reach + 1, 9, 9}, {3, 1.5, 1.5})
local result <close> = mb.zeros {nz, ny, nx}

-- The planes first to last of the result, from the planes within reach of them.
local function slab(first, last)
    local from, to = math.max(1, first - reach), math.min(nz, last + reach)
    local input <close> = volume:view({from, to}, mb.all, mb.all)
    local blurred <close> = mb.convolution(input, psf)
    local inner <close> = blurred:view({first - from + 1, last - from + 1}, mb.all, mb.all)
    local place <close> = result:view({first, last}, mb.all, mb.all)
    mb.convert(inner, "f32", {out = place})
end

-- A slab in the middle has both margins, so it needs the most memory.
local depth, peak = mb.plan.max_count(function(_, n)
    local first = math.min(reach, nz - n) + 1
    slab(first, first + n - 1)
end, {available = budget, limit = nz})
assert(depth > 0, "not even one plane fits the budget")
local slabs = 0
for first = 1, nz, depth do
    slab(first, math.min(nz, first + depth - 1))
    slabs = slabs + 1
end
local whole <close> = mb.convolution(volume, psf)
print(("%d slabs of %d planes, at most %d bytes in a slab"):format(slabs, depth, peak))
print(("difference from the whole, relative: %.1e"):format(mb.metrics.rmse(result, whole)
    / whole:max()))
