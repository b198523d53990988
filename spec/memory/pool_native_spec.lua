-- The pool from C (pool_test.c): threads, foreign blocks, debug mode, and random operations against
-- an oracle. MOONBEAM_POOL_STEPS=1000000 makes the oracle's run a long one.

local helper = require "spec.helper"

local STEPS = math.tointeger(tonumber(os.getenv("MOONBEAM_POOL_STEPS") or 50000))

local program = helper.program:gsub("[^/]*$", "pool_test")

local function run(arguments)
    local output, status = helper.run_program(arguments, nil, program)
    assert.equal(0, status, output)
    assert.matches("ok\n$", output)
    return output
end

local function read(name)
    local file <close> = io.open(name)
    return file and file:read "a" or ""
end

describe("the pool in C", function()
    it("agrees with an oracle after every one of many random operations", function()
        for seed = 1, 3 do
            local output = run(("oracle %d %d"):format(STEPS // 3 + 1, seed))
            -- Free bytes in pieces that are too small do not count as a lack of budget.
            assert.matches("275.5 KiB fit the budget of [%d.]+ MiB, but no free range of addresses is that large: the largest has 275 KiB",
                output)
            local requests, refused = output:match("(%d+) requests, (%d+) refused")
            assert.is_true(tonumber(requests) > STEPS // 9 and tonumber(refused) > STEPS // 1000,
                output)
        end
    end)

    it("serves threads at the same time", function()
        local output = run("threads 4 5000")
        assert.matches("^4 threads, %d+ blocks", output)
    end)

    it("measures each thread's own peaks", function()
        run("scopes")
    end)

    it("names both places of a double or foreign free", function()
        local lines = {}
        for line in run("frees"):gmatch("[^\n]+") do
            lines[#lines + 1] = line
        end
        assert.matches("freed at stranger.lua:2, is foreign to this pool: it was made at make.lua:1 in the pool of device a$",
            lines[1])
        assert.matches("freed at first.lua:3, was freed again at second.lua:4 %(1024 bytes, made at make.lua:1%)$", lines[2])
        assert.matches("freed at first.lua:3, was freed again at stale.lua:6", lines[3])
        assert.matches("freed at stack.lua:7, is foreign to this pool: no pool made it$",
            lines[4])
        assert.matches("freed at inside.lua:8, is not live in this pool: it was already freed, or was never made$", lines[5])
        assert.matches("freed at wild.lua:9, is foreign to this pool", lines[6])
    end)

    it("tells by a dry run how far both ends reach, and commits that before", function()
        for seed = 1, 4 do
            assert.matches("fit the budget .* but the device does not have that much memory free",
                run("reach " .. seed))
        end
    end)

    it("dates events in nanoseconds of the clock, in order, by ticks of either kind", function()
        assert.matches("ticks of the clock\n", run "times clock")
        local output = run "times counter"
        local cpu = read "/proc/cpuinfo"
        local source = read "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        if cpu:find("nonstop_tsc", 1, true) and source:find "^tsc" then
            assert.matches("ticks of the counter\n", output)
        end
    end)

    it("fills blocks and finds damaged guards in debug mode", function()
        run("debug")
    end)
end)
