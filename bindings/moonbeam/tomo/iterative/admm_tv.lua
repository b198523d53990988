--- Least squares with total variation by ADMM: `tomo.admm_tv`. A function over operators, to be
-- read, copied and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local gradient = require "moonbeam.tomo.iterative.gradient"
local solving = require "moonbeam.tomo.iterative.solving"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local admm_tv = {}

admm_tv.options = declared.options(
    {"iterations", "count", "alternations", min = 1, max = 10000, default = 20},
    {"inner", "count", "steps of conjugate gradients in each", min = 1, max = 1000, default = 4},
    {"rho", "number", "weight of the splitting, per angle: larger ones follow the denoised slices, "
        .. "smaller ones the data; the limit does not depend on it", above = 0, below = 1e12,
        default = 1},
    {"lambda", "number", "weight of the total variation", min = 0, max = 1e6, default = 1e-3},
    {"tv_iterations", "count", "iterations of the denoising in each alternation", min = 1,
        max = 10000, default = 50},
    {"dimensions", "count", "of the total variation: 2, each slice by itself, or 3, the slices as "
        .. "a volume", min = 2, max = 3, default = 2},
    {"nonnegative", "boolean", "no value below 0", default = true},
    solving.weights, solving.beyond, solving.options)

-- A function that makes out = A' W A p.
local function curvature_of(job)
    if job:convolves() then
        return job:normal(0)
    end
    local rays = job:rays()
    return function(p, out)
        job.model.forward(p, rays)
        job:rooted(rays, rays)
        job:rooted(rays, rays)
        job.model.adjoint(rays, out)
    end
end

--- Slices that minimize sum w (A x - b)^2 / 2 + lambda TV(x) by alternating directions (ADMM), A
-- being the model of the rays, b the sinograms and w the weights of the rays.
--
-- The same minimum as that of fista, in fewer and longer iterations: each takes inner + 1
-- projections and back-projections. The values are line integrals in pixels: slices are attenuation
-- per pixel. With dimensions = 2 each slice is reconstructed by itself. The objective in the
-- history is without the total variation, at the slices before they are denoised. Memory: six
-- volumes and the sinograms twice, beside those given, and what the operators take; one volume more
-- with a rule (tolerance, noise). With a normal operator seven volumes and no sinograms.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: S. Boyd et al., Foundations and Trends in Machine Learning 3 (2011) 1
admm_tv.reconstruct = declared("tomo.admm_tv", {
    {"sinograms", "array", "line integrals (row, angle, column)", rank = {3, 3}},
    {"angles", "list", "one per angle", unit = "rad"},
    options = admm_tv.options,
}, function(sinograms, angles, options)
    local job <close> = solving.begin("tomo.admm_tv", sinograms, angles, options)
    local rho = options.rho * job.model.angles
    local slope = gradient.of(job)
    local curvature = curvature_of(job)
    local z, x, u = job.x, job:volume(), job:volume(true) -- z: denoised
    local r, p, q, one = job:volume(), job:volume(), job:volume(), job:ones()
    local gamma, before, alpha = job:numbers(), job:numbers(), job:numbers()

    -- r = -A' W (A x - b) - rho (x - z + u)
    local function gradient_at_x()
        slope.at(x, r, true)
        vectors.add(r, x, one, nil, -rho)
        vectors.add(r, z, one, nil, rho)
        vectors.add(r, u, one, nil, -rho)
    end
    local function descend()
        mb.convert(r, "f32", {out = p})
        vectors.square(r, gamma)
        for i = 1, options.inner do
            curvature(p, q)
            vectors.add(q, p, one, nil, rho)
            vectors.dot(p, q, alpha)
            vectors.add(x, p, gamma, alpha)
            if i < options.inner then
                vectors.add(r, q, gamma, alpha, -1)
                gamma, before = before, gamma
                vectors.square(r, gamma)
                vectors.follow(p, r, gamma, before)
            end
        end
    end

    mb.convert(z, "f32", {out = x})
    for k = 1, options.iterations do
        gradient_at_x()
        if job:seen(k, slope.misfit) then
            break
        end
        descend()
        mb.binary(u, "add", {b = x, out = u})
        solving.denoise(u, options.lambda / rho, options, z)
        mb.binary(u, "sub", {b = z, out = u})
        if job:over(k) then
            break
        end
    end
    return job:finish()
end)

return admm_tv
