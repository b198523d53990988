--- The choice between the two ways to reconstruct: `tomo.reconstruct` and `tomo.choose_method`.
--
-- Both methods invert the same transform with the same filters, geometry and scale. Filtered back-projection visits every
-- pixel once for every angle and interpolates linearly; the direct Fourier method visits every sample a fixed number of times
-- and then does one 2-D FFT per two slices, and interpolates by the rows' trigonometric polynomial. So the second wins when
-- there are many pixels and angles, the first when there are few, when memory is short, and where only it can do what is asked.

local mb = require "moonbeam"
local options_of = require "moonbeam.options"
local fbp = require "moonbeam.fbp"

local method = {}

local METHODS = {auto = true, fbp = true, fourier = true}
local BOTH = {"filter", "cutoff", "padding", "pad_width", "center", "shifts", "size", "circle", "circle_value", "scale", "accuracy",
    "roi", "out"}
local ONLY = { -- options that one method alone has
    fbp = {half_acquisition = "half acquisition", mode = "memory mode in_place",
        slice_shifts = "an axis of its own for every slice"},
    fourier = {weights = "weights on the angles", pairs = "batches of pairs"},
}

-- Picoseconds: a pixel at one angle (back-projection), a detector sample (filtering; filtering and gridding), a pixel of the
-- slice (2-D FFT and crop). Only their ratios count. cuda: one H200, 2048 columns, 1500 and 3000 angles; host: two Zen 4 threads,
-- 512 and 1024 columns. Exact mode: the same work at the rates measured for it.
local COSTS = {
    cuda = {
        fast = {update = 0.053, filter = 5, gridding = 28, pixel = 8},
        exact = {update = 0.14, filter = 5, gridding = 30, pixel = 12},
    },
    host = {
        fast = {update = 55, filter = 3200, gridding = 23000, pixel = 25000},
        exact = {update = 55, filter = 3200, gridding = 50000, pixel = 54000},
    },
}

local function seconds_of(name, kind, accuracy, n_angles, cols, pixels, roi)
    local cost = COSTS[kind][accuracy]
    if name == "fbp" then
        local wanted = roi and (roi[2] - roi[1]) * (roi[4] - roi[3]) or pixels
        return 1e-12 * n_angles * (cost.update * wanted + cost.filter * cols)
    end
    return 1e-12 * (cost.gridding * n_angles * cols + cost.pixel * pixels)
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
    local slices = mb.fourier_reconstruct(sino, angles, own)
    if options.consume then
        sino:release()
    end
    return slices
end

local function checked(options, op)
    options = options_of(options, op, BOTH, {"method", "consume", "half_acquisition", "mode", "slice_shifts", "weights", "pairs"})
    local asked = options.method or "auto"
    if not METHODS[asked] then
        mb.raise("argument", ("unknown method '%s'; there are auto, fbp and fourier"):format(tostring(asked)),
            {op = op, arg = "method"})
    end
    local no_fbp, no_fourier = excluded("fbp", options), excluded("fourier", options)
    if asked ~= "auto" and excluded(asked, options) then
        mb.raise("argument", ("method %s does not do %s; leave the method to \"auto\", or the option out"):format(asked,
            excluded(asked, options)), {op = op, arg = "method"})
    elseif no_fbp and no_fourier then
        mb.raise("argument", ("no method does both %s and %s"):format(no_fourier, no_fbp), {op = op, arg = "method"})
    end
    return options
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
    local device, available = mb.device(rest.device), rest.available and mb.device.bytes(rest.available)
    rest.device, rest.available = nil, nil
    rest = checked(rest, "tomo.choose_method")
    local out = rest.out
    local rank = #shape
    if rank ~= 2 and rank ~= 3 then
        mb.raise("shape", ("sino has %d axes; sinograms are (row, angle, column) or (angle, column)"):format(rank),
            {op = "tomo.choose_method", arg = "shape"})
    end
    local own = mb.pool.round(4 * (rank == 3 and shape[1] or 1) * shape[rank - 1] * shape[rank])
    local given = own + (out and mb.pool.round(out.bytes) or 0)
    if not available then
        local stats = mb.pool.stats(device)
        available = stats.budget - stats.live - own
    end
    local cols = shape[rank]
    local size = type(rest.size) == "table" and rest.size or {rest.size or cols, rest.size or cols}
    local ways, best = {}, nil
    for _, way in ipairs(WAYS) do
        local words = excluded(way.method, rest)
        if not words and (rest.method == nil or rest.method == "auto" or rest.method == way.method)
            and (rest.mode == nil or rest.mode == "auto" or rest.mode == way.mode) then
            local slow = way.mode == "in_place" and 8 or 1 -- one slice at a time
            local entry = {method = way.method, mode = way.mode, name = way.name, seconds = slow * seconds_of(way.method, device.kind,
                rest.accuracy or "fast", shape[rank - 1], cols, size[1] * size[2], rest.roi)}
            entry.peak = mb.plan.peak(function(shadow)
                local sino <close> = mb.empty(shape, {device = shadow})
                rest.out = out and mb.empty(out.shape, {device = shadow})
                run(way, sino, angles, rest):release()
            end, device).peak - given
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
-- Returns the slices (row, y, x), or (y, x), and the way taken as `tomo.choose_method` describes it.
function method.reconstruct(sino, angles, options)
    options = checked(options, "tomo.reconstruct")
    if sino.rank ~= 2 and sino.rank ~= 3 then
        mb.raise("shape", ("sino has %d axes; sinograms are (row, angle, column) or (angle, column)"):format(sino.rank),
            {op = "tomo.reconstruct", arg = "sino"})
    end
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
