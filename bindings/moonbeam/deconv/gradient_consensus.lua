--- Richardson-Lucy with gradient consensus (J. Manton, A. York, doi:10.5281/zenodo.10278919): in
-- every iteration the photons are dealt out into two halves at random, each half asks for its own
-- correction, and a voxel changes only where both ask for the same direction. What is left is
-- signal: noise is not amplified however long it runs, and it stops by itself when both halves fit
-- worse than an iteration before.
--
-- Memory per voxel of the grid: Richardson-Lucy's four arrays (image, estimate, transfer function,
-- working grid), a second working grid and the estimate before: 24 bytes, 22 for u16, and the FFT
-- library's work area. The halves are never stored. Eight transforms per iteration (six without
-- smoothing).

local mb = require "moonbeam"
local convolution = require "moonbeam.convolution"
local declared = require "moonbeam.internal.declared"
local grids = require "moonbeam.deconv.deconv_grid"
local on_error = require "moonbeam.internal.on_error"
local psf_tools = require "moonbeam.psf"

local WHAT = "gradient_consensus"
-- The products of gradients, blurred with |H|^2: one transform each way.
local function smoothed(products, otf, n)
    local spectrum <close> = convolution.forward(products, n)
    mb.complex_multiply(spectrum, otf)
    mb.complex_multiply(spectrum, otf, {conj = true})
    mb.irfft(spectrum, {axes = products.rank, in_place = true, n = n, normalise = false,
        out = products})
end

--- Richardson-Lucy that goes on only where two halves of the photons agree, and stops by itself.
--
-- The image has photon counts: subtract the offset and divide by the gain before. A dry run makes
-- all iterations.
-- Returns the estimate, f32, and {iterations =, stopped =, metrics = {{first =, second =, flux =,
-- change =}, ...}}: the I-divergences of the two halves before the iteration (always), flux and
-- change after it (with metrics). stopped is false if `iterations` ended it.
-- Errors: argument, shape, dtype, budget.
-- Reference: J. Manton, A. York, doi:10.5281/zenodo.10278919 (2023).
local gradient_consensus = grids.declared(WHAT, declared.options(
    {"iterations", "count", "how many at most", default = 100},
    {"seed", "count", "how the photons are dealt out", min = 0, default = 0},
    {"smooth", "boolean", "judge agreement after blurring with |H|^2, the scale that the "
        .. "microscope can see", default = true},
    grids.poisson), function(image, psf, options)
    grids.check(WHAT, image, psf, options)
    local iterations, seed = options.iterations, options.seed
    local layout = grids.layout(WHAT, image.shape, psf.shape,
        psf_tools.center(psf, options.center), options, image.device)
    local weights, windowed = options.weights, layout.boundary == "zero"
    grids.check_weights(WHAT, weights, layout)
    local n, dry, mean = layout.grid[#layout.grid], image.device.dry, grids.mean(WHAT, image)
    local eps, least = options.eps or math.max(1e-6 * mean, 1e-30), options.min
    local measured, copy = grids.extended(image, layout)
    local _ <close> = copy
    local made <close> = not options.otf and convolution.transfer(psf, layout.grid,
        {center = layout.center, normalise = options.normalise}) or nil
    local otf = options.otf or made
    local table_of <close> = windowed and not weights and mb.summed_area(psf,
        {scale = not options.normalise and 1 or 1 / psf_tools.sum(psf)}) or nil
    local normaliser <close> = weights and grids.normaliser(weights, layout, otf) or nil
    local divide = {table = table_of, normaliser = normaliser, window = table_of and layout.shape
        or nil,
        center = table_of and layout.center or nil, floor = options.floor}
    local function dividing(more)
        return setmetatable(more, {__index = divide})
    end
    local estimate = grids.start(WHAT, image, layout, options.start, math.max(mean, least))
    local _ <close> = on_error(function() estimate:release() end)
    local report = {iterations = 0, stopped = false, metrics = {}}
    do
        local previous <close> = estimate:copy()
        local work <close> = mb.embed(estimate, layout.grid)
        local second <close> = mb.zeros(work.shape, {device = image.device})
        local before
        for k = 1, iterations do
            convolution.apply(work, otf, n)
            local _, _, misfit = mb.rl_split_ratio(work, second, measured,
                {weights = weights, eps = eps, seed = seed + k})
            local _ <close> = misfit
            local metric = not dry and {first = misfit:item(1), second = misfit:item(2)} or nil
            if before and metric.first > before.first and metric.second > before.second then
                mb.convert(previous, "f32", {out = estimate})
                report.stopped = true
                break
            end
            before = metric
            convolution.apply(work, otf, n, true)
            convolution.apply(second, otf, n, true)
            mb.rl_consensus(work, second, n, divide)
            if options.smooth then
                smoothed(second, otf, n)
            end
            mb.convert(estimate, "f32", {out = previous})
            local _, _, sums = mb.rl_update(estimate, work,
                dividing {consensus = second, min = least,
                metrics = options.metrics})
            local _ <close> = sums
            report.iterations = k
            if sums and not dry then
                metric.flux = sums:item(1)
                metric.change = sums:item(3) > 0 and math.sqrt(sums:item(2) / sums:item(3)) or 0
            end
            report.metrics[k] = metric
            if options.on_iteration and not dry and options.on_iteration(k, metric) == false then
                break
            end
        end
    end
    if report.stopped then
        report.iterations = report.iterations - 1
    end
    return grids.cropped(estimate, layout), report
end)

return gradient_consensus
