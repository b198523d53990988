-- Pipelines on several ranks that mpirun has started: the result has the bits of a run without MPI,
-- each rank takes the memory that its plan says, and a run goes on with another number of ranks.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

-- A run of a recipe into FOLDER/OUT. A rank that is told so kills itself in a block.
local RUN <const> = [[
local mb = require "moonbeam"
local rank, blocks, options = mb.cluster.rank, 0, OPTIONS
local OWN = {{name = "smooth_frames", summary = "Smooths each frame.",
    takes = {quantity = "any", layout = "frames"}, gives = {quantity = "same", layout = "same"},
    cuts = {"frames"},
    run = function(block)
        if not mb.device.dry() then
            blocks = blocks + 1
            mb.system.sleep(options.slow or 0)
            if options.kill == rank and blocks == options.at then
                os.execute("kill -KILL " .. mb.system.pid())
            end
        end
        block:replace(mb.gaussian_filter(block.data, {0, 0.8, 0.8}))
    end}}
if options.refuse == rank then
    local activate = require "moonbeam.pipeline.activate"
    local section = activate.section
    function activate.section(made, i, ...) -- as if less memory were there
        local plan = require "moonbeam.pipeline.plan"
        return section(plan.again(made, i, {host = made.sections[i].reserved.host - 1}), i, ...)
    end
end
local scan <close> = assert(mb.scan.open "FOLDER/scan.h5")
local p = mb.pipeline(scan, RECIPE, {block = options.block or 1, steps = OWN, quiet = true,
    scratch = "FOLDER/scratch"})
local done = p:run {output = "FOLDER/" .. (options.out or "out.h5"), resume = options.resume,
    overwrite = true}
if rank == 0 and not done.complete then
    assert(done.as_planned and #(done.ranks or {}) == (mb.cluster.size > 1 and mb.cluster.size or 0))
    for _, own in ipairs(done.ranks or {}) do
        assert(own.as_planned and own.predicted[1] == own.measured[1])
        assert(own.planned_pinned == own.pinned)
    end
    print(done.totals.mended[1], mb.cluster.size)
end
local all = mb.cluster.sum({[rank] = blocks})
local counts = mb.cluster.gather(done.plan and done.plan.sections[1].count)
if rank == 0 then
    print("smoothed", all)
    print("rows", table.unpack(counts))
    print("warnings", table.concat(done.warnings or {}, "; "))
end
]]

local RECIPES <const> = {
    {"of one section, with what is measured", [[{"flat_field", "minus_log", {"center"}, {"fbp"}}]]},
    {"with a store between sections", [[{"flat_field", "smooth_frames", "minus_log",
        {"fbp", center = 11.5, circle = 0}}]]},
    {"with sums over all data", [[{"flat_field", "minus_log", {"fbp", center = 11.5, circle = 0},
        {"rescale", dtype = "uint16", percentiles = {1, 99}}}]]},
    {"with iterations", [[{"flat_field", "minus_log", {"cgls", center = 11.5, iterations = 4}}]]},
}

describe("a pipeline on several ranks", function()
    local folder

    local function text(recipe, options)
        return (RUN:gsub("FOLDER", folder):gsub("RECIPE", (recipe:gsub("%%", "%%%%")))
            :gsub("OPTIONS", options or "{}"))
    end

    local function bits(name)
        local file <close> = assert(mb.h5.open(folder .. "/" .. (name or "out.h5")))
        local volume <close> = file:read "/entry/data/data"
        return volume:to_string(), volume.dtype
    end

    local function left()
        return (files.run(("cd '%s' && ls -A . scratch | grep -v -e scan.h5 -e '[.]lua' -e '^$' "
            .. "-e '^scratch$' -e ':$'"):format(folder)))
    end

    -- The bits of a run without MPI.
    local function alone(recipe, options)
        local output, ok = files.run_script(folder, text(recipe, options))
        assert(ok, output)
        return bits()
    end

    setup(function()
        folder = files.folder()
        assert(mb.system.mkdir(folder .. "/scratch"))
        local said, made = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 --angles 30 "
            .. "-d host -q"):format(os.getenv "MOONBEAM_BIN" or mb.system.program(), folder))
        assert(made, said)
    end)
    teardown(function()
        files.remove(folder)
    end)
    before_each(function()
        files.run(("rm -rf '%s'/out* '%s'/scratch/*"):format(folder, folder))
    end)

    for _, case in ipairs(RECIPES) do
        ranks.it(case[1] .. " has the same bits, and the memory of its plan", function()
            local expected, dtype = alone(case[2])
            for _, count in ipairs {1, 2, 3, 4} do
                local output, status = ranks.run(folder, count, text(case[2]))
                assert.equal(0, status, output)
                assert.matches("^%d+\t" .. count, output)
                local same, other = bits()
                assert.is_true(same == expected, ("other bits with %d ranks"):format(count))
                assert.equal(dtype, other)
                assert.equal("out.h5\n", left())
            end
        end)
    end

    ranks.it("ends as a whole if a rank is killed, and goes on with another number of ranks",
        function()
        local recipe = RECIPES[2][2]
        local expected = alone(recipe)
        os.remove(folder .. "/out.h5")
        for _, killed in ipairs {0, 2} do
            local began = mb.system.clock()
            local output, status = ranks.run(folder, 3, text(recipe,
                ("{kill = %d, at = 4, slow = 0.05}"):format(killed)))
            assert.equal(137, status, output)
            assert.matches("rank " .. killed, output)
            assert.is_true(mb.system.clock() - began < 10)
            assert.is_nil(mb.system.stat(folder .. "/out.h5"))
            local noted = 0
            for _, name in ipairs {"journal", "journal-1", "journal-2"} do
                local _, rows = files.read(("%s/out.h5.unfinished/%s"):format(folder, name))
                    :gsub('"rows"', "")
                noted = noted + rows
            end
            assert.is_true(noted >= 3, noted)
            output, status = ranks.run(folder, 2, text(recipe, "{resume = true}"))
            assert.equal(0, status, output)
            assert.is_true(bits() == expected)
            assert.equal("out.h5\n", left())
            os.remove(folder .. "/out.h5")
        end
    end)

    ranks.it("makes only what is left", function()
        local recipe = RECIPES[2][2]
        local expected = alone(recipe)
        os.remove(folder .. "/out.h5")
        local output, status = ranks.run(folder, 2, text(recipe, "{kill = 1, at = 12, slow = 0.05}"))
        assert.equal(137, status, output)
        output, status = ranks.run(folder, 3, text(recipe, "{resume = true}"))
        assert.equal(0, status, output)
        assert.is_true(tonumber(output:match "smoothed\t(%d+)") < 20, output)
        assert.is_true(bits() == expected)
        os.remove(folder .. "/out.h5")
        -- Without ranks the store is in memory, so that the first section runs again.
        output, status = ranks.run(folder, 2, text(recipe, "{kill = 1, at = 12, slow = 0.05}"))
        assert.equal(137, status, output)
        output, status = files.run_script(folder, text(recipe, "{resume = true}"))
        assert.is_true(status, output)
        assert.is_true(bits() == expected)
    end)

    ranks.it("is refused while another run works on the same result", function()
        local output, status = files.run(("'%s' -e 'u = require(\"moonbeam.core\").unfinished.begin("
            .. "\"%s/out.h5\") u:append(\"x\") os.execute([[%s]])'"):format(
            os.getenv "MOONBEAM_BIN" or mb.system.program(), folder,
            (ranks.command(2, "reconstruct " .. folder .. "/scan.h5 -o " .. folder
            .. "/out.h5 --resume"):gsub("'", ""))))
        assert.is_true(status, output)
        assert.matches("process %d+ on %S+ is at work on", output)
    end)

    ranks.it("is one run on all ranks", function()
        local program = os.getenv "MOONBEAM_BIN" or mb.system.program()
        local own = ("reconstruct '%s/scan.h5' -q -o '%s/out.h5'"):format(folder, folder)
        for _, case in ipairs {{"-f hann", "recipe must be the same on all ranks: rank 0 on %S+ has "
            .. "'[^\n]*shepp%-logan[^\n]*rank 1 on %S+ has '[^\n]*hann"},
            {"-c 11", "recipe must be the same"}, {"--output-dtype uint16", "recipe must be the same"},
            {"--rows 1:2", "rows must be the same on all ranks: rank 0 on %S+ has '1:6'"},
            {("-o '%s/out2.h5'"):format(folder), "name must be the same"}} do
            local output, _, status = files.run(("%s : -n 1 '%s' %s %s"):format(
                ranks.command(1, own), program, own, case[1]))
            assert.equal(1, status, output)
            assert.matches(case[2], output)
            assert.equal("", left())
        end
    end)

    ranks.it("has its memory on all ranks before the first block, or smaller blocks on all", function()
        local recipe = RECIPES[3][2]
        local expected = alone(recipe)
        local output, status = ranks.run(folder, 3, text(recipe, "{block = 2, refuse = 1}"))
        assert.equal(0, status, output)
        assert.matches("rows\t1\t1\t1\n", output)
        assert.is_true(bits() == expected)
        output = ranks.run(folder, 3, text(recipe, "{block = 2}"))
        assert.matches("rows\t2\t2\t2\n", output)
    end)

    ranks.it("leaves nothing if nothing was finished", function()
        local output, status = ranks.run(folder, 3, (text(RECIPES[1][2]):gsub("if options.kill.-end",
            ""):gsub('{"fbp"}', '{"fbp"}, {"fails"}'):gsub("local OWN = {{", [[
            local OWN = {{name = "fails", summary = "Fails.", takes = {quantity = "any",
                layout = "any"}, gives = {quantity = "same", layout = "same"}, cuts = {"rows"},
                run = function()
                    if not mb.device.dry() then error(mb.error("io", "no such luck"), 0) end
                end}, {]])))
        assert.equal(1, status, output)
        assert.matches("no such luck", output)
        assert.equal("", left())
    end)

    ranks.it("says what is kept if a rank fails", function()
        local output, status = ranks.run(folder, 2, (text(RECIPES[2][2], "{kill = 1, at = 4, slow "
            .. "= 0.05}"):gsub("os.execute%b()", "error('no such luck', 0)")
            :gsub("overwrite = true", "tell = rank == 0 and print or nil")))
        assert.equal(1, status, output)
        local _, count = output:gsub("no such luck", "")
        assert.equal(1, count, output)
        assert.matches("rank 1 on %S+: [^\n]*no such luck", output)
        assert.matches("keeps 0 of 6 rows: go on with", output)
        assert.is_nil(output:find("interrupted", 1, true), output)
        output, status = ranks.run(folder, 1, text(RECIPES[2][2], "{resume = true}"))
        assert.equal(0, status, output)
    end)

    ranks.it("says what is wrong once, with a store that not all ranks can see", function()
        local output, status = ranks.run(folder, 2, (text(RECIPES[2][2]):gsub('"[^"]*/scratch"',
            "nil")))
        assert.equal(1, status)
        local _, count = output:gsub("give a folder on a disk that they share", "")
        assert.equal(1, count, output)
        assert.is_nil(output:find("rank 0 on", 1, true), output)
    end)

    ranks.it("is the fixed chain of the program, too", function()
        local program = os.getenv "MOONBEAM_BIN" or mb.system.program()
        for _, more in ipairs {"", "--output-dtype uint16", "--method sirt --iterations 3"} do
            local words = ("reconstruct '%s/scan.h5' --chunk 1 %s -o '%s/%%s.h5'"):format(folder, more,
                folder)
            local output, ok = files.run(("'%s' %s -q"):format(program, words:format "out"))
            assert.is_true(ok, output)
            local status
            output, _, status = files.run(ranks.command(3, ("%s --log '%s/out.log'"):format(
                words:format "out3", folder)))
            assert.equal(0, status, output)
            assert.is_true((bits()) == (bits "out3.h5"))
            for rank = 0, 2 do
                local predicted, measured = output:match(("rank %d on %%S+ host, predicted (%%d+) "
                    .. "bytes, measured (%%d+) bytes"):format(rank))
                assert.equal(assert(predicted, output), measured)
            end
            local _, reports = output:gsub("\nmemory ", "")
            assert.equal(1, reports, output)
            assert.matches("reconstructing: 6 slices", output)
            local _, logged = files.read(folder .. "/out.log"):gsub("reconstructing: 6 slices", "")
            assert.equal(1, logged)
            files.run(("rm -f '%s'/out*"):format(folder))
        end
    end)

    ranks.it("writes any kind of result", function()
        local words = ("reconstruct '%s/scan.h5' --chunk 1 -q -o '%s/out%%s %%s"):format(folder,
            folder)
        local program = os.getenv "MOONBEAM_BIN" or mb.system.program()
        for _, case in ipairs {{".tif", ""}, {".zarr", ""}, {".h5", "--slices-per-file 2"}} do
            local one, several = "1" .. case[1], "3" .. case[1]
            assert.is_true(select(2, files.run(("'%s' %s"):format(program,
                words:format(one .. "'", case[2])))))
            local output, _, status = files.run(ranks.command(3, words:format(several .. "'",
                case[2])))
            assert.equal(0, status, output)
            local a <close> = mb.volumes.load(mb.images.open(folder .. "/out" .. one), "host")
            local b <close> = mb.volumes.load(mb.images.open(folder .. "/out" .. several), "host")
            assert.is_true(a:to_string() == b:to_string(), case[1])
        end
        assert.is_nil(left():find("unfinished", 1, true))
    end)

    it("is not written by several nodes into one file of NFS", function()
        local problem = require "moonbeam.pipeline.shares.rank_result".problem
        local nfs, lustre = {network = true}, {network = false}
        assert.is_nil(problem(nfs, 1, nil, 4))
        assert.is_nil(problem(lustre, 2, nil, 4))
        assert.is_nil(problem(nfs, 2, 4, 8))
        assert.matches("2 nodes cannot write the same file", problem(nfs, 2, nil, 4))
        assert.matches("whole files", problem(nfs, 2, 3, 4))
        assert.is_false(mb.system.space("/proc").network)
    end)

    ranks.it("needs little shared memory", function()
        local mount = "unshare -m sh -c 'mount -t tmpfs -o size=64M none /dev/shm && exec \"$@\"' sh"
        if not select(2, files.run(mount .. " true")) then
            helper.skip "nothing can be mounted here"
        end
        files.write(folder .. "/shm.lua", text(RECIPES[3][2], "{}"))
        local expected = alone(RECIPES[3][2])
        local output, _, status = files.run(mount .. " env "
            .. ranks.command(4, folder .. "/shm.lua"))
        assert.equal(0, status, output)
        assert.is_true(bits() == expected)
    end)
end)
