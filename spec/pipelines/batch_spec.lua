-- Several scans by one command: what is done, skipped and failed, and the exit status.
local files = require "spec.support.files"
local mb = require "moonbeam"

describe("batch", function()
    local folder, program

    setup(function()
        folder = files.folder()
        program = os.getenv "MOONBEAM_BIN" or mb.system.program()
        for _, name in ipairs {"a", "b"} do
            local output, ok = files.run(("'%s' simulate '%s/%s.h5' --size 24 --angles 30 "
                .. "-d host -q"):format(program, folder, name))
            assert(ok, output)
        end
        files.write(folder .. "/broken.h5", "no scan")
        mb.system.mkdir(folder .. "/volumes")
    end)
    teardown(function()
        files.remove(folder)
    end)
    before_each(function()
        files.run(("rm -rf '%s'/volumes/* '%s'/*-volume*"):format(folder, folder))
    end)

    local function batch(words)
        local output, _, status = files.run(("cd '%s' && '%s' batch %s"):format(folder, program,
            words))
        return output, status
    end

    it("reconstructs what it can, and says what failed", function()
        local output, status = batch "a.h5 broken.h5 b.h5 --into volumes -- -d host -q -c 11.5"
        assert.equal(1, status, output)
        assert.matches("scan       2 of 3: broken.h5", output, 1, true)
        assert.matches("\ndone        a.h5 %-> volumes/a.h5, [%d.]+ s\n", output)
        assert.matches("\nfailed      broken.h5 -> volumes/broken.h5 (exit status ", output, 1,
            true)
        assert.matches("2 done, 0 skipped, 1 failed of 3\n", output, 1, true)
        assert.same({"a.h5", "b.h5"}, files.list(folder .. "/volumes"))
    end)

    it("skips what is done, and goes on with what was interrupted", function()
        local options = "--into volumes --format tif --skip-done -- -d host -q -c 11.5"
        assert.equal(0, select(2, batch("a.h5 " .. options)))
        local facts = mb.system.stat(folder .. "/volumes/a.tif")
        mb.system.mkdir(folder .. "/volumes/b.tif.unfinished")
        files.write(folder .. "/volumes/b.tif.unfinished/journal", "no record\n")
        local output, status = batch("a.h5 b.h5 " .. options)
        assert.equal(0, status, output) -- nothing was finished: it begins anew
        assert.matches("skipped     a.h5 -> volumes/a.tif (there already)", output, 1, true)
        assert.matches("1 done, 1 skipped, 0 failed of 2", output, 1, true)
        assert.equal(facts.inode, mb.system.stat(folder .. "/volumes/a.tif").inode)
        assert.same({"a.tif", "b.tif"}, files.list(folder .. "/volumes"))
    end)

    it("stops where it is told to", function()
        local output, status = batch "broken.h5 a.h5 --stop -- -d host -q -c 11.5"
        assert.equal(1, status)
        assert.matches("0 done, 0 skipped, 1 failed, 1 not begun of 2", output, 1, true)
        assert.matches("the same command with --skip-done", output, 1, true)
    end)

    it("ends with an interruption", function()
        files.write(folder .. "/kill.lua", [[
return {name = "same", summary = "Does nothing.", takes = {quantity = "any", layout = "any"},
    gives = {quantity = "same", layout = "same"},
    cuts = {"rows"}, run = function(block)
        if not block.data.device.dry then
            io.popen("kill -INT $PPID"):close()
        end
    end}]])
        files.write(folder .. "/r.lua",
            '{"flat_field", "minus_log", "same", {"fbp", center = 11.5}}')
        local output, status = batch("a.h5 b.h5 --into volumes -- -d host -q --recipe r.lua "
            .. "--steps kill.lua")
        assert.equal(130, status, output)
        assert.matches("0 done, 0 skipped, 0 failed, 1 interrupted, 1 not begun of 2", output, 1,
            true)
    end)

    it("says what is wrong before it begins", function()
        for words, problem in pairs {
            [""] = "SCAN is missing", ["a.h5 none.h5"] = "there is no scan 'none.h5'",
            ["a.h5 --into nowhere"] = "there is no folder 'nowhere'",
            ["a.h5 ./a.h5 --into volumes"] = "'a.h5' and './a.h5' would have the same result",
            ["a.h5 -- -o x.h5"] = "-o cannot be used here: --into and --format say where",
            ["a.h5 -- --resume"] = "--skip-done goes on with interrupted scans",
            ["a.h5 --skip-done -- --overwrite"] = "give one of them",
            ["a.h5 --formt tif"] = "did you mean --format?",
        } do
            local output, status = batch(words)
            assert.equal(2, status, words .. "\n" .. output)
            assert.matches(problem, output, 1, true)
        end
        files.write(folder .. "/a-volume.h5", "x")
        local output, status = batch "a.h5 b.h5"
        assert.equal(2, status)
        assert.matches("1 of 2 results exist, such as 'a-volume.h5': give --skip-done", output, 1,
            true)
    end)
end)
