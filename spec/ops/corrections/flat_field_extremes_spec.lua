-- flat_field at the ends of the range of numbers, on both devices: a GPU divides by inverses.

local mb = require "moonbeam"
local helper = require "spec.helper"

helper.each_device(function(device, test)
    describe("flat_field on " .. device, function()
        -- The result and counts for one row of data and of flats, plain and with a factor of 1.
        local function each(data, flats, options, check)
            local a <close> = mb.array({{data}}, {device = device})
            local f <close> = mb.array({{flats}}, {device = device})
            for _, scale in ipairs {false, {1}} do
                local own = {flats = f, scale = scale or nil}
                for name, value in pairs(options) do
                    own[name] = value
                end
                local result, counts = mb.flat_field(a, own)
                check(result:to_table()[1][1], counts:to_table())
                result:release()
                counts:release()
            end
        end

        test("divides to the last place", function()
            local data, flats = {}, {}
            for i = 1, 4000 do
                data[i], flats[i] = (i * 7919) % 65536, 1 + (i * 104729) % 65535
            end
            each(data, flats, {}, function(found)
                for i, value in ipairs(found) do
                    local exact = data[i] / flats[i]
                    assert.is_true(math.abs(value - exact) <= 1.2e-7 * exact, i)
                end
            end)
            each(flats, flats, {}, function(found)
                for _, value in ipairs(found) do
                    assert.equal(1, value)
                end
            end)
        end)

        test("takes what is very large, very small or not finite", function()
            local inf, nan = math.huge, 0 / 0
            local data = {5, inf, nan, 5, 5, 1e38, 3e38, 1e-30, 0, -3, 2e38}
            local flats = {inf, 2, 2, nan, 1e38, 1e38, 0.5, 1e5, 7, 2, 2e38}
            local want = {0, 9, 9, 9, 5e-38, 1, 9, 1e-35, 0, -1.5, 1}
            each(data, flats, {nonfinite = 9}, function(found, counts)
                for i, value in ipairs(found) do
                    assert.is_true(math.abs(value - want[i]) <= 2e-6 * math.abs(want[i]), i)
                end
                assert.same({4, 0, 3}, counts)
            end)
            each({1, 1e38}, {0, 1e-20}, {floor = 1e-7, nonfinite = 9}, function(found, counts)
                assert.near(1e7, found[1], 10)
                assert.equal(9, found[2])
                assert.same({1, 2, 0}, counts)
            end)
        end)
    end)
end)
