--- Values that are not finite (NaN, infinite). A transform spreads such a value over its whole
-- result without an error. Functions that transform images therefore look for these values where
-- that costs nothing, and the error says how many there are, and where.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"

local finite = {}

local LARGEST = 3.4028234663852886e38
local SLOW = 1 << 22 -- so many values are not checked one by one

--- Is a value neither NaN nor infinite?
function finite.is_number(value)
    return value == value and math.abs(value) < math.huge
end
local is_number = finite.is_number

-- How many values of an image are not finite, and the plane of the first one.
local function count_of(image)
    local count, first = 0, nil
    for z = 1, image.rank == 3 and image.shape[1] or 1 do
        local plane <close> = image.rank == 3 and image:view(z, mb.all, mb.all) or image:view()
        local dense <close> = plane:cast("f32")
        local stored, counts = mb.quantize(dense, "u8", {low = -LARGEST, high = LARGEST})
        stored:release()
        local _ <close> = counts
        count = count + math.tointeger(counts:item(1) + counts:item(2) + counts:item(3))
        first = first or count > 0 and z or nil
    end
    return count, first
end

-- The same for a small image, without memory of the pool. Returns nil for a large image, which
-- would take long.
local function count_by_values(image)
    if image.elements > SLOW then
        return nil
    end
    local count, first, plane = 0, nil, 0
    local function visit(values, depth)
        for _, value in ipairs(values) do
            plane = depth == 3 and plane + 1 or plane
            if type(value) == "table" then
                visit(value, depth - 1)
            elseif not is_number(value) then
                count, first = count + 1, first or plane
            end
        end
    end
    visit(image:to_table(), image.rank)
    return count, first
end

--- Raises the error that `image` has values that are not finite, or so large that their sum is not.
-- `image` is an argument of `op`, or a part of one; `name` is what the message calls it.
function finite.fail(image, op, name)
    -- Counting takes memory for a plane, which may not be available.
    local counted, count, first = pcall(count_of, image)
    if not counted then
        count, first = count_by_values(image)
        counted = count ~= nil
    end
    if counted and count == 0 then
        fail("argument", op, nil, "the values of %s are finite but too large for f32: scale them",
            name)
    end
    fail("argument", op, nil, "%s of %s are not finite (NaN or infinite%s), and would make the "
        .. "whole result so: replace them first, such as by their neighbors' median, or by 0: "
        .. "mb.flat_field(image, {nonfinite = 0})",
        counted and ("%d of %d values"):format(count, image.elements) or "some values", name,
        counted and image.rank == 3 and image.shape[1] > 1
            and ("; the first in plane %d"):format(first) or "")
end

--- Checks the sum or mean of `image`: raises an error if it is not finite.
function finite.check_sum(sum, image, op, name)
    if not is_number(sum) then
        finite.fail(image, op, name)
    end
end

return finite
