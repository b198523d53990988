-- Devices that are lost: at every call of a small run, in a call that does not return, and with files
-- half written. Lost devices stay lost, so each test has a program or a device of its own.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

-- Loses a device of this process at its next call.
local function lose(id)
    local device = mb.device(id)
    mb.debug.lose_device(device, 1)
    helper.failure(device.sync, device)
    return device
end

describe("a lost device", function()
    local PROGRAM <const> = "spec/fixtures/lose_device.lua"

    it("fails at every call of a run, leaves nothing behind, and harms no other device", function()
        local first, lost, done = 1, 0
        repeat
            local text, status = helper.run_program(("--leaks %s %d %d"):format(PROGRAM, first,
                first + 6))
            assert.equal(0, status, text)
            local _, more = text:gsub("lost\n", "")
            local _, rest = text:gsub("done\n", "")
            assert.equal(7, more + rest, text)
            first, lost, done = first + 7, lost + more, rest
        until done == 7
        assert.is_true(lost > 80, ("%d calls"):format(lost))
    end)

    it("says why, to every later call", function()
        local device = mb.device "host:6"
        assert.is_false(device:lost())
        local a <close> = mb.ones({4}, {device = device})
        assert.equal(device, lose "host:6")
        local lost, cause = device:lost()
        assert.same({true, "injected for a test"}, {lost, cause})
        local text, err = helper.failure(a.sum, a)
        assert.equal("device", err.code)
        assert.matches("host:6 is lost: injected for a test. Release its arrays and go on with "
            .. "other devices; to use host:6 again, start the program again", text, 1, true)
        a:release()
        assert.equal(0, mb.pool.stats(device).live)
        assert.matches("host:6", tostring(device))
        local _, planned = helper.failure(mb.dry_run, function()
            mb.zeros({3}, {device = device}):release()
        end)
        assert.equal("device", planned.code)
    end)

    it("is not waited for by its carriers, whatever its driver does", function()
        local text, status = helper.run_program("-", [[
            local core, mb = require "moonbeam.core", require "moonbeam"
            local device = mb.device "host:1"
            local source <close> = mb.ones({64, 64}, {device = "host"})
            local kept <close> = mb.zeros({64, 64}, {device = device})
            local reader = core.carrier.open {device = device, threads = 1, pinned = "1Mi"}
            reader:carry(source, kept)
            reader:finish()
            mb.debug.lose_device(device, 2, 2) -- the first call is that of the next line
            reader:carry(source, kept)
            local ok, err = pcall(reader.finish, reader)
            assert(not ok and err.code == "device", tostring(err))
            local began = mb.system.clock()
            reader:close()
            kept:release()
            local took = mb.system.clock() - began
            print(took > 0.5 and took < 1.7, (device:pinned()), mb.pool.stats(device).live)
            local again <close> = source + 1
            print(again:sum())
            mb.system.sleep(1.5) -- the worker ends
        ]])
        assert.equal(0, status, text)
        assert.equal("true\t0\t0\n8192.0\n", text)
    end)

    it("leaves a file usable where the caller says that it writes what is missing", function()
        local folder = files.folder()
        for i, way in ipairs {"close", "abandon"} do
            local id = "host:" .. i
            local path = ("%s/%s.raw"):format(folder, way)
            local part <close> = mb.ones({4, 8}, {device = id})
            local rows <close> = mb.ones({4, 8}, {device = "host"})
            local file = core.rawfile.create(path)
            file:resize(4 * 8 * 4)
            local writer = core.carrier.open {device = id, writing = true, pinned = "1Mi",
                threads = 1}
            writer:carry(file, part, 0, {32, 4})
            writer:finish()
            mb.debug.lose_device(id, 3) -- the queue's event, and the lane's
            writer:carry(file, part, 0, {32, 4})
            helper.failure(writer.finish, writer)
            writer[way](writer)
            local other <close> = core.carrier.open {device = "host", writing = true,
                pinned = "1Mi"}
            local function again()
                other:carry(file, rows, 0, {32, 4})
                other:finish()
                file:finish()
            end
            if way == "abandon" then
                again()
                assert.is_true(mb.system.stat(path) ~= nil)
            else
                assert.matches("has not been written completely", (helper.failure(again)))
            end
            file:close()
            part:release()
        end
        files.remove(folder)
    end)

    -- A result of eight slices in two files, whose first two slices are on a device that is lost
    -- while it writes them. `told`: arrived says what is there. Returns the names of the files that
    -- are complete, at some moments.
    local function two_writers(id, told)
        local folder, moments = files.folder(), {}
        local path = folder .. "/volume.h5"
        local result <close> = mb.result.create(path, {shape = {8, 4, 4}, slices_per_file = 4})
        local function note()
            local text = files.run(("cd '%s' && ls volume-slices* | grep 'h5$'"):format(folder))
            moments[#moments + 1] = text:gsub("\n", " "):gsub("slices%-", ""):gsub("%.h5 ", " ")
        end
        local lost <close> = mb.full({2, 4, 4}, 3, {device = id})
        local own <close> = mb.full({2, 4, 4}, 3, {device = "host"})
        local first = core.carrier.open {device = id, writing = true, pinned = "1Mi", threads = 1}
        local second <close> = core.carrier.open {device = "host", writing = true, pinned = "1Mi",
            threads = 1}
        local spare <close> = mb.zeros({2, 4, 4}, {device = "host"})
        first:carry(spare, lost) -- opens its ring
        first:finish()
        if told then
            result:await()
        end
        mb.debug.lose_device(id, told and 100 or 3) -- the queue's event, and the lane's
        result:carry(first, lost, 1)
        assert.equal(told, pcall(first.finish, first))
        result:carry(second, own, 3)
        second:finish()
        result:carry(second, own, 5)
        second:finish()
        note()
        if told then
            lose(id)
        end
        result:carry(second, own, 1) -- in its place
        second:finish()
        result:carry(second, own, 7)
        second:finish()
        for z = 1, told and 7 or 0, 2 do
            note()
            result:arrived(z, z + 1)
        end
        note()
        first:abandon()
        result:finish()
        do
            local file <close> = assert(mb.h5.open(path))
            local volume <close> = file:read "/entry/data/data"
            assert.equal(3 * 8 * 16, volume:sum())
        end
        lost:release()
        files.remove(folder)
        return moments
    end

    it("leaves its slices of a file of several to the others", function()
        -- Nobody knows what a failed carrier has written: its file is complete in the end.
        assert.same({"", ""}, two_writers("host:3", false))
        assert.same({"", "", "", "0001-0004 ", "0001-0004 ", "0001-0004 0005-0008 "},
            two_writers("host:4", true))
    end)

    it("leaves its blocks of a file to the others", function()
        local folder = files.folder()
        local rows <const> = 24
        local source <close> = mb.random({rows, 4, 8}, {seed = 5, device = "host"})
        local file = core.rawfile.create(folder .. "/volume.raw")
        file:resize(source.bytes)
        local blocks = {}
        for first = 1, rows, 2 do
            blocks[#blocks + 1] = first
        end
        mb.debug.lose_device("host:5", 25)
        mb.stream.run({"host", "host:5"}, blocks, {
            read = function(first, carrier, device)
                local frames = mb.empty({2, 4, 8}, {device = device})
                carrier:carry(source:view {first, first + 1}, frames)
                return frames
            end,
            compute = function(frames)
                return frames
            end,
            write = function(frames, first, carrier)
                carrier:carry(file, frames, (first - 1) * 128, {128, 32, 4})
            end,
        }, {schedule = "free", pinned = "1Mi", threads = 1})
        assert.is_true(mb.device("host:5"):lost())
        file:finish()
        file:close()
        local whole <close> = assert(io.open(folder .. "/volume.raw", "rb"))
        assert.is_true(source:to_string() == whole:read "a")
        files.remove(folder)
    end)
end)
