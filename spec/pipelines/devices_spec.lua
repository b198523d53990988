-- A pipeline on several devices: whatever blocks each of them gets, and in whatever order they get
-- on, the result has the same bits, and what each takes is the dry run of the blocks that it got.

local helper = require "spec.helper"
local mb = require "moonbeam"
local activate = require "moonbeam.pipeline.activate"
local pipeline_plan = require "moonbeam.pipeline.plan"
local pipelines = require "spec.support.pipelines"
local schedule = require "moonbeam.stream.schedule"
local work = require "moonbeam.pipeline.work"

local REPEAT <const> = tonumber(os.getenv "MOONBEAM_REPEAT") or 1
local DEVICES <const> = {{"host", "host:1"}, {"host:1", "host:2"}, {"host", "host:1", "host:2"},
    {"host:2", "host:1", "host"}}

-- The lanes get on in a random order until the returned value is closed: often one of them several
-- times.
local function random_turns(seed)
    local pick, favorite = pipelines.random_of(seed), 1
    schedule.turn = function(list)
        if pick {true, false, false} then
            favorite = pick {1, 2, 3}
        end
        for _, number in ipairs(list) do
            if number == favorite and pick {true, true, false} then
                return number
            end
        end
        return pick(list)
    end
    return setmetatable({}, {__close = function()
        schedule.turn = nil
    end})
end

-- Puts f(what was there) in the place of module[name] until the returned value is closed.
local function in_place_of(module, name, f)
    local before = module[name]
    module[name] = f(before)
    return setmetatable({}, {__close = function()
        module[name] = before
    end})
end

local function refuse(devices, n)
    for _, id in ipairs(devices) do
        mb.debug.refuse_commits(n, id)
    end
end

-- Of section `number`, the first n commits on a device are refused. From the first block on every
-- commit is, on all devices; counts the runs.
local function refusals(devices, id, n, number, counts)
    local first = in_place_of(activate, "section", function(section)
        return function(made, i, ...)
            mb.collect()
            for _, each in ipairs(devices) do
                mb.pool.trim(each)
            end
            mb.debug.refuse_commits(i == number and n or 0, id)
            local _ <close> = setmetatable({}, {__close = function() refuse(devices, 0) end})
            return section(made, i, ...)
        end
    end)
    local later = in_place_of(work, "run", function(run)
        return function(section, on, ...)
            if on[1].dry then
                return run(section, on, ...)
            end
            counts.runs = counts.runs + 1
            refuse(devices, 1 << 40)
            local _ <close> = setmetatable({}, {__close = function() refuse(devices, 0) end})
            return run(section, on, ...)
        end
    end)
    return setmetatable({}, {__close = function()
        getmetatable(later).__close()
        getmetatable(first).__close()
    end})
end

