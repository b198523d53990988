-- What a power cut leaves of an unfinished run: journals that are cut, empty, zeros or missing, and
-- what is no journal. Whatever it is, an option removes it at the first try, no run removes it
-- without one, and nothing but what a run has made is ever removed.

local files = require "spec.support.files"
local core = require "moonbeam.core"
local mb = require "moonbeam"

-- Writes 12 slices in blocks of 2; of these the first `blocks` before it is killed.
local RUN = [[
local mb = require "moonbeam"
local core = require "moonbeam.core"
local unfinished = require "moonbeam.result.unfinished"
return function(path, blocks, options)
    options.identity = {{"recipe", "a recipe"}}
    local kept <close> = unfinished.open(path, options)
    local result <close> = mb.result.create(path, {shape = {12, 20, 30}, unfinished = kept,
        slices_per_file = options.slices_per_file})
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
            kept:note_rows(1, z, z + 1, carrier:hash(from, carrier:mark()), {})
            made = made + 1
        end
    end
    result:finish()
    return made
end
]]

local KINDS <const> = {{name = "volume.h5"}, {name = "volume.h5", slices_per_file = 3},
    {name = "volume.tif"}, {name = "volume.ome.tif"}, {name = "volume.zarr"}}

local function zeros(journal)
    files.write(journal, ("\0"):rep(core.system.stat(journal).bytes))
end

