--- The choice between the two ways to reconstruct: `tomo.reconstruct` and `tomo.choose_method`.
--
-- Both methods invert the same transform with the same filters, geometry and scale. Filtered back-projection visits every
-- pixel once for every angle and interpolates linearly; the direct Fourier method visits every sample a fixed number of times
-- and then does one 2-D FFT per two slices, and interpolates by the rows' trigonometric polynomial. So the second wins when
-- there are many pixels and angles, the first when there are few, when memory is short, and where only it can do what is asked.

local mb = require "moonbeam"
local arguments = require "moonbeam.arguments"
local options_of = require "moonbeam.options"
local fbp = require "moonbeam.fbp"

local method = {}

local METHODS, MODES = {"auto", "fbp", "fourier"}, {"auto", "fast", "in_place"}
local BOTH = {"filter", "cutoff", "padding", "pad_width", "center", "shifts", "size", "circle", "circle_value", "scale", "accuracy",
    "roi", "out"}
local ONLY = { -- options that one method alone has
    fbp = {half_acquisition = "half acquisition", mode = "memory mode in_place",
        slice_shifts = "an axis of its own for every slice"},
    fourier = {weights = "weights on the angles", pairs = "batches of pairs"},
}

-- Picoseconds. Filtered back-projection: a call, a detector sample (filtering), a pixel written, and a pixel at one angle in all of
-- so many slices, from which larger calls are made up: slices go through in groups. Fourier: a call; where a batch of pairs finds
-- its samples, a sample and a pixel; and for every pair a sample and a pixel. Only ratios count. Fitted to the times in
-- spec/fixtures/method_times.lua, cuda: of one H200, host: of Zen 4 threads. Back-projection of few angles is exact always.
local HALVES = 640 -- MB_BACKPROJECT_CUDA_HALVES
local COSTS = {
    cuda = {
        batch_bytes = math.huge,
        fast = {
            fbp = {call = 1.0e8, sample = 8.4, pixel = 4.6, update = {{1, 0.80}, {2, 1.19}, {4, 1.19}, {5, 1.46}, {16, 1.47}, {64, 3.10}}},
            fourier = {call = 1.5e8, batch_sample = 105, batch_pixel = 0, pair_sample = 39, pair_pixel = 26, grid = 1.25},
        },
        exact = {
            fbp = {call = 1.0e8, sample = 9.9, pixel = 3.0,
                update = {{1, 0.82}, {2, 1.23}, {4, 1.23}, {5, 2.18}, {8, 2.18}, {9, 3.25}, {16, 3.25}, {64, 8.38}}},
            fourier = {call = 1.3e8, batch_sample = 143, batch_pixel = 0, pair_sample = 35, pair_pixel = 40, grid = 2},
        },
    },
    host = {
        batch_bytes = 512 << 20, -- MB_FOURIER_HOST_BYTES
        fast = {
            fbp = {call = 0, sample = 2900, pixel = 0, update = {{1, 63}, {9, 567}, {10, 606}, {16, 606}}},
            fourier = {call = 0, batch_sample = 5.2e3, batch_pixel = 2.7e3, pair_sample = 26e3, pair_pixel = 5.1e3, grid = 1.25},
        },
        exact = {
            fbp = {call = 0, sample = 2900, pixel = 0, update = {{1, 63}, {9, 567}, {10, 606}, {16, 606}}},
            fourier = {call = 0, batch_sample = 6.8e3, batch_pixel = 2.1e3, pair_sample = 27e3, pair_pixel = 10e3, grid = 2},
        },
    },
}

