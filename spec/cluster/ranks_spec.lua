-- Pipelines on several ranks that mpirun has started: the result has the bits of a run without MPI,
-- and each rank takes the memory that its plan says.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local rank_pipelines = require "spec.support.rank_pipelines"
local ranks = require "spec.support.ranks"

local RECIPES <const> = rank_pipelines.RECIPES

describe("a pipeline on several ranks", function()
    local own, folder, session, text, bits, left, alone
    setup(function()
        own = rank_pipelines.open()
        folder, session = own.folder, own.session
        text, bits, left, alone = own.text, own.bits, own.left, own.alone
    end)
    teardown(function()
        own.close()
    end)
    before_each(function()
        own.clean()
    end)

    for _, case in ipairs(RECIPES) do
        ranks.it(case[1] .. " has the same bits, and the memory of its plan", function()
            local expected, dtype = alone(case[2])
            for _, count in ipairs {1, 2, 3, 4} do
                local output, status = session:run(count, text(case[2]))
                assert.equal(0, status, output)
                assert.matches("^%d+\t" .. count, output)
                local same, other = bits()
                assert.is_true(same == expected, ("other bits with %d ranks"):format(count))
                assert.equal(dtype, other)
                assert.equal("out.h5\n", left())
            end
        end)
    end

    ranks.it("is one run on all ranks", function()
        local program = os.getenv "MOONBEAM_BIN" or mb.system.program()
        local words = ("reconstruct '%s/scan.h5' -q -o '%s/out.h5'"):format(folder, folder)
        for _, case in ipairs {{"-f hann", "recipe must be the same on all ranks: rank 0 on %S+ has "
            .. "'[^\n]*shepp%-logan[^\n]*rank 1 on %S+ has '[^\n]*hann"},
            {"-c 11", "recipe must be the same"}, {"--output-dtype uint16", "recipe must be the same"},
            {"--rows 1:2", "rows must be the same on all ranks: rank 0 on %S+ has '1:6'"},
            {("-o '%s/out2.h5'"):format(folder), "name must be the same"}} do
            local output, _, status = files.run(("%s : -n 1 '%s' %s %s"):format(
                ranks.command(1, words), program, words, case[1]))
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
        output = session:run(3, text(recipe, "{block = 2}"))
        assert.matches("rows\t2\t2\t2\n", output)
    end)

    ranks.it("says what is wrong once, with a store that not all ranks can see", function()
        local output, status = ranks.run(folder, 2, (text(RECIPES[2][2], "{host_budget = 512}")
            :gsub('"[^"]*/scratch"', "nil")))
        assert.equal(1, status)
        local _, count = output:gsub("or give a folder on a disk that they share by the option scratch", "")
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
        for _, case in ipairs {{".tif", ""}, {".zarr", ""},
            {".zarr", "--zarr-layout chunks --overwrite"}, {".h5", "--slices-per-file 2"}} do
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
