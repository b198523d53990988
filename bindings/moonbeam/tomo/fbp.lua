--- Filtered back-projection: `tomo.fbp`, with its modes of using memory and its half acquisition.
--
-- A function over operators, to be read, copied and changed. Axis order and units are those of
-- tomo.lua. Every mode asks the operators' estimates how large its parts may be, and a dry run
-- takes the same decisions, so its peak is that of the run.

local mb = require "moonbeam"
local angle_weights = require "moonbeam.tomo.angle_weights"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"

local fbp = {}

-- What mode "in_place" lets a step take for scratch before it goes through the sinogram in smaller
-- parts.
fbp.BATCH_BYTES = 64 << 20

-- What mode "fast" lets the filtered copy of a sinogram that is kept take, but no less than 64
-- slices: a full block of the back-projector.
fbp.COPY_BYTES = 1 << 30
local FULL_BLOCK = 64

-- The widest padding that is accepted, in detector widths. The default is two to four; more than
-- that changes nothing but the time, which a slip of the hand can make hours.
local WIDEST = 32

fbp.options = declared.options(
    declared.from("ramp_filter", "filter", "cutoff", "padding", "pad_width"),
    declared.from("backproject", "center", "shifts", "size", "roi", "circle", "circle_value",
        "scale", "accuracy"), angle_weights.option,
    {"out", "array", "the array for the slices", rank = {2, 3}},
    {"mode", "choice", "fast: everything at once; of a sinogram that is kept, 1 GiB is copied at a "
        .. "time, or 64 slices. in_place: in parts, for the least memory, slower. auto: fast if it "
        .. "fits the budget, else in_place if the values are the same",
        choices = {"fast", "in_place", "auto"}, default = "fast"},
    {"consume", "boolean", "filter the sinogram where it stands, which destroys it but needs no "
        .. "second one"},
    {"half_acquisition", "boolean", "a whole turn with the axis, center, near an edge of the "
        .. "detector: the slices are up to twice as wide as it"},
    {"slice_shifts", "any", "one per row: the axis of row z lies at center + slice_shifts[z]; the "
        .. "filter moves the rows, as far as its padding goes", unit = "px"})

