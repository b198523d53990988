--- Deconvolution: functions over operators, to be read, copied and changed.
--
-- An image y (u8, u16 or f32; one to three axes) is taken to be H x with noise, H the convolution
-- with a PSF (moonbeam.psf, moonbeam.convolution). Boundaries: "zero" looks beyond the image's
-- edges: the estimate lives on a larger grid, only the image counts, and the normalizer H'(window)
-- corrects for what was not seen (M. Bertero, P. Boccacci, 2005). "circular" wraps around on the
-- image's own extents. "reflect", "mirror", "replicate" continue the image and then wrap. A PSF
-- whose center lies between voxels is shifted to the nearest one (psf.on_voxel), by every method.
--
-- Memory of Richardson-Lucy per voxel of the grid: image 4 (u16: 2, u8: 1), estimate 4, transfer
-- function 4, working grid 4, and the FFT library's work area where it needs one; heavy_ball takes
-- 4 more, biggs_andrews 8. The transfer function of a PSF of few planes (moonbeam.convolution)
-- takes 4 for each voxel of those planes alone.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local background = require "moonbeam.deconv.background"
local convolution = require "moonbeam.convolution"
local declared = require "moonbeam.internal.declared"
local grids = require "moonbeam.deconv.deconv_grid"
local gate = require "moonbeam.deconv.value_gate"
local held_out = require "moonbeam.deconv.held_out"
local photon_noise = require "moonbeam.deconv.photon_noise"
local psf_tools = require "moonbeam.psf"
local top = require "moonbeam.psf.top"
local whole_call = require "moonbeam.internal.whole"

local deconv = {}

local PSF = {"psf", "array", "a point spread function of as many axes as the image", rank = {1, 3}}
local SHAPE = {"shape", "list", "the extents of the image"}

