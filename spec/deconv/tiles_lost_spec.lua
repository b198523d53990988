-- A deconvolution by tiles on several devices loses one at any call: while it plans, in a sweep,
-- between sweeps, at the end. The others do its tiles, with the same bits and numbers, within the
-- plan, and take what a dry run of their tiles takes.
--
-- MOONBEAM_REPEAT=1 loses them at every call, otherwise at the first ones and at some later ones.

local helper = require "spec.helper"

local REPEAT <const> = os.getenv "MOONBEAM_REPEAT"
-- A sanitized program is slow; one kind of run goes through as much of its code.
local SANITIZED <const> = helper.program:match "/sanitize/" ~= nil
local AT_ONCE <const> = 6 -- devices that a program of losses loses

describe("a deconvolution by tiles", function()
    for i, case in ipairs {
        {"exact free none metrics", stride = 193},
        {"exact fixed heavy_ball", stride = 199},
        {"file free heavy_ball metrics", stride = 211},
        {"file fixed none", stride = 173},
        {"blended fixed none", stride = 31},
        {"exact free biggs_andrews,reflect,0.01 metrics", stride = 557},
    } do
        it("goes on with the other devices, whatever the call: " .. case[1], function()
            if SANITIZED and i > 1 then
                helper.skip "a sanitized program is slow"
            end
            local n, step, sums = 1, 1, {lost = 0, between = 0, done = 0}
            repeat
                local output, status = helper.run_program(
                    ("--leaks spec/fixtures/lose_tiles.lua %d %d %s"):format(n, step, case[1]))
                assert.equal(0, status, output)
                local done = 0
                for line in output:gmatch "[^\n]+" do
                    assert(sums[line], output)
                    sums[line] = sums[line] + 1
                    done = done + (line == "done" and 1 or 0)
                end
                n, step = n + AT_ONCE * step, REPEAT and 1 or case.stride
            until done == AT_ONCE
            assert.is_true(sums.lost >= 2 and sums.between >= 2, sums.lost .. " " .. sums.between)
        end)
    end

    it("takes what is promised, whichever device gets which tile", function()
        for _, seed in ipairs {40} do
            local output, status = helper.run_program(("--leaks spec/fixtures/lose_tiles.lua "
                .. "900 1000 file free heavy_ball metrics %d"):format(seed))
            assert.equal(0, status, output)
            local words, count = {lost = true, between = true, done = true}, 0
            for line in output:gmatch "[^\n]+" do
                assert(words[line], output)
                count = count + 1
            end
            assert.equal(AT_ONCE, count)
        end
    end)
end)
