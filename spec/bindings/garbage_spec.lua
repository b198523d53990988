-- Arrays that nobody releases: freed at pool points only, and always before a request fails.

local mb = require "moonbeam"
local helper = require "spec.helper"

describe("garbage", function()
    local host = mb.device("host")
    local budget

    before_each(function()
        budget = host:budget()
    end)

    after_each(function()
        host:budget(budget)
    end)

    it("never makes a loop run out of memory", function()
        host:budget("8Mi")
        for i = 1, 1024 do -- a gibibyte
            local a = mb.zeros { 256, 1024 }
            if i % 100 == 0 then
                assert.equal(0, a:sum())
            end
        end
        assert.truthy(mb.pool.stats().live <= 8 << 20)
    end)

    it("is freed for operators too", function()
        host:budget("8Mi")
        local a <close> = mb.ones { 256, 1024 }
        local sum = 0
        for _ = 1, 50 do
            local b = a + 1
            sum = sum + b:sum()
        end
        assert.equal(50 * 2 * 256 * 1024, sum)
    end)

    it("is not freed by the collector alone", function()
        local a = mb.zeros { 1000 }
        assert.is_false(a.released)
        a = nil -- luacheck: ignore
        collectgarbage()
        collectgarbage()
        assert.equal(4096, mb.pool.stats().live)
        assert.equal(1, mb.pool.stats().waiting)
        mb.collect()
        assert.equal(0, mb.pool.stats().live)
        assert.equal(0, mb.pool.stats().waiting)
    end)

    it("is known as an array by finalizers that come after its own", function()
        local seen
        do
            local holder = setmetatable({}, {__gc = function(h)
                seen = {h.array.released, tostring(h.array), mb.array.is_array(h.array)}
                h.array:release()
            end})
            holder.array = mb.zeros {4} -- made later, so finalized earlier
        end
        mb.collect()
        assert.same({true, "released array", true}, seen)
        assert.equal(0, mb.pool.stats().live)
    end)

    it("is freed when much has been made", function()
        local points = mb.pool.stats().pool_points
        for _ = 1, 50 do
            mb.empty { 16, 1024, 1024 } -- 64 MiB; never touched
        end
        assert.truthy(mb.pool.stats().pool_points - points >= 9)
        assert.truthy(mb.pool.stats().live_arrays <= 5 * (64 << 20))
    end)

    it("is freed on the device that makes the request, and on no other", function()
        local other = mb.device "host:1"
        local function live()
            return mb.pool.stats(other).live
        end
        mb.collect()
        assert.equal(0, live())
        for _ = 1, 4 do
            mb.zeros({1000}, {device = other})
        end
        for _ = 1, 50 do
            mb.empty {16, 1024, 1024} -- 64 MiB; never touched
        end
        assert.equal(4 * 4096, live())
        for _ = 1, 50 do
            mb.empty({16, 1024, 1024}, {device = other})
        end
        assert.is_true(live() <= 5 * (64 << 20))
        mb.collect()
        assert.equal(0, live())
    end)

    it("of one device does not depend on what others do while they work on blocks", function()
        local peaks, state = {}, 1
        for _ = 1, 20 do
            local order = {} -- twelve times each, shuffled
            for i = 1, 24 do
                order[i] = i % 2 + 1
            end
            for i = 24, 2, -1 do
                state = (state * 1103515245 + 12345) % (1 << 31)
                local k = (state >> 16) % i + 1
                order[i], order[k] = order[k], order[i]
            end
            mb.collect()
            local scope <close> = mb.pool.scope "host:1"
            mb.stream.run({"host:1", "host:2"}, order, {
                read = function(_, _, device)
                    return mb.empty({16, 1024, 1024}, {device = device}) -- 64 MiB; never touched
                end,
                compute = function(frames, _, device)
                    frames:release()
                    mb.empty({20, 1024, 1024}, {device = device}) -- garbage
                    if device.id == "host:2" then
                        mb.collect() -- which waits
                    end
                    return mb.empty({1}, {device = device})
                end,
                write = function() end,
            }, {order = order, pinned = "1Mi"})
            peaks[scope:finish()] = true
        end
        local count = 0
        for _ in pairs(peaks) do
            count = count + 1
        end
        assert.equal(1, count)
    end)

    it("of programs that release what they make does not fill Lua's heap", function()
        local kilobytes = helper.run_program("-", [[
            local mb = require "moonbeam"
            for _ = 1, 300000 do mb.pool.alloc(512):release() end
            print(collectgarbage "count" // 1)
        ]])
        assert.is_true(tonumber(kilobytes) < 5000, kilobytes)
    end)

    it("is not looked for where programs release what they make", function()
        mb.collect()
        local points = mb.pool.stats().pool_points
        local kept <close> = mb.empty { 16, 1024, 1024 } -- 64 MiB; never touched
        for _ = 1, 50 do
            local a <close> = mb.empty { 48, 1024, 1024 }
            local b <close> = mb.empty { 8, 1024, 1024 }
            assert.equal(points, mb.pool.stats().pool_points)
            assert.equal(a.bytes + b.bytes + kept.bytes, mb.pool.stats().live)
        end
        for _ = 1, 4 do
            mb.empty { 16, 1024, 1024 }
        end
        assert.equal(points, mb.pool.stats().pool_points)
        local over <close> = mb.empty { 1024 }
        assert.equal(points + 1, mb.pool.stats().pool_points)
        assert.equal(kept.bytes + over.bytes, mb.pool.stats().live) -- the rest is gone
    end)

    it("is freed where a dry run begins, of several in a row the first", function()
        mb.collect()
        local kept <close> = mb.zeros {1000}
        for _, garbage in ipairs {0, 3} do
            for _ = 1, garbage do
                mb.zeros {1000}
            end
            local points, seen = mb.pool.stats().pool_points, {}
            local count = mb.plan.max_count(function(device, n)
                seen[#seen + 1] = mb.pool.stats(device).live
                mb.empty({n}, {device = device, dtype = "u8"}):release()
            end, {device = "host", available = 1 << 20, limit = 1 << 19})
            assert.equal(1 << 19, count)
            assert.equal(points + 1, mb.pool.stats().pool_points)
            assert.equal(20, #seen)
            for _, live in ipairs(seen) do
                assert.equal(4096, live)
            end
            mb.plan.peak(function() end, "host")
            assert.equal(points + 2, mb.pool.stats().pool_points)
        end
        assert.equal(4000, kept.bytes)
    end)

    it("is freed where a dry run begins while nothing but garbage is there", function()
        mb.zeros {1000}
        collectgarbage()
        mb.zeros {1000}
        local live
        mb.plan.peak(function(device)
            live = mb.pool.stats(device).live
        end, "host")
        assert.equal(0, live)
        assert.equal(0, mb.pool.stats().live)
    end)

    it("leaves what is referred to", function()
        host:budget("8Mi")
        local kept <close> = mb.full({ 256, 1024 }, 3)
        for _ = 1, 50 do
            mb.zeros { 256, 1024 }
        end
        assert.equal(3, kept:mean())
        local view <close> = mb.full({ 256, 1024 }, 2)[1] -- only the view refers to the block
        for _ = 1, 50 do
            mb.zeros { 256, 1024 }
        end
        assert.equal(2, view:mean())
    end)

    it("does not hide a budget that is too small", function()
        host:budget("4Mi")
        local kept <close> = mb.zeros { 512, 1024 }
        local _, err = helper.failure(mb.zeros, { 1024, 1024 })
        assert.equal("budget", err.code)
        assert.equal(4 << 20, err.need)
        assert.equal(0, kept:sum())
    end)

    it("does not matter in coroutines", function()
        host:budget("8Mi")
        local total = 0
        for _ = 1, 10 do
            local step = coroutine.wrap(function()
                for _ = 1, 20 do
                    local a = mb.ones { 128, 1024 }
                    total = total + a:item(1, 1)
                    coroutine.yield()
                end
            end)
            for _ = 1, 7 do
                step()
            end
        end
        assert.equal(70, total)
    end)

    it("is freed at the same places in every process and at every pace of the collector", function()
        local program = [[
            local mb = require "moonbeam"
            mb.device("host", {budget = "32Mi"})
            local kept, state = {}, 42
            local function random(n)
                state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
                return (state >> 33) % n + 1
            end
            for i = 1, 2000 do
                local a = mb.empty {random(100000)}
                if random(3) == 1 then kept["view" .. random(20)] = a:view() end
                if random(5) == 1 then a:release() end
                local food = {}
                for j = 1, random(50) do food[j] = tostring(j) end
                if random(10) == 1 then local sum = mb.zeros {64, 64} + 1 end
            end
            for _, e in ipairs(mb.pool.trace()) do
                print(e.action, e.offset, e.bytes, e.live, e.owner)
            end
            local s = mb.pool.stats()
            print(s.live_peak, s.pool_points, s.collected)
        ]]
        local first = helper.run_program("-", program)
        assert.is_true(tonumber(first:match("(%d+)\t%d+\n$")) > 10, "there were no pool points")
        for _, pace in ipairs { '"incremental"', '"stop"', '"incremental", 1000, 100' } do
            local again = helper.run_program("-", ("collectgarbage(%s) "):format(pace) .. program)
            assert.is_true(first == again, pace)
        end
    end)

    it("can be made by finalizers", function()
        host:budget("4Mi")
        local finalized = 0
        for _ = 1, 500 do
            setmetatable({}, { __gc = function()
                local a = mb.zeros { 1000 }
                finalized = finalized + 1
                if finalized % 2 == 0 then
                    a:release()
                end
            end })
            mb.zeros { 10000 }
        end
        mb.collect()
        mb.collect()
        assert.equal(500, finalized)
        mb.collect()
        assert.equal(0, mb.pool.stats().live)
    end)

    it("is freed whatever the order of finalizers", function()
        local a = mb.zeros { 10 }
        local b = a:view()
        local c = b:view()
        c:release()
        a:release()
        b:release()
        local x = { mb.zeros { 10 } }
        x[2] = x[1]:view()
        x[1].shape[1] = 5 -- a copy of the shape
        assert.same({ 10 }, x[1].shape)
        x = nil -- luacheck: ignore
        mb.collect()
        assert.equal(0, mb.pool.stats().live)
    end)
end)

describe("the module", function()
    it("can be loaded again", function()
        local names = {}
        for name in pairs(package.loaded) do
            if name:match("^moonbeam") then
                names[name] = package.loaded[name]
                package.loaded[name] = nil
            end
        end
        local again = require "moonbeam"
        for name, module in pairs(names) do
            package.loaded[name] = module
        end
        assert.not_equal(mb, again)
        local a <close> = mb.ones { 3 }
        local b <close> = again.ones { 3 }
        local c <close> = a + b
        assert.equal(6, c:sum())
        assert.is_true(mb.device("host") == again.device("host"))
        assert.is_true(mb.all == again.all)
    end)

    it("sets no globals", function()
        local output = helper.run_program("-", [[
            local before = {}
            for name in pairs(_G) do before[name] = true end
            local mb = require "moonbeam"
            mb.zeros { 3 }:release()
            local _ = mb.plan, mb.help
            for name in pairs(_G) do
                if not before[name] then print("new global: " .. name) end
            end
        ]])
        assert.equal("", output)
    end)
end)
