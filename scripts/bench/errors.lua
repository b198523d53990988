--- How far the methods are from their definitions in double precision, at random pixels of one
-- slice: relative L2 norms.

local mb = require "moonbeam"

local errors = {}

-- Pixels {x, y} in no order, the same every time.
local function pixels(count, n)
    local list, state = {}, 12345
    local function draw()
        state = (state * 6364136223846793005 + 1442695040888963407)
        return (state >> 33) % n
    end
    for i = 1, count do
        list[i] = {draw(), draw()}
    end
    return list
end

local function relative(list, slice, reference)
    local n = slice.shape[1]
    local rows, difference, norm = slice:to_table(), 0, 0
    for _, pixel in ipairs(list) do
        local x, y = pixel[1], pixel[2]
        local value = reference(x - (n - 1) / 2, (n - 1) / 2 - y)
        difference, norm = difference + (rows[y + 1][x + 1] - value) ^ 2, norm + value ^ 2
    end
    return math.sqrt(difference / norm)
end

--- backproject: the sum over angles of linearly interpolated samples, pi / angles times. `slice`
-- (n, n), `rows` the sinogram (angle, column) as a table.
function errors.backproject(slice, rows, theta)
    local n = slice.shape[1]
    return relative(pixels(2000, n), slice, function(X, Y)
        local sum = 0
        for k, t in ipairs(theta) do
            local u = X * math.cos(t) + Y * math.sin(t) + (n - 1) / 2
            local i = math.floor(u)
            local row, f = rows[k], u - i
            sum = sum + (1 - f) * (row[i + 1] or 0) + f * (row[i + 2] or 0)
        end
        return sum * math.pi / #theta
    end)
end

-- The rows' period for a slice masked to the circle: see mb_fourier_least and
-- mb_fourier_fused_samples.
local function period_of(n)
    local need, padded = (n + 1) // 2 * 2, 4
    while padded < 2 * n do
        padded = 2 * padded
    end
    if padded >= 512 and padded <= 16384 then
        for _, m in ipairs {5, 6, 7, 8} do
            if m * padded // 16 >= need then
                return m * padded // 16
            end
        end
    end
    return mb.fft.good_size(need, {device = "host"})
end

-- Radix 2, in place, of tables from 0 on; `tables` of cos and sin of 2 pi k / n.
local function transform(re, im, n, tables, sign)
    local j = 0
    for i = 0, n - 2 do
        if i < j then
            re[i], re[j], im[i], im[j] = re[j], re[i], im[j], im[i]
        end
        local bit = n >> 1
        while j & bit ~= 0 do
            j, bit = j ~ bit, bit >> 1
        end
        j = j | bit
    end
    local cosine, sine = tables.cosine, tables.sine
    local half = 1
    while half < n do
        local step = n // (2 * half)
        for k = 0, half - 1 do
            local c, s = cosine[k * step], sign * sine[k * step]
            for i = k, n - 1, 2 * half do
                local o = i + half
                local x, y = re[o], im[o]
                local u, v = x * c - y * s, x * s + y * c
                re[o], im[o] = re[i] - u, im[i] - v
                re[i], im[i] = re[i] + u, im[i] + v
            end
        end
        half = 2 * half
    end
end

--- ramp_filter with its defaults in double precision: in float32 its rounding is 3e-6 of a
-- phantom's slice.
function errors.filter(rows)
    local n, padded, tables = #rows[1], 4, {cosine = {}, sine = {}}
    while padded < 2 * n do
        padded = 2 * padded
    end
    local response, none = {}, {}
    for k = 0, padded - 1 do
        local distance = math.min(k, padded - k)
        response[k] = distance == 0 and 0.25 or distance % 2 == 0 and 0
            or -1 / (math.pi * distance) ^ 2
        none[k] = 0
        tables.cosine[k], tables.sine[k] = math.cos(2 * math.pi * k / padded),
            math.sin(2 * math.pi * k / padded)
    end
    transform(response, none, padded, tables, -1)
    local filtered = {}
    for a = 1, #rows, 2 do -- two rows as one complex one
        local even, odd, re, im = rows[a], rows[a + 1], {}, {}
        for i = 0, padded - 1 do
            re[i], im[i] = even[i + 1] or 0, odd and odd[i + 1] or 0
        end
        transform(re, im, padded, tables, -1)
        for k = 0, padded - 1 do
            re[k], im[k] = re[k] * response[k] / padded, im[k] * response[k] / padded
        end
        transform(re, im, padded, tables, 1)
        filtered[a], filtered[a + 1] = table.move(re, 0, n - 1, 1, {}), odd
            and table.move(im, 0, n - 1, 1, {})
    end
    return filtered
end

--- fourier_reconstruct, masked to the circle: the sum over angles of the filtered rows'
-- trigonometric polynomials. A detector sample at distance d weighs (sin(pi d) cot(pi d / N) -
-- cos(pi d)) / N, N being the even period.
function errors.fourier(slice, rows, theta)
    local n = slice.shape[1]
    local period = period_of(n)
    local inside = {}
    for _, pixel in ipairs(pixels(40, n)) do
        if (pixel[1] - (n - 1) / 2) ^ 2 + (pixel[2] - (n - 1) / 2) ^ 2 < ((n - 1) / 2) ^ 2
            and #inside < 24 then
            inside[#inside + 1] = pixel
        end
    end
    local step = math.pi / period
    local turn_c, turn_s = math.cos(step), math.sin(step)
    return relative(inside, slice, function(X, Y)
        local sum = 0
        for k, t in ipairs(theta) do
            local u, row = X * math.cos(t) + Y * math.sin(t) + (n - 1) / 2, rows[k]
            local s, c, su, cu = math.sin(u * step), math.cos(u * step), math.sin(math.pi * u),
                math.cos(math.pi * u)
            for b = 1, n do
                sum = sum + row[b] * ((s > 1e-12 or s < -1e-12) and su * c / s - cu
                    or (period - 1) * cu)
                s, c, su, cu = s * turn_c - c * turn_s, c * turn_c + s * turn_s, -su, -cu
            end
        end
        return sum * math.pi / #theta / period
    end)
end

return errors
