-- Stores between sections in the memory of several ranks: bits, bytes, and what becomes of them
-- when a rank is killed.

local commands = require "spec.support.commands"
local files = require "spec.support.files"
local mb = require "moonbeam"
local rank_pipelines = require "spec.support.rank_pipelines"
local ranks = require "spec.support.ranks"
local store = require "moonbeam.pipeline.store"

local RECIPES <const> = rank_pipelines.RECIPES

-- The bytes of a row of 24 numbers, and of the store of RECIPES[2]: 30 frames of 6 rows.
local LINE <const>, FRAME <const>, FRAMES <const> = 24 * 4, 6 * 24 * 4, 30

describe("a store of several ranks", function()
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

    -- What each of so many ranks takes for the store of RECIPES[2].
    local function bytes_of(count)
        local share = math.ceil(FRAMES / count) * FRAME
        return mb.pool.round(share) + mb.pool.round(4 * math.max(LINE, share // 4))
    end

    it("takes the same bytes of each, known beforehand", function()
        for count = 2, 4 do
            local function plan(more)
                return store.plan {shape = {FRAMES, 6, 24}, ranks = count, scratch = folder,
                    host_budget = bytes_of(count) + more}
            end
            assert.same({"memory", bytes_of(count), 0}, {plan(0).place, plan(0).host_bytes,
                plan(0).disk_bytes})
            assert.same({"file", 0, FRAMES * FRAME}, {plan(-1).place, plan(-1).host_bytes,
                plan(-1).disk_bytes})
            local dry = mb.plan.peak(function()
                local _ <close> = store.open(plan(0))
            end, "host")
            assert.equal(bytes_of(count), dry.peak)
        end
        -- Pieces of long shares have 16 MiB.
        local long = store.plan {shape = {1 << 20, 1 << 10}, ranks = 2, host_budget = "3Gi"}
        assert.equal((2 << 30) + (64 << 20), long.host_bytes)
    end)

    ranks.it("takes what its plan says, and is closed as it was opened", function()
        local output, status = session:run(3, ([[
            local mb = require "moonbeam"
            local store = require "moonbeam.pipeline.store"
            for _ = 1, 3 do
                local plan = store.plan {shape = {%d, 6, 24}, ranks = 3, host_budget = "1Mi"}
                mb.collect()
                local scope <close> = mb.pool.scope "host"
                local made = store.open(plan)
                assert(scope:finish() == plan.host_bytes)
                mb.cluster.barrier()
                local frame <close> = mb.full({1, 6, 24}, mb.cluster.rank, {device = "host"})
                for number = 1 + mb.cluster.rank, %d, 3 do
                    made:write(nil, frame, number, number)
                end
                mb.cluster.barrier()
                for row = 1, 6 do
                    local got <close> = mb.zeros({%d, 1, 24}, {device = "host"})
                    made:read(nil, got, {mb.all, {row, row}})
                    local list = got:to_table()
                    for number, values in ipairs(list) do
                        for _, value in ipairs(values[1]) do
                            assert(value == (number - 1) %% 3)
                        end
                    end
                end
                mb.cluster.barrier()
                made:close()
            end
        ]]):format(FRAMES, FRAMES, FRAMES))
        assert.equal(0, status, output)
    end)

    for _, number in ipairs {2, 3} do
        ranks.it(RECIPES[number][1] .. " is in memory, or in a file where that is too small",
            function()
            local expected, dtype = alone(RECIPES[number][2])
            for count = 1, 4 do
                for _, case in ipairs {{"{}", "memory"}, {"{host_budget = 512}", "file"}} do
                    local output, status = session:run(count, text(RECIPES[number][2], case[1]))
                    assert.equal(0, status, output)
                    local place, bytes = output:match "store\t(%a+)\t(%d+)"
                    assert.equal(case[2], place, output)
                    if number == 2 and count > 1 and place == "memory" then
                        assert.equal(bytes_of(count), tonumber(bytes))
                    end
                    local same, other = bits()
                    assert.is_true(same == expected, ("other bits with %d ranks"):format(count))
                    assert.equal(dtype, other)
                    assert.equal("out.h5\n", left())
                end
            end
        end)
    end

    ranks.it("is what rank 0 measures in, wherever its frames are", function()
        local recipe = [[{"flat_field", "smooth_frames", "minus_log", {"center"}, {"fbp"}}]]
        local expected = alone(recipe)
        for count = 2, 3 do
            local output, status = session:run(count, text(recipe))
            assert.equal(0, status, output)
            assert.matches("store\tmemory", output)
            assert.is_true(bits() == expected)
        end
    end)

    it("is in a file where blocks do not fit beside a share", function()
        local scan <close> = assert(mb.scan.open(folder .. "/scan.h5"))
        local function planned(budget)
            return mb.pipeline(scan, {"flat_field", "minus_log", {"fbp", center = 11.5},
                {"rescale", dtype = "uint8", percentiles = {1, 99}}}, {ranks = 2, quiet = true,
                scratch = folder, budget = budget, host_budget = "1Mi"}):plan()
        end
        local free = planned()
        assert.equal("memory", free.job.places[1].place)
        assert.equal(0, free.scratch)
        local tight = planned(free.peak - free.job.places[1].host_bytes)
        assert.equal("file", tight.job.places[1].place)
        assert.equal(free.job.places[1].bytes, tight.scratch)
        assert.is_true(tight.peak <= free.peak - free.job.places[1].host_bytes)
    end)

    ranks.it("is named by the plan, with the bytes that each rank takes", function()
        files.write(folder .. "/r.lua", [[{"flat_field", "minus_log", {"fbp", center = 11.5},
            {"rescale", dtype = "uint8", percentiles = {1, 99}}}]])
        -- A rank takes the most if it has three blocks of a section; of seven blocks one of three
        -- ranks does.
        commands.must("simulate.lua", folder
            .. "/tall.h5 --size 24 --rows 7 --angles 30 -d host -q")
        local words = ("'%s/tall.h5' --recipe '%s/r.lua' --chunk 1 -o '%s/out.h5'"):format(folder,
            folder, folder)
        local plan = commands.must("reconstruct.lua", words .. " --plan --ranks 3")
        local bytes = plan:match "  store +after section 1: [^\n]*%((%d+) bytes%) in memory of each"
        local most = plan:match "  rank +at most [^\n]*%((%d+) bytes%) on host"
        assert.is_not_nil(bytes, plan)
        assert.is_true(tonumber(most) > tonumber(bytes))
        assert.is_nil(plan:find("scratch files", 1, true), plan)
        local output, _, status = files.run(ranks.command(3, ("reconstruct %s --verbose"):format(
            words)))
        assert.equal(0, status, output)
        local largest = 0
        for predicted, measured in output:gmatch
            "rank %d on %S+ host, predicted (%d+) bytes, measured (%d+) bytes" do
            assert.equal(predicted, measured)
            largest = math.max(largest, tonumber(measured))
        end
        assert.equal(tonumber(most), largest, output)
        plan = commands.must("reconstruct.lua", words .. " --plan --ranks 3 --host-budget 1Ki")
        assert.matches("  store +after section 1: [^\n]*%(%d+ bytes%) in " .. folder, plan)
        assert.matches("of scratch files", plan, 1, true)
        os.remove(folder .. "/tall.h5")
    end)

    -- A run that is killed in its first or second section, and one that goes on.
    local function killed(recipe, where, smoothed)
        local expected = alone(recipe)
        os.remove(folder .. "/out.h5")
        for _, rank in ipairs {0, 2} do
            local began = mb.system.clock()
            local output, status = ranks.run(folder, 3, text(recipe, ("{%s, kill = %d}"):format(where,
                rank)), rank == 2 and ranks.PATIENT or nil)
            assert.equal(137, status, output)
            assert.matches("rank " .. rank, output)
            assert.is_true(mb.system.clock() - began < 10)
            assert.is_nil(mb.system.stat(folder .. "/out.h5"))
            -- Where nothing was finished, rank 0 leaves nothing, if it is there.
            local kept = mb.system.stat(folder .. "/out.h5.unfinished") ~= nil
            assert.is_true(kept or rank == 2)
            output, status = session:run(2, text(recipe, ("{resume = %s}"):format(kept)))
            assert.equal(0, status, output)
            assert.matches("smoothed\t" .. smoothed .. "\n", output)
            assert.is_true(bits() == expected)
            assert.equal("out.h5\n", left())
            os.remove(folder .. "/out.h5")
        end
    end

    ranks.it("is filled again if a rank is killed while it is filled", function()
        killed(RECIPES[2][2], "at = 4, slow = 0.05", FRAMES)
    end)

    ranks.it("is filled again if a rank is killed while it is read", function()
        killed(RECIPES[2][2]:gsub("}$", ', "count_rows"}'), "rows = true, at = 2, slow = 0.1", FRAMES)
    end)

    ranks.it("is filled again from a run whose store was a file, and the other way round", function()
        local recipe = RECIPES[2][2]
        local expected = alone(recipe)
        for _, case in ipairs {{"host_budget = 512, ", ""}, {"", "host_budget = 512, "}} do
            os.remove(folder .. "/out.h5")
            local output, status = ranks.run(folder, 2, text(recipe,
                ("{%skill = 1, at = 12, slow = 0.03, others = 0.02}"):format(case[1])))
            assert.equal(137, status, output)
            output, status = session:run(3, text(recipe, ("{%sresume = true}"):format(case[2])))
            assert.equal(0, status, output)
            assert.matches("smoothed\t30\n", output)
            assert.is_true(bits() == expected)
            assert.equal("out.h5\n", left())
        end
    end)

    ranks.it("is closed by a rank that fails, and all end with its message", function()
        local output, status = ranks.run(folder, 3, (text(RECIPES[2][2]:gsub("}$",
            ', "count_rows"}'), "{rows = true, kill = 1, at = 2, slow = 0.1}"):gsub(
            "os.execute%b()", "error('no such luck', 0)")))
        assert.equal(1, status, output)
        assert.matches("rank 1 on %S+: [^\n]*no such luck", output)
        assert.is_nil(output:find("has closed", 1, true), output)
    end)
end)
