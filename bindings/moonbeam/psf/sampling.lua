-- Point spread functions that are made by Lua: what is in proportion, and arrays of light that
-- depends on the distance from the axis.
--
-- A source of light is {planes(radii, heights): as focus.planes; lens: the one that needs the most
-- points; spacing: of the radii between which its intensity is interpolated; even: planes at z and
-- -z are equal; area: whether a sample is the mean over a pixel, as a camera's, or the light at its
-- center; power and part(z): the integral of its intensity over the planes, where that is known,
-- and the part that a plane has of it, nil for all; more: how far its light goes beyond that of a
-- lens; turn: the factor of what turns with the angle about the axis, nil for nothing}.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local fail = require "moonbeam.internal.fail"
local focus = require "moonbeam.psf.focus"
local on_error = require "moonbeam.internal.on_error"

local sampling = {}

-- More than this (minutes) is no PSF that anybody wants but lengths in units that differ. COARSEST:
-- pixels, in wavelengths over numerical apertures; a light spot is half of one.
sampling.MOST_TERMS, sampling.MOST_VALUES, sampling.COARSEST = 5e9, 1 << 24, 20

local HALF <const> = 4 -- samples of a table on either side between which light is interpolated
sampling.BEFORE = HALF -- elements of a table before its axis

--- An f32 array divided by a number, or by what a function says of it, in place.
function sampling.divided(array, sum)
    local _ <close> = on_error(function() array:release() end)
    local scalar = type(sum) == "function" and sum(array) or sum
    return mb.binary(array, "div", {scalar = scalar, out = array})
end

local PACKED <const> = 128 -- values that are packed at a time

