-- backproject of odd sizes, slice counts and angle sets against sums in double precision, at random
-- pixels.
local helper = require "spec.helper"
local mb = require "moonbeam"
local angle_sets = require "spec.fixtures.angle_sets"

local pi = math.pi

-- Filtered sinograms of a phantom, a little different in every slice.
local function filtered(slices, angles, n, device)
    local ellipsoids, heights = mb.phantom.scale(mb.phantom.shepp_logan, n / 2), {}
    for z = 1, slices do
        heights[z] = 0.2 * n * math.sin(z)
    end
    local frames <close> = mb.ellipsoid_projections(ellipsoids, angles, heights, n,
        {device = device})
    local sino <close> = frames:permute(2, 1, 3)
    return mb.ramp_filter(sino)
end

local function value_at(rows, angles, n, x, y)
    local X, Y, sum = x - (n - 1) / 2, (n - 1) / 2 - y, 0
    for k, t in ipairs(angles) do
        local u = X * math.cos(t) + Y * math.sin(t) + (n - 1) / 2
        local i = math.floor(u)
        local f, row = u - i, rows[k]
        sum = sum + (1 - f) * (row[i + 1] or 0) + f * (row[i + 2] or 0)
    end
    return sum * pi / #angles
end

-- What slices should hold at some pixels, ten lines of ten, worked out once for each slice: a
-- function of z.
local function expected_of(sino, angles, n)
    local known = {}
    return function(z)
        if not known[z] then
            local from <close> = sino:view(z, mb.all, mb.all)
            local rows, draw, lines = from:to_table(), angle_sets.dice(n), {}
            for i = 1, 10 do
                lines[i] = {y = draw(n)}
                for k = 1, 10 do
                    local x = draw(n)
                    lines[i][k] = {x = x, value = value_at(rows, angles, n, x, lines[i].y)}
                end
            end
            known[z] = lines
        end
        return known[z]
    end
end

-- Relative L2 error at those pixels of the first and the last of `slices`.
local function error_of(slices, expected)
    local difference, norm = 0, 0
    for _, z in ipairs {1, slices.shape[1]} do
        for _, line in ipairs(expected(z)) do
            local from <close> = slices:view(z, line.y + 1, mb.all)
            local values = from:to_table()
            for _, pixel in ipairs(line) do
                difference, norm = difference + (values[pixel.x + 1] - pixel.value) ^ 2,
                    norm + pixel.value ^ 2
            end
        end
    end
    return math.sqrt(difference / norm)
end

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

-- Exact mode is held against double precision: one angle shows edges as steep as samples are far
-- apart, and coordinates are good to a few millionths of that. Fast mode is held against exact
-- mode, whole slices of it: what rounding to half precision does averages out over angles, and
-- fewer than 640 are not rounded.
local function check(device, n, slice_counts, angle_counts)
    for _, set in ipairs(angle_sets.list) do
        for _, count in ipairs(angle_counts) do
            local angles = set.make(count)
            local sino <close> = filtered(slice_counts[#slice_counts], angles, n, device)
            local expected = expected_of(sino, angles, n)
            for _, slices in ipairs(slice_counts) do
                local from <close> = sino:view({1, slices}, mb.all, mb.all)
                local exact <close> = mb.backproject(from, angles, {accuracy = "exact"})
                local fast <close> = mb.backproject(from, angles, {accuracy = "fast"})
                for accuracy, case in pairs {
                    exact = {error_of(exact, expected), count > 1 and 2e-6 or 2e-5},
                    fast = {relative(fast, exact), count >= 640 and 1e-4 or 0},
                } do
                    local err, bound = table.unpack(case)
                    assert.is_true(err <= bound,
                        ("%d columns, %d slices, %d angles %s, %s: error %.2g"):format(n, slices,
                        count,
                        set.name, accuracy, err))
                end
            end
        end
    end
end

describe("backproject", function()
    it("is the sum of its samples for 511 columns", function()
        check("host", 511, {1, 3}, {1, 61})
    end)

    for _, n in ipairs {511, 640, 1000, 2160, 2560} do
        helper.gpu_it(("is the sum of its samples for %d columns, any number of slices, any angles"):format(n), function()
            check("cuda:0", n, {1, 3, 33, 100}, {1, 181, 640, 721})
        end)
    end

    helper.gpu_it("is the sum of its samples for many angles", function()
        check("cuda:0", 511, {9, 64}, {2049, 6000})
    end)
end)
