--- Scans of one object, written with values that are odd in some way, and how far a slice of them
-- is from the right one.
local assert = require "luassert"
local commands = require "spec.support.commands"
local mb = require "moonbeam"

local odd_scans = {}

local COLS, VIEWS, AXIS <const> = 96, 150, 46.2
local BEAM, DARK <const> = 40000, 100
-- x, y, half axes, density: units of the half width; without symmetry
local OBJECT <const> = {{0, 0, 0.78, 0.7, 1}, {0.35, 0.2, 0.15, 0.1, 1.5}, {-0.4, 0.3, 0.1, 0.2,
    -0.8}, {0.1, -0.45, 0.2, 0.1, 0.7}}
local HALF <const> = COLS / 2

-- Line integrals: a list by angles of lists by columns, pixels integrated over four points.
local function integrals()
    local list = {}
    for i = 1, VIEWS do
        local t, line = (i - 1) * math.pi / VIEWS, {}
        for column = 0, COLS - 1 do
            local sum = 0
            for k = -3, 3, 2 do
                local u = column - AXIS + k / 8
                for _, e in ipairs(OBJECT) do
                    local a, b = e[3] * HALF, e[4] * HALF
                    local r = (a * math.cos(t)) ^ 2 + (b * math.sin(t)) ^ 2
                    local d = u - e[1] * HALF * math.cos(t) - e[2] * HALF * math.sin(t)
                    sum = sum + e[5] / HALF * 2 * a * b * math.sqrt(math.max(0, r - d * d)) / r / 4
                end
            end
            line[column + 1] = sum
        end
        list[i] = line
    end
    return list
end

