--- The common part of the steps that make slices: fbp and fourier.

local mb = require "moonbeam"
local angle_weights = require "moonbeam.tomo.angle_weights"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local scan_center = require "moonbeam.tomo.scan_center"
local slice_work = require "moonbeam.tomo.slice_work"
local tomo_fbp = require "moonbeam.tomo.fbp"

local reconstruction = {}

--- Options of both steps. The defaults are those of the program, because objects larger than the
-- field of view and a little noise are usual.
reconstruction.options = declared.options(
    {"center", "number", "the rotation axis: 0-based column of the scan", unit = "px",
        usual = "what step center finds"},
    declared.from("ramp_filter", {"filter", default = "shepp-logan"}, "cutoff",
        {"padding", default = "edge"}, "pad_width"),
    {"x", "range", "part of the slice to make: {first, last} of its columns, from 1",
        usual = "all"},
    {"y", "range", "part of the slice to make: {first, last} of its rows, from 1", usual = "all"},
    declared.from("backproject", {"size", kind = "int", doc = "pixels of a side of the whole slice",
        usual = "the columns of the detector"}, {"circle", default = 1}, "circle_value",
        {"scale", doc = "factor on the sum over angles",
            usual = "pi / angles, per meter where the pixel size is known"}, "accuracy"),
    angle_weights.option)

-- The width of the whole field of view in a half acquisition with the axis at this element.
local function extended(cols, element)
    return mb.op.estimate("half_acquisition_weight", {{"f32", cols}},
        {center = math.max(0, math.min(cols - 1, element)), extend = true}).results[1].shape[1]
end

--- The columns of a sinogram when it is back-projected: the most for any axis that may be found.
-- `options`: center, or none.
function reconstruction.width(options, shape, g)
    local cols = shape[3]
    if not g.half_acquisition then
        return cols
    elseif options.center then
        return extended(cols, geometry.element(g, options.center))
    end
    local most = cols
    for _, column in ipairs(scan_center.bounds({cols = g.cols}, {half_acquisition = true})) do
        most = math.max(most, extended(cols, geometry.element(g, column)))
    end
    return most
end

-- The extents of the whole slice.
local function whole(options, shape, g)
    local size = options.size or reconstruction.width(options, shape, g)
    return size, size
end

-- The part of the slice, {y0, y1, x0, x1}, 0-based with the ends excluded, or nil for all of it.
local function roi_of(options, ny, nx)
    if not (options.x or options.y) then
        return nil
    end
    local x, y = options.x or {1, nx}, options.y or {1, ny}
    local function from(value, n)
        return value < 0 and value + n + 1 or value
    end
    return {from(y[1], ny) - 1, from(y[2], ny), from(x[1], nx) - 1, from(x[2], nx)}
end

local function check_roi(roi, ny, nx)
    for i, name in ipairs {"y", "x"} do
        local low, high, n = roi[2 * i - 1], roi[2 * i], ({ny, nx})[i]
        if low < 0 or high > n or low >= high then
            fail("argument", nil, name, "%s is {%d, %d}; the slices have %d pixels along %s: 1 to "
                .. "%d", name, low + 1, high, n, name, n)
        end
    end
end

