--- Recipes on the command line: `moonbeam reconstruct SCAN --recipe FILE` and its options.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local axis_curve_picture = require "moonbeam.pipeline.pictures.axis_curve_picture"
local bound = require "moonbeam.pipeline.bound"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local catalog = require "moonbeam.pipeline.catalog"
local center = require "moonbeam.tomo.center"
local chain = require "moonbeam.pipeline.chain"
local cli = require "moonbeam.internal.cli"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local input_file = require "moonbeam.internal.files.input_file"
local result_layouts = require "moonbeam.internal.command_line.result_layouts"
local memory_picture = require "moonbeam.pipeline.pictures.memory_picture"
local method_options = require "moonbeam.tomo.method_options"
local obeyed = require "moonbeam.scan.statements.obeyed"
local output = require "moonbeam.pipeline.output"
local recipe_text = require "moonbeam.pipeline.recipe"
local report = require "moonbeam.pipeline.report"
local shipped = require "moonbeam.pipeline.shipped"
local statements = require "moonbeam.scan.statements.told"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local resuming = require "moonbeam.internal.command_line.resuming"
local slurm = require "moonbeam.pipeline.shares.slurm"
local rank_run = require "moonbeam.pipeline.shares.rank_run"
local run = require "moonbeam.pipeline.run"
local captioned = require "moonbeam.pipeline.pictures.captioned"
local snapshots = require "moonbeam.pipeline.pictures.snapshots"
local sweep = require "moonbeam.pipeline.pictures.sweep"
local tables = require "moonbeam.internal.tables"
local team = require "moonbeam.pipeline.shares.team"

local command = {}

local MOST_SIDE <const> = 4096 -- pixels of the picture of a sweep
local TOLD <const> = 9 -- values of a sweep that its caption lists, at most

-- What every run says in the end.
local MEMORY <const> = "memory     predicted %d bytes, measured %d bytes (at most %d before the "
    .. "values were known)"

--- The options of the command line that go with a recipe.
command.options = {
    {"recipe", value = "FILE|NAME", doc = "the steps to run, in a file or inside an earlier "
        .. "result; or a recipe of the library: " .. table.concat(shipped.names(), ", ")},
    {"steps", value = "FILE", many = true, doc = "Lua file with your own steps; it is run"},
    {"set", value = "STEP.OPTION=VALUE", many = true, doc = "another value for an option of the "
        .. "recipe, such as fbp.filter=hann"},
    {"sweep", value = "STEP.OPTION=FIRST:LAST:STEP|A,B,...", doc = "one row with an option at "
        .. "several values: a stack of slices, and a contact sheet beside it"},
    {"row", value = "N", type = cli.count, doc = "the row of a sweep, of snapshots or of a result "
        .. "of one slice (default: the middle)"},
    {"vertical", value = "x=N|y=N", doc = "the vertical slice at a column or row of the slices, "
        .. "without the volume"},
    {"snapshots", value = "FOLDER", doc = "pictures of the middle row or frame after every step"},
    {"print-recipe", doc = "print the recipe with every default and exit"},
    {"slurm", alone = true, doc = "with --plan: print a Slurm script that asks for what the plan "
        .. "takes, over --ranks, or as an array where --part is given"},
    {"ranks", alone = true, value = "N", type = cli.count, doc = "with --plan: what N processes "
        .. "take that mpirun or srun starts, each with --device"},
    {"ranks-per-node", alone = true, value = "N", type = cli.count,
        doc = "how many of them share a node (default: 1)"},
    {"input", alone = true, value = "KIND", doc = "what the values are, where they are no counts: "
        .. "transmission, \"line integrals\"; flats and darks are left out"},
    {"scratch", value = "FOLDER", doc = "for data between steps that do not fit --host-budget"},
    {"host-budget", value = "SIZE", type = cli.bytes,
        doc = "host memory for data between steps (default: what is free)"},
    {"trust-paths", doc = "follow the paths in a recipe from a result file"},
}

--- What the library calls by other names with a recipe.
command.WORDS = {log = "--input", ["log = false"] = '--input "line integrals"',
    ["flat_mode = median"] = "--set flat_field.mode=median",
    ["flat_interpolation = linear"] = "--set flat_field.interpolation=linear",
    ["flat_interpolation = mean"] = "--set flat_field.interpolation=mean"}