-- The slice at the centers of pixels, averaged over nine points.
local function truth()
    local center, image = (COLS - 1) / 2, {}
    for row = 0, COLS - 1 do
        image[row + 1] = {}
        for column = 0, COLS - 1 do
            local sum = 0
            for k = 0, 8 do
                local x = (column - center + (k % 3 - 1) / 3) / HALF
                local y = (center - row + (k // 3 - 1) / 3) / HALF
                for _, e in ipairs(OBJECT) do
                    sum = sum + (((x - e[1]) / e[3]) ^ 2 + ((y - e[2]) / e[4]) ^ 2 <= 1
                        and e[5] / HALF / 9 or 0)
                end
            end
            image[row + 1][column + 1] = sum
        end
    end
    return image
end

-- The relative error of a slice within 0.95 of the circle.
local function error_of(slice, right)
    local center, sum, norm = (COLS - 1) / 2, 0, 0
    for row = 1, COLS do
        for column = 1, COLS do
            if (row - 1 - center) ^ 2 + (column - 1 - center) ^ 2 < (0.95 * HALF) ^ 2 then
                sum = sum + (slice[row][column] - right[row][column]) ^ 2
                norm = norm + right[row][column] ^ 2
            end
        end
    end
    return math.sqrt(sum / norm)
end

local lines <const>, right <const> = integrals(), truth()

odd_scans.VIEWS, odd_scans.COLS, odd_scans.AXIS = VIEWS, COLS, AXIS
odd_scans.BEAM, odd_scans.DARK = BEAM, DARK

-- A number as a whole one.
local function rounded(value)
    return value // 1 + (value % 1 >= 0.5 and 1 or 0)
end
odd_scans.rounded = rounded

--- The functions of this module for scans in a folder (commands.folder).
function odd_scans.within(shell)
    local function without_size(text)
        return (text:gsub("[^\n]*no pixel size was found[^\n]*\n", ""))
    end

    -- Runs a recipe, the text of its steps before the axis; returns what was said, and the error of
    -- the second slice.
    local function recipe(steps, more)
        local file <close> = io.open(shell:path "steps.lua", "w")
        file:write(('return {%s, {"center", column = %g}, {"fourier", padding = "edge", '
            .. 'filter = "shepp-logan"}}'):format(steps, AXIS))
        file:close()
        local text = commands.must("reconstruct.lua", ("%s -o %s -q --overwrite --device host "
            .. "--recipe %s %s"):format(shell:path "scan.h5", shell:path "out.h5",
            shell:path "steps.lua", more or ""))
        return without_size(text), error_of(shell:volume_of("out.h5")[2], right)
    end

    -- Frames (angle, 2 rows, column) of f(line integral), which is rounded for whole types.
    local function frames_of(f, dtype)
        local values, whole = {}, dtype ~= "f32"
        for i, line in ipairs(lines) do
            local row = {}
            for column, p in ipairs(line) do
                row[column] = whole and rounded(f(p, i)) or f(p, i)
            end
            values[i] = {row, row}
        end
        return values
    end

    local function counts(p)
        return BEAM * math.exp(-p) + DARK
    end

    -- Frames of these levels.
    local function flat_of(levels)
        local values = {}
        for i, level in ipairs(levels) do
            local row = {}
            for column = 1, COLS do
                row[column] = type(level) == "function" and rounded(level(column)) or level
            end
            values[i] = {row, row}
        end
        return values
    end

    -- Writes a scan; `parts`: {data, flats, darks, dtype, references = the type of these two, more =
    -- frames by the names of other datasets}; false: none.
    local function write(parts)
        local angles = {}
        for i = 1, VIEWS do
            angles[i] = (i - 1) * 180 / VIEWS
        end
        local file <close> = mb.h5.create(shell:path "scan.h5", {overwrite = true})
        for name, given in pairs {data = parts.data or frames_of(counts, parts.dtype or "u16"),
            data_white = parts.flats ~= nil and parts.flats or parts.flats == nil and flat_of {BEAM + DARK, BEAM + DARK, BEAM + DARK},
            data_dark = parts.darks ~= nil and parts.darks or parts.darks == nil
                and flat_of {DARK, DARK, DARK}} do
            local array <close> = given and mb.array(given, {dtype = name ~= "data"
                and parts.references or parts.dtype or "u16"}) or nil
            if array then
                file:write("/exchange/" .. name, array)
            end
        end
        for name, given in pairs(parts.more or {}) do
            local array <close> = mb.array(given, {dtype = parts.dtype or "u16"})
            file:write("/exchange/" .. name, array)
        end
        file:write("/exchange/theta", angles, {attributes = {units = "deg"}})
        file:finish()
    end

    -- Reconstructs; returns the status and the lines that warn; or, if it must succeed without any,
    -- the error of the second slice.
    local function run(more, must)
        local status, text = commands.run("reconstruct.lua", ("%s -o %s -q --overwrite --device "
            .. "host -c %g %s"):format(shell:path "scan.h5",
            shell:path "out.h5", AXIS, more or ""))
        text = without_size(text)
        if must then
            assert.equal(0, status, text)
            assert.equal("", text)
            return error_of(shell:volume_of("out.h5")[2], right)
        end
        return status, text
    end

    -- Asserts the first warning, and that the remedies leave nothing to say and give the slice.
    local function warned(pattern, ...)
        local status, text = run()
        assert.equal(0, status, text)
        assert.matches("warning: " .. pattern, text)
        for _, remedy in ipairs {...} do
            assert.is_true(run(remedy, true) <= 0.045, remedy)
        end
    end

    -- The same of an error.
    local function refused(pattern, ...)
        local status, text = run()
        assert.equal(1, status, text)
        assert.matches(pattern, text)
        for _, remedy in ipairs {...} do
            assert.is_true(run(remedy, true) <= 0.045, remedy)
        end
    end

    return {frames_of = frames_of, counts = counts, flat_of = flat_of, write = write, run = run,
        warned = warned, refused = refused, recipe = recipe, error_of = function(name)
            return error_of(shell:volume_of(name or "out.h5")[2], right)
        end}
end

return odd_scans
