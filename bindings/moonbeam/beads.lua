--- The point spread function of an image of beads: beads are found, chosen, aligned and averaged,
-- and what lies under them and their diameter are taken out.
--
-- The places of beads depend on the values, the memory does not: what is found is worked on as
-- lists of Lua, bead by bead; the pool has the image, a smoothed copy, and boxes of one size.

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local sampling = require "moonbeam.psf.sampling"
local whole_call = require "moonbeam.internal.whole"

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
local ROUNDS <const> = 3 -- of alignment against the mean
local ITERATIONS <const> = 20 -- of Richardson-Lucy with the bead as PSF
local USUAL <const> = 31 -- voxels, of the box
local SAMPLES <const> = 1 << 16

local function median(list)
    table.sort(list)
    local n = #list
    return n > 0 and (list[(n + 1) // 2] + list[n // 2 + 1]) / 2 or 0
end

local function floats(raw)
    local list = {}
    for at = 1, #raw, 4 do
        list[#list + 1] = string.unpack("<f", raw, at)
    end
    return list
end

-- The values of a box of an array that starts at {z, y, x} (1-based).
local function box_of(a, first, size)
    local ranges = {}
    for i, at in ipairs(first) do
        ranges[i] = {at, at + size[i] - 1}
    end
    local view <close> = a:view(table.unpack(ranges))
    local copy <close> = view:copy()
    return not a.device.dry and floats(copy:to_string()) or nil
end

-- ---- what is found ----

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
    local level = median(values)
    for i, value in ipairs(values) do
        values[i] = math.abs(value - level)
    end
    return level, 1.4826 * median(values)
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

local function find(real, reach)
    local smooth <close> = mb.gaussian_filter(real, SMOOTH)
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
    local first = {}
    for i = 1, 3 do
        first[i] = bead[i] - (size[i] - 1) // 2
        if first[i] < 1 or first[i] + size[i] - 1 > real.shape[i] then
            return "border"
        end
    end
    bead.values = box_of(real, first, size)
    local flat = 0
    for _, value in ipairs(bead.values) do
        flat = flat + (value >= saturated and 1 or 0)
    end
    return flat >= FLAT and "saturated" or bead.near and "close" or bead.height < least and "faint"
        or nil
end

local function choose(found, real, size, saturated, level)
    local heights, chosen, left = {}, {}, {border = 0, saturated = 0, close = 0, faint = 0,
        unlike = 0}
    for i, bead in ipairs(found) do
        heights[i] = bead.height - level
    end
    local least = level + FAINT * median(heights)
    for _, bead in ipairs(found) do
        local fault = fault_of(bead, real, size, saturated, least)
        if fault then
            left[fault], bead.values = left[fault] + 1, nil
        else
            chosen[#chosen + 1] = bead
        end
    end
    return chosen, left
end

-- ---- alignment ----

-- The weights of samples -3 ... 4 for a value at a fraction (0 to 1) after sample 0: Lanczos, 4.
local function lanczos(fraction)
    local weights, sum = {}, 0
    for k = -3, 4 do
        local x = math.pi * (fraction - k)
        local weight = math.abs(x) < 1e-9 and 1
            or math.abs(x) >= 4 * math.pi and 0 or 4 * math.sin(x) * math.sin(x / 4) / (x * x)
        weights[k], sum = weight, sum + weight
    end
    for k = -3, 4 do
        weights[k] = weights[k] / sum
    end
    return weights
end

-- A box sampled `shift` voxels further along each axis. Faces go on beyond the box.
local function shifted(values, size, shift)
    local inner = #values
    for axis, n in ipairs(size) do
        inner = inner // n
        local whole = math.floor(shift[axis])
        local fraction = shift[axis] - whole
        if n > 1 and (whole ~= 0 or fraction > 0) then
            local weights, result = lanczos(fraction), {}
            for base = 0, #values - 1, n * inner do
                for i = 0, n - 1 do
                    local to = base + i * inner
                    for c = 1, inner do
                        result[to + c] = 0
                    end
                    for k = -3, 4 do
                        local weight = weights[k]
                        local from = base + inner * math.max(0, math.min(n - 1, i + whole + k))
                        for c = 1, weight ~= 0 and inner or 0 do
                            result[to + c] = result[to + c] + weight * values[from + c]
                        end
                    end
                end
            end
            values = result
        end
    end
    return values
end

-- The derivatives of a box along its axes of more than one sample: a list of {axis, values}.
local function slopes_of(values, size)
    local list, inner = {}, #values
    for axis, n in ipairs(size) do
        inner = inner // n
        if n > 1 then
            local slope = {}
            for at = 1, #values do
                local i = (at - 1) // inner % n
                local low, high = i > 0 and at - inner or at, i < n - 1 and at + inner or at
                slope[at] = (values[high] - values[low]) / ((high - low) // inner)
            end
            list[#list + 1] = {axis = axis, values = slope}
        end
    end
    return list
end

-- Solves the symmetric equations m x = v in place (Gauss); nil where they have no one solution.
local function solve(m, v)
    local n = #v
    for i = 1, n do
        if m[i][i] <= 1e-30 then
            return nil
        end
        for j = i + 1, n do
            local factor = m[j][i] / m[i][i]
            for k = i, n do
                m[j][k] = m[j][k] - factor * m[i][k]
            end
            v[j] = v[j] - factor * v[i]
        end
    end
    for i = n, 1, -1 do
        for k = i + 1, n do
            v[i] = v[i] - m[i][k] * v[k]
        end
        v[i] = v[i] / m[i][i]
    end
    return v
end

-- The least squares of values = a mean + b + sum of c slope: {a, b, c ...}, and the sum of squares
-- that are left, over the values' sum.
local function fitted(values, mean, slopes)
    local columns, m, v = {mean, false}, {}, {}
    for _, slope in ipairs(slopes) do
        columns[#columns + 1] = slope.values
    end
    local n = #columns
    for i = 1, n do
        m[i], v[i] = {}, 0
        for j = 1, n do
            m[i][j] = 0
        end
    end
    local row = {}
    for at, value in ipairs(values) do
        for i = 1, n do
            row[i] = columns[i] and columns[i][at] or 1
        end
        for i = 1, n do
            v[i] = v[i] + row[i] * value
            for j = i, n do
                m[i][j] = m[i][j] + row[i] * row[j]
            end
        end
    end
    for i = 2, n do
        for j = 1, i - 1 do
            m[i][j] = m[j][i]
        end
    end
    local x = solve(m, v)
    if not (x and x[1] > 0) then
        return nil
    end
    local rest, sum = 0, 0
    for at, value in ipairs(values) do
        local model = x[2]
        for i = 1, n do
            model = model + (i == 2 and 0 or x[i] * columns[i][at])
        end
        rest, sum = rest + (value - model) ^ 2, sum + math.abs(value)
    end
    return x, rest / math.max(sum, 1e-30)
end

-- The centroid of what is above half of a box's height within 3 voxels of the middle, as a shift.
local function top_of(values, size, under)
    local sum, moments, middle, inner = 0, {0, 0, 0}, {}, {size[2] * size[3], size[3], 1}
    local highest = under
    for i = 1, 3 do
        middle[i] = (size[i] - 1) // 2
    end
    for pass = 1, 2 do
        for at, value in ipairs(values) do
            local d, near = {}, true
            for i = 1, 3 do
                d[i] = (at - 1) // inner[i] % size[i] - middle[i]
                near = near and math.abs(d[i]) <= 3
            end
            local above = value - (under + highest) / 2
            if pass == 1 then
                highest = near and math.max(highest, value) or highest
            elseif near and above > 0 then
                sum = sum + above
                for i = 1, 3 do
                    moments[i] = moments[i] + above * d[i]
                end
            end
        end
    end
    for i = 1, 3 do
        moments[i] = sum > 0 and moments[i] / sum or 0
    end
    return moments
end

-- The sum of shifted boxes, less what lies under them, with sum 1: the mean of beads, which are
-- weighted by their light. Second: the same with what lies under them, third the level under that.
local function mean_of(chosen, size)
    local sum, under, total = {}, 0, 0
    for _, bead in ipairs(chosen) do
        bead.moved = shifted(bead.values, size, bead.shift)
        for at, value in ipairs(bead.moved) do
            sum[at] = (sum[at] or 0) + value
        end
        under = under + bead.under
    end
    local mean = {}
    for at, value in ipairs(sum) do
        mean[at] = value - under
        total = total + mean[at]
    end
    for at, value in ipairs(mean) do
        mean[at] = total > 0 and value / total or value
    end
    return mean, sum, under
end

-- The median of what lies on the faces of a box.
local function faces_of(values, size)
    local faces, inner = {}, {size[2] * size[3], size[3], 1}
    for at, value in ipairs(values) do
        for i = 1, 3 do
            local k = (at - 1) // inner[i] % size[i]
            if size[i] > 1 and (k == 0 or k == size[i] - 1) then
                faces[#faces + 1] = value
                break
            end
        end
    end
    return median(faces)
end

local function align(chosen, size, step)
    for _, bead in ipairs(chosen) do
        bead.under = faces_of(bead.values, size)
        bead.shift = top_of(bead.values, size, bead.under)
    end
    local unlike = 0
    for round = 1, ROUNDS do
        local mean = mean_of(chosen, size)
        local slopes = slopes_of(mean, size)
        local misfits, kept = {}, {}
        for _, bead in ipairs(chosen) do
            local x, misfit = fitted(bead.moved, mean, slopes)
            bead.misfit = x and misfit or math.huge
            for i, slope in ipairs(x and slopes or {}) do
                local move = -x[2 + i] / x[1]
                bead.shift[slope.axis] = bead.shift[slope.axis] + math.max(-1, math.min(1, move))
            end
            misfits[#misfits + 1] = bead.misfit
            step()
        end
        local most = #chosen >= FEWEST and UNLIKE * median(misfits) or math.huge
        for _, bead in ipairs(chosen) do
            local good = bead.misfit <= most or round == 1
            for i = 1, 3 do
                good = good and math.abs(bead.shift[i]) <= 3
            end
            kept[#kept + 1] = good and bead or nil
        end
        unlike, chosen = unlike + #chosen - #kept, kept
    end
    return chosen, unlike
end

-- ---- the bead's diameter ----

-- A ball of a diameter on a grid of voxels, sum 1, odd extents; each voxel has the part of 5^3
-- points in it that the ball has.
local function ball(diameter, spacing, device)
    local size, values, points = {}, {}, 5
    for i = 1, 3 do
        size[i] = 2 * math.ceil(diameter / 2 / spacing[i]) + 1
    end
    local function squares(i, at)
        local list = {}
        for j = 1, points do
            list[j] = ((at + (j - 0.5) / points - 0.5) * spacing[i]) ^ 2
        end
        return list
    end
    for z = -(size[1] // 2), size[1] // 2 do
        for y = -(size[2] // 2), size[2] // 2 do
            for x = -(size[3] // 2), size[3] // 2 do
                local inside = 0
                for _, zz in ipairs(squares(1, z)) do
                    for _, yy in ipairs(squares(2, y)) do
                        for _, xx in ipairs(squares(3, x)) do
                            inside = inside + (zz + yy + xx <= diameter ^ 2 / 4 and 1 or 0)
                        end
                    end
                end
                values[#values + 1] = inside
            end
        end
    end
    return sampling.array_of(values, size, device, mb.psf.sum)
end

-- ---- the whole ----

local function size_of(image, options)
    local size = {}
    for i, n in ipairs(image.shape) do
        local typed = options.size and options.size[i]
        size[i] = typed or math.min(USUAL, (math.max(1, n // 2) - 1) // 2 * 2 + 1)
        if math.type(size[i]) ~= "integer" or size[i] < 1 or size[i] % 2 == 0 or size[i] > n then
            fail("argument", WHAT, "size", "the box of a bead has odd extents, at most those of "
                .. "the image: extent %s of axis %d, where the image has %d", tostring(size[i]), i,
                n)
        end
    end
    return size
end

local function check(image, options)
    if image.rank ~= 3 then
        fail("shape", WHAT, "image", "an image of beads has the axes (z, y, x); this one has %d "
            .. "axes: give a plane the extent 1 in z", image.rank)
    elseif options.bead_diameter > 0 and not options.spacing then
        fail("argument", WHAT, "spacing", "bead_diameter needs spacing, {z, y, x} in its unit")
    end
    local spacing, good = options.spacing or {1, 1, 1}, true
    for i = 1, 3 do
        good = good and type(spacing[i]) == "number" and spacing[i] > 0
    end
    if not good then
        fail("argument", WHAT, "spacing", "spacing is {z, y, x}, numbers above 0")
    end
    return spacing
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

--- The PSF of an image of beads (z, y, x): beads.psf(image [, options]). Beads are maxima of
-- the smoothed image, 8 standard deviations of its noise above its median. Left out are those
-- nearer to a border than half the box, saturated (3 values or more at the image's largest, or at
-- the option's), too close (another one in the box), too faint (a fifth of the median), or unlike
-- the others. The others are aligned by their centroids, then three times by least squares against
-- their mean (Gauss-Newton), and averaged at shifts of fractions of a voxel (Lanczos, a = 4).
-- A ball of the bead's diameter is taken out by 20 iterations of Richardson-Lucy with what lies
-- under the beads in the model. Options: size (odd, default 31, at most half the image),
-- bead_diameter (default 0: a point) and spacing ({z, y, x}), both in one unit; saturation, the
-- level; step(), called for every bead and round. Returns an f32 array of sum 1 whose center is the
-- middle, and {found, chosen, border, saturated, close, faint, unlike, shifts}: counts, and the
-- places of the chosen beads, 0-based. Errors: argument (no bead is left), shape.
function beads.psf(image, options)
    local spacing = check(image, options)
    local size = size_of(image, options)
    local chosen, report = {}, {found = 0}
    local mean, sum, under
    do
        local real <close> = image:cast("f32")
        local max <close> = mb.reduce(real, "max")
        local found, level = find(real, {size[1] // 2 + 1, size[2] // 2 + 1, size[3] // 2 + 1})
        if real.device.dry then
            box_of(real, {1, 1, 1}, size)
        else
            chosen, report = choose(found, real, size, options.saturation or max:item(), level)
            report.found = #found
        end
    end
    if image.device.dry then
        mean, under = {}, 0
        for i = 1, size[1] * size[2] * size[3] do
            mean[i] = 0
        end
        sum = table.move(mean, 1, #mean, 1, {})
    else
        chosen, report.unlike = align(chosen, size, options.step or function() end)
        if #chosen == 0 then
            none_left(report)
        end
        mean, sum, under = mean_of(chosen, size)
    end
    report.chosen, report.places = #chosen, {}
    for i, bead in ipairs(chosen) do
        local at = {}
        for axis = 1, 3 do
            at[axis] = bead[axis] - 1 + bead.shift[axis]
        end
        report.places[i] = at
    end
    if options.bead_diameter == 0 then
        local array <close> = sampling.array_of(mean, size, image.device, 1)
        local positive = mb.psf.subtract_background(array, 0)
        return sampling.divided(positive, mb.psf.sum), report
    end
    local light <close> = sampling.array_of(sum, size, image.device, 1)
    local kernel <close> = ball(options.bead_diameter, spacing, image.device)
    local result = mb.deconv.richardson_lucy(light, kernel, {iterations = options.iterations
        or ITERATIONS, background = math.max(0, under), boundary = "reflect", center = "middle"})
    local _ <close> = on_error(function() result:release() end)
    return sampling.divided(result, mb.psf.sum), report
end

return whole_call.module(beads, "beads", {
    psf = {"image: array", declared.options(
        {"size", "extents", "odd extents of the box of a bead, {z, y, x}",
            usual = "31, at most half the image"},
        {"bead_diameter", "number", "of the beads; 0: points", min = 0, default = 0},
        {"spacing", "list", "distances of samples, {z, y, x}, in the unit of bead_diameter"},
        {"saturation", "number", "value from which the camera is saturated",
            usual = "the image's largest"},
        {"step", "any", "a function that is called for every bead and round of alignment"},
        {"iterations", "count", "of Richardson-Lucy with the bead", default = 20})},
})
