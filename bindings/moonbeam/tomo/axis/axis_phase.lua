--- The rotation axis by phase correlation of opposite projections.
--
-- Of two projections half a turn apart the second is the first one mirrored about the axis c:
-- first(x) = opposite(2 c - x). The spectra of both, multiplied, with the second one's rows in the
-- same direction and its columns mirrored, and divided by their magnitude, are those of a peak at
-- 2 c (Kuglin and Hines 1975; sub-pixel part: Guizar-Sicairos, Thurman, Fienup 2008, Optics Letters
-- 33, 156, here by the trigonometric polynomial of the peak's row).

local mb = require "moonbeam"
local axis_register = require "moonbeam.tomo.axis_register"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

local axis_phase = {}

local LEAST_PEAK = 6 -- of the correlation, in standard deviations
local AMBIGUOUS = 0.8 -- of the peak: a second one as high as that
local TINY = 1e-30

local function table_of(array)
    local _ <close> = array
    return mb.bound({}, array.to_table, array)
end

-- Spectra along rows and columns; with `conjugate`, of the conjugates of the rows' spectra.
local function spectrum_of(frame, conjugate)
    local rows = mb.rfft(frame, {axes = 1})
    if conjugate then
        local ones = mb.full(rows.shape, 1, {dtype = "c64", device = rows.device})
        mb.complex_multiply(ones, rows, {conj = true})
        rows:release()
        rows = ones
    end
    local _ <close> = rows
    local turned <close> = rows:permute(2, 1)
    local dense = turned:copy()
    mb.fft(dense, {axes = 1, out = dense})
    return dense -- (frequency along columns, along rows)
end

-- The correlation: (column, row), where first(y + row, x) meets opposite(y, column - x).
local function correlation_of(first, opposite)
    local product <close> = spectrum_of(first, false)
    do
        local other <close> = spectrum_of(opposite, true)
        mb.complex_multiply(product, other, {conj = true})
    end
    do
        local size <close> = mb.unary(product, "abs")
        mb.binary(size, "max", {scalar = TINY, out = size})
        mb.unary(size, "reciprocal", {out = size})
        local factors <close> = mb.convert(size, "c64")
        mb.complex_multiply(product, factors)
    end
    mb.fft(product, {axes = 1, inverse = true, out = product})
    local turned <close> = product:permute(2, 1)
    local rows <close> = turned:copy()
    return mb.irfft(rows, {axes = 1, n = first.shape[2]})
end

-- The trigonometric polynomial through `values`, at x (0-based).
local function interpolated(values, x)
    local n, sum = #values, 0
    for i, value in ipairs(values) do
        local angle = math.pi * (x - (i - 1))
        local bottom = n * (n % 2 == 0 and math.tan(angle / n) or math.sin(angle / n))
        local kernel = math.abs(math.sin(angle / n)) < 1e-12 and 1 or math.sin(angle) / bottom
        sum = sum + value * kernel
    end
    return sum
end

-- The highest place within a column of `from`, at multiples of `step`.
local function refined(values, from, step)
    local best, highest = from, -math.huge
    local count = math.ceil(1 / step)
    for k = -count, count do
        local value = math.abs(interpolated(values, from + k * step))
        if value > highest then
            best, highest = from + k * step, value
        end
    end
    return best
end

-- The column of the axis for a peak at `x`: of the two that a circular correlation cannot tell
-- apart the one in the middle half of the detector.
local function column_of(x, width)
    return (x < (width - 1) / 2 and x + width or x >= 1.5 * width - 0.5 and x - width or x) / 2
end

-- Its highest values by columns, over all rows.
local function curve_of(correlation)
    return table_of(mb.reduce(correlation, "max", {axis = 1}))
end

local function peak_of(curve)
    local best = 1
    for x, value in ipairs(curve) do
        best = value > curve[best] and x or best
    end
    return best
end

-- The highest value that is not within three columns of the peak.
local function second_of(curve, best)
    local other
    for x, value in ipairs(curve) do
        local apart = math.abs(x - best)
        if math.min(apart, #curve - apart) > 3 and (not other or value > curve[other]) then
            other = x
        end
    end
    return other
end

local function row_of(correlation, x)
    local column <close> = correlation:view(mb.all, x)
    local best, values = 1, mb.bound({0}, column.to_table, column)
    for y, value in ipairs(values) do
        best = value > values[best] and y or best
    end
    return best
end

--- The column, and {verdict, peak (in standard deviations of the correlation), columns and metric
-- (the correlation, negative), other, shift (rows), as_stated (of two columns that are alike it is
-- the one that `stated` says, axis_stated.lua)}.
function axis_phase.search(first, opposite, tolerance, op, stated)
    local rows, width = first.shape[1], first.shape[2]
    local correlation <close> = correlation_of(first, opposite)
    local curve = curve_of(correlation)
    local norm <close> = mb.reduce(correlation, "norm")
    local deviation = mb.bound(1, norm.item, norm) / math.sqrt(rows * width)
    if deviation ~= deviation or deviation == math.huge then
        axis_register.fail(first, opposite, op)
    end
    local best = #curve > 0 and peak_of(curve) or 1
    local other = #curve > 0 and second_of(curve, best)
    local alike, choice = other and curve[other] > AMBIGUOUS * curve[best], nil
    if alike and stated then
        choice = stated.choice(column_of(best - 1, width), column_of(other - 1, width), 0.25)
        if choice == 2 then
            best, other = other, best
        end
    end
    local y = row_of(correlation, best)
    local line <close> = correlation:view(y, mb.all)
    local values = mb.bound({}, line.to_table, line)
    if #values == 0 then
        return (width - 1) / 2, {verdict = "found", peak = 0, columns = {}, metric = {}, shift = 0}
    end
    local details = {peak = deviation > 0 and curve[best] / deviation or 0, columns = {},
        metric = {}, shift = y - 1 <= rows / 2 and y - 1 or y - 1 - rows, verdict = "found"}
    local list = {}
    for x, value in ipairs(curve) do
        list[x] = {column_of(x - 1, width), -value}
    end
    table.sort(list, function(a, b) return a[1] < b[1] end)
    for i, entry in ipairs(list) do
        details.columns[i], details.metric[i] = entry[1], entry[2]
    end
    local column = column_of(refined(values, best - 1, 2 * tolerance) % width, width)
    if details.peak <= LEAST_PEAK then
        details.verdict = "flat"
    elseif alike and not choice then
        details.verdict, details.other = "ambiguous", column_of(other - 1, width)
    elseif column < width / 4 + 1 or column > 3 * width / 4 - 2 then
        details.verdict = "edge"
    elseif choice then
        details.as_stated, details.other = true, column_of(other - 1, width)
    end
    return column, details
end

--- Rotation axis by phase correlation of two projections half a turn apart.
--
-- The stage may have moved up or down by a few rows in between. The axis is within the middle half
-- of the detector. A part of a pixel is found at steps of `tolerance`.
-- Returns the 0-based column, and a table: verdict ("found"; "flat": the peak is no higher than
-- chance; "ambiguous": `other` is nearly as high; "edge": at an end of the middle half), peak
-- (standard deviations), columns and metric (minus the correlation), shift (rows between the two
-- at the peak).
-- Errors: shape, argument (values that are not finite), budget.
axis_phase.find = declared("tomo.find_center_phase_correlation", {
    {"first", "array", "line integrals or transmissions (row, column)", rank = {2, 2}},
    {"opposite", "array", "the same half a turn on", rank = {2, 2}},
    options = declared.options(
        {"tolerance", "number", "steps at which the axis is found", unit = "px", above = 0, max = 1,
            default = 0.05}),
}, function(first, opposite, options)
    local op = "tomo.find_center_phase_correlation"
    local rows, width = first.shape[1], first.shape[2]
    if width < 2 then
        fail("shape", op, "first", "one column has no axis to be found; give at least 2")
    elseif opposite.shape[1] ~= rows or opposite.shape[2] ~= width then
        fail("shape", op, "opposite", "first is %d x %d, opposite %d x %d; "
            .. "both must have one shape", rows, width,
            opposite.shape[1], opposite.shape[2])
    end
    return axis_phase.search(first, opposite, options.tolerance, op)
end)

return axis_phase
