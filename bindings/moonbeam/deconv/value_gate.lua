--- What measured values must be before an iteration divides by them, and what a result must be. All
-- methods ask here: whole, by tiles, and the search for the end; so do convolutions of their PSF.
--
-- Counts and point spread functions are not negative, but what is measured may be: an offset or a
-- background was subtracted, and noise is around 0 then. Values of an image below 0 count as 0
-- where the operators read them (rl_ratio, rl_step, rl_split_ratio), which takes no memory; those
-- of a PSF are 0 in a copy. How much that was is in the report. What cannot be mended is an error:
-- values that are not finite, images without a value above 0, values outside what f32 can hold on
-- the way, a PSF that is mostly noise. A dry run takes the same steps.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local on_error = require "moonbeam.internal.on_error"

local gate = {}

--- A PSF of whose |sum| more lies below 0 is refused. Noise around 0 that has a quarter of |sum|
-- below 0 has another quarter above it: half of the PSF is noise. Measured in docs/tutorials.
gate.PSF_LIMIT = 0.25

-- A sum over the grid up to the first keeps all transforms finite: the estimate is larger than the
-- image where little was seen (floor). A mean from the second on leaves eps, a millionth of it,
-- and what is divided by it, in the range of f32. Total variation squares differences.
local LARGEST_SUM <const>, LEAST_MEAN <const> = 1e35, 1e-30
local LARGEST_SQUARED <const>, LEAST_SQUARED <const> = 1e18, 1e-15
-- Below it f32 does not have a millionth of the values in full, and devices differ in what they
-- make of the rest.
local LEAST_NORM <const> = 1e-32
-- A sum that is a smaller part of the norm is what rounding and noise have left.
local LEAST_PART <const> = 1e-4
local LARGEST <const> = 0x1.fffffep127 -- f32
local ROUNDING <const> = 1e-9 -- sums that differ by less of them are equal
local SUBTRACTED <const> = 1e-5 -- the same after f32 arithmetic

--- How many values of an image are below 0 and so on, as mb.histogram has it, to be released; nil
-- where its type has no such values.
function gate.counts(image)
    return image.dtype == "f32" and mb.histogram(image, {bins = 1, low = 0, high = LARGEST}) or nil
end

--- Checks what counts and sums say of an image for Poisson noise: `sum`, of the values above 0;
-- `below`, how many are below 0, of `elements`; `points`, of the grid. `squared`: differences will
-- be squared. Returns the mean of the image, and the part of its values that count as 0.
function gate.judge(what, sum, below, elements, points, squared)
    local mean = sum / elements
    local largest = squared and LARGEST_SQUARED or LARGEST_SUM
    local least = squared and LEAST_SQUARED or LEAST_MEAN
    if mean == 0 and below > 0 then
        fail("argument", what, "image", "no value of the image is above 0: too much was "
            .. "subtracted from it")
    elseif mean * points > largest then
        fail("argument", what, "image", "the values of the image are too large for f32: their mean "
            .. "is %.3g, and it must be at most %.3g: divide the image by a number", mean,
            largest / points)
    elseif mean > 0 and mean < least then
        fail("argument", what, "image", "the values of the image are too small for f32: their mean "
            .. "is %.3g, and it must be at least %.3g: multiply the image by a number", mean, least)
    end
    return mean, below / elements
end

--- What messages call the block of an image that begins at these places, 0-based.
function gate.block(first)
    return ("the image's block from (%s) on"):format(table.concat(first, ", "))
end

--- Looks at an image for Poisson noise. `part`: it is a part of one and may have nothing above 0;
-- part(mean) is told its mean, and part() returns what messages call it. Returns its mean with
-- negative values counted as 0 (1 in a dry run), and their part.
-- Errors: argument.
function gate.image(what, image, points, squared, part)
    local sum <close> = mb.reduce(image, "positive")
    local counts <close> = gate.counts(image)
    if image.device.dry then
        return 1, 0
    end
    local total, below = sum:item(), counts and counts:item(2) or 0
    finite.check_sum(total, image, what, part and part() or "the image")
    if part then
        part(total / image.elements)
    end
    if part and total == 0 then
        return 0, below / image.elements
    end
    return gate.judge(what, total, below, image.elements, points, squared)
end

