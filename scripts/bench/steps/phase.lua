--- Phase retrieval, of frames as wide as high, padded to twice their size.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local size = options.size
    local data <close> = mb.random({options.slices, size, size}, {seed = 1, low = 0.5, high = 1,
        device = device})
    local padded = 2
    while padded < 2 * size do
        padded = 2 * padded
    end
    report("Paganin", "frame", options.slices, 2 * data.bytes, function()
        mb.phase_filter(data, 0.5, {delta_beta = 200, padded = padded, out = data})
    end)
    report("CTF", "frame", options.slices, 2 * data.bytes, function()
        mb.phase_filter(data, 0.5, {delta_beta = 200, padded = padded, method = "ctf", out = data})
    end)
end
