-- Stripes by Raven's filter: against the two-dimensional transform with NumPy, against algotom, and
-- by what must happen to stripes, constants and sums.

local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

-- The filter on whole transforms.
local RAVEN = [[
def raven(x, u, n, v, padding, pad, origin):
    x = x.astype(np.float64)
    pad = 0 if padding == 'none' else pad or min(150, int(0.1 * min(x.shape)))
    if pad:
        x = np.pad(x, ((pad, pad), (0, 0)), mode=padding)
        x = np.pad(x, ((0, 0), (pad, pad)), mode='edge')
    fy, fx = (np.round(np.fft.fftfreq(k) * k) + (origin if k % 2 == 0 else 0) for k in x.shape)
    window = np.ones(x.shape)
    window[np.abs(fy) <= v] = 1 / (1 + (fx / u) ** (2 * n))
    x = np.fft.ifft2(np.fft.fft2(x) * window).real
    return x[pad:x.shape[0] - pad, pad:x.shape[1] - pad]
]]

local CASES = {
    {{2, 37, 41}, {cutoff = 5, pad = 3}},
    {{1, 36, 40}, {cutoff = 5, pad = 3, origin = 1}},
    {{1, 37, 40}, {cutoff = 7.5, pad = 20, origin = 1}},
    {{1, 36, 41}, {cutoff = 3, order = 8, rows = 1, padding = "mean", pad = 0, origin = 1}},
    {{1, 300, 33}, {cutoff = 2, order = 1, rows = 7, padding = "none", origin = 1}},
    {{1, 8, 600}, {rows = 10, padding = "none"}},
    {{1, 8, 600}, {rows = 3, padding = "none", origin = 1}},
    {{2, 1, 9}, {cutoff = 2, pad = 2}},
    {{2, 9, 1}, {cutoff = 2, pad = 2, rows = 0}},
    {{1, 1, 1}, {padding = "none"}},
}

local function stripes_of(shape, place, height, device)
    local rows = {}
    for a = 1, shape[1] do
        rows[a] = {}
        for c = 1, shape[2] do
            rows[a][c] = 1 + 0.5 * math.sin(3 * c / shape[2]) * math.cos(6 * a / shape[1])
                + (c == place and height or 0)
        end
    end
    return mb.array(rows, {device = device})
end

describe("stripes_raven", function()
    helper.each_device(function(device, it)
        it("is the transform of the whole, on " .. device, function()
            oracle.needs "numpy"
            for i, case in ipairs(CASES) do
                local shape, o = case[1], case[2]
                local a <close> = mb.random(shape, {seed = 3, device = device})
                local host <close> = a:to "host"
                local want <close> = oracle.run("numpy", RAVEN .. ([[
want = np.stack([raven(v, %g, %d, %d, %q, %d, %d) for v in a])]]):format(o.cutoff or 20,
                    o.order or 4, o.rows or 2, o.padding or "edge", o.pad or 20, o.origin or 0),
                    {a = host}, {"want"})
                local result <close> = mb.stripes_raven(a, o)
                helper.assert_close(want, result, 2e-6, "case " .. i)
            end
        end)

        it("takes one sinogram, and permuted projections in place, on " .. device, function()
            local frames <close> = mb.random({30, 5, 33}, {seed = 5, device = device})
            local view <close> = frames:permute(2, 1, 3)
            local dense <close> = view:copy()
            local want <close> = mb.stripes_raven(dense, {cutoff = 4, rows = 5})
            local third <close> = dense:view(3)
            local own <close> = mb.stripes_raven(third, {cutoff = 4, rows = 5})
            local part <close> = want:view(3)
            assert.same(part:to_table(), own:to_table())
            mb.stripes_raven(view, {cutoff = 4, rows = 5, out = view})
            assert.same(want:to_table(), view:to_table())
        end)

        it("keeps constants, and is linear, on " .. device, function()
            local same <close> = mb.zeros({1, 45, 70}, {device = device})
            same:fill(7)
            local kept <close> = mb.stripes_raven(same)
            helper.assert_close(same, kept, 2e-6)
            local a <close> = mb.random({1, 20, 50}, {seed = 6, device = device})
            local b <close> = mb.random({1, 20, 50}, {seed = 7, device = device})
            local sum <close> = a + b
            local both <close> = mb.stripes_raven(sum)
            local ra <close> = mb.stripes_raven(a)
            local rb <close> = mb.stripes_raven(b)
            local want <close> = ra + rb
            helper.assert_close(want, both, 3e-6)
        end)

        it("removes a stripe and leaves the object, on " .. device, function()
            local clean <close> = stripes_of({120, 400}, 0, 0, device)
            local striped <close> = stripes_of({120, 400}, 200, 0.4, device)
            local kept <close> = mb.stripes_raven(clean)
            local result <close> = mb.stripes_raven(striped)
            assert.is_true(helper.difference(clean, kept) < 0.01)
            -- the filter keeps about 2 * 20 of the 440 frequencies of a stripe of one column
            for _, a in ipairs {1, 60, 120} do
                assert.is_true(math.abs(result:item(a, 200) - kept:item(a, 200)) < 0.4 * 0.12)
            end
        end)

        it("keeps a NaN to its sinogram, on " .. device, function()
            local a <close> = mb.random({3, 16, 19}, {seed = 8, device = device})
            local want <close> = mb.stripes_raven(a)
            local rows = a:to_table()
            rows[2][3][4] = 0 / 0
            local b <close> = mb.array(rows, {device = device})
            local result <close> = mb.stripes_raven(b)
            for _, i in ipairs {1, 3} do
                local one <close> = want:view(i)
                local other <close> = result:view(i)
                assert.same(one:to_table(), other:to_table())
            end
            local value = result:item(2, 3, 4)
            assert.is_true(value ~= value)
        end)
    end)

    it("is algotom's, for odd extents", function()
        oracle.needs "algotom"
        -- For even ones algotom returns magnitudes of complex numbers.
        local a <close> = mb.random({1, 101, 131}, {seed = 10, low = 1, high = 2, device = "host"})
        local want <close> = oracle.run("algotom", [[
from algotom.prep.removal import remove_stripe_based_fft
want = remove_stripe_based_fft(a[0])[None]
]], {a = a}, {"want"})
        local result <close> = mb.stripes_raven(a, {order = 8, rows = 1, padding = "mean",
            pad = 0, origin = 1})
        helper.assert_close(want, result, 2e-6)
    end)

    it("refuses what cannot be", function()
        local a <close> = mb.zeros({2, 3, 4}, {device = "host"})
        for option, value in pairs {cutoff = 0, order = 0, rows = 11, origin = 2,
            padding = "zero"} do
            local text = helper.failure(mb.stripes_raven, a, {[option] = value})
            assert.is_truthy(text:find(option, 1, true), text)
        end
    end)
end)
