--- Parts of the angles, for methods that correct slices by one part after the other, and the sums
-- of the model's rows and columns by which they divide.

local mb = require "moonbeam"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local subsets = {}
subsets.__index = subsets

-- 1, ..., n in an order in which neighbors are far apart: that of the reversed bits.
local function spread(n)
    local order, bits = {}, 0
    while 1 << bits < n do
        bits = bits + 1
    end
    for i = 0, (1 << bits) - 1 do
        local reversed = 0
        for bit = 0, bits - 1 do
            reversed = reversed | (i >> bit & 1) << (bits - 1 - bit)
        end
        order[#order + 1] = reversed < n and reversed + 1 or nil
    end
    return order
end

-- What divides as a sum at least.
local TINY <const> = 1e-20

-- a = 1 / a, 0 where a is 0; a is not negative. `scale` is a factor of the result, `some` is room;
-- what is below `least` counts as that.
local function invert(a, scale, some, least)
    vectors.indicate(a, some)
    mb.binary(a, "max", {scalar = least, out = a})
    mb.binary(some, "div", {b = a, out = a})
    mb.binary(a, "mul", {scalar = scale, out = a})
end

-- Room for rays of any part, as one dense array each: `of(angles)`.
local function room(job, angles)
    local rows, cols = job.rows, job.model.cols
    local flat = job:hold(mb.empty({rows * angles * cols}, job.where))
    return function(n)
        local view <close> = flat:view({1, rows * n * cols})
        return job:hold(view:reshape({rows, n, cols}))
    end
end

-- Every count-th angle from `first`: a view, which the job holds.
local function picked(job, array, first, count)
    return array and job:hold(array:view(mb.all, {first, job.model.angles, count}, mb.all))
end

-- Least factor of a window, and least sum of its factors along a ray, as a part of the side: what a
-- ray with little weight says is noise, and the band-limited model spreads it. With a part of one
-- angle and a window of power 3, a correction by 1 would grow without it.
local LEAST <const>, SHORTEST <const> = 0.01, 1 / 16

-- Least length of a ray in pixels, where some weights of the model are negative. A ray that touches
-- a corner of a pixel has nearly no length in the sums, and the band-limited model gives it more:
-- its corrections would grow from step to step.
local TOUCHING <const> = 1

local function shortest(job, window)
    return math.max(window and SHORTEST * job.side or TINY, job.model.negative and TOUCHING or TINY)
end

-- (1 - (r / radius)^2)^power, r being the distance from the middle.
local function window_of(job, power)
    local n, squares = job.side, {}
    for i = 1, n do
        squares[i] = ((i - (n + 1) / 2) / job.radius) ^ 2
    end
    local window, line <close> = mb.ones({1, n, n}, job.where), mb.array(squares, job.where)
    for _, shape in ipairs {{1, 1, n}, {1, n, 1}} do
        local along <close> = line:reshape(shape)
        mb.binary(window, "sub", {b = along, out = window})
    end
    mb.binary(window, "max", {scalar = 0, out = window})
    mb.binary(window, "pow", {scalar = power, out = window})
    return mb.binary(window, "max", {scalar = LEAST, out = window})
end

-- The sums of rays: "lengths", their inverse, 0 of rays without a pixel; or "crossed", 0 of those
-- and 1 of others. A window weights their pixels.
local function sums_of(job, kind, window)
    local shape = {1, job.model.angles, job.model.cols}
    local one <close> = window and window:view() or mb.ones({1, job.side, job.side}, job.where)
    local sums, some <close> = job:hold(mb.empty(shape, job.where)), mb.empty(shape, job.where)
    local by = job.model.sums or job.model
    by.forward(one, sums)
    if kind == "lengths" then
        invert(sums, 1, some, shortest(job, window))
    else
        vectors.indicate(sums, sums)
    end
    return sums
end

-- Rays on either side that see a pixel beside them, where weights of the model are negative.
local BESIDE <const> = 2

-- The weights become the largest of a ray and of those beside it: else the pixels of a ray with
-- little weight have small sums, and corrections by the rays beside it grow.
local function widen(self)
    local cols, wide = self.job.model.cols, self.job:hold(self.weights:copy())
    for far = 1, math.min(BESIDE, cols - 1) do
        local low, high = {1, cols - far}, {far + 1, cols}
        for _, pair in ipairs {{low, high}, {high, low}} do
            local to <close> = wide:view(mb.all, mb.all, pair[1])
            local from <close> = self.weights:view(mb.all, mb.all, pair[2])
            mb.binary(to, "max", {b = from, out = to})
        end
    end
    self.weights = wide
end

-- Sums of the pixels for all parts: the largest of a part, per angle of that part. Where weights of
-- the model are negative, a correction lowers the misfit in the metric of its own sums only. A part
-- that sees a pixel at the edge of the detector has sums near 0 there, which others have not: from
-- part to part slices would grow.
local function make_common(self)
    mb.fill(self.inverse, 0)
    for _, part in ipairs(self) do
        local by = part.model.sums or part.model
        part.scale = 1 / part.model.angles
        by.adjoint(part.weights, self.some, part.scale)
        mb.binary(self.inverse, "max", {b = self.some, out = self.inverse})
    end
    self.common = true
end

--- The parts, a list of {model, b, rays, root, weights, work, scale, lengths or crossed}, in the
-- order in which they are taken. b is the data, copied if there are several parts; rays is to use,
-- and `work` where it is asked for; they are the same memory in all parts. `sums` is the kind of
-- sums of rays; of all rays they are in the field `sums`. With the option taper > 0 there is
-- `window`, the factors of pixels.
function subsets.new(job, count, sums, work)
    local angles, self = job.model.angles, setmetatable({job = job}, subsets)
    local taper = job.options.taper or 0
    self.window = taper > 0 and job:hold(window_of(job, taper)) or nil
    count = math.min(count, angles)
    self.weights = job.root and job:hold(job.root * job.root)
        or job:hold(mb.ones({1, angles, job.model.cols}, job.where))
    if job.root and job.model.negative then
        widen(self)
    end
    local all, most = sums_of(job, sums, self.window), (angles + count - 1) // count
    self.sums = all
    local rays, works = room(job, most), work and room(job, most)
    for i, first in ipairs(spread(count)) do
        local n = (angles - first) // count + 1
        local b <close> = job.b:view(mb.all, {first, angles, count}, mb.all)
        self[i] = {model = count > 1 and job.model.part(first, count) or job.model,
            b = count > 1 and job:hold(b:copy()) or job.b, rays = rays(n), scale = 1,
            work = works and works(n),
            weights = picked(job, self.weights, first, count),
            root = picked(job, job.root, first, count), [sums] = picked(job, all, first, count)}
    end
    local slices = {self.weights.shape[1], job.side, job.side}
    self.inverse = job:hold(mb.empty(slices, job.where))
    self.some = job:hold(mb.empty(slices, job.where))
    if job.model.negative and count > 1 then
        make_common(self)
    end
    return self
end

--- The inverse sums of the pixels of a part, times `scale` and the window: one over A' W 1, 0 where
-- that is 0. They are made again for each of several parts, but for common ones, of which one
-- correction is a back-projection times the factor `scale` of the part and these.
function subsets:sensitivity(i, scale)
    if self.made == i or self.common and self.made then
        return self.inverse
    end
    if not self.common then
        local by = self[i].model.sums or self[i].model
        by.adjoint(self[i].weights, self.inverse)
    end
    invert(self.inverse, scale, self.some, TINY)
    if self.window then
        mb.binary(self.inverse, "mul", {b = self.window, out = self.inverse})
    end
    self.made = i
    return self.inverse
end

-- Steps of the power method, and the largest eigenvalue of a correction that is left as it is. From
-- 2 on slices grow, and what the method finds is a little too small.
local POWERS <const>, LARGEST <const> = 24, 1.8

--- Factors a / b, numbers per slice, of the corrections by part i with `scale` that keep them from
-- growing: LARGEST over the largest eigenvalue of C A' W R A, at most 1.
function subsets:limit(i, scale)
    local job, part = self.job, self[i]
    local count, where = self.weights.shape[1], {seed = 1, low = -1, device = job.device}
    local x <close> = mb.random({count, job.side, job.side}, where)
    local y <close> = mb.empty(x.shape, job.where)
    local rays <close> = mb.empty({count, part.model.angles, job.model.cols}, job.where)
    local before <close> = vectors.numbers(count, job.device)
    local after <close> = vectors.numbers(count, job.device)
    local one <close> = mb.ones({count}, {dtype = "f64", device = job.device})
    for _ = 1, POWERS do
        vectors.square(x, before)
        part.model.forward(x, rays)
        job:rooted(rays, rays, part)
        job:rooted(rays, rays, part)
        mb.binary(rays, "mul", {b = part.lengths, out = rays})
        part.model.adjoint(rays, y, part.scale)
        mb.binary(y, "mul", {b = self:sensitivity(i, scale), out = y})
        vectors.square(y, after)
        vectors.ratio(after, before, before)
        mb.unary(before, "sqrt", {out = after})
        mb.fill(x, 0)
        vectors.add(x, y, one, after)
    end
    local a, b = job:numbers(), job:numbers()
    mb.fill(a, LARGEST)
    mb.binary(after, "max", {scalar = LARGEST, out = after})
    mb.binary(b, "add", {b = after, out = b})
    return a, b
end

return subsets
