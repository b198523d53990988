-- A pipeline on several devices: whatever blocks each of them gets, and in whatever order they get
-- on, the result has the same bits, and what each takes is the dry run of the blocks that it got.
-- Ledgers, fixed schedules, shares: devices_ledger_spec.lua.

local activate = require "moonbeam.pipeline.activate"
local pipelines = require "spec.support.pipelines"

local REPEAT <const> = tonumber(os.getenv "MOONBEAM_REPEAT") or 1
local DEVICES <const> = {{"host", "host:1"}, {"host:1", "host:2"}, {"host", "host:1", "host:2"},
    {"host:2", "host:1", "host"}}

local in_place_of, random_turns = pipelines.in_place_of, pipelines.random_turns

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
end)
