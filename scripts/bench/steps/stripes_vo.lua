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
    -- With a few stripes of each kind, so that there is something to find.
    for _, column in ipairs {200, 201, 202, 203, 400} do
        local view <close> = data:view(mb.all, mb.all, column % options.size + 1)
        view:fill(1)
    end
    report("stripes_large", "sinogram", options.slices, 2 * data.bytes, function()
        mb.stripes_large(data, {out = result})
    end)
    report("stripes_dead", "sinogram", options.slices, 2 * data.bytes, function()
        mb.stripes_dead(data, {residual = false, out = result})
    end)
    report("stripes_all", "sinogram", options.slices, 2 * data.bytes, function()
        mb.stripes_all(data, {large_size = 61, out = result})
    end)
end
