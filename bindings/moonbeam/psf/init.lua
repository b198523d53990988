--- Point spread functions: centers, normalization, cropping, models.
--
-- A PSF is a small array of one to three axes, last axis x. Its center is a 0-based pixel-center
-- coordinate per axis. Without one, functions take the middle, (n - 1) / 2 rounded down
-- (scipy.signal's mode "same"); numpy's fftshift puts the origin of even extents one voxel further,
-- at n / 2: say center = "fft" for those.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local bessel = require "moonbeam.psf.bessel"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local extent = require "moonbeam.psf.extent"
local instruments = require "moonbeam.psf.instruments"
local on_error = require "moonbeam.internal.on_error"
local sampling = require "moonbeam.psf.sampling"
local top = require "moonbeam.psf.top"
local whole_call = require "moonbeam.internal.whole"

local psf = {}

-- Sums or maxima over all axes but one, as a Lua list; in a dry run only their memory, and ones.
local function marginal(a, fn, axis)
    local current = a:view()
    for i = a.rank, 1, -1 do
        if i ~= axis then
            local outer <close> = current
            current = mb.reduce(outer, fn, {axis = i})
        end
    end
    local reduced <close> = current
    if not a.device.dry then
        return reduced:to_table()
    end
    local ones = {}
    for i = 1, a.shape[axis] do
        ones[i] = 1
    end
    return ones
end

-- The f32 elements of an array as a list; none in a dry run.
local function floats_of(a)
    local raw, list = a.device.dry and "" or a:to_string(), {}
    for at = 1, #raw, 4 do
        list[#list + 1] = string.unpack("<f", raw, at)
    end
    return list
end

-- By the names of centers: the coordinate along an axis.
local ways = {}

function ways.middle(a, axis)
    return (a.shape[axis] - 1) // 2
end

function ways.fft(a, axis)
    return a.shape[axis] // 2
end

-- The center of mass of all that is above half of the maximum, less that level.
function ways.maximum(a, axis)
    local above <close> = top.of(a)
    return top.coordinate(marginal(above, "sum", axis))
end

function ways.mass(a, axis)
    if a.dtype == "c64" or a.dtype == "c128" then
        fail("dtype", "psf.center", "a", "a is complex; take its magnitude first, a:abs()")
    end
    local sum, moment = 0, 0
    for i, value in ipairs(marginal(a, "sum", axis)) do
        sum, moment = sum + value, moment + (i - 1) * value
    end
    if sum == 0 then
        fail("argument", "psf.center", "center", "the PSF sums to 0 and has no center of mass")
    end
    local place = moment / sum
    if not (place >= 0 and place <= a.shape[axis] - 1) then
        fail("argument", "psf.center", "center", "the center of mass is %.4g along axis %d, which "
            .. "has 0 ... %d: values below 0, or not finite, move it; give center = \"maximum\" "
            .. "or coordinates", place, axis, a.shape[axis] - 1)
    end
    return place
end

--- The center of a PSF: `how` is "middle" (default), "fft" (n / 2 rounded down), "maximum" (the
-- centroid of the top, with fractions: of what is above half of the maximum, less that), "mass"
-- (with fractions), or a list of coordinates, which is checked and returned. A center that was
-- found from values has found = true: grids are then chosen so that they suit any center, so a dry
-- run, which has no values and gets some center, tells the same bytes.
function psf.center(a, how)
    how = how or "middle"
    if type(how) == "table" then
        if #how ~= a.rank then
            fail("argument", "psf.center", "center", "center has %s; the PSF has %s",
                counted(#how, "number"), counted(a.rank, "axis", "axes"))
        end
        for i, value in ipairs(how) do
            if type(value) ~= "number" or not (value >= 0 and value <= a.shape[i] - 1) then
                fail("argument", "psf.center", "center",
                    "element %d of center is %s; it must lie in 0 ... %d", i,
                    arguments.described(value), a.shape[i] - 1)
            end
        end
        return how
    end
    local way = ways[how] or fail("argument", "psf.center", "center",
        'center is "%s"; it is middle, fft, maximum, mass or a list of coordinates', tostring(how))
    local center = {found = how == "maximum" or how == "mass" or nil}
    for axis = 1, a.rank do
        center[axis] = way(a, axis)
    end
    return center
end

--- The sum of all elements; 1 in a dry run. An error where it is not positive: such a PSF cannot be
-- normalized.
function psf.sum(a)
    local total <close> = mb.reduce(a, "sum")
    if a.device.dry then
        return 1
    end
    local sum = total:item()
    if not (sum > 0 and sum < math.huge) then
        fail("argument", "psf.sum", "psf", "the PSF sums to %g; it must be positive", sum)
    end
    return sum
end

-- The elements of a PSF's faces, at most 256 along an axis; none in a dry run.
local function face_values(a)
    local values = {}
    for axis = 1, a.rank do
        for _, place in ipairs {1, a.shape[axis]} do
            local ranges = {}
            for i, n in ipairs(a.shape) do
                ranges[i] = i == axis and {place, place} or {1, n, math.ceil(n / 256)}
            end
            local view <close> = a:view(table.unpack(ranges))
            local face <close> = view:cast("f32")
            for _, value in ipairs(floats_of(face)) do
                values[#values + 1] = value == value and value or nil
            end
        end
    end
    return values
end

local FEWEST = 32 -- elements of faces of which quantiles say something

--- What lies under a measured PSF, such as a camera's offset: {level, the median of its faces;
-- share, the part of the PSF's sum that a background of this level is; flat, whether the faces
-- are a pedestal}. They are where there are enough of them, a twentieth at most lies below half
-- of the level and a quarter above 1.5 times the level, and the level is at most half of the
-- maximum: out-of-focus light, which belongs to the PSF, has dark rings and dark edges in focus.
-- A level below 0 is that of a background that was subtracted too far; faces are flat then by the
-- same rule with the signs turned. In a dry run {0, 0, false}.
function psf.background(a)
    local values = face_values(a)
    local sum <close> = mb.reduce(a, "sum")
    local max <close> = mb.reduce(a, "max")
    local n = #values
    if n == 0 then
        return {level = 0, share = 0, flat = false}
    end
    table.sort(values)
    local level = (values[(n + 1) // 2] + values[n // 2 + 1]) / 2
    local low, high = values[(n + 19) // 20], values[n + 1 - (n + 3) // 4]
    local total, flat = sum:item(), level > 0 and low >= 0.5 * level and high <= 1.5 * level
        and level <= 0.5 * max:item()
    if level < 0 then
        flat = low >= 1.5 * level and high <= 0.5 * level and -level <= 0.5 * max:item()
    end
    return {level = level, share = total > 0 and level * a.elements / total or 0,
        flat = n >= FEWEST and flat}
end

--- A PSF without its background: subtracts `level` (default that of psf.background), negative
-- values become 0, also with a level of 0. Returns an f32 array and the level.
function psf.subtract_background(a, level)
    level = level or psf.background(a).level
    local result = a:cast("f32")
    local _ <close> = on_error(function() result:release() end)
    mb.binary(result, "sub", {scalar = level, out = result})
    return mb.binary(result, "max", {scalar = 0, out = result}), level
end

--- A copy, f32, that sums to 1.
function psf.normalize(a)
    return sampling.divided(a:cast("f32"), psf.sum)
end

--- The smallest box around the center, symmetric about it, that holds `energy` (default 0.99) of
-- the sum along every axis. Returns a dense copy. Options: energy, center (default "maximum").
function psf.crop(a, options)
    local energy, center = options.energy, psf.center(a, options.center)
    if a.device.dry then
        fail("argument", "psf.crop", nil,
            "what psf.crop keeps depends on values: crop before planning")
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

--- Shifts a PSF so that its center (option `center`, default "mass") comes to the middle voxel, by
-- phase: sub-pixel and circular, in single precision. Returns an f32 array of the same shape.
function psf.recenter(a, options)
    local center, shape = psf.center(a, options.center), a.shape
    local points, target = 1, {}
    for i, n in ipairs(shape) do
        points = points * n
        target[i] = center[i] - (n - 1) // 2 -- the sample at this coordinate goes to the origin
    end
    local n = shape[#shape]
    local spectrum <close> = mb.otf(a, shape, {center = target, scale = 1 / points})
    return mb.irfft(spectrum, {axes = a.rank, n = n, consume = true, normalize = false})
end

--- Gaussian PSF: psf.gaussian(size, sigma [, {center, normalize, device}]): the operator
-- psf_gaussian.
function psf.gaussian(size, sigma, options)
    return mb.psf_gaussian(size, sigma, options)
end

psf.bessel_j0 = bessel.j0

-- Resamples the middle axis of a flat list (outer, n, inner): element i of the result is the mean
-- of the linear interpolation over its own extent, `ratio` elements of the source about center + (i
-- - target) * ratio; 0 outside.
local function resample_axis(values, outer, n, inner, center, size, target, ratio)
    local result, points = {}, math.max(1, math.ceil(8 * ratio))
    local weights = {}
    for i = 0, size - 1 do
        local w = {}
        for j = 0, points - 1 do
            local x = center + (i - target + (ratio > 1 and (j + 0.5) / points - 0.5 or 0)) * ratio
            local low = math.floor(x)
            for source, part in pairs {[low] = 1 - (x - low), [low + 1] = x - low} do
                if source >= 0 and source < n and part > 0 then
                    w[source] = (w[source] or 0) + part / points
                end
            end
        end
        weights[i] = w
    end
    for o = 0, outer - 1 do
        for i = 0, size - 1 do
            local to = (o * size + i) * inner
            for c = 1, inner do
                local sum = 0
                for source, part in pairs(weights[i]) do
                    sum = sum + part * values[(o * n + source) * inner + c]
                end
                result[to + c] = sum
            end
        end
    end
    return result
end

--- A PSF at other distances of samples: psf.resample(a, from, to [, options]), both one number per
-- axis in one unit, such as a measured PSF at the image's voxels. Linear between samples; where
-- voxels become larger, the mean over each. Options: center (default "maximum"), which comes to the
-- middle voxel; size, the result's extents (default: odd, all that is there). Returns an f32 array
-- of sum 1 on the PSF's device.
function psf.resample(a, from, to, options)
    local rank, center = a.rank, psf.center(a, options.center)
    if options.size ~= nil then
        arguments.list(options.size, "psf.resample", "size", "the result's extents", rank)
    end
    local ratios, size, samples = {}, {}, 1.0
    for i = 1, rank do
        local x, y = type(from) == "table" and from[i] or from, type(to) == "table" and to[i] or to
        for name, value in pairs {from = x or false, to = y or false} do
            if type(value) ~= "number" or not (value > 0 and value < math.huge) then
                fail("argument", "psf.resample", name, "%s has %s for axis %d; it must be a "
                    .. "positive number, or one for each of the %d axes", name,
                    arguments.described(value or nil), i, rank)
            end
        end
        ratios[i] = y / x
        size[i] = options.size and options.size[i]
            or 2 * math.floor((a.shape[i] - 1) / 2 / ratios[i]) + 1
        samples = samples * size[i]
    end
    if not (samples >= 1 and samples <= sampling.MOST_VALUES) then
        fail("argument", "psf.resample", "from",
            "%g samples from %d are out of proportion; give both distances in one unit", samples,
            a.elements)
    end
    local real <close> = a:cast("f32")
    local values, outer, inner = floats_of(real), 1, a.elements
    for i, n in ipairs(a.shape) do
        inner = inner // n
        values = not a.device.dry and resample_axis(values, outer, n, inner, center[i], size[i],
            (size[i] - 1) // 2, ratios[i]) or values
        outer = outer * size[i]
    end
    for i = #values + 1, outer do -- a dry run
        values[i] = 0
    end
    return sampling.divided(sampling.array_of(values, size, a.device), psf.sum)
end

psf.on_voxel = top.on_voxel
for name in pairs(instruments.sources) do
    psf[name] = instruments[name]
end

-- The source of light of a model, and the options of the model, checked.
local function source_of(what, model, optics)
    local source = instruments.sources[model] or fail("argument", what, "model", 'model is "%s"; '
        .. "it is born_wolf, gibson_lanni, richards_wolf, confocal, two_photon or light_sheet",
        tostring(model))
    local options = declared.checked(declared.of(psf[model]).options, optics, "psf." .. model)
    return source(options), options
end

--- The share of light that a model of this size {nz, ny, nx} holds, 0 to 1: that of the plane which
-- loses most, in a square of the smaller lateral extent; at most 17 planes are looked at. A plane
-- of a camera's model has the same light wherever it is; planes of other models that have less
-- than a twentieth of the light of the brightest count as if they had that. Returns the share, and
-- the height of that plane over the focus. optics: the options of the model.
function psf.light_within(model, size, optics)
    local what = "psf.light_within"
    sampling.check_size(what, size)
    local source, options = source_of(what, model, optics)
    sampling.check(what, size, options, source.lens.wavelength, 0, 0)
    return extent.share(source, size, options)
end

--- The size {nz, ny, nx} of a model for an image of this shape (z, y, x): all distances of two of
-- its planes, and the fewest pixels, an odd number, that hold `share` (default 0.98) of the light
-- of every plane (psf.light_within), but no more than the distances of two of its pixels. optics:
-- the options of the model.
function psf.size_for(model, shape, optics, share)
    local what = "psf.size_for"
    sampling.check_size(what, shape)
    local source, options = source_of(what, model, optics)
    local planes, most = 2 * shape[1] - 1, 2 * math.max(shape[2], shape[3]) - 1
    sampling.check(what, {planes, 1, 1}, options, source.lens.wavelength, 0, 0)
    local n = extent.pixels(source, planes, options, share or 0.98, most)
    return {planes, math.min(n, 2 * shape[2] - 1), math.min(n, 2 * shape[3] - 1)}
end

local CENTER = "middle, fft, maximum, mass or coordinates (psf.center)"
local MODEL = declared.options(
    {"na", "number", "numerical aperture", above = 0, required = true},
    {"wavelength", "number", "emission wavelength in vacuum; all lengths have one unit", above = 0,
        required = true},
    {"pixel", "number", "lateral distance of samples", above = 0, required = true},
    {"step", "number", "axial distance of samples", above = 0, required = true},
    {"index", "number", "refractive index of the immersion", min = 1, max = 5,
        default = 1.515},
    {"device", "device", "where the PSF is made", usual = "the default device"})

local EXCITATION = declared.options({"excitation", "number", "excitation wavelength in vacuum",
    above = 0, required = true})
local FIELD = declared.options({"field", "choice", "focus of polarized waves, right for all "
    .. "apertures, or the scalar paraxial one", choices = {"vector", "scalar"}, default = "vector"})
local AREA = declared.options({"area", "boolean", "a sample is the mean over its pixel, as a "
    .. "camera sees it; false: the light at its center", default = true})
local PINHOLE = declared.options({"pinhole", "number", "diameter of the pinhole in Airy units of "
    .. "the emission (1.22 wavelength / na); 0: a point", min = 0, max = 20, default = 1})

return whole_call.module(psf, "psf", {
    crop = {"a: array", declared.options(
        {"energy", "number", "part of the sum to keep along every axis", above = 0,
            max = 1, default = 0.99},
        {"center", "any", CENTER, default = "maximum"})},
    recenter = {"a: array", declared.options {"center", "any", CENTER, default = "mass"}},
    resample = {"a: array, from: any, to: any", declared.options(
        {"center", "any", "what comes to the middle voxel: " .. CENTER, default = "maximum"},
        {"size", "any", "the result's extents", usual = "odd, all that is there"})},
    gaussian = {"size: any, sigma: any", declared.options(declared.from("psf_gaussian"),
        MODEL.device,
        {"out", "array", "the array for the result"})},
    born_wolf = {"size: any", declared.options(MODEL, AREA)},
    gibson_lanni = {"size: any", declared.options(MODEL,
        {"index_design", "number", "of the immersion that the objective is made for", min = 1,
            max = 5, usual = "index"},
        {"working_distance", "number", "of the objective, where those two differ"},
        {"index_sample", "number", "refractive index of the sample", min = 1, max = 5,
            usual = "index"},
        {"depth", "number", "depth of the emitter under the coverslip", min = 0, default = 0},
        {"index_glass", "number", "of the coverslip", min = 1, max = 5, default = 1.515},
        {"index_glass_design", "number", "of the coverslip that the objective is made for",
            min = 1, max = 5, usual = "index_glass"},
        {"glass", "number", "thickness of the coverslip, where it is not that of the design"},
        {"glass_design", "number", "thickness of that of the design", usual = "glass"},
        AREA)},
    richards_wolf = {"size: any", declared.options(MODEL, {"polarization", "choice",
        "of the light, along x or y; none: of emitters that turn freely",
        choices = {"none", "x", "y"}, default = "none"}, AREA)},
    confocal = {"size: any", declared.options(MODEL, EXCITATION, PINHOLE, FIELD)},
    two_photon = {"size: any", declared.options(declared.without(MODEL, "wavelength"), EXCITATION,
        FIELD)},
    light_sheet = {"size: any", declared.options(MODEL, FIELD,
        {"sheet", "number", "thickness of the light sheet, full width at half maximum", above = 0,
            usual = "from sheet_na and excitation"},
        {"sheet_na", "number", "numerical aperture of the sheet's beam", above = 0},
        {"excitation", "number", "excitation wavelength in vacuum, with sheet_na", above = 0},
        AREA)},
    on_voxel = "a: array, center: list",
    center = "a: array", sum = "a: array", background = "a: array",
        subtract_background = "a: array, level: number?",
    light_within = "model: string, size: any, optics: any",
    size_for = "model: string, shape: any, optics: any, share: number?",
    normalize = "a: array", bessel_j0 = "x: number",
})
