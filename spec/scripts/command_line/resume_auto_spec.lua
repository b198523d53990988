-- --resume auto: the same command begins a run, goes on with it wherever it was killed, and finds it
-- finished (command_line/resuming.lua).

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

local BIN <const> = helper.program

describe("--resume auto", function()
    local folder

    local function run(words)
        local output, _, status = files.run(("exec 2>&1; cd '%s' || exit 9\n%s"):format(folder, words))
        return output, status
    end

    local function moonbeam(words)
        return run(("'%s' %s"):format(BIN, words))
    end

    local function must(words)
        local output, status = moonbeam(words)
        assert.equal(0, status, output)
        return output
    end

    -- The command, killed at a step of writing: was it?
    local function kill(command, words, step)
        local output, status = run(("'%s' -e 'require([[moonbeam]]).debug.fail_step(%d)' "
            .. "'%s/scripts/%s.lua' %s"):format(BIN, step, mb.system.cwd(), command, words))
        assert(status == 0 or status >= 128, output)
        return status ~= 0
    end

    local function values(path)
        local volume <close> = mb.images.read(folder .. "/" .. path, "host")
        return volume:to_table()
    end

    setup(function()
        folder = files.folder()
        must "simulate scan.h5 --size 24 --rows 8 --angles 30 -d host -q"
        must "psf -o q.tif --na 0.5 --index 1 --wavelength 500 --pixel 200 --step 500 --size 3,5,5 -d host -q"
        local image <close> = mb.random({12, 20, 24}, {seed = 1, device = "host"})
        mb.images.write(folder .. "/j.tif", image)
        files.write(folder .. "/r.lua", '{"flat_field", "minus_log", {"fbp", center = 11.5}}')
    end)
    teardown(function()
        files.remove(folder)
    end)

    -- Command, its words, the result, and the steps at which it is killed.
    local RUNS <const> = {
        {"reconstruct", "scan.h5 -c 11.5 -d host --chunk 2", "a.h5", {1, 6, 20}},
        {"reconstruct", "scan.h5 -c 11.5 -d host --chunk 2", "a.zarr", {12}},
        {"reconstruct", "scan.h5 --recipe r.lua -d host --chunk 2", "b.tif", {16}},
        {"deconvolve", "j.tif q.tif --iterations 2 --tiles exact --tile 6,20,24 -d host", "c.tif",
            {5, 20}},
        {"deconvolve", "j.tif q.tif --iterations 2 -d host", "d.tif", {1}},
    }

    for _, case in ipairs(RUNS) do
        local command, words, result, steps = table.unpack(case)
        it(("begins %s to %s, goes on and finds it finished"):format(command, result), function()
            must(("%s %s -o plain-%s -q"):format(command, words, result))
            local expected, killed = values("plain-" .. result), 0
            local auto = ("%s -o %s --resume auto"):format(words, result)
            for _, step in ipairs(steps) do
                run("rm -rf " .. result .. "*")
                killed = killed + (kill(command, auto, step) and 1 or 0)
                must(command .. " " .. auto .. " -q")
                assert.same(expected, values(result))
                assert.is_nil(mb.system.stat(folder .. "/" .. result .. ".unfinished"))
            end
            assert.is_true(killed > 0 or #steps == 1, killed .. " of " .. #steps)
            local facts = mb.system.stat(folder .. "/" .. result)
            assert.matches(("finished   %s is there: nothing to do"):format(result),
                must(command .. " " .. auto), 1, true)
            assert.equal("", must(command .. " " .. auto .. " -q"))
            assert.equal(facts.inode, mb.system.stat(folder .. "/" .. result).inode)
            must(command .. " " .. auto .. " --overwrite -q") -- as the message advises
            assert.not_equal(facts.inode, mb.system.stat(folder .. "/" .. result).inode)
        end)
    end

    it("goes on after a signal, and says that the same command does", function()
        local words = "scan.h5 -c 11.5 -d host --chunk 1 --method sirt --iterations 300 -o s.h5 "
            .. "--resume auto"
        local output, status = run(("'%s' reconstruct %s & id=$!; while [ $(cat s.h5.unfinished/"
            .. "journal 2>/dev/null | grep -ac '\"rows\" [0-9]') = 0 ] && kill -0 $id; do sleep 0.02; "
            .. "done; kill $id; wait $id"):format(BIN, words))
        assert.equal(143, status, output)
        assert.matches("keeps %d+ of 8 rows: the same command goes on, or start anew with "
            .. "%-%-discard", output)
        assert.matches("has %d of 8 rows already", must("reconstruct " .. words))
    end)

    it("is for each part", function()
        for _ = 1, 2 do
            for number = 1, 2 do
                must(("reconstruct scan.h5 -c 11.5 -d host -o p.h5 --part %d/2 -q --resume auto")
                    :format(number))
            end
        end
        must "join p-part-1-of-2.h5 p-part-2-of-2.h5 -o p.h5 -q"
        assert.same(values "plain-a.h5", values "p.h5")
    end)

    it("is for several images", function()
        run "mkdir into"
        for _, expected in ipairs {"1 done, 0 skipped", "0 done, 1 skipped"} do
            assert.matches(expected, must("deconvolve j.tif --into into --psf q.tif --iterations 2 -d "
                .. "host --resume auto"), 1, true)
        end
    end)

    ranks.it("is for ranks that share tiles", function()
        for _, expected in ipairs {"range [%d.]+ to [%d.]+: u.tif\n", "finished   u.tif"} do
            local output, status = run(ranks.command(2, "deconvolve j.tif q.tif --iterations 2 --tiles "
                .. "exact --tile 6,20,24 -d host -o u.tif --resume auto"))
            assert.equal(0, status, output)
            assert.matches(expected, output)
        end
    end)

    it("replaces no picture where it begins", function()
        files.write(folder .. "/mine.png", "mine")
        local output, status = moonbeam("reconstruct scan.h5 -c 11.5 -d host -o n.h5 --preview "
            .. "mine.png --resume auto")
        assert.equal(1, status)
        assert.matches("--preview mine.png already exists", output, 1, true)
        assert.equal("mine", files.read(folder .. "/mine.png"))
        assert.is_nil(mb.system.stat(folder .. "/n.h5"))
    end)

    it("is one word of its option", function()
        for _, words in ipairs {"reconstruct scan.h5 --resume=yes", "deconvolve j.tif q.tif -o x.tif "
            .. "--resume=1", "batch scan.h5 --resume=no"} do
            local output, status = moonbeam(words)
            assert.equal(2, status, output)
            assert.matches("--resume takes no value but auto", output, 1, true)
        end
        local output, status = moonbeam "reconstruct scan.h5 --resume auto --discard"
        assert.equal(2, status, output)
        assert.matches("give one of them", output, 1, true)
        assert.matches("--resume [auto]", must "deconvolve --help", 1, true)
    end)

    it("plans what a run takes", function()
        assert.matches("process    at most", must("reconstruct scan.h5 -c 11.5 --plan --resume auto "
            .. "-d host -o plain-a.h5"), 1, true)
    end)

    ranks.it("ends all ranks that find it finished", function()
        for _, expected in ipairs {"wrote      m.h5", "finished   m.h5"} do
            local output, status = run(ranks.command(2, "reconstruct scan.h5 -c 11.5 -d host "
                .. "--chunk 2 -o m.h5 --resume auto"))
            assert.equal(0, status, output)
            assert.matches(expected, output, 1, true)
        end
    end)

    it("is what processes of batch share a list with", function()
        run "mkdir made; for at in 1 2 3 4; do cp scan.h5 l$at.h5; done"
        local batch = ("'%s' batch l1.h5 l2.h5 l3.h5 l4.h5 --into made --resume auto -- -c 11.5 -d "
            .. "host -q"):format(BIN)
        local output, status = run(("%s > one & id=$!; %s > two; status=$?; wait $id || exit 1; "
            .. "cat one two; exit $status"):format(batch, batch))
        assert.equal(0, status, output)
        local done = 0
        for count in output:gmatch "scans      (%d) done, %d skipped, 0 failed of 4" do
            done = done + tonumber(count)
        end
        assert.is_true(done >= 4, output) -- one that is found finished counts as done
        for at = 1, 4 do
            assert.same(values "plain-a.h5", values(("made/l%d.h5"):format(at)))
        end
        assert.matches("give --resume auto or --skip-done", (moonbeam "batch scan.h5 --resume"), 1,
            true)
    end)
end)
