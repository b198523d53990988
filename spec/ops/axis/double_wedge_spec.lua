local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- The mean magnitude of the masked 2-D transform of rows on top of rows mirrored about a center on
-- whole or half columns, by the definition.
local function metric_of(rows, center, ratio, drop)
    local height, width = #rows, #rows[1]
    local shift, image = math.tointeger(2 * center - (width - 1)), {}
    for r = 1, height do
        local line = {}
        for x = 0, width - 1 do
            local from = width - 1 - (x - shift)
            line[x] = from >= 0 and from < width and rows[r][from + 1] or rows[height - r + 1][x + 1]
        end
        image[r - 1], image[height + r - 1] = {}, line
        for x = 0, width - 1 do
            image[r - 1][x] = rows[r][x + 1]
        end
    end
    local rise, sum = (2 * height - 1) / (4 * math.pi * height), 0
    drop = math.min(drop, math.floor(0.1 * height))
    for q = -height, height - 1 do
        local reach = math.abs(math.ceil(q * rise / (0.5 * ratio * width) * width))
        for k = -(width // 2), (width - 1) // 2 do
            if math.abs(q) > drop and math.abs(k) > 1 and math.abs(k) <= reach then
                local re, im = 0, 0
                for y = 0, 2 * height - 1 do
                    for x = 0, width - 1 do
                        local phase = -2 * math.pi * (q * y / (2 * height) + k * x / width)
                        re = re + image[y][x] * math.cos(phase)
                        im = im + image[y][x] * math.sin(phase)
                    end
                end
                sum = sum + math.sqrt(re ^ 2 + im ^ 2)
            end
        end
    end
    return sum / (2 * height * width)
end

describe("double_wedge", function()
    helper.each_device(function(device, it)
        it("is the masked mean of the transform's magnitudes on " .. device, function()
            for _, size in ipairs {{5, 8}, {12, 6}, {4, 7}, {1, 6}} do
                local sino <close> = mb.random(size, {seed = 4, device = device})
                local centers, expected, rows = {}, {}, sino:to_table()
                for i = 0, 2 * (size[2] - 1) do
                    centers[i + 1] = i / 2
                    expected[i + 1] = metric_of(rows, i / 2, 0.6, 1)
                end
                local metric <close> = mb.double_wedge(sino, centers, {ratio = 0.6, drop = 1})
                helper.assert_close(expected, metric, 1e-5)
            end
        end)

        it("does not depend on the other trials or rows on " .. device, function()
            local sino <close> = mb.random({2, 40, 90}, {seed = 5, device = device})
            local list, centers = {}, {20, 40, 44.25, 44.5, 44.75, 45, 45, 60.2}
            local all <close> = mb.double_wedge(sino, centers)
            local second <close> = sino:view(2, mb.all, mb.all)
            for i, center in ipairs(centers) do
                local one <close> = mb.double_wedge(second, {center})
                list[i] = one:item(1)
            end
            assert.same(list, all:to_table()[2])
        end)

        it("takes views, and gives NaN for values that are not finite on " .. device, function()
            local frames <close> = mb.random({20, 3, 31}, {seed = 6, device = device})
            local rows <close> = frames:permute(2, 1, 3)
            local dense <close> = rows:copy()
            local a <close> = mb.double_wedge(rows, {14, 15, 15.25})
            local b <close> = mb.double_wedge(dense, {14, 15, 15.25})
            assert.same(b:to_table(), a:to_table())
            dense:view(2, 3, {4, 4}):fill(0 / 0)
            local bad <close> = mb.double_wedge(dense, {14, 15, 15.25})
            local values = bad:to_table()
            assert.is_true(values[2][1] ~= values[2][1])
            assert.same(values[1], b:to_table()[1])
        end)
    end)

    it("is 0 for sinograms whose whole spectrum is left out", function()
        for _, size in ipairs {{1, 1}, {2, 2}, {9, 1}, {9, 3}} do
            local sino <close> = mb.random(size, {seed = 7})
            local metric <close> = mb.double_wedge(sino, {0, (size[2] - 1) / 2})
            assert.same({0, 0}, metric:to_table())
        end
    end)

    for _, case in ipairs {{61, 80, 0.5, 20}, {60, 81, 0.7, 20}, {33, 47, 0.5, 3}, {7, 5, 1, 20},
        {90, 64, 0.5, 20}} do
        it(("has algotom's values for %d x %d"):format(case[1], case[2]), function()
            oracle.needs "algotom"
            local height, width, ratio, drop = table.unpack(case)
            local sino <close> = mb.random({height, width}, {seed = 3})
            local centers = {}
            for i = 0, 4 * (width - 1) do
                centers[i + 1] = i / 4
            end
            local metric <close> = mb.double_wedge(sino, centers, {ratio = ratio, drop = drop})
            local theirs <close> = oracle.run("algotom", ([[
from algotom.prep import calculation
mask = calculation.make_inverse_double_wedge_mask(2 * %d, %d, 0.5 * %g * %d,
                                                  hor_drop=None if %d == 20 else %d)
sino = sino.astype(np.float64)
theirs = [calculation.calculate_center_metric(c, sino, np.fliplr(sino), np.flipud(sino), mask)
          for c in np.arange(0, %d + 0.1, 0.25)]
]]):format(height, width, ratio, width, drop, drop, width - 1), {sino = sino}, {"theirs"})
            helper.assert_close(theirs:to_table(), metric, 1e-5)
        end)
    end

    it("says what is wrong with centers", function()
        local sino <close> = mb.zeros({4, 10})
        for centers, words in pairs {[{3, 2}] = "element 2 of centers is 2, less than the one",
            [{9.5}] = "element 1 of centers is 9.5; the sinogram has columns 0 to 9",
            [{}] = "0 centers are given; a call tries 1 to 16384"} do
            local ok, problem = pcall(mb.double_wedge, sino, centers)
            assert.is_false(ok)
            assert.matches(words, problem.message, 1, true)
        end
    end)
end)
