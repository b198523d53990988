local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"
local vo = require "spec.support.vo_stripes"

local run, rounded = vo.run, vo.rounded

-- A sinogram with stripes of all kinds.
local function striped(angles, columns, noise)
    local sino = vo.object(angles, columns, noise)
    if columns > 20 then
        vo.stripe(sino, 8, 4, 0.6)
        vo.stripe(sino, 15, 1, 0.1)
        vo.dead_column(sino, 20, 1)
    end
    return sino
end

describe("stripes_all", function()
    helper.each_device(function(device, it)
        it("is the definition on " .. device, function()
            math.randomseed(41)
            for _, case in ipairs {{1, 9, 5, 3}, {2, 12, 5, 3}, {13, 8, 4, 3}, {40, 33, 11, 5},
                {70, 40, 21, 9}, {11, 7, 3, 3}, {9, 1, 3, 3}, {5, 4, 9, 7}} do
                local angles, columns, large, small = table.unpack(case)
                local sino = rounded(striped(angles, columns, 0.1))
                for _, normalize in ipairs {true, false} do
                    local options = {large_size = large, small_size = small, snr = 2,
                        drop_ratio = 0.2, normalize = normalize}
                    helper.assert_close(vo.all(sino, large, small, 2, 0.2, normalize),
                        run(mb.stripes_all, sino, options, device), 1e-5,
                        ("%d x %d"):format(angles, columns))
                end
            end
        end)

        it("is the three operators, one after the other, on " .. device, function()
            math.randomseed(42)
            local sino = striped(90, 64, 0.05)
            local filled = run(mb.stripes_dead, sino, {residual = false, size = 31}, device)
            local replaced = run(mb.stripes_large, filled, {size = 31, snr = 3}, device)
            local expected = run(mb.stripes_sorting, replaced, {size = 9}, device)
            local got = run(mb.stripes_all, sino, {large_size = 31, small_size = 9}, device)
            helper.assert_close(expected, got, 1e-5)
        end)

        it("removes what there is, and leaves a constant sinogram, on " .. device, function()
            math.randomseed(43)
            local clean = rounded(vo.object(180, 90, 0.01, 0.002))
            local kept = run(mb.stripes_all, clean, {large_size = 31, small_size = 9,
                normalize = false}, device)
            assert.is_true(vo.difference(clean, kept) < 0.06)
            local bad = vo.sorting(clean, 1)
            vo.stripe(bad, 20, 5, 0.4)
            vo.stripe(bad, 60, 1, -0.05)
            vo.dead_column(bad, 45, 0)
            local got = run(mb.stripes_all, bad, {large_size = 31, small_size = 9,
                normalize = false}, device)
            assert.is_true(vo.difference(clean, got) < 0.08)
            local flat <close> = mb.full({20, 30}, 1.5, {device = device})
            local same <close> = mb.stripes_all(flat)
            helper.assert_close(flat, same, 0)
        end)

        it("works on more angles than fit a run, in place, on " .. device, function()
            math.randomseed(44)
            local sino = rounded(striped(1700, 24, 0.1))
            local a <close> = mb.array(sino, {dtype = "f32", device = device})
            mb.stripes_all(a, {large_size = 9, small_size = 5, out = a})
            helper.assert_close(vo.all(sino, 9, 5, 3, 0.1, true), a, 1e-5)
        end)
    end)

    it("is algotom's", function()
        oracle.needs "algotom"
        math.randomseed(45)
        local sino <close> = mb.array(striped(181, 97, 0.05), {dtype = "f32"})
        local expected <close> = oracle.run("algotom", vo.STABLE .. [[
expected = removal.remove_all_stripe(sino, 3.0, 51, 21)
]], {sino = sino}, {"expected"})
        local got <close> = mb.stripes_all(sino)
        -- Values that are equal after a division may change places.
        local x, y, differ = expected:to_table(), got:to_table(), 0
        for a, row in ipairs(x) do
            for c, value in ipairs(row) do
                differ = differ + (math.abs(value - y[a][c]) > 6e-6 and 1 or 0)
            end
        end
        assert.is_true(differ <= 8, tostring(differ))
        assert.is_true(vo.difference(x, y) < 0.05)
    end)
end)
