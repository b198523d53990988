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

    local function reference(case)
        local output = run(case, [[local before = mb.debug.steps() run()
            print(mb.debug.steps() - before)]])
        local steps = assert(tonumber(output:match "(%d+)%s*$"), output)
        local bits, tallies = result()
        local names = left()
        clean()
        return {bits = bits, tallies = tallies, names = names, steps = steps}
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
            local stride = REPEAT and 1 or math.max(2, expected.steps // 6)
            local resumed = 0
            for n = REPEAT and 1 or number % stride + 1, expected.steps, stride do
                clean()
                local _, status = run(case, ("mb.debug.fail_step(%d) run()"):format(n))
                assert.is_true(status == 137 or status == 9, tostring(status))
                if core.unfinished.exists(path) or not mb.system.stat(path) then
                    assert.equal("", (run(case, "run()")))
                end
                run(case, "core.target.scavenge(path .. '.unfinished', '')")
                resumed = resumed + (check(expected, ("step %d"):format(n)) and 1 or 0)
            end
            assert.is_true(resumed >= 1)
        end)
    end
end)
