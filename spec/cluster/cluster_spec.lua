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
    local folder
    setup(function()
        folder = files.folder()
    end)
    teardown(function()
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
            local output, status = ranks.run(folder, count, SUMS)
            assert.equal(0, status, output)
            assert.equal(alone, output)
        end
    end)

    ranks.it("gives what rank 0 finds to all", function()
        local output, status = ranks.run(folder, 3, [[
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

    ranks.it("ends all ranks if one is killed", function()
        local began = mb.system.clock()
        local output, status = ranks.run(folder, 3, [[
            local mb = require "moonbeam"
            if mb.cluster.rank == 1 then
                os.execute("kill -KILL " .. mb.system.pid())
            end
            mb.cluster.barrier()
        ]])
        assert.equal(137, status, output)
        assert.matches("rank 1", output)
        assert.is_true(mb.system.clock() - began < 10)
    end)

    ranks.it("answers while rank 0 computes", function()
        local output, status = ranks.run(folder, 2, [[
            local mb = require "moonbeam"
            local cluster, clock = mb.cluster, mb.system.clock
            local list = {}
            for i = 1, 50 do list[i] = i end
            local take = cluster.deal(list)
            cluster.barrier()
            local began, times = clock(), {}
            -- A busy machine makes some answers late: a fifth of them are looked at, and the last.
            if cluster.rank == 0 then
                while clock() - began < 5 do end
            else
                for i = 1, 50 do
                    local before = clock()
                    take()
                    times[i] = clock() - before
                    mb.system.sleep(0.01)
                end
                table.sort(times)
                print(times[10], times[50], clock() - began)
            end
        ]])
        local quick, most, all = output:match "^(%S+)%s(%S+)%s(%S+)"
        assert.equal(0, status, output)
        assert.is_true(tonumber(quick) < 0.01, output)
        assert.is_true(tonumber(most) < 1 and tonumber(all) < 4, output)
    end)

    ranks.it("refuses processes that do not know of each other", function()
        for _, variables in ipairs {"PMI_SIZE=2", "SLURM_STEP_NUM_TASKS=2",
            "SLURM_NTASKS=2 SLURM_STEP_ID=0"} do
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
