-- The search for the least budget of a call: plan_at is a function of bytes here, without a device.

local helper = require "spec.helper" -- luacheck: ignore
local least = require "moonbeam.plan.least"

local UNIT <const> = 512

-- A call that has a plan from each of these budgets on, in its own way; the last one is the
-- quickest. Returns plan_at, and a table that counts the plans. `tells`: a plan that does not fit
-- says what it needs.
local function call_of(budgets, tells)
    local count = {plans = 0}
    return function(bytes)
        count.plans = count.plans + 1
        for i = #budgets, 1, -1 do
            if not bytes or bytes >= budgets[i] then
                return budgets[i]
            end
        end
        return nil, tells and budgets[1] or nil
    end, count
end

describe("the least budget of a call", function()
    it("is that of its only way, found by few plans", function()
        for _, tells in ipairs {true, false} do
            local plan_at, count = call_of({7 * UNIT}, tells)
            assert.equal(7 * UNIT, least(plan_at))
            assert.is_true(count.plans <= 4)
        end
    end)

    it("is that of the way that takes least, to the byte where that is said or asked for", function()
        local plan_at, count = call_of({100 * UNIT, 5000 * UNIT, 900000 * UNIT}, true)
        assert.equal(100 * UNIT, least(plan_at))
        assert.is_true(count.plans <= 6)
        plan_at = call_of({100 * UNIT, 5000 * UNIT, 900000 * UNIT}, false)
        assert.equal(100 * UNIT, least(plan_at, 0, true))
    end)

    it("is at most a sixteenth more where nothing is said, by plans whose number has a bound", function()
        for _, first in ipairs {3, 100, 4711, 800001} do
            local plan_at, count = call_of({first * UNIT, 900000 * UNIT}, false)
            local bytes = least(plan_at)
            assert.is_true(bytes >= first * UNIT and bytes <= first * UNIT * 17 / 16)
            assert.is_true(count.plans <= 26)
        end
    end)

    it("is found where plans do not tell what they take, and in no other search", function()
        for _, tells in ipairs {true, false} do
            local plan_at, count = call_of({5000 * UNIT}, tells)
            local nested
            local bytes = least(function(budget)
                assert.is_true(least.running())
                nested = nested or least(plan_at)
                local takes, lacks = plan_at(budget)
                return takes and UNIT, lacks
            end)
            assert.is_nil(nested)
            assert.is_false(least.running())
            assert.is_true(bytes >= 5000 * UNIT and bytes <= 5000 * UNIT * 17 / 16)
            assert.is_true(count.plans <= (tells and 6 or 30), count.plans)
        end
    end)

    it("begins beyond a budget that is not enough, and may not exist", function()
        assert.equal(9 * UNIT, least((call_of({3 * UNIT}, false)), 8 * UNIT))
        assert.is_nil(least(function() return nil end))
    end)
end)
