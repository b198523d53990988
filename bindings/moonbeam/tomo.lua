--- Parallel-beam tomography: functions over operators, to be read, copied and changed.
--
-- Axis order: projections (angle, row, column), sinograms (row, angle, column), volumes (z, y, x). Angles in radians.
-- Rotation centres are 0-based pixel-centre coordinates: (columns - 1)/2 in the middle.

local mb = require "moonbeam"
local options_of = require "moonbeam.options"

local tomo = {}

local FILTER_OPTIONS = {"filter", "cutoff", "padding", "pad_width"}
local BACKPROJECT_OPTIONS = {"center", "shifts", "size", "roi", "circle", "circle_value", "scale", "accuracy", "out"}

local function pick(options, names)
    local picked = {}
    for _, name in ipairs(names) do
        picked[name] = options[name]
    end
    return picked
end

--- Angles equally spaced over `span` (default pi), the end left out.
function tomo.angles(count, span)
    local angles = {}
    for i = 1, count do
        angles[i] = (i - 1) * (span or math.pi) / count
    end
    return angles
end

-- ---- filtered back-projection ----

-- What mode "in_place" lets a step take for scratch before it goes through the sinogram in smaller parts.
tomo.BATCH_BYTES = 64 << 20

local MODES = {fast = true, in_place = true, auto = true}

-- Everything that the modes of fbp share: shapes, the options of each operator, and what the operators will take.
local function fbp_job(sino, angles, options)
    local rank = sino.rank
    if rank ~= 2 and rank ~= 3 then
        mb.raise("shape", ("sino has %d axes; sinograms are (row, angle, column) or (angle, column)"):format(rank),
            {op = "tomo.fbp", arg = "sino"})
    end
    local job = {sino = sino, angles = angles, device = sino.device, rank = rank, rows = rank == 3 and sino.shape[1] or 1,
        n_angles = sino.shape[rank - 1], cols = sino.shape[rank], filter = pick(options, FILTER_OPTIONS),
        back = pick(options, BACKPROJECT_OPTIONS), consume = options.consume}
    if options.half_acquisition then
        if not options.center then
            mb.raise("argument", "half_acquisition needs center, the column of the rotation axis", {op = "tomo.fbp", arg = "center"})
        end
        local weighted = mb.op.estimate("half_acquisition_weight", {sino}, {center = options.center, extend = true})
        local wide = weighted.results[1].shape[rank]
        job.half_center = options.center
        job.back.center = options.center < (job.cols - 1) / 2 and options.center + wide - job.cols or options.center
        job.back.scale = options.scale or 2 * math.pi / job.n_angles
        job.cols = wide
    end
    return job
end

-- Shape of the sinograms of some rows, as back-projected; nil: of the whole call.
local function sino_spec(job, rows)
    if job.rank == 2 then
        return {"f32", job.n_angles, job.cols}
    end
    return {"f32", rows or job.rows, job.n_angles, job.cols}
end

local function backproject_cost(job, rows)
    local params = {}
    for name, value in pairs(job.back) do
        params[name] = name ~= "out" and value or nil
    end
    params.angles = job.angles
    params.accuracy = rows == 1 and "exact" or params.accuracy
    return mb.op.estimate("backproject", {sino_spec(job, rows)}, params, {device = job.device})
end

-- The scratch of ramp_filter for so many detector rows.
local function filter_cost(job, count)
    return mb.op.estimate("ramp_filter", {{"f32", count, job.cols}}, job.filter, {device = job.device}).scratch
end

-- The largest of whole, whole/2, whole/4, ... 1 whose cost is within `limit`, or is no more than that of 1.
local function largest(whole, limit, cost)
    local most = math.max(limit, cost(1))
    local count = whole
    while count > 1 and cost(count) > most do
        count = (count + 1) // 2
    end
    return count
end

local function filter_into(from, to, options)
    local into = pick(options, FILTER_OPTIONS)
    into.out = to
    mb.ramp_filter(from, into)
end

