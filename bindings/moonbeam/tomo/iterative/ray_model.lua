--- What projects and back-projects for the iterative methods: a model of the rays, as data.
--
-- A model is a table: cols, side, angles (the extents of sinograms and slices), bound (no
-- eigenvalue of A' A is larger), forward(x, out) = A x and adjoint(rays, out, scale) = scale A'
-- rays (scale: 1 if it is left out), and where it has one normal(x, out) = A' A x. part(first,
-- step) is the model of every step-th angle. The right-hand side, projector and normal operator of
-- a model are one and the same A: what mixes them diverges. Operators of one's own are a table with
-- these fields.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"

local ray_model = {}

-- Every step-th element from `first`.
local function picked(list, first, step)
    local part = {}
    for i = first, list and #list or 0, step do
        part[#part + 1] = list[i]
    end
    return list and part
end

-- The geometry of every step-th angle.
local function part_of(g, first, step)
    return setmetatable({angles = picked(g.angles, first, step),
        shifts = picked(g.shifts, first, step)}, {__index = g})
end

-- Pixels on the longest ray.
local function length_of(g)
    return math.min(g.circle > 0 and g.circle or math.sqrt(2), math.sqrt(2)) * g.side
end

-- The pixel-driven model: the weights of a pixel are 1 at each angle, and no ray sums more than
-- the pixels on it; the sums of neighboring bins vary by up to 10 %.
local function pixel(g)
    local model = {name = "pixel", cols = g.cols, side = g.side, angles = #g.angles,
        bound = 1.2 * #g.angles * length_of(g)}
    function model.forward(x, out)
        mb.project(x, g.angles, {cols = g.cols, center = g.center, shifts = g.shifts,
            circle = g.circle, out = out})
    end
    function model.adjoint(rays, out, scale)
        mb.backproject(rays, g.angles, {center = g.center, shifts = g.shifts,
            size = {g.side, g.side}, circle = g.circle, accuracy = "exact",
            scale = scale or 1, out = out})
    end
    function model.part(first, step)
        return pixel(part_of(g, first, step))
    end
    return model
end

-- The band-limited model of the direct Fourier method: a ray sums no more than the pixels on it.
-- Its weights are negative beside a pixel's own bin.
local function fourier(g)
    local model = {name = "fourier", cols = g.cols, side = g.side, angles = #g.angles,
        bound = 1.05 * #g.angles * length_of(g), negative = true}
    function model.forward(x, out)
        mb.fourier_project(x, g.angles, {cols = g.cols, center = g.center, shifts = g.shifts,
            circle = g.circle, out = out})
    end
    function model.adjoint(rays, out, scale)
        mb.fourier_reconstruct(rays, g.angles, {center = g.center, shifts = g.shifts,
            size = {g.side, g.side}, circle = g.circle, filter = "none", scale = scale or 1,
            out = out})
    end
    function model.part(first, step)
        return fourier(part_of(g, first, step))
    end
    return model
end

--- The models by name: functions of a geometry {angles, cols, side, center, shifts, circle}.
ray_model.models = {pixel = pixel, fourier = fourier}

-- The extents that a model must have.
local EXTENTS = {"cols", "side", "angles"}

--- The model with this name of a geometry; a table of one's own is checked.
function ray_model.of(model, geometry, op)
    if type(model) == "string" then
        if not ray_model.models[model] then
            fail("argument", op, "model", "model is the string '%s'; it must be \"pixel\", or a "
                .. "table of operators", model)
        end
        return ray_model.models[model](geometry)
    end
    for _, name in ipairs {"forward", "adjoint", "bound", "cols", "side", "angles"} do
        if type(model) ~= "table" or model[name] == nil then
            fail("argument", op, "model", "model has no %s; give a name, or {forward, adjoint, "
                .. "bound, cols, side, angles}", name)
        end
    end
    for _, name in ipairs(EXTENTS) do
        local wanted = name == "angles" and #geometry.angles or geometry[name]
        if model[name] ~= wanted then
            fail("shape", op, "model", "model.%s is %s; the call has %d", name,
                tostring(model[name]), wanted)
        end
    end
    return model
end

return ray_model
