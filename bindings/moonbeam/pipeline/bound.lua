--- A pipeline: a chain that is bound to devices, with its plan. mb.pipeline makes it.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local chain = require "moonbeam.pipeline.chain"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local file_name = require "moonbeam.internal.file_name"
local geometry = require "moonbeam.pipeline.geometry"
local obeyed = require "moonbeam.scan.statements.obeyed"
local on_error = require "moonbeam.internal.on_error"
local output = require "moonbeam.pipeline.output"
local plan = require "moonbeam.pipeline.plan"
local report = require "moonbeam.pipeline.report"
local run = require "moonbeam.pipeline.run"
local scan_values = require "moonbeam.scan.values"
local tables = require "moonbeam.internal.tables"
local team = require "moonbeam.pipeline.shares.team"
local whole_call = require "moonbeam.internal.whole"

local bound = {}
local methods = declared.class("pipeline", {rows_of = "rows: list", row_of = "row: count"}, {})
local metatable = {__name = "moonbeam.pipeline", __index = methods}

local function wrong_rows(rows, there)
    if rows[1] == rows[2] then
        fail("argument", "pipeline", nil, "there is no row %d; the result has rows %d to %d",
            rows[1], there[1], there[2])
    end
    fail("argument", "pipeline", "rows", "rows are %d to %d; the result has %d to %d", rows[1],
        rows[2], there[1], there[2])
end

-- Raises an error if {first, last} are not rows of the result.
local function check_rows(rows, shape)
    if rows and not (rows[1] >= 1 and rows[1] <= rows[2] and rows[2] <= shape[1]) then
        wrong_rows(rows, {1, shape[1]})
    end
end

-- The options that a plan is made with, from those of mb.pipeline.
local function planning(options)
    return {available = options.budget and mb.device.bytes(options.budget),
        host_budget = options.host_budget and mb.device.bytes(options.host_budget),
        scratch = options.scratch, rows = options.rows, part = options.part,
        block = options.block, overlap = options.overlap, threads = options.threads,
        pinned = options.pinned, schedule = options.schedule, order = options.order,
        quiet = options.quiet}
end

--- A pipeline of a recipe that is a list. `options` are those of mb.pipeline, `binding` those of
-- chain.bind; `asked`, nil or flip and reverse_rotation where they are not as the scan says.
function bound.new(scan, recipe, options, binding, asked)
    local devices = mb.device.several(options.devices or "host")
    recipe = obeyed.recipe(scan, recipe, asked)
    local steps = chain.bind(recipe, chain.source_of(scan, {input = options.input}), binding)
    check_rows(options.rows, steps.shape)
    local own = planning(options)
    own.overlap = own.overlap == nil and "auto" or own.overlap
    own.ranks = team.ranks(options.ranks)
    return setmetatable({scan = scan, chain = steps, devices = devices, options = own}, metatable)
end

--- What a run will take: {sections, peaks (by device), peak, at_most, exact, pinned, scratch}. As
-- text it is the plan in words. Every call returns the same table.
-- Errors: argument (counts without flats, before anything is planned), budget (the smallest blocks
-- do not fit; the message says which budget is enough).
methods.plan = declared.method("pipeline:plan()", nil, function(self)
    if not self.made then
        if self.scan.n_flats then
            scan_values.kind(self.scan, {
                log = self.chain.source.kind.quantity ~= "line integrals",
                quantity = self.chain.source.kind.quantity})
        end
        local made = plan.on(self.devices, self.options, function(devices, options)
            return plan.job(self.chain, devices, options)
        end)
        self.made = setmetatable(made, {__tostring = report.text})
    end
    return self.made
end)

-- The same pipeline with other options of a plan.
local function with(self, changes)
    return setmetatable({scan = self.scan, chain = self.chain, devices = self.devices,
        options = setmetatable(changes, {__index = self.options})}, metatable)
end

