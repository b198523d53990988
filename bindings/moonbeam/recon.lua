--- Reconstructs a whole scan by the fixed chain: flat field, logarithm, shifts, the rotation axis,
-- one of the two methods, and the storage of slices. Each function is a thin call of the pipeline
-- that its options describe (tomo/scan_recipe.lua); `mb.pipeline` runs any other chain.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local block_choice = require "moonbeam.pipeline.planning.block_choice"
local ledger = require "moonbeam.ledger"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local pipeline_plan = require "moonbeam.pipeline.plan"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local pipeline_run = require "moonbeam.pipeline.run"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local OPTIONS = require "moonbeam.tomo.recon_options"
local process_memory = require "moonbeam.internal.process_memory"
local progress = require "moonbeam.progress"
local surface = require "moonbeam.internal.command_line.surface"
local obeyed = require "moonbeam.scan.statements.obeyed"
local axis_tilt = require "moonbeam.tomo.axis.axis_tilt"
local scan_center = require "moonbeam.tomo.scan_center"
local scan_frames = require "moonbeam.tomo.scan_frames"
local scan_recipe = require "moonbeam.tomo.scan_recipe"
local scan_values = require "moonbeam.scan.values"
local tables = require "moonbeam.internal.tables"
local unpack = require "moonbeam.internal.unpack"
local value_range = require "moonbeam.tomo.value_range"
local vertical_shifts = require "moonbeam.tomo.vertical_shifts"
local view = require "moonbeam.pipeline.view"
local whole_call = require "moonbeam.internal.whole"
local work = require "moonbeam.pipeline.work"

local recon = {}

local FOUND = declared.options(
    {"center", "number", "the axis, if it is known", unit = "px"},
    {"how", "any", "how it was found, in words"},
    {"details", "any", "the third result of recon.find_center"})

local WITH_FRAMES = declared.options(OPTIONS,
    {"flats", "any", "frames without the sample (frame, row, column)"},
    {"darks", "any", "frames without the beam (frame, row, column)"})

--- The declared options of recon.plan and related functions.
recon.OPTIONS = OPTIONS

-- The section that makes float32 slices, and the values that it needs; `op` is what needs it.
local function slices_section(scan, device, settings, op)
    if settings.center == nil then
        fail("argument", op, "center", "center is missing; mb.recon.find_center finds the axis")
    end
    arguments.number(settings.center, op, "center", {})
    local own = setmetatable({dtype = "f32", rows = false, part = false, device = false,
        devices = false}, {__index = settings})
    own.rows = nil
    local job = scan_recipe.job(scan, own, device)
    local section = job.sections[1]
    block_choice.first_way(job, section)
    return section, job.values
end

--- Queues the reading of what a chunk of rows needs (1-based, inclusive; vertical shifts need more
-- rows): the input of `recon.slices`. Without a carrier it is read at once.
function recon.frames(scan, device, first, last, settings, carrier)
    if settings.dimensions == 3 then
        fail("argument", "recon.frames", "dimensions", "dimensions is 3, with which slices depend "
            .. "on those beside them; a chunk lacks these: use recon.run")
    end
    local section = slices_section(scan, mb.device(device), obeyed.settings(scan, settings),
        "recon.frames")
    local slices = geometry.row_elements(section.geometry, {first, last}, section.rows)
    return work.read(section, mb.device(device), slices or {first, last}, {carrier = carrier})
end

--- `recon.slices(scan, frames, first, last, settings)`: the slices of a chunk of rows from its
-- frames, which it normalizes, shifts, reconstructs and releases. The settings are those of
-- `recon.plan`; their method and mode are used, by default those of `tomo.reconstruct`.
-- Returns the slices (z, y, x) on the device and the counts of mended values (in all rows read).
function recon.slices(scan, frames, _, _, settings)
    local section, values = slices_section(scan, frames.device, obeyed.settings(scan, settings),
        "recon.slices")
    local sums = scan_frames.sums(frames.device)
    local ok, slices = pcall(work.compute, section, frames, values, sums)
    local mended <const> = sums.mended
    sums.mended = not ok and mended or nil
    sums:release()
    if not ok then
        error(slices, 0)
    end
    return slices, mended
end

--- Reads and reconstructs one chunk of rows: `recon.chunk(scan, device, first, last, settings)`.
function recon.chunk(scan, device, first, last, settings)
    return recon.slices(scan, recon.frames(scan, device, first, last, settings), first, last,
        settings)
end