-- The shifts as a list, one per row of sinograms; nil when there are none.
local function shifts_of(options, rows)
    local shifts = options.slice_shifts
    if type(shifts) == "number" then
        shifts = {shifts}
    end
    if shifts == nil then
        return nil
    elseif type(shifts) ~= "table" or #shifts ~= rows then
        fail("argument", "tomo.fbp", "slice_shifts", "slice_shifts must be a list of %d numbers, "
            .. "one per row of the sinograms; it is a %s%s", rows, type(shifts),
            type(shifts) == "table" and " of " .. #shifts or "")
    elseif options.half_acquisition then
        fail("argument", "tomo.fbp", "slice_shifts", "half_acquisition weights all rows about one "
            .. "axis: it does not go with slice_shifts")
    end
    return shifts
end

--- Raises where `pad_width` is out of proportion to `cols` columns.
function fbp.check_pad_width(pad_width, cols, op)
    if type(pad_width) == "number" and pad_width > WIDEST * cols then
        fail("argument", op, "pad_width", "pad_width is %.0f for rows of %d; it may be %d times "
            .. "as wide at most, %d, and twice is enough", pad_width, cols, WIDEST, WIDEST * cols)
    end
end

-- Everything that the modes of fbp share: shapes, the options of each operator, and what the
-- operators will take.
local function job_of(sino, angles, options)
    local rank = sino.rank
    arguments.angles(angles, "tomo.fbp", "angles", sino.shape[rank - 1])
    local job = {sino = sino, angles = angles, device = sino.device, rank = rank,
        rows = rank == 3 and sino.shape[1] or 1,
        n_angles = sino.shape[rank - 1], cols = sino.shape[rank],
        filter = declared.part(fbp.options, options, "ramp_filter"),
        back = declared.part(fbp.options, options, "backproject"), consume = options.consume}
    job.back.out = options.out
    job.shifts = shifts_of(options, job.rows)
    job.weights = angle_weights.of(options.weights, angles, job.n_angles, options.half_acquisition,
        "tomo.fbp")
    if options.half_acquisition then
        if not options.center then
            fail("argument", "tomo.fbp", "center", "half_acquisition needs center, the column of "
                .. "the rotation axis")
        end
        local weighted = mb.op.estimate("half_acquisition_weight", {sino},
            {center = options.center, extend = true})
        local wide = weighted.results[1].shape[rank]
        job.half_center = options.center
        job.back.center = options.center
            + (options.center < (job.cols - 1) / 2 and wide - job.cols or 0)
        job.back.scale = options.scale or 2 * math.pi / job.n_angles
        -- The parts are chosen for the widest field of view that an axis on this detector gives.
        -- So a wider field never takes less, and what holds for the outermost axis holds for all.
        job.widest = setmetatable({cols = 2 * job.cols - 1}, {__index = job})
        job.cols = wide
    end
    job.widest = job.widest or job
    fbp.check_pad_width(options.pad_width, job.cols, "tomo.fbp")
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

-- The scratch of ramp_filter for so many detector rows. It does not depend on how many slices move,
-- nor how far, nor on what the weights are.
local function filter_cost(job, count)
    local params = declared.part(fbp.options, job.filter)
    local angles = math.min(count, job.n_angles)
    params.slice_shifts = job.shifts and {0}
    params.weights = job.weights and table.move(job.weights, 1, angles, 1, {})
    return mb.op.estimate("ramp_filter", {{"f32", angles, job.cols}}, params,
        {device = job.device}).scratch
end

-- The largest of whole, whole/2, whole/4, ... 1 whose cost is within `limit`, or is no more than
-- that of 1.
local function largest(whole, limit, cost)
    local most = math.max(limit, cost(1))
    local count = whole
    while count > 1 and cost(count) > most do
        count = (count + 1) // 2
    end
    return count
end

-- Rows first .. last of the job, which is where their shifts are, and these angles, {first, last},
-- or all.
local function filter_into(job, from, to, first, last, angles)
    local into = declared.part(fbp.options, job.filter)
    into.slice_shifts = job.shifts and table.move(job.shifts, first, last, 1, {})
    into.weights = job.weights and angles and table.move(job.weights, angles[1], angles[2], 1, {})
        or job.weights
    into.out = to
    mb.ramp_filter(from, into)
end

-- Filters sinograms where they stand, or into `to`, `count` detector rows at a time. Their first
-- row is row `start` of the job.
local function filter_in_batches(job, from, to, count, start)
    local rank, rows, n_angles = from.rank, from.rank == 3 and from.shape[1] or 1, job.n_angles
    if count >= rows * n_angles then
        return filter_into(job, from, to, start, start + rows - 1)
    end
    local function part(first, last, angles, ...)
        local a <close> = from:view(...)
        local b <close> = to:view(...)
        filter_into(job, a, b, start + first - 1, start + last - 1, angles)
    end
    if count >= n_angles then
        for first = 1, rows, count // n_angles do
            local last = math.min(first + count // n_angles - 1, rows)
            part(first, last, nil, {first, last}, mb.all, mb.all)
        end
        return
    end
    for row = 1, rows do
        for first = 1, n_angles, count do
            local range = {first, math.min(first + count - 1, n_angles)}
            if rank == 3 then
                part(row, row, range, row, range, mb.all)
            else
                part(row, row, range, range, mb.all)
            end
        end
    end
end

-- Filtered sinograms of their own for a part of the input that begins with row `start`, weighted
-- and extended where the scan is a half acquisition.
local function filtered_copy(job, part, count, start)
    if job.half_center then
        local wide = mb.half_acquisition_weight(part, job.half_center, {extend = true})
        local _ <close> = on_error(function() wide:release() end)
        filter_in_batches(job, wide, wide, count, start)
        return wide
    end
    local filtered = mb.empty(part.shape, {device = job.device})
    local _ <close> = on_error(function() filtered:release() end)
    filter_in_batches(job, part, filtered, count, start)
    return filtered
end

-- Slices from filtered sinograms, `count` at a time. One alone takes the least scratch.
local function backproject_in_groups(job, filtered, slices, first_row, count)
    local options = declared.part(fbp.options, job.back)
    local rows = filtered.rank == 3 and filtered.shape[1] or 1
    options.accuracy = count == 1 and "exact" or options.accuracy
    if filtered.rank == 2 then
        options.out = slices
        return mb.backproject(filtered, job.angles, options)
    end
    for first = 1, rows, count do
        local last = math.min(first + count - 1, rows)
        local from <close> = filtered:view({first, last}, mb.all, mb.all)
        local to <close> = slices:view({first_row + first - 1, first_row + last - 1},
            mb.all, mb.all)
        options.out = to
        mb.backproject(from, job.angles, options)
    end
end

-- Releases slices that were made for the job, not given to it.
local function drop_slices(job, slices)
    if slices and slices ~= job.back.out then
        slices:release()
    end
end

-- Slices from copies of so many rows of the sinogram, filtered `batch` detector rows at a time.
local function run_in_groups(job, shape, group, batch)
    local slices = job.back.out
    local _ <close> = on_error(function() drop_slices(job, slices) end)
    for first = 1, job.rows, group do
        local last = math.min(first + group - 1, job.rows)
        local part <close> = job.rank == 3 and job.sino:view({first, last}, mb.all, mb.all)
            or job.sino:view(mb.all, mb.all)
        if group < job.rows then
            slices = slices or mb.empty(shape, {device = job.device})
        end
        local filtered <close> = filtered_copy(job, part, batch, first)
        slices = slices or mb.empty(shape, {device = job.device})
        backproject_in_groups(job, filtered, slices, first, group)
    end
    return slices
end

-- Rows of the sinogram that mode "fast" copies at a time.
local function fast_group(job)
    local most = fbp.COPY_BYTES // (4 * job.n_angles * job.widest.cols)
    return math.min(job.rows, math.max(most // FULL_BLOCK, 1) * FULL_BLOCK)
end

local function run_fast(job)
    if job.consume and not job.half_center then
        filter_into(job, job.sino, job.sino, 1, job.rows)
        return mb.backproject(job.sino, job.angles, job.back)
    end
    local group = fast_group(job)
    if group < job.rows then
        return run_in_groups(job, backproject_cost(job).results[1].shape, group, math.maxinteger)
    end
    local filtered <close> = filtered_copy(job, job.sino, math.maxinteger, 1)
    return mb.backproject(filtered, job.angles, job.back)
end

local function run_in_place(job)
    local whole = backproject_cost(job)
    local shape, slices = whole.results[1].shape, job.back.out
    local single = backproject_cost(job, 1)
    local group = largest(job.rows, fbp.BATCH_BYTES, function(rows)
        local own = job.consume and not job.half_center and 0
            or 4 * rows * job.n_angles * job.widest.cols
        return own + backproject_cost(job.widest, rows).scratch
    end)
    -- Filtering may take what back-projection takes afterwards anyway.
    local free = math.max(fbp.BATCH_BYTES, single.scratch)
    if job.consume and not job.half_center then
        free = math.max(free, single.scratch + (slices and 0 or whole.result))
        local batch = largest(job.rows * job.n_angles, free, function(count)
            return filter_cost(job, count)
        end)
        filter_in_batches(job, job.sino, job.sino, batch, 1)
        slices = slices or mb.empty(shape, {device = job.device})
        local _ <close> = on_error(function() drop_slices(job, slices) end)
        backproject_in_groups(job, job.sino, slices, 1, group)
        return slices
    end
    if group >= job.rows then -- one copy: the slices are made after it has been filtered
        free = math.max(free, single.scratch + (slices and 0 or whole.result))
    end
    local batch = largest(group * job.n_angles, free, function(count)
        return filter_cost(job.widest, count)
    end)
    return run_in_groups(job, shape, group, batch)
end

-- Does mode "fast" fit what the budget leaves?
local function fast_fits(job)
    local keep = job.half_center or not job.consume
    local group = keep and fast_group(job) or job.rows
    local scratch = backproject_cost(job, group).scratch
    local filter = filter_cost(job, group * job.n_angles)
    local result = job.back.out and 0 or backproject_cost(job).result
    local need = group < job.rows and result + math.max(filter, scratch)
        or math.max(filter, result + scratch)
    if keep then
        need = need + mb.pool.round(4 * group * job.n_angles * job.cols)
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

--- Does mode "in_place" give the values of mode "fast" (but for rounding)? Not where "fast"
-- computes with half floats: on a GPU, for many angles, unless the accuracy is "exact". Half
-- floats take less scratch.
function fbp.same_in_place(device, n_angles, cols, options)
    local function scratch(accuracy)
        return mb.op.estimate("backproject", {{"f32", 64, n_angles, cols}}, {accuracy = accuracy},
            {device = device}).scratch
    end
    return options.accuracy == "exact" or scratch "fast" == scratch "exact"
end

--- Filtered back-projection of line integrals.
--
-- A sinogram may be a permuted view of projections. `scale` is by default pi / number of angles,
-- which gives attenuation per pixel; half_acquisition takes 2 pi / number of angles. `pad_width` is
-- at most 32 times the width. Angles that do not cover half a turn evenly (an arc of 270 degrees,
-- views taken twice) are weighted by the part of the directions that each stands for; directions
-- repeat after half a turn, of a half acquisition after a whole turn. A wedge without any angle is
-- not filled.
--
-- slice_shifts: the filter moves the rows by their trigonometric polynomial (see ramp_filter). It
-- costs no memory on a GPU and next to no time. It does not go with half_acquisition. Mode
-- "in_place" filters batches of detector rows and back-projects a few slices at a time, or one
-- slice, exactly. With `consume` the peak is sinogram + slices + one small batch
-- (BATCH_BYTES above, or what one slice needs). Without `consume` it is one copy of a slice's
-- sinogram more. Mode "auto" looks at the budget of the sinogram's device. half_acquisition: the
-- slices cover the whole field of view, E = floor(2a) + 1 pixels for an axis a columns from the far
-- edge. Columns that are seen twice are weighted (half_acquisition_weight) and rows are extended to
-- E, so the sinogram is kept even with `consume`.
--
-- Returns the slices (row, y, x), or (y, x), f32.
-- Errors: argument (an unknown option, a value out of range, an angle that is not finite), dtype,
-- shape (sino has other axes, or not one row per angle), budget.
-- Reference: ramp_filter, then backproject: A. C. Kak, M. Slaney, Principles of Computerized
-- Tomographic Imaging (1988), ch. 3.3; half acquisition: G. Wang, Med. Phys. 29 (2002) 1634.
fbp.reconstruct = declared("tomo.fbp", {
    {"sino", "array", "sinograms (row, angle, column), or one (angle, column)", rank = {2, 3}},
    {"angles", "angles", "one per projection, in any order", unit = "rad"},
    options = fbp.options,
}, function(sino, angles, options)
    local job, mode = job_of(sino, angles, options), options.mode
    if mode == "auto" then
        mode = fast_fits(job) and "fast" or fbp.same_in_place(job.device, job.n_angles, job.cols,
            options) and "in_place" or "fast"
    end
    return (mode == "fast" and run_fast or run_in_place)(job)
end)

return fbp
