local mb = require "moonbeam"
local helper = require "spec.helper"

describe("eigen_flats", function()
    it("has weighted sums, a constant and gradients", function()
        for _, shape in ipairs {{1, 1, 1}, {3, 4, 5}, {2, 3, 300}} do
            local n, h, w = table.unpack(shape)
            local a <close> = mb.random(shape, {seed = w, low = -1, high = 1})
            local rows, weights = a:to_table(), {}
            for i = 1, 2 * n do
                weights[i] = math.sin(i)
            end
            local want = {}
            for k = 1, 5 do
                want[k] = {}
                for y = 1, h do
                    want[k][y] = {}
                    for x = 1, w do
                        local sum = 0
                        for j = 1, n do
                            sum = sum + (k < 3 and weights[(k - 1) * n + j] * rows[j][y][x] or 0)
                        end
                        want[k][y][x] = k < 3 and sum or k == 3 and 1
                            or k == 4 and (w > 1 and 2 * (x - 1) / (w - 1) - 1 or 0)
                            or h > 1 and 2 * (y - 1) / (h - 1) - 1 or 0
                    end
                end
            end
            local found <close> = mb.eigen_flats(a, weights)
            helper.assert_close(want, found, 1e-6)
        end
    end)

    it("has gradients alone without weights, and says what is wrong", function()
        local a <close> = mb.zeros {3, 2, 2}
        local found <close> = mb.eigen_flats(a, {})
        assert.same({3, 2, 2}, found.shape)
        local _, err = helper.failure(mb.eigen_flats, a, {1, 2, 3, 4})
        assert.equal("weights", err.arg)
    end)
end)
