--- Medians and outliers of frames: noise with a zinger in each thousand values.

local mb = require "moonbeam"

-- Noise of 3 % about 1, with zingers of 0 to 3 above it.
local function frames_of(shape, device)
    local data = mb.random(shape, {seed = 1, low = 0.97, high = 1.03, device = device})
    local zingers <close> = mb.random(shape, {seed = 2, low = -0.999, high = 0.001,
        device = device})
    mb.binary(zingers, "max", {scalar = 0, out = zingers})
    mb.binary(zingers, "mul", {scalar = 3000, out = zingers})
    mb.binary(data, "add", {b = zingers, out = data})
    return data
end

return function(bench, report)
    local options = bench.options
    local frames, bytes = options.slices, 8 * options.slices * options.angles * options.size
    local function row(name, f)
        if not bench.wanted(name) then
            return
        end
        local data <close> = frames_of({frames, options.angles, options.size}, bench.device)
        local out <close> = data:copy()
        report(name, "frame", frames, bytes, function()
            f(data, out)
        end)
    end
    for _, size in ipairs {{1, 3, 3}, {3, 3, 3}, {1, 5, 5}, {5, 5, 5}, {7, 7, 7}} do
        local words = table.concat(size, "x")
        row("dezinger " .. words, function(data, out)
            local _, counts = mb.dezinger(data, size, 0.3, {out = out})
            counts:release()
        end)
        row("median " .. words, function(data, out)
            mb.median_filter(data, size, {out = out})
        end)
    end
    row("mend", function(data)
        local _, counts = mb.mend(data, {out = data})
        counts:release()
    end)
end
