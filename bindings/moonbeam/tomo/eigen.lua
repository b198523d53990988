--- Eigenvalues of small symmetric matrices, and what is made of them: tables of numbers.

local eigen = {}

local SWEEPS <const> = 64

-- Turns rows and columns p and q of a by an angle that makes a[p][q] zero, and the rows of v.
local function rotate(a, v, p, q)
    local n, apq = #a, a[p][q]
    local theta = (a[q][q] - a[p][p]) / (2 * apq)
    local t = 1 / (math.abs(theta) + math.sqrt(theta * theta + 1))
    t = theta < 0 and -t or t
    local c = 1 / math.sqrt(t * t + 1)
    local s = t * c
    for k = 1, n do
        local x, y = a[k][p], a[k][q]
        a[k][p], a[k][q] = c * x - s * y, s * x + c * y
    end
    local ap, aq, vp, vq = a[p], a[q], v[p], v[q]
    for k = 1, n do
        local x, y = ap[k], aq[k]
        ap[k], aq[k] = c * x - s * y, s * x + c * y
        x, y = vp[k], vq[k]
        vp[k], vq[k] = c * x - s * y, s * x + c * y
    end
end

--- Eigenvalues of a symmetric matrix (a list of rows), largest magnitude first, and their
-- eigenvectors, of length 1, by the method of Jacobi. The matrix is not changed. A matrix with NaN
-- has no eigenvalues: nil.
function eigen.symmetric(matrix)
    local n, a, v, total = #matrix, {}, {}, 0
    for i = 1, n do
        a[i], v[i] = table.move(matrix[i], 1, n, 1, {}), {}
        for j = 1, n do
            v[i][j] = i == j and 1 or 0
            total = total + a[i][j] * a[i][j]
        end
    end
    if total ~= total or total == math.huge then
        return nil
    end
    for _ = 1, SWEEPS do
        local off = 0
        for p = 1, n - 1 do
            for q = p + 1, n do
                off = off + a[p][q] * a[p][q]
                if a[p][q] * a[p][q] > 1e-40 * total then
                    rotate(a, v, p, q)
                end
            end
        end
        if off <= 1e-30 * total then
            break
        end
    end
    local order, values, vectors = {}, {}, {}
    for i = 1, n do
        order[i] = i
    end
    table.sort(order, function(i, j)
        local x, y = math.abs(a[i][i]), math.abs(a[j][j])
        return x > y or x == y and i < j
    end)
    for i, k in ipairs(order) do
        values[i], vectors[i] = a[k][k], v[k]
    end
    return values, vectors
end

--- The inverse of a symmetric matrix without negative eigenvalues, as far as it has one: parts
-- below 1e-10 of the largest are left out, after rows and columns are scaled to a diagonal of 1. A
-- list of rows.
function eigen.inverse(matrix)
    local n, scaled, scale = #matrix, {}, {}
    for i = 1, n do
        scale[i] = matrix[i][i] > 0 and 1 / math.sqrt(matrix[i][i]) or 0
    end
    for i = 1, n do
        scaled[i] = {}
        for j = 1, n do
            scaled[i][j] = matrix[i][j] * scale[i] * scale[j]
        end
    end
    local values, vectors = eigen.symmetric(scaled)
    if not values then
        return nil
    end
    local result = {}
    for i = 1, n do
        result[i] = {}
        for j = 1, n do
            local sum = 0
            for k = 1, n do
                if values[k] > 1e-10 * values[1] then
                    sum = sum + vectors[k][i] * vectors[k][j] / values[k]
                end
            end
            result[i][j] = sum * scale[i] * scale[j]
        end
    end
    return result
end

return eigen
