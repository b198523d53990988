-- Ranks that lose devices: the others of a rank go on, and a rank without any leaves its blocks to
-- the other ranks where that is possible. Host devices stand for GPUs.

local rank_pipelines = require "spec.support.rank_pipelines"
local ranks = require "spec.support.ranks"

-- What a script does around a run: LOSE = {rank = call} loses the first device of this rank at that
-- call of the device, counted from the plan on. Rank 0 prints what each rank tells.
local RUN = [[
local mb = require "moonbeam"
local cluster = mb.cluster
local at, first = (LOSE)[cluster.rank], mb.device "host:1"
if at then
    mb.debug.lose_device(first, at)
end
local scan <close> = assert(mb.scan.open "FOLDER/scan.h5")
local function marker(rank)
    return "FOLDER/scratch/here-" .. rank
end
-- Each rank of AWAIT gets a block before another one ends its first one, if it comes to one.
local met = false
local function await()
    if met then
        return
    end
    met = true
    io.open(marker(cluster.rank), "w"):close()
    for rank in pairs(AWAIT) do
        local began = mb.system.clock()
        while not mb.system.stat(marker(rank)) and mb.system.clock() - began < 2 do
            mb.system.sleep(0.01)
        end
    end
end
local slow = {name = "slow", summary = "Waits.", takes = {quantity = "any", layout = "slices"},
    gives = {quantity = "same", layout = "same"}, cuts = {"rows"}, run = function()
        if not mb.device.dry() then
            await()
            mb.system.sleep(0.05)
        end
    end}
local p = mb.pipeline(scan, RECIPE, {block = 1, steps = {slow}, quiet = true,
    scratch = "FOLDER/scratch", devices = DEVICES})
local done = p:run {output = "FOLDER/out.h5", tell = print}
mb.debug.lose_device(first, 0)
os.remove(marker(cluster.rank))
local facts = cluster.gather {done.as_planned, (first:lost()), #done.lost}
if cluster.rank == 0 then
    for rank, own in ipairs(facts) do
        print(rank - 1, table.unpack(own))
    end
    print(table.concat(done.warnings, "; "))
    for _, own in ipairs(done.ranks) do
        for i, bytes in ipairs(own.predicted) do
            assert(bytes == own.measured[i])
        end
    end
end
]]

local MEASURED <const> = [[{"flat_field", "minus_log", {"center"}, {"fbp"}, "slow"}]]
local GIVEN <const> = [[{"flat_field", "minus_log", {"fbp", center = 11.5}, "slow"}]]
local SUMMED <const> = [[{"flat_field", "minus_log", {"fbp", center = 11.5}, "slow",
    {"rescale", dtype = "uint16", percentiles = {1, 99}}}]]

describe("ranks that lose devices", function()
    local own, folder, expected
    setup(function()
        own = rank_pipelines.open()
        folder, expected = own.folder, {}
    end)
    teardown(function()
        own.close()
    end)
    before_each(function()
        own.clean()
    end)

    local function text(recipe, lose, devices, await)
        return (RUN:gsub("FOLDER", folder):gsub("RECIPE", (recipe:gsub("%%", "%%%%")))
            :gsub("LOSE", lose):gsub("DEVICES", devices):gsub("pairs%(AWAIT%)", "pairs("
            .. (await or lose) .. ")"))
    end

    -- The bits of a run on one rank that loses nothing.
    local function bits_of(recipe)
        if not expected[recipe] then
            local output, status = ranks.run(folder, 1, (text(recipe, "{}", '{"host:1"}')
                :gsub("done%.ranks", "{}")))
            assert.equal(0, status, output)
            expected[recipe] = own.bits()
            own.clean()
        end
        return expected[recipe]
    end

    -- The same in ranks that run several scripts: host:1 stands for a device that none before has
    -- lost.
    local function run_again(script)
        return own.session:run(2, (script:gsub('"host:2"', '"host:7"'):gsub('"host:1"', "FIRST.id")
            :gsub("mb%.device FIRST%.id", "FIRST"):gsub("^", [[
                local FIRST
                for number = 6, 1, -1 do
                    local device = require "moonbeam".device("host:" .. number)
                    FIRST = device:lost() and FIRST or device
                end
            ]])))
    end

    ranks.it("go on with the other devices of a rank, wherever it is", function()
        for _, case in ipairs {{MEASURED, {1, 3, 20, 60, 150}}, {SUMMED, {2, 90}}} do
            local same = bits_of(case[1])
            for i, call in ipairs(case[2]) do
                local rank = i % 2
                local output, status = run_again(text(case[1], ("{[%d] = %d}"):format(rank, call),
                    '{"host:1", "host:2"}'))
                assert.equal(0, status, output)
                local as_planned, lost, count = output:match(rank .. "\t(%w+)\t(%w+)\t(%d)")
                assert.equal("true", as_planned, output)
                assert.is_true(lost == "true" and count == "1" or lost == "false" and call > 3,
                    output)
                assert.is_true(own.bits() == same, ("other bits after call %d"):format(call))
                own.clean()
            end
        end
    end)

    ranks.it("leave their blocks to the other ranks where they have no more", function()
        own.session:close() -- new ones have lost none
        local same, left = bits_of(GIVEN), 0
        for rank = 0, 1 do
            for _, call in ipairs {60, 80, 110} do
                local output, status = run_again(text(GIVEN, ("{[%d] = %d}"):format(rank, call),
                    '{"host:1"}'))
                assert.equal(0, status, output)
                local as_planned, lost = output:match(rank .. "\t(%w+)\t(%w+)")
                assert.equal("true", as_planned, output)
                if lost == "true" then
                    assert.matches("host:[1-6] was lost in section 1 %(injected for a test%); the "
                        .. "other ranks did its blocks", output)
                    left = left + 1
                end
                assert.is_true(own.bits() == same, ("other bits after call %d"):format(call))
                assert.equal("out.h5\n", own.left())
                own.clean()
            end
        end
        assert.is_true(left >= 3, ("only %d were lost"):format(left))
    end)

    ranks.it("end with one message where the others cannot go on, and say what is kept", function()
        for _, case in ipairs {{GIVEN, 3, "{[1] = 3}"}, {SUMMED, 2, "{[1] = 90}"},
            {GIVEN, 2, "{[0] = 70, [1] = 70}"}} do
            local output, status = ranks.run(folder, case[2], text(case[1], case[3], '{"host:1"}'))
            assert.equal(1, status, output)
            local _, lines = output:gsub("host:1 is lost: injected for a test", "")
            assert.equal(1, lines, output)
            assert.is_true(case[3]:find("[0]", 1, true) ~= nil
                or output:find("rank 1 on %S+ [^\n]*host:1 is lost") ~= nil, output)
            own.clean()
        end
        -- Nobody is left: what is kept is said, and others go on with it.
        local all = text(GIVEN, "{[0] = 150, [1] = 150}", '{"host:1"}')
            :gsub("quiet = true,", "%0 overlap = false,")
        local output, status = ranks.run(folder, 2, all)
        assert.equal(1, status, output)
        local kept = output:match "out.h5.unfinished' keeps (%d+) of 6 rows"
        assert.is_true((tonumber(kept) or 0) > 0, output)
        output, status = ranks.run(folder, 3, (text(GIVEN, "{}", '{"host:1"}'):gsub('out.h5"',
            'out.h5", resume = true')))
        assert.equal(0, status, output)
        assert.equal(kept, output:match "has (%d+) of 6 rows already") -- those of both
        assert.is_true(own.bits() == bits_of(GIVEN))
    end)

    ranks.it("say what is kept also while the first one waits for a rank that fails", function()
        -- Rank 0 has begun at most three of the six blocks before rank 1 has one. Rank 1 fails when
        -- rank 0 has noted three, and soon waits.
        local output, status = ranks.run(folder, 2, (text(GIVEN, "{}", '{"host:1"}', "{[1] = 1}")
            :gsub("began < 2 do", "began < 60 do")
            :gsub("mb%.system%.sleep%(0%.05%)", (([[
                local function noted()
                    local file <close> = io.open "%s/out.h5.unfinished/journal"
                    return file and select(2, file:read "a":gsub('"rows"', "")) or 0
                end
                local began = mb.system.clock()
                while cluster.rank == 1 and noted() < 3 and mb.system.clock() - began < 60 do
                    mb.system.sleep(0.05)
                end
                if cluster.rank == 1 then
                    mb.system.sleep(0.3)
                    error("no more", 0)
                end]]):format(folder):gsub("%%", "%%%%")))))
        assert.equal(1, status, output)
        assert.matches("rank 1 on %S+ [^\n]*no more", output)
        assert.matches("out.h5.unfinished' keeps [345] of 6 rows", output)
    end)
end)
