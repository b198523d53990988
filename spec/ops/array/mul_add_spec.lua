local mb = require "moonbeam"
local helper = require "spec.helper"

-- Lua tables: dst[D] = a dst[D] + b other[O], regions {y0, y1, x0, x1} with ends excluded.
local function expected(dst, other, a, b, d, o)
    for y = 1, d[2] - d[1] do
        for x = 1, d[4] - d[3] do
            local row = dst[d[1] + y]
            row[d[3] + x] = a * row[d[3] + x] + b * other[o[1] + y][o[3] + x]
        end
    end
    return dst
end

describe("mul_add", function()
    helper.each_device(function(device, it)
        it("adds whole images on " .. device, function()
            for _, factors in ipairs { { 1, 2 }, { 3, 5 } } do
                local dst <close> = mb.random({ 300, 451 }, { seed = 1, device = device })
                local other <close> = mb.random({ 300, 451 }, { seed = 2, device = device })
                local all = { 0, 300, 0, 451 }
                local want = expected(dst:to_table(), other:to_table(), factors[1], factors[2], all,
                    all)
                mb.mul_add(dst, other, { a = factors[1], b = factors[2] })
                helper.assert_close(want, dst, 1e-6)
            end
        end)

        it("changes the region alone on " .. device, function()
            local dst <close> = mb.random({ 300, 451 }, { seed = 1, device = device })
            local other <close> = mb.random({ 300, 451 }, { seed = 2, device = device })
            local d, o = { 10, 200, 15, 124 }, { 100, 290, 200, 309 }
            local want = expected(dst:to_table(), other:to_table(), 0.5, 1.7, d, o)
            mb.mul_add(dst, other, { a = 0.5, b = 1.7, region = d, other_region = o })
            helper.assert_close(want, dst, 1e-6)
        end)

        it("takes views with pitches of their own on " .. device, function()
            local large <close> = mb.random({ 40, 50 }, { seed = 3, device = device })
            local other <close> = mb.random({ 2, 30, 37 }, { seed = 4, device = device })
            local dst <close> = large:view({ 5, 34 }, { 3, 39 })
            local image <close> = other:view(2, mb.all, mb.all)
            local want = large:to_table()
            local added = image:to_table()
            expected(want, added, -1, 2, { 4, 34, 2, 39 }, { 0, 30, 0, 37 })
            mb.mul_add(dst, image, { a = -1, b = 2 })
            helper.assert_close(want, large, 1e-6)
        end)
    end)

    it("needs no scratch and makes no result", function()
        for _, shape in ipairs { { 3, 4 }, { 2048, 2048 } } do
            local spec = { "f32", table.unpack(shape) }
            local known = mb.op.estimate("mul_add", { spec, spec })
            assert.equal(0, known.scratch)
            assert.equal(0, known.peak)
        end
    end)

    it("returns dst", function()
        local dst <close> = mb.ones({ 2, 3 })
        local other <close> = mb.ones({ 2, 3 })
        assert.equal(dst, mb.mul_add(dst, other, { b = 4 }))
        assert.same({ { 5, 5, 5 }, { 5, 5, 5 } }, dst:to_table())
    end)

    it("overwrites with a = 0, even NaN", function()
        local dst <close> = mb.full({ 2, 2 }, 0 / 0)
        local other <close> = mb.ones({ 2, 2 })
        mb.mul_add(dst, other, { a = 0, b = 3 })
        assert.same({ { 3, 3 }, { 3, 3 } }, dst:to_table())
    end)

    it("refuses regions that are unequal, empty or outside", function()
        local dst <close> = mb.zeros({ 10, 12 })
        local other <close> = mb.zeros({ 9, 12 })
        local function refused(options, arg, pattern)
            local text, err = helper.failure(mb.mul_add, dst, other, options)
            assert.equal("argument", err.code)
            assert.equal(arg, err.arg)
            assert.matches(pattern, text)
        end
        refused(nil, "other_region", "10 x 12 and that of other 9 x 12; they must be equal")
        refused({ region = { 0, 3, 0, 4 }, other_region = { 0, 4, 0, 4 } }, "other_region", "equal")
        refused({ region = { 3, 3, 0, 4 }, other_region = { 3, 3, 0, 4 } }, "region", "y0 < y1")
        refused({ region = { 0, 3, 5, 4 } }, "region", "x0 < x1")
        refused({ region = { 0, 11, 0, 4 } }, "region", "<= 10")
        refused({ region = { 0, 3, 0 } }, "region", "3 numbers")
        refused({ region = { 0, 3.5, 0, 4 } }, "region", "whole number")
    end)

    it("refuses images that share memory", function()
        local image <close> = mb.zeros({ 10, 12 })
        local _, err = helper.failure(mb.mul_add, image, image)
        assert.equal("argument", err.code)
    end)
end)
