--- Parallel-beam tomography: functions over operators, to be read, copied and changed.
--
-- Axis order: projections (angle, row, column), sinograms (row, angle, column), volumes (z, y, x).
-- Angles in radians. Rotation centres are 0-based pixel-centre coordinates: (columns - 1)/2 in the
-- middle.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local center = require "moonbeam.tomo.center"
local fail = require "moonbeam.internal.fail"
local fbp = require "moonbeam.tomo.fbp"
local methods = require "moonbeam.tomo.method"
local on_error = require "moonbeam.internal.on_error"
local options_of = require "moonbeam.internal.options"
local pick = require "moonbeam.internal.pick"
local whole_call = require "moonbeam.internal.whole"

local tomo = {
    fbp = fbp.reconstruct,
    reconstruct = methods.reconstruct,
    choose_method = methods.choose,
    find_center = center.find_center,
    find_center_pair = center.find_center_pair,
    find_center_metric = center.find_center_metric,
    opposite_pair = center.opposite_pair,
    metrics = center.metrics,
    MIN_OVERLAP = center.MIN_OVERLAP,
    PAIR_RANGE = center.PAIR_RANGE,
}

--- `count` angles equally spaced over `span` (rad, up to two turns; default pi), the end left
-- out: a table of numbers.
function tomo.angles(count, span)
    arguments.required(count, "tomo.angles", "count", "the number of angles")
    arguments.count(count, "tomo.angles", "count", 1, 1 << 24)
    arguments.number(span, "tomo.angles", "span", -math.huge, math.huge)
    if math.abs(span or 0) > 4 * math.pi then
        fail("argument", "tomo.angles", "span", "span is %.6g rad, %.1f turns: is it in degrees? "
            .. "math.rad(span) are the radians that are needed", span,
            math.abs(span) / (2 * math.pi))
    end
    local angles = {}
    for i = 1, count do
        angles[i] = (i - 1) * (span or math.pi) / count
    end
    return angles
end

--- Angles within one turn: each of `angles` (rad, a table) modulo 2 pi, as a new table. A scan of
-- many turns is reconstructed from these; angles that span more than two turns are refused,
-- because degrees look like them.
function tomo.wrapped(angles)
    arguments.list(angles, "tomo.wrapped", "angles", "one per projection")
    local within = {}
    for i, angle in ipairs(angles) do
        within[i] = angle % (2 * math.pi)
    end
    return within
end

--- Raw frames to line integrals: flat field and -ln. Returns the projections, f32 (angle, row,
-- column), and the counts of what had to be mended: {nonfinite, clamped, nonpositive} as an array
-- of three.
--
-- -ln((data - dark) / (flat - dark)), no unit; by Lambert and Beer's law the integral of the
-- attenuation along the ray. `data`, and the options `darks` and `flats`: raw frames (angle, row,
-- column). Options of flat_field: mode, floor, nonfinite; of minus_log: min, max; log = false
-- leaves the logarithm out. `data` is released when `options.consume` is true, and reused when it
-- is f32.
function tomo.line_integrals(data, options)
    options = options_of(options, "tomo.line_integrals", {"darks", "flats", "mode", "floor", "nonfinite", "min", "max",
        "consume", "log"})
    arguments.array(data, "tomo.line_integrals", "data", 2, 3, "raw frames (angle, row, column)")
    local flat = pick(options, {"darks", "flats", "mode", "floor", "nonfinite"})
    flat.out = options.consume and data.dtype == "f32" and data or nil
    local transmission, counts = mb.flat_field(data, flat)
    local _ <close> = on_error(function()
        transmission:release()
        counts:release()
    end)
    if options.consume and not flat.out then
        data:release()
    end
    if options.log ~= false then
        local bounds = pick(options, {"min", "max"})
        bounds.out = transmission
        mb.minus_log(transmission, bounds)
    end
    return transmission, counts
end

return whole_call.module(tomo, "tomo")
