-- A pipeline on several devices that is refused memory when a section begins goes on in smaller
-- blocks, with the same bits.

local mb = require "moonbeam"
local activate = require "moonbeam.pipeline.activate"
local pipelines = require "spec.support.pipelines"
local work = require "moonbeam.pipeline.work"

local REPEAT <const> = tonumber(os.getenv "MOONBEAM_REPEAT") or 1
local DEVICES <const> = {{"host", "host:1"}, {"host:1", "host:2"}, {"host", "host:1", "host:2"},
    {"host:2", "host:1", "host"}}

local in_place_of, random_turns = pipelines.in_place_of, pipelines.random_turns

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

    local function volume(recipe, options)
        return pipelines.volume(scan, recipe, options)
    end

    it("is refused memory before a section only, and goes on in smaller blocks: 50 times",
        function()
        local again, counts, last = 0, {runs = 0}, nil
        for seed = 1, 50 * REPEAT do
            local pick = pipelines.random_of(seed + 1300)
            local recipe, devices = pipelines.random_recipe(seed), pick(DEVICES)
            local whole, plain = volume(recipe)
            local _ <close> = random_turns(seed)
            local _ <close> = refusals(devices, pick(devices), pick {1, 2, 3, 4, 6},
                pick {1, #plain.sections}, counts)
            local ok, same, report = pcall(volume, recipe,
                {devices = devices, block = pick {3, 5, 8}})
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
end)
