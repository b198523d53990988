local mb = require "moonbeam"
local helper = require "spec.helper"

local pi = math.pi

local function padded_width(width)
    local p = 4
    while p < 2 * width do
        p = 2 * p
    end
    return p
end

local windows = {
    ["ram-lak"] = function() return 1 end,
    ["shepp-logan"] = function(q) return q == 0 and 1 or math.sin(pi * q / 2) / (pi * q / 2) end,
    cosine = function(q) return math.cos(pi * q / 2) end,
    hamming = function(q) return 0.54 + 0.46 * math.cos(pi * q) end,
    hann = function(q) return 0.5 + 0.5 * math.cos(pi * q) end,
    tukey = function(q) return q <= 0.5 and 1 or 0.5 + 0.5 * math.cos(2 * pi * (q - 0.5)) end,
    lanczos = function(q) return q == 0 and 1 or math.sin(pi * q) / (pi * q) end,
}

-- The filter's spatial kernel on a circle of P samples, by the definition.
local function kernel(filter, cutoff, P)
    local response, h = {}, {}
    for k = 0, P // 2 do
        local q, sum = 2 * k / P / cutoff, 0.25
        for n = 1, P // 2 - 1, 2 do
            sum = sum - 2 * math.cos(2 * pi * k * n / P) / (pi * n) ^ 2
        end
        response[k] = filter == "none" and 1 or q > 1 and 0 or sum * windows[filter](q)
    end
    for n = 0, P - 1 do
        local sum = response[0] + (n % 2 == 0 and 1 or -1) * response[P // 2]
        for k = 1, P // 2 - 1 do
            sum = sum + 2 * response[k] * math.cos(2 * pi * k * n / P)
        end
        h[n] = sum / P
    end
    return h
end

-- One row by circular convolution.
local function filtered(row, options)
    local width = #row
    local P = options.pad_width or padded_width(width)
    local left = (P - width) // 2
    local h = kernel(options.filter or "ram-lak", options.cutoff or 1, P)
    local edge, out = options.padding == "edge", {}
    for x = 1, width do
        local sum = 0
        for i = 0, P - 1 do
            local j = i - left + 1
            local value = row[j] or edge and row[j < 1 and 1 or width] or 0
            sum = sum + value * h[(left + x - 1 - i) % P]
        end
        out[x] = sum * (options.scale or 1)
    end
    return out
end

describe("ramp_filter", function()
    for _, name in ipairs { "ram-lak", "shepp-logan", "cosine", "hamming", "hann", "tukey", "lanczos", "none" } do
        it("convolves with the kernel of " .. name, function()
            for _, case in ipairs {
                { 1, {} }, { 5, {} }, { 8, { cutoff = 0.6 } }, { 13, { padding = "edge" } },
                { 11, { pad_width = 44, scale = 3 } }, { 12, { pad_width = 12, cutoff = 0.3 } },
                { 7, { pad_width = 20, padding = "edge" } },
            } do
                local width, options = case[1], case[2]
                options.filter = name
                local a <close> = mb.random({ 2, 3, width }, { seed = width, low = -1 })
                local r <close> = mb.ramp_filter(a, options)
                local want = a:to_table()
                for i = 1, 2 do
                    for j = 1, 3 do
                        want[i][j] = filtered(want[i][j], options)
                    end
                end
                helper.assert_close(want, r, 2e-6)
            end
        end)
    end

    it("answers an impulse with the band-limited ramp", function()
        local n = 33
        local a <close> = mb.zeros { n }
        local center <close> = a:view { 17, 17 }
        mb.fill(center, 1)
        local r <close> = mb.ramp_filter(a)
        for i = 1, n do
            local d = math.abs(i - 17)
            assert.near(d == 0 and 0.25 or d % 2 == 1 and -1 / (pi * d) ^ 2 or 0, r:item(i), 2e-7)
        end
    end)

    it("does nothing but scale without a filter", function()
        local a <close> = mb.random({ 3, 10 }, { seed = 1 })
        local r <close> = mb.ramp_filter(a, { filter = "none", scale = 2 })
        local want <close> = a * 2
        helper.assert_close(want, r, 1e-6)
    end)

    it("filters permuted views, in place too, and any number of rows alike", function()
        local a <close> = mb.random({ 5, 6, 31 }, { seed = 2 })
        local whole <close> = mb.ramp_filter(a)
        local view <close> = a:permute(2, 1, 3)
        local turned <close> = mb.ramp_filter(view)
        local back <close> = turned:permute(2, 1, 3)
        assert.same(whole:to_table(), back:to_table())
        local one <close> = a:view({ 2, 2 })
        mb.ramp_filter(one, { out = one })
        local expected <close> = whole:view({ 2, 2 })
        assert.same(expected:to_table(), one:to_table())
    end)

    it("needs scratch that does not grow with the rows", function()
        local few = mb.op.estimate("ramp_filter", { { "f32", 1, 100 } }, {})
        local many = mb.op.estimate("ramp_filter", { { "f32", 1000, 100 } }, {})
        assert.equal(few.scratch, many.scratch)
    end)

    it("says what is wrong", function()
        local a <close> = mb.zeros { 2, 10 }
        for _, case in ipairs {
            { "argument", "pad_width", { pad_width = 8 } }, { "argument", "pad_width", { pad_width = 22 } },
            { "argument", "cutoff", { cutoff = 0 } }, { "argument", "cutoff", { cutoff = 1.5 } },
            { "argument", "filter", { filter = "ramp" } },
        } do
            local _, err = helper.failure(mb.ramp_filter, a, case[3])
            assert.equal(case[1], err.code)
            assert.equal(case[2], err.arg)
        end
        local t <close> = a:transpose()
        local _, err = helper.failure(mb.ramp_filter, t)
        assert.equal("shape", err.code)
        local none <close> = mb.zeros { 2, 0 }
        _, err = helper.failure(mb.ramp_filter, none)
        assert.equal("shape", err.code)
    end)
end)
