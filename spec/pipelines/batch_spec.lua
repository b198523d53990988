-- Several scans by one command: what is done, skipped and failed, and the exit status.
local core = require "moonbeam.core"
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

    it("leaves a scan to the process that is at work on it, and fails where that has left nothing", function()
        local words = "a.h5 b.h5 --into volumes --resume auto -- -d host -q -c 11.5"
        local own = core.unfinished.begin(folder .. "/volumes/a.h5")
        own:append "a record\n"
        local output, status = batch(words)
        assert.equal(0, status, output)
        assert.matches("skipped     a.h5 -> volumes/a.h5 (another process works on it)", output, 1,
            true)
        assert.matches("1 done, 1 skipped, 0 failed of 2", output, 1, true)
        own:remove()
        own:close()
        assert.matches("1 done, 1 skipped, 0 failed of 2", (batch(words)), 1, true)
        output, status = batch "broken.h5 a.h5 --into volumes --skip-done -- -d host -q -c 11.5"
        assert.equal(1, status, output)
        assert.matches("0 done, 1 skipped, 1 failed of 2", output, 1, true)
    end)

    -- The script that batch prints, standard error, and the status.
    local function script(words)
        local _, _, status = files.run(("cd '%s' && ('%s' batch %s > out 2> err)"):format(folder,
            program, words))
        local text = files.read(folder .. "/out")
        assert.equal("", (files.run("sh -n -c '" .. text:gsub("'", "'\\''") .. "'")))
        return text, files.read(folder .. "/err"), status
    end

    it("prints an array for Slurm, each task of which makes one result", function()
        files.run(("cd '%s' && cp a.h5 \"it's \\$x.h5\""):format(folder))
        local scans = [[a.h5 "it's \$x.h5" b.h5 --into volumes --format tif --slurm]]
        local text, problem, status = script(scans .. " -- -c 11.5 -d host -- -p gpu -a %2")
        assert.equal(0, status, problem)
        assert.equal("", problem)
        assert.matches("#SBATCH --array=1-3%2\n", text, 1, true)
        assert.matches("#SBATCH --partition=gpu\n", text, 1, true)
        assert.matches("\nexec %S+ reconstruct \"$1\" %-o \"$2\" %-c 11.5 %-%-resume auto %-%-device host\n",
            text)
        files.write(folder .. "/job.sh", text)
        local function task(number)
            local output, _, code = files.run(("cd '%s' && exec 2>&1 && SLURM_ARRAY_TASK_ID=%d "
                .. "SLURM_CPUS_PER_TASK=1 sh job.sh"):format(folder, number))
            return code, output
        end
        for number = 1, 3 do
            assert.equal(0, task(number))
        end
        assert.same({"a.tif", "b.tif", "it's $x.tif"}, files.list(folder .. "/volumes"))
        local facts = mb.system.stat(folder .. "/volumes/a.tif")
        local code, output = task(1) -- submitted again
        assert.equal(0, code)
        assert.matches("^finished   volumes/a.tif is there", output)
        assert.equal(facts.inode, mb.system.stat(folder .. "/volumes/a.tif").inode)
        code, output = task(4)
        assert.equal(2, code)
        assert.matches("there is no scan 4", output, 1, true)
    end)

    it("asks Slurm for what the scan takes that takes most", function()
        files.run(("'%s' simulate '%s/large.h5' --size 400 --rows 4 --angles 1600 -d host -q"):format(program,
            folder))
        local function memory(words)
            local text, problem, status = script(words)
            assert.equal(0, status, problem)
            return tonumber(text:match "\n#SBATCH %-%-mem=(%d+)M\n"), text
        end
        for _, device in ipairs {"host", "planned:h200"} do
            local words = " --slurm -- -c 11.5 --chunk 4 --pinned 4M -d " .. device
            local most, text = memory("a.h5 large.h5 b.h5" .. words)
            local large, small = memory("large.h5" .. words), memory("a.h5" .. words)
            assert.is_true(math.abs(most - large) <= 16) -- two processes differ by some pages
            local gpu = device ~= "host" -- which has the data
            assert.is_true(gpu or small + 16 < large, small .. " " .. large)
            assert.equal(gpu, text:find("\n#SBATCH --gres=gpu:1\n", 1, true) ~= nil)
            assert.equal(gpu, text:find("\n#SBATCH --time=0:11:00\n", 1, true) ~= nil)
            assert.matches("--device " .. (gpu and "cuda:0" or "host") .. "\n", text, 1, true)
        end
        local _, ranks = memory "a.h5 b.h5 --slurm -- -c 11.5 -d host --ranks 2 --ranks-per-node 2"
        assert.matches("--array=1-2\n#SBATCH --nodes=1\n#SBATCH --ntasks=2\n#SBATCH --ntasks-per-node=2\n",
            ranks, 1, true)
        assert.matches("\nexec srun --mpi=pmix ", ranks, 1, true)
        local own = files.run(("cd '%s' && '%s' --budget 1G batch a.h5 --slurm -- -d host"):format(folder,
            program))
        assert.matches("--budget=1G reconstruct \"$1\" -o \"$2\" --resume auto --device host\n", own, 1, true)
    end)

    it("refuses what no array can do", function()
        for words, problem in pairs {
            ["a.h5 broken.h5 --slurm -- -d host"] = "there is no plan of 'broken.h5': leave it out, or mend it",
            ["a.h5 --slurm --stop"] = "--stop is for scans one after the other",
            ["a.h5 -- --slurm"] = "--slurm stands before --",
            ["a.h5 --slurm -- --part 1/2"] = "--part cannot be used here",
            ["a.h5 --slurm -- -d host -- --array=1-2"] = "as in --array=%4",
            ["a.h5 --slurm -- --nothing"] = "unknown option --nothing",
        } do
            local text, told, status = script(words)
            assert.equal(words:find "broken" and 1 or 2, status, words .. "\n" .. told)
            assert.equal("", text)
            assert.matches(problem, told, 1, true)
        end
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
