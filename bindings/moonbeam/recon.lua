--- Reconstruction of a whole scan, in chunks of rows that fit the budget.
--
-- The chunk function is the whole method; its memory is not modelled but dry-run: `recon.plan`
-- calls the very same function on a dry device and so knows the peak of every chunk to
-- the byte before a frame is read.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local ledger = require "moonbeam.ledger"
local options_of = require "moonbeam.internal.options"
local progress = require "moonbeam.progress"
local scan_center = require "moonbeam.tomo.scan_center"
local scan_plan = require "moonbeam.tomo.scan_plan"
local scan_values = require "moonbeam.scan.values"
local scan_work = require "moonbeam.tomo.scan_work"
local unpack = require "moonbeam.internal.unpack"
local whole_call = require "moonbeam.internal.whole"

local recon = {}

local OPTIONS = {"device", "available", "chunk", "rows", "center", "filter", "cutoff", "padding",
    "circle", "accuracy",
    "size", "scale", "flat_mode", "log", "quiet", "pad_width", "mode", "half_acquisition",
    "vertical_shifts", "method",
    "axis_tilt", "overlap", "threads", "pinned", "dtype", "range", "slices_per_file", "out"}

--- The names of the options of recon.plan and its kin.
recon.OPTIONS = OPTIONS

--- Queues the reading of what a chunk of rows needs (1-based, inclusive; vertical shifts need
-- more than its own): the input of `recon.slices`. `recon.frames(scan, device, first, last,
-- settings [, carrier])`: without a carrier it is there at once.
recon.frames = scan_work.frames

--- `recon.slices(scan, frames, first, last, settings)`: the slices of a chunk of rows from its
-- frames, which it releases: normalises, shifts and reconstructs them (settings as of
-- `recon.plan`, whose method and mode are what counts; without them those of `tomo.reconstruct`).
-- Returns the slices (z, y, x) on the device and the counts of mended values (of all rows read).
recon.slices = scan_work.slices

--- One chunk of rows, read and reconstructed: `recon.chunk(scan, device, first, last, settings)`.
recon.chunk = scan_work.chunk

-- ---- vertical shifts ----

-- Bytes of a text of numbers beyond which it is none.
local MOST_TEXT = 64 << 20

-- The text of an ordinary file: a device or a pipe could go on for ever. nil where there is none.
local function text_of(path)
    local facts = mb.system.stat(path)
    if not facts then
        return nil
    elseif facts.kind == "other" then
        fail("argument", "recon.read_shifts", "where", "%s is not an ordinary file; copy it to one",
            path)
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
            values[#values + 1] = tonumber(word) or fail("argument", "recon.read_shifts", "where",
                "%s: '%s' is not a number", path, word)
        end
    end
    return values
end

