--- The top of a point spread function: where it is, and how it comes to a voxel.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local on_error = require "moonbeam.internal.on_error"

local top = {}

local HEIGHT <const> = 0.5 -- of the maximum: what lies above it is the top
local TURNS <const> = 8 -- until the center of a top that is cut off stays
local ON_VOXEL <const> = 1e-3 -- a coordinate that is so near to a voxel lies on it

--- What of an array is above half of its maximum, less that level: an f32 array, to be released,
-- whose center of mass is that of the top. Voxels that are all at the maximum, such as saturated
-- ones, count alike. A dry run takes the same memory.
function top.of(a)
    local max <close> = mb.reduce(a, "max")
    local level = a.device.dry and 0 or HEIGHT * max:item()
    local result = a:cast("f32")
    local _ <close> = on_error(function() result:release() end)
    mb.binary(result, "sub", {scalar = level, out = result})
    return mb.binary(result, "max", {scalar = 0, out = result})
end

-- The center of mass of sums along an axis from `low` to `high`, 0-based places. Samples reach half
-- a voxel to both sides, and count as far as they lie between. nil without a value above 0.
local function mass_between(sums, low, high)
    local sum, moment = 0, 0
    for i, value in ipairs(sums) do
        local part = math.max(0, math.min(high, i - 0.5) - math.max(low, i - 1.5))
        sum, moment = sum + part * value, moment + part * value * (i - 1)
    end
    return sum > 0 and sum < math.huge and moment / sum or nil
end

--- The center of mass of sums along an axis, 0-based, as an integer where it lies on a voxel; 0 for
-- sums without a value above 0. A top that a face cuts off counts as far to the other side of its
-- center only.
function top.coordinate(sums)
    local place = mass_between(sums, -0.5, #sums - 0.5)
    if not place then
        return 0
    end
    for _ = 1, TURNS do
        local reach = math.min(place + 0.5, #sums - 0.5 - place)
        place = mass_between(sums, place - reach, place + reach) or place
    end
    local voxel = math.floor(place + 0.5)
    return math.abs(place - voxel) <= ON_VOXEL and voxel or place
end

--- The voxel that is nearest to a center (psf.center): whole numbers, and whether it was found.
function top.voxel(center)
    local whole = {found = center.found}
    for axis, value in ipairs(center) do
        whole[axis] = math.floor(value + 0.5)
    end
    return whole
end

-- By how much a center lies beside its voxel along an axis, -0.5 to 0.5.
local function fraction_of(center, axis)
    local fraction = center[axis] - math.floor(center[axis] + 0.5)
    return math.abs(fraction) > ON_VOXEL and fraction or 0
end

--- A PSF whose center lies on a voxel, the nearest one: psf.on_voxel(a, center), center a list of
-- coordinates as psf.center returns it. Returns an f32 array of the same shape and the center's new
-- coordinates, whole numbers. Each sample is the mean of two neighbors along every axis, weighted
-- by the fraction: no value becomes negative, and no kernel without negative weights blurs less.
-- What moves beyond a face is lost. A center on a voxel, to 0.001 of it, keeps the values. Memory
-- does not depend on the center. Errors: argument (center).
function top.on_voxel(a, center)
    arguments.list(center, "psf.on_voxel", "center", "one for each axis of the PSF", a.rank)
    local result = a:cast("f32")
    local _ <close> = on_error(function() result:release() end)
    for axis, n in ipairs(a.shape) do
        local fraction = fraction_of(center, axis)
        if n > 1 then
            local from, to = {}, {}
            for i, extent in ipairs(a.shape) do
                from[i], to[i] = {1, extent}, {1, extent}
            end
            from[axis], to[axis] = {2, n}, {1, n - 1}
            if fraction < 0 then
                from, to = to, from
            end
            local source <close> = result:view(table.unpack(from))
            local neighbors <close> = source:copy()
            local target <close> = result:view(table.unpack(to))
            mb.binary(neighbors, "mul", {scalar = math.abs(fraction), out = neighbors})
            mb.binary(result, "mul", {scalar = 1 - math.abs(fraction), out = result})
            mb.binary(target, "add", {b = neighbors, out = target})
        end
    end
    return result, top.voxel(center)
end

--- What convolutions and deconvolutions take of a PSF with this center (psf.center): an array to be
-- closed, on_voxel of the PSF, or a view of the PSF where its center lies on a voxel; and the
-- center, which says so (on_voxel). A center that was found from values is not known to a dry run:
-- then it is on_voxel in any case.
function top.placed(a, center)
    local between = center.found and not center.on_voxel
    for axis = 1, #center do
        between = between or fraction_of(center, axis) ~= 0
    end
    local whole = top.voxel(center)
    whole.on_voxel = true
    return between and top.on_voxel(a, center) or a:view(), whole
end

return top
