local mb = require "moonbeam"
local helper = require "spec.helper"

describe("wiener_filter", function()
    for _, laplacian in ipairs { false, true } do
        it("is its formula" .. (laplacian and " with the Laplacian" or ""), function()
            local a <close> = mb.random({ 3, 5 }, { dtype = "c64", seed = 1, low = -1 })
            local h <close> = mb.random({ 3, 5 }, { dtype = "c64", seed = 2, low = -1 })
            local x, y, expected = a:to_table(), h:to_table(), {}
            for i = 1, 3 do
                for j = 1, 5 do
                    local hr, hi = y[i][j][1], y[i][j][2]
                    local r = 4 * math.sin(math.pi * (i - 1) / 3) ^ 2 + 4 * math.sin(math.pi * (j
                        - 1) / 9) ^ 2
                    local bottom = hr * hr + hi * hi + 0.1 * (laplacian and r * r or 1)
                    expected[#expected + 1] = 2 * (x[i][j][1] * hr + x[i][j][2] * hi) / bottom
                    expected[#expected + 1] = 2 * (x[i][j][2] * hr - x[i][j][1] * hi) / bottom
                end
            end
            mb.wiener_filter(a, h, { lambda = 0.1, laplacian = laplacian, n = 9, scale = 2 })
            helper.assert_close(expected, helper.flatten(a:to_table()), 1e-6)
        end)
    end

    it("gives 0 where nothing passes, and explains wrong rows", function()
        local a <close> = mb.ones({ 3 }, { dtype = "c64" })
        local h <close> = mb.zeros({ 3 }, { dtype = "c64" })
        assert.matches("frequencies", (helper.failure(mb.wiener_filter, a, h, { n = 9 })))
        mb.wiener_filter(a, h, { lambda = 0 })
        helper.assert_close({ 0, 0, 0, 0, 0, 0 }, helper.flatten(a:to_table()), 0)
    end)
end)