local function layout_of(what, shape, psf, options)
    if options.size ~= nil then
        arguments.list(options.size, what, "size", "the extents of the grid", #shape)
    end
    return grids.layout(what, shape, psf.shape, psf_tools.center(psf, options.center), options,
        psf.device)
end

--- The grid of a deconvolution, without running it.
deconv.layout = declared("deconv.layout", {SHAPE, PSF, options = convolution.options},
    function(shape, psf, options)
        return layout_of("deconv.layout", shape, psf, options)
    end)

--- The transfer function for a deconvolution, for many images of one shape: option `otf` of
-- richardson_lucy and landweber.
deconv.transfer = declared("deconv.transfer", {PSF, SHAPE, options = grids.options},
    function(psf, shape, options)
        local spread <close>, center = grids.spread("deconv.transfer", psf, options.center)
        local layout = layout_of("deconv.transfer", shape, spread,
            {center = center, boundary = options.boundary, size = options.size})
        return convolution.transfer(spread, layout.grid,
            {center = layout.center, normalize = options.normalize})
    end)

local ITERATIONS, TOLERANCE = {"iterations", "count", "how many at most", default = 10},
    {"tolerance", "number", "stop when the relative change falls below", min = 0}

--- Richardson-Lucy: maximum likelihood for Poisson noise.
--
-- With `metrics`, each iteration records the I-divergence and the flux of the blurred estimate
-- before it (divergence, blurred), and the flux and the relative change after it (flux, change).
-- With `held_out` it also records the I-divergence of those photons before it (held_out):
-- deconv.find_iterations deals them out. With `judge` nothing is recorded for held_out, only looked
-- at where the function asks. A dry run makes all iterations. The image is not changed.
-- Values below 0 count as 0, in the image and in the PSF, which is refused if they are more than a
-- quarter of its |sum|.
-- With a background (moonbeam.deconv.background) the first step from a flat start has it taken out,
-- after its metrics. Where the light of the estimate would be more than the background leaves of
-- the image, step k is lowered by up to 5 %, with momentum 1 or 2 %, or by 0.7 / k where that is
-- more. An image in which an empty part has the variance v should have the mean v there, too, and v
-- as the background.
-- biggs_andrews measures how far it goes on by its last two steps inside the image. After 20
-- iterations that gives way to the step of heavy_ball, which is taken from the start with a
-- background.
-- Returns the estimate, f32, with the image's shape, and a table {iterations =, metrics =
-- {{divergence =, flux =, change =}, ...}, clipped = {image =, psf =}}: the part of the image's
-- values, and of the PSF's |sum|, that was below 0.
-- Errors: argument (also an image without a value above 0, values that f32 cannot hold on the way,
-- and a result that is not finite, or 0 everywhere while the image is not), shape, dtype, budget.
deconv.richardson_lucy = grids.declared("richardson_lucy", declared.options(ITERATIONS,
    {"acceleration", "choice", "momentum; heavy_ball takes one array more, biggs_andrews two",
        choices = {"none", "heavy_ball", "biggs_andrews"}, default = "none"},
    {"total_variation", "number", "weight of that regularization, such as 0.002 to 0.01",
        min = 0, usual = "none"},
    {"spacing", "any", "distance of voxels along the axes, for total_variation"},
    TOLERANCE,
    {"held_out", "array", "other photons of the same image, of its shape: metrics say how well "
        .. "they are predicted; takes another working grid"},
    {"judge", "callable", "with held_out: a function (done, misfit) before each iteration, which "
        .. "ends them by false; misfit() is the I-divergence of the held-out photons, "
        .. "misfit(\"image\") that of the image"},
    grids.poisson), function(image, psf, options)
    gate.variation("richardson_lucy", options.total_variation, image.shape, options.spacing)
    local state <close> = grids.prepared("richardson_lucy", image, psf, options, true)
    local held <close> = held_out.new(state, options)
    local estimate, otf, n, dry = state.estimate, state.otf, state.n, state.dry
    local weights, eps, under, scale = options.weights, state.eps, state.under, nil
    local biggs = options.acceleration == "biggs_andrews"
    local momentum = biggs or options.acceleration == "heavy_ball"
    local previous <close> = momentum and estimate:copy() or nil
    local gradient <close> = biggs and mb.zeros(state.layout.grid, {device = image.device}) or nil
    local measure = options.metrics or options.tolerance ~= nil
        or held ~= nil and not options.judge
    state.current = previous or estimate
    local start, extent = grids.extent(state.layout, psf.shape)
    do
        local work <close> = mb.embed(estimate, state.layout.grid)
        local update = setmetatable({min = options.min, gradient = gradient},
            {__index = state.divide})
        -- An iteration in one operator, or in its parts where something comes between them: then
        -- `misfit` has the first numbers of the metric, and `sums` the others, which else follow
        -- them.
        local parts = options.total_variation ~= nil or held ~= nil or under ~= nil
        local skip = parts and 0 or 2
        local function ratio(k)
            local _, sums = mb.rl_ratio(work, state.measured, {weights = weights, eps = eps,
                metrics = measure, background = options.background})
            scale = under and background.scale_of(under, work, state.measured, k)
            return sums
        end
        local function update_in_parts()
            convolution.apply(work, otf, n, true)
            if under then
                background.pull(work, scale)
            end
            if options.total_variation then
                mb.rl_total_variation(estimate, work, {lambda = options.total_variation,
                    spacing = options.spacing, epsilon = math.max(1e-3 * state.mean, 1e-20),
                    flat = grids.flat(options.acceleration), start = start, extent = extent})
            end
            update.metrics = measure or biggs
            return (select(3, mb.rl_update(estimate, work, update)))
        end
        local function whole()
            update.weights, update.eps, update.metrics = weights, eps, measure
            return (select(3, mb.rl_step(estimate, work, otf, state.measured, update)))
        end
        for k = 1, options.iterations do
            if parts then
                convolution.apply(work, otf, n)
            end
            if held and held:ends(work, k - 1) then
                state.report.because = "judge"
                break
            end
            local misfit <close> = parts and ratio(k) or nil
            local sums <close> = (parts and update_in_parts or whole)()
            if under and k == 1 then
                background.begin_on(under, estimate, work)
            end
            if momentum then
                local alpha = grids.momentum(k)
                if biggs then
                    if state.layout.boundary == "zero" then
                        grids.inside(gradient, state.layout.first, image.shape)
                    end
                    alpha = dry and 0 or grids.along(sums:item(skip + 4),
                        sums:item(skip + 5), k, options)
                end
                mb.extrapolate(estimate, previous, work, {alpha = alpha, min = options.min})
            end
            local metric
            if measure and not dry then
                local first = misfit or sums
                metric = {divergence = first:item(1), blurred = first:item(2),
                    held_out = held and held.divergence}
                grids.add_change(metric, sums, skip)
            end
            if grids.is_last(state, options, k, metric) then
                break
            end
        end
    end
    if momentum then
        -- The prediction has gone ahead; the estimate itself is in `previous`.
        mb.convert(previous, "f32", {out = estimate})
        previous:release()
    end
    return grids.result("richardson_lucy", state)
end)

