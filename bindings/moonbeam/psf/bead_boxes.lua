-- Boxes about beads as lists of Lua: read from an image, resampled at fractions of a voxel, and
-- what lies under a bead. Extents are {z, y, x}; the pool has one box of a size that depends on the
-- extents of the image and of the box alone.

local bead_boxes = {}

local LOBES <const> = 4 -- of Lanczos' kernel, on either side
local STRAY <const> = 3 -- voxels: how far a bead may be aligned from its maximum
local MARGIN <const> = LOBES + STRAY
local SAMPLES <const>, OVER <const> = 1 << 14, 4 -- of the surroundings; at least, and boxes of them
local FAR <const> = 0.75 -- of these samples are nearer to a bead than those that are taken
local FEW <const> = 100 -- samples: fewer say nothing of what lies under a bead
local CLIP <const> = 3 -- standard deviations of the smoothed image
local UNPACKED <const> = 128 -- values that are unpacked at a time

bead_boxes.STRAY = STRAY

--- The median of a list, which is sorted; 0 of none.
function bead_boxes.median(list)
    table.sort(list)
    local n = #list
    return n > 0 and (list[(n + 1) // 2] + list[n // 2 + 1]) / 2 or 0
end

--- The numbers of raw f32.
function bead_boxes.floats(raw)
    local list, count = {}, #raw // 4
    for first = 1, count, UNPACKED do
        local here = math.min(UNPACKED, count - first + 1)
        local values = {string.unpack("<" .. ("f"):rep(here), raw, 4 * first - 3)}
        table.move(values, 1, here, first, list)
    end
    return list
end

--- The raw values of a box of an array that starts at {z, y, x} (1-based); "" in a dry run.
function bead_boxes.raw(a, first, size)
    local ranges = {}
    for i, at in ipairs(first) do
        ranges[i] = {at, at + size[i] - 1}
    end
    local view <close> = a:view(table.unpack(ranges))
    local copy <close> = view:copy()
    return a.device.dry and "" or copy:to_string()
end

-- The extents of a box that is larger, at most the image's.
local function wider(shape, size, more)
    local extents = {}
    for i, n in ipairs(shape) do
        extents[i] = math.min(n, more(size[i]))
    end
    return extents
end

-- Where such a box starts about a place, 1-based.
local function start_of(shape, extents, at)
    local first = {}
    for i, n in ipairs(shape) do
        first[i] = math.max(1, math.min(n - extents[i] + 1, at[i] - extents[i] // 2))
    end
    return first
end

local function with_margin(n)
    return n > 1 and n + 2 * MARGIN or 1
end

local function surroundings(n)
    return n > 1 and 3 * n or 1
end

--- Takes what reading a bead takes, in a dry run.
function bead_boxes.rehearse(real, smooth, size)
    for _, a in ipairs {real, smooth} do
        bead_boxes.raw(a, {1, 1, 1}, wider(real.shape, size, surroundings))
    end
    bead_boxes.raw(real, {1, 1, 1}, wider(real.shape, size, with_margin))
end

--- The values of a box and its margin about a bead: {raw, extents, before: how many samples of
-- every axis lie before the box}.
function bead_boxes.read(real, bead, size)
    local extents = wider(real.shape, size, with_margin)
    local first, before = start_of(real.shape, extents, bead), {}
    for i = 1, 3 do
        before[i] = bead[i] - (size[i] - 1) // 2 - first[i]
    end
    return {raw = bead_boxes.raw(real, first, extents), extents = extents, before = before}
end

-- ---- what lies under a bead ----

-- Samples of a region: lists of the squared distance to the next bead (in boxes), of smoothed and
-- of raw values. Samples in the box of a bead are left out where `outside`.
local function samples_of(raw, smoothed, extents, first, places, size, outside)
    local nx, plane, count = extents[3], extents[2] * extents[3], #raw // 4
    local most = math.max(SAMPLES, OVER * size[1] * size[2] * size[3])
    local stride = math.max(1, count // most) | 1
    local distances, levels, values = {}, {}, {}
    local row, partial = -1, {}
    for at = 0, count - 1, stride do
        local here, x = at // nx, at % nx + first[3]
        if here ~= row then
            row = here
            local z, y = at // plane + first[1], here % extents[2] + first[2]
            for k, place in ipairs(places) do
                local dz, dy = math.abs(z - place[1]), math.abs(y - place[2])
                partial[k] = {(dz / size[1]) ^ 2 + (dy / size[2]) ^ 2,
                    dz <= size[1] // 2 and dy <= size[2] // 2, place[3]}
            end
        end
        local nearest, inside = math.huge, false
        for k = 1, #places do
            local each = partial[k]
            local dx = math.abs(x - each[3])
            nearest = math.min(nearest, each[1] + (dx / size[3]) ^ 2)
            inside = inside or each[2] and dx <= size[3] // 2
        end
        if not (outside and inside) then
            distances[#distances + 1] = nearest
            levels[#levels + 1] = string.unpack("<f", smoothed, 4 * at + 1)
            values[#values + 1] = string.unpack("<f", raw, 4 * at + 1)
        end
    end
    return distances, levels, values
end

local function middle_of(levels)
    local list = table.move(levels, 1, #levels, 1, {})
    local level = bead_boxes.median(list)
    for i, value in ipairs(list) do
        list[i] = math.abs(value - level)
    end
    return level, 1.4826 * bead_boxes.median(list)
end

--- The mean and the variance of what lies about a bead, away from it and from all others: of the
-- quarter of the samples that are furthest from beads, where the smoothed image is within 3
-- standard deviations of its median there. A mean of raw values is exact where a median of counts
-- is a whole number; the smoothed image chooses them, so noise is cut off on both sides alike.
function bead_boxes.under(real, smooth, bead, found, size)
    local extents = wider(real.shape, size, surroundings)
    local first, places = start_of(real.shape, extents, bead), {}
    for _, other in ipairs(found) do
        local near = true
        for i = 1, 3 do
            near = near and other[i] > first[i] - size[i] and other[i] < first[i] + extents[i]
                + size[i]
        end
        places[#places + 1] = near and other or nil
    end
    local raw, smoothed = bead_boxes.raw(real, first, extents),
        bead_boxes.raw(smooth, first, extents)
    local distances, levels, values = samples_of(raw, smoothed, extents, first, places, size, true)
    if #values < FEW then
        distances, levels, values = samples_of(raw, smoothed, extents, first, places, size, false)
    end
    local sorted = table.move(distances, 1, #distances, 1, {})
    table.sort(sorted)
    local least, far, chosen = sorted[math.max(1, math.floor(FAR * #sorted))], {}, {}
    for i, distance in ipairs(distances) do
        if distance >= least then
            far[#far + 1], chosen[#chosen + 1] = levels[i], values[i]
        end
    end
    local level, noise = middle_of(far)
    local sum, square, count = 0, 0, 0
    for i, value in ipairs(chosen) do
        if noise == 0 or math.abs(far[i] - level) <= CLIP * noise then
            sum, square, count = sum + value, square + value * value, count + 1
        end
    end
    local mean = sum / count
    return mean, math.max(0, square / count - mean * mean)
end

-- ---- samples between voxels ----

-- The eight weights of samples -3 ... 4 for a value at a fraction (0 to 1) after sample 0: Lanczos.
local function lanczos(fraction)
    local weights, sum = {}, 0
    for i = 1, 2 * LOBES do
        local x = math.pi * (fraction - i + LOBES)
        local weight = math.abs(x) < 1e-9 and 1 or math.abs(x) >= LOBES * math.pi and 0
            or LOBES * math.sin(x) * math.sin(x / LOBES) / (x * x)
        weights[i], sum = weight, sum + weight
    end
    for i, weight in ipairs(weights) do
        weights[i] = weight / sum
    end
    return weights
end

-- Values resampled along the second of three axes, at n samples from `start` and a fraction on.
local function resampled(values, extents, n, start, weights)
    local outer, extent, inner = table.unpack(extents)
    local w1, w2, w3, w4, w5, w6, w7, w8 = table.unpack(weights)
    local result, to, offsets = {}, 0, {}
    for i = 0, n - 1 do
        offsets[i] = {}
        for k = 1, 2 * LOBES do
            offsets[i][k] = math.max(0, math.min(extent - 1, start + i + k - LOBES)) * inner
        end
    end
    for base = 0, (outer - 1) * extent * inner, extent * inner do
        for i = 0, n - 1 do
            local a, b, c, d, e, f, g, h = table.unpack(offsets[i])
            for x = base + 1, base + inner do
                to = to + 1
                result[to] = w1 * values[a + x] + w2 * values[b + x] + w3 * values[c + x]
                    + w4 * values[d + x] + w5 * values[e + x] + w6 * values[f + x]
                    + w7 * values[g + x] + w8 * values[h + x]
            end
        end
    end
    return result
end

-- Values of n samples from `start` along the second of three axes, of what is there.
local function cut(values, extents, start, n)
    local outer, extent, inner = table.unpack(extents)
    local result, first = {}, math.max(0, start)
    local last = math.min(extent, start + n) - 1
    for o = 0, outer - 1 do
        table.move(values, (o * extent + first) * inner + 1, (o * extent + last + 1) * inner,
            #result + 1, result)
    end
    return result, last - first + 1, first
end

--- The box of a bead sampled `shift` voxels further along each axis: a list of its values, and the
-- part of the variance of independent noise that the weights leave. Faces of the image go on.
function bead_boxes.shifted(box, size, shift)
    local values, left = bead_boxes.floats(box.raw), 1
    local extents, starts = {table.unpack(box.extents)}, {}
    local function around(axis)
        local outer, inner = 1, 1
        for i = 1, 3 do
            outer = i < axis and outer * extents[i] or outer
            inner = i > axis and inner * extents[i] or inner
        end
        return {outer, extents[axis], inner}
    end
    for axis, n in ipairs(size) do -- what no sample needs
        local start, first = box.before[axis] + math.floor(shift[axis])
        values, extents[axis], first = cut(values, around(axis), start + 1 - LOBES,
            n + 2 * LOBES - 1)
        starts[axis] = start - first
    end
    for axis, n in ipairs(size) do
        local fraction = shift[axis] - math.floor(shift[axis])
        if box.extents[axis] > 1 and fraction > 0 then
            local weights, power = lanczos(fraction), 0
            for _, weight in ipairs(weights) do
                power = power + weight ^ 2
            end
            left = left * power
            values = resampled(values, around(axis), n, starts[axis], weights)
        elseif starts[axis] >= 0 and starts[axis] + n <= extents[axis] then
            values = cut(values, around(axis), starts[axis], n)
        else
            values = resampled(values, around(axis), n, starts[axis], {0, 0, 0, 1, 0, 0, 0, 0})
        end
        extents[axis] = n
    end
    return values, left
end

return bead_boxes
