--- What a background b in the model, H x + b, changes in the iterations of Richardson-Lucy. They
-- divide by H x + b, so where b is large they change little: light that they begin with, or lay
-- down beside bright points while these are still wide, stays for long. Two steps take it away.
--
-- The first iteration from a flat estimate c gives c / (c + b) H'y / H'1, which has the background
-- in it. That is taken out there, so the estimate begins as the image without background, seen
-- through H'.
--
-- The sum of H x over the image is to be at most the sum of y - b, the light that the model leaves
-- (S. Bonettini, R. Zanella, L. Zanni, Inverse Problems 25, 015002 (2009) have it as a constraint).
-- After a step that sum is the sum of H x r before it, with r = y / (H x + b): the sum of y, less b
-- times that of r. Where this is more than the light, the correction is multiplied by the ratio of
-- the two, but by no less than EARLY leaves in first iterations and LEAST in later ones: light that
-- was laid down too widely goes at once, and a background that was given too large costs bright
-- points no more than that part of their light. Momentum repeats the step, and takes a smaller one.
-- Where the step is not known before (gradient_consensus), the sum of H x is looked at.
--
-- Exact tiles know the sums between their two sweeps, before the update.

local mb = require "moonbeam"
local convolution = require "moonbeam.convolution"

local background = {}

local LEAST <const> = {none = 0.95, heavy_ball = 0.98, biggs_andrews = 0.99}
local EARLY <const> = 0.7 -- iteration k may take this part of the light over k
local DARK <const> = 0.03 -- this part at least of what the first iteration makes is left
local LIGHT <const> = 1e-3 -- of the sum of the image

local function origin_of(shape)
    local origin = {}
    for i = 1, #shape do
        origin[i] = 0
    end
    return origin
end

-- Nothing in a dry run.
local function item_of(array)
    local sum <close> = array
    return not sum.device.dry and sum:item() or nil
end

-- The sum of what `fill` gives, f32, times the weights.
local function weighted(weights, fill)
    local copy <close> = fill()
    mb.binary(copy, "mul", {b = weights, out = copy})
    return item_of(mb.reduce(copy, "sum"))
end

--- What iterations need to know: `sum` of the image's values above 0 at `points` elements (both
-- weighted), and the `level` of the flat estimate, nil if it is another. nil without a background.
function background.new(options, sum, points, level)
    local under = options.background
    if not under or under == 0 then
        return nil
    end
    return {sum = sum, light = math.max(sum - under * points, LIGHT * sum),
        least = LEAST[options.acceleration or "none"], level = level, under = under,
        min = options.min or 0}
end

--- The same for an image on the grid.
function background.of(measured, options, level)
    if not options.background or options.background == 0 then
        return nil
    end
    local weights = options.weights
    if not weights then
        return background.new(options, item_of(mb.reduce(measured, "positive")) or 1,
            measured.elements, level)
    end
    local sum = weighted(weights, function()
        local copy = measured:cast("f32")
        return mb.binary(copy, "max", {scalar = 0, out = copy})
    end)
    return background.new(options, sum or 1, item_of(mb.reduce(weights, "sum")) or 1, level)
end

-- What brings the light down to what the background leaves; `light` nil: dry.
local function held(known, light, least)
    return light and light > known.light and math.max(least, known.light / light) or 1
end

-- The sum of what stands at the start of padded rows where the image lies, times the weights.
local function over_image(rows, measured, weights)
    local seen <close> = rows:view(convolution.ranges(origin_of(measured.shape), measured.shape))
    if weights then
        return weighted(weights, function()
            return seen:copy()
        end)
    end
    return item_of(mb.reduce(seen, "sum"))
end

--- What the correction of iteration k is multiplied by. `ratios`: the sum of y / (H x + b) over the
-- image, nil in a dry run. The first one of a flat estimate is for background.begin.
function background.scale(known, ratios, k)
    if not ratios or k == 1 and known.level then
        return 1
    end
    return held(known, known.sum - known.under * ratios, math.min(known.least, 1 - EARLY / k))
end

--- The same for ratios on padded rows, which have the weights in them.
function background.scale_of(known, ratios, measured, k)
    return background.scale(known, over_image(ratios, measured), k)
end

--- What an estimate, `blurred` on padded rows, is multiplied by after a step that is not known yet.
function background.scale_before(known, blurred, measured, weights)
    return held(known, over_image(blurred, measured, weights), known.least)
end

--- Multiplies a correction, or an estimate.
function background.pull(array, scale)
    mb.binary(array, "mul", {scalar = scale, out = array})
end

--- Takes the background out of what the first iteration has made of a flat estimate. `spare`: an
-- array of its shape, which changes. What is 0 stays 0, as where nothing was measured; a flat
-- estimate of 0, that of an image or a tile that is 0 everywhere, stays as it is.
function background.begin(known, estimate, spare)
    if known.level and known.level > 0 then
        local level, under = known.level, known.under
        mb.convert(estimate, "f32", {out = spare})
        mb.binary(spare, "mul", {scalar = DARK, out = spare})
        mb.binary(estimate, "mul", {scalar = (level + under) / level, out = estimate})
        mb.binary(estimate, "sub", {scalar = under, out = estimate})
        mb.binary(estimate, "max", {b = spare, out = estimate})
        if known.min > 0 then
            mb.binary(estimate, "max", {scalar = known.min, out = estimate})
        end
    end
end

--- The same on the grid; `work`, the estimate on padded rows, becomes it again.
function background.begin_on(known, estimate, work)
    local rows <close> = work:view(convolution.ranges(origin_of(estimate.shape), estimate.shape))
    background.begin(known, estimate, rows)
    mb.convert(estimate, "f32", {out = rows})
end

return background