--- Vertical shifts, one number a projection, in rows: from a text file (numbers between spaces,
-- commas or line ends; # starts a comment), a dataset of the scan's file ("/path"), or one of
-- another file ("other.h5:/path").
function recon.read_shifts(scan, where)
    if type(where) ~= "string" then
        fail("argument", "recon.read_shifts", "where",
            "where is a file, a dataset or both, FILE:/PATH")
    end
    local values = not where:match("^(.+):(/.*)$") and numbers_of_text(where) or nil
    if not values then
        local name, path = where:match("^(.+):(/.*)$")
        local opened, problem = mb.h5.open(name or scan.path)
        local file <close> = opened or error(problem, 0)
        if not file:exists(path or where) then
            fail("argument", "recon.read_shifts", "where",
                "%s is neither a text file nor a dataset of %s", where, name or scan.path)
        end
        local shape = file:dataset(path or where).shape
        if #shape > 1 then
            fail("shape", "recon.read_shifts", "where",
                "%s has %d axes; vertical shifts are a list, one number a projection", where,
                #shape)
        elseif (shape[1] or 1) == scan.n_angles then -- else there is no need to read it
            local array <close> = file:read(path or where, {device = "host"})
            values = array:to_table()
        else
            values = {n = shape[1]}
        end
    end
    if type(values) ~= "table" or #values ~= scan.n_angles then
        fail("shape", "recon.read_shifts", "where",
            "%s has %s vertical shifts; the scan has %d projections", where,
            type(values) == "table" and (values.n or #values) or 1, scan.n_angles)
    end
    for i, value in ipairs(values) do
        if value ~= value or math.abs(value) > scan.rows then
            fail("argument", "recon.read_shifts", "where",
                "%s: shift %d is %g; it lies within the detector's %d rows either way", where, i,
                value, scan.rows)
        end
    end
    return values
end

--- Looks at a few frames of a scan before anything is made of them: {kind = "flats",
-- "transmission" or "line integrals", text, warnings}. Raises where a volume would be made of
-- nothing: counts without flats, values that are all not finite, all saturated, or all one number
-- in float32. The options rows, log and device count. A scan is looked at once; find_center and
-- run do so where nobody did.
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

--- The 0-based columns {low, high}, inclusive, between which `recon.find_center` returns its
-- axis, whatever the frames of this scan hold (options as there). Reads nothing.
function recon.center_bounds(scan, options)
    return scan_center.bounds(scan, options_of(options, "recon.center_bounds", OPTIONS))
end

--- Writes a PNG of how well opposite projections match over the columns of the axis, from the
-- table that `recon.find_center` returned. Red is the axis, blue the axis by trial slices.
-- Errors: argument (a scan without opposite projections), io.
function recon.center_picture(path, details)
    scan_center.picture(path, details)
end

--- Range {low, high} for storing a scan's slices as `options.dtype`: "u16", the range of three
-- slices, at a quarter, half and three quarters of the height (the middle alone may be empty), and
-- a quarter more on both sides; "f16", {0, the power of two that brings them to half floats}, 1
-- where they fit as they are. The options as of recon.run, with the center.
function recon.find_range(scan, options)
    return scan_work.find_range(scan, options_of(options, "recon.find_range", OPTIONS))
end

--- How many of the 65536 codes of u16 the slices use when they are stored by `options.range`;
-- fewer than one is an error.
function recon.range_codes(scan, options)
    options = options_of(options, "recon.range_codes", OPTIONS)
    local own, range = recon.find_range(scan, options), options.range
    if mb.device.dry() then
        return 65536 -- there are no values to judge
    end
    -- without find_range's margins
    local codes = 65535 * (own[2] - own[1]) / 1.5 / (range[2] - range[1])
    if codes < 1 or codes ~= codes then
        fail("argument", "recon.range_codes", "range",
            "the range %g to %g is so wide that all values, about %.4g to %.4g, are stored as one",
            range[1], range[2], own[1], own[2])
    end
    return codes
end

--- The scan with its compressed frames decoded (see unpack.lua), to be closed (<close>), where the
-- chunks of `plan`, and before them the search for the axis if there is one (`searched`), would
-- decode them more than once; else as it is. `plan` nil: all rows of the options.
function recon.decoded(scan, options, plan, searched)
    options = options_of(options, "recon.decoded", OPTIONS)
    local rows = plan and plan.rows or options.rows or {1, scan.rows}
    local chunks = scan_work.chunks(rows[1], rows[2], plan and plan.chunk or rows[2] - rows[1] + 1)
    local ranges = scan_work.ranges(scan, chunks, options)
    if searched then
        table.insert(ranges, 1, ranges[1]) -- it goes through the frames as well
    end
    return unpack.if_needed(scan, ranges)
        or setmetatable({}, {__index = scan, __close = function() end})
end

--- What a reconstruction will take: method, chunk height, number of chunks, bytes. Reads nothing.
-- Options as `recon.run`. The method follows from the scan and the options alone (see
-- `tomo.reconstruct`); `mode` becomes the faster one that fits with one row at least, as long as
-- the values stay the same. Without a `center` the plan is an upper bound (exact = false): it
-- holds for every axis that the search may return, and counts the search (search_peak) and, where
-- `dtype` needs a `range`, finding that (range_peak). `recon.settle` makes it exact. `overlap`
-- (reading and writing beside the computing, which takes a second set of chunks on the device)
-- "auto" becomes true where that fits with one row at least. `dtype` "f16" or "u16" stores the
-- slices as that, `range` = {low, high} being its low and high (see op quantize);
-- `slices_per_file` is the result's; `out` is the array on the host that the slices go to, where
-- that is no result. `pinned` is the pinned host memory that it may take (none for arrays that
-- are pinned themselves), `threads` how many threads read, and how many write. Returns {rows =
-- {first, last}, method, mode, reason, chunk, chunks, peak (of everything), run_peak,
-- search_peak, range_peak, exact, at_most, worst_axis, process (a bound for the resident bytes of
-- the whole process, if the host's budget is no more than at_most; nil for a device that is not
-- here), overlap, pinned, budget, device, volume = {nz, ny, nx}, settings, ...}.
function recon.plan(scan, options)
    return scan_plan.make(scan, options_of(options, "recon.plan", OPTIONS))
end

--- The exact plan, once what a plan without `center` leaves open is known: the same method and
-- chunks, `peak` to the byte, never more than `at_most`, the peak of the plan before. Looks for
-- the axis unless the plan has it or `found.center` gives it, and for the range of the values
-- where one is needed; `codes` of the plan is how many codes of u16 the range that was given
-- leaves (see recon.range_codes). Returns the plan, and how the axis was found: what find_center
-- says, {center, how, details}.
function recon.settle(scan, plan, found)
    found = options_of(found, "recon.settle", {"center", "how", "details"})
    if not plan.exact then
        if not found.center then
            local center, how, details = recon.find_center(scan, plan.settings)
            found = {center = center, how = how, details = details}
        end
        -- A dry run has no frames to find it in: it goes on with the axis that takes most.
        plan = scan_plan.settle(scan, plan, ledger.found(plan.worst_axis, found.center))
    end
    if plan.range_peak and not plan.ranged then
        plan.ranged = true
        if plan.settings.range then
            plan.codes = recon.range_codes(scan, plan.settings)
        else
            plan.settings.range = recon.find_range(scan, plan.settings)
        end
    end
    return plan, found
end

recon.describe = scan_plan.describe

--- `recon.check_bytes(what, bytes, promised)`: says loudly, on the standard error, that a promise
-- was broken. Where the environment has MOONBEAM_STRICT, as in specs, that is an error. Returns
-- whether the promise was kept.
recon.check_bytes = scan_plan.check_bytes

-- What functions that are not part of the plan take while it runs.
local function others_of(device)
    local others = {bytes = 0}
    function others.call(fn, ...)
        local scope <close> = mb.pool.scope(device)
        fn(...)
        others.bytes = math.max(others.bytes, (scope:finish()))
    end
    return others
end

-- The steps of a run beside reading and computing.
local function steps_of(plan, sink, each, others, bar)
    local out = not sink and plan.settings.out or nil
    local beside = type(sink) ~= "function"
    return {
        prepare = function(rows)
            if beside and not out then
                sink:prepare(rows[1] - plan.rows[1] + 1, rows[2] - plan.rows[1] + 1)
            end
        end,
        write = function(slices, rows, carrier)
            local z = rows[1] - plan.rows[1] + 1
            if each then
                others.call(each, slices, z)
            end
            if out then
                local own <close> = out:view({z, z + slices.shape[1] - 1})
                carrier:carry(own, slices)
            elseif beside then
                sink:carry(carrier, slices, z)
            else
                others.call(sink, slices, z)
            end
        end,
        done = function(rows)
            bar:step(rows[2] - rows[1] + 1)
        end,
    }, beside
end

-- How many values, detector pixels and voxels a run goes through, rows that are read twice
-- counted twice.
local function sizes_of(scan, plan, ranges)
    local rows = 0
    for _, range in ipairs(ranges) do
        rows = rows + range[2] - range[1] + 1
    end
    return {values = rows * scan.n_angles * scan.cols, pixels = rows * scan.cols,
        voxels = plan.volume[1] * plan.volume[2] * plan.volume[3]}
end

--- Runs a plan; one that is not exact is settled first. `sink` gets the slices: a result
-- (mb.result) or the plan's `out` (left out here), either written to while the next chunk is
-- computed, or a function (slices, z), z counting from 1, which is done with the slices when it
-- returns. `each`, a function like that, sees the slices before. Memory that these functions take
-- comes on top of the plan. Measured bytes that are not those of the plan are an error in specs,
-- and a loud warning otherwise (check_bytes). Returns {seconds, peak, pinned (both measured),
-- as_planned (were they those of the plan?), plan, counts = {nonfinite, clamped, nonpositive},
-- clipped = {below, above, NaN} of the values stored as another type than f32, times (see
-- stream.describe), warnings: what was lost}. Raises where all was: nothing finite, no beam,
-- everything clipped.
function recon.run(scan, plan, sink, each)
    scan_values.check(scan, plan.settings)
    plan = recon.settle(scan, plan)
    local bar = progress.new("reconstructing", plan.rows[2] - plan.rows[1] + 1, {unit = "slices",
        quiet = plan.settings.quiet or mb.device.dry()})
    local chunks = scan_work.chunks(plan.rows[1], plan.rows[2], plan.chunk)
    local ranges = scan_work.ranges(scan, chunks, plan.settings)
    local unpacked <close> = unpack.if_needed(scan, ranges)
    mb.collect()
    local scope <close> = mb.pool.scope(plan.device)
    local others = others_of(plan.device)
    local steps, beside = steps_of(plan, sink, each, others, bar)
    local totals, times = scan_work.run(unpacked or scan, plan.device, chunks, plan.settings,
        steps, beside)
    local peak = scope:finish()
    times.unpack = (unpacked or scan).unpack_seconds
    local report = {seconds = bar:finish(), peak = peak, pinned = times.pinned,
        counts = totals.mended, clipped = totals.clipped,
        times = times, plan = plan}
    report.warnings = mb.device.dry() and {} or scan_values.losses(totals.mended, totals.clipped,
        sizes_of(scan, plan, ranges), plan.settings.log ~= false)
    report.as_planned = scan_plan.check_bytes("the run", peak, plan.run_peak, peak == plan.run_peak
        or others.bytes > 0 and peak > plan.run_peak and peak <= plan.run_peak + others.bytes)
    if beside then
        report.as_planned = scan_plan.check_bytes("the run's pinned memory", times.pinned,
            plan.pinned) and report.as_planned
    end
    return report
end

-- The width of the slices, where it is known before the axis.
local function width_of(scan, settings)
    return settings.size or settings.half_acquisition and scan_work.extended_width(scan, settings)
        or scan.cols
end

--- Reconstructs projections that are in host memory into a volume in host memory, in chunks of rows
-- that fit the device, moved there and back while it computes.
--
-- `projections` (angle, row, column), as the detector gave them, `angles` in radians; options:
-- `flats` and `darks` (frame, row, column), `out` (default: a new array), and those of recon.plan.
-- Without a `center` it is looked for. Arrays in pinned memory (mb.empty(shape, {pinned = device}))
-- move at the rate of the link; others are copied through a ring. The volume is that of the whole
-- computed at once: to the bit on the host, and by the Fourier method where chunks are pairs of
-- slices, as they are unless `chunk` says otherwise; else but for rounding (back-projection has
-- kernels for few slices and many). Returns the volume (z, y, x) and the report of recon.run, with
-- the plan.
function recon.reconstruct(projections, angles, options)
    options = options_of(options, "recon.reconstruct", OPTIONS, {"flats", "darks"})
    local settings = {}
    for name, value in pairs(options) do
        settings[name] = value
    end
    local scan = mb.scan.of_arrays(projections, angles,
        {flats = options.flats, darks = options.darks})
    scan_plan.check_extents(scan, settings)
    settings.flats, settings.darks = nil, nil
    scan_values.check(scan, settings)
    if settings.half_acquisition and not settings.size and not settings.center then
        -- it makes the width of the volume
        settings.center = recon.settle(scan, recon.plan(scan, settings)).settings.center
    end
    local made
    if not options.out then
        local width = width_of(scan, settings)
        local rows = settings.rows and settings.rows[2] - settings.rows[1] + 1 or scan.rows
        made = mb.empty({rows, width, width}, {dtype = settings.dtype, device = "host"})
        settings.out = made
    end
    local _ <close> = setmetatable({}, {__close = function(_, err)
        if err ~= nil and made then
            made:release()
        end
    end})
    local report = recon.run(scan, recon.plan(scan, settings))
    return settings.out, report
end

-- What functions take before their options.
return whole_call.module(recon, "recon", {
    frames = "scan: scan, device: device, first: count, last: count, settings: table",
    slices = "scan: scan, frames: table, first: count, last: count, settings: table",
    chunk = "scan: scan, device: device, first: count, last: count, settings: table",
    read_shifts = "scan: scan", check_values = "scan: scan", expected_values = "scan: scan",
    find_center = "scan: scan",
    center_bounds = "scan: scan", center_picture = "path: string, details: table",
    find_range = "scan: scan",
    range_codes = "scan: scan", decoded = "scan: scan", plan = "scan: scan",
    settle = "scan: scan, plan: plan",
    describe = "plan: plan", check_bytes = "what: string, bytes: count, promised: count",
    run = "scan: scan, plan: plan",
})
