--- The gradient of sum w (A x - b)^2 / 2: by the projector and its transpose, or by the normal
-- operator of the model, which needs A' b alone.

local mb = require "moonbeam"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local gradient = {}

local function by_pair(job)
    local rays, misfit = job:rays(), job:numbers()
    return {misfit = misfit, at = function(x, out, scale)
        job:residual(x, rays)
        job:misfit(rays, misfit)
        job.model.adjoint(rays, out, scale)
    end}
end

--- out = scale (N x - c): the gradient by a normal operator, normal(x, out), and c = A' b.
function gradient.by(normal, c, x, out, scale)
    normal(x, out)
    mb.binary(out, "sub", {b = c, out = out})
    if scale ~= 1 then
        mb.binary(out, "mul", {scalar = scale, out = out})
    end
end

-- The misfit is (x N x - 2 x c + b b) / 2, where c = A' b.
local function by_normal(job)
    local c, misfit, square = job:volume(), job:numbers(), job:numbers()
    local work = job.measures and job:volume()
    job.model.adjoint(job.b, c)
    local normal = job:normal(0)
    vectors.square_of_rays(job.b, square)
    return {misfit = misfit, at = function(x, out, scale)
        gradient.by(normal, c, x, out, work and 1 or scale)
        if work then
            mb.binary(out, "sub", {b = c, out = work})
            vectors.dot(work, x, work, misfit)
            mb.binary(misfit, "add", {b = square, out = misfit})
            mb.binary(misfit, "mul", {scalar = 0.5, out = misfit})
        end
        if work and scale ~= 1 then
            mb.binary(out, "mul", {scalar = scale, out = out})
        end
    end}
end

--- The gradient of a job (solving.lua): at(x, out, scale) makes out = scale A' W (A x - b), and
-- leaves the half of the weighted square of A x - b, if somebody wants to know it, in `misfit`.
function gradient.of(job)
    return (job:convolves() and by_normal or by_pair)(job)
end

return gradient
