local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- Inner products of frames that are tables.
local function naive(frames)
    local result = {}
    for i, a in ipairs(frames) do
        result[i] = {}
        for j, b in ipairs(frames) do
            local sum = 0
            for y, row in ipairs(a) do
                for x, value in ipairs(row) do
                    sum = sum + value * b[y][x]
                end
            end
            result[i][j] = sum
        end
    end
    return result
end

describe("gram_matrix", function()
    it("has the inner products of all pairs", function()
        for _, shape in ipairs {{1, 1, 1}, {3, 2, 5}, {6, 40, 19}, {9, 70, 33}} do
            local a <close> = mb.random(shape, {seed = shape[2], low = -1, high = 1})
            local found <close> = mb.gram_matrix(a)
            assert.equal("f64", found.dtype)
            helper.assert_close(naive(a:to_table()), found, 1e-12)
        end
    end)

    it("takes a part of each frame, with the same bits as a copy of it", function()
        local a <close> = mb.random({5, 12, 40}, {seed = 2})
        local part <close> = a:view(mb.all, mb.all, {3, 21})
        local copy <close> = part:copy()
        local want <close> = mb.gram_matrix(copy)
        local found <close> = mb.gram_matrix(part)
        assert.is_true(want:to_string() == found:to_string())
    end)

    it("is symmetric, and 0 without pixels", function()
        local a <close> = mb.random({7, 9, 30}, {seed = 3})
        local rows = mb.gram_matrix(a)
        local _ <close> = rows
        local list = rows:to_table()
        for i = 1, 7 do
            for j = 1, 7 do
                assert.equal(list[i][j], list[j][i])
            end
        end
        local empty <close> = mb.zeros {2, 0, 3}
        local none <close> = mb.gram_matrix(empty)
        assert.same({{0, 0}, {0, 0}}, none:to_table())
    end)

    it("has a NaN where a frame has one", function()
        local a <close> = mb.array {{{1, 2}}, {{0 / 0, 1}}, {{3, 1}}}
        local found <close> = mb.gram_matrix(a)
        local list = found:to_table()
        assert.equal(5, list[1][3])
        assert.truthy(list[2][1] ~= list[2][1] and list[1][2] ~= list[1][2])
    end)

    it("takes at most 512 frames", function()
        local a <close> = mb.zeros {513, 1, 1}
        local _, err = helper.failure(mb.gram_matrix, a)
        assert.equal("shape", err.code)
    end)

    it("agrees with NumPy", function()
        oracle.needs "numpy"
        local a <close> = mb.random({12, 50, 31}, {seed = 6, low = -1, high = 4})
        local want <close> = oracle.run("numpy",
            "b = a.astype(float).reshape(len(a), -1); r = b @ b.T", {a = a}, {"r"})
        local found <close> = mb.gram_matrix(a)
        local single <close> = found:cast "f32"
        helper.assert_close(want, single, 1e-7)
    end)
end)
