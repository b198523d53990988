--- Least squares by steps of the gradient: `tomo.landweber`. A function over operators, to be read,
-- copied and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local gradient = require "moonbeam.tomo.iterative.gradient"
local solving = require "moonbeam.tomo.iterative.solving"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local landweber = {}

landweber.options = declared.options(
    {"iterations", "count", "steps of the gradient", min = 1, max = 10000, default = 100},
    {"relaxation", "number", "factor of a correction; 1 makes the step of landweber one over a "
        .. "bound of the largest eigenvalue of A' A", above = 0, below = 2, default = 1},
    {"tikhonov", "number", "weight of |x|^2 / 2, in squared pixels", min = 0, max = 1e12,
        default = 0},
    {"nonnegative", "boolean", "no value below 0", default = false},
    solving.weights, solving.beyond, solving.options)

--- Slices that minimize sum w (A x - b)^2 / 2 + tikhonov |x|^2 / 2 by steps of the gradient, A
-- being the model of the rays, b the sinograms and w the weights of the rays.
--
-- Slow and simple: cgls needs far fewer steps, fista fewer with the same constraint. The values are
-- line integrals in pixels: slices are attenuation per pixel. Each slice is reconstructed by
-- itself. Memory: two volumes and the sinograms once, beside those given, and what the operators
-- take; one volume more with a rule (tolerance, noise). With a normal operator three volumes and no
-- sinograms.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: L. Landweber, Am. J. Math. 73 (1951) 615
landweber.reconstruct = solving.method("tomo.landweber", landweber.options, function(job, options)
    local x, work, slope = job.x, job:volume(), gradient.of(job)
    local objective, one = job:numbers(), job:ones()
    local tikhonov = options.tikhonov
    local step = options.relaxation / (job.model.bound + tikhonov)
    for k in job:steps() do
        local less = slope.apart(x, work)
        if job.measures then
            job:penalized(slope.misfit, tikhonov, objective)
            if job:seen(k, objective, slope.misfit) then
                break
            end
        end
        if tikhonov > 0 then
            mb.binary(x, "mul", {scalar = 1 - step * tikhonov, out = x})
        end
        vectors.add(x, work, one, nil, -step, less)
        if options.nonnegative then
            mb.binary(x, "max", {scalar = 0, out = x})
        end
    end
end)

return landweber
