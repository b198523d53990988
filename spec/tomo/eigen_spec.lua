local eigen = require "moonbeam.tomo.eigen"

-- A symmetric matrix of pseudo-random numbers.
local function random(n)
    local m = {}
    math.randomseed(n)
    for i = 1, n do
        m[i] = {}
    end
    for i = 1, n do
        for j = 1, i do
            m[i][j] = math.random() - 0.5
            m[j][i] = m[i][j]
        end
    end
    return m
end

local function product(a, b)
    local r = {}
    for i = 1, #a do
        r[i] = {}
        for j = 1, #b[1] do
            r[i][j] = 0
            for k = 1, #b do
                r[i][j] = r[i][j] + a[i][k] * b[k][j]
            end
        end
    end
    return r
end

describe("eigenvalues", function()
    it("and vectors of symmetric matrices", function()
        for _, n in ipairs {1, 2, 3, 10, 40} do
            local m = random(n)
            local values, vectors = eigen.symmetric(m)
            for k = 1, n do
                assert.is_true(k == 1 or math.abs(values[k]) <= math.abs(values[k - 1]))
                for i = 1, n do
                    local sum, dot = 0, 0
                    for j = 1, n do
                        sum = sum + m[i][j] * vectors[k][j]
                        dot = dot + vectors[k][j] * vectors[i][j]
                    end
                    assert.near(values[k] * vectors[k][i], sum, 1e-12)
                    assert.near(i == k and 1 or 0, dot, 1e-12)
                end
            end
        end
    end)

    it("of a diagonal are the diagonal", function()
        local values = eigen.symmetric {{2, 0, 0}, {0, -5, 0}, {0, 0, 0}}
        assert.same({-5, 2, 0}, values)
        assert.same({0, 0}, (eigen.symmetric {{0, 0}, {0, 0}}))
        assert.is_nil(eigen.symmetric {{0 / 0, 0}, {0, 1}})
    end)
end)

describe("the inverse of a matrix", function()
    it("multiplies to 1, whatever its scales", function()
        local m = random(6)
        local square = product(m, m)
        for i = 1, 6 do
            for j = 1, 6 do
                square[i][j] = square[i][j] * 10 ^ (i + j)
            end
        end
        local one = product(square, eigen.inverse(square))
        for i = 1, 6 do
            for j = 1, 6 do
                assert.near(i == j and 1 or 0, one[i][j] * 10 ^ (j - i), 1e-6)
            end
        end
    end)

    it("leaves out what has none", function()
        local inverse = eigen.inverse {{4, 0, 0}, {0, 0, 0}, {0, 0, 2}}
        assert.near(0.25, inverse[1][1], 1e-15)
        assert.equal(0, inverse[2][2])
        assert.near(0.5, inverse[3][3], 1e-15)
        -- twice the same: half for each
        local half = eigen.inverse {{1, 1}, {1, 1}}
        assert.near(0.25, half[1][2], 1e-12)
    end)
end)
