--- Simulated samples with truth: beads, filaments and bodies that go on beyond the image,
-- blurred by a widefield PSF and counted as photons.

local mb = require "moonbeam"
local generator = require "moonbeam.internal.quantities.random_numbers"

local samples = {NAMES = {"beads", "filaments", "bodies"}}

local PIXEL <const>, STEP <const> = 100, 250 -- nm
local MARGIN <const> = {3, 8, 8} -- of the field around the image, whose light is in the image
local BACKGROUND <const> = 0.1 -- of the mean of the structures

--- The PSF of all samples: widefield, vectorial, NA 1.2 in water, 520 nm.
function samples.psf(device)
    return mb.psf.richards_wolf({11, 31, 31}, {na = 1.2, wavelength = 520, index = 1.33,
        pixel = PIXEL, step = STEP, device = device})
end

-- Spheres in a volume, as many as go to so many voxels each.
local function spheres(extents, seed, device, voxels, settings)
    local count = math.max(1, extents[1] * extents[2] * extents[3] // voxels)
    return (mb.phantom.spheres(extents, {count = count, radius = settings.radius,
        flatten = settings.flatten, density = settings.density, seed = seed, device = device}))
end

-- Adds light to the voxels around a point, by its distances from them.
local function deposit(values, extents, point, light)
    local first = {}
    for i, at in ipairs(point) do
        first[i] = math.floor(at)
        if first[i] < 0 or first[i] + 1 >= extents[i] then
            return
        end
    end
    for corner = 0, 7 do
        local part, index = light, 0
        for i = 1, 3 do
            local step = corner >> (i - 1) & 1
            local far = point[i] - first[i]
            part = part * (step == 1 and far or 1 - far)
            index = index * extents[i] + first[i] + step
        end
        values[index + 1] = values[index + 1] + part
    end
end

-- Curved threads, half a pixel from point to point.
local function filaments(extents, seed, device)
    local random, values = generator(seed), {}
    local count = extents[1] * extents[2] * extents[3]
    for i = 1, count do
        values[i] = 0
    end
    for _ = 1, math.max(3, count // 6000) do
        local point = {random() * extents[1], random() * extents[2], random() * extents[3]}
        local angle, rise = 2 * math.pi * random(), 0.3 * (random() - 0.5)
        local light = 0.5 + random()
        for _ = 1, math.floor(3 * math.max(extents[2], extents[3])) do
            deposit(values, extents, point, light)
            angle = angle + 0.06 * (random() - 0.5)
            rise = rise + 0.01 * (random() - 0.5)
            point[1] = point[1] + 0.5 * rise * PIXEL / STEP
            point[2] = point[2] + 0.5 * math.sin(angle)
            point[3] = point[3] + 0.5 * math.cos(angle)
        end
    end
    local parts = {}
    for i = 1, count, 4096 do
        parts[#parts + 1] = ("<" .. ("f"):rep(math.min(4096, count + 1 - i))):pack(
            table.unpack(values, i, math.min(count, i + 4095)))
    end
    return mb.from_string(table.concat(parts), extents, {dtype = "f32", device = device})
end

local FIELDS <const> = {filaments = filaments}

function FIELDS.beads(extents, seed, device)
    return spheres(extents, seed, device, 1200, {radius = {0.8, 1.2}, density = {50, 150}})
end

function FIELDS.bodies(extents, seed, device)
    return spheres(extents, seed, device, 5000, {radius = {3, 9}, flatten = PIXEL / STEP,
        density = {50, 150}})
end

--- A sample of the image's extents {nz, ny, nx} and of a mean of so many photons in the image:
-- {truth, image}, f32. Structure and noise follow from `seed`.
function samples.make(name, extents, photons, seed, psf)
    local device, whole, window = psf.device, {}, {}
    for i, n in ipairs(extents) do
        whole[i] = n + 2 * MARGIN[i]
        window[i] = {MARGIN[i] + 1, MARGIN[i] + n}
    end
    local field <close> = FIELDS[name](whole, seed, device)
    mb.binary(field, "add", {scalar = BACKGROUND * field:mean(), out = field})
    local blurred <close> = mb.convolution(field, psf, {boundary = "replicate"})
    local seen <close> = blurred:view(table.unpack(window))
    local clean <close> = seen:copy()
    mb.binary(clean, "max", {scalar = 0, out = clean})
    local factor = photons / clean:mean()
    mb.binary(clean, "mul", {scalar = factor, out = clean})
    local cut <close> = field:view(table.unpack(window))
    local truth = cut:copy()
    mb.binary(truth, "mul", {scalar = factor, out = truth})
    -- A seed far from those of other random numbers.
    return truth, mb.poisson(clean, {seed = 1000003 * seed + 17})
end

return samples
