--- Reconstruction of a whole scan, in chunks of rows that fit the budget.
--
-- The chunk function is the whole method; its memory is not modelled but dry-run: `recon.plan` calls the very same function
-- on a shadow of the device and so knows the peak of every chunk to the byte before a frame is read.

local mb = require "moonbeam"
local options_of = require "moonbeam.options"
local progress = require "moonbeam.progress"

local recon = {}

local ITEM_BYTES = {u8 = 1, u16 = 2, i32 = 4, f16 = 2, f32 = 4, f64 = 8}
local OPTIONS = {"device", "available", "chunk", "rows", "center", "filter", "cutoff", "padding", "circle", "accuracy",
    "size", "scale", "flat_mode", "log", "quiet"}

--- Rows per chunk beyond which nothing gets faster: what the back-projection kernels take at a time.
recon.CHUNK_ROWS = 64

--- One chunk of rows: reads, normalises, filters and back-projects it. Rows are 1-based and inclusive.
-- Returns the slices (z, y, x) on the device and the counts of mended values.
function recon.chunk(scan, device, first, last, settings)
    local darks <close> = scan:darks({first, last}, {device = device})
    local flats <close> = scan:flats({first, last}, {device = device})
    local raw <close> = scan:projections({first, last}, {device = device})
    local projections <close>, counts = mb.tomo.line_integrals(raw, {darks = darks, flats = flats, mode = settings.flat_mode,
        log = settings.log, consume = true})
    for _, array in pairs {darks, flats} do
        array:release() -- before the slices are made, not after
    end
    local sinograms <close> = projections:permute(2, 1, 3)
    local slices = mb.tomo.fbp(sinograms, scan.angles, {in_place = true, center = settings.center, filter = settings.filter,
        cutoff = settings.cutoff, padding = settings.padding, circle = settings.circle, size = settings.size,
        scale = settings.scale, accuracy = settings.accuracy})
    return slices, counts
end

-- Line integrals of some rows and projections of a scan.
local function integrals(scan, device, rows, angles, settings)
    local darks <close> = scan:darks(rows, {device = device})
    local flats <close> = scan:flats(rows, {device = device})
    local raw = scan:projections(rows, {device = device, angles = angles}) -- becomes the result when it is f32
    local projections, counts = mb.tomo.line_integrals(raw, {darks = darks, flats = flats, mode = settings.flat_mode,
        log = settings.log, consume = true})
    counts:release()
    return projections
end

--- Rotation centre of a scan: registration of two opposite frames, then trial slices of one row (see `tomo.find_center`).
-- Reads two frames (at most 256 rows around the middle) and one row. Returns the 0-based centre and a line of text that
-- says how it was found.
function recon.find_center(scan, options)
    options = options_of(options, "recon.find_center", OPTIONS)
    local device = mb.device(options.device or "host")
    local low, high = options.rows and options.rows[1] or 1, options.rows and options.rows[2] or scan.rows
    local middle = (low + high) // 2
    local rows = {math.max(low, middle - 127), math.min(high, middle + 128)}
    local first, other, miss = mb.tomo.opposite_pair(scan.angles)
    local pair, residual
    if miss < math.rad(5) then
        local a <close> = integrals(scan, device, rows, {first, first}, options)
        local b <close> = integrals(scan, device, rows, {other, other}, options)
        local a_frame <close> = a:view(1, mb.all, mb.all)
        local b_frame <close> = b:view(1, mb.all, mb.all)
        pair, residual = mb.tomo.find_center_pair(a_frame, b_frame)
    end
    local line <close> = integrals(scan, device, {middle, middle}, nil, options)
    local sinogram <close> = line:view(mb.all, 1, mb.all)
    local center = mb.tomo.find_center_metric(sinogram, scan.angles, {guess = pair, range = pair and mb.tomo.PAIR_RANGE or nil,
        filter = options.filter, accuracy = options.accuracy})
    local how = pair and ("projections %d and %d give %.2f (residual %.2g), trial slices of row %d give %.2f"):format(first, other,
        pair, residual, middle, center) or ("no opposite projections; trial slices of row %d give %.2f"):format(middle, center)
    return center, how
end