-- Calls fn(options) with the device of the options; of several the first one that is not lost, and
-- the next one if it is lost meanwhile. Returns what fn returns.
local function on_device(options, fn)
    if not options.devices then
        return fn(options)
    end
    return work.on_alive(mb.device.several(options.devices), function(live)
        return fn(setmetatable({device = live[1]}, {__index = options}))
    end)
end

-- Looks at the values of a scan.
local function look(scan, options)
    arguments.entry({name = "rows", kind = "range", optional = true}, options.rows or nil,
        "recon.check_values")
    return on_device(options, function(own)
        local between = own.flat_interpolation or "mean"
        return scan_values.check(scan, setmetatable({flat_interpolation = between,
            flat_mode = between == "mean" and (own.flat_mode or "mean")}, {__index = own}))
    end)
end

recon.read_shifts = vertical_shifts.read

--- Checks the values of a few frames before a scan is reconstructed: {kind = "flats",
-- "transmission" or "line integrals", text, warnings}. Raises an error if the volume would be
-- meaningless: counts without flats, or values that are all not finite, all saturated, or all one
-- number in float32. Uses the options rows, log and device. A scan is checked once; find_center and
-- run check it if that has not been done.
function recon.check_values(scan, options)
    return look(scan, options)
end

--- What `recon.check_values` can say without reading frames: the kind and a line of text.
function recon.expected_values(scan, options)
    return scan_values.kind(scan, options)
end

--- Finds the rotation axis of a scan by registering opposite projections, and checks it in other
-- ways.
--
-- Half a turn has opposite projections at its two ends, a whole turn everywhere. They decide.
-- Centers of mass, or trial slices of a few rows, are the check. They move the axis only within
-- what opposite projections leave open (center.decide), and decide alone if no projections are
-- opposite. Pixels without beam in the flats, saturated ones and those that never change are filled
-- in from their neighbors (defects.lua), and so are zingers in opposite projections. Reads a few
-- frames and a band of rows (see scan_center.lua). A half acquisition has no trial slices. With an
-- `axis_tilt`, the result is the column of the axis at half the detector's height. What the scan
-- says of the axis (scan.says.axis) decides only between two columns that match alike.
-- Returns the 0-based column, a line of text that says how it was found, and a table: verdict
-- ("found"; "differ": the two ways do not agree; "edge" of the search; "ambiguous": two columns
-- match, or opposite projections match worse than noise explains, or the column is beside one that
-- shows no sample, and no second way confirms it; "flat": they have nothing in common;
-- "mass": there are no opposite projections, and centers of mass decide; "slices": only trial
-- slices decide), remedy (a sentence, if the verdict needs one), pair, mass and slices (the column
-- of each way), residual (0: opposite projections match; about 1: they have nothing in common),
-- uncertainty (px), curve (of residuals over columns), notice (a sentence, if the scan looks like a
-- half acquisition), searched (where the scan says a column: the first and the last one that are
-- searched), left_out ({pixels, columns}: how many pixels
-- were filled in, and how many columns of which half are).
function recon.find_center(scan, options)
    look(scan, options)
    local _ <close> = progress.watch("searching the axis", {quiet = options.quiet})
    return on_device(options, function(own)
        return scan_center.find(scan, obeyed.settings(scan, own))
    end)
end

--- The tilt of the axis in the plane of the detector, in radians: the option axis_tilt of a scan
-- whose axis leans. Opposite projections are registered at four heights, from the top to the bottom
-- of the detector, and a line is laid through the columns. Uses the options flat_mode, log and
-- device; rows has no effect.
-- Returns the angle (positive: further right in lower rows), and a table: verdict ("found";
-- "differ": the columns are more than half a pixel off the line; "few": only two heights tell;
-- "flat": less than two do; "low": the scan has less than 8 rows), remedy (a sentence, if the
-- verdict needs one), centers (a list of {row, column, residual, uncertainty}), apart (px, the
-- largest distance of a column from the line).
function recon.find_tilt(scan, options)
    look(scan, options)
    return on_device(options, function(own)
        return axis_tilt.find(scan, obeyed.settings(scan, own))
    end)
end

--- The 0-based columns {low, high}, inclusive, between which `recon.find_center` returns the axis
-- for any frames of this scan (same options). Reads nothing.
function recon.center_bounds(scan, options)
    return scan_center.bounds(scan, obeyed.settings(scan, options))
end

--- Writes a PNG of how well opposite projections match for each column of the axis, from the table
-- that `recon.find_center` returned. Red is the axis, blue the axis from trial slices.
-- Options: overwrite. Errors: argument (a scan without opposite projections), io.
function recon.center_picture(path, details, options)
    scan_center.picture(path, details, options)
end

