local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"
local vo = require "spec.support.vo_stripes"

local run, rounded = vo.run, vo.rounded

local function count(mask)
    local n = 0
    for _, hit in ipairs(mask) do
        n = n + (hit and 1 or 0)
    end
    return n
end

describe("stripes_dead", function()
    helper.each_device(function(device, it)
        it("is the definition on " .. device, function()
            math.randomseed(31)
            local found = 0
            for _, case in ipairs {{1, 9, 3, 3}, {2, 12, 5, 1}, {13, 8, 4, 0.5}, {17, 33, 11, 1},
                {130, 40, 21, 3}, {64, 50, 60, 2}, {65, 31, 7, 2}, {20, 40, 150, 2}, {11, 7, 3, 1}, {9, 1, 3, 1}} do
                local angles, columns, size, snr = table.unpack(case)
                local sino = vo.object(angles, columns, 0.1)
                if columns > 20 then
                    vo.dead_column(sino, 11, 0.5)
                    vo.dead_column(sino, 24, 2, 3)
                end
                sino = rounded(sino)
                local expected, mask = vo.dead(sino, size, snr)
                found = found + count(mask)
                helper.assert_close(expected, run(mb.stripes_dead, sino, {size = size, snr = snr,
                    residual = false}, device), 1e-6, ("%d x %d"):format(angles, columns))
                local both = vo.large(rounded(expected), size, snr, 0.1, true)
                helper.assert_close(both, run(mb.stripes_dead, sino, {size = size, snr = snr},
                    device), 2e-6, ("%d x %d, residual"):format(angles, columns))
            end
            assert.is_true(found > 15)
        end)

        it("fills in columns between their neighbors on " .. device, function()
            math.randomseed(32)
            local clean = rounded(vo.object(180, 60, 0.01, 0.002))
            local broken = vo.sorting(clean, 1)
            vo.dead_column(broken, 20, 0)
            vo.dead_column(broken, 40, 2, 1.5)
            local got = run(mb.stripes_dead, broken, {size = 21, residual = false}, device)
            for c = 1, 60 do
                assert.is_true(vo.difference(clean, got, c) <= 0.05, "column " .. c)
            end
        end)

        it("fills in columns with values that are not finite on " .. device, function()
            math.randomseed(35)
            local clean = rounded(vo.object(60, 40, 0.01, 0.002))
            local broken = vo.sorting(clean, 1)
            broken[7][10], broken[30][25] = 0 / 0, 1 / 0
            vo.dead_column(broken, 32, 2, 1.5)
            local got = run(mb.stripes_dead, broken, {size = 21}, device)
            assert.is_true(vo.difference(clean, got) < 0.1)
            for _, row in ipairs(got) do
                for _, value in ipairs(row) do
                    assert.is_true(value - value == 0)
                end
            end
        end)

        it("leaves what it cannot judge on " .. device, function()
            for _, value in ipairs {0, 1.25} do -- every column is dead
                local flat <close> = mb.full({20, 30}, value, {device = device})
                local same <close> = mb.stripes_dead(flat, {size = 5})
                helper.assert_close(flat, same, 0)
            end
            math.randomseed(33)
            local sino = vo.object(50, 30, 0.1)
            for c = 3, 26, 3 do -- a third of the columns, with their neighbors more
                vo.dead_column(sino, c, 1)
            end
            sino = rounded(sino)
            helper.assert_close(sino, run(mb.stripes_dead, sino, {size = 15, snr = 0.5,
                residual = false}, device), 0)
        end)

        it("works on permuted projections, in place, on " .. device, function()
            math.randomseed(36)
            local frames <close> = mb.zeros({40, 3, 30}, {device = device})
            for row = 1, 3 do
                local sino = vo.object(40, 30, 0.1)
                vo.dead_column(sino, 9 * row, 1)
                local part <close> = mb.array(sino, {dtype = "f32", device = device})
                local view <close> = frames:view(mb.all, row)
                mb.convert(part, "f32", {out = view})
            end
            local sinos <close> = frames:permute(2, 1, 3)
            local dense <close> = sinos:copy()
            local options = {size = 15, snr = 3, residual = false}
            local expected <close> = mb.stripes_dead(dense, options)
            options.out = sinos
            mb.stripes_dead(sinos, options)
            helper.assert_close(expected, sinos, 0)
            assert.is_true(vo.difference(dense:to_table()[2], expected:to_table()[2]) > 0.01)
        end)
    end)

    it("is algotom's", function()
        oracle.needs "algotom"
        math.randomseed(34)
        local list = vo.steps(vo.object(181, 97, 0.05))
        vo.dead_column(list, 30, 1)
        vo.dead_column(list, 31, 1)
        vo.dead_column(list, 70, 2, 2)
        local sino <close> = mb.array(list, {dtype = "f32"})
        local expected, both = oracle.run("algotom", vo.STABLE .. [[
expected = removal.remove_dead_stripe(sino, 3.0, 31, residual=False)
both = removal.remove_dead_stripe(sino, 3.0, 51)
]], {sino = sino}, {"expected", "both"})
        local got <close> = mb.stripes_dead(sino, {size = 31, residual = false})
        helper.assert_close(expected, got, 1e-6)
        local other <close> = mb.stripes_dead(sino)
        helper.assert_close(both, other, 2e-6)
        expected:release()
        both:release()
    end)
end)
