-- Noise and the diameter of beads taken out of the mean of their boxes: by Wiener's filter, whose
-- spectrum of light is that of the mean itself, smoothed, less the noise; then scale by scale,
-- where what is left is not above the noise. The values are lists of Lua, the transforms are in the
-- pool.

local mb = require "moonbeam"
local bead_boxes = require "moonbeam.psf.bead_boxes"
local sampling = require "moonbeam.psf.sampling"

local bead_spectrum = {}

-- LAG, HALF and SHRUNK are those with the smallest distances to the truth, of widths of 1.25 to
-- 3.5, parts of 0.3 to 4 and factors of 1 to 3, for two PSFs and nine levels of light.
local LAG <const> = 2 -- standard deviations of the PSF: of the window of the autocorrelation
local HALF <const> = 0.5 -- of the noise: beside the light in the denominator of Wiener's filter
local SHRUNK <const> = 2 -- times the variance of the noise, taken off the power of a scale
local SCALES <const> = 3
local LEAST <const> = 0.1 -- of the transform of a ball: what is below is not divided by
local PAD <const> = 4 -- voxels, by reflection

-- How far an axis is padded.
local function pad_of(n)
    return math.min(PAD, n - 1)
end

-- The place of a sample of a reflected axis, 0-based.
local function reflected(i, n)
    if n == 1 then
        return 0
    end
    i = math.abs(i) % (2 * n - 2)
    return i < n and i or 2 * n - 2 - i
end

