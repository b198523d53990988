--- The point spread function of an image of beads: beads are found, chosen, aligned and averaged,
-- and what lies under them, noise and their diameter are taken out.
--
-- The places of beads depend on the values, the memory does not: what is found is worked on as
-- lists of Lua, bead by bead; the pool has the image, a smoothed copy, and boxes of one size.

local mb = require "moonbeam"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local whole_call = require "moonbeam.internal.whole"

local bead_boxes = require "moonbeam.psf.bead_boxes"
local bead_fit = require "moonbeam.psf.bead_fit"
local bead_spectrum = require "moonbeam.psf.bead_spectrum"
local sampling = require "moonbeam.psf.sampling"

local beads = {}

local WHAT <const> = "beads.psf"
local SMOOTH <const> = 1 -- sigma, voxels, of the image in which maxima are looked for
local REACH <const> = 2 -- voxels: a maximum is the largest value so far around it
local CLEAR <const> = 8 -- standard deviations of the noise, above the median
local SADDLE <const> = 0.8 -- of the lower of two maxima: one bead where no value between is less
local LOBE <const> = 0.2 -- of a bead's height: a maximum in its box that is lower is its ring
local FAINT <const> = 0.2 -- of the median height: a bead that is lower is left out
local FLAT <const> = 3 -- values equal to the image's largest make a bead saturated
local UNLIKE <const> = 2.5 -- times the median misfit
local FEWEST <const> = 4 -- beads of which one may be unlike the others
local ROUNDS <const> = 4 -- of alignment against the mean
local USUAL <const> = 31 -- voxels, of the box
local SAMPLES <const> = 1 << 16

-- ---- what is found ----

-- The root of the mean square of distances, which are sorted, below 5 times itself: the noise where
-- most values are equal, as in counts of few photons.
local function clipped(distances)
    local last, rms = math.huge, 0
    for _ = 1, 10 do
        local sum, count = 0, 0
        for _, distance in ipairs(distances) do
            if distance > last then
                break
            end
            sum, count = sum + distance * distance, count + 1
        end
        rms = math.sqrt(sum / math.max(1, count))
        last = 5 * rms
    end
    return rms
end

