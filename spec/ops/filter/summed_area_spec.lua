local mb = require "moonbeam"

describe("summed_area", function()
    it("holds the sum of every box as eight corners", function()
        local a <close> = mb.random({ 4, 5, 3 }, { seed = 1 })
        local table_array <close> = mb.summed_area(a)
        assert.same({ 5, 6, 4 }, table_array.shape)
        local t = table_array:to_table()
        for _, box in ipairs { { 1, 4, 1, 5, 1, 3 }, { 2, 3, 2, 5, 3, 3 }, { 4, 4, 1, 1, 2, 3 } } do
            local z0, z1, y0, y1, x0, x1 = table.unpack(box)
            local part <close> = a:view({ z0, z1 }, { y0, y1 }, { x0, x1 })
            local sum = 0
            for i, z in ipairs { z0, z1 + 1 } do
                for j, y in ipairs { y0, y1 + 1 } do
                    for k, x in ipairs { x0, x1 + 1 } do
                        sum = sum + ((i + j + k) % 2 == 0 and 1 or -1) * t[z][y][x]
                    end
                end
            end
            assert.near(part:sum(), sum, 1e-9)
        end
    end)

    it("scales", function()
        local a <close> = mb.array({ { 1, 2 }, { 3, 4 } }, { dtype = "u16" })
        local t <close> = mb.summed_area(a, { scale = 0.1 })
        assert.near(1, (t:item(3, 3)), 1e-12)
        assert.equal(0, (t:item(1, 3)))
    end)
end)
