--- Convolution of images larger than the device: overlap-save tiles whose result is the untiled one, to rounding.
--
-- A tile of S elements along an axis needs S + k - 1 of the image (k: the PSF's extent); what lies outside the image comes
-- from the boundary, the rest from the neighbours. All tiles share one grid and one transfer function. The image may be on
-- the host and the tiles on a GPU; only a tile and its neighbourhood travel.

local mb = require "moonbeam"
local convolution = require "moonbeam.convolution"
local options_of = require "moonbeam.options"
local psf_tools = require "moonbeam.psf"

local tiles = {}

local OPTIONS = {"boundary", "center", "normalise", "correlate", "tile", "budget", "device", "out"}

local function fail(message, arg, code)
    mb.raise(code or "argument", message, {op = "tiles.convolve", arg = arg})
end

-- Cuts every axis into counts[i] nearly equal parts.
local function describe(shape, kernel, below, counts)
    local plan = {counts = counts, tile = {}, grid = {}, piece = {}, total = 1}
    for i, n in ipairs(shape) do
        plan.tile[i] = (n + counts[i] - 1) // counts[i]
        plan.grid[i] = mb.fft.good_size(plan.tile[i] + kernel[i] - 1)
        plan.piece[i] = math.min(n, plan.tile[i] + kernel[i] - 1)
        plan.total = plan.total * counts[i]
    end
    plan.below = below
    return plan
end

-- One tile: the piece of the image in, its part of the result into `target` (a view of the result).
local function process(piece, otf, plan, before, extents, settings, target)
    local n = plan.grid[#plan.grid]
    local here <close> = piece.device ~= otf.device and piece:to(otf.device) or nil
    local grid <close> = mb.embed(here or piece, plan.grid, {before = before, boundary = settings.boundary})
    if here then
        here:release()
    end
    convolution.apply(grid, otf, n, settings.correlate)
    local part <close> = grid:view(convolution.ranges(plan.below, extents))
    if target.device == part.device then
        mb.convert(part, "f32", {out = target})
        return
    end
    local dense <close> = part:copy()
    local back <close> = dense:to(target.device)
    mb.convert(back, "f32", {out = target})
end

-- The memory that the largest tile takes on the device, beside image and result where those are there.
local function peak_of(plan, psf, image, device, settings, resident)
    return mb.plan.peak(function(shadow)
        local spread <close> = mb.empty(psf.shape, {dtype = psf.dtype, device = shadow})
        local otf <close> = mb.otf(spread, plan.grid)
        local piece <close> = mb.empty(plan.piece, {dtype = image.dtype, device = shadow})
        local grid <close> = mb.embed(piece, plan.grid)
        if not resident then
            piece:release()
        end
        convolution.apply(grid, otf, plan.grid[#plan.grid], settings.correlate)
        if not resident then
            local part <close> = grid:view(convolution.ranges(plan.below, plan.tile))
            part:copy():release()
        end
    end, device).peak
end

--- Convolves tile by tile; mode "same". Returns the result (f32, on the image's device) and the plan: {tile, counts, grid,
-- total, peak}: extents of a tile, tiles per axis, the FFT grid, how many tiles, bytes that a tile takes.
--
-- Options: boundary ("zero", "reflect", "mirror" or "replicate"), center (whole numbers), normalise, correlate, out as for
-- convolution.convolve; tile, the largest extents of a tile; or budget, the bytes that tiles may take (default: what the
-- device's budget leaves); device, where the tiles are worked on (default: the image's).
function tiles.convolve(image, psf, options)
    options = options_of(options, "tiles.convolve", OPTIONS)
    local boundary = options.boundary or "zero"
    if boundary == "circular" then
        fail("tiles do not wrap around: boundary is zero, reflect, mirror or replicate", "boundary", "unsupported")
    end
    local shape, kernel, center = image.shape, psf.shape, psf_tools.center(psf, options.center)
    convolution.layout(shape, kernel, center, {boundary = boundary, correlate = options.correlate}) -- checks
    local device = mb.device(options.device or image.device.id)
    local resident = device.id == image.device.id
    local settings = {boundary = boundary, correlate = options.correlate}
    local below, least, counts, most = {}, {}, {}, {}
    for i, k in ipairs(kernel) do
        if center[i] ~= math.floor(center[i]) then
            fail("tiles need a centre of whole numbers: a shift by phase reaches across all of them", "center")
        end
        local above = center[i]
        below[i] = k - 1 - above
        if options.correlate then
            below[i], above = above, below[i]
        end
        -- Reflections must stay inside a tile's piece.
        least[i] = math.max(below[i], above) + 1
        most[i] = math.max(1, shape[i] // least[i])
        counts[i] = options.tile and math.min(most[i], (shape[i] + options.tile[i] - 1) // options.tile[i]) or 1
    end
    local plan = describe(shape, kernel, below, counts)
    plan.peak = peak_of(plan, psf, image, device, settings, resident)
    if not options.tile then
        local stats = mb.pool.stats(device)
        local available = options.budget and mb.device.bytes(options.budget)
            or stats.budget - stats.live - (resident and image.bytes or 0)
        while plan.peak > available do
            -- Halve where a tile is longest beside its neighbourhood.
            local best, longest = nil, 0
            for i = 1, #shape do
                local ratio = plan.tile[i] / math.max(1, kernel[i] - 1)
                if counts[i] < most[i] and ratio > longest then
                    best, longest = i, ratio
                end
            end
            if not best then
                fail(("the smallest tile takes %s; %s are available"):format(mb.device.format_bytes(plan.peak),
                    mb.device.format_bytes(math.max(0, available))), "budget", "budget")
            end
            counts[best] = math.min(most[best], 2 * counts[best])
            plan = describe(shape, kernel, below, counts)
            plan.peak = peak_of(plan, psf, image, device, settings, resident)
        end
    end
    local there <close> = psf.device.id ~= device.id and psf:to(device) or nil
    local otf <close> = convolution.transfer(there or psf, plan.grid, {center = center, normalise = options.normalise or false})
    local result = options.out or mb.empty(shape, {device = image.device})
    local _ <close> = setmetatable({}, {__close = function(_, err)
        if err ~= nil and not options.out then
            result:release()
        end
    end})
    for number = 0, plan.total - 1 do
        local rest, from, take, before, first, extents = number, {}, {}, {}, {}, {}
        for i = #shape, 1, -1 do
            local j = rest % counts[i]
            rest = rest // counts[i]
            local n = shape[i]
            first[i] = n * j // counts[i]
            extents[i] = n * (j + 1) // counts[i] - first[i]
            local low = first[i] - below[i]
            from[i] = math.max(0, low)
            take[i] = math.min(n, low + extents[i] + kernel[i] - 1) - from[i]
            before[i] = from[i] - low
        end
        local view <close> = image:view(convolution.ranges(from, take))
        local target <close> = result:view(convolution.ranges(first, extents))
        process(view, otf, plan, before, extents, settings, target)
    end
    return result, plan
end

return tiles
