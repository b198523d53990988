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
    {"lambda", "number", "weight of the total variation of values per pixel; 0: none", min = 0,
        max = 1e6, default = 1e-3},
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

-- x goes on by some steps of conjugate gradients for |A x - b|^2 / 2 + rho |x - z + u|^2 / 2. `e`
-- has x, z, u, the volumes r, p and q and the numbers gamma, before and alpha to use, and the
-- functions slope(x, out) = -A' W (A x - b) and curvature(p, out) = A' W A p.
local function descend(e)
    local x, r, p, q, gamma, before = e.x, e.r, e.p, e.q, e.gamma, e.before
    e.slope(x, r)
    vectors.add(r, x, e.one, nil, -e.rho)
    vectors.add(r, e.z, e.one, nil, e.rho)
    vectors.add(r, e.u, e.one, nil, -e.rho)
    mb.convert(r, "f32", {out = p})
    vectors.square(r, gamma)
    for i = 1, e.inner do
        e.curvature(p, q)
        vectors.add(q, p, e.one, nil, e.rho)
        vectors.dot(p, q, e.alpha)
        vectors.add(x, p, gamma, e.alpha)
        if i < e.inner then
            vectors.add(r, q, gamma, e.alpha, -1)
            gamma, before = before, gamma
            vectors.square(r, gamma)
            vectors.follow(p, r, gamma, before)
        end
    end
end

--- Slices that minimize sum w (A x - b)^2 / 2 + lambda TV(x) by alternating directions (ADMM), A
-- being the model of the rays, b the sinograms and w the weights of the rays.
--
-- The same minimum as that of fista, in fewer and longer iterations: each takes inner + 1
-- projections and back-projections. The values are line integrals in pixels: slices are attenuation
-- per pixel. With dimensions = 2 each slice is reconstructed by itself; with 3 all of them end
-- together. The objective is that of the slices, with the total variation; to know it (history,
-- callback, and every `check` iterations for a rule) takes one more gradient. Memory: six volumes
-- and the sinograms twice, beside those given, and what the operators take; one volume more with a
-- rule (tolerance, noise), and one where the objective is to be known and lambda is not 0. With a
-- normal operator seven volumes and no sinograms.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: S. Boyd et al., Foundations and Trends in Machine Learning 3 (2011) 1
admm_tv.reconstruct = solving.method("tomo.admm_tv", admm_tv.options, function(job, options)
    local rho = options.rho * job.model.angles
    local slope = gradient.of(job)
    local measured, curvature = job:measuring(slope), curvature_of(job)
    local z, x, u = job.x, job:volume(), job:volume(true) -- z: denoised
    local e = {x = x, z = z, u = u, r = job:volume(), p = job:volume(), q = job:volume(),
        one = job:ones(), gamma = job:numbers(), before = job:numbers(), alpha = job:numbers(),
        rho = rho, inner = options.inner, curvature = curvature,
        slope = function(at, out) slope.at(at, out, true) end}

    mb.convert(z, "f32", {out = x})
    for k in job:steps() do
        if measured(k, z, e.r) then
            break
        end
        descend(e)
        mb.binary(u, "add", {b = x, out = u})
        solving.denoise(u, options.lambda / rho, options, z)
        mb.binary(u, "sub", {b = z, out = u})
    end
end)

--- The arithmetic of the iterations for sweeps over a volume, as that of fista.
admm_tv.sweeps = {name = "tomo.admm_tv"}

function admm_tv.sweeps.weight(own, model)
    return own.lambda / (own.rho * model.angles)
end

-- x becomes that of the iteration, and u what is to be denoised.
local function alternate(u, c, x, z, at)
    local r <close> = at.room()
    local p <close> = at.room()
    local q <close> = at.room()
    local gamma <close> = at.number()
    local before <close> = at.number()
    local alpha <close> = at.number()
    descend {x = x, z = z, u = u, r = r, p = p, q = q, one = at.one, gamma = gamma,
        before = before, alpha = alpha, rho = at.own.rho * at.model.angles, inner = at.own.inner,
        curvature = at.normal, slope = function(of, out)
            gradient.by(at.normal, c, of, out, true)
        end}
    mb.binary(u, "add", {b = x, out = u})
end

function admm_tv.sweeps.first(v, c, x, at)
    local z <close> = at.room()
    mb.convert(x, "f32", {out = z})
    mb.fill(v, 0)
    alternate(v, c, x, z, at)
end

function admm_tv.sweeps.next(v, c, x, before, denoised, at)
    mb.convert(before.x, "f32", {out = x})
    mb.binary(before.v, "sub", {b = denoised, out = v})
    alternate(v, c, x, denoised, at)
end

return admm_tv
