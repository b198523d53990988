--- Convolution and correlation by FFT, in place: functions over the operators embed, otf,
-- apply_otf.
--
-- One grid holds the image and then the product (rows of 2 * (n/2 + 1) floats), one the transfer
-- function: 8 bytes per voxel of the grid, and the work area of the FFT library where it needs one.
-- With `consume` the image goes before the transfer function comes, so that this is the peak, the
-- image included; a dense result needs the transfer function's room again, unless that was given.
--
-- With centre c of a PSF h of extents k (0-based, psf.center):
--   convolve:   r[n] = sum over j of h[j] a[n - j + c]
--   correlate:  r[n] = sum over j of h[j] a[n + j - c], its adjoint
-- mode "same": the image's extents. "full": n + k - 1, "valid": n - k + 1, both as in scipy.signal
-- whatever the centre. boundary (mode same): "zero", "circular", "reflect" (c b a | a b c),
-- "mirror" (c b | a b c), "replicate" (a a | a b c), scipy.ndimage's constant, wrap, reflect,
-- mirror and nearest.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local fail = require "moonbeam.internal.fail"
local options_of = require "moonbeam.internal.options"
local psf_tools = require "moonbeam.psf"
local whole_call = require "moonbeam.internal.whole"

local convolution = {}

local OPTIONS = {"mode", "boundary", "center", "normalise", "correlate", "consume", "out", "view", "otf", "size"}

local boundaries = {zero = true, circular = true, reflect = true, mirror = true, replicate = true}
local modes = {same = true, full = true, valid = true}