--- After how many iterations richardson_lucy with the same options should end.
--
-- Half of the photons is held out and the other half is deconvolved. The answer is 1.5 n - 2, where
-- n iterations predicted the held-out photons best, because the image has twice the photons of the
-- search; or n is, if that comes first, the number after which the estimate fits its own photons
-- better than 0.75 of what noise alone leaves. It is 5 at least: from a flat start fewer iterations
-- are a second blur. The search makes at most as many as it chooses. Images of more than 2^22
-- voxels are judged by the box where the most light is.
-- Without `gain` it is estimated from the image (deconv.noise). Where that is unreliable, or the
-- photons are fewer than 1000, the answer is 10, `reliable` is false and `why` says why. For an
-- image that is 0 everywhere the answer is 1: its result is 0, too.
-- Returns {iterations, reliable, why, limited, because, held_out, gain, offset, tried, curve,
-- noise, first, extents}: limited is true if the largest number was reached; because is "held_out",
-- "noise", "zero" or nil; held_out is the part of the photons, gain and offset what they were
-- counted by; tried is the number of iterations that the search made; curve is a list of
-- {iterations =, held_out =}, the I-divergence of the held-out photons after 4 and more iterations;
-- noise is what deconv.noise returned, nil with `gain`; first (0-based) and extents are the box. A
-- dry run needs no values, and takes the memory of the search.
-- Errors: argument, shape, dtype, budget.
-- Reference: A. Dharamshi et al., arXiv:2301.07276 (thinning); J. Manton, A. York,
-- doi:10.5281/zenodo.10278919.
deconv.find_iterations = declared("deconv.find_iterations", {
    {"source", "any", "an array or a volume, as richardson_lucy takes it"},
    {"psf", "array", "a point spread function of as many axes as the image", rank = {1, 3}},
    options = held_out.options(deconv.richardson_lucy),
}, function(source, psf, options)
    return held_out.find(deconv.richardson_lucy, source, psf, options)
end)

