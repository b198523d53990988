-- Checks of single steps: through a pipeline, in blocks of several sizes, each gives what is
-- expected, to the bit, and takes what was planned.

local assert = require "luassert"
local helper = require "spec.helper"
local mb = require "moonbeam"

local check = {}

-- A scan of an array (angle, row, column); `options` are those of mb.scan.of_arrays, with angles
-- (default: half a turn).
function check.scan(data, options)
    options = options or {}
    local angles = options.angles or mb.tomo.angles(data.shape[1])
    local own = {}
    for name, value in pairs(options) do
        own[name] = name ~= "angles" and value or nil
    end
    return mb.scan.of_arrays(data, angles, own)
end

-- What a recipe gives for blocks of `count` rows or frames; nil: as many as fit. `input` says what
-- the values of a scan without flats are.
function check.result(scan, recipe, count, input)
    local p = mb.pipeline(scan, recipe, {block = count, quiet = true, input = input})
    local data, done = p:slices()
    assert.is_true(done.as_planned)
    return data, done
end

-- Asserts that the recipe gives `expected` (nil: what one block gives), to the bit, in blocks of 1,
-- 3, 4 and all rows or frames; with a tolerance, that it is within. Returns the result, to be
-- closed.
function check.gives(expected, scan, recipe, input, tolerance)
    local whole = check.result(scan, recipe, 1000, input)
    local text = whole:to_string()
    if expected then
        assert.same(expected.shape, whole.shape)
        if tolerance then
            helper.assert_close(expected, whole, tolerance)
        else
            assert.equal(expected.dtype, whole.dtype)
            assert.is_true(text == expected:to_string(), "in one block")
        end
    end
    for _, count in ipairs {1, 3, 4} do
        local part <close> = check.result(scan, recipe, count, input)
        assert.is_true(text == part:to_string(), ("in blocks of %d"):format(count))
    end
    return whole
end

-- Asserts that a recipe is refused, with this part of the message.
function check.refused(part, scan, recipe, input)
    local text = helper.failure(mb.pipeline, scan, recipe, {quiet = true, input = input})
    assert.is_truthy(text:find(part, 1, true), text)
end

return check
