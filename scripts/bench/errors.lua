--- How far the methods are from their definitions in double precision, at random pixels of one slice: relative L2 norms.

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

--- backproject: the sum over angles of linearly interpolated samples, pi / angles times. `slice` (n, n), `rows` the sinogram
-- (angle, column) as a table.
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

-- The rows' period for a slice masked to the circle: see mb_fourier_least and mb_fourier_fused_samples.
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

--- fourier_reconstruct, masked to the circle: the sum over angles of the filtered rows' trigonometric polynomials. Detector
-- samples at distance d weigh sin(pi (N-1) d / N) / (N sin(pi d / N)), N being the even period.
function errors.fourier(slice, rows, theta)
    local n = slice.shape[1]
    local period = period_of(n)
    local inside = {}
    for _, pixel in ipairs(pixels(40, n)) do
        if (pixel[1] - (n - 1) / 2) ^ 2 + (pixel[2] - (n - 1) / 2) ^ 2 < ((n - 1) / 2) ^ 2 and #inside < 24 then
            inside[#inside + 1] = pixel
        end
    end
    local step = math.pi / period
    return relative(inside, slice, function(X, Y)
        local sum = 0
        for k, t in ipairs(theta) do
            local u, row = X * math.cos(t) + Y * math.sin(t) + (n - 1) / 2, rows[k]
            for b = 0, n - 1 do
                local d = (u - b) * step
                local s = math.sin(d)
                sum = sum + row[b + 1] * (math.abs(s) < 1e-12 and period - 1 or math.sin((period - 1) * d) / s)
            end
        end
        return sum * math.pi / #theta / period
    end)
end

return errors
