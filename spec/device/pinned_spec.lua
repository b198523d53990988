-- Arrays in pinned host memory: arrays of the host, on the account of the device that they are
-- pinned for.

local helper = require "spec.helper"
local mb = require "moonbeam"

helper.each_device(function(device, test)
    describe("an array pinned for " .. device, function()
        local function pinned_bytes()
            return (mb.device(device):pinned())
        end

        test("is one of the host, zero, and on the device's account until its last view goes",
            function()
            local before, live = pinned_bytes(), mb.pool.stats("host").live
            local a = mb.zeros({3, 1000}, {pinned = device})
            assert.equal("host", a.device.id)
            assert.equal(mb.device(device).id, a.pinned)
            assert.equal(live, mb.pool.stats("host").live)
            assert.equal(before + 12000, pinned_bytes())
            assert.matches("host, pinned", tostring(a))
            local empty <close> = mb.empty({3, 1000}, {pinned = device})
            assert.equal(0, empty:norm())
            mb.fill(a, 2)
            local row = a:view(2, mb.all)
            a:release()
            assert.equal(mb.device(device).id, row.pinned)
            assert.equal(2000, row:sum())
            local copy <close> = row:to(device)
            assert.equal(2000, copy:sum())
            assert.is_nil(copy.pinned)
            row:release()
            assert.equal(before + 12000, pinned_bytes()) -- `empty`
            local none <close> = mb.empty({0, 5}, {pinned = device})
            assert.equal(0, none.elements)
        end)

        test("is made by every constructor", function()
            for _, make in ipairs {
                function(options) return mb.array({1, 2, 3, 4}, options) end,
                function(options) return mb.arange(4, options) end,
                function(options) return mb.from_string(("<ffff"):pack(1, 2, 3, 4), {4},
                    options) end,
                function(options) return mb.full({4}, 2.5, options) end,
                function(options) return mb.random({4}, options) end,
            } do
                local plain <close> = make {device = "host"}
                local pinned <close> = make {device = "host", pinned = device}
                assert.same(plain:to_table(), pinned:to_table())
                assert.equal(mb.device(device).id, pinned.pinned)
            end
            local not_pinned <close> = mb.zeros({4}, {device = "host", pinned = false})
            assert.is_nil(not_pinned.pinned)
        end)

        test("keeps within the limit, after the garbage has gone", function()
            local d = mb.device(device)
            local live, _, limit = d:pinned()
            d:pinned(live + 100000)
            do
                local lost = mb.zeros({20000}, {pinned = device}) -- garbage from here on
                assert.equal(80000, lost.bytes)
            end
            local again = mb.zeros({20000}, {pinned = device})
            assert.equal(live + 80000, pinned_bytes())
            local text, err = helper.failure(mb.zeros, {20000}, {pinned = device})
            again:release()
            d:pinned(limit)
            assert.equal("budget", err.code)
            assert.matches("pinned", text)
            assert.matches("raise the limit", text)
            assert.equal(live, pinned_bytes())
        end)

        test("is asked for again after a collection where the system refuses it", function()
            local before = pinned_bytes()
            mb.debug.refuse_pins(1, device)
            local a <close> = mb.full({250}, 2, {pinned = device})
            assert.equal(500, a:sum())
            assert.equal(before + 1000, pinned_bytes())
        end)

        test("that the system refuses for good is a budget error, and nothing is on the account",
            function()
            local d = mb.device(device)
            local before, live = pinned_bytes(), mb.pool.stats("host").live
            for _, make in ipairs {
                function() return mb.zeros({250}, {pinned = device}) end,
                function() return mb.full({250}, 2, {pinned = device}) end,
                function() return mb.array({1, 2, 3}, {pinned = device}) end,
                function() return mb.random({250}, {pinned = device}) end,
                function() return mb.stream.carrier {device = d, threads = 1, pinned = 1 << 20} end,
            } do
                mb.debug.refuse_pins(1000, device)
                local text, err = helper.failure(make)
                mb.debug.refuse_pins(0, device)
                assert.equal("budget", err.code)
                assert.matches("of pinned host memory are within the limit, but the system refused them: "
                    .. "the system refused %d+ bytes", text)
                assert.matches("; end other programs that use this memory, or request less", text, 1,
                    true)
                assert.is_nil(err.enough)
                assert.is_nil(text:find("\n"))
                assert.equal(before, pinned_bytes())
                assert.equal(live, mb.pool.stats("host").live)
            end
            mb.zeros({250}, {pinned = device}):release()
            assert.matches("n is %-1", (helper.failure(mb.debug.refuse_pins, -1, device)))
        end)

        test("is planned whatever the system refuses: a plan asks it for nothing", function()
            mb.debug.refuse_pins(1000, device)
            local planned = mb.dry_run(function()
                mb.zeros({250}, {pinned = device}):release()
            end)
            mb.debug.refuse_pins(0, device)
            assert.equal(pinned_bytes() + 1000, planned.pinned_peak)
        end)

        test("is in the ledger as its dry run predicts", function()
            local kept <close> = mb.full({1000}, 1, {pinned = device})
            local before = pinned_bytes()
            local function job()
                local a = mb.zeros({500, 7}, {pinned = device, dtype = "u16"})
                local b <close> = mb.empty({300}, {pinned = device})
                mb.binary(b, "add", {scalar = 1, out = b})
                a:release()
                local c = mb.empty({11}, {pinned = device}) -- becomes garbage
                local _ <close> = kept:view({1, 10})
                return c ~= nil
            end
            local predicted = mb.dry_run(function()
                job()
                mb.collect()
            end)
            assert.equal(before, pinned_bytes())
            local measured = mb.ledger(function()
                job()
                mb.collect()
            end)
            assert.same({}, mb.ledger_diff(predicted, measured))
            assert.equal(before + 7000 + 1200, measured.pinned_peak)
            assert.equal(predicted.pinned_peak, measured.pinned_peak)
            assert.equal(before, pinned_bytes())
            local last = predicted:rows()[#predicted:rows()]
            assert.same({"pin", before, -44}, {last.kind, last.live, last.keep})
        end)

        test("may be released in a dry run, and is there after it", function()
            local a <close> = mb.full({1000}, 3, {pinned = device})
            local before = pinned_bytes()
            mb.dry_run(function()
                assert.equal(mb.device(device).id, a.pinned)
                local _ <close> = a:view({5, 6})
                a:release()
                assert.equal(before, pinned_bytes()) -- the view has it
            end)
            assert.equal(before, pinned_bytes())
            assert.equal(3000, a:sum())
        end)

        test("is refused where it cannot be", function()
            local dry <close> = mb.device(device):dry_device()
            assert.matches("dry device", (helper.failure(mb.empty, {4}, {pinned = dry})))
            assert.matches("no device cuda:999",
                (helper.failure(mb.empty, {4}, {pinned = "cuda:999"})))
            if device ~= "host" then
                assert.matches("in host memory",
                    (helper.failure(mb.empty, {4}, {device = device, pinned = device})))
            end
        end)
    end)
end)

describe("an array pinned for a device that is not here", function()
    it("is planned, within a limit, and never made", function()
        local d = mb.device("planned:h200")
        local live, _, limit = d:pinned()
        local function job()
            mb.zeros({250}, {pinned = d}):release()
        end
        assert.equal("unsupported", select(2, helper.failure(job)).code)
        mb.debug.refuse_pins(1000, d)
        assert.equal(live + 1000, mb.dry_run(job).pinned_peak)
        mb.debug.refuse_pins(0, d)
        d:pinned(live + 999)
        local text, err = helper.failure(mb.dry_run, job)
        d:pinned(limit)
        assert.equal("budget", err.code)
        assert.matches(("raise the limit (device:pinned(%d))"):format(live + 1000), text, 1, true)
        assert.equal(live, (d:pinned()))
    end)
end)
