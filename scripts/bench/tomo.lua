--- Reconstruction: each operator and the two methods, per slice. TUPS = 1e12 pixel-angle updates per second, over the whole
-- square. Floors count every array once.

local mb = require "moonbeam"

return function(bench)
    local options, device = bench.options, bench.device
    local n, angles, slices = options.size, options.angles, options.slices
    local theta = mb.tomo.angles(angles)
    local sino <close> = mb.random({slices, angles, n}, {seed = 1, low = -1, high = 1, device = device})
    local volume <close> = mb.empty({slices, n, n}, {device = device})
    local updates = slices * angles * n * n
    local row = bench.table(("## Tomography: %d slices of %d x %d from %d angles"):format(slices, n, n, angles),
        {"work", "ms per slice", "TUPS", "floor ms", "x floor"})

    local function report(name, fn, bytes, counted)
        if bench.wanted(name) then
            local seconds, floor = bench.time(fn), bench.floor(bytes)
            row(name, ("%.4f"):format(seconds * 1e3 / slices), counted and ("%.3f"):format(updates / seconds / 1e12) or "",
                ("%.4f"):format(floor * 1e3 / slices), ("%.1f"):format(seconds / floor))
        end
    end

    local both = sino.bytes + volume.bytes
    do
        local filtered <close> = mb.empty({slices, angles, n}, {device = device})
        report("ramp_filter", function() mb.ramp_filter(sino, {out = filtered}) end, 2 * sino.bytes)
        for _, accuracy in ipairs {"fast", "exact"} do
            report("backproject, " .. accuracy, function()
                mb.backproject(sino, theta, {accuracy = accuracy, out = volume})
            end, both, true)
        end
        report("project", function() mb.project(volume, theta, {cols = n, out = filtered}) end, both, true)
    end
    do
        local raw <close> = mb.random({angles, slices, n}, {seed = 2, low = 100, high = 20000, dtype = "u16", device = device})
        local flats <close> = mb.random({4, slices, n}, {seed = 3, low = 19000, high = 20000, dtype = "u16", device = device})
        local darks <close> = mb.random({4, slices, n}, {seed = 4, low = 90, high = 110, dtype = "u16", device = device})
        local out <close> = mb.empty({angles, slices, n}, {device = device})
        report("flat_field + minus_log", function()
            local _, counts = mb.flat_field(raw, {darks = darks, flats = flats, out = out})
            counts:release()
            mb.minus_log(out, {out = out})
        end, raw.bytes + 3 * sino.bytes)
    end
    for _, accuracy in ipairs {"fast", "exact"} do
        report("filtered back-projection, " .. accuracy, function()
            mb.tomo.fbp(sino, theta, {accuracy = accuracy}):release()
        end, both, true)
    end
    for _, accuracy in ipairs {"fast", "exact"} do
        report("fourier_reconstruct, " .. accuracy, function()
            mb.fourier_reconstruct(sino, theta, {accuracy = accuracy, out = volume})
        end, both)
    end
    for _, peer in ipairs(bench.peers("tomo", n, angles, slices, options.repeats)) do
        row("peer: " .. peer.name, ("%.4f"):format(peer.seconds * 1e3), ("%.3f"):format(updates / slices / peer.seconds / 1e12))
    end
end
