-- backproject of odd sizes, slice counts and angle sets against sums in double precision, at random pixels.
local angle_sets = require "spec.fixtures.angle_sets"
local helper = require "spec.helper"
local mb = require "moonbeam"

local pi = math.pi

-- Filtered sinograms of a phantom, a little different in every slice.
local function filtered(slices, angles, n, device)
    local ellipsoids, heights = mb.phantom.scale(mb.phantom.shepp_logan, n / 2), {}
    for z = 1, slices do
        heights[z] = 0.2 * n * math.sin(z)
    end
    local frames <close> = mb.ellipsoid_projections(ellipsoids, angles, heights, n, {device = device})
    local sino <close> = frames:permute(2, 1, 3)
    return mb.ramp_filter(sino)
end

local function value_at(rows, angles, n, x, y)
    local X, Y, sum = x - (n - 1) / 2, (n - 1) / 2 - y, 0
    for k, t in ipairs(angles) do
        local u = X * math.cos(t) + Y * math.sin(t) + (n - 1) / 2
        local i = math.floor(u)
        local f = u - i
        sum = sum + (1 - f) * (rows[k][i + 1] or 0) + f * (rows[k][i + 2] or 0)
    end
    return sum * pi / #angles
end

-- The numbers of an array, read once and only where they are asked for.
local function rows_of(array, known)
    return function(z)
        if not known[z] then
            local slice <close> = array:view(z, mb.all, mb.all)
            known[z] = slice:to_table()
        end
        return known[z]
    end
end

-- Relative L2 error at some pixels of the first and the last of `slices`.
local function error_of(slices, rows, angles, n)
    local difference, norm, draw = 0, 0, angle_sets.dice(n)
    for _, z in ipairs {1, slices.shape[1]} do
        for _ = 1, 6 do
            local y = draw(n)
            local line <close> = slices:view(z, y + 1, mb.all)
            local values = line:to_table()
            for _ = 1, 10 do
                local x = draw(n)
                local value = value_at(rows(z), angles, n, x, y)
                difference, norm = difference + (values[x + 1] - value) ^ 2, norm + value ^ 2
            end
        end
    end
    return math.sqrt(difference / norm)
end

-- Rounding to half precision averages out over angles: 1e-4 at 1500 of them, that of noise when there are few. One angle shows
-- edges as steep as samples are far apart, and coordinates are good to a few millionths of that.
local function bound_of(accuracy, count)
    if accuracy == "exact" then
        return count > 1 and 2e-6 or 2e-5
    end
    return math.min(6e-4, 1e-4 * math.sqrt(1500 / count))
end

-- Every count of angles with another set; sizes begin with different ones.
local function check(device, n, slice_counts, angle_counts, first_set)
    for i, count in ipairs(angle_counts) do
        local set = angle_sets.list[(first_set + i) % #angle_sets.list + 1]
        local angles = set.make(count)
        local sino <close> = filtered(slice_counts[#slice_counts], angles, n, device)
        local rows = rows_of(sino, {})
        for _, slices in ipairs(slice_counts) do
            local from <close> = sino:view({1, slices}, mb.all, mb.all)
            for _, accuracy in ipairs {"fast", "exact"} do
                local made <close> = mb.backproject(from, angles, {accuracy = accuracy})
                local err = error_of(made, rows, angles, n)
                assert.is_true(err <= bound_of(accuracy, count), ("%d columns, %d slices, %d angles %s, %s: error %.2g"):format(n,
                    slices, count, set.name, accuracy, err))
            end
        end
    end
end

describe("backproject", function()
    it("is the sum of its samples for 511 columns", function()
        for first_set = 1, #angle_sets.list do
            check("host", 511, {1, 3}, {1, 61}, first_set)
        end
    end)

    for i, n in ipairs {511, 640, 1000, 2160, 2560} do
        helper.gpu_it(("is the sum of its samples for %d columns, any number of slices, any angles"):format(n), function()
            check("cuda:0", n, {1, 3, 33, 100}, {1, 181, 721}, i)
        end)
    end
end)
