--- Runs a pipeline into a result file that also records how it was made.

local mb = require "moonbeam"
local chain = require "moonbeam.pipeline.chain"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local geometry = require "moonbeam.pipeline.geometry"
local part_record = require "moonbeam.pipeline.shares.part_record"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local plan = require "moonbeam.pipeline.plan"
local rank_journal = require "moonbeam.pipeline.shares.rank_journal"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local rank_result = require "moonbeam.pipeline.shares.rank_result"
local rank_run = require "moonbeam.pipeline.shares.rank_run"
local recipe_text = require "moonbeam.pipeline.recipe"
local disk_space = require "moonbeam.pipeline.disk_space"
local run = require "moonbeam.pipeline.run"
local several_devices = require "moonbeam.internal.several_devices"
local store = require "moonbeam.pipeline.store"
local tables = require "moonbeam.internal.tables"
local team = require "moonbeam.pipeline.shares.team"

local output = {}

local UNITS = {attenuation = {"1/m", "1/px"}, ["line integrals"] = {"1", "1"},
    transmission = {"1", "1"}, counts = {"counts", "counts"}}

--- The unit of a chain's values, before a rescaling step.
function output.units(chain_)
    local quantity = chain_.source.kind.quantity
    for _, step in ipairs(chain_.steps) do
        quantity = step.kind.quantity ~= "scaled" and step.kind.quantity or quantity
    end
    return (UNITS[quantity] or {"", ""})[chain_.geometry.pixel_size and 1 or 2]
end

-- The sources of steps that are not in the library.
local function own_steps(self)
    local list = {}
    for i, record in ipairs(self.chain.recorded) do
        list["file_" .. i] = {path = record.path, source = record.text, hash = record.hash,
            names = record.names}
    end
    return next(list) and list or nil
end

-- Facts about the measured values, for the result: {name_field = value}.
local function verdict_values(verdicts, values)
    local list = {}
    for name, verdict in pairs(verdicts) do
        for key, value in pairs(type(verdict) == "table" and verdict or {}) do
            local kind = type(value)
            local list_of_numbers = kind == "table" and type(value[1]) == "number"
            if kind == "number" or kind == "string" or kind == "boolean" or list_of_numbers then
                list[name .. "_" .. key] = value
            end
        end
    end
    return tables.merged(list, values)
end

