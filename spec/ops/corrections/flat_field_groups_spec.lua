-- flat_field with flats in several groups and with factors for each frame.

local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

local H, W <const> = 3, 11

local function frames(n, low, high, seed, dtype)
    return mb.random({n, H, W}, {low = low, high = high, seed = seed, dtype = dtype or "f32"})
end

-- The result alone.
local function corrected(data, options)
    local result, counts = mb.flat_field(data, options)
    counts:release()
    return result
end

local function middle_of(list, mode)
    if mode == "mean" then
        local sum = 0
        for _, value in ipairs(list) do
            sum = sum + value
        end
        return sum / #list
    end
    table.sort(list)
    return (list[(#list + 1) // 2] + list[#list // 2 + 1]) / 2
end

-- The definition, in Lua: arrays as tables.
local function naive(data, darks, flats, o)
    local result = {}
    for i, frame in ipairs(data) do
        result[i] = {}
        for y, row in ipairs(frame) do
            result[i][y] = {}
            for x, value in ipairs(row) do
                local list = {}
                for k, dark in ipairs(darks) do
                    list[k] = dark[y][x]
                end
                local dark = middle_of(list, o.mode)
                local divisors, first = {}, 0
                for g, count in ipairs(o.groups) do
                    list = {}
                    for k = 1, count do
                        list[k] = (flats[first + k][y][x] - dark) * o.flat_scale[first + k]
                    end
                    divisors[g] = math.max(middle_of(list, o.mode), o.floor)
                    first = first + count
                end
                local at, divisor = o.frames[i], divisors[1]
                for g, position in ipairs(o.positions) do
                    local next = o.positions[g + 1]
                    if at >= position then
                        divisor = next and at <= next and divisors[g] + (at - position)
                            / (next - position) * (divisors[g + 1] - divisors[g]) or divisors[g]
                    end
                end
                result[i][y][x] = (value - dark) * o.scale[i] / divisor
            end
        end
    end
    return result
end

describe("flat_field with groups of flats", function()
    for _, mode in ipairs {"mean", "median"} do
        for _, dtype in ipairs {"u8", "u16", "i32", "f16", "f32"} do
            it(("interpolates the %s of %s linearly"):format(mode, dtype), function()
                local data <close> = frames(7, 20, 150, 1, dtype)
                local darks <close> = frames(3, 1, 19, 2, dtype)
                local flats <close> = frames(6, 10, 200, 3, dtype)
                local o = {mode = mode, groups = {1, 3, 2}, positions = {-2, 3, 9.5}, floor = 20,
                    frames = {-5, -2, 0, 3, 4.25, 9, 12}, scale = {1, 0.5, 2, 1, 1.1, 0.9, 3},
                    flat_scale = {1, 1.1, 0.9, 1, 2, 0.5}}
                local want = naive(data:to_table(), darks:to_table(), flats:to_table(), o)
                o.darks, o.flats = darks, flats
                local found <close> = corrected(data, o)
                helper.assert_close(want, found, 2e-6)
            end)
        end
    end

    it("is the flat field of one group at its position, and outside all", function()
        local data <close> = frames(4, 20, 150, 1, "u16")
        local flats <close> = frames(4, 150, 200, 2, "u16")
        local first <close> = flats:view({1, 2})
        local last <close> = flats:view({3, 4})
        local own = {flats = flats, groups = {2, 2}, positions = {0, 10}}
        own.frames = {0, -1, 0, -100}
        local a <close> = corrected(data, own)
        local want_a <close> = corrected(data, {flats = first})
        assert.is_true(want_a:to_string() == a:to_string())
        own.frames = {10, 11, 10.5, 1e6}
        local b <close> = corrected(data, own)
        local want_b <close> = corrected(data, {flats = last})
        assert.is_true(want_b:to_string() == b:to_string())
    end)

    it("takes a beam out that drifts linearly and a ring current that decays", function()
        -- counts = dark + open (1 + drift t) current(t) transmission
        local n, object = 20, {}
        local open, drift, beam = {}, {}, {}
        for y = 1, H do
            open[y], drift[y], object[y] = {}, {}, {}
            for x = 1, W do
                open[y][x], drift[y][x] = 1000 + 31 * x + 17 * y, 0.3 * math.sin(x + 2 * y)
                object[y][x] = 0.2 + 0.7 * (x + y) / (W + H)
            end
        end
        local function current(t)
            return 300 - 2 * t + (t > 12 and 40 or 0) -- refilled once
        end
        local function frame(t, through)
            local rows = {}
            for y = 1, H do
                rows[y] = {}
                for x = 1, W do
                    rows[y][x] = 100 + open[y][x] * (1 + drift[y][x] * t / 20) * current(t) / 300
                        * (through and through[y][x] or 1)
                end
            end
            return rows
        end
        local flats, data, own = {}, {}, {groups = {3, 2}, frames = {}, scale = {},
            flat_scale = {}}
        for k, t in ipairs {0, 1, 2, 23, 24} do
            flats[k], own.flat_scale[k] = frame(t), 300 / current(t)
        end
        own.positions = {1, 23.5}
        for i = 1, n do
            data[i], own.frames[i], own.scale[i] = frame(i + 2, object), i + 2,
                300 / current(i + 2)
            beam[i] = object
        end
        local a <close> = mb.array(data)
        own.flats = mb.array(flats)
        own.darks = mb.full({2, H, W}, 100)
        local found <close> = corrected(a, own)
        helper.assert_close(beam, found, 2e-6)
        -- without the factors, or the groups, it is not
        local scale = own.scale
        own.scale = nil
        local without <close> = corrected(a, own)
        assert.is_true(helper.difference(beam, without) > 1e-2)
        own.scale, own.groups = scale, nil
        local mean <close> = corrected(a, own)
        assert.is_true(helper.difference(beam, mean) > 1e-2)
        own.flats:release()
        own.darks:release()
    end)

    it("counts a pixel once that is raised in several groups", function()
        local data <close> = mb.full({2, 1, 3}, 5)
        local flats <close> = mb.array {{{1, 9, 9}}, {{1, 1, 9}}, {{9, 1, 9}}}
        local result, counts = mb.flat_field(data, {flats = flats, groups = {1, 1, 1}, floor = 2,
            positions = {0, 1, 2}, frames = {0, 1}})
        local _ <close> = result
        local _ <close> = counts -- luacheck: ignore
        assert.same({0, 2, 0}, counts:to_table())
    end)

    it("mends what is not finite", function()
        local data <close> = mb.array {{{0 / 0, 1e38}}}
        local flats <close> = mb.full({1, 1, 2}, 1)
        local result, counts = mb.flat_field(data, {flats = flats, scale = {1e30}, nonfinite = 7})
        local _ <close> = result
        local _ <close> = counts -- luacheck: ignore
        assert.same({{{7, 7}}}, result:to_table())
        assert.same({2, 0, 0}, counts:to_table())
    end)

    it("combines darks in their own way where it is told to", function()
        local data <close> = mb.full({1, 1, 1}, 100)
        local darks <close> = mb.array {{{1}}, {{2}}, {{9}}}
        local flats <close> = mb.array {{{52}}, {{104}}, {{204}}}
        for _, case in ipairs {{"mean", "same", 96 / 116}, {"median", "same", 98 / 102},
            {"median", "mean", 96 / 100}, {"mean", "median", 98 / 118}} do
            local found <close> = corrected(data, {darks = darks, flats = flats, mode = case[1],
                dark_mode = case[2]})
            assert.near(case[3], found:item(1, 1, 1), 1e-6)
            local listed <close> = corrected(data, {darks = darks, flats = flats, mode = case[1],
                dark_mode = case[2], scale = {2}})
            assert.near(2 * case[3], listed:item(1, 1, 1), 1e-6)
        end
    end)

    it("says what is wrong", function()
        local data <close> = frames(3, 0, 1, 1)
        local flats <close> = frames(4, 1, 2, 2)
        for _, case in ipairs {
            {"groups", {flats = flats, groups = {2, 1}}}, {"groups", {groups = {1, 1}}},
            {"groups", {flats = flats, groups = {1.5, 2.5}}},
            {"positions", {flats = flats, groups = {2, 2}}},
            {"positions", {flats = flats, groups = {2, 2}, positions = {1, 1}}},
            {"frames", {flats = flats, groups = {2, 2}, positions = {1, 2}}},
            {"frames", {flats = flats, frames = {1, 2}}}, {"scale", {scale = {1, 2}}},
            {"scale", {scale = {1, 0, 1}}}, {"flat_scale", {flat_scale = {1, 1, 1}}},
        } do
            local _, err = helper.failure(mb.flat_field, data, case[2])
            assert.equal(case[1], err.arg)
        end
    end)

    it("agrees with nabu's weights, in NumPy", function()
        oracle.needs "numpy"
        local data <close> = frames(9, 20, 150, 1)
        local flats <close> = frames(4, 150, 200, 2)
        local want <close> = oracle.run("numpy", [[
groups = {0: flats[:2].mean(0), 7: flats[2:].mean(0)}
r = np.empty_like(data)
for i in range(9):
    if i >= 7:
        f = groups[7]
    else:
        f = groups[0] * (1 - i / 7) + groups[7] * (i / 7)
    r[i] = data[i] / f
]], {data = data, flats = flats}, {"r"})
        local found <close> = corrected(data, {flats = flats, groups = {2, 2}, positions = {0, 7},
            frames = {0, 1, 2, 3, 4, 5, 6, 7, 8}})
        helper.assert_close(want, found, 1e-6)
    end)
end)
