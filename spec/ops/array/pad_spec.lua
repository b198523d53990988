local mb = require "moonbeam"
local helper = require "spec.helper"

-- Source index (from 0) of position i on an axis of n, by walking as numpy's definition says.
local function source(mode, i, n)
    if mode == "edge" then
        return math.max(0, math.min(n - 1, i))
    elseif mode == "wrap" then
        return i % n
    end
    if n == 1 then
        return 0
    end
    while i < 0 or i >= n do -- mirror at the ends until inside
        if mode == "reflect" then
            i = i < 0 and -i or 2 * (n - 1) - i
        else
            i = i < 0 and -1 - i or 2 * n - 1 - i
        end
    end
    return i
end

local modes = { "edge", "reflect", "symmetric", "wrap" }

describe("pad", function()
    local function padded(values, options)
        local a <close> = mb.array(values)
        local r <close> = mb.pad(a, options)
        return r:to_table()
    end

    it("has the modes of numpy.pad", function()
        local abc = { 1, 2, 3 }
        assert.same({ 0, 0, 1, 2, 3, 0 }, padded(abc, { before = 2, after = 1 }))
        assert.same({ 7, 7, 1, 2, 3, 7 }, padded(abc, { before = 2, after = 1, value = 7 }))
        assert.same({ 1, 1, 1, 2, 3, 3 }, padded(abc, { before = 2, after = 1, mode = "edge" }))
        assert.same({ 3, 2, 1, 2, 3, 2, 1 },
            padded(abc, { before = 2, after = 2, mode = "reflect" }))
        assert.same({ 2, 1, 1, 2, 3, 3, 2 },
            padded(abc, { before = 2, after = 2, mode = "symmetric" }))
        assert.same({ 2, 3, 1, 2, 3, 1, 2 }, padded(abc, { before = 2, after = 2, mode = "wrap" }))
    end)

    it("has a constant for every side, as numpy's constant_values", function()
        local abc = { 1, 2, 3 }
        assert.same({ 7, 7, 1, 2, 3, 8 }, padded(abc, { before = 2, after = 1, value = { 7, 8 } }))
        assert.same({ 7, 7, 1, 2, 3, 8 }, padded(abc, { before = 2, after = 1,
            value = { { 7, 8 } } }))
        -- numpy.pad([[5, 6], [7, 8]], 1, constant_values=((1, 2), (3, 4))): axes one after the
        -- other, the last one last.
        local square = { { 5, 6 }, { 7, 8 } }
        assert.same({ { 3, 1, 1, 4 }, { 3, 5, 6, 4 }, { 3, 7, 8, 4 }, { 3, 2, 2, 4 } },
            padded(square, { before = 1, after = 1, value = { { 1, 2 }, { 3, 4 } } }))
        assert.same({ { 9, 9, 9, 8 }, { 9, 5, 6, 8 }, { 9, 7, 8, 8 }, { 9, 8, 8, 8 } },
            padded(square, { before = 1, after = 1, value = { 9, 8 } }))
        -- the same pairs as one list
        local list = padded(square, { before = 1, after = 1, value = { 1, 2, 3, 4 } })
        assert.same({ 3, 1, 1, 4 }, list[1])
        -- Nothing but constants: an axis that is empty.
        local none <close> = mb.zeros { 0, 2 }
        local filled <close> = mb.pad(none, { before = { 1, 1 }, after = { 2, 0 },
            value = { { 1, 2 }, { 3, 4 } } })
        assert.same({ { 3, 1, 1 }, { 3, 2, 2 }, { 3, 2, 2 } }, filled:to_table())
        local a <close> = mb.array(square)
        for pattern, value in pairs { ["value has 3 numbers"] = { 1, 2, 3 },
            ["value%[2%] is not a list of 2 numbers"] = { { 1, 2 }, { 3 } },
            ["value%[2%] is not a list"] = { { 1, 2 }, 3 },
            ["value%[3%] is a string"] = { 1, 2, "3" } } do
            local text, err = helper.failure(mb.pad, a, { before = 1, value = value })
            assert.matches(pattern, text)
            assert.equal("value", err.arg)
        end
    end)

    it("pads to a shape, and crop takes it back", function()
        local abc = { 1, 2, 3 }
        assert.same({ 1, 2, 3, 0, 0 }, padded(abc, { shape = 5 }))
        assert.same({ 0, 0, 1, 2, 3 }, padded(abc, { shape = { 5 }, where = "end" }))
        assert.same({ 0, 1, 2, 3, 0 }, padded(abc, { shape = 5, where = "center" }))
        -- the middle, (n - 1) / 2 rounded down, stays the middle; and crop is the inverse
        for n = 0, 5 do
            for wide = math.max(n, 1), 8 do
                local a <close> = mb.arange(1, n, 1)
                local r <close> = mb.pad(a, { shape = wide, where = "center" })
                if n > 0 then
                    assert.equal((n - 1) // 2 + 1, r:item((wide - 1) // 2 + 1))
                end
                for _, where in ipairs { "start", "center", "end" } do
                    local large <close> = mb.pad(a, { shape = wide, where = where, value = 9 })
                    local back <close> = mb.crop(large, { shape = n, where = where })
                    assert.same(a:to_table(), back:to_table())
                end
            end
        end
        local a <close> = mb.zeros { 2, 3 }
        for pattern, options in pairs {
            ["cannot be padded to 2; crop"] = { shape = { 4, 2 } },
            ["give either shape, or before and after"] = { shape = 4, after = 1 },
            ["where needs shape; give shape or leave out where"] = { where = "end" },
            ["whole number"] = { shape = 4.5 },
            ["not from"] = { shape = 4, mode = "custom", cols_index = { 1 } },
        } do
            assert.matches(pattern, (helper.failure(mb.pad, a, options)))
        end
        assert.matches("cannot be cropped to 4; pad", (helper.failure(mb.crop, a,
            { shape = { 2, 4 } })))
    end)

    it("goes on beyond the length of the axis", function()
        for _, mode in ipairs(modes) do
            for n = 1, 5 do
                local values, want = {}, {}
                for i = 1, n do
                    values[i] = i
                end
                for i = -13, n + 10 do
                    want[#want + 1] = values[1 + source(mode, i, n)]
                end
                assert.same(want, padded(values, { before = 13, after = 11, mode = mode }),
                    mode .. n)
            end
        end
    end)

    it("pads several axes of a view", function()
        local a <close> = mb.random({ 7, 5, 3 }, { seed = 1 })
        local view <close> = a:permute(3, 1, 2) -- 3 x 7 x 5
        local t = view:to_table()
        local before, after = { 4, 0, 6 }, { 1, 8, 0 }
        for _, mode in ipairs(modes) do
            local r <close> = mb.pad(view, { before = before, after = after, mode = mode })
            assert.same({ 8, 15, 11 }, r.shape)
            local got = r:to_table()
            for i = 1, 8 do
                for j = 1, 15 do
                    for k = 1, 11 do
                        local plane = t[1 + source(mode, i - 1 - 4, 3)]
                        local row = plane[1 + source(mode, j - 1, 7)]
                        assert.equal(row[1 + source(mode, k - 1 - 6, 5)], got[i][j][k])
                    end
                end
            end
        end
    end)

    it("keeps every type", function()
        for _, dtype in ipairs { "u8", "u16", "i32", "f16", "f32", "f64" } do
            local a <close> = mb.array({ 5, 6 }, { dtype = dtype })
            local r <close> = mb.pad(a, { before = 1, after = 1, value = 9 })
            assert.equal(dtype, r.dtype)
            assert.same({ 9, 5, 6, 9 }, r:to_table())
        end
        local c <close> = mb.array({ { 1, 2 } }, { dtype = "c128" })
        local r <close> = mb.pad(c, { after = 1, mode = "edge" })
        assert.same({ { 1, 2 }, { 1, 2 } }, r:to_table())
    end)

    -- Index arrays (1-based) that do what a pad of n elements in a mode does, and then a roll to
    -- FFT order.
    local function index_array(mode, n, before, after, roll)
        local index, total = {}, n + before + after
        for i = 0, total - 1 do
            index[i + 1] = source(mode, (i + roll) % total - before, n) + 1
        end
        return index
    end

    helper.each_device(function(device, it)
        it("pads by index arrays: reflect and roll on " .. device, function()
            for _, shape in ipairs { { 511, 512 }, { 512, 511 } } do
                local a <close> = mb.random(shape, { seed = 3, device = device })
                local pads = { { 256, 255 }, { 254, 251 } }
                local rows = index_array("reflect", shape[1], pads[1][1], pads[1][2], pads[1][1])
                local cols = index_array("reflect", shape[2], pads[2][1], pads[2][2], pads[2][1])
                local got <close> = mb.pad(a, { mode = "custom", rows_index = rows,
                    cols_index = cols })
                local plain <close> = mb.pad(a, { mode = "reflect", before = { 256, 254 },
                    after = { 255, 251 } })
                assert.same(plain.shape, got.shape)
                local want, values = plain:to_table(), got:to_table()
                local ny, nx, wrong = #want, #want[1], 0
                for y = 1, ny do
                    for x = 1, nx do
                        wrong = wrong + (values[y][x]
                            == want[(y + 255) % ny + 1][(x + 253) % nx + 1] and 0 or 1)
                    end
                end
                assert.equal(0, wrong)
            end
        end)

        it("takes an index array for one axis on " .. device, function()
            local a <close> = mb.array({ { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } },
                { dtype = "u8", device = device })
            local r <close> = mb.pad(a, { mode = "custom", rows_index = { 2, 2, 1 } })
            assert.same({ { { 3, 4 }, { 3, 4 }, { 1, 2 } }, { { 7, 8 }, { 7, 8 }, { 5, 6 } } },
                r:to_table())
            local c <close> = mb.pad(a, { mode = "custom", cols_index = { 2, 1, 2 } })
            assert.same({ { { 2, 1, 2 }, { 4, 3, 4 } }, { { 6, 5, 6 }, { 8, 7, 8 } } },
                c:to_table())
        end)

        it("has two 1-D tables of scratch at most on " .. device, function()
            local rows, cols = index_array("edge", 300, 40, 50, 0),
                index_array("wrap", 200, 30, 20, 0)
            local function scratch(options)
                return mb.op.estimate("pad", { { "f32", 300, 200 } }, options,
                    { device = device }).scratch
            end
            for _, mode in ipairs { "constant", table.unpack(modes) } do
                assert.equal(0, scratch { mode = mode, before = { 40, 30 }, after = { 50, 20 } })
            end
            assert.equal(mb.pool.round(4 * #rows) + mb.pool.round(4 * #cols),
                scratch { mode = "custom", rows_index = rows, cols_index = cols })
            assert.equal(mb.pool.round(4 * #cols), scratch { mode = "custom", cols_index = cols })
        end)
    end)

    it("refuses index arrays where they do not belong or do not fit", function()
        local a <close> = mb.zeros { 2, 3 }
        for _, case in ipairs {
            { "cols_index", { cols_index = { 1, 2 } }, "mode is constant" },
            { "rows_index", { rows_index = { 1, 2 }, mode = "constant" }, "mode is constant" },
            { "cols_index", { cols_index = { 1, 2 }, mode = "edge" }, "mode is edge" },
            { "cols_index", { mode = "custom" }, "needs rows_index" },
            { "cols_index", { mode = "custom", cols_index = { 1, 4 } }, "1 to 3" },
            { "rows_index", { mode = "custom", rows_index = { 1.5 } }, "whole number" },
            { "rows_index", { mode = "custom", rows_index = { 0 } }, "it must lie in %[1, " },
            { "before", { mode = "custom", rows_index = { 1 }, before = 2 }, "not from" },
            { "value", { mode = "custom", rows_index = { 1 }, value = { 1, 2, 3 } },
                "value has 3 numbers" },
        } do
            local text, err = helper.failure(mb.pad, a, case[2])
            assert.equal("argument", err.code)
            assert.equal(case[1], err.arg)
            assert.matches(case[3], text)
        end
        local line <close> = mb.zeros { 4 }
        local _, err = helper.failure(mb.pad, line, { mode = "custom", rows_index = { 1 } })
        assert.equal("rows_index", err.arg)
    end)

    it("pads nothing with a constant only", function()
        local a <close> = mb.zeros { 0 }
        local r <close> = mb.pad(a, { before = 2, value = 3 })
        assert.same({ 3, 3 }, r:to_table())
        local _, err = helper.failure(mb.pad, a, { before = 2, mode = "edge" })
        assert.equal("shape", err.code)
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros { 2, 3 }
        for _, case in ipairs {
            { "before", { before = { 1, 2, 3 } } }, { "after", { after = 1.5 } },
            { "before", { before = { -1, 0 } } },
            { "mode", { mode = "mirror" } },
        } do
            local _, err = helper.failure(mb.pad, a, case[2])
            assert.equal("argument", err.code)
            assert.equal(case[1], err.arg)
        end
    end)
end)
