--- Denoising of slices.

local mb = require "moonbeam"

local ITERATIONS <const> = 50

return function(bench, report)
    local options, device = bench.options, bench.device
    local shape = {options.slices, options.size, options.size}
    local data <close> = mb.random(shape, {seed = 1, device = device})
    local made <close> = mb.empty(shape, {device = device})
    local function row(name, unit, count, call)
        report(name, unit, count, 2 * data.bytes, call)
    end
    for dimensions = 2, 3 do
        row(("total_variation, %d-D"):format(dimensions), "slice and iteration",
            options.slices * ITERATIONS, function()
                mb.total_variation(data, 0.1, {iterations = ITERATIONS, dimensions = dimensions,
                    out = made})
            end)
    end
    row("bilateral_filter, 2-D", "slice", options.slices, function()
        mb.bilateral_filter(data, 0.3, {out = made})
    end)
end
