--- Corrections of frames.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local shape = {options.angles, options.slices, options.size}
    local data <close> = mb.random(shape, {seed = 1, low = 0.1, high = 1, device = device})
    report("minus_log", "sinogram", options.slices, 2 * data.bytes, function()
        mb.minus_log(data, {out = data})
    end)
end
