--- What the reconstruction of a scan takes, known before a frame is read. `mb.recon.plan` and its
-- kin are these.
--
-- Nothing is modelled: the functions that run are dry-run on a dry device. The rotation
-- axis decides how much the direct Fourier method takes, and how wide the slices of a half
-- acquisition are, but it is found in the frames. So there are two plans. Plan A holds for every
-- axis that the search may return. Plan B is made when the axis is known, with the method and the
-- chunks of A. What a run takes is B to the byte, and B is never more than A.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local fail = require "moonbeam.internal.fail"
local lean = require "moonbeam.internal.lean"
local memory = require "moonbeam.plan.peak"
local methods = require "moonbeam.tomo.method"
local process_memory = require "moonbeam.internal.process_memory"
local scan_center = require "moonbeam.tomo.scan_center"
local scan_values = require "moonbeam.scan.values"
local scan_work = require "moonbeam.tomo.scan_work"
local stream = require "moonbeam.stream"

local scan_plan = {}

local ITEM_BYTES = {u8 = 1, u16 = 2, i32 = 4, f16 = 2, f32 = 4, f64 = 8}

-- Rows per chunk beyond which nothing gets faster: what the back-projection kernels take at a time.
scan_plan.CHUNK_ROWS = 64

-- Slices from which on fourier_reconstruct works in batches of its largest size: what it takes
-- stays the same.
local FULL_BATCH = 16

-- ---- axes that the search may return ----

-- The options of fourier_reconstruct that decide its scratch, from those of a reconstruction.
local FOURIER = {"filter", "cutoff", "padding", "pad_width", "circle", "size", "scale", "accuracy"}

-- The axis between the bounds for which the direct Fourier method takes most for so many slices.
--
-- Its rows are extended to N samples, so that no pixel sees their repetition: N is the next
-- length that suits an FFT from need = middle + radius + |axis - middle|, rounded up to even. The
-- scratch depends on the axis by N alone, but does not grow with N everywhere: a batch of pairs
-- is halved where it would exceed its limit, and not all lengths have fused kernels. N changes at
-- most once in 2 px of |axis - middle|, so steps of 1 px from the nearest to the farthest axis
-- meet every N that there is, but the last, which the farthest axis has.
local function costliest_axis(scan, device, settings, bounds, rows)
    local middle = (scan.cols - 1) / 2
    local nearest = math.max(bounds[1], math.min(bounds[2], middle))
    local farthest = middle - bounds[1] > bounds[2] - middle and bounds[1] or bounds[2]
    local params, worst, most = {}, nearest, -1
    for _, name in ipairs(FOURIER) do
        params[name] = settings[name]
    end
    local function try(axis)
        params.center = axis
        local scratch = mb.op.estimate("fourier_reconstruct",
            {{"f32", rows, scan.n_angles, scan.cols}}, params,
            {device = device}).scratch
        if scratch > most then
            worst, most = axis, scratch
        end
    end
    for i = 0, math.floor(math.abs(farthest - nearest)) do
        try(nearest + (farthest > nearest and i or -i))
    end
    try(farthest)
    return worst
end

