--- How many slices two volumes have in common, by what is in them. The last slices of the one and
-- the first of the other are reduced to small images; what all of them have in common is taken
-- away, and the number of slices is that where the two series are most alike.

local mb = require "moonbeam"

local z_overlap = {}

-- Pixels of a small image along each axis; slices of the two volumes that are compared (the inner
-- products of at most 512 images are made at once); the least overlap that tells anything.
local PIXELS <const>, TAIL <const>, HEAD <const> = 64, 448, 64
z_overlap.LEAST = 3

-- Small images of slices first ... first + count - 1 (0-based) of a volume, written to `into`.
local function reduce(volume, first, count, into, at)
    local rows, columns = volume.shape[2], volume.shape[3]
    local sizes = {math.max(1, rows // PIXELS), math.max(1, columns // PIXELS)}
    for i = 0, count - 1 do
        local block <close> = volume:read({first + i, 0, 0}, {1, rows, columns}, into.device,
            into.device)
        local slice <close> = block:view(1, mb.all, mb.all)
        local place <close> = into:view(at + i, mb.all, mb.all)
        mb.bin(slice, sizes, {out = place})
    end
end

-- Inner products with the mean of all images taken away, as a function of two indices.
local function centered(products, count)
    local means, mean = {}, 0
    for i = 1, count do
        local sum = 0
        for j = 1, count do
            sum = sum + products[i][j]
        end
        means[i] = sum / count
        mean = mean + means[i] / count
    end
    return function(i, j)
        return products[i][j] - means[i] - means[j] + mean
    end
end

-- The likeness of the series for `overlap` slices in common: 1 where they are equal.
local function likeness(product, tail, skipped, head, overlap)
    local both, one, two = 0, 0, 0
    for k = 1, math.min(head, overlap) do
        local i, j = tail - (overlap - skipped) + k, tail + k
        if i >= 1 and i <= tail then
            both, one, two = both + product(i, j), one + product(i, i), two + product(j, j)
        end
    end
    return one > 0 and two > 0 and both / math.sqrt(one * two) or 0
end

--- Compares two open volumes (z, y, x) on a device: {overlap, likeness (at most 1), at (a function:
-- the likeness of another overlap, nil where it was not compared)}; no overlap where the values
-- are not finite. `expected`, an overlap or nil,
-- is where to look if not all can be compared.
function z_overlap.find(one, two, device, expected)
    local head = math.min(HEAD, two.shape[1])
    local most = math.min(one.shape[1], two.shape[1])
    -- Overlaps from `low` to `high` need the slices of `one` from its end - high on.
    local high = math.min(most, math.max(TAIL, (expected or 0) // 1 + TAIL // 2))
    local low = math.max(math.min(most, z_overlap.LEAST), high - TAIL + head + 1)
    local skipped = math.max(0, low - head) -- slices at the end of `one` that none of them needs
    local tail = high - skipped
    local shape = {math.max(1, one.shape[2] // math.max(1, one.shape[2] // PIXELS)),
        math.max(1, one.shape[3] // math.max(1, one.shape[3] // PIXELS))}
    local images <close> = mb.empty({tail + head, shape[1], shape[2]}, {device = device})
    reduce(one, one.shape[1] - high, tail, images, 1)
    reduce(two, 0, head, images, tail + 1)
    local products <close> = mb.gram_matrix(images)
    local values = mb.bound(false, products.to_table, products)
    if not values then
        return {overlap = expected or low, likeness = 1, at = function() end}
    end
    local product, best = centered(values, tail + head), {likeness = -1}
    local function at(overlap)
        return overlap >= low and overlap <= high
            and likeness(product, tail, skipped, head, overlap) or nil
    end
    for overlap = low, high do
        local value = at(overlap)
        if value > best.likeness then
            best.overlap, best.likeness = overlap, value
        end
    end
    best.at = at
    return best
end

return z_overlap
