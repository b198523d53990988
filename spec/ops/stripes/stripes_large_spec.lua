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

describe("stripes_large", function()
    helper.each_device(function(device, it)
        it("is the definition on " .. device, function()
            math.randomseed(21)
            local found = 0
            for _, case in ipairs {{1, 9, 3, 3}, {2, 12, 5, 1}, {13, 8, 4, 0.5}, {17, 33, 11, 1},
                {30, 40, 21, 3}, {41, 50, 60, 2}, {11, 7, 3, 1}, {9, 1, 3, 1}} do
                local angles, columns, size, snr = table.unpack(case)
                local sino = vo.object(angles, columns, 0.1)
                if columns > 20 then
                    vo.stripe(sino, 11, 4, 0.8)
                    vo.stripe(sino, 20, 2, -0.7)
                end
                sino = rounded(sino)
                for _, normalize in ipairs {true, false} do
                    for _, drop in ipairs {0, 0.1, 0.8} do
                        local expected, mask = vo.large(sino, size, snr, drop, normalize)
                        found = found + count(mask)
                        helper.assert_close(expected, run(mb.stripes_large, sino, {size = size,
                            snr = snr, drop_ratio = drop, normalize = normalize}, device), 2e-6,
                            ("%d x %d"):format(angles, columns))
                    end
                end
            end
            assert.is_true(found > 50)
        end)

        it("turns columns round that are divided by negative factors on " .. device, function()
            math.randomseed(22)
            local sino = vo.object(31, 24, 0.2)
            for _, row in ipairs(sino) do
                for c = 1, 24 do
                    row[c] = (row[c] - 2) * 0.3 * (c % 2 == 0 and -1 or 1) + 0.01
                end
            end
            sino = rounded(sino)
            helper.assert_close(vo.large(sino, 5, 1e6, 0.1, true), run(mb.stripes_large, sino,
                {size = 5, snr = 1e6}, device), 1e-4)
        end)

        it("leaves a constant sinogram as it is on " .. device, function()
            for _, value in ipairs {0, 1.25, -3} do
                local flat <close> = mb.full({20, 30}, value, {device = device})
                local same <close> = mb.stripes_large(flat, {size = 5})
                helper.assert_close(flat, same, 0)
            end
        end)

        it("replaces a wide stripe on " .. device, function()
            math.randomseed(23)
            local clean = rounded(vo.object(180, 120, 0.01, 0.002))
            local striped = vo.sorting(clean, 1)
            vo.stripe(striped, 50, 8, 0.5)
            local got = run(mb.stripes_large, striped, {size = 31, normalize = false}, device)
            for c = 1, 120 do
                assert.is_true(vo.difference(clean, got, c) <= 0.06, "column " .. c)
            end
            assert.is_true(vo.difference(clean, striped) > 0.49)
        end)
    end)

    it("is algotom's", function()
        oracle.needs "algotom"
        math.randomseed(24)
        local list = vo.steps(vo.object(181, 97, 0.05))
        vo.stripe(list, 30, 7, 0.4)
        vo.stripe(list, 60, 3, -0.3)
        local sino <close> = mb.array(list, {dtype = "f32"})
        local expected, plain = oracle.run("algotom", vo.STABLE .. [[
expected = removal.remove_large_stripe(sino, 2.0, 31)
plain = removal.remove_large_stripe(sino, 3.0, 30, drop_ratio=0.3, norm=False)
]], {sino = sino}, {"expected", "plain"})
        local got <close> = mb.stripes_large(sino, {snr = 2, size = 31})
        helper.assert_close(expected, got, 1e-6)
        local other <close> = mb.stripes_large(sino, {size = 30, drop_ratio = 0.3,
            normalize = false})
        helper.assert_close(plain, other, 1e-6)
        expected:release()
        plain:release()
    end)
end)