--- An f32 array of `size` from a list of its elements.
function sampling.array_of(values, size, device)
    local parts, formats = {}, {}
    for first = 1, #values, PACKED do
        local count = math.min(PACKED, #values - first + 1)
        formats[count] = formats[count] or "<" .. ("f"):rep(count)
        parts[#parts + 1] = formats[count]:pack(table.unpack(values, first, first + count - 1))
    end
    return mb.from_string(table.concat(parts), size, {device = device})
end

--- Refuses what is out of proportion. `turns`: wavelengths between the paths of the light.
function sampling.check(what, size, options, wavelength, terms, turns)
    local nz, ny, nx = table.unpack(size)
    if not (terms <= sampling.MOST_TERMS
        and (nz // 2 + 1) * (ny // 2 + 1) * (nx // 2 + 1) <= sampling.MOST_VALUES
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
        fail("argument", what, "size", "size is %s; it must be {nz, ny, nx}, whole numbers above 0",
            type(size) == "table" and "a table of something else" or arguments.described(size))
    end
end

--- The heights of planes about the middle one: from 0 where z and -z are equal, else all.
function sampling.heights(planes, step, even)
    local heights, middle = {}, (planes - 1) // 2
    for z = even and 0 or -middle, planes - 1 - middle do
        heights[#heights + 1] = z * step
    end
    return heights
end

-- ---- light between the samples of a table ----

--- The intensity of a source up to `radius`: {spacing, count, even, turning}. The lists by height
-- of lists by radius begin HALF samples before the axis, about which they are even.
function sampling.table_of(source, radius, heights)
    local radii, count = {}, math.ceil(radius / source.spacing) + HALF + 2
    for i = 1, count do
        radii[i] = (i - 1) * source.spacing
    end
    local even, turning = source.planes(radii, heights)
    for _, planes in ipairs {even, turning} do
        for j, plane in ipairs(planes) do
            local mirrored = {}
            for i = 1, HALF do
                mirrored[i] = plane[HALF + 2 - i] or 0
            end
            planes[j] = table.move(plane, 1, count, HALF + 1, mirrored)
        end
    end
    return {spacing = source.spacing, count = count, even = even, turning = turning}
end

-- The products that Lagrange's polynomials through 2 HALF samples are divided by.
local FACTORS <const> = {}
for i = 1 - HALF, HALF do
    local product = 1
    for j = 1 - HALF, HALF do
        product = i ~= j and product * (i - j) or product
    end
    FACTORS[#FACTORS + 1] = product
end

-- Adds to `weights` what makes `part` times the value at distance s (in samples) of a table, whose
-- element `base` is the first that they are for.
local function add_weights(weights, base, s, part)
    local low = math.floor(s)
    local t, at = s - low, low + 1 - base
    if t == 0 then
        at = at + HALF
        weights[at] = weights[at] + part
        return
    end
    local product = part
    for j = 1 - HALF, HALF do
        product = product * (t - j)
    end
    for i = 1, 2 * HALF do
        weights[at + i] = weights[at + i] + product / ((t - (i - HALF)) * FACTORS[i])
    end
end

-- What makes of a table the sample at (x, y), in pixels: the mean over a pixel by the points and
-- weights of `rule` (along one axis, about its middle), or the value in its middle. Returns the
-- first element of the table, the weights, and those of what turns.
local function weights_at(x, y, ratio, rule, turns)
    local half, weights, turning = rule.half, {}, turns and {}
    local r = math.sqrt(x * x + y * y)
    local low = math.floor(math.max(0, r - math.sqrt(2) * half) * ratio)
    for i = 1, math.ceil((r + math.sqrt(2) * half) * ratio) - low + 2 * HALF + 2 do
        weights[i] = 0
        if turns then
            turning[i] = 0
        end
    end
    for i, dy in ipairs(rule.points) do
        local b, part = y + dy, rule.weights[i]
        for k, dx in ipairs(rule.points) do
            local a = x + dx
            local square, weight = a * a + b * b, part * rule.weights[k]
            local s = math.sqrt(square) * ratio
            add_weights(weights, low, s, weight)
            if turns and square > 0 then
                add_weights(turning, low, s, weight * (a * a - b * b) / square)
            end
        end
    end
    return low, weights, turning
end

-- The points of Gauss and Legendre along an axis of a pixel: enough for the fastest wave that its
-- light has, twice NA / wavelength.
local function rule_of(source, pixel)
    if not source.area then
        return {points = {0}, weights = {1}, half = 0}
    end
    local count = 3 + math.ceil(4 * pixel * source.lens.na / source.lens.wavelength)
    local points, weights = focus.gauss(count, 1)
    for i, point in ipairs(points) do
        points[i] = point - 0.5
    end
    return {points = points, weights = weights, half = 0.5}
end

-- ---- arrays ----

-- The samples with x, y >= 0: lists by height, x fastest. What is seen at (y, x) is that of (x, y)
-- with what turns taken the other way.
local function quadrant(light, source, pixel, ny, nx)
    local rule, ratio, planes = rule_of(source, pixel), pixel / light.spacing, {}
    for j = 1, #light.even do
        planes[j] = {}
    end
    for y = 0, ny - 1 do
        for x = 0, nx - 1 do
            if x >= y or y >= nx or x >= ny then
                local low, weights, turning = weights_at(x, y, ratio, rule, light.turning
                    and source.turn)
                local other = x > y and x < ny and y < nx and x * nx + y + 1
                local count = #weights
                for j, table_of in ipairs(light.even) do
                    local sum, more = 0, 0
                    for i = 1, count do
                        sum = sum + weights[i] * (table_of[low + i] or 0)
                    end
                    if turning then
                        local turned = light.turning[j]
                        for i = 1, count do
                            more = more + turning[i] * (turned[low + i] or 0)
                        end
                        more = more * source.turn
                    end
                    planes[j][y * nx + x + 1] = math.max(0, sum + more)
                    if other then
                        planes[j][other] = math.max(0, sum - more)
                    end
                end
            end
        end
    end
    return planes
end

-- How often the number `i` of an axis, from 0, stands in `n` samples about the middle.
local function times(i, n)
    return i > 0 and i <= (n - 1) // 2 and 2 or 1
end

-- Copies samples of one side of the middle, `first` and on, to both sides of an axis.
local function sides(n, one_sided)
    if one_sided then
        return {{{1, n}, {1, n}}}
    end
    local middle <const> = (n + 1) // 2
    return {{{middle, n}, {1, n - middle + 1}}, middle > 1 and {{1, middle - 1}, {middle, 2, -1}}
        or nil}
end

-- The array of all samples from that of those with x, y (and z, where `even`) >= 0.
local function unfolded(part, size, even)
    local whole = mb.empty(size, {device = part.device})
    local _ <close> = on_error(function() whole:release() end)
    for _, z in ipairs(sides(size[1], not even)) do
        for _, y in ipairs(sides(size[2])) do
            for _, x in ipairs(sides(size[3])) do
                local to <close> = whole:view(z[1], y[1], x[1])
                local from <close> = part:view(z[2], y[2], x[2])
                mb.convert(from, "f32", {out = to})
            end
        end
    end
    return whole
end

--- The PSF of a source: f32 (z, y, x) of `size`, sum 1, its middle at (n - 1) / 2 rounded down.
-- Errors: argument.
function sampling.array(what, size, options, source)
    sampling.check_size(what, size)
    local nz, ny, nx = table.unpack(size)
    local hy, hx = ny // 2 + 1, nx // 2 + 1
    local heights = sampling.heights(nz, options.step, source.even)
    local radius = options.pixel * math.sqrt((hy - 0.5) ^ 2 + (hx - 0.5) ^ 2)
    local lens = source.lens
    local turns = lens.turns(radius, heights[#heights])
    local points = focus.points(lens, radius, heights)
    local across = 3 + 4 * options.pixel * lens.na / lens.wavelength
    -- Points themselves are found in steps that are as many as their square.
    sampling.check(what, size, options, lens.wavelength, 4.0 * points * points
        + points * (radius / source.spacing + 8) * #heights
        + hy * hx / 2 * (10 * across ^ 2 + #heights * (options.pixel / source.spacing + 8)), turns)
    local light = sampling.table_of(source, radius, heights)
    local planes, total = quadrant(light, source, options.pixel, hy, hx), 0
    for j, plane in ipairs(planes) do
        local sum = 0
        for y = 0, hy - 1 do
            for x = 0, hx - 1 do
                sum = sum + times(y, ny) * times(x, nx) * plane[y * hx + x + 1]
            end
        end
        total = total + sum * (source.even and times(j - 1, nz) or 1)
    end
    if not (total > 0 and total < math.huge) then
        fail("argument", what, "na", "the values of this model add up to %g: are na, wavelengths "
            .. "and lengths those of a lens?", total)
    end
    -- Before they are f32: the focus of a tiny aperture is fainter than its least value.
    local values = {}
    for _, plane in ipairs(planes) do
        for _, value in ipairs(plane) do
            values[#values + 1] = value / total
        end
    end
    local part <close> = sampling.array_of(values, {#planes, hy, hx}, options.device)
    return unfolded(part, size, source.even)
end

return sampling
