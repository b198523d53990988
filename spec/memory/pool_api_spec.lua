-- The pool by hand: the interface of the classic image-processing pool (one activation, many uses,
-- 512-byte pitch and ceilings), and each of that pool's known defects, which must not be here.

local mb = require "moonbeam"
local helper = require "spec.helper"

local function dry(budget)
    return mb.device("host"):dry_device(budget)
end

describe("the pool by hand", function()
    it("rounds as the classic ceilings do, and checks for overflow", function()
        for _, bytes in ipairs {0, 1, 511, 512, 513, 100000} do
            assert.equal((bytes + 511) // 512 * 512, mb.pool.ceil_1d(bytes))
        end
        assert.equal(1024 * 20, mb.pool.ceil_2d(700, 20))
        assert.equal(512 * 3, mb.pool.ceil_2d(512, 3))
        assert.equal(0, mb.pool.ceil_2d(700, 0))
        -- defect: no overflow check
        assert.matches("more than can be addressed",
            (helper.failure(mb.pool.ceil_2d, 1 << 40, 1 << 30)))
        helper.failure(mb.pool.ceil_2d, -1, 5)
        helper.failure(mb.pool.ceil_2d, 1.5, 5)
    end)

    it("gives blocks that take what the ceilings say", function()
        local d <close> = dry(1 << 20)
        local a = mb.pool.alloc(1000, d)
        assert.equal(1000, a.bytes)
        assert.equal("u8", a.dtype)
        assert.equal(mb.pool.ceil_1d(1000), mb.pool.stats(d).live)
        local p, pitch = mb.pool.alloc_pitched(700, 20, {device = d})
        assert.equal(1024, pitch)
        assert.same({20, 700}, p.shape)
        assert.same({1024, 1}, p.strides)
        assert.equal(mb.pool.ceil_1d(1000) + mb.pool.ceil_2d(700, 20), mb.pool.stats(d).live)
        local q, own = mb.pool.alloc_pitched(100, 8, {device = d, pitch = 128})
        assert.equal(128, own)
        assert.equal(128, q.strides[1])
        helper.failure(mb.pool.alloc_pitched, 100, 8, {device = d, pitch = 64})
        for _, block in ipairs {a, p, q} do
            mb.pool.free(block)
        end
        assert.equal(0, mb.pool.stats(d).live)
    end)

    it("gives blocks of any type", function()
        local d <close> = dry(1 << 20)
        local a <close> = mb.pool.alloc(1000, {dtype = "f32", device = d})
        assert.same({250}, a.shape)
        assert.equal("f32", a.dtype)
        assert.equal(1024, mb.pool.stats(d).live)
        local p <close>, pitch = mb.pool.alloc_pitched(150, 20, {device = d, dtype = "f32"})
        assert.equal(1024, pitch)
        assert.same({20, 150}, p.shape)
        assert.same({256, 1}, p.strides)
        assert.equal(1024 + mb.pool.ceil_2d(4 * 150, 20), mb.pool.stats(d).live)
        assert.equal(20 * (1024 - 600), mb.pool.stats(d).pitch_waste)
        local q <close>, own = mb.pool.alloc_pitched(10, 4, {device = d, dtype = "c64", pitch = 96})
        assert.equal(96, own)
        assert.same({12, 1}, q.strides)
        assert.equal(8, mb.pool.element_bytes("c64"))
        assert.matches("1001 bytes are not a whole number of f32 %(4 bytes each%)",
            (helper.failure(mb.pool.alloc, 1001, {dtype = "f32"})))
        assert.matches("a pitch of 42 bytes is no whole number of f32",
            (helper.failure(mb.pool.alloc_pitched, 10, 4, {dtype = "f32", pitch = 42})))
        assert.matches("did you mean 'dtype'", (helper.failure(mb.pool.alloc_pitched, 10, 4,
            {dtyp = "f32"})))
        assert.matches("no_such", (helper.failure(mb.pool.alloc, 8, {no_such = 1})))
        assert.matches("width is 2.305843009e%+18; it must be a whole number",
            (helper.failure(mb.pool.alloc_pitched, 1 << 61, 1, {dtype = "f32"})))
    end)

    it("counts the waste between rows with the block that has rows", function()
        local d <close> = dry(1 << 20)
        local below <close> = mb.pool.alloc(512, d)
        local p = mb.pool.alloc_pitched(150, 20, {device = d, dtype = "f32"})
        local above <close> = mb.pool.alloc(512, d)
        local bytes = mb.pool.stats(d).live - below.bytes - above.bytes
        p:release()
        mb.pool.alloc(bytes, d):release() -- in the same place
        assert.equal(0, mb.pool.stats(d).pitch_waste)
    end)

    -- The founding example of the pool: the function's own text runs.
    it("holds many pitched images in one block, and commits nothing in steady state", function()
        local width, height, frames = 1920, 1080, 3
        mb.pool.trim()
        local rows <close> = mb.pool.alloc_pitched(width, 2 * height, {dtype = "f32"})
        local image <close> = rows:view({1, height}, mb.all)
        local smooth <close> = rows:view({height + 1, 2 * height}, mb.all)
        local mask <close> = mb.pool.alloc_pitched(width, height)
        local steady
        for frame = 1, frames do
            local noise <close> = mb.random({height, width}, {seed = frame})
            mb.convert(noise, "f32", {out = image})
            mb.box_filter(image, 5, {out = smooth})
            mb.adaptive_threshold(smooth, 11, {out = mask})
            local now = mb.pool.stats()
            steady = steady or now
            assert.equal(steady.committed, now.committed)
            assert.equal(steady.live, now.live)
            if frame == frames then
                local plain <close> = mb.box_filter(noise, 5)
                local want <close> = mb.adaptive_threshold(plain, 11)
                local marks <close> = mask:cast("f32")
                local wanted <close> = want:cast("f32")
                assert.equal(0, mb.metrics.rmse(plain, smooth))
                assert.equal(0, mb.metrics.rmse(wanted, marks))
                assert.is_true(wanted:sum() > width * height / 3)
            end
        end
    end)

    it("holds data in rows at a pitch", function()
        local p <close> = mb.pool.alloc_pitched(7, 3)
        p:fill(5)
        assert.same({{5, 5, 5, 5, 5, 5, 5}, {5, 5, 5, 5, 5, 5, 5}, {5, 5, 5, 5, 5, 5, 5}},
            p:to_table())
    end)

    it("activates, any number of times, and shuts down", function()
        mb.pool.trim()
        assert.is_false(mb.pool.active())
        mb.pool.activate("8Mi")
        assert.is_true(mb.pool.active())
        local committed = mb.pool.stats().committed
        assert.is_true(committed >= 8 << 20)
        -- defect: a second activation was refused with a line in a log
        mb.pool.activate("32Mi")
        assert.is_true(mb.pool.stats().committed >= 32 << 20)
        assert.is_true(mb.pool.active("host"))
        local a <close> = mb.zeros {1 << 20} -- from what is there
        assert.is_true(mb.pool.stats().committed >= 32 << 20)
        a:release()
        local report = mb.pool.shutdown()
        assert.equal(0, #report)
        assert.equal("no leaks", tostring(report))
        assert.is_false(mb.pool.active())
        assert.equal(0, mb.pool.stats().committed)
    end)

    it("commits both ends as far as a plan reaches", function()
        local function work()
            local a <close> = mb.zeros {3 << 20}
            local b <close> = mb.ramp_filter(a:view({1, 1 << 20}):reshape {512, 2048})
            return (b:sum())
        end
        local kept <close> = mb.zeros {1000} -- a plan starts where the pool is
        mb.collect()
        local planned = mb.plan.peak(function() return mb.bound(0, work) end)
        local low, high = table.unpack(planned.reach)
        assert.is_true(low >= 12 << 20 and high > 0)
        assert.is_true(low + high >= planned.peak)
        assert.same(planned.reach, mb.plan.peaks(function() mb.bound(0, work) end,
            {"host"}).reach.host)
        mb.pool.trim()
        mb.pool.activate(planned.reach, "host")
        local committed = mb.pool.stats().committed
        mb.pool.reset_reach()
        assert.equal(mb.pool.round(kept.bytes), mb.pool.stats().reach_arrays)
        assert.equal(0, mb.pool.stats().reach_scratch)
        do
            local _ <close> = setmetatable({}, {__close = function() mb.debug.refuse_commits(0) end})
            mb.debug.refuse_commits(1000)
            work()
        end
        local after = mb.pool.stats()
        assert.same({low, high, committed},
            {after.reach_arrays, after.reach_scratch, after.committed})
        mb.pool.trim()
        mb.pool.activate("host", {low})
        assert.is_true(mb.pool.stats().committed < committed)
        assert.matches("high", (helper.failure(mb.pool.activate, {low, "much"})))
        mb.pool.shutdown()
    end)

    -- defect: operators silently went on without the pool
    it("raises when it cannot be activated", function()
        local text, err = helper.failure(mb.pool.activate, "900T")
        assert.equal("budget", err.code, text)
        assert.is_false(mb.pool.active())
    end)

    -- defect: stale blocks after reactivation
    it("reports leaks by line at shutdown, and starts afresh", function()
        local leaked, first_line = {}, debug.getinfo(1, "l").currentline + 1
        for i = 1, 3 do leaked[i] = mb.zeros {1000} end
        local other = mb.pool.alloc(300)
        local report = mb.pool.shutdown()
        assert.equal(2, #report)
        assert.equal(3 * 4096, report[1].bytes)
        assert.equal(3, report[1].blocks)
        assert.matches("pool_api_spec.lua:" .. first_line .. "$", report[1].owner)
        assert.equal(512, report[2].bytes)
        assert.equal(3 * 4096 + 512, report.bytes)
        assert.matches("12288 bytes in 3 blocks made at [^\n]*pool_api_spec.lua:" .. first_line,
            tostring(report))
        assert.is_true(leaked[1].released and other.released)
        assert.equal(0, mb.pool.stats().live)
        assert.equal(0, #mb.pool.blocks())
        mb.pool.activate("1Mi")
        assert.equal(0, #mb.pool.blocks())
        assert.is_nil(mb.pool.check())
        local text = helper.failure(mb.pool.free, leaked[1])
        assert.matches("freed at [^\n]*pool_api_spec.lua:%d+ and is freed again at", text)
        mb.pool.shutdown()
    end)

    -- defect: lost until the pool was empty
    it("finds the hole before the first live block", function()
        local d <close> = dry(10 * 512)
        local a, b = mb.pool.alloc(4 * 512, d), mb.pool.alloc(6 * 512, d)
        local begin = mb.pool.blocks(d)[1].offset
        mb.pool.free(a)
        local c <close> = mb.pool.alloc(3 * 512, d)
        assert.equal(begin, mb.pool.blocks(d)[1].offset)
        assert.equal(3 * 512, c.bytes)
        b:release()
    end)

    -- defect: the caller went on with an unset block
    it("refuses what does not fit without touching anything", function()
        local d <close> = dry(4096)
        local a <close> = mb.pool.alloc(4000, d)
        local text, err = helper.failure(mb.pool.alloc, 1, d)
        assert.equal("budget", err.code, text)
        assert.equal(4608, err.enough)
        assert.equal(1, mb.pool.stats(d).blocks)
        assert.equal("refused", mb.pool.trace(d)[#mb.pool.trace(d)].action)
        a:release()
        mb.pool.alloc(4096, d):release()
    end)

    it("names both places of a double free", function() -- defect: a line in a log
        local a = mb.pool.alloc(100)
        local line = debug.getinfo(1, "l").currentline + 1
        mb.pool.free(a)
        local ok, err = pcall(function()
            mb.pool.free(a)
        end)
        assert.is_false(ok)
        assert.equal("argument", err.code)
        assert.matches("pool_api_spec.lua:" .. line .. " ", err.message)
        assert.matches("again at [^\n]*pool_api_spec.lua:" .. line + 2 .. "$", err.message)
        a:release() -- release is idempotent
    end)

    -- defect: blocks of size zero shared an address and were confused
    it("keeps empty blocks apart", function()
        local a, b = mb.pool.alloc(0), mb.pool.alloc(0)
        assert.equal(0, mb.pool.stats().live)
        mb.pool.free(a)
        assert.is_true(a.released)
        assert.is_false(b.released)
        mb.pool.free(b)
        helper.failure(mb.pool.free, a)
    end)

    it("loses nothing when an operator fails", function() -- defect: scratch leaked on error paths
        local d <close> = dry(1 << 20)
        local a <close> = mb.zeros({64, 64}, {device = d})
        local live = mb.pool.stats(d).live
        for n = 1, 3 do
            mb.debug.fail_nth(n, d)
            pcall(mb.ramp_filter, a)
            mb.debug.fail_nth(0, d)
            mb.collect()
            assert.equal(live, mb.pool.stats(d).live)
        end
    end)

    it("needs the largest need of a sequence, not their sum", function()
        local d <close> = dry(1 << 24)
        local a <close> = mb.zeros({50, 64}, {device = d})
        local out <close> = mb.empty({50, 64}, {device = d})
        local filter = mb.op.estimate("ramp_filter", {a}, {}, {device = d, given = true}).scratch
        local sum = mb.op.estimate("reduce", {a}, {fn = "sum"}, {device = d})
        local peak = mb.pool.peak(function()
            mb.ramp_filter(a, {out = out})
            mb.ramp_filter(a, {out = out})
            mb.reduce(a, "sum"):release()
        end, d)
        assert.equal(math.max(filter, sum.peak), peak)
    end)

    it("says what is free and how it is split", function()
        local d <close> = dry(100 * 512)
        local a = mb.pool.alloc(40 * 512, d)
        local stats = mb.pool.stats(d)
        assert.equal(60 * 512, stats.free)
        assert.equal(60 * 512, stats.largest_hole)
        assert.equal(0, stats.fragmentation)
        assert.equal(100 * 512, mb.pool.budget(nil, d))
        assert.equal(80 * 512, mb.pool.budget(80 * 512, d))
        assert.equal(40 * 512, mb.pool.stats(d).free)
        a:release()
    end)

    it("accounts for all that the system reports", function()
        local a <close> = mb.zeros {1000}
        local lines = mb.pool.accounting("host")
        assert.equal(4096, lines.live)
        assert.equal(a.bytes, 4000)
        assert.equal(lines.used, lines.live + lines.idle + lines.fft_plans + lines.library
            + lines.other)
        assert.equal(mb.pool.stats("host").committed, lines.live + lines.idle)
        assert.is_true(lines.total >= lines.used)
        local text = tostring(lines)
        assert.matches("^live +4 KiB\n", text)
        assert.matches("\nused +[%d.]+ %a+ of [%d.]+ %a+$", text)
    end)

    it("accounts for no more than the system reports, whatever was measured once", function()
        local _ <close> = mb.zeros {1000}
        local core = require "moonbeam.core"
        local methods = select(2, debug.getupvalue(debug.getmetatable(mb.device "host").__index, 1))
        local overhead, plans = methods.overhead, core.fft.plans
        -- Another process took memory while modules or plans were loaded, and has given it back.
        local function accounted(library, fft_plans)
            methods.overhead = function()
                return library
            end
            core.fft.plans = function()
                return {count = 1, library_bytes = fft_plans}
            end
            local ok, lines = pcall(mb.pool.accounting, "host")
            methods.overhead, core.fft.plans = overhead, plans
            assert(ok, lines)
            local sum = lines.live + lines.idle + lines.fft_plans + lines.library + lines.other
            assert.equal(lines.used, sum)
            assert.equal(4096, lines.live)
            assert.is_not_nil(tostring(lines):find("\nother +%d"))
            return lines, lines.used - lines.live - lines.idle
        end
        local lines, left = accounted(1 << 50, 4096)
        assert.same({4096, left - 4096, 0}, {lines.fft_plans, lines.library, lines.other})
        lines, left = accounted(1000, 1 << 50)
        assert.same({left, 0, 0}, {lines.fft_plans, lines.library, lines.other})
        lines, left = accounted(1000, 4096)
        assert.same({4096, 1000, left - 5096}, {lines.fft_plans, lines.library, lines.other})
    end)

    helper.gpu_it("accounts for all that the driver reports", function()
        local device = mb.device("cuda:0")
        mb.collect()
        mb.pool.trim(device)
        do -- what CUDA loads at the first use of kernels and of cuFFT
            local a <close> = mb.zeros({64, 100, 128}, {device = device})
            mb.ramp_filter(a):release()
        end
        mb.fft.drop(device)
        mb.pool.trim(device)
        -- Other processes may use the GPU too: what they do between two readings must not count. A
        -- reading counts only when the driver says the same before and after it,
        local function reading()
            for _ = 1, 100 do
                local free, total = device:memory()
                local lines = mb.pool.accounting(device)
                if device:memory() == free then
                    assert.equal(lines.used, lines.live + lines.idle + lines.fft_plans
                        + lines.library + lines.other)
                    assert.equal(total - free, lines.used)
                    assert.is_true(lines.library > 0 and lines.other >= 0, tostring(lines))
                    return lines
                end
                mb.system.sleep(0.05)
            end
            error("other processes change the memory of the GPU all the time")
        end
        -- and one taken during a step only when the step leaves as much in use as it found, but for
        -- `slack` bytes.
        local function during(slack, step)
            local before, within, after
            for _ = 1, 20 do
                before = reading()
                within = step()
                mb.pool.trim(device)
                after = reading()
                if math.abs(after.used - before.used) <= slack then
                    return before, within
                end
                mb.system.sleep(0.1)
            end
            error(("not given back, or taken by others, in each of 20 tries:\n%s\n%s"):format(
                before, after))
        end

        local before, with_array = during(0, function()
            local a = mb.zeros({256 << 20}, {device = device})
            local lines = reading()
            a:release()
            return lines
        end)
        assert.equal(1 << 30, with_array.live - before.live)
        assert.is_true(with_array.used - before.used >= 1 << 30)
        assert.equal(before.other, with_array.other) -- nothing is unexplained

        local without_plan, with_plan = during(4 << 20, function()
            local b <close> = mb.zeros({256, 200, 3000}, {device = device})
            mb.ramp_filter(b, {pad_width = 6000}):release()
            local lines = reading()
            mb.fft.drop(device)
            return lines
        end)
        assert.is_true(math.abs(with_plan.other - without_plan.other) <= 4 << 20,
            tostring(without_plan) .. "\n" .. tostring(with_plan))
    end)

    it("draws its address range", function()
        local d <close> = dry(1 << 20)
        local a = mb.pool.alloc(1 << 16, d)
        local b = mb.pool.alloc(1 << 16, d)
        local c = mb.pool.alloc(512, d)
        a:release()
        local text = mb.pool.map(d)
        assert.matches("^live 64.5 KiB of 1 MiB, 2 blocks", text)
        assert.matches("\nlow   %[%.+[#+]+%]", text)
        assert.matches("\n      000000010000 +64 KiB  array +[^\n]*pool_api_spec.lua:%d+", text)
        assert.matches("\ngap   %[ +%]", text)
        b:release()
        c:release()
    end)
end)

describe("what is live", function()
    it("is counted by line, by tag and by end", function()
        local d <close> = dry(1 << 20)
        local line = debug.getinfo(1, "l").currentline
        local a = mb.pool.alloc(1000, d)
        local b, c
        do
            local _ <close> = mb.pool.tag("filter")
            b = mb.pool.alloc(5000, d)
            do
                local _ <close> = mb.pool.tag("inner")
                c = mb.pool.alloc(512, d)
            end
            b:release()
            b = mb.pool.alloc(6000, d)
        end
        local e = mb.pool.alloc(100, d)
        local by_tag = mb.pool.usage("tag", d)
        assert.same({6144, "filter", 1, 6000}, {by_tag[1].bytes, by_tag[1].tag, by_tag[1].blocks,
            by_tag[1].requested})
        assert.same({1536, "", 2}, {by_tag[2].bytes, by_tag[2].tag, by_tag[2].blocks})
        assert.same({512, "inner"}, {by_tag[3].bytes, by_tag[3].tag})
        assert.equal(mb.pool.stats(d).live, by_tag.bytes)
        local by_owner = mb.pool.usage("owner", d)
        assert.equal(4, #by_owner)
        assert.matches("pool_api_spec.lua:" .. line + 11 .. "$", by_owner[1].owner)
        local by_end = mb.pool.usage("end", d)
        assert.same({"array", 4}, {by_end[1]["end"], by_end[1].blocks})
        assert.matches("owner, tag or end", (helper.failure(mb.pool.usage, "size", d)))
        assert.equal("filter", mb.pool.trace(d)[2].tag)
        local report = mb.pool.leaks(d)
        assert.matches("6144 bytes in 1 block made at [^\n]+%(filter%), the oldest %d+%.%d s ago",
            tostring(report))
        for _, block in ipairs {a, b, c, e} do
            block:release()
        end
        assert.equal(0, #mb.pool.usage(nil, d))
    end)

    it("says what is lost to rounding and to pitch", function()
        local d <close> = dry(1 << 20)
        local a <close> = mb.pool.alloc(1000, d)
        local p <close> = mb.pool.alloc_pitched(700, 20, {device = d})
        local stats = mb.pool.stats(d)
        assert.equal(1000 + 1024 * 20, stats.requested)
        assert.equal(24, stats.rounding)
        assert.equal((1024 - 700) * 20, stats.pitch_waste)
        assert.equal(700, p.shape[2])
        p:release()
        assert.equal(0, mb.pool.stats(d).pitch_waste)
        assert.equal(1000, a.bytes)
    end)

    it("can be a gigabyte a thousand times within four, when nobody releases it", function()
        local d <close> = dry("4G")
        for _ = 1, 1000 do
            mb.empty({250000000}, {device = d})
        end
        local stats = mb.pool.stats(d)
        assert.equal(1000, stats.allocs)
        assert.equal(0, stats.failures)
        assert.is_true(stats.live_peak <= 4 * 10 ^ 9)
    end)
end)

describe("debug mode", function()
    helper.each_device(function(id, declare)
        declare("fills new blocks with NaN and keeps results as they are on " .. id, function()
            mb.pool.debug(true, id)
            local _ <close> = setmetatable({}, {__close = function()
                mb.pool.debug(false, id)
            end})
            local options = {device = id}
            do
                local a <close> = mb.empty({100}, options)
                local x = a:item(50)
                assert.is_true(x ~= x)
                local bytes <close> = mb.empty({100}, {dtype = "u8", device = id})
                assert.equal(255, bytes:item(100))
                local b <close> = mb.ones({4, 60, 50}, options)
                local c <close> = mb.ramp_filter(b)
                assert.is_true(c:sum() == c:sum()) -- no scratch was read before it was written
                assert.matches("while no block is live; %d+ are",
                    (helper.failure(mb.pool.debug, false, id)))
            end
            mb.collect()
            assert.equal("no damage", tostring(mb.pool.damage(id)))
            assert.equal(0, mb.pool.stats(id).live)
        end)
    end)

    -- In programs of their own, because the pool keeps what it has found.
    helper.each_device(function(id, declare)
        declare("says whose guards were written to, and where that was found, on " .. id, function()
            local output, status = helper.run_program("--leaks --device " .. id .. " -", [[
                local mb = require "moonbeam"
                print(pcall(mb.debug.break_guard, mb.zeros {10}, false, 0))
                mb.collect()
                mb.pool.debug(true)
                local a = mb.zeros {1000}
                local b = mb.zeros {1000}
                print(pcall(mb.debug.break_guard, a, true, 512))
                mb.debug.break_guard(a, true, 3)
                mb.debug.break_guard(b, false, 0)
                print(mb.pool.damage())
                a:release()
                local list = mb.pool.damage()
                print(list)
                print(#list, list[1].distance, list[1].after, list[1].value, list[1].bytes, list[2].freed)
                b:release()
                os.exit(0, true)
            ]])
            assert.equal(0, status, output)
            local a_text = "the 512 bytes behind the block of 4096 bytes made at stdin:5 were written to (3 bytes away: 0x00), found "
            local b_text = "the 512 bytes before the block of 4096 bytes made at stdin:6 were written to (next to it: 0x00), found "
            for _, text in ipairs {a_text .. "while it is live\n" .. b_text .. "while it is live\n",
                a_text .. "when it was freed at stdin:11\n" .. b_text .. "while it is live\n",
                    "2\t3\ttrue\t0\t4096\tnil\n"} do
                assert.truthy(output:find(text, 1, true), output)
            end
            assert.equal(2, select(2, output:gsub("false\t[^\n]*there is no guard", "")))
        end)
    end)

    it("makes --leaks fail when guards were written to", function()
        local output, status = helper.run_program("--leaks -", [[
            local mb = require "moonbeam"
            mb.pool.debug(true)
            local a <close> = mb.zeros {1000}
            mb.debug.break_guard(a, false, 0)
        ]])
        assert.equal(1, status)
        assert.matches("damage on host: the 512 bytes before the block of 4096 bytes made at stdin:3 .*when it was freed at stdin:",
            output)
    end)

    it("places blocks alike in a dry run", function()
        local function program()
            mb.pool.debug(true, "host")
            local offset
            do
                local _ <close> = mb.zeros {1000}
                local _ <close> = mb.zeros {10, 1000}
                offset = mb.pool.blocks("host")[2].offset
            end
            mb.pool.debug(false, "host")
            return offset
        end
        local dry_offset
        local predicted = mb.dry_run(function()
            dry_offset = program()
        end)
        local measured, offset = mb.ledger(program)
        assert.equal(0, #mb.ledger_diff(predicted, measured))
        assert.equal(offset, dry_offset)
        assert.equal(3 * 512 + 4096, offset) -- three guards and the first block
        local d <close> = dry(1 << 20)
        mb.pool.debug(true, d)
        local a <close> = mb.pool.alloc(512, d)
        assert.equal(512, mb.pool.blocks(d)[1].offset)
        assert.equal(512, mb.pool.stats(d).live)
        assert.equal(0, #mb.pool.damage(d))
        a:release()
    end)
end)

describe("the smallest pool for a trace", function()
    it("is found by replaying it", function()
        local d <close> = dry(1 << 20)
        -- Two neighbors go, the block between stays: a request as large as both does not fit into
        -- the holes.
        local a, b, c = mb.pool.alloc(4 * 512, d), mb.pool.alloc(512, d), mb.pool.alloc(4 * 512, d)
        a:release()
        c:release()
        local e = mb.pool.alloc(8 * 512, d)
        b:release()
        e:release()
        local peak, memory, range = mb.pool.smallest(d)
        assert.equal(9 * 512, peak)
        assert.equal(4 * 512 + 512 + 8 * 512, range)
        assert.equal(0, memory % (2 << 20)) -- in granules
        assert.equal(2 << 20, memory)
    end)

    it("is within 8 percent of what is live for programs on images", function()
        local d <close> = dry("64G")
        local theta = mb.tomo.angles(1500)
        for chunk = 1, 6 do
            local rows = chunk == 6 and 37 or 64
            local raw <close> = mb.zeros({rows, 1500, 2048}, {device = d, dtype = "u16"})
            local sinograms <close> = raw:cast("f32")
            raw:release()
            local volume <close> = mb.tomo.fbp(sinograms, theta)
            volume[1]:copy():release()
        end
        local peak, memory = mb.pool.smallest(d)
        assert.is_true(peak > 1 << 30 and memory >= peak)
        assert.is_true(memory <= 1.08 * peak, memory / peak)
    end)
end)

describe("the pool's trace", function()
    local function record()
        local d = dry(1 << 20)
        local a, b = mb.pool.alloc(1000, d), mb.pool.alloc(5000, d)
        a:release()
        b:release()
        pcall(mb.pool.alloc, 1 << 30, d)
        return d
    end

    it("has every event with its line", function()
        local d <close> = record()
        local events = mb.pool.trace(d)
        local seen = {}
        for i, e in ipairs(events) do
            seen[i] = ("%s %d %d"):format(e.action, e.bytes, e.live)
            assert.matches("%.lua:%d+$", e.owner)
            assert.is_true(i == 1 or e.ns >= events[i - 1].ns)
        end
        local refused = "refused " .. (1 << 30) .. " 0" -- before and after the ladder
        assert.same({"alloc 1024 1024", "alloc 5120 6144", "free 1024 5120", "free 5120 0", refused,
            refused}, seen)
        assert.equal(events[1].block, events[3].block)
        assert.equal(events[1].offset, events[3].offset)
    end)

    it("is a log that RMM replays", function()
        local d <close> = record()
        local text = mb.pool.trace {device = d, format = "csv"}
        local lines = {}
        for line in text:gmatch("[^\n]+") do
            lines[#lines + 1] = line
        end
        assert.matches("^Thread,Time,Action,Pointer,Size,Stream", lines[1])
        assert.matches("^1,%d%d:%d%d:%d%d:%d%d%d%d%d%d,allocate,0x10000000000,1024,0,", lines[2])
        assert.matches(",free,0x10000000400,5120,0,", lines[5])
        -- A replay: what is freed was allocated, with that size.
        local live, columns = {}, nil
        for i = 2, #lines do
            local _, _, action, pointer, size = table.unpack((function(line)
                columns = {}
                for cell in line:gmatch("[^,]*") do
                    columns[#columns + 1] = cell
                end
                return columns
            end)(lines[i]))
            assert.equal(9, #columns)
            if action == "allocate" then
                assert.is_nil(live[pointer])
                live[pointer] = size
            elseif action == "free" then
                assert.equal(live[pointer], size)
                live[pointer] = nil
            else
                assert.equal("allocate failure", action)
            end
        end
        assert.is_nil(next(live))
    end)

    it("is JSON and a timeline, also in a file", function()
        local d <close> = record()
        local json = mb.pool.trace {device = d, format = "json"}
        assert.equal(6, select(2, json:gsub('"action":', "")))
        local chrome = mb.pool.trace {device = d, format = "chrome"}
        assert.equal(2, select(2, chrome:gsub('"ph":"b"', "")))
        assert.equal(2, select(2, chrome:gsub('"ph":"e"', "")))
        assert.equal(6, select(2, chrome:gsub('"ph":"C"', "")))
        local name = os.tmpname()
        assert.matches("already exists", (helper.failure(mb.pool.trace,
            {device = d, format = "chrome", file = name})))
        assert.equal(6, mb.pool.trace {device = d, format = "chrome", file = name,
            overwrite = true})
        local file <close> = assert(io.open(name))
        assert.equal(chrome, file:read("a"))
        os.remove(name)
        assert.equal("io", select(2,
            helper.failure(mb.pool.trace, {device = d, file = "/nowhere/x"})).code)
        assert.matches("csv, json or chrome",
            (helper.failure(mb.pool.trace, {device = d, format = "xml"})))
    end)

    it("can be replayed when it has forgotten its beginning", function()
        local d <close> = dry(1 << 20)
        local old = mb.pool.alloc(1, d)
        for _ = 1, 10000 do
            mb.pool.alloc(1000, d):release()
        end
        old:release()
        local live = {}
        for line in mb.pool.trace({device = d, format = "csv"}):gmatch("[^\n]+") do
            local action, pointer = line:match("^1,[%d:]+,(%l+),(0x%x+)")
            if action then
                assert.equal(action == "free", live[pointer] == true, line)
                live[pointer] = action == "allocate" or nil
            end
        end
        assert.is_nil(next(live))
    end)

    it("keeps the latest events", function()
        local d <close> = dry(1 << 20)
        for i = 1, 20000 do
            mb.pool.alloc(i % 4 * 512 + 1, d):release()
        end
        local events = mb.pool.trace(d)
        assert.equal(16384, #events)
        assert.equal("free", events[#events].action)
        assert.equal(40000, mb.pool.stats(d).events)
    end)
end)
