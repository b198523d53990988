-- Looking at arrays: pictures of slices. Elements stay in C (lua_picture.c); this is the policy.

local core = require "moonbeam.core"
local options_of = require "moonbeam.options"

local view = {}

local names = { "percentiles", "range", "bits", "gamma", "legend" }

local function fail(message, arg)
    core.error.raise("argument", message, { op = "view.save", arg = arg })
end

local function pair_of(value, name)
    if type(value) ~= "table" or type(value[1]) ~= "number" or type(value[2]) ~= "number"
        or #value ~= 2 or value[1] > value[2] then
        fail(name .. " must be {low, high} with low <= high", name)
    end
    return value[1], value[2]
end

--- The window of an array: the values at two percentiles of its finite elements (default 0.5 and
-- 99.5). 0 and 1 where no element is finite.
function view.window(array, percentiles)
    local low, high = pair_of(percentiles or { 0.5, 99.5 }, "percentiles")
    local values = core.picture.percentiles(array, { low, high })
    if not values then
        return 0, 1
    end
    return values[1], values[2]
end

--- Writes a slice (row, column) as a grey PNG, or (row, column, 3) of u8 as a coloured one.
-- Black is `range[1]`, white is `range[2]`; without a range they are the values at the
-- `percentiles` (default {0.5, 99.5}). bits: 8 or 16 (default 8). gamma: above 1 is brighter.
-- legend: a line that is kept inside the file, beside the window. Returns black and white.
function view.save(path, array, options)
    options = options_of(options, "view.save", names)
    if array.device.dry then
        return 0, 1
    end
    if options.range and options.percentiles then
        fail("give range or percentiles, not both", "range")
    end
    local rank = #array.shape
    if rank == 3 and array.shape[3] == 3 and array.dtype == "u8" then
        core.picture.write_png(path, array, { text = options.legend })
        return 0, 255
    elseif rank ~= 2 then
        core.error.raise("shape", ("a picture is (row, column); this array has %d axes: take one "
            .. "slice, as in v:view(1)"):format(rank), { op = "view.save" })
    end

    -- Pictures of a strided view on a GPU need a dense copy first.
    local dense <close> = not array.contiguous and array.device.kind ~= "host" and array:copy()
        or nil
    local source = dense or array
    local low, high
    if options.range then
        low, high = pair_of(options.range, "range")
    else
        low, high = view.window(source, options.percentiles)
    end
    local window = ("black %.6g, white %.6g"):format(low, high)
    core.picture.write_png(path, source, {
        bits = options.bits or 8,
        low = low,
        high = high,
        gamma = options.gamma,
        text = options.legend and options.legend .. "; " .. window or window,
    })
    return low, high
end

return view
