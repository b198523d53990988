-- `moonbeam reconstruct` by the fixed chain loses a device at any call: while it looks at the
-- values, plans, searches for the axis, and runs. Where there are others, the volume has the same
-- bits; where there is none, it ends with one line, and what is finished is kept.
--
-- MOONBEAM_REPEAT=1 loses them at every call, otherwise at the first ones and at some later ones.

local helper = require "spec.helper"

local REPEAT <const> = os.getenv "MOONBEAM_REPEAT"
local AT_ONCE <const> = 7 -- devices that a process can lose
-- A sanitized program is slow; one list of devices goes through as much of its code.
local SANITIZED <const> = helper.program:match "/sanitize/" ~= nil

-- What a program of losses prints, lines by their text.
local function lose(first, step, words)
    local output, status = helper.run_program(("spec/fixtures/lose_chain.lua %d %d %s"):format(
        first, step, words))
    assert.equal(0, status, output)
    local counts = {before = 0, lost = 0, done = 0, kept = 0, nothing = 0}
    for line in output:gmatch "[^\n]+" do
        assert(counts[line], output)
        counts[line] = counts[line] + 1
    end
    return counts
end

-- The same for all calls, and how many calls there are, about.
local function lose_all(words, stride)
    local n, step, sums = 1, 1, {before = 0, lost = 0, done = 0, kept = 0, nothing = 0}
    repeat
        local counts = lose(n, step, words)
        for name, count in pairs(counts) do
            sums[name] = sums[name] + count
        end
        n = n + AT_ONCE * step
        step = REPEAT and 1 or stride
    until counts.done > 0
    return sums, n
end

describe("the fixed chain", function()
    for i, case in ipairs {
        {words = "x,host", stride = 23, before = 10},
        {words = "host,x", stride = 7, before = 3},
        {words = "x,host --output-dtype uint16", stride = 29, before = 10},
    } do
        it("goes on with the other device, whatever the call: " .. case.words, function()
            if SANITIZED and i > 1 then
                helper.skip "a sanitized program is slow"
            end
            local sums, calls = lose_all(case.words, case.stride)
            assert.is_true(sums.before >= case.before and sums.lost > 0, sums.before)
            assert.is_true(calls > 100, calls)
        end)
    end

    it("ends with one line where there is no other device, and keeps what is finished", function()
        local sums = lose_all("x", 5)
        assert.is_true(sums.nothing > 7 and sums.kept > 0, sums.kept)
        assert.equal(0, sums.before + sums.lost)
    end)
end)
