local mb = require "moonbeam"
local helper = require "spec.helper"

-- The mask as a table, and how many are dead.
local function found(frames, options)
    local mask <close>, tally = mb.dead_pixels(frames, options)
    local counts <close> = tally
    return mask:to_table(), counts:item(1)
end

helper.each_device(function(device, test)
    describe("dead_pixels on " .. device:match "^%a+", function()
        test("finds what flats and darks do not tell apart", function()
            for _, dtype in ipairs {"u8", "u16", "i32", "f16", "f32"} do
                local flats <close> = mb.array({{{100, 0, 90, 21}, {120, 130, 255, 20}},
                    {{100, 0, 94, 22}, {100, 110, 255, 22}}}, {dtype = dtype, device = device})
                local darks <close> = mb.array({{{10, 0, 9, 20}, {12, 13, 255, 20}}},
                    {dtype = dtype, device = device})
                local mask, count = found(flats, {darks = darks})
                assert.same({{0, 1, 0, 0}, {0, 0, 1, 0}}, mask)
                assert.equal(2, count)
                local more = found(flats, {darks = darks, least = 1.5})
                assert.same({{0, 1, 0, 1}, {0, 0, 1, 1}}, more)
                local alone = found(flats, {least = 21.5})
                assert.same({{0, 1, 0, 1}, {0, 0, 0, 1}}, alone)
            end
        end)

        test("finds what never changes", function()
            local frames <close> = mb.random({6, 7, 90}, {seed = 1, device = device})
            local list, expected = frames:to_table(), {}
            for y = 1, 7 do
                expected[y] = {}
                for x = 1, 90 do
                    expected[y][x] = (x + y) % 11 == 0 and 1 or 0
                    for k = 2, 6 do
                        list[k][y][x] = expected[y][x] == 1 and list[1][y][x] or list[k][y][x]
                    end
                end
            end
            local stuck <close> = mb.array(list, {device = device})
            assert.same(expected, (found(stuck, {rule = "constant"})))
            local one <close> = stuck:view(1)
            local single <close> = one:reshape(1, 7, 90)
            local _, none = found(single, {rule = "constant"})
            assert.equal(0, none)
        end)
    end)
end)

describe("dead_pixels", function()
    it("counts NaN as dead, and explains frames that do not agree", function()
        local flats <close> = mb.array {{{1, 0 / 0, 3}}}
        assert.same({{0, 1, 0}}, (found(flats)))
        local darks <close> = mb.zeros {1, 1, 4}
        assert.matches("darks has 1 x 4 pixels and frames has 1 x 3",
            (helper.failure(mb.dead_pixels, flats, {darks = darks})))
    end)
end)
