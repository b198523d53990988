-- A pipeline on several devices of which one is lost at a random call while it runs, or all.
-- lost_spec.lua loses them at any call, the planning included.

local helper = require "spec.helper"

local REPEAT <const> = tonumber(os.getenv "MOONBEAM_REPEAT") or 1

describe("a pipeline on several devices", function()
    it("gives the same bits if a device is lost at a random call: 50 times", function()
        local sums = {0, 0, 0, 0, 0}
        for first = 1, 55 * REPEAT, 7 do
            local output, status = helper.run_program(("spec/fixtures/lose_lanes.lua %d %d"):format(
                first, first + 6))
            assert.equal(0, status, output)
            local counts = {output:match "^lost (%d+), inside (%d+), store (%d+), reduction (%d+), file (%d+)\n$"}
            assert.equal(5, #counts, output)
            for i, count in ipairs(counts) do
                sums[i] = sums[i] + tonumber(count)
            end
        end
        assert.is_true(sums[1] >= 45 * REPEAT and sums[2] >= 15 * REPEAT, table.concat(sums, " "))
        assert.is_true(sums[3] > 5 and sums[4] > 15 and sums[5] > 15, table.concat(sums, " "))
    end)

    it("says that all devices are lost, and how much is finished", function()
        local output = helper.run_program "spec/fixtures/lose_lanes.lua all"
        assert.matches("^false\tdevice\t.*host:1, host:2, host:3 are all lost %(injected for a test%); "
            .. "%d+ of %d+ blocks are finished\n$", output)
    end)
end)
