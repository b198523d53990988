--- Parallel-beam tomography: functions over operators, to be read, copied and changed.
--
-- Axis order: projections (angle, row, column), sinograms (row, angle, column), volumes (z, y, x).
-- Angles in radians. Rotation centers are 0-based pixel-center coordinates: (columns - 1)/2 in the
-- middle.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local axis_overlap = require "moonbeam.tomo.axis.axis_overlap"
local axis_phase = require "moonbeam.tomo.axis.axis_phase"
local axis_slices = require "moonbeam.tomo.axis.axis_slices"
local axis_wedge = require "moonbeam.tomo.axis.axis_wedge"
local center = require "moonbeam.tomo.center"
local declared = require "moonbeam.internal.declared"
local fbp = require "moonbeam.tomo.fbp"
local fista = require "moonbeam.tomo.iterative.fista"
local admm_tv = require "moonbeam.tomo.iterative.admm_tv"
local cgls = require "moonbeam.tomo.iterative.cgls"
local landweber = require "moonbeam.tomo.iterative.landweber"
local mlem = require "moonbeam.tomo.iterative.mlem"
local sirt = require "moonbeam.tomo.iterative.sirt"
local methods = require "moonbeam.tomo.method"
local on_error = require "moonbeam.internal.on_error"
local tables = require "moonbeam.internal.tables"
local whole_call = require "moonbeam.internal.whole"

local tomo = {
    fbp = fbp.reconstruct,
    admm_tv = admm_tv.reconstruct,
    cgls = cgls.reconstruct,
    fista = fista.reconstruct,
    landweber = landweber.reconstruct,
    mlem = mlem.reconstruct,
    osem = mlem.osem,
    sart = sirt.sart,
    sirt = sirt.reconstruct,
    reconstruct = methods.reconstruct,
    choose_method = methods.choose,
    find_center = center.find_center,
    find_center_pair = center.find_center_pair,
    find_center_metric = center.find_center_metric,
    find_center_slices = axis_slices.find,
    find_center_vo = axis_wedge.find,
    find_center_overlap = axis_overlap.find,
    find_overlap = axis_overlap.find_overlap,
    find_center_phase_correlation = axis_phase.find,
    opposite_pair = center.opposite_pair,
    metrics = center.metrics,
    MIN_OVERLAP = center.MIN_OVERLAP,
    PAIR_RANGE = center.PAIR_RANGE,
}

--- Angles equally spaced over a span, the end left out.
-- Returns a table of numbers.
-- Errors: argument (a span of more than two turns, which is probably in degrees).
tomo.angles = declared("tomo.angles", {
    {"count", "count", "the number of angles", min = 1, max = 1 << 24},
    {"span", "number", "the angle from the first one to the end", unit = "rad", default = math.pi},
}, function(count, span)
    if math.abs(span) > 4 * math.pi then
        fail("argument", "tomo.angles", "span", "span is %.6g rad, %.1f turns: is it in degrees? "
            .. "math.rad(span) are the radians that are needed", span,
            math.abs(span) / (2 * math.pi))
    end
    local angles = {}
    for i = 1, count do
        angles[i] = (i - 1) * span / count
    end
    return angles
end)

--- Angles within one turn: each angle modulo 2 pi.
--
-- A scan of many turns is reconstructed from these. Angles that span more than two turns are
-- refused, because degrees look like them.
-- Returns a new table.
tomo.wrapped = declared("tomo.wrapped", {
    {"angles", "list", "one per projection", unit = "rad"},
}, function(angles)
    return tables.mapped(angles, function(angle) return angle % (2 * math.pi) end)
end)

local LINE_OPTIONS = declared.options(
    {"darks", "array", "raw frames without beam (frame, row, column)"},
    {"flats", "array", "raw frames without sample (frame, row, column)"},
    {"log", "boolean", "false leaves the logarithm out", default = true},
    {"consume", "boolean", "release the raw frames, or reuse them if they are f32"},
    declared.from("flat_field", "mode", "dark_mode", "floor", "nonfinite", "groups", "positions",
        "frames", "scale", "flat_scale"),
    declared.from("minus_log", "min", "max"))

--- Raw frames to line integrals: flat field and -ln.
--
-- Returns the projections, f32 (angle, row, column), and the counts of what had to be mended:
-- {nonfinite, clamped, nonpositive} as an array of three.
-- Errors: argument, dtype, shape, budget.
-- Reference: -ln((data - dark) / (flat - dark)), no unit; by the law of Lambert and Beer the
-- integral of the attenuation along the ray.
tomo.line_integrals = declared("tomo.line_integrals", {
    {"data", "array", "raw frames (angle, row, column)", rank = {2, 3}},
    options = LINE_OPTIONS,
}, function(data, options)
    local flat = declared.part(LINE_OPTIONS, options, "flat_field")
    flat.darks, flat.flats = options.darks, options.flats
    flat.out = options.consume and data.dtype == "f32" and data or nil
    local transmission, counts = mb.flat_field(data, flat)
    local _ <close> = on_error(function()
        transmission:release()
        counts:release()
    end)
    if options.consume and not flat.out then
        data:release()
    end
    if options.log then
        local bounds = declared.part(LINE_OPTIONS, options, "minus_log")
        bounds.out = transmission
        mb.minus_log(transmission, bounds)
    end
    return transmission, counts
end)

return whole_call.module(tomo, "tomo")
