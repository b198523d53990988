local mb = require "moonbeam"
local helper = require "spec.helper"

local function combined(frames, y, x, mode)
    local values, sum = {}, 0
    for i, frame in ipairs(frames) do
        values[i] = frame[y][x]
        sum = sum + values[i]
    end
    if mode == "mean" then
        return sum / #values
    end
    table.sort(values)
    local middle = #values // 2
    return #values % 2 == 1 and values[middle + 1] or (values[middle] + values[middle + 1]) / 2
end

-- The two results as tables.
local function corrected(data, options)
    local result, counts = mb.flat_field(data, options)
    local r, c = result:to_table(), counts:to_table()
    result:release()
    counts:release()
    return r, c
end

describe("flat_field", function()
    for _, dtype in ipairs { "u8", "u16", "i32", "f16", "f32" } do
        for _, mode in ipairs { "mean", "median" } do
            it(("divides by the %s flat of %s"):format(mode, dtype), function()
                for _, numbers in ipairs { { 3, 4 }, { 4, 1 }, { 1, 5 } } do
                    local data <close> = mb.random({ 3, 2, 5 }, { dtype = dtype, seed = 1, low = 20,
                        high = 150 })
                    local darks <close> = mb.random({ numbers[1], 2, 5 },
                        { dtype = dtype, seed = 2, low = 1, high = 19 })
                    local flats <close> = mb.random({ numbers[2], 2, 5 },
                        { dtype = dtype, seed = 3, low = 150, high = 200 })
                    local r, counts = corrected(data, { darks = darks, flats = flats, mode = mode })
                    local d, f, i = darks:to_table(), flats:to_table(), data:to_table()
                    for n = 1, 3 do
                        for y = 1, 2 do
                            for x = 1, 5 do
                                local dark = combined(d, y, x, mode)
                                i[n][y][x] = (i[n][y][x] - dark) / (combined(f, y, x, mode) - dark)
                            end
                        end
                    end
                    helper.assert_close(i, r, 1e-6)
                    assert.same({ 0, 0, 0 }, counts)
                end
            end)
        end
    end

    it("does without darks, and without flats", function()
        local data <close> = mb.array({ { { 4, 6 } } }, { dtype = "u16" })
        local frames <close> = mb.array({ { { 2, 3 } }, { { 2, 1 } } }, { dtype = "u16" })
        local a, ca = corrected(data)
        assert.same({ { { 4, 6 } } }, a)
        local b, cb = corrected(data, { flats = frames })
        assert.same({ { { 2, 3 } } }, b)
        local c, cc = corrected(data, { darks = frames })
        assert.same({ { { 2, 4 } } }, c)
        assert.same({ 0, 0, 0 }, ca)
        assert.same({ 0, 0, 0 }, cb)
        assert.same({ 0, 0, 0 }, cc)
    end)

    it("raises small denominators and counts them by pixel", function()
        local data <close> = mb.array { { { 1, 5, 3 } }, { { 2, 5, -3 } } }
        local darks <close> = mb.array { { { 1, 1, 1 } } }
        local flats <close> = mb.array { { { 1, 0, 5 } } }
        local r, counts = corrected(data, { darks = darks, flats = flats, floor = 0.5 })
        assert.same({ { { 0, 8, 0.5 } }, { { 2, 8, -1 } } }, r)
        assert.same({ 0, 2, 2 }, counts)
    end)

    it("replaces what is not finite and counts it by sample", function()
        local nan, inf = 0 / 0, math.huge
        local data <close> = mb.array { { { nan, inf, 3, -1 } }, { { 1, -inf, 3, 0 } } }
        local r, counts = corrected(data, { nonfinite = 0.25 })
        assert.same({ { { 0.25, 0.25, 3, -1 } }, { { 1, 0.25, 3, 0 } } }, r)
        assert.same({ 3, 0, 2 }, counts)
        local flats <close> = mb.array { { { 1, 2, nan, 4 } }, { { 1, 2, 3, 4 } } }
        for _, mode in ipairs { "mean", "median" } do
            local s, tally = corrected(data, { flats = flats, mode = mode })
            assert.same({ { { 1, 1, 1, -0.25 } }, { { 1, 1, 1, 0 } } }, s)
            assert.same({ 5, 0, 2 }, tally)
        end
    end)

    it("runs in place on f32 data, and on rows with gaps", function()
        local big <close> = mb.random({ 4, 3, 9 }, { seed = 4, low = 1, high = 2 })
        local data <close> = big:view(mb.all, mb.all, { 3, 7 })
        local flats <close> = mb.full({ 2, 3, 5 }, 2)
        local expected, c1 = corrected(data, { flats = flats })
        local border = big:item(1, 1, 2)
        local r, counts = mb.flat_field(data, { flats = flats, out = data })
        local c2 = counts:to_table()
        counts:release()
        assert.equal(data, r)
        assert.same(expected, data:to_table())
        assert.equal(border, big:item(1, 1, 2))
        assert.same(c1, c2)
    end)

    it("says what is wrong", function()
        local data <close> = mb.zeros { 2, 3, 4 }
        local wide <close> = mb.zeros { 2, 3, 5 }
        local none <close> = mb.zeros { 0, 3, 4 }
        local flat <close> = mb.zeros { 3, 4 }
        for _, case in ipairs {
            { "shape", "darks", { darks = wide } }, { "shape", "flats", { flats = wide } },
            { "shape", "flats", { flats = none } }, { "shape", "flats", { flats = flat } },
            { "argument", "floor", { floor = 0 } },
        } do
            local _, err = helper.failure(mb.flat_field, data, case[3])
            assert.equal(case[1], err.code)
            assert.equal(case[2], err.arg)
        end
    end)
end)
