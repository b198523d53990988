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
    report("resample linear", "frame", count, bytes, function()
        mb.resample(frames, {n, n}, {method = "linear", out = result})
    end)
    local shifts = {}
    for i = 1, count do
        shifts[i] = 5 * math.sin(i)
    end
    report("horizontal_shift", "frame", count, bytes, function()
        mb.horizontal_shift(frames, shifts, {mode = "edge", out = result})
    end)
    local small <close> = mb.empty({count, n // 2, n // 2}, {device = device})
    report("bin 2 x 2", "frame", count, frames.bytes + small.bytes, function()
        mb.bin(frames, {1, 2, 2}, {out = small})
    end)
    if count < 2 then
        return
    end
    local overlap = n // 8 // 2 * 2
    local wide <close> = mb.empty({count // 2, n, 2 * n - overlap}, {device = device})
    report("stitch_turn", "frame", count // 2, frames.bytes + wide.bytes, function()
        mb.stitch_turn(frames, overlap, "right", {out = wide})
    end)
end
