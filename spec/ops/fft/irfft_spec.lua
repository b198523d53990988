local mb = require "moonbeam"
local helper = require "spec.helper"

describe("irfft", function()
    for _, shape in ipairs { { 1 }, { 2 }, { 16 }, { 3, 7 }, { 2, 6, 5 }, { 4, 3, 8 },
        { 2, 3, 4, 9 } } do
        it("undoes rfft of " .. table.concat(shape, " x "), function()
            for axes = 1, math.min(3, #shape) do
                local n, points = shape[#shape], 1
                for i = #shape - axes + 1, #shape do
                    points = points * shape[i]
                end
                local a <close> = mb.random(shape, { seed = axes, low = -1 })
                local spectrum <close> = mb.rfft(a, { axes = axes })
                local before = spectrum:to_table()
                local r <close> = mb.irfft(spectrum, { axes = axes, n = n })
                assert.equal("f32", r.dtype)
                helper.assert_close(a, r, 1e-6)
                assert.same(before, spectrum:to_table())
                local raw <close> = mb.irfft(spectrum, { axes = axes, n = n, normalize = false,
                    consume = true })
                local scaled <close> = a * points
                helper.assert_close(scaled, raw, 1e-6)
            end
        end)
    end

    it("takes the even length unless told", function()
        local a <close> = mb.zeros({ 2, 5 }, { dtype = "c64" })
        local even <close> = mb.irfft(a)
        assert.same({ 2, 8 }, even.shape)
        local odd <close> = mb.irfft(a, { n = 9 })
        assert.same({ 2, 9 }, odd.shape)
    end)

    it("needs scratch for a copy unless it may consume", function()
        local inputs = { { "c64", 8, 513 } }
        local keep = mb.op.estimate("irfft", inputs, {})
        local consume = mb.op.estimate("irfft", inputs, { consume = true })
        assert.truthy(keep.scratch >= consume.scratch + 8 * 513 * 8)
        assert.equal(keep.result, consume.result)
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros({ 3, 5 }, { dtype = "c64" })
        for _, case in ipairs {
            { "n", { n = 7 } }, { "n", { n = 10 } }, { "axes", { axes = 3 } },
            { "in_place", { in_place = true } },
        } do
            local text, err = helper.failure(mb.irfft, a, case[2])
            assert.equal("argument", err.code, text)
            assert.equal(case[1], err.arg, text)
        end
    end)
end)
