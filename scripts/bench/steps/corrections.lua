--- Corrections of frames.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local shape = {options.angles, options.slices, options.size}
    local data <close> = mb.random(shape, {seed = 1, low = 0.1, high = 1, device = device})
    report("minus_log", "sinogram", options.slices, 2 * data.bytes, function()
        mb.minus_log(data, {out = data})
    end)
    report("polynomial", "sinogram", options.slices, 2 * data.bytes, function()
        mb.polynomial(data, {0, 1, 0.05, 0.001}, {out = data})
    end)
    local slices <close> = mb.random({options.slices, options.size, options.size}, {seed = 2,
        device = device})
    report("circular_mask", "slice", options.slices, slices.bytes * (1 - math.pi / 4), function()
        mb.circular_mask(slices, {out = slices})
    end)
end
