-- Projections of an object without symmetry, upright and as detectors store them that are upside
-- down or mirrored.

local mb = require "moonbeam"

local ROWS <const>, COLS <const> = 12, 40

local mirrored = {ROWS = ROWS, COLS = COLS}

-- Disks {x, y, radius, density} without symmetry; the density changes with the row.
local DISKS <const> = {{7, 2, 5, 1}, {-4, 8, 4, 0.6}, {-6, -5, 3, 1.4}}

-- Upright projections, values[angle][row][column], as a detector sees them whose axis is at `axis`
-- in the middle row and moves by `lean` columns for each row. `shifts`: of the object, in rows.
function mirrored.upright(angles, axis, lean, shifts)
    local values = {}
    for k, angle in ipairs(angles) do
        values[k] = {}
        for row = 1, ROWS do
            values[k][row] = {}
            local z = row - (shifts and shifts[k] or 0)
            for column = 0, COLS - 1 do
                local sum = 0
                for i, disk in ipairs(DISKS) do
                    local place = axis + (lean or 0) * (row - (ROWS + 1) / 2)
                        + disk[1] * math.cos(angle) + disk[2] * math.sin(angle)
                    local d = disk[3] ^ 2 - (column - place) ^ 2
                    sum = sum + (d > 0 and disk[4] * (0.01 * z + 0.002 * i * z * z)
                        * math.sqrt(d) or 0)
                end
                values[k][row][column + 1] = sum
            end
        end
    end
    return values
end

-- The frames as a detector stores them that is upside down, or mirrored.
function mirrored.stored(values, how)
    local made = {}
    for k, frame in ipairs(values) do
        made[k] = {}
        for row = 1, ROWS do
            local from = frame[how.rows and ROWS + 1 - row or row]
            made[k][row] = {}
            for column = 1, COLS do
                made[k][row][column] = from[how.columns and COLS + 1 - column or column]
            end
        end
    end
    return made
end

-- Writes a Data Exchange scan: counts of these projections, with a flat field that is uneven and
-- flipped as they are. `angles` in radians.
function mirrored.write(path, values, angles, how)
    local light, counts, degrees = {}, {}, {}
    for row = 1, ROWS do
        light[row] = {}
        for column = 1, COLS do
            light[row][column] = 30000 + 200 * row + 50 * column
        end
    end
    for k, frame in ipairs(values) do
        counts[k] = {}
        degrees[k] = math.deg(angles[k])
        for row = 1, ROWS do
            counts[k][row] = {}
            for column = 1, COLS do
                counts[k][row][column] = 100 + math.floor((light[row][column] - 100)
                    * math.exp(-frame[row][column]) + 0.5)
            end
        end
    end
    local dark = mirrored.stored({light}, {})
    for row = 1, ROWS do
        for column = 1, COLS do
            dark[1][row][column] = 100
        end
    end
    local file <close> = mb.h5.create(path, {overwrite = true})
    file:write("/implements", "exchange")
    for name, own in pairs {data = counts, data_white = {light}, data_dark = dark} do
        local array <close> = mb.array(mirrored.stored(own, how), {dtype = "u16"})
        file:write("/exchange/" .. name, array)
    end
    file:write("/exchange/theta", degrees, {attributes = {units = "deg"}})
    file:finish()
end

return mirrored
