--- The start of iterative methods from a direct reconstruction.

local mb = require "moonbeam"
local directions = require "moonbeam.scan.directions"

local direct_start = {}

-- A gap between directions is one of the scan where it is so many times the mean of the others.
local WEDGE <const> = 4

-- The part of half a turn that each angle stands for: half of the gaps to the directions beside it,
-- in radians. A wedge without any angle counts as a gap like the others.
local function parts_of(angles)
    local order, gaps = directions.gaps(angles, math.pi)
    local count, widest, parts = #angles, 1, {}
    for i = 1, count do
        widest = gaps[i] > gaps[widest] and i or widest
    end
    local mean = (math.pi - gaps[widest]) / math.max(1, count - 1)
    if count > 1 and gaps[widest] > WEDGE * mean then
        gaps[widest] = mean
    end
    for i = 1, count do
        parts[order[i]] = (gaps[i] + gaps[(i - 2) % count + 1]) / 2
    end
    return parts
end

--- Options of fourier_reconstruct for the start with this geometry and period of the rows. A window
-- with little noise lets fewer iterations do than none, and than one that smooths.
function direct_start.options(geometry, period)
    return {center = geometry.center, shifts = geometry.shifts,
        size = {geometry.side, geometry.side}, circle = geometry.circle, filter = "shepp-logan",
        padding = "edge", scale = 1, period = period}
end

--- Makes x, slices on the grid of the geometry, a direct reconstruction of the sinograms. Of a half
-- acquisition, columns that are seen twice are weighted before, in a copy of the sinograms that is
-- as wide as the field of view: filtered rows reach beyond the near edge.
function direct_start.make(sinograms, geometry, period, x)
    local options = direct_start.options(geometry, period)
    options.weights, options.out = parts_of(geometry.angles), x
    local cols, center = sinograms.shape[3], geometry.center
    local weighted <close> = geometry.half_acquisition
        and mb.half_acquisition_weight(sinograms, center, {extend = true}) or nil
    if weighted then
        options.scale = 2 -- a whole turn sees these rays once
        options.center = center + (center < (cols - 1) / 2 and weighted.shape[3] - cols or 0)
    end
    mb.fourier_reconstruct(weighted or sinograms, geometry.angles, options)
end

return direct_start
