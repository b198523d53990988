--- Deconvolution: functions over operators, to be read, copied and changed.
--
-- An image y (u8, u16 or f32; one to three axes) is taken to be H x with noise, H the convolution with a PSF (moonbeam.psf,
-- moonbeam.convolution). Boundaries: "zero" looks beyond the image's edges: the estimate lives on a larger grid, only the
-- image counts, and the normaliser H'(window) corrects for what was not seen (M. Bertero, P. Boccacci, 2005). "circular"
-- wraps around on the image's own extents. "reflect", "mirror", "replicate" continue the image and then wrap.
--
-- Memory of Richardson-Lucy per voxel of the grid: image 4 (u16: 2, u8: 1), estimate 4, transfer function 4, working grid
-- 4, and the FFT library's work area where it needs one; momentum takes 4 more.

local mb = require "moonbeam"
local convolution = require "moonbeam.convolution"
local options_of = require "moonbeam.options"
local psf_tools = require "moonbeam.psf"

local deconv = {}

local COMMON = {"boundary", "center", "normalise", "size"}

local function fail(what, message, arg, code)
    mb.raise(code or "argument", message, {op = what, arg = arg})
end

-- The grid of an iteration, before any memory is taken: {grid, first, shape, kernel, center, boundary}. `first` is where
-- the image starts in the grid, 0-based.
local function layout_of(what, shape, kernel, center, options)
    local boundary = options.boundary or "zero"
    if boundary ~= "zero" then
        local layout = convolution.layout(shape, kernel, center, {boundary = boundary, size = options.size})
        layout.center = center
        return layout
    end
    if #kernel ~= #shape then
        fail(what, ("the PSF has %d axes, the image %d"):format(#kernel, #shape), "psf", "shape")
    end
    local layout = {grid = {}, before = {}, first = {}, shape = shape, boundary = boundary, center = {}}
    for i, n in ipairs(shape) do
        local least = n + kernel[i] - 1
        layout.grid[i] = options.size and options.size[i] or mb.fft.good_size(least)
        if layout.grid[i] < least then
            fail(what, ("axis %d: the grid must have at least %d elements, not %d"):format(i, least, layout.grid[i]), "size")
        end
        -- The table of the normaliser knows whole positions.
        layout.center[i] = math.floor(center[i] + 0.5)
        layout.before[i], layout.first[i] = 0, 0
    end
    return layout
end

--- The grid of a deconvolution without running it: deconv.layout(image shape, PSF, {boundary, center, size}).
function deconv.layout(shape, psf, options)
    options = options_of(options, "deconv.layout", {"boundary", "center", "size"})
    return layout_of("deconv.layout", shape, psf.shape, psf_tools.center(psf, options.center), options)
end

--- The transfer function for a deconvolution: option `otf` of richardson_lucy and landweber, for many images of one shape.
function deconv.transfer(psf, shape, options)
    options = options_of(options, "deconv.transfer", COMMON)
    local layout = layout_of("deconv.transfer", shape, psf.shape, psf_tools.center(psf, options.center), options)
    return convolution.transfer(psf, layout.grid, {center = layout.center, normalise = options.normalise})
end

local function mean_of(image)
    local mean <close> = mb.reduce(image, "mean")
    return image.device.dry and 1 or mean:item()
end

-- The measured image on its grid: itself, or a dense copy continued beyond its edges (owned by the caller then).
local function extended(image, layout)
    if layout.boundary == "zero" or layout.boundary == "circular" then
        return image, nil
    end
    local padded <close> = mb.embed(image, layout.grid, {before = layout.before, boundary = layout.boundary})
    local origin = {}
    for i = 1, #layout.grid do
        origin[i] = 0
    end
    local samples <close> = padded:view(convolution.ranges(origin, layout.grid))
    local copy = samples:copy()
    return copy, copy
end

-- The first estimate on the grid.
local function start_of(what, image, layout, start, mean)
    if start == nil or start == "flat" then
        return mb.full(layout.grid, mean, {device = image.device})
    elseif start == "image" or type(start) == "userdata" then
        local from = start == "image" and image or start
        local padded <close> = mb.embed(from, layout.grid, {before = layout.first, boundary =
            layout.boundary == "zero" and "replicate" or layout.boundary})
        local origin = {}
        for i = 1, #layout.grid do
            origin[i] = 0
        end
        local samples <close> = padded:view(convolution.ranges(origin, layout.grid))
        return samples:copy()
    end
    fail(what, 'start is "flat", "image" or an array of the image\'s shape', "start")
end

-- The window of the image out of an array on the grid: that array itself where nothing is cut. Takes ownership.
local function cropped(estimate, layout)
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

-- H'(weights) on the grid, for bad pixels.
local function normaliser_of(weights, layout, otf)
    local n = layout.grid[#layout.grid]
    local padded <close> = mb.embed(weights, layout.grid)
    convolution.apply(padded, otf, n, true)
    local origin = {}
    for i = 1, #layout.grid do
        origin[i] = 0
    end
    local samples <close> = padded:view(convolution.ranges(origin, layout.grid))
    return samples:copy()
end

local RL_OPTIONS = {"iterations", "otf", "start", "weights", "acceleration", "total_variation", "spacing", "eps", "floor",
    "min", "metrics", "on_iteration", "tolerance"}

--- Richardson-Lucy: maximum likelihood for Poisson noise. Returns the estimate, f32, with the image's shape, and a table
-- {iterations =, metrics = {{divergence =, flux =, change =}, ...}} (metrics where they were asked for).
--
-- Options: iterations (default 10); boundary (default "zero"), center, size; normalise (default true: the PSF is made to
-- sum to 1); otf, from deconv.transfer; start ("flat" (default), "image" or an array); weights (f32, the image's shape, 0
-- at bad pixels; boundary "zero" or "circular"); acceleration ("none" (default) or "heavy_ball"); total_variation (weight of
-- that regularisation, such as 0.002 to 0.01) and spacing (distance of voxels along the axes, for it; no array more); eps
-- (least blurred value to divide by; default 1e-6 of the image's mean); floor (voxels whose normaliser is at most this were
-- not seen and become min; default 1e-3); min (lower bound, default 0); metrics = true records per iteration the I-divergence
-- and the flux of the blurred estimate before it (divergence, blurred), and the flux and the relative change after it (flux,
-- change); on_iteration, a function (k, metric or nil): return false to stop; tolerance stops when the change falls below.
-- The image is not changed.
function deconv.richardson_lucy(image, psf, options)
    options = options_of(options, "richardson_lucy", COMMON, RL_OPTIONS)
    local what = "richardson_lucy"
    local iterations, weights = options.iterations or 10, options.weights
    if math.type(iterations) ~= "integer" or iterations < 0 then
        fail(what, "iterations is a whole number, 0 or more", "iterations")
    end
    local momentum = options.acceleration == "heavy_ball"
    if options.acceleration and not momentum and options.acceleration ~= "none" then
        fail(what, ('acceleration is "%s"; it is none or heavy_ball'):format(tostring(options.acceleration)), "acceleration")
    end
    local center = psf_tools.center(psf, options.center)
    local layout = layout_of(what, image.shape, psf.shape, center, options)
    local windowed = layout.boundary == "zero"
    if weights and not windowed and layout.boundary ~= "circular" then
        fail(what, "weights are for boundary zero or circular", "weights")
    end
    local n, dry = layout.grid[#layout.grid], image.device.dry
    local mean = mean_of(image)
    local eps, least = options.eps or math.max(1e-6 * mean, 1e-30), options.min or 0
    local measured, copy = extended(image, layout)
    local _ <close> = copy
    local made <close> = not options.otf and convolution.transfer(psf, layout.grid,
        {center = layout.center, normalise = options.normalise}) or nil
    local otf = options.otf or made
    local table_of <close> = windowed and not weights and mb.summed_area(psf,
        {scale = options.normalise == false and 1 or 1 / psf_tools.sum(psf)}) or nil
    local normaliser <close> = weights and normaliser_of(weights, layout, otf) or nil
    local estimate = start_of(what, image, layout, options.start, math.max(mean, least))
    local _ <close> = setmetatable({}, {__close = function(_, err)
        if err ~= nil then
            estimate:release()
        end
    end})
    local previous <close> = momentum and estimate:copy() or nil
    local report = {iterations = 0, metrics = {}}
    local measure = options.metrics or options.tolerance ~= nil
    do
        local work <close> = mb.embed(estimate, layout.grid)
        for k = 1, iterations do
            convolution.apply(work, otf, n)
            local _, misfit = mb.rl_ratio(work, measured, {weights = weights, eps = eps, metrics = measure})
            local _ <close> = misfit
            convolution.apply(work, otf, n, true)
            if options.total_variation then
                mb.rl_total_variation(estimate, work, {lambda = options.total_variation, spacing = options.spacing,
                    epsilon = math.max(1e-3 * mean, 1e-20)})
            end
            local _, _, sums = mb.rl_update(estimate, work, {table = table_of, normaliser = normaliser,
                window = table_of and layout.shape or nil, center = table_of and layout.center or nil,
                floor = options.floor, min = least, metrics = measure})
            local _ <close> = sums
            if momentum then
                mb.extrapolate(estimate, previous, work, {alpha = (k - 1) / (k + 2), min = least})
            end
            report.iterations = k
            local metric
            if measure and not dry then
                local squares = sums:item(3)
                metric = {divergence = misfit:item(1), blurred = misfit:item(2), flux = sums:item(1),
                    change = squares > 0 and math.sqrt(sums:item(2) / squares) or 0}
                report.metrics[k] = metric
            end
            if options.on_iteration and not dry and options.on_iteration(k, metric) == false then
                break
            end
            if metric and options.tolerance and metric.change < options.tolerance then
                break
            end
        end
    end
    if momentum then
        -- The prediction has gone ahead; the estimate itself is in `previous`.
        mb.convert(previous, "f32", {out = estimate})
        previous:release()
    end
    return cropped(estimate, layout), report
end

local LINEAR_OPTIONS = {"lambda", "out"}

-- Wiener and Tikhonov: one transform each way.
local function linear(what, image, psf, options, laplacian, default_lambda)
    options = options_of(options, what, COMMON, LINEAR_OPTIONS, {"operator"})
    local lambda = options.lambda or default_lambda
    if type(lambda) ~= "number" or lambda ~= lambda or lambda < 0 then
        fail(what, "lambda is a number, 0 or more", "lambda")
    end
    local center = psf_tools.center(psf, options.center)
    local layout = convolution.layout(image.shape, psf.shape, center,
        {boundary = options.boundary or "reflect", size = options.size})
    local n, points = layout.grid[#layout.grid], convolution.product(layout.grid)
    local grid <close> = mb.embed(image, layout.grid, {before = layout.before, boundary = layout.boundary})
    do
        local scale = options.normalise == false and 1 or 1 / psf_tools.sum(psf)
        local otf <close> = mb.otf(psf, layout.grid, {center = center, scale = scale})
        local spectrum <close> = convolution.forward(grid, n)
        mb.wiener_filter(spectrum, otf, {lambda = lambda, laplacian = laplacian, scale = 1 / points, n = n})
        mb.irfft(spectrum, {axes = grid.rank, in_place = true, n = n, normalise = false, out = grid})
    end
    local view <close> = grid:view(convolution.ranges(layout.first, layout.shape))
    return mb.convert(view, "f32", {out = options.out})
end

--- Wiener filter with a constant ratio of noise power to signal power, `lambda` (default 1e-3). Returns f32.
-- Options: lambda, boundary (default "reflect"), center, normalise, size, out.
function deconv.wiener(image, psf, options)
    return linear("wiener", image, psf, options, false, 1e-3)
end

--- Tikhonov regularisation: least squares with lambda |L x|^2; L is the Laplacian (default: the regularised inverse
-- filter) or the identity: option operator. Other options as for wiener; lambda defaults to 1e-2.
function deconv.tikhonov(image, psf, options)
    local operator = options and options.operator or "laplacian"
    if operator ~= "laplacian" and operator ~= "identity" then
        fail("tikhonov", ('operator is "%s"; it is laplacian or identity'):format(tostring(operator)), "operator")
    end
    return linear("tikhonov", image, psf, options, operator == "laplacian", 1e-2)
end

--- Landweber iteration with positivity: x := max(x + step H'(y - H x), 0). For Gaussian noise.
-- Options: iterations (default 50), step (0 to 2, default 1: the largest eigenvalue of H'H is at most 1), positive (default
-- true), boundary, center, normalise, size, otf, start as for richardson_lucy; on_iteration (k): return false to stop.
function deconv.landweber(image, psf, options)
    options = options_of(options, "landweber", COMMON, {"iterations", "step", "positive", "otf", "start", "on_iteration"})
    local center = psf_tools.center(psf, options.center)
    local layout = layout_of("landweber", image.shape, psf.shape, center, options)
    local n, step = layout.grid[#layout.grid], options.step or 1
    if not (step > 0 and step < 2) then
        fail("landweber", ("step is %g; it lies between 0 and 2"):format(step), "step")
    end
    local measured, copy = extended(image, layout)
    local _ <close> = copy
    local made <close> = not options.otf and convolution.transfer(psf, layout.grid,
        {center = layout.center, normalise = options.normalise}) or nil
    local otf = options.otf or made
    local real <close> = measured.dtype ~= "f32" and measured:cast("f32") or nil
    local y = real or measured
    local estimate = start_of("landweber", image, layout, options.start, mean_of(image))
    local _ <close> = setmetatable({}, {__close = function(_, err)
        if err ~= nil then
            estimate:release()
        end
    end})
    do
        local work <close> = mb.embed(estimate, layout.grid)
        local origin = {}
        for i = 1, #layout.grid do
            origin[i] = 0
        end
        local samples <close> = work:view(convolution.ranges(origin, layout.grid))
        for k = 1, options.iterations or 50 do
            convolution.apply(work, otf, n)
            do
                local seen <close> = work:view(convolution.ranges(origin, y.shape))
                mb.binary(seen, "sub", {b = y, reverse = true, out = seen})
                if layout.boundary == "zero" then
                    deconv.clear_outside(samples, y.shape)
                end
            end
            convolution.apply(work, otf, n, true)
            if step ~= 1 then
                mb.binary(samples, "mul", {scalar = step, out = samples})
            end
            mb.binary(estimate, "add", {b = samples, out = estimate})
            if options.positive ~= false then
                mb.binary(estimate, "max", {scalar = 0, out = estimate})
            end
            mb.convert(estimate, "f32", {out = samples})
            if options.on_iteration and not image.device.dry and options.on_iteration(k) == false then
                break
            end
        end
    end
    return cropped(estimate, layout)
end

--- Sets everything outside the first `shape` elements of each axis to 0, in place.
function deconv.clear_outside(array, shape)
    for axis, n in ipairs(shape) do
        if n < array.shape[axis] then
            local ranges = {}
            for i = 1, #shape do
                ranges[i] = i == axis and {n + 1, array.shape[axis]} or mb.all
            end
            local outside <close> = array:view(table.unpack(ranges))
            outside:fill(0)
        end
    end
end

return deconv
