-- How files get their names: nobody else's file is ever touched, a kill leaves the old or the
-- new, and nothing is left behind.
--
-- MOONBEAM_REPEAT=100 repeats what is left to chance (kills and pairs of processes) that often;
-- by default a few times.
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local REPEAT = tonumber(os.getenv "MOONBEAM_REPEAT" or 2)
local PART = "%.part%-(%d+)%-(%x%x%x%x%x%x%x%x)%-(%x%x%x%x%x%x%x%x)$"
local program = os.getenv "MOONBEAM_BIN" or mb.system.program()

-- What a script says first: write(value, slices_per_file) makes a result of 4 slices that are all
-- `value`.
local WRITE = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local path = "PATH"
local function write(value, count)
    local r <close> = mb.result.create(path, {shape = {4, 3, 2}, slices_per_file = count or nil, overwrite = true,
        parameters = {value = value}})
    local v <close> = mb.full({4, 3, 2}, value)
    r:write(v, 1)
    r:finish()
end
]]

describe("target", function()
    local folder, path

    before_each(function()
        folder = files.folder()
        path = folder .. "/volume.h5"
    end)

    after_each(function()
        files.remove(folder)
    end)

    local function run(text)
        return files.run_script(folder, (WRITE:gsub("PATH", path)) .. text)
    end

    -- What is there but the script, with what is random in names left out.
    local function names()
        local list = {}
        for _, name in ipairs(files.list(folder)) do
            if name ~= "script.lua" then
                list[#list + 1] = name:gsub("%.part%-.*", ".part"):gsub("%-slices%-%x+", "-slices")
            end
        end
        table.sort(list)
        return list
    end

    -- The value of a complete result: every voxel is what the parameters say.
    local function value_of()
        local f <close> = assert(mb.h5.open(path))
        local value = f:value "/entry/reconstruction/parameters/value"
        local v <close> = f:read "/entry/data/data"
        assert.equal(value, v:min())
        assert.equal(value, v:max())
        return value
    end

    describe("of a killed run", function()
        for _, case in ipairs { { false, false }, { 2, false }, { 2, 2 } } do
            local old, new = case[1], case[2]
            it(("%s over %s is the old or the new, wherever the kill comes"):format(new
                and "in files" or "in one",
                old and "files" or "one"), function()
                local output = run(("write(1, %s) local before = mb.debug.steps() write(2, "
                    .. "%s) print(mb.debug.steps() - before)")
                    :format(old, new))
                local steps = assert(tonumber(output:match("(%d+)%s*$")), output)
                assert.is_true(steps >= 4, output)
                local seen = {}
                for n = 1, steps do
                    local script = "write(1, %s) mb.debug.fail_step(%d) write(2, %s)"
                    local _, _, status = run(script:format(old, n, new))
                    assert.is_true(status == 137 or status == 9, tostring(status))
                    seen[#seen + 1] = value_of()
                end
                local text = table.concat(seen, " ")
                assert.matches("^1[1 ]+2[2 ]*$", text)
                -- The next run removes whatever they have left.
                output = run(("write(3, %s)"):format(new))
                assert.equal("", output)
                assert.equal(3, value_of())
                assert.same(new and { "volume-slices", "volume.h5" } or { "volume.h5" }, names())
            end)
        end

        it("is the old or the new when it comes at any time", function()
            for i = 1, REPEAT do
                local new = i % 2 == 0 and 2 or false
                run "write(1, 2)"
                files.write(folder .. "/script.lua", (WRITE:gsub("PATH", path))
                    .. ("io.stderr:write 'x' write(2, %s)"):format(new))
                files.run_killed(folder, (20 + i * 37 % 60) / 1000)
                local value = value_of()
                assert.is_true(value == 1 or value == 2)
            end
            run "write(3, 2)"
            assert.equal(3, value_of())
            assert.same({ "volume-slices", "volume.h5" }, names())
        end)
    end)

    it("whose steps fail leaves the old or the new, and nothing else", function()
        local output = run "write(1, 2) local before = mb.debug.steps() write(2, 2) print(mb.debug.steps() - before)"
        local failed = 0
        for n = 1, tonumber(output:match("(%d+)%s*$")) do
            local text, ok = run(("write(1, 2) mb.debug.fail_step(%d, 5) write(2, 2)"):format(n))
            failed = failed + (ok and 0 or 1)
            assert(ok or text:find("Input/output error", 1, true), text)
            assert.equal(ok and 2 or 1, value_of())
        end
        assert.is_true(failed >= 6, tostring(failed))
        run "write(3, 2)"
        assert.equal(3, value_of())
    end)

    it("of two processes is that of one or the other, never mixed", function()
        for i = 1, REPEAT do
            local first, second = i % 2 == 0 and 2 or false, i % 3 ~= 0 and 2 or false
            for j, count in ipairs { first, second } do
                files.write(("%s/%d.lua"):format(folder, j), (WRITE:gsub("PATH", path))
                    .. ("write(%d, %s)"):format(j, count))
            end
            local output, ok = files.run(
                ("'%s' %s/1.lua & one=$!; '%s' %s/2.lua && wait $one"):format(program, folder,
                program, folder))
            assert.is_true(ok, output)
            local value = value_of()
            os.remove(folder .. "/1.lua")
            os.remove(folder .. "/2.lua")
            local sliced = value == 1 and first or value == 2 and second
            assert.same(sliced and { "volume-slices", "volume.h5" } or { "volume.h5" }, names())
        end
    end)

    -- Both are about to give their file its name; which file that replaces is known when it does.
    it("of two processes that end together leaves one folder of slices", function()
        local count <const> = 20 * REPEAT
        for j = 1, 2 do
            files.write(("%s/%d.lua"):format(folder, j), ([[
local mb = require "moonbeam"
local v <close> = mb.full({4, 3, 2}, ME)
for i = 1, COUNT do
    local r <close> = mb.result.create(("FOLDER/v%d.h5"):format(i), {shape = {4, 3, 2},
        slices_per_file = 2, overwrite = true})
    r:write(v, 1)
    local ready = "FOLDER/ready." .. i .. "."
    io.open(ready .. ME, "w"):close()
    while true do
        local other = io.open(ready .. 3 - ME)
        if other then
            other:close()
            break
        end
        mb.system.sleep(0.0002)
    end
    r:finish()
end
]]):gsub("ME", j):gsub("COUNT", count):gsub("FOLDER", folder))
        end
        local output, ok = files.run(("'%s' %s/1.lua & one=$!; '%s' %s/2.lua && wait $one"):format(
            program, folder, program, folder))
        assert.is_true(ok, output)
        local folders = 0
        for _, name in ipairs(files.list(folder)) do
            folders = folders + (name:find "%-slices%-" and 1 or 0)
        end
        assert.equal(count, folders)
    end)

    it("replaces a file that appears at the last moment", function()
        local output = run "local before = mb.debug.steps() write(2, 2) print(mb.debug.steps() - before)"
        local last
        for n = 1, assert(tonumber(output:match("(%d+)%s*$")), output) do
            files.run(("rm -rf '%s'/volume*"):format(folder))
            local text, ok = run(("mb.debug.fail_step(%d, 17) write(2, 2)"):format(n)) -- EEXIST
            assert.is_nil(text:find("/volume.h5' was created by another", 1, true), text)
            last = ok and value_of() or last
        end
        assert.equal(2, last)
    end)

    it("that nobody finishes leaves nothing, however the program ends", function()
        for _, ending in ipairs { "os.exit(3)", "os.exit(3, true)", "error 'no'",
            "os.execute('kill $PPID') mb.system.sleep(5)", "" } do
            run([[
                local v <close> = mb.zeros {1, 3, 2}
                r = mb.result.create(path, {shape = {4, 3, 2}, slices_per_file = 2})
                r:write(v, 1)
                q = core.rawfile.create("PATH.npy")
                ]] .. ending)
            assert.same({}, names(), ending)
        end
    end)

    describe("part", function()
        -- A script that is killed while a file has a temporary name; that name.
        local function killed()
            run "local f = mb.h5.create(path) os.execute('kill -9 $PPID')"
            for _, name in ipairs(files.list(folder)) do
                if name:match(PART) then
                    return folder .. "/" .. name
                end
            end
            error "no part was left"
        end

        it("of a dead process of ours goes with the next target", function()
            for _ = 1, 2 do
                killed()
            end
            assert.same({ "volume.h5.part" }, names())
            local f <close> = mb.h5.create(path)
            assert.equal(f.part_path:match("[^/]*$"), files.list(folder)[2])
            assert.same({ "volume.h5.part" }, names())
        end)

        it("of anybody else stays: another host, a living process, another file, a link, a lock",
            function()
            local part = killed()
            local pid, host, id = part:match(PART)
            local function kept(name, command)
                assert(os.rename(part, folder .. "/aside"))
                assert(os.execute(("%s '%s/aside' '%s'"):format(command or "cp", folder, name)))
                mb.h5.create(path):close()
                assert.is_true(os.execute(("test -L '%s' -o -e '%s'"):format(name, name)), name)
                assert(os.remove(name))
                assert(os.rename(folder .. "/aside", part))
            end
            local function named(number, where, what)
                return ("%s.part-%s-%s-%s"):format(path, number, where, what)
            end
            kept(named(pid, ("%08x"):format(tonumber(host, 16) ~ 1), id))
            kept(named(1, host, id))
            kept(named(pid, host, id) .. "-2")
            kept(path .. ".part-" .. pid)
            kept(folder .. "/other.h5" .. part:match("%.part%-.*"))
            kept(part, "ln -s")
            kept(part, "ln")
            mb.h5.create(path):close()
            assert.is_nil(mb.system.stat(part))
        end)

        it("is not that of another process, whatever its PID: nothing with its name is touched",
            function()
            files.write(folder .. "/precious", "precious")
            assert(mb.system.mkdir(folder .. "/victim"))
            files.write(folder .. "/victim/slices-0001-0001.h5", "precious")
            files.write(folder .. "/q.h5.live", ("x"):rep(1000))
            for _, options in ipairs { "", "--format nxtomo" } do
                local output, ok = files.run(([[bash -c 'cd "%s"; for n in o.h5 o.h5.png; do ln -sf precious $n.part-$$; done
                    ln -sfn victim o-slices.part-$$; ln -f q.h5.live o.h5.part-$$-2
                    exec "%s" "$0"/scripts/simulate.lua o.h5 --overwrite --size 8 --angles 8 -d host -q %s' "$PWD"]]):format(folder,
                    program, options))
                assert.is_true(ok, output)
            end
            local output, ok = files.run(([[bash -c 'cd "%s"; ln -sfn victim v-slices.part-$$; ln -s precious v.h5.part-$$
                exec "%s" "$0"/scripts/reconstruct.lua o.h5 -o v.h5 --slices-per-file 1 -d host -q --center 3.5 -p v.png' "$PWD"]])
                :format(folder, program))
            assert.is_true(ok, output)
            assert.equal("precious", files.read(folder .. "/precious"))
            assert.equal("precious", files.read(folder .. "/victim/slices-0001-0001.h5"))
            assert.equal(1000, #files.read(folder .. "/q.h5.live"))
        end)

        it("is never renamed where another file has taken its place", function()
            local f <close> = mb.h5.create(path)
            f:write("/a", 1)
            local part = f.part_path
            assert(os.remove(part))
            files.write(part, "another")
            local text = helper.failure(f.finish, f)
            assert.is_truthy(text:find("replaced by another file", 1, true)
                or text:find("cannot verify", 1, true), text)
            assert.equal("another", files.read(part))
            assert.is_nil(mb.system.stat(path))
        end)
    end)

    it("of a kept file stays, whoever closes it, and goes on", function()
        path = folder .. "/store"
        local output = run [[
            local f = core.rawfile.keep(path)
            f:put(0, "first ")
            f:close()
            local g = core.rawfile.keep(path)
            g:put(g:bytes(), "second")
            os.execute "kill -9 $PPID"
        ]]
        assert.equal("", output:gsub("Killed%s*", ""))
        assert.equal("first second", files.read(path))
        assert.matches("cannot create", (helper.failure(core.rawfile.keep, folder)))
    end)

    it("that has failed once never gets its name", function()
        local f <close> = core.rawfile.create(path)
        assert.matches("cannot write", (helper.failure(f.put, f, math.maxinteger, "x")))
        f:put(0, "the rest")
        assert.matches("cannot write", (helper.failure(f.finish, f)))
        f:close()
        assert.same({}, names())
    end)
end)