-- The cost of `rows` slices by a list of {slices, cost}: linear between them, and beyond the last by whole lists.
local function of_rows(list, rows)
    local last, rest = list[#list], rows % list[#list][1]
    local whole, below = rows // last[1] * last[2], {0, 0}
    for _, knot in ipairs(list) do
        if rest <= knot[1] then
            return whole + below[2] + (knot[2] - below[2]) * (rest - below[1]) / (knot[1] - below[1])
        end
        below = knot
    end
end

-- Of a call; `pixels` of a slice, `side` the larger one, both of the region that is made.
local function seconds_of(way, kind, accuracy, rows, n_angles, cols, pixels, side)
    local exact = way.method == "fbp" and n_angles < HALVES
    local cost = COSTS[kind][exact and "exact" or accuracy][way.method]
    local samples = n_angles * cols
    if way.method == "fbp" then
        local update = of_rows(cost.update, rows)
        if way.mode == "in_place" then -- one slice at a time, and never for speed
            update = 1.1 * math.max(update, rows * of_rows(cost.update, 1))
        end
        return 1e-12 * (cost.call + rows * (cost.sample * samples + cost.pixel * pixels) + update * n_angles * pixels)
    end
    local pairs_most, pair_bytes = 1, 8 * (cost.grid * samples + (cost.grid * side) ^ 2) -- see mb_fourier_batch
    while pairs_most < 8 and 2 * pairs_most * pair_bytes <= COSTS[kind].batch_bytes do
        pairs_most = 2 * pairs_most
    end
    local count = (rows + 1) // 2
    local batches = (count + pairs_most - 1) // pairs_most
    return 1e-12 * (cost.call + batches * (cost.batch_sample * samples + cost.batch_pixel * side ^ 2)
        + count * (cost.pair_sample * samples + cost.pair_pixel * side ^ 2))
end

-- The option that keeps a method from being used, in words; nil when none does.
local function excluded(name, options)
    for option, words in pairs(ONLY[name == "fbp" and "fourier" or "fbp"]) do
        local value = options[option]
        if value and not (option == "mode" and value ~= "in_place") then
            return words
        end
    end
end

-- Ways to go about it, faster modes first where a method has several.
local WAYS = {
    {method = "fbp", mode = "fast", name = "filtered back-projection"},
    {method = "fourier", mode = "fast", name = "direct Fourier method"},
    {method = "fbp", mode = "in_place", name = "filtered back-projection, in place"},
}

local function run(way, sino, angles, options)
    local foreign, own = ONLY[way.method == "fbp" and "fourier" or "fbp"], {}
    for key, value in pairs(options) do
        own[key] = not foreign[key] and key ~= "method" and value or nil
    end
    if way.method == "fbp" then
        own.mode = way.mode
        return fbp.reconstruct(sino, angles, own)
    end
    own.consume = nil
    fbp.check_pad_width(own.pad_width, sino.shape[sino.rank], "tomo.reconstruct")
    local slices = mb.fourier_reconstruct(sino, angles, own)
    if options.consume then
        sino:release()
    end
    return slices
end

local function checked(options, op)
    options = options_of(options, op, BOTH, {"method", "consume", "half_acquisition", "mode", "slice_shifts", "weights", "pairs"})
    arguments.name(options.method, op, "method", METHODS)
    arguments.name(options.mode, op, "mode", MODES)
    if options.out then
        arguments.array(options.out, op, "out", 2, 3, "slices (row, y, x), or one (y, x)")
    end
    local asked = options.method or "auto"
    local no_fbp, no_fourier = excluded("fbp", options), excluded("fourier", options)
    if asked ~= "auto" and excluded(asked, options) then
        mb.raise("argument", ("method %s does not do %s; leave the method to \"auto\", or the option out"):format(asked,
            excluded(asked, options)), {op = op, arg = "method"})
    elseif no_fbp and no_fourier then
        mb.raise("argument", ("no method does both %s and %s"):format(no_fourier, no_fbp), {op = op, arg = "method"})
    end
    return options
end

-- {ny, nx} of slices whose size is given as the operators take it.
local function extents_of(size, cols)
    local list = type(size) == "table" and size or type(size) == "userdata" and size:to_table() or {size}
    local ny = list[1] or cols
    return ny, list[2] or ny
end

-- Why this way of the others, in words.
local function reason_of(best, ways, options)
    if options.method and options.method ~= "auto" then
        return "asked for"
    end
    local words = excluded(best.method == "fbp" and "fourier" or "fbp", options)
    if words then
        return words .. " needs it"
    end
    for _, way in ipairs(ways) do
        if way.method ~= best.method then
            return way.seconds < best.seconds and ("the other is faster but takes %s more"):format(
                mb.device.format_bytes(way.peak - best.peak)) or ("about %.1f times as fast as the other"):format(
                way.seconds / best.seconds)
        end
    end
end

--- Which way `tomo.reconstruct` takes for sinograms of `shape`, {rows, angles, columns} or {angles, columns}. Nothing runs.
--
-- `angles` and options as for reconstruct, and `device` (default: the default device) and `available` (bytes beside the
-- sinograms; default what the budget leaves when they are there). What a method cannot do excludes it; of the ways left, the
-- fastest is taken that fits.
-- Returns {method = "fbp" or "fourier", mode = "fast" or "in_place", reason = text, seconds (a slice, by a model: only the ratio
-- means something on other machines), peak (bytes beside the sinograms, exact)} and the list of all ways, the same fields each.
function method.choose(shape, angles, options)
    local rest = {}
    for key, value in pairs(options or {}) do
        rest[key] = value
    end
    local device, available = mb.device(rest.device or mb.default_device()), rest.available and mb.device.bytes(rest.available)
    rest.device, rest.available = nil, nil
    rest = checked(rest, "tomo.choose_method")
    local out = rest.out
    arguments.list(shape, "tomo.choose_method", "shape", "{rows, angles, columns} or {angles, columns}")
    local rank = #shape
    if rank ~= 2 and rank ~= 3 then
        mb.raise("shape", ("shape has %d extents; sinograms are (row, angle, column) or (angle, column)"):format(rank),
            {op = "tomo.choose_method", arg = "shape"})
    end
    for i, extent in ipairs(shape) do
        arguments.count(extent, "tomo.choose_method", ("extent %d of shape"):format(i), 1, 1 << 31)
    end
    arguments.angles(angles, "tomo.choose_method", "angles", shape[rank - 1])
    local own = mb.pool.round(4 * (rank == 3 and shape[1] or 1) * shape[rank - 1] * shape[rank])
    local given = own + (out and mb.pool.round(out.bytes) or 0)
    if not available then
        local stats = mb.pool.stats(device)
        available = stats.budget - stats.live - own
    end
    local cols = shape[rank]
    local rows = math.max(1, rank == 3 and shape[1] or 1)
    local ways, best = {}, nil
    for _, way in ipairs(WAYS) do
        local words = excluded(way.method, rest)
        if not words and (rest.method == nil or rest.method == "auto" or rest.method == way.method)
            and (rest.mode == nil or rest.mode == "auto" or rest.mode == way.mode) then
            local entry = {method = way.method, mode = way.mode, name = way.name}
            entry.peak = mb.plan.peak(function(shadow)
                local sino <close> = mb.empty(shape, {device = shadow})
                rest.out = out and mb.empty(out.shape, {device = shadow})
                run(way, sino, angles, rest):release()
            end, device).peak - given
            -- The dry run has checked the options.
            local high, wide = extents_of(rest.size, cols)
            if rest.roi then
                high, wide = rest.roi[2] - rest.roi[1], rest.roi[4] - rest.roi[3]
            end
            entry.seconds = seconds_of(way, device.kind, rest.accuracy or "fast", rows, shape[rank - 1], cols, high * wide,
                math.max(high, wide)) / rows
            entry.fits = entry.peak <= available
            ways[#ways + 1] = entry
            if not best or entry.fits and (not best.fits or entry.seconds < best.seconds)
                or not entry.fits and not best.fits and entry.peak < best.peak then
                best = entry
            end
        end
    end
    rest.out = out
    best.reason = ("%s (%s)"):format(best.name, reason_of(best, ways, rest))
    return best, ways
end

--- Reconstructs slices from line integrals, by the method that suits.
--
-- `sino` (rows, angles, columns) or (angles, columns), f32; `angles` in radians, in any order. Options: `method` "auto"
-- (default), "fbp" or "fourier"; those of `tomo.fbp` and `fourier_reconstruct`. What only one of them can do chooses it
-- (half_acquisition, slice_shifts and mode "in_place": fbp; weights, pairs: fourier); otherwise the faster one by a model
-- of both, or the one that fits the budget. `consume` = true gives the sinogram up: fbp filters it in place, the
-- Fourier method releases it.
-- Formula: f(x, y) = scale * sum over angles of q(X cos t + Y sin t + center), q the ramp-filtered line integrals (Kak and
-- Slaney 1988, ch. 3.3; the Fourier method: see fourier_reconstruct). Line integrals have no unit, so that with the default
-- scale, pi / number of angles, the slices are attenuation per pixel; divide by the pixel size for attenuation per metre.
-- Returns the slices (row, y, x), or (y, x), f32, and the way taken as `tomo.choose_method` describes it.
-- Errors: argument (an unknown option, two that no method does together, an angle that is not finite), dtype, shape (sino has
-- not these axes, or not one row per angle), budget (no way fits; the error says what would).
function method.reconstruct(sino, angles, options)
    options = checked(options, "tomo.reconstruct")
    arguments.array(sino, "tomo.reconstruct", "sino", 2, 3, "sinograms (row, angle, column), or one (angle, column)")
    arguments.angles(angles, "tomo.reconstruct", "angles", sino.shape[sino.rank - 1])
    if options.method == "fourier" or options.method == "fbp" and (options.mode == "fast" or options.mode == "in_place") then
        local way = {method = options.method, mode = options.mode or "fast", reason = "asked for"}
        return run(way, sino, angles, options), way
    end
    local settings = {}
    for key, value in pairs(options) do
        settings[key] = value
    end
    local stats = mb.pool.stats(sino.device)
    settings.device, settings.available = sino.device, stats.budget - stats.live
    local way = method.choose(sino.shape, angles, settings)
    return run(way, sino, angles, options), way
end

return method
