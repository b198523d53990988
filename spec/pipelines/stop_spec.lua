-- Ctrl-C during a pipeline: the blocks in flight are finished and noted, and the run goes on from
-- there, with the same bits. Every run here compares what it takes with a dry run of the blocks that
-- it got (MOONBEAM_STRICT).

local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"

local SCAN <const> = [[
local mb = require "moonbeam"
local raw <close> = mb.random({20, 23, 24}, {dtype = "u16", low = 300, high = 900, seed = 3,
    device = "host"})
local flats <close> = mb.ones({1, 23, 24}, {dtype = "u16", device = "host"}) * 1000
local file <close> = mb.h5.create "FOLDER/scan.h5"
file:write("/exchange/data", raw)
file:write("/exchange/data_white", flats)
file:write("/exchange/data_dark", mb.zeros({1, 23, 24}, {dtype = "u16", device = "host"}))
local theta = {}
for i = 1, 20 do theta[i] = (i - 1) * 9.0 end
file:write("/exchange/theta", theta, {attributes = {units = "deg"}})
file:finish()
]]

-- run(options): rows of the result in blocks of 2. Step `stopper` calls options.at[its block] while
-- it computes.
local RUN <const> = [[
local mb, core = require "moonbeam", require "moonbeam.core"
local count, at, noted = 0, {}, {}
local STEPS = {{name = "stopper", summary = "Stops.", takes = {quantity = "any",
    layout = "CUT"}, gives = {quantity = "same", layout = "same"}, CUTS
    run = function(block)
        if not block.data.device.dry then
            count = count + 1
            if at[count] then at[count]() end
        end
    end}}
function signal(name)
    io.popen(("kill -%s %d"):format(name, mb.system.pid())):close()
end
function run(options)
    at = options.at or {}
    local path = "FOLDER/volume.h5"
    local scan <close> = assert(mb.scan.open "FOLDER/scan.h5")
    local p = mb.pipeline(scan, RECIPE, {block = 2, steps = STEPS, quiet = true, pinned = "1Mi",
        devices = options.devices or "host", schedule = options.schedule, host_budget = BUDGET,
        scratch = "FOLDER", overlap = options.overlap})
    local done = p:run {output = path, tell = print, slices_per_file = options.slices_per_file,
        resume = core.unfinished.exists(path)}
    assert(done.complete or done.as_planned)
end
]]

local ONE <const> = {cut = "slices", cuts = "", recipe =
    [[{"flat_field", "minus_log", {"fbp", center = 11.5}, "stopper"}]]}
local STORED <const> = {cut = "frames", cuts = 'cuts = {"frames"},', budget = 512, recipe =
    [[{"stopper", "flat_field", "minus_log", {"fbp", center = 11.5}}]]}
local MEMORY <const> = {cut = "frames", cuts = 'cuts = {"frames"},', recipe = STORED.recipe}

