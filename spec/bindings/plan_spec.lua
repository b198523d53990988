-- Planning functions: nothing is done for real, whatever the function reaches for, and nothing
-- counts as 0.

local deals = require "moonbeam.plan.deals"
local mb = require "moonbeam"
local helper = require "spec.helper"

local OTHER = "planned:h200" -- a second device, on every machine

-- Live bytes and allocations of the host.
local function state()
    local stats = mb.pool.stats("host")
    return {stats.live, stats.allocs, stats.committed}
end

describe("plan.peak", function()
    it("plans a function that does not use its argument", function()
        local before = state()
        local known = mb.plan.peak(function()
            local a <close> = mb.zeros {100, 1000}
            return a + 1
        end)
        assert.equal(2 * 400384, known.peak)
        assert.equal(400384, known.live)
        assert.same(before, state())
        assert.equal(400384, mb.plan.peak(function()
            assert.equal(OTHER, mb.device.default().id)
            return mb.zeros {100, 1000}
        end, OTHER).peak)
        assert.equal("host", mb.device.default().id)
    end)

    it("sees captured arrays as planned, and does not count them", function()
        local darks <close> = mb.ones {100, 1000}
        local before = state()
        local known = mb.plan.peak(function(device)
            assert.is_true(darks.device == device)
            assert.is_true(darks.device.dry)
            local b <close> = darks + 1
            darks:fill(7)
            return b[1] * 2
        end, "host")
        assert.equal(400384 + 4096, known.peak)
        assert.same(before, state())
        assert.equal(1, darks:item(5, 5))
        known = mb.plan.peak(function(device)
            local there <close> = darks:to(device)
            return there + 1
        end, OTHER)
        assert.equal(2 * 400384, known.peak)
        assert.equal("f32", known.results[1].dtype)
    end)

    it("counts a captured array that is released as bytes that are free again", function()
        local given = mb.zeros {100, 1000}
        local known = mb.plan.peak(function()
            given:release()
            return mb.zeros {50, 1000}
        end)
        assert.equal(0, known.peak)
        assert.equal(200192 - 400384, known.live)
        assert.is_false(given.released)
        given:release()
    end)

    it("raises where memory is asked for on another device", function()
        for _, ask in ipairs {
            function() return mb.zeros({10}, {device = "host"}) end,
            function() return mb.zeros({10}, {device = mb.device("host")}) end,
            function(device) return mb.zeros({10}, {device = device}):to("host") end,
            function() return mb.empty({10}, {pinned = "host"}) end,
            function() return mb.random({10}, {device = "host"}) end,
        } do
            local before = state()
            local text, err = helper.failure(mb.plan.peak, ask, OTHER)
            assert.equal("argument", err.code, text)
            assert.matches("memory on host was requested while planning planned:h200; plan both",
                text)
            assert.same(before, state())
        end
    end)

    it("gives results with type, shape and bytes", function()
        local results = mb.plan.peak(function()
            local a = mb.zeros {3, 5}
            local gone = a + 1
            gone:release()
            return a:cast("u16"), {list = {a[1]}, n = 7}, gone, nil, "text"
        end).results
        assert.equal(5, results.n)
        assert.equal("u16", results[1].dtype)
        assert.same({3, 5}, results[1].shape)
        assert.equal(30, results[1].bytes)
        assert.equal("u16 3 x 5, planned", tostring(results[1]))
        assert.same({5}, results[2].list[1].shape)
        assert.equal(7, results[2].n)
        assert.is_true(results[3].released)
        assert.equal("text", results[5])
    end)

    it("plans what plans, and what is dry", function()
        local outer, inner, rows
        outer = mb.plan.peak(function()
            local a <close> = mb.zeros {1000}
            inner = mb.plan.peak(function()
                local b <close> = a + 1
                assert.equal(0, mb.plan.peak(function() a:release() end).peak)
                return b * 2
            end)
            rows = mb.dry_run(function()
                (a + 1):release()
            end):rows()
            return a + 1
        end)
        assert.equal(2 * 4096, inner.peak)
        assert.equal(2 * 4096, outer.peak)
        assert.equal(2, #rows)
        assert.equal(2 * 4096, rows[1].peak)
        local dry <close> = mb.device("host"):dry_device("1M")
        local on_dry <close> = mb.zeros({1000}, {device = dry})
        assert.equal(4096, mb.plan.peak(function() return on_dry + 1 end, dry).peak)
        assert.equal(4096, mb.pool.stats(dry).live)
    end)

    it("leaves nothing behind an error", function()
        local kept <close> = mb.full({4}, 3)
        local before = state()
        assert.matches("boom", (helper.failure(mb.plan.peak, function()
            local _ = kept + 1
            error "boom"
        end)))
        assert.is_false(mb.device.dry())
        assert.same(before, state())
        assert.equal(3, kept:item(1))
        assert.matches("fn is missing; give a function",
            (helper.failure(mb.plan.peak)))
    end)

    it("tells what is needed whatever there is, and refuses what cannot be planned in one line",
        function()
        assert.equal(1 << 40, mb.plan.peak(function() return mb.empty {1 << 19, 1 << 19} end).peak)
        local text, err = helper.failure(mb.plan.peak,
            function() return mb.empty {1 << 22, 1 << 21} end)
        assert.equal("budget", err.code)
        assert.matches("32 TiB and the 0 B already live exceed the 2 TiB of addresses that a "
            .. "plan has", text, 1, true)
        assert.is_nil(text:find("budget", 1, true))
        assert.is_nil(text:find("\n"))
    end)
end)

describe("the ledger of a plan", function()
    -- What is said at the peak of a function.
    local function hint(fn)
        return mb.dry_run(fn):text():match "<%- peak; ([^\n]+)"
    end

    it("says at the peak what would lower it, by shares of the peak", function()
        assert.equal("out = an array that is no longer needed would save 4 MiB", hint(function()
            local a <close> = mb.zeros {1024, 1024}
            local _ <close> = a:exp()
        end))
        assert.matches("^[%d.]+ [KM]iB of it are scratch: smaller chunks$", hint(function()
            local a <close> = mb.zeros({256, 257}, {dtype = "c64"})
            local _ <close> = mb.irfft(a)
        end))
        -- A scalar and a buffer of some bytes are not what fills the memory.
        assert.equal("release before this line what is not needed after it", hint(function()
            local a <close> = mb.zeros {1024, 1024}
            local _ <const> = mb.bound(1, a.max, a)
        end))
    end)
end)

describe("plan.max_count and plan.max_slices", function()
    it("find the same whether or not the function uses its device", function()
        local function input(n, device)
            return mb.zeros({n, 100, 200}, {device = device})
        end
        local function work(a)
            return mb.ramp_filter(a)
        end
        local used = {mb.plan.max_slices(work, input, 1e7)}
        local before = state()
        local unused = {mb.plan.max_slices(work, function(n)
            return mb.zeros {n, 100, 200}
        end, 1e7)}
        assert.same(used, unused)
        assert.is_true(unused[1] > 1 and unused[2] > 9900000)
        assert.same(before, state())
        assert.matches("memory on host was requested while planning planned:h200",
            (helper.failure(mb.plan.max_count,
            function(_, n)
                return mb.zeros({n}, {device = "host"})
            end, {device = OTHER})))
    end)

    it("say what they were given that they cannot use", function()
        local function failure(...)
            local text, err = helper.failure(...)
            assert.equal("argument", err.code, text)
            return text
        end
        local function fn() end
        assert.matches("unknown option 'availble'; did you mean 'available'",
            failure(mb.plan.max_count, fn, {availble = 1}))
        assert.matches("limit is the string 'x'; it must be a whole number, 1 or more",
            failure(mb.plan.max_count, fn, {limit = "x"}))
        assert.matches("granularity is 0; it must be a whole number, 1 or more",
            failure(mb.plan.max_count, fn, {granularity = 0}))
        assert.matches("limit is 5, below the granularity of 6",
            failure(mb.plan.max_count, fn, {granularity = 6, limit = 5}))
        assert.matches("make_input is missing; give a function",
            failure(mb.plan.max_slices, fn))
    end)
end)

describe("plan.peaks", function()
    it("plans several devices, the host and pinned memory together", function()
        local before, pinned_before = state(), select(2, mb.device("host"):pinned())
        local known = mb.plan.peaks(function(first, count)
            local a <close> = mb.zeros({count})
            assert.is_true(first == a.device)
            local b = a:to("host")
            local pinned <close> = mb.empty({count}, {pinned = true})
            return b:to(first), pinned.pinned
        end, {OTHER}, 1000)
        assert.same({[OTHER] = 2 * 4096, host = 4096, pinned = 4000}, known.peak)
        assert.same({[OTHER] = 4096, host = 4096}, known.live)
        assert.matches("^estimate: recorded on", known.basis)
        assert.same(before, state())
        assert.equal(pinned_before, (select(2, mb.device("host"):pinned())))
        local both = mb.plan.peaks(function(a, b, n)
            return mb.zeros({n}, {device = a}), mb.zeros({2 * n}, {device = b})
        end, {"host", OTHER}, 128)
        assert.same({[OTHER] = 1024, host = 512, pinned = 0}, both.peak)
        assert.matches("devices is missing; give a table", (helper.failure(mb.plan.peaks, print)))
    end)
end)

describe("deals", function()
    it("are some of the lists where there are very many, also of 64 groups and more", function()
        for _, count in ipairs {62, 63, 64, 65, 128} do
            local blocks = {}
            for i = 1, count do
                blocks[i] = {1 + i % 2, 3}
            end
            local lists = deals.all(blocks, function(block) return block end, 1)
            assert.is_true(#lists >= 3 and #lists <= 34, #lists)
            assert.equal(count, #lists[1][1][1])
        end
    end)
end)
