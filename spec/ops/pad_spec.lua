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
        assert.same({ 3, 2, 1, 2, 3, 2, 1 }, padded(abc, { before = 2, after = 2, mode = "reflect" }))
        assert.same({ 2, 1, 1, 2, 3, 3, 2 }, padded(abc, { before = 2, after = 2, mode = "symmetric" }))
        assert.same({ 2, 3, 1, 2, 3, 1, 2 }, padded(abc, { before = 2, after = 2, mode = "wrap" }))
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
                assert.same(want, padded(values, { before = 13, after = 11, mode = mode }), mode .. n)
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
            { "before", { before = { 1, 2, 3 } } }, { "after", { after = 1.5 } }, { "before", { before = { -1, 0 } } },
            { "mode", { mode = "mirror" } },
        } do
            local _, err = helper.failure(mb.pad, a, case[2])
            assert.equal("argument", err.code)
            assert.equal(case[1], err.arg)
        end
    end)
end)
