-- The fuzzer itself: that it tells every kind of failure, so that its silence means something.
local files = require "spec.support.files"
require "spec.helper"

local has_compiler = os.execute("command -v cc >/dev/null 2>&1")
    and io.open("scripts/fuzzing/measure.c")
local test = has_compiler and it or function(name)
    it(name, function()
        pending("no C compiler, or no scripts/fuzzing")
    end)
end

describe("scripts/fuzz", function()
    local folder, campaign, fuzzing, complain

    setup(function()
        folder = files.folder()
        if has_compiler then
            has_compiler:close()
            fuzzing = {files = require "scripts.fuzzing.files",
                report = require "scripts.fuzzing.report",
                mutate = require "scripts.fuzzing.mutate"}
            complain, fuzzing.report.complain = fuzzing.report.complain, function() end
            assert(os.execute(("cc -o %s/measure scripts/fuzzing/measure.c"):format(folder)))
            assert(os.execute(("mkdir %s/runs"):format(folder)))
            campaign = {program = folder .. "/program", measure = folder .. "/measure",
                folder = folder .. "/runs", seed = 1}
        end
    end)

    teardown(function()
        files.remove(folder)
    end)

    before_each(function()
        if campaign then
            campaign.seconds = 60 -- no run that ends takes so long, on any machine
        end
    end)

    -- The verdicts of both runs of a mutant, by a program that is this shell script. Of the numbers
    -- 1 and 2 of this seed the first one is a sound file.
    local function verdicts(script, kind, index)
        files.write(folder .. "/program", "#!/bin/sh\n" .. script .. "\n")
        assert(os.execute(("chmod +x %s/program"):format(folder)))
        local tallies, found, bad = fuzzing.report.new(), {}, 0
        local seed = {name = "seed", kind = kind or "scan", extension = "x",
            text = ("text"):rep(20), values = {}, protected = {},
            facts = kind == "image" and {sum = 7, shape = "1 x 2"}
                or {n_angles = 2, angles = {0, 1.5}}, sum = 1}
        fuzzing.files.try(campaign, seed, "structure", index or 2, function(entry)
            found[#found + 1] = entry.verdict
            bad = bad + (fuzzing.report.file(tallies, kind or "scan", seed, entry) and 1 or 0)
        end)
        return found, bad
    end

    for _, case in ipairs {
        {"crash", "kill -SEGV $$"},
        {"hang", "sleep 30"},
        {"sanitizer", "exit 77"},
        {"traceback", "echo 'stack traceback' >&2; exit 1"},
        {"several lines", "echo one >&2; echo two >&2; exit 1"},
        {"several lines", "exit 1"},
        {"status", "echo one >&2; exit 3"},
    } do
        test(("counts as a failure: %s (%s)"):format(case[1], case[2]), function()
            campaign.seconds = case[1] == "hang" and 1 or campaign.seconds
            local found, bad = verdicts(case[2])
            assert.same({case[1], case[1]}, found)
            assert.equal(2, bad)
        end)
    end

    test("counts a clean error as one, with its warnings", function()
        local found, bad = verdicts("echo 'warning: odd' >&2; echo 'x.lua: wrong' >&2; exit 1")
        assert.same({"clean error", "clean error"}, found)
        assert.equal(0, bad)
    end)

    test("sees what a run leaves behind", function()
        local leaves = ("touch %s/runs/result.h5.part-1; echo no >&2; exit 1"):format(folder)
        local _, bad = verdicts(leaves)
        assert.equal(1, bad)
        assert.same({"err", "out"}, files.list(folder .. "/runs"))
    end)

    test("counts a sound file that is refused, as one of five is", function()
        local refuses = "echo 'x.lua: wrong' >&2; exit 1"
        local found, bad = verdicts(refuses, nil, 1)
        assert.same({"sound input: clean error", "sound input: clean error"}, found)
        assert.equal(2, bad)
        found, bad = verdicts(refuses, nil, 2)
        assert.same({"clean error", "clean error"}, found)
        assert.equal(0, bad)
    end)

    test("sees an input that was changed", function()
        local found, bad = verdicts(([[for name in %s/runs/mutant*; do echo >> "$name"; done
            echo no >&2; exit 1]]):format(folder))
        assert.same({"clean error", "input changed"}, found)
        assert.equal(1, bad)
    end)

    test("tells changed facts in silence from those that were told", function()
        local facts = [[case "$1" in
            *facts.lua) echo 'return {n_angles = 3, angles = {0, 1.5, 2}}' ;;
            *) %s ;;
        esac]]
        local found, bad = verdicts(facts:format ":")
        assert.same({"accepted", "accepted, changed in silence"}, found)
        assert.equal(1, bad)
        found, bad = verdicts(facts:format "echo 'warning: an angle was lost' >&2")
        assert.same({"accepted", "accepted, changed and said so"}, found)
        assert.equal(0, bad)
        found, bad = verdicts(":") -- status 0, and nothing is there
        assert.same({"accepted", "accepted, without a result"}, found)
        assert.equal(1, bad)
        found = verdicts([[echo 'return {shape = "2 x 1", sum = 7}']], "image")
        assert.same({"accepted, other tags"}, found)
        found = verdicts([[echo 'return {shape = "1 x 2", sum = 8}']], "image")
        assert.same({"accepted, other pixels"}, found)
    end)

    test("makes the same mutants from the same seed, and leaves protected bytes alone", function()
        local text = ("abcdefgh"):rep(100)
        local made = {}
        for round = 1, 2 do
            made[round] = {}
            for index = 1, 200 do
                math.randomseed(5, index)
                made[round][index] = fuzzing.mutate.structure(text, {{1, 700}})
                assert.equal(text:sub(1, 700), made[round][index]:sub(1, 700))
            end
        end
        assert.same(made[1], made[2])
        local changed = 0
        for index = 1, 200 do
            math.randomseed(5, index)
            local mutant = fuzzing.mutate.values(text, {{301, 308}})
            assert.equal(#text, #mutant)
            assert.equal(text:sub(1, 300), mutant:sub(1, 300))
            assert.equal(text:sub(317), mutant:sub(317))
            changed = changed + (mutant ~= text and 1 or 0)
        end
        assert.is_true(changed > 150)
    end)

    test("adds the counts of several processes up", function()
        local first, second = fuzzing.report.new(), fuzzing.report.new()
        first.counts["scan plan"] = {crash = 1, accepted = 2}
        second.counts["scan plan"] = {accepted = 3}
        fuzzing.report.write(first, folder .. "/a")
        fuzzing.report.write(second, folder .. "/b")
        local sum = fuzzing.report.merge(folder .. "/a," .. folder .. "/b")
        assert.same({crash = 1, accepted = 5}, sum.counts["scan plan"])
    end)

    -- What report.calls notes of a batch whose measure and errors were these.
    local function failures(how, errors)
        local tallies, paths = fuzzing.report.new(), {}
        for name, text in pairs {out = "return {ok = 2}", err = errors, log = "17"} do
            paths[name] = folder .. "/" .. name
            files.write(paths[name], text)
        end
        fuzzing.report.at(tallies, "scripts/fuzz --seed 3")
        fuzzing.report.calls(tallies, "recipes", how, paths.out, paths.err, paths.log)
        return tallies.counts.recipes, table.concat(tallies.failures, "\n")
    end

    test("tells failures of calls again, with the command that repeats them", function()
        fuzzing.report.complain = complain
        local counts, text = failures("exit 0 1 2", "call 4: leak: fbp: 512 bytes\n")
        assert.same({ok = 2}, counts)
        assert.equal("recipes, call 4: leak: fbp: 512 bytes\n  again: scripts/fuzz --seed 3", text)
        counts, text = failures("exit 77 1 2", "")
        assert.same({sanitizer = 1}, counts)
        assert.matches("recipes, call 17: sanitizer .*again: scripts/fuzz %-%-seed 3", text)
        assert.same({hang = 1}, (failures("hang 300", "")))
        fuzzing.report.complain = function() end
    end)
end)
