--- Least squares with total variation by FISTA: `tomo.fista`. A function over operators, to be
-- read, copied and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local gradient = require "moonbeam.tomo.iterative.gradient"
local solving = require "moonbeam.tomo.iterative.solving"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local fista = {}

fista.options = declared.options(
    {"iterations", "count", "steps of the gradient", min = 1, max = 10000, default = 50},
    {"lambda", "number", "weight of the total variation of values per pixel; 0: none", min = 0,
        max = 1e6, default = 1e-3},
    {"tv_iterations", "count", "iterations of the denoising in each step", min = 1, max = 10000,
        default = 50},
    {"dimensions", "count", "of the total variation: 2, each slice by itself, or 3, the slices as "
        .. "a volume", min = 2, max = 3, default = 2},
    {"tikhonov", "number", "weight of |x|^2 / 2, in squared pixels", min = 0, max = 1e12,
        default = 0},
    {"nonnegative", "boolean", "no value below 0", default = true},
    solving.preconditioner, solving.weights, solving.beyond, solving.options)

-- Steps of the power method, and the factor of what it finds, which is a little too small.
local POWERS <const>, SAFETY <const> = 40, 1.1

-- Numbers, one per slice, whose quotient a / b is the largest eigenvalue of P (A' A + tikhonov),
-- by <q, P q> / <p, q> with q = (A' A + tikhonov) p, from a random slice. `precondition`(from, to,
-- dots) makes to = P from and dots = <from, to>.
local function largest(job, normal, precondition)
    local shape, tikhonov = {1, job.side, job.side}, job.options.tikhonov
    local p <close> = mb.random(shape, {seed = 1, low = -1, device = job.device})
    local q <close> = mb.empty(shape, job.where)
    local r <close> = mb.empty(shape, job.where)
    local above <close> = vectors.numbers(1, job.device)
    local below <close> = vectors.numbers(1, job.device)
    local one <close> = mb.ones({1}, {dtype = "f64", device = job.device})
    if job.model.circle > 0 then
        mb.circular_mask(p, {radius = job.model.circle, out = p})
    end
    for _ = 1, POWERS do
        normal(p, q)
        vectors.add(q, p, one, nil, tikhonov)
        vectors.dot(p, q, below)
        precondition(q, r, above)
        mb.fill(p, 0)
        vectors.add(p, r, below, above)
    end
    local a, b = job:numbers(), job:numbers()
    mb.binary(a, "add", {b = above, out = a})
    mb.binary(b, "add", {b = below, out = b})
    return a, b
end

-- A function that makes y = y - P (A' (A y - b) + tikhonov y) / bound; `work` is to use.
local function preconditioned(job, slope, spectrum)
    local options, circle = job.options, job.model.circle
    if options.lambda > 0 or options.nonnegative then
        fail("argument", "tomo.fista", "preconditioner", "preconditioner is %g, which is for "
            .. "least squares alone, without %s: give the option lambda = 0 and the option "
            .. "nonnegative = false, or leave it out and begin with the option start = \"fbp\"",
            options.preconditioner, options.lambda > 0 and "total variation" or "nonnegative")
    end
    local above, below = largest(job, slope.normal, function(from, to, dots)
        mb.normal_operator(from, spectrum, {circle = circle, dot = true,
            out = {result = to, dots = dots}})
    end)
    return function(y, work)
        slope.at(y, work)
        vectors.add(work, y, job:ones(), nil, options.tikhonov)
        mb.normal_operator(work, spectrum, {circle = circle, out = work})
        vectors.add(y, work, below, above, -1 / SAFETY)
    end
end

--- y becomes y - (slope - less + tikhonov y) / bound; `one` are ones, a number per slice; less may
-- be nil: 0.
function fista.descend(y, slope, one, bound, tikhonov, less)
    if tikhonov > 0 then
        mb.binary(y, "mul", {scalar = 1 - tikhonov / bound, out = y})
    end
    vectors.add(y, slope, one, nil, -1 / bound, less)
end

--- x, the slices of the iteration before, becomes made + momentum (made - x), from where the next
-- step of the gradient begins.
function fista.extrapolate(x, made, one, momentum)
    vectors.follow(x, made, one, nil, -momentum, made)
end

--- Slices that minimize sum w (A x - b)^2 / 2 + tikhonov |x|^2 / 2 + lambda TV(x) by FISTA, A being
-- the model of the rays, b the sinograms and w the weights of the rays.
--
-- For few angles or much noise. The values are line integrals in pixels: slices are attenuation per
-- pixel. lambda has the unit of b^2 over that of x. With dimensions = 2 each slice is reconstructed
-- by itself; with 3 all of them end together. The objective is that of the slices, with the total
-- variation; to know it (history, callback, and every `check` iterations for a rule) takes one more
-- gradient. A model with a normal operator is iterated with it alone, if no rays are weighted. A
-- preconditioner is for least squares alone (lambda = 0, nonnegative = false): the steps of total
-- variation and of values of 0 or more would have to be in its metric. An iteration with it takes
-- two convolutions; the length of its step is measured before, on one random slice.
-- Memory: three volumes and the sinograms once, beside those given, and what the operators take;
-- one volume more with a rule (tolerance, noise), and one where the objective is to be known and
-- lambda is not 0. With a normal operator four volumes and no sinograms.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: A. Beck, M. Teboulle, SIAM J. Imaging Sciences 2 (2009) 183.
fista.reconstruct = solving.method("tomo.fista", fista.options, function(job, options)
    local y, work, slope = job:volume(), job:volume(), gradient.of(job)
    local measured, one, tikhonov, t = job:measuring(slope), job:ones(), options.tikhonov, 1
    local bound, spectrum = job.model.bound + tikhonov, job:ramp()
    local step = spectrum and preconditioned(job, slope, spectrum)
    mb.convert(job.x, "f32", {out = y})
    for k in job:steps() do
        if measured(k, job.x, work) then
            break
        end
        if step then
            step(y, work)
        else
            fista.descend(y, work, one, bound, tikhonov, slope.apart(y, work))
        end
        solving.denoise(y, options.lambda / bound, options, work) -- the next x
        local next_t = (1 + math.sqrt(1 + 4 * t * t)) / 2
        fista.extrapolate(job.x, work, one, (t - 1) / next_t)
        job.x, y, work, t = work, job.x, y, next_t
    end
end)

--- The arithmetic of the iterations for sweeps over a volume (volume_sweeps.lua), which denoise
-- between two of them. `at` has normal(x, out), bound, one (ones, a number per slice), room() for a
-- volume and own (the options).
fista.sweeps = {name = "tomo.fista"}

--- The weight of the denoising.
function fista.sweeps.weight(own, model)
    return own.lambda / (model.bound + own.tikhonov)
end

-- v becomes what is to be denoised.
local function descend(v, c, at)
    local work <close> = at.room()
    local tikhonov = at.own.tikhonov
    at.normal(v, work)
    fista.descend(v, work, at.one, at.model.bound + tikhonov, tikhonov, c)
end

--- The first iteration begins at x. c is A' b; v becomes what is to be denoised.
function fista.sweeps.first(v, c, x, at)
    mb.convert(x, "f32", {out = v})
    descend(v, c, at)
end

--- An iteration begins: `before` = {v, x} are those of the last one, and are lost; `denoised` is
-- what denoising made of v.
function fista.sweeps.next(v, c, x, before, denoised, at)
    fista.extrapolate(before.x, denoised, at.one, at.sweep.momentum)
    mb.convert(before.x, "f32", {out = v})
    mb.convert(denoised, "f32", {out = x})
    descend(v, c, at)
end

return fista