local function check(options, shape, g)
    local center = options.center
    local low, high = geometry.axis_range(g, shape[3])
    if center and not (center >= low and center <= high) then
        fail("argument", nil, "center", "center is %g; the detector has columns %g to %g%s", center,
            low, high, geometry.beyond_text(g, center))
    end
    tomo_fbp.check_pad_width(options.pad_width, shape[3])
    if type(options.weights) == "table" and #options.weights ~= shape[1] then
        fail("shape", nil, "weights", "weights has %s; there are %d projections: give one for "
            .. "each", counted(#options.weights, "number"), shape[1])
    end
    local ny, nx = whole(options, shape, g)
    if options.circle > 0 and options.circle * math.min(ny, nx) < 1 then
        fail("argument", nil, "circle", "circle is %g, less than a pixel, so nothing remains; 0 "
            .. "turns the mask off", options.circle)
    end
    local roi = roi_of(options, ny, nx)
    if roi then
        check_roi(roi, ny, nx)
    end
end

local function shape_after(options, shape, g)
    local ny, nx = whole(options, shape, g)
    local roi = roi_of(options, ny, nx)
    return {shape[2], roi and roi[2] - roi[1] or ny, roi and roi[4] - roi[3] or nx}
end

local function geometry_after(options, g, shape)
    local known = options.size or options.center or not g.half_acquisition
    local ny, nx = whole(options, shape, g)
    local roi = roi_of(options, ny, nx)
    local slice = known and {ny, nx} or nil
    if not known and roi then
        slice = false
    end
    return geometry.with(g, {first_x = roi and roi[3] + 1 or 1, first_y = roi and roi[1] + 1 or 1,
        slice = slice})
end

-- The factor on the sum over angles, for attenuation per meter if the pixel size is known. Every
-- ray is measured twice over a whole turn, except in a half acquisition.
local function scale_of(options, g)
    return options.scale or g.pixel_size
        and (g.half_acquisition and 2 or 1) * math.pi / #g.angles / g.pixel_size or nil
end

-- The shifts for a leaning axis: of slices (rows first to last of the data), and of projections
-- that were shifted along the axis.
local function lean_shifts(g, rows)
    if g.lean == 0 then
        return nil
    end
    local of_slices, of_angles = {}, g.vertical_shifts and {} or nil
    for row = rows[1], rows[2] do
        of_slices[#of_slices + 1] = g.lean * (geometry.row(g, row) - (g.rows + 1) / 2)
            / g.column_step
    end
    for i, frame in ipairs(of_angles and g.frames or {}) do
        of_angles[i] = g.lean * g.vertical_shifts[frame] / g.column_step
    end
    return of_slices, of_angles
end

local PASSED = {"filter", "cutoff", "padding", "pad_width", "circle", "circle_value", "accuracy",
    "size", "mode", "weights", "pairs"}

local function run(block, options, values, method)
    local g, own = block.geometry, {method = method, consume = true}
    for _, name in ipairs(PASSED) do
        own[name] = options[name]
    end
    if method == "fbp" then
        own.pairs = nil
    end
    own.center = geometry.element(g, options.center or values.center)
    own.half_acquisition = g.half_acquisition or nil
    own.scale = scale_of(options, g)
    own.slice_shifts, own.shifts = lean_shifts(g, block.rows)
    local shape = {#g.angles, block.data.shape[2], block.data.shape[3]}
    local ny, nx = whole(setmetatable({center = options.center or values.center},
        {__index = options}), shape, g)
    own.roi = roi_of(options, ny, nx)
    local sinograms <close> = block.data:permute(2, 1, 3)
    block:replace((mb.tomo.reconstruct(sinograms, g.angles, own)))
end

-- The number of slices that the operator makes together, from its descriptor.
local function packet(operator)
    return function(options, step, device)
        local shape, g = step.shape_before, step.geometry_before
        local params = {size = options.size, accuracy = options.accuracy}
        local spec = {"f32", shape[2], shape[1], reconstruction.width(options, shape, g)}
        for _, split in ipairs(mb.op.estimate(operator, {spec}, params, {device = device}).split) do
            if split.axis == 1 then
                return split.packet
            end
        end
        return 1
    end
end

--- Completes the definition of a step that makes slices by the method with its name.
function reconstruction.step(def)
    local own = def.check
    def.takes = {quantity = {"line integrals", "phase"}, layout = "frames"}
    def.gives = function(_, kind)
        return {quantity = kind.quantity == "phase" and "phase" or "attenuation",
            layout = "slices"}
    end
    def.cuts = {"rows"}
    def.uses = {"center"}
    def.check = function(options, shape, g)
        if own then
            own(options, shape, g)
        end
        check(options, shape, g)
    end
    def.shape, def.geometry = shape_after, geometry_after
    def.packet = packet(def.name == "fbp" and "backproject" or "fourier_reconstruct")
    def.ways, def.deciding = slice_work.ways(def.name), slice_work.deciding
    def.run = function(block, options, values)
        run(block, options, values, options.method or def.name)
    end
    return def
end

return reconstruction
