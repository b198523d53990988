--- Maximum likelihood for Poisson data: `tomo.mlem` and `tomo.osem`. Functions over operators, to
-- be read, copied and changed. Axis order and units are those of tomo.lua.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local solving = require "moonbeam.tomo.iterative.solving"
local subsets = require "moonbeam.tomo.iterative.subsets"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local mlem = {}

-- What no ray that crosses the object is below.
local LEAST <const> = 1e-20

local DATA <const> = "counts or line integrals, 0 or more"

local shared = declared.options(
    {"start", "number", "value of all pixels at the start, if there is no x0; or fbp: a direct "
        .. "reconstruction, where it is less than a hundredth of its mean, that", above = 0,
        below = math.huge, words = {"fbp"}, default = 1},
    {"model", "any", "how rays are modeled: \"pixel\", or a table of operators with no negative "
        .. "weights (ray_model.lua)", default = "pixel"},
    {"negative", "choice", "negative data: refuse is an error, zero counts them as 0",
        choices = {"refuse", "zero"}, default = "refuse"},
    {"discrepancy", "number", "a slice is done when its data differ from A x by no more: twice the "
        .. "sum of A x - b + b log(b / A x), divided by the number of rays, is about 1 where the "
        .. "data are counts, and less is noise that is fitted", above = 0},
    declared.without(solving.options, "noise"))

mlem.options = declared.options(
    {"iterations", "count", "corrections by all rays", min = 1, max = 10000, default = 50}, shared)

mlem.osem_options = declared.options(
    {"iterations", "count", "passes over all rays", min = 1, max = 10000, default = 5},
    {"subsets", "count", "parts of the angles, every n-th one; at most the number of angles",
        min = 1, max = 1 << 24, default = 10}, shared)

-- Raises where data are negative or no numbers, unless they are to be 0, and where the model may
-- make negative rays.
local function check(job, options)
    local op = job.op
    if job.model.negative then
        fail("argument", op, "model", "model is \"%s\", some of whose weights are negative; "
            .. "likelihoods need rays of 0 or more: use \"pixel\"", job.model.name)
    end
    solving.check_range(job.b, options.negative == "refuse" and 0 or -math.huge, math.huge, op,
        "sinograms", "; count those below as 0 by the option negative = \"zero\", or use a "
            .. "least-squares method such as cgls")
    if options.x0 then
        solving.check_range(options.x0, 0, math.huge, op, "x0", "; a slice of 0 stays 0")
    end
end

-- out = sum of A x - b log(A x) over the rays that cross a pixel: the negative logarithm of the
-- likelihood but for a constant.
local function likelihood(part, total, out)
    local work = part.work
    vectors.sum(part.rays, total)
    mb.binary(part.rays, "max", {scalar = LEAST, out = work})
    mb.unary(work, "log", {out = work})
    mb.binary(work, "mul", {b = part.crossed, out = work})
    vectors.dot(work, part.b, out)
    mb.binary(total, "sub", {b = out, out = out})
end

-- least = the negative logarithm of the likelihood where A x = b.
local function find_least(parts, total, part_of, least)
    for _, part in ipairs(parts) do
        mb.binary(part.b, "mul", {b = part.crossed, out = part.rays})
        likelihood(part, total, part_of)
        mb.binary(least, "add", {b = part_of, out = least})
    end
end

-- ax = b / (A x): 0 on rays without a pixel, which say nothing.
local function divide(ax, b, crossed)
    mb.binary(ax, "max", {scalar = LEAST, out = ax})
    mb.binary(b, "div", {b = ax, out = ax})
    mb.binary(ax, "mul", {b = crossed, out = ax})
end

-- Slices of a direct reconstruction, made positive: a pixel of 0 stays 0.
local function lift(job)
    local mean, single = job:numbers(), job:hold(mb.empty({job.rows, 1, 1}, job.where))
    mb.binary(job.x, "max", {scalar = 0, out = job.x})
    vectors.sum(job.x, mean)
    mb.binary(mean, "mul", {scalar = 0.01 / (job.side * job.side), out = mean})
    local flat <close> = single:reshape({job.rows})
    mb.convert(mean, "f32", {out = flat})
    mb.binary(job.x, "max", {b = single, out = job.x})
end

-- x = x / (A' 1) A' (b / (A x)) for every part.
local function solve(job, options, count)
    check(job, options)
    if options.negative == "zero" then
        local sinograms = job.b
        job.b = job:rays()
        mb.binary(sinograms, "max", {scalar = 0, out = job.b})
    end
    if options.start == "fbp" and not options.x0 then
        lift(job)
    end
    local x, work = job.x, job:volume()
    local parts = subsets.new(job, count, "crossed", job.measures)
    local total, part_of, objective = job:numbers(), job:numbers(), job:numbers()
    local least, misfit = job:numbers(), job:numbers()
    if options.discrepancy then
        find_least(parts, total, part_of, least)
        job:count_rays(parts.sums)
    end
    for k in job:steps() do
        mb.fill(objective, 0)
        for i, part in ipairs(parts) do
            part.model.forward(x, part.rays)
            if job.measures then
                likelihood(part, total, part_of)
                mb.binary(objective, "add", {b = part_of, out = objective})
            end
            if i == #parts and job.measures then
                mb.binary(objective, "sub", {b = least, out = misfit})
            end
            if i == #parts and job:seen(k, objective, misfit) then
                return
            end
            divide(part.rays, part.b, part.crossed)
            part.model.adjoint(part.rays, work)
            mb.binary(x, "mul", {b = work, out = x})
            mb.binary(x, "mul", {b = parts:sensitivity(i, 1), out = x})
        end
    end
end

--- Slices of greatest likelihood for Poisson data, such as emission or fluorescence: x = x / (A' 1)
-- A' (b / (A x)).
--
-- Data are counts along rays, not negative; line integrals of absorption may be taken where noise
-- is small. Slices stay positive, and A x keeps the sum of b. The objective in the history is sum
-- of A x - b log(A x). The start must be positive; what is 0 stays 0. Each slice is reconstructed
-- by itself. The check of the data waits for the device once. Memory: two volumes and the sinograms
-- once, beside those given, two slices and two sinograms of one slice for the sums, and what the
-- operators take; the sinograms once more for negative = "zero", and once for history, callback
-- or a rule (tolerance, discrepancy); one volume more with a rule.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument (negative data), dtype, shape, budget.
-- Reference: L. A. Shepp, Y. Vardi, IEEE Trans. Med. Imaging 1 (1982) 113
mlem.reconstruct = solving.method("tomo.mlem", mlem.options, function(job, options)
    solve(job, options, 1)
end, DATA)

--- Like mlem, by one part of the angles after the other: about as many times faster as there are
-- parts, but with noise it ends in a cycle.
--
-- Each part is divided by its own sums. The objective in the history is the sum over the parts,
-- each where it is reached. Memory: as mlem.
-- Returns the slices (row, y, x), and {iterations, done = how many slices a rule ended, history =
-- objectives (iteration, row), f64, if asked for}.
-- Errors: argument (negative data), dtype, shape, budget.
-- Reference: H. M. Hudson, R. S. Larkin, IEEE Trans. Med. Imaging 13 (1994) 601
mlem.osem = solving.method("tomo.osem", mlem.osem_options, function(job, options)
    solve(job, options, options.subsets)
end, DATA)

return mlem
