--- Reconstruction of a whole scan, in chunks of rows that fit the budget.
--
-- The chunk function is the whole method; its memory is not modelled but dry-run: `recon.plan` calls the very same function
-- on a shadow of the device and so knows the peak of every chunk to the byte before a frame is read.

local mb = require "moonbeam"
local arguments = require "moonbeam.arguments"
local lean = require "moonbeam.lean"
local on_error = require "moonbeam.on_error"
local options_of = require "moonbeam.options"
local progress = require "moonbeam.progress"
local scan_center = require "moonbeam.scan_center"
local scan_values = require "moonbeam.scan_values"
local scan_frames = require "moonbeam.scan_frames"
local stream = require "moonbeam.stream"
local unpack = require "moonbeam.unpack"
local whole_call = require "moonbeam.whole"

local recon = {}

local ITEM_BYTES = {u8 = 1, u16 = 2, i32 = 4, f16 = 2, f32 = 4, f64 = 8}
local OPTIONS = {"device", "available", "chunk", "rows", "center", "filter", "cutoff", "padding", "circle", "accuracy",
    "size", "scale", "flat_mode", "log", "quiet", "pad_width", "mode", "half_acquisition", "vertical_shifts", "method",
    "axis_tilt", "overlap", "threads", "pinned", "dtype", "range", "slices_per_file", "out"}

recon.OPTIONS = OPTIONS

--- Rows per chunk beyond which nothing gets faster: what the back-projection kernels take at a time.
recon.CHUNK_ROWS = 64

-- ---- vertical shifts ----

-- Bytes of a text of numbers beyond which it is none.
local MOST_TEXT = 64 << 20

-- The text of an ordinary file: a device or a pipe could go on for ever. nil where there is none.
local function text_of(path)
    local facts = mb.system.stat(path)
    if not facts then
        return nil
    elseif facts.kind == "other" then
        mb.raise("argument", ("%s is not an ordinary file; copy it to one"):format(path),
            {op = "recon.read_shifts", arg = "where"})
    elseif facts.kind ~= "file" then
        return nil
    elseif facts.bytes > MOST_TEXT then
        return nil -- a dataset's file, or nothing that could be meant
    end
    local file <close> = io.open(path)
    return file and file:read(MOST_TEXT)
end

local function numbers_of_text(path)
    local text = text_of(path)
    if not text or text:find("\0", 1, true) then
        return nil
    end
    local values = {}
    for line in text:gmatch("[^\r\n]+") do
        for word in line:gsub("#.*", ""):gmatch("[^%s,;]+") do
            values[#values + 1] = tonumber(word) or mb.raise("argument", ("%s: '%s' is not a number"):format(path, word),
                {op = "recon.read_shifts", arg = "where"})
        end
    end
    return values
end

