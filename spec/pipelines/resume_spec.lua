-- Runs that are interrupted and go on: the volume has the same bits, and nothing else is left.
-- resume_steps_spec.lua kills them at any step.
--
-- MOONBEAM_REPEAT=50 repeats what is left to chance that often.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local interrupted = require "spec.support.interrupted"
local mb = require "moonbeam"

local REPEAT = tonumber(os.getenv "MOONBEAM_REPEAT")
local CASES <const> = interrupted.CASES

describe("an interrupted pipeline", function()
    local own, folder, path, run, clean, reference, check, killed

    setup(function()
        own = interrupted.open()
        folder, path, run, clean = own.folder, own.path, own.run, own.clean
        reference, check, killed = own.reference, own.check, own.killed
    end)
    teardown(function()
        files.remove(folder)
    end)
    before_each(function()
        files.run(("rm -rf '%s'/volume* '%s'/scratch/* '%s'/other*"):format(folder, folder, folder))
    end)

    it("goes on after a kill at any time, and after another one", function()
        local resumed = 0
        for i = 1, REPEAT or 3 do
            local case = CASES[(i - 1) % #CASES + 1]
            local expected = reference(case)
            for kill = 1, 2 do
                run(case, "") -- writes the script
                files.write(folder .. "/script.lua", files.read(folder .. "/script.lua") .. "run()")
                files.run_killed(folder, expected.seconds
                    * (0.6 + (i * 37 + kill * 11) % 40 / 100))
            end
            if core.unfinished.exists(path) or not mb.system.stat(path) then
                assert.equal("", (run(case, "run()")))
            end
            core.target.scavenge(path .. ".unfinished", "")
            resumed = resumed + (check(expected, case.name) or 0)
        end
        assert.is_true(resumed >= 1 or not REPEAT) -- how fast it is is left to chance
    end)

    it("goes on as often as it must", function()
        local case = CASES[4]
        local expected = reference(case)
        killed(case, expected, 0.4)
        for _ = 1, 2 do
            run(case, "mb.debug.fail_step(5) run()")
        end
        assert.equal("", (run(case, "run()")))
        assert.equal(3, check(expected, "killed three times"))
    end)

    -- Files that were not synced are cut off, or have zeros.
    local function cut_power(random, lose_head)
        local list = files.run(("cd '%s' && find volume.h5.unfinished scratch -type f"):format(
            folder))
        local head = false
        for name in list:gmatch "[^\n]+" do
            local bytes = files.read(folder .. "/" .. name)
            local how, from = random(4), random(#bytes)
            if name:find "volume.h5.head$" then
                how = lose_head and 1 or 0
                head = head or how == 1
            elseif name:find "lock$" or mb.system.stat(path) then
                how = 0 -- the end of the journal was synced before the result got its name
            elseif name:find "journal$" then
                from = math.max(from, 2500) -- the first records were synced
            end
            if how == 1 then
                bytes = bytes:sub(1, from)
            elseif how >= 2 then
                local count = math.min(how == 2 and 100 or 20000, #bytes - from)
                bytes = bytes:sub(1, from) .. ("\0"):rep(math.max(0, count))
                    .. bytes:sub(from + count + 1)
            end
            files.write(folder .. "/" .. name, bytes)
        end
        return head
    end

    it("makes again what a power cut has taken", function()
        local seed, told = 7, 0
        local function random(n)
            seed = (seed * 1103515245 + 12345) & 0x7fffffff
            return (seed >> 8) % math.max(1, n)
        end
        for i = 1, REPEAT or 5 do
            local case = CASES[(i - 1) % #CASES + 1]
            local expected = reference(case)
            killed(case, expected, (i % 5 + 4) / 9)
            local unfinished = core.unfinished.exists(path) -- what has its name was synced
            local head = unfinished and cut_power(random, i % 5 == 3)
            local output = unfinished and run(case, "run()") or ""
            if output ~= "" then
                assert(head and output:find("discard = true", 1, true), output)
                told = told + 1
                assert.equal("", (run(case, "run {resume = false, discard = true}")))
            end
            core.target.scavenge(path .. ".unfinished", "")
            check(expected, case.name)
        end
        assert.is_true(told >= 1)
    end)

    it("goes on in other blocks, with other memory", function()
        local case = CASES[1]
        local expected = reference(case)
        killed(case, expected, 0.5)
        assert.equal("", (run(case, "run {block = 3}")))
        check(expected, "blocks of 3")
    end)

    it("is told from another run", function()
        local case = CASES[1]
        local expected = reference(case)
        killed(case, expected, 0.6)
        local function refused(what, text)
            local output = run(case, text)
            assert.matches("what differs: [^\n]*" .. what .. " %(it was .*discard = true", output)
        end
        refused("recipe", [[run {recipe = {"flat_field", "minus_log", {"center"},
            {"fbp", filter = "hann"}}}]])
        refused("rows", "run {rows = {1, 2}}")
        refused("slices_per_file", "run {slices_per_file = 2}")
        refused("moonbeam", "core.version = '77' run()")
        assert.matches("exists: it keeps an interrupted run. Go on with the option resume = true",
            (run(case, "run {resume = false}")))
        os.execute(("touch -d yesterday '%s/scan.h5'"):format(folder))
        refused("scan", "run()")
        assert.equal("", (run(case, "run {resume = false, discard = true}")))
        check(expected, "started anew")
        assert.matches("there is nothing to resume", (run(case,
            "run {resume = true, overwrite = true}")))
    end)

    it("says what it keeps where a disk is full", function()
        local case = CASES[1]
        local expected = reference(case)
        local output, n = "", expected.steps // 3
        while not output:find "keeps" do
            n = n + 1
            assert.is_true(n < expected.steps)
            clean()
            output = run(case, ("mb.debug.fail_step(%d, 28) print(pcall(run, {tell = print}))")
                :format(n))
        end
        assert.matches("keeps %d of %d rows: go on with the option resume = true", output)
        assert.matches("No space left on device", output)
        assert.equal("", (run(case, "run()")))
        check(expected, "after a full disk")
    end)
end)
