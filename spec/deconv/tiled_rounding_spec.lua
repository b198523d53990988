-- Exact tiles and the whole after many iterations: transforms of other extents round differently,
-- and these differences must not grow. The bounds are of the largest value, by iteration.

require "spec.helper"
local mb = require "moonbeam"
local deconv, tiled = mb.deconv, mb.tiled_deconv

local BOUNDS <const> = {[10] = 1e-5, [20] = 3e-5, [40] = 7e-5, [60] = 1e-4}

-- The estimates after the iterations that have a bound.
local function estimates(run, image, psf, options)
    local first, found = {}, {}
    for i = 1, #image.shape do
        first[i] = 0
    end
    options.on_iteration = function(k, _, look)
        if BOUNDS[k] then
            local block <close> = look(first, image.shape)
            found[k] = block:to_table()
        end
    end
    run(image, psf, options):release()
    return found
end

local function largest(values, other)
    local most = 0
    for i, value in ipairs(values) do
        most = math.max(most, type(value) == "table" and largest(value, other and other[i])
            or math.abs(value - (other and other[i] or 0)))
    end
    return most
end

-- Compares the whole with tiles, iteration by iteration.
local function compare(image, psf, options, tile)
    local whole = estimates(deconv.richardson_lucy, image, psf, options)
    options.tile = tile
    local tiles = estimates(tiled.richardson_lucy, image, psf, options)
    for k, bound in pairs(BOUNDS) do
        if k <= options.iterations then
            local off = largest(whole[k], tiles[k]) / largest(whole[k])
            assert.is_true(off < bound, ("%s, %d iterations: %.2g"):format(options.acceleration, k,
                off))
        end
    end
end

-- Points, blurred and counted, that reach over the image's edges.
local function beads(shape, psf, photons, seed)
    local truth <close> = mb.full(shape, 0.1)
    local random <close> = mb.random({8, #shape}, {seed = seed})
    for _, at in ipairs(random:to_table()) do
        local place = {}
        for i, n in ipairs(shape) do
            local p = math.min(n, 1 + math.floor(at[i] * n))
            place[i] = {p, p}
        end
        local view <close> = truth:view(table.unpack(place))
        view:fill(100)
    end
    local blurred <close> = mb.convolution(truth, psf, {boundary = "replicate"})
    local scaled <close> = blurred * (photons * truth.elements / blurred:sum())
    return mb.poisson(scaled, {seed = seed})
end

-- Bright boxes on dark ground, blurred and counted.
local function boxes(shape, psf, photons, seed)
    local truth <close> = mb.full(shape, 0.1)
    local random <close> = mb.random({5, 2 * #shape + 1}, {seed = seed})
    for _, box in ipairs(random:to_table()) do
        local place = {}
        for i, n in ipairs(shape) do
            local a, b = 1 + math.floor(box[2 * i - 1] * n), 1 + math.floor(box[2 * i] * n)
            place[i] = {math.min(a, b, n), math.min(n, math.max(a, b))}
        end
        local view <close> = truth:view(table.unpack(place))
        view:fill(1 + math.floor(20 * box[2 * #shape + 1]))
    end
    local blurred <close> = mb.convolution(truth, psf, {boundary = "replicate"})
    local scaled <close> = blurred * (photons * truth.elements / blurred:sum())
    return mb.poisson(scaled, {seed = seed})
end

describe("tiles equal the whole", function()
    it("beyond whose edges little is seen: the step is measured in the image", function()
        for _, case in ipairs {
            {{62, 63}, {10, 10}, 1.4, 250, {40, 41}},
            {{10, 10, 17}, {7, 9, 9}, 2, 20, {10, 6, 17}},
        } do
            local shape, kernel, sigma, photons, tile = table.unpack(case)
            local psf <close> = mb.psf.gaussian(kernel, sigma)
            local image <close> = beads(shape, psf, photons, 5)
            for _, acceleration in ipairs {"none", "heavy_ball", "biggs_andrews"} do
                compare(image, psf, {acceleration = acceleration, iterations = 60}, tile)
            end
        end
    end)

    it("with a background, which pulls the estimate beside the step", function()
        local psf <close> = mb.psf.gaussian({7, 3}, 1.03)
        local truth <close> = mb.zeros {18, 36}
        local box <close> = truth:view({1, 9}, {1, 18})
        box:fill(17)
        local blurred <close> = mb.convolution(truth, psf, {boundary = "replicate"})
        local image <close> = blurred + 4.25
        for _, acceleration in ipairs {"none", "heavy_ball", "biggs_andrews"} do
            compare(image, psf, {acceleration = acceleration, iterations = 60, background = 4.25,
                boundary = "circular"}, {8, 23})
        end
    end)

    it("with total variation, in planes and stacks", function()
        for _, case in ipairs {
            {{56, 53}, {8, 5}, 1.2, 20, {30, 53}, "replicate", 0.02},
            {{14, 13, 15}, {1, 11, 9}, 2, 20, {7, 13, 15}, "circular", 0.005},
        } do
            local shape, kernel, sigma, photons, tile, boundary, weight = table.unpack(case)
            local psf <close> = mb.psf.gaussian(kernel, sigma)
            local image <close> = beads(shape, psf, photons, 7)
            compare(image, psf, {acceleration = "biggs_andrews", iterations = 60,
                boundary = boundary, total_variation = weight}, tile)
        end
    end)

    it("where dark ground beside bright boxes falls fast", function()
        local psf <close> = mb.psf.gaussian({2, 3, 3}, 1)
        local image <close> = boxes({14, 32, 19}, psf, 376, 12)
        for _, acceleration in ipairs {"heavy_ball", "biggs_andrews"} do
            compare(image, psf, {acceleration = acceleration, iterations = 40,
                boundary = "replicate", total_variation = 0.01}, {8, 17, 10})
        end
    end)
end)
