-- Progress, its remaining time over several sections, and what programs tell to logs.

local activity = require "moonbeam.internal.command_line.activity"
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("progress", function()
    local clock, stderr, now, shown

    -- Time goes on when a test says so, and the standard error is a list of texts.
    before_each(function()
        clock, stderr, now, shown = core.system.clock, io.stderr, 1000, {}
        core.system.clock = function()
            return now
        end
        rawset(io, "stderr", {
            write = function(_, ...)
                shown[#shown + 1] = table.concat {...}
            end,
            flush = function() end,
        })
    end)
    after_each(function()
        core.system.clock = clock
        rawset(io, "stderr", stderr)
    end)

    it("knows the remaining time of all sections", function()
        local bar = mb.progress.new("work", {{name = "first", count = 10, weight = 10},
            {name = "second", count = 5, weight = 30}}, {form = "none"})
        local fraction, left = bar:remaining()
        assert.equal(0, fraction)
        assert.is_nil(left)
        now = now + 20
        bar:step(5)
        assert.same({5 / 40, 20 + 30 * 4}, {bar:remaining()})
        now = now + 20
        bar:step(5)
        bar:section(2)
        assert.same({10 / 40, 30 * 4}, {bar:remaining()})
        now = now + 30
        bar:step(1) -- slower than the first: 30 s each
        assert.same({16 / 40, 4 * 30}, {bar:remaining()})
        bar:step(4)
        assert.same({1, 0}, {bar:remaining()})
        assert.equal(70, bar:finish())
    end)

    it("tells fast rates in whole numbers", function()
        local bar = mb.progress.new("work", 3456, {form = "line"})
        now = now + 2
        bar:step(3456)
        bar:finish()
        assert.equal("work: 3456 items in 2.00 s (1728 items/s)\n", shown[#shown])
    end)

    it("counts items where nothing else is said", function()
        local bar = mb.progress.new("work", 8, {form = "none"})
        now = now + 4
        bar:step(2)
        assert.same({0.25, 12}, {bar:remaining()})
        local sections = mb.progress.new("work", {{count = 2}, {count = 6}}, {form = "none"})
        now = now + 4
        sections:step(2)
        assert.same({0.25, 12}, {sections:remaining()})
        local nothing = mb.progress.new("work", 0, {form = "none"})
        assert.same({1, 0}, {nothing:remaining()})
    end)

    it("is a line now and then where nobody watches", function()
        local bar = mb.progress.new("work", {{name = "read", count = 4 * 3600}, {name = "write",
            count = 4 * 3600}}, {form = "line", unit = "rows"})
        for section = 1, 2 do
            bar:section(section)
            for _ = 1, 4 * 3600 do
                now = now + 1
                bar:step(1)
            end
        end
        bar:finish()
        assert.is_true(#shown > 50 and #shown < 150, #shown)
        assert.equal("work 1/2 read: 10/14400 rows, 1 rows/s, 7:59 h left in all\n", shown[1])
        assert.matches("^work 2/2 write: %d+/14400 rows, 1 rows/s, .* left in all\n$",
            shown[#shown - 1])
        assert.equal("work: 28800 rows in 8:00 h (1 rows/s)\n", shown[#shown])
    end)

    it("is redrawn on a terminal", function()
        local bar = mb.progress.new("work", 4, {form = "bar", unit = "slices"})
        for _ = 1, 4 do
            now = now + 2
            bar:step(1)
        end
        bar:finish()
        assert.same({"\rwork: 1/4 slices, 0.5 slices/s, 6 s left\27[K",
            "\rwork: 2/4 slices, 0.5 slices/s, 4 s left\27[K",
            "\rwork: 3/4 slices, 0.5 slices/s, 2 s left\27[K",
            "\rwork: 4/4 slices, 0.5 slices/s, 0 s left\27[K",
            "\r\27[Kwork: 4 slices in 8.00 s (0.5 slices/s)\n"}, shown)
    end)

    it("is an object a line for programs", function()
        local bar = mb.progress.new('a "name"\n', {{name = "one", count = 100}, {count = 100}},
            {form = "json", unit = "rows"})
        for _ = 1, 100 do
            now = now + 0.1
            bar:step(1)
        end
        bar:section(2)
        now = now + 1
        bar:step(50)
        bar:finish()
        assert.equal(14, #shown) -- begin, once a second, the second section, end
        assert.equal('{"event": "begin", "label": "a \\u0022name\\u0022\\u000a", "section": 1, '
            .. '"sections": 2, "name": "one", "done": 0, "total": 100, "unit": "rows", '
            .. '"fraction": 0, "seconds": 0, "remaining_seconds": null}\n', shown[1])
        assert.matches('"event": "progress".*"section": 2.*"name": null, "done": 50, .*'
            .. '"fraction": 0.75, "seconds": 11, "remaining_seconds": 1}\n$', shown[13])
        assert.matches('^{"event": "end"', shown[14])
    end)

    it("shows what work says of itself, until it has ended", function()
        do
            local bar <close> = mb.progress.new("work", 4, {form = "bar", unit = "rows"})
            now = now + 1
            bar:step(1)
            for k in activity.each("iteration", 2) do
                now = now + k
            end
            bar:step(1)
        end
        activity.at("nobody", 1, 2)
        assert.same({"\rwork: 1/4 rows, 1 rows/s, 3 s left\27[K",
            "\rwork: 1/4 rows, 0.5 rows/s, 6 s left, iteration 1 of 2\27[K",
            "\rwork: 1/4 rows, 0.25 rows/s, 12 s left, iteration 2 of 2\27[K"}, shown)
        shown = {}
        local bar = mb.progress.new("work", 4, {form = "json"})
        now = now + 2
        activity.at("slice", 3, 9)
        bar:finish()
        assert.matches('"event": "progress".*"doing": "slice 3 of 9"}', shown[2])
        assert.is_nil(shown[3]:find "doing")
        shown = {}
        bar = mb.progress.new("work", 4, {form = "line"})
        for k in activity.each("iteration", 100) do
            now = now + k / 50
        end
        bar:finish()
        assert.is_true(#shown > 3 and #shown < 20, #shown)
        assert.matches("^work: 0/4 items, 0 items/s, %? s left, iteration %d+ of 100\n", shown[1])
    end)

    it("shows work whose length nobody knows, without a line that stays", function()
        do
            local _ <close> = mb.progress.watch "searching"
            for k in activity.each("trial slice", 60) do
                now = now + k / k
            end
        end
        activity.at("nobody", 1, 2)
        assert.is_true(#shown >= 3 and #shown <= 8, #shown)
        assert.matches("^searching: trial slice 1%d of 60\n$", shown[1])
        shown = {}
        do
            local _ <close> = mb.progress.watch("searching", {quiet = true})
            activity.at("trial slice", 60, 60)
        end
        assert.same({}, shown)
    end)

    it("is told by the iterations of methods, trial slices, and levels of a pyramid", function()
        local heard = {}
        local _ <close> = activity.listen(function(what, done, all)
            heard[#heard + 1] = ("%s %d/%d"):format(what, done, all)
        end)
        local sino <close> = mb.random({1, 12, 16}, {seed = 1})
        local angles = mb.tomo.angles(12)
        for _, name in ipairs {"cgls", "sirt", "mlem", "landweber", "fista", "admm_tv"} do
            heard = {}
            mb.tomo[name](sino, angles, {iterations = 3}):release()
            assert.equal("iteration 3/3", heard[#heard], name)
        end
        local folder = files.folder()
        core.system.clock = function() -- every look is half a minute later
            now = now + 30
            return now
        end
        shown = {}
        local volume <close> = mb.random({3, 300, 8}, {seed = 1})
        local result <close> = mb.result.create(folder .. "/v.zarr", {shape = volume.shape})
        result:write(volume, 1)
        result:finish()
        files.remove(folder)
        assert.equal("pyramid: level 2, slice 1 of 2\npyramid: level 2, slice 2 of 2\n",
            table.concat(shown))
    end)

    it("is silent when it should be", function()
        local bar = mb.progress.new("work", 4, {quiet = true})
        now = now + 100
        bar:step(4)
        bar:finish()
        mb.dry_run(function()
            local planned = mb.progress.new("work", 4, {form = "json"})
            planned:step(4)
            planned:finish()
        end)
        assert.same({}, shown)
    end)

    it("says what is wrong", function()
        assert.matches("total must be a number, 0 or more",
            (helper.failure(mb.progress.new, "x", -1)))
        assert.matches("total must be a number, or a list", (helper.failure(mb.progress.new, "x",
            {})))
        assert.matches("section 1 of total must be a table", (helper.failure(mb.progress.new, "x",
            {5})))
        assert.matches("the count of section 2 must be", (helper.failure(mb.progress.new, "x",
            {{count = 1}, {}})))
        assert.matches("form is the string 'xml'; it must be bar, line, json or none",
            (helper.failure(mb.progress.new, "x", 1, {form = "xml"})))
        local bar = mb.progress.new("work", 4, {form = "none"})
        assert.matches("number is 2; it must be from 1 to 1", (helper.failure(bar.section, bar, 2)))
    end)
end)

describe("a program", function()
    local folder
    before_each(function()
        folder = files.folder()
    end)
    after_each(function()
        files.remove(folder)
    end)

    local function lines_of(text)
        local lines = {}
        for line in text:gmatch "[^\n]+" do
            lines[#lines + 1] = line
        end
        return lines
    end

    it("logs what it tells, and shows progress as JSON", function()
        local text, status = helper.run_program(("scripts/simulate.lua %s/scan.h5 --size 32 "
            .. "--rows 4 -d host --log %s/log --progress json"):format(folder, folder))
        assert.equal(0, status, text)
        local python = files.python "json"
        local events = 0
        for line in text:gmatch "{[^\n]*}" do
            events = events + 1
            if python then
                files.write(folder .. "/line", line)
                assert.equal("simulating\n", (files.run(
                    ("%s -c 'import json; print(json.load(open(\"%s/line\"))[\"label\"])'"):format(
                        python, folder))))
            end
        end
        assert.is_true(events >= 2)
        local lines = lines_of(files.read(folder .. "/log"))
        for _, line in ipairs(lines) do
            assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%+00:00 ", line)
        end
        assert.matches("simulate .*scan.h5 %-%-size 32 .*%-%-progress json$", lines[1])
        assert.matches("simulating: %d+ projections in", table.concat(lines, "\n"))
        assert.matches("scan.h5: %d+ projections of 4 x 32", lines[#lines - 1])
        assert.matches(" end of the program$", lines[#lines])
    end)

    it("says once that a log cannot be written any more, and goes on", function()
        local text, status = helper.run_program(("scripts/simulate.lua %s/full.h5 --size 32 "
            .. "--rows 4 -d host -q --log /dev/full"):format(folder))
        assert.equal(0, status, text)
        local _, count = text:gsub("the log '/dev/full' ends here: No space left on device\n", "")
        assert.equal(1, count, text)
    end)

    it("logs why it failed, and appends", function()
        for run = 1, 2 do
            local _, status = helper.run_program(("scripts/reconstruct.lua %s/none.h5 -d host "
                .. "--log %s/log"):format(folder, folder))
            assert.equal(1, status)
            local lines = lines_of(files.read(folder .. "/log"))
            assert.equal(3 * run, #lines)
            assert.matches("reconstruct: .*none.h5.*No such file", lines[3 * run - 1])
        end
        files.write(folder .. "/own.lua", ([[
            local cli = require "moonbeam.internal.cli"
            cli.parse({"--log", "%s/own"}, {usage = "own", summary = "own", cli.shared.log})
            error "all is lost"]]):format(folder))
        helper.run_program(folder .. "/own.lua")
        assert.matches("own.lua:3: all is lost\n.*end of the program\n$",
            files.read(folder .. "/own"))
        local text, status = helper.run_program(("scripts/reconstruct.lua %s/none.h5 --log %s/no/x")
            :format(folder, folder))
        assert.equal(1, status)
        assert.matches("%-%-log .*/no/x cannot be written: No such file", text)
    end)
end)