describe("a pipeline on several devices", function()
    local scan, all

    before_each(function()
        scan, all = pipelines.open_scan()
    end)
    after_each(function()
        getmetatable(all).__close()
    end)

    -- The result as a string, in the order of its rows, and the report.
    local function volume(recipe, options)
        local own = {quiet = true, pinned = "1Mi", steps = pipelines.OWN}
        for name, value in pairs(options or {}) do
            own[name] = value
        end
        local parts = {}
        local report = mb.pipeline(scan, recipe, own):run(function(block, first)
            local host <close> = block:to "host"
            parts[#parts + 1] = {first, host:to_string()}
        end)
        table.sort(parts, function(a, b) return a[1] < b[1] end)
        for i, part in ipairs(parts) do
            parts[i] = part[2]
        end
        return table.concat(parts), report
    end

    local function each_lane(report, f)
        for _, section in ipairs(report.sections) do
            for k, lane in ipairs(section.times.lanes) do
                f(lane, k, section)
            end
        end
    end

    it("takes what its blocks take, in 200 random schedules", function()
        local uneven, compared, below, wholes = 0, 0, 0, {}
        for seed = 1, 200 * REPEAT do
            local pick = pipelines.random_of(seed + 500)
            local recipe = pipelines.random_recipe(seed // 4 + 1)
            local options = {devices = pick(DEVICES), block = pick {1, 2, 3, 5},
                overlap = pick {true, true, false}}
            local number = seed // 4 + 1
            wholes[number] = wholes[number] or volume(recipe)
            local whole = wholes[number]
            local _ <close> = random_turns(seed)
            -- Most of the time goes into planning how far the pools are taken.
            local _ <close> = seed % 5 > 0 and in_place_of(activate, "section", function()
                return function(made, i)
                    return {made = made, section = made.sections[i], budgets = {}}
                end
            end) or nil
            local same, report = volume(recipe, options)
            assert.is_true(whole == same, "seed " .. seed)
            assert.is_true(report.as_planned, "seed " .. seed)
            for i, section in ipairs(report.sections) do
                local blocks, most, least = 0, 0, math.huge
                for _, lane in ipairs(section.times.lanes) do
                    blocks = blocks + lane.blocks
                    most, least = math.max(most, lane.blocks), math.min(least, lane.blocks)
                    local id = lane.device.id
                    compared = compared + 1
                    below = below + (section.peaks[id] < report.plan.sections[i].peaks[id] and 1
                        or 0)
                end
                assert.equal(#report.plan.sections[i].blocks, blocks)
                uneven = uneven + (most > least + 1 and 1 or 0)
            end
        end
        assert.is_true(uneven > 100 * REPEAT, uneven)
        assert.is_true(compared > 500 * REPEAT, compared)
        assert.is_true(below > 50 * REPEAT, below)
    end)

    it("has the ledger that its dry run predicts, row by row, whatever the turns", function()
        local recipes = {{"flat_field", "minus_log", "neighbors", {"fbp", center = 15.5}},
            {"flat_field", "smooth_frames", "minus_log", {"fourier", center = 15.5}},
            {"flat_field", "minus_log", {"fbp", center = 15.5},
                {"rescale", dtype = "uint8", percentiles = {1, 99}}}}
        for seed = 1, 9 * REPEAT do
            local function job()
                local _ <close> = random_turns(seed)
                mb.pipeline(scan, recipes[seed % 3 + 1], {devices = DEVICES[2], block = 2,
                    quiet = true, pinned = "1Mi", steps = pipelines.OWN}):run(function() end)
            end
            job() -- FFT plans are there from now on
            local predicted = mb.dry_run(job)
            local measured = mb.ledger(job)
            assert.is_true(#measured.list > 100)
            assert.same({}, mb.ledger_diff(predicted, measured))
        end
    end)

    it("takes what is planned in a fixed schedule", function()
        for seed = 1, 20 * REPEAT do
            local pick = pipelines.random_of(seed + 900)
            local devices = pick(DEVICES)
            local _, report = volume(pipelines.random_recipe(seed), {devices = devices,
                schedule = "fixed", block = pick {1, 2, 3, 5}})
            for i, section in ipairs(report.sections) do
                for _, id in ipairs(devices) do
                    assert.equal(report.plan.sections[i].peaks[id], section.peaks[id])
                end
            end
            each_lane(report, function(lane, k)
                for n, rows in ipairs(lane.lists[1]) do
                    assert.is_true(n == 1 or rows[1] > lane.lists[1][n - 1][1])
                end
                assert.is_true(k > 1 or lane.blocks > 0)
            end)
        end
    end)

    it("takes other bytes with other blocks: the comparison can fail", function()
        local recipe = {"flat_field", "minus_log", "neighbors", {"fbp", center = 15.5}}
        local differing = 0
        for seed = 1, 20 do
            local _ <close> = random_turns(seed)
            local _, report = volume(recipe, {devices = DEVICES[1], block = 5})
            local lists = {}
            for k, lane in ipairs(report.times.lanes) do
                lists[k] = lane.lists
            end
            local job, section = report.plan.job, report.plan.sections[1]
            assert.equal(report.sections[1].peaks["host:1"],
                pipeline_plan.replayed(job, section, {lists})["host:1"])
            local other = pipeline_plan.replayed(job, section, {{lists[2], lists[1]}})
            differing = differing + (other["host:1"] ~= report.sections[1].peaks["host:1"] and 1 or 0)
        end
        assert.is_true(differing > 5, differing)
    end)

    it("is refused memory before a section only, and goes on in smaller blocks: 50 times", function()
        local again, counts, last = 0, {runs = 0}, nil
        for seed = 1, 50 * REPEAT do
            local pick = pipelines.random_of(seed + 1300)
            local recipe, devices = pipelines.random_recipe(seed), pick(DEVICES)
            local whole, plain = volume(recipe)
            local _ <close> = random_turns(seed)
            local _ <close> = refusals(devices, pick(devices), pick {1, 2, 3, 4, 6},
                pick {1, #plain.sections}, counts)
            local ok, same, report = pcall(volume, recipe, {devices = devices, block = pick {3, 5, 8}})
            if ok then
                assert.is_true(whole == same, "seed " .. seed)
                assert.is_true(report.as_planned, "seed " .. seed)
                for _, section in ipairs(report.sections) do
                    assert.is_true(section.committed)
                end
                again = again + #report.replanned
                for i, each in ipairs(report.replanned) do
                    assert.equal(each.text, report.warnings[i])
                    assert.matches("because the memory for these was refused", each.text)
                end
            else -- the least block was refused
                assert.equal("budget", same.code, tostring(same))
                last = tostring(same)
            end
        end
        assert.is_true(again > 20 * REPEAT, again)
        assert.is_true(counts.runs > 50 * REPEAT, counts.runs)
        assert.is_true(last == nil or last:find("end other programs", 1, true) ~= nil, last)
    end)

    it("gives the same bits if a device is lost at a random call: 50 times", function()
        local sums = {0, 0, 0, 0, 0}
        for first = 1, 55 * REPEAT, 7 do
            local output, status = helper.run_program(("spec/fixtures/lose_lanes.lua %d %d"):format(
                first, first + 6))
            assert.equal(0, status, output)
            local counts = {output:match "^lost (%d+), inside (%d+), store (%d+), reduction (%d+), file (%d+)\n$"}
            assert.equal(5, #counts, output)
            for i, count in ipairs(counts) do
                sums[i] = sums[i] + tonumber(count)
            end
        end
        assert.is_true(sums[1] >= 45 * REPEAT and sums[2] >= 15 * REPEAT, table.concat(sums, " "))
        assert.is_true(sums[3] > 5 and sums[4] > 15 and sums[5] > 15, table.concat(sums, " "))
    end)

    it("says that all devices are lost, and how much is finished", function()
        local output = helper.run_program "spec/fixtures/lose_lanes.lua all"
        assert.matches("^false\tdevice\t.*host:1, host:2, host:3 are all lost %(injected for a test%); "
            .. "%d+ of %d+ blocks are finished\n$", output)
    end)

    it("lets a device that is faster do more", function()
        -- In turns of three to one the second device gets a quarter of the blocks.
        local count = 0
        schedule.turn = function(list)
            count = count + 1
            return list[2] and count % 4 == 0 and 2 or list[1]
        end
        local _ <close> = setmetatable({}, {__close = function() schedule.turn = nil end})
        local _, report = volume({"flat_field", "minus_log", {"fbp", center = 15.5}},
            {devices = {"host:1", "host:2"}, block = 1})
        local lanes = report.times.lanes
        assert.matches("^host:1: %d+ blocks, .* in, .* out, computing .* s; host:2: ",
            mb.stream.summary(report.times).devices)
        assert.matches("\n  host:2: %d blocks", mb.stream.describe(report.times))
        assert.is_true(lanes[1].blocks >= 9 and lanes[2].blocks >= 2, lanes[1].blocks)
    end)
end)