--- The range {low, high} for storing a scan's slices as `options.dtype`. For "u16" it is the range
-- of nine slices, spread from the first to the last one, plus a quarter on both sides. For "f16" it
-- is {0, the power of two that scales them to half floats}, 1 if they fit unscaled. The options are
-- those of recon.run, with the center.
function recon.find_range(scan, options)
    return on_device(options, function(own)
        local device = mb.device(own.device or "host")
        own = obeyed.settings(scan, own)
        local section, values = slices_section(scan, device, own, "recon.find_range")
        section.first, section.last = table.unpack(own.rows
            and scan_recipe.slices(section, own.rows) or {1, section.rows})
        return value_range.find(view.of(section, #section.steps, device, values), own.dtype)
    end)
end

--- How many of the 65536 codes of u16 the slices use when they are stored with `options.range`;
-- fewer than one is an error.
function recon.range_codes(scan, options)
    arguments.list(options.range, "recon.range_codes", "range", "{low, high}", 2)
    return value_range.codes(recon.find_range(scan, options), options.range, "recon.range_codes")
end

--- Returns the scan with its compressed frames decoded (see unpack.lua), which the caller closes
-- (<close>), if the chunks of `plan` and a preceding search for the axis (`searched`) would decode
-- them more than once; otherwise the scan itself. Without `plan`, all rows of the options are read.
function recon.decoded(scan, options, plan, searched)
    options = declared.checked(OPTIONS, options, "recon.decoded")
    local rows = options.rows or {1, scan.rows}
    local ranges = {rows}
    if plan then
        ranges = work.reads(plan.made.sections[1], plan.made.sections[1].blocks)
    end
    local whole = plan and plan.made.sections[1].whole
    if whole and (searched or plan.range_peak) then -- a part measures in all rows
        ranges = work.reads(plan.made.sections[1], {whole, whole})
    elseif searched then
        table.insert(ranges, 1, ranges[1]) -- the search also reads the frames
    end
    return unpack.if_needed(scan, ranges)
        or setmetatable({}, {__index = scan, __close = function() end})
end

--- What a reconstruction will take: method, chunk height, number of chunks, bytes. Reads nothing.
-- The options are those of `recon.run`. A half acquisition and mirrored frames are as the scan
-- says (scan.says), unless half_acquisition or flip is given. The method follows only from the
-- scan and the options (see `tomo.reconstruct`). `mode` becomes the faster mode that fits with at
-- least one row, provided that the values stay the same. Without a `center` the plan is an upper
-- bound (exact = false): it holds for every axis that the search may return, and includes the
-- search (search_peak) and, if `dtype` needs a `range`, the search for it (range_peak).
-- `recon.settle` makes it exact. `overlap` (reading and writing while computing, which takes a
-- second set of chunks on the device): "auto" becomes true if that fits with at least one row.
-- `dtype` "f16" or "u16" stores the slices as that type, scaled by `range` = {low, high} (see op
-- quantize). `slices_per_file` is that of the result. `out` is a host array for the slices instead
-- of a result. `pinned` is the pinned host memory that the run may take (pinned arrays need none),
-- and `threads` is the number of threads that read, and of threads that write. Returns {rows =
-- {first, last}, method, mode, reason, chunk, chunks, peak (of everything), run_peak, search_peak,
-- range_peak, exact, at_most, worst_axis, process (a bound for the resident bytes of the whole
-- process, if the host's budget is no more than at_most; nil for a device that is not here),
-- overlap, pinned, budget, device, volume = {nz, ny, nx}, settings, ...}.
function recon.plan(scan, options)
    return scan_recipe.plan(scan, obeyed.settings(scan, options))
end

--- Makes a plan without `center` exact: the same method and chunks, with a `peak` that is exact to
-- the byte and never more than `at_most`, the peak of the earlier plan. Searches for the axis
-- unless the plan has it or `found.center` gives it, and for the range of the values if one is
-- needed. The plan's `codes` is how many codes of u16 a given range leaves (see recon.range_codes).
-- Returns the plan, and the results of find_center, {center, how, details}.
function recon.settle(scan, plan, found)
    found = declared.checked(FOUND, found, "recon.settle")
    if not plan.exact then
        if not found.center then
            local center, how, details = recon.find_center(scan, plan.settings)
            found = {center = center, how = how, details = details}
        end
        -- A dry run has no frames to search: it continues with the axis that takes the most memory.
        plan = scan_recipe.settle(scan, plan, ledger.found(plan.worst_axis, found.center))
        pipeline_run.check_bytes("the plan for the axis that was found", plan.peak, plan.at_most,
            plan.peak <= plan.at_most)
    end
    if plan.range_peak and not plan.ranged then
        local made, verdicts = pipeline_run.settle(pipeline_plan.with_scan(plan.made, scan))
        plan = scan_recipe.settle(scan, plan, plan.settings.center, made)
        plan.ranged = true
        plan.settings.range = made.job.values.range
        plan.codes = verdicts.range and verdicts.range.codes
    end
    return plan, found
end

-- "one, with all 8 rows", "13, with up to 8 rows each".
local function chunks_text(plan)
    local rows = plan.rows[2] - plan.rows[1] + 1
    return (plan.chunks == 1 and rows == 1 and "one, with the one row"
        or plan.chunks == 1 and ("one, with all %d rows"):format(rows)
        or ("%d, with up to %d row%s each"):format(plan.chunks, plan.chunk, plan.chunk == 1 and ""
            or "s")) .. (plan.overlap and ", reading and writing while computing" or "")
end

-- Who wants to know a line of the text of a plan.
local LEVELS <const> = {run = 1, plan = 2, all = 3}

local DESCRIBE = declared.options({"level", "choice", "how much is told: what matters in a run, "
    .. "what matters before it, all", choices = {"run", "plan", "all"}, default = "all"})

--- Text of a plan, for people. `level` says how much of it: "run" is what matters when it runs,
-- "plan" what matters before it runs, "all" the rest too.
function recon.describe(plan, options)
    local bytes = mb.device.format_bytes
    local half = plan.settings.half_acquisition and not plan.exact and "at most " or ""
    local level, lines = LEVELS[options.level], {}
    local function line(least, name, format, ...)
        if level >= LEVELS[least] then
            lines[#lines + 1] = ("%-11s"):format(name) .. format:format(...)
        end
    end
    line("run", "device", "%s (%s)", plan.device_ids, plan.device.name)
    line("all", "input", "%s in rows %d to %d", bytes(plan.input_bytes), plan.rows[1],
        plan.rows[2])
    line("run", "volume", "%s%d x %d x %d %s, %s", half, plan.volume[1], plan.volume[2],
        plan.volume[3], surface.TYPES[plan.dtype], bytes(plan.volume_bytes))
    line("plan", "method", "%s", plan.reason)
    local part = part_rows.text(plan.made.sections[1], plan.settings.part)
    if part then
        line("run", "part", "%s", part)
    end
    line("run", "chunks", "%s", chunks_text(plan))
    for i, device in ipairs(plan.devices) do
        local peak = plan.made.peaks[device.id]
        line("plan", "peak", "%s%s (%d bytes)%s of %s available%s", plan.exact and ""
            or "at most ", bytes(peak), peak, i > 1 and " on " .. device.id or "",
            bytes(plan.made.job.available[device.id]), plan.exact and ""
            or ", whatever axis is found")
    end
    line("plan", "pinned", "%s (%d bytes) of host memory", bytes(plan.pinned), plan.pinned)
    if plan.process and level >= LEVELS.plan then
        lines[#lines + 1] = process_memory.text(plan.process)
    end
    if plan.search_peak then
        line("all", "axis", "its search takes %s (%d bytes)", bytes(plan.search_peak),
            plan.search_peak)
    end
    if plan.lean[1] ~= 0 then
        line("run", "axis", "leans from %+.2f columns at row %d to %+.2f at row %d", plan.lean[1],
            plan.rows[1], plan.lean[2], plan.rows[2])
    end
    local section = plan.made.sections[1]
    local outside = geometry.outside_text(section.geometry, section.first, section.last)
    if outside then
        line("run", "outside", "%s", outside)
    end
    if plan.difference then
        line("run", "devices", "%s", plan.difference)
    end
    lines[#lines + 1] = level >= LEVELS.plan and plan.device.basis or nil
    return table.concat(lines, "\n")
end

--- `recon.check_bytes(what, bytes, promised)`: warns on the standard error if `bytes` differ
-- from `promised`. With MOONBEAM_STRICT in the environment, as in specs, that is an error. Returns
-- whether both are equal.
recon.check_bytes = pipeline_run.check_bytes

--- Runs a plan; a plan that is not exact is settled first. `sink` gets the slices. It is a result
-- (mb.result) or omitted for the plan's `out`, both of which are written to while the next chunk is
-- computed; or a function(slices, z), z counting from 1, which must not use the slices after it
-- returns. `each` is a function like that, called before the sink. Memory that these functions take
-- is added to the plan. Measured bytes that differ from the plan are an error in specs and a
-- prominent warning otherwise (check_bytes). Returns {seconds, peak, pinned (both measured), peaks
-- (by the ids of the devices), as_planned (whether both were as planned), plan, counts =
-- {nonfinite, clamped, nonpositive}, clipped = {below, above, NaN} of the values stored as another
-- type than f32, times (see stream.describe), replanned (sections that ran in smaller chunks
-- because memory was refused before the first chunk; `plan` is then the plan that ran), lost
-- (devices that were lost, and whose chunks the others did), predicted (the peak of what ran),
-- warnings: what was lost}. `plan.journal` keeps a run that is interrupted. Raises an error if
-- everything was lost: nothing finite, no beam, everything clipped.
function recon.run(scan, plan, sink, each)
    local journal = plan.journal
    rank_plan.admit(plan.made)
    look(scan, plan.settings)
    plan = recon.settle(scan, plan)
    local out = not sink and plan.settings.out or nil
    if not sink and not out then
        fail("argument", "recon.run", "sink", "sink is missing; give a result (mb.result.create), "
            .. "a function of the slices, or the option out to mb.recon.plan")
    end
    local made = pipeline_plan.with_scan(plan.made, scan)
    local done = pipeline_run.execute(made, {sink = sink, out = out, each = each,
        quiet = plan.settings.quiet, label = "reconstructing", unit = "slices",
        journal = journal, files = plan.settings.slices_per_file})
    if #done.replanned > 0 or #done.lost > 0 then
        plan = scan_recipe.replanned(scan, plan, done.plan)
    end
    return {seconds = done.seconds, peak = done.peak, peaks = done.peaks, pinned = done.pinned,
        plan = plan, predicted = done.predicted, replanned = done.replanned, lost = done.lost,
        expected = done.expected,
        counts = done.totals.mended, clipped = done.totals.clipped, times = done.times,
        as_planned = done.as_planned, warnings = done.warnings, done = done}
end

--- Reconstructs projections in host memory into a volume in host memory, in chunks of rows that fit
-- the device and are moved there and back while it computes.
--
-- `projections` (angle, row, column) are as the detector gave them, and `angles` are in radians.
-- Options: `flats` and `darks` (frame, row, column), `out` (default: a new array), and those of
-- recon.plan. Without a `center` the axis is searched. Arrays in pinned memory (mb.empty(shape,
-- {pinned = device})) move at the rate of the link; other arrays are copied through a ring. For any
-- chunks, the volume equals that computed at once, to the bit. Returns the volume (z, y, x) and the
-- report of recon.run, with the plan.
function recon.reconstruct(projections, angles, options)
    options = declared.checked(WITH_FRAMES, options, "recon.reconstruct")
    local settings = tables.merged(options)
    local scan = mb.scan.of_arrays(projections, angles,
        {flats = options.flats, darks = options.darks})
    scan_recipe.check(scan, settings)
    settings.flats, settings.darks = nil, nil
    look(scan, settings)
    if settings.half_acquisition and not settings.size and not settings.center then
        -- the axis determines the width of the volume
        settings.center = recon.settle(scan, recon.plan(scan, settings)).settings.center
    end
    local made
    if not options.out then
        local width = scan_recipe.width(scan, settings, settings.center)
        local rows = settings.rows and settings.rows[2] - settings.rows[1] + 1
            or scan_recipe.chain(scan, settings, mb.device(settings.device or "host")).shape[1]
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

-- The arguments of functions before their options.
return whole_call.module(recon, "recon", {
    frames = "scan: scan, device: device, first: count, last: count, settings: table, "
        .. "carrier: carrier?",
    slices = "scan: scan, frames: block, first: count, last: count, settings: table",
    chunk = "scan: scan, device: device, first: count, last: count, settings: table",
    read_shifts = "scan: scan, where: string, unit: string?",
    check_values = {"scan: scan", OPTIONS}, expected_values = {"scan: scan", OPTIONS},
    find_center = {"scan: scan", OPTIONS}, find_tilt = {"scan: scan", OPTIONS},
    center_bounds = {"scan: scan", OPTIONS}, center_picture = {
        "path: string, details: table", declared.options({"overwrite", "boolean",
            "replace an existing file"})},
    find_range = {"scan: scan", OPTIONS},
    range_codes = {"scan: scan", OPTIONS}, plan = {"scan: scan", OPTIONS},
    decoded = "scan: scan, options: table?, plan: plan?, searched: any?",
    settle = "scan: scan, plan: plan",
    describe = {"plan: plan", DESCRIBE},
    check_bytes = "what: string, bytes: count, promised: count",
    run = "scan: scan, plan: plan, sink: sink?, each: callable?",
})
