--- The gradient of sum w (A x - b)^2 / 2: by the projector and its transpose, or by the normal
-- operator of the model, which needs A' b alone.

local mb = require "moonbeam"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local gradient = {}

local function by_pair(job)
    local rays, misfit = job:rays(), job:numbers()
    local function at(x, out, down)
        job:residual(x, rays)
        job:misfit(rays, misfit)
        job.model.adjoint(rays, out, down and -1 or 1)
    end
    return {misfit = misfit, at = at, apart = function(x, out) at(x, out) end}
end

--- out = N x - c: the gradient by a normal operator, normal(x, out), and c = A' b; with `down` its
-- negative.
function gradient.by(normal, c, x, out, down)
    normal(x, out)
    mb.binary(out, "sub", {b = c, reverse = down, out = out})
end

-- The misfit is (x (N x - c) - x c + b b) / 2, where c = A' b.
local function by_normal(job)
    local c, misfit, square, other = job:volume(), job:numbers(), job:numbers(), job:numbers()
    job.model.adjoint(job.b, c)
    local normal = job:normal(0)
    vectors.square(job.b, square)
    local function at(x, out, down)
        gradient.by(normal, c, x, out, down)
        if job.measures then
            vectors.dot(out, x, misfit)
            vectors.dot(c, x, other)
            mb.binary(other, down and "add" or "sub", {b = misfit, out = other})
            mb.binary(square, "sub", {b = other, out = misfit})
            mb.binary(misfit, "mul", {scalar = 0.5, out = misfit})
        end
    end
    return {misfit = misfit, at = at, normal = normal, apart = function(x, out)
        if job.measures then
            at(x, out)
            return nil
        end
        normal(x, out)
        return c
    end}
end

--- The gradient of a job (solving.lua): at(x, out, down) makes out = A' W (A x - b), with `down`
-- its negative, and leaves the half of the weighted square of A x - b, if somebody wants to know
-- it, in `misfit`. normal(x, out) makes out = A' A x, if it is by a normal operator. apart(x, out)
-- does as `at`, but may leave a part to be subtracted from out by whoever uses it, which it
-- returns.
function gradient.of(job)
    return (job:convolves() and by_normal or by_pair)(job)
end

return gradient
