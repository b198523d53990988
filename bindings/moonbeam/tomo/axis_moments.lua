--- The rotation axis from centers of mass, for scans without opposite projections.
--
-- The center of mass of a projection moves as the projection of the object's center of mass does:
--     sum of x p(angle, x) / sum of p(angle, x) = axis + a cos(angle) + b sin(angle)
-- and the mass, the sum of p, is the same at all angles (Ludwig 1966, Communications on Pure and
-- Applied Mathematics 19, 49; Helgason 1965). That holds for any angles, but only for an object
-- that is seen whole: where the mass changes, or much is seen at an edge of the detector, it cuts
-- the object off and there is no answer. The mass of a uniform object hardly changes.

local mb = require "moonbeam"

local axis_moments = {}

local MOST_SPREAD = 0.02 -- of the mass over angles, relative
local MOST_ERROR = 0.25 -- px, standard deviation of the axis
local MOST_EDGE = 0.05 -- of the most attenuation, in the mean over angles

local function table_of(array)
    local _ <close> = array
    return mb.bound({}, array.to_table, array)
end

-- Solves the equations `rows` = {{a1, a2, a3, b}, ...} by elimination with pivots; nil where there
-- is no solution.
local function solved(rows)
    local n = #rows
    for i = 1, n do
        local pivot = i
        for j = i + 1, n do
            if math.abs(rows[j][i]) > math.abs(rows[pivot][i]) then
                pivot = j
            end
        end
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if math.abs(rows[i][i]) < 1e-12 then
            return nil
        end
        for j = 1, n do
            local factor = j ~= i and rows[j][i] / rows[i][i] or 0
            for k = i, #rows[i] do
                rows[j][k] = rows[j][k] - factor * rows[i][k]
            end
        end
    end
    local values = {}
    for i = 1, n do
        values[i] = {}
        for k = n + 1, #rows[i] do
            values[i][k - n] = rows[i][k] / rows[i][i]
        end
    end
    return values
end

-- Least squares fit of axis + a cos + b sin: the axis, and its standard deviation; nil without a
-- solution.
local function fitted(angles, centers)
    -- The fifth column becomes the first of the inverse.
    local normal = {{0, 0, 0, 0, 1}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}
    for i, angle in ipairs(angles) do
        local terms = {1, math.cos(angle), math.sin(angle)}
        for row = 1, 3 do
            for column = 1, 3 do
                normal[row][column] = normal[row][column] + terms[row] * terms[column]
            end
            normal[row][4] = normal[row][4] + terms[row] * centers[i]
        end
    end
    local values = solved(normal)
    if not values then
        return nil
    end
    local squares = 0
    for i, angle in ipairs(angles) do
        local model = values[1][1] + values[2][1] * math.cos(angle) + values[3][1] * math.sin(angle)
        squares = squares + (centers[i] - model) ^ 2
    end
    return values[1][1], math.sqrt(squares / math.max(1, #angles - 3) * math.max(0, values[1][2]))
end

-- Does an edge of the detector cut the object off, by the means of columns?
local function is_cut(columns)
    local width = #columns
    local edges, most, count = {0, 0}, 0, math.max(1, width // 32)
    for x, value in ipairs(columns) do
        most = math.max(most, value)
        if x <= count then
            edges[1] = edges[1] + value / count
        elseif x > width - count then
            edges[2] = edges[2] + value / count
        end
    end
    return math.max(edges[1], edges[2]) > MOST_EDGE * most
end

--- The 0-based axis of a sinogram (angle, column) of line integrals, and its standard deviation in
-- pixels; nil where the detector does not see the whole object, or noise leaves more than a quarter
-- of a pixel. Third: whether the object reaches an edge of the detector. A dry run takes the same
-- memory and answers nil.
function axis_moments.find(sino, angles)
    local width = sino.shape[2]
    local columns <close> = mb.arange(0, width - 1, {device = sino.device})
    local weighted <close> = mb.binary(sino, "mul", {b = columns})
    local mass = table_of(mb.reduce(sino, "sum", {axis = 2}))
    local moment = table_of(mb.reduce(weighted, "sum", {axis = 2}))
    local cut = is_cut(table_of(mb.reduce(sino, "mean", {axis = 1})))
    local mean, squares, centers = 0, 0, {}
    for i, value in ipairs(mass) do
        mean, squares = mean + value / #mass, squares + value ^ 2 / #mass
        centers[i] = moment[i] / value
    end
    local spread = math.sqrt(math.max(0, squares - mean ^ 2))
    if cut or #mass < 4 or not (mean > 0 and spread < MOST_SPREAD * mean) then
        return nil, nil, cut
    end
    local column, deviation = fitted(angles, centers)
    if column and deviation < MOST_ERROR and column > 0 and column < width - 1 then
        return column, deviation, cut
    end
    return nil, nil, cut
end

return axis_moments
