-- Point spread functions of microscopes by what illuminates and what detects: Richards and Wolf's
-- widefield one, confocal, two-photon and light-sheet ones.

local fail = require "moonbeam.internal.fail"
local focus = require "moonbeam.psf.focus"
local sampling = require "moonbeam.psf.sampling"

local instruments = {}

local AIRY <const> = 1.21966989126650 -- first zero of J1, over pi: diameter of a disk, lambda / NA

-- Samples of a table of light along the finest wave that it has (half a wavelength over NA).
local FINE <const> = 8

-- The lens of an option that is a wavelength; `field`: "vector" or "scalar".
local function lens_of(options, field, name)
    return focus[field] {na = options.na, index = options.index,
        wavelength = options[name or "wavelength"]}
end

-- Refuses apertures that no immersion has.
local function check(what, options)
    if options.na > options.index then
        fail("argument", what, "na", "na %g must not be above the refractive index %g: set index "
            .. "to that of the immersion", options.na, options.index)
    end
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

-- The light of a lens on the pixels of a camera, which see the mean over their areas.
local function camera(lens, area)
    return {lens = lens, even = lens.even, area = area, power = lens.power,
        spacing = lens.wavelength / lens.na / (2 * FINE), planes = function(radii, heights)
            return focus.planes(lens, radii, heights)
        end}
end

-- Sources of light (psf.sampling) by model.
local sources = {}
instruments.sources = sources

local function made(name, size, options)
    local what = "psf." .. name
    sampling.check_size(what, size)
    return sampling.array(what, size, options, sources[name](options))
end

function sources.born_wolf(options)
    if options.na >= options.index then
        fail("argument", "psf.born_wolf", "na", "na %g must lie below the refractive index %g",
            options.na, options.index)
    end
    return camera(lens_of(options, "scalar"), options.area)
end

--- Widefield PSF of Born and Wolf (Principles of Optics, 8.8), the mean over each pixel about the
-- middle, sum 1, f32 (z, y, x): h(r, z) = |integral over rho from 0 to 1 of J0(k NA r rho) exp(-i k
-- NA^2 z rho^2 / (2 n)) rho drho|^2, k = 2 pi / wavelength. size {nz, ny, nx}; options na,
-- wavelength (in vacuum), index (n, default 1.515), pixel, step (lateral and axial distance of
-- samples), all lengths in one unit; area, device. It is scalar and paraxial: where NA / n is above
-- 0.7 it is much longer along z than the focus of a lens (psf.richards_wolf). Needs z symmetric
-- about focus: no aberration.
function instruments.born_wolf(size, options)
    return made("born_wolf", size, options)
end

function sources.gibson_lanni(options)
    local what = "psf.gibson_lanni"
    local n, ng = options.index, options.index_glass
    local n0, ns, ng0 = options.index_design or n, options.index_sample or n,
        options.index_glass_design or ng
    local depth, t0, tg = options.depth, options.working_distance or 0, options.glass or 0
    local tg0 = options.glass_design or tg
    if n0 ~= n and not options.working_distance then
        fail("argument", what, "working_distance",
            "working_distance is needed where index and index_design differ")
    elseif (ng0 ~= ng or options.glass_design) and not options.glass then
        fail("argument", what, "glass",
            "glass, its thickness, is needed where the coverslip is not that of the design")
    end
    local limit = 1
    for _, index in ipairs {n, n0, ns, ng, ng0} do
        limit = math.min(limit, index / options.na)
    end
    local function along(index, rho)
        return math.sqrt(math.max(0, index * index - (options.na * rho) ^ 2))
    end
    return camera(focus.layers({na = options.na, wavelength = options.wavelength}, limit,
        function(rho, z)
            return depth * along(ns, rho) + (t0 + z - depth * n / ns) * along(n, rho)
                - t0 * along(n0, rho) + tg * along(ng, rho) - tg0 * along(ng0, rho)
        end), options.area)
end

--- Widefield PSF through layers of different refractive index (S. F. Gibson, F. Lanni, J. Opt. Soc.
-- Am. A 9, 154, 1992), the mean over each pixel about the middle, sum 1, f32 (z, y, x): h(r, z) =
-- |integral over rho from 0 to 1 of J0(k NA r rho) exp(i k W(rho, z)) rho drho|^2, with the
-- difference of optical paths W = d c(ns) + t c(n) - t0 c(n0) + tg c(ng) - tg0 c(ng0), c(n) =
-- sqrt(n^2 - NA^2 rho^2): d depth of the emitter under the coverslip, t = t0 + z - d n / ns the
-- immersion, so that the middle plane is the paraxial focus on the emitter. z grows with the
-- immersion's thickness. Light that cannot pass a layer (NA rho above its index) is left out.
--
-- size {nz, ny, nx}; options na, wavelength (in vacuum), pixel, step as for born_wolf; index (n:
-- immersion, default 1.515), index_design (n0, default index), working_distance (t0; needed where n
-- and n0 differ), index_sample (ns, default index), depth (d, default 0), index_glass (ng, default
-- 1.515), index_glass_design (ng0, default ng), glass (tg) and glass_design (tg0, default tg):
-- thickness of the coverslip, needed where it is not what the objective was made for. All lengths
-- in one unit; area, device.
function instruments.gibson_lanni(size, options)
    return made("gibson_lanni", size, options)
end

function sources.richards_wolf(options)
    check("psf.richards_wolf", options)
    local source = camera(lens_of(options, "vector"), options.area)
    source.turn = ({x = 1, y = -1})[options.polarization]
    return source
end

