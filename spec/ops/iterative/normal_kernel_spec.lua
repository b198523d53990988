local mb = require "moonbeam"
local definition = require "spec.fixtures.normal_definition"
local helper = require "spec.helper"

local pi = math.pi

-- The spectrum of the kernel by its definition, [kx][ky], from 1.
local function spectrum(angles, py, px, o)
    local h = {}
    for dy = 1 - py // 2, py // 2 - 1 do
        h[dy] = {}
        for dx = 1 - px // 2, px // 2 - 1 do
            h[dy][dx] = definition.kernel(dx, dy, angles, o.period, o.weights)
        end
    end
    local result = {}
    for kx = 0, px // 2 do
        result[kx + 1] = {}
        for ky = 0, py - 1 do
            local sum = 0
            for dy = 1 - py // 2, py // 2 - 1 do
                for dx = 1 - px // 2, px // 2 - 1 do
                    sum = sum + h[dy][dx] * math.cos(2 * pi * (kx * dx / px + ky * dy / py))
                end
            end
            result[kx + 1][ky + 1] = sum * (o.scale or 1)
        end
    end
    return result
end

-- Largest difference, relative to the largest value.
local function difference(expected, got)
    local worst, most = 0, 0
    for i, row in ipairs(expected) do
        for k, value in ipairs(row) do
            worst, most = math.max(worst, math.abs(value - got[i][k])), math.max(most, math.abs(value))
        end
    end
    return worst / most
end

describe("normal_kernel", function()
    for _, case in ipairs {
        {{0}, 5, {}},
        {{pi / 2}, 6, {}},
        {{0, pi / 2, pi / 4, 3 * pi / 4, pi}, 9, {}},
        {{0.3, 1.1, 4.2, -2}, 7, {size = {3, 8}}},
        {{0.3, 1.1, 2.9}, 9, {size = 12, period = 10}}, -- displacements beyond half a period, and one
        {{0.3, 0.9}, 3, {size = 17, period = 4}},
        {{0.1, 0.7, 2}, 8, {weights = {1, 0.5, -2}, scale = 0.25, padded = {18, 28}}},
        {{1}, 1, {}},
    } do
        local angles, cols, o = table.unpack(case)
        helper.each_device(function(device, test)
            test(("is the spectrum of sums of sincs: %d angles, %d columns, %s, on %s"):format(#angles,
                cols, o.size and "a size" or "square", device), function()
                local made <close> = mb.normal_kernel(angles, cols, {size = o.size, period = o.period,
                    weights = o.weights, scale = o.scale, padded = o.padded, device = device})
                local half, py = table.unpack(made.shape)
                local expected = spectrum(angles, py, 2 * (half - 1), {period = o.period or 2 * cols,
                    weights = o.weights, scale = o.scale})
                assert.is_true(difference(expected, made:to_table()) < 1.3e-7)
            end)
        end)
    end

    helper.each_device(function(device, test)
        test("has the sum of weights in the middle: the mean of the spectrum, on " .. device, function()
            -- long rows: sines are turned hundreds of times, and several poles are passed
            local angles = {}
            for k = 1, 23 do
                angles[k] = k * 0.27
            end
            for _, period in ipairs {200, 1500} do
                local made <close> = mb.normal_kernel(angles, 150, {size = {8, 3000}, period = period,
                    device = device})
                local py, half = made.shape[2], made.shape[1]
                local rows = made:to_table()
                -- h at dy = 3 and a few dx, by the inverse transform in double
                for _, dx in ipairs {0, 1, 377, 1811, 2999} do
                    local sum = 0
                    for kx = 0, half - 1 do
                        local twice = (kx == 0 or kx == half - 1) and 1 or 2
                        for ky = 0, py - 1 do
                            sum = sum + twice * rows[kx + 1][ky + 1]
                                * math.cos(2 * pi * (kx * dx / (2 * half - 2) + ky * 3 / py))
                        end
                    end
                    local want = definition.kernel(dx, 3, angles, period)
                    assert.near(want, sum / (py * (2 * half - 2)), 3e-7)
                end
            end
        end)
    end)

    it("pads to the next 2^k or 3 2^k that is twice the slice", function()
        for n, padded in pairs {[1] = 2, [2] = 4, [3] = 6, [4] = 8, [5] = 12, [7] = 16, [9] = 24,
            [100] = 256, [192] = 384, [193] = 512} do
            local made = mb.op.estimate("normal_kernel", {}, {cols = n}).results[1].shape
            assert.same({padded // 2 + 1, padded}, made)
        end
    end)

    it("refuses weights of rays, odd periods and small grids", function()
        local text, err = helper.failure(mb.normal_kernel, {0, 1}, 5, {weights = {1, 1, 1}})
        assert.equal("weights", err.arg)
        assert.truthy(text:find("convolution", 1, true))
        text, err = helper.failure(mb.normal_kernel, {0, 1}, 3, {weights = {{1, 1, 1}, {1, 2, 1}}})
        assert.equal("weights", err.arg)
        assert.truthy(text:find("convolution", 1, true))
        for _, period in ipairs {11, 4} do
            local _, failure = helper.failure(mb.normal_kernel, {0}, 6, {period = period})
            assert.equal("period", failure.arg)
        end
        for _, padded in ipairs {10, 13, 22} do
            local _, failure = helper.failure(mb.normal_kernel, {0}, 6, {padded = padded})
            assert.equal("padded", failure.arg)
        end
        local _, empty = helper.failure(mb.normal_kernel, {}, 6)
        assert.equal("angles", empty.arg)
    end)
end)

describe("ramp_preconditioner", function()
    helper.each_device(function(device, test)
        test("is the length of the frequency, with a floor, on " .. device, function()
            local made <close> = mb.ramp_preconditioner({3, 5}, {floor = 0.1, device = device})
            local rows = made:to_table()
            assert.same({7, 6}, made.shape)
            for kx = 0, 6 do
                for ky = 0, 5 do
                    local fy = math.min(ky, 6 - ky) / 6
                    assert.near(math.sqrt((kx / 12) ^ 2 + fy ^ 2 + 0.01), rows[kx + 1][ky + 1], 1e-7)
                end
            end
        end)
    end)
end)
