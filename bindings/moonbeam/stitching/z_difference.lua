--- How two volumes differ where they overlap: by which columns and rows the one is beside the
-- other, and by which factor and offset its values differ.

local mb = require "moonbeam"

local z_difference = {}

local SLICES <const> = 8 -- of the common ones, evenly
local MOST <const> = 32 -- px
--- Below this correlation two volumes say nothing about their difference.
z_difference.LEAST = 0.5
--- Differences that matter: px; parts of 1 and of the standard deviation.
z_difference.PIXELS, z_difference.PART = 0.5, 0.02

-- The mean of some common slices, less its mean; with its mean and its standard deviation.
local function mean_of(read, first, overlap)
    local count, sum = math.min(SLICES, overlap), nil
    for i = 1, count do
        local block <close> = read(first + (2 * i - 1) * overlap // (2 * count))
        local slice <close> = block:view(1, mb.all, mb.all)
        if sum then
            mb.binary(sum, "add", {b = slice, out = sum})
        else
            sum = slice:copy()
        end
    end
    local mean = mb.bound(0, sum.mean, sum)
    mb.binary(sum, "sub", {scalar = mean, out = sum})
    return sum, mean / count, mb.bound(1, sum.norm, sum) / count / math.sqrt(sum.elements)
end

-- Where a parabola through three values has its top, from the middle one on.
local function top(before, here, after)
    local bend = before - 2 * here + after
    return bend < 0 and math.max(-0.5, math.min(0.5, 0.5 * (before - after) / bend)) or 0
end

-- The place of the maximum of the correlation of two images, {rows, columns}, and its value.
local function peak_of(a, b)
    local ny, nx = a.shape[1], a.shape[2]
    local spectrum <close> = mb.rfft(a, {axes = 2})
    local other <close> = mb.rfft(b, {axes = 2})
    mb.complex_multiply(spectrum, other, {conj = true})
    local all <close> = mb.irfft(spectrum, {axes = 2, n = nx})
    local far = {math.min(MOST, (ny - 1) // 2), math.min(MOST, (nx - 1) // 2)}
    local turned <close> = mb.roll(all, far)
    local part <close> = turned:view({1, 2 * far[1] + 1}, {1, 2 * far[2] + 1})
    local near <close> = part:copy()
    local rows = mb.bound(false, near.to_table, near)
    if not rows then
        return {0, 0}, 0
    end
    local best, y, x = -math.huge, 1, 1
    for i, row in ipairs(rows) do
        for k, value in ipairs(row) do
            if value > best then
                best, y, x = value, i, k
            end
        end
    end
    local up, down = rows[y - 1] or rows[y], rows[y + 1] or rows[y]
    return {y - 1 - far[1] + top(up[x], best, down[x]),
        x - 1 - far[2] + top(rows[y][x - 1] or best, best, rows[y][x + 1] or best)}, best
end

--- Measures two volumes. read_one, read_two: functions (slice, 0-based) that return it as f32
-- values (1, y, x) on the host, closed here; first: the first common slice of the one; `overlap`
-- common slices. Returns {rows, columns (px: to be added to the place of what the second shows),
-- factor, offset (its values times factor plus offset are those of the first), spread (the standard
-- deviation of the first), likeness (a correlation)}. Nothing is known where likeness is below
-- LEAST.
function z_difference.measure(read_one, read_two, first, overlap)
    local one, mean_one, spread_one = mean_of(read_one, first, overlap)
    local a <close> = one
    local two, mean_two, spread_two = mean_of(read_two, 0, overlap)
    local b <close> = two
    local place, peak = peak_of(a, b)
    local count = math.min(SLICES, overlap)
    local likeness = peak / math.max(spread_one * spread_two * count * count * a.elements, 1e-300)
    local factor = spread_one / math.max(spread_two, 1e-300)
    return {rows = place[1], columns = place[2], factor = factor,
        offset = mean_one - factor * mean_two, spread = spread_one,
        likeness = likeness == likeness and likeness or 0}
end

--- Does a difference matter? Of the places, and of the values.
function z_difference.matters(found)
    local least, part = z_difference.PIXELS, z_difference.PART
    return math.abs(found.rows) >= least or math.abs(found.columns) >= least,
        math.abs(found.factor - 1) > part
            or math.abs(found.offset) > part * found.spread
end

return z_difference
