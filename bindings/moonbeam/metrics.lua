--- How much two images of one shape differ. Each takes (image, reference) and returns a number; sums are in double.

local mb = require "moonbeam"
local options_of = require "moonbeam.options"

local metrics = {}

local function count_of(a)
    local count = 1
    for _, extent in ipairs(a.shape) do
        count = count * extent
    end
    return count
end

local function norm_of_difference(a, b)
    local difference <close> = a - b
    return difference:norm()
end

--- Root of the mean squared difference.
function metrics.rmse(a, b)
    return norm_of_difference(a, b) / math.sqrt(count_of(a))
end

--- Peak signal-to-noise ratio in dB; the peak is that of the reference, or options.range.
function metrics.psnr(a, b, options)
    options = options_of(options, "metrics.psnr", {"range"})
    local rmse = metrics.rmse(a, b)
    return rmse == 0 and math.huge or 20 * math.log((options.range or b:max() - b:min()) / rmse, 10)
end

--- Normalised cross-correlation about the means: 1 for images that differ by a factor and an offset.
function metrics.ncc(a, b)
    local x <close> = a - a:mean()
    local y <close> = b - b:mean()
    local product <close> = x * y
    local norms = x:norm() * y:norm()
    return norms > 0 and product:sum() / norms or 0
end

--- I-divergence of the reference y from the model a: sum of y log(y / a) - y + a; a is bounded below by eps (default 1e-12).
function metrics.i_divergence(a, y, options)
    options = options_of(options, "metrics.i_divergence", {"eps"})
    local shape = a.shape
    local padded <close> = mb.embed(a, shape)
    local _, sums = mb.rl_ratio(padded, y, {metrics = true, eps = options.eps})
    local misfit <close> = sums
    return (misfit:item(1))
end

--- Structural similarity (Z. Wang et al., IEEE Trans. Image Process. 13, 600, 2004): Gaussian window of sigma 1.5 px, 11 px
-- along every axis, K1 = 0.01, K2 = 0.03; the mean over the image. options.range: default the reference's.
function metrics.ssim(a, b, options)
    options = options_of(options, "metrics.ssim", {"range"})
    local range = options.range or b:max() - b:min()
    local c1, c2 = (0.01 * range) ^ 2, (0.03 * range) ^ 2
    local window = {}
    for i = 1, a.rank do
        window[i] = 11
    end
    local gaussian <close> = mb.psf.gaussian(window, 1.5, {device = a.device})
    local function smooth(image)
        return mb.convolution(image, gaussian, {boundary = "reflect"})
    end
    local function smooth_product(x, y)
        local product <close> = x * y
        return smooth(product)
    end
    local mean_a <close> = smooth(a)
    local mean_b <close> = smooth(b)
    local aa <close> = smooth_product(a, a)
    local bb <close> = smooth_product(b, b)
    local ab <close> = smooth_product(a, b)
    local squares_a <close> = mean_a * mean_a
    local squares_b <close> = mean_b * mean_b
    local means <close> = mean_a * mean_b
    local cross <close> = ab - means
    local doubled <close> = means * 2
    local upper_left <close> = doubled + c1
    local doubled_cross <close> = cross * 2
    local upper_right <close> = doubled_cross + c2
    local upper <close> = upper_left * upper_right
    local squares <close> = squares_a + squares_b
    local energies <close> = aa + bb
    local variances <close> = energies - squares
    local lower_left <close> = squares + c1
    local lower_right <close> = variances + c2
    local lower <close> = lower_left * lower_right
    local map <close> = upper / lower
    return map:mean()
end

return metrics