-- The median and the standard deviation of noise of values taken here and there.
local function level_of(a)
    local nz, ny, nx = table.unpack(a.shape)
    local stride = math.max(1, a.elements // SAMPLES) | 1
    local values, at = {}, 0
    for z = 1, nz do
        local view <close> = a:view({z, z})
        local plane <close> = view:copy()
        local raw = plane:to_string()
        while at < ny * nx do
            values[#values + 1] = string.unpack("<f", raw, 4 * at + 1)
            at = at + stride
        end
        at = at - ny * nx
    end
    local level = bead_boxes.median(values)
    for i, value in ipairs(values) do
        values[i] = math.abs(value - level)
    end
    local noise = 1.4826 * bead_boxes.median(values)
    return level, noise > 0 and noise or clipped(values)
end

-- The maxima of a smoothed image above a threshold, the highest first: {height, z, y, x}, 1-based.
local function maxima_of(smooth, rows, threshold)
    local nz, ny, nx = table.unpack(smooth.shape)
    local planes, found = {}, {}
    local function value(z, y, x)
        if not planes[z] then
            local view <close> = smooth:view({z, z})
            local plane <close> = view:copy()
            planes[z] = plane:to_string()
        end
        return (string.unpack("<f", planes[z], 4 * ((y - 1) * nx + x - 1) + 1))
    end
    -- Of equal values the first one is a maximum.
    local function largest(here, z, y, x)
        for k = math.max(1, z - REACH), math.min(nz, z + REACH) do
            for j = math.max(1, y - REACH), math.min(ny, y + REACH) do
                for i = math.max(1, x - REACH), math.min(nx, x + REACH) do
                    local other = value(k, j, i)
                    if other > here or other == here and (k < z or k == z and (j < y
                        or j == y and i < x)) then
                        return false
                    end
                end
            end
        end
        return true
    end
    for z = 1, nz do
        planes[z - REACH - 1] = nil
        for y = 1, ny do
            for x = 1, rows[z][y] > threshold and nx or 0 do
                local here = value(z, y, x)
                if here > threshold and largest(here, z, y, x) then
                    found[#found + 1] = {height = here, z, y, x}
                end
            end
        end
    end
    table.sort(found, function(a, b)
        if a.height ~= b.height then
            return a.height > b.height
        end
        return table.concat(a, " ") < table.concat(b, " ")
    end)
    return found
end

local function within(a, b, reach)
    for i = 1, 3 do
        if math.abs(a[i] - b[i]) > reach[i] then
            return false
        end
    end
    return true
end

-- Is there no valley between two maxima?
local function is_one(smooth, a, b, level)
    local steps = 0
    for i = 1, 3 do
        steps = math.max(steps, math.abs(a[i] - b[i]))
    end
    for s = 1, steps - 1 do
        local at = {}
        for i = 1, 3 do
            at[i] = math.floor(a[i] + (b[i] - a[i]) * s / steps + 0.5)
        end
        if smooth:item(at[1], at[2], at[3]) - level < SADDLE * (b.height - level) then
            return false
        end
    end
    return true
end

-- Beads, the highest first, each with `near` where another one is in its box.
local function beads_of(smooth, maxima, level, reach)
    local found = {}
    for _, maximum in ipairs(maxima) do
        local own = true
        for _, bead in ipairs(found) do
            if own and within(bead, maximum, reach) then
                own = maximum.height - level >= LOBE * (bead.height - level)
                    and not is_one(smooth, bead, maximum, level)
                bead.near, maximum.near = bead.near or own, own
            end
        end
        found[#found + 1] = own and maximum or nil
    end
    return found
end

local function find(real, smooth, reach)
    local rows <close> = mb.reduce(smooth, "max", {axis = 3})
    if real.device.dry then
        local view <close> = smooth:view({1, 1})
        view:copy():release()
        return {}, 0
    end
    local level, noise = level_of(smooth)
    local list, highest = rows:to_table(), level
    for _, row in ipairs(list) do
        highest = math.max(highest, table.unpack(row))
    end
    local threshold = level + math.max(CLEAR * noise, 1e-3 * (highest - level))
    return beads_of(smooth, maxima_of(smooth, list, threshold), level, reach), level
end

-- ---- what is chosen ----

-- The reason to leave a bead out, or nil; reads its box.
local function fault_of(bead, real, size, saturated, least)
    for i = 1, 3 do
        local first = bead[i] - (size[i] - 1) // 2
        if first < 1 or first + size[i] - 1 > real.shape[i] then
            return "border"
        end
    end
    bead.box = bead_boxes.read(real, bead, size)
    local flat = 0
    for _, value in ipairs((bead_boxes.shifted(bead.box, size, {0, 0, 0}))) do
        flat = flat + (value >= saturated and 1 or 0)
    end
    return flat >= FLAT and "saturated" or bead.near and "close" or bead.height < least and "faint"
        or nil
end

-- The height at which half of the light of beads is in higher ones. A median would be that of
-- single photons where there are more of them than beads.
local function usual_height(found, level)
    local sum, part = 0, 0
    for _, bead in ipairs(found) do
        sum = sum + bead.height - level
    end
    for _, bead in ipairs(found) do
        part = part + bead.height - level
        if part >= sum / 2 then
            return bead.height - level
        end
    end
    return 0
end

-- The beads that are taken, with what lies under them, and how many are left out for what.
local function choose(found, real, smooth, size, saturated, level)
    local chosen, left = {}, {border = 0, saturated = 0, close = 0, faint = 0, unlike = 0}
    local least = level + FAINT * usual_height(found, level)
    for _, bead in ipairs(found) do
        local fault = fault_of(bead, real, size, saturated, least)
        if fault then
            left[fault], bead.box = left[fault] + 1, nil
        else
            chosen[#chosen + 1] = bead
            bead.under, bead.variance = bead_boxes.under(real, smooth, bead, found, size)
        end
    end
    return chosen, left
end

-- ---- alignment ----

-- A list divided by its sum, without what is below 0 where `positive`; nil where the sum is not
-- above 0.
local function unit(values, positive)
    local result, sum = {}, 0
    for at, value in ipairs(values) do
        result[at] = positive and math.max(0, value) or value
        sum = sum + result[at]
    end
    if sum <= 0 then
        return nil
    end
    for at, value in ipairs(result) do
        result[at] = value / sum
    end
    return result
end

-- A bead's light over the variance of its noise where the mean is bright: the weight with which the
-- noise of a sum is smallest.
local function weight_of(light, rest, mean)
    local sum, noise = 0, 0
    for at, value in ipairs(mean) do
        sum, noise = sum + value, noise + value * rest[at] ^ 2
    end
    return noise > 0 and light * sum / noise or 1
end

-- The sum of the beads at their shifts with their weights, less what lies under them, and the
-- variance of its noise from how the beads differ from the mean. Each bead is fitted to it, which
-- gives its `weight` and its `misfit`, and where `slopes` its next shift.
local function sum_of(chosen, size, mean, slopes, step)
    local light, variance, left = {}, {}, 0
    local equations = mean and bead_fit.equations(mean, slopes)
    for at = 1, size[1] * size[2] * size[3] do
        light[at], variance[at] = 0, 0
    end
    for _, bead in ipairs(chosen) do
        local values, power = bead_boxes.shifted(bead.box, size, bead.shift)
        local x, rest
        if mean then
            x, rest = bead_fit.fitted(values, equations)
            bead.misfit = math.huge
        end
        local weight, misfit, sum = bead.weight, 0, 0
        for at, value in ipairs(values) do
            light[at] = light[at] + weight * (value - bead.under)
            if x then
                variance[at] = variance[at] + (weight * rest[at]) ^ 2
                misfit, sum = misfit + rest[at] ^ 2, sum + math.abs(value)
            end
        end
        left = left + weight ^ 2 * bead.variance * power
        if x then
            bead.misfit = misfit / math.max(sum, 1e-30)
            bead.weight = weight_of(x[1], rest, mean)
        end
        for i, slope in ipairs(x and slopes or {}) do
            local move = -x[2 + i] / x[1]
            bead.shift[slope.axis] = bead.shift[slope.axis] + math.max(-1, math.min(1, move))
        end
        step()
    end
    local n = #chosen
    for at, value in ipairs(variance) do
        variance[at] = n > 1 and value * n / (n - 1) or left
    end
    return light, variance
end

-- The beads that are like the others, and how many are not.
local function alike(chosen, first)
    local misfits, kept = {}, {}
    for i, bead in ipairs(chosen) do
        misfits[i] = bead.misfit
    end
    local most = #chosen >= FEWEST and UNLIKE * bead_boxes.median(misfits) or math.huge
    for _, bead in ipairs(chosen) do
        local good = bead.misfit <= most or first
        for i = 1, 3 do
            good = good and math.abs(bead.shift[i]) <= bead_boxes.STRAY
        end
        kept[#kept + 1] = good and bead or nil
    end
    return kept, #chosen - #kept
end

-- Aligns the chosen beads. Returns those that are alike, how many are not, and the sum of the beads
-- and its variance; no sum where no bead is left.
local function align(chosen, size, device, step)
    local middle <const> = {0, 0, 0}
    for _, bead in ipairs(chosen) do
        bead.shift = bead_fit.top(bead_boxes.shifted(bead.box, size, middle), size, bead.under)
        bead.weight = 1
    end
    local light = sum_of(chosen, size, nil, nil, step)
    local mean, unlike = unit(light) or unit(light, true), 0
    if not mean then
        return {}, #chosen
    end
    for round = 1, ROUNDS do
        local out
        local variance
        light, variance = sum_of(chosen, size, mean, bead_fit.slopes(mean, size), step)
        chosen, out = alike(chosen, round == 1)
        unlike = unlike + out
        if #chosen == 0 then
            return chosen, unlike
        end
        mean = unit(bead_spectrum.clean(light, size, variance, nil, device), true) or mean
    end
    return chosen, unlike, sum_of(chosen, size, mean, {}, step)
end

-- ---- the whole ----

local function size_of(shape, options)
    local size, given = {}, options.size
    if type(given) == "table" and #given == 2 and shape[1] == 1 then
        given = {1, given[1], given[2]}
    end
    for i, n in ipairs(shape) do
        local typed = given and given[i]
        size[i] = typed or math.min(USUAL, (math.max(1, n // 2) - 1) // 2 * 2 + 1)
        if math.type(size[i]) ~= "integer" or size[i] < 1 or size[i] % 2 == 0 or size[i] > n then
            fail("argument", WHAT, "size", "the box of a bead has odd extents, at most those of "
                .. "the image: extent %s of axis %d, where the image has %d", tostring(size[i]), i,
                n)
        end
    end
    return size
end

-- The diameter of a bead in voxels along z, y, x; nil for points.
local function diameters_of(image, options)
    if image.rank ~= 3 and image.rank ~= 2 then
        fail("shape", WHAT, "image", "an image of beads has the axes (z, y, x), or (y, x); this "
            .. "one has %s", counted(image.rank, "axis", "axes"))
    elseif options.bead_diameter > 0 and not options.spacing then
        fail("argument", WHAT, "spacing", "bead_diameter needs spacing, the distances of voxels in "
            .. "its unit")
    end
    local spacing, good = options.spacing, true
    if type(spacing) == "table" and #spacing == 2 and image.rank == 2 then
        spacing = {spacing[1], spacing[1], spacing[2]}
    end
    for i = 1, 3 do
        good = good and (not spacing or type(spacing) == "table" and type(spacing[i]) == "number"
            and spacing[i] > 0 and spacing[i] < math.huge)
    end
    if not good then
        fail("argument", WHAT, "spacing", "spacing is {z, y, x}, or {y, x} of one plane: numbers "
            .. "above 0")
    end
    local diameters = {}
    for i = 1, 3 do
        diameters[i] = spacing and options.bead_diameter / spacing[i]
    end
    return options.bead_diameter > 0 and diameters or nil
end

local function none_left(report)
    if report.found == 0 then
        fail("argument", WHAT, "image", "the image has no bead: nothing is 8 standard deviations "
            .. "of its noise above its median")
    end
    fail("argument", WHAT, "image", "no bead can be used: %d found, %d nearer to a border than "
        .. "half the box, %d saturated, %d too close to another, %d too faint, %d unlike the "
        .. "others: a smaller size helps the first and the third", report.found, report.border,
        report.saturated, report.close, report.faint, report.unlike)
end

-- The beads that are taken of an image (z, y, x), with their boxes, and the report of what is left
-- out.
local function taken(image, size, saturation)
    local real <close> = image:cast("f32")
    local max <close> = mb.reduce(real, "max")
    local sum <close> = mb.reduce(real, "sum")
    if not real.device.dry and sum:item() - sum:item() ~= 0 then
        finite.fail(image, WHAT, "the image")
    end
    local smooth <close> = mb.gaussian_filter(real, SMOOTH)
    local found, level = find(real, smooth, {size[1] // 2 + 1, size[2] // 2 + 1, size[3] // 2 + 1})
    if real.device.dry then
        bead_boxes.rehearse(real, smooth, size)
        return {}, {found = 0}
    end
    local chosen, report = choose(found, real, smooth, size, saturation or max:item(), level)
    report.found = #found
    return chosen, report
end

-- The mean of the beads without noise and their diameters, a list; zeros in a dry run.
local function mean_of(chosen, report, size, diameters, device, step)
    if device.dry then
        bead_spectrum.rehearse(size, device)
        local zeros = {}
        for i = 1, size[1] * size[2] * size[3] do
            zeros[i] = 0
        end
        return {}, zeros
    end
    local light, variance
    chosen, report.unlike, light, variance = align(chosen, size, device, step)
    if #chosen == 0 then
        none_left(report)
    end
    local mean = unit(bead_spectrum.clean(light, size, variance, diameters, device), true)
        or unit(light, true)
    if not mean then
        fail("argument", WHAT, "image", "the mean of %d beads has no light above what lies under "
            .. "them", #chosen)
    end
    return chosen, mean
end

--- The PSF of an image of beads, (z, y, x) or (y, x): beads.psf(image [, options]). Beads are
-- maxima of the smoothed image, 8 standard deviations of its noise above its median. Left out are
-- those nearer to a border than half the box, saturated (3 values or more at the image's largest,
-- or at the option's), too close (another one in the box), too faint (a fifth of the height above
-- which half of the light is), or unlike the others. What lies under a bead is the mean of what is
-- far from all beads around it. The others are aligned by their centroids, then four times by
-- least squares against their mean (Gauss-Newton), and averaged at shifts of fractions of a voxel
-- (Lanczos, a = 4), with weights by their light over their noise. The noise of the mean, which is
-- known from how the beads differ, and a ball of the bead's diameter are taken out by Wiener's
-- filter: light / (light + noise / 2) over the ball's transform, the light being the smoothed
-- power of the mean less the noise; then voxels of four scales are shrunk by 1 - 2 noise / power,
-- and values below 0 are 0. Options: size (odd, default 31, at most half the image; {y, x} of a
-- plane), bead_diameter (default 0: a point) and spacing ({z, y, x}, or {y, x}), both in one unit;
-- saturation, the level; step(), called for every bead and round. Returns an f32 array of sum 1
-- whose center is the middle, with the axes of the image, and {found, chosen, border, saturated,
-- close, faint, unlike, places}: counts, and the places of the chosen beads, 0-based, {z, y, x}.
-- Errors: argument (no bead is left), shape.
function beads.psf(image, options)
    local diameters = diameters_of(image, options)
    local ny, nx = image.shape[image.rank - 1], image.shape[image.rank]
    local shape = {image.rank == 3 and image.shape[1] or 1, ny, nx}
    local size = size_of(shape, options)
    local chosen, report, mean
    do
        local stack <close> = image:reshape(shape)
        chosen, report = taken(stack, size, options.saturation)
    end
    chosen, mean = mean_of(chosen, report, size, diameters, image.device, options.step
        or function() end)
    report.chosen, report.places = #chosen, {}
    for i, bead in ipairs(chosen) do
        local at = {}
        for axis = 1, 3 do
            at[axis] = bead[axis] - 1 + bead.shift[axis]
        end
        report.places[i] = at
    end
    return sampling.array_of(mean, image.rank == 3 and size or {size[2], size[3]}, image.device),
        report
end

return whole_call.module(beads, "beads", {
    psf = {"image: array", declared.options(
        {"size", "extents", "odd extents of the box of a bead, {z, y, x}, or {y, x} of a plane",
            usual = "31, at most half the image"},
        {"bead_diameter", "number", "of the beads; 0: points", min = 0, default = 0},
        {"spacing", "list", "distances of samples, {z, y, x}, or {y, x} of a plane, in the unit "
            .. "of bead_diameter"},
        {"saturation", "number", "value from which the camera is saturated",
            usual = "the image's largest"},
        {"step", "any", "a function that is called for every bead and round of alignment"})},
})