-- The entries of a recipe, its folder, and whether it comes from a result.
local function read_recipe(name)
    local path, missing = shipped.path_of(name)
    if not path then
        fail("io", "recipe", nil, "%s", missing)
    end
    local signature
    do
        local file <close>, problem = input_file.open(path)
        if not file then
            fail("io", "recipe", nil, "%s", problem)
        end
        signature = file:read(8)
    end
    local folder = path == name and path:match "^(.*)/[^/]*$" or "" -- of the library's: here
    if signature ~= "\137HDF\r\n\26\n" then
        return recipe_text.read(path), folder, false
    end
    local file <close> = assert(mb.h5.open(path))
    local at <const> = "/entry/reconstruction/parameters/recipe"
    if not file:exists(at) then
        fail("argument", "recipe", nil, "%s does not contain a recipe (%s)", path, at)
    end
    local recipe = recipe_text.parse(file:value(at), path .. at)
    local last = recipe[#recipe]
    if (type(last) == "table" and last[1] or last) == "save" then
        recipe[#recipe] = nil -- that is the result's own name
    end
    return recipe, folder, true
end

local function set_option(recipe, text, known, typed)
    local path, value = text:match "^([^=]+)=(.*)$"
    if not path then
        fail("argument", "recipe", "set", "--set is '%s'; give STEP.OPTION=VALUE, such as "
            .. "fbp.filter=hann", text)
    end
    value = recipe_text.value(value)
    typed[value] = type(value) == "string" or nil
    return chain.with(recipe, path, value, known)
end

-- What the flags say that are steps of a recipe: {name, entry, or nil for none}.
local function typed_steps(options)
    local list, flip = {}, obeyed.flip_of(options.flip)
    list[1] = flip and {"flip", tables.merged({"flip"}, flip)}
    if options.reverse_rotation ~= nil then
        list[#list + 1] = {"reverse_rotation", options.reverse_rotation and "reverse_rotation"}
    end
    return list
end

-- What a step flip says, as the flag has it; of another entry its name.
local function entry_text(entry)
    local own = type(entry) == "table" and entry or {entry}
    return own[1] ~= "flip" and own[1] or "flip " .. (own.rows and own.columns and "both"
        or own.rows and "rows" or own.columns and "columns" or "none")
end

-- A recipe with what was typed in the place of its own steps of that name, or before all others;
-- and a line for each of them that said something else.
local function with_typed(recipe, options)
    local told = {}
    for _, typed in ipairs(typed_steps(options)) do
        local name, entry, list, placed = typed[1], typed[2], {}, false
        for _, own in ipairs(recipe) do
            local same = (type(own) == "table" and own[1] or own) == name
            if not same then
                list[#list + 1] = own
            else
                list[#list + 1] = not placed and entry or nil
                if entry_text(own) ~= entry_text(entry or "none") then
                    told[#told + 1] = ("typed      %s; the recipe says %s"):format(
                        entry and entry_text(entry) or "no " .. name, entry_text(own))
                end
                placed = true
            end
        end
        if entry and not placed then
            table.insert(list, 1, entry)
        end
        recipe = list
    end
    return recipe, told
end

-- The source that a command line describes: {recipe, catalog, folder, foreign, typed}.
local function source_of(options)
    local recipe, folder, foreign = read_recipe(options.recipe)
    local told
    recipe, told = with_typed(recipe, options)
    local known, typed = catalog.new(options.steps), {}
    for _, text in ipairs(options.set or {}) do
        recipe = set_option(recipe, text, known, typed)
    end
    return {recipe = recipe, told = told, catalog = known, folder = folder, typed = typed,
        foreign = foreign and not options.trust_paths}
end

-- The pipeline of a recipe for these rows, with the options of the command line.
local function pipeline_of(scan, source, options, recipe, rows)
    rows = rows or options.rows
    local made = bound.new(scan, recipe or source.recipe, {devices = options.devices,
        host_budget = options.host_budget,
        scratch = team.scratch_of(options.output, options.scratch, team.ranks(options.ranks)),
        ranks = options.ranks,
        part = options.part, block = options.chunk, overlap = options.no_overlap and false or nil,
        threads = options.threads, pinned = options.pinned, input = options.input,
        quiet = options.quiet}, {catalog = source.catalog, folder = source.folder,
        foreign = source.foreign, typed = source.typed},
        {reverse_rotation = options.reverse_rotation})
    return rows and made:part {rows = made:rows_of(rows)} or made
end

-- The pipelines of a sweep, all of them: what is wrong with one is said before any runs.
local function swept(scan, source, options, path, values)
    local list = {}
    for i, value in ipairs(values) do
        list[i] = pipeline_of(scan, source, options, chain.with(source.recipe, path, value,
            source.catalog))
    end
    sweep.check(list, values)
    return list
end

-- The values of a sweep as numbers, or all as text.
local function words_of(values)
    local words, numbers = {}, true
    for i, value in ipairs(values) do
        numbers = numbers and type(value) == "number"
        words[i] = type(value) == "string" and value or recipe_text.value_text(value)
    end
    return numbers and values or words
end

-- What captions call a file.
local function name_of(path)
    return path:match "([^/]*)/*$"
end

-- Looks at the values of the scan, and tells what it has seen.
local function tell_look(pipeline, talk)
    local seen = run.look(pipeline:plan())
    for _, text in ipairs(seen and seen.warnings or {}) do
        talk.warn("%s", cli.spoken(text, command.WORDS))
    end
end

--- Says what the statements of a scan's file are to a run: `used` is that of told.of.
function command.tell_statements(scan, used, say, warn)
    local lines, warnings = statements.of(scan, used)
    for _, text in ipairs(lines) do
        say("%s", text)
    end
    for _, text in ipairs(warnings) do
        warn("%s", text)
    end
end

--- Says where the file's axis is not this one, by `tell`. `searched`: as in told.axis.
function command.tell_axis(scan, column, tell, searched)
    local text = statements.axis(scan, column, center.agreement(scan.cols), searched)
    if text then
        tell("%s", text)
    end
end

-- What a recipe on the command line makes of the scan, before anything is planned.
local function tell_scan(scan, pipeline, options, talk)
    talk.say("%s", scan:describe())
    for _, text in ipairs(scan.warnings) do
        talk.warn("%s", text)
    end
    local used = {steps = pipeline.chain.steps, shifts = {}, reversed = false}
    if options.no_half_acquisition then
        used.half_acquisition = false
    end
    for _, step in ipairs(pipeline.chain.steps) do
        local shifts = type(step.given) == "table" and step.given.shifts
        if step.name == "half_acquisition" or step.name == "stitch" then
            used.half_acquisition = step.geometry.half_acquisition or step.name == "stitch"
        elseif step.name == "flip" then
            used.flip = {rows = step.options.rows == true,
                columns = step.options.columns == true}
        elseif step.name == "reverse_rotation" then
            used.reversed = true
        elseif shifts then
            used.vertical = used.vertical or step.name == "vertical_shift"
            used.lateral = used.lateral or step.name == "horizontal_shift"
            used.shifts[type(shifts) == "string" and shifts:gsub("^%-", "") or shifts] = true
        end
    end
    command.tell_statements(scan, used, talk.say, talk.warn)
    for _, step in ipairs(pipeline.chain.steps) do
        local column = step.name == "center" and step.options.column or step.options.center
        if type(column) == "number" then
            command.tell_axis(scan, column, talk.say)
        end
    end
end

-- The pipelines of --sweep: {list, path, values, slice (of the result), row (of the detector)}.
local function sweep_of(scan, source, options)
    local path, text = options.sweep:match "^([^=]+)=(.*)$"
    if not path then
        fail("argument", "recipe", "sweep", "--sweep is '%s'; give STEP.OPTION=FIRST:LAST:STEP, "
            .. "such as center.column=290:302:0.5", options.sweep)
    end
    local values = recipe_text.sweep(text)
    local list = swept(scan, source, options, path, values)
    local slice = options.row and list[1]:rows_of {options.row, options.row}[1]
        or (list[1].chain.shape[1] + 1) // 2
    return {list = list, path = path, values = values, slice = slice,
        row = options.row or list[1]:row_of(slice)}
end

-- Makes the stack of a sweep, (value, y, x); `write(stack)` gets it, and then its sheet is drawn.
-- Returns what its runs took on the first device: {predicted, peak}.
local function make_sweep(made, options, each, write)
    local stack <close>, took = sweep.stack(made.list, made.slice, each)
    if write then
        write(stack)
    end
    local words = words_of(made.values)
    local labels = tables.mapped(words, function(word)
        return type(word) == "number" and ("%.6g"):format(word) or word
    end)
    local function draw()
        captioned.save(options.preview, stack, {labels = labels, range = options.preview_range,
            pixel_size = sweep.pixel_size(made.list), most = MOST_SIDE,
            overwrite = options.overwrite,
            caption = ("%s, row %d: recipe %s, %s %s"):format(name_of(options.scan), made.row,
                name_of(options.recipe), made.path, #labels <= TOLD and table.concat(labels, ", ")
                or ("from %s to %s"):format(labels[1], labels[#labels]))})
    end
    call_budget.done("the sheet of --sweep", draw)
    return took
end

-- Plans a sweep.
local function plan_sweep(scan, source, options)
    local made = sweep_of(scan, source, options)
    options.preview = options.preview or "sheet.png"
    call_budget.part("--sweep", function()
        make_sweep(made, options, function() end)
    end)
end

local function run_sweep(scan, source, options, talk)
    local say = talk.say
    local made = sweep_of(scan, source, options)
    local list, values, path, row = made.list, made.values, made.path, made.row
    options.preview = options.preview or options.output:gsub("%.[^./]*$", "") .. ".png"
    options.check_outputs(options.output)
    tell_scan(scan, list[1], options, talk)
    call_budget.part("--sweep", function()
        make_sweep(made, options, function() end)
    end)
    local first <const> = list[1].devices[1]
    tell_look(list[1], talk)
    local took = make_sweep(made, options, function(i)
        say("sweep      %d of %d: %s = %s", i, #values, path, recipe_text.value_text(values[i]))
    end, function(stack)
        local words, outside = words_of(values), nil
        local bound_chain = list[1].chain
        local counts = bound_chain.kind.layout == "slices"
            and geometry.outside(bound_chain.geometry, made.slice, made.slice)
        if counts then
            outside = {}
            for i in ipairs(values) do
                outside[i] = counts[1]
            end
            say("outside    %s", geometry.outside_text(bound_chain.geometry, made.slice,
                made.slice))
        end
        local result <close> = mb.result.create(options.output, {shape = stack.shape,
            dtype = stack.dtype, units = output.units(list[1].chain),
            overwrite = options.overwrite, tiff_layout = options.tiff_layout,
            zarr_layout = options.zarr_layout, input = options.scan,
            pixel_size = sweep.pixel_size(list),
            outside = outside, projections = #bound_chain.geometry.frames,
            axis = {name = path:gsub("[^%w_.]", "_"), values = words},
            title = ("%s of row %d"):format(path, row),
            parameters = {recipe = recipe_text.text(chain.resolved(list[1].chain)), sweep = path,
                sweep_values = words, row = row}})
        result:write(stack, 1)
        result:finish()
    end)
    say("wrote      %s, %d slice%s of row %d", options.output, #values, #values == 1 and "" or "s",
        row)
    say("picture    %s (the sheet of %s)", options.preview, path)
    local predicted, measured = call_budget.with_parts(first.id, took.predicted, took.peak)
    say(MEMORY, predicted, measured, call_budget.peak(first.id))
end

-- The vertical slice x = N or y = N: runs the recipe with only that part of the slices.
local function vertical(scan, source, options, talk)
    local axis, text = options.vertical:match "^([xy])=(%d+)$"
    if not axis then
        fail("argument", "recipe", "vertical", "--vertical is '%s'; give x=N or y=N, a column or "
            .. "a row of the slices from 1", options.vertical)
    end
    local place = math.tointeger(text)
    local recipe, found = source.recipe, false
    for _, name in ipairs {"fbp", "fourier"} do
        for _, entry in ipairs(source.recipe) do
            if (type(entry) == "table" and entry[1] or entry) == name then
                recipe = chain.with(recipe, name .. "." .. axis, {place, place}, source.catalog)
                found = true
            end
        end
    end
    if not found then
        fail("argument", "recipe", "vertical", "--vertical needs a recipe with step fbp or "
            .. "fourier")
    end
    talk.say("vertical   slice %s = %d", axis, place)
    return pipeline_of(scan, source, options, recipe)
end

-- A text that names options of the fixed chain, with those of a recipe.
local function of_recipe(text)
    return (text:gsub("%-%-center (%d)", "--set center.column=%1")
        :gsub("%-%-center", "--set center.column=X")
        :gsub("%-%-half%-acquisition", "the step half_acquisition"))
end

local function tell_values(done, scan, talk)
    local say, warn = talk.say, talk.warn
    for name, verdict in pairs(done.verdicts) do
        local value = done.named[name]
        say("%-10s %s%s", name, type(value) == "number" and ("%.6g"):format(value)
            or type(value) == "table" and ("%.6g to %.6g"):format(value[1], value[2]) or "?",
            verdict.verdict and (", %s (%s)"):format(verdict.verdict, verdict.how or "") or "")
        local text = verdict.remedy or verdict.notice
        if text then
            warn("%s", of_recipe(text))
        end
        if name == "center" and type(value) == "number" then
            command.tell_axis(scan, value, function(_, line)
                warn("%s", of_recipe(line))
            end, verdict.searched)
        end
    end
    for _, text in ipairs(done.warnings) do
        warn("%s", text)
    end
end

-- The rows of --preview-rows as slices of a volume of so many, whose first one is of row `first`,
-- and whose next ones are of rows above it where `upward`.
local function preview_slices(options, count, first, upward)
    local list, labels = {}, {}
    local low = upward and first - count + 1 or first
    local middle = upward and first - count // 2 or first + count // 2
    for i, row in ipairs(options.preview_rows or {middle}) do
        if row < low or row > low + count - 1 then
            cli.wrong("--preview-rows names row %d; the result has rows %d to %d", row, low,
                low + count - 1)
        end
        list[i] = upward and first - row + 1 or row - first + 1
        labels[i] = ("row %d"):format(row)
    end
    return list, labels
end
command.preview_slices = preview_slices

-- The bytes of a plan, by the ids of devices, with what is live on them.
function command.live_too(peaks)
    local all = {}
    for id, bytes in pairs(peaks) do
        all[id] = id ~= "pinned" and mb.pool.stats(id).live + bytes or nil
    end
    return all
end

local function write_preview(options, result)
    local host <const> = mb.device "host"
    local volume <close> = mb.device.dry() and mb.volumes.planned(result.shape, result.dtype)
        or mb.images.open(options.output)
    local plane = #volume.shape == 2 -- a TIFF file of one slice
    local nz, ny, nx = table.unpack(plane and {1, table.unpack(volume.shape)} or volume.shape)
    local upright = (ny == 1 or nx == 1) and nz > 1
    local list, labels = preview_slices(options, nz, result.first, result.upward)
    local stretch, rows = 1, (#labels > 1 and "rows " or "row ")
        .. table.concat(labels, ", "):gsub("row ", "")
    local shape = upright and {1, nz, math.max(ny, nx)} or {#list, ny, nx}
    local slices <close> = mb.empty(shape, {dtype = "f32", device = host})
    if upright then
        local all <close> = mb.volumes.load(volume, host)
        local flat <close> = all:reshape(table.unpack(shape))
        mb.convert(flat, "f32", {out = slices})
        rows = ny == 1 and "vertical, along x" or "vertical, along y"
        if result.row_size and result.pixel_size then
            stretch = math.max(1, math.floor(result.row_size / result.pixel_size + 0.5))
        end
    end
    for i, z in ipairs(upright and {} or list) do
        local slice <close> = volume:read(plane and {0, 0} or {z - 1, 0, 0},
            plane and {ny, nx} or {1, ny, nx}, host, host)
        local place <close> = slices:view(plane and i or {i, i})
        mb.convert(slice, "f32", {out = place})
    end
    captioned.save(options.preview, slices, {labels = #list > 1 and labels or nil,
        range = options.preview_range, pixel_size = result.pixel_size, stretch = stretch,
        overwrite = options.overwrite or options.resume,
        caption = ("%s, %s: %s"):format(name_of(options.scan), rows, result.caption)})
end

--- Writes --preview: slices of a result that is complete. `result`: {shape, dtype, first (row of
-- slice 1), upward (the next one is above it), pixel_size (m) and row_size (nil: not known),
-- caption}. A vertical slice is one picture.
function command.preview(options, result)
    cli.afterwards("--preview", options.preview, call_budget.done, "--preview", function()
        write_preview(options, result)
    end)
end

--- Plans what a command does beside a run: notes what the plan of the run takes, and then what the
-- list of {name, fn} takes, each a part of the command.
function command.plan_parts(made, parts)
    call_budget.planned("the run", command.live_too(made.at_most_of))
    for _, part in ipairs(parts) do
        call_budget.part(part[1], part[2])
    end
    made.beside, made.process = call_budget.peak "host", nil
end

-- The lines of a plan about what the command takes on devices where that is more than the run.
local function print_more(made)
    for id, bytes in pairs(command.live_too(made.at_most_of)) do
        local all = call_budget.peak(id)
        if all > bytes then
            cli.print(("%-11s%s (%d bytes) on %s, with what is done before and after the run")
                :format("command", mb.device.format_bytes(all), all, id))
        end
    end
end

--- The part of a command (plan_parts) that draws --preview of a result that will be as `result`
-- says; values that are not known are the longest as texts.
function command.preview_part(options, result)
    return {"--preview", function()
        write_preview(options, result)
    end}
end

-- Says what there is to say of the layout of a plan's result (result_layouts.tell): of the largest
-- shape, where the shape follows from what is measured.
local function tell_layout(pipeline, made, options, talk)
    local own = {output = options.given.output and options.output or nil,
        tiff_layout = options.tiff_layout, zarr_layout = options.zarr_layout}
    bound.take_saved(pipeline, own)
    local last = made.sections[#made.sections]
    local shape = {table.unpack(last.shape)}
    shape[last.axis] = last.last - last.first + 1
    result_layouts.tell(talk.say, own, own.output or options.output, {shape = shape,
        dtype = last.dtype})
end

-- What --preview shows of a run with this plan.
local function preview_of(made, options)
    local rows = made.sections[#made.sections]
    local first_row, upward = geometry.result_row(rows.geometry, rows.first)
    local shape = {table.unpack(rows.shape)}
    shape[rows.axis] = rows.last - rows.first + 1
    return {shape = shape, dtype = rows.dtype, first = first_row, upward = upward,
        pixel_size = rows.geometry.pixel_size, row_size = rows.geometry.row_size,
        caption = "recipe " .. name_of(options.recipe)}
end

-- Plans a run and its pictures.
local function plan_whole(made, options)
    local parts = {}
    if options.center_picture then
        parts[1] = {"--center-picture", function()
            axis_curve_picture.save(options.center_picture, {})
        end}
    end
    if options.preview then
        local result = preview_of(made, options)
        preview_slices(options, result.shape[1], result.first, result.upward)
        parts[#parts + 1] = command.preview_part(options, result)
    end
    command.plan_parts(made, parts)
end

local function run_whole(pipeline, options, talk)
    local say = talk.say
    local made = pipeline:plan()
    local last = pipeline.chain.steps[#pipeline.chain.steps]
    if last.name == "save" and not options.given.output then
        options.output = last.options.file
    end
    options.check_outputs(options.output)
    resuming.settle(options, options.part and part_rows.path(options.output, options.part)
        or options.output, function()
            options.check_outputs(options.output)
        end)
    if options.center_picture and not made.job.measured.center then
        cli.wrong("--center-picture shows the search for the axis; the recipe has none: use step "
            .. "center without a column")
    end
    tell_scan(pipeline.scan, pipeline, options, talk)
    say("%s", report.text(made, {level = options.verbose and "all" or "run"}))
    tell_layout(pipeline, made, options, talk)
    plan_whole(made, options)
    local live <const> = mb.pool.stats(made.job.devices[1]).live
    tell_look(pipeline, talk)
    local done = pipeline:run {output = options.output, overwrite = options.overwrite,
        slices_per_file = options.slices_per_file, tiff_layout = options.tiff_layout,
        zarr_layout = options.zarr_layout, layout = options.layout,
        entry = options.result_entry, angles = options.layout and pipeline.scan.angles,
        resume = options.resume, discard = options.discard, tell = options.tell}
    if options.preview and team.speaks() then
        command.preview(options, preview_of(done.plan or made, options))
    end
    if done.complete then
        say("wrote      %s (an earlier run was interrupted after its last step)", done.output)
        return
    end
    tell_values(done, pipeline.scan, talk)
    if options.center_picture and not axis_curve_picture.has_curve(done.verdicts.center) then
        talk.warn("no projections are opposite, so there is no --center-picture of how they match")
    elseif options.center_picture and team.speaks() then
        call_budget.done("--center-picture", function()
            axis_curve_picture.save(options.center_picture, done.verdicts.center,
                {overwrite = options.overwrite})
        end)
        say("picture    %s (the search for the axis)", options.center_picture)
    end
    local id <const> = done.plan.job.devices[1].id
    local predicted, measured = call_budget.with_parts(id, live + done.predicted, live + done.peak)
    say(MEMORY, predicted, measured, math.max(live + done.plan.at_most, call_budget.peak(id)))
    if done.ranks then
        say("%s", rank_run.text(done))
    end
    talk.detail("pinned     predicted %d bytes, measured %d bytes", done.plan.pinned, done.pinned)
    say("wrote      %s", done.output)
end

-- Options of the fixed chain, and what replaces them with a recipe.
local OF_CHAIN = {center = "--set center.column=X", axis_tilt = "the step tilt",
    filter = "--set fbp.filter=NAME", cutoff = "--set fbp.cutoff=X",
    padding = "--set fbp.padding=NAME", pad_width = "--set fbp.pad_width=N",
    angle_weights = "--set fbp.weights=none",
    half_acquisition = "the step half_acquisition", vertical_shifts = "the step vertical_shift",
    shifted_rows = "--set vertical_shift.outside=leave_out",
    method = "the step fbp or fourier",
    mode = "--set fbp.mode=NAME",
    circle = "--set fbp.circle=X", accuracy = "--set fbp.accuracy=NAME",
    output_dtype = "the step rescale", output_range = "--set rescale.range={LOW,HIGH}",
    flat_mode = "--set flat_field.mode=NAME",
    flat_interpolation = "--set flat_field.interpolation=NAME",
    normalize_current = "--set flat_field.normalize_current=NAME",
    no_log = "a recipe without minus_log, and --input",
    size = "--set fbp.size=N"}

for _, option in ipairs(method_options.list) do
    OF_CHAIN[option.name] = ("--set %s.%s=..."):format(option.methods[1], option.own)
end

local function check(options)
    for _, name in ipairs(tables.keys(OF_CHAIN)) do
        if options.given[name] then
            cli.wrong("--%s cannot be used with --recipe; use %s", (name:gsub("_", "-")),
                OF_CHAIN[name])
        end
    end
    local first
    for _, name in ipairs {"sweep", "vertical", "snapshots"} do
        if options[name] and first then
            cli.wrong("--%s and --%s make different results: give one of them", first, name)
        end
        first = options[name] and name or first
    end
    if first and team.ranks() then
        cli.wrong("--%s works on one rank, and there are %d: start it without mpirun", first,
            team.ranks())
    end
    for _, name in ipairs {"resume", "discard"} do
        if options[name] and (options.sweep or options.snapshots) then
            cli.wrong("--%s is for the volume of a whole run; --sweep and --snapshots have none",
                name)
        end
    end
    local pictures <const> = first ~= nil and {center_picture = first ~= "vertical",
        preview_rows = true, preview = first == "snapshots"} or {}
    for _, name in ipairs {"preview", "preview_rows", "center_picture"} do
        if options[name] and pictures[name] then
            cli.wrong("--%s is drawn of a whole run; leave it out with --%s",
                (name:gsub("_", "-")), first)
        end
    end
    if options.row and options.rows then
        cli.wrong("--row and --rows both say what is made: give one of them")
    end
end

--- Plans as one of several ranks on a node does, which share its processors and its memory. Before
-- a device is open.
function command.share_node(options)
    if options.ranks_per_node then
        core.cluster.share_node(options.ranks_per_node)
    end
end

--- Draws the memory of a plan, --png, which the run does not do.
function command.draw_plan(made, options, say)
    if options.png then
        local chart = memory_picture.chart(made)
        local predicted, measured = call_budget.beside("--png", function()
            memory_picture.save(options.png, chart, options)
        end)
        say("picture    %s (the memory)%s", options.png, measured == 0 and ""
            or (", drawn beside the budget: predicted %d bytes, measured %d bytes on the host")
            :format(predicted, measured))
    end
end

-- Says what a job would find beside its results, before it waits for its turn.
local function warn_of_results(options)
    local base, paths = options.result, {}
    for number = 1, base and (options.part and options.part[2] or 1) or 0 do
        paths[number] = options.part and part_rows.path(base, {number, options.part[2]}) or base
    end
    resuming.foresee(paths, options.overwrite)
end

--- Prints a plan: `text`, with what ranks take, or a script for Slurm. `plan_of(part)` plans
-- another part.
function command.print_plan(made, text, options, plan_of)
    if options.slurm then
        local script, idle = cli.checked(slurm.script, made, options.words, options, plan_of)
        cli.print(script)
        if idle > 0 then
            cli.warn("there is nothing to do for %d of %d ranks: ask for less", idle, options.ranks)
        end
        return warn_of_results(options)
    end
    local shared = options.ranks and cli.checked(rank_plan.of, made, options)
    cli.print(text)
    print_more(made)
    if shared then
        cli.print(rank_plan.text(shared))
    end
end

--- Ends the program if options are given that say something about a recipe: there is none.
function command.refuse_without_recipe(options)
    local names = {}
    for _, option in ipairs(command.options) do
        if options.given[option[1]:gsub("-", "_")] and not option.alone then
            names[#names + 1] = "--" .. option[1]
        end
    end
    if names[1] then
        cli.wrong("%s without --recipe FILE says nothing: there are no steps to apply %s to",
            table.concat(names, ", "), #names > 1 and "them" or "it")
    end
end

local function save_snapshots(pipeline, options)
    return snapshots.save(pipeline, options.snapshots, {row = options.row
        and pipeline:rows_of {options.row, options.row}[1], overwrite = options.overwrite})
end

local function plan_snapshots(pipeline, options)
    call_budget.part("--snapshots", function()
        save_snapshots(pipeline, options)
    end)
end

-- Plans what --plan says, of a recipe: with what the command does beside the run.
local function plan_kind(scan, pipeline, source, options, made)
    if options.sweep then
        plan_sweep(scan, source, options)
    elseif options.snapshots then
        plan_snapshots(pipeline, options)
    else
        plan_whole(made, options)
    end
end

--- Does what the options ask for. `talk` has the caller's functions for messages: say, detail
-- (what only --verbose tells) and warn.
function command.run(scan, options, talk)
    local say = talk.say
    check(options)
    local source = source_of(options)
    for _, text in ipairs(options.print_recipe and {} or source.told) do
        say("%s", text)
    end
    if options.sweep and not (options.plan or options.print_recipe) then
        return run_sweep(scan, source, options, talk)
    end
    local rows = options.row and {options.row, options.row} or options.rows
    local pipeline = options.vertical and vertical(scan, source, options, talk)
        or pipeline_of(scan, source, options, nil, rows)
    if options.print_recipe then
        cli.print(recipe_text.text(chain.resolved(pipeline.chain)))
    elseif options.plan then
        local made = pipeline:plan()
        tell_scan(scan, pipeline, options, talk)
        tell_layout(pipeline, made, options, talk)
        plan_kind(scan, pipeline, source, options, made)
        command.print_plan(made, report.text(made, {level = options.verbose and "all"
            or "plan", ranks = options.ranks}), options, function(part)
                return pipeline:part({part = part}):plan()
            end)
        command.draw_plan(made, options, say)
    elseif options.snapshots then
        tell_scan(scan, pipeline, options, talk)
        plan_snapshots(pipeline, options)
        tell_look(pipeline, talk)
        local done = save_snapshots(pipeline, options)
        say("pictures   %s, one after every step", options.snapshots)
        say(MEMORY, done.predicted, done.peak,
            call_budget.peak(done.plan.job.devices[1].id))
    else
        run_whole(pipeline, options, talk)
    end
end

return command
