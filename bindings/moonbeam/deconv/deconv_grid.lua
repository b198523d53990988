--- The grid of an iterative deconvolution: its extents, and the arrays that every method makes on
-- it. What the methods in moonbeam.deconv share; not for scripts, which have deconv.layout and
-- deconv.transfer.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local convolution = require "moonbeam.convolution"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"

local grid = {}

--- Options of all deconvolutions.
grid.options = declared.options(convolution.options,
    {"normalise", "boolean", "the PSF is made to sum to 1", default = true})

--- Options of the iterative ones, but for the number of iterations.
grid.iterative = declared.options(grid.options,
    {"otf", "array", "from deconv.transfer, for many images of one shape"},
    {"start", "any", "flat, image or an array", default = "flat"},
    {"weights", "array", "f32, the image's shape, 0 at bad pixels; boundary zero or circular"},
    {"metrics", "boolean", "record the metrics of every iteration"},
    {"on_iteration", "callable", "a function (k, metric or nil): return false to stop"})

--- Options of those for Poisson noise.
grid.poisson = declared.options(grid.iterative,
    {"eps", "number", "least blurred value to divide by", usual = "1e-6 of the image's mean"},
    {"floor", "number", "voxels whose normaliser is at most this were not seen and become min",
        usual = "1e-3"},
    {"min", "number", "lower bound", default = 0})

local IMAGE = {{"image", "array", "u8, u16 or f32, (z, y, x), (y, x) or (x)"},
    {"psf", "array", "a point spread function of as many axes as the image"}}

--- Declares a deconvolution: its own options stand before the shared ones.
function grid.declared(name, options, f)
    return declared("deconv." .. name, {IMAGE[1], IMAGE[2], options = options}, f)
end

--- The grid of an iteration, before any memory is taken: {grid, first, shape, kernel, center,
-- boundary}. `first` is where the image starts in the grid, 0-based. The center is rounded to whole
-- voxels: a shift by phase would give the PSF negative values, with which these iterations diverge,
-- and the table of the normaliser knows whole positions. `device`: where its transforms will run.
function grid.layout(what, shape, kernel, center, options, device)
    local boundary, whole = options.boundary or "zero", {}
    for i, value in ipairs(center) do
        whole[i] = math.floor(value + 0.5)
    end
    if boundary ~= "zero" then
        local layout = convolution.layout(shape, kernel, whole,
            {boundary = boundary, size = options.size, device = device})
        layout.center = whole
        return layout
    end
    if #kernel ~= #shape then
        fail("shape", what, "psf", "the PSF has %d axes, the image %d", #kernel, #shape)
    end
    local layout = {grid = {}, before = {}, first = {}, shape = shape, boundary = boundary,
        center = whole}
    for i, n in ipairs(shape) do
        local least = n + kernel[i] - 1
        layout.grid[i] = options.size and options.size[i] or least
        if layout.grid[i] < least then
            fail("argument", what, "size",
                "axis %d: the grid must have at least %d elements, not %d", i, least,
                layout.grid[i])
        end
        layout.before[i], layout.first[i] = 0, 0
    end
    layout.grid = mb.fft.good_grid(layout.grid, {device = device, given = options.size})
    return layout
end

--- Weights go with the image's own pixels, not with a continuation of it.
function grid.check_weights(what, weights, layout)
    if weights and layout.boundary ~= "zero" and layout.boundary ~= "circular" then
        fail("argument", what, "weights", "weights are for boundary zero or circular")
    end
end

--- The mean of an image; 1 in a dry run. Raises where it is no number: a transform would spread
-- that over everything.
function grid.mean(what, image)
    local array <close> = mb.reduce(image, "mean")
    local mean = image.device.dry and 1 or array:item()
    finite.check_sum(mean, image, what, "the image")
    return mean
end

--- What every iteration takes.
function grid.check(what, image, psf, options)
    arguments.blurred(image, psf, what, options)
    arguments.count(options.iterations, what, "iterations", 0, 1 << 31)
    if options.on_iteration ~= nil and type(options.on_iteration) ~= "function" then
        fail("argument", what, "on_iteration", "on_iteration is a %s; give a function",
            type(options.on_iteration))
    end
end

-- The samples of a grid without the room behind its rows: a dense copy.
local function samples_of(padded, layout)
    local origin = {}
    for i = 1, #layout.grid do
        origin[i] = 0
    end
    local samples <close> = padded:view(convolution.ranges(origin, layout.grid))
    return samples:copy()
end

--- The measured image on its grid: itself, or a dense copy continued beyond its edges (owned by the
-- caller then).
function grid.extended(image, layout)
    if layout.boundary == "zero" or layout.boundary == "circular" then
        return image, nil
    end
    local padded <close> = mb.embed(image, layout.grid, {before = layout.before,
        boundary = layout.boundary})
    local copy = samples_of(padded, layout)
    return copy, copy
end

--- The first estimate on the grid: `start` is "flat" (default: the mean), "image" or an array.
function grid.start(what, image, layout, start, mean)
    if start == nil or start == "flat" then
        return mb.full(layout.grid, mean, {device = image.device})
    elseif start == "image" or type(start) == "userdata" then
        local from = start == "image" and image or start
        local padded <close> = mb.embed(from, layout.grid, {before = layout.first, boundary =
            layout.boundary == "zero" and "replicate" or layout.boundary})
        return samples_of(padded, layout)
    end
    fail("argument", what, "start", "start is \"flat\", \"image\" or an array of the image's shape")
end

--- The window of the image out of an array on the grid: that array itself where nothing is cut.
-- Takes ownership.
function grid.cropped(estimate, layout)
    local whole = true
    for i, n in ipairs(layout.grid) do
        whole = whole and layout.shape[i] == n
    end
    if whole then
        return estimate
    end
    local owned <close> = estimate
    local view <close> = owned:view(convolution.ranges(layout.first, layout.shape))
    return view:copy()
end

--- H'(weights) on the grid, for bad pixels.
function grid.normaliser(weights, layout, otf)
    local n = layout.grid[#layout.grid]
    local padded <close> = mb.embed(weights, layout.grid)
    convolution.apply(padded, otf, n, true)
    return samples_of(padded, layout)
end

return grid
