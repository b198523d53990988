-- Runs that are killed at any step and go on: the volume has the same bits, and nothing else is
-- left.
--
-- MOONBEAM_REPEAT=1 kills at every step.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local interrupted = require "spec.support.interrupted"
local mb = require "moonbeam"

local REPEAT = tonumber(os.getenv "MOONBEAM_REPEAT")
local CASES <const> = interrupted.CASES

describe("an interrupted pipeline", function()
    local own, folder, path, run, clean, reference, check

    setup(function()
        own = interrupted.open()
        folder, path, run, clean = own.folder, own.path, own.run, own.clean
        reference, check = own.reference, own.check
    end)
    teardown(function()
        files.remove(folder)
    end)
    before_each(function()
        files.run(("rm -rf '%s'/volume* '%s'/scratch/* '%s'/other*"):format(folder, folder, folder))
    end)

    for number, case in ipairs(CASES) do
        it(case.name .. " goes on after a kill at any step", function()
            local expected = reference(case)
            local stride = REPEAT and 1 or math.max(2, expected.steps // 4)
            local resumed = 0
            for n = REPEAT and 1 or number % stride + 1, expected.steps, stride do
                clean()
                local _, status = run(case, ("mb.debug.fail_step(%d) run()"):format(n))
                assert.is_true(status == 137 or status == 9, tostring(status))
                if core.unfinished.exists(path) or not mb.system.stat(path) then
                    assert.equal("", (run(case, "run()")))
                end
                core.target.scavenge(path .. ".unfinished", "")
                resumed = resumed + (check(expected, ("step %d"):format(n)) and 1 or 0)
            end
            assert.is_true(resumed >= 1)
        end)
    end
end)
