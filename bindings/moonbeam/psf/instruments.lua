-- Point spread functions of microscopes by what illuminates and what detects: Richards and Wolf's
-- widefield one, confocal, two-photon and light-sheet ones.

local fail = require "moonbeam.internal.fail"
local focus = require "moonbeam.psf.focus"
local sampling = require "moonbeam.psf.sampling"

local instruments = {}

local AIRY <const> = 1.21966989126650 -- first zero of J1, over pi: diameter of a disk, lambda / NA

-- The light of an option that is a wavelength.
local function light_of(options, name)
    return {na = options.na, index = options.index, wavelength = options[name or "wavelength"]}
end

-- Checks the optics, and returns the places of the samples. `lights` are what is computed;
-- `more`: how much further than the samples they reach.
local function prepare(what, size, options, lights, more)
    sampling.check_size(what, size)
    if options.na > options.index then
        fail("argument", what, "na", "na %g must not be above the refractive index %g: set index "
            .. "to that of the immersion", options.na, options.index)
    end
    local nz, ny, nx = size[1], size[2], size[3]
    local radius = options.pixel * math.sqrt((ny // 2) ^ 2 + (nx // 2) ^ 2) + (more or 0)
    for _, light in ipairs(lights) do
        local points = focus.points(light, radius, options.step * (nz // 2))
        local radii = ny * nx / 8 + 1 + (more and 64 * options.na * radius / light.wavelength or 0)
        -- The points themselves are found in steps that are as many as their square.
        sampling.check(what, size, options, light.wavelength, math.max(30 * points * points,
            3 * points * radii * (nz // 2 + 1)), points / 4)
    end
    return sampling.places(size, options.pixel, options.step)
end

-- Calls fn(value, j, i) for every value of planes and puts what it returns into its place.
local function change(planes, fn)
    for j, plane in ipairs(planes) do
        for i, value in ipairs(plane) do
            plane[i] = fn(value, j, i)
        end
    end
    return planes
end

--- Widefield PSF of a lens of any aperture: the vectorial focus of an aplanatic lens. From B.
-- Richards, E. Wolf, Proc. R. Soc. A 253, 358, 1959; sampled at pixel centers about the middle, sum
-- 1, f32 (z, y, x). With I0, I1, I2 = integral over theta from 0 to asin(NA / n) of sqrt(cos theta)
-- sin theta {(1 + cos theta) J0, sin theta J1, (1 - cos theta) J2}(k n r sin theta) exp(i k n z cos
-- theta) dtheta, k = 2 pi / wavelength, h = |I0|^2 + 2 |I1|^2 + |I2|^2: what emitters that turn
-- freely are seen with, and what unpolarized or circular light illuminates. With polarization "x"
-- or "y" the focus of linearly polarized light: +- cos(2 phi) (2 Re(I0 conj I2) + 2 |I1|^2) beside
-- it. size {nz, ny, nx}; all lengths in one unit. For small apertures it is that of Born and Wolf.
function instruments.richards_wolf(size, options)
    local what, light = "psf.richards_wolf", light_of(options)
    local at = prepare(what, size, options, {light})
    local even, turning = focus.vector(light, at.radii, at.heights)
    if options.polarization == "y" then
        change(turning, function(value)
            return -value
        end)
    end
    return sampling.array(what, at, options.device, even,
        options.polarization ~= "none" and turning or nil)
end

-- ---------------------------------------------------------------------------------------------
-- A pinhole

-- The part of a ring of radius s about the middle that lies in a disk of radius a about a point at
-- distance r, as an angle.
local function arc(s, r, a)
    if r + s <= a then
        return 2 * math.pi
    elseif s >= r + a or s <= r - a or s <= a - r then
        return 0
    end
    return 2 * math.acos(math.max(-1, math.min(1, (r * r + s * s - a * a) / (2 * r * s))))
end

-- Adds `weight` times the value at distance s to what `weights` say of a table with this spacing,
-- by the polynomial of third degree through the four nearest samples (the table is even).
local function interpolate(weights, s, spacing, weight)
    local low = math.floor(s / spacing)
    local t = s / spacing - low
    local parts = {-t * (t - 1) * (t - 2) / 6, (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2, (t + 1) * t * (t - 1) / 6}
    for j = 1, 4 do
        local place = math.abs(low + j - 2) + 1
        weights[place] = (weights[place] or 0) + weight * parts[j]
    end
end

-- What makes of a table of values at k * spacing the mean over a disk of radius a at distance r:
-- the integral over s of h(s) s arc(s). Its ends are square roots, so s goes along a cosine of u.
-- `rule` gives the points of u by their number.
local function disk_weights(r, a, spacing, rule)
    local weights = {}
    local function ring(low, high)
        local us, parts = table.unpack(rule[16 + 32 * math.ceil((high - low) / spacing / 32)])
        for m, u in ipairs(us) do
            local s = (low + high) / 2 - (high - low) / 2 * math.cos(u)
            local width = (high - low) / 2 * math.sin(u) * parts[m]
            interpolate(weights, s, spacing, width * s * arc(s, r, a) / (math.pi * a * a))
        end
    end
    if r < a then
        ring(0, a - r)
    end
    ring(math.abs(a - r), a + r)
    return weights
end

-- The light of a focus that comes through a pinhole whose image in the sample has the radius a.
local function through_pinhole(of_light, light, at, a)
    if a == 0 then
        return (of_light(light, at.radii, at.heights))
    end
    local spacing = light.wavelength / light.na / 64
    local table_radii, planes, weights = {}, {}, {}
    for m = 1, math.ceil((at.radii[#at.radii] + a) / spacing) + 3 do
        table_radii[m] = (m - 1) * spacing
    end
    local rule = setmetatable({}, {__index = function(self, count)
        self[count] = table.pack(focus.gauss(count, math.pi))
        return self[count]
    end})
    for i, r in ipairs(at.radii) do
        weights[i] = disk_weights(r, a, spacing, rule)
    end
    for j, plane in ipairs((of_light(light, table_radii, at.heights))) do
        planes[j] = {}
        for i, list in ipairs(weights) do
            local sum = 0
            for place, weight in pairs(list) do
                sum = sum + weight * plane[place]
            end
            planes[j][i] = math.max(0, sum)
        end
    end
    return planes
end

-- ---------------------------------------------------------------------------------------------
-- Instruments

--- Confocal PSF: excitation times detection through the pinhole. h(r, z) = h_ex(r, z) (h_em
-- convolved with the pinhole)(r, z) (T. Wilson, C. J. R. Sheppard, Theory and Practice of Scanning
-- Optical Microscopy, 1984), both the focus of the same lens: at `excitation` and at `wavelength`,
-- the emission. field "vector": that of psf.richards_wolf; "scalar": that of psf.born_wolf.
-- `pinhole` is the pinhole's diameter in Airy units, 1.22 wavelength / na in the sample; 0 is a
-- point, and a wide one leaves the excitation alone. Sampled at pixel centers about the middle, sum
-- 1, f32 (z, y, x). size {nz, ny, nx}; all lengths in one unit.
function instruments.confocal(size, options)
    local what, of_light = "psf.confocal", focus[options.field]
    local excitation, emission = light_of(options, "excitation"), light_of(options)
    local a = options.pinhole * AIRY / 2 * options.wavelength / options.na
    local at = prepare(what, size, options, {excitation, emission}, a)
    local detected = through_pinhole(of_light, emission, at, a)
    local h = of_light(excitation, at.radii, at.heights)
    return sampling.array(what, at, options.device, change(h, function(value, j, i)
        return value * detected[j][i]
    end))
end

--- Two-photon PSF: the square of the excitation's intensity, all emitted light being collected. See
-- W. Denk, J. H. Strickler, W. W. Webb, Science 248, 73, 1990. `excitation` is the laser's
-- wavelength in vacuum; field "vector": the focus of psf.richards_wolf; "scalar": that of
-- psf.born_wolf. Sampled at pixel centers about the middle, sum 1, f32 (z, y, x). size {nz, ny,
-- nx}; all lengths in one unit.
function instruments.two_photon(size, options)
    local what, light = "psf.two_photon", light_of(options, "excitation")
    local at = prepare(what, size, options, {light})
    local h = focus[options.field](light, at.radii, at.heights)
    return sampling.array(what, at, options.device, change(h, function(value)
        return value * value
    end))
end

--- The thickness of a light sheet, full width at half maximum: `sheet`, or that of a Gaussian beam
-- of aperture sheet_na, whose waist (1 / e^2) is w0 = excitation / (pi sheet_na): w0 sqrt(2 log 2).
function instruments.sheet_of(options)
    local what = "psf.light_sheet"
    if options.sheet and options.sheet_na then
        fail("argument", what, "sheet", "sheet and sheet_na both say how thick the sheet is: give "
            .. "one of them")
    elseif options.sheet then
        return options.sheet
    elseif not options.sheet_na then
        fail("argument", what, "sheet", "how thick the sheet is, is missing: give the "
            .. "option sheet, or the option sheet_na with the option excitation")
    elseif not options.excitation then
        fail("argument", what, "excitation", "excitation, the wavelength of the sheet, is needed "
            .. "with sheet_na")
    elseif options.sheet_na > options.index then
        fail("argument", what, "sheet_na", "sheet_na %g must not be above the refractive index %g",
            options.sheet_na, options.index)
    end
    return options.excitation / (math.pi * options.sheet_na) * math.sqrt(2 * math.log(2))
end

--- Light-sheet PSF: the widefield PSF of the detection times the sheet's profile along z. That is
-- 2^-(2 z / sheet)^2, a Gaussian in the detection's focal plane (K. Greger, J. Swoger, E. H. K.
-- Stelzer, Rev. Sci. Instrum. 78, 023705, 2007). `sheet` is its full width at half maximum; or
-- sheet_na and excitation give that of a Gaussian beam (w0 = excitation / (pi sheet_na), 1 / e^2).
-- field "vector": the detection of psf.richards_wolf; "scalar": that of psf.born_wolf. Sampled at
-- pixel centers about the middle, sum 1, f32 (z, y, x). size {nz, ny, nx}; all lengths in one unit.
function instruments.light_sheet(size, options)
    local what, light = "psf.light_sheet", light_of(options)
    local sheet = instruments.sheet_of(options)
    local at = prepare(what, size, options, {light})
    local h = focus[options.field](light, at.radii, at.heights)
    return sampling.array(what, at, options.device, change(h, function(value, j)
        return value * 2 ^ -((2 * at.heights[j] / sheet) ^ 2)
    end))
end

return instruments
