--- How much two images of one shape differ. Each takes (image, reference) of any real dtype on one
-- device and returns a number; differences are f32, sums double. Definitions are those of
-- skimage.metrics.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local tables = require "moonbeam.internal.tables"

local metrics = {}

-- a - offset, f32, the caller's own.
local function real(a, offset)
    local copy = mb.convert(a, "f32")
    if offset ~= 0 then
        mb.binary(copy, "sub", {scalar = offset, out = copy})
    end
    return copy
end

local function multiply(a, b, out)
    return mb.binary(a, "mul", {b = b, out = out})
end

--- Root of the mean squared difference.
function metrics.rmse(a, b)
    local difference <close> = real(a, 0)
    local other <close> = real(b, 0)
    mb.binary(difference, "sub", {b = other, out = difference})
    return difference:norm() / math.sqrt(tables.product(a.shape))
end

--- Peak signal-to-noise ratio in dB; the peak is that of the reference, greatest less least, or
-- options.range.
function metrics.psnr(a, b, options)
    local rmse = metrics.rmse(a, b)
    return rmse == 0 and math.huge or 20 * math.log((options.range or b:max() - b:min()) / rmse, 10)
end

--- Normalized cross-correlation about the means (Pearson's): 1 for images that differ by a factor
-- and an offset.
function metrics.ncc(a, b)
    local x <close> = real(a, a:mean())
    local y <close> = real(b, b:mean())
    local norms = x:norm() * y:norm()
    multiply(x, y, x)
    return norms > 0 and x:sum() / norms or 0
end

--- I-divergence of the reference y from the model a: sum of y log(y / a) - y + a; a is bounded
-- below by eps (default 1e-12).
function metrics.i_divergence(a, y, options)
    local padded <close> = mb.embed(a, a.shape)
    local _, sums = mb.rl_ratio(padded, y, {metrics = true, eps = options.eps})
    local misfit <close> = sums
    return (misfit:item(1))
end

-- The window: a Gaussian of 1.5 px, cut off at 5.
local SIGMA, RADIUS = 1.5, 5

--- Structural similarity (Z. Wang et al., IEEE Trans. Image Process. 13, 600, 2004): Gaussian
-- window of sigma 1.5 px, 11 px along every axis, K1 = 0.01, K2 = 0.03; the mean over the pixels
-- whose window lies in the image. What skimage.metrics.structural_similarity gives with
-- gaussian_weights, sigma 1.5, use_sample_covariance = False. options.range: default the
-- reference's greatest less least. Five arrays beside the two.
function metrics.ssim(a, b, options)
    local ranges = {}
    for i, extent in ipairs(a.shape) do
        if extent <= 2 * RADIUS then
            fail("shape", "metrics.ssim", nil, "axis %d has %d px; the window has %d", i, extent,
                2 * RADIUS + 1)
        end
        ranges[i] = {RADIUS + 1, extent - RADIUS}
    end
    local range, middle = options.range or b:max() - b:min(), b:mean()
    local c1, c2 = (0.01 * range) ^ 2, (0.03 * range) ^ 2
    -- Variances of what differs from the mean: nothing cancels however bright the image is.
    local x <close> = real(a, middle)
    local y <close> = real(b, middle)
    local product <close> = mb.empty(a.shape, {device = a.device})
    local function smooth(image, out)
        return mb.gaussian_filter(image, SIGMA, {truncate = RADIUS / SIGMA, out = out})
    end
    local function add(array, change, sign)
        mb.binary(array, sign or "add", type(change) == "number" and {scalar = change, out = array}
            or {b = change, out = array})
    end
    local covariance <close> = smooth(multiply(x, y, product))
    local variances <close> = smooth(multiply(x, x, product))
    do
        local other <close> = smooth(multiply(y, y, product))
        add(variances, other)
    end
    -- From here on: product is the mean of a, x that of b, y is free.
    smooth(x, product)
    smooth(y, x)
    add(covariance, multiply(product, x, y), "sub")
    add(variances, multiply(product, product, y), "sub")
    add(variances, multiply(x, x, y), "sub")
    add(product, middle)
    add(x, middle)
    -- (2 ma mb + c1) (2 cov + c2) / ((ma^2 + mb^2 + c1) (variances + c2))
    multiply(product, x, y)
    add(y, y)
    add(y, c1)
    add(covariance, covariance)
    add(covariance, c2)
    multiply(covariance, y, covariance)
    multiply(product, product, product)
    multiply(x, x, x)
    add(product, x)
    add(product, c1)
    add(variances, c2)
    multiply(variances, product, variances)
    mb.binary(covariance, "div", {b = variances, out = covariance})
    local inside <close> = covariance:view(table.unpack(ranges))
    return inside:mean()
end

local RANGE = declared.options {"range", "number", "greatest less least value",
    usual = "that of the reference"}

return declared.module(metrics, "metrics", {
    rmse = "a: array, b: array", psnr = {"a: array, b: array", RANGE},
    ncc = "a: array, b: array",
    ssim = {"a: array, b: array", RANGE},
    i_divergence = {"a: array, y: array",
        declared.options {"eps", "number", "the least value of a", usual = "1e-12"}},
})