-- Axes among which is the one for which chunks of these heights take most: the peak of a chunk is
-- that of one of its steps, and nothing that is live at a step depends on the axis but what the
-- field of view of a half acquisition makes wider.
local function deciding_axes(scan, device, settings, heights, memo)
    if settings.center then
        return {settings.center}
    end
    local bounds = scan_center.bounds(scan, settings)
    if settings.half_acquisition then
        -- the field is widest for an axis at either end, and a wider one takes more (see fbp.lua)
        return bounds
    elseif settings.method ~= "fourier" then
        return {(bounds[1] + bounds[2]) / 2} -- filter and back-projection take the same for all
    end
    local axes, seen = {}, {}
    for _, rows in ipairs(heights) do
        rows = math.min(rows, FULL_BATCH)
        memo[rows] = memo[rows] or costliest_axis(scan, device, settings, bounds, rows)
        if not seen[memo[rows]] then
            seen[memo[rows]] = true
            axes[#axes + 1] = memo[rows]
        end
    end
    return axes
end

-- ---- dry work ----

-- Settings with other values in some places.
local function with(settings, changes)
    return setmetatable(changes, {__index = settings})
end

-- A job: what all dry runs of one plan share.
local function job_of(scan, device, settings)
    return {scan = scan, device = device, settings = settings, first = settings.rows
        and settings.rows[1] or 1,
        last = settings.rows and settings.rows[2] or scan.rows, memo = {}}
end

local function chunks_for(job, count)
    return scan_work.shortened(job.scan, scan_work.chunks(job.first, job.last, count), job.settings)
end

local function axes_for(job, count)
    local heights = {}
    for i, rows in ipairs(chunks_for(job, count)) do
        heights[i] = rows[2] - rows[1] + 1
    end
    return deciding_axes(job.scan, job.device, job.settings, heights, job.memo)
end

-- The run in chunks of so many rows on a dry device, for one axis or all that decide.
local function dry_run(job, dry, count, axis)
    for _, center in ipairs(axis and {axis} or axes_for(job, count)) do
        scan_work.run(job.scan, dry, chunks_for(job, count),
            with(job.settings, {center = center}), {})
    end
end

-- The peak of the run in chunks of so many rows, and the axis that has it.
-- The bytes that fn(device) takes on the job's device. Of scans in memory some rows are copied on
-- the host meanwhile, which is planned with it.
local function device_peak(job, fn)
    return memory.peaks(fn, {job.device}).peak[job.device.id]
end

local function run_peak(job, count)
    local most, worst = -1, nil
    for _, axis in ipairs(axes_for(job, count)) do
        local peak = device_peak(job, function(dry)
            dry_run(job, dry, count, axis)
        end)
        if peak > most then
            most, worst = peak, axis
        end
    end
    return most, worst
end

-- What the search for the axis takes, in bytes; nil where the axis is given.
local function search_peak(job)
    return not job.settings.center and device_peak(job, function(dry)
        scan_center.find(job.scan, with(job.settings, {device = dry}))
    end) or nil
end

-- What a look at the values takes (see scan_values.lua); nil where it has been done.
local function look_peak(job)
    local unseen = setmetatable({values_planned = false}, {__index = job.scan})
    return not job.scan.values_found and job.scan.n_flats and device_peak(job, function(dry)
        scan_values.check(unseen, with(job.settings, {device = dry}))
    end) or nil
end

-- What finding the range of the values takes that are stored as another type, or judging one that
-- was given for u16; nil where there is nothing to find.
local function range_peak(job)
    local dtype = job.settings.dtype
    if not (dtype == "u16" or dtype == "f16" and not job.settings.range) then
        return nil
    end
    return device_peak(job, function(dry)
        for _, axis in ipairs(deciding_axes(job.scan, job.device, job.settings, {1}, job.memo)) do
            scan_work.find_range(job.scan, with(job.settings, {device = dry, center = axis}))
        end
    end)
end

-- ---- checks ----

-- Raises where rows, chunk, size or threads are no such numbers.
function scan_plan.check_extents(scan, options)
    local rows = options.rows
    if rows then
        local first, last = type(rows) == "table" and rows[1], type(rows) == "table" and rows[2]
        if math.type(first) ~= "integer" or math.type(last) ~= "integer" then
            fail("argument", "recon.plan", "rows", "rows must be {first, last}, whole numbers")
        elseif first < 1 or last > scan.rows or first > last then
            fail("argument", "recon.plan", "rows", "rows %d to %d; the scan has rows 1 to %d",
                first, last, scan.rows)
        end
    end
    local circle = options.circle
    if type(circle) == "number" and circle > 0 and circle * (options.size or scan.cols) < 1 then
        fail("argument", "recon.plan", "circle",
            "circle is %g, less than a pixel, which leaves nothing; 0 leaves the mask out", circle)
    end
    arguments.count(options.chunk or nil, "recon.plan", "chunk", 1, 1 << 31)
    arguments.count(options.size or nil, "recon.plan", "size", 1, 1 << 20)
    arguments.count(options.threads or nil, "recon.plan", "threads", 1, 64)
end

-- Raises unless `out` is nil or an array on the host that has room for the volume.
local function check_out(out, shape, dtype)
    if out and (out.device.kind ~= "host" or out.dtype ~= dtype
        or table.concat(out.shape, " x ") ~= table.concat(shape, " x ")) then
        fail("shape", "recon.plan", "out", "out is %s %s on %s; it must be %s %s on the host",
            out.dtype, table.concat(out.shape, " x "), out.device.id, dtype,
            table.concat(shape, " x "))
    end
end

-- ---- plan A ----

-- The ways to reconstruct, in the order in which they are tried (see `tomo.choose_method`).
local function ways_of(job)
    local asked, settings = {}, job.settings
    for _, name in ipairs {"method", "mode", "half_acquisition", "accuracy"} do
        asked[name] = settings[name]
    end
    asked.slice_shifts = lean.shifts(job.scan, job.first, job.first, settings)
    return methods.ways(job.scan.n_angles, job.scan.cols, asked, job.device)
end

-- Sets a way; axes that decided for another one are forgotten.
local function take(job, way)
    job.settings.method, job.settings.mode, job.memo = way.method, way.mode, {}
end

-- More rows than this at a time gain no speed; fewer show progress, and obey Ctrl-C, sooner.
-- Files are written with fewer halts in larger chunks; in memory the first upload and the last
-- download, which nothing hides, are shorter in smaller ones.
local function most_rows(job)
    local total = job.last - job.first + 1
    return math.min(total, math.max(scan_plan.CHUNK_ROWS, total // (job.settings.out and 32 or 16)))
end

-- The rows that a method makes together, so that chunks of whole ones give the same values
-- whatever their height.
local function packet_of(job)
    return job.settings.method == "fourier" and math.min(2, job.last - job.first + 1) or 1
end

-- The most rows at a time that fit, or 0: as asked, or whole packets, or all.
local function rows_that_fit(job, available)
    local total, chunk = job.last - job.first + 1, job.settings.chunk
    if chunk or total <= most_rows(job) then
        chunk = math.min(chunk or total, total)
        if run_peak(job, chunk) <= available or job.settings.chunk then
            return run_peak(job, chunk) <= available and chunk or 0
        end
    end
    return (memory.max_count(function(dry, count)
        dry_run(job, dry, count)
    end, {device = job.device, available = available, limit = most_rows(job),
        granularity = packet_of(job)}))
end

-- The first way that fits, and its rows at a time; nil where none does.
local function way_that_fits(job, ways, available)
    local first
    for _, overlap in ipairs {true, false} do
        if overlap and job.settings.overlap ~= false or not overlap
            and job.settings.overlap ~= true then
            local asked = job.settings.overlap
            job.settings.overlap = overlap
            for _, way in ipairs(ways) do
                if way.taken then
                    first = first or way
                    take(job, way)
                    local rows = rows_that_fit(job, available)
                    if rows > 0 then
                        local why = way ~= first and way.name
                            .. " (the faster mode takes more than there is)" or way.reason
                        return way, rows, why
                    end
                end
            end
            job.settings.overlap = asked
        end
    end
end

-- Raises that the fewest rows do not fit, with what would do; `live` is what is live already and
-- counts in the budget.
local function fail_least(job, ways, available, others, live)
    local bytes = mb.device.format_bytes
    local least, rows, remedies = math.huge, 1, {}
    job.settings.overlap = job.settings.overlap == true
    for _, way in ipairs(ways) do
        take(job, way)
        local peak = math.max(run_peak(job, packet_of(job)), others)
        if way.taken then
            least, rows = math.min(least, peak), packet_of(job)
        elseif peak <= available then
            remedies[#remedies + 1] = (", or take method %s, mode %s, which needs %s and gives "
                .. "slightly other values"):format(
                way.method, way.mode, bytes(peak))
        end
    end
    local problem = ("%s of this scan%s needs %s, %s are available"):format(rows == 1 and "one row"
        or "a pair of rows",
        others == least and ", with the search in the frames before the run," or "", bytes(least),
        bytes(available))
    local err = mb.error("budget", ("%s; give a budget of at least %d bytes%s"):format(problem,
        least + live,
        table.concat(remedies)), {op = "recon.plan"})
    err.problem, err.enough, err.device = problem, least + live, job.device.id
    error(err, 0)
end

-- Raises that the chunk that was asked for does not fit.
local function fail_chunk(job, ways, available)
    local bytes = mb.device.format_bytes
    take(job, ways[1])
    job.settings.overlap = job.settings.overlap == true
    local chunk = math.min(job.settings.chunk, job.last - job.first + 1)
    fail("budget", "recon.plan", "chunk", "a chunk of %d rows needs %s, %s are available; smaller "
        .. "chunks need less (leave --chunk out to have it chosen)", chunk,
        bytes(run_peak(job, chunk)), bytes(available))
end

-- The parts of a plan that the axis decides.
local function measure(plan, job)
    local settings, widest = job.settings, job.scan.cols
    plan.run_peak, plan.worst_axis = run_peak(job, plan.chunk)
    plan.range_peak = range_peak(job)
    plan.peak = math.max(plan.run_peak, plan.range_peak or 0, plan.search_peak or 0, plan.look_peak
        or 0)
    if settings.half_acquisition then
        widest = 0
        for _, axis in ipairs(deciding_axes(job.scan, job.device, settings, {1}, job.memo)) do
            widest = math.max(widest, scan_work.extended_width(job.scan,
                with(settings, {center = axis})))
        end
    end
    local width, rows = settings.size or widest, job.last - job.first + 1
    plan.volume = {rows, width, width}
    plan.volume_bytes = rows * width * width * ITEM_BYTES[plan.dtype]
    plan.exact = settings.center ~= nil
end

-- A bound for the process, where the pool of the host has no more than the plan needs as its
-- budget. Threads that decode frames hold one each, packed and unpacked.
local function process_bytes(scan, plan)
    if plan.device.planned then
        return nil -- what is on another machine is not known here
    end
    local threads = plan.settings.threads or 8
    local frames = not scan.chunk_rows and 0
        or 2 * threads * math.min(scan.rows * scan.cols * ITEM_BYTES[scan.dtype], 64 << 20)
    return process_memory.bound(plan.device.kind == "host" and plan.at_most or 0, plan.pinned,
        frames)
end

function scan_plan.make(scan, options)
    local device = mb.device(options.device or "host")
    scan_plan.check_extents(scan, options)
    lean.of(options) -- raises where the tilt is out of the question
    local settings = {}
    for name, value in pairs(options) do
        settings[name] = value
    end
    local job = job_of(scan, device, settings)
    if settings.half_acquisition then -- raises where it is none
        scan_work.extended_width(scan, with(settings, {center = deciding_axes(scan, device,
            settings, {1}, {})[1]}))
    end
    local stats = mb.pool.stats(device)
    local available = options.available or stats.budget - stats.live
    local ways = ways_of(job)
    local search, look = search_peak(job), look_peak(job)
    local way, chunk, why = way_that_fits(job, ways, available)
    if not way and options.chunk then
        fail_chunk(job, ways, available)
    end
    local others = math.max(search or 0, look or 0, way and range_peak(job) or 0)
    if not way or others > available then
        fail_least(job, ways, available, others, options.available and 0 or stats.live)
    end
    -- Even chunks: the same number of them, but none much smaller than the others; whole packets
    -- of slices if they fit.
    local total = job.last - job.first + 1
    if not options.chunk then
        local even = math.ceil(total / math.ceil(total / chunk))
        chunk = math.min(chunk, (even + 7) // 8 * 8)
    end
    local plan = {
        device = device,
        rows = {job.first, job.last},
        chunk = chunk,
        chunks = math.ceil(total / chunk),
        search_peak = search,
        look_peak = look,
        budget = stats.budget,
        available = available,
        overlap = settings.overlap,
        pinned = stream.pinned_bytes(device, {threads = options.threads, pinned = options.pinned,
            files = options.slices_per_file, source = scan.arrays, sink = options.out}),
        dtype = options.dtype or "f32",
        input_bytes = scan.n_angles * total * scan.cols * ITEM_BYTES[scan.dtype],
        method = way.method,
        mode = way.mode,
        reason = why,
        lean = {lean.at(scan, job.first, settings), lean.at(scan, job.last, settings)},
        settings = settings,
    }
    measure(plan, job)
    plan.at_most = plan.peak
    plan.process = process_bytes(scan, plan)
    if plan.exact or not settings.half_acquisition then
        check_out(options.out, plan.volume, plan.dtype)
    end
    return plan
end

-- ---- plan B ----

function scan_plan.settle(scan, plan, center)
    local settled, settings = {}, {}
    for key, value in pairs(plan) do
        settled[key] = value
    end
    for key, value in pairs(plan.settings) do
        settings[key] = value
    end
    settings.center = center
    settled.settings = settings
    local job = job_of(scan, plan.device, settings)
    measure(settled, job)
    check_out(settings.out, settled.volume, settled.dtype)
    scan_plan.check_bytes("the plan for the axis that was found", settled.peak, plan.at_most,
        settled.peak <= plan.at_most)
    return settled
end

-- ---- what was promised, and what was measured ----

--- Says loudly that a promise was broken: on the standard error; where MOONBEAM_STRICT is set, as
-- for the specs, as an error. Returns whether it was kept.
function scan_plan.check_bytes(what, bytes, promised, kept)
    if kept == nil then
        kept = bytes == promised
    end
    if not kept then
        local text = ("%s takes %d bytes, but %d were promised: this is a defect of Moonbeam, "
            .. "please report it"):format(what, bytes,
            promised)
        if os.getenv "MOONBEAM_STRICT" then
            fail("internal", "recon", nil, "%s", text)
        end
        io.stderr:write("WARNING: ", text, "\n")
    end
    return kept
end

-- ---- text ----

--- Text of a plan, for people.
function scan_plan.describe(plan)
    local bytes = mb.device.format_bytes
    local half = plan.settings.half_acquisition and not plan.exact and "at most " or ""
    local lines = {
        ("device     %s (%s)"):format(plan.device.id, plan.device.name),
        ("input      %s in rows %d to %d"):format(bytes(plan.input_bytes), plan.rows[1],
        plan.rows[2]),
        ("volume     %s%d x %d x %d %s, %s"):format(half, plan.volume[1], plan.volume[2],
        plan.volume[3], plan.dtype,
            bytes(plan.volume_bytes)),
        ("method     %s"):format(plan.reason),
        ("chunks     %d of %d rows%s"):format(plan.chunks, plan.chunk, plan.overlap
        and ", reading and writing beside" or ""),
        plan.exact and ("peak       %s (%d bytes) of %s available"):format(bytes(plan.peak),
        plan.peak, bytes(plan.available))
            or ("peak       at most %s (%d bytes) of %s available, whatever axis is found"):format(
                bytes(plan.peak), plan.peak, bytes(plan.available)),
        ("pinned     %s (%d bytes) of host memory"):format(bytes(plan.pinned), plan.pinned),
    }
    lines[#lines + 1] = plan.process and process_memory.text(plan.process) or nil
    if plan.search_peak then
        lines[#lines + 1] =
            ("axis       its search takes %s (%d bytes)"):format(bytes(plan.search_peak),
            plan.search_peak)
    end
    if plan.lean[1] ~= 0 then
        lines[#lines + 1] = ("axis       leans from %+.2f columns at row %d to %+.2f at row %d")
            :format(plan.lean[1], plan.rows[1], plan.lean[2], plan.rows[2])
    end
    lines[#lines + 1] = plan.device.basis
    return table.concat(lines, "\n")
end

-- For scan_memory.lua: the peak of a run in chunks of so many rows, with what is looked for before.
function scan_plan.peak(job, count)
    return math.max(run_peak(job, count), search_peak(job) or 0, range_peak(job) or 0)
end

scan_plan.deciding_axes = deciding_axes
scan_plan.ways_of = ways_of
scan_plan.job_of = job_of
scan_plan.take = take

return scan_plan
