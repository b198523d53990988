--- Corrections of frames.

local mb = require "moonbeam"

return function(bench, report)
    local options, device = bench.options, bench.device
    local shape = {options.angles, options.slices, options.size}
    local raw <close> = mb.random(shape, {seed = 3, low = 100, high = 60000, dtype = "u16",
        device = device})
    local flats <close> = mb.random({20, options.slices, options.size}, {seed = 4, low = 50000,
        high = 60000, dtype = "u16", device = device})
    local own, frames = {flats = flats, groups = {10, 10}, positions = {0, options.angles}}, {}
    for i = 1, options.angles do
        frames[i] = i - 0.5
    end
    local transmission <close> = mb.empty(shape, {device = device})
    own.out, own.frames, own.scale = transmission, frames, frames
    report("flat_field", "sinogram", options.slices, 3 * raw.bytes, function()
        select(2, mb.flat_field(raw, {flats = flats, out = transmission})):release()
    end)
    report("flat_field between two groups with currents", "sinogram", options.slices,
        3 * raw.bytes, function()
            select(2, mb.flat_field(raw, own)):release()
        end)
    local data <close> = mb.random(shape, {seed = 1, low = 0.1, high = 1, device = device})
    report("minus_log", "sinogram", options.slices, 2 * data.bytes, function()
        mb.minus_log(data, {out = data})
    end)
    report("polynomial", "sinogram", options.slices, 2 * data.bytes, function()
        mb.polynomial(data, {0, 1, 0.05, 0.001}, {out = data})
    end)
    report("normalize_background", "sinogram", options.slices, 2 * data.bytes, function()
        mb.normalize_background(data, {out = data})
    end)
    report("mean_projection of transmissions", "sinogram", options.slices, data.bytes, function()
        mb.mean_projection(data, {transmission = true}):release()
    end)
    local slices <close> = mb.random({options.slices, options.size, options.size}, {seed = 2,
        device = device})
    report("circular_mask", "slice", options.slices, slices.bytes * (1 - math.pi / 4), function()
        mb.circular_mask(slices, {out = slices})
    end)
    -- a beam of 5 components, fitted on strips of an eighth each
    local frame = {options.slices, options.size, options.size}
    local stack <close> = mb.random(frame, {seed = 5, low = 100, high = 60000, dtype = "u16",
        device = device})
    local result <close> = mb.empty(frame, {device = device})
    local mean <close> = mb.full({options.size, options.size}, -10, {device = device})
    local basis <close> = mb.random({8, options.size, options.size}, {seed = 6, device = device})
    local inverse, fit = {}, {width = options.size // 8, out = result}
    for i = 1, 64 do
        inverse[i] = (i - 1) % 9 == 0 and 1e-6 or 0
    end
    report("eigen_flat_field of 8 images", "frame", options.slices, stack.bytes + result.bytes,
        function()
            select(2, mb.eigen_flat_field(stack, mean, basis, inverse, fit)):release()
        end)
    report("gram_matrix", "frame", 8, basis.bytes, function()
        mb.gram_matrix(basis):release()
    end)
end
