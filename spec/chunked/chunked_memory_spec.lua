-- The memory of mb.chunked is committed before its first block. What is refused before leads to
-- smaller blocks with the same bits.

local budget = require "moonbeam.plan.budget"
local core = require "moonbeam.core"
local helper = require "spec.helper"
local mb = require "moonbeam"
local refusals = require "spec.support.refusals"
local schedule = require "moonbeam.stream.schedule"

local SHAPE = {48, 96, 130}

describe("the memory of mb.chunked", function()
    local values, whole

    before_each(function()
        values = mb.random(SHAPE, {seed = 5, device = "host"})
        local smooth <close> = mb.gaussian_filter(values, 1.5)
        whole = smooth:to_string()
        mb.collect()
        for _, id in ipairs {"host", "host:1", "host:2"} do
            mb.pool.trim(id)
        end
    end)
    after_each(function()
        values:release()
    end)

    -- Runs in blocks; returns the report. The result has the bits of the whole.
    local function run(options)
        local own = {params = {sigma = 1.5}, pinned = "1Mi", threads = 1}
        for name, value in pairs(options or {}) do
            own[name] = value
        end
        local got <close>, report = mb.chunked("gaussian_filter", values, own)
        assert.is_true(whole == got:to_string())
        assert.is_true(report.as_planned)
        for id, bytes in pairs(report.plan.peak) do
            assert.equal((report.replayed or report.plan.peak)[id], report.peak[id])
            assert.is_true(report.peak[id] <= bytes)
        end
        assert.equal(#(own.devices or {}) > 1 and own.schedule ~= "fixed", report.replayed ~= nil)
        return report
    end

    it("is committed before the first block on every device", function()
        for _, devices in ipairs {{"host"}, {"host:1"}, {"host", "host:1"},
            {"host:2", "host", "host:1"}} do
            local _ <close> = refusals.after_commit(devices)
            for _, options in ipairs {{block = 7}, {block = 48, overlap = false},
                {budget = "2M"}, {axis = 2, block = 11}, {block = 7, schedule = "fixed"}} do
                options.devices = devices
                local report = run(options)
                assert.is_true(report.committed)
                assert.is_nil(report.replanned)
                assert.same({}, report.budgets)
            end
        end
    end)

    it("is that of a dry run of the blocks that each device got, whoever was free", function()
        local turn <close> = refusals.in_place_of(schedule, "turn", function(list) -- luacheck: ignore
            return list[math.random(#list)]
        end)
        math.randomseed(7)
        local devices, different, seen = {"host", "host:1", "host:2"}, 0, {}
        local _ <close> = refusals.after_commit(devices)
        for n = 1, 20 do
            local report = run {devices = devices, block = n % 3 + 3, overlap = n % 4 > 0,
                axis = n % 2 + 1}
            local key = {}
            for i, lane in ipairs(report.times.lanes) do
                key[i] = lane.blocks
            end
            key = table.concat(key, " ")
            different, seen[key] = different + (seen[key] and 0 or 1), true
        end
        assert.is_true(different > 8)
    end)

    it("would be refused later otherwise", function()
        local _ <close> = refusals.after_commit {"host"}
        local _ <close> = refusals.in_place_of(core.pool, "activate", function() end)
        local message, err = helper.failure(run, {block = 20})
        assert.equal("budget", err.code)
        assert.matches("injected for a test", message)
    end)

    it("is planned again in smaller blocks if it is refused", function()
        for _, id in ipairs {"host", "host:1"} do
            local last = 24
            for n = 1, 3 do
                local _ <close> = refusals.at_first(n, id)
                local _ <close> = refusals.after_commit {id}
                local report = run {block = 24, devices = {id}}
                local again = report.replanned
                assert.equal(24, again.from)
                assert.equal(again.to, report.plan.block)
                assert.is_true(again.to <= last)
                last = again.to
                assert.matches("blocks have %d+ rows, not 24, because the memory for these was "
                    .. "refused: .*injected for a test", again.text)
            end
            assert.is_true(last < 16)
        end
        -- one of two
        local _ <close> = refusals.at_first(2, "host:1")
        local report = run {block = 24, devices = {"host", "host:1"}}
        assert.is_true(report.plan.block < 24)
    end)

    it("that is refused altogether is an error, which leaves nothing", function()
        local _ <close> = refusals.at_first(refusals.ALWAYS, "host:1")
        local live = mb.pool.stats().live
        local _, err = helper.failure(run, {devices = {"host:1"}})
        assert.equal("budget", err.code)
        assert.equal(live, mb.pool.stats().live)
        assert.equal(0, mb.pool.stats("host:1").live)
    end)

    it("follows what other programs leave", function()
        local id <const> = "host:1"
        local device = mb.device(id)
        local before = device:budget()
        local _ <close> = setmetatable({}, {__close = function()
            mb.debug.pretend_memory(0, id)
        end})
        local peak = run({block = 24, devices = {id}}).peak[id]
        local last = peak
        for _, percent in ipairs {80, 60, 45} do
            mb.pool.trim(id)
            mb.debug.pretend_memory(peak * percent // 100, id)
            local report = run {block = 24, devices = {id}}
            assert.is_true(report.plan.block < 24 and report.peak[id] < last)
            last = report.peak[id]
            assert.equal(peak * percent // 100 * 9 // 10, device:budget())
            assert.is_true(report.peak[id] <= device:budget())
            local change = report.budgets[1]
            assert.equal(device:budget(), change.to)
        end
        -- what is free again is used again, and no more
        mb.debug.pretend_memory(refusals.PLENTY, id)
        local report = run {devices = {id}}
        assert.is_true(report.plan.block >= 24)
        assert.equal(before, device:budget())
        -- not one row
        mb.pool.trim(id)
        mb.debug.pretend_memory(4096, id)
        local plan = helper.failure(run, {devices = {id}})
        assert.matches("which is too little for the least block", plan)
        mb.debug.pretend_memory(refusals.PLENTY, id)
        assert.equal(before, budget.available(device))
    end)

    it("is refused where the blocks that were asked for do not fit, with what is enough", function()
        local most = mb.chunked.plan("gaussian_filter", values, {block = 7, params = {sigma = 1.5},
            budget = "1G"}).peak.host
        local before <const> = mb.device("host"):budget()
        local _ <close> = setmetatable({}, {__close = function()
            mb.device("host"):budget(before)
        end})
        for _, limit in ipairs {"budget", false} do
            local options = {block = 7, params = {sigma = 1.5}, budget = limit and most - 512 or nil}
            mb.device("host"):budget(limit and before or mb.pool.stats("host").live + most - 512)
            for _, call in ipairs {mb.chunked, mb.chunked.plan} do
                local text, err = helper.failure(call, "gaussian_filter", values, options)
                assert.equal("budget", err.code)
                assert.equal(limit or nil, err.limited_by)
                assert.matches("blocks of 7 rows along axis 1 take %d+ bytes on host .*, or smaller "
                    .. "blocks", text)
                assert.not_matches("other programs", text)
                if limit then
                    assert.equal(most, err.enough)
                end
                mb.device("host"):budget(limit and before or err.enough)
                call("gaussian_filter", values, {block = 7, params = {sigma = 1.5},
                    budget = limit and err.enough or nil})
                mb.collect()
                mb.device("host"):budget(limit and before
                    or mb.pool.stats("host").live + most - 512)
            end
        end
    end)
end)
