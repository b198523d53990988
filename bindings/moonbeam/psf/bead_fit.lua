-- How boxes about beads are compared with their mean: by least squares (lists of Lua, extents
-- {z, y, x}), and where their tops are.

local bead_fit = {}

local TOP <const> = 3 -- voxels about the middle, where the top of a bead is looked for

--- The derivatives of a box along its axes of more than one sample: a list of {axis, values}.
function bead_fit.slopes(values, size)
    local list, inner = {}, #values
    for axis, n in ipairs(size) do
        inner = inner // n
        if n > 1 then
            local slope = {}
            for at = 1, #values do
                local i = (at - 1) // inner % n
                local low, high = i > 0 and at - inner or at, i < n - 1 and at + inner or at
                slope[at] = (values[high] - values[low]) / ((high - low) // inner)
            end
            list[#list + 1] = {axis = axis, values = slope}
        end
    end
    return list
end

-- Solves the symmetric equations m x = v (Gauss); nil where they have no one solution.
local function solve(matrix, vector)
    local n, m, v = #vector, {}, table.move(vector, 1, #vector, 1, {})
    for i, row in ipairs(matrix) do
        m[i] = table.move(row, 1, n, 1, {})
    end
    for i = 1, n do
        if m[i][i] <= 1e-30 then
            return nil
        end
        for j = i + 1, n do
            local factor = m[j][i] / m[i][i]
            for k = i, n do
                m[j][k] = m[j][k] - factor * m[i][k]
            end
            v[j] = v[j] - factor * v[i]
        end
    end
    for i = n, 1, -1 do
        for k = i + 1, n do
            v[i] = v[i] - m[i][k] * v[k]
        end
        v[i] = v[i] / m[i][i]
    end
    return v
end

local function product(a, b)
    local sum = 0
    for at, value in ipairs(a) do
        sum = sum + value * b[at]
    end
    return sum
end

--- The equations of least squares of values = a mean + b + sum of c slope, for `fitted`.
function bead_fit.equations(mean, slopes)
    local columns, matrix = {mean, {}}, {}
    for at = 1, #mean do
        columns[2][at] = 1
    end
    for _, slope in ipairs(slopes) do
        columns[#columns + 1] = slope.values
    end
    for i, column in ipairs(columns) do
        matrix[i] = {}
        for j, other in ipairs(columns) do
            matrix[i][j] = j < i and matrix[j][i] or product(column, other)
        end
    end
    return {columns = columns, matrix = matrix}
end

--- Solves such equations for the values of a box: {a, b, c ...}, and what is left of every value.
-- Nil where a is not above 0, or there are many answers.
function bead_fit.fitted(values, equations)
    local columns, vector = equations.columns, {}
    for i, column in ipairs(columns) do
        vector[i] = product(values, column)
    end
    local x = solve(equations.matrix, vector)
    if not (x and x[1] > 0) then
        return nil
    end
    local rest = {}
    for at, value in ipairs(values) do
        rest[at] = value - x[2]
    end
    for i, column in ipairs(columns) do
        local factor = i ~= 2 and x[i] or 0
        for at = 1, factor ~= 0 and #rest or 0 do
            rest[at] = rest[at] - factor * column[at]
        end
    end
    return x, rest
end

--- The centroid of what is above half of a box's height within 3 voxels of the middle: a shift.
function bead_fit.top(values, size, under)
    local sum, moments, middle, inner = 0, {0, 0, 0}, {}, {size[2] * size[3], size[3], 1}
    local highest = under
    for i = 1, 3 do
        middle[i] = (size[i] - 1) // 2
    end
    for pass = 1, 2 do
        for at, value in ipairs(values) do
            local d, near = {}, true
            for i = 1, 3 do
                d[i] = (at - 1) // inner[i] % size[i] - middle[i]
                near = near and math.abs(d[i]) <= TOP
            end
            local above = value - (under + highest) / 2
            if pass == 1 then
                highest = near and math.max(highest, value) or highest
            elseif near and above > 0 then
                sum = sum + above
                for i = 1, 3 do
                    moments[i] = moments[i] + above * d[i]
                end
            end
        end
    end
    for i = 1, 3 do
        moments[i] = sum > 0 and moments[i] / sum or 0
    end
    return moments
end

return bead_fit
