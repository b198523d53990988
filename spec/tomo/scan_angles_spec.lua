--- What is wrong, or odd, with the angles of a scan.
local helper = require "spec.helper"
local examine = require "moonbeam.scan.angles"

-- Angles in the unit that is stored, examined.
local function look(values, unit, given)
    local radians = {}
    for i, value in ipairs(values) do
        radians[i] = unit == "rad" and value or math.rad(value)
    end
    return examine(radians, {op = "scan.open", code = "io", unit = unit or "deg", given = given,
        where = ""})
end

local function refused(values, unit, given)
    return helper.failure(look, values, unit, given)
end

local function even(count, first, step)
    local values = {}
    for i = 1, count do
        values[i] = first + (i - 1) * step
    end
    return values
end

describe("angles of a scan", function()
    it("that are usual pass without a word", function()
        for _, values in ipairs {even(180, 0, 1), even(181, 0, 1), even(181, -90, 1),
            even(720, 0, 0.5), even(3, 0, 60), {0, 60, 120, 180},
            even(1440, 0, 1), even(181, 180, -1), even(61, 0, 360 * (math.sqrt(5) - 1) / 2),
            {17, 107}} do
            assert.same({}, look(values).warnings)
        end
    end)

    it("in degrees called radians are refused, few or many, and whatever the caller says",
        function()
        for _, count in ipairs {24, 60, 91, 181, 721, 1801} do
            assert.matches("rad, [%d.]+ turns: are they degrees%?",
                refused(even(count, 0, 180 / count), "rad"))
            assert.matches("are they degrees%?", refused(even(count, 0, 360 / (count - 1)), "rad",
                true))
        end
    end)

    it("in radians over many turns pass when their unit is named", function()
        local values = even(1000, 0, 0.05)
        assert.matches("or 'rad' if they are radians", refused(values, "rad"))
        local found = look(values, "rad", true)
        for i, angle in ipairs(found.angles) do
            assert.is_true(angle >= 0 and angle < 2 * math.pi)
            assert.near(math.cos(values[i]), math.cos(angle), 1e-12)
        end
    end)

    it("of many turns are taken within one", function()
        local found = look(even(3600, 0, 0.7))
        assert.near(7, found.turns, 0.01)
        assert.same({}, found.warnings)
        assert.near(math.rad(3599 * 0.7 % 360), found.angles[3600], 1e-9)
        local two = even(721, 0, 1)
        assert.near(4 * math.pi, look(two).angles[721], 1e-12)
    end)

    it("in radians called degrees are refused unless the unit is named", function()
        for _, values in ipairs {even(180, 0, math.pi / 180), even(181, 0, math.pi / 180),
            even(360, 0, math.pi / 180)} do
            assert.matches("are they in radians%?", refused(values))
            assert.matches("are they in radians%?", look(values, "deg", true).warnings[1])
        end
    end)

    it("of which one is wild are refused", function()
        local values = even(721, 0, 0.25)
        values[300] = 2.5e5
        assert.matches("angle 300 is 250000 degrees, far from the others", refused(values))
        values[300] = -1e5
        assert.matches("angle 300 is %-100000 degrees", refused(values))
    end)

    it("of no magnitude that a scan has are refused", function()
        for _, value in ipairs {1e15, -1e300, 0 / 0, math.huge} do
            local values = even(60, 0, 3)
            values[7] = value
            assert.matches("angle 7 is ", refused(values))
        end
        assert.matches("angle 1 is 1e%+15 degrees", refused(even(60, 1e15, 3)))
    end)

    it("that were not written, or not all of them, are refused", function()
        local values = even(181, 0, 0)
        assert.matches("all 181 angles are 0 degrees; were they never written%?", refused(values))
        values = even(180, 0, 1)
        for i = 91, 180 do
            values[i] = 0
        end
        assert.matches("91 of 180 angles are 0 degrees", refused(values))
    end)

    it("of any arc that covers half a turn, and views taken twice, pass without a word", function()
        for _, span in ipairs {181, 182, 200, 225, 270, 300, 330, 350, 359, 361, 365, 541} do
            assert.same({}, look(even(span, 0, 1)).warnings)
        end
        for _, lost in ipairs {3, 90, 180} do -- one view, or one that has the angle of another
            local values = even(180, 0, 1)
            values[lost] = 30
            assert.same({}, look(values).warnings)
        end
        local values = {}
        for i = 1, 180 do -- three in a row, and as often but not in a row
            values[i] = (i - 1) // 3 * 3
        end
        assert.same({}, look(values).warnings)
        for i = 1, 180 do
            values[i] = (i - 1) % 60 * 3
        end
        assert.same({}, look(values).warnings)
        assert.same({}, look(even(5, 0, 45)).warnings)
        values = even(180, 0, 1)
        for i = 0, 199 do -- a dense part
            values[#values + 1] = 40 + 0.1 * i
        end
        assert.same({}, look(values).warnings)
    end)

    it("that leave directions out are warned of, in one line", function()
        local function warned(values, from, to, step, percent, more)
            local warnings = look(values).warnings
            assert.equal(1, #warnings)
            assert.equal(("there is no projection between %s and %s degrees (modulo 180), a gap of "
                .. "%s where the usual step is %s%s: %s %% of the directions are missing, so edges "
                .. "along them are blurred"):format(from, to, to - from, step, more or "", percent),
                warnings[1])
        end
        warned(even(161, 0, 1), 160, 180, 1, 11)
        warned(even(121, 30, 1), 150, 210, 1, 33)
        warned(even(640, -90, 0.25), 69.75, 90, 0.25, 11)
        warned(even(81, 200, -2), 20, 40, 2, 10)
        local values = {}
        for i = 0, 11 do
            values[#values + 1], values[#values + 2] = 10 / 11 * i, 170 + 10 / 11 * i
        end
        assert.matches("there is no projection between 10 and 170 degrees %(modulo 180%), a gap of 160",
            look(values).warnings[1])
        values = even(31, 0, 1)
        for i = 1, 31 do
            values[#values + 1] = 89 + i
        end
        warned(values, 120, 180, 1, 66, "; 1 more gap")
        assert.same({"the angles span 1.100 degrees: are they in radians?"},
            look(even(12, 0, 0.1)).warnings)
    end)
end)
