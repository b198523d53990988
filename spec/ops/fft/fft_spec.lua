local mb = require "moonbeam"
local helper = require "spec.helper"

-- The transform of a list of {re, im} by its definition.
local function dft(list, sign)
    local n, out = #list, {}
    for k = 0, n - 1 do
        local re, im = 0, 0
        for j = 0, n - 1 do
            local angle = sign * 2 * math.pi * (j * k % n) / n
            local c, s = math.cos(angle), math.sin(angle)
            re = re + list[j + 1][1] * c - list[j + 1][2] * s
            im = im + list[j + 1][1] * s + list[j + 1][2] * c
        end
        out[k + 1] = { re, im }
    end
    return out
end

-- Over the last `axes` axes of nested tables of `rank` levels.
local function transform(values, rank, axes, sign)
    if rank == 1 then
        return axes >= 1 and dft(values, sign) or values
    end
    for i = 1, #values do
        values[i] = transform(values[i], rank - 1, axes, sign)
    end
    if axes < rank then
        return values
    end
    -- The first axis: every column of the flattened rest.
    local function column(level, depth)
        if depth == 0 then
            local list = {}
            for i = 1, #level do
                list[i] = level[i]
            end
            return dft(list, sign)
        end
        local out = {}
        for j = 1, #level[1] do
            local inner = {}
            for i = 1, #level do
                inner[i] = level[i][j]
            end
            local result = column(inner, depth - 1)
            for i = 1, #level do
                out[i] = out[i] or {}
                out[i][j] = result[i]
            end
        end
        return out
    end
    return column(values, rank - 1)
end

describe("fft", function()
    for _, n in ipairs { 1, 2, 5, 8, 13, 30 } do
        it(("transforms rows of %d, both ways"):format(n), function()
            local a <close> = mb.random({ 3, n }, { dtype = "c64", seed = n, low = -1 })
            local r <close> = mb.fft(a)
            helper.assert_close(transform(a:to_table(), 2, 1, -1), r, 1e-6)
            local raw <close> = mb.fft(a, { inverse = true, normalize = false })
            helper.assert_close(transform(a:to_table(), 2, 1, 1), raw, 1e-6)
            local back <close> = mb.fft(r, { inverse = true })
            helper.assert_close(a, back, 1e-6)
        end)
    end

    it("transforms two and three axes", function()
        for axes = 2, 3 do
            local a <close> = mb.random({ 2, 4, 3, 5 }, { dtype = "c64", seed = axes, low = -1 })
            local r <close> = mb.fft(a, { axes = axes })
            helper.assert_close(transform(a:to_table(), 4, axes, -1), r, 1e-6)
        end
    end)

    it("runs in place with the same result", function()
        for axes = 1, 3 do
            local a <close> = mb.random({ 3, 6, 7, 5 }, { dtype = "c64", seed = 1 })
            local r <close> = mb.fft(a, { axes = axes })
            assert.equal(a, mb.fft(a, { axes = axes, out = a }))
            helper.assert_close(r, a, 1e-6)
        end
    end)

    it("satisfies Parseval's equation", function()
        local a <close> = mb.random({ 24, 25 }, { dtype = "c64", seed = 3 })
        local r <close> = mb.fft(a, { axes = 2 })
        local x <close> = mb.reduce(a, "norm")
        local y <close> = mb.reduce(r, "norm")
        assert.near(x:item() * math.sqrt(600), y:item(), 1e-5 * y:item())
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros({ 4 }, { dtype = "c64" })
        local _, err = helper.failure(mb.fft, a, { axes = 2 })
        assert.equal("argument", err.code)
        assert.equal("axes", err.arg)
        local r <close> = mb.zeros { 4 }
        _, err = helper.failure(mb.fft, r)
        assert.equal("dtype", err.code)
        local none <close> = mb.zeros({ 2, 0 }, { dtype = "c64" })
        _, err = helper.failure(mb.fft, none)
        assert.equal("shape", err.code)
    end)
end)
