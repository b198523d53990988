-- "host:1" and so on: further devices on the host, each with a pool, a budget, FFT plans, pinned
-- memory and rows in the ledger of its own.

local core = require "moonbeam.core"
local helper = require "spec.helper"
local mb = require "moonbeam"

local function live(id)
    return mb.pool.stats(id).live
end

describe("host devices", function()
    it("are devices of the kind host, the same value every time", function()
        local host, one = mb.device("host"), mb.device("host:1")
        assert.is_true(host == mb.device("host:0"))
        assert.is_true(one == mb.device("host:1"))
        assert.is_false(host == one)
        assert.same({"host", "host", 0}, {host.id, host.kind, host.index})
        assert.same({"host:1", "host", 1}, {one.id, one.kind, one.index})
        assert.equal("host:7", mb.device("host:7").id)
        assert.equal(host.name, one.name)
        assert.equal(host.granularity, one.granularity)
        for _, id in ipairs(mb.device.list()) do
            assert.is_nil(id:match("^host:"))
        end
        local free, total = one:memory()
        assert.is_true(free > 0 and free <= total)
    end)

    it("are eight at most, and other names say which there are", function()
        assert.matches('no device host:8: host devices are "host" and "host:1" to "host:7"',
            (helper.failure(mb.device, "host:8")))
        assert.equal("device", select(2, helper.failure(mb.device, "host:8")).code)
        for _, id in ipairs {"host:", "host:x", "host:-1", "host:1x", "host1", "hosts", "Host"} do
            local text, err = helper.failure(mb.device, id)
            assert.equal("argument", err.code)
            assert.matches(('unknown device "%s"; valid names are "host", "host:1", "cuda:0"'):format(id), text, 1, true)
        end
    end)

    it("have pools of their own: live bytes, peaks, blocks, budgets", function()
        local before, one_before = live "host", live "host:1"
        local budget = mb.device("host"):budget()
        mb.device("host:1"):budget("64Ki")
        local a <close> = mb.zeros({1000}, {device = "host:1"})
        assert.equal("host:1", a.device.id)
        assert.equal(before, live "host")
        assert.equal(one_before + 4096, live "host:1")
        assert.equal(4096, mb.pool.blocks("host:1")[1].bytes)
        assert.equal(budget, mb.device("host"):budget())
        local _, err = helper.failure(mb.zeros, {16384}, {device = "host:1"})
        mb.device("host:1"):budget("1Gi")
        assert.same({"budget", 65536, 65536}, {err.code, err.need, err.limit})
        local fits <close> = mb.zeros({16384}, {device = "host"})
        assert.equal(before + fits.bytes, live "host")
        local b <close> = a + 1
        assert.equal("host:1", b.device.id)
        assert.equal(1000, b:sum())
    end)

    it("do not meet in an operator", function()
        local a <close> = mb.ones({4})
        local b <close> = mb.ones({4}, {device = "host:1"})
        local text, err = helper.failure(function() return a + b end)
        assert.equal("argument", err.code)
        assert.matches('is on host:1, the call runs on host; move it with a:to%("host"%)', text)
        assert.matches("is on host, the call runs on host:1",
            (helper.failure(function() return b + a end)))
        local out <close> = mb.zeros({4}, {device = "host:2"})
        assert.matches("is on host:2, the call runs on host:1", (helper.failure(b.abs, b, {out = out})))
    end)

    it("exchange copies", function()
        local a <close> = mb.arange(70000)
        local b <close> = a:to("host:1")
        local c <close> = b:to("host:2")
        local d <close> = c:to("host")
        assert.same({"host:1", "host:2", "host"}, {b.device.id, c.device.id, d.device.id})
        mb.fill(a, 0)
        assert.equal(70000, b:max())
        assert.same(b:to_table(), d:to_table())
        local pinned <close> = mb.zeros({8}, {pinned = "host:1"})
        assert.same({"host", "host:1"}, {pinned.device.id, pinned.pinned})
        local here <close> = pinned:to("host:1")
        assert.equal("host:1", here.device.id)
    end)

    it("have FFT plans and pinned accounts of their own", function()
        mb.fft.drop("host")
        mb.fft.drop("host:1")
        local x <close> = mb.ones({4, 60}, {device = "host:1"})
        local y <close> = mb.rfft(x)
        assert.equal("host:1", y.device.id)
        assert.equal(1, #mb.fft.plans("host:1"))
        assert.equal(0, #mb.fft.plans("host"))
        local pinned = mb.device("host"):pinned()
        local one = mb.device("host:1"):pinned()
        local z <close> = mb.empty({1000}, {pinned = "host:1"})
        assert.equal(pinned, (mb.device("host"):pinned()))
        assert.equal(one + z.bytes, (mb.device("host:1"):pinned()))
    end)

    it("are carried to and from, from pinned and from plain arrays", function()
        for _, pinned in ipairs {false, "host:1"} do
            local volume <close> = mb.zeros({6, 5, 7}, {device = not pinned and "host" or nil, pinned = pinned})
            mb.fill(volume:view {3, 3}, 2)
            mb.fill(volume:view {4, 4}, 3)
            local reader <close> = core.carrier.open {device = "host:1", pinned = "1Mi"}
            local writer <close> = core.carrier.open {device = "host:1", pinned = "1Mi", writing = true}
            local block <close> = mb.empty({2, 5, 7}, {device = "host:1"})
            reader:carry(volume:view {3, 4}, block)
            reader:wait()
            assert.equal(35 * 2 + 35 * 3, block:sum())
            mb.fill(block, 1)
            writer:carry(volume:view {2, 3}, block)
            writer:finish()
            assert.equal(70 + 35 * 3, volume:sum())
            local wrong <close> = mb.empty({2, 5, 7}, {device = "host:2"})
            assert.matches("the array is on host:2, but the carrier is for host:1",
                (helper.failure(reader.carry, reader, volume:view {3, 4}, wrong)))
        end
    end)

    local function work(first, second, n)
        local a <close> = mb.zeros({n}, {device = first})
        local b <close> = mb.zeros({2 * n}, {device = second})
        local _ <close> = b + 1
        return a:copy()
    end

    it("are planned together, bytes by device, and measured the same", function()
        local known = mb.plan.peaks(work, {"host", "host:1"}, 128)
        assert.same({host = 1024, ["host:1"] = 2048, pinned = 0}, known.peak)
        assert.same({host = 512, ["host:1"] = 0}, known.live)
        local scope <close> = mb.pool.scope("host")
        local other <close> = mb.pool.scope("host:1")
        work("host", "host:1", 128):release()
        assert.equal(known.peak.host, (scope:finish()))
        assert.equal(known.peak["host:1"], (other:finish()))
        local swapped = mb.plan.peaks(work, {"host:2", "host:1"}, 128)
        assert.same({host = 0, ["host:1"] = 2048, ["host:2"] = 1024, pinned = 0}, swapped.peak)
        assert.matches("memory on host:3 was requested while planning host, host:1",
            (helper.failure(mb.plan.peaks, function() return mb.zeros({1}, {device = "host:3"}) end, {"host", "host:1"})))
    end)

    it("have rows of their own in the ledger, dry as in the run", function()
        local function both()
            work("host:1", "host:2", 64):release()
        end
        local dry, real = mb.dry_run(both), mb.ledger(both)
        local seen = {}
        assert.same(dry:rows(), real:rows())
        for _, row in ipairs(real:rows()) do
            seen[row.device] = true
        end
        assert.same({["host:1"] = true, ["host:2"] = true}, seen)
    end)

    it("can be the default device", function()
        mb.default_device("host:1")
        local ok, err = pcall(function()
            local a <close> = mb.zeros({3})
            assert.equal("host:1", a.device.id)
            assert.equal("host:1", mb.device("auto").id)
        end)
        mb.default_device("host")
        assert(ok, err)
    end)
end)
