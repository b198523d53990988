-- Direct Fourier reconstruction against its definition: the sum over angles of the filtered rows'
-- trigonometric polynomials. Linear interpolation, as backproject does it, damps the highest
-- frequencies, which is several per cent of an unwindowed image; so that comparison is made with a
-- window, and loosely.
local mb = require "moonbeam"
local definition = require "spec.fixtures.fourier_definition"
local helper = require "spec.helper"

local pi, sin = math.pi, math.sin

local function random_angles(n)
    local angles = {}
    for k = 1, n do
        angles[k] = (k * 2.399963) % (2 * pi) - 1 -- in no order, some negative
    end
    return angles
end

-- Slices of filtered rows (a table each) by the definition, over every `step`-th pixel of the slice
-- or its part: {values by pixel of each slice}, and the pixels as {y, x}.
local function defined(slices, angles, o, step)
    local cols = #slices[1][1]
    local size = o.size or { cols, cols }
    local ny, nx = size[1], size[2] or size[1]
    local radius, axes = definition.radius_of(o, ny, nx), {}
    for k = 1, #angles do
        axes[k] = (o.center or (cols - 1) / 2) + (o.shifts and o.shifts[k] or 0)
    end
    local n = o.period or definition.period(axes, cols, radius)
    local roi = o.roi or { 0, ny, 0, nx }
    local wide, made, pixels, kernel = roi[4] - roi[3], {}, {}, {}
    for z = 1, #slices do
        made[z] = {}
    end
    for i = 0, (roi[2] - roi[1]) * wide - 1, step do
        local y, x = roi[1] + i // wide, roi[3] + i % wide
        local X, Y = x - (nx - 1) / 2, (ny - 1) / 2 - y
        local outside = o.circle and X * X + Y * Y > (o.circle * math.min(ny, nx) / 2) ^ 2
        pixels[#pixels + 1] = { y - roi[1] + 1, x - roi[3] + 1 }
        for z = 1, #slices do
            made[z][#pixels] = outside and (o.circle_value or 0) or 0
        end
        for k, t in ipairs(outside and {} or angles) do
            if axes[k] + radius > -1 and axes[k] - radius < cols then
                local u = X * math.cos(t) + Y * math.sin(t) + axes[k]
                for b = 0, cols - 1 do
                    local s = sin(pi * (u - b) / n)
                    kernel[b + 1] = (s < 1e-12 and s > -1e-12) and (n - 1) / n
                        or sin(pi * (n - 1) * (u - b) / n) / (n * s)
                end
                local weight = (o.weights and o.weights[k] or 1) * (o.scale or pi / #angles)
                for z = 1, #slices do
                    local value, row = 0, slices[z][k]
                    for b = 1, cols do
                        value = value + row[b] * kernel[b]
                    end
                    made[z][#pixels] = made[z][#pixels] + value * weight
                end
            end
        end
    end
    return made, pixels
end

-- relL2 of a slice from the values that are defined at these pixels.
local function deviation(slice, values, pixels)
    local errors, total = 0, 0
    for i, pixel in ipairs(pixels) do
        errors = errors + (slice[pixel[1]][pixel[2]] - values[i]) ^ 2
        total = total + values[i] ^ 2
    end
    return math.sqrt(errors / total)
end

local function fbp(sino, angles, o)
    local filtered <close> = mb.ramp_filter(sino, { filter = o.filter, cutoff = o.cutoff })
    return mb.backproject(filtered, angles, {
        center = o.center, circle = o.circle, accuracy = "exact",
    })
end

local function phantom_slice(n, theta, o)
    local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, n / 2)
    local projections <close> = mb.ellipsoid_projections(ellipsoids, theta, { -0.15 * n / 2 }, n, o)
    local sino <close> = projections:permute(2, 1, 3)
    return sino:copy()
end

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

describe("fourier_reconstruct", function()
    for _, case in ipairs {
        { 1, 1, 17, {} }, { 2, 7, 16, {} }, { 3, 20, 33, {} }, { 1, 3, 1, { size = { 4 } } },
        { 1, 33, 51, {} }, { 2, 20, 64, { circle = 1 } },
        { 5, 25, 65, { circle = 0.9, circle_value = -3 } },
        { 2, 12, 24, { center = 8.25, size = { 19, 33 } } },
        { 1, 10, 24, { center = 30, circle = 1 } },
        { 3, 9, 19, { shifts = { 0.5, -1.25, 3, 5, -1e6, 0, 0, 1, 2 }, scale = 1 } },
        { 2, 6, 22, { weights = { 1, 0.5, 2, 0, 1, 1 }, filter = "shepp-logan",
            padding = "edge" } },
        { 1, 8, 20, { filter = "none" } },
        { 1, 300, 12, {} }, -- more rays than the grid has cells around its middle
        { 1, 5, 31, { roi = { 3, 12, 20, 31 } } },
        { 2, 4, 30, { size = { 60, 50 }, roi = { 50, 60, 0, 7 } } },
        -- Rows of 512 points and more, with every number of points that are kept of them.
        { 1, 3, 129, { circle = 1 } }, { 3, 2, 130, {} }, { 1, 2, 150, {} },
        { 1, 2, 220, { circle = 1 } },
        { 2, 2, 190, { padding = "edge", filter = "cosine", shifts = { 3, -40 } } },
        { 1, 2, 255, {} },
        { 1, 2, 256, { center = 200, circle = 1 } }, { 1, 2, 200, { center = 10 } },
        { 5, 2, 257, {} },
        { 1, 2, 600, { roi = { 500, 520, 10, 30 } } },
        { 2, 5, 22, { period = 60 } }, { 2, 5, 22, { period = 22 } },
        { 1, 2, 280, { period = 416, circle = 1 } }, { 1, 2, 280, { period = 450, circle = 1 } },
    } do
        local rows, count, cols, options = table.unpack(case)
        local values, pixels -- of both accuracies
        for accuracy, bound in pairs { fast = 2e-4, exact = 2e-6 } do
            it(("is the sum over %d angles of %d columns, %s"):format(count, cols, accuracy),
                function()
                local angles = random_angles(count)
                local sino <close> = mb.random({ rows, count, cols }, { seed = cols, low = -1 })
                local given = {}
                for key, value in pairs(options) do
                    given[key] = value
                end
                given.accuracy = accuracy
                local result <close> = mb.fourier_reconstruct(sino, angles, given)
                local filtered <close> = mb.ramp_filter(sino,
                    { filter = options.filter, padding = options.padding })
                local slices = result:to_table()
                if not values then
                    values, pixels = defined(filtered:to_table(), angles, options,
                        cols > 128 and 997 or cols > 30 and 17 or 3)
                end
                for z = 1, rows do
                    local off = deviation(slices[z], values[z], pixels)
                    assert.is_true(off < bound, ("slice %d: %g"):format(z, off))
                end
            end)
        end
    end

    -- Errors of positions on the grid would grow with the width.
    it("is as exact in wide rows", function()
        for _, case in ipairs { { 2048, 1, { circle = 1 } },
            { 4096, 2, { roi = { 0, 40, 2030, 2100 } } } } do
            local n, count, options = table.unpack(case)
            local angles = random_angles(count)
            local sino <close> = mb.random({ count, n }, { seed = n, low = -1 })
            local result <close> = mb.fourier_reconstruct(sino, angles,
                { accuracy = "exact", circle = options.circle, roi = options.roi })
            local filtered <close> = mb.ramp_filter(sino)
            local slice = setmetatable({}, { __index = function(_, y)
                return setmetatable({}, { __index = function(_, x)
                    return result:item(y, x)
                end })
            end })
            local values, pixels = defined({ filtered:to_table() }, angles, options,
                options.roi and 99 or n * n // 20 + 7)
            local off = deviation(slice, values[1], pixels)
            assert.is_true(off < 1.5e-6, off)
        end
    end)

    it("makes parts of a slice as crops of the whole", function()
        local angles = random_angles(31)
        local sino <close> = mb.random({ 3, 31, 140 }, { seed = 9, low = -1 })
        for _, roi in ipairs { { 0, 140, 0, 140 }, { 17, 18, 99, 140 }, { 50, 103, 61, 80 },
            { 139, 140, 0, 1 } } do
            for _, circle in ipairs { 0, 0.8 } do
                local o = { accuracy = "exact", circle = circle, circle_value = 2,
                    size = { 140, 140 } }
                local whole <close> = mb.fourier_reconstruct(sino, angles, o)
                local crop <close> = whole:view(mb.all, { roi[1] + 1, roi[2] },
                    { roi[3] + 1, roi[4] })
                o.roi = roi
                local part <close> = mb.fourier_reconstruct(sino, angles, o)
                -- Both are within a few hundredths of the band-limited row, whatever its period.
                helper.assert_close(crop, part, 6e-2)
            end
        end
    end)

    it("is filtered back-projection, the closer the less linear interpolation damps", function()
        for _, case in ipairs { { 64, 0.25, 6e-3 }, { 65, 0.25, 9e-3 }, { 65, 0.1, 3e-3 },
            { 128, 0.1, 1e-3 } } do
            local n, cutoff, bound = table.unpack(case)
            local theta, center = mb.tomo.angles(n * 3 // 2), (n - 1) / 2 + 1.25
            local o = { filter = "hann", cutoff = cutoff, circle = 0.95, center = center }
            local sino <close> = phantom_slice(n, theta, { center = center })
            local expected <close> = fbp(sino, theta, o)
            local got <close> = mb.fourier_reconstruct(sino, theta, o)
            assert.is_true(relative(got, expected) < bound, relative(got, expected))
        end
    end)

    -- The bounds of tomo.fbp: the method's own error.
    it("meets the error of filtered back-projection on the Shepp-Logan phantom", function()
        local n, theta = 256, mb.tomo.angles(400)
        local ellipsoids, height = mb.phantom.scale(mb.phantom.shepp_logan, n / 2), -0.15 * n / 2
        local sino <close> = phantom_slice(n, theta)
        local slice <close> = mb.fourier_reconstruct(sino, theta, { circle = 0.9 })
        local truth <close> = mb.ellipsoid_volume(ellipsoids, { height }, { n, n })
        local disc <close> = mb.ellipsoid_volume({ 1, 0.45 * n, 0.45 * n, 1e9, 0, 0, 0, 0 }, { 0 },
            { n, n }, { subsamples = 1 })
        mb.binary(truth, "mul", { b = disc, out = truth })
        assert.is_true(relative(slice, truth) < 0.08, relative(slice, truth))
    end)

    it("gives the density of a disc wherever the axis is, in even and odd sizes", function()
        for _, n in ipairs { 95, 96 } do
            local theta, shifts, center = mb.tomo.angles(150), {}, 52.25
            for k = 1, #theta do
                shifts[k] = 2 * math.sin(k)
            end
            local p <close> = mb.ellipsoid_projections({ 0.5, 9, 9, 1e6, 10, 15, 0, 0 }, theta,
                { 0 }, n,
                { center = center, shifts = shifts })
            local sino <close> = p:permute(2, 1, 3)
            local slice <close> = mb.fourier_reconstruct(sino, theta,
                { center = center, shifts = shifts })
            local x, y = math.floor((n - 1) / 2 + 10), math.floor((n - 1) / 2 - 15)
            local inside <close> = slice:view(1, { y - 3, y + 5 }, { x - 3, x + 5 })
            assert.near(0.5, inside:mean(), 0.01)
            local outside <close> = slice:view(1, { n - y - 3, n - y + 5 }, { x - 3, x + 5 })
            assert.near(0, outside:mean(), 0.01)
        end
    end)

    it("takes angles in any order, and a reversed row half a turn later", function()
        local n, count = 40, 24
        local angles = mb.tomo.angles(count)
        local sino <close> = mb.random({ 1, count, n }, { seed = 8 })
        local expected <close> = mb.fourier_reconstruct(sino, angles)
        local t, backwards, rows, turned, flipped = sino:to_table()[1], {}, {}, {}, {}
        for k = 1, count do
            backwards[k], rows[k] = angles[count + 1 - k], t[count + 1 - k]
            turned[k], flipped[k] = angles[k] + pi * (k % 3 - 1), t[k]
            if k % 3 ~= 1 then
                flipped[k] = {}
                for b = 1, n do
                    flipped[k][b] = t[k][n + 1 - b]
                end
            end
        end
        local reversed <close> = mb.array({ rows })
        local a <close> = mb.fourier_reconstruct(reversed, backwards)
        helper.assert_close(expected, a, 2e-5)
        local half_turns <close> = mb.array({ flipped })
        local b <close> = mb.fourier_reconstruct(half_turns, turned)
        helper.assert_close(expected, b, 2e-5)
    end)

    helper.each_device(function(id, it_on)
        it_on("makes the same slices whatever their company, " .. id, function()
            for _, cols in ipairs { 37, 150 } do
                local angles = random_angles(40)
                local random <close> = mb.random({ 19, 40, cols }, { seed = 4, low = -1 })
                local sino <close> = random:to(id)
                local whole <close> = mb.fourier_reconstruct(sino, angles)
                for _, size in ipairs { 1, 2, 3, 5, 16 } do
                    for first = 1, 19, size do
                        local rows <close> = sino:view { first, math.min(19, first + size - 1) }
                        local part <close> = mb.fourier_reconstruct(rows, angles)
                        local expected <close> = whole:view { first,
                            math.min(19, first + size - 1) }
                        assert.is_true(relative(part, expected) < 5e-6)
                    end
                end
                for pairs_most = 1, 8 do
                    local again <close> = mb.fourier_reconstruct(sino, angles,
                        { pairs = pairs_most })
                    assert.is_true(relative(again, whole) < 5e-6)
                end
                local one <close> = sino:view(9)
                local slice <close> = mb.fourier_reconstruct(one, angles)
                local expected <close> = whole:view(9)
                assert.is_true(relative(slice, expected) < 5e-6)
            end
        end)
    end)

    it("keeps a faint slice apart from a bright partner", function()
        local angles = mb.tomo.angles(60)
        local sino <close> = mb.random({ 2, 60, 50 }, { seed = 6 })
        local faint <close> = sino:view { 2, 2 }
        local alone <close> = mb.fourier_reconstruct(faint, angles)
        local bright <close> = sino:view { 1, 1 }
        mb.binary(bright, "mul", { scalar = 1000, out = bright })
        local both <close> = mb.fourier_reconstruct(sino, angles)
        local second <close> = both:view { 2, 2 }
        assert.is_true(relative(second, alone) < 1e-3) -- 1000 times the rounding error of a float
    end)

    it("reads projections through a permuted view", function()
        local angles = random_angles(6)
        local projections <close> = mb.random({ 6, 5, 15 }, { seed = 5 })
        local view <close> = projections:permute(2, 1, 3)
        local copy <close> = view:copy()
        local a <close> = mb.fourier_reconstruct(view, angles)
        local b <close> = mb.fourier_reconstruct(copy, angles)
        assert.same(b:to_table(), a:to_table())
    end)

    it("says what its limit on pairs saves", function()
        local function scratch(pairs_most)
            return mb.op.estimate("fourier_reconstruct", { { "f32", 16, 30, 64 } },
                { pairs = pairs_most }).scratch
        end
        assert.is_true(scratch(1) < scratch(2) and scratch(2) < scratch(4)
            and scratch(4) < scratch(0))
        assert.equal(scratch(0), scratch(8))
    end)

    it("refuses what does not fit", function()
        local sino <close> = mb.zeros { 4, 9 }
        for _, case in ipairs {
            { "angles", { 0, 1, 2 }, {} }, { "shifts", { 0, 1, 2, 3 }, { shifts = { 1 } } },
            { "weights", { 0, 1, 2, 3 }, { weights = { 1, 2, 3 } } },
            { "roi", { 0, 1, 2, 3 }, { roi = { 0, 4, 4 } } },
            { "roi", { 0, 1, 2, 3 }, { roi = { 0, 4, 3, 10 } } },
            { "roi", { 0, 1, 2, 3 }, { roi = { 2, 2, 3, 9 } } },
            { "roi", { 0, 1, 2, 3 }, { roi = { 0, 1.5, 3, 9 } } },
            { "size", { 0, 1, 2, 3 }, { size = { 4, 4, 4 } } },
            { "size", { 0, 1, 2, 3 }, { size = { 4.5 } } },
            { "pad_width", { 0, 1, 2, 3 }, { pad_width = 18 } },
            { "period", { 0, 1, 2, 3 }, { period = 8 } }, { "period", { 0, 1, 2, 3 }, { period = 11 } },
            { "pairs", { 0, 1, 2, 3 }, { pairs = 9 } },
            { "accuracy", { 0, 1, 2, 3 }, { accuracy = "best" } },
        } do
            local text, err = helper.failure(mb.fourier_reconstruct, sino, case[2], case[3])
            assert.equal("argument", err.code, text)
            assert.equal(case[1], err.arg, text)
        end
    end)

    helper.gpu_it("makes grids that are too large for its own transforms by the FFT library",
        function()
        local n, angles = 13500, { 0.3, 1.9, 4 }
        local random <close> = mb.random({ 1, 3, 64 }, { seed = 3, low = -1 })
        local sino <close> = random:to("cuda:0")
        local o = { size = { n, n }, center = 31.5, circle = 0.004 }
        local whole <close> = mb.fourier_reconstruct(sino, angles, o)
        local crop <close> = whole:view(mb.all, { 6741, 6760 }, { 6746, 6765 })
        o.roi = { 6740, 6760, 6745, 6765 }
        local part <close> = mb.fourier_reconstruct(sino, angles, o)
        local expected <close> = crop:copy()
        assert.is_true(relative(part, expected) < 1e-3)
    end)

    for accuracy, bound in pairs { fast = 5e-5, exact = 5e-6 } do
        for _, case in ipairs {
            { 1, 5, 17, {} }, { 19, 181, 127, {} }, { 1, 181, 511, {} },
            { 3, 721, 320, { circle = 1 } },
            { 33, 1, 1000, { padding = "edge", roi = { 10, 50, 480, 520 } } },
            { 1, 21, 2160, { roi = { 1000, 1100, 30, 100 } } },
            { 2, 11, 2560, { shifts = { 3, -2, 500, 0, 0, 9, 1, 2, 3, 4, 5 },
                roi = { 0, 60, 1200, 1260 } } },
            { 100, 31, 140, { filter = "hann" } },
            { 2, 5, 4100, { circle = 1, roi = { 2000, 2100, 2000, 2100 } } },
            { 1, 7, 150, { pad_width = 400 } }, { 1, 7, 300, { center = 20 } },
        } do
            local rows, count, cols, o = table.unpack(case)
            helper.gpu_it(("is the same on the GPU: %d slices of %d columns at %d angles, %s"):format(rows, cols, count,
                accuracy), function()
                local given = { accuracy = accuracy }
                for key, value in pairs(o) do
                    given[key] = value
                end
                local angles = random_angles(count)
                local sino <close> = mb.random({ rows, count, cols }, { seed = 3, low = -1 })
                local expected <close> = mb.fourier_reconstruct(sino, angles, given)
                local on_gpu <close> = sino:to("cuda:0")
                local result <close> = mb.fourier_reconstruct(on_gpu, angles, given)
                local back <close> = result:to("host")
                helper.assert_close(expected, back, bound)
            end)
        end
    end
end)