-- Wiener and Tikhonov: one transform each way.
local function linear(what, image, psf, options, laplacian)
    arguments.blurred(image, psf, what, options)
    local zero = gate.linear(what, image, psf, options.normalize)
    local spread <close>, center = top.placed(psf, psf_tools.center(psf, options.center))
    local layout = convolution.layout(image.shape, psf.shape, center,
        {boundary = options.boundary, size = options.size, device = image.device})
    local n, points = layout.grid[#layout.grid], convolution.product(layout.grid)
    local grid <close> = mb.embed(image, layout.grid, {before = layout.before,
        boundary = layout.boundary})
    do
        local scale = not options.normalize and 1 or 1 / psf_tools.sum(spread)
        local otf <close> = mb.otf(spread, layout.grid, {center = center, scale = scale})
        local spectrum <close> = convolution.forward(grid, n)
        mb.wiener_filter(spectrum, otf, {lambda = options.lambda, laplacian = laplacian,
            scale = 1 / points, n = n})
        mb.irfft(spectrum, {axes = grid.rank, in_place = true, n = n, normalize = false,
            out = grid})
    end
    local view <close> = grid:view(convolution.ranges(layout.first, layout.shape))
    gate.linear_result(what, view, image, zero)
    return mb.convert(view, "f32", {out = options.out})
end

-- The options of a linear method.
local function linear_options(lambda, ...)
    return declared.options(
        {"lambda", "number", "weight of the regularization", min = 0, default = lambda},
        {"boundary", "choice", "what continues the image", choices = convolution.BOUNDARIES,
            default = "reflect"},
        {"out", "array", "the array for the result"}, grids.options, ...)
end

--- Wiener filter with a constant ratio of noise power to signal power, `lambda`.
--
-- Values below 0 of the image and the PSF are values like others, and the estimate has some, too.
-- The device is waited for: values that are not finite, of the image, the PSF or the estimate, are
-- errors, and so is an estimate that is 0 everywhere where the image is not.
-- Returns the estimate, f32.
-- Errors: argument (also such values), shape, dtype, budget.
deconv.wiener = grids.declared("wiener", linear_options(1e-3), function(image, psf, options)
    return linear("wiener", image, psf, options, false)
end)

--- Tikhonov regularization: least squares with lambda |L x|^2.
-- Returns the estimate, f32.
-- Errors: as for wiener.
deconv.tikhonov = grids.declared("tikhonov", linear_options(1e-2,
    {"operator", "choice", "L: the Laplacian (the regularized inverse filter) or the identity",
        choices = {"laplacian", "identity"}, default = "laplacian"}), function(image, psf, options)
    return linear("tikhonov", image, psf, options, options.operator == "laplacian")
end)

--- Landweber iteration with positivity: x := max(x + step H'(y - H x), 0). For Gaussian noise.
--
-- Metrics are residual (root mean squared y - H x over the image, before the iteration), flux and
-- change. Negative values of the image are measurements like others; those of the PSF count as 0.
-- Returns the estimate and a report, as richardson_lucy does.
-- Errors: argument, shape, dtype, budget.
deconv.landweber = grids.declared("landweber", declared.options(
    {"iterations", "count", "how many at most", default = 50},
    {"step", "number", "step length; the largest eigenvalue of H'H is at most 1", above = 0,
        below = 2, default = 1},
    {"positive", "boolean", "no negative values", default = true}, TOLERANCE, grids.iterative),
function(image, psf, options)
    local state <close> = grids.prepared("landweber", image, psf, options)
    local estimate, otf, n = state.estimate, state.otf, state.n
    local measure = options.metrics or options.tolerance ~= nil
    local voxels = convolution.product(state.measured.shape)
    do
        local work <close> = mb.embed(estimate, state.layout.grid)
        for k = 1, options.iterations do
            convolution.apply(work, otf, n)
            local _, misfit = mb.residual(work, state.measured,
                {weights = options.weights, metrics = measure})
            local _ <close> = misfit
            convolution.apply(work, otf, n, true)
            local _, _, sums = mb.gradient_step(estimate, work, {step = options.step,
                min = options.positive and 0 or nil, metrics = measure})
            local _ <close> = sums
            local metric
            if measure and not state.dry then
                metric = {residual = math.sqrt(misfit:item(1) / voxels)}
                grids.add_change(metric, sums, 0)
            end
            if grids.is_last(state, options, k, metric) then
                break
            end
        end
    end
    return grids.result("landweber", state, not options.positive)
end)

deconv.gradient_consensus = require "moonbeam.deconv.gradient_consensus"
deconv.noise, deconv.noise_divergence = photon_noise.estimate, photon_noise.divergence

return whole_call.module(deconv, "deconv")