--- Vertical shifts, one number a projection, in rows: from a text file (numbers between spaces, commas or line ends; # starts
-- a comment), a dataset of the scan's file ("/path"), or one of another file ("other.h5:/path").
function recon.read_shifts(scan, where)
    if type(where) ~= "string" then
        mb.raise("argument", "where is a file, a dataset or both, FILE:/PATH", {op = "recon.read_shifts", arg = "where"})
    end
    local values = not where:match("^(.+):(/.*)$") and numbers_of_text(where) or nil
    if not values then
        local name, path = where:match("^(.+):(/.*)$")
        local opened, problem = mb.h5.open(name or scan.path)
        local file <close> = opened or error(problem, 0)
        if not file:exists(path or where) then
            mb.raise("argument", ("%s is neither a text file nor a dataset of %s"):format(where, name or scan.path),
                {op = "recon.read_shifts", arg = "where"})
        end
        local shape = file:dataset(path or where).shape
        if #shape > 1 then
            mb.raise("shape", ("%s has %d axes; vertical shifts are a list, one number a projection"):format(where, #shape),
                {op = "recon.read_shifts", arg = "where"})
        elseif (shape[1] or 1) == scan.n_angles then -- else there is no need to read it
            local array <close> = file:read(path or where, {device = "host"})
            values = array:to_table()
        else
            values = {n = shape[1]}
        end
    end
    if type(values) ~= "table" or #values ~= scan.n_angles then
        mb.raise("shape", ("%s has %s vertical shifts; the scan has %d projections"):format(where,
            type(values) == "table" and (values.n or #values) or 1, scan.n_angles), {op = "recon.read_shifts", arg = "where"})
    end
    for i, value in ipairs(values) do
        if value ~= value or math.abs(value) > scan.rows then
            mb.raise("argument", ("%s: shift %d is %g; it lies within the detector's %d rows either way"):format(where, i, value,
                scan.rows), {op = "recon.read_shifts", arg = "where"})
        end
    end
    return values
end

-- The rows to read so that rows first .. last are complete after the vertical shifts, as far as the scan has them.
local function rows_to_read(scan, first, last, settings)
    local low, high = 0, 0
    for _, shift in ipairs(settings.vertical_shifts or {}) do
        low, high = math.min(low, math.floor(shift)), math.max(high, math.ceil(shift))
    end
    return math.max(1, math.tointeger(first + low)), math.min(scan.rows, math.tointeger(last + high))
end

--- Queues the reading of what a chunk of rows needs (1-based, inclusive; vertical shifts need more than its own): the input of
-- `recon.slices`. Without a carrier it is there at once.
function recon.frames(scan, device, first, last, settings, carrier)
    return scan_frames.read(scan, device, {rows_to_read(scan, first, last, settings)}, nil, carrier)
end

--- The slices of a chunk of rows from its frames, which it releases: normalises, shifts and reconstructs them (settings as of
-- `recon.plan`, whose method and mode are what counts; without them filtered back-projection, "fast").
-- Returns the slices (z, y, x) on the device and the counts of mended values (of all rows read).
function recon.slices(scan, frames, first, last, settings)
    local projections <close>, counts = scan_frames.integrals(frames, settings)
    local _ <close> = on_error(function() counts:release() end)
    local low = rows_to_read(scan, first, last, settings)
    if settings.vertical_shifts then
        mb.vertical_shift(projections, settings.vertical_shifts, {out = projections})
    end
    local own <close> = projections:view(mb.all, {first - low + 1, last - low + 1}, mb.all)
    local sinograms <close> = own:permute(2, 1, 3)
    local of_slices, of_angles = lean.shifts(scan, first, last, settings)
    local slices = mb.tomo.reconstruct(sinograms, scan.angles, {method = settings.method or "fbp",
        mode = settings.mode or "fast", consume = true, center = settings.center, slice_shifts = of_slices, shifts = of_angles,
        half_acquisition = settings.half_acquisition, filter = settings.filter, cutoff = settings.cutoff,
        padding = settings.padding, pad_width = settings.pad_width, circle = settings.circle, size = settings.size,
        scale = settings.scale, accuracy = settings.accuracy})
    return slices, counts
end

--- One chunk of rows, read and reconstructed.
function recon.chunk(scan, device, first, last, settings)
    return recon.slices(scan, recon.frames(scan, device, first, last, settings), first, last, settings)
end

-- Half acquisition: the width of the whole field of view. Raises where the scan is none.
local function extended_width(scan, settings)
    if not settings.center then
        mb.raise("argument", "half acquisition needs the rotation centre before it can be planned", {op = "recon.plan",
            arg = "center"})
    end
    local least, most = math.huge, -math.huge
    for _, angle in ipairs(scan.angles) do
        least, most = math.min(least, angle), math.max(most, angle)
    end
    if (most - least) * scan.n_angles < 2 * math.pi * 0.95 * (scan.n_angles - 1) then
        mb.raise("argument", ("half acquisition needs a whole turn; the angles cover %.0f degrees"):format(math.deg(most - least)),
            {op = "recon.plan", arg = "half_acquisition"})
    end
    return mb.op.estimate("half_acquisition_weight", {{"f32", scan.cols}}, {center = settings.center, extend = true}).results[1]
        .shape[1]
end

--- Looks at a few frames of a scan before anything is made of them: {kind = "flats", "transmission" or
-- "line integrals", text, warnings}. Raises where a volume would be made of nothing: counts without
-- flats, values that are all not finite, all saturated, or all one number in float32. The options rows,
-- log and device count. A scan is looked at once; find_center and run do so where nobody did.
function recon.check_values(scan, options)
    return scan_values.check(scan, options_of(options, "recon.check_values", OPTIONS))
end

--- What `recon.check_values` can say without reading frames: the kind and a line of text.
function recon.expected_values(scan, options)
    return scan_values.kind(scan, options_of(options, "recon.expected_values", OPTIONS))
end

--- Rotation axis of a scan: registration of opposite projections, checked by other ways.
--
-- Half a turn has opposite projections at its two ends, a whole turn everywhere. They decide.
-- Centers of mass, or trial slices of a few rows, are the check. They move the axis only within
-- what opposite projections leave open (center.decide), or tell alone where no projections are
-- opposite. Reads a few frames and a band of rows (see scan_center.lua). A half acquisition has no
-- trial slices. The axis of a scan with an `axis_tilt` is the one at half the detector's height.
-- Returns the 0-based column, a line of text that says how it was found, and a table: verdict
-- ("found"; "differ": the two ways do not agree; "edge" of the search; "ambiguous": two columns
-- match; "flat": opposite projections have nothing in common; "mass": there are none, centers of
-- mass tell; "slices": trial slices alone tell), remedy (a sentence, where the verdict asks for
-- one), pair, mass and slices (the column of each way), residual (0: opposite projections match;
-- about 1: they have nothing in common), uncertainty (px), curve (of residuals over columns).
function recon.find_center(scan, options)
    options = options_of(options, "recon.find_center", OPTIONS)
    scan_values.check(scan, options)
    return scan_center.find(scan, options)
end

--- The 0-based columns {low, high}, inclusive, between which `recon.find_center` returns its axis, whatever
-- the frames of this scan hold (options as there). Reads nothing.
function recon.center_bounds(scan, options)
    return scan_center.bounds(scan, options_of(options, "recon.center_bounds", OPTIONS))
end

--- Writes a PNG of how well opposite projections match over the columns of the axis, from the table that
-- `recon.find_center` returned. Red is the axis, blue the axis by trial slices.
-- Errors: argument (a scan without opposite projections), io.
function recon.center_picture(path, details)
    scan_center.picture(path, details)
end

--- Range {low, high} for storing a scan's slices as `options.dtype`: "u16", the range of three slices, at a quarter, half and three
-- quarters of the height (the middle alone may be empty), and a quarter more on both sides; "f16", {0, the power of two that
-- brings them to half floats}, 1 where they fit as they are. The options as of recon.run, with the centre.
function recon.find_range(scan, options)
    options = options_of(options, "recon.find_range", OPTIONS)
    local low, high = options.rows and options.rows[1] or 1, options.rows and options.rows[2] or scan.rows
    local least, most, before = math.huge, -math.huge, nil
    for quarter = 1, 3 do
        local row = low + quarter * (high - low) // 4
        if row ~= before then
            local slices <close>, counts = recon.chunk(scan, mb.device(options.device or "host"), row, row, options)
            counts:release()
            least = math.min(least, mb.bound(0, slices.min, slices))
            most = math.max(most, mb.bound(0, slices.max, slices))
            before = row
        end
    end
    if options.dtype == "f16" then
        local largest = math.max(math.abs(least), math.abs(most))
        local fits = largest == 0 or largest > 2 ^ -4 and largest < 2 ^ 13
        return {0, fits and 1 or 2.0 ^ math.ceil(math.log(largest, 2) - 11)}
    end
    local margin = (most - least) / 4
    return margin > 0 and {least - margin, most + margin} or {least - 1, least + 1}
end

--- How many of the 65536 codes of u16 the slices use when they are stored by `options.range`; fewer than one is an error.
function recon.range_codes(scan, options)
    options = options_of(options, "recon.range_codes", OPTIONS)
    local own, range = recon.find_range(scan, options), options.range
    local codes = 65535 * (own[2] - own[1]) / 1.5 / (range[2] - range[1]) -- without find_range's margins
    if codes < 1 or codes ~= codes then
        mb.raise("argument", ("the range %g to %g is so wide that all values, about %.4g to %.4g, are stored as one"):format(
            range[1], range[2], own[1], own[2]), {op = "recon.range_codes", arg = "range"})
    end
    return codes
end

-- The chunks of `count` rows: a list of {first, last}.
local function chunks_of(first, last, count)
    local list = {}
    for from = first, last, count do
        list[#list + 1] = {from, math.min(from + count - 1, last)}
    end
    return list
end

-- The ranges of rows that chunks read.
local function ranges_of(scan, chunks, settings)
    local list = {}
    for i, rows in ipairs(chunks) do
        list[i] = {rows_to_read(scan, rows[1], rows[2], settings)}
    end
    return list
end

-- Fewer chunks that take as much: of a run of chunks that have and read as many rows, four are enough, because no more than
-- three are on the device at a time.
local function shortened(scan, chunks, settings)
    local list, same, before = {}, 0, nil
    for _, rows in ipairs(chunks) do
        local low, high = rows_to_read(scan, rows[1], rows[2], settings)
        local kind = ("%d %d %d"):format(rows[2] - rows[1], rows[1] - low, high - rows[2])
        same = kind == before and same + 1 or 1
        before = kind
        if same <= 4 then
            list[#list + 1] = rows
        end
    end
    return list
end

-- Sums over chunks, on the device: {mended values, values that did not fit the stored type}, three counts each.
local function tallies(device)
    local sums = setmetatable({}, scan_frames.metatable)
    local _ <close> = on_error(function() sums:release() end)
    for _, name in ipairs {"mended", "clipped"} do
        sums[name] = mb.zeros({3}, {dtype = "f64", device = device})
    end
    return sums
end

local function add(sum, counts)
    local _ <close> = counts
    mb.binary(sum, "add", {b = counts, out = sum})
end

-- Slices as they are stored; the f32 ones are released.
local function stored(slices, settings, clipped)
    if not settings.dtype or settings.dtype == "f32" then
        return slices
    end
    local _ <close> = slices
    local range = settings.range or {0, 1} -- a plan needs none
    local result, counts = mb.quantize(slices, settings.dtype, {low = range[1], high = range[2]})
    local _ <close> = on_error(function() result:release() end)
    add(clipped, counts)
    return result
end

-- The whole work on some chunks, as it is run and as it is planned. `steps` are {prepare, write, done} of stream.run. Returns the
-- tallies as tables, and the times.
local function work(scan, device, chunks, settings, steps, writes)
    local sums <close> = tallies(device)
    local times = stream.run(device, chunks, {
        read = function(rows, carrier)
            return recon.frames(scan, device, rows[1], rows[2], settings, carrier)
        end,
        compute = function(frames, rows)
            local slices, counts = recon.slices(scan, frames, rows[1], rows[2], settings)
            local _ <close> = on_error(function() slices:release() end)
            add(sums.mended, counts)
            return stored(slices, settings, sums.clipped)
        end,
        prepare = steps.prepare,
        write = steps.write or function() end,
        done = steps.done,
    }, {overlap = settings.overlap, threads = settings.threads, pinned = settings.pinned, writes = writes,
        files = settings.slices_per_file, source = scan.arrays, sink = settings.out})
    local totals = {}
    for _, name in ipairs {"mended", "clipped"} do
        totals[name] = device.dry and {0, 0, 0} or mb.bound({0, 0, 0}, sums[name].to_table, sums[name])
        for i, count in ipairs(totals[name]) do
            totals[name][i] = math.tointeger(count)
        end
    end
    return totals, times
end

-- Ways to reconstruct chunks of so many rows, the fastest first (see `tomo.choose_method`).
local function ways_of(scan, device, rows, options)
    local first = options.rows and options.rows[1] or 1
    local asked = {device = device, available = 1 << 60, slice_shifts = lean.shifts(scan, first, first + rows - 1, options)}
    for _, name in ipairs {"method", "mode", "half_acquisition", "center", "filter", "cutoff", "padding", "pad_width", "circle",
        "size", "accuracy"} do
        asked[name] = options[name]
    end
    local _, ways = mb.tomo.choose_method({rows, scan.n_angles, scan.cols}, scan.angles, asked)
    table.sort(ways, function(a, b) return a.seconds < b.seconds end)
    return ways
end

--- The scan with its compressed frames decoded (see unpack.lua), to be closed (<close>), where the chunks of `plan`, and before them
-- the search for the axis if there is one (`searched`), would decode them more than once; else as it is. `plan` nil: all rows of
-- the options.
function recon.decoded(scan, options, plan, searched)
    options = options_of(options, "recon.decoded", OPTIONS)
    local rows = plan and plan.rows or options.rows or {1, scan.rows}
    local chunks = chunks_of(rows[1], rows[2], plan and plan.chunk or rows[2] - rows[1] + 1)
    local ranges = ranges_of(scan, chunks, options)
    if searched then
        table.insert(ranges, 1, ranges[1]) -- it goes through the frames as well
    end
    return unpack.if_needed(scan, ranges) or setmetatable({}, {__index = scan, __close = function() end})
end

-- Raises where rows, chunk, size or threads are no such numbers.
local function check_extents(scan, options)
    local rows = options.rows
    if rows then
        local first, last = type(rows) == "table" and rows[1], type(rows) == "table" and rows[2]
        if math.type(first) ~= "integer" or math.type(last) ~= "integer" then
            mb.raise("argument", "rows must be {first, last}, whole numbers", {op = "recon.plan", arg = "rows"})
        elseif first < 1 or last > scan.rows or first > last then
            mb.raise("argument", ("rows %d to %d; the scan has rows 1 to %d"):format(first, last, scan.rows),
                {op = "recon.plan", arg = "rows"})
        end
    end
    local circle = options.circle
    if type(circle) == "number" and circle > 0 and circle * (options.size or scan.cols) < 1 then
        mb.raise("argument", ("circle is %g, less than a pixel, which leaves nothing; 0 leaves the "
            .. "mask out"):format(circle), {op = "recon.plan", arg = "circle"})
    end
    arguments.count(options.chunk or nil, "recon.plan", "chunk", 1, 1 << 31)
    arguments.count(options.size or nil, "recon.plan", "size", 1, 1 << 20)
    arguments.count(options.threads or nil, "recon.plan", "threads", 1, 64)
end

-- Raises unless `out` is nil or an array on the host that has room for the volume.
local function check_out(out, shape, dtype)
    if out and (out.device.kind ~= "host" or out.dtype ~= dtype or table.concat(out.shape, " x ") ~= table.concat(shape, " x ")) then
        mb.raise("shape", ("out is %s %s on %s; it must be %s %s on the host"):format(out.dtype, table.concat(out.shape, " x "),
            out.device.id, dtype, table.concat(shape, " x ")), {op = "recon.plan", arg = "out"})
    end
end

--- What a reconstruction will take: method, chunk height, number of chunks, bytes. Reads nothing.
-- Options as `recon.run`; `method` and `mode` become the fastest way that fits with one row at least.
-- Without a `center` the search for it is planned too (search_peak). `overlap` (reading and writing beside the computing, which
-- takes a second set of chunks on the device) "auto" becomes true where that fits with one row at least. `dtype` "f16" or "u16"
-- stores the slices as that, `range` = {low, high} being its low and high (see op quantize); `slices_per_file` is the result's;
-- `out` is the array on the host that the slices go to, where that is no result. `pinned` is the pinned host memory that it may
-- take (none for arrays that are pinned themselves), `threads` how many threads read, and how many write.
-- Returns {rows = {first, last}, method, mode, reason, chunk, chunks, peak, search_peak, overlap, pinned, budget,
-- device, volume = {nz, ny, nx}, settings, ...}.
function recon.plan(scan, options)
    options = options_of(options, "recon.plan", OPTIONS)
    local device = mb.device(options.device or "host")
    check_extents(scan, options)
    local first = options.rows and options.rows[1] or 1
    local last = options.rows and options.rows[2] or scan.rows
    lean.of(options) -- raises where the tilt is out of the question
    local settings = {}
    for name, value in pairs(options) do
        settings[name] = value
    end
    local width = options.half_acquisition and extended_width(scan, options) or scan.cols
    local total = last - first + 1
    local function dry_work(shadow, count)
        work(scan, shadow, shortened(scan, chunks_of(first, last, count), settings), settings, {})
    end
    local stats = mb.pool.stats(device)
    local available = options.available or stats.budget - stats.live
    -- More rows than this at a time gain no speed; fewer show progress, and obey Ctrl-C, sooner. Files are written with fewer
    -- halts in larger chunks; in memory the first upload and the last download, which nothing hides, are shorter in smaller ones.
    local most = math.min(total, math.max(recon.CHUNK_ROWS, total // (options.out and 32 or 16)))
    local function choose()
        if options.chunk then
            local chunk = math.min(options.chunk, total)
            local peak = mb.plan.peak(dry_work, device, chunk).peak
            return peak <= available and chunk or 0, peak
        end
        return mb.plan.max_count(dry_work, {device = device, available = available, limit = most})
    end
    local search = not options.center and mb.plan.peak(function(shadow)
        settings.device = shadow
        scan_center.find(scan, settings)
        settings.device = options.device
    end, device).peak or nil
    local chunk, peak, way
    local ways = ways_of(scan, device, math.min(total, recon.CHUNK_ROWS), options)
    local function choose_way()
        for i, candidate in ipairs(ways) do
            way, settings.method, settings.mode = candidate, candidate.method, candidate.mode
            chunk, peak = choose()
            if chunk > 0 then
                way.reason = i > 1 and way.name .. " (the faster way takes more than there is)" or way.reason
                return
            end
        end
    end
    settings.overlap = options.overlap ~= false
    choose_way()
    if chunk == 0 and settings.overlap and options.overlap ~= true then
        settings.overlap = false
        choose_way()
    end
    if chunk == 0 and options.chunk then
        mb.raise("budget", ("a chunk of %d rows needs %s, %s are available; smaller chunks need less (leave --chunk out "
            .. "to have it chosen)"):format(math.min(options.chunk, total), mb.device.format_bytes(peak),
            mb.device.format_bytes(available)), {op = "recon.plan", arg = "chunk"})
    elseif chunk == 0 or search and search > available then
        local least = math.huge
        for _, candidate in ipairs(ways) do
            settings.method, settings.mode = candidate.method, candidate.mode
            least = math.min(least, mb.plan.peak(dry_work, device, 1).peak)
        end
        least = math.max(least, search or 0)
        local problem = ("one row of this scan%s needs %s, %s are available"):format(
            search == least and ", with the search for its axis," or "", mb.device.format_bytes(least),
            mb.device.format_bytes(available))
        local enough = options.available and least or least + stats.live
        local err = mb.error("budget", ("%s; give a budget of at least %d bytes"):format(problem, enough), {op = "recon.plan"})
        err.problem, err.enough, err.device = problem, enough, device.id
        error(err, 0)
    end
    -- Even chunks: the same number of them, but none much smaller than the others; whole packets of slices if they fit.
    if not options.chunk then
        local even = math.ceil(total / math.ceil(total / chunk))
        chunk = math.min(chunk, (even + 7) // 8 * 8)
        peak = mb.plan.peak(dry_work, device, chunk).peak
    end
    width = options.size or width
    check_out(options.out, {total, width, width}, options.dtype or "f32")
    return {
        device = device,
        rows = {first, last},
        chunk = chunk,
        chunks = math.ceil(total / chunk),
        peak = peak,
        search_peak = search,
        budget = stats.budget,
        available = available,
        overlap = settings.overlap,
        pinned = stream.pinned_bytes(device, {threads = options.threads, pinned = options.pinned,
            files = options.slices_per_file, source = scan.arrays, sink = options.out}),
        volume = {total, width, width},
        dtype = options.dtype or "f32",
        volume_bytes = total * width * width * ITEM_BYTES[options.dtype or "f32"],
        input_bytes = scan.n_angles * total * scan.cols * ITEM_BYTES[scan.dtype],
        method = way.method,
        mode = way.mode,
        reason = way.reason,
        lean = {lean.at(scan, first, settings), lean.at(scan, last, settings)},
        settings = settings,
    }
end

--- Text of a plan, for people.
function recon.describe(plan)
    local bytes = mb.device.format_bytes
    local lines = {
        ("device     %s (%s)"):format(plan.device.id, plan.device.name),
        ("input      %s in rows %d to %d"):format(bytes(plan.input_bytes), plan.rows[1], plan.rows[2]),
        ("volume     %d x %d x %d %s, %s"):format(plan.volume[1], plan.volume[2], plan.volume[3], plan.dtype,
            bytes(plan.volume_bytes)),
        ("method     %s"):format(plan.reason),
        ("chunks     %d of %d rows%s"):format(plan.chunks, plan.chunk, plan.overlap and ", reading and writing beside" or ""),
        ("peak       %s (%d bytes) of %s available"):format(bytes(plan.peak), plan.peak, bytes(plan.available)),
        ("pinned     %s (%d bytes) of host memory"):format(bytes(plan.pinned), plan.pinned),
    }
    if plan.search_peak then
        lines[#lines + 1] = ("axis       its search takes %s (%d bytes)"):format(bytes(plan.search_peak), plan.search_peak)
    end
    if plan.lean[1] ~= 0 then
        lines[#lines + 1] = ("axis       leans from %+.2f columns at row %d to %+.2f at row %d"):format(plan.lean[1], plan.rows[1],
            plan.lean[2], plan.rows[2])
    end
    lines[#lines + 1] = plan.device.basis
    return table.concat(lines, "\n")
end

-- How many values, detector pixels and voxels a run goes through, rows that are read twice counted twice.
local function sizes_of(scan, plan, ranges)
    local rows = 0
    for _, range in ipairs(ranges) do
        rows = rows + range[2] - range[1] + 1
    end
    return {values = rows * scan.n_angles * scan.cols, pixels = rows * scan.cols,
        voxels = plan.volume[1] * plan.volume[2] * plan.volume[3]}
end

--- Runs a plan. `sink` gets the slices: a result (mb.result) or the plan's `out` (left out here), either written to while the
-- next chunk is computed, or a function (slices, z), z counting from 1, which is done with the slices when it returns. `each`, a
-- function like that, sees the slices before. Returns {seconds, peak, pinned (both measured), counts = {nonfinite, clamped,
-- nonpositive}, clipped = {below, above, NaN} of the values stored as another type than f32, times (see stream.describe),
-- warnings: what was lost}. Raises where all was: nothing finite, no beam, everything clipped.
function recon.run(scan, plan, sink, each)
    scan_values.check(scan, plan.settings)
    local bar = progress.new("reconstructing", plan.rows[2] - plan.rows[1] + 1, {unit = "slices",
        quiet = plan.settings.quiet or mb.device.dry()})
    local out = not sink and plan.settings.out or nil
    local beside = type(sink) ~= "function"
    local chunks = chunks_of(plan.rows[1], plan.rows[2], plan.chunk)
    local ranges = ranges_of(scan, chunks, plan.settings)
    local unpacked <close> = unpack.if_needed(scan, ranges)
    mb.collect()
    local scope <close> = mb.pool.scope(plan.device)
    local totals, times = work(unpacked or scan, plan.device, chunks, plan.settings, {
        prepare = function(rows)
            if beside and not out then
                sink:prepare(rows[1] - plan.rows[1] + 1, rows[2] - plan.rows[1] + 1)
            end
        end,
        write = function(slices, rows, carrier)
            local z = rows[1] - plan.rows[1] + 1
            if each then
                each(slices, z)
            end
            if out then
                local own <close> = out:view({z, z + slices.shape[1] - 1})
                carrier:carry(own, slices)
            elseif beside then
                sink:carry(carrier, slices, z)
            else
                sink(slices, z)
            end
        end,
        done = function(rows)
            bar:step(rows[2] - rows[1] + 1)
        end,
    }, beside)
    local peak = scope:finish()
    times.unpack = (unpacked or scan).unpack_seconds
    local warnings = mb.device.dry() and {} or scan_values.losses(totals.mended, totals.clipped,
        sizes_of(scan, plan, ranges), plan.settings.log ~= false)
    return {seconds = bar:finish(), peak = peak, pinned = times.pinned, counts = totals.mended, clipped = totals.clipped,
        times = times, warnings = warnings}
end

--- Reconstructs projections that are in host memory into a volume in host memory, in chunks of rows that fit the device, moved
-- there and back while it computes.
--
-- `projections` (angle, row, column), as the detector gave them, `angles` in radians; options: `flats` and `darks`
-- (frame, row, column), `out` (default: a new array), and those of recon.plan. Without a `center` it is looked for. Arrays in
-- pinned memory (mb.empty(shape, {pinned = device})) move at the rate of the link; others are copied through a ring.
-- The volume is that of the whole computed at once: to the bit on the host, and by the Fourier method where chunks are pairs of
-- slices, as they are unless `chunk` says otherwise; else but for rounding (back-projection has kernels for few slices and many).
-- Returns the volume (z, y, x) and the report of recon.run, with the plan.
function recon.reconstruct(projections, angles, options)
    options = options_of(options, "recon.reconstruct", OPTIONS, {"flats", "darks"})
    local settings = {}
    for name, value in pairs(options) do
        settings[name] = value
    end
    local scan = mb.scan.of_arrays(projections, angles, {flats = options.flats, darks = options.darks})
    check_extents(scan, settings)
    settings.flats, settings.darks = nil, nil
    scan_values.check(scan, settings)
    settings.center = options.center or recon.find_center(scan, settings)
    local made
    if not options.out then
        local width = settings.size or settings.half_acquisition and extended_width(scan, settings) or scan.cols
        local rows = settings.rows and settings.rows[2] - settings.rows[1] + 1 or scan.rows
        made = mb.empty({rows, width, width}, {dtype = settings.dtype, device = "host"})
        settings.out = made
    end
    local _ <close> = setmetatable({}, {__close = function(_, err)
        if err ~= nil and made then
            made:release()
        end
    end})
    if settings.dtype and settings.dtype ~= "f32" and not settings.range then
        settings.range = recon.find_range(scan, settings)
    end
    local plan = recon.plan(scan, settings)
    local report = recon.run(scan, plan)
    report.plan = plan
    return settings.out, report
end

-- What functions take before their options.
local SCAN, PLAN = {"scan", "mb.scan.open or mb.scan.of_arrays returned"}, {"plan", "recon.plan returned"}
local objects = {run = {SCAN, PLAN}, chunk = {SCAN}, frames = {SCAN}, slices = {SCAN}}
for _, name in ipairs {"plan", "find_center", "find_range", "range_codes", "center_bounds", "check_values", "expected_values", "decoded",
    "read_shifts"} do
    objects[name] = {SCAN}
end

return whole_call.module(recon, "recon", objects)
