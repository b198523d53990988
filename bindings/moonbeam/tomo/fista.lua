--- Iterative reconstruction by FISTA: `tomo.fista`. A function over operators, to be read, copied
-- and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"

local fista = {}

fista.options = declared.options(
    {"iterations", "count", "steps of the gradient", min = 1, max = 10000, default = 50},
    {"lambda", "number", "weight of the total variation of a slice; 0: none", min = 0, max = 1e6,
        default = 1e-3},
    {"tv_iterations", "count", "iterations of the denoising in each step", min = 1, max = 10000,
        default = 50},
    {"nonnegative", "boolean", "no value below 0", default = true},
    {"size", "count", "pixels of a side of the slice", min = 1, max = 1 << 20,
        usual = "the columns of the detector"},
    {"circle", "number", "radius of the circular mask; 0: no mask", unit = "half-width", min = 0,
        max = 10, default = 1},
    declared.from("backproject", "center", "shifts"))

-- A bound of the largest eigenvalue of A' A: the largest sum of a column of A (the weights of a
-- pixel are 1 at each angle) times that of a row (the pixels on a ray; the sums of the pixel-driven
-- model vary by up to 10 % between neighboring bins).
local function bound_of(angles, side)
    return 1.2 * #angles * side
end

-- One step of the gradient of |A y - b|^2 / 2 from y, in place; `work` is a volume to use.
local function descend(job, y, work, rays)
    mb.project(y, job.angles, {cols = job.cols, center = job.center, shifts = job.shifts,
        circle = job.circle, out = rays})
    mb.binary(rays, "sub", {b = job.sinograms, out = rays})
    mb.backproject(rays, job.angles, {center = job.center, shifts = job.shifts,
        size = {job.side, job.side}, circle = job.circle, accuracy = "exact",
        scale = 1 / job.bound, out = work})
    mb.binary(y, "sub", {b = work, out = y})
end

-- The slices nearest to y with little total variation, in `out`.
local function regularize(job, y, out)
    if job.lambda > 0 then
        mb.total_variation(y, job.lambda / job.bound, {iterations = job.tv_iterations,
            dimensions = 2, nonnegative = job.nonnegative, out = out})
    elseif job.nonnegative then
        mb.binary(y, "max", {scalar = 0, out = out})
    else
        mb.convert(y, "f32", {out = out})
    end
end

--- Slices that minimize |A x - b|^2 / 2 + lambda TV(x), A being `project` and b the sinograms, by
-- FISTA from zero.
--
-- The values are line integrals in pixels: slices are attenuation per pixel. lambda has the unit of
-- b^2 over that of x. Each slice is reconstructed by itself. Memory: the sinograms twice and three
-- volumes, and what the operators take.
-- Returns the slices (row, y, x).
-- Errors: argument, shape, budget.
-- Reference: A. Beck, M. Teboulle, SIAM J. Imaging Sciences 2 (2009) 183.
fista.reconstruct = declared("tomo.fista", {
    {"sinograms", "array", "line integrals (row, angle, column)", rank = {3, 3}},
    {"angles", "list", "one per angle", unit = "rad"},
    options = fista.options,
}, function(sinograms, angles, options)
    arguments.angles(angles, "tomo.fista", "angles", sinograms.shape[2])
    local rows, cols = sinograms.shape[1], sinograms.shape[3]
    local side = options.size or cols
    local job = setmetatable({sinograms = sinograms, angles = angles, cols = cols, side = side,
        bound = bound_of(angles, side)}, {__index = options})
    if sinograms.dtype ~= "f32" then
        fail("dtype", "tomo.fista", "sinograms", "sinograms are %s; convert them: "
            .. "sinograms:cast \"f32\"", sinograms.dtype)
    end
    local shape, where = {rows, side, side}, {device = sinograms.device}
    local x, y, work = mb.zeros(shape, where), mb.zeros(shape, where), mb.empty(shape, where)
    local rays <close> = mb.empty({rows, #angles, cols}, where)
    local _ <close> = on_error(function()
        x:release()
        y:release()
        work:release()
    end)
    local t = 1
    for _ = 1, options.iterations do
        descend(job, y, work, rays)
        regularize(job, y, work) -- the next x
        local next_t = (1 + math.sqrt(1 + 4 * t * t)) / 2
        mb.binary(x, "sub", {b = work, reverse = true, out = x})
        mb.binary(x, "mul", {scalar = (t - 1) / next_t, out = x})
        mb.binary(x, "add", {b = work, out = y})
        x, work, t = work, x, next_t
    end
    y:release()
    work:release()
    return x
end)

return fista
