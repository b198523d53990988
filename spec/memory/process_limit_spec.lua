-- The limit of the whole process: what the pools of the host have beside the rest, and what is said
-- where that is not enough.

local budget = require "moonbeam.plan.budget"
local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local process_limit = require "moonbeam.plan.process_limit"
local refusals = require "spec.support.refusals"

local MIB <const> = 1 << 20
local OTHER <const> = 48 * MIB
local there, limits = pcall(require, "scripts.fuzzing.limits")
local unable = helper.program:match "/sanitize/" and "a sanitized program takes terabytes of addresses"
    or not there and "a bundle has no scripts/fuzzing" or nil

-- The process has these limits until the returned value is closed.
local function limited(own)
    return refusals.in_place_of(process_limit, "read", function()
        return {used = own.used, addresses = own.addresses, kept = own.kept or 0,
            processes = own.processes or 1, available = 1 << 40}
    end)
end

local function used(most, left)
    return {most = most * MIB, left = left * MIB, name = "/sys/fs/cgroup/job/memory.max"}
end

describe("the limit of a process", function()
    local host, before

    before_each(function()
        host = mb.device "host"
        before = host:budget()
        mb.collect()
        mb.pool.trim "host"
    end)

    after_each(function()
        budget.fit({host}, 0) -- nothing limits it
        assert.equal(before, host:budget())
    end)

    it("leaves to the pools what the rest does not take", function()
        local committed = process_limit.committed()
        local _ <close> = limited {used = used(500, 400)}
        assert.equal(OTHER + 64 * MIB + 5, process_limit.beside(64 * MIB, 5))
        assert.equal(committed + 400 * MIB - 70 * MIB, process_limit.room(70 * MIB))
        assert.equal(0, process_limit.room(committed + 401 * MIB))
        local _ <close> = limited {used = used(500, 400), processes = 4}
        assert.equal(committed + 30 * MIB, process_limit.room(70 * MIB))
        local _ <close> = limited {}
        assert.is_nil(process_limit.room(70 * MIB))
    end)

    it("on addresses leaves the range of the pool, or nothing; stacks of threads count", function()
        local function addresses(left)
            return {addresses = {most = 900 * MIB, left = left * MIB, name = "RLIMIT_AS (ulimit -v)"},
                kept = 160 * MIB}
        end
        local _ <close> = limited(addresses(100))
        assert.is_nil(process_limit.room(100 * MIB))
        assert.equal(0, process_limit.room(100 * MIB + 1))
        assert.is_nil(process_limit.room(20 * MIB, 14))
        assert.equal(0, process_limit.room(20 * MIB + 1, 14))
        local text, bytes = process_limit.remedy(10 * MIB, 100 * MIB + 1)
        assert.matches(("raise the limit to at least %d MiB, as by ulimit %%-v %d$"):format(
            bytes // MIB, bytes >> 10), text)
        local own = {most = 900 * MIB, left = 100 * MIB, name = "RLIMIT_DATA (ulimit -d)"}
        local _ <close> = limited {used = own}
        assert.equal(process_limit.committed(), process_limit.room(20 * MIB, 14))
    end)

    it("is what the default budgets are fitted to; one that was given stays", function()
        local committed = process_limit.committed()
        local _ <close> = limited {used = used(300, 250)}
        budget.fit({host}, 16 * MIB, 1 * MIB)
        assert.equal(committed + (250 - 17) * MIB - OTHER, host:budget())
        assert.equal(host:budget() - mb.pool.stats().live, budget.available(host))
        budget.fit({host, mb.device "host:1"}, 16 * MIB)
        assert.equal((committed + (250 - 16) * MIB - OTHER) // 2, host:budget())
        assert.equal(host:budget(), mb.device("host:1"):budget())
        budget.fit({host, mb.device "host:1"}, 0)
        assert.equal(8 * MIB, budget.part_of_pinned({host, mb.device "host:1"}, host, 16 * MIB))
        local _ <close> = limited {}
        budget.fit({mb.device "host:1"}, 0)
        budget.fit({host}, 0)
        assert.equal(before, host:budget())
        local given <close> = setmetatable({}, {__close = function() host:budget(before) end})
        host:budget(900 * MIB)
        local _ <close> = limited {used = used(300, 250)}
        budget.fit({host}, 16 * MIB)
        assert.equal(900 * MIB, host:budget())
        assert.equal(0, budget.part_of_pinned({host}, host, 16 * MIB))
        assert.truthy(given)
    end)

    it("raised as the remedy says is enough, also for several processes of a node", function()
        for _, processes in ipairs {1, 3} do
            local own = {used = used(300, 250), processes = processes}
            local need = process_limit.committed() + 400 * MIB
            local _ <close> = limited(own)
            assert.is_true(process_limit.room(OTHER) < need)
            local text, bytes = process_limit.remedy(need, OTHER)
            local megabytes = tonumber(text:match "%-%-mem=(%d+)M$")
            assert.equal(bytes, megabytes * MIB)
            assert.matches("the .-process.- need.-, and the limit is 300 MiB %(/sys/fs/cgroup/job/"
                .. "memory.max%)", text)
            local _ <close> = limited {used = used(megabytes, megabytes - 50),
                processes = processes}
            assert.is_true(process_limit.room(OTHER) >= need)
            assert.is_true(process_limit.room(OTHER) <= need + 24 * MIB)
        end
    end)

    it("bounds a plan: blocks are smaller, bits the same; too little is told with what is enough",
        function()
        local raw <close> = mb.random({96, 64, 256}, {dtype = "u16", low = 300, high = 900, seed = 3})
        local flats <close> = mb.random({3, 64, 256}, {dtype = "u16", low = 980, high = 1020, seed = 4})
        local darks <close> = mb.random({2, 64, 256}, {dtype = "u16", low = 3, high = 9, seed = 5})
        local scan = mb.scan.of_arrays(raw, mb.tomo.angles(96), {flats = flats, darks = darks})
        local recipe = {"flat_field", "minus_log", {"fbp", center = 127.5}}
        local function volume()
            local parts = {}
            local report = mb.pipeline(scan, recipe, {quiet = true, pinned = "2Mi"}):run(
                function(block, first)
                    parts[#parts + 1] = {first, block:to_string()}
                end)
            table.sort(parts, function(a, b) return a[1] < b[1] end)
            for i, each in ipairs(parts) do
                parts[i] = each[2]
            end
            return table.concat(parts), report.plan
        end
        local whole, plan = volume()
        local count = plan.sections[1].count
        local pool = mb.pool.stats().live + plan.peak
        mb.pool.trim "host"
        local left = pool - process_limit.committed() + OTHER + plan.pinned
        do
            local _ <close> = limited {used = {most = left + 50 * MIB, left = left - plan.peak // 3,
                name = "job"}}
            local same, made = volume()
            assert.is_true(same == whole)
            assert.is_true(made.sections[1].count < count or plan.sections[1].overlap
                and not made.sections[1].overlap)
        end
        local needed
        mb.collect()
        mb.pool.trim "host"
        do
            local _ <close> = limited {used = {most = 90 * MIB, left = OTHER, name = "job"}}
            local _, err = helper.failure(volume)
            assert.equal("budget", err.code)
            assert.matches("the limit is 90 MiB %(job%): raise the limit to at least %d+ MiB, as by "
                .. "Slurm's %-%-mem=", err.message)
            needed = err.process_limit
        end
        local _ <close> = limited {used = {most = needed, left = needed - 90 * MIB + OTHER,
            name = "job"}}
        assert.is_true(volume() == whole)
    end)

    it("that leaves too little to plan anything is told at once", function()
        local _ <close> = limited {used = used(60, 31)}
        local text, err = helper.failure(budget.fit, {host}, 0)
        assert.equal("budget", err.code)
        assert.matches("the limit of the process is 60 MiB .-: raise it to 96 MiB or more, as by "
            .. "Slurm's %-%-mem=96M", text)
        local _ <close> = limited {used = used(96, 96 - 29)}
        budget.fit({host}, 0)
    end)

    it("refuses a work whose budget was given, before it begins", function()
        local _ <close> = limited {used = used(300, 250)}
        budget.admit("the work", process_limit.committed() + 200 * MIB, 0)
        local _, err = helper.failure(budget.admit, "the work", process_limit.committed() + 240 * MIB,
            0)
        assert.equal("budget", err.code)
        assert.matches("^the work takes .- of the memory of the host; with pinned memory, program "
            .. "and buffers the process needs .- or give a smaller budget", err.message)
    end)
end)

describe("commands under a limit", function()
    local campaign

    setup(function()
        local folder = files.folder()
        campaign = {program = helper.program, folder = folder, measure = folder .. "/measure",
            seconds = 120, seed = 31, folder_of_all = folder}
        files.write(folder .. "/measure", table.concat({"#!/bin/sh", "out=$2 err=$3", "shift 3",
            '"$@" >"$out" 2>"$err" </dev/null', 'code=$?', 'if [ $code -gt 128 ]; then',
            'echo "signal $((code - 128)) 0 0"; else echo "exit $code 0 0"; fi'}, "\n") .. "\n")
        assert(os.execute(("chmod +x '%s/measure'"):format(folder)))
        campaign.kinds = there and limits.kinds()
    end)

    teardown(function()
        files.remove(campaign.folder_of_all)
    end)

    it("end well, or are refused and end well with what the message says", function()
        if unable then
            pending(unable)
            return
        end
        local verdicts = {}
        for index = 1, 6 do
            limits.try(campaign, index, function(entry)
                verdicts[entry.verdict] = (verdicts[entry.verdict] or 0) + 1
                assert.is_truthy(entry.verdict == "done" or entry.verdict:find "^refused",
                    ("%s: %s: %s"):format(entry.name, entry.verdict, entry.result.err))
            end)
        end
        assert.is_true(verdicts.done >= 3)
    end)

    it("have the bits that they have without one", function()
        if unable then
            pending(unable)
            return
        end
        local folder = campaign.folder
        local group <close> = limits.group(160 * MIB)
        local enter = group and group:enter() or "ulimit -v 400000"
        local text, status = helper.run_program(("simulate %s/bits.h5 --size 512 --rows 32 "
            .. "--angles 200 -d host -q"):format(folder))
        assert.equal(0, status, text)
        local chunks = {}
        for i, shell in ipairs {"true", enter} do
            text, status = helper.run_program(("reconstruct %s/bits.h5 -o %s/bits-%d.h5 -d host "
                .. "--center 255.5"):format(folder, folder, i), "", shell .. "; "
                .. helper.program)
            assert.equal(0, status, text)
            chunks[i] = text:match "chunks[^\n]*"
        end
        local one <close> = mb.images.read(folder .. "/bits-1.h5", "host")
        local two <close> = mb.images.read(folder .. "/bits-2.h5", "host")
        assert.is_true(one:to_string() == two:to_string())
        assert.is_true(chunks[1] ~= chunks[2] or not group)
        assert.equal(0, group and group.killed() or 0)
        assert.truthy(core)
    end)
end)
