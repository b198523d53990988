--- The range by which slices are stored as another type, from a few of them.
--
-- The slices are spread evenly from the first to the last one, ends included: an object that grows
-- along z is densest at an end.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"

local value_range = {}

--- How many slices tell the range where nobody says it.
value_range.SLICES = 9

-- The rows that are looked at, `count` of those from low to high.
local function rows_of(low, high, count)
    local rows = {}
    for i = 0, count - 1 do
        local row = count == 1 and (low + high) // 2 or low + i * (high - low) // (count - 1)
        rows[#rows + 1] = row ~= rows[#rows] and row or nil
    end
    return rows
end

--- The range {low, high} for `dtype`, from `count` slices of a view (pipeline/view.lua), spread
-- over its rows (default: value_range.SLICES): of integers what they have and a quarter more on
-- both sides; of "f16" {0, the power of two that brings them to half floats}.
function value_range.find(view, dtype, count)
    local least, most = math.huge, -math.huge
    for _, row in ipairs(rows_of(view.rows[1], view.rows[2], count or value_range.SLICES)) do
        local slices <close> = view:data({row, row})
        least = math.min(least, mb.bound(0, slices.min, slices))
        most = math.max(most, mb.bound(0, slices.max, slices))
    end
    if dtype == "f16" then
        local largest = math.max(math.abs(least), math.abs(most))
        local fits = largest == 0 or largest > 2 ^ -4 and largest < 2 ^ 13
        return {0, fits and 1 or 2.0 ^ math.ceil(math.log(largest, 2) - 11)}
    end
    local margin = (most - least) / 4
    return margin > 0 and {least - margin, most + margin} or {least - 1, least + 1}
end

--- How many of the 65536 codes of u16 the values of `own`, from value_range.find, use when they
-- are stored by `range`; fewer than one is an error.
function value_range.codes(own, range, op)
    if mb.device.dry() then
        return 65536 -- there are no values to judge
    end
    -- without the margins of find
    local codes = 65535 * (own[2] - own[1]) / 1.5 / (range[2] - range[1])
    if codes < 1 or codes ~= codes then
        fail("argument", op, "range",
            "the range %g to %g is so wide that all values, about %.4g to %.4g, are stored as one",
            range[1], range[2], own[1], own[2])
    end
    return codes
end

return value_range
