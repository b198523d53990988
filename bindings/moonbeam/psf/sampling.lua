-- Point spread functions that are made by Lua, value by value: what is in proportion, and arrays of
-- values that depend on the distance from the axis.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"

local sampling = {}

-- More than this (minutes) is no PSF that anybody wants but lengths in units that differ. COARSEST:
-- pixels, in wavelengths over numerical apertures; a light spot is half of one.
sampling.MOST_TERMS, sampling.MOST_VALUES, sampling.COARSEST = 5e9, 1 << 24, 20

--- An f32 array divided by a number, or by what a function says of it, in place.
function sampling.divided(array, sum)
    local _ <close> = on_error(function() array:release() end)
    local scalar = type(sum) == "function" and sum(array) or sum
    return mb.binary(array, "div", {scalar = scalar, out = array})
end

--- An f32 array of `size` from a list of its elements, which is divided by `sum` as `divided` does.
-- The list is used up.
function sampling.array_of(values, size, device, sum)
    for i, value in ipairs(values) do
        values[i] = string.pack("<f", value)
    end
    return sampling.divided(mb.from_string(table.concat(values), size, {device = device}), sum)
end

--- Refuses what is out of proportion. `turns`: wavelengths between the paths of the light.
function sampling.check(what, size, options, wavelength, terms, turns)
    local nz, ny, nx = table.unpack(size)
    if not (terms <= sampling.MOST_TERMS and nz * ny * nx <= sampling.MOST_VALUES
        and options.pixel * options.na <= sampling.COARSEST * wavelength) then
        fail("argument", what, "size", "a model of %d x %d x %d, with %.3g wavelengths between the "
            .. "paths of its light, is out of proportion: are wavelength, pixel, step and depth in "
            .. "one unit?", nz, ny, nx, turns)
    end
end

--- Refuses a size that is not one of three axes.
function sampling.check_size(what, size)
    local good = type(size) == "table" and #size == 3
    for i = 1, good and 3 or 0 do
        good = good and math.type(size[i]) == "integer" and size[i] > 0
    end
    if not good then
        fail("argument", what, "size", "size is {nz, ny, nx}, whole numbers above 0")
    end
end

--- The places of a PSF's samples about its middle: {radii (ascending), heights (from 0), of_square
-- (the number of a radius by its square in pixels), and the extents}.
function sampling.places(size, pixel, step)
    local nz, ny, nx = table.unpack(size)
    local at = {nz = nz, ny = ny, nx = nx, cz = (nz - 1) // 2, cy = (ny - 1) // 2,
        cx = (nx - 1) // 2, radii = {}, heights = {}, of_square = {}}
    local squares = {}
    for y = 0, math.max(at.cy, ny - 1 - at.cy) do
        for x = 0, math.max(at.cx, nx - 1 - at.cx) do
            local square = y * y + x * x
            squares[#squares + 1] = not at.of_square[square] and square or nil
            at.of_square[square] = true
        end
    end
    table.sort(squares)
    for i, square in ipairs(squares) do
        at.radii[i], at.of_square[square] = pixel * math.sqrt(square), i
    end
    for z = 0, math.max(at.cz, nz - 1 - at.cz) do
        at.heights[z + 1] = z * step
    end
    return at
end

--- An array, sum 1, of what is the same at z and -z: even[height][radius], and where it is given
-- turning[height][radius] cos(2 phi) beside it, phi = 0 along x.
function sampling.array(what, at, device, even, turning)
    local total, values = 0, {}
    for z = -at.cz, at.nz - 1 - at.cz do
        local plane, turned = even[math.abs(z) + 1], turning and turning[math.abs(z) + 1]
        for y = -at.cy, at.ny - 1 - at.cy do
            for x = -at.cx, at.nx - 1 - at.cx do
                local square = x * x + y * y
                local i = at.of_square[square]
                local value = plane[i]
                if turned and square > 0 then
                    value = math.max(0, value + turned[i] * (x * x - y * y) / square)
                end
                total = total + value
                values[#values + 1] = value
            end
        end
    end
    if not (total > 0 and total < math.huge) then
        fail("argument", what, "na", "the values of this model add up to %g: are na, wavelengths "
            .. "and lengths those of a lens?", total)
    end
    -- Before they are f32: the focus of a tiny aperture is fainter than its least value.
    for i, value in ipairs(values) do
        values[i] = value / total
    end
    return sampling.array_of(values, {at.nz, at.ny, at.nx}, device, 1)
end

return sampling