-- What is done to a journal; `of`: for how many of the kinds (default: 1).
local DAMAGES <const> = {
    {"is empty", function(journal) files.write(journal, "") end, of = #KINDS},
    {"is zeros", zeros, of = #KINDS},
    {"is missing", os.remove, of = #KINDS},
    {"is cut in its first record", function(journal)
        files.write(journal, files.read(journal):sub(1, 30))
    end},
    {"begins with zeros", function(journal)
        local text = files.read(journal)
        files.write(journal, ("\0"):rep(17) .. text:sub(18))
    end},
    {"is a link", function(journal, folder)
        files.write(folder .. "/precious.txt", "precious")
        os.remove(journal)
        os.execute(("ln -s ../precious.txt '%s'"):format(journal))
    end},
    {"is an empty folder", function(journal)
        os.remove(journal)
        assert(mb.system.mkdir(journal))
    end},
    {"has lost its lock as well", function(journal)
        files.write(journal, "")
        os.remove((journal:gsub("journal$", "lock")))
    end},
    {"is there, and its lock is a link", function(journal, folder)
        files.write(folder .. "/precious.txt", "precious")
        files.write(journal, "")
        os.execute(("ln -sf ../precious.txt '%s'"):format((journal:gsub("journal$", "lock"))))
    end},
}

describe("a damaged unfinished run", function()
    local folder, path, run, kept

    setup(function()
        run = assert(load(RUN))()
    end)
    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    -- What runs of these kinds leave that are killed after two blocks, in a folder of their own.
    local left, known
    setup(function()
        left, known = files.folder(), {}
    end)
    teardown(function()
        files.remove(left)
    end)

    -- A run of that kind that was killed.
    local function killed(kind)
        path = folder .. "/" .. kind.name
        kept = path .. ".unfinished"
        known[kind] = known[kind] or #files.list(left) + 1
        local own = ("%s/%d"):format(left, known[kind])
        if not core.system.stat(own) then
            assert(mb.system.mkdir(own))
            local said = files.run_script(folder,
                ("local run = (function() %s end)() run('%s/%s', 2, {%s})"):format(RUN, own,
                kind.name, kind.slices_per_file and "slices_per_file = 3" or ""))
            os.remove(folder .. "/script.lua")
            assert.equal("kept", core.unfinished.state(own .. "/" .. kind.name), said)
        end
        os.execute(("rm -rf '%s' '%s'* && cp -a '%s/%s.unfinished' '%s'"):format(kept,
            path:gsub("%.h5$", ""), own, kind.name, kept))
    end

    -- All names in the folder of the run, with sizes and links.
    local function tree()
        return (files.run(("cd '%s' && find . -printf '%%p %%s %%l\\n' | sort"):format(kept)))
    end

    -- Runs all of it; returns how many blocks were made, or the error.
    local function whole(kind, options)
        options.slices_per_file = kind.slices_per_file
        local ok, result = pcall(run, path, nil, options)
        return ok and result or nil, not ok and result or nil
    end

    local function check_complete()
        assert.is_nil(core.system.stat(kept))
        assert.truthy(core.system.stat(path))
        local names = table.concat(files.list(folder), " "):gsub("%-slices%-%x+", "-slices")
            :gsub("precious.txt ?", "")
        assert.equal((names:find "slices" and "volume-slices " or "") .. path:match "[^/]*$",
            (names:gsub(" $", "")))
    end

    for _, damage in ipairs(DAMAGES) do
        for i = 1, damage.of or 1 do
            local kind = KINDS[i]
            local what = kind.name .. (kind.slices_per_file and " in files" or "")
            it(("whose journal %s is kept or discarded as asked: %s"):format(damage[1], what),
                function()
                    killed(kind)
                    damage[2](kept .. "/journal", folder)
                    local before = tree()
                    assert.equal("damaged", core.unfinished.state(path))
                    for _, options in ipairs {{}, {resume = true}} do
                        local made, problem = whole(kind, options)
                        assert.is_nil(made)
                        assert.equal("io", problem.code)
                        assert.matches("discard = true$", problem.message)
                        assert.equal(options.resume and "" or before,
                            options.resume and "" or tree())
                        assert.truthy(core.system.stat(kept))
                    end
                    assert.equal(6, (whole(kind, {discard = true})))
                    check_complete()
                    if core.system.stat(folder .. "/precious.txt") then
                        assert.equal("precious", files.read(folder .. "/precious.txt"))
                    end
                end)
        end
    end

    it("goes on, or is discarded, wherever its journal is cut", function()
        killed(KINDS[1])
        local text = files.read(kept .. "/journal")
        local first = text:find "\n"
        for length = 1, #text, 23 do
            killed(KINDS[1])
            files.write(kept .. "/journal", text:sub(1, length))
            local _, problem = whole(KINDS[1], {})
            assert.equal("io", problem.code)
            if length < first then
                assert.equal("damaged", core.unfinished.state(path))
            end
            assert.equal(6, (whole(KINDS[1], {discard = true})), "cut at " .. length)
            check_complete()
        end
    end)

    it("is not removed where it has what no run has made", function()
        for _, kind in ipairs {KINDS[2], KINDS[5]} do
            killed(kind)
            local inner = kind.name:find "zarr" and "volume.zarr/0/notes.txt" or nil
            if not inner then
                for name in pairs(core.unfinished.entries(kept)) do
                    inner = name:find "slices%-%x+$" and name .. "/notes.txt" or inner
                end
            end
            for _, name in ipairs {"notes.txt", inner, ".hidden", "volume.h5.bak"} do
                killed(kind)
                files.write(kept .. "/" .. name, "notes")
                local before = tree()
                local _, problem = whole(kind, {discard = true})
                assert.equal("io", problem.code)
                assert.truthy(problem.message:find("'" .. name .. "'", 1, true), problem.message)
                assert.equal(before, tree())
                os.remove(kept .. "/" .. name)
                assert.equal(6, (whole(kind, {discard = true})))
                assert.is_nil(core.system.stat(kept))
            end
        end
    end)

    it("leaves what was put there meanwhile", function()
        killed(KINDS[1])
        files.write(kept .. "/notes.txt", "notes")
        assert.equal(4, (whole(KINDS[1], {resume = true})))
        assert.equal("notes", files.read(kept .. "/notes.txt"))
        assert.same({["notes.txt"] = "file"}, core.unfinished.entries(kept))
        os.remove(path)
        local _, problem = whole(KINDS[1], {})
        assert.truthy(problem.message:find("move that elsewhere", 1, true))
        assert.equal("notes", files.read(kept .. "/notes.txt"))
        assert.is_nil(core.system.stat(path))
    end)

    it("is none where its name is that of a link or a file, which stay", function()
        path, kept = folder .. "/volume.h5", folder .. "/volume.h5.unfinished"
        assert(mb.system.mkdir(folder .. "/elsewhere"))
        for _, make in ipairs {"ln -s elsewhere '%s'", "echo notes > '%s'"} do
            os.execute(("cd '%s' && rm -rf '%s' && "):format(folder, kept) .. make:format(kept))
            for _, options in ipairs {{}, {resume = true}, {discard = true}} do
                local _, problem = whole(KINDS[1], options)
                assert.equal("io", problem.code)
                assert.truthy(problem.message:find("move it elsewhere", 1, true))
            end
            assert.same({}, files.list(folder .. "/elsewhere"))
            assert.truthy(core.system.stat(kept))
        end
    end)

    it("of another command is told to whoever keeps nothing", function()
        killed(KINDS[5])
        local before = tree()
        local ok, problem = pcall(mb.result.create, path, {shape = {2, 20, 30}})
        assert.is_false(ok)
        assert.truthy(problem.message:find("or remove the folder", 1, true))
        assert.equal(before, tree())
    end)

    it("that keeps nothing is taken by the next one, whoever that is", function()
        for _, next_one in ipairs {"journal", "none"} do
            path, kept = folder .. "/volume.zarr", folder .. "/volume.zarr.unfinished"
            files.run(("rm -rf '%s'*"):format(path))
            local _, _, status = files.run_script(folder, ([[
                local mb = require "moonbeam"
                local result = mb.result.create("%s", {shape = {4, 8, 9}})
                os.execute "kill -9 $PPID"]]):format(path))
            assert.is_true(status == 137 or status == 9)
            assert.truthy(core.system.stat(kept .. "/volume.zarr/0"))
            assert.is_false(core.unfinished.exists(path))
            if next_one == "journal" then
                assert.equal(6, (whole({name = "volume.zarr"}, {})))
            else
                local result <close> = mb.result.create(path, {shape = {2, 20, 30}})
                local slices <close> = mb.random({2, 20, 30}, {seed = 1, device = "host"})
                result:write(slices, 1)
                result:finish()
            end
            assert.is_nil(core.system.stat(kept))
        end
    end)
end)
