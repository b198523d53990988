local mb = require "moonbeam"
local helper = require "spec.helper"

describe("rl_total_variation", function()
    it("is its formula on a row", function()
        local x, lambda, epsilon, spacing = { 1, 3, 2, 2, 7 }, 0.2, 0.5, 1.25
        for _, flat in ipairs { 0, 1, 4 } do
            local unit, expected = { [0] = 0 }, {}
            for i = 1, 5 do
                local d = i < 5 and (x[i + 1] - x[i]) / spacing or 0
                unit[i] = d / math.max(math.sqrt(d * d + epsilon * epsilon),
                    flat * lambda * x[i] / spacing ^ 2)
                expected[i] = i / (1 - lambda * (unit[i] - unit[i - 1]) / spacing)
            end
            expected[6] = 9
            local estimate <close> = mb.array(x)
            local correction <close> = mb.array { 1, 2, 3, 4, 5, 9 }
            mb.rl_total_variation(estimate, correction, { lambda = lambda, epsilon = epsilon,
                flat = flat, spacing = spacing })
            helper.assert_close(expected, correction, 1e-6)
        end
    end)

    it("flattens neighbors by turns, however small its epsilon, unless flat is below 2", function()
        for _, shape in ipairs { { 1, 1, 12 }, { 1, 12, 12 }, { 12, 12, 12 } } do
            local function left(flat, start)
                local x <close> = mb.full(shape, 100)
                local wave = { 1e-3, -1e-3 }
                for z = 1, shape[1] do
                    for y = 1, shape[2] do
                        for k = 1, 12 do
                            x:view(z, y, { k, k }):fill(100 + start * wave[1 + (z + y + k) % 2])
                        end
                    end
                end
                for _ = 1, 20 do
                    local factor <close> = mb.ones { shape[1], shape[2], 14 }
                    mb.rl_total_variation(x, factor, { lambda = 0.01, epsilon = 1e-9, flat = flat })
                    local own <close> = factor:view({ 1, shape[1] }, { 1, shape[2] }, { 1, 12 })
                    mb.binary(x, "mul", { b = own, out = x })
                end
                return x:max() - x:min()
            end
            assert.is_true(left(nil, 1) <= 2.1e-3, table.concat(shape, " x "))
            assert.is_true(left(1.5, 1) > 0.1, table.concat(shape, " x "))
        end
    end)

    it("changes nothing on flat ground, with no weight, or where volumes go on", function()
        local flat <close> = mb.ones { 3, 4, 5 }
        local t <close> = mb.random({ 3, 4, 6 }, { seed = 1 })
        local before <close> = t:copy()
        mb.rl_total_variation(flat, t, { lambda = 0.5 })
        helper.assert_close(before, t, 0)
        local rough <close> = mb.random({ 3, 4, 5 }, { seed = 2 })
        mb.rl_total_variation(rough, t, { lambda = 0 })
        helper.assert_close(before, t, 0)
    end)

    -- The divisors of an estimate, as the quotients of ones.
    local function divisors(estimate, options, shape)
        local ones <close> = mb.ones(shape)
        options.lambda, options.epsilon, options.spacing = 0.05, 0.1, { 2, 1, 1.5 }
        mb.rl_total_variation(estimate, ones, options)
        return ones:copy()
    end

    it("is the same for tiles, which see one element around them, and on a larger grid", function()
        local x <close> = mb.random({ 5, 7, 9 }, { seed = 3 })
        local padded <close> = divisors(x, {}, { 5, 7, 10 })
        local whole <close> = padded:view({ 1, 5 }, { 1, 7 }, { 1, 9 })
        for _, range in ipairs { { { 1, 5 }, { 1, 7 }, { 1, 9 } }, { { 2, 3 }, { 1, 4 }, { 5, 9 } },
            { { 5, 5 }, { 3, 6 }, { 2, 2 } } } do
            local wide, at, extents = {}, {}, {}
            for i, each in ipairs(range) do
                local low = math.max(1, each[1] - 1)
                wide[i] = { low, math.min(x.shape[i], each[2] + 1) }
                at[i], extents[i] = each[1] - low, each[2] - each[1] + 1
            end
            local around <close> = x:view(table.unpack(wide))
            local got <close> = divisors(around, { at = at }, extents)
            local expected <close> = whole:view(table.unpack(range))
            helper.assert_close(expected, got, 0)
        end
        -- It begins at (6, 5, 8) of a grid, goes on at its start, and other values lie between.
        local start, grid = { 6, 5, 8 }, { 8, 7, 12 }
        local large <close> = mb.random(grid, { seed = 5, low = 5, high = 9 })
        local wanted <close> = mb.zeros { 8, 7, 14 }
        local function place(from, to)
            for z = 1, 5 do
                for y = 1, 7 do
                    for k = 1, 9 do
                        local last = (start[3] + k - 1) % 12 + 1
                        local here <close> = to:view((start[1] + z - 1) % 8 + 1,
                            (start[2] + y - 1) % 7 + 1, { last, last })
                        here:fill(from:item(z, y, k))
                    end
                end
            end
        end
        place(x, large)
        place(whole, wanted)
        local got <close> = divisors(large, { start = start, extent = { 5, 7, 9 } }, { 8, 7, 14 })
        local mask <close> = mb.zeros { 8, 7, 14 }
        local one <close> = mb.ones { 5, 7, 9 }
        place(one, mask)
        local inside <close> = got * mask
        helper.assert_close(wanted, inside, 0)
    end)

    it("says what is not within the estimate", function()
        local x <close> = mb.ones { 4, 6 }
        local tile <close> = mb.ones { 2, 3 }
        local grid <close> = mb.ones { 4, 8 }
        for _, each in ipairs { { tile, "at", { 3, 0 } }, { grid, "start", { 4, 0 } },
            { grid, "extent", { 4, 7 } } } do
            local _, err = helper.failure(mb.rl_total_variation, x, each[1],
                { [each[2]] = each[3] })
            assert.equal("argument", err.code)
            assert.equal(each[2], err.arg)
        end
        assert.matches("padded rows", (helper.failure(mb.rl_total_variation, x, tile)))
    end)

    it("does not depend on units: spacing and values scale together", function()
        local x <close> = mb.random({ 4, 5, 6 }, { seed = 3 })
        local larger <close> = x * 2
        local a <close> = mb.ones { 4, 5, 8 }
        local b <close> = mb.ones { 4, 5, 8 }
        mb.rl_total_variation(x, a, { lambda = 0.1, epsilon = 0.1 })
        mb.rl_total_variation(larger, b, { lambda = 0.2, epsilon = 0.1, spacing = 2 })
        helper.assert_close(a, b, 1e-5)
        assert.matches("spacing",
            (helper.failure(mb.rl_total_variation, x, a, { spacing = { 1, 2 } })))
    end)
end)
