-- What scripts/bench.lua says of reconstruction from memory to memory. Times are printed, not
-- judged.

local helper = require "spec.helper"

describe("bench.lua ram", function()
    it("has a row for each method, with its chunks and what binds it", function()
        local output, status =
            helper.run_program("scripts/bench.lua ram -n 48 -a 20 -s 20 --chunk 8 --repeats 1")
        assert.equal(0, status, output)
        assert.matches("of host memory pinned in [%d.]+ s; links: [%d.]+ GB/s up, [%d.]+ down, [%d.]+ and [%d.]+ with both busy", output)
        for _, method in ipairs {"fourier", "fbp"} do
            local floor, factor = output:match((
                "| RAM to RAM, %s %%(3 chunks of 8%%) +| +[%%d.]+ | +([%%d.]+) | +([%%d.]+) |"):format(method))
            assert.is_true(tonumber(floor) > 0, output)
            assert.is_true(tonumber(factor) >= 0.9, output)
        end
    end)

    it("has another row for devices that work together", function()
        local output, status = helper.run_program("scripts/bench.lua ram -n 48 -a 20 -s 20 "
            .. "--chunk 4 --repeats 1 --only fbp --devices host,host:1")
        assert.equal(0, status, output)
        assert.matches("| RAM to RAM, fbp %(5 chunks of 4%)", output)
        assert.matches("| RAM to RAM, fbp on host,host:1 %(5 chunks of 4%)", output)
    end)
end)
