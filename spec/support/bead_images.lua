-- Images of beads with the truth, and distances of point spread functions to it. The PSF is a sum
-- of two Gaussians with centers apart, {part, sigma z, sigma y and x, shift}, so it has no symmetry.
-- A ball of a diameter adds its variance, diameter^2 / 20 along each axis.
local mb = require "moonbeam"

local bead_images = {}

local PARTS <const> = {{0.6, 1.8, 1.2, 0}, {0.4, 2.2, 2.2, 0.7}}
local REACH <const> = 10 -- voxels

-- Adds a bead of a light. Of an image of one plane the bead is in that plane, with all its light.
function bead_images.draw(values, shape, at, light, diameter)
    for _, part in ipairs(PARTS) do
        local e = {}
        for i = 1, 3 do
            local variance = part[i == 1 and 2 or 3] ^ 2 + diameter ^ 2 / 20
            e[i] = {}
            for k = math.max(0, at[i] // 1 - REACH), math.min(shape[i] - 1, at[i] // 1 + REACH) do
                e[i][math.tointeger(k)] = shape[i] == 1 and 1
                    or math.exp(-(k - at[i] - part[4]) ^ 2 / 2 / variance)
                    / math.sqrt(2 * math.pi * variance)
            end
        end
        for z, a in pairs(e[1]) do
            for y, b in pairs(e[2]) do
                for x, c in pairs(e[3]) do
                    local index = (z * shape[2] + y) * shape[3] + x + 1
                    values[index] = values[index] + light * part[1] * a * b * c
                end
            end
        end
    end
end

function bead_images.blank(shape, value)
    local values = {}
    for i = 1, shape[1] * shape[2] * shape[3] do
        values[i] = value
    end
    return values
end

function bead_images.array_of(values, shape)
    local texts = {}
    for i, value in ipairs(values) do
        texts[i] = string.pack("<f", value)
    end
    return mb.from_string(table.concat(texts), shape, {device = "host"})
end

-- Numbers from 0 to 1, the same for a seed.
function bead_images.random(seed)
    local state = seed
    return function()
        state = (state * 1103515245 + 12345) % 2147483648
        return state / 2147483648
    end
end

-- The photons of expected values.
function bead_images.photons(values, shape, seed)
    local means <close> = bead_images.array_of(values, shape)
    return mb.poisson(means, {seed = seed})
end

-- An image of 20 beads apart, of `peak` photons (two thirds to four thirds of it) over a background:
-- the array (f32) and the places.
function bead_images.good(shape, peak, background, diameter, seed)
    local random, middle = bead_images.random(seed), shape[1] // 2
    local values, places = bead_images.blank(shape, background), {}
    local around <const> = {shape[1], 9, 9}
    local one = bead_images.blank(around, 0)
    bead_images.draw(one, around, {middle, 4, 4}, 1, diameter)
    local light = peak / math.max(table.unpack(one))
    for i = 0, 19 do
        local at = {shape[1] > 1 and middle + random() - 0.5 or 0, 16 + i // 5 * 32 + 2 * random(),
            16 + i % 5 * 34 + 2 * random()}
        places[#places + 1] = at
        bead_images.draw(values, shape, at, light * (2 + 2 * random()) / 3, diameter)
    end
    return bead_images.photons(values, shape, seed), places
end

-- The relative distance of a PSF to the truth at a place in the box, or at the one that fits best:
-- the root of the sum of squares over that of the truth.
function bead_images.distance(psf, size, known)
    local raw, got, step = psf:to_string(), {}, 0.5
    local center = {size[1] // 2, size[2] // 2, size[3] // 2}
    for i = 1, #raw // 4 do
        got[i] = string.unpack("<f", raw, 4 * i - 3)
    end
    local function at(place)
        local want, sum, difference, square = bead_images.blank(size, 0), 0, 0, 0
        bead_images.draw(want, size, place, 1, 0)
        for _, value in ipairs(want) do
            sum = sum + value
        end
        for i, value in ipairs(want) do
            difference = difference + (got[i] - value / sum) ^ 2
            square = square + (value / sum) ^ 2
        end
        return math.sqrt(difference / square)
    end
    if known then
        return at(known)
    end
    local best = at(center)
    while step > 0.02 do
        local moved = false
        for i = size[1] == 1 and 3 or 1, 6 do
            local place = {table.unpack(center)}
            place[(i + 1) // 2] = place[(i + 1) // 2] + (i % 2 == 0 and step or -step)
            local other = at(place)
            if other < best then
                best, center, moved = other, place, true
            end
        end
        step = moved and step or step / 2
    end
    return best
end

-- The distance of the best single one of the beads at known places: less the known background, which
-- leaves no value below 0, and divided by its sum.
function bead_images.best_single(image, size, places, background)
    local best = math.huge
    for _, at in ipairs(places) do
        local ranges, known = {}, {}
        for i = 1, 3 do
            local middle = math.floor(at[i] + 0.5) + 1
            known[i] = size[i] // 2 + at[i] + 1 - middle
            ranges[i] = {middle - size[i] // 2, middle + size[i] // 2}
        end
        local view <close> = image:view(table.unpack(ranges))
        local bead <close> = view:copy()
        local light <close> = mb.psf.subtract_background(bead, background)
        local one <close> = mb.psf.normalize(light)
        best = math.min(best, bead_images.distance(one, size, known))
    end
    return best
end

-- The root mean square of the distances of found places to true ones along every axis, but for what
-- all share; and how many were found.
function bead_images.scatter(found, places)
    local apart, spread = {}, {}
    for _, got in ipairs(found) do
        for _, want in ipairs(places) do
            if math.abs(got[2] - want[2]) < 4 and math.abs(got[3] - want[3]) < 4 then
                apart[#apart + 1] = {got[1] - want[1], got[2] - want[2], got[3] - want[3]}
            end
        end
    end
    for axis = 1, 3 do
        local mean, square = 0, 0
        for _, each in ipairs(apart) do
            mean = mean + each[axis] / #apart
        end
        for _, each in ipairs(apart) do
            square = square + (each[axis] - mean) ^ 2 / #apart
        end
        spread[axis] = math.sqrt(square)
    end
    return spread, #apart
end

return bead_images
