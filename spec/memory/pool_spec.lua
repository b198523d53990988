-- The pool through Lua. Shadow devices have a purely virtual range, so big sizes cost nothing here.
local mb = require "moonbeam"

local function dry(budget)
    return mb.device("host"):dry_device(budget)
end

describe("pool", function()
    it("rounds to 512 bytes and counts exactly", function()
        local d <close> = dry(1 << 20)
        local a = mb.empty({1}, {device = d})
        assert.equal(512, mb.pool.stats(d).live)
        assert.equal(4, mb.pool.stats(d).requested)
        local b = mb.empty({129}, {device = d})
        assert.equal(512 + 1024, mb.pool.stats(d).live)
        a:release()
        b:release()
        local stats = mb.pool.stats(d)
        assert.equal(0, stats.live)
        assert.equal(1536, stats.live_peak)
        assert.equal(2, stats.allocs)
    end)

    it("takes no memory for empty arrays", function()
        local d <close> = dry(1 << 20)
        local a <close> = mb.empty({0, 5}, {device = d})
        assert.equal(0, mb.pool.stats(d).live)
        assert.equal(0, a.elements)
    end)

    it("allows exactly the budget and refuses one unit more, saying what would do", function()
        local d <close> = dry(10 * 512)
        local a <close> = mb.empty({10 * 128}, {device = d})
        assert.equal(10 * 512, a.bytes)
        local ok, err = pcall(mb.empty, {1}, {device = d})
        assert.is_false(ok)
        assert.equal("budget", err.code)
        assert.equal(512, err.need)
        assert.equal(10 * 512, err.limit)
        assert.matches(tostring(11 * 512), err.message, 1, true)
    end)

    it("uses every hole: any order of release leaves one range", function()
        local d <close> = dry(64 * 512)
        local arrays = {}
        for i = 1, 64 do
            arrays[i] = mb.empty({128}, {device = d})
        end
        for _, i in ipairs {1, 64, 2, 33, 32, 34} do -- the first hole must be found again too
            arrays[i]:release()
        end
        assert.is_nil(mb.pool.check(d))
        local again <close> = mb.empty({128 * 3}, {device = d})
        assert.equal(1536, again.bytes)
        for i = 1, 64 do
            arrays[i]:release()
        end
        assert.is_nil(mb.pool.check(d))
        assert.is_true(mb.pool.stats(d).largest_hole >= 61 * 512)
    end)

    it("agrees with an oracle over random allocations and releases", function()
        local d <close> = dry(4 << 30)
        local live, arrays, bytes = {}, 0, 0
        local state = 12345
        local function random(n)
            state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
            return (state >> 33) % n + 1
        end
        for step = 1, 20000 do
            local slot = random(300)
            if live[slot] then
                bytes = bytes - mb.pool.round(live[slot].bytes)
                live[slot]:release()
                live[slot] = nil
                arrays = arrays - 1
            else
                live[slot] = mb.empty({random(random(20) == 1 and 1000000 or 3000)}, {device = d})
                bytes = bytes + mb.pool.round(live[slot].bytes)
                arrays = arrays + 1
            end
            if step % 500 == 0 then
                assert.is_nil(mb.pool.check(d))
                local stats = mb.pool.stats(d)
                assert.equal(bytes, stats.live)
                assert.equal(arrays, stats.blocks)
            end
        end
        for _, a in pairs(live) do
            a:release()
        end
        assert.equal(0, mb.pool.stats(d).live)
        assert.is_nil(mb.pool.check(d))
    end)

    it("measures nested peaks above their own entries", function()
        local d <close> = dry(1 << 30)
        local base = mb.empty({1024}, {device = d})
        local outer = mb.pool.scope(d)
        local a = mb.empty({1024}, {device = d})
        local inner = mb.pool.scope(d)
        base:release()
        local b = mb.empty({2048}, {device = d})
        b:release()
        assert.equal(4096, inner:finish()) -- 8192 + 4096 over an entry of 8192
        a:release()
        assert.equal(8192, outer:finish()) -- 12288 over an entry of 4096
    end)

    it("commits on demand and gives back on trim", function()
        mb.collect()
        local host = mb.device("host")
        local a = mb.zeros({16 << 20})
        local committed = mb.pool.stats(host).committed
        assert.is_true(committed >= a.bytes)
        a:release()
        assert.equal(committed, mb.pool.stats(host).committed)
        assert.is_true(mb.pool.trim(host) >= 48 << 20)
        assert.is_true(mb.pool.stats(host).committed < committed)
        local b <close> = mb.ones({16 << 20})
        assert.equal(16 << 20, b:sum())
    end)

    it("reports an injected failure and keeps nothing", function()
        local before = mb.pool.stats().live
        mb.debug.fail_nth(1)
        local ok, err = pcall(mb.zeros, {1000})
        assert.is_false(ok)
        assert.equal("memory", err.code)
        assert.equal(before, mb.pool.stats().live)
    end)

    it("leaves failures on purpose to mb.debug", function()
        for _, name in ipairs {"fail_nth", "refuse_commits", "refuse_pins", "break_guard",
            "set_guards", "pair_seconds"} do
            assert.is_nil(rawget(mb.pool, name), name)
            assert.is_function(mb.debug[name], name)
        end
        for _, name in ipairs {"check", "debug", "damage"} do
            assert.is_function(mb.pool[name], name)
        end
    end)
end)
