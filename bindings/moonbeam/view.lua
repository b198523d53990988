-- Looking at arrays: pictures of slices. Elements stay in C (lua_picture.c); this is the policy.

local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local projections = require "moonbeam.plot.projections"

local view = {}

local SAVE = declared.options(
    {"range", "any", "{black, white}", usual = "values at the percentiles"},
    {"percentiles", "any", "of the finite values, {black, white}", usual = "{0.5, 99.5}"},
    {"bits", "any", "8 or 16", default = 8},
    {"gamma", "number", "above 1 is brighter", usual = "1"},
    {"legend", "string", "a line that is kept inside the file, beside the window"},
    {"overwrite", "boolean", "replace an existing file"})

local function pair_of(value, name)
    if type(value) ~= "table" or type(value[1]) ~= "number" or type(value[2]) ~= "number"
        or #value ~= 2 or value[1] > value[2] then
        fail("argument", "view.save", name, "%s must be {low, high} with low <= high", name)
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

--- Writes a slice (row, column) as a gray PNG, or (row, column, 3) of u8 as a colored one.
-- Black is `range[1]`, white is `range[2]`; without a range they are the values at the
-- `percentiles` (default {0.5, 99.5}). bits: 8 or 16 (default 8). gamma: above 1 is brighter.
-- legend: a line that is kept inside the file, beside the window. overwrite: an existing file may
-- be replaced. The name ends in .png. Returns black and white.
function view.save(path, array, options)
    file_name.check(path, file_name.PNG, "pictures are PNG files", "view.save")
    if options.range and options.percentiles then
        fail("argument", "view.save", "range", "give range or percentiles, not both")
    end
    local rank = #array.shape
    if rank == 3 and array.shape[3] == 3 and array.dtype == "u8" then
        if array.device.dry then
            return 0, 255
        end
        core.picture.write_png(path, array, { text = options.legend,
            overwrite = options.overwrite })
        return 0, 255
    elseif rank ~= 2 then
        fail("shape", "view.save", nil,
            "a picture is (row, column); this array has %s: take one slice, as in v:view(1)",
            counted(rank, "axis", "axes"))
    end

    -- Pictures of a strided view on a GPU need a dense copy first.
    local dense <close> = not array.contiguous and array.device.kind ~= "host" and array:copy()
        or nil
    if array.device.dry then
        return 0, 1
    end
    local source = dense or array
    local low, high
    if options.range then
        low, high = pair_of(options.range, "range")
    else
        low, high = view.window(source, options.percentiles)
    end
    local window = ("black %.6g, white %.6g"):format(low, high)
    core.picture.write_png(path, source, { bits = options.bits, low = low, high = high,
        gamma = options.gamma, overwrite = options.overwrite,
        text = options.legend and options.legend .. "; " .. window or window })
    return low, high
end

--- Maximum projections of a volume (z, y, x) as one picture: XY, at its right ZY, below it XZ. sxy,
-- sz: whole factors that stretch the plane and the axis (default 1 and 1); gap: pixels between
-- (default 4); the other options are those of save. With a path writes the PNG and returns black
-- and white; without one (nil) returns the picture as an f32 array on the host, the gaps at the
-- least value.
function view.projections(path, volume, options)
    if path then
        file_name.check(path, file_name.PNG, "pictures are PNG files", "view.projections")
    end
    if #volume.shape ~= 3 then
        fail("shape", "view.projections", nil,
            "projections are of a volume (z, y, x); this array has %s",
            counted(#volume.shape, "axis", "axes"))
    end
    local xy <close> = core.op.run("reduce", volume, "max", {axis = 1})
    local xz <close> = core.op.run("reduce", volume, "max", {axis = 2})
    local zy <close> = core.op.run("reduce", volume, "max", {axis = 3})
    local canvas = projections.arrange(xy, xz, zy, options)
    if not path then
        return canvas
    end
    local picture <close> = canvas
    return view.save(path, picture, declared.part(SAVE, options))
end

return declared.module(view, "view", {
    window = "array: array", save = {"path: any, array: array", SAVE},
    projections = {"path: any?, volume: array", declared.options(
        {"sxy", "count", "factor that stretches the plane", min = 1, default = 1},
        {"sz", "count", "factor that stretches the axis", min = 1, default = 1},
        {"gap", "count", "between the parts", unit = "px", default = 4}, SAVE)},
})
