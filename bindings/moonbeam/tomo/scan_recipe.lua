--- The recipe of the fixed chain: what the options of `mb.recon.plan` and its kin ask for, as steps
-- of a pipeline, and the plan of it with the fields of recon.plan.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local chain = require "moonbeam.pipeline.chain"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local iterative = require "moonbeam.pipeline.iterative"
local lean = require "moonbeam.tomo.lean"
local method_options = require "moonbeam.tomo.method_options"
local methods = require "moonbeam.tomo.method"
local obeyed = require "moonbeam.scan.statements.obeyed"
local pipeline_plan = require "moonbeam.pipeline.plan"
local report = require "moonbeam.pipeline.report"
local scan_center = require "moonbeam.tomo.scan_center"
local several_devices = require "moonbeam.internal.several_devices"
local tables = require "moonbeam.internal.tables"
local value_range = require "moonbeam.tomo.value_range"

local scan_recipe = {}

-- What a scan starts with: the quantity of its frames.
local function quantity_of(scan, settings)
    if settings.log == false then
        return "line integrals"
    end
    local references = (scan.n_flats or 0) + (scan.n_darks or 0)
    return references > 0 and "counts" or "transmission"
end

-- What the method's choice depends on.
local function asked_of(settings)
    local asked = {slice_shifts = settings.axis_tilt and settings.axis_tilt ~= 0 and {0} or nil}
    for _, name in ipairs {"method", "mode", "half_acquisition", "accuracy"} do
        asked[name] = settings[name]
    end
    return asked
end

--- The ways to reconstruct a scan with these settings, in the order in which they are tried (see
-- `tomo.choose_method`).
function scan_recipe.ways(scan, settings, device)
    if iterative.is(settings.method) then
        return {{method = settings.method, mode = "iterative", taken = true, name = settings.method,
            reason = settings.method .. " (asked for)"}}
    end
    return methods.ways(scan.n_angles, scan.cols, asked_of(settings), device)
end

local FILTERING = {"filter", "cutoff", "padding", "pad_width", "circle", "size", "scale",
    "accuracy"}

local STORED = {u16 = "uint16", f16 = "float16"}

local function direct_step(scan, settings, method)
    local last = method_options.step(method, settings)
    last.center = settings.center
    for _, name in ipairs(FILTERING) do
        -- Without a word the defaults are those of tomo.reconstruct.
        local value = settings[name]
        last[name] = value == nil and methods.options[name].default or value
    end
    last.weights = settings.angle_weights
    last.scale = settings.scale
        or (settings.half_acquisition and 2 or 1) * math.pi / scan.n_angles
    last.mode = method == "fbp" and settings.mode or nil
    return last
end

-- What iterative methods do without.
local OF_DIRECT = {"filter", "cutoff", "padding", "pad_width", "accuracy", "mode", "axis_tilt",
    "angle_weights"}

-- The step of an iterative method. The scale of the direct methods has a factor pi / angles, in a
-- half acquisition twice that.
local function iterative_step(scan, settings)
    for _, name in ipairs(OF_DIRECT) do
        local value = settings[name]
        local entry = methods.options[name == "angle_weights" and "weights" or name]
        if value and value ~= 0 and not (entry and value == entry.default) then
            fail("argument", "recon.plan", name, "%s is %s, which method %s does not have; leave "
                .. "it out", name, type(value) == "table" and "a list" or tostring(value),
                settings.method)
        end
    end
    local scale = settings.scale and settings.scale * scan.n_angles / math.pi
        / (settings.half_acquisition and 2 or 1) or 1
    local step = method_options.step(settings.method, settings)
    step.center, step.size, step.circle = settings.center, settings.size, settings.circle
    step.scale = scale
    return step
end

