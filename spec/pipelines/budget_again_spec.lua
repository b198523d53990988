-- Budgets follow what other programs leave: they are asked for again before each section.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local activate = require "moonbeam.pipeline.activate"
local budget = require "moonbeam.plan.budget"

local ANGLES, ROWS, COLS = 48, 64, 128
local CENTER = 63.5
local PLENTY = 1 << 50

local OWN = {
    {
        name = "smooth_frames", summary = "Smooths whole frames.",
        takes = {quantity = "any", layout = "frames"},
        gives = {quantity = "same", layout = "same"}, cuts = {"frames"},
        run = function(block)
            block:replace(mb.gaussian_filter(block.data, {0, 1.5, 1.5}))
        end,
    },
}

local ONE = {"flat_field", "minus_log", {"fbp", center = CENTER}}
local TWO = {"flat_field", "smooth_frames", "minus_log", {"fbp", center = CENTER}}

-- Before section i the system has `bytes[i]` bytes for the pool of a device beyond what is live (a
-- function of the plan's peak there).
local function system_has(bytes, id)
    local section = activate.section
    activate.section = function(made, i, ...)
        mb.collect()
        mb.pool.trim(id)
        local has = bytes[i] and bytes[i](made.sections[i].peaks[id])
        mb.debug.pretend_memory(has and has + mb.pool.stats(id).live or PLENTY, id)
        return section(made, i, ...)
    end
    return setmetatable({}, {__close = function()
        activate.section = section
        mb.debug.pretend_memory(PLENTY, id)
        budget.available(mb.device(id))
        mb.debug.pretend_memory(0, id)
    end})
end

local function part(p)
    return function(peak)
        return peak * p // 100
    end
end

describe("the budget of a pipeline", function()
    local scan, arrays, host, before

    before_each(function()
        arrays = {
            raw = mb.random({ANGLES, ROWS, COLS}, {dtype = "u16", low = 300, high = 900, seed = 3}),
            flats = mb.random({3, ROWS, COLS}, {dtype = "u16", low = 980, high = 1020, seed = 4}),
            darks = mb.random({2, ROWS, COLS}, {dtype = "u16", low = 3, high = 9, seed = 5}),
        }
        scan = mb.scan.of_arrays(arrays.raw, mb.tomo.angles(ANGLES),
            {flats = arrays.flats, darks = arrays.darks})
        host = mb.device "host"
        before = host:budget()
    end)

    after_each(function()
        assert.equal(before, host:budget())
        for _, array in pairs(arrays) do
            array:release()
        end
    end)

    local function volume(recipe, options)
        local own = {quiet = true, pinned = "1Mi", steps = OWN, block = 64}
        for name, value in pairs(options or {}) do
            own[name] = value
        end
        local parts = {}
        local report = mb.pipeline(scan, recipe, own):run(function(block, first)
            parts[#parts + 1] = {first, block:to_string()}
        end)
        table.sort(parts, function(a, b) return a[1] < b[1] end)
        for i, each in ipairs(parts) do
            parts[i] = each[2]
        end
        assert.is_true(report.as_planned)
        assert.is_true(report.plan.peak <= report.plan.at_most)
        return table.concat(parts), report
    end

    it("shrinks with what others take, and so do the blocks, with the same bits", function()
        local whole, first = volume(ONE)
        assert.same({}, first.budgets)
        local last = 64
        for _, percent in ipairs {90, 50, 30} do
            local _ <close> = system_has({part(percent)}, "host")
            local same, report = volume(ONE)
            assert.is_true(whole == same)
            local changed, again = report.budgets[1], report.replanned[1]
            assert.equal(1, #report.budgets)
            assert.equal("host", changed.device)
            assert.equal(before, changed.from)
            assert.equal(host:budget(), changed.to)
            assert.is_true(mb.pool.stats().live + report.peak <= changed.to)
            assert.matches("the budget of host is .* now, not .*: other programs have taken memory",
                changed.text)
            assert.equal(changed.text, report.warnings[#report.warnings])
            assert.equal(64, again.from)
            assert.is_true(again.to < last or again.to == last and not
                report.plan.sections[1].overlap)
            assert.matches("are needed on host, where other programs have left", again.text)
            last = again.to
        end
        assert.is_true(last < 32)
    end)

    it("is as it was where the section fits what others leave", function()
        local whole = volume(ONE)
        for _, extra in ipairs {0, 7} do -- just enough: 95 % are used as planned
            local _ <close> = system_has({function(peak)
                local live = mb.pool.stats().live
                return (live + peak) * (160 - 2 * extra) // 100 - live
            end}, "host")
            local same, report = volume(ONE)
            assert.is_true(whole == same)
            assert.same({}, report.budgets)
            assert.same({}, report.replanned)
        end
    end)

    it("grows again between sections, no further than it was", function()
        local whole, first = volume(TWO)
        local _ <close> = system_has({part(60)}, "host")
        local same, report = volume(TWO)
        assert.is_true(whole == same)
        assert.equal(2, #report.budgets)
        assert.equal(1, #report.replanned)
        assert.equal(1, report.replanned[1].section)
        assert.equal(report.budgets[1].to, report.budgets[2].from)
        assert.equal(before, report.budgets[2].to)
        assert.matches("freed memory", report.budgets[2].text)
        assert.equal(first.plan.sections[2].count, report.plan.sections[2].count)
        assert.same(first.sections[2].peaks, report.sections[2].peaks)
        assert.is_true(report.sections[1].peaks.host < first.sections[1].peaks.host)
    end)

    it("shrinks in a later section alone", function()
        local whole, first = volume(TWO)
        local _ <close> = system_has({[2] = part(60)}, "host")
        local same, report = volume(TWO)
        assert.is_true(whole == same)
        assert.equal(2, report.replanned[1].section)
        assert.equal(first.plan.sections[1].count, report.plan.sections[1].count)
        assert.is_true(report.plan.sections[2].count < first.plan.sections[2].count)
    end)

    it("is an error where not one packet fits, and the run can be repeated", function()
        local whole = volume(ONE)
        do
            mb.collect()
            mb.pool.trim() -- the rest of the last granule would be room enough
            local stats = mb.pool.stats()
            local _ <close> = mb.empty({stats.committed - stats.live - 4096}, {dtype = "u8"})
            local _ <close> = system_has({part(1)}, "host")
            local live = mb.pool.stats().live
            local message, err = helper.failure(volume, ONE)
            assert.equal("budget", err.code)
            assert.matches("section 1: .* are needed on host, where other programs have left .*, "
                .. "which is too little for the least block; end other programs", message)
            assert.equal(live, mb.pool.stats().live)
        end
        assert.is_true(whole == volume(ONE))
    end)

    it("that is too small for one packet leaves a run that can be resumed", function()
        local folder = files.folder()
        local _ <close> = setmetatable({}, {__close = function() files.remove(folder) end})
        assert(mb.system.mkdir(folder .. "/scratch"))
        local output, ok = files.run(("'%s' scripts/simulate.lua '%s/scan.h5' --size 24 --angles 30 "
            .. "-d host -q"):format(os.getenv "MOONBEAM_BIN" or mb.system.program(), folder))
        assert(ok, output)
        local id <const> = "host:1"
        local function run(name, resume)
            local stored <close> = assert(mb.scan.open(folder .. "/scan.h5"))
            local report = mb.pipeline(stored, {"flat_field", "smooth_frames", "minus_log",
                {"fbp", center = 11.5}}, {devices = id, block = 4, steps = OWN, quiet = true,
                host_budget = 512, scratch = folder .. "/scratch"})
                :run {output = folder .. "/" .. name, resume = resume}
            assert.is_true(report.as_planned)
            local file <close> = mb.h5.open(folder .. "/" .. name)
            local data <close> = file:read "/entry/data/data"
            return data:to_string(), report
        end
        local whole = run "whole.h5"
        do
            local _ <close> = system_has({function(peak) return 4 * peak end,
                function() return 4096 end}, id)
            local message, err = helper.failure(run, "again.h5")
            assert.equal("budget", err.code)
            assert.matches("section 2: .* too little for the least block", message)
        end
        assert.is_true(core.unfinished.exists(folder .. "/again.h5"))
        local same = run("again.h5", true)
        assert.is_true(whole == same)
        assert.is_false(core.unfinished.exists(folder .. "/again.h5"))
    end)

    it("that the user gave is a limit: all of what is there is used, and it never grows", function()
        local whole, first = volume(ONE)
        local own = mb.pool.stats().live + 2 * first.peak
        local _ <close> = setmetatable({}, {__close = function() host:budget(before) end})
        host:budget(own)
        do
            local _ <close> = system_has({part(80)}, "host")
            local same, report = volume(ONE)
            assert.is_true(whole == same)
            assert.equal(own, report.budgets[1].from)
            assert.equal(mb.pool.stats().live + first.plan.sections[1].peaks.host * 80 // 100,
                report.budgets[1].to) -- not a part of it
            assert.equal(1, #report.replanned)
        end
        assert.equal(own, host:budget())
        local same, report = volume(ONE)
        assert.is_true(whole == same)
        assert.same({}, report.budgets)
        assert.equal(own, host:budget())
    end)

    it("of each of several devices is asked for", function()
        local whole = volume(ONE)
        for _, id in ipairs {"host", "host:1"} do
            local _ <close> = system_has({part(50)}, id)
            local same, report = volume(ONE, {devices = {"host", "host:1"}, block = 24})
            assert.is_true(whole == same)
            assert.equal(1, #report.budgets)
            assert.equal(id, report.budgets[1].device)
            assert.equal(1, #report.replanned)
        end
    end)
end)
