--- Point spread functions: centres, normalisation, cropping, models.
--
-- A PSF is a small array of one to three axes, last axis x. Its centre is a 0-based pixel-centre coordinate per axis.
-- Without one, functions take the middle, (n - 1) / 2 rounded down (scipy.signal's mode "same"); numpy's fftshift puts
-- the origin of even extents one voxel further, at n / 2: say center = "fft" for those.

local mb = require "moonbeam"
local options_of = require "moonbeam.options"

local psf = {}

local function fail(message, arg, op)
    mb.raise("argument", message, {op = op or "psf.center", arg = arg})
end

-- Sums or maxima over all axes but one, as a Lua list.
local function marginal(a, fn, axis)
    local current = a:view()
    for i = a.rank, 1, -1 do
        if i ~= axis then
            local reduced = mb.reduce(current, fn, {axis = i})
            current:release()
            current = reduced
        end
    end
    local values = current:to_table()
    current:release()
    return values
end

local ways = {}

function ways.middle(a)
    local center = {}
    for i, n in ipairs(a.shape) do
        center[i] = (n - 1) // 2
    end
    return center
end

function ways.fft(a)
    local center = {}
    for i, n in ipairs(a.shape) do
        center[i] = n // 2
    end
    return center
end

-- Ties: the first along each axis.
function ways.maximum(a)
    local center = {}
    for axis = 1, a.rank do
        local values, best = marginal(a, "max", axis), 1
        for i = 2, #values do
            if values[i] > values[best] then
                best = i
            end
        end
        center[axis] = best - 1
    end
    return center
end

function ways.mass(a)
    local center = {}
    for axis = 1, a.rank do
        local values, sum, moment = marginal(a, "sum", axis), 0, 0
        for i, value in ipairs(values) do
            sum = sum + value
            moment = moment + (i - 1) * value
        end
        if sum == 0 then
            fail("the PSF sums to 0 and has no centre of mass", "center")
        end
        center[axis] = moment / sum
    end
    return center
end

--- The centre of a PSF: `how` is "middle" (default), "fft" (n / 2 rounded down), "maximum", "mass" (with fractions), or a
-- list of coordinates, which is checked and returned. A dry run, which has no values, gets the middle.
function psf.center(a, how)
    how = how or "middle"
    if type(how) == "table" then
        if #how ~= a.rank then
            fail(("center has %d numbers; the PSF has %d axes"):format(#how, a.rank), "center")
        end
        for i, value in ipairs(how) do
            if type(value) ~= "number" or value < 0 or value > a.shape[i] - 1 then
                fail(("element %d of center must lie in 0 ... %d"):format(i, a.shape[i] - 1), "center")
            end
        end
        return how
    end
    local way = ways[how] or fail(('center is "%s"; it is middle, fft, maximum, mass or a list of coordinates')
        :format(tostring(how)), "center")
    if a.device.dry and (how == "maximum" or how == "mass") then
        way = ways.middle
    end
    return way(a)
end

--- The sum of all elements; 1 in a dry run. An error where it is not positive: such a PSF cannot be normalised.
function psf.sum(a)
    local total <close> = mb.reduce(a, "sum")
    if a.device.dry then
        return 1
    end
    local sum = total:item()
    if not (sum > 0 and sum < math.huge) then
        fail(("the PSF sums to %g; it must be positive"):format(sum), "psf", "psf.sum")
    end
    return sum
end

--- A PSF without its background: subtracts `level` (default its minimum), negative values become 0. f32.
function psf.subtract_background(a, level)
    local result = a:cast("f32")
    if not level then
        local least <close> = mb.reduce(a, "min")
        level = a.device.dry and 0 or least:item()
    end
    mb.binary(result, "sub", {scalar = level, out = result})
    return mb.binary(result, "max", {scalar = 0, out = result})
end

--- A copy, f32, that sums to 1.
function psf.normalise(a)
    local result = a:cast("f32")
    return mb.binary(result, "div", {scalar = psf.sum(result), out = result})
end

--- The smallest box around the centre, symmetric about it, that holds `energy` (default 0.99) of the sum along every axis.
-- Returns a dense copy. Options: energy, center (default "maximum").
function psf.crop(a, options)
    options = options_of(options, "psf.crop", {"energy", "center"})
    local energy, center = options.energy or 0.99, psf.center(a, options.center or "maximum")
    if not (energy > 0 and energy <= 1) then
        fail(("energy is %g; it lies between 0 and 1"):format(energy), "energy", "psf.crop")
    end
    if a.device.dry then
        mb.raise("argument", "what psf.crop keeps depends on values: crop before planning", {op = "psf.crop"})
    end
    local ranges = {}
    for axis = 1, a.rank do
        local values, total = marginal(a, "sum", axis), 0
        for _, value in ipairs(values) do
            total = total + value
        end
        local middle = math.floor(center[axis] + 0.5) + 1
        local reach, held = 0, values[middle]
        while held < energy * total and (middle - reach > 1 or middle + reach < #values) do
            reach = reach + 1
            held = held + (values[middle - reach] or 0) + (values[middle + reach] or 0)
        end
        ranges[axis] = {math.max(1, middle - reach), math.min(#values, middle + reach)}
    end
    local view <close> = a:view(table.unpack(ranges))
    return view:copy()
end

--- Shifts a PSF so that its centre (option `center`, default "mass") comes to the middle voxel, by phase: sub-pixel and
-- circular, in single precision. Returns an f32 array of the same shape.
function psf.recentre(a, options)
    options = options_of(options, "psf.recentre", {"center"})
    local center, shape = psf.center(a, options.center or "mass"), a.shape
    local points, target = 1, {}
    for i, n in ipairs(shape) do
        points = points * n
        target[i] = center[i] - (n - 1) // 2 -- the sample at this coordinate goes to the origin
    end
    local n = shape[#shape]
    local spectrum <close> = mb.otf(a, shape, {center = target, scale = 1 / points})
    return mb.irfft(spectrum, {axes = a.rank, n = n, consume = true, normalise = false})
end

--- Gaussian PSF: psf.gaussian(size, sigma [, {center, normalise, device}]): the operator psf_gaussian.
function psf.gaussian(size, sigma, options)
    return mb.psf_gaussian(size, sigma, options)
end

return psf
