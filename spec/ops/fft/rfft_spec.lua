local mb = require "moonbeam"
local helper = require "spec.helper"

-- The first n/2 + 1 columns of the complex transform.
local function expected(a, axes)
    local c <close> = mb.convert(a, "c64")
    local full <close> = mb.fft(c, { axes = axes })
    local ranges = {}
    for i = 1, a.rank do
        ranges[i] = mb.all
    end
    ranges[a.rank] = { 1, a.shape[a.rank] // 2 + 1 }
    local half <close> = full:view(table.unpack(ranges))
    return half:copy()
end

describe("rfft", function()
    for _, shape in ipairs { { 1 }, { 2 }, { 16 }, { 3, 7 }, { 2, 6, 5 }, { 4, 3, 8 },
        { 2, 3, 4, 9 } } do
        it("is half of the complex transform of " .. table.concat(shape, " x "), function()
            for axes = 1, math.min(3, #shape) do
                local a <close> = mb.random(shape, { seed = axes, low = -1 })
                local r <close> = mb.rfft(a, { axes = axes })
                assert.equal("c64", r.dtype)
                local want <close> = expected(a, axes)
                helper.assert_close(want, r, 1e-6)
            end
        end)

        it("runs in place on rows with room for " .. table.concat(shape, " x "), function()
            for axes = 1, math.min(3, #shape) do
                local rank, n = #shape, shape[#shape]
                local a <close> = mb.random(shape, { seed = 5 })
                local want <close> = mb.rfft(a, { axes = axes })
                local after = {}
                for i = 1, rank do
                    after[i] = i == rank and 2 * (n // 2 + 1) - n or 0
                end
                local room <close> = mb.pad(a, { after = after })
                local spectrum <close> = room:reinterpret "c64"
                mb.rfft(room, { axes = axes, n = n, in_place = true, out = spectrum })
                helper.assert_close(want, spectrum, 1e-6)
                mb.irfft(spectrum, { axes = axes, n = n, in_place = true, out = room })
                local back <close> = mb.crop(room, { after = after })
                helper.assert_close(a, back, 1e-6)
            end
        end)
    end

    it("says what is wrong", function()
        local a <close> = mb.zeros { 3, 8 }
        local function refuses(code, arg, ...)
            local text, err = helper.failure(mb.rfft, ...)
            assert.equal(code, err.code, text)
            assert.equal(arg, err.arg, text)
        end
        refuses("argument", "axes", a, { axes = 3 })
        refuses("argument", "n", a, { n = 6 })
        refuses("argument", "n", a, { n = 5, in_place = true })
        refuses("argument", "in_place", a, { in_place = true })
        local t <close> = a:transpose()
        refuses("shape", "a", t)
        local c <close> = mb.zeros({ 3 }, { dtype = "c64" })
        refuses("dtype", "a", c)
    end)

    helper.gpu_it("refuses a view that begins at an odd element, and the device goes on", function()
        local a <close> = mb.random({ 2, 79 }, { device = "cuda:0", seed = 1 })
        local odd <close> = a[2]
        local text, err = helper.failure(mb.rfft, odd)
        assert.equal("shape", err.code, text)
        assert.truthy(text:find("a:copy()", 1, true), text)
        local copy <close> = odd:copy()
        local spectrum <close> = mb.rfft(copy)
        assert.same({ 40 }, spectrum.shape)
        mb.device("cuda:0"):sync()
    end)
end)
