-- Interrupted runs on several devices that go on with other ones: killed at a step, with the devices
-- that they had, with fewer, with more. The volume has the same bits, and every process takes of
-- each pool what its blocks take in a dry run (MOONBEAM_STRICT).
--
-- MOONBEAM_REPEAT=1 kills at every third step.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"

local REPEAT <const> = os.getenv "MOONBEAM_REPEAT"

local SCAN <const> = [[
local mb = require "moonbeam"
local file <close> = mb.h5.create "FOLDER/scan.h5"
for name, spec in pairs {data = {12, 300, 900}, data_white = {2, 980, 1020}, data_dark = {1, 3, 9}} do
    local frames <close> = mb.random({spec[1], 11, 16}, {dtype = "u16", low = spec[2],
        high = spec[3], seed = spec[1], device = "host"})
    file:write("/exchange/" .. name, frames)
end
local theta = {}
for i = 1, 12 do theta[i] = (i - 1) * 15.0 end
file:write("/exchange/theta", theta, {attributes = {units = "deg"}})
file:finish()
]]

local RUN <const> = [[
local mb, core = require "moonbeam", require "moonbeam.core"
local OWN = {name = "smooth_frames", summary = "Smooths each frame.", takes = {quantity = "any",
    layout = "frames"}, gives = {quantity = "same", layout = "same"}, cuts = {"frames"},
    run = function(block) block:replace(mb.gaussian_filter(block.data, {0, 0.8, 0.8})) end}
function run(devices, schedule)
    local path = "FOLDER/volume.h5"
    local scan <close> = assert(mb.scan.open "FOLDER/scan.h5")
    local p = mb.pipeline(scan, RECIPE, {block = 2, steps = {OWN}, quiet = true, pinned = "1Mi",
        devices = devices, schedule = schedule, host_budget = 512, scratch = "FOLDER"})
    local done = p:run {output = path, resume = core.unfinished.exists(path),
        slices_per_file = PARTS}
    assert(done.complete or done.as_planned)
    for i, section in ipairs(done.sections or {}) do
        if not section.skipped then -- to the byte, on each device
            assert(#section.times.lanes == #devices)
            for _, id in ipairs(schedule == "fixed" and devices or {}) do
                assert(section.peaks[id] == done.plan.sections[i].peaks[id], id)
            end
        end
    end
end
]]

local CASES <const> = {
    {name = "of one section", recipe = [[{"flat_field", "minus_log", {"fbp", center = 7.5}}]]},
    {name = "with a store in a file, into several files", parts = 3,
        recipe = [[{"flat_field", "smooth_frames", "minus_log", {"fbp", center = 7.5}}]]},
}

-- The devices of the run that is killed, and of the one that goes on.
local CHANGES <const> = {
    {"{'host', 'host:1'}", "{'host', 'host:1'}"}, {"{'host'}", "{'host:1', 'host'}"},
    {"{'host', 'host:1'}", "{'host:2'}"}, {"{'host:1', 'host:2'}", "{'host', 'host:1', 'host:2'}"},
}

describe("an interrupted pipeline on several devices", function()
    local folder, path

    setup(function()
        folder = files.folder()
        path = folder .. "/volume.h5"
        assert.equal("", (files.run_script(folder, (SCAN:gsub("FOLDER", folder)))))
    end)
    teardown(function()
        files.remove(folder)
    end)

    local function clean()
        files.run(("rm -rf '%s'/volume*"):format(folder))
    end

    local function run(case, text)
        local output, _, status = files.run_script(folder, RUN:gsub("FOLDER", folder)
            :gsub("RECIPE", case.recipe):gsub("PARTS", tostring(case.parts or nil)) .. text)
        return output, status
    end

    local function volume()
        local file <close> = assert(mb.h5.open(path))
        local data <close> = file:read "/entry/data/data"
        return data:to_string(), file:exists "/entry/provenance/resumed"
    end

    for number, case in ipairs(CASES) do
        it(case.name .. " goes on with other devices", function()
            clean()
            local output = run(case, "local n = mb.debug.steps() run {'host'} "
                .. "print(mb.debug.steps() - n)")
            local steps = assert(tonumber(output), output)
            local expected, resumed = volume(), 0
            local kills = {}
            for i = 1, REPEAT and steps // 3 or #CHANGES do
                kills[i] = REPEAT and 3 * i or steps * (2 * i + number) // (2 * #CHANGES + 4)
            end
            for i, kill in ipairs(kills) do
                clean()
                local change = CHANGES[(i + number) % #CHANGES + 1]
                local way = i % 2 == 0 and "free" or "fixed"
                local _, status = run(case, ("mb.debug.fail_step(%d) run(%s, '%s')"):format(kill,
                    change[1], way))
                assert.is_true(status == 137 or status == 9, ("step %d: %s"):format(kill, status))
                if core.unfinished.exists(path) or not mb.system.stat(path) then
                    assert.equal("", (run(case, ("run(%s, '%s')"):format(change[2], way))))
                end
                local bits, again = volume()
                assert.is_true(bits == expected, ("other bits after step %d"):format(kill))
                resumed = resumed + (again and 1 or 0)
                assert.is_false(core.unfinished.exists(path))
                assert.equal("", (files.run(("ls -A '%s' | grep moonbeam-store"):format(folder))))
            end
            assert.is_true(resumed >= 2, resumed)
        end)
    end
end)
