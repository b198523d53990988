-- Stripes by the filtered mean: against Fourier transforms with NumPy, by hand without a filter,
-- and by what must happen to stripes, constants and sums.

local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

local MEAN = [[
def smooth(n):
    for p in (2, 3, 5, 7):
        while n % p == 0:
            n //= p
    return n == 1

def filtered(v, low, high):
    n = 2 * len(v)
    while not smooth(n):
        n += 1
    left = (n - len(v)) // 2
    q = np.fft.rfftfreq(n)
    band = np.exp(-2 * (np.pi * low * q) ** 2)
    if high > 0:
        band = band * (1 - np.exp(-2 * (np.pi * high * q) ** 2))
    padded = np.pad(v, (left, n - len(v) - left), mode='edge')
    return np.fft.irfft(np.fft.rfft(padded) * band, n)[left:left + len(v)]
]]

local CASES = {{{2, 11, 50}, 0, 30}, {{2, 300, 37}, 0.7, 5}, {{1, 1, 64}, 3, 0},
    {{1, 5, 600}, 2, 40}, {{1, 5, 700}, 0, 0.3}, {{1, 4, 1}, 0, 30}, {{1, 4, 2}, 1, 1}}

describe("stripes_mean", function()
    helper.each_device(function(device, it)
        it("is the filter in Fourier space, on " .. device, function()
            oracle.needs "numpy"
            for i, case in ipairs(CASES) do
                local a <close> = mb.random(case[1], {seed = 3, low = 1, high = 2,
                    device = device})
                local host <close> = a:to "host"
                local want, quotient = oracle.run("numpy", MEAN .. ([[
x = a.astype(np.float64)
s = np.stack([filtered(v, %g, %g) for v in x.mean(axis=1)])[:, None]
minus, by = x - s, x / np.where(%g > 0, 1, s)
]]):format(case[2], case[3], case[3]), {a = host}, {"minus", "by"})
                local result <close> = mb.stripes_mean(a, {low_sigma = case[2],
                    high_sigma = case[3]})
                helper.assert_close(want, result, 2e-6, "case " .. i)
                if case[3] == 0 then
                    local divided <close> = mb.stripes_mean(a, {mode = "divide",
                        low_sigma = case[2], high_sigma = 0})
                    helper.assert_close(quotient, divided, 2e-6, "case " .. i)
                end
                want:release()
                quotient:release()
            end
        end)

        it("without a filter takes the mean, on " .. device, function()
            local a <close> = mb.array({{1, 2, 3}, {3, 2, 7}}, {device = device})
            local minus <close> = mb.stripes_mean(a, {high_sigma = 0})
            helper.assert_close({{-1, 0, -2}, {1, 0, 2}}, minus, 1e-6)
            local by <close> = mb.stripes_mean(a, {high_sigma = 0, mode = "divide"})
            helper.assert_close({{0.5, 1, 0.6}, {1.5, 1, 1.4}}, by, 1e-6)
        end)

        it("takes one sinogram, and permuted projections in place, on " .. device, function()
            local frames <close> = mb.random({30, 5, 33}, {seed = 5, device = device})
            local view <close> = frames:permute(2, 1, 3)
            local dense <close> = view:copy()
            local want <close> = mb.stripes_mean(dense, {high_sigma = 6})
            local third <close> = dense:view(3)
            local own <close> = mb.stripes_mean(third, {high_sigma = 6})
            local part <close> = want:view(3)
            assert.same(part:to_table(), own:to_table())
            mb.stripes_mean(view, {high_sigma = 6, out = view})
            assert.same(want:to_table(), view:to_table())
        end)

        it("keeps constants, and is linear, on " .. device, function()
            local same <close> = mb.zeros({1, 45, 70}, {device = device})
            same:fill(7)
            local kept <close> = mb.stripes_mean(same)
            helper.assert_close(same, kept, 2e-6)
            local a <close> = mb.random({1, 20, 50}, {seed = 6, device = device})
            local b <close> = mb.random({1, 20, 50}, {seed = 7, device = device})
            local sum <close> = a + b
            local both <close> = mb.stripes_mean(sum)
            local ra <close> = mb.stripes_mean(a)
            local rb <close> = mb.stripes_mean(b)
            local want <close> = ra + rb
            helper.assert_close(want, both, 3e-6)
        end)

        it("removes a stripe, on " .. device, function()
            local rows, striped = {}, {}
            for a = 1, 40 do
                rows[a], striped[a] = {}, {}
                for c = 1, 300 do
                    rows[a][c] = 1 + math.sin(c / 100) * math.cos(a / 10)
                    striped[a][c] = rows[a][c] + (c == 150 and 0.5 or 0)
                end
            end
            local clean <close> = mb.array(rows, {device = device})
            local with <close> = mb.array(striped, {device = device})
            local kept <close> = mb.stripes_mean(clean)
            local result <close> = mb.stripes_mean(with)
            assert.is_true(helper.difference(clean, kept) < 0.05)
            -- a Gaussian of 30 columns keeps 1 / (30 sqrt(2 pi)) of a stripe of one
            for _, a in ipairs {1, 20, 40} do
                assert.is_true(math.abs(result:item(a, 150) - kept:item(a, 150)
                    - 0.5 / (30 * math.sqrt(2 * math.pi))) < 1e-4)
            end
        end)

        it("keeps a NaN to its sinogram, on " .. device, function()
            local a <close> = mb.random({3, 16, 19}, {seed = 8, device = device})
            local want <close> = mb.stripes_mean(a)
            local rows = a:to_table()
            rows[2][3][4] = 0 / 0
            local b <close> = mb.array(rows, {device = device})
            local result <close> = mb.stripes_mean(b)
            for _, i in ipairs {1, 3} do
                local one <close> = want:view(i)
                local other <close> = result:view(i)
                assert.same(one:to_table(), other:to_table())
            end
            local value = result:item(2, 3, 4)
            assert.is_true(value ~= value)
        end)
    end)

    it("refuses what cannot be", function()
        local a <close> = mb.zeros({2, 3, 4}, {device = "host"})
        local text, err = helper.failure(mb.stripes_mean, a, {mode = "divide"})
        assert.equal("high_sigma", err.arg)
        assert.is_truthy(text:find("high_sigma = 0", 1, true), text)
        text = helper.failure(mb.stripes_mean, a, {low_sigma = -1})
        assert.is_truthy(text:find("low_sigma", 1, true), text)
    end)
end)
