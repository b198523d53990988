-- What an interrupted run leaves, and how another process goes on with it: the folder, its lock, its
-- journal, the result's file. Here blocks are written without a pipeline.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"
local records = require "moonbeam.result.records"
local unfinished = require "moonbeam.result.unfinished"

local REPEAT = tonumber(os.getenv "MOONBEAM_REPEAT")

-- By default only some of the steps of a result in several files are those of a kill.
local STRIDE <const> = REPEAT and 1 or 7

-- What a script says first: run(options) makes a result of 12 slices in blocks of 2, of which the
-- first `blocks` are written by this process; it goes on with what is there.
local RUN = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local unfinished = require "moonbeam.result.unfinished"
local path, count = "PATH", COUNT
function run(blocks, options)
    options = options or {}
    options.resume = options.resume == nil and core.unfinished.exists(path) or options.resume
    options.identity = options.identity or {{"recipe", "a recipe"}}
    local kept <close> = unfinished.open(path, options)
    if kept.complete then
        kept:remove()
        return 0
    end
    local result <close> = mb.result.create(path, {shape = {12, 20, 30}, unfinished = kept,
        slices_per_file = count or nil, overwrite = options.overwrite})
    local pending, good = kept:pending(1, 1, 12, function(...) return result:hash(...) end)
    for _, each in ipairs(good) do
        result:have(each.first, each.last)
    end
    local carrier <close> = core.carrier.open {device = "host", writing = true, threads = 2,
        pinned = "1Mi", hashes = true}
    local made = 0
    for _, range in ipairs(pending) do
        for z = range[1], range[2], 2 do
            if made == blocks then
                os.execute "kill -9 $PPID"
            end
            local slices <close> = mb.random({2, 20, 30}, {seed = z})
            local from = carrier:mark()
            result:prepare(z, z + 1)
            result:carry(carrier, slices, z)
            carrier:finish()
            kept:note_rows(1, z, z + 1, carrier:hash(from, carrier:mark()), {mended = {z, 0, 0}})
            made = made + 1
        end
    end
    result:provenance {resumed = kept.resumed}
    result:finish()
    return made, kept.resumed
end
]]

