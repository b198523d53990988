-- The removal of stripes of Vo et al. by its definition, in loops. Sinograms are tables
-- {{...}, ...}, [angle][column].

local mb = require "moonbeam"

local vo = {}

-- What an operator makes of a sinogram on a device, as a table.
function vo.run(operator, sino, options, device)
    local a <close> = mb.array(sino, {dtype = "f32", device = device})
    local result <close> = operator(a, options)
    return result:to_table()
end

-- Values as float32 has them, so that both sides start with the same.
function vo.rounded(sino)
    local a <close> = mb.array(sino, {dtype = "f32"})
    return a:to_table()
end

-- The column that stands for column c (1-based) of n.
local function reflected(c, n)
    while c < 1 or c > n do
        c = c < 1 and 1 - c or 2 * n + 1 - c
    end
    return c
end

-- Whether value a, at place i, comes before b at place j: NaN is last, -0 is 0.
local function before(a, i, b, j)
    if a ~= a or b ~= b then
        return a == a or b ~= b and a ~= a and i < j
    end
    return a < b or a == b and i < j
end

local function median(list, size)
    table.sort(list, function(x, y)
        return before(x, 0, y, 0)
    end)
    return list[size // 2 + 1]
end

-- The median of `size` numbers about place c of a list.
local function window(list, c, size)
    local near = {}
    for k = 0, size - 1 do
        near[k + 1] = list[reflected(c - size // 2 + k, #list)]
    end
    return median(near, size)
end

-- A column's values in ascending order, and their angles.
local function sorted(sino, c)
    local order, values = {}, {}
    for a = 1, #sino do
        order[a] = a
    end
    table.sort(order, function(i, j)
        return i ~= j and before(sino[i][c], i, sino[j][c], j)
    end)
    for rank, a in ipairs(order) do
        values[rank] = sino[a][c]
    end
    return values, order
end

-- The columns' values by rank, their medians by rank, and their angles.
local function filtered(sino, size)
    local columns, values, smooth, order = #sino[1], {}, {}, {}
    for c = 1, columns do
        values[c], order[c] = sorted(sino, c)
        smooth[c] = {}
    end
    for rank = 1, #sino do
        local list = {}
        for c = 1, columns do
            list[c] = values[c][rank]
        end
        for c = 1, columns do
            smooth[c][rank] = window(list, c, size)
        end
    end
    return values, smooth, order
end

local function copy(sino)
    local result = {}
    for a, row in ipairs(sino) do
        result[a] = table.move(row, 1, #row, 1, {})
    end
    return result
end

-- Which columns are stripes: {true, false, ...}.
local function found(factors, snr)
    local n, list = #factors, {}
    table.move(factors, 1, n, 1, list)
    table.sort(list)
    local first, last, sx, sy, sxx, sxy = n // 4, n - n // 4 - 2, 0, 0, 0, 0
    local m = last - first + 1
    for i = first, last do
        sx, sy = sx + i, sy + list[i + 1]
        sxx, sxy = sxx + i * i, sxy + i * list[i + 1]
    end
    local slope = (m * sxy - sx * sy) / (m * sxx - sx * sx)
    local low = (sy - slope * sx) / m
    local high = low + slope * (n - 1)
    local noise = math.max(math.abs(high - low), 1e-6)
    local hits, mask = {}, {}
    for c, factor in ipairs(factors) do
        hits[c] = math.abs(list[n] - high) / noise >= snr and factor > high + noise * snr / 2
            or math.abs(low - list[1]) / noise >= snr and factor <= low - noise * snr / 2
    end
    for c = 1, n do
        mask[c] = hits[c - 1] or hits[c] or hits[c + 1] or false
    end
    return mask
end

function vo.sorting(sino, size)
    local result = copy(sino)
    local _, smooth, order = filtered(sino, size)
    for c, list in ipairs(smooth) do
        for rank, value in ipairs(list) do
            result[order[c][rank]][c] = value
        end
    end
    return result
end

-- The result and the mask.
function vo.large(sino, size, snr, drop_ratio, normalize)
    local angles, columns = #sino, #sino[1]
    local result, factors, mask = copy(sino), {}, {}
    if columns < 8 then
        return result, mask
    end
    local values, smooth, order = filtered(sino, size)
    local drop = math.floor(0.5 * drop_ratio * angles)
    for c = 1, columns do
        local own, other = 0, 0
        for rank = drop + 1, angles - drop do
            own, other = own + values[c][rank], other + smooth[c][rank]
        end
        factors[c] = other ~= 0 and own / other or 1
    end
    mask = found(factors, snr)
    for c = 1, columns do
        for rank = 1, angles do
            local a = order[c][rank]
            if mask[c] then
                result[a][c] = smooth[c][rank]
            elseif normalize and factors[c] ~= 0 then
                result[a][c] = sino[a][c] / factors[c]
            end
        end
    end
    return result, mask
end

-- The result and the mask.
function vo.dead(sino, size, snr)
    local angles, columns = #sino, #sino[1]
    local result, sums, mean, factors = copy(sino), {}, 0, {}
    if columns < 8 then
        return result, {}
    end
    for c = 1, columns do
        sums[c] = 0
        for a = 1, angles do
            local smooth = 0
            for k = -5, 4 do
                smooth = smooth + sino[reflected(a + k, angles)][c] / 10
            end
            sums[c] = sums[c] + math.abs(sino[a][c] - smooth)
        end
    end
    for c = 1, columns do
        mean = mean + window(sums, c, size) / columns
    end
    for c = 1, columns do
        local background = window(sums, c, size)
        background = background ~= 0 and background or mean
        factors[c] = background ~= 0 and sums[c] / background or 1
    end
    local mask, count = found(factors, snr), 0
    mask[1], mask[2], mask[columns - 1], mask[columns] = false, false, false, false
    for c = 1, columns do
        count = count + (mask[c] and 1 or 0)
    end
    for c = 1, count < columns // 3 and columns or 0 do
        local left, right = c, c
        while mask[left] do
            left = left - 1
        end
        while mask[right] do
            right = right + 1
        end
        for a = 1, left < right and angles or 0 do
            result[a][c] = (sino[a][left] * (right - c) + sino[a][right] * (c - left))
                / (right - left)
        end
    end
    return result, mask
end

function vo.all(sino, large_size, small_size, snr, drop_ratio, normalize)
    local filled = vo.dead(sino, large_size, snr)
    return vo.sorting((vo.large(filled, large_size, snr, drop_ratio, normalize)), small_size)
end

-- Python that makes algotom sort equal values in the order of their angles, as it does not by itself.
vo.STABLE = [[
import algotom.prep.removal as removal
import algotom.util.utility as util

def forward(mat, axis=0):
    order = np.argsort(mat, axis=0, kind="stable")
    return np.take_along_axis(mat, order, 0), order

def backward(mat, order, axis=0):
    result = np.empty_like(mat)
    np.put_along_axis(result, order, mat, 0)
    return result

util.sort_forward, util.sort_backward = forward, backward
]]

-- ---- sinograms ----

-- A smooth object that turns, with noise of this width. `slope` is how much it changes from column
-- to column.
function vo.object(angles, columns, noise, slope)
    local sino = {}
    for a = 1, angles do
        sino[a] = {}
        for c = 1, columns do
            sino[a][c] = 2 + math.sin(c * (slope or 0.02)) * math.cos(a * 0.03)
                + noise * (2 * math.random() - 1)
        end
    end
    return sino
end

-- Adds a stripe of this height and width.
function vo.stripe(sino, column, width, height)
    for _, row in ipairs(sino) do
        for c = column, column + width - 1 do
            row[c] = row[c] + height
        end
    end
end

-- A column that does not respond, or that fluctuates by `noise`.
function vo.dead_column(sino, column, value, noise)
    for _, row in ipairs(sino) do
        row[column] = value + (noise or 0) * (2 * math.random() - 1)
    end
end

-- Values in steps of 1/64, so that many are equal.
function vo.steps(sino)
    for _, row in ipairs(sino) do
        for c, value in ipairs(row) do
            row[c] = math.floor(value * 64) / 64
        end
    end
    return sino
end

-- The largest difference of a column, or of all.
function vo.difference(a, b, column)
    local largest = 0
    for i, row in ipairs(a) do
        for c = column or 1, column or #row do
            largest = math.max(largest, math.abs(row[c] - b[i][c]))
        end
    end
    return largest
end

return vo
