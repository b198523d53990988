--- Registration of opposite projections: the column about which one is the mirror image of the
-- other.
--
-- first(x) and opposite(2c - x) show the same rays if c is the axis. For every m = 2c, a whole
-- number,
--     D(m) = mean of (first(x) - opposite(m - x))^2 - (mean of first(x) - opposite(m - x))^2
-- over the columns x that both see: the variance of the difference, so that a beam that became
-- weaker between the two frames does not matter. The sum of first(x) opposite(m - x) is a
-- convolution, done by FFT for all m at once; the other sums come from running sums over columns.
-- The relative residual is
--     r(m) = D(m) / (variance of first + variance of opposite over the same columns),
-- which is 1 less their correlation: 0 for mirror images, about 1 for noise. It finds the valley,
-- since D alone is small where both sides see air. D finds its lowest point, since r leans to fewer
-- columns of noise. A parabola gives the part of a column (Tian and Huhns 1986, Computer Vision,
-- Graphics, and Image Processing 35, 220). Rows count by their contrast: a row of air adds nothing
-- that depends on m.
--
-- Columns that show no sample (`bad`) and their mirror images about m / 2 are left out of all sums.
-- Noise is what is left of frames of one side when they are weighted so that what moves evenly
-- goes: it is smoothed as they are, and says how large a residual noise alone would make.

local mb = require "moonbeam"
local axis_curve = require "moonbeam.tomo.axis.axis_curve"
local finite = require "moonbeam.internal.finite"
local on_error = require "moonbeam.internal.on_error"

local axis_register = {}

--- The least part of the width that both projections of a pair must see.
axis_register.MIN_OVERLAP = 0.3
--- Beyond the search: the least part at which a better match is worth a word.
axis_register.FURTHEST_OVERLAP = 0.05
--- Residual above which opposite projections have nothing in common.
axis_register.NOTHING = 0.8

local SOFT_FLOOR = 0.01 -- transmission at which noise no longer counts as attenuation
local CHANCE = 4 -- standard deviations
local AMBIGUOUS = 0.07 -- more of the residual that a second column has, at most
local CONTRAST = 1e-7 -- of the mean square: a variance below it is rounding
-- Of the mean square: where less than it is seen, air is matched with air, and without noise these
-- are alike.
local SOMETHING = 1e-3
local CUT = 0.05 -- of the most attenuation: what an object seen whole does not have at the edges
-- Of the columns that both see without the bad ones: with fewer nothing can be judged.
local LEAST_LEFT = 0.5
local LARGEST = 1e19 -- its square is the largest that f32 holds
local methods = {}
methods.__index = methods

local function table_of(array)
    local _ <close> = array
    return mb.bound({}, array.to_table, array)
end

local function prefix_sums(values)
    local sums = {[0] = 0}
    for i, value in ipairs(values) do
        sums[i] = sums[i - 1] + value
    end
    return sums
end

local function add_to(sums, values, power)
    for i, value in ipairs(values) do
        sums[i] = (sums[i] or 0) + value ^ power
    end
end

