--- Least squares by conjugate gradients: `tomo.cgls`. A function over operators, to be read, copied
-- and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local solving = require "moonbeam.tomo.iterative.solving"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local cgls = {}

cgls.options = declared.options(
    {"iterations", "count", "steps; with noise in the data fewer are better", min = 1,
        max = 10000, default = 20},
    {"tikhonov", "number", "weight of |x|^2 / 2, in squared pixels", min = 0, max = 1e12,
        default = 0},
    solving.preconditioner, solving.weights, solving.beyond, solving.options)

-- Part of |A' b|^2 at which |A' r - tikhonov x|^2 is rounding of float32: by which A' b is not in
-- the range of A' A (3.5e-9 for one angle and 128 columns or more, less for more angles), or by
-- which two large terms of a small sum are wrong. Directions made of it have hardly any curvature,
-- or are as long from step to step, and steps along them would grow: the slice is done.
local ROUNDING <const> = 1e-8

-- least = that part of |A' W b|^2, by the projector and its transpose; `q` are rays and `s` is a
-- volume to use.
local function find_least(job, q, s, least)
    local b = job.b
    if job.root then
        job:rooted(b, q)
        job:rooted(q, q)
        b = q
    end
    job.model.adjoint(b, s)
    vectors.square(s, least)
    mb.binary(least, "mul", {scalar = ROUNDING, out = least})
end

-- By the projector and its transpose. The rows of A and b are multiplied by the roots of the
-- weights; r = b - A x, s = A' r - tikhonov x, p the direction.
local function by_pair(job, options)
    local x, p, s, r, q = job.x, job:volume(), job:volume(), job:rays(), job:rays()
    local tikhonov, one = options.tikhonov, job:ones()
    local gamma, before, alpha = job:numbers(), job:numbers(), job:numbers()
    local misfit, objective, least, work = job:numbers(), job:numbers(), job:numbers(),
        job:numbers()
    local function measure()
        vectors.square(r, misfit)
        mb.binary(misfit, "mul", {scalar = 0.5, out = misfit})
        job:penalized(misfit, tikhonov, objective)
        return objective
    end
    local function gradient() -- s, and gamma = |s|^2
        job:rooted(r, q)
        job.model.adjoint(job.root and q or r, s)
        if tikhonov > 0 then
            vectors.add(s, x, one, nil, -tikhonov)
        end
        vectors.square(s, gamma)
    end

    find_least(job, q, s, least)
    job:residual(x, r)
    mb.unary(r, "neg", {out = r})
    job:rooted(r, r)
    gradient()
    mb.convert(s, "f32", {out = p})
    for k in job:steps() do
        if job:seen(k, job.measures and measure(), misfit) then
            break
        end
        vectors.cut(gamma, least, work)
        job.model.forward(p, q)
        job:rooted(q, q)
        vectors.square(q, alpha)
        if tikhonov > 0 then
            vectors.square(p, before)
            mb.binary(before, "mul", {scalar = tikhonov, out = before})
            mb.binary(alpha, "add", {b = before, out = alpha})
        end
        vectors.add(x, p, gamma, alpha)
        vectors.add(r, q, gamma, alpha, -1)
        if k < options.iterations then
            gamma, before = before, gamma
            gradient()
            vectors.follow(p, s, gamma, before)
        end
    end
end

-- The half of |A x - b|^2, if r = A' b - (A' A + tikhonov) x; with the penalty. `c` is A' b and is
-- lost, `square` is to use.
local function begin_objective(job, c, r, square, objective)
    mb.binary(c, "add", {b = r, out = c})
    vectors.dot(c, job.x, objective)
    vectors.square(job.b, square)
    mb.binary(square, "sub", {b = objective, out = objective})
    mb.binary(objective, "mul", {scalar = 0.5, out = objective})
end

-- objective = objective - growth^2 / (2 curvature), what a step lowers it by; `work` is to use.
local function lower(objective, growth, curvature, work)
    vectors.ratio(growth, curvature, work)
    mb.binary(work, "mul", {b = growth, out = work})
    mb.binary(work, "mul", {scalar = 0.5, out = work})
    mb.binary(objective, "sub", {b = work, out = objective})
end

