-- Where exact tiles lie: the extents of the estimate and of the ratio, what a tile needs of them,
-- and where the image is.
--
-- Boundary "zero": the estimate lives on the image's extents and k - 1 beyond, the ratio on the
-- image's. Other boundaries: both live on the grid that the untiled method has, which wraps around;
-- the image is continued on it (moonbeam.tiled_deconv.continued).

local continued = require "moonbeam.tiled_deconv.continued"
local grids = require "moonbeam.deconv.deconv_grid"
local search = require "moonbeam.tiles.search"
local tables = require "moonbeam.internal.tables"

local domain = {}

--- Adds to a job {what, source, psf, options, devices}: estimate and ratio, their extents; lead,
-- where the image begins in the estimate; center, whole; fore and back, where, before its first
-- element, what a tile of the ratio and of the estimate needs begins; middle and above, where the
-- results are in the grid of a tile; wraps. `given`: the center of the PSF.
function domain.prepare(job, given)
    local source, psf = job.source, job.psf
    local layout = grids.layout(job.what, source.shape, psf.shape, given, job.options,
        job.devices[1])
    job.wraps, job.center = layout.boundary ~= "zero", layout.center
    for _, name in ipairs {"estimate", "ratio", "lead", "middle", "above", "fore", "back"} do
        job[name] = {}
    end
    for i, k in ipairs(psf.shape) do
        local n, c = source.shape[i], layout.center[i]
        job.lead[i] = job.wraps and layout.first[i] or k - 1 - c
        job.estimate[i] = job.wraps and layout.grid[i] or n + k - 1
        job.ratio[i] = job.wraps and layout.grid[i] or n
        job.fore[i], job.back[i] = job.wraps and c - k + 1 or 0, job.wraps and -c or 1 - k
        -- The transfer function is about the middle, wherever the center is: in planes it is small
        -- so. Sweep 1 finds its results `above` from the start of a grid, sweep 2 `middle`.
        job.middle[i] = (k - 1) // 2
        job.above[i] = k - 1 - job.middle[i]
    end
end

--- What total variation needs of the estimate for a tile of it: one element more on each side, as
-- far as there is one. Returns what is read, a function for sweep.run, and one that says where the
-- tile is in that.
function domain.rim(job)
    local function low(tile, i)
        return math.max(0, tile.first[i] - 1)
    end
    return function(tile)
        local first, extents = {}, {}
        for i, at in ipairs(tile.first) do
            first[i] = low(tile, i)
            extents[i] = math.min(job.estimate[i], at + tile.extents[i] + 1) - first[i]
        end
        return first, extents
    end, function(tile)
        local at = {}
        for i, first in ipairs(tile.first) do
            at[i] = first - low(tile, i)
        end
        return at
    end
end

-- Notes with a tile what it reads beyond the edges of `input` (nil: nothing), and of the image
-- (`own`), and in the rim: `edges`, numbers that decide the memory, and `extra`, how many elements
-- are copied for that.
local function mark(job, tile, input, own, rim)
    local edges, around, image = {}, false, false
    for i, from in ipairs(tile.from) do
        local low = input and math.max(0, -from) or 0
        local high = input and math.max(0, from + tile.take[i] - input[i]) or 0
        local first = tile.first[i] - (own and job.lead[i] or 0)
        local before = own and math.max(0, -first) or 0
        local after = own and math.max(0, first + tile.extents[i] - job.source.shape[i]) or 0
        around, image = around or low + high > 0, image or before + after > 0
        table.move({low, high, before, after}, 1, 4, #edges + 1, edges)
    end
    tile.extra = (around and tables.product(tile.take) or 0)
        + (image and tables.product(tile.extents) or 0)
    if rim then
        local _, extents = rim(tile)
        tile.extra = tile.extra + tables.product(extents)
        table.move(extents, 1, #extents, #edges + 1, edges)
    end
    tile.edges = edges
end

--- The tiles of a job that is cut `counts` times: those of the image, of the ratio, and of the
-- estimate. tiles_of(axes): search.tiles, or some of these.
function domain.tiles(job, counts, tiles_of)
    local kernel, shape, zero = job.psf.shape, job.source.shape, {}
    for i in ipairs(shape) do
        zero[i] = 0
    end
    local own = tiles_of(search.cut(shape, shape, kernel, zero, counts))
    local one = tiles_of(search.cut(job.ratio, job.estimate, kernel, job.fore, counts, job.wraps))
    local two = tiles_of(search.cut(job.estimate, job.ratio, kernel, job.back, counts, job.wraps))
    local rim = job.options.total_variation and domain.rim(job) or nil
    for _, tile in ipairs(job.wraps and one or {}) do
        mark(job, tile, job.estimate, true)
    end
    for _, tile in ipairs((job.wraps or rim) and two or {}) do
        mark(job, tile, job.wraps and job.ratio or nil, false, rim)
    end
    return own, one, two
end

--- The image as the sweeps see it, at the places of the ratio.
function domain.image(job, volume)
    return job.wraps and continued.of(volume, job.options.boundary, job.lead) or volume
end

--- An estimate or a ratio as the sweeps see it, also beyond the edges.
function domain.around(job, volume)
    return volume and job.wraps and continued.of(volume, "circular") or volume
end

return domain
