-- Stripes by Titarenko's formula: against naive sums, against the formula in Fourier space with
-- NumPy, and by what it must do to stripes, constants and sums.

local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- The formula by plain loops over one sinogram {angle}{column}.
local function naive(sino, beta)
    local angles, n, v = #sino, #sino[1], {}
    local period = n + n % 2
    for c = 1, n do
        local sum = 0
        for a = 1, angles do
            sum = sum + sino[a][c]
        end
        v[c] = sum / angles
    end
    v[n + 1] = v[n]
    local first = v[1]
    for c = 1, period do
        v[c] = v[c] - first
    end
    local result, taps = {}, {}
    for a = 1, angles do
        result[a] = {}
    end
    for d = 0, period do
        taps[d] = beta * ((1 - beta) / (1 + beta)) ^ d
    end
    for c = 1, n do
        local smooth = 0
        for j = 1, period do
            local d = (c - j) % period
            d = math.min(d, period - d)
            smooth = smooth + taps[d] * v[j]
        end
        for a = 1, angles do
            result[a][c] = sino[a][c] + smooth - v[c]
        end
    end
    return result
end

-- Sinograms of a smooth object, with a stripe of `height` in column `place` of each.
local function with_stripe(angles, n, place, height)
    local sino = {}
    for a = 1, angles do
        sino[a] = {}
        for c = 1, n do
            sino[a][c] = 1 + math.sin(3 * c / n + 2 * a / angles)
                + (c == place and height or 0)
        end
    end
    return sino
end

describe("stripes_titarenko", function()
    helper.each_device(function(device, it)
        it("is the formula, on " .. device, function()
            for _, shape in ipairs {{2, 7, 16}, {1, 300, 37}, {3, 1, 10}, {2, 2, 1}, {1, 1, 1},
                {1, 5, 300}} do
                for _, beta in ipairs {0.1, 0.022, 1} do
                    local a <close> = mb.random(shape, {seed = 3, device = device})
                    local result <close> = mb.stripes_titarenko(a, {beta = beta})
                    local want = {}
                    for i, sino in ipairs(a:to_table()) do
                        want[i] = naive(sino, beta)
                    end
                    helper.assert_close(want, result, 2e-6)
                end
            end
        end)

        it("takes one sinogram, and permuted projections in place, on " .. device, function()
            local frames <close> = mb.random({30, 5, 33}, {seed = 4, device = device})
            local view <close> = frames:permute(2, 1, 3)
            local dense <close> = view:copy()
            local want <close> = mb.stripes_titarenko(dense)
            local third <close> = dense:view(3)
            local own <close> = mb.stripes_titarenko(third)
            local part <close> = want:view(3)
            assert.same(part:to_table(), own:to_table())
            mb.stripes_titarenko(view, {out = view})
            assert.same(want:to_table(), view:to_table())
        end)

        it("keeps what is the same in all columns, to the bit, on " .. device, function()
            local a <close> = mb.random({2, 40, 1}, {seed = 5, device = device})
            local rows = a:to_table()
            for _, sino in ipairs(rows) do
                for _, row in ipairs(sino) do
                    for c = 2, 70 do
                        row[c] = row[1]
                    end
                end
            end
            local same <close> = mb.array(rows, {device = device})
            local result <close> = mb.stripes_titarenko(same)
            assert.same(same:to_table(), result:to_table())
        end)

        it("is linear, on " .. device, function()
            local a <close> = mb.random({1, 20, 50}, {seed = 6, device = device})
            local b <close> = mb.random({1, 20, 50}, {seed = 7, device = device})
            local sum <close> = a + b
            local both <close> = mb.stripes_titarenko(sum)
            local ra <close> = mb.stripes_titarenko(a)
            local rb <close> = mb.stripes_titarenko(b)
            local want <close> = ra + rb
            helper.assert_close(want, both, 3e-6)
        end)

        it("removes a stripe and leaves the object, on " .. device, function()
            local clean <close> = mb.array(with_stripe(60, 200, 0, 0), {device = device})
            local striped <close> = mb.array(with_stripe(60, 200, 90, 0.5), {device = device})
            local result <close> = mb.stripes_titarenko(striped)
            local kept <close> = mb.stripes_titarenko(clean)
            -- Smooth objects change by the difference of the edges, which are neighbors here, and
            -- by the curvature of their mean.
            for c = 60, 140 do
                assert.is_true(math.abs(kept:item(7, c) - clean:item(7, c)) < 0.02)
                -- a tenth of the stripe is left, by beta, and spread over its neighbors
                local left = result:item(7, c) - kept:item(7, c)
                assert.is_true(math.abs(left - 0.05 * (0.9 / 1.1) ^ math.abs(c - 90)) < 1e-5)
            end
        end)

        it("keeps a NaN to its sinogram, on " .. device, function()
            local a <close> = mb.random({3, 6, 9}, {seed = 8, device = device})
            local want <close> = mb.stripes_titarenko(a)
            local rows = a:to_table()
            rows[2][3][4] = 0 / 0
            local b <close> = mb.array(rows, {device = device})
            local result <close> = mb.stripes_titarenko(b)
            for _, i in ipairs {1, 3} do
                local one <close> = want:view(i)
                local other <close> = result:view(i)
                assert.same(one:to_table(), other:to_table())
            end
            local value = result:item(2, 1, 1)
            assert.is_true(value ~= value)
        end)
    end)

    it("is the formula in Fourier space", function()
        oracle.needs "numpy"
        local a <close> = mb.random({3, 50, 64}, {seed = 9, device = "host"})
        local want <close> = oracle.run("numpy", [[
x = a.astype(np.float64)
beta, n = 0.05, x.shape[-1]
gamma = beta * ((1 - beta) / (1 + beta)) ** np.abs(np.fft.fftfreq(n) * n)
gamma[0] -= 1
v = x.mean(axis=1)
v = v - v[:, :1]
want = x + np.fft.irfft(np.fft.rfft(v) * np.fft.rfft(gamma))[:, None]
]], {a = a}, {"want"})
        local result <close> = mb.stripes_titarenko(a, {beta = 0.05})
        helper.assert_close(want, result, 1e-6)
    end)

    it("refuses what cannot be", function()
        local a <close> = mb.zeros({2, 3, 4}, {device = "host"})
        local text = helper.failure(mb.stripes_titarenko, a, {beta = 0})
        assert.is_truthy(text:find("beta", 1, true), text)
    end)
end)
