local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("roll on " .. device:match("^%a+"), function()
        test("moves along any axes, by more than they have, in any dtype", function()
            for _, dtype in ipairs { "u8", "u16", "f32", "f64", "c64", "c128" } do
                local a <close> = mb.random({ 3, 4, 5 }, { dtype = dtype, seed = 1, high = 200,
                    device = device })
                local b <close> = mb.roll(a, { 1, -6, 8 })
                for z = 0, 2 do
                    for y = 0, 3 do
                        for x = 0, 4 do
                            assert.equal((a:item(z + 1, y + 1, x + 1)),
                                (b:item((z + 1) % 3 + 1, (y - 6) % 4 + 1, (x + 8) % 5 + 1)))
                        end
                    end
                end
            end
        end)

        test("takes views and undoes itself", function()
            local a <close> = mb.random({ 6, 7 }, { seed = 2, device = device })
            local turned <close> = a:transpose()
            local there <close> = mb.roll(turned, { 3, 2 })
            local back <close> = mb.roll(there, { -3, -2 })
            helper.assert_close(turned, back, 0)
        end)
    end)
end)

describe("roll", function()
    it("explains what does not fit", function()
        local a <close> = mb.ones { 4, 5 }
        assert.matches("one for each of the 2 axes", (helper.failure(mb.roll, a, { 1, 2, 3 })))
        assert.matches("whole number", (helper.failure(mb.roll, a, 0.5)))
    end)
end)
