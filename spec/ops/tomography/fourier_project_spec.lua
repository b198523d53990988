-- Direct Fourier projection against its definition, a sum over pixels of the kernel of band-limited
-- rows, in double precision; against closed forms; and against fourier_reconstruct, its adjoint.
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

local function dot(a, b)
    local product <close> = a * b
    return product:sum()
end

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

-- Extents of the full slice, of the detector, and the part that the volume is.
local function sizes_of(o, high, wide)
    local size = o.size or {high, wide}
    local ny, nx = size[1], size[2] or size[1]
    return ny, nx, o.cols or nx, o.roi or {0, ny, 0, nx}
end

-- The rows of slices (tables of one extent) by the definition, at every `step`-th bin: {values by
-- bin of each slice, the bins as {angle, column}}.
local function defined(slices, angles, o, step)
    local ny, nx, cols, roi = sizes_of(o, #slices[1], #slices[1][1])
    local radius, axes = definition.radius_of(o, ny, nx), {}
    for k = 1, #angles do
        axes[k] = (o.center or (cols - 1) / 2) + (o.shifts and o.shifts[k] or 0)
    end
    local n = o.period or definition.period(axes, cols, radius)
    local mask = o.circle and (o.circle * math.min(ny, nx) / 2) ^ 2 or math.huge
    local made, bins = {}, {}
    for z = 1, #slices do
        made[z] = {}
    end
    for i = 0, #angles * cols - 1, step do
        local k, b = i // cols + 1, i % cols
        local c, s = math.cos(angles[k]), math.sin(angles[k])
        bins[#bins + 1] = {k, b + 1}
        for z = 1, #slices do
            made[z][#bins] = 0
        end
        local seen = axes[k] + radius > -1 and axes[k] - radius < cols
        for y = roi[1], seen and roi[2] - 1 or -1 do
            local Y = (ny - 1) / 2 - y
            for x = roi[3], roi[4] - 1 do
                local X = x - (nx - 1) / 2
                if X * X + Y * Y <= mask then
                    local t = X * c + Y * s + axes[k] - b
                    local below = sin(pi * t / n)
                    local weight = (below < 1e-12 and below > -1e-12) and (n - 1) / n
                        or sin(pi * (n - 1) * t / n) / (n * below)
                    for z = 1, #slices do
                        local rows = made[z]
                        rows[#bins] = rows[#bins]
                            + slices[z][y - roi[1] + 1][x - roi[3] + 1] * weight
                    end
                end
            end
        end
    end
    return made, bins
end

-- relL2 of rows (a table of one slice) from the values that are defined at these bins.
local function deviation(rows, values, bins, scale)
    local errors, total = 0, 0
    for i, bin in ipairs(bins) do
        local sum = values[i] * scale
        errors, total = errors + (rows[bin[1]][bin[2]] - sum) ^ 2, total + sum ^ 2
    end
    return total > 0 and math.sqrt(errors / total) or math.sqrt(errors)
end

local function with(options, more)
    local all = {}
    for _, list in ipairs {options, more} do
        for key, value in pairs(list) do
            all[key] = value
        end
    end
    return all
end

-- Slices, angles, extents of a slice, options.
local CASES = {
    {1, 1, 17, 17, {}}, {2, 7, 16, 17, {}}, {3, 20, 33, 33, {}}, {1, 3, 1, 1, {}},
    {1, 3, 1, 1, {cols = 4}}, {2, 2, 1, 30, {}}, {1, 4, 25, 1, {cols = 31}},
    {1, 33, 37, 41, {}}, {2, 20, 32, 32, {circle = 1}},
    {5, 12, 31, 29, {circle = 0.9, cols = 40}},
    {2, 12, 19, 33, {center = 8.25, cols = 24}},
    {1, 10, 24, 24, {center = 30, circle = 1}},
    {3, 9, 19, 19, {shifts = {0.5, -1.25, 3, 5, -1e6, 0, 0, 1, 2}, scale = 0.3}},
    {1, 300, 12, 12, {}},
    {2, 5, 9, 11, {roi = {3, 12, 20, 31}, size = {31}}},
    {1, 4, 10, 7, {roi = {50, 60, 0, 7}, size = {60, 50}, cols = 30}},
    -- Rows of 512 points and more, with several numbers of points that are kept of them.
    {1, 3, 12, 20, {roi = {50, 62, 30, 50}, size = {129}, circle = 1}},
    {3, 2, 20, 20, {cols = 150}}, {1, 2, 9, 14, {cols = 255}},
    {1, 2, 11, 11, {cols = 256, center = 200}}, {5, 2, 7, 8, {cols = 257}},
    {1, 2, 20, 20, {roi = {500, 520, 10, 30}, size = {600}}},
    {3, 9, 20, 18, {period = 50, cols = 25}}, {1, 7, 22, 22, {period = 22}},
    {2, 2, 20, 20, {period = 300, cols = 260}}, {1, 2, 20, 20, {period = 416, cols = 280}},
}

describe("fourier_project", function()
    for _, case in ipairs(CASES) do
        local slices, count, high, wide, options = table.unpack(case)
        local values, bins -- of both accuracies
        for accuracy, bound in pairs {fast = 2e-4, exact = 2e-6} do
            it(("is the sum over %d x %d pixels at %d angles, %s"):format(high, wide, count,
                accuracy), function()
                local angles = random_angles(count)
                local volume <close> = mb.random({slices, high, wide}, {seed = wide, low = -1})
                local result <close> = mb.fourier_project(volume, angles,
                    with(options, {accuracy = accuracy}))
                local rows = result:to_table()
                local cols = select(3, sizes_of(options, high, wide))
                assert.same({slices, count, cols}, result.shape)
                local step = math.max(1, count * cols * high * wide // 200000) | 1
                if not values then
                    values, bins = defined(volume:to_table(), angles, options, step)
                end
                for z = 1, slices do
                    local off = deviation(rows[z], values[z], bins, options.scale or 1)
                    assert.is_true(off < bound, ("slice %d: %g"):format(z, off))
                end
            end)
        end
    end

    helper.each_device(function(id, it_on)
        for accuracy, bound in pairs {fast = 1e-4, exact = 1e-6} do
            it_on("is the adjoint of fourier_reconstruct without its filter, " .. accuracy,
                function()
                for i, case in ipairs(CASES) do
                    local slices, count, high, wide, options = table.unpack(case)
                    local angles = random_angles(count)
                    local ny, nx, cols, roi = sizes_of(options, high, wide)
                    local volume <close> = mb.random({slices, high, wide},
                        {seed = i, device = id})
                    local sino <close> = mb.random({slices, count, cols},
                        {seed = 100 + i, device = id})
                    local forward <close> = mb.fourier_project(volume, angles,
                        with(options, {accuracy = accuracy}))
                    local back <close> = mb.fourier_reconstruct(sino, angles,
                        with({accuracy = accuracy, filter = "none", scale = options.scale or 1,
                            size = {ny, nx}, roi = roi}, {center = options.center,
                            shifts = options.shifts, circle = options.circle,
                            period = options.period}))
                    local ax_y, x_aty = dot(forward, sino), dot(volume, back)
                    assert.near(ax_y, x_aty, bound * math.abs(ax_y), "case " .. i)
                end
            end)
        end

        it_on("makes the same rows whatever their company, bit by bit", function()
            local angles = random_angles(19)
            local volume <close> = mb.random({23, 37, 40}, {seed = 4, low = -1, device = id})
            for _, options in ipairs {{}, {accuracy = "exact", circle = 1}, {cols = 140}} do
                local whole <close> = mb.fourier_project(volume, angles, options)
                for _, size in ipairs {2, 4, 6, 18} do
                    for first = 1, 23, size do
                        local rows <close> = volume:view {first, math.min(23, first + size - 1)}
                        local part <close> = mb.fourier_project(rows, angles, options)
                        local expected <close> = whole:view {first,
                            math.min(23, first + size - 1)}
                        assert.same(expected:to_table(), part:to_table())
                    end
                end
                for _, most in ipairs {1, 2, 4, 8} do
                    local again <close> = mb.fourier_project(volume, angles,
                        with(options, {pairs = most}))
                    assert.same(whole:to_table(), again:to_table())
                end
            end
        end)
    end)

    it("keeps the mass", function()
        local volume <close> = mb.random({20, 20}, {seed = 5})
        local r <close> = mb.fourier_project(volume, random_angles(9),
            {cols = 4096, accuracy = "exact"})
        local mass = volume:sum()
        for k = 1, 9 do
            local row <close> = r:view(k)
            assert.near(mass, row:sum(), 1e-3 * mass) -- what rings beyond the detector
        end
    end)

    it("gives line integrals of a smooth object, at 45 degrees too", function()
        -- A Gaussian: its projections are Gaussians, at every angle the same.
        local n, sigma, cx, cy = 65, 4, 6, 9
        local slice = {}
        for y = 0, n - 1 do
            slice[y + 1] = {}
            for x = 0, n - 1 do
                slice[y + 1][x + 1] =
                    math.exp(-((x - 32 - cx) ^ 2 + (32 - y - cy) ^ 2) / (2 * sigma ^ 2))
            end
        end
        local volume <close> = mb.array(slice)
        local angles, want = {0, 0.4, pi / 4, pi / 2, 2, 3 * pi / 4, 3, 5}, {}
        for k, t in ipairs(angles) do
            want[k] = {}
            for u = 0, n - 1 do
                local s = u - 33.5 - cx * math.cos(t) - cy * math.sin(t)
                want[k][u + 1] = math.sqrt(2 * pi) * sigma * math.exp(-s ^ 2 / (2 * sigma ^ 2))
            end
        end
        local fast <close> = mb.fourier_project(volume, angles, {center = 33.5})
        helper.assert_close(want, fast, 1e-4)
        local exact <close> = mb.fourier_project(volume, angles, {center = 33.5,
            accuracy = "exact"})
        helper.assert_close(want, exact, 3e-6)
    end)

    -- The phantom's own voxels, averaged over 4^2 points each, are what is projected.
    it("projects the Shepp-Logan phantom as its ellipses do", function()
        local n, theta = 128, mb.tomo.angles(60)
        local ellipsoids, height = mb.phantom.scale(mb.phantom.shepp_logan, n / 2), -0.15 * n / 2
        local frames <close> = mb.ellipsoid_projections(ellipsoids, theta, {height}, n,
            {center = 66.25})
        local want <close> = frames:permute(2, 1, 3)
        local volume <close> = mb.ellipsoid_volume(ellipsoids, {height}, {n, n})
        local got <close> = mb.fourier_project(volume, theta, {center = 66.25})
        local plain <close> = mb.project(volume, theta, {center = 66.25})
        local truth <close> = want:copy()
        assert.is_true(relative(got, truth) < 0.01, relative(got, truth))
        assert.is_true(relative(got, plain) < 0.02, relative(got, plain))
    end)

    it("leaves out what the mask hides, whatever it is", function()
        local n, angles = 30, random_angles(5)
        local volume <close> = mb.random({3, n, n}, {seed = 3})
        local disc <close> = mb.ones {3, n, n}
        mb.circular_mask(disc, {radius = 0.8, out = disc})
        local inside <close> = volume * disc
        local expected <close> = mb.fourier_project(inside, angles, {circle = 0.8})
        local corner <close> = volume:view(2, {1, 3}, {1, 3})
        corner:fill(0 / 0)
        local got <close> = mb.fourier_project(volume, angles, {circle = 0.8})
        assert.same(expected:to_table(), got:to_table())
    end)

    it("keeps what is not finite in its pair of slices", function()
        local angles = random_angles(6)
        local volume <close> = mb.random({6, 14, 14}, {seed = 3})
        local clean <close> = mb.fourier_project(volume, angles)
        local pixel <close> = volume:view(3, 4, {4, 4})
        pixel:fill(0 / 0)
        local spoiled <close> = mb.fourier_project(volume, angles)
        for z = 1, 6 do
            local a <close> = clean:view(z)
            local b <close> = spoiled:view(z)
            local difference <close> = a - b
            local norm = difference:norm()
            assert.is_true((z == 3 or z == 4) and norm ~= norm or norm == 0, z .. ": " .. norm)
        end
    end)

    it("reads and writes rows with gaps between them", function()
        local angles = random_angles(7)
        local wide <close> = mb.random({3, 12, 40}, {seed = 2})
        local volume <close> = wide:view(mb.all, mb.all, {5, 30})
        local copy <close> = volume:copy()
        local expected <close> = mb.fourier_project(copy, angles)
        local projections <close> = mb.zeros {7, 3, 26}
        local out <close> = projections:permute(2, 1, 3)
        mb.fourier_project(volume, angles, {out = out})
        assert.same(expected:to_table(), out:to_table())
    end)

    it("says what its limit on pairs saves", function()
        local function scratch(most)
            return mb.op.estimate("fourier_project", {{"f32", 16, 64, 64}},
                {angles = {0, 1}, pairs = most}).scratch
        end
        assert.is_true(scratch(1) < scratch(2) and scratch(2) < scratch(4)
            and scratch(4) < scratch(0))
        assert.equal(scratch(0), scratch(8))
    end)

    it("says what is wrong", function()
        local volume <close> = mb.zeros {4, 9}
        for _, case in ipairs {
            {"angles", {}, {}}, {"shifts", {0, 1}, {shifts = {1}}}, {"cols", {0}, {cols = -1}},
            {"size", {0}, {roi = {0, 4, 0, 9}}}, {"size", {0}, {size = {4, 9, 1}}},
            {"size", {0}, {size = {4.5, 9}}},
            {"volume", {0}, {size = {4, 10}}, "size is 4 x 10"},
            {"volume", {0}, {size = 9, roi = {0, 5, 0, 9}}, "roi is 5 x 9"},
            {"roi", {0}, {size = 9, roi = {0, 4, 1, 10}}}, {"roi", {0}, {size = 9, roi = {0, 4}}},
            {"accuracy", {0}, {accuracy = "best"}}, {"period", {0}, {period = 11}},
            {"period", {0}, {period = 8}}, {"pairs", {0}, {pairs = 9}},
        } do
            local text, err = helper.failure(mb.fourier_project, volume, case[2], case[3])
            assert.equal(case[1], err.arg, text)
            assert.is_truthy(not case[4] or text:find(case[4], 1, true), text)
        end
    end)

    helper.gpu_it("makes grids that are too large for its own transforms by the FFT library",
        function()
        local n, angles = 13500, {0.3, 1.9, 4}
        local random <close> = mb.random({1, 20, 20}, {seed = 3, low = -1})
        local volume <close> = mb.zeros({1, n, n}, {device = "cuda:0"})
        local crop <close> = volume:view(mb.all, {6741, 6760}, {6746, 6765})
        local part <close> = random:to("cuda:0")
        mb.convert(part, "f32", {out = crop})
        local o = {cols = 64, center = 31.5, circle = 0.004, size = {n, n}}
        local whole <close> = mb.fourier_project(volume, angles, o)
        o.roi = {6740, 6760, 6745, 6765}
        local expected <close> = mb.fourier_project(part, angles, o)
        assert.is_true(relative(whole, expected) < 1e-3)
    end)

    for accuracy, bound in pairs {fast = 5e-5, exact = 5e-6} do
        for _, case in ipairs {
            {1, 5, 17, 17, {}}, {19, 181, 127, 127, {}}, {1, 181, 511, 511, {}},
            {3, 721, 320, 320, {circle = 1}}, {4, 31, 300, 1, {}}, {5, 31, 1, 300, {}},
            {33, 1, 40, 40, {roi = {10, 50, 480, 520}, size = {1000}}},
            {1, 21, 100, 70, {roi = {1000, 1100, 30, 100}, size = {2160}}},
            {2, 11, 60, 60, {shifts = {3, -2, 500, 0, 0, 9, 1, 2, 3, 4, 5},
                roi = {0, 60, 1200, 1260}, size = {2560}}},
            {100, 31, 140, 140, {}}, {7, 5, 700, 700, {}}, {3, 2, 1400, 1400, {}},
            {2, 5, 100, 100, {circle = 1, roi = {2000, 2100, 2000, 2100}, size = {4100}}},
            {1, 7, 300, 300, {center = 20}}, {1, 9, 30, 30, {cols = 3000}},
            {3, 5, 200, 200, {period = 416}}, {3, 5, 200, 200, {period = 400}},
            {3, 3, 20, 20, {cols = 20000}},
        } do
            local slices, count, high, wide, o = table.unpack(case)
            helper.gpu_it(("is the same on the GPU: %d slices of %d x %d at %d angles, %s"):format(
                slices, high, wide, count, accuracy), function()
                local given = with(o, {accuracy = accuracy})
                local angles = random_angles(count)
                local volume <close> = mb.random({slices, high, wide}, {seed = 3, low = -1})
                local expected <close> = mb.fourier_project(volume, angles, given)
                local on_gpu <close> = volume:to("cuda:0")
                local result <close> = mb.fourier_project(on_gpu, angles, given)
                local back <close> = result:to("host")
                helper.assert_close(expected, back, bound)
            end)
        end
    end
end)