--- Raises an error unless weights are finite, not negative, and not 0 everywhere. `name`: what
-- messages call them.
function gate.weights(what, weights, name)
    name = name or "weights"
    local counts <close> = gate.counts(weights)
    local sum <close> = mb.reduce(weights, "positive")
    if weights.device.dry then
        return
    end
    local below, above, none = counts:item(2), counts:item(3), counts:item(4)
    local mean = sum:item() / weights.elements
    if above + none > 0 or sum:item() == math.huge or sum:item() == -math.huge then
        fail("argument", what, "weights", "%d of %d values of %s are not finite (NaN or "
            .. "infinite): give numbers from 0, for bad pixels, to 1",
            math.tointeger(math.max(1, above + none)), weights.elements, name)
    elseif below > 0 then
        fail("argument", what, "weights", "%d of %d values of %s are below 0: give numbers "
            .. "from 0, for bad pixels, to 1", math.tointeger(below), weights.elements, name)
    elseif sum:item() == 0 then
        fail("argument", what, "weights", "%s is 0 everywhere, and 0 says that a pixel is bad: "
            .. "nothing would count", name)
    elseif mean < LEAST_NORM then
        fail("argument", what, "weights", "the values of %s are too small for f32: their mean is "
            .. "%.3g: give numbers from 0, for bad pixels, to 1", name, mean)
    end
end

-- The sum of a PSF, and that of what is above 0: of `array`, by the reduction `fn`. Nothing in a
-- dry run.
local function sums_of(what, psf, array, fn)
    local all <close> = mb.reduce(psf, "sum")
    local positive <close> = mb.reduce(array, fn)
    if not psf.device.dry then
        local sum = all:item()
        finite.check_sum(sum, psf, what, "the PSF")
        return sum, positive:item()
    end
end

-- The part of |sum| that lies below 0; 0 where it is rounding.
local function share_of(below, above, rounding)
    return below > rounding * above and below / (above + below) or 0
end

-- The norm of an argument's values; nothing in a dry run. Errors: argument (not finite; too small
-- for f32, but not 0).
local function norm_of(what, arg, name, array)
    local reduced <close> = mb.reduce(array, "norm")
    if array.device.dry then
        return nil
    end
    local norm = reduced:item()
    finite.check_sum(norm, array, what, name)
    if norm > 0 and norm < LEAST_NORM then
        fail("argument", what, arg, "the values of %s are too small for f32: their norm is %.3g, "
            .. "and it must be at least %.3g: multiply %s by a number", name, norm, LEAST_NORM,
            name)
    end
    return norm
end

--- The part of the |sum| of a PSF that lies below 0; 0 in a dry run.
-- Errors: argument (values that are not finite, none above 0, all too small for f32).
function gate.psf_share(what, psf)
    local sum, above = sums_of(what, psf, psf, "positive")
    if sum and above <= 0 then
        fail("argument", what, "psf", "no value of the PSF is above 0; its sum must be positive")
    elseif not norm_of(what, "psf", "the PSF", psf) then
        return 0
    end
    return share_of(above - sum, above, ROUNDING)
end

--- The part of |sum| that was below 0 in a PSF after its background `level` was subtracted; `left`
-- is what psf.subtract_background made of it. 0 in a dry run. Errors: argument (not finite).
function gate.subtracted_share(what, psf, level, left)
    local sum, above = sums_of(what, psf, left, "sum")
    return sum and share_of(above - (sum - level * psf.elements), above, SUBTRACTED) or 0
end

--- Raises an error where too much of a PSF lies below 0.
function gate.check_psf_share(what, share)
    if share > gate.PSF_LIMIT then
        fail("argument", what, "psf", "%.3g %% of the PSF's |sum| is below 0, more than %g %%: its "
            .. "background was subtracted too far (psf.subtract_background with a level below 0 "
            .. "adds it again, --psf-background LEVEL), or it is mostly noise (take a smaller box "
            .. "around the bead, or the mean of several beads)", 100 * share, 100 * gate.PSF_LIMIT)
    end
end

--- A PSF without negative values, to be closed, and the part of its |sum| that they were.
-- Errors: argument (too large a part; values that are not finite; none above 0).
function gate.psf(what, psf)
    if psf.dtype == "u8" or psf.dtype == "u16" then
        return psf:view(), 0
    end
    local share = gate.psf_share(what, psf)
    gate.check_psf_share(what, share)
    local copy = psf:cast("f32")
    local _ <close> = on_error(function() copy:release() end)
    return mb.binary(copy, "max", {scalar = 0, out = copy}), share
end

