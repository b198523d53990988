local mb = require "moonbeam"
local helper = require "spec.helper"
local oracle = require "spec.support.oracle"

local pi = math.pi

-- erfc by its series and its continued fraction.
local function erfc(x)
    if x < 0 then
        return 2 - erfc(-x)
    elseif x > 3 then
        local fraction = x
        for n = 60, 1, -1 do
            fraction = x + n / 2 / fraction
        end
        return math.exp(-x * x) / (math.sqrt(pi) * fraction)
    end
    local term, sum = x, x
    for n = 1, 100 do
        term = -term * x * x / n
        sum = sum + term / (2 * n + 1)
    end
    return 1 - 2 / math.sqrt(pi) * sum
end

-- The factor of the frequency (fy, fx), by the definitions. `rows` of the padded frame.
local function factor(options, fresnel, fy, fx, rows)
    local ratio = options.delta_beta or 250
    local p = pi * (fresnel[1] * fy ^ 2 + fresnel[2] * fx ^ 2)
    if options.method == "generalized" then
        return 1 / (1 - ratio / (2 * pi) * (fresnel[1] * (math.cos(2 * pi * fy) - 1)
            + fresnel[2] * (math.cos(2 * pi * fx) - 1)))
    elseif options.method == "farago" then
        return 1 / (math.cos(p) + ratio * math.sin(p))
    elseif options.method == "ctf" then
        local low, high = options.low or 1e-5, options.high or 0.2
        local cut = math.min(0.5, math.sqrt(0.5 / fresnel[1])) + 1 / rows
        local below = erfc((math.sqrt(fy ^ 2 + fx ^ 2) - cut) / 0.01) / erfc(-cut / 0.01)
        local s = math.sin(p) + math.cos(p) / ratio
        return s / (2 * s * s + low * below + high * (1 - below))
    end
    return 1 / (1 + ratio * p)
end

