local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("quantize on " .. device, function()
        test("stores low as 0, high as the largest number, and rounds between, ties to even",
            function()
            local a <close> = mb.array({-1, -0.5, 0.5 / 255, 1.5 / 255, 1, 0.25, 2},
                {device = device})
            for dtype, largest in pairs {u8 = 255, u16 = 65535} do
                local r <close>, counts = mb.quantize(a, dtype, {low = -1, high = 2})
                local _ <close> = counts
                assert.equal(dtype, r.dtype)
                local got = r:to_table()
                for i, v in ipairs(a:to_table()) do
                    local exact = (v + 1) * largest / 3
                    assert.is_true(math.abs(got[i] - exact) <= 0.5 + 1e-9)
                end
                assert.equal(0, got[1])
                assert.equal(largest, got[7])
                assert.same({0, 0, 0}, counts:to_table())
            end
            local ties <close> = mb.array({0.5, 1.5, 2.5, 3.5}, {device = device})
            local even <close>, none = mb.quantize(ties, "u8", {low = 0, high = 255})
            local _ <close> = none
            assert.same({0, 2, 2, 4}, even:to_table())
            assert.equal(0, none:sum())
        end)

        test("clamps and counts what does not fit", function()
            local a <close> = mb.array({-5, 0 / 0, 0.5, 7, math.huge, -math.huge, 8},
                {device = device})
            local r <close>, counts = mb.quantize(a, "u16", {low = 0, high = 1})
            local _ <close> = counts
            assert.same({0, 0, 32768, 65535, 65535, 0, 65535}, r:to_table())
            assert.same({2, 3, 1}, counts:to_table())
        end)

        test("stores half floats, clamped", function()
            local a <close> = mb.array({1 / 3, -2, 70000, -math.huge, 0 / 0, 65504},
                {device = device})
            local r <close>, counts = mb.quantize(a, "f16")
            local _ <close> = counts
            local got = r:to_table()
            assert.near(1 / 3, got[1], 2 ^ -13)
            assert.same({-2, 65504, -65504}, {got[2], got[3], got[4]})
            assert.is_true(got[5] ~= got[5])
            assert.equal(65504, got[6])
            assert.same({1, 1, 1}, counts:to_table())
            local large <close> = mb.array({100000, -50000, 3}, {device = device})
            local scaled <close>, fits = mb.quantize(large, "f16", {high = 64})
            local _ <close> = fits
            assert.same({1562.0, -781.0, 0.046875}, scaled:to_table())
            assert.equal(0, fits:sum())
            local plain <close> = mb.random({1000}, {seed = 3, device = device, low = -3, high = 3})
            local q <close>, c = mb.quantize(plain, "f16")
            local _ <close> = c
            local cast <close> = plain:cast("f16")
            assert.same(cast:to_table(), q:to_table())
            assert.equal(0, c:sum())
        end)

        test("counts all of a large array", function()
            local a <close> = mb.full({300, 1000}, -1, {device = device})
            local b <close> = mb.full({7, 1000}, 2, {device = device})
            local part <close> = a:view({101, 107})
            mb.convert(b, "f32", {out = part})
            local r <close>, counts = mb.quantize(a, "u8", {low = 0, high = 1})
            local _ <close> = counts
            assert.same({293000, 7000, 0}, counts:to_table())
            assert.equal(255, r:item(101, 1000))
        end)
    end)
end)

describe("quantize", function()
    it("says what is wrong", function()
        local a <close> = mb.zeros {2}
        local _, err = helper.failure(mb.quantize, a, "u16", {low = 1, high = 1})
        assert.equal("high", err.arg)
        assert.matches("u16", (helper.failure(mb.quantize, a, "u32")))
    end)

    it("rounds down where it is told to", function()
        local a <close> = mb.array {-1, 0, 0.999, 1, 1.999, 254.999, 255, 300}
        local result, counts = mb.quantize(a, "u8", {high = 255, rounding = "down"})
        assert.same({0, 0, 0, 1, 1, 254, 255, 255}, result:to_table())
        assert.same({1, 1, 0}, counts:to_table())
        result:release()
        counts:release()
    end)

    it("takes what is not finite as a value", function()
        local a <close> = mb.array {0 / 0, math.huge, -math.huge, 1, -5}
        for dtype, want in pairs {u8 = {128, 128, 128, 255, 0}, u16 = {32768, 32768, 32768, 65535,
            0}, f16 = {0.5, 0.5, 0.5, 1, -5}} do
            local result, counts = mb.quantize(a, dtype, {nonfinite = 0.5})
            assert.same(want, result:to_table())
            assert.same({dtype == "f16" and 0 or 1, 0, 3}, counts:to_table())
            result:release()
            counts:release()
        end
    end)
end)
