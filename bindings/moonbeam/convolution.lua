--- Convolution and correlation by FFT, in place: functions over the operators embed, otf,
-- apply_otf.
--
-- One grid holds the image and then the product (rows of 2 * (n/2 + 1) floats), one the transfer
-- function: 8 bytes per voxel of the grid, and the work area of the FFT library where it needs one.
-- With `consume` the image goes before the transfer function comes, so that this is the peak, the
-- image included; a dense result needs the transfer function's room again, unless that was given.
-- The transfer function of a PSF of few planes (form "auto" of mb.otf: at most 31) is kept in
-- planes: then 4 bytes per voxel, and 4 a voxel of those planes.
--
-- A PSF whose center lies between voxels is shifted to the nearest one (psf.on_voxel): tiles do the
-- same, which a shift by phase, that reaches across all of them, could not. With that center c of a
-- PSF h of extents k (0-based, psf.center):
--   convolve:   r[n] = sum over j of h[j] a[n - j + c]
--   correlate:  r[n] = sum over j of h[j] a[n + j - c], its adjoint
-- mode "same": the image's extents. "full": n + k - 1, "valid": n - k + 1, both as in scipy.signal
-- whatever the center. boundary (mode same): "zero", "circular", "reflect" (c b a | a b c),
-- "mirror" (c b | a b c), "replicate" (a a | a b c), scipy.ndimage's constant, wrap, reflect,
-- mirror and nearest.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local gate = require "moonbeam.deconv.value_gate"
local psf_tools = require "moonbeam.psf"
local top = require "moonbeam.psf.top"
local whole_call = require "moonbeam.internal.whole"

local convolution = {}

--- What may continue an image.
convolution.BOUNDARIES = {"zero", "circular", "reflect", "mirror", "replicate"}

--- Options that convolutions and deconvolutions share.
convolution.options = declared.options(
    {"boundary", "choice", "what continues the image", choices = convolution.BOUNDARIES,
        default = "zero"},
    {"center", "any", "the center of the PSF: a name or coordinates (psf.center)",
        usual = "the middle"},
    {"size", "list", "the extents of the FFT grid", usual = "the best for the device"})

local LAYOUT = declared.options(convolution.options,
    {"mode", "choice", "extents of the result: same as the image, full: n + k - 1, valid: n - k "
        .. "+ 1",
        choices = {"same", "full", "valid"}, default = "same"},
    {"correlate", "boolean", "the adjoint"})