--- Widefield PSF of a lens of any aperture: the vectorial focus of an aplanatic lens. From B.
-- Richards, E. Wolf, Proc. R. Soc. A 253, 358, 1959; the mean over each pixel about the middle, sum
-- 1, f32 (z, y, x). With I0, I1, I2 = integral over theta from 0 to asin(NA / n) of sqrt(cos theta)
-- sin theta {(1 + cos theta) J0, sin theta J1, (1 - cos theta) J2}(k n r sin theta) exp(i k n z cos
-- theta) dtheta, k = 2 pi / wavelength, h = |I0|^2 + 2 |I1|^2 + |I2|^2: what emitters that turn
-- freely are seen with, and what unpolarized or circular light illuminates. With polarization "x"
-- or "y" the focus of linearly polarized light: +- cos(2 phi) (2 Re(I0 conj I2) + 2 |I1|^2) beside
-- it. size {nz, ny, nx}; all lengths in one unit. For small apertures it is that of Born and Wolf.
function instruments.richards_wolf(size, options)
    return made("richards_wolf", size, options)
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

-- The light of a lens that comes through a pinhole whose image in the sample has the radius a.
local function through_pinhole(lens, radii, heights, a)
    if a == 0 then
        return (focus.planes(lens, radii, heights))
    end
    local spacing = lens.wavelength / lens.na / 64
    local table_radii, planes, weights = {}, {}, {}
    for m = 1, math.ceil((radii[#radii] + a) / spacing) + 3 do
        table_radii[m] = (m - 1) * spacing
    end
    local rule = setmetatable({}, {__index = function(self, count)
        self[count] = table.pack(focus.gauss(count, math.pi))
        return self[count]
    end})
    for i, r in ipairs(radii) do
        weights[i] = disk_weights(r, a, spacing, rule)
    end
    for j, plane in ipairs((focus.planes(lens, table_radii, heights))) do
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

function sources.confocal(options)
    check("psf.confocal", options)
    local excitation = lens_of(options, options.field, "excitation")
    local emission = lens_of(options, options.field)
    local a = options.pinhole * AIRY / 2 * options.wavelength / options.na
    local shorter = excitation.wavelength < emission.wavelength and excitation or emission
    return {lens = shorter, even = true, more = a,
        spacing = shorter.wavelength / shorter.na / (4 * FINE),
        planes = function(radii, heights)
            local detected = through_pinhole(emission, radii, heights, a)
            return change((focus.planes(excitation, radii, heights)), function(value, j, i)
                return value * detected[j][i]
            end)
        end}
end

--- Confocal PSF: excitation times detection through the pinhole. h(r, z) = h_ex(r, z) (h_em
-- convolved with the pinhole)(r, z) (T. Wilson, C. J. R. Sheppard, Theory and Practice of Scanning
-- Optical Microscopy, 1984), both the focus of the same lens: at `excitation` and at `wavelength`,
-- the emission. field "vector": that of psf.richards_wolf; "scalar": that of psf.born_wolf.
-- `pinhole` is the pinhole's diameter in Airy units, 1.22 wavelength / na in the sample; 0 is a
-- point, and a wide one leaves the excitation alone. A scanned spot is at the middle of a pixel,
-- and has no area of a camera's pixel: sampled there, about the middle, sum 1, f32 (z, y, x). size
-- {nz, ny, nx}; all lengths in one unit.
function instruments.confocal(size, options)
    return made("confocal", size, options)
end

function sources.two_photon(options)
    check("psf.two_photon", options)
    local lens = lens_of(options, options.field, "excitation")
    return {lens = lens, even = true, more = 0,
        spacing = lens.wavelength / lens.na / (6 * FINE),
        planes = function(radii, heights)
            return change((focus.planes(lens, radii, heights)), function(value)
                return value * value
            end)
        end}
end

--- Two-photon PSF: the square of the excitation's intensity, all emitted light being collected. See
-- W. Denk, J. H. Strickler, W. W. Webb, Science 248, 73, 1990. `excitation` is the laser's
-- wavelength in vacuum; field "vector": the focus of psf.richards_wolf; "scalar": that of
-- psf.born_wolf. Sampled at the middle of pixels, where the scanned spot is, about the middle, sum
-- 1, f32 (z, y, x). size {nz, ny, nx}; all lengths in one unit.
function instruments.two_photon(size, options)
    return made("two_photon", size, options)
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

function sources.light_sheet(options)
    check("psf.light_sheet", options)
    local sheet, lens = instruments.sheet_of(options), lens_of(options, options.field)
    local source = camera(lens, options.area)
    function source.part(z)
        return 2 ^ -((2 * z / sheet) ^ 2)
    end
    function source.planes(radii, heights)
        return change((focus.planes(lens, radii, heights)), function(value, j)
            return value * source.part(heights[j])
        end)
    end
    return source
end

--- Light-sheet PSF: the widefield PSF of the detection times the sheet's profile along z. That is
-- 2^-(2 z / sheet)^2, a Gaussian in the detection's focal plane (K. Greger, J. Swoger, E. H. K.
-- Stelzer, Rev. Sci. Instrum. 78, 023705, 2007). `sheet` is its full width at half maximum; or
-- sheet_na and excitation give that of a Gaussian beam (w0 = excitation / (pi sheet_na), 1 / e^2).
-- field "vector": the detection of psf.richards_wolf; "scalar": that of psf.born_wolf. The mean
-- over each pixel about the middle, sum 1, f32 (z, y, x). size {nz, ny, nx}; all lengths in one
-- unit.
function instruments.light_sheet(size, options)
    return made("light_sheet", size, options)
end

return instruments