local function padded(values, size, full)
    local result, places = {}, {}
    for axis, n in ipairs(full) do
        places[axis] = {}
        for i = 1, n do
            places[axis][i] = reflected(i - 1 - pad_of(size[axis]), size[axis])
        end
    end
    for _, z in ipairs(places[1]) do
        for _, y in ipairs(places[2]) do
            local from = (z * size[2] + y) * size[3] + 1
            for _, x in ipairs(places[3]) do
                result[#result + 1] = values[from + x]
            end
        end
    end
    return result
end

local function middle(values, size, full)
    local result = {}
    for z = pad_of(size[1]), pad_of(size[1]) + size[1] - 1 do
        for y = pad_of(size[2]), pad_of(size[2]) + size[2] - 1 do
            local from = (z * full[2] + y) * full[3] + pad_of(size[3])
            table.move(values, from + 1, from + size[3], #result + 1, result)
        end
    end
    return result
end

-- ---- transforms ----

-- The half spectrum of a list, as {re, im, re, im ...}; empty in a dry run.
local function forward(values, full, device)
    local grid <close> = sampling.array_of(values, full, device)
    local spectrum <close> = mb.rfft(grid, {axes = 3})
    return device.dry and {} or bead_boxes.floats(spectrum:to_string())
end

-- The list of which a half spectrum is given.
local function inverse(spectrum, full, device)
    local half = {full[1], full[2], full[3] // 2 + 1}
    local texts = {}
    for first = 1, #spectrum, 128 do
        local count = math.min(128, #spectrum - first + 1)
        texts[#texts + 1] = ("<" .. ("f"):rep(count)):pack(table.unpack(spectrum, first,
            first + count - 1))
    end
    local array <close> = mb.from_string(table.concat(texts), half, {dtype = "c64",
        device = device})
    local grid <close> = mb.irfft(array, {axes = 3, n = full[3], consume = true})
    return device.dry and {} or bead_boxes.floats(grid:to_string())
end

-- Calls fn(at, z, y, x) for every sample of a half spectrum, and the indices of its frequency.
local function each_frequency(full, fn)
    local at = 0
    for z = 0, full[1] - 1 do
        for y = 0, full[2] - 1 do
            for x = 0, full[3] // 2 do
                at = at + 1
                fn(at, z, y, x)
            end
        end
    end
end

-- ---- filters ----

-- The transform of a ball of unit light: 3 (sin u - u cos u) / u^3 with u = pi d |k|. In an image
-- of one plane, of which k has no z, it is that of the ball's projection.
local function ball(diameters, full, index)
    local sum = 0
    for axis, n in ipairs(full) do
        local k = index[axis]
        sum = sum + (diameters[axis] * (2 * k <= n and k or k - n) / n) ^ 2
    end
    local u = math.pi * math.sqrt(sum)
    return u < 1e-2 and 1 - u * u / 10 or 3 * (math.sin(u) - u * math.cos(u)) / u ^ 3
end

-- The transforms of the means over B3 splines up to a scale, [scale][axis][index of a frequency].
local function splines(full)
    local tables = {}
    for scale = 0, SCALES do
        tables[scale] = {}
        for axis, n in ipairs(full) do
            local list = {}
            for k = 0, n - 1 do
                list[k] = scale == 0 and 1 or tables[scale - 1][axis][k]
                    * math.cos(math.pi * k / n * (1 << scale - 1)) ^ 4
            end
            tables[scale][axis] = list
        end
    end
    return tables
end

-- The power of a spectrum, smoothed: its autocorrelation times a window, of standard deviations in
-- voxels. Powers of a cosine are 0 at the ends, so light does not leak into other frequencies.
local function smooth_power(spectrum, full, widths, device)
    local power = {}
    for at = 1, #spectrum, 2 do
        power[at], power[at + 1] = spectrum[at] ^ 2 + spectrum[at + 1] ^ 2, 0
    end
    local lags, windows, at = inverse(power, full, device), {}, 0
    for axis, n in ipairs(full) do
        local exponent = math.max(2, n * n / (math.pi * widths[axis]) ^ 2)
        windows[axis] = {}
        for i = 0, n - 1 do
            windows[axis][i] = math.abs(math.cos(math.pi * i / n)) ^ exponent
        end
    end
    for z = 0, full[1] - 1 do
        for y = 0, full[2] - 1 do
            local factor = windows[1][z] * windows[2][y]
            for x = 0, full[3] - 1 do
                at = at + 1
                lags[at] = lags[at] * factor * windows[3][x]
            end
        end
    end
    return forward(lags, full, device)
end

-- The mean over voxels with weights of the B3 spline.
local function local_mean(values, size)
    local inner = #values
    for _, n in ipairs(size) do
        inner = inner // n
        if n > 1 then
            local result, near = {}, {}
            for i = 0, n - 1 do
                near[i] = {}
                for k = 1, 5 do
                    near[i][k] = (reflected(i + k - 3, n) - i) * inner
                end
            end
            for at = 1, #values do
                local a, b, _, c, d = table.unpack(near[(at - 1) // inner % n])
                result[at] = (values[at + a] + values[at + d] + 6 * values[at]
                    + 4 * (values[at + b] + values[at + c])) / 16
            end
            values = result
        end
    end
    return values
end

-- The standard deviation of a Gaussian with the width at half maximum of a box along each axis.
local function widths_of(values, size)
    local widths, inner, center = {}, {size[2] * size[3], size[3], 1}, 1
    for i, n in ipairs(size) do
        center = center + (n - 1) // 2 * inner[i]
    end
    for i, n in ipairs(size) do
        local width = 0
        for _, sign in ipairs {-1, 1} do
            local here, k, half = values[center], 0, values[center] / 2
            while k < n // 2 and here > half do
                local following = values[center + (k + 1) * sign * inner[i]]
                width = width + (following > half and 1 or (here - half) / (here - following))
                here, k = following, k + 1
            end
        end
        widths[i] = math.max(1, width) / 2.3548
    end
    return widths
end

-- Values and their variance in proportion, so that their squares are in the range of f32.
local function scaled(values, variance)
    local sum, light, noise = 0, {}, {}
    for _, value in ipairs(values) do
        sum = sum + math.abs(value)
    end
    for at, value in ipairs(values) do
        light[at], noise[at] = value / sum, variance[at] / sum / sum
    end
    return light, noise
end

--- Takes what clean takes, in a dry run.
function bead_spectrum.rehearse(size, device)
    local full, values = {}, {}
    for i, n in ipairs(size) do
        full[i] = n + 2 * pad_of(n)
    end
    for i = 1, full[1] * full[2] * full[3] do
        values[i] = 0
    end
    forward(values, full, device)
    for i = 1, full[1] * full[2] * (full[3] // 2 + 1) * 2 do
        values[i] = 0
    end
    inverse(values, full, device)
end

-- Wiener's filter of a spectrum, of which `power` is the smoothed one, `noise` that of the noise.
local function wiener(power, noise, full, diameters)
    local filter = {}
    each_frequency(full, function(at, z, y, x)
        local light = math.max(0, power[2 * at - 1] - noise)
        local blur = diameters and light > 0 and ball(diameters, full, {z, y, x}) or 1
        filter[at] = light > 0 and light / (light + HALF * noise) * blur
            / math.max(blur * blur, LEAST ^ 2) or 0
    end)
    return filter
end

-- What a spectrum has in a scale after a filter: its half spectrum, and the part of the variance of
-- independent noise that is in it.
local function band_of(spectrum, filter, full, tables, scale)
    local band, factor = {}, 0
    local low, lower = tables[scale], tables[scale + 1]
    each_frequency(full, function(at, z, y, x)
        local gain = low[1][z] * low[2][y] * low[3][x]
        if lower then
            gain = gain - lower[1][z] * lower[2][y] * lower[3][x]
        end
        gain = gain * filter[at]
        band[2 * at - 1], band[2 * at] = gain * spectrum[2 * at - 1], gain * spectrum[2 * at]
        factor = factor + ((x == 0 or 2 * x == full[3]) and 1 or 2) * gain * gain
    end)
    return band, factor / (full[1] * full[2] * full[3])
end

--- A box of light and noise, `counts` (a list, {z, y, x} extents, background taken off), with sum 1
-- of absolute values, without what is noise and, where `diameters` (in voxels) is given, without
-- the blur of balls. `counts_variance` is that of the noise, a list. The filter is L / (L + N / 2)
-- / B with N the power of the noise, L the smoothed power of the box less N, and B the transform
-- of a ball: values below 0 may be left.
function bead_spectrum.clean(counts, size, counts_variance, diameters, device)
    local values, variance = scaled(counts, counts_variance)
    local full, widths, noise = {}, widths_of(values, size), 0
    for i, n in ipairs(size) do
        full[i], widths[i] = n + 2 * pad_of(n), LAG * widths[i]
    end
    for _, value in ipairs(variance) do
        noise = noise + value / #variance
    end
    local spectrum = forward(padded(values, size, full), full, device)
    local filter = wiener(smooth_power(spectrum, full, widths, device),
        noise * full[1] * full[2] * full[3], full, diameters)
    local wide, result = local_mean(local_mean(variance, size), size), {}
    local tables = splines(full)
    for scale = 0, SCALES do
        local band, factor = band_of(spectrum, filter, full, tables, scale)
        local light, squares = middle(inverse(band, full, device), size, full), {}
        for at, value in ipairs(light) do
            squares[at] = value * value
        end
        squares = local_mean(squares, size)
        for at, value in ipairs(light) do
            local kept = squares[at] > 0
                and math.max(0, 1 - SHRUNK * factor * wide[at] / squares[at]) or 0
            result[at] = (result[at] or 0) + kept * value
        end
    end
    return result
end

return bead_spectrum