-- By the convolution that is A' A + tikhonov, with its fused steps: r = A' b - (A' A + tikhonov) x.
-- With the preconditioner P, z = P r and the growth is <r, z>, else z = r.
local function by_kernel(job, options, spectrum)
    local x, r, p, q = job.x, job:volume(), job:volume(), job:volume()
    local circle, floor = job.model.circle, options.preconditioner
    local kernel = job:hold(job.model.kernel(job.device, options.tikhonov))
    local z = spectrum and job:volume() or r
    local growth, before, after = job:numbers(), job:numbers(), job:numbers()
    local dots, work, objective, misfit = job:numbers(), job:numbers(), job:numbers(),
        job:numbers()
    local least = job:numbers()
    local function precondition(out)
        mb.normal_operator(r, spectrum, {circle = circle, dot = true,
            out = {result = z, dots = out}})
    end

    job.model.adjoint(job.b, p)
    vectors.square(p, least)
    mb.binary(least, "mul", {scalar = ROUNDING * (spectrum and floor or 1), out = least})
    mb.normal_operator(x, kernel, {circle = circle, out = q})
    mb.binary(p, "sub", {b = q, out = r})
    if job.measures then
        begin_objective(job, p, r, work, objective)
    end
    if spectrum then
        precondition(growth)
    else
        mb.slice_dot(r, r, {out = growth})
    end
    for k in job:steps() do
        if job.measures then
            job:penalized(objective, -options.tikhonov, misfit)
        end
        if job:seen(k, objective, misfit) then
            break
        end
        vectors.cut(growth, least, work)
        mb.normal_operator(z, kernel, {direction = p, growth = growth, over = before, dot = true,
            circle = circle, out = {result = q, dots = dots}})
        if job.measures then
            lower(objective, growth, dots, work)
        end
        mb.cgls_update(x, r, p, q, growth, {over = dots, circle = circle,
            out = {squares = after}})
        if spectrum then
            precondition(after)
        end
        growth, before, after = after, growth, before
    end
end

-- By any normal operator N = A' A of the model, without sinograms after the first: r = A' b - (N +
-- tikhonov) x. The objective falls by alpha gamma / 2 in a step.
local function by_normal(job, options)
    local x, p, r, q = job.x, job:volume(), job:volume(), job:volume()
    local gamma, before, alpha, work = job:numbers(), job:numbers(), job:numbers(), job:numbers()
    local objective, misfit, one = job:numbers(), job:numbers(), job:ones()
    local tikhonov, least = options.tikhonov, job:numbers()
    local function apply(a, out) -- (N + tikhonov) a
        job.model.normal(a, out)
        if tikhonov > 0 then
            vectors.add(out, a, one, nil, tikhonov)
        end
    end

    job.model.adjoint(job.b, p)
    vectors.square(p, least)
    mb.binary(least, "mul", {scalar = ROUNDING, out = least})
    apply(x, q)
    mb.binary(p, "sub", {b = q, out = r})
    if job.measures then
        begin_objective(job, p, r, gamma, objective)
    end
    mb.convert(r, "f32", {out = p})
    vectors.square(r, gamma)
    for k in job:steps() do
        if job.measures then
            job:penalized(objective, -tikhonov, misfit)
        end
        if job:seen(k, objective, misfit) then
            break
        end
        vectors.cut(gamma, least, work)
        apply(p, q)
        vectors.dot(p, q, alpha)
        if job.measures then
            lower(objective, gamma, alpha, work)
        end
        vectors.add(x, p, gamma, alpha)
        vectors.add(r, q, gamma, alpha, -1)
        if k < options.iterations then
            gamma, before = before, gamma
            vectors.square(r, gamma)
            vectors.follow(p, r, gamma, before)
        end
    end
end

--- Slices that minimize sum w (A x - b)^2 / 2 + tikhonov |x|^2 / 2 by conjugate gradients (CGLS), A
-- being the model of the rays, b the sinograms and w the weights of the rays.
--
-- The fastest method for least squares. The objective falls in every step. The error of the slices
-- falls at first and grows again when noise is fitted, so few steps regularize: give `noise`, or
-- few iterations. Values may be negative: to clip them would spoil the directions. The values are
-- line integrals in pixels: slices are attenuation per pixel. Each slice is reconstructed by
-- itself. A model with a normal operator is iterated with it alone, if no rays are weighted.
-- Memory: three volumes and the sinograms twice, beside those given, and what the operators take;
-- one volume more with a rule (tolerance, noise). With a normal operator four volumes and no
-- sinograms, and one volume more with a rule and with the preconditioner.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: M. R. Hestenes, E. Stiefel, J. Res. Natl. Bur. Stand. 49 (1952) 409
cgls.reconstruct = solving.method("tomo.cgls", cgls.options, function(job, options)
    local spectrum = job:ramp()
    local way = not job:convolves() and by_pair or job.model.kernel and by_kernel or by_normal
    way(job, options, spectrum)
end)

return cgls
