-- Both methods of reconstruction on the GPU, for odd sizes, slice counts and angle sets: as on the
-- host, and the same in chunks.
local helper = require "spec.helper"
local mb = require "moonbeam"

local pi = math.pi

local SETS = {
    {name = "a whole turn", make = function(count) return mb.tomo.angles(count, 2 * pi) end},
    {name = "in no order", make = function(count)
        local angles = {}
        for k = 1, count do
            angles[k] = 2 * pi * (k * 0.6180339887498949 % 1)
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

local ON_HOST = {1, 3, 33, 100} -- the slices that the host makes too

-- Projections of a phantom, a little different in every slice, as sinograms.
local function scan(slices, angles, n, device)
    local ellipsoids, heights = mb.phantom.scale(mb.phantom.shepp_logan, n / 2), {}
    for z = 1, slices do
        heights[z] = 0.2 * n * math.sin(z)
    end
    local frames <close> = mb.ellipsoid_projections(ellipsoids, angles, heights, n,
        {device = device})
    local sino <close> = frames:permute(2, 1, 3)
    return sino:copy()
end

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

-- What the host makes of the rows of ON_HOST, in that order.
local function on_host(reconstruct, sino, angles)
    local shape = sino.shape
    local rows <close> = mb.empty({#ON_HOST, shape[2], shape[3]})
    for i, z in ipairs(ON_HOST) do
        local from <close> = sino:view(z, mb.all, mb.all)
        local there <close> = from:to("host")
        local to <close> = rows:view(i, mb.all, mb.all)
        mb.convert(there, "f32", {out = to})
    end
    return reconstruct(rows, angles, {accuracy = "exact"})
end

-- Bounds on relative L2 differences; four times as much for one angle, which shows edges as steep
-- as samples are far apart.
local function check(reconstruct, n, bounds)
    for _, set in ipairs(SETS) do
        for _, count in ipairs {1, 181, 721} do
            local angles = set.make(count)
            local sino <close> = scan(100, angles, n, "cuda:0")
            local expected <close> = on_host(reconstruct, sino, angles)
            for accuracy, bound in pairs(bounds) do
                local options = {accuracy = accuracy}
                local function expect(a, b, what)
                    local err = relative(a, b)
                    assert.is_true(err <= (count > 1 and bound or 4 * bound),
                        ("%d columns, %d angles %s, %s, %s: %.2g"):format(n,
                        count, set.name, accuracy, what, err))
                end
                local whole <close> = reconstruct(sino, angles, options)
                for i, z in ipairs(ON_HOST) do
                    local slice <close> = whole:view(z, mb.all, mb.all)
                    local back <close> = slice:to("host")
                    local wanted <close> = expected:view(i, mb.all, mb.all)
                    expect(back, wanted, ("slice %d and the host's"):format(z))
                end
                for _, chunk in ipairs {{1, 1}, {1, 3}, {1, 33}, {34, 100}} do
                    local rows <close> = sino:view(chunk, mb.all, mb.all)
                    local part <close> = reconstruct(rows, angles, options)
                    local of_whole <close> = whole:view(chunk, mb.all, mb.all)
                    expect(part, of_whole,
                        ("slices %d to %d alone and among all"):format(table.unpack(chunk)))
                end
            end
        end
    end
end

describe("reconstruction", function()
    for _, n in ipairs {511, 640, 1000, 2160, 2560} do
        helper.gpu_it(("by filtered back-projection is the host's for %d columns, in chunks too"):format(n), function()
            check(mb.tomo.fbp, n, {fast = 1e-4, exact = 2e-5})
        end)

        helper.gpu_it(("by the direct Fourier method is the host's for %d columns, in chunks too"):format(n), function()
            check(mb.fourier_reconstruct, n, {fast = 1e-4, exact = 2e-5})
        end)
    end
end)
