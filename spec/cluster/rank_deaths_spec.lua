-- Ranks that die or are stopped where the launcher does nothing about it, as srun does by default.

local files = require "spec.support.files"
local mb = require "moonbeam"
local rank_pipelines = require "spec.support.rank_pipelines"
local ranks = require "spec.support.ranks"

-- mpirun lets the others go on where a rank has died. It then ends with status 0.
local CARELESS <const> = ranks.PATIENT .. " OMPI_MCA_orte_enable_recovery=1"

local DEATH <const> = "%%f[%%w]rank %d on %%S+ has died without a word: killed, or out of memory\n"
local SILENCE <const> = "%%f[%%w]rank %d on %%S+ has given no sign of life for 2 s: it is stopped"

local function count(text, pattern)
    return select(2, text:gsub(pattern, ""))
end

describe("a rank that is gone", function()
    local own, folder
    setup(function()
        own = rank_pipelines.open()
        folder = own.folder
    end)
    teardown(function()
        own.close()
    end)
    before_each(function()
        own.clean()
    end)

    -- Runs a script; the output comes to its end when the last process has.
    local function run(size, text)
        local began = mb.system.clock()
        local output = ranks.run(folder, size, text, CARELESS)
        assert.is_true(mb.system.clock() - began < 20, output)
        return output
    end

    -- Runs several at the same time: their outputs.
    local function run_all(size, texts)
        local began, outputs = mb.system.clock(), {}
        for i, result in ipairs(ranks.run_all(folder, size, texts, CARELESS)) do
            outputs[i] = result[1]
        end
        assert.is_true(mb.system.clock() - began < 30, table.concat(outputs, "\n"))
        return outputs
    end

    ranks.it("ends all, which finish what is in flight; others go on to the same bits", function()
        local recipe = rank_pipelines.RECIPES[1][2]:gsub("}$", ', "count_rows"}')
        local expected = own.alone(recipe)
        os.remove(folder .. "/out.h5")
        for _, killed in ipairs {1, 0} do
            -- When the rank dies, the others have begun their first blocks.
            local text = own.text(recipe,
                ("{rows = true, kill = %d, at = 1, slow = 0.3, others = 0.6}"):format(killed))
                :gsub("blocks = blocks %+ 1", ([[%%0
                    local name = "%s/serve-begun-"
                    io.open(name .. rank, "w"):close()]]):format(folder))
                :gsub("os.execute", ([[
                    for other = 0, 2 do
                        while not mb.system.stat(name .. other) do mb.system.sleep(0.01) end
                    end
                    %0]]))
                :gsub("overwrite = true", "%0, tell = print")
            local output = run(3, text)
            assert.equal(1, count(output, DEATH:format(killed)), output)
            assert.equal(1, count(output, "%f[%w]rank %d on "), output)
            local kept = output:match "out.h5.unfinished' keeps (%d+) of %d+ rows: go on"
            assert.is_true((tonumber(kept) or 0) >= (killed == 0 and 1 or 2), output)
            output = ranks.run(folder, 2, (text:gsub("{rows = true, kill = %d", "{resume = true")))
            -- Where rank 0 speaks, it has waited for the others.
            local has = tonumber(output:match "has (%d+) of %d+ rows already")
            assert.is_true(killed == 0 and has >= tonumber(kept) or has == tonumber(kept), output)
            assert.is_true(own.bits() == expected)
            assert.equal("out.h5\n", own.left())
            files.run(("rm -f '%s'/serve-begun-*"):format(folder))
            os.remove(folder .. "/out.h5")
        end
    end)

    ranks.it("leaves nothing that is told where nothing was noted", function()
        local text = own.text(rank_pipelines.RECIPES[1][2], "{refuse = 0}")
            :gsub("local plan = require[^\n]*", [[os.execute("kill -KILL " .. mb.system.pid())]])
            :gsub("overwrite = true", "%0, tell = print")
        local output = run(2, text)
        assert.equal(1, count(output, DEATH:format(0)), output)
        assert.is_nil(output:find("keeps", 1, true), output)
        assert.is_truthy(mb.system.stat(folder .. "/out.h5.unfinished/journal"))
    end)

    ranks.it("ends all that wait for it, in each call", function()
        local cases = {{1, "cluster.barrier()"}, {0, "cluster.barrier()"},
            {0, "local take = cluster.deal {1, 2, 3} while true do take(1) end"},
            {2, ""}, {0, ""}}
        local texts = {}
        for i, case in ipairs(cases) do
            texts[i] = ([[
                local mb = require "moonbeam"
                local cluster = mb.cluster
                if cluster.rank == %d then
                    mb.system.sleep(0.3)
                    os.execute("kill -KILL " .. mb.system.pid())
                end
                %s
            ]]):format(case[1], case[2])
        end
        for i, output in ipairs(run_all(3, texts)) do
            assert.equal(1, count(output, DEATH:format(cases[i][1])), output)
            assert.equal(1, count(output, "%f[%w]rank %d on "), output)
        end
    end)

    ranks.it("is no rank that fails, or that is stopped by a signal", function()
        local output = run(3, [[
            local cluster = require "moonbeam".cluster
            if cluster.rank == 2 then error("no disk", 0) end
            cluster.barrier()
        ]])
        assert.matches("rank 2 on %S+: [^\n]*no disk", output)
        output = run(3, [[
            local mb = require "moonbeam"
            mb.cluster.barrier()
            os.execute("kill -TERM " .. mb.system.pid())
            mb.cluster.barrier()
        ]])
        assert.matches("interrupted by SIGTERM", output)
        assert.is_nil(output:find("has died", 1, true), output)
    end)
end)

describe("a rank that is silent", function()
    local folder
    setup(function()
        folder = files.folder()
    end)
    teardown(function()
        files.remove(folder)
    end)

    ranks.it("is told once if it is stopped, and goes on", function()
        local texts = {}
        for stopped = 0, 1 do
            texts[stopped + 1] = ([[
                local mb = require "moonbeam"
                mb.cluster.barrier()
                if mb.cluster.rank == %d then
                    local pid = mb.system.pid()
                    os.execute(("(sleep 5; kill -CONT %%d) & kill -STOP %%d"):format(pid, pid))
                end
                mb.cluster.barrier()
                print "on"
            ]]):format(stopped)
        end
        for i, result in ipairs(ranks.run_all(folder, 3, texts, "MOONBEAM_SILENCE=2")) do
            local output, status = table.unpack(result)
            assert.equal(0, status, output)
            assert.equal(3, count(output, "on\n"), output)
            assert.equal(1, count(output, SILENCE:format(i - 1)), output)
        end
    end)

    ranks.it("is not one that computes, or waits for the system", function()
        local output, status = ranks.run(folder, 3, [[
            local mb = require "moonbeam"
            local began = mb.system.clock()
            if mb.cluster.rank == 0 then
                os.execute "sleep 4"
            end
            while mb.cluster.rank == 1 and mb.system.clock() - began < 4 do end
            mb.cluster.barrier()
        ]], "MOONBEAM_SILENCE=2")
        assert.equal(0, status, output)
        assert.equal("", output)
    end)

    ranks.it("has a time that is checked", function()
        for _, text in ipairs {"0", "1 s", "86401", ""} do
            local output, status = ranks.run(folder, 2, "print(1)", ("MOONBEAM_SILENCE='%s'"):format(text))
            assert.equal(1, status, output)
            assert.matches("MOONBEAM_SILENCE is '" .. text .. "'; it must be the seconds, 1 to 86400",
                output, 1, true)
        end
    end)
end)