--- The recipe of settings, a list of steps.
function scan_recipe.of(scan, settings, device)
    local list = obeyed.steps(scan, settings)
    local quantity = quantity_of(scan, settings)
    if quantity == "counts" then
        list[#list + 1] = {"flat_field", mode = settings.flat_mode,
            interpolation = settings.flat_interpolation,
            normalize_current = settings.normalize_current}
    end
    if quantity ~= "line integrals" then
        list[#list + 1] = "minus_log"
    end
    if settings.vertical_shifts then
        list[#list + 1] = {"vertical_shift", shifts = settings.vertical_shifts,
            outside = settings.shifted_rows}
    end
    if settings.axis_tilt and settings.axis_tilt ~= 0 then
        list[#list + 1] = {"tilt", angle = settings.axis_tilt}
    end
    if settings.half_acquisition then
        list[#list + 1] = "half_acquisition"
    end
    local method = scan_recipe.ways(scan, settings, device)[1].method
    if not settings.center then
        list[#list + 1] = {"center"}
    end
    list[#list + 1] = iterative.is(method) and iterative_step(scan, settings)
        or direct_step(scan, settings, method)
    if settings.dtype and settings.dtype ~= "f32" then
        list[#list + 1] = {"rescale", dtype = STORED[settings.dtype], range = settings.range,
            sample = not settings.range and value_range.SLICES or nil}
    end
    return list
end

--- The chain of settings.
function scan_recipe.chain(scan, settings, device)
    return chain.bind(scan_recipe.of(scan, settings, device), chain.source_of(scan,
        {input = quantity_of(scan, settings)}))
end

--- The rows of the volume that are rows {first, last} of the detector. Raises where it has others.
function scan_recipe.slices(bound, rows)
    local elements, there = geometry.row_elements(bound.geometry, rows, bound.shape[1])
    if not elements then
        fail("argument", "recon.plan", "rows", "rows are %d to %d; the volume is of rows %d to %d "
            .. "of the detector", rows[1], rows[2], there[1], there[2])
    end
    return elements
end

--- A job of pipeline/plan.lua for these settings.
function scan_recipe.job(scan, settings, device)
    local overlap, bound = settings.overlap, scan_recipe.chain(scan, settings, device)
    return pipeline_plan.job(bound, settings.devices or {device}, {
        op = "recon.plan", rows = settings.rows and scan_recipe.slices(bound, settings.rows),
        part = settings.part, ranks = settings.ranks,
        block = settings.chunk,
        overlap = overlap == nil and "auto" or overlap, threads = settings.threads,
        pinned = settings.pinned, out = settings.out, files = settings.slices_per_file,
        available = settings.available})
end

--- Raises unless rows, chunk, size and threads are whole numbers in their ranges.
function scan_recipe.check(scan, options)
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
    lean.of(options) -- raises where the tilt is out of the question
    if options.half_acquisition then -- raises where it is none
        scan_recipe.extended_width(scan, options.center or scan_center.bounds(scan, options)[1])
    end
end

--- Half acquisition: the width of the whole field of view. Raises where the scan is none.
function scan_recipe.extended_width(scan, center)
    local least, most = math.huge, -math.huge
    for _, angle in ipairs(scan.angles) do
        least, most = math.min(least, angle), math.max(most, angle)
    end
    if (most - least) * scan.n_angles < 2 * math.pi * 0.95 * (scan.n_angles - 1) then
        fail("argument", "recon.plan", "half_acquisition",
            "half acquisition needs a whole turn; the angles cover %.0f degrees%s",
            math.deg(most - least), scan.says and scan.says.half_acquisition
            and ("; '%s' says that it is one, and the option half_acquisition = false that it is "
                .. "none"):format(scan.stated.half_acquisition.path) or "")
    end
    return mb.op.estimate("half_acquisition_weight", {{"f32", scan.cols}},
        {center = center, extend = true}).results[1].shape[1]
end

-- ---- plans with the fields of recon.plan ----

-- Why the way was taken: as the settings ask for it, not the recipe.
local function reason_of(scan, settings, device, section)
    for _, way in ipairs(scan_recipe.ways(scan, settings, device)) do
        if way.method == section.way.method and way.mode == section.way.mode
            and not section.reason:find("takes more than there is", 1, true) then
            return way.reason
        end
    end
    return section.reason
end

--- The width of the slices; where the axis decides and is not known, the widest.
function scan_recipe.width(scan, settings, center)
    if settings.size then
        return settings.size
    elseif not settings.half_acquisition then
        return scan.cols
    end
    local widest = 0
    for _, axis in ipairs(center and {center} or scan_center.bounds(scan, settings)) do
        widest = math.max(widest, scan_recipe.extended_width(scan, axis))
    end
    return widest
end

local function measure_peak(made, name)
    local section = made.sections[1]
    for _, measure in ipairs(section.measures) do
        if dry_work.value_name(measure.step) == name then
            return measure.peaks[made.job.devices[1].id]
        end
    end
end

-- The fields that the axis decides.
local function fill(plan, scan)
    local made, settings = plan.made, plan.settings
    plan.devices, plan.device = made.job.devices, made.job.devices[1] -- that are not lost
    local section, id = made.sections[1], plan.device.id
    local center = settings.center or made.job.values.center
    plan.run_peak, plan.peak, plan.at_most = section.peaks[id], made.peak, made.at_most
    plan.worst_axis = center or section.worst.center
    plan.range_peak = measure_peak(made, "range")
    plan.exact = center ~= nil
    local width, rows = scan_recipe.width(scan, settings, center), plan.rows[2] - plan.rows[1] + 1
    plan.volume = {rows, width, width}
    plan.volume_bytes = rows * width * width * mb.pool.element_bytes(plan.dtype)
    return plan
end

-- Raises unless `out` is nil or an array on the host that has room for the volume.
local function check_out(plan)
    local out, shape = plan.settings.out, plan.volume
    if out and (plan.exact or not plan.settings.half_acquisition) and (out.device.kind ~= "host"
        or out.dtype ~= plan.dtype or table.concat(out.shape, " x ") ~= table.concat(shape, " x "))
    then
        fail("shape", "recon.plan", "out", "out is %s %s on %s; it must be %s %s on the host",
            out.dtype, table.concat(out.shape, " x "), out.device.id, plan.dtype,
            table.concat(shape, " x "))
    end
    return plan
end

--- Plan A of settings, with the fields that recon.plan tells of, on the devices that are not lost.
function scan_recipe.plan(scan, options)
    local devices = mb.device.several(options.devices or options.device or "host")
    local ids = tables.mapped(devices, "id")
    scan_recipe.check(scan, options)
    local settings = tables.merged(options, {devices = devices})
    local made = pipeline_plan.on(devices, {}, function(live)
        return scan_recipe.job(scan, setmetatable({devices = live}, {__index = settings}), live[1])
    end)
    local section, device = made.sections[1], made.job.devices[1]
    settings.overlap = section.overlap
    local rows = geometry.rows_of(section.geometry, section.first, section.last)
    local total = rows[2] - rows[1] + 1
    local first_row, upward = geometry.result_row(section.geometry, section.first)
    return check_out(fill({made = made, device_ids = table.concat(ids, ","),
        difference = several_devices.difference(devices), rows = rows, first_row = first_row,
        upward = upward, outside = geometry.outside(section.geometry, section.first, section.last),
        chunk = section.count,
        chunks = math.ceil(total / section.count), search_peak = measure_peak(made, "center"),
        look_peak = made.job.look[device.id],
        budget = mb.pool.stats(device).budget, available = made.job.available[device.id],
        overlap = section.overlap, pinned = made.pinned, dtype = options.dtype or "f32",
        input_bytes = scan.n_angles * total * scan.cols * mb.pool.element_bytes(scan.dtype),
        method = section.way.method, mode = section.way.mode,
        reason = reason_of(scan, settings, device, section), process = report.process(made),
        lean = {lean.at(scan, rows[1], settings), lean.at(scan, rows[2], settings)},
        settings = settings}, scan))
end

--- The plan when the axis is known. `made`: that of the pipeline, if it has been made.
function scan_recipe.settle(scan, plan, center, made)
    local settled = tables.merged(plan, {settings = tables.merged(plan.settings,
        {center = center})})
    settled.made = made or pipeline_plan.on_alive(plan.made, function(own)
        return pipeline_plan.settle(own, {center = center})
    end)
    return check_out(fill(settled, scan))
end

--- The plan by which a pipeline ran that was planned again, or without a device that was lost.
function scan_recipe.replanned(scan, plan, made)
    local again = scan_recipe.settle(scan, plan, plan.settings.center, made)
    local section = made.sections[1]
    again.chunk, again.overlap = section.count, section.overlap
    again.chunks = math.ceil((plan.rows[2] - plan.rows[1] + 1) / section.count)
    again.method, again.mode = section.way.method, section.way.mode
    again.reason = reason_of(scan, plan.settings, plan.device, section)
    return again
end

return scan_recipe