-- Filters sinograms where they stand, or into `to`, `count` detector rows at a time.
local function filter_in_batches(job, from, to, count)
    local rank, rows, n_angles = from.rank, from.rank == 3 and from.shape[1] or 1, job.n_angles
    if count >= rows * n_angles then
        return filter_into(from, to, job.filter)
    end
    local function part(...)
        local a <close> = from:view(...)
        local b <close> = to:view(...)
        filter_into(a, b, job.filter)
    end
    if count >= n_angles then
        for first = 1, rows, count // n_angles do
            part({first, math.min(first + count // n_angles - 1, rows)}, mb.all, mb.all)
        end
        return
    end
    for row = 1, rows do
        for first = 1, n_angles, count do
            local range = {first, math.min(first + count - 1, n_angles)}
            if rank == 3 then
                part(row, range, mb.all)
            else
                part(range, mb.all)
            end
        end
    end
end

-- Filtered sinograms of their own for a part of the input, weighted and extended where the scan is a half acquisition.
local function filtered_copy(job, part, count)
    if job.half_center then
        local wide = mb.half_acquisition_weight(part, job.half_center, {extend = true})
        filter_in_batches(job, wide, wide, count)
        return wide
    end
    local filtered = mb.empty(part.shape, {device = job.device})
    filter_in_batches(job, part, filtered, count)
    return filtered
end

local function fbp_fast(job)
    if job.consume and not job.half_center then
        filter_into(job.sino, job.sino, job.filter)
        return mb.backproject(job.sino, job.angles, job.back)
    end
    local filtered <close> = filtered_copy(job, job.sino, math.maxinteger)
    return mb.backproject(filtered, job.angles, job.back)
end

-- Slices from filtered sinograms, `count` at a time. One alone is back-projected without being packed first.
local function backproject_in_groups(job, filtered, slices, first_row, count)
    local options = pick(job.back, BACKPROJECT_OPTIONS)
    local rows = filtered.rank == 3 and filtered.shape[1] or 1
    options.accuracy = count == 1 and "exact" or options.accuracy
    if filtered.rank == 2 then
        options.out = slices
        return mb.backproject(filtered, job.angles, options)
    end
    for first = 1, rows, count do
        local last = math.min(first + count - 1, rows)
        local from <close> = filtered:view({first, last}, mb.all, mb.all)
        local to <close> = slices:view({first_row + first - 1, first_row + last - 1}, mb.all, mb.all)
        options.out = to
        mb.backproject(from, job.angles, options)
    end
end

local function fbp_in_place(job)
    local whole = backproject_cost(job)
    local shape, slices = whole.results[1].shape, job.back.out
    local single = backproject_cost(job, 1)
    local group = largest(job.rows, tomo.BATCH_BYTES, function(rows)
        local own = job.consume and not job.half_center and 0 or 4 * rows * job.n_angles * job.cols
        return own + backproject_cost(job, rows).scratch
    end)
    -- Filtering may take what back-projection takes afterwards anyway.
    local free = math.max(tomo.BATCH_BYTES, single.scratch)
    if job.consume and not job.half_center then
        free = math.max(free, single.scratch + (slices and 0 or whole.result))
        filter_in_batches(job, job.sino, job.sino, largest(job.rows * job.n_angles, free, function(count)
            return filter_cost(job, count)
        end))
        slices = slices or mb.empty(shape, {device = job.device})
        backproject_in_groups(job, job.sino, slices, 1, group)
        return slices
    end
    if group >= job.rows then -- one copy: the slices are made after it has been filtered
        free = math.max(free, single.scratch + (slices and 0 or whole.result))
    end
    local batch = largest(group * job.n_angles, free, function(count)
        return filter_cost(job, count)
    end)
    for first = 1, job.rows, group do
        local last = math.min(first + group - 1, job.rows)
        local part <close> = job.rank == 3 and job.sino:view({first, last}, mb.all, mb.all) or job.sino:view(mb.all, mb.all)
        if group < job.rows then
            slices = slices or mb.empty(shape, {device = job.device})
        end
        local filtered <close> = filtered_copy(job, part, batch)
        slices = slices or mb.empty(shape, {device = job.device})
        backproject_in_groups(job, filtered, slices, first, group)
    end
    return slices
end

-- Does mode "fast" fit what the budget leaves?
local function fast_fits(job)
    local back = backproject_cost(job)
    local need = math.max(filter_cost(job, job.rows * job.n_angles), (job.back.out and 0 or back.result) + back.scratch)
    if job.half_center or not job.consume then
        need = need + mb.pool.round(4 * job.rows * job.n_angles * job.cols)
    end
    local function fits()
        local stats = mb.pool.stats(job.device)
        return need <= stats.budget - stats.live
    end
    if not fits() then
        mb.collect() -- what is garbage does not count
    end
    return fits()
end

--- Filtered back-projection of line integrals.
--
-- `sino` (rows, angles, columns) or (angles, columns), f32; a permuted view of projections will do. Options: those of
-- `ramp_filter` (filter, cutoff, padding, pad_width) and of `backproject` (center, shifts, size, roi, circle, circle_value,
-- accuracy, out), `scale` (default pi / number of angles: attenuation per pixel for angles over half a turn or a whole one)
-- and
--   consume           true: the sinogram is filtered where it stands, which destroys it but needs no second one
--   mode              "fast" (default): everything at once. "in_place": in parts, for the least memory, at the cost of speed:
--                     filtering in batches of detector rows, back-projection of a few slices at a time or of one, unpacked
--                     (and exact). With consume the peak is sinogram + slices + one small batch (tomo.BATCH_BYTES, or one
--                     slice's need); without, one copy of a slice's sinogram more. "auto": fast if that fits the budget of
--                     the sinogram's device (in a dry run: of the shadow), else in_place.
--   half_acquisition  true: a whole turn with the axis, `center`, near an edge of the detector. The slices cover the whole
--                     field of view, E = floor(2a) + 1 pixels for an axis a columns from the far edge; the default scale
--                     is 2 pi / number of angles. Columns that are seen twice are weighted (half_acquisition_weight), rows
--                     extended to E, so the sinogram is kept, consume or not; "in_place" extends a slice's at a time.
function tomo.fbp(sino, angles, options)
    options = options_of(options, "tomo.fbp", FILTER_OPTIONS, BACKPROJECT_OPTIONS, {"mode", "consume", "half_acquisition"})
    local mode = options.mode or "fast"
    if not MODES[mode] then
        mb.raise("argument", ("unknown mode '%s'; there are fast, in_place and auto"):format(tostring(mode)),
            {op = "tomo.fbp", arg = "mode"})
    end
    local job = fbp_job(sino, angles, options)
    if mode == "auto" then
        mode = fast_fits(job) and "fast" or "in_place"
    end
    return (mode == "fast" and fbp_fast or fbp_in_place)(job)
end

--- Raw frames to line integrals: flat field and -ln. Returns the projections, f32 (angle, row, column), and the counts
-- of what had to be mended: {nonfinite, clamped, nonpositive} as an array of three.
-- `data` is released when `options.consume` is true, and reused when it is f32.
function tomo.line_integrals(data, options)
    options = options_of(options, "tomo.line_integrals", {"darks", "flats", "mode", "floor", "nonfinite", "min", "max",
        "consume", "log"})
    local flat = pick(options, {"darks", "flats", "mode", "floor", "nonfinite"})
    flat.out = options.consume and data.dtype == "f32" and data or nil
    local transmission, counts = mb.flat_field(data, flat)
    if options.consume and not flat.out then
        data:release()
    end
    if options.log ~= false then
        local bounds = pick(options, {"min", "max"})
        bounds.out = transmission
        mb.minus_log(transmission, bounds)
    end
    return transmission, counts
end

-- ---- rotation centre ----

-- How far from a registered pair's centre trial slices look, in pixels: a pair that misses half a turn by a step or two is
-- off by no more.
tomo.PAIR_RANGE = 3

local function prefix_sums(values)
    local sums, sum = {[0] = 0}, 0
    for i, value in ipairs(values) do
        sum = sum + value
        sums[i] = sum
    end
    return sums
end

-- Vertex of the parabola through three equally spaced values, as an offset in (-0.5, 0.5) from the middle one.
local function parabola_offset(left, middle, right)
    local curvature = left - 2 * middle + right
    if curvature <= 0 then
        return 0
    end
    return math.max(-0.5, math.min(0.5, 0.5 * (left - right) / curvature))
end

--- Rotation centre from a pair of projections half a turn apart.
--
-- `first` and `opposite` are line integrals (row, column). The object seen from behind is mirrored about the axis, so the
-- axis c minimises the mean squared difference of first(x) and opposite(2c - x) over the columns where both exist. Every
-- candidate is evaluated at once: sum of first(x) opposite(m - x) is a convolution, done by FFT; the sums of squares over
-- the overlap come from running sums. The minimum is refined by a parabola. `options.min_overlap` (default 0.3) is the
-- least part of the width that must overlap. Returns the 0-based centre and the relative residual there (0: perfect).
function tomo.find_center_pair(first, opposite, options)
    options = options_of(options, "tomo.find_center_pair", {"min_overlap"})
    local rows, width = first.shape[1], first.shape[2]
    if opposite.shape[1] ~= rows or opposite.shape[2] ~= width then
        mb.raise("shape", ("first is %d x %d, opposite %d x %d"):format(rows, width, opposite.shape[1],
            opposite.shape[2]), {op = "tomo.find_center_pair", arg = "opposite"})
    end
    local size = mb.fft.good_size(2 * width)
    local function spectrum(image)
        local padded <close> = mb.pad(image, {after = {0, size - width}})
        return mb.rfft(padded)
    end
    local a <close> = spectrum(first)
    local b <close> = spectrum(opposite)
    mb.binary(a, "mul", {b = b, out = a})
    local rows_convolved <close> = mb.irfft(a, {n = size, consume = true})
    local convolved <close> = mb.reduce(rows_convolved, "sum", {axis = 1})
    local function column_squares(image)
        local squares <close> = mb.unary(image, "square")
        local sums <close> = mb.reduce(squares, "sum", {axis = 1})
        return prefix_sums(sums:to_table())
    end
    local cross, qa, qb = convolved:to_table(), column_squares(first), column_squares(opposite)
    local least = math.max(2, math.floor((options.min_overlap or 0.3) * width))
    local cost, best = {}, nil
    for m = 0, 2 * width - 2 do -- m = 2c; the overlap is the columns low .. high, 0-based
        local low, high = math.max(0, m - width + 1), math.min(width - 1, m)
        local overlap = high - low + 1
        if overlap >= least then
            local energy = qa[high + 1] - qa[low] + qb[m - low + 1] - qb[m - high]
            cost[m] = energy > 0 and (energy - 2 * cross[m + 1]) / energy or 1
            if not best or cost[m] < cost[best] then
                best = m
            end
        end
    end
    local offset = 0
    if cost[best - 1] and cost[best + 1] then
        offset = parabola_offset(cost[best - 1], cost[best], cost[best + 1])
    end
    return (best + offset) / 2, math.max(0, cost[best])
end

--- What a good centre makes small. Each takes a slice (ny, nx) and returns a number.
tomo.metrics = {
    -- Total of the negative values: a wrong centre breeds streaks that dip below zero.
    negativity = function(slice)
        local negative <close> = mb.binary(slice, "min", {scalar = 0})
        return -negative:sum()
    end,
    -- Minus the sum of squares: a right centre piles contrast up. Needs an object that fits the field of view.
    sharpness = function(slice)
        local squares <close> = mb.unary(slice, "square")
        return -squares:sum()
    end,
}

--- Rotation centre by trial reconstruction: the candidate whose slice minimises a metric.
--
-- `sino` (angles, columns) of line integrals. Options: `guess` (default the middle), `range` (px either side, default a
-- quarter of the width), `tolerance` (default 0.1 px), `metric` ("negativity", "sharpness" or a function), and the options
-- of `ramp_filter`. The search goes from coarse to fine: a grid of steps that shrinks fourfold around the best candidate.
-- Returns the 0-based centre.
function tomo.find_center_metric(sino, angles, options)
    options = options_of(options, "tomo.find_center_metric", {"guess", "range", "tolerance", "metric", "accuracy"}, FILTER_OPTIONS)
    local width = sino.shape[2]
    local metric = options.metric or "negativity"
    if type(metric) == "string" then
        metric = tomo.metrics[metric]
            or mb.raise("argument", ("unknown metric \"%s\"; there are negativity and sharpness"):format(metric),
                {op = "tomo.find_center_metric", arg = "metric"})
    end
    local center = options.guess or (width - 1) / 2
    local reach = options.range or width / 4
    -- Judge only the disc that every candidate sees from every angle; outside it the metric follows the field of view.
    local seen = math.min(center - reach, width - 1 - center - reach)
    local circle = math.max(0.3, math.min(0.95, 2 * seen / width))
    local filtered <close> = mb.ramp_filter(sino, pick(options, FILTER_OPTIONS))
    local known = {}
    local function cost(candidate)
        local key = math.floor(candidate * 1000 + 0.5)
        if not known[key] then
            local slice <close> = mb.backproject(filtered, angles, {center = candidate, circle = circle,
                accuracy = options.accuracy})
            local plane <close> = slice:reshape(slice.shape[slice.rank - 1], slice.shape[slice.rank])
            known[key] = metric(plane)
        end
        return known[key]
    end
    local tolerance = options.tolerance or 0.1
    local step = math.max(math.min(reach / 8, 4), tolerance)
    while true do
        local best, best_cost = center, cost(center)
        local low, high = math.max(0, center - reach), math.min(width - 1, center + reach)
        for k = math.ceil((low - center) / step), math.floor((high - center) / step) do
            local candidate = center + k * step
            local value = cost(candidate)
            if value < best_cost then
                best, best_cost = candidate, value
            end
        end
        center = best
        if step <= tolerance then
            return center
        end
        reach, step = step, math.max(step / 4, tolerance)
    end
end

--- Rotation centre of a set of projections: registration of the pair that is closest to half a turn apart, then a search
-- of a few pixels around it.
--
-- `projections` (angle, row, column) of line integrals, `angles` in radians. Options: `method` "auto" (both), "pair" or
-- "metric", `row` (1-based row for the metric, default the middle), and those of the two functions above.
-- Returns the 0-based centre and a table {pair =, residual =, metric =, angles = {i, j}} that says how it came about.
function tomo.find_center(projections, angles, options)
    options = options_of(options, "tomo.find_center", {"method", "row", "min_overlap", "guess", "range", "tolerance", "metric",
        "accuracy"}, FILTER_OPTIONS)
    local method = options.method or "auto"
    local details = {}
    if method ~= "metric" then
        local first, other, miss = tomo.opposite_pair(angles)
        if miss < math.rad(5) then
            local a <close> = projections:view(first, mb.all, mb.all)
            local b <close> = projections:view(other, mb.all, mb.all)
            details.pair, details.residual = tomo.find_center_pair(a, b, {min_overlap = options.min_overlap})
            details.angles = {first, other}
        elseif method == "pair" then
            mb.raise("argument", ("no two projections are half a turn apart (closest: %.1f degrees off); "
                .. "use method = \"metric\""):format(math.deg(miss)), {op = "tomo.find_center", arg = "angles"})
        end
        if method == "pair" then
            return details.pair, details
        end
    end
    local row = options.row or (projections.shape[2] + 1) // 2
    local view <close> = projections:view(mb.all, row, mb.all)
    local sino <close> = view:copy()
    local search = pick(options, FILTER_OPTIONS)
    search.metric, search.tolerance, search.accuracy = options.metric, options.tolerance, options.accuracy
    search.guess = options.guess or details.pair
    search.range = options.range or (details.pair and tomo.PAIR_RANGE) or nil
    details.metric = tomo.find_center_metric(sino, angles, search)
    return details.metric, details
end

--- The two projections whose angles differ by half a turn most exactly: indices and by how much they miss it (rad).
-- Ties go to the pair that starts first.
function tomo.opposite_pair(angles)
    local order = {}
    for i = 1, #angles do
        order[i] = i
    end
    table.sort(order, function(i, j)
        if angles[i] ~= angles[j] then
            return angles[i] < angles[j]
        end
        return i < j
    end)
    local best, best_other, best_miss = 1, 1, math.huge
    local j = 1
    for _, i in ipairs(order) do -- both indices only move forward
        while j < #order and angles[order[j]] - angles[i] < math.pi do
            j = j + 1
        end
        for _, k in ipairs {j - 1, j} do
            local other = order[k]
            local miss = other and math.abs(angles[other] - angles[i] - math.pi) or math.huge
            if miss < best_miss - 1e-12 then
                best, best_other, best_miss = i, other, miss
            end
        end
    end
    return best, best_other, best_miss
end

return tomo