describe("an unfinished run", function()
    local folder, path, slices_per_file

    before_each(function()
        folder = files.folder()
        path, slices_per_file = folder .. "/volume.h5", nil
    end)
    after_each(function()
        files.remove(folder)
    end)

    -- Runs a script in a process of its own: its output, and its status.
    local function run(text)
        local output, _, status = files.run_script(folder, (RUN:gsub("PATH", path)
            :gsub("COUNT", tostring(slices_per_file or false))) .. text)
        return output, status
    end

    -- What is there but the script.
    local function names()
        local list = {}
        for _, name in ipairs(files.list(folder)) do
            if name ~= "script.lua" then
                list[#list + 1] = name:gsub("%-slices%-%x+", "-slices")
            end
        end
        return list
    end

    -- The volume's bytes as they must be, and that the result has them and nothing else is left.
    local function check_result()
        do
            local file <close> = assert(mb.h5.open(path))
            local got <close> = file:read "/entry/data/data"
            for z = 1, 12, 2 do
                local own <close> = mb.random({2, 20, 30}, {seed = z, device = "host"})
                local part <close> = got:view {z, z + 1}
                assert.same(own:to_table(), part:to_table())
            end
            assert.is_true(file:exists "/entry/end_time")
        end
        assert.same(slices_per_file and {"volume-slices", "volume.h5"} or {"volume.h5"}, names())
    end

    for _, count in ipairs {false, 2, 5} do
        local what = count and ("in files of %d slices"):format(count) or "in one file"

        it("goes on where it was killed, " .. what, function()
            slices_per_file = count or nil
            run "run(2)"
            assert.same({"volume.h5.unfinished"}, names())
            run "run(3)"
            local output = run "print(run())"
            assert.equal("1\t2\n", output)
            check_result()
            local file <close> = assert(mb.h5.open(path))
            assert.equal(2, file:value "/entry/provenance/resumed")
        end)

        it("goes on after a kill at every step, " .. what, function()
            slices_per_file = count or nil
            local steps = tonumber((run [[
                local before = mb.debug.steps() run() print(mb.debug.steps() - before)]]))
            assert.is_true(steps > 20)
            for n = 1, steps, count and STRIDE or 1 do
                os.execute(("rm -rf '%s'/volume*"):format(folder))
                local _, status = run(("mb.debug.fail_step(%d) run()"):format(n))
                assert.is_true(status == 137 or status == 9, tostring(status))
                if core.unfinished.exists(path) or not mb.system.stat(path) then
                    assert.equal("", (run "run()"))
                end
                run "core.target.scavenge(path .. '.unfinished', '')"
                check_result()
            end
        end)
    end

    it("is removed where its process was killed while it removed it, whoever has its number now",
        function()
            local part = (".unfinished.part-%d-01234567-89abcdef"):format(mb.system.pid())
            os.execute(("rm -rf '%s'/volume*"):format(folder))
            assert(mb.system.mkdir(path .. part))
            files.write(path .. part .. "/journal", "")
            files.write(folder .. "/volume2.h5" .. part, "") -- a file belongs to its process
            core.target.scavenge(path .. ".unfinished", "")
            core.target.scavenge(folder .. "/volume2.h5.unfinished", "")
            assert.same({"volume2.h5" .. part}, names())
            os.remove(folder .. "/volume2.h5" .. part)
        end)

    it("replaces an older result, wherever it is killed", function()
        slices_per_file = 4
        run "run()"
        slices_per_file = nil
        local steps = tonumber((run [[
            local before = mb.debug.steps() run(nil, {overwrite = true})
            print(mb.debug.steps() - before)]]))
        for n = STRIDE, steps, STRIDE do
            os.execute(("rm -rf '%s'/volume*"):format(folder))
            slices_per_file = 4
            run "run()"
            slices_per_file = nil
            run(("mb.debug.fail_step(%d) run(nil, {overwrite = true})"):format(n))
            assert.is_truthy(mb.system.stat(path)) -- the old one or the new one
            run "run(nil, {overwrite = true})"
            check_result()
        end
    end)

    it("is refused to a second run, and to another one", function()
        run "run(2)"
        local output = run "run(nil, {resume = false})"
        assert.matches("exists: it keeps an interrupted run", output)
        assert.matches("resume = true.*discard = true", output)
        output = run "run(nil, {identity = {{'recipe', 'another recipe'}}})"
        assert.matches("recipe %(it was 'a recipe', now it is 'another recipe'%)", output)
        assert.matches("discard = true", output)
        output = run "run(nil, {identity = {}})"
        assert.matches("recipe %(it was 'a recipe'%)", output)
        assert.same({"volume.h5.unfinished"}, names())
        output = run "print(run(nil, {resume = false, discard = true}))"
        assert.equal("6\t0\n", output)
        check_result()
        assert.matches("there is nothing to resume: '.*' does not exist", (run
            "run(nil, {resume = true, overwrite = true})"))
        assert.matches("give one of them", (run "run(nil, {resume = true, discard = true})"))
    end)

    it("is refused while a process is at work on it", function()
        local kept = unfinished.open(path, {identity = {}})
        kept:note_rows(1, 1, 2, 0, {})
        local pattern = ("process %d on .* is at work on it"):format(mb.system.pid()):gsub("on it",
            "on")
        assert.matches(pattern, (run "run(nil, {resume = false})"))
        assert.matches(pattern, (run "run(nil, {resume = true})"))
        assert.matches(pattern, (run "run(nil, {resume = false, discard = true})"))
        kept:close()
        assert.equal("6\t0\n", (run "print(run(nil, {resume = true}))")) -- there was no file yet
        check_result()
    end)

    it("leaves nothing where the disk is full when it begins", function()
        for step = 1, 5 do
            local output = run(("mb.debug.fail_step(%d, 28) print(pcall(unfinished.open, path, "
                .. "{identity = {{'a', 'b'}}}))"):format(step))
            assert.matches("No space left on device", output)
            assert.same({}, names())
        end
        local output = files.run_script(folder,
            ("require 'moonbeam.result.unfinished'.open('%s', {})"):format(path), "ulimit -f 0;")
        assert.matches("cannot lock", output)
        assert.same({}, names())
    end)

    it("goes where nothing was finished", function()
        run "pcall(run, nil, {identity = {{'recipe', 'a'}}}) error 'no'"
        os.remove(path)
        run "local kept <close> = unfinished.open(path, {identity = {}}) error 'no'"
        assert.same({}, names())
    end)

    it("makes again what a power cut has taken", function()
        local seed = 1
        local function random(n)
            seed = (seed * 1103515245 + 12345) & 0x7fffffff
            return (seed >> 8) % n
        end
        local told = 0
        for i = 1, REPEAT or 8 do
            slices_per_file = ({nil, 5, 2})[i % 3 + 1]
            os.execute(("rm -rf '%s'/volume*"):format(folder))
            run "run(4)"
            -- Everything that was not synced may be lost: cut off, or zeros.
            local list = files.run(("cd '%s' && find . -type f"):format(folder))
            local damaged
            for name in list:gmatch "%./(volume[^\n]*)" do
                local bytes = files.read(folder .. "/" .. name)
                local how = random(4)
                if name:find "volume.h5.head$" or name:find "lock$" then
                    how = i % 8 == 7 and name:find "head" and 1 or 0
                    damaged = damaged or how == 1
                end
                local from = random(#bytes)
                if name:find "journal$" then
                    from = math.max(from, 400) -- the first records were synced
                end
                if how == 1 then
                    bytes = bytes:sub(1, from)
                elseif how == 2 then
                    bytes = bytes:sub(1, from) .. ("\0"):rep(math.min(3000, #bytes - from))
                        .. bytes:sub(from + 3001)
                end
                files.write(folder .. "/" .. name, bytes)
            end
            local output = run "print(run())"
            if output:find "discard = true" then
                told = told + 1
                assert.is_true(damaged, output)
            else
                check_result()
            end
        end
        assert.is_true(told >= 1)
    end)

    describe("record", function()
        it("comes back as it was", function()
            for _, list in ipairs {{}, {1, -5, math.mininteger}, {0.1, -1e300, 1 / 3, math.huge},
                {"a b", "\"\\\n\0={}", ""}, {true, false, {1, 2, {x = 1.5, ["a b"] = "c"}}, {}},
                {"rows", 1, {mended = {0, 0, 7}}}} do
                assert.same(list, records.list(records.text(list)))
            end
            assert.equal("0x1p-1 2", records.text {0.5, 2})
            assert.is_true(records.list("nan")[1] ~= records.list("nan")[1])
            for _, text in ipairs {"{", "{1", "{1=", "\"a", "x", "1 x", "}", "{1=2", "= 1"} do
                assert.is_nil(records.list(text), text)
            end
        end)
    end)
end)
