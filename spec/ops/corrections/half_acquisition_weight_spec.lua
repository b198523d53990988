local mb = require "moonbeam"
local helper = require "spec.helper"

describe("half_acquisition_weight", function()
    helper.each_device(function(device, it)
        it("is linear over the overlap and one elsewhere on " .. device, function()
            local ones <close> = mb.ones({ 2, 11 }, { device = device })
            local right <close> = mb.half_acquisition_weight(ones, 8)
            local row = { 1, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0 }
            helper.assert_close({ row, row }, right, 1e-6)
            local left <close> = mb.half_acquisition_weight(ones, 2)
            local mirrored = { 0, 0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1 }
            helper.assert_close({ mirrored, mirrored }, left, 1e-6)
        end)

        it("adds up to one with the ray from behind on " .. device, function()
            local ones <close> = mb.ones({ 61 }, { device = device })
            for _, center in ipairs { 45, 45.5, 60, 32, 31.5, 12, 28.5, 0 } do
                local weights <close> = mb.half_acquisition_weight(ones, center)
                local w = weights:to_table()
                for u = 0, 60 do
                    local back = 2 * center - u
                    assert.near(1, w[u + 1] + (w[back + 1] or 0), 1e-6)
                end
            end
        end)

        it("extends to the whole field of view on " .. device, function()
            local scan <close> = mb.random({ 3, 5, 20 }, { seed = 4, device = device })
            for _, case in ipairs { { 15, 31, 0 }, { 15.25, 31, 0 }, { 4, 31, 11 }, { 19, 39, 0 },
                { 0.5, 38, 18 } } do
                local center, wide, front = table.unpack(case)
                local narrow <close> = mb.half_acquisition_weight(scan, center)
                local got <close> = mb.half_acquisition_weight(scan, center, { extend = true })
                local want <close> = mb.pad(narrow,
                    { before = { 0, 0, front }, after = { 0, 0, wide - 20 - front } })
                assert.same({ 3, 5, wide }, got.shape)
                assert.same(want:to_table(), got:to_table())
            end
        end)

        it("weights in place, views too, on " .. device, function()
            local large <close> = mb.random({ 3, 8, 30 }, { seed = 5, device = device })
            local view <close> = large:view(mb.all, { 2, 7 }, { 3, 27 })
            local want <close> = mb.half_acquisition_weight(view, 18.5)
            local values = want:to_table()
            mb.half_acquisition_weight(view, 18.5, { out = view })
            assert.same(values, view:to_table())
        end)
    end)

    it("refuses an axis in the middle or outside", function()
        local scan <close> = mb.zeros { 8, 21 }
        for _, case in ipairs { { 10, "middle" }, { 10.75, "middle" }, { 20.5, "outside" },
            { -1, "outside" } } do
            local text, err = helper.failure(mb.half_acquisition_weight, scan, case[1])
            assert.equal("center", err.arg)
            assert.matches(case[2], text)
        end
    end)

    it("needs no scratch", function()
        local known = mb.op.estimate("half_acquisition_weight", { { "f32", 4, 8, 21 } },
            { center = 15 })
        assert.equal(0, known.scratch)
    end)
end)
