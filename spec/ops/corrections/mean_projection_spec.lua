local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

describe("mean_projection", function()
    it("is the mean over frames, and that of exp(-a)", function()
        for _, shape in ipairs {{1, 2, 3}, {7, 3, 300}, {520, 2, 5}} do
            local a <close> = mb.random(shape, {seed = shape[1], low = -2, high = 5})
            local rows = a:to_table()
            for _, transmission in ipairs {false, true} do
                local want = {}
                for y = 1, shape[2] do
                    want[y] = {}
                    for x = 1, shape[3] do
                        local sum = 0
                        for k = 1, shape[1] do
                            local v = rows[k][y][x]
                            sum = sum + (transmission and math.exp(-v) or v)
                        end
                        want[y][x] = sum / shape[1]
                    end
                end
                local found <close> = mb.mean_projection(a, {transmission = transmission})
                helper.assert_close(want, found, 3e-7)
            end
        end
    end)

    it("takes exp(-a) over the whole range", function()
        local values = {}
        for i = 0, 1740 do
            values[i + 1] = -87 + 0.1 * i
        end
        local a <close> = mb.array {{values}}
        local found <close> = mb.mean_projection(a, {transmission = true})
        local stored = a:to_table()[1][1]
        for i, v in ipairs(found:to_table()[1]) do
            assert.near(1, v / math.exp(-stored[i]), 3e-7, stored[i])
        end
        local far <close> = mb.array {{{-1e30, 1e30, 100, -100}}}
        local clipped <close> = mb.mean_projection(far, {transmission = true})
        local limits = clipped:to_table()[1]
        assert.near(1, limits[1] / math.exp(87), 1e-6)
        assert.near(1, limits[4] / math.exp(87), 1e-6)
        assert.near(0, limits[2], 1e-37)
        assert.near(0, limits[3], 1e-37)
    end)

    it("keeps NaN, and a pixel does not spoil another", function()
        local a <close> = mb.array {{{1, 0 / 0, 2}}, {{1, 1, 4}}}
        for _, transmission in ipairs {false, true} do
            local found <close> = mb.mean_projection(a, {transmission = transmission})
            local row = found:to_table()[1]
            assert.truthy(row[2] ~= row[2])
            assert.near(transmission and math.exp(-1) or 1, row[1], 1e-6)
        end
    end)

    it("gives any strides the same bits", function()
        local a <close> = mb.random({9, 4, 40}, {seed = 2})
        local view <close> = a:view(mb.all, {2, 4, 2}, {3, 39, 3})
        local copy <close> = view:copy()
        for _, transmission in ipairs {false, true} do
            local want <close> = mb.mean_projection(copy, {transmission = transmission})
            local found <close> = mb.mean_projection(view, {transmission = transmission})
            assert.is_true(want:to_string() == found:to_string())
        end
    end)

    it("agrees with NumPy", function()
        oracle.needs "numpy"
        local a <close> = mb.random({300, 6, 31}, {seed = 6, low = -1, high = 4})
        local want <close> = oracle.run("numpy", "r = np.exp(-a.astype(float)).mean(0)", {a = a},
            {"r"})
        local found <close> = mb.mean_projection(a, {transmission = true})
        helper.assert_close(want, found, 3e-7)
    end)

    it("needs frames", function()
        local a <close> = mb.zeros {0, 2, 3}
        local _, err = helper.failure(mb.mean_projection, a)
        assert.equal("shape", err.code)
    end)
end)