--- What a reconstruction will take: chunk height, number of chunks, bytes. Reads nothing.
-- Options as `recon.run`. Returns {rows = {first, last}, chunk, chunks, peak, budget, device, volume = {nz, ny, nx}, ...}.
function recon.plan(scan, options)
    options = options_of(options, "recon.plan", OPTIONS)
    local device = mb.device(options.device or "host")
    local first = options.rows and options.rows[1] or 1
    local last = options.rows and options.rows[2] or scan.rows
    if first < 1 or last > scan.rows or first > last then
        mb.raise("argument", ("rows %d to %d; the scan has rows 1 to %d"):format(first, last, scan.rows),
            {op = "recon.plan", arg = "rows"})
    end
    local total = last - first + 1
    local function work(shadow, count)
        local slices, counts = recon.chunk(scan, shadow, first, first + count - 1, options)
        slices:release()
        counts:release()
    end
    local stats = mb.pool.stats(device)
    local available = options.available or stats.budget - stats.live
    local chunk, peak = options.chunk and math.min(options.chunk, total), 0
    if chunk then
        peak = mb.plan.peak(work, device, chunk).peak
        if peak > available then
            mb.raise("budget", ("a chunk of %d rows needs %s, %s are available; smaller chunks need less (leave --chunk out "
                .. "to have it chosen)"):format(chunk, mb.device.format_bytes(peak), mb.device.format_bytes(available)),
                {op = "recon.plan", arg = "chunk"})
        end
    else
        -- More rows than this at a time gain no speed; fewer show progress, and obey Ctrl-C, sooner.
        local most = math.min(total, math.max(recon.CHUNK_ROWS, total // 16))
        chunk, peak = mb.plan.max_count(work, {device = device, available = available, limit = most})
        if chunk == 0 then
            local least = mb.plan.peak(work, device, 1).peak
            mb.raise("budget", ("one row of this scan needs %s, %s are available; give a budget of at least %d bytes"):format(
                mb.device.format_bytes(least), mb.device.format_bytes(available), least), {op = "recon.plan"})
        end
    end
    -- Even chunks: the same number of them, but none much smaller than the others; whole packets of slices if they fit.
    if not options.chunk then
        local even = math.ceil(total / math.ceil(total / chunk))
        chunk = math.min(chunk, (even + 7) // 8 * 8)
        peak = mb.plan.peak(work, device, chunk).peak
    end
    local width = options.size or scan.cols
    return {
        device = device,
        rows = {first, last},
        chunk = chunk,
        chunks = math.ceil(total / chunk),
        peak = peak,
        budget = stats.budget,
        available = available,
        volume = {total, width, width},
        volume_bytes = total * width * width * 4,
        input_bytes = scan.n_angles * total * scan.cols * ITEM_BYTES[scan.dtype],
        settings = options,
    }
end

--- Text of a plan, for people.
function recon.describe(plan)
    local bytes = mb.device.format_bytes
    return table.concat({
        ("device     %s (%s)"):format(plan.device.id, plan.device.name),
        ("input      %s in rows %d to %d"):format(bytes(plan.input_bytes), plan.rows[1], plan.rows[2]),
        ("volume     %d x %d x %d f32, %s"):format(plan.volume[1], plan.volume[2], plan.volume[3], bytes(plan.volume_bytes)),
        ("chunks     %d of %d rows"):format(plan.chunks, plan.chunk),
        ("peak       %s (%d bytes) of %s available"):format(bytes(plan.peak), plan.peak, bytes(plan.available)),
    }, "\n")
end

--- Runs a plan. `write(slices, z)` gets each chunk, z counting from 1; the slices are released afterwards.
-- Returns {seconds, peak (measured), counts = {nonfinite, clamped, nonpositive}}.
function recon.run(scan, plan, write)
    local totals = {0, 0, 0}
    local bar = progress.new("reconstructing", plan.rows[2] - plan.rows[1] + 1, {unit = "slices", quiet = plan.settings.quiet})
    mb.collect()
    local scope <close> = mb.pool.scope(plan.device)
    for first = plan.rows[1], plan.rows[2], plan.chunk do
        local last = math.min(first + plan.chunk - 1, plan.rows[2])
        local slices <close>, counts = recon.chunk(scan, plan.device, first, last, plan.settings)
        for i, count in ipairs(counts:to_table()) do
            totals[i] = totals[i] + math.tointeger(count)
        end
        counts:release()
        write(slices, first - plan.rows[1] + 1)
        bar:step(last - first + 1)
    end
    local peak = scope:finish()
    return {seconds = bar:finish(), peak = peak, counts = totals}
end

return recon