local function parameters_of(self, made)
    local devices = tables.mapped(self.devices, "id")
    local last = made.sections[#made.sections]
    return {recipe = recipe_text.text(chain.resolved(self.chain)), device = devices[1],
        devices = table.concat(devices, ","),
        devices_differ = several_devices.difference(self.devices),
        input = self.chain.source.kind.quantity,
        own_steps = own_steps(self),
        rows = ("%d:%d"):format(geometry.told_rows(last, last.first, last.last))}
end

-- The scaling of the stored values if a step has rescaled them: {scale, offset}.
local function scaling_of(self, values)
    local scaling
    for _, step in ipairs(self.chain.steps) do
        scaling = step.def.scaling and step.def.scaling(step.options, values) or scaling
    end
    return scaling
end

-- Raises where the slices of a half acquisition have no shape yet, because their axis is found in
-- a later section than the first: the result is made before.
local function check_known(made)
    local values = made.job.values
    if not made.job.measured.center or values.center then
        return
    end
    for _, section in ipairs(made.sections) do
        local g, width = section.source.geometry, section.source.shape[3]
        local other = setmetatable({center = geometry.column(g, (width - 1) / 2 + 2)},
            {__index = values}) -- beside the middle
        if section.source.layout == "frames" and section.geometry.half_acquisition
            and table.concat(plan.shape_of(section, other), " ")
            ~= table.concat(plan.shape_of(section, values), " ") then
            fail("argument", "pipeline:run", nil, "the size of the slices depends on the axis, "
                .. "which is not known before section %d; give step center its column, or the "
                .. "step that makes slices its size", section.number)
        end
    end
end

--- The shape of the result of a settled plan, and its last section. The shape follows from the
-- measured values; the chain knows only the largest possible shape.
function output.shape(made)
    check_known(made)
    local last = made.sections[#made.sections]
    local shape = plan.shape_of(last, made.job.values)
    shape[last.axis] = last.last - last.first + 1
    return shape, last
end

-- Where an interrupted run cannot be gone on with, and that is asked for.
local function check_resume(kept, options)
    if options.resume and not kept and not mb.device.dry() then
        fail("argument", "pipeline:run", "resume", "the option resume = true needs a scan from a "
            .. "file: nobody can tell whether arrays are the same as before")
    end
end

--- Runs a pipeline (init.lua) into a file. Options: output, overwrite, slices_per_file,
-- tiff_layout, zarr_layout, each, input (the scan's file), title, resume, discard, tell (a function
-- that gets a line on what is kept).
-- Returns the report of run.execute, or {complete = true} where an earlier run was interrupted
-- after its last step. A run that fails or is interrupted leaves "OUTPUT.unfinished" for another
-- one with the option resume = true, or nothing if nothing was finished.
function output.run(self, options)
    file_name.check(options.output, file_name.RESULTS, nil, "pipeline:run")
    local planned, part = self:plan(), self.options.part
    rank_plan.admit(planned)
    if part then
        part_record.check(self.scan)
        options = setmetatable({output = part_rows.path(options.output, part), tiff_layout = false,
            zarr_layout = false}, {__index = options}) -- of the whole
    end
    local own = team.of(planned.job.options)
    if not options.resume and own.rank == 0 then -- an interrupted run has taken its space
        local last = planned.sections[#planned.sections]
        local volume = {table.unpack(last.shape)}
        volume[last.axis] = last.last - last.first + 1
        store.check_disks(planned.job.places, {{folder = disk_space.folder_of(options.output),
            bytes = math.max(last.write_bytes,
                mb.result.disk_bytes(options.output, volume, last.dtype,
                    {zarr_layout = options.zarr_layout or nil})),
            what = ("the result '%s'"):format(options.output)}}, "pipeline.run")
    end
    local kept <close> = rank_journal.open(own, planned, options.output, options)
    check_resume(kept, options)
    if kept and kept:is_complete() then
        return {complete = true, output = options.output}
    end
    local made, verdicts = run.settle(planned, nil, kept)
    local shape, last = output.shape(made)
    local g = last.geometry
    local first_row, upward = geometry.result_row(g, last.first)
    local making = {shape = shape, dtype = last.dtype,
        units = output.units(self.chain), pixel_size = g.pixel_size, slice_distance = g.row_size,
        first_row = first_row, upward = upward,
        outside = last.layout == "slices" and geometry.outside(g, last.first, last.last) or nil,
        projections = g.used and #g.used or #g.frames,
        overwrite = options.overwrite,
        slices_per_file = options.slices_per_file, tiff_layout = options.tiff_layout or nil,
        zarr_layout = options.zarr_layout or nil,
        input = options.input,
        layout = options.layout, entry = options.entry, angles = options.angles,
        unfinished = kept and kept.kept, title = options.title,
        parameters = parameters_of(self, made)}
    local result <close> = rank_result.create(own, options.output, making, last.count)
    local report = run.execute(made, {sink = result, journal = kept, each = options.each,
        quiet = options.quiet, files = options.slices_per_file,
        label = options.label or "running", unit = "rows"})
    rank_result.complete(own, result)
    for name, verdict in pairs(verdicts) do
        report.verdicts[name] = report.verdicts[name] or verdict
    end
    local scaling = scaling_of(self, report.values)
    if scaling then
        result:scaling(scaling[1] + 0.0, scaling[2] + 0.0) -- of one type, as CF requires
    end
    local steps, replanned = {}, tables.mapped(report.replanned, "text")
    for i, section in ipairs(report.sections) do
        steps["section_" .. i] = not section.skipped and mb.stream.summary(section.times) or nil
    end
    result:provenance {values = verdict_values(report.verdicts, report.named),
        predicted_peak_bytes = report.predicted, measured_peak_bytes = report.peak,
        upper_bound_peak_bytes = report.plan.at_most, measured_as_predicted = report.as_planned,
        ranks = rank_run.text(report),
        predicted_pinned_bytes = report.plan.pinned, measured_pinned_bytes = report.pinned,
        seconds = report.seconds, steps = steps,
        resumed = kept and kept:resumed(),
        replanned = replanned[1] and table.concat(replanned, "\n"),
        nonfinite_values = report.totals.mended[1], clamped_pixels = report.totals.mended[2],
        nonpositive_values = report.totals.mended[3], clipped_below = report.totals.clipped[1],
        clipped_above = report.totals.clipped[2], not_numbers = report.totals.clipped[3],
        replaced_outliers = report.totals.repaired[1],
        mended_values = report.totals.repaired[2], unmended_values = report.totals.repaired[3],
        slices_not_finite = report.totals.spoiled[1]}
    if part then
        part_record.add(result, report.plan, making, {options = options, values = report.named,
            scaling = scaling, report = report})
    end
    own.once(function()
        result:finish()
    end)
    report.output = options.output
    return report
end

return output
