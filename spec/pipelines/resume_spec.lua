-- Runs that are interrupted and go on: the volume has the same bits, and nothing else is left.
--
-- MOONBEAM_REPEAT=50 repeats what is left to chance that often, and kills at every step.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"

local REPEAT = tonumber(os.getenv "MOONBEAM_REPEAT")

-- What a script says first: run(options) runs the recipe.
local RUN = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local path = "FOLDER/volume.h5"
local OWN = {{name = "neighbors", summary = "Smooths along rows.",
    takes = {quantity = "any", layout = "frames"}, gives = {quantity = "same", layout = "same"},
    cuts = {"rows"}, needs = function(_, first, last) return first - 2, last + 2 end,
    run = function(block) block:replace(mb.gaussian_filter(block.data, {0, 0.5, 0})) end},
    {name = "smooth_frames", summary = "Smooths each frame.",
    takes = {quantity = "any", layout = "frames"}, gives = {quantity = "same", layout = "same"},
    cuts = {"frames"},
    run = function(block) block:replace(mb.gaussian_filter(block.data, {0, 0.8, 0.8})) end}}
function run(options)
    options = options or {}
    local scan <close> = assert(mb.scan.open(options.scan or "FOLDER/scan.h5"))
    local p = mb.pipeline(scan, options.recipe or RECIPE, {block = options.block or 2, steps = OWN,
        host_budget = HOST_BUDGET, scratch = "FOLDER/scratch", quiet = true, rows = options.rows})
    local resume = options.resume
    if resume == nil then
        resume = core.unfinished.exists(options.output or path)
    end
    local done = p:run {output = options.output or path, resume = resume,
        discard = options.discard, slices_per_file = options.slices_per_file or SLICES,
        overwrite = options.overwrite, tell = options.tell}
    assert(done.complete or done.as_planned)
    return done
end
]]

local FBP = [[{"fbp", center = 11.5, circle = 0}]]
local CASES = {
    {name = "of one section", recipe = [[{"flat_field", "minus_log", {"center"}, {"fbp"}}]]},
    {name = "into several files", recipe = [[{"flat_field", "minus_log", ]] .. FBP .. "}",
        slices = 3},
    {name = "with a store in memory",
        recipe = [[{"flat_field", "smooth_frames", "minus_log", ]] .. FBP .. "}"},
    {name = "with stores in files", host_budget = 512,
        recipe = [[{"neighbors", "flat_field", "smooth_frames", "minus_log", ]] .. FBP .. "}"},
    {name = "with percentiles, from memory", recipe = [[{"flat_field", "minus_log", ]] .. FBP
        .. [[, {"rescale", dtype = "uint8", percentiles = {1, 99}}}]]},
    {name = "with percentiles, from a file", host_budget = 512, recipe =
        [[{"flat_field", "minus_log", ]] .. FBP
        .. [[, {"rescale", dtype = "uint16", percentiles = {1, 99}}}]]},
}

describe("an interrupted pipeline", function()
    local folder, path

    setup(function()
        folder = files.folder()
        path = folder .. "/volume.h5"
        assert(mb.system.mkdir(folder .. "/scratch"))
        local output, ok = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 --angles 30 "
            .. "-d host -q"):format(os.getenv "MOONBEAM_BIN" or mb.system.program(), folder))
        assert(ok, output)
    end)
    teardown(function()
        files.remove(folder)
    end)
    before_each(function()
        files.run(("rm -rf '%s'/volume* '%s'/scratch/* '%s'/other*"):format(folder, folder, folder))
    end)

    local function run(case, text)
        local script = RUN:gsub("FOLDER", folder):gsub("RECIPE", (case.recipe:gsub("%%", "%%%%")))
            :gsub("HOST_BUDGET", tostring(case.host_budget or nil))
            :gsub("SLICES", tostring(case.slices or nil))
        local output, _, status = files.run_script(folder, script .. text)
        return output, status
    end

    -- The bytes of the volume and its tallies.
    local function result()
        local file <close> = assert(mb.h5.open(path))
        local volume <close> = file:read "/entry/data/data"
        local tallies = {}
        for i, name in ipairs {"nonfinite_values", "clamped_pixels", "nonpositive_values",
            "clipped_below", "clipped_above", "not_numbers"} do
            tallies[i] = file:value("/entry/provenance/" .. name)
        end
        local resumed = file:exists "/entry/provenance/resumed"
            and file:value "/entry/provenance/resumed"
        return volume:to_string(), table.concat(tallies, " "), resumed
    end

    local function left()
        return files.run(("cd '%s' && ls -A . scratch | grep -v -e scan.h5 -e script.lua -e '^$' "
            .. "-e scratch -e '^[.]:'"):format(folder)):gsub("%-slices%-%x+", "-slices")
    end

    local function clean()
        files.run(("rm -rf '%s'/volume* '%s'/scratch/*"):format(folder, folder))
    end

    -- The same of a run that is not interrupted, with the steps and seconds it takes.
    local references = {}
    local function reference(case)
        clean()
        if references[case] then
            return references[case]
        end
        local began = mb.system.clock()
        local output = run(case, [[local before = mb.debug.steps() run()
            print(mb.debug.steps() - before)]])
        local steps = assert(tonumber(output:match "(%d+)%s*$"), output)
        local bits, tallies = result()
        references[case] = {bits = bits, tallies = tallies, names = left(), steps = steps,
            seconds = mb.system.clock() - began}
        clean()
        return references[case]
    end

    -- Has the result the bits, and is nothing else left?
    local function check(expected, what)
        local bits, tallies, resumed = result()
        assert(bits == expected.bits, what .. ": other bits")
        assert.equal(expected.tallies, tallies, what)
        assert.equal(expected.names, left(), what)
        return resumed
    end

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

    -- A run that is killed after about that part of its steps.
    local function killed(case, expected, part)
        clean()
        local _, status = run(case, ("mb.debug.fail_step(%d) run()"):format(
            math.max(1, math.floor(part * expected.steps))))
        assert.is_true(status == 137 or status == 9, tostring(status))
    end

    it("goes on after a kill at any time, and after another one", function()
        local resumed = 0
        for i = 1, REPEAT or 3 do
            local case = CASES[(i - 1) % #CASES + 1]
            local expected = reference(case)
            for kill = 1, 2 do
                run(case, "") -- writes the script
                files.write(folder .. "/script.lua", files.read(folder .. "/script.lua") .. "run()")
                os.execute(("timeout -s KILL %.3f '%s' '%s/script.lua' >/dev/null 2>&1"):format(
                    expected.seconds * (0.6 + (i * 37 + kill * 11) % 40 / 100),
                    os.getenv "MOONBEAM_BIN" or mb.system.program(), folder))
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
