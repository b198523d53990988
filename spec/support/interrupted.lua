-- Runs of a pipeline in processes of their own, which are interrupted and go on.

local assert = require "luassert"
local files = require "spec.support.files"
local mb = require "moonbeam"

local interrupted = {}

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
--- Runs that keep their data in different places.
interrupted.CASES = {
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
    {name = "with an axis behind whole frames", host_budget = 512, recipe =
        [[{"flat_field", "smooth_frames", "minus_log", {"center"}, "fbp"}]]},
}

--- A folder with a scan, and what specs do there: {folder, path (of the result), run, clean,
-- reference, check, killed}.
function interrupted.open()
    local folder = files.folder()
    local path = folder .. "/volume.h5"
    assert(mb.system.mkdir(folder .. "/scratch"))
    local said, made = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 --angles 30 "
        .. "-d host -q"):format(os.getenv "MOONBEAM_BIN" or mb.system.program(), folder))
    assert(made, said)

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

    -- A run that is killed after about that part of its steps.
    local function killed(case, expected, part)
        clean()
        local _, status = run(case, ("mb.debug.fail_step(%d) run()"):format(
            math.max(1, math.floor(part * expected.steps))))
        assert.is_true(status == 137 or status == 9, tostring(status))
    end

    return {folder = folder, path = path, run = run, clean = clean, reference = reference,
        check = check, killed = killed}
end

return interrupted
