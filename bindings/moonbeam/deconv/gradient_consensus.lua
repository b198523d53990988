--- Richardson-Lucy with gradient consensus (J. Manton, A. York, doi:10.5281/zenodo.10278919): in
-- every iteration the photons are dealt out into two halves at random, each half asks for its own
-- correction, and a voxel changes only where both ask for the same direction. Noise is amplified
-- more slowly than by Richardson-Lucy, and the iterations stop by themselves when both halves fit
-- worse than an iteration before. Noise is amplified all the same: the halves are those of one
-- image, which the estimate has seen, and with 0.1 photons per voxel the iterations go on for long:
-- of extended bodies the result was then further from the truth than the image (docs/quality.md).
-- In simulations richardson_lucy with find_iterations was nearer to the truth at most light levels.
--
-- Memory per voxel of the grid: Richardson-Lucy's four arrays (image, estimate, transfer function,
-- working grid), a second working grid and the estimate before: 24 bytes, 22 for u16, and the FFT
-- library's work area; 4 fewer where the PSF has few planes. The halves are never stored. Eight
-- transforms per iteration (six without smoothing; ten where no library makes them).

local mb = require "moonbeam"
local background = require "moonbeam.deconv.background"
local convolution = require "moonbeam.convolution"
local declared = require "moonbeam.internal.declared"
local grids = require "moonbeam.deconv.deconv_grid"

local WHAT = "gradient_consensus"
-- The iterations do not stop by themselves before: from a flat start fewer are a second blur.
local LEAST <const> = 10
-- A seed has a stream of random numbers of its own for so many iterations.
local STREAM <const> = 20 -- bits

--- Richardson-Lucy that goes on only where two halves of the photons agree, and stops by itself.
--
-- What it promises holds from one photon per voxel on (`mean` of its report). With less it stops
-- too late: of bodies that are larger than the PSF the result was further from the truth than the
-- image. richardson_lucy with find_iterations was not.
-- The image has photon counts: subtract the offset and divide by the gain before. Negative values
-- count as 0, as for richardson_lucy. At least 10 iterations are made. A dry run makes all.
-- Returns the estimate, f32, and {iterations =, stopped =, mean =, clipped =, metrics = {{first =,
-- second =, flux =, change =}, ...}}: mean is that of the image, so photons per voxel; first and
-- second are the I-divergences of the two halves before the iteration (always), flux and change
-- those after it (with metrics). stopped is false if `iterations` ended it.
-- Errors: argument, shape, dtype, budget.
-- Reference: J. Manton, A. York, doi:10.5281/zenodo.10278919 (2023).
local gradient_consensus = grids.declared(WHAT, declared.options(
    {"iterations", "count", "how many at most", max = (1 << STREAM) - 1,
        default = 100},
    {"seed", "count", "how the photons are dealt out; each seed has random numbers of its own",
        min = 0, max = (1 << 32) - 1, default = 0},
    {"smooth", "boolean", "judge agreement after blurring with |H|^2, the scale that the "
        .. "microscope can see", default = true},
    grids.poisson), function(image, psf, options)
    local state <close> = grids.prepared(WHAT, image, psf, options, true)
    local estimate, otf, n, report = state.estimate, state.otf, state.n, state.report
    local under = state.under
    report.stopped, report.mean = false, state.mean
    do
        local previous <close> = estimate:copy()
        local work <close> = mb.embed(estimate, state.layout.grid)
        local second <close> = mb.zeros(work.shape, {device = image.device})
        local update = setmetatable({consensus = second, min = options.min,
            metrics = options.metrics}, {__index = state.divide})
        local before
        for k = 1, options.iterations do
            convolution.apply(work, otf, n)
            local scale = under and background.scale_before(under, work, state.measured,
                options.weights)
            local _, _, misfit = mb.rl_split_ratio(work, second, state.measured,
                {weights = options.weights, eps = state.eps, seed = options.seed << STREAM | k,
                background = options.background})
            local _ <close> = misfit
            local metric = not state.dry and {first = misfit:item(1), second = misfit:item(2)}
                or nil
            if before and k > LEAST + 1 and metric.first > before.first
                and metric.second > before.second then
                mb.convert(previous, "f32", {out = estimate})
                report.stopped, report.iterations = true, k - 2
                break
            end
            before = metric
            convolution.apply(work, otf, n, true)
            convolution.apply(second, otf, n, true)
            mb.rl_consensus(work, second, n, state.divide)
            if options.smooth then
                mb.apply_otf(second, otf, {n = n, both = true})
            end
            mb.convert(estimate, "f32", {out = previous})
            local _, _, sums = mb.rl_update(estimate, work, update)
            local _ <close> = sums
            if under then -- everywhere, also where the halves do not agree
                background.pull(estimate, scale)
                background.pull(work, scale)
                if k == 1 then
                    background.begin_on(under, estimate, work)
                end
            end
            if sums and not state.dry then
                grids.add_change(metric, sums, 0)
            end
            if grids.is_last(state, options, k, metric) then
                break
            end
        end
    end
    return grids.result(WHAT, state)
end)

return gradient_consensus