-- Independent of the operator: the frame padded by NumPy, its transforms in double precision.
local CODE = [==[
import math
def response(P):
    fy, fx = np.meshgrid(np.fft.fftfreq(P[0]), np.fft.fftfreq(P[1]), indexing="ij")
    F = fresnel
    p = np.pi * (F[0] * fy**2 + F[1] * fx**2)
    if method == "paganin":
        return 1 / (1 + ratio * p)
    if method == "generalized":
        W = 1.0
        k = 2 * np.pi * fy, 2 * np.pi * fx
        a = [ratio * f / (4 * np.pi) for f in F]
        return 1 / (1 - 2 * a[0] / W**2 * (np.cos(W * k[0]) - 1)
                    - 2 * a[1] / W**2 * (np.cos(W * k[1]) - 1))
    if method == "farago":
        return 1 / (np.cos(p) + ratio * np.sin(p))
    s = np.sin(p) + np.cos(p) / ratio
    cut = min(0.5, math.sqrt(0.5 / F[0])) + 1 / P[0]
    r = np.array([math.erfc(v) for v in ((np.hypot(fy, fx) - cut) / 0.01).ravel()]).reshape(P)
    r /= math.erfc(-cut / 0.01)
    return s / (2 * s * s + low * r + high * (1 - r))
n = image.shape[-2:]
P = tuple(int(v) for v in padded)
front = [(a - b) // 2 for a, b in zip(P, n)]
around = [(f, a - b - f) for f, a, b in zip(front, P, n)]
result = np.empty(image.shape)
for i in range(image.shape[0]):
    frame = image[i].astype(float)
    more = {"constant_values": value} if mode == "constant" else {}
    frame = np.pad(frame, around, mode=mode, **more)
    if method == "ctf":
        frame -= 1
    out = np.fft.ifft2(np.fft.fft2(frame) * response(P)).real
    result[i] = out[front[0]:front[0] + n[0], front[1]:front[1] + n[1]]
if log:
    result = -np.log(np.maximum(result, 1e-6))
]==]

local function by_numpy(image, padded, fresnel, options)
    local lines = {
        ("method, mode, value = '%s', '%s', %.17g"):format(options.method or "paganin",
            options.padding == "none" and "edge" or options.padding or "edge", options.value or 1),
        ("ratio, low, high = %.17g, %.17g, %.17g"):format(options.delta_beta or 250,
            options.low or 1e-5, options.high or 0.2),
        ("fresnel, padded = [%.17g, %.17g], [%d, %d]"):format(fresnel[1], fresnel[2], padded[1],
            padded[2]),
        "log = " .. (options.log and "True" or "False")}
    return oracle.run("numpy", table.concat(lines, "\n") .. "\n" .. CODE, {image = image},
        {"result"})
end

-- {shape, fresnel, options, padded extents that the operator chooses}
local CASES = {
    {{2, 30, 41}, {0.5, 0.5}, {}, {64, 128}},
    {{2, 30, 41}, {0.02, 0.02}, {delta_beta = 100, log = true}, {64, 64}},
    {{1, 31, 37}, {0.3, 0.7}, {padding = "reflect", size = "smooth", delta_beta = 400}, {64, 80}},
    {{1, 5, 7}, {2, 2}, {padding = "reflect", padded = {64, 64}}, {64, 64}},
    {{2, 17, 23}, {1, 2}, {padding = "symmetric", method = "generalized", delta_beta = 30},
        {64, 64}},
    {{1, 17, 23}, {1, 1}, {padding = "constant", value = 0.25, padded = {40, 27}}, {40, 27}},
    {{1, 33, 20}, {1, 1}, {padding = "constant", value = 0, padded = 64}, {64, 64}},
    {{1, 13, 11}, {1.5, 1.5}, {padding = "none", method = "farago", delta_beta = 10}, {13, 11}},
    {{2, 19, 29}, {1.5, 1.5}, {padding = "edge", method = "farago", delta_beta = 30}, {64, 64}},
    {{2, 33, 50}, {3.5, 3.5}, {padding = "reflect", method = "ctf", delta_beta = 40}, {128, 128}},
    {{1, 33, 50}, {3.5, 0.4}, {padding = "edge", method = "ctf", delta_beta = 15, low = 1e-3,
        high = 0.1, padded = {64, 64}}, {64, 64}},
    {{1, 33, 50}, {9, 9}, {padding = "constant", value = 0, method = "ctf", delta_beta = 15},
        {128, 128}},
    {{1, 1, 53}, {0.4, 0.4}, {}, {2, 128}},
    {{1, 53, 1}, {0.4, 0.4}, {padding = "reflect"}, {128, 2}},
    {{1, 1, 1}, {0.4, 0.4}, {padding = "symmetric"}, {2, 2}},
    {{5, 60, 300}, {0.9, 0.9}, {delta_beta = 500}, {128, 512}},
    {{3, 300, 61}, {0.9, 0.9}, {delta_beta = 500, padded = {512, 64}, log = true}, {512, 64}},
    {{2, 63, 64}, {0.9, 0.9}, {padded = {1024, 2048}, padding = "symmetric"}, {1024, 2048}},
    {{2, 64, 63}, {0.9, 0.9}, {padded = {4096, 1024}, padding = "reflect"}, {4096, 1024}},
    {{2, 3, 64}, {0.9, 0.9}, {padded = {64, 4096}, method = "generalized"}, {64, 4096}},
    {{2, 61, 40}, {0.9, 0.9}, {padded = {64, 512}}, {64, 512}},
    {{1, 500, 20}, {0.9, 0.9}, {padded = {512, 64}, padding = "reflect"}, {512, 64}},
    {{1, 64, 64}, {0.9, 0.9}, {padded = {2048, 512}, padding = "constant", value = 0.5},
        {2048, 512}},
}

-- The energy of 25 keV, 5 cm, 1 um.
local FRESNEL = 4.959e-11 * 0.05 / 1e-12

helper.each_device(function(device, test)
    describe("phase_filter on " .. device:match("^%a+"), function()
        for i, case in ipairs(CASES) do
            local shape, fresnel, options, padded = table.unpack(case)
            test(("is its definition by NumPy: %s, %s, %s (%d)"):format(options.method or "paganin",
                options.padding or "edge", table.concat(shape, "x"), i), function()
                oracle.needs "numpy"
                local a <close> = mb.random(shape, {seed = i, low = 0.2, high = 1.1})
                local expected <close> = by_numpy(a, padded, fresnel, options)
                local here <close> = a:to(device)
                local b <close> = mb.phase_filter(here, fresnel, options)
                helper.assert_close(expected, b, 3e-6)
            end)
        end

        test("gives what the host gives", function()
            for i, case in ipairs(device == "host" and {} or CASES) do
                local shape, fresnel, options = table.unpack(case)
                local a <close> = mb.random(shape, {seed = i, low = 0.2, high = 1.1})
                local expected <close> = mb.phase_filter(a, fresnel, options)
                local here <close> = a:to(device)
                local b <close> = mb.phase_filter(here, fresnel, options)
                helper.assert_close(expected, b, 3e-6, "case " .. i)
            end
        end)

        test("multiplies waves by the factor of their frequency", function()
            local rows, cols = 64, 40
            for _, options in ipairs {{}, {method = "generalized"}, {method = "ctf"},
                {method = "farago", delta_beta = 4}, {method = "ctf", delta_beta = 1e9}} do
                options.padding = "none"
                local fresnel = options.method == "farago" and {1, 1.5} or {2, 3}
                for _, k in ipairs {{0, 0}, {0, 3}, {5, 0}, {7, 11}, {32, 20}, {32, 3}} do
                    local values, fy, fx = {}, k[1] / rows, k[2] / cols
                    for y = 1, rows do
                        values[y] = {}
                        for x = 1, cols do
                            values[y][x] = 1 + 0.5 * math.cos(2 * pi * (fy * y + fx * x))
                        end
                    end
                    local a <close> = mb.array(values, {device = device})
                    local b <close> = mb.phase_filter(a, fresnel, options)
                    local gain = factor(options, fresnel, fy, fx, rows)
                    for y = 1, rows do
                        for x = 1, cols do
                            values[y][x] = (values[y][x] - 1) * gain
                                + (options.method == "ctf" and 0 or 1)
                        end
                    end
                    helper.assert_close(values, b, 2e-6, table.concat({
                        options.method or "paganin", fy, fx}, " "))
                end
            end
        end)

        test("keeps constants, and sums of periodic frames", function()
            local a <close> = mb.full({2, 37, 50}, 0.7, {device = device})
            for _, padding in ipairs {"edge", "reflect", "symmetric", "none"} do
                for _, method in ipairs {"paganin", "generalized"} do
                    local b <close> = mb.phase_filter(a, 1.5, {padding = padding, method = method})
                    assert.near(0.7, b:min(), 1e-6)
                    assert.near(0.7, b:max(), 1e-6)
                end
            end
            local noise <close> = mb.random({40, 50}, {seed = 1, device = device})
            local b <close> = mb.phase_filter(noise, 1.5, {padding = "none"})
            assert.near(noise:mean(), b:mean(), 1e-6)
            assert.is_true(b:max() - b:min() < 0.1)
        end)

        test("is linear before the logarithm, and shifts with the frame", function()
            local a <close> = mb.random({33, 20}, {seed = 1, device = device})
            local b <close> = mb.random({33, 20}, {seed = 2, device = device})
            local sum <close> = a + b
            local fa <close> = mb.phase_filter(a, 0.3)
            local fb <close> = mb.phase_filter(b, 0.3)
            local fsum <close> = mb.phase_filter(sum, 0.3)
            local both <close> = fa + fb
            helper.assert_close(both, fsum, 2e-6)
            local rolled <close> = mb.roll(a, {5, 7})
            local once <close> = mb.phase_filter(a, 0.3, {padding = "none"})
            local moved <close> = mb.roll(once, {5, 7})
            local other <close> = mb.phase_filter(rolled, 0.3, {padding = "none"})
            helper.assert_close(moved, other, 2e-6)
        end)

        test("has the scaling of nabu, a quarter of httomolibgpu's", function()
            oracle.needs "numpy"
            local a <close> = mb.random({1, 32, 48}, {seed = 3, low = 0.5})
            local expected <close> = oracle.run("numpy", [[
pixel, distance, ratio = 1.0, 0.05e6, 300
wavelength = 1.23984199e-3 / 25
ny, nx = image.shape[1:]
q2 = np.add.outer(np.fft.fftfreq(64, d=pixel)**2, np.fft.rfftfreq(96, d=pixel)**2)
padded = np.pad(image[0].astype(float), ((16, 16), (24, 24)), mode="edge")
nabu = np.fft.irfft2(np.fft.rfft2(padded) / (1 + ratio * wavelength * distance * np.pi * q2))
result = nabu[None, 16:48, 24:72]
]], {image = a}, {"result"})
            local here <close> = a:to(device)
            local b <close> = mb.phase_filter(here, FRESNEL, {delta_beta = 300, padded = {64, 96}})
            helper.assert_close(expected, b, 1e-5)
        end)

        test("recovers the thickness of a sphere from its intensity", function()
            -- Fine samples of exp(-mu t) under (1 - ratio fresnel / (4 pi) Laplacian), the
            -- equation that the filter inverts.
            local n, radius, mu, fresnel, ratio = 128, 30, 0.01, 0.2, 100
            local function contact(y, x)
                local r2 = (y - n / 2) ^ 2 + (x - n / 2) ^ 2
                return math.exp(-mu * 2 * math.sqrt(math.max(0, radius ^ 2 - r2)))
            end
            local image, thickness, a = {}, {}, ratio * fresnel / (4 * pi)
            for y = 1, n do
                image[y], thickness[y] = {}, {}
                for x = 1, n do
                    image[y][x] = contact(y, x) - a * (contact(y + 1, x) + contact(y - 1, x)
                        + contact(y, x + 1) + contact(y, x - 1) - 4 * contact(y, x))
                    thickness[y][x] = -math.log(contact(y, x))
                end
            end
            local i <close> = mb.array(image, {device = device})
            -- The Laplacian of neighbors is exactly what the generalized filter inverts.
            local t <close> = mb.phase_filter(i, fresnel, {delta_beta = ratio, log = true,
                method = "generalized"})
            helper.assert_close(thickness, t, 1e-5)
            -- That of Paganin takes it to be finer than it is, at the sphere's edge only.
            local p <close> = mb.phase_filter(i, fresnel, {delta_beta = ratio, log = true})
            assert.near(thickness[64][64], (p:item(64, 64)), 1e-4)
            assert.near(thickness[64][44], (p:item(64, 44)), 1e-3)
            assert.near(0, (p:item(5, 5)), 1e-4)
        end)

        test("takes frames that are not finite for themselves", function()
            local a <close> = mb.random({5, 20, 30}, {seed = 1, low = 0.5, device = device})
            local clean <close> = mb.phase_filter(a, 0.3, {log = true})
            local bad <close> = a:view({3, 3}, {7, 7}, {9, 9})
            for _, value in ipairs {0 / 0, 1e30, -1e30} do -- 1e60 is infinite in floats
                bad:fill(value)
                mb.binary(bad, "mul", {scalar = 1e30, out = bad})
                local b <close> = mb.phase_filter(a, 0.3, {log = true})
                for i = 1, 5 do
                    local frame <close> = b:view({i, i}, mb.all, mb.all)
                    local expected <close> = clean:view({i, i}, mb.all, mb.all)
                    if i == 3 then
                        for _, v in ipairs(helper.flatten(frame:to_table())) do
                            assert.is_true(v ~= v)
                        end
                    else
                        assert.same(expected:to_table(), frame:to_table())
                    end
                end
            end
        end)

        test("works in place, on rows of a larger array, and clips before the logarithm", function()
            local whole <close> = mb.random({3, 40, 30}, {seed = 4, device = device})
            local rows <close> = whole:view(mb.all, {11, 30}, mb.all)
            local copy <close> = rows:copy()
            local expected <close> = mb.phase_filter(copy, 0.3, {log = true, min = 0.4})
            mb.phase_filter(rows, 0.3, {log = true, min = 0.4, out = rows})
            assert.same(expected:to_table(), rows:to_table())
            assert.near(-math.log(0.4), expected:max(), 0.3)
            assert.is_true(expected:max() <= -math.log(0.4) * (1 + 1e-6))
        end)

        test("gives a frame the same bits among others, however many", function()
            local a <close> = mb.random({9, 50, 60}, {seed = 4, device = device})
            local all <close> = mb.phase_filter(a, 0.3, {padded = {4096, 4096}})
            for i = 1, 9, 4 do
                local frame <close> = a:view({i, i}, mb.all, mb.all)
                local own <close> = mb.phase_filter(frame, 0.3, {padded = {4096, 4096}})
                local expected <close> = all:view({i, i}, mb.all, mb.all)
                assert.same(expected:to_table(), own:to_table())
            end
        end)
    end)
end)

describe("phase_filter", function()
    local function message(...)
        return (helper.failure(mb.phase_filter, ...))
    end

    it("names what is wrong", function()
        local a <close> = mb.zeros {20, 30}
        assert.matches("pole", message(a, 5, {method = "farago"}))
        assert.matches("ctf", message(a, 5, {method = "farago"}))
        assert.matches("padded is 16 for frames of 20 rows", message(a, 1, {padded = 16}))
        assert.matches("padded is 25 for frames of 30 columns", message(a, 1, {padded = {20, 25}}))
        assert.matches("remove one", message(a, 1, {padded = 64, padding = "none"}))
        assert.matches("fresnel has 3 numbers", message(a, {1, 2, 3}))
        local empty <close> = mb.zeros {0, 30}
        assert.matches("0 rows", message(empty, 1))
    end)
end)
