-- mb.cluster: the ranks that mpirun has started, and one process without it.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

local cluster = mb.cluster

-- Each rank takes packets and finds something in each; rank 0 prints what all have found.
local SUMS <const> = [[
local cluster = require "moonbeam".cluster
local parts, taken = {}, {}
for first, last in function() return cluster.next(1, 37, {packet = 4, count = 8}) end do
    taken[#taken + 1] = {first, last}
    for row = first, last do
        parts[row] = {0.1 * row, row}
    end
end
local sum, all = cluster.sum(parts), cluster.gather(taken)
local ranges = {}
for _, own in ipairs(all) do
    table.move(own, 1, #own, #ranges + 1, ranges)
end
table.sort(ranges, function(a, b) return a[1] < b[1] end)
if cluster.rank == 0 then
    print(("%a %d"):format(sum[1], sum[2]))
    for _, range in ipairs(ranges) do
        print(range[1], range[2])
    end
end
]]

describe("mb.cluster", function()
    local folder, session
    setup(function()
        folder = files.folder()
        session = ranks.session(folder)
    end)
    teardown(function()
        session:close()
        files.remove(folder)
    end)

    it("is one rank without a launcher", function()
        assert.equal(0, cluster.rank)
        assert.equal(1, cluster.size)
        assert.same({1, 8}, {cluster.next(1, 20, {packet = 4, file = 8})})
        assert.same({9, 16}, {cluster.next(1, 20, {packet = 4, file = 8})})
        assert.same({17, 20}, {cluster.next(1, 20, {packet = 4, file = 8})})
        assert.is_nil(cluster.next(1, 20, {packet = 4, file = 8}))
        assert.same({1, 6}, {cluster.next(1, 6, {packet = 6})})
        assert.is_nil(cluster.next(1, 6, {packet = 6}))
        assert.equal(6, cluster.sum {[3] = 1, [1] = 2, [2] = 3})
        assert.is_nil(cluster.sum {})
        assert.equal("213", cluster.sum({[3] = "3", [1] = "2", [2] = "1"}, function(a, b)
            return a .. b
        end))
        assert.equal(5, cluster.agree(5, "five"))
        assert.same({{a = 0.1}}, cluster.gather {a = 0.1})
        assert.same({false}, cluster.gather(nil))
        for _, text in ipairs {"", "=", "= a\0\n\"\\", "{}", "a b"} do
            assert.same({text}, cluster.gather(text))
            assert.equal(text, cluster.once(function() return text end))
        end
        assert.same({1, nil, 3}, {cluster.once(function() return 1, nil, 3 end)})
        cluster.barrier()
    end)

    it("says what is wrong with an argument", function()
        assert.matches("packet is 0", (helper.failure(cluster.next, 1, 2, {packet = 0})))
        assert.matches("numbers of packets", (helper.failure(cluster.sum, {a = 1})))
        assert.matches("a function cannot go to other ranks", (helper.failure(cluster.gather, {print})))
        assert.matches("one length", (helper.failure(cluster.sum, {{1}, {1, 2}})))
    end)

    it("hands done work to rank 0", function()
        local take = cluster.deal {"a", "b"}
        assert.equal("a", take())
        assert.equal(0, cluster.done())
        assert.equal("b", take(7))
        assert.is_nil(take(5))
        assert.is_nil(take())
        assert.equal(12, cluster.done())
    end)

    ranks.it("has the same sums for any number of ranks", function()
        local alone = assert(files.run_script(folder, SUMS))
        for _, count in ipairs {1, 2, 3, 4} do
            local output, status = session:run(count, SUMS)
            assert.equal(0, status, output)
            assert.equal(alone, output)
        end
    end)

    ranks.it("gives what rank 0 finds to all", function()
        local output, status = session:run(3, [[
            local cluster = require "moonbeam".cluster
            local count = 0
            local a, b, c = cluster.once(function()
                count = count + 1
                return 0.1, nil, {text = "x\ny"}
            end)
            assert(a == 0.1 and b == nil and c.text == "x\ny")
            assert(count == (cluster.rank == 0 and 1 or 0))
            assert(cluster.node_size == 3 and cluster.nodes == 1 and cluster.library ~= "")
            assert(cluster.agree({1, 2}, "a list")[2] == 2)
        ]])
        assert.equal(0, status, output)
    end)

    ranks.it("ends all ranks with one line, which names the rank that fails", function()
        for _, case in ipairs {
            {"if cluster.rank == 2 then error('no disk') end", "%f[%w]rank 2 on [^\n]*no disk"},
            {"if cluster.rank == 1 then cluster.abort 'no frames' end", "%f[%w]rank 1 on %S+: no frames"},
            {"if cluster.rank == 0 then error 'ends' end", "%f[%w]rank 0 on [^\n]*ends"},
            {"error('all fail', 0)", "%f[^\n%z]/[^ ]*moonbeam: all fail"},
            {"cluster.agree(cluster.rank % 2, 'parity')", "parity must be the same on all ranks: "
                .. "rank 0 on %S+ has 0, rank 1 on %S+ has 1"},
            {"if cluster.rank == 1 then os.exit(0, true) end", "some ranks have ended"},
            {"if cluster.rank == 1 then cluster.gather(1) end", "rank 0 is in cluster.barrier, rank 1 in "
                .. "cluster.gather: all ranks must make the same calls"},
            {"if cluster.rank == 0 then pcall(cluster.gather, 1, function() error 'x' end) "
                .. "cluster.gather(2) else os.execute 'sleep 1' end", "rank 0 on %S+: [^\n]*a call of "
                .. "cluster.gather has not come to its end"},
            {"if cluster.rank == 0 then pcall(cluster.gather, 1, function() error 'x' end) "
                .. "os.execute 'sleep 1' cluster.gather(2) else os.execute 'sleep 0.3' "
                .. "cluster.gather(3) end", "has not come to its end"},
            {"if cluster.rank == 1 then cluster.sum {} end", "rank 0 is in cluster.barrier, rank 1 in "
                .. "cluster.sum"},
            {"if cluster.rank == 1 then os.exit(7, true) end", "%f[%w]rank 1 on %S+: .-status 7", 7},
            {"if cluster.rank == 1 then os.exit(256, true) end", "rank 1 on %S+: .-status 256", 1},
            {"if cluster.rank == 2 then os.exit(-1) end", "rank 2 on %S+: .-status %-1", 255},
        } do
            local began = mb.system.clock()
            local output, status = ranks.run(folder, 3, "local cluster = require 'moonbeam'.cluster "
                .. case[1] .. " cluster.barrier()")
            assert.equal(case[3] or 1, status, output)
            assert.matches(case[2], output)
            local _, lines = output:gsub("moonbeam[^\n]*: ", "")
            assert.is_true(lines <= 1, output)
            assert.is_true(not case[1]:find "all fail" or not output:find "rank 0 on", output)
            assert.is_true(mb.system.clock() - began < 10)
        end
    end)

    ranks.it("fails with its status if it is the only one", function()
        for status, expected in pairs {[256] = 1, [7] = 7} do
            local output, ended = ranks.run(folder, 1, ("os.exit(%d, true)"):format(status))
            assert.equal(expected, ended)
            assert.is_nil(output:find("improperly", 1, true), output)
        end
    end)

    ranks.it("ends all ranks if one is killed", function()
        local began = mb.system.clock()
        local output, status = ranks.run(folder, 3, [[
            local mb = require "moonbeam"
            if mb.cluster.rank == 1 then
                os.execute("kill -KILL " .. mb.system.pid())
            end
            mb.cluster.barrier()
        ]], ranks.PATIENT)
        assert.equal(137, status, output)
        assert.matches("\nrank 1 on %S+ has died without a word: killed, or out of memory\n",
            "\n" .. output)
        assert.equal(1, select(2, output:gsub("%f[%w]rank %d on ", "")), output)
        assert.is_true(mb.system.clock() - began < 10)
    end)

    ranks.it("answers within a few milliseconds while all processors compute", function()
        local output, status = session:run(4, [[
            local mb = require "moonbeam"
            local cluster, clock = mb.cluster, mb.system.clock
            local list = {}
            for i = 1, 50 do list[i] = i end
            local take = cluster.deal(list)
            cluster.barrier()
            local began, times = clock(), {}
            -- A thread that yields in each look at messages answers 10 ms later at the median. A
            -- few answers are late in any case, where the system runs others first.
            if cluster.rank ~= 1 then
                while clock() - began < 3 do end
            else
                for i = 1, 50 do
                    local before = clock()
                    take()
                    times[i] = clock() - before
                    mb.system.sleep(0.01)
                end
                table.sort(times)
                print(times[25], times[50], clock() - began)
            end
        ]])
        local middle, most, all = output:match "^(%S+)%s(%S+)%s(%S+)"
        assert.equal(0, status, output)
        assert.is_true(tonumber(middle) < 0.005, output)
        assert.is_true(tonumber(most) < 1 and tonumber(all) < 2.5, output)
    end)

    ranks.it("takes little of a processor while there is nothing to do", function()
        local output, status = session:run(2, [[
            local mb = require "moonbeam"
            mb.cluster.barrier()
            local before = os.clock()
            mb.system.sleep(0.6)
            local took = os.clock() - before
            assert(took < 0.02, took)
        ]])
        assert.equal(0, status, output)
    end)

    ranks.it("runs what rank 0 reads from the standard input on all", function()
        local name = folder .. "/input.lua"
        files.write(name, "#!/usr/bin/env moonbeam\nlocal mb = require 'moonbeam'\n"
            .. "local all = mb.cluster.gather((...) or 'nothing')\n"
            .. "if mb.cluster.rank == 0 then print(arg[0], table.concat(all, ' ')) end")
        for words, expected in pairs {["- a"] = "-\ta a a\n", [""] = "[^\n]*\tnothing nothing "
            .. "nothing\n"} do
            local output, _, status = files.run(ranks.command(3, words .. " < " .. name))
            assert.equal(0, status, output)
            assert.matches("^" .. expected .. "$", output)
        end
        files.write(name, "x = = 1")
        local output, _, status = files.run(ranks.command(3, "- < " .. name))
        assert.equal(1, status)
        assert.matches("\n%S+: stdin:1: unexpected symbol near '='", "\n" .. output)
    end)

    ranks.it("has no prompt for several", function()
        local output, _, status = files.run(ranks.command(2, "-i < /dev/null"))
        assert.equal(2, status)
        assert.matches("\n%S+: the prompt works on one rank, and there are 2: ", "\n" .. output)
    end)

    ranks.it("refuses processes that do not know of each other", function()
        for _, variables in ipairs {"PMI_SIZE=2", "SLURM_STEP_NUM_TASKS=2 PMI_RANK=0",
            "SLURM_NTASKS=2 SLURM_STEP_ID=0 PMI_FD=9", "SLURM_NTASKS=2 SLURM_STEP_ID=0"} do
            local output, _, status = files.run(("env %s '%s' -e 'print(1)'"):format(variables,
                helper.program))
            assert.equal(1, status, output)
            assert.matches("has started 2 processes %(" .. variables:match "^[^=]*", output)
            assert.matches("srun %-%-mpi=pmix", output)
            output = files.run(("env %s '%s' --no-mpi -e 'print(1)'"):format(variables,
                helper.program))
            assert.equal("1\n", output)
        end
    end)

    -- The program as srun without a kind of --mpi starts it: any MPI would say something.
    local function launched(count, words, rank)
        return files.run(("env MOONBEAM_MPI_PLUGIN=/nowhere/x.so SLURM_STEP_ID=0 SLURM_NTASKS=%d "
            .. "SLURM_STEP_NUM_TASKS=%d SLURM_PROCID=%d '%s' %s"):format(count, count, rank or 0,
            helper.program, words))
    end

    it("looks for a PMI before MPI starts", function()
        assert.equal("1\n", (launched(1, "-e 'print(1)'")))
        local output, _, status = launched(2, "-e 'print(1)'")
        assert.equal(1, status)
        assert.matches("^%S+: the launcher has started 2 processes %(SLURM_STEP_NUM_TASKS%) without a "
            .. "PMI, .- srun %-%-mpi=pmix .-%-%-no%-mpi; [^\n]*\n$", output)
        output, _, status = launched(2, "-e 'print(1)'", 1) -- one of them says it
        assert.equal(1, status)
        assert.equal("", output)
        assert.equal("1\n", (launched(2, "--no-mpi -e 'print(1)'")))
        output, _, status = launched(2, "--mpi -e 'print(1)'")
        assert.equal(1, status)
        assert.matches("need /nowhere/x%.so to work together", output)
    end)

    it("starts no MPI for a text and for commands of one rank", function()
        for _, count in ipairs {1, 2} do
            for words, expected in pairs {["--version"] = "^Moonbeam [%d.]+, Lua", ["join --help"] =
                "^usage: moonbeam join", ["reconstruct -h"] = "^usage: moonbeam reconstruct"} do
                local output, _, status = launched(count, words)
                assert.equal(0, status, output)
                assert.matches(expected, output)
            end
            local output, _, status = launched(count, "reconstruct nowhere.h5 --plan")
            assert.equal(1, status)
            assert.matches("^reconstruct: cannot open 'nowhere.h5'", output)
        end
        -- Also where there is a PMI, and one process.
        local output = files.run(("env MOONBEAM_MPI_PLUGIN=/nowhere/x.so OMPI_COMM_WORLD_SIZE=1 "
            .. "PMIX_RANK=0 '%s' join nowhere.h5 -o x.h5"):format(helper.program))
        assert.matches("^join: cannot open 'nowhere.h5'", output)
        for rank, said in pairs {[0] = "the command join works on one rank, and there are 2", ""} do
            local text, _, status = launched(2, "join nowhere.h5 -o x.h5", rank)
            assert.equal(2, status)
            assert.matches(said, text, 1, true)
        end
    end)

    ranks.it("is for commands that share their work", function()
        local output, _, status = files.run(ranks.command(2, "simulate x.h5"))
        assert.equal(2, status, output)
        assert.matches("the command simulate works on one rank, and there are 2", output)
        assert.is_nil(mb.system.stat "x.h5")
    end)

    it("needs the plug-in for several processes, and not for one", function()
        local without = "env MOONBEAM_MPI_PLUGIN=/nowhere/x.so OMPI_COMM_WORLD_SIZE=%d '%s' %s -e "
            .. "'print(1)'"
        local output, _, status = files.run(without:format(2, helper.program, ""))
        assert.equal(1, status)
        assert.matches("has started 2 processes %(OMPI_COMM_WORLD_SIZE%), which need "
            .. "/nowhere/x%.so.-%-%-no%-mpi", output)
        assert.equal("1\n", (files.run(without:format(1, helper.program, ""))))
        output, _, status = files.run(without:format(1, helper.program, "--mpi"))
        assert.equal(1, status)
        assert.matches("cannot load the MPI plug%-in", output)
    end)
end)
