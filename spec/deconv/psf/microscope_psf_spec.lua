-- Confocal, two-photon, light-sheet and vectorial PSFs against closed forms, published widths,
-- products of simpler ones, and quadrature by SciPy.
local mb = require "moonbeam"
local bessel = require "moonbeam.psf.bessel"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"
local psf = mb.psf

local function with(base, changes)
    local copy = {}
    for _, list in ipairs {base, changes or {}} do
        for key, value in pairs(list) do
            copy[key] = value
        end
    end
    return copy
end

-- Full width at half maximum of a line of samples about its middle, in samples.
local function width(array)
    local owned <close> = array
    local flat <close> = owned:reshape {owned.elements}
    local values = flat:to_table()
    local middle = (#values + 1) // 2
    local i = middle
    while values[i] > values[middle] / 2 do
        i = i + 1
    end
    return 2 * (i - middle - (values[middle] / 2 - values[i]) / (values[i - 1] - values[i]))
end

local function lateral(make, options, pixel)
    return pixel * width(make({1, 1, 401}, with(options, {pixel = pixel, step = 1})))
end

local function axial(make, options, step)
    return step * width(make({401, 1, 1}, with(options, {pixel = 1, step = step})))
end

-- The product of two arrays, sum 1.
local function product(a, b)
    local first <close> = a
    local second <close> = b
    local both <close> = first * second
    return psf.normalize(both)
end

-- The value beside the middle by the one in the middle.
local function ratio(h, z, y, x)
    local n = h.shape
    local cz, cy, cx = (n[1] + 1) // 2, (n[2] + 1) // 2, (n[3] + 1) // 2
    return h:item(cz + z, cy + y, cx + x) / h:item(cz, cy, cx)
end

local WATER <const> = {na = 1.2, wavelength = 520, index = 1.33, pixel = 70, step = 180}
local SIZE <const> = {9, 17, 15}

describe("Richards and Wolf's PSF", function()
    it("is the Airy pattern and Born and Wolf's PSF for small apertures", function()
        local small = {na = 0.1, wavelength = 500, index = 1, pixel = 400, step = 8000,
            area = false}
        local got <close> = psf.richards_wolf({11, 21, 21}, small)
        local want <close> = psf.born_wolf({11, 21, 21}, small)
        assert.near(1, got:sum(), 1e-5)
        helper.assert_close(want, got, 5e-3)
        for x = 1, 10 do
            local v = 2 * math.pi / 500 * 0.1 * 400 * x
            local _, j1 = bessel.three(v)
            assert.near((2 * j1 / v) ^ 2, ratio(got, 0, 0, x), 2e-3)
        end
        -- It tends to it: half the aperture in the same optical units leaves a quarter of the rest.
        local function off(na)
            local optics = with(small, {na = na, pixel = 40 / na, step = 80 / na ^ 2})
            local a <close> = psf.richards_wolf({11, 21, 21}, optics)
            local b <close> = psf.born_wolf({11, 21, 21}, optics)
            return mb.metrics.rmse(a, b)
        end
        assert.near(4, off(0.4) / off(0.2), 0.6)
    end)

    it("is the integral that it says, by SciPy's quadrature and Bessel functions", function()
        oracle.needs "scipy"
        local optics = {na = 1.4, wavelength = 520, index = 1.515, pixel = 90, step = 350,
            area = false}
        local size = {7, 9, 12}
        local wanted, wanted_along = oracle.run("scipy", [[
from scipy.integrate import quad
from scipy.special import jv
na, lam, n, pixel, step = 1.4, 520.0, 1.515, 90.0, 350.0
nz, ny, nx = 7, 9, 12
k, alpha = 2 * np.pi * n / lam, np.arcsin(na / n)
cache = {}
def field(z, r):
    if (z, r) not in cache:
        out = []
        for order, part in ((0, lambda t: 1 + np.cos(t)), (1, np.sin), (2, lambda t: 1 - np.cos(t))):
            def f(t):
                return (np.sqrt(np.cos(t)) * np.sin(t) * part(t) * jv(order, k * r * np.sin(t))
                        * np.exp(1j * k * z * np.cos(t)))
            out.append(quad(lambda t: f(t).real, 0, alpha, limit=200, epsabs=1e-11)[0]
                       + 1j * quad(lambda t: f(t).imag, 0, alpha, limit=200, epsabs=1e-11)[0])
        cache[z, r] = out
    return cache[z, r]
none, along = np.zeros((nz, ny, nx)), np.zeros((nz, ny, nx))
for iz in range(nz):
    for iy in range(ny):
        for ix in range(nx):
            z, y, x = (iz - (nz - 1) // 2) * step, (iy - (ny - 1) // 2), (ix - (nx - 1) // 2)
            a, b, c = field(abs(z), pixel * np.sqrt(y * y + x * x))
            phi = np.arctan2(y, x)
            none[iz, iy, ix] = abs(a) ** 2 + 2 * abs(b) ** 2 + abs(c) ** 2
            # The three components of the field, with the cosines of Richards and Wolf.
            ex, ey, ez = a + c * np.cos(2 * phi), c * np.sin(2 * phi), -2j * b * np.cos(phi)
            along[iz, iy, ix] = abs(ex) ** 2 + abs(ey) ** 2 + abs(ez) ** 2
none /= none.sum()
along /= along.sum()
]], {}, {"none", "along"})
        local none <close> = wanted
        local along <close> = wanted_along
        local got <close> = psf.richards_wolf(size, optics)
        helper.assert_close(none, got, 1e-5)
        local x <close> = psf.richards_wolf(size, with(optics, {polarization = "x"}))
        helper.assert_close(along, x, 1e-5)
    end)

    it("is longer along the polarization, and turns with it", function()
        local optics = {na = 1.2, wavelength = 520, index = 1.33, pixel = 50, step = 100}
        local x <close> = psf.richards_wolf({3, 15, 15}, with(optics, {polarization = "x"}))
        local y <close> = psf.richards_wolf({3, 15, 15}, with(optics, {polarization = "y"}))
        local both <close> = psf.richards_wolf({3, 15, 15}, optics)
        assert.is_true(ratio(x, 0, 0, 4) > 1.2 * ratio(x, 0, 4, 0))
        assert.near(ratio(x, 0, 0, 4), ratio(y, 0, 4, 0), 1e-6)
        assert.near((ratio(x, 0, 0, 4) + ratio(x, 0, 4, 0)) / 2, ratio(both, 0, 0, 4), 1e-6)
    end)

    it("knows its Bessel functions", function()
        oracle.needs "scipy"
        local xs = {}
        for i = 0, 400 do
            xs[i + 1] = i * 0.17
        end
        local x <close> = mb.array(xs, {dtype = "f64"})
        local all <close> = oracle.run("scipy",
            "from scipy.special import jv\nall = [jv(0, x), jv(1, x), jv(2, x)]", {x = x}, {"all"})
        for i, value in ipairs(xs) do
            local zero, one, two = bessel.three(value)
            assert.near(all:item(1, i), zero, 3e-7)
            assert.near(all:item(2, i), one, 3e-7)
            assert.near(all:item(3, i), two, 3e-7)
        end
    end)
end)

describe("PSFs of instruments", function()
    local widefield = {na = 0.2, wavelength = 500, index = 1.33}

    it("have the widths of the books: widefield", function()
        -- (2 J1(v) / v)^2 = 1 / 2 at v = 1.61634, sinc^2(u / 4) = 1 / 2 at u / 4 = 1.39156.
        for _, make in ipairs {psf.born_wolf, psf.richards_wolf} do
            assert.near(1.61634 / math.pi * 500 / 0.2, lateral(make, widefield, 10), 10)
            assert.near(1.39156 * 4 / math.pi * 1.33 * 500 / 0.2 ^ 2, axial(make, widefield, 400),
                400)
        end
    end)

    -- Wilhelm et al., Confocal Laser Scanning Microscopy, Zeiss: below a quarter of an Airy unit
    -- 0.37 lambda / NA and 0.64 lambda / (n - sqrt(n^2 - NA^2)); above one 0.51 and 0.88 of the
    -- excitation.
    it("have the widths of the books: confocal", function()
        local optics = {na = 0.2, wavelength = 500, excitation = 500, index = 1.33}
        local deep = 1.33 - math.sqrt(1.33 ^ 2 - 0.2 ^ 2)
        for _, field in ipairs {"scalar", "vector"} do
            local point = with(optics, {pinhole = 0, field = field})
            assert.near(0.37 * 500 / 0.2, lateral(psf.confocal, point, 5), 0.01 * 500 / 0.2)
            assert.near(0.64 * 500 / deep, axial(psf.confocal, point, 400), 0.01 * 500 / deep)
            local wide = with(optics, {pinhole = 8, field = field})
            assert.near(0.51 * 500 / 0.2, lateral(psf.confocal, wide, 5), 0.01 * 500 / 0.2)
            assert.near(0.88 * 500 / deep, axial(psf.confocal, wide, 400), 0.03 * 500 / deep)
        end
    end)

    -- W. R. Zipfel, R. M. Williams, W. W. Webb, Nat. Biotechnol. 21, 1369, 2003: 1 / e widths of
    -- Gaussians that fit the squared vectorial focus.
    it("have the widths of the books: two-photon", function()
        for _, case in ipairs {{0.3, 1.33}, {0.6, 1.33}, {0.9, 1.33}, {1.2, 1.33}, {1.3, 1.515}} do
            local na, index = case[1], case[2]
            local optics = {na = na, excitation = 900, index = index}
            local across = na <= 0.7 and 0.32 * 900 / (math.sqrt(2) * na)
                or 0.325 * 900 / (math.sqrt(2) * na ^ 0.91)
            local along = 0.532 * 900 / math.sqrt(2) / (index - math.sqrt(index ^ 2 - na ^ 2))
            local full = 2 * math.sqrt(math.log(2))
            assert.near(1, lateral(psf.two_photon, optics, 10 / na) / (full * across), 0.03)
            assert.near(1, axial(psf.two_photon, optics, along / 30) / (full * along), 0.05)
        end
    end)

    it("confocal: a point pinhole is excitation times detection, a wide one excitation", function()
        for _, case in ipairs {{"vector", psf.richards_wolf}, {"scalar", psf.born_wolf}} do
            local field, make = case[1], case[2]
            local optics = with(WATER, {excitation = 488, field = field})
            local point <close> = psf.confocal(SIZE, with(optics, {pinhole = 0}))
            local want <close> = product(make(SIZE, with(WATER, {area = false})),
                make(SIZE, with(WATER, {wavelength = 488, area = false})))
            helper.assert_close(want, point, 2e-6)
            assert.near(1, point:sum(), 1e-5)
            local tiny <close> = psf.confocal(SIZE, with(optics, {pinhole = 0.01}))
            helper.assert_close(want, tiny, 1e-3)
            local one <close> = psf.confocal(SIZE, optics)
            assert.is_true(one:max() < point:max())
        end
        local flat = {na = 1.2, wavelength = 520, excitation = 488, index = 1.33, pixel = 70,
            step = 180, pinhole = 20, field = "scalar"}
        local open <close> = psf.confocal({1, 17, 15}, flat)
        local light <close> = psf.born_wolf({1, 17, 15}, with(WATER, {wavelength = 488,
            area = false}))
        helper.assert_close(light, open, 0.01)
    end)

    it("confocal: the pinhole is a mean over its disk, by SciPy's quadrature", function()
        oracle.needs "scipy"
        local want <close> = oracle.run("scipy", [[
from scipy.integrate import dblquad, quad
from scipy.special import jv, jn_zeros
na, em, ex, n, pixel, step = 0.8, 520.0, 488.0, 1.33, 110.0, 400.0
a = 1.3 * jn_zeros(1, 1)[0] / np.pi * em / na / 2
def born_wolf(r, z, lam):
    k = 2 * np.pi / lam
    f = lambda p: 2 * p * jv(0, k * na * r * p)
    g = k * na ** 2 * z / (2 * n)
    return (quad(lambda p: f(p) * np.cos(g * p * p), 0, 1)[0] ** 2
            + quad(lambda p: f(p) * np.sin(g * p * p), 0, 1)[0] ** 2)
from scipy.interpolate import CubicSpline
want = np.zeros((3, 1, 9))
for iz in range(3):
    z = (iz - 1) * step
    grid = np.linspace(0, 5 * pixel + a, 400)
    table = CubicSpline(grid, [born_wolf(r, z, em) for r in grid])
    for ix in range(9):
        x = (ix - 4) * pixel
        mean = dblquad(lambda t, s: table(np.sqrt((x + s * np.cos(t)) ** 2 + (s * np.sin(t)) ** 2))
                       * s, 0, a, 0, np.pi, epsabs=1e-4, epsrel=1e-6)[0]
        want[iz, 0, ix] = born_wolf(abs(x), z, ex) * mean
want /= want.sum()
]], {}, {"want"})
        local got <close> = psf.confocal({3, 1, 9}, {na = 0.8, wavelength = 520, excitation = 488,
            index = 1.33, pixel = 110, step = 400, pinhole = 1.3, field = "scalar"})
        helper.assert_close(want, got, 1e-4)
    end)

    it("two-photon: the square of the excitation", function()
        for _, case in ipairs {{"vector", psf.richards_wolf}, {"scalar", psf.born_wolf}} do
            local laser = {na = 1.2, index = 1.33, pixel = 70, step = 180}
            local light = with(laser, {wavelength = 920, area = false})
            local want <close> = product(case[2](SIZE, light), case[2](SIZE, light))
            local got <close> = psf.two_photon(SIZE, with(laser, {excitation = 920,
                field = case[1]}))
            helper.assert_close(want, got, 5e-6) -- both are interpolated
            assert.near(1, got:sum(), 1e-5)
        end
    end)

    it("light-sheet: the detection under a Gaussian; a thick sheet is widefield", function()
        for _, case in ipairs {{"vector", psf.richards_wolf}, {"scalar", psf.born_wolf}} do
            local profile = {}
            for z = -4, 4 do
                profile[z + 5] = {{0.5 ^ ((2 * z * 180 / 900) ^ 2)}}
            end
            local sheet <close> = mb.array(profile)
            local wide <close> = case[2](SIZE, WATER)
            local cut <close> = wide * sheet
            local want <close> = psf.normalize(cut)
            local got <close> = psf.light_sheet(SIZE, with(WATER, {sheet = 900, field = case[1]}))
            helper.assert_close(want, got, 2e-6)
            local thick <close> = psf.light_sheet(SIZE, with(WATER, {sheet = 1e7,
                field = case[1]}))
            helper.assert_close(wide, thick, 2e-6)
            -- w0 = lambda / (pi NA); half of the maximum at w0 sqrt(log(2) / 2) on either side.
            local beam <close> = psf.light_sheet(SIZE, with(WATER, {sheet_na = 0.1,
                excitation = 488, field = case[1]}))
            local same <close> = psf.light_sheet(SIZE, with(WATER, {field = case[1],
                sheet = 2 * 488 / (math.pi * 0.1) * math.sqrt(math.log(2) / 2)}))
            helper.assert_close(same, beam, 1e-6)
        end
    end)

    it("sit on the middle of any size, are not negative, and refuse what no lens has", function()
        local makes = {richards_wolf = {}, confocal = {excitation = 488},
            two_photon = {excitation = 920}, light_sheet = {sheet = 1500}}
        for name, more in pairs(makes) do
            local options = with(WATER, more)
            options.wavelength = name ~= "two_photon" and options.wavelength or nil
            for _, size in ipairs {{4, 6, 7}, {1, 1, 1}, {5, 1, 8}} do
                local h <close> = psf[name](size, options)
                assert.same(size, h.shape)
                assert.near(1, h:sum(), 1e-5)
                assert.is_true(h:min() >= 0)
                assert.same(psf.center(h), {table.unpack(psf.center(h, "maximum"))})
            end
            local function refuses(pattern, changes, size)
                local message = (helper.failure(psf[name], size or {3, 5, 5},
                    with(options, changes)))
                assert.matches(pattern, message, 1)
            end
            refuses("na 1.4 must not be above the refractive index 1.33: set index", {na = 1.4})
            refuses("in one unit", {pixel = 1e9})
            refuses("in one unit", {step = 1e30})
            refuses("in one unit", {step = 1e8})
            refuses("must be {nz, ny, nx}", {}, {5, 5})
            refuses("must be {nz, ny, nx}", {}, {5, 5, 0})
            refuses("must be {nz, ny, nx}", {}, {5, 5, 1.5})
            refuses("a model of 3 x 100000 x 100000", {}, {3, 100000, 100000})
            refuses("na is 0; it must be a number above 0", {na = 0})
            local faint <close> = psf[name]({3, 5, 5}, with(options, {na = 1e-9}))
            assert.near(1, faint:sum(), 1e-5)
            local function run()
                psf[name]({3, 5, 5}, options):release()
            end
            assert.equal(mb.dry_run(run), (mb.ledger(run)))
        end
        local function wants(name, pattern, changes)
            assert.matches(pattern, (helper.failure(psf[name], {3, 5, 5}, with(WATER, changes))))
        end
        wants("confocal", "excitation", {})
        wants("confocal", "pinhole", {excitation = 488, pinhole = -1})
        wants("confocal", "pinhole", {excitation = 488, pinhole = 1e6})
        wants("confocal", "it must be vector or scalar", {excitation = 488, field = "paraxial"})
        wants("light_sheet", "how thick the sheet is, is missing", {})
        wants("light_sheet", "give one of them", {sheet = 1, sheet_na = 0.1})
        wants("light_sheet", "excitation, the wavelength of the sheet", {sheet_na = 0.1})
        wants("light_sheet", "sheet_na 1.4 must not be above", {sheet_na = 1.4, excitation = 488})
        wants("richards_wolf", "none, x or y", {polarization = "z"})
    end)
end)