--- Looks at an image for Gaussian noise: values below 0 are measurements like others. Returns its
-- mean, and whether it is 0 everywhere; 1 in a dry run. Errors: argument (not finite, too small).
function gate.gaussian(what, image)
    local norm = norm_of(what, "image", "the image", image)
    local mean <close> = mb.reduce(image, "mean")
    if not norm then
        return 1
    end
    return mean:item(), norm == 0
end

--- Raises an error unless a result is finite, and not 0 everywhere unless the image is (`zero`).
-- `sum`: of its values or, where these may be negative, their norm.
function gate.judge_result(what, sum, zero)
    if sum ~= sum or math.abs(sum) == math.huge then
        fail("argument", what, nil, "the result has values that are not finite (NaN or infinite): "
            .. "the iterations have left what f32 can hold; are the image and the PSF in "
            .. "proportion?")
    elseif sum == 0 and not zero then
        fail("argument", what, nil, "the result is 0 everywhere, and the image is not: do weights, "
            .. "PSF or start leave nothing of it, was too much subtracted from the image, or is "
            .. "the background above it?")
    end
end

--- The same for a result itself. `signed`: its values may be negative. Waits for the device.
function gate.result(what, result, zero, signed)
    local size <close> = mb.reduce(result, signed and "norm" or "sum")
    if not result.device.dry then
        gate.judge_result(what, size:item(), zero)
    end
end

--- Looks at the PSF of a linear filter: values below 0 are values like others there, and its sum
-- may be 0, unless it is divided by that (`normalize`).
-- Errors: argument (values that are not finite, all 0 or too small for f32; a sum that is 0 or
-- less, or nothing beside their norm).
function gate.kernel(what, psf, normalize)
    local norm = norm_of(what, "psf", "the PSF", psf)
    local total <close> = normalize and mb.reduce(psf, "sum") or nil
    if not norm then
        return
    elseif norm == 0 then
        fail("argument", what, "psf", "the PSF is 0 everywhere: nothing would be left")
    elseif normalize and total:item() <= LEAST_PART * norm then
        fail("argument", what, "psf", "the PSF sums to %.3g, its values have a norm of %.3g, and "
            .. "it cannot be divided by such a sum: the option normalize = false takes it as it is",
            total:item(), norm)
    end
end

--- Looks at what a linear filter is given. Returns whether the image is 0 everywhere; nil in a dry
-- run. Errors: argument (those of gate.kernel; an image that is not finite or too small).
function gate.linear(what, image, psf, normalize)
    gate.kernel(what, psf, normalize)
    return select(2, gate.gaussian(what, image))
end

--- Raises an error unless the result of a linear filter is finite, and not 0 everywhere unless the
-- image is (`zero`). Waits for the device.
function gate.linear_result(what, result, image, zero)
    local norm <close> = mb.reduce(result, "norm")
    if not result.device.dry then
        finite.check_sum(norm:item(), image, what, "the image")
        gate.judge_result(what, norm:item(), zero)
    end
end

--- The largest weight of total variation with which the step keeps its sign, for voxels of these
-- distances along the axes. The step divides by 1 - weight * div u, with u of length 1 or less. At
-- a voxel that is darker than all its neighbors the divergence reaches |1 / d| + sum(1 / d): that
-- of its own u, and those of the voxels before it, each along its axis.
function gate.largest_variation(shape, spacing)
    local squares, sum = 0, 0
    for i, n in ipairs(shape) do
        local own = type(spacing) == "table" and (spacing[i] or spacing[1]) or spacing or 1
        if n > 1 and type(own) == "number" and own > 0 then
            squares, sum = squares + 1 / own ^ 2, sum + 1 / own
        end
    end
    return sum > 0 and 1 / (math.sqrt(squares) + sum) or 1
end

--- Raises an error where total variation is larger than that.
function gate.variation(what, weight, shape, spacing)
    local largest = gate.largest_variation(shape, spacing)
    if weight and weight > largest then
        fail("argument", what, "total_variation", "total_variation is %g, and from %.3g on, with "
            .. "these axes and distances of voxels, its step may change sign: 0.002 to 0.01 is "
            .. "usual", weight, largest)
    end
end

--- The level that an estimate starts with: the mean of the image without the background.
function gate.level(mean, options)
    local background = options.background or 0
    local level = background > 0 and math.max(mean - background, 1e-3 * mean) or mean
    return math.max(level, options.min or level)
end

return gate
