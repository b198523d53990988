-- A pipeline on several devices: its ledger is that of the dry run, a fixed schedule takes what was
-- planned, other blocks take other bytes, and a device that is faster does more.

local mb = require "moonbeam"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local pipelines = require "spec.support.pipelines"
local schedule = require "moonbeam.stream.schedule"

local REPEAT <const> = tonumber(os.getenv "MOONBEAM_REPEAT") or 1
local DEVICES <const> = {{"host", "host:1"}, {"host:1", "host:2"}, {"host", "host:1", "host:2"},
    {"host:2", "host:1", "host"}}

local random_turns = pipelines.random_turns

describe("a pipeline on several devices", function()
    local scan, all

    before_each(function()
        scan, all = pipelines.open_scan()
    end)
    after_each(function()
        getmetatable(all).__close()
    end)

    local function volume(recipe, options)
        return pipelines.volume(scan, recipe, options)
    end

    local function each_lane(report, f)
        for _, section in ipairs(report.sections) do
            for k, lane in ipairs(section.times.lanes) do
                f(lane, k, section)
            end
        end
    end

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
                dry_work.replayed(job, section, {lists})["host:1"])
            local other = dry_work.replayed(job, section, {{lists[2], lists[1]}})
            differing = differing + (other["host:1"] ~= report.sections[1].peaks["host:1"] and 1
                or 0)
        end
        assert.is_true(differing > 5, differing)
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
