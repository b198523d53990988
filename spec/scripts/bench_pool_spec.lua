-- What scripts/bench.lua says of the pool. Times are printed, not judged; sizes do not depend on
-- the machine.

local helper = require "spec.helper"

describe("bench.lua pool", function()
    it("has its rows, and no trace needs much more memory than is live", function()
        local output, status = helper.run_program("scripts/bench.lua pool --no-peers --repeats 1")
        assert.equal(0, status, output)
        for _, from in ipairs {"C", "Lua"} do
            for _, live in ipairs {"1000", "100000"} do
                assert.matches(("allocate %%+ release from %s, %s live blocks +| +%%d+ |"):format(
                    from, live), output)
            end
        end
        assert.matches("dry run of a script of 300 operators +| +[%d.]+ |", output)
        local traces = 0
        for name, memory, range in output:gmatch(
            "\n| ([^|]+) | +%d+ | +%d+ | +([%d.]+) | +([%d.]+) |") do
            traces = traces + 1
            assert.is_true(tonumber(memory) >= 1 and tonumber(memory) <= 1.08, name .. memory)
            assert.is_true(tonumber(range) >= 1, name .. range)
        end
        assert.equal(3, traces, output)
    end)
end)
