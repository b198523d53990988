--- Reconstruction: each operator and the two methods, per slice. TUPS = 1e12 pixel-angle updates
-- per second, over the whole square. Floors count every array once. Errors are relative L2 norms
-- against double precision (errors.lua): of a phantom and of noise, the worst case.

local mb = require "moonbeam"
local errors = assert(loadfile((arg[0]:match("^(.*)/[^/]*$") or ".") .. "/bench/errors.lua"))()

-- Sinograms: noise, or the filtered phantom in every slice.
local function noise(shape, device)
    return mb.random(shape, {seed = 1, low = -1, high = 1, device = device})
end

local function phantom(shape, theta, device)
    local n = shape[3]
    local frames <close> = mb.ellipsoid_projections(mb.phantom.scale(mb.phantom.shepp_logan, n / 2),
        theta, {-0.15 * n / 2}, n,
        {device = device})
    local sino = mb.empty(shape, {device = device})
    for z = 1, shape[1] do
        local to <close> = sino:view(z, mb.all, mb.all)
        local from <close> = frames:view(mb.all, 1, mb.all)
        mb.convert(from, "f32", {out = to})
    end
    return sino
end

return function(bench)
    local options, device = bench.options, bench.device
    local n, angles, slices = options.size, options.angles, options.slices
    local theta = mb.tomo.angles(angles)
    local shape = {slices, angles, n}
    local sino <close> = noise(shape, device)
    local volume <close> = mb.empty({slices, n, n}, {device = device})
    local updates = slices * angles * n * n
    local row = bench.table(("## Tomography: %d slices of %d x %d from %d angles"):format(slices, n,
        n, angles),
        {"work", "ms per slice", "TUPS", "floor ms", "x floor", "error, phantom", "error, noise"})

    local function report(name, fn, bytes, counted, error_of)
        if not bench.wanted(name) then
            return
        end
        local seconds, floor = bench.time(fn), bench.floor(bytes)
        local found = {}
        for i, made in ipairs(error_of and not options.no_errors and {phantom(shape, theta, device),
            noise(shape, device)} or {}) do
            found[i] = ("%.1e"):format(error_of(made, i))
            made:release()
        end
        row(name, ("%.4f"):format(seconds * 1e3 / slices),
            counted and ("%.4g"):format(updates / seconds / 1e12) or "",
            ("%.4f"):format(floor * 1e3 / slices), ("%.1f"):format(seconds / floor), found[1],
                found[2])
    end

    local function first(array)
        return array:view(1, mb.all, mb.all)
    end

    local both = sino.bytes + volume.bytes
    do
        local filtered <close> = mb.empty(shape, {device = device})
        report("ramp_filter", function() mb.ramp_filter(sino, {out = filtered}) end, 2 * sino.bytes)
        for _, accuracy in ipairs {"fast", "exact"} do
            report("backproject, " .. accuracy, function()
                mb.backproject(sino, theta, {accuracy = accuracy, out = volume})
            end, both, true, function(input)
                mb.ramp_filter(input, {out = input})
                mb.backproject(input, theta, {accuracy = accuracy, out = volume})
                local slice <close> = first(volume)
                local rows <close> = first(input)
                return errors.backproject(slice, rows:to_table(), theta)
            end)
        end
        report("project", function() mb.project(volume, theta, {cols = n, out = filtered}) end,
            both, true)
    end
    do
        local raw <close> = mb.random({angles, slices, n}, {seed = 2, low = 100, high = 20000,
            dtype = "u16", device = device})
        local flats <close> = mb.random({4, slices, n}, {seed = 3, low = 19000, high = 20000,
            dtype = "u16", device = device})
        local darks <close> = mb.random({4, slices, n},
            {seed = 4, low = 90, high = 110, dtype = "u16", device = device})
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
    local filtered_rows = {} -- of either input, filtered in double precision
    for _, accuracy in ipairs {"fast", "exact"} do
        local how = {accuracy = accuracy, circle = 1, out = volume}
        report("fourier_reconstruct, " .. accuracy, function()
            mb.fourier_reconstruct(sino, theta, how)
        end, both, false, function(input, kind)
            mb.fourier_reconstruct(input, theta, how)
            local slice <close> = first(volume)
            if not filtered_rows[kind] then
                local rows <close> = first(input)
                filtered_rows[kind] = errors.filter(rows:to_table())
            end
            return errors.fourier(slice, filtered_rows[kind], theta)
        end)
    end
    for _, peer in ipairs(bench.peers("tomo", n, angles, slices, options.repeats)) do
        row("peer: " .. peer.name, ("%.4f"):format(peer.seconds * 1e3),
            ("%.4g"):format(updates / slices / peer.seconds / 1e12))
    end
end
