local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("rl_split_ratio on " .. device:match("^%a+"), function()
        -- With blurred = 2 the ratios are the halves themselves.
        local function halves(image, seed)
            local n = image.shape[#image.shape]
            local shape = image.shape
            shape[#shape] = 2 * (n // 2 + 1)
            local first <close> = mb.full(shape, 2, { device = device })
            local second <close> = mb.zeros(shape, { device = device })
            local _, _, metric = mb.rl_split_ratio(first, second, image, { seed = seed })
            local a, b = first:to_table(), second:to_table()
            local result = { metric:item(1), metric:item(2) }
            metric:release()
            return a, b, result
        end

        test("deals out every photon, binomially", function()
            for _, case in ipairs { { 1, 20000 }, { 10, 20000 }, { 64, 10000 }, { 65, 10000 },
                { 1000, 5000 }, { 70000, 5000 } } do
                local counts, n = table.unpack(case)
                local image <close> = mb.full({ n }, counts, { device = device })
                local a, b = halves(image, 7)
                local sum, squares = 0, 0
                for i = 1, n do
                    assert.equal(counts, a[i] + b[i])
                    assert.equal(a[i], math.floor(a[i]))
                    sum = sum + a[i] - counts / 2
                    squares = squares + (a[i] - counts / 2) ^ 2
                end
                -- Mean 0 and variance counts / 4, within 5 standard errors.
                local variance = counts / 4
                assert.is_true(math.abs(sum / n) < 5 * math.sqrt(variance / n),
                    ("mean %g of %d"):format(sum / n, counts))
                assert.is_true(math.abs(squares / n / variance - 1) < 5 * math.sqrt(2 / n) + 1e-9,
                    ("variance %g of %d"):format(squares / n / variance, counts))
            end
        end)

        test("depends on the seed and the voxel's place alone", function()
            local image <close> = mb.random({ 6, 7, 9 }, { seed = 1, dtype = "u16", high = 500,
                device = device })
            local same = { halves(image, 3) }
            assert.same(same, { halves(image, 3) })
            assert.is_not.same(same[1], (halves(image, 4)))
            local host <close> = image:to("host")
            local real <close> = host:cast("f32")
            local n = 0
            for _, v in ipairs(helper.flatten(same[1])) do
                n = n + v
            end
            assert.near(0.5, n / real:sum(), 0.01)
        end)

        test("shares fractions and dark pixels, weighs, measures both halves", function()
            local image <close> = mb.array({ 0, 0.5, 2.5, -1 }, { device = device })
            local a, b, metric = halves(image, 1)
            assert.same({ 0, 0.25, a[3], 0, 0, 0 }, a)
            assert.near(2.5, a[3] + b[3], 1e-6)
            local expected = { 0, 0 }
            for k, half in ipairs { a, b } do
                for i = 1, 4 do
                    local y = half[i]
                    expected[k] = expected[k] + (y > 0 and y * math.log(y) - y + 1 or 1 - y)
                end
            end
            assert.near(expected[1], metric[1], 1e-6)
            assert.near(expected[2], metric[2], 1e-6)
            local first <close> = mb.full({ 6 }, 2, { device = device })
            local second <close> = mb.full({ 6 }, 9, { device = device })
            local weights <close> = mb.array({ 1, 0, 2, 0 }, { device = device })
            local _, _, sums = mb.rl_split_ratio(first, second, image,
                { seed = 1, weights = weights })
            sums:release()
            helper.assert_close({ 0, 0, 2 * a[3], 0, 0, 0 }, first, 1e-6)
            helper.assert_close({ 0, 0, 2 * b[3], 0, 0, 0 }, second, 1e-6)
        end)
    end)
end)