--- What a convolution looks like before any memory is taken: extents only.
--
-- Returns {grid, before, first, shape, boundary}: extents of the FFT grid, where the image starts
-- in it (0-based), where the result starts (0-based), its extents, and the boundary in force.
convolution.layout = declared("convolution.layout", {
    {"shape", "extents", "of the image"},
    {"kernel", "extents", "of the PSF"},
    {"center", "table", "coordinates of the PSF's center"},
    options = declared.options(declared.without(LAYOUT, "center"),
        {"device", "device", "where the grid is to be good", usual = "the default device"}),
}, function(shape, kernel, center, options)
    local mode, boundary = options.mode, options.boundary
    arguments.list(center, "convolve", "center", "one for each axis of the PSF", #kernel)
    if #kernel ~= #shape then
        fail("shape", "convolve", "psf", "the PSF has %s, the image %d",
            counted(#kernel, "axis", "axes"), #shape)
    elseif mode == "full" and boundary ~= "zero" then
        fail("argument", "convolve", "boundary",
            'mode "full" has zeros outside the image; boundary "%s" is for mode "same"', boundary)
    end
    local layout = {grid = {}, before = {}, first = {}, shape = {}, boundary = boundary,
        mode = mode}
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
        -- A fraction rings on: one voxel keeps neighbors apart. Extents must not depend on a
        -- center found from values.
        local spill = (center.found or center[i] ~= c) and 1 or 0
        local beyond = (center.found and k - 1 or math.max(below, above)) + spill
        local least, before, first, extent = n, 0, 0, n
        if mode == "full" then
            least, before, extent = n + k - 1, above, n + k - 1
        elseif mode == "valid" then
            if k > n then
                fail("shape", "convolve", "psf",
                    'mode "valid" needs an image as large as the PSF; axis %d: %d and %d', i, n, k)
            end
            first, extent = below, n - k + 1
        elseif boundary == "zero" then
            least = n + beyond
        elseif boundary ~= "circular" then
            least, before, first = n + k - 1 + 2 * spill, below + spill, below + spill
        end
        layout.before[i], layout.first[i], layout.shape[i] = before, first, extent
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
end)

--- The product of a list of numbers, such as extents.
convolution.product = declared("convolution.product", {{"values", "list", "what is multiplied"}},
    function(values)
        local result = 1
        for i = 1, rawlen(values) do -- what a metatable says of its length may be without end
            result = result * rawget(values, i)
        end
        return result
    end)

-- The same of a PSF that has passed the gate, with a center as psf.center returns it.
local function transfer_of(psf, grid, center, options)
    local placed <close>, whole = top.placed(psf, center)
    local scale = 1 / convolution.product(grid)
    if options.normalize then
        scale = scale / psf_tools.sum(placed)
    end
    local form = options.form or "auto"
    if form == "auto" and center.found and not center.rounded then
        form = "whole"
    end
    return mb.otf(placed, grid, {center = whole, scale = scale, form = form,
        reach = center.found and psf.shape[1] - 1 or nil})
end

--- The transfer function of a PSF on a grid, with the 1/N of the inverse transform folded in.
--
-- Convolutions accept it as option `otf`. Release it when done. It depends on the extents and the
-- center whether it is whole or in planes (mb.otf, form "auto"). A center that was found from
-- values is not known to a dry run: then "auto" is whole, or, where a deconvolution has rounded it
-- to whole voxels, there are planes enough for any center. form = "whole" is for products of one's
-- own with a spectrum. Errors: those of a PSF for convolve.
convolution.transfer = declared("convolution.transfer", {
    {"psf", "array", "a point spread function", rank = {1, 3}},
    {"grid", "extents", "of the FFT grid"},
    options = declared.options(convolution.options.center,
        {"normalize", "boolean", "the PSF is made to sum to 1", default = true},
        {"form", "choice", "what of the spectrum is kept", choices = {"auto", "whole", "planes"},
            default = "auto"}),
}, function(psf, grid, options)
    gate.kernel("convolution.transfer", psf, options.normalize)
    return transfer_of(psf, grid, psf_tools.center(psf, options.center), options)
end)

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

local CONVOLVE = declared.options(LAYOUT,
    {"normalize", "boolean", "the PSF is made to sum to 1"},
    {"consume", "boolean", "release the image as soon as it is in the grid"},
    {"out", "array", "the array for the result; it may be the image"},
    {"view", "boolean", "return a view of the grid instead of a dense copy"},
    {"otf", "array", "from convolution.transfer for this layout's grid; kept"})

--- Convolves an image with a PSF, by FFT.
--
-- Values of the PSF below 0 are values like others, and its sum may be 0, as those of edge filters
-- are. It is refused where values are not finite, or all are 0 or too small for f32; with
-- `normalize`, also where its sum is 0 or less, or nothing beside its norm. Such
-- values of the image are not looked for here, where the whole image would have to be read first:
-- one that is not finite makes the whole result so, which the commands and tiles see
-- (internal/finite.lua). With `otf`, the PSF only tells extents.
-- Returns the result, f32.
-- Errors: argument (also such values), shape, dtype, budget.
convolution.convolve = declared("convolve", {
    {"image", "array", "u8, u16 or f32, (z, y, x), (y, x) or (x)", rank = {1, 3}},
    {"psf", "array", "a point spread function of as many axes as the image", rank = {1, 3}},
    options = CONVOLVE,
}, function(image, psf, options)
    arguments.blurred(image, psf, "convolve", options)
    if options.view and options.out then
        fail("argument", "convolve", "view",
            "view = true returns the grid's own memory: give out or view, not both")
    end
    if not options.otf then
        gate.kernel("convolve", psf, options.normalize)
    end
    local given = psf_tools.center(psf, options.center)
    local layout = convolution.layout(image.shape, psf.shape, top.voxel(given),
        {mode = options.mode, boundary = options.boundary,
        correlate = options.correlate, size = options.size, device = image.device})
    local n = layout.grid[#layout.grid]
    local grid <close> = mb.embed(image, layout.grid, {before = layout.before,
        boundary = layout.boundary})
    if options.consume and options.out ~= image then
        image:release()
    end
    do
        local made <close> = not options.otf and transfer_of(psf, layout.grid, given,
            {normalize = options.normalize}) or nil
        convolution.apply(grid, options.otf or made, n, options.correlate)
    end
    local result = grid:view(convolution.ranges(layout.first, layout.shape))
    if options.view then
        return result
    end
    local view <close> = result
    return mb.convert(view, "f32", {out = options.out})
end)

--- The adjoint of convolve with the same center.
--
-- It is scipy.signal.correlate for modes full and valid. For mode same with an even PSF, SciPy's
-- center is k / 2: center = "fft".
convolution.correlate = declared("convolution.correlate", {
    {"image", "array", "as for convolve"}, {"psf", "array", "as for convolve"},
    options = CONVOLVE,
}, function(image, psf, options)
    options.correlate = true
    return convolution.convolve(image, psf, options)
end)

return whole_call.module(convolution, "convolution", {
    forward = "grid: array, n: count", apply = "grid: array, otf: array, n: count",
        ranges = "first: extents, shape: extents",
}, function(_, ...)
    return convolution.convolve(...)
end)
