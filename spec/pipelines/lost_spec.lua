-- Devices that are lost at any call of a pipeline: while it is planned, while it looks at the scan
-- and searches for the axis, in a section, between sections, and at the end. Where there are others,
-- the result has the same bits, and the report says what was lost.
--
-- MOONBEAM_REPEAT=1 loses them at every call, otherwise at the first ones and at some later ones.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local REPEAT <const> = os.getenv "MOONBEAM_REPEAT"
local AT_ONCE <const> = 7 -- devices that a process can lose

-- What a program of losses prints, lines by their text.
local function lose(case, first, step)
    local output, status = helper.run_program(("spec/fixtures/lose_calls.lua %s %d %d %d %s")
        :format(case.schedule, first, step, case.parts or 0, case.devices))
    assert.equal(0, status, output)
    local counts = {before = 0, lost = 0, done = 0}
    for line in output:gmatch "[^\n]+" do
        assert(counts[line], line)
        counts[line] = counts[line] + 1
    end
    return counts
end

describe("a pipeline that loses a device", function()
    for _, case in ipairs {
        {schedule = "free", devices = "x host", before = 17, stride = 19},
        {schedule = "free", devices = "host x", parts = 3, stride = 17},
        {schedule = "fixed", devices = "host x", stride = 19},
        {schedule = "fixed", devices = "x host", parts = 3, stride = 43},
    } do
        it(("goes on, whatever the call: %s, %s"):format(case.schedule, case.devices), function()
            local n, step, sums = 1, REPEAT and 1 or case.stride, {before = 0, lost = 0, done = 0}
            if case.before and not REPEAT then -- each call before the first section
                for first = 1, case.before, AT_ONCE do
                    sums.before = sums.before + lose(case, first, 1).before
                end
                assert.is_true(sums.before >= case.before, sums.before)
                n = AT_ONCE
            end
            repeat
                local counts = lose(case, n, step)
                for name, count in pairs(counts) do
                    sums[name] = sums[name] + count
                end
                n = n + AT_ONCE * step
            until counts.done > 0
            assert.is_true(sums.lost * step > 60, sums.lost)
        end)
    end

    it("says what was lost where there is no other", function()
        for _, first in ipairs {1, 60} do
            local output, status = helper.run_program(("spec/fixtures/lose_calls.lua free %d 8 0 x")
                :format(first))
            assert.equal(0, status, output)
            local count = 0
            for line in output:gmatch "[^\n]+" do
                count = count + 1
                assert.matches(("^call %%d+: device: .*host:%d is lost: injected for a test. "
                    .. "Release its arrays and go on with other devices"):format(count), line)
            end
            assert.equal(AT_ONCE, count)
        end
    end)

    it("keeps what is finished, for another process", function()
        local folder = files.folder()
        local path = folder .. "/volume.h5"
        local script = ([[
            local mb, core = require "moonbeam", require "moonbeam.core"
            local frames <close> = mb.random({12, 9, 16}, {dtype = "u16", low = 300, high = 900,
                seed = 3, device = "host"})
            local theta = {}
            for i = 1, 12 do theta[i] = (i - 1) * 15.0 end
            if not mb.system.stat "SCAN" then
                local file <close> = mb.h5.create "SCAN"
                file:write("/exchange/data", frames)
                file:write("/exchange/theta", theta, {attributes = {units = "deg"}})
                file:finish()
            end
            local scan <close> = assert(mb.scan.open "SCAN")
            local blocks = 0
            local STEP = {name = "loser", summary = "Loses the device.", takes = {quantity = "any",
                layout = "slices"}, gives = {quantity = "same", layout = "same"},
                run = function(block)
                    blocks = blocks + (block.data.device.dry and 0 or 1)
                    if blocks == LOSE then mb.debug.lose_device("host:1", 1) blocks = 99 end
                end}
            mb.pipeline(scan, {{"fbp", center = 7.5}, "loser"}, {devices = "host:1", block = 2,
                steps = {STEP}, quiet = true, pinned = "1Mi", input = "line integrals"})
                :run {output = "PATH", tell = print, resume = core.unfinished.exists "PATH"}
        ]]):gsub("SCAN", folder .. "/scan.h5"):gsub("PATH", path)
        local output, _, status = files.run_script(folder, (script:gsub("LOSE", "4")))
        assert.equal(1, status, output)
        assert.matches("host:1 is lost: injected", output)
        local rows = tonumber(output:match "keeps (%d) of 9 rows: go on with the option resume")
        assert.is_true(rows and rows >= 2 and rows <= 6, output)
        output = files.run_script(folder, (script:gsub("LOSE", "-1")))
        assert.matches(("has %d of 9 rows already"):format(rows), output)
        local function volume()
            local file <close> = assert(mb.h5.open(path))
            local data <close> = file:read "/entry/data/data"
            return data:to_string()
        end
        local resumed = volume()
        os.remove(path)
        assert.equal("", (files.run_script(folder, (script:gsub("LOSE", "-1")))))
        assert.is_true(resumed == volume())
        assert.is_false(core.unfinished.exists(path))
        files.remove(folder)
    end)
end)
