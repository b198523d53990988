-- A transform does not depend on its place in a batch: libraries take other ways for batches, for
-- numbers of threads and for arrays that are not aligned.

local mb = require "moonbeam"
local helper = require "spec.helper"

-- Of a batch along axis 1, transformed as a whole: how many transforms are not, to the bit, what
-- each gives by itself and as the last of two, from a view and from a copy.
local function different(name, shape, options, device)
    local count, all = 0, mb.all
    options.axes = #shape - 1
    local a <close> = mb.random(shape, {dtype = name == "rfft" and "f32" or "c64", seed = shape[2],
        device = device})
    local whole <close> = mb.op.run(name, a, options)
    local rest = {}
    for i = 1, #shape - 1 do
        rest[i] = all
    end
    for i = 1, shape[1] do
        local expected = whole:view({i, i}, table.unpack(rest))
        for _, first in ipairs {i, math.max(1, i - 1)} do
            local view <close> = a:view({first, i}, table.unpack(rest))
            local copy <close> = view:copy()
            for _, part in ipairs {view, copy} do
                local result <close> = mb.op.run(name, part, options)
                local last <close> = result:view({i - first + 1, i - first + 1}, table.unpack(rest))
                count = count + (last:to_string() ~= expected:to_string() and 1 or 0)
            end
        end
        expected:release()
    end
    return count
end

-- What the library makes of a batch differs for many of these.
local ROWS = {11, 17, 20, 25, 33, 64, 65, 84, 128, 300, 500, 1001, 1024}
local PLANES = {{5, 7}, {16, 16}, {31, 33}, {64, 60}, {181, 183}}

describe("a transform of a batch", function()
    helper.each_device(function(device, it)
        -- On a GPU transforms of real data depend on their batch, and cannot be cut.
        for _, name in ipairs(device == "host" and {"fft", "rfft", "irfft"} or {"fft"}) do
            it(("is what it is alone: rows, %s, on %s"):format(name, device), function()
                for _, n in ipairs(ROWS) do
                    assert.equal(0, different(name, {5, n}, {}, device), "rows of " .. n)
                end
                assert.equal(0, different(name, {40, 1001}, {}, device), "rows for many threads")
            end)

            it(("is what it is alone: planes, %s, on %s"):format(name, device), function()
                for _, shape in ipairs(PLANES) do
                    assert.equal(0, different(name, {3, shape[1], shape[2]}, {}, device),
                        ("planes of %d x %d"):format(shape[1], shape[2]))
                end
                assert.equal(0, different(name, {3, 7, 9, 11}, {}, device), "volumes")
            end)
        end

        local host = device == "host" and it or function() end
        host("is what it is alone in place, on " .. device, function()
            for _, n in ipairs {30, 32, 64, 65, 1024} do
                local pitch = 2 * (n // 2 + 1)
                local rows <close> = mb.random({7, pitch}, {seed = n, device = device})
                local single <close> = rows:view({4, 4}, mb.all):copy()
                for _, array in ipairs {rows, single} do
                    local spectrum <close> = array:reinterpret("c64")
                    mb.rfft(array, {in_place = true, n = n, out = spectrum})
                    mb.irfft(spectrum, {in_place = true, n = n, out = array})
                end
                local fourth <close> = rows:view({4, 4}, mb.all)
                assert.is_true(single:to_string() == fourth:to_string(), "rows of " .. n)
            end
        end)
    end)
end)
