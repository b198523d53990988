local mb = require "moonbeam"
local helper = require "spec.helper"

-- The mean of a block of a nested table, indices from 1.
local function mean(frames, size, z, y, x)
    local sum, count = 0, 0
    for k = (z - 1) * size[1] + 1, math.min(z * size[1], #frames) do
        for j = (y - 1) * size[2] + 1, math.min(y * size[2], #frames[1]) do
            for i = (x - 1) * size[3] + 1, math.min(x * size[3], #frames[1][1]) do
                sum, count = sum + frames[k][j][i], count + 1
            end
        end
    end
    return sum / count
end

describe("bin", function()
    helper.each_device(function(device, it)
        it("takes means of blocks of any type on " .. device, function()
            for _, dtype in ipairs {"u8", "u16", "i32", "f16", "f32"} do
                local whole = dtype ~= "f16" and dtype ~= "f32"
                local a <close> = mb.random({5, 9, 1031}, {seed = 1, dtype = dtype,
                    device = device, high = whole and 200 or 1})
                local frames = a:to_table()
                for _, size in ipairs {{2, 2, 2}, {1, 4, 3}, {5, 1, 1}} do
                    for _, rest in ipairs {"drop", "keep"} do
                        local result <close> = mb.bin(a, size, {rest = rest})
                        local want, shape = {}, {}
                        for axis, n in ipairs {5, 9, 1031} do
                            shape[axis] = n // size[axis]
                                + (rest == "keep" and n % size[axis] > 0 and 1 or 0)
                        end
                        assert.same(shape, result.shape)
                        for z = 1, shape[1] do
                            want[z] = {}
                            for y = 1, shape[2] do
                                want[z][y] = {}
                                for x = 1, shape[3] do
                                    want[z][y][x] = mean(frames, size, z, y, x)
                                end
                            end
                        end
                        helper.assert_close(want, result, 1e-6)
                    end
                end
            end
        end)

        it("does not truncate, and bins nothing by ones, on " .. device, function()
            local counts <close> = mb.array({{{65535}}, {{65534}}, {{65535}}}, {dtype = "u16",
                device = device})
            local result <close> = mb.bin(counts, {2, 1, 1}, {rest = "keep"})
            assert.same({{{65534.5}}, {{65535}}}, result:to_table())
            local a <close> = mb.random({3, 4, 5}, {seed = 2, device = device})
            local same <close> = mb.bin(a, {1, 1, 1})
            assert.is_true(a:to_string() == same:to_string())
        end)

        it("takes sinograms, and keeps a NaN in its bin, on " .. device, function()
            local a <close> = mb.random({6, 4, 8}, {seed = 3, device = device})
            local one <close> = a:view({1, 1}, {3, 3}, {8, 8})
            mb.fill(one, 0 / 0)
            local view <close> = a:permute(2, 1, 3)
            local dense <close> = view:copy()
            local want <close> = mb.bin(dense, {2, 3, 4})
            local result <close> = mb.bin(view, {2, 3, 4})
            assert.is_true(want:to_string() == result:to_string())
            local got = result:to_table()
            assert.is_true(got[2][1][2] ~= got[2][1][2])
            assert.is_true(got[1][1][2] == got[1][1][2] and got[2][1][1] == got[2][1][1])
        end)
    end)

    it("refuses what makes no sense", function()
        local a <close> = mb.zeros {2, 9, 9}
        assert.matches("one for each of the 3 axes", (helper.failure(mb.bin, a, {2, 2})))
        assert.matches("whole number", (helper.failure(mb.bin, a, {1, 1.5, 2})))
        assert.matches("axis 1 has 2 elements, fewer than a bin of 3", (helper.failure(mb.bin, a,
            {3, 1, 1})))
    end)
end)
