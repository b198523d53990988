-- The FFT plan cache: what it lists, and its limit on bytes. A planned device has recorded sizes of
-- plans, so the limit can be tested without a GPU.

local helper = require "spec.helper"
local mb = require "moonbeam"

describe("the FFT plan cache", function()
    local device = mb.device("planned:h200")

    before_each(function()
        mb.fft.limit("none", device)
        mb.fft.drop(device)
    end)
    after_each(function()
        mb.fft.limit("none", device)
    end)

    local function ask(n, batch)
        return (mb.fft.work("r2c", {n}, {batch = batch, device = device}))
    end

    it("lists its plans, the latest used first", function()
        local work = ask(1000, 3)
        mb.fft.work("c2c", {64, 32}, {device = device, in_place = true})
        local plans = mb.fft.plans(device)
        assert.equal(2, plans.count)
        assert.same({"c2c", {64, 32}, 1, true, false}, {plans[1].kind, plans[1].shape,
            plans[1].batch, plans[1].in_place, plans[1].in_use})
        assert.same({"r2c", {1000}, 3, false, work}, {plans[2].kind, plans[2].shape,
            plans[2].batch, plans[2].in_place, plans[2].work_bytes})
        assert.equal(plans[1].library_bytes + plans[2].library_bytes, plans.library_bytes)
        assert.is_true(plans[1].last_use > plans[2].last_use)
        assert.is_true(plans[1].library_bytes > 0)
        assert.matches("c2c%s+64 x 32, batch 1, in place", tostring(plans))
        assert.matches("2 plans, ", tostring(plans))
        ask(1000, 3)
        assert.equal("r2c", mb.fft.plans(device)[1].kind)
    end)

    it("drops the least recently used plans beyond a limit on bytes", function()
        assert.is_nil(mb.fft.limit(nil, device))
        ask(100, 1)
        local each = mb.fft.plans(device)[1].library_bytes
        assert.equal(2 * each, mb.fft.limit(2 * each, device))
        ask(200, 1)
        ask(100, 1)
        ask(300, 1) -- 200 is the oldest
        local plans = mb.fft.plans(device)
        assert.same({{300}, {100}}, {plans[1].shape, plans[2].shape})
        assert.same({2, 2 * each, 2 * each}, {plans.count, plans.library_bytes, plans.limit})
        assert.matches("of at most", tostring(plans))
        mb.fft.limit(2 * each - 1, device)
        plans = mb.fft.plans(device)
        assert.same({1, {300}}, {plans.count, plans[1].shape})
        mb.fft.limit(0, device)
        assert.equal(0, mb.fft.plans(device).count)
        assert.equal(5, select(2, pcall(function()
            return 5 + 0 * ask(100, 1)
        end))) -- a plan in use may pass the limit
        assert.matches("bytes", (helper.failure(mb.fft.limit, "much", device)))
        local accounting = mb.pool.accounting()
        assert.equal(mb.fft.plans().count, accounting.plans)
        assert.equal(mb.fft.plans().library_bytes, accounting.fft_plans)
    end)
end)
