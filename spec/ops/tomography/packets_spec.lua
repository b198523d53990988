-- The reconstruction operators depend on the packets of slices alone: the whole is the same, to the
-- bit, as its pieces of whole packets, and a last packet is what it is by itself.
local helper = require "spec.helper"
local mb = require "moonbeam"

-- Are rows first .. last of `whole` what `run` makes of those rows alone?
local function same(whole, sino, run, first, last)
    local from <close> = sino:view({first, last}, mb.all, mb.all)
    local piece <close> = run(from)
    local part <close> = whole:view({first, last}, mb.all, mb.all)
    local difference <close> = piece - part
    local low, high = difference:min(), difference:max()
    assert.is_true(low == 0 and high == 0, ("rows %d to %d of %d differ by %g, %g"):format(first,
        last, sino.shape[1], low, high))
    return (last - first + 1)
end

-- Cuts at packets of `packet` rows: every packet alone, two and three together, all but the first.
local function check(sino, packet, run)
    local whole <close> = run(sino)
    local rows, compared = sino.shape[1], 0
    for _, packets in ipairs {1, 2, 3} do
        for first = 1, rows, packets * packet do
            compared = compared + same(whole, sino, run, first,
                math.min(first + packets * packet - 1, rows))
        end
    end
    if rows > packet then
        compared = compared + same(whole, sino, run, packet + 1, rows)
    end
    assert.equal(3 * rows + math.max(rows - packet, 0), compared)
end

local function noise(rows, angles, cols, seed)
    return mb.random({rows, angles, cols}, {seed = seed, low = -1, high = 1, device = "cuda:0"})
end

describe("packets of", function()
    for _, accuracy in ipairs {"fast", "exact"} do
        helper.gpu_it("backproject, " .. accuracy, function()
            for i, case in ipairs {{1, 641, 40}, {4, 641, 40}, {17, 641, 61}, {18, 700, 33},
                {36, 640, 50}, {70, 2100, 37}, {101, 641, 90}, {16, 5, 64}, {37, 7, 129},
                {75, 640, 20}} do
                local rows, angles, cols = table.unpack(case)
                local theta = mb.tomo.angles(angles)
                local sino <close> = noise(rows, angles, cols, i)
                check(sino, 16, function(from)
                    return mb.backproject(from, theta, {accuracy = accuracy, center = cols / 2.3,
                        size = {cols + 9, cols}})
                end)
            end
        end)

        helper.gpu_it("fourier_reconstruct, " .. accuracy, function()
            for i, case in ipairs {{1, 30, 300}, {2, 30, 300}, {3, 41, 301}, {9, 30, 300},
                {10, 31, 260}, {20, 12, 700}, {37, 9, 280}, {7, 20, 100}} do
                local rows, angles, cols = table.unpack(case)
                local theta = mb.tomo.angles(angles)
                local sino <close> = noise(rows, angles, cols, i)
                for _, options in ipairs {{circle = 1}, {size = {cols, cols - 30}},
                    {pad_width = 4 * ((2 * cols + 90) // 4)}, {pairs = 2}} do
                    options.accuracy, options.center = accuracy, cols / 2.1
                    check(sino, 2, function(from)
                        return mb.fourier_reconstruct(from, theta, options)
                    end)
                end
            end
        end)
    end

    helper.gpu_it("backproject keep what is not finite in its slice", function()
        for i, case in ipairs {{2, 640}, {4, 640}, {7, 640}, {16, 640}, {8, 20}, {12, 20}} do
            local rows, angles = table.unpack(case)
            local theta = mb.tomo.angles(angles)
            local sino <close> = noise(rows, angles, 50, i)
            local clean <close> = mb.backproject(sino, theta)
            local row <close> = sino:view(2, 3, {20, 24})
            row:fill(0 / 0)
            local spoiled <close> = mb.backproject(sino, theta)
            for z = 1, rows do
                local a <close> = clean:view(z, mb.all, mb.all)
                local b <close> = spoiled:view(z, mb.all, mb.all)
                local difference <close> = a - b
                local norm = difference:norm()
                assert.is_true(z == 2 and norm ~= norm or z ~= 2 and norm == 0,
                    ("%d slices, slice %d: %g"):format(rows, z, norm))
            end
        end
    end)

    helper.gpu_it("ramp_filter are rows", function()
        for i, case in ipairs {{5, 7, 300, {}}, {3, 11, 64, {}}, {4, 3000, 30, {}},
            {3, 5, 700, {pad_width = 1500}}, {2, 9, 500, {pad_width = 2044, padding = "edge"}},
            {2, 3, 17000, {}}} do
            local rows, angles, cols, options = table.unpack(case)
            local sino <close> = noise(rows, angles, cols, i)
            local function run(from)
                return mb.ramp_filter(from, options)
            end
            check(sino, 1, run)
            local turned <close> = sino:permute(2, 1, 3)
            check(turned, 1, run)
        end
    end)

    helper.gpu_it("project", function()
        for _, case in ipairs {{1, 50}, {4, 50}, {9, 50}, {16, 7}, {19, 300}, {26, 400}, {37, 50},
            {49, 300}, {70, 50}, {101, 300}} do
            local rows, angles = table.unpack(case)
            local volume <close> = noise(rows, 160, 170, rows)
            for _, method in ipairs {"pixel", "distance"} do
                check(volume, 16, function(from)
                    return mb.project(from, mb.tomo.angles(angles), {cols = 180, method = method})
                end)
            end
        end
    end)

    helper.gpu_it("project keep what is not finite in its slice", function()
        local theta = mb.tomo.angles(40)
        for _, rows in ipairs {3, 9, 16, 40} do
            local volume <close> = noise(rows, 60, 70, rows)
            local clean <close> = mb.project(volume, theta)
            local row <close> = volume:view(2, 30, {20, 24})
            row:fill(0 / 0)
            local spoiled <close> = mb.project(volume, theta)
            for z = 1, rows do
                local a <close> = clean:view(z, mb.all, mb.all)
                local b <close> = spoiled:view(z, mb.all, mb.all)
                local difference <close> = a - b
                local norm = difference:norm()
                assert.is_true(z == 2 and norm ~= norm or z ~= 2 and norm == 0,
                    ("%d slices, slice %d: %g"):format(rows, z, norm))
            end
        end
    end)
end)
