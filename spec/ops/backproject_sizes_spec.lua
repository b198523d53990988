-- backproject of odd sizes, slice counts and angle sets against sums in double precision, at random pixels.
local helper = require "spec.helper"
local mb = require "moonbeam"

local pi = math.pi

-- Whole numbers of 0 to n - 1 in no order, the same every time.
local function dice(seed)
    local state = seed
    return function(n)
        state = state * 6364136223846793005 + 1442695040888963407
        return (state >> 33) % n
    end
end

local SETS = {
    {name = "a whole turn", make = function(count) return mb.tomo.angles(count, 2 * pi) end},
    {name = "in no order", make = function(count)
        local angles, draw = {}, dice(count)
        for k = 1, count do
            angles[k] = 2 * pi * (draw(1 << 20) / (1 << 20) - 0.25)
        end
        return angles
    end},
    {name = "backwards", make = function(count)
        local angles = {}
        for k = 1, count do
            angles[k] = pi * (count - k + 0.5) / count
        end
        return angles
    end},
}

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
    local difference, norm, draw = 0, 0, dice(n)
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

local function check(device, n, most, counts)
    for _, count in ipairs(counts) do
        for _, set in ipairs(SETS) do
            local angles = set.make(count)
            local sino <close> = filtered(most[#most], angles, n, device)
            local rows = rows_of(sino, {})
            for _, slices in ipairs(most) do
                local from <close> = sino:view({1, slices}, mb.all, mb.all)
                for accuracy, bound in pairs {fast = count > 1 and 1e-4 or 6e-4, exact = 2e-6} do
                    local made <close> = mb.backproject(from, angles, {accuracy = accuracy})
                    local err = error_of(made, rows, angles, n)
                    assert.is_true(err <= bound, ("%d columns, %d slices, %d angles %s, %s: error %.2g"):format(n, slices, count,
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

    -- One angle has nothing to average the rounding of half-precision samples, so there it is that of noise.
    for _, n in ipairs {511, 640, 1000, 2160, 2560} do
        helper.gpu_it(("is the sum of its samples for %d columns, any number of slices, any angles"):format(n), function()
            check("cuda:0", n, {1, 3, 33, 100}, {1, 181, 721})
        end)
    end
end)
