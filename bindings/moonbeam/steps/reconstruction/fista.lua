local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local fista = require "moonbeam.tomo.iterative.fista"
local geometry = require "moonbeam.pipeline.geometry"

local own = fista.options

return {
    name = "fista",
    summary = "Slices by least squares with total variation: for few angles or much noise.",
    doc = "Iterative: each iteration projects and back-projects. The slices are attenuation per "
        .. "meter if the pixel size is known, otherwise per pixel; lambda is meant for values per "
        .. "pixel. Each slice is made by itself.",
    reference = "mb.tomo.fista",
    options = declared.options(
        {"center", "number", "the rotation axis: 0-based column of the scan", unit = "px",
            usual = "what step center finds"},
        own.iterations, own.lambda, own.tv_iterations, own.nonnegative, own.size, own.circle),
    takes = {quantity = {"line integrals", "phase"}, layout = "frames"},
    gives = function(_, kind)
        return {quantity = kind.quantity == "phase" and "phase" or "attenuation",
            layout = "slices"}
    end,
    cuts = {"rows"},
    uses = {"center"},
    check = function(options, _, g)
        if g.half_acquisition then
            fail("argument", nil, nil, "it does not support half acquisition; use step fbp, or "
                .. "turn the scan into a half turn first")
        elseif g.lean ~= 0 then
            fail("argument", nil, nil, "it does not support a leaning axis (step tilt); use step "
                .. "fbp, or rotate the frames")
        elseif options.center and not (options.center >= 0 and options.center <= g.cols - 1) then
            fail("argument", nil, "center", "center is %g; the detector has columns 0 to %d",
                options.center, g.cols - 1)
        end
    end,
    shape = function(options, shape)
        local side = options.size or shape[3]
        return {shape[2], side, side}
    end,
    geometry = function(_, g)
        return geometry.with(g, {first_x = 1, first_y = 1})
    end,
    -- Back-projection is exact here, but for its packets.
    packet = function(_, step, device)
        local angles, rows, cols = table.unpack(step.shape_before)
        return mb.op.piece("backproject", {{"f32", rows, angles, cols}},
            {angles = step.geometry_before.angles, size = {1, 1}, accuracy = "exact"},
            {axis = 1, first = 1, last = 1, device = device}).packet
    end,
    run = function(block, options, values)
        local g = block.geometry
        local sinograms <close> = block.data:permute(2, 1, 3)
        local slices = mb.tomo.fista(sinograms, g.angles, {iterations = options.iterations,
            lambda = options.lambda, tv_iterations = options.tv_iterations,
            nonnegative = options.nonnegative, size = options.size, circle = options.circle,
            center = geometry.element(g, options.center or values.center)})
        if g.pixel_size then
            mb.binary(slices, "mul", {scalar = 1 / g.pixel_size, out = slices})
        end
        block:replace(slices)
    end,
}
