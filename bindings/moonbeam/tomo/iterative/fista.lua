--- Least squares with total variation by FISTA: `tomo.fista`. A function over operators, to be
-- read, copied and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local gradient = require "moonbeam.tomo.iterative.gradient"
local solving = require "moonbeam.tomo.iterative.solving"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local fista = {}

fista.options = declared.options(
    {"iterations", "count", "steps of the gradient", min = 1, max = 10000, default = 50},
    {"lambda", "number", "weight of the total variation; 0: none", min = 0, max = 1e6,
        default = 1e-3},
    {"tv_iterations", "count", "iterations of the denoising in each step", min = 1, max = 10000,
        default = 50},
    {"dimensions", "count", "of the total variation: 2, each slice by itself, or 3, the slices as "
        .. "a volume", min = 2, max = 3, default = 2},
    {"tikhonov", "number", "weight of |x|^2 / 2, in squared pixels", min = 0, max = 1e12,
        default = 0},
    {"nonnegative", "boolean", "no value below 0", default = true},
    solving.weights, solving.beyond, solving.options)

--- y becomes y - (slope + tikhonov y) / bound; `one` are ones, a number per slice.
function fista.descend(y, slope, one, bound, tikhonov)
    if tikhonov > 0 then
        mb.binary(y, "mul", {scalar = 1 - tikhonov / bound, out = y})
    end
    vectors.add(y, slope, one, nil, -1 / bound)
end

--- x, the slices of the iteration before, becomes made + momentum (made - x), from where the next
-- step of the gradient begins.
function fista.extrapolate(x, made, one, momentum)
    vectors.follow(x, made, one, nil, -momentum)
    vectors.add(x, made, one, nil, momentum)
end

--- Slices that minimize sum w (A x - b)^2 / 2 + tikhonov |x|^2 / 2 + lambda TV(x) by FISTA, A being
-- the model of the rays, b the sinograms and w the weights of the rays.
--
-- For few angles or much noise. The values are line integrals in pixels: slices are attenuation per
-- pixel. lambda has the unit of b^2 over that of x. With dimensions = 2 each slice is reconstructed
-- by itself. The objective in the history is without the total variation, at the point that FISTA
-- extrapolates to. A model with a normal operator is iterated with it alone, if no rays are
-- weighted. Memory: three volumes and the sinograms once, beside those given, and what the
-- operators take; one volume more with a rule (tolerance, noise). With a normal operator four
-- volumes and no sinograms.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: A. Beck, M. Teboulle, SIAM J. Imaging Sciences 2 (2009) 183.
fista.reconstruct = declared("tomo.fista", {
    {"sinograms", "array", "line integrals (row, angle, column)", rank = {3, 3}},
    {"angles", "list", "one per angle", unit = "rad"},
    options = fista.options,
}, function(sinograms, angles, options)
    local job <close> = solving.begin("tomo.fista", sinograms, angles, options)
    local y, work, slope = job:volume(), job:volume(), gradient.of(job)
    local objective, one, tikhonov, t = job:numbers(), job:ones(), options.tikhonov, 1
    local bound = job.model.bound + tikhonov
    mb.convert(job.x, "f32", {out = y})
    for k = 1, options.iterations do
        slope.at(y, work)
        if job.measures then
            job:penalized(slope.misfit, tikhonov, objective, y)
            if job:seen(k, objective, slope.misfit) then
                break
            end
        end
        fista.descend(y, work, one, bound, tikhonov)
        solving.denoise(y, options.lambda / bound, options, work) -- the next x
        local next_t = (1 + math.sqrt(1 + 4 * t * t)) / 2
        fista.extrapolate(job.x, work, one, (t - 1) / next_t)
        job.x, y, work, t = work, job.x, y, next_t
        if job:over(k) then
            break
        end
    end
    return job:finish()
end)

return fista
