-- Exact tiles with every acceleration, total variation and boundary: the result and the metrics of
-- the untiled method, at the bytes that the plan tells.

local mb = require "moonbeam"
local helper = require "spec.helper"
local deconv, tiled, volumes = mb.deconv, mb.tiled_deconv, mb.volumes

local BOUNDARIES <const> = { "zero", "circular", "reflect", "mirror", "replicate" }

-- Counts with structure at the edges, noise, and a smooth field, of any extents.
local function measured(shape, dtype, device)
    local low <close> = mb.random(shape, { seed = 11, low = 0, high = 60, device = device })
    local corner = {}
    for i, n in ipairs(shape) do
        corner[i] = { 1, math.max(1, n // 3) }
    end
    local box <close> = low:view(table.unpack(corner))
    mb.binary(box, "add", { scalar = 300, out = box })
    local other = {}
    for i, n in ipairs(shape) do
        other[i] = { math.min(n, n - n // 4 + 1), n }
    end
    local last <close> = low:view(table.unpack(other))
    mb.binary(last, "add", { scalar = 150, out = last })
    local noisy <close> = mb.poisson(low, { seed = 4 })
    return noisy:cast(dtype or "f32")
end

-- No symmetry in any axis.
local function crooked(shape, device)
    local random <close> = mb.random(shape, { seed = 9, low = 0.05, high = 1, device = device })
    local peak <close> = mb.psf_gaussian(shape, 1.2,
        { device = device, center = mb.psf.center(random), normalize = false })
    return random * peak
end

-- Deconvolves whole and by tiles, and compares.
local function compare(image, psf, options, tile, what)
    local n = options.iterations
    options.metrics, options.tile = true, nil
    local whole <close>, report = deconv.richardson_lucy(image, psf, options)
    options.tile = tile
    mb.collect()
    local host <close> = mb.pool.scope(mb.device "host")
    local scope <close> = mb.pool.scope(image.device)
    local got <close>, made, plan = tiled.richardson_lucy(image, psf, options)
    local peak, on_host = scope:finish(), host:finish()
    assert.equal(plan.peak, peak, what)
    assert.equal(image.device.kind == "host" and 0 or on_host, plan.host_peak, what)
    assert.is_true(plan.total > 1, what)
    helper.assert_close(whole, got, 1e-4, what)
    for _, name in ipairs { "divergence", "blurred", "flux", "change" } do
        local expected = report.metrics[n][name]
        assert.near(expected, made.metrics[n][name], 2e-3 * math.abs(expected), what .. name)
    end
    return plan
end

helper.each_device(function(device, test)
    describe("exact tiles on " .. device:match("^%a+"), function()
        for _, case in ipairs {
            { { 41 }, { 6 }, { { 15 } } },
            { { 27, 31 }, { 5, 4 }, { { 10, 31 }, { 8, 9 } } },
            { { 8, 17, 19 }, { 3, 6, 5 }, { { 8, 9, 7 }, { 3, 17, 19 } } },
            { { 9, 10 }, { 7, 6 }, { { 3, 2 } } }, -- a PSF that is larger than the tiles
        } do
            local shape, kernel, tiles = table.unpack(case)
            test(("have every method and boundary: %s"):format(table.concat(shape, " x ")),
                function()
                local image <close> = measured(shape, "f32", device)
                local psf <close> = crooked(kernel, device)
                for _, boundary in ipairs(BOUNDARIES) do
                    for _, acceleration in ipairs { "none", "heavy_ball", "biggs_andrews" } do
                        for _, variation in ipairs { false, 0.01 } do
                            for i, tile in ipairs(tiles) do
                                compare(image, psf, { iterations = 5, boundary = boundary,
                                    acceleration = acceleration, center = i == 1 and "fft" or nil,
                                    total_variation = variation or nil, normalize = i == 1,
                                    spacing = variation and 1.3 or nil,
                                    background = i == 1 and 3 or 0 }, tile,
                                    ("%s, %s, %s, tiles of %s: "):format(boundary, acceleration,
                                    variation, table.concat(tile, " x ")))
                            end
                        end
                    end
                end
            end)
        end
    end)
end)

return volumes
