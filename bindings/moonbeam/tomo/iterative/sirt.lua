--- Simultaneous and ordered-subset reconstruction: `tomo.sirt` and `tomo.sart`. Functions over
-- operators, to be read, copied and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local solving = require "moonbeam.tomo.iterative.solving"
local subsets = require "moonbeam.tomo.iterative.subsets"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local sirt = {}

local RELAXATION = {"relaxation", "number", "factor of a correction", above = 0, below = 2,
    default = 1}

local function taper(default)
    return {"taper", "number", "how much more the middle of a ray is corrected than its ends: the "
        .. "power of 1 - (r / radius)^2 that weights its pixels; 0: all alike", min = 0, max = 8,
        default = default}
end

local NONNEGATIVE = {"nonnegative", "boolean", "no value below 0", default = false}

sirt.options = declared.options(
    {"iterations", "count", "corrections by all rays", min = 1, max = 10000, default = 100},
    RELAXATION, taper(0), NONNEGATIVE, solving.weights, solving.options)

sirt.sart_options = declared.options(
    {"iterations", "count", "passes over all rays", min = 1, max = 10000, default = 10},
    {"subsets", "count", "parts of the angles, every n-th one; the slices are corrected by one "
        .. "part after the other. The number of angles: SART proper; at most that many", min = 1,
        max = 1 << 24, default = 40}, RELAXATION, taper(1.2), NONNEGATIVE, solving.weights,
    solving.options)

-- x = x - relaxation D C A' W R (A x - b) for every part: D is the window of taper, R are the
-- inverse sums of rays, 1 / (A D 1), C those of pixels, 1 / (A' W 1) or what subsets.lua makes of
-- them. That is the method for A D.
local function solve(job, options, count)
    local x, work, misfit, objective = job.x, job:volume(), job:numbers(), job:numbers()
    local parts, relaxation = subsets.new(job, count, "lengths"), options.relaxation
    if relaxation > 1 and job.model.negative then
        for i, part in ipairs(parts) do
            part.most, part.found = parts:limit(i, relaxation)
        end
    end
    for k in job:steps() do
        mb.fill(objective, 0)
        for i, part in ipairs(parts) do
            job:residual(x, part.rays, part)
            if job:misfit(part.rays, misfit, part) then
                mb.binary(objective, "add", {b = misfit, out = objective})
            end
            if i == #parts and job:seen(k, objective) then
                return
            end
            mb.binary(part.rays, "mul", {b = part.lengths, out = part.rays})
            part.model.adjoint(part.rays, work, part.scale)
            mb.binary(work, "mul", {b = parts:sensitivity(i, relaxation), out = work})
            if part.found then
                vectors.add(x, work, part.most, part.found, -1)
            else
                mb.binary(x, "sub", {b = work, out = x})
            end
            if options.nonnegative then
                mb.binary(x, "max", {scalar = 0, out = x})
            end
        end
    end
end

--- Slices by the simultaneous iterative reconstruction technique: corrections by all rays at once,
-- divided by the lengths of the rays and by the sums of weights of the pixels.
--
-- Converges to the minimum of sum w (A x - b)^2 / length, slowly and evenly: the number of
-- iterations regularizes. The objective in the history is sum w (A x - b)^2 / 2, as of the other
-- methods; where no slices fit the data it may rise a little in the end. A few times the iterations
-- of cgls give the same. With a relaxation above 1 and the band-limited model, some steps of the
-- power method on a random slice say whether corrections would grow, which makes them shorter. The
-- values are line integrals in pixels: slices are attenuation per pixel. Each slice is
-- reconstructed by itself.
-- Memory: two volumes and the sinograms once, beside those given, two slices and two sinograms of
-- one slice for the sums (of all slices where each has weights of its own; with the band-limited
-- model the weights once more), and what the operators take; one volume more with a rule
-- (tolerance, noise), one slice more with a taper.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: P. Gilbert, J. Theor. Biol. 36 (1972) 105; J. Gregor, T. Benson, IEEE Trans. Med.
-- Imaging 27 (2008) 918
sirt.reconstruct = solving.method("tomo.sirt", sirt.options, function(job, options)
    solve(job, options, 1)
end)

--- Slices by corrections from one part of the angles after the other: SART, or SIRT with ordered
-- subsets.
--
-- A pass gets as far as many iterations of sirt, but with noise it ends in a cycle and not in a
-- minimum: a relaxation below 1 makes the cycle smaller. The parts are taken in an order in which
-- neighbors are far apart. The objective in the history is the sum over the parts, each where it is
-- reached. Like the window along a ray of the first description, the default taper corrects the
-- middle of a ray more than its ends. With few angles many slices fit the data, and a taper takes
-- one with little at the rim: 2 or 3 suits an object with empty space around it, 0 one that fills
-- the field of view. With the band-limited model a pass over n parts costs n times two transforms
-- of the slices: with fewer parts it is faster, and more passes are needed. Its weights are
-- negative beside a ray, so all parts divide by the same sums of the pixels: the largest of a part,
-- per angle. Those of the pixel-driven model are made again for each part, by a back-projection of
-- one slice. Memory: as sirt, and one part of the sinograms and one slice more.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument, dtype, shape, budget.
-- Reference: A. H. Andersen, A. C. Kak, Ultrasonic Imaging 6 (1984) 81; H. M. Hudson, R. S. Larkin,
-- IEEE Trans. Med. Imaging 13 (1994) 601
sirt.sart = solving.method("tomo.sart", sirt.sart_options, function(job, options)
    solve(job, options, options.subsets)
end)

return sirt