--- The options of mb.pipeline.
bound.OPTIONS = declared.options(
    {"devices", "any", "where the work is done: a device, a list of them, \"all\" or "
        .. "\"cuda:0,cuda:1\" (mb.device.several)", usual = "host"},
    {"budget", "bytes", "the limit for each device", unit = "bytes",
        usual = "what its budget leaves"},
    {"host_budget", "bytes", "what stores between sections may take of host memory",
        unit = "bytes", usual = "what the host's budget leaves"},
    {"scratch", "string", "the folder for stores that do not fit there"},
    {"rows", "range", "rows of the result, {first, last}", usual = "all"},
    {"part", "list", "{K, N}: only the K-th of N shares of these rows, which the command join puts "
        .. "together"},
    {"block", "count", "rows at a time", min = 1, usual = "as many as fit"},
    {"overlap", "any", "read and write while computing; \"auto\": if that fits",
        usual = "auto"},
    {"threads", "count", "threads that read, and as many that write", min = 1, max = 64},
    {"pinned", "bytes", "pinned host memory for reading and writing", unit = "bytes"},
    {"schedule", "choice", "how several devices share the blocks: the next block goes to the "
        .. "device that is free, or block i to device i mod n", choices = {"free", "fixed"},
        default = "free"},
    {"order", "list", "a fixed schedule: the number of the device for each block; the list "
        .. "repeats"},
    {"input", "string", "what the values are if the scan does not say: transmission or line "
        .. "integrals"},
    {"steps", "any", "files with the user's own steps, or a list of definitions"},
    {"ranks", "any", "false: this rank of an MPI run works alone; a number: plans for so many; "
        .. "ranks that share a file leave this out (mb.cluster)"},
    {"quiet", "boolean", "no progress"})

-- Options of mb.pipeline that a pipeline is bound to.
local BOUND <const> = {devices = true, input = true, steps = true, ranks = true}

--- The same pipeline with changed options, such as {rows = {1, 2}}: options of mb.pipeline but for
-- devices, input, steps and ranks.
methods.part = declared.method("pipeline:part(changes: table)", nil, function(self, changes)
    local options = bound.OPTIONS
    for name, value in pairs(changes) do
        local entry = options[name]
        if not entry then
            declared.checked(options, {[name] = value}, "pipeline:part")
        elseif BOUND[name] then
            fail("argument", "pipeline:part", name, "%s stays as it is; bind the recipe to another "
                .. "pipeline", name)
        end
        arguments.entry(entry, value, "pipeline:part")
    end
    check_rows(changes.rows, self.chain.shape)
    return with(self, planning(changes))
end)

--- The rows {first, last} of the result that hold rows {first, last} of the detector (nil: from the
-- first, to the last), or rows of the result where these are not slices.
function methods:rows_of(rows)
    local own, g, count = self.chain, self.chain.geometry, self.chain.shape[1]
    local slices = own.kind.layout == "slices"
    local there = slices and geometry.rows_of(g, 1, count) or {1, count}
    there = {math.ceil(there[1]), math.floor(there[2])}
    rows = {rows[1] or there[1], rows[2] or there[2]}
    for i = 1, 2 do
        arguments.count(rows[i], "pipeline:rows_of", ("element %d of rows"):format(i), 0, 1 << 53)
    end
    local found = rows
    if slices then
        found = geometry.row_elements(g, rows, count) or wrong_rows(rows, there)
    end
    check_rows(found, own.shape)
    return found
end

--- The row of the detector, the first one, that a row of the result is of.
function methods:row_of(row)
    if self.chain.kind.layout ~= "slices" then
        return row
    end
    return math.ceil(geometry.rows_of(self.chain.geometry, row, row)[1])
end

