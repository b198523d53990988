-- Stripes by wavelets: against transforms of the whole sinogram with PyWavelets and NumPy, against
-- algotom, against a Haar transform by hand, and by what must happen to stripes, constants and
-- sums.

local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- One level of the Haar transform, by hand, where only the mean over the angles is damped:
-- neighbors of a pair of columns get the mean over pairs of rows of their difference back.
local function haar(sino)
    local result, angles, n = {}, #sino, #sino[1]
    for a = 1, angles do
        result[a] = {table.unpack(sino[a])}
    end
    for c = 1, n, 2 do
        local difference = 0
        for a = 1, angles do
            difference = difference + (sino[a][c] - sino[a][c + 1]) / 2
        end
        for a = 1, angles do
            result[a][c] = result[a][c] - difference / angles
            result[a][c + 1] = result[a][c + 1] + difference / angles
        end
    end
    return result
end

-- The whole transform, in double precision.
local MUNCH = [[
import warnings, pywt
warnings.filterwarnings('ignore')

def munch(x, wavelet, sigma, level, boundary, padding, origin):
    x = x.astype(np.float64)
    na, nc = x.shape
    b = a = l = r = 0
    if padding == 'angles':
        b = (na + na // 8 - na) // 2
        a = na // 8 - b
        x = np.pad(x, ((b, a), (0, 0)))
    elif padding == 'columns':
        l = r = nc // 2
        r += (nc + l + r) % 2
        x = np.pad(x, ((0, 0), (l, r)), mode='edge')
    elif padding == 'both':
        b = a = l = r = min(150, int(0.1 * min(na, nc)))
        x = np.pad(np.pad(x, ((b, a), (0, 0)), mode='mean'), ((0, 0), (l, r)), mode='edge')
    mode = {'symmetric': 'symmetric', 'periodic': 'periodization'}[boundary]
    bands = pywt.wavedec2(x, wavelet, level=level, mode=mode)
    for i in range(1, level + 1):
        h, v, d = bands[i]
        f = np.fft.fftfreq(v.shape[0]) * v.shape[0] + (origin if v.shape[0] % 2 == 0 else 0)
        damp = -np.expm1(-f ** 2 / (2 * sigma ** 2))
        bands[i] = h, np.fft.ifft(np.fft.fft(v, axis=0) * damp[:, None], axis=0).real, d
    return pywt.waverec2(bands, wavelet, mode=mode)[b:b + na, l:l + nc]
]]

local CASES = {
    {{2, 37, 41}, {wavelet = "db5", sigma = 2, level = 3}},
    {{1, 90, 80}, {wavelet = "sym16", sigma = 1, level = 7, padding = "angles", origin = 0.5}},
    {{1, 91, 81}, {wavelet = "db5", sigma = 2, level = 7, padding = "angles", origin = 0.5}},
    {{1, 33, 150}, {wavelet = "db15", sigma = 1, level = 10, boundary = "periodic",
        padding = "columns"}},
    {{1, 64, 50}, {wavelet = "db9", sigma = 30, level = 2, padding = "both", origin = 1}},
    {{1, 2, 3}, {wavelet = "db1", level = 2, boundary = "periodic"}},
    {{2, 1, 50}, {wavelet = "db3", sigma = 1, level = 4, padding = "columns"}},
    {{2, 50, 1}, {wavelet = "sym4", sigma = 1, level = 4, boundary = "periodic", origin = 1}},
    {{1, 600, 20}, {wavelet = "sym20", sigma = 3, level = 4, padding = "both", origin = 0.5}},
}

local function stripes_of(shape, place, height, device)
    local rows = {}
    for a = 1, shape[1] do
        rows[a] = {}
        for c = 1, shape[2] do
            rows[a][c] = 1 + 0.5 * math.sin(3 * c / shape[2]) * math.cos(6 * a / shape[1])
                + (c >= place[1] and c <= place[2] and height or 0)
        end
    end
    return mb.array(rows, {device = device})
end

describe("stripes_wavelet", function()
    helper.each_device(function(device, it)
        it("is the transform of the whole, on " .. device, function()
            oracle.needs "pywt"
            for _, case in ipairs(CASES) do
                local shape, options = case[1], case[2]
                local a <close> = mb.random(shape, {seed = 3, device = device})
                local host <close> = a:to "host"
                local want <close> = oracle.run("pywt", MUNCH .. ([[
want = np.stack([munch(v, %q, %g, %d, %q, %q, %g) for v in a])]]):format(options.wavelet,
                    options.sigma or 2, options.level, options.boundary or "symmetric",
                    options.padding or "none", options.origin or 0), {a = host}, {"want"})
                local result <close> = mb.stripes_wavelet(a, options)
                helper.assert_close(want, result, 2e-6)
            end
        end)

        it("is Haar's transform by hand, on " .. device, function()
            local a <close> = mb.random({2, 10, 14}, {seed = 4, device = device})
            local want = {}
            for i, sino in ipairs(a:to_table()) do
                want[i] = haar(sino)
            end
            local result <close> = mb.stripes_wavelet(a, {wavelet = "db1", level = 1,
                sigma = 1e-3})
            helper.assert_close(want, result, 1e-6)
        end)

        it("takes one sinogram, and permuted projections in place, on " .. device, function()
            local frames <close> = mb.random({30, 5, 33}, {seed = 5, device = device})
            local view <close> = frames:permute(2, 1, 3)
            local dense <close> = view:copy()
            local want <close> = mb.stripes_wavelet(dense, {level = 4})
            local third <close> = dense:view(3)
            local own <close> = mb.stripes_wavelet(third, {level = 4})
            local part <close> = want:view(3)
            assert.same(part:to_table(), own:to_table())
            mb.stripes_wavelet(view, {level = 4, out = view})
            assert.same(want:to_table(), view:to_table())
        end)

        it("keeps constants, and is linear, on " .. device, function()
            local same <close> = mb.zeros({1, 45, 70}, {device = device})
            same:fill(7)
            local kept <close> = mb.stripes_wavelet(same, {wavelet = "db7", level = 6,
                padding = "both"})
            helper.assert_close(same, kept, 2e-6)
            local a <close> = mb.random({1, 20, 50}, {seed = 6, device = device})
            local b <close> = mb.random({1, 20, 50}, {seed = 7, device = device})
            local sum <close> = a + b
            local both <close> = mb.stripes_wavelet(sum)
            local ra <close> = mb.stripes_wavelet(a)
            local rb <close> = mb.stripes_wavelet(b)
            local want <close> = ra + rb
            helper.assert_close(want, both, 3e-6)
        end)

        it("removes narrow and wide stripes and leaves the object, on " .. device, function()
            local shape = {120, 160}
            local clean <close> = stripes_of(shape, {1, 0}, 0, device)
            local kept <close> = mb.stripes_wavelet(clean, {sigma = 1, level = 5})
            assert.is_true(helper.difference(clean, kept) < 0.05)
            for _, place in ipairs {{80, 80}, {60, 66}} do
                local striped <close> = stripes_of(shape, place, 0.4, device)
                local result <close> = mb.stripes_wavelet(striped, {sigma = 1, level = 5})
                -- what is left of the stripe at two angles
                for _, a in ipairs {1, 60} do
                    for c = place[1], place[2] do
                        local left = result:item(a, c) - kept:item(a, c)
                        assert.is_true(math.abs(left) < 0.1, ("%g at %d"):format(left, c))
                    end
                end
            end
        end)

        it("keeps a NaN to its sinogram, on " .. device, function()
            local a <close> = mb.random({3, 16, 19}, {seed = 8, device = device})
            local want <close> = mb.stripes_wavelet(a)
            local rows = a:to_table()
            rows[2][3][4] = 0 / 0
            local b <close> = mb.array(rows, {device = device})
            local result <close> = mb.stripes_wavelet(b)
            for _, i in ipairs {1, 3} do
                local one <close> = want:view(i)
                local other <close> = result:view(i)
                assert.same(one:to_table(), other:to_table())
            end
            local value = result:item(2, 3, 4)
            assert.is_true(value ~= value)
        end)
    end)

    it("has the filters of PyWavelets", function()
        oracle.needs "pywt"
        -- The response to an impulse is a sum of products of all coefficients of both filters.
        local names = {}
        for order = 1, 20 do
            names[#names + 1] = "db" .. order
            names[#names + 1] = order > 1 and "sym" .. order or nil
        end
        local a <close> = mb.random({1, 40, 60}, {seed = 9, device = "host"})
        local want <close> = oracle.run("pywt", MUNCH .. ([[
want = np.stack([munch(a[0], name, 2, 2, 'periodic', 'none', 0) for name in '%s'.split()])]])
            :format(table.concat(names, " ")), {a = a}, {"want"})
        for i, name in ipairs(names) do
            local result <close> = mb.stripes_wavelet(a, {wavelet = name, level = 2,
                boundary = "periodic"})
            local one <close> = want:view({i, i})
            assert.is_true(helper.difference(one, result) < 2e-6, name)
        end
    end)

    it("is algotom's", function()
        oracle.needs "algotom"
        local a <close> = mb.random({1, 100, 131}, {seed = 10, device = "host"})
        local want <close> = oracle.run("algotom", [[
from algotom.prep.removal import remove_stripe_based_wavelet_fft
want = remove_stripe_based_wavelet_fft(a[0], level=2)[None]
]], {a = a}, {"want"})
        local result <close> = mb.stripes_wavelet(a, {wavelet = "db9", sigma = 1, level = 2,
            padding = "both", origin = 1})
        helper.assert_close(want, result, 2e-6)
    end)

    it("refuses what cannot be", function()
        local a <close> = mb.zeros({2, 3, 4}, {device = "host"})
        for option, value in pairs {wavelet = "db21", level = 21, sigma = 0, origin = 2,
            padding = "edge"} do
            local text = helper.failure(mb.stripes_wavelet, a, {[option] = value})
            assert.is_truthy(text:find(option, 1, true), text)
        end
    end)
end)
