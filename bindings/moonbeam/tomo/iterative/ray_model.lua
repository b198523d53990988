--- What projects and back-projects for the iterative methods: a model of the rays, as data.
--
-- A model is a table: cols, side, angles (the extents of sinograms and slices), bound (no
-- eigenvalue of A' A is larger), forward(x, out) = A x, and adjoint(rays, out, scale) = scale A'
-- rays (scale: 1 if it is left out). Where it has one: normal(x, out) = A' A x; or, if that is a
-- convolution, kernel(device, added) = the spectrum of A' A + added for mb.normal_operator, and
-- circle; the rows of A are then as long as `period`, and forward gives those columns of them that
-- the detector has. part(first, step) is the model of every step-th angle. negative: some weights
-- are; then `sums` is a model whose sums of rows and columns are lengths. The right-hand side,
-- projector and normal operator of a model are one and the same A: what mixes them diverges.
-- Operators of one's own are a table with these fields.

local mb = require "moonbeam"
local direct_start = require "moonbeam.tomo.iterative.direct_start"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

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

-- How far the axis of an angle is from the middle of the detector at most.
local function off_axis(g)
    local middle, most = (g.cols - 1) / 2, 0
    for i = 1, g.shifts and #g.shifts or 1 do
        local shift = g.shifts and g.shifts[i] or 0
        most = math.max(most, math.abs((g.center or middle) + shift - middle))
    end
    return most
end

-- Distances of the axis from the middle fall into few classes, each with the rows of its farthest
-- axis: 0, up to half a column, and from there in steps of a part of the detector.
local HALF <const>, PARTS <const> = 0.5, 8

local function class_of(cols, off)
    local step = math.max(1, cols / PARTS)
    return off <= 0 and 0 or off <= HALF and HALF or math.ceil(off / step) * step
end

-- Rows are no longer than this; an axis that needs more is refused by the operators.
local LONGEST <const> = 1 << 26

-- Sizes by what is needed: a good size is that of all needs from the one it was asked for up to
-- itself, so that few questions answer those of a whole detector.
local sizes = {}
local TOGETHER <const> = 1024

local function good_size(need)
    if not sizes[need] then
        local at, last = need - need % TOGETHER, need - need % TOGETHER + TOGETHER - 1
        while at <= need do
            local size = mb.fft.good_size(math.max(at, 1))
            while size % 2 == 1 do
                size = mb.fft.good_size(size + 1)
            end
            for n = at, math.min(size, last) do
                sizes[n] = size
            end
            at = size + 1
        end
    end
    return sizes[need]
end

-- The length of rows that repeat so far away that no pixel sees it: even, and good for an FFT. Of a
-- convolution no pixel sees what another one's rays repeat, which takes twice as much. Operators
-- about no convolution (`pair`) are nearly a quarter faster with the shorter rows.
local function period_of(g, off)
    local far = off < LONGEST and class_of(g.cols, off) or LONGEST
    local need = math.min(LONGEST, math.max(2 * g.cols, g.cols + length_of(g) + 2 * far))
    return good_size(math.ceil(g.pair and need / 2 or need))
end

--- The length of the rows of the band-limited model of a geometry.
function ray_model.period(g)
    return period_of(g, off_axis(g))
end

--- The farthest axis from the middle for which the normal operator is a convolution; below 0 if
-- there is none. Rays of the mask that miss the detector are either left out, and then it is none
-- (they are not the same at every angle), or known to be 0. Without a word (`beyond`) they are 0 if
-- the mask is no wider than the detector and the axis within a part of it from the middle.
function ray_model.farthest_convolved(g)
    local inside = g.circle > 0 and (g.cols + 1 - length_of(g)) / 2 or -1
    if g.beyond == "nothing" then
        return math.huge
    elseif g.beyond == "unknown" or inside < 0 then
        return inside
    end
    return math.max(inside, g.cols / PARTS)
end

-- The band-limited model of the direct Fourier method: a ray sums no more than the pixels on it.
-- Its weights are negative beside a pixel's own bin. With a kernel the rows are those of a detector
-- as wide as the period, 0 outside of the real one, and the normal operator is a convolution about
-- any axis. `forward` gives the columns of the real one.
local function fourier(g)
    local off = off_axis(g)
    local period = period_of(g, off)
    local model = {name = "fourier", cols = g.cols, side = g.side, angles = #g.angles,
        circle = g.circle, bound = 1.05 * #g.angles * length_of(g), negative = true}
    function model.forward(x, out)
        mb.fourier_project(x, g.angles, {cols = g.cols, center = g.center, shifts = g.shifts,
            circle = g.circle, period = period, out = out})
    end
    function model.adjoint(rays, out, scale)
        mb.fourier_reconstruct(rays, g.angles, {center = g.center, shifts = g.shifts,
            size = {g.side, g.side}, circle = g.circle, filter = "none", scale = scale or 1,
            period = period, out = out})
    end
    model.sums = pixel(g)
    if not g.pair and off <= ray_model.farthest_convolved(g) then
        model.period = period
        function model.kernel(device, added)
            local kernel = mb.normal_kernel(g.angles, g.cols, {size = {g.side, g.side},
                period = period, device = device})
            if added > 0 then
                mb.binary(kernel, "add", {scalar = added, out = kernel})
            end
            return kernel
        end
    end
    function model.part(first, step)
        return fourier(part_of(g, first, step))
    end
    return model
end

--- The models by name: functions of a geometry {angles, cols, side, center, shifts, circle,
-- beyond, pair (the method convolves nothing)}. What tells what they take also looks at `start`
-- and, of a half acquisition that begins with a direct reconstruction, `wide`: the columns of its
-- field of view.
ray_model.models = {pixel = pixel, fourier = fourier}

--- Their names.
ray_model.names = {"pixel", "fourier"}

-- The operators of a model, with what they take for `rows` slices: {name, inputs, parameters}.
local OPERATORS = {
    pixel = function(rows, g)
        return {{"backproject", {{"f32", rows, #g.angles, g.cols}}, {size = {g.side, g.side},
            accuracy = "exact"}}, {"project", {{"f32", rows, g.side, g.side}},
            {angles = g.angles, cols = g.cols}}}
    end,
    fourier = function(rows, g)
        local grid = mb.op.estimate("normal_kernel", {}, {angles = g.angles, cols = g.cols,
            size = {g.side, g.side}}).results[1].shape
        return {{"fourier_reconstruct", {{"f32", rows, #g.angles, g.cols}},
            {size = {g.side, g.side}, filter = "none"}},
            {"fourier_project", {{"f32", rows, g.side, g.side}},
                {angles = g.angles, cols = g.cols}},
            {"normal_operator", {{"f32", rows, g.side, g.side}, {"f32", table.unpack(grid)}}, {}}}
    end,
}

-- What the operators of a model with rows of this length take for so many slices and angles, and
-- what the start takes.
local function scratch_of(name, g, period, slices, angles, device)
    local cols, side, count = g.cols, g.side, #angles
    local list = {}
    local function take(operator, shape, params)
        list[#list + 1] = mb.op.estimate(operator, {{"f32", slices, table.unpack(shape)}}, params,
            {device = device}).scratch
    end
    if name == "fourier" then
        take("fourier_reconstruct", {count, cols}, {size = {side, side}, circle = g.circle,
            filter = "none", period = period})
        take("fourier_project", {side, side}, {angles = angles, cols = cols,
            circle = g.circle, period = period})
    end
    if g.start == "fbp" and count == #g.angles then
        take("fourier_reconstruct", {count, g.wide or cols}, direct_start.options(g, period))
    end
    return list
end

-- Distances from `nearest` to `farthest` that meet every class, with each one's farthest axis.
local function of_classes(g, nearest, farthest)
    local step = math.max(1, g.cols / PARTS)
    local list = {nearest, math.min(ray_model.farthest_convolved(g), farthest), HALF}
    for k = 1, math.ceil(farthest / step) do
        list[#list + 1] = math.min(k * step, farthest)
    end
    return list
end

--- Distances of the axis from the middle among which is the one for which a method takes most, of
-- those from `nearest` to `farthest`: what a model takes depends on the length of its rows, on
-- whether it has a kernel and on the size of the slices. `geometry_at(off)` is the geometry of a
-- distance; if its slices are larger for farther axes (`grows`), distances are a pixel apart, of
-- which each size has one. `rows`, `counts`: the numbers of slices and of angles that its operators
-- get.
function ray_model.deciding(name, geometry_at, nearest, farthest, rows, counts, device, grows)
    local nearest_one, kept = geometry_at(nearest), {}
    if name ~= "fourier" and nearest_one.start ~= "fbp" then
        return {grows and farthest or nearest}
    end
    local parts = {} -- as many angles as the parts have: what is taken depends on their number
    for i, count in ipairs(counts) do
        parts[i] = table.move(nearest_one.angles, 1, count, 1, {})
    end
    local function take(off)
        if off < nearest or off > farthest then
            return
        end
        local g = geometry_at(off)
        local period = period_of(g, off)
        local own = {off = off, inside = off <= ray_model.farthest_convolved(g), g.side, g.wide}
        for _, slices in ipairs(rows) do
            for _, angles in ipairs(parts) do
                local list = scratch_of(name, g, period, slices, angles, device)
                table.move(list, 1, #list, #own + 1, own)
            end
        end
        for _, other in ipairs(kept) do
            local less = other.inside == own.inside
            for k, bytes in ipairs(own) do
                less = less and bytes <= other[k]
            end
            if less then
                return -- the other one takes as much at least
            end
        end
        kept[#kept + 1] = own
    end
    take(farthest) -- which leaves out most others
    for off = farthest - 1, grows and nearest or math.huge, -1 do
        take(off)
    end
    for _, off in ipairs(of_classes(nearest_one, nearest, farthest)) do
        take(off)
    end
    return tables.mapped(kept, "off")
end

local function greatest_divisor(a, b)
    return b == 0 and a or greatest_divisor(b, a % b)
end

--- The number of slices that a model with this name makes together on a device.
function ray_model.packet(model, rows, geometry, device)
    local packet, uses = 1, OPERATORS[model](rows, geometry)
    if geometry.start == "fbp" then
        uses[#uses + 1] = {"fourier_reconstruct", {{"f32", rows, #geometry.angles, geometry.cols}},
            direct_start.options(geometry)}
    end
    for _, use in ipairs(uses) do
        local operator, inputs, params = table.unpack(use)
        for _, split in ipairs(mb.op.estimate(operator, inputs, params, {device = device}).split) do
            if split.axis == 1 then
                packet = packet // greatest_divisor(packet, split.packet) * split.packet
            end
        end
    end
    return packet
end

-- The extents that a model must have.
local EXTENTS = {"cols", "side", "angles"}

--- The model with this name of a geometry, whose kernels are made once and stay in `held`, a table
-- of arrays for many calls on one device, under names that begin with `owner`.
function ray_model.held(name, geometry, held, owner)
    local model = ray_model.models[name](geometry)
    local make = model.kernel
    if make then
        function model.kernel(device, added)
            local key = ("%s: kernel %s %d %a"):format(owner, name, model.side, added)
            held[key] = held[key] or make(device, added)
            return held[key]:view()
        end
    end
    return model
end

--- The model with this name of a geometry; a function of the geometry is called; a table of one's
-- own is checked.
function ray_model.of(model, geometry, op)
    if type(model) == "function" then
        return model(geometry)
    end
    if type(model) == "string" then
        if not ray_model.models[model] then
            fail("argument", op, "model", "model is the string '%s'; it must be %s, or a table of "
                .. "operators", model, table.concat(ray_model.names, ", "))
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