--- The result of the whole chain for the rows {first, last}: an array on the host, which the caller
-- closes.
methods.slices = declared.method("pipeline:slices(rows: range?)", nil, function(self, rows)
    check_rows(rows, self.chain.shape)
    local before = with(self, {rows = rows, ranks = false})
    local shape = output.shape(before:plan().exact and before:plan() or run.settle(before:plan()))
    local out = mb.empty(shape, {dtype = self.chain.dtype, device = "host"})
    local _ <close> = on_error(function() out:release() end)
    local part = with(self, {rows = rows, out = out, ranks = false})
    return out, run.execute(part:plan(), {out = out, quiet = true})
end)

-- How a pipeline is planned again after a budget error: by these options.
local function limited(method)
    return {exact = false, may = function()
        return true
    end, options = function(args)
        return {budget = args[1].options.available, host_budget = args[1].options.host_budget}
    end, again = function(f, args, changes)
        return f(with(args[1], {available = changes.budget, host_budget = changes.host_budget}),
            table.unpack(args, 2, args.n))
    end}, "pipeline:" .. method
end
for _, name in ipairs {"plan", "slices"} do
    local way, what = limited(name)
    methods[name] = whole_call.call(methods[name], what, way)
end

-- The formats that layouts are for.
local LAYOUTS <const> = {tiff_layout = file_name.TIFF, zarr_layout = file_name.ZARR}

--- Adds what step save says to the options of a run, where these do not say it. The layouts that it
-- names are for its own file; another file has them if it is of their format.
function bound.take_saved(self, own)
    local last = self.chain.steps[#self.chain.steps]
    local saved = last.name == "save" and last.options or {}
    own.output = own.output or saved.file
    own.slices_per_file = own.slices_per_file or saved.slices_per_file
    for name, extensions in pairs(LAYOUTS) do
        if own.output == saved.file
            or own.output and not file_name.problem(own.output:gsub("/+$", ""), extensions) then
            own[name] = own[name] or saved[name]
        end
    end
end

-- Options of a result that a run takes. The result has their defaults.
local function of_result(...)
    local all = declared.of(mb.result.create).options
    return declared.options(tables.mapped({...}, function(name)
        local entry = tables.merged(all[name])
        entry.usual, entry.default = entry.usual or entry.default, nil
        return entry
    end))
end

local RUN = declared.options(
    {"output", "string", "the name of the result", usual = "that of step save"},
    of_result("overwrite", "slices_per_file", "tiff_layout", "zarr_layout", "layout", "entry",
        "angles", "title"),
    {"resume", "boolean", "go on with an interrupted run"},
    {"discard", "boolean", "remove what an interrupted run has left, and begin anew"},
    {"each", "callable", "function(block, first), which sees each block before it is written"},
    {"tell", "callable", "gets a line on what an interrupted run keeps"},
    {"input", "string", "the scan's file, which the result names", usual = "the scan's path"},
    {"label", "string", "what the progress says", default = "running"},
    {"quiet", "boolean", "no progress", usual = "that of the pipeline"})

--- Runs the pipeline: into a file, {output = "fossil.h5", overwrite, slices_per_file, tiff_layout,
-- zarr_layout, each, resume, discard} (default output: the file that step save names), or through a
-- function(block, first), which is called with each block of the result and must not use it after
-- it returns; of several ranks each calls it with its own blocks.
-- A run into a file that is interrupted leaves "fossil.h5.unfinished", if anything was finished:
-- resume = true goes on with it, discard = true removes it and starts anew.
-- Returns the report: {seconds, peaks, as_planned, values, verdicts, warnings, sections, ...}.
methods.run = declared.method("pipeline:run(options: any?)", nil, function(self, options)
    if type(options) == "function" then
        return run.execute(self:plan(), {sink = options, quiet = self.options.quiet})
    end
    local own = tables.merged({quiet = self.options.quiet, input = self.scan.path},
        declared.checked(RUN, options, "pipeline:run"))
    bound.take_saved(self, own)
    if not own.output then
        fail("argument", "pipeline:run", "output",
            "output is missing: give output = \"NAME.h5\", or end the recipe with step save")
    end
    return output.run(self, own)
end)

return bound