describe("a pipeline that is stopped", function()
    local folder, path

    setup(function()
        folder = files.folder()
        path = folder .. "/volume.h5"
        local output = files.run_script(folder, (SCAN:gsub("FOLDER", folder)))
        assert.equal("", output)
    end)
    teardown(function()
        files.remove(folder)
    end)
    before_each(function()
        files.run(("rm -rf '%s'/volume*"):format(folder))
    end)

    local function run(case, text)
        local script = RUN:gsub("FOLDER", folder):gsub("RECIPE", case.recipe)
            :gsub("BUDGET", tostring(case.budget or nil)):gsub("CUTS", case.cuts)
            :gsub("CUT", case.cut)
        local output, _, status = files.run_script(folder, script .. text)
        return output, status
    end

    local function volume()
        local file <close> = assert(mb.h5.open(path))
        local data <close> = file:read "/entry/data/data"
        return data:to_string()
    end

    local references = {}
    local function reference(case)
        if not references[case] then
            assert.equal("", (run(case, "run {}")))
            references[case] = volume()
            files.run(("rm -rf '%s'/volume*"):format(folder))
        end
        return references[case]
    end

    -- Goes on, and expects the bits of a run that was not stopped, and no other files.
    local function goes_on(case, rows, options)
        local output, status = run(case, options or "run {}")
        assert.equal(0, status, output)
        assert.matches(("has %d of 23 rows already\n$"):format(rows), output)
        assert.is_true(reference(case) == volume(), "other bits")
        local left = table.concat(files.list(folder), " "):gsub("volume%-slices%-%x+", "slices")
        assert.equal("scan.h5 script.lua " .. (left:find "slices" and "slices " or "")
            .. "volume.h5", left)
    end

    local function check(case, text, status, rows, message)
        local output, got = run(case, text)
        assert.equal(status, got, output)
        assert.matches("ends when the blocks in flight are finished; once more", output)
        assert.matches((": %s\n"):format(message or "interrupted by Ctrl%-C"), output)
        assert.matches(("volume.h5.unfinished' keeps %d of 23 rows: go on with the option resume = "
            .. "true"):format(rows), output)
    end

    it("finishes what is in flight, on one device", function()
        reference(ONE)
        -- While block 4 is computed block 5 is being read.
        check(ONE, "run {at = {[4] = function() signal 'INT' end}}", 130, 10)
        goes_on(ONE, 10)
    end)

    it("finishes what is in flight without overlap, into several files", function()
        local expected = reference(ONE)
        check(ONE, "run {overlap = false, slices_per_file = 3, at = {[4] = function() "
            .. "signal 'TERM' end}}", 143, 8, "interrupted by SIGTERM")
        goes_on(ONE, 8, "run {slices_per_file = 3}")
        assert.is_true(expected == volume())
    end)

    it("finishes what is in flight on each of several devices", function()
        reference(ONE)
        for _, way in ipairs {"fixed", "free"} do
            -- While block 3 is computed, two other blocks are being read.
            check(ONE, ("run {devices = {'host', 'host:1'}, schedule = '%s', at = {[3] = function() "
                .. "signal 'INT' end}}"):format(way), 130, 10)
            goes_on(ONE, 10, "run {devices = {'host', 'host:1'}}")
            files.run(("rm -rf '%s'/volume*"):format(folder))
        end
    end)

    it("takes what its blocks take, which is less than the whole plan", function()
        reference(ONE)
        check(ONE, "run {devices = {'host', 'host:1'}, at = {function() signal 'INT' end}}", 130, 6)
        goes_on(ONE, 6)
    end)

    it("goes on as often as it is stopped, and at its end", function()
        reference(ONE)
        for rows = 4, 23, 4 do
            check(ONE, "run {at = {function() signal 'INT' end}}", 130, rows)
        end
        check(ONE, "run {at = {[2] = function() signal 'HUP' end}}", 129, 23,
            "interrupted by SIGHUP")
        goes_on(ONE, 23)
    end)

    it("keeps a store in a file", function()
        reference(STORED)
        local output, status = run(STORED, "run {at = {[3] = function() signal 'INT' end}}")
        assert.equal(130, status, output)
        assert.matches("go on with the option resume = true", output)
        local frames = 0
        for first, last in files.read(path
            .. ".unfinished/journal"):gmatch "rows\"? 1 (%d+) (%d+)" do
            frames = frames + last - first + 1
        end
        assert.equal(8, frames)
        goes_on(STORED, 0, "run {at = {[7] = function() error 'once too often' end}}")
    end)

    it("ends at once where its blocks are not kept", function()
        local output, status = run(MEMORY, "run {at = {[3] = function() signal 'INT' end, "
            .. "[4] = function() print 'went on' end}}")
        assert.equal(130, status, output)
        assert.not_matches("in flight", output)
        assert.not_matches("went on", output)
    end)

    it("ends at the second signal", function()
        reference(ONE)
        local output, status = run(ONE, [[
            run {at = {[4] = function()
                signal "INT"
                signal "INT"
                for _ = 1, 1000 do end
                print "went on"
            end}}]])
        assert.equal(130, status, output)
        assert.not_matches("went on", output)
        local rows = tonumber(output:match "keeps (%d+) of 23 rows")
        assert.is_true(rows >= 2 and rows <= 6, output)
        goes_on(ONE, rows)
    end)

    it("is killed by the third signal", function()
        reference(ONE)
        local _, status = run(ONE, [[
            run {at = {[4] = function()
                pcall(function() signal "INT" signal "INT" while true do end end)
                signal "INT"
                while true do end
            end}}]])
        assert.is_true(status == 130 or status == 2, tostring(status))
        assert.equal("", (run(ONE, "core.unfinished.resume('" .. path .. "'):close()")))
        local output = run(ONE, "run {}")
        assert.matches("has %d of 23 rows already", output)
        assert.is_true(reference(ONE) == volume())
    end)

    it("says that a device was lost meanwhile", function()
        reference(ONE)
        local output, status = run(ONE, [[
            run {devices = {"host", "host:1"}, at = {[3] = function()
                mb.debug.lose_device("host:1", 1)
                core.system.cancel()
            end}}]])
        assert.equal(128, status, output) -- there was no signal
        assert.matches("interrupted\n", output)
        local rows = tonumber(output:match "keeps (%d+) of 23 rows")
        assert.is_true(rows >= 2 and rows < 10, output)
        goes_on(ONE, rows)
    end)

    it("does not hold other stops back", function()
        assert.is_false(core.system.stop_waits())
        core.system.hold_stop(true)
        core.system.cancel()
        assert.is_true(core.system.stop_waits())
        local ok, err = pcall(core.system.hold_stop, false)
        core.system.cancel(false)
        assert.is_false(ok)
        assert.equal("cancelled", err.code)
        core.system.hold_stop(false)
    end)
end)
