local check = require "spec.support.step_check"
local helper = require "spec.helper"
local mb = require "moonbeam"
local oracle = require "spec.support.oracle"

local N, H, W, FLATS <const> = 7, 6, 32, 8

-- Logarithms of a beam at a time: a mean, two images that come and go, brightness, gradients.
local function exponent(a, b, c, y, x)
    return 7 + 0.3 * math.sin(x / 5) * math.cos(y) + a * math.sin(x / 2 + y) + b * math.cos(x + 2
        * y) + c * (0.2 + 0.3 * x / W - 0.1 * y / H)
end

-- Arrays of a scan whose beam is made of these; strips of 4 columns are free. The object too.
local function simulated(noise)
    local flats, data, want = {}, {}, {}
    for i = 1, FLATS + N do
        local frame, through = {}, {}
        for y = 1, H do
            frame[y], through[y] = {}, {}
            for x = 1, W do
                local free = i <= FLATS or x <= 4 or x > W - 4
                through[y][x] = free and 1 or 0.2 + 0.7 * math.sin(x + y * i) ^ 2
                local grain = noise and noise * math.sin(37 * x + 101 * y * y + 1009 * i * i) or 0
                local flat = i <= FLATS
                frame[y][x] = 100 + through[y][x] * math.exp(exponent(0.2 * math.sin(2.1 * i),
                    0.1 * math.cos(1.3 * i), flat and 0 or 0.4 * math.sin(i), y, x) + grain)
            end
        end
        if i <= FLATS then
            flats[i] = frame
        else
            data[i - FLATS], want[i - FLATS] = frame, through
        end
    end
    local s = {data = mb.array(data), flats = mb.array(flats), darks = mb.full({2, H, W}, 100),
        want = mb.array(want)}
    s.scan = check.scan(s.data, {flats = s.flats, darks = s.darks})
    return setmetatable(s, {__close = function()
        for _, name in ipairs {"data", "flats", "darks", "want"} do
            s[name]:release()
        end
    end})
end

describe("the step flat_field_eigen", function()
    it("takes out a beam that moves and flickers", function()
        local s <close> = simulated()
        local _ <close> = check.gives(s.want, s.scan, {{"flat_field_eigen", preset = "nabu",
            nsigma = 100}}, nil, 2e-5)
        local plain <close> = check.result(s.scan, {"flat_field"})
        assert.is_true(helper.difference(s.want, plain) > 0.05)
    end)

    it("keeps as many components as stand out, and are asked for", function()
        local s <close> = simulated(1e-4)
        local _ <close> = check.gives(s.want, s.scan, {"flat_field_eigen"}, nil, 5e-3)
        local one <close> = check.result(s.scan, {{"flat_field_eigen", components = 1}})
        assert.is_true(helper.difference(s.want, one) > 0.02)
    end)

    it("is nabu's method, in NumPy", function()
        oracle.needs "numpy"
        local s <close> = simulated(3e-3)
        local want <close> = oracle.run("numpy", [[
dark = np.median(darks, axis=0).astype(float)
logs = np.log(flats.astype(float) - dark)
mean = logs.mean(0)
rest = logs - mean
values, vectors = np.linalg.eigh(np.einsum("iyx,jyx->ij", rest, rest))
order = np.argsort(abs(values))[::-1]
values, vectors = abs(values[order]), vectors[:, order]
count = max(1, (values > 3 * values[-2]).sum())
images = [np.einsum("i,iyx->yx", vectors[:, k], rest) for k in range(count)]
images = [image / np.sqrt((image ** 2).sum()) for image in images]
h, w = mean.shape
images = [np.ones((h, w))] + images + [
    np.outer(np.ones(h), np.linspace(-1 / w, 1 / w, w)),
    np.outer(np.linspace(-1 / h, 1 / h, h), np.ones(w))]
images = np.array(images)
limit = int(0.125 * w)
mask = np.zeros((h, w), bool)
mask[:, :limit] = True
mask[:, -limit:] = True
a = np.stack([image[mask] for image in images], axis=1)
r = np.empty(data.shape)
for i, frame in enumerate(data):
    y = mean - np.log(frame.astype(float) - dark)
    c = np.linalg.lstsq(a, y[mask], rcond=None)[0]
    r[i] = np.exp(-(y - np.einsum("k,kyx->yx", c, images)))
]], {data = s.data, flats = s.flats, darks = s.darks}, {"r"})
        local _ <close> = check.gives(want, s.scan, {"flat_field_eigen"}, nil, 1e-4)
    end)

    it("goes before steps that work on rows, with a store between", function()
        local s <close> = simulated()
        local _ <close> = check.gives(nil, s.scan, {"flat_field_eigen", "minus_log",
            {"fbp", center = 15}})
        local cropped <close> = check.gives(nil, s.scan, {{"crop", rows = {2, 5}},
            "flat_field_eigen"})
        assert.same({N, 4, W}, cropped.shape)
    end)

    it("refuses what makes no sense", function()
        local s <close> = simulated()
        local two <close> = s.flats:view {1, 2}
        local few = check.scan(s.data, {flats = two})
        check.refused("the scan has 2 flats; principal components need 3 to 512", few,
            {"flat_field_eigen"})
        check.refused("components is 21; it must be a whole number from 1 to 20", s.scan,
            {{"flat_field_eigen", components = 21}})
    end)
end)
