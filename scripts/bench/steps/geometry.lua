--- Geometry of frames.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local n, count = options.size, options.slices
    local frames <close> = mb.random({count, n, n}, {seed = 1, device = device})
    local result <close> = mb.empty({count, n, n}, {device = device})
    local bytes, center = frames.bytes + result.bytes, {0.49 * n, 0.52 * n}
    local factors = {1.0003, 5e-10, 3e-9}
    report("undistort", "frame", count, bytes, function()
        mb.undistort(frames, center, factors, {out = result})
    end)
    report("undistort splines", "frame", count, bytes, function()
        mb.undistort(frames, center, factors, {order = 3, out = result})
    end)
    report("rotate", "frame", count, bytes, function()
        mb.rotate(frames, 0.01, {out = result})
    end)
end
