local mb = require "moonbeam"
local helper = require "spec.helper"

local function apart(a, b)
    local n, sa, sb, aa, bb, ab = #a, 0, 0, 0, 0, 0
    for i = 1, n do
        sa, sb = sa + a[i], sb + b[i]
        aa, bb, ab = aa + a[i] ^ 2, bb + b[i] ^ 2, ab + a[i] * b[i]
    end
    return math.abs(1 - (ab - sa * sb / n) / math.sqrt((aa - sa ^ 2 / n) * (bb - sb ^ 2 / n)))
end

-- The metric by its definition.
local function expected_of(first, second, o)
    local list, width = {}, #second[1]
    for x = 0, #first[1] - o.window do
        local a, b, c = {}, {}, {}
        for y = 1, #first do
            local sa, sb = 0, 0
            local start = o.side == "left" and width - o.window or 0
            for i = 1, o.window do
                local at = start + i
                a[#a + 1] = first[y][x + i]
                b[#b + 1] = second[y][o.mirror and width + 1 - at or at]
                sa, sb = sa + math.abs(a[#a]), sb + math.abs(b[#b])
            end
            for i = 1, o.window do
                local k, down = #a - o.window + i, 1 - (i - 1) / (o.window - 1)
                local ramp = o.side == "left" and 1 - down or down
                a[k] = o.normalize and a[k] * sb / sa or a[k]
                c[k] = ramp * a[k] + (1 - ramp) * b[k]
            end
        end
        list[x + 1] = o.blend and (apart(a, b) + apart(a, c) + apart(b, c)) / 3 or apart(a, b)
    end
    return list
end

local CASES = {{window = 4}, {window = 5, side = "left"}, {window = 2, mirror = true},
    {window = 11, side = "left", mirror = true, normalize = true},
    {window = 6, blend = true}, {window = 9, side = "left", blend = true, normalize = true}}

describe("overlap_metric", function()
    helper.each_device(function(device, it)
        it("is 1 less the correlation of windows on " .. device, function()
            for seed, options in ipairs(CASES) do
                local first <close> = mb.random({7, 33}, {seed = seed, device = device, low = 0.2})
                local second <close> = mb.random({7, 14}, {seed = 9, device = device, low = 0.2})
                local metric <close> = mb.overlap_metric(first, second, options)
                helper.assert_close(expected_of(first:to_table(), second:to_table(), options),
                    metric, 1e-5)
            end
        end)

        it("is 0 where the window lies, and NaN without contrast on " .. device, function()
            local first <close> = mb.random({5, 40}, {seed = 1, device = device})
            local second <close> = first:view(mb.all, {13, 40})
            local metric <close> = mb.overlap_metric(first, second, {window = 8})
            assert.near(0, metric:item(13), 1e-6)
            assert.is_true(metric:item(12) > 0.1)
            local flat <close> = mb.full({5, 40}, 2, {device = device})
            local none <close> = mb.overlap_metric(first, flat, {window = 8})
            assert.is_true(none:item(1) ~= none:item(1))
        end)
    end)

    it("says what does not fit", function()
        local a <close> = mb.zeros({5, 40})
        local b <close> = mb.zeros({6, 40})
        assert.matches("second has 6 rows and first has 5", helper.failure(mb.overlap_metric, a,
            b), 1, true)
        assert.matches("window is 41 columns; first has 40", helper.failure(mb.overlap_metric, a,
            a, {window = 41}), 1, true)
    end)
end)