--- What a convolution looks like before any memory is taken: extents only.
--
-- `shape` of the image, `kernel` of the PSF, `center` of the PSF (coordinates), options mode,
-- boundary, correlate, and the device for which the grid is to be good (default: the default
-- device). Returns {grid, before, first, shape, boundary}: extents of the FFT grid, where the image
-- starts in it (0-based), where the result starts (0-based), its extents, and the boundary in
-- force.
function convolution.layout(shape, kernel, center, options)
    options = options_of(options, "convolution.layout", {"mode", "boundary", "correlate", "size", "device"})
    local mode, boundary = options.mode or "same", options.boundary or "zero"
    if not modes[mode] then
        fail("argument", "convolve", "mode", 'mode is "%s"; it is same, full or valid',
            tostring(mode))
    elseif not boundaries[boundary] then
        fail("argument", "convolve", "boundary",
            'boundary is "%s"; it is zero, circular, reflect, mirror or replicate',
            tostring(boundary))
    elseif #kernel ~= #shape then
        fail("shape", "convolve", "psf", "the PSF has %d axes, the image %d", #kernel, #shape)
    elseif mode == "full" and boundary ~= "zero" then
        fail("argument", "convolve", "boundary",
            'mode "full" has zeros outside the image; boundary "%s" is for mode "same"', boundary)
    end
    local layout = {grid = {}, before = {}, first = {}, shape = {}, boundary = boundary, mode = mode}
    local given = {}
    for i, n in ipairs(shape) do
        local k = kernel[i]
        local c = math.floor(center[i] + 0.5) -- otf shifts by the rest
        -- Result element m takes image elements m - (k - 1 - c) ... m + c; mirrored for
        -- correlation.
        local below, above = k - 1 - c, c
        if options.correlate then
            below, above = above, below
        end
        -- A fraction rings on: one voxel keeps neighbours apart. Extents must not depend on a
        -- centre found from values.
        local spill = (center.found or center[i] ~= c) and 1 or 0
        local beyond = (center.found and k - 1 or math.max(below, above)) + spill
        local least
        if mode == "full" then
            layout.before[i], layout.first[i], layout.shape[i] = above, 0, n + k - 1
            least = n + k - 1
        elseif mode == "valid" then
            if k > n then
                fail("shape", "convolve", "psf",
                    'mode "valid" needs an image as large as the PSF; axis %d: %d and %d', i, n, k)
            end
            layout.before[i], layout.first[i], layout.shape[i] = 0, below, n - k + 1
            least = n
        elseif boundary == "circular" then
            layout.before[i], layout.first[i], layout.shape[i] = 0, 0, n
            least = n
        elseif boundary == "zero" then
            layout.before[i], layout.first[i], layout.shape[i] = 0, 0, n
            least = n + beyond
        else
            layout.before[i], layout.first[i], layout.shape[i] = below + spill, below + spill, n
            least = n + k - 1 + 2 * spill
        end
        local circular = mode == "same" and boundary == "circular"
        local size = options.size and options.size[i]
        if size and (size < least or circular and size ~= n) then
            fail("argument", "convolve", "size",
                "axis %d: the grid must have %s %d elements, not %d", i,
                circular and "exactly" or "at least", least, size)
        end
        layout.grid[i], given[i] = size or least, size or circular
    end
    layout.grid = mb.fft.good_grid(layout.grid, {device = options.device, given = given})
    return layout
end

-- The product of a list of numbers.
local function product(values)
    arguments.list(values, "convolution.product", "values", "what is multiplied")
    local result = 1
    for i = 1, rawlen(values) do -- what a metatable says of its length may be without end
        result = result * rawget(values, i)
    end
    return result
end
convolution.product = product

--- The transfer function of a PSF on a grid, with the 1/N of the inverse transform folded in: what
-- convolve makes and accepts as option `otf`. Options: center, normalise (default true: the PSF
-- sums to 1). Release it when done.
function convolution.transfer(psf, grid, options)
    options = options_of(options, "convolution.transfer", {"center", "normalise"})
    local scale = 1 / product(grid)
    if options.normalise ~= false then
        scale = scale / psf_tools.sum(psf)
    end
    return mb.otf(psf, grid, {center = psf_tools.center(psf, options.center), scale = scale})
end

--- The in-place grid as a spectrum (a view of the same memory).
function convolution.forward(grid, n)
    local spectrum = grid:reinterpret("c64")
    mb.rfft(grid, {axes = grid.rank, in_place = true, n = n, out = spectrum})
    return spectrum
end

--- Grid := H grid (or its adjoint), in the grid's own memory. `n`: samples of a row. The transfer
-- function carries 1/N.
function convolution.apply(grid, otf, n, adjoint)
    mb.apply_otf(grid, otf, {n = n, conj = adjoint or false})
end

--- Ranges for a:view from 0-based firsts and extents.
function convolution.ranges(first, shape)
    local ranges = {}
    for i, n in ipairs(shape) do
        ranges[i] = {first[i] + 1, first[i] + n}
    end
    return table.unpack(ranges)
end

--- Convolves an image (u8, u16 or f32; one to three axes) with a PSF. Returns f32. A value that is
-- not finite makes the whole result so; that is not looked for here, where it would make the caller
-- wait (the recipes and tiles do: moonbeam.finite).
--
-- Options: mode, boundary, center (psf.center), correlate; normalise (default false: the PSF as it
-- is); consume = true releases the image as soon as it is in the grid (an f32 or integer array that
-- nobody else needs); out, an array for the result (it may be the image); view = true returns a
-- view of the grid instead of a dense copy; otf, a transfer function made by convolution.transfer
-- for this layout's grid (kept, and the PSF then only tells extents); size, the grid's extents.
function convolution.convolve(image, psf, options)
    options = options_of(options, "convolve", OPTIONS)
    arguments.blurred(image, psf, "convolve", options)
    if options.view and options.out then
        fail("argument", "convolve", "view",
            "view = true returns the grid's own memory: give out or view, not both")
    end
    local center = psf_tools.center(psf, options.center)
    local layout = convolution.layout(image.shape, psf.shape, center, {mode = options.mode, boundary = options.boundary,
        correlate = options.correlate, size = options.size, device = image.device})
    local n = layout.grid[#layout.grid]
    local grid <close> = mb.embed(image, layout.grid, {before = layout.before, boundary = layout.boundary})
    if options.consume and options.out ~= image then
        image:release()
    end
    do
        local made <close> = not options.otf and convolution.transfer(psf, layout.grid,
            {center = center, normalise = options.normalise or false}) or nil
        convolution.apply(grid, options.otf or made, n, options.correlate)
    end
    local result = grid:view(convolution.ranges(layout.first, layout.shape))
    if options.view then
        return result
    end
    local view <close> = result
    return mb.convert(view, "f32", {out = options.out})
end

--- The adjoint of convolve with the same centre, and scipy.signal.correlate for modes full and
-- valid (for mode same with an even PSF, SciPy's centre is k / 2: center = "fft").
function convolution.correlate(image, psf, options)
    local copy = {}
    for key, value in pairs(options or {}) do
        copy[key] = value
    end
    copy.correlate = true
    return convolution.convolve(image, psf, copy)
end

return setmetatable(whole_call.module(convolution, "convolution", {
    layout = "shape: extents, kernel: extents, center: table",
        transfer = "psf: array, grid: extents",
    forward = "grid: array, n: count", apply = "grid: array, otf: array, n: count",
        ranges = "first: extents, shape: extents",
}), {
    __call = function(_, ...)
        return convolution.convolve(...)
    end,
})