-- The columns that do not count, without margins: a list, and a set.
local function bad_of(bad, margin, seen)
    local list, set = {}, {}
    for _, x in ipairs(bad or {}) do
        if x >= margin and x < margin + seen then
            list[#list + 1], set[x - margin] = x - margin, true
        end
    end
    return {list = list, set = set}
end

--- An empty registration of frames of `rows` x `width`, to be closed (<close>). `transmission`: the
-- frames are that, not line integrals. A Gaussian of up to 2 columns and 1 row smooths them: noise
-- is finer. `bad`: a list of 0-based columns that do not count, or nil.
function axis_register.new(rows, width, device, transmission, bad)
    local sigma = math.min(2, width / 64)
    local margin = math.ceil(sigma) -- columns whose smoothing lacks a side
    local seen = width - 2 * margin
    return setmetatable({rows = rows, width = width, device = device, transmission = transmission,
        sigma = {math.min(1, rows / 16), sigma}, margin = margin, seen = seen,
        size = mb.fft.good_size(2 * seen, {device = device}), pairs = 0,
        columns = {first = {squares = {}, sums = {}}, opposite = {squares = {}, sums = {}}},
        noise = {}, noise_frames = 0, energy = {}, bad = bad_of(bad, margin, seen)}, methods)
end

methods.__close = function(register)
    if register.product then
        register.product:release()
        register.product = nil
    end
end

-- An array (row, column) with zeros in the columns that do not count. Takes ownership.
local function without_bad(register, image)
    local _ <close> = on_error(function() image:release() end)
    local line = {}
    for x = 1, register.seen do
        line[x] = register.bad.set[x - 1] and 0 or 1
    end
    local keep <close> = mb.array({line}, {device = register.device})
    mb.binary(image, "mul", {b = keep, out = image})
    return image
end

-- A frame (row, column) smoothed, as line integrals, without its margins.
local function prepared(register, frame)
    local smooth <close> = mb.gaussian_filter(frame, register.sigma, {mode = "edge"})
    if register.transmission then
        mb.binary(smooth, "add", {scalar = SOFT_FLOOR, out = smooth})
        mb.minus_log(smooth, {min = SOFT_FLOOR / 2, max = 100, out = smooth})
        mb.binary(smooth, "add", {scalar = math.log(1 + SOFT_FLOOR), out = smooth}) -- air is 0
    end
    local first, last = register.margin + 1, register.margin + register.seen
    local inner <close> = smooth:view(mb.all, {first, last})
    return without_bad(register, inner:copy())
end

local function spectrum(register, image)
    local padded <close> = mb.pad(image, {after = {0, register.size - register.seen}})
    return mb.rfft(padded)
end

local function tally(register, name, image)
    local sums = register.columns[name]
    add_to(sums.squares, table_of(mb.reduce(image, "norm", {axis = 1})), 2)
    add_to(sums.sums, table_of(mb.reduce(image, "sum", {axis = 1})), 1)
    add_to(register.energy, table_of(mb.reduce(image, "norm", {axis = 2})), 2)
end

--- Adds a pair of frames (row, column), which it leaves as they are.
function methods.add(register, first, opposite)
    local a <close> = prepared(register, first)
    local b <close> = prepared(register, opposite)
    tally(register, "first", a)
    tally(register, "opposite", b)
    local product = spectrum(register, a)
    local _ <close> = on_error(function() product:release() end)
    local other <close> = spectrum(register, b)
    mb.binary(product, "mul", {b = other, out = product})
    if register.product then
        mb.binary(register.product, "add", {b = product, out = register.product})
        product:release()
    else
        register.product = product
    end
    register.pairs = register.pairs + 1
end

--- Adds what noise makes of a frame (row, column): `noise` is an image of as much noise as it has.
function methods.add_noise(register, frame, noise)
    local clean <close> = prepared(register, frame)
    local sum <close> = mb.binary(frame, "add", {b = noise})
    local noisy <close> = prepared(register, sum)
    mb.binary(noisy, "sub", {b = clean, out = noisy})
    add_to(register.noise, table_of(mb.reduce(noisy, "norm", {axis = 1})), 2)
    register.noise_frames = register.noise_frames + 1
end

-- The columns of the first frame, from low to high, that do not count for m: bad ones, and those
-- whose mirror image is bad.
local function left_out(register, m, low, high)
    local list, bad = {}, register.bad
    for _, x in ipairs(bad.list) do
        list[#list + 1] = x >= low and x <= high and x or nil
        local mirror = m - x
        list[#list + 1] = not bad.set[mirror] and mirror >= low and mirror <= high and mirror
            or nil
    end
    return list
end

-- How many columns both see of which neither is left out, for m.
local function columns_left(register, m)
    local width = register.seen
    local low, high = math.max(0, m - width + 1), math.min(width - 1, m)
    return high - low + 1 - #left_out(register, m, low, high), high - low + 1
end

-- The part of the residual at m that noise explains, where its variance of both is `both`.
local function noise_at(register, m, both)
    local width = register.seen
    local low, high = math.max(0, m - width + 1), math.min(width - 1, m)
    local sum = 0
    for x = low, high do
        sum = sum + ((register.noise[x + 1] or 0) + (register.noise[m - x + 1] or 0))
    end
    local count = columns_left(register, m)
    sum = sum / math.max(1, count * register.rows * register.noise_frames)
    return both > 0 and sum / both or 0
end

-- The sums over the columns that both see, for m = 2c in columns without margins.
local function curve_of(register, cross)
    local width, pixels = register.seen, register.rows * register.pairs
    local squares, sums = {}, {}
    for name, columns in pairs(register.columns) do
        squares[name], sums[name] = prefix_sums(columns.squares), prefix_sums(columns.sums)
    end
    local variance, residual, total = {}, {}, {}
    local usual = (squares.first[width] + squares.opposite[width])
        / (math.max(1, width - #register.bad.list) * pixels)
    for m = 0, 2 * width - 2 do
        local low, high = math.max(0, m - width + 1), math.min(width - 1, m)
        local out = left_out(register, m, low, high)
        local left = high - low + 1 - #out
        local n = math.max(1, left) * pixels
        local function between(list) -- columns low .. high; of opposite m - high .. m - low
            local a = list.first[high + 1] - list.first[low]
            local b = list.opposite[m - low + 1] - list.opposite[m - high]
            for _, x in ipairs(out) do
                a = a - (list.first[x + 1] - list.first[x])
                b = b - (list.opposite[m - x + 1] - list.opposite[m - x])
            end
            return a, b
        end
        local aa, bb = between(squares)
        local a, b = between(sums)
        variance[m] = math.max(0, (aa + bb - 2 * cross[m + 1]) / n - ((a - b) / n) ^ 2)
        local both = (aa + bb) / n - (a / n) ^ 2 - (b / n) ^ 2
        local seen = both > CONTRAST * usual and (aa + bb) / n > SOMETHING * usual
            and left >= LEAST_LEFT * (high - low + 1)
        total[m] = both
        residual[m] = seen and variance[m] / both or 1
        if variance[m] ~= variance[m] or both ~= both then
            residual[m] = 0 / 0
        end
    end
    return variance, residual, total
end

-- Walks downhill.
local function valley(values, m, from, to)
    while m > from and values[m - 1] < values[m] do
        m = m - 1
    end
    while m < to and values[m + 1] < values[m] do
        m = m + 1
    end
    return m
end

-- Vertex of the parabola through three equally spaced values: an offset in (-0.5, 0.5) from the
-- middle one, the curvature, and the value there.
local function vertex_of(left, middle, right)
    local curvature = left - 2 * middle + right
    if curvature <= 0 then
        return 0, 0, middle
    end
    local offset = math.max(-0.5, math.min(0.5, 0.5 * (left - right) / curvature))
    return offset, curvature, math.max(0, middle - curvature * offset ^ 2 / 2)
end

-- The lowest residual that is not in the valley around `best`.
local function second_valley(residual, best, from, to)
    local left, right = best, best
    while left > from and residual[left - 1] >= residual[left] do
        left = left - 1
    end
    while right < to and residual[right + 1] >= residual[right] do
        right = right + 1
    end
    local other
    for m = from, to do
        if (m < left or m > right) and (not other or residual[m] < residual[other]) then
            other = m
        end
    end
    return other
end

-- Values that differ by themselves: smoothing makes those within 2 sigma along each axis alike.
local function samples_at(register, m)
    local columns = math.max(1, (columns_left(register, m)))
    local alike = math.max(1, 2 * register.sigma[1]) * math.max(1, 2 * register.sigma[2])
    return columns * register.rows * register.pairs / alike
end

-- What the curve says about its lowest point. Noise correlates by chance, by one part in the square
-- root of how many values there are, and a search takes the best of many chances.
local function verdict_of(register, residual, best, other, from, to)
    local chance = CHANCE / math.sqrt(samples_at(register, best))
    if residual[best] > math.min(axis_register.NOTHING, 1 - chance) then
        return "flat"
    elseif best <= from + 1 or best >= to - 1 then
        return "edge"
    elseif other and residual[other] < residual[best] + AMBIGUOUS * (1 - residual[best]) then
        return "ambiguous"
    end
    return "found"
end

-- How well the rows of the two match about m (1: mirror images), and the sums of their products.
local function rows_about(register, convolved, m)
    local at_best <close> = convolved:view(mb.all, m + 1)
    local match, common = {}, at_best:to_table()
    for row, product in ipairs(common) do
        match[row] = register.energy[row] > 0 and 2 * product / register.energy[row] or 0
    end
    return match, common
end

-- Standard deviation of the column that noise as large as what is left at the best m makes: of the
-- least squares fit of a shift to values that smoothing has made alike over 2 sigma along each
-- axis.
local function uncertainty(register, value, curvature, m)
    local samples = samples_at(register, m)
    return curvature > 0 and 0.5 * math.sqrt(2 * value / (samples * curvature)) or math.huge
end

-- What is seen at the edges of the detector, left and right, in parts of the most that is seen; and
-- whether that is so much that the object is cut off there.
local function edges_of(register)
    local edge, most, count = {0, 0}, 0, math.max(1, register.seen // 32)
    for _, columns in pairs(register.columns) do
        for x, value in ipairs(columns.sums) do
            most = math.max(most, value)
            if x <= count then
                edge[1] = edge[1] + value / (2 * count)
            elseif x > register.seen - count then
                edge[2] = edge[2] + value / (2 * count)
            end
        end
    end
    local cut = math.max(edge[1], edge[2]) > CUT * most
    return {edge[1] / math.max(most, 1e-30), edge[2] / math.max(most, 1e-30)}, cut
end

-- Of two columns that match alike, m and `other`, the one that the file says, or nil; and the one
-- that it does not say.
local function as_stated(register, variance, stated, m, other, from, to)
    local margin = register.margin
    local choice = stated and stated.choice(margin + m / 2, margin + other / 2, 0.25)
    if choice == 1 then
        return m, other
    elseif choice == 2 then
        local own = valley(variance, other, from, to)
        if own > from + 1 and own < to - 1 and stated.choice(margin + m / 2, margin + own / 2, 0.25)
            == 2 then
            return own, m
        end
    end
    return nil
end

-- The best column, and what is told about it, from the curves.
local function best_of(register, variance, residual, total, min_overlap, stated)
    local width, margin = register.seen, register.margin
    local least = math.max(2, math.floor(min_overlap * register.width) - 2 * margin)
    local from, to = least - 1, 2 * width - 1 - least
    local m = valley(variance, axis_curve.lowest(residual, from, to), from, to)
    local other = second_valley(residual, axis_curve.lowest(residual, from, to), from, to)
    local verdict = verdict_of(register, residual, m, other, from, to)
    local own, rest
    if verdict == "ambiguous" then
        own, rest = as_stated(register, variance, stated, m, other, from, to)
        if own then
            m, other, verdict = own, rest, "found"
        end
    end
    local offset, curvature, least_variance = 0, 0, variance[m]
    if m > from and m < to then
        offset, curvature, least_variance = vertex_of(variance[m - 1], variance[m], variance[m + 1])
    end
    local furthest = math.floor(axis_register.FURTHEST_OVERLAP * register.width)
    local reach = math.max(1, furthest - 2 * margin)
    local beyond = axis_curve.lowest(residual, math.min(from, reach),
        math.max(to, 2 * width - 2 - reach))
    local found = {column = margin + (m + offset) / 2,
        residual = variance[m] > 0 and residual[m] * least_variance / variance[m] or residual[m],
        uncertainty = uncertainty(register, least_variance, curvature, m),
        verdict = verdict, as_stated = own ~= nil or nil,
        other = other and margin + other / 2, other_residual = other and residual[other],
        curve = {first = margin + from / 2, step = 0.5,
            values = table.move(residual, from, to, 1, {})}}
    found.edges, found.cut = edges_of(register)
    found.noise = register.noise_frames > 0 and noise_at(register, m, total[m]) or nil
    if (beyond < from or beyond > to) and residual[beyond] < residual[m] / 4 then
        found.beyond, found.beyond_residual = margin + beyond / 2, residual[beyond]
        found.beyond_end = beyond <= reach + 1 or beyond >= 2 * width - 3 - reach
    end
    return found, m
end

--- What the pairs added so far tell: a table of column (0-based), residual, uncertainty (px, one
-- standard deviation of noise), verdict ("found", "ambiguous", "edge" of the search, "flat":
-- nothing in common), as_stated (of two columns that match alike it is the one that the file says),
-- other and other_residual (the second best column), beyond and beyond_residual
-- (a far better column outside the search), beyond_end (whether that is at the end of what is
-- looked at), noise (the part of the residual that noise explains; nil where it is not known), cut
-- (whether the object reaches an edge), edges (what is seen at the left and the right one, in
-- parts of the
-- most that is seen), curve = {first, step, values} (residuals over columns), match and common (by
-- rows: how well the row matches, 1 being mirror images, and the sum of its products). Nil where
-- frames are not finite. A dry run takes the same memory and answers with the middle. `stated`:
-- what the file says of the axis (axis/axis_stated.lua), or nil.
function methods.solve(register, min_overlap, stated)
    local product <close> = register.product
    register.product = nil
    local convolved <close> = mb.irfft(product, {n = register.size, consume = true})
    product:release()
    local cross = table_of(mb.reduce(convolved, "sum", {axis = 1}))
    if register.device.dry then
        return {column = (register.width - 1) / 2, residual = 0, uncertainty = 0, verdict = "found",
            curve = {first = 0, step = register.width - 1, values = {0, 0}}}
    end
    local variance, residual, total = curve_of(register, cross)
    for m = 0, #residual do
        if residual[m] ~= residual[m] then
            return nil
        end
    end
    local found, m = best_of(register, variance, residual, total, min_overlap
        or axis_register.MIN_OVERLAP, stated)
    found.match, found.common = rows_about(register, convolved, m)
    return found
end

--- Raises where frames that were registered are not finite: `first`, or `opposite`.
function axis_register.fail(first, opposite, op)
    local sum <close> = mb.reduce(first, "norm")
    local value = sum:item()
    local bad = value ~= value or value > LARGEST
    finite.fail(bad and first or opposite, op, bad and "first" or "opposite")
end

return axis_register
