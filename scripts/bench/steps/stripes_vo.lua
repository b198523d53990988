--- Removal of stripes by the methods of Vo et al.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local shape = {options.slices, options.angles, options.size}
    local data <close> = mb.random(shape, {seed = 1, low = 0.9, high = 1.1, device = device})
    local result <close> = mb.zeros(shape, {device = device})
    for _, size in ipairs {11, 21, 61} do
        report("stripes_sorting, window " .. size, "sinogram", options.slices, 2 * data.bytes,
            function()
                mb.stripes_sorting(data, {size = size, out = result})
            end)
    end
end
