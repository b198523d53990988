-- Deconvolutions by tiles that are interrupted and go on: the result has the same bits, and nothing
-- else is left.
--
-- MOONBEAM_REPEAT=50 repeats what is left to chance that often, and kills at every step.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"

local REPEAT = tonumber(os.getenv "MOONBEAM_REPEAT")

-- What a script says first: run(changes) deconvolves.
local RUN = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
require "moonbeam.tiled_deconv.tile_journal".SECONDS = 0
local path = "FOLDER/result.npy"
function run(changes)
    changes = changes or {}
    local resume = changes.resume
    if resume == nil then
        resume = core.unfinished.exists(path)
    end
    local source <close> = mb.images.open(changes.image or "FOLDER/image.npy")
    local psf <close> = mb.images.read(changes.psf or "FOLDER/psf.npy", "host")
    local options = {OPTIONS}
    for name, value in pairs(changes.options or {}) do
        options[name] = value
    end
    options.journal = mb.tiled_deconv.journal(path, {inputs = {"FOLDER/image.npy"},
        resume = resume, discard = changes.discard, overwrite = changes.overwrite,
        also = changes.also, tell = changes.tell})
    local journal <close> = options.journal
    local out <close> = mb.images.create(path, {shape = source.shape, dtype = "f32", channels = 1,
        frames = 1, overwrite = journal:may_replace()})
    local report = mb.tiled_deconv.richardson_lucy_volume(source, psf, out:volume(), options)
    assert(report.as_planned)
    journal:finishing()
    out:finish()
    journal:finish()
    return report
end
]]

local TILE <const> = 'tile = {6, 14, 16}, pinned = "2Mi", '
local CASES = {
    {name = "with exact tiles in files, and a background", options = TILE
        .. 'iterations = 3, place = "file", background = 3'},
    {name = "with momentum and metrics, on two devices", options = TILE .. 'iterations = 3, '
        .. 'place = "file", acceleration = "heavy_ball", metrics = true, devices = "host,host:1"'},
    {name = "with exact tiles in memory", options = TILE .. 'iterations = 4, place = "device", '
        .. 'metrics = true, acceleration = "heavy_ball"'},
    {name = "with blended tiles", options = TILE .. 'iterations = 3, mode = "blended"'},
    {name = "with Biggs and Andrews, total variation and reflections in files", options = TILE
        .. 'iterations = 4, place = "file", acceleration = "biggs_andrews", boundary = "reflect", '
        .. 'total_variation = 0.01, background = 3'},
    {name = "with Biggs and Andrews around the edges in memory", options = TILE
        .. 'iterations = 4, place = "device", acceleration = "biggs_andrews", '
        .. 'boundary = "circular"'},
}

