-- project on a GPU, for odd sizes, slice counts and angle sets: against the host, which is held
-- against the definition (project_spec.lua), and as the adjoint of back-projection there.
local helper = require "spec.helper"
local mb = require "moonbeam"
local angle_sets = require "spec.fixtures.angle_sets"

local function relative(a, b)
    local difference <close> = a - b
    return difference:norm() / b:norm()
end

local function dot(a, b)
    local product <close> = a * b
    return product:sum()
end

-- {slices, ny, nx, angles, options}
local cases = {
    {1, 131, 97, 30, {}}, {4, 300, 150, 181, {circle = 0.95}}, {9, 1, 1, 3, {cols = 5}},
    {16, 128, 128, 1, {}}, {17, 129, 130, 2, {cols = 201}}, {16, 1, 260, 21, {cols = 263}},
    {16, 260, 1, 21, {}}, {25, 33, 400, 61, {center = 120.25, cols = 300}},
    {33, 257, 301, 300, {}}, {49, 140, 139, 64, {circle = 1, cols = 150}},
    {64, 300, 300, 721, {}}, {64, 17, 19, 5, {cols = 7}}, {70, 131, 90, 45, {scale = 0.37}},
    {18, 90, 131, 7, {shifts = {0.5, -1.25, 3, 100, -1e6, 0, 40.5}, cols = 160}},
}

local function title(case)
    return ("%d slices of %d x %d at %d angles"):format(case[1], case[2], case[3], case[4])
end

describe("project on a GPU", function()
    for _, case in ipairs(cases) do
        local slices, ny, nx, count, options = table.unpack(case)
        for _, method in ipairs {"pixel", "distance"} do
            local o = {method = method}
            for key, value in pairs(options) do
                o[key] = value
            end

            helper.gpu_it(("is that of the host, %s, by %s"):format(title(case), method), function()
                local host <close> = mb.random({slices, ny, nx}, {seed = count, low = -1})
                local volume <close> = host:to("cuda:0")
                for _, set in ipairs(angle_sets.list) do
                    local angles = set.make(count)
                    local expected <close> = mb.project(host, angles, o)
                    local result <close> = mb.project(volume, angles, o)
                    local back <close> = result:to("host")
                    local err = relative(back, expected)
                    assert.is_true(err <= 5e-6, ("%s: error %.2g"):format(set.name, err))
                end
            end)

            helper.gpu_it(("is the adjoint of backproject, %s, by %s"):format(title(case), method),
                function()
                local angles = angle_sets.list[2].make(count)
                local volume <close> = mb.random({slices, ny, nx}, {seed = 1, device = "cuda:0"})
                local forward <close> = mb.project(volume, angles, o)
                local sino <close> = mb.random(forward.shape, {seed = 2, device = "cuda:0"})
                local back <close> = mb.backproject(sino, angles, {size = {ny, nx},
                    accuracy = "exact", scale = o.scale or 1, center = o.center,
                    circle = o.circle, shifts = o.shifts, method = method})
                local ax_y, x_aty = dot(forward, sino), dot(volume, back)
                assert.near(ax_y, x_aty, 1e-5 * math.abs(ax_y))
            end)
        end
    end

    helper.gpu_it("is rows of any strides, and adds to nothing that was there before", function()
        local whole <close> = mb.random({21, 140, 190}, {seed = 7, device = "cuda:0"})
        local part <close> = whole:view({3, 20}, {5, 137}, {11, 181})
        local copy <close> = part:copy()
        local angles = mb.tomo.angles(91)
        local expected <close> = mb.project(copy, angles)
        local result <close> = mb.full(expected.shape, 1e9, {device = "cuda:0"})
        mb.project(part, angles, {out = result})
        local difference <close> = result - expected
        assert.equal(0, math.max(-difference:min(), difference:max()))
    end)

    helper.gpu_it("is the same at any scale of the values", function()
        local volume <close> = mb.random({16, 150, 150}, {seed = 3, low = -1, device = "cuda:0"})
        local angles = mb.tomo.angles(60)
        local expected <close> = mb.project(volume, angles)
        for _, factor in ipairs {2.0 ^ -90, 2.0 ^ 80} do
            local scaled <close> = volume * factor
            local result <close> = mb.project(scaled, angles)
            local back <close> = result * (1 / factor)
            local difference <close> = back - expected
            assert.equal(0, math.max(-difference:min(), difference:max()))
        end
    end)
end)