describe("an interrupted deconvolution", function()
    local folder, path

    setup(function()
        folder = files.folder()
        path = folder .. "/result.npy"
        local image <close> = mb.random({11, 26, 31}, {seed = 3, low = 1, high = 50})
        local psf <close> = mb.psf_gaussian({3, 4, 5}, 1.2)
        local other <close> = mb.psf_gaussian({3, 4, 5}, 1.3)
        mb.npy.write(folder .. "/image.npy", image)
        mb.npy.write(folder .. "/psf.npy", psf)
        mb.npy.write(folder .. "/other.npy", other)
    end)
    teardown(function()
        files.remove(folder)
    end)

    local function run(case, text)
        local script = RUN:gsub("FOLDER", folder):gsub("OPTIONS", case.options)
        local output, _, status = files.run_script(folder, script .. text)
        return output, status
    end

    local function clean()
        files.run(("rm -rf '%s'/result*"):format(folder))
    end

    -- The same of a run that is not interrupted, and the steps and seconds it takes.
    local references = {}
    local function reference(case)
        clean()
        if not references[case] then
            local began = mb.system.clock()
            local output = run(case, [[local before = mb.debug.steps() run()
                print(mb.debug.steps() - before)]])
            references[case] = {steps = assert(tonumber(output:match "(%d+)%s*$"), output),
                bits = files.read(path), seconds = mb.system.clock() - began}
            clean()
        end
        return references[case]
    end

    -- Goes on where that is necessary. Has the result the bits, and is nothing else left?
    local function check(case, expected, what, text)
        if core.unfinished.exists(path) or not mb.system.stat(path) then
            assert.equal("", (run(case, text or "run()")))
        end
        core.target.scavenge(path .. ".unfinished", "")
        core.target.scavenge(path, "")
        assert(files.read(path) == expected.bits, what .. ": other bits")
        assert.same({"image.npy", "other.npy", "psf.npy", "result.npy", "script.lua"},
            files.list(folder), what)
    end

    local function killed(case, expected, part)
        clean()
        local _, status = run(case, ("mb.debug.fail_step(%d) run()"):format(
            math.max(1, math.floor(part * expected.steps))))
        assert.is_true(status == 137 or status == 9, tostring(status))
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
                resumed = resumed + (core.unfinished.exists(path) and 1 or 0)
                check(case, expected, ("step %d"):format(n))
            end
            assert.is_true(resumed >= 2)
        end)
    end

    it("goes on after a kill while the result gets its name", function()
        local case = CASES[4]
        local expected, there = reference(case), 0
        for n = expected.steps - 5, expected.steps do
            clean()
            run(case, ("mb.debug.fail_step(%d) run()"):format(n))
            there = there + (mb.system.stat(path) and core.unfinished.exists(path) and 1 or 0)
            check(case, expected, ("step %d"):format(n))
        end
        assert.is_true(there >= 1) -- it had its name, and the folder was there
    end)

    it("goes on after kills at any time", function()
        for i = 1, REPEAT or 4 do
            local case = CASES[(i - 1) % #CASES + 1]
            local expected = reference(case)
            for kill = 1, 2 do
                run(case, "") -- writes the script
                files.write(folder .. "/script.lua", files.read(folder .. "/script.lua") .. "run()")
                files.run_killed(folder, expected.seconds
                    * (0.4 + (i * 37 + kill * 11) % 60 / 100))
            end
            check(case, expected, case.name)
        end
    end)

    it("does only what is left", function()
        for i, case in ipairs {CASES[1], CASES[4]} do
            local expected = reference(case)
            killed(case, expected, i == 1 and 0.7 or 0.78)
            local output = run(case, [[local tiles = 0
                run {options = {on_tile = function() tiles = tiles + 1 end},
                    tell = function(text) print(text) end} print(tiles)]])
            local all = i == 1 and 3 * 2 * 27 or 8
            assert.is_true(tonumber(output:match "(%d+)%s*$") <= 0.5 * all, output)
            assert.matches(i == 1 and "has %d of 3 iterations already" or
                "has [1-7] of 8 tiles already", output)
            check(case, expected, case.name)
        end
    end)

    -- Files that were not synced are cut off, or have zeros.
    local function cut_power(random)
        local list = files.run(("find '%s.unfinished' -type f"):format(path))
        for name in list:gmatch "[^\n]+" do
            local bytes = files.read(name)
            local how, from = random(4), random(#bytes)
            if name:find "lock$" then
                how = 0
            elseif name:find "journal$" then
                from = math.max(from, 1500) -- the first records were synced
            end
            if how == 1 then
                bytes = bytes:sub(1, from)
            elseif how >= 2 then
                local count = math.min(how == 2 and 100 or 20000, #bytes - from)
                bytes = bytes:sub(1, from) .. ("\0"):rep(math.max(0, count))
                    .. bytes:sub(from + count + 1)
            end
            files.write(name, bytes)
        end
    end

    it("makes again what a power cut has taken", function()
        local seed = 7
        local function random(n)
            seed = (seed * 1103515245 + 12345) & 0x7fffffff
            return (seed >> 8) % math.max(1, n)
        end
        for i = 1, REPEAT or 6 do
            local case = CASES[(i - 1) % #CASES + 1]
            local expected = reference(case)
            killed(case, expected, (i % 5 + 4) / 9)
            if core.unfinished.exists(path) then
                cut_power(random)
            end
            check(case, expected, case.name)
        end
    end)

    it("goes on with other memory, places and devices, in the same tiles", function()
        local case = CASES[1]
        for i, changes in ipairs {'{place = "device"}', '{devices = "host:1,host,host:2"}',
            '{overlap = false, budget = "4Mi", pinned = "1Mi"}', '{schedule = "fixed", '
                .. 'devices = "host,host:1"}'} do
            local expected = reference(case)
            killed(case, expected, 0.3 + 0.1 * i)
            check(case, expected, changes, ("run {options = %s}"):format(changes))
        end
        -- from memory to files
        local expected = reference(CASES[3])
        killed(CASES[3], expected, 0.5)
        check(CASES[3], expected, "to files", 'run {options = {place = "file"}}')
    end)

    it("takes the tiles of its first process, whatever the budget chooses now", function()
        local large = {options = 'iterations = 3, place = "file", pinned = "2Mi"'}
        local small = {options = large.options .. ", budget = 160 << 10"}
        local expected, other = reference(small), reference(large)
        assert.is_true(expected.bits ~= other.bits) -- other tiles
        killed(small, expected, 0.85)
        check(large, expected, "a larger budget")
        killed(large, other, 0.85)
        assert.matches("the smallest tiles %(.*%) take .* are available", (run(small, "run()")))
        check(large, other, "the budget it had")
    end)

    it("goes on without a device that was lost", function()
        for i, case in ipairs {CASES[4], CASES[1], CASES[2], CASES[3]} do
            local expected = reference(case)
            clean()
            local output = run(case, ("local call = " .. ({70, 900, 1500, 900})[i] .. [[

                mb.debug.lose_device(mb.device "host:1", call)
                run {tell = print, options = {devices = "host:1",
                    place = MEMORY and "host" or nil}}]]):gsub("MEMORY", tostring(i == 4)))
            assert.matches("host:1 is lost", output)
            check(case, expected, case.name, "run {options = {devices = 'host'}}")
        end
    end)

    it("is told from another run", function()
        local case = CASES[1]
        local expected = reference(case)
        killed(case, expected, 0.6)
        local function refused(what, text)
            assert.matches("what differs: [^\n]*" .. what .. " %(it was .*discard = true",
                (run(case, text)))
        end
        refused("iterations", "run {options = {iterations = 4}}")
        refused("psf", ("run {psf = '%s/other.npy'}"):format(folder))
        refused("%-%-gain", "run {also = {{'--gain', '2'}}}")
        refused("moonbeam", "core.version = '77' run()")
        assert.matches("exists: it keeps an interrupted run. Go on with the option resume = true",
            (run(case, "run {resume = false}")))
        do
            local held <close> = core.unfinished.resume(path)
            assert.matches("is at work on", (run(case, "run {resume = true}")))
            assert.is_string(held:folder())
        end
        os.execute(("touch -d yesterday '%s/image.npy'"):format(folder))
        refused("input 1", "run()")
        assert.equal("", (run(case, "run {resume = false, discard = true}")))
        check(case, expected, "started anew")
        assert.matches("there is nothing to resume", (run(case,
            "run {resume = true, overwrite = true}")))
        assert.matches("give one of them", (run(case, "run {resume = true, discard = true}")))
    end)

    it("does not replace what it was not told to", function()
        local case = CASES[1]
        local expected = reference(case)
        killed(case, expected, 0.6)
        files.write(path, "something else")
        assert.matches("exists", (run(case, "run()")))
        assert.equal("something else", files.read(path))
        check(case, expected, "told to", "run {overwrite = true}")
    end)

    -- Sends itself a signal after that many tiles; a second one if `twice`.
    local function signal(count, twice)
        return ([[local count = 0
            local function kill() io.popen(("kill -INT %%d"):format(mb.system.pid())):close() end
            run {tell = print, options = {on_tile = function()
                count = count + 1
                if count == %d then
                    kill()
                    if %s then kill() for _ = 1, 1000 do end print "went on" end
                end
            end}}]]):format(count, tostring(twice or false))
    end

    it("finishes the tiles in flight when it is stopped, and notes them", function()
        for i, stop in ipairs {
            -- while tile 40 is written, 41 has been read
            {CASES[1], 40, "keeps 0 of 3 iterations, and 41 of 54 tiles of the next one"},
            {CASES[2], 70, "keeps 1 of 3 iterations, and %d+ of 54 tiles of the next one"},
            {CASES[3], 54 + 10, "keeps 1 of 4 iterations"}, -- the estimate was whole
            {CASES[3], 54 + 40, "keeps 2 of 4 iterations"}, -- it was not
            {CASES[4], 3, "keeps 4 of 8 tiles"},
        } do
            local case, count, text = table.unpack(stop)
            local expected = reference(case)
            local output, status = run(case, signal(count))
            assert.equal(130, status, output)
            assert.matches("interrupted by Ctrl%-C", output)
            assert.matches(text .. ": go on with the option resume = true", output)
            check(case, expected, "stop " .. i)
        end
    end)

    it("ends at the second signal", function()
        for _, case in ipairs {CASES[1], CASES[4]} do
            local expected = reference(case)
            local output, status = run(case, signal(4, true))
            assert.equal(130, status, output)
            assert.not_matches("went on", output)
            check(case, expected, case.name)
        end
    end)

    it("says what it keeps where a disk is full", function()
        local case = CASES[1]
        local expected = reference(case)
        clean()
        local output = run(case, ("mb.debug.fail_step(%d, 28) print(pcall(run, {tell = print}))")
            :format(expected.steps // 2))
        assert.matches("keeps %d of 3 iterations, and %d+ of 54 tiles of the next one: go on with the option resume = true", output)
        assert.matches("No space left on device", output)
        check(case, expected, "after a full disk")
    end)
end)
