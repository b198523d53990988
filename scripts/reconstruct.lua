--- Reconstructs a tomography scan: HDF5 in (Data Exchange or NXtomo), HDF5 out (NXtomoproc), in
-- chunks of rows that fit.

local mb = require "moonbeam"
local batch_script = require "moonbeam.internal.command_line.batch_script"
local batch_words = require "moonbeam.internal.command_line.batch_words"
local cli = require "moonbeam.internal.cli"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local command = require "moonbeam.pipeline.command"
local result_layouts = require "moonbeam.internal.command_line.result_layouts"
local declared = require "moonbeam.internal.declared"
local resuming = require "moonbeam.internal.command_line.resuming"
local surface = require "moonbeam.internal.command_line.surface"
local process_memory = require "moonbeam.internal.process_memory"
local file_name = require "moonbeam.internal.file_name"
local rank_journal = require "moonbeam.pipeline.shares.rank_journal"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local rank_result = require "moonbeam.pipeline.shares.rank_result"
local rank_run = require "moonbeam.pipeline.shares.rank_run"
local axis_edges = require "moonbeam.tomo.axis.axis_edges"
local step_search = require "moonbeam.pipeline.imports.step_search"
local iterative = require "moonbeam.pipeline.iterative"
local method_options = require "moonbeam.tomo.method_options"
local obeyed = require "moonbeam.scan.statements.obeyed"
local part_record = require "moonbeam.pipeline.shares.part_record"
local part_rows = require "moonbeam.pipeline.shares.part_rows"
local team = require "moonbeam.pipeline.shares.team"
local report = require "moonbeam.pipeline.report"
local lists = require "moonbeam.scan.lists"
local method = require "moonbeam.tomo.method"
local ranges = require "moonbeam.scan.series.ranges"

local entries, opening = method.options, declared.of(mb.scan.open).options
local named = table.move(iterative.names, 1, #iterative.names, #entries.method.choices + 1,
    {table.unpack(entries.method.choices)})
named[#named + 1] = {gridrec = "fourier", fbp_cuda = "fbp", lprec = "fourier", mbir = "fista",
    sirt_cuda = "sirt", cgls_cuda = "cgls", sart_cuda = "sart", tv = "fista", em = "mlem",
    fourierrec = "fourier", linerec = "fbp"}

-- The flags of the options of iterative methods: their values are checked when the method is known.
local of_methods = cli.of_entries(method_options.list, function(option)
    local words = option.entry.kind == "boolean" and {["true"] = "yes", ["false"] = "no"} or {}
    local text = option.default and (" (default %s)"):format((option.default:gsub("%a+", words)))
        or ""
    return {library = option.name, doc = ("%s: %s%s"):format(option.of, option.entry.doc, text)}
end)

-- The flips of frames, and what other programs call them.
local flips = cli.choice("none", "rows", "columns", "both")
local FLIPS <const> = {["up-down"] = "rows", ud = "rows", flipud = "rows", flip_ud = "rows",
    ["left-right"] = "columns", lr = "columns", fliplr = "columns", flip_lr = "columns"}

local words <const>, sbatch <const> = batch_script.divided(arg)
local options = cli.parse(words, {
    usage = "reconstruct SCAN [-o RESULT] [options]",
    summary = "Reconstructs a parallel-beam tomography scan by the direct Fourier method or "
    .. "filtered back-projection.",
    {"scan", positional = true, required = true, doc = "HDF5 file, Data Exchange or NXtomo; "
        .. "or images (with --angles): a TIFF stack, a folder or pattern of TIFF files, Zarr; "
        .. "FOLDER:41:220 are its files 41 to 220"},
    {"output", short = "o", value = "FILE", doc = "result: FILE.h5; a TIFF stack, FILE.tif or "
        .. "FILE.ome.tif; or OME-Zarr, FILE.zarr (default: SCAN with -volume.h5)"},
    cli.shared.overwrite,
    resuming.option "go on with an interrupted run, from RESULT.unfinished",
    {"discard", doc = "remove what an interrupted run has left, and start anew"},
    {"plan", also = {"dry-run", "estimate"},
        doc = "print chunks, bytes and peak, read no frames, write nothing"},
    {"png", value = "FILE", doc = "with --plan: a picture of the memory over the steps, FILE.png "
        .. "or FILE.svg"},
    {"center", short = "c", value = "X|TOP,BOTTOM|auto", default = "auto",
        also = {"rotation-axis", "cor", "axis", "rotation-center", "center-of-rotation",
            "centre"},
        doc = "0-based column of the rotation axis: halfway down the detector, or those at its "
            .. "first and last row; "
            .. "auto: by opposite projections, checked by centers of mass and trial slices"},
    {"center-picture", value = "FILE",
        doc = "PNG of how well opposite projections match over the columns of the axis"},
    {"axis-tilt", value = "DEG", type = cli.between(-45, 45),
        doc = "lean of the axis in the detector's plane; positive: further right in lower rows, "
            .. "like a backslash"},
    -- Objects larger than the field of view are usual, and so is a little noise.
    cli.option(entries.filter, {short = "f", default = "shepp-logan", also = {"fbp-filter",
        "window"}}),
    cli.option(entries.cutoff),
    cli.option(entries.padding, {default = "edge"}),
    cli.option(entries.pad_width, {value = "PX", default = false}),
    {"half-acquisition", also = {"half-tomo", "double-fov"},
        doc = "a whole turn with the axis near an edge of the detector: a field "
        .. "of view of up to twice its width (default: as SCAN says)"},
    {"no-half-acquisition", library = "half_acquisition = false",
        doc = "it is none, also where SCAN says so"},
    {"vertical-shifts", value = "LIST", doc = "rows to shift each projection by: "
        .. lists.FORMS .. ", whose @units may be a length; with - before its name the other way"},
    {"angle-weights", value = "auto|none|LIST", default = "auto",
        doc = "of direct methods, for angles that do not cover half a turn evenly: "
            .. entries.weights.doc .. "; or a list, as for --vertical-shifts"},
    {"shifted-rows", value = "mark|leave-out", type = cli.choice("mark", "leave-out"),
        doc = "rows that --vertical-shifts take from outside the detector: marked in the result, "
            .. "or left out of it (default: mark)"},
    cli.option(entries.method, {short = "m", also = {"algorithm", "reconstruction-algorithm",
        "recon-algorithm"}, type = cli.choice(table.unpack(named)), doc = entries.method.doc
        .. "; or an iterative one, with the options below that name it: "
        .. table.concat(iterative.names, ", ")}),
    of_methods,
    cli.option(entries.mode),
    {"rows", short = "r", value = "A:B", type = cli.range, also = {"slice", "slices", "start-row",
        "end-row"},
        doc = "rows to reconstruct, 1-based, inclusive (default: all); the axis is searched in "
            .. "them, so it may differ by some hundredths of a column"},
    {"part", value = "K/N", type = cli.part, doc = "only the K-th of N shares of the rows, into "
        .. "RESULT-part-K-of-N.h5, for processes that know nothing of each other, such as a Slurm "
        .. "array; moonbeam join makes one result of the parts"},
    {"size", short = "n", value = "N", type = cli.up_to(1 << 20),
        doc = "pixels of a side of the slices (default: the columns of the detector)"},
    {"circle", value = "PART", type = cli.number, default = 1,
        doc = "circular mask as a part of the half-width, 0: none"},
    cli.option(entries.accuracy),
    cli.shared.devices, cli.shared.budget_of_each,
    {"chunk", value = "ROWS", type = cli.count, also = {"block", "nsino-per-chunk"},
        doc = "rows per chunk (default: as many as fit the budget)"},
    {"output-dtype", value = "NAME", also = {"dtype", "output-type"}, library = "dtype",
        type = cli.choice("float32", "float16", "uint16", {u16 = "uint16", f32 = "float32",
            f16 = "float16", float = "float32", half = "float16"}),
        default = "float32",
        doc = "type of the stored values; the volume says how they are scaled, as CF "
            .. "(scale_factor, add_offset) and NeXus do"},
    {"output-range", library = "range", value = "LOW:HIGH", type = cli.pair "LOW:HIGH",
        doc = "values stored as 0 and 65535 (default: what nine slices have, from the first to "
            .. "the last, and a quarter more)"},
    {"slices-per-file", value = "N", type = cli.count, doc = "write the volume as files of N "
        .. "slices, beside RESULT, which shows "
        .. "them as one; faster on fast disks"},
    result_layouts.OPTIONS,
    {"layout", value = "NAME", type = cli.choice("nabu", "httomo"), doc = "the volume also where "
        .. "the readers of another program look for it in an HDF5 file: nabu: "
        .. "/ENTRY/reconstruction/results/data (RESULT is SCAN_rec.hdf5 by default); httomo: "
        .. "/data, /angles"},
    {"no-overlap", library = "overlap",
        doc = "read, compute and write one after the other: half the memory, slower"},
    {"threads", value = "N", type = cli.up_to(64), also = {"nproc", "ncore", "jobs"},
        doc = "threads that read, and as many that "
        .. "write (default: by the processors)"},
    {"pinned", value = "SIZE", type = cli.bytes_from(1 << 20),
        doc = "pinned host memory for reading and writing (default: 256 MiB)"},
    {"flip", value = "none|rows|columns|both", also = {"mirror", "flip-frames"},
        type = function(text)
            return flips(FLIPS[text] or text)
        end,
        doc = "undo that frames are stored upside down (rows, or up-down), mirrored (columns, or "
            .. "left-right) or both; rows and columns still count in the stored frames (default: "
            .. "as SCAN says)"},
    {"reverse-rotation", doc = "the stage turns the other way than the angles say (default: as "
        .. "SCAN says)"},
    {"no-reverse-rotation", library = "reverse_rotation = false",
        doc = "it turns as the angles say, also where SCAN says otherwise"},
    {"flat-mode", value = "NAME", type = cli.choice("mean", "median"), default = "mean",
        doc = "how flats and darks are averaged"},
    cli.option(mb.recon.OPTIONS.flat_interpolation, {value = "NAME", default = "mean",
        type = cli.choice("mean", "linear")}),
    cli.option(mb.recon.OPTIONS.normalize_current),
    {"no-log", library = {"log", "log = false"},
        doc = "the data are line integrals already: flats and darks are left out"},
    {"preview", short = "p", value = "FILE", also = {"picture"},
        doc = "PNG of the middle slice, or those of --preview-rows, with a scale bar and what was "
            .. "done"},
    cli.shared.preview_range, cli.shared.preview_rows,
    {"angles", value = "FIRST:LAST", type = cli.pair "FIRST:LAST",
        doc = "angles of the first and the last projection, the others "
        .. "evenly between, where the file has none; needs --angle-unit"},
    cli.option(opening.angle_unit, {value = "UNIT", type = cli.choice("deg", "rad")}),
    {"pixel-size", value = "UM", type = cli.between(1e-7, 1e6),
        doc = "detector pixel size in micrometers, where the file does not say"},
    cli.option(opening.data, {"data-path", value = "PATH"}),
    cli.option(opening.flats, {"flats-path", value = "[FILE:]/PATH[,...]"}),
    cli.option(opening.darks, {"darks-path", value = "[FILE:]/PATH[,...]"}),
    {"flats", library = "flats_file", value = "FILE[:/PATH]|COUNTS",
        doc = "a file of their own for the flats: HDF5, TIFF, a folder "
        .. "or pattern of TIFF files, Zarr, or several between commas; ranges of the series that "
        .. "SCAN is, FOLDER:21:40,221:240; or a number, the counts of every pixel without the "
        .. "sample"},
    {"darks", library = "darks_file", value = "FILE[:/PATH]|COUNTS",
        doc = "the same for the darks"},
    cli.option(opening.angles, {"angles-path", value = "LIST", library = "angles = PATH"}),
    cli.option(opening.image_key, {"image-key-path", value = "LIST"}),
    cli.option(opening.flat_positions, {"flat-positions-path", value = "LIST"}),
    cli.option(opening.current, {"current-path", value = "LIST"}),
    cli.option(opening.flats_current, {"flats-current-path", value = "LIST"}),
    cli.option(opening.flats_exposure, {value = "RATIO"}),
    cli.option(opening.bad_flats, {value = "N,...", type = cli.extents()}),
    cli.option(opening.bad_darks, {value = "N,...", type = cli.extents()}),
    cli.option(opening.bad_projections, {value = "N,...", type = cli.extents()}),
    cli.option(opening.counts_as, {value = "KIND"}),
    cli.option(opening.axes, {value = "ORDER"}),
    cli.option(opening.entry, {value = "PATH"}),
    cli.options(opening, {}, "allow_missing", "allow_external"),
    cli.option(opening.wait, {value = "SECONDS"}),
    cli.shared.verbose, cli.shared.quiet, cli.shared.log, cli.shared.progress,
    command.options,
    suggest = step_search.suggestion,
    extra = function(word)
        return mb.system.stat(word) and "moonbeam batch reconstructs several scans" or nil
    end,
    notes = "--budget limits the pool of arrays and scratch. The process takes more: --pinned, "
    .. "the program and its libraries, "
        .. "buffers. --plan says how much at most: what to give a batch system (Slurm's --mem).\n"
        .. "The volume is attenuation per meter where the pixel size is known, else per pixel.\n"
        .. "Exit status: 0 done, 1 failed, 2 wrong use, 130 interrupted. A result file that "
            .. "exists is complete.\n"
        .. "A run that is interrupted or killed leaves RESULT.unfinished, if anything was "
            .. "finished: --resume goes on with it, --discard removes it.",
})

options.words, options.sbatch = words, sbatch
local say, detail = cli.speakers(options.slurm and {quiet = true} or options)
options.words, options.sbatch = words, sbatch
local warn = cli.warn

-- What an interrupted run has kept.
function options.tell(text)
    cli.tell(resuming.told(options, text))
end
if not options.recipe then
    command.refuse_without_recipe(options)
    if options.input == "line integrals" then
        options.no_log = true
    elseif options.input and options.input ~= "transmission" then
        cli.wrong("--input is \"%s\"; give transmission or \"line integrals\"", options.input)
    end
end
local alone = options.no_log or options.input == "transmission" and not options.recipe
if cli.preview_range(options) and options.output_dtype ~= "float32" then
    cli.wrong("--preview-range is in the values of a float32 volume; --output-dtype %s stores "
        .. "codes", options.output_dtype)
end
batch_words.check(options)
if options.ranks and not options.plan then
    cli.wrong("--ranks needs --plan: start a run with mpirun -n %d or srun", options.ranks)
elseif options.ranks_per_node and not options.ranks then
    cli.wrong("--ranks-per-node needs --ranks: how many there are in all")
elseif options.ranks_per_node and options.ranks_per_node > options.ranks then
    cli.wrong("--ranks-per-node %d is more than all ranks, --ranks %d", options.ranks_per_node,
        options.ranks)
elseif options.ranks and options.part then
    cli.wrong("--ranks share the work by MPI, --part without it: give one of them")
end
if options.reverse_rotation and options.no_reverse_rotation then
    cli.wrong("--reverse-rotation and --no-reverse-rotation say the opposite: give one of them")
elseif options.no_reverse_rotation then
    options.reverse_rotation = false
end
if options.resume and options.discard then
    cli.wrong("--resume goes on with what --discard removes: give one of them")
end

if options.part and team.ranks() then
    cli.wrong("--part is for processes that know nothing of each other; the %d ranks share the "
        .. "rows without it", team.ranks())
elseif options.part then
    for _, name in ipairs {"preview", "center_picture", "sweep", "snapshots", "vertical", "row",
        "tiff_layout", "zarr_layout"} do
        if options[name] then
            cli.wrong("--%s cannot be used with --part: it is for a run without parts, or for what "
                .. "moonbeam join makes of them", name:gsub("_", "-"))
        end
    end
end

local scan_place = ranges.parts(options.scan)
local output = options.output or scan_place:gsub("/?[^/]*[*?].*$", ""):gsub("/+$", "")
    :gsub("%.[^./]*$", "") .. (options.layout == "nabu" and "_rec.hdf5" or "-volume.h5")
local function check_outputs(name)
    local inputs = {scan = scan_place}
    for _, input in ipairs {"vertical_shifts", "angle_weights", "flats_path", "darks_path",
        "angles_path", "flats", "darks",
        "image_key_path", "flat_positions_path", "current_path", "flats_current_path",
        "recipe"} do
        inputs[input] = options[input] and ranges.parts(options[input])
    end
    for _, path in ipairs(options.steps or {}) do
        inputs[#inputs + 1] = path
    end
    local extensions = file_name.RESULTS
    if options.part then
        cli.output("output", name, {extensions = extensions, replace = true})
        name = part_rows.path(name, options.part)
    end
    -- A job goes on with a result that is there, and is not asked to replace it.
    local replaces = setmetatable({overwrite = options.overwrite or options.resume
        or options.slurm and resuming.finds(name)}, {__index = options})
    cli.outputs(replaces, inputs, {
        {"output", path = name, extensions = extensions},
        {"preview"}, {"center-picture"}})
end
options.result = output
cli.slices_per_file(options, output)
-- The file of a recipe's step save is not known yet.
result_layouts.check(options, (options.output or not options.recipe) and output or nil)
if options.output_dtype == "float16" and not file_name.problem(output, file_name.TIFF) then
    cli.wrong("--output-dtype float16 is not for TIFF files; --output is %s: give one that ends in "
        .. ".h5 or .zarr, or leave --output-dtype out", output)
end
if options.png then
    if not options.plan then
        cli.wrong("--png is the picture of a --plan; --preview is that of a slice")
    end
    cli.outputs(options, {scan = scan_place, recipe = options.recipe},
        {{"png", extensions = {"png", "svg"}}})
end
-- A scan that is not there is what is wrong, not the result that would be beside it.
if not mb.system.stat(scan_place) and not options.scan:find "[*?]" then
    local file, path = options.scan:match "^([^:]+):(/.*)$"
    if file and mb.system.stat(file) then
        cli.wrong("SCAN is %s: give the file alone, as in %s --data-path %s", options.scan, file,
            path)
    elseif (options.wait or 0) == 0 then
        cli.stop(("cannot open '%s': No such file or directory; check the name and the current "
            .. "folder"):format(options.scan))
    end
end

-- What took how long beside the reconstruction itself: {name, seconds}, in order.
local phases, latest = {}, mb.system.clock()
local function phase(name)
    local now = mb.system.clock()
    phases[#phases + 1] = ("%s %.2f s"):format(name, now - latest)
    latest = now
end
phases[1] = mb.system.age() and ("program %.2f s"):format(mb.system.age())

command.share_node(options)
local devices = cli.devices({device = options.device, budget = options.budget})

if options.no_log and (options.flats_path or options.darks_path) then
    cli.wrong("--no-log is for line integrals, which need no flats and darks: leave --flats-path "
        .. "and --darks-path out")
end

if options.angles and (options.angles_path or not options.angle_unit) then
    cli.wrong("--angles needs --angle-unit, deg or rad, and no --angles-path")
end

for _, name in ipairs {"flats", "darks"} do
    if options[name] and (options[name .. "_path"] or alone) then
        cli.wrong("--%s cannot be used with --%s: give one of them", name,
            options.no_log and "no-log" or alone and "input" or name .. "-path")
    end
end

if options.slurm and (options.output or not options.recipe) then
    check_outputs(output)
elseif not (options.plan or options.recipe) then
    check_outputs(output)
    resuming.settle(options, options.part and part_rows.path(output, options.part) or output,
        function()
            check_outputs(output)
        end)
end

-- A name that is FILE:/PATH; nil for a FILE.
local function path_in(name)
    return name and name:find ":/" and name or nil
end

phase("device")
local opened, problem = mb.scan.open(options.scan, {
    data = options.data_path,
    flats = not alone and (options.flats_path or path_in(options.flats)),
    darks = not alone and (options.darks_path or path_in(options.darks)),
    flats_file = options.flats and not path_in(options.flats) and options.flats or nil,
    darks_file = options.darks and not path_in(options.darks) and options.darks or nil,
    angles = options.angles or options.angles_path,
    image_key = options.image_key_path,
    flat_positions = options.flat_positions_path,
    current = options.current_path,
    flats_current = options.flats_current_path,
    flats_exposure = options.flats_exposure,
    angle_unit = options.angle_unit,
    pixel_size = options.pixel_size and options.pixel_size * 1e-6,
    bad_flats = options.bad_flats, bad_darks = options.bad_darks,
    bad_projections = options.bad_projections,
    counts_as = options.counts_as,
    axes = options.axes,
    entry = options.entry,
    allow_external = options.allow_external,
    allow_missing = options.allow_missing,
    wait = options.wait,
    tell = not options.quiet and cli.tell or nil,
})
local scan <close> = cli.must(opened, problem)
phase("scan")
if options.half_acquisition and options.no_half_acquisition then
    cli.wrong("--half-acquisition and --no-half-acquisition contradict each other: give one")
elseif options.no_half_acquisition then
    options.half_acquisition = false
elseif not options.recipe then -- what the scan says
    options.half_acquisition = options.half_acquisition or scan.says.half_acquisition or nil
end

options.result_entry = options.entry or scan.data_path and scan.data_path:match "^/(entry%w*)/"
if options.layout and file_name.problem(output, file_name.HDF5) then
    cli.wrong("--layout is for HDF5 files; --output is %s: give one that ends in .h5", output)
elseif options.layout and (options.sweep or options.snapshots) then
    cli.wrong("--layout is for the volume of a whole run; --sweep and --snapshots have none")
end

if options.recipe then
    options.devices, options.output, options.check_outputs = devices, output, check_outputs
    cli.tried(command.WORDS, command.run, scan, options, {say = say, detail = detail, warn = warn})
    return
end

output = options.part and part_rows.path(output, options.part) or output

local dtype = surface.library_type(options.output_dtype)
local range = options.output_range
if range then
    if range[1] >= range[2] then
        cli.wrong("--output-range is \"%g:%g\"; give two numbers as LOW:HIGH, the lower first",
            range[1], range[2])
    elseif dtype ~= "u16" then
        cli.wrong("--output-range is for --output-dtype uint16")
    end
end

-- What the command line has in common with tomo.reconstruct.
local shared = declared.without(entries, "center", "scale", "weights")
local settings = declared.part(shared, options)
settings.device, settings.devices = devices[1].id, devices
for _, option in ipairs(of_methods) do
    local name = option.library
    if options.given[name] then
        local wrong = method_options.problem(options.method, name, options[name], "--" .. option[1])
        if wrong then
            cli.wrong("%s", wrong)
        end
        settings[name] = options[name]
    end
end
if iterative.is(options.method) then
    for _, name in ipairs {"filter", "cutoff", "padding", "pad_width", "mode", "accuracy",
        "axis_tilt", "angle_weights"} do
        if options.given[name] then
            cli.wrong("--%s is for the direct methods; --method %s does not have it",
                name:gsub("_", "-"), options.method)
        end
        settings[name] = nil
    end
end
settings.dtype = dtype
settings.range = range
settings.slices_per_file = options.slices_per_file
settings.chunk = options.chunk
settings.overlap = not options.no_overlap and "auto"
settings.threads = options.threads
settings.pinned = options.pinned
local shifts_text
if options.vertical_shifts then
    settings.vertical_shifts, shifts_text = cli.checked(mb.recon.read_shifts, scan,
        options.vertical_shifts)
end
local shifts_path = options.vertical_shifts and options.vertical_shifts:gsub("^%-", "")
settings.shifted_rows = options.shifted_rows and options.shifted_rows:gsub("-", "_") or nil
settings.flip, settings.reverse_rotation = options.flip, options.reverse_rotation
if options.given.angle_weights then
    local word = options.angle_weights == "auto" or options.angle_weights == "none"
    settings.angle_weights = word and options.angle_weights
        or cli.checked(mb.recon.read_shifts, scan, options.angle_weights, "weights")
end
settings.flat_mode = options.flat_mode
settings.flat_interpolation = options.flat_interpolation
settings.normalize_current = options.normalize_current
settings.log = not options.no_log
settings.quiet = options.quiet
settings.rows = options.rows and {options.rows[1] or 1, options.rows[2] or scan.rows}
settings.part, settings.ranks = options.part, team.ranks(options.ranks)
if scan.pixel_size then
    -- Over a whole turn every ray is seen twice, but not in a half acquisition.
    settings.scale = (options.half_acquisition and 2
        or 1) * math.pi / scan.n_angles / scan.pixel_size
end
settings.axis_tilt = options.axis_tilt and math.rad(options.axis_tilt)
settings.center = tonumber(options.center)
local top, bottom = options.center:match("^([^,]+),([^,]+)$")
if tonumber(top) and tonumber(bottom) then
    if options.axis_tilt or scan.rows == 1 then
        cli.wrong("--center %s says how the axis leans; give one column with %s", options.center,
            options.axis_tilt and "--axis-tilt" or "a scan of one row")
    end
    settings.center = (top + bottom) / 2
    settings.axis_tilt = math.atan((bottom - top) / (scan.rows - 1))
elseif not settings.center and options.center ~= "auto" then
    cli.wrong("--center is \"%s\"; give a column number, two of them as TOP,BOTTOM, or auto",
        options.center)
end
for _, column in ipairs {top or settings.center, bottom} do
    if not (tonumber(column) >= 0 and tonumber(column) <= scan.cols - 1) then
        if options.half_acquisition and not top then
            cli.wrong("--center %g lies outside the detector, columns 0 to %d; step stitch joins "
                .. "the frames of such a scan: a recipe with {\"stitch\", center = %g} after "
                .. "minus_log, and {\"fbp\", center = %g}", column, scan.cols - 1, column, column)
        end
        cli.wrong("--center %g lies outside the detector, columns 0 to %d", column, scan.cols - 1)
    end
end

if top and math.abs(settings.axis_tilt) >= math.pi / 4 then
    cli.wrong("--center %s is TOP,BOTTOM: the axis would lean by %.0f degrees, and by less "
        .. "than 45 it may; one column with decimals has a point: %s.%s", options.center,
        math.abs(math.deg(settings.axis_tilt)), top, bottom)
end

if options.center_picture and options.center ~= "auto" then
    cli.wrong("--center-picture shows the search for the axis, which --center %s leaves out",
        options.center)
end

-- Counts without flats, or nothing but NaN, give a complete volume of nothing: found before the
-- work begins.
local values = {warnings = {}}
values.kind, values.text = cli.tried(nil, mb.recon.expected_values, scan, settings)

local plan = cli.checked(mb.recon.plan, scan, settings)
if options.preview then
    command.preview_slices(options, plan.volume[1], plan.first_row, plan.upward)
end

-- What else the command does: the edges of the detector are looked at, and pictures are drawn.
local edges = {}
local function look_at_edges()
    edges.half, edges.larger = axis_edges.look(scan, settings, settings.center)
end
local axis = {} -- what the search for the axis tells, for the result
local function draw_axis()
    mb.recon.center_picture(options.center_picture, axis,
        {overwrite = options.overwrite or options.resume})
end
local function preview_of(made)
    return {shape = made.volume, dtype = made.dtype, first = made.first_row, upward = made.upward,
        pixel_size = scan.pixel_size, row_size = scan.pixel_size,
        caption = ("method %s%s, axis at column %.2f, values %s"):format(made.method,
            iterative.is(options.method) and "" or ", filter " .. options.filter,
            made.settings.center or scan.cols - 1, scan.pixel_size and "1/m" or "1/px")}
end
local parts = {}
if settings.center then
    parts[1] = {"a look at the edges of the detector", look_at_edges}
end
if options.center_picture then
    parts[#parts + 1] = {"--center-picture", draw_axis}
end
parts[#parts + 1] = options.preview and command.preview_part(options, preview_of(plan)) or nil
command.plan_parts(plan.made, parts)
plan.process = not options.ranks and report.process(plan.made) or nil -- else: that of a rank
local taken <close> = setmetatable({}, {__close = function(scopes)
    for _, scope in pairs(scopes) do
        scope:finish()
    end
end})
local live <const> = mb.pool.stats(plan.device).live
if not options.plan then
    for _, device in ipairs(plan.devices) do
        taken[device.id] = mb.pool.scope(device)
    end
    values = cli.tried(nil, mb.recon.check_values, scan, settings)
end

say("%s", scan:describe())
local tell_values = values.kind == "flats" and detail or say
tell_values("values     %s", values.text)
if shifts_text then
    say("shifts     %s", shifts_text)
end
result_layouts.tell(say, options, output, {shape = plan.volume, dtype = plan.dtype})
for _, text in ipairs(values.warnings) do
    warn("%s", text)
end
for _, text in ipairs(scan.warnings) do
    warn("%s", text)
end
command.tell_statements(scan, {half_acquisition = options.half_acquisition or false,
    flip = obeyed.flip_of(settings.flip), reversed = settings.reverse_rotation,
    shifts = {[shifts_path or false] = true},
    vertical = shifts_path ~= nil}, say, warn)
if settings.center then
    command.tell_axis(scan, settings.center, say)
end

if settings.center and not options.plan then
    cli.tried(nil, call_budget.done, "a look at the edges of the detector", look_at_edges)
    if edges.half then
        warn("%s", edges.half)
    elseif edges.larger then
        say("axis       column %.2f, given; %s", settings.center, edges.larger)
    end
end

local ranks = team.of(settings)
local kept -- what another run can go on with; nil in a dry run
local function find_center(source)
    local center, how, found
    if kept then
        center, found = kept:value "center"
    end
    axis = found or {}
    how = axis.how
    if not center then
        center, how, axis = ranks.once(function()
            return mb.recon.find_center(source, settings)
        end)
        axis.how = how
        if kept then
            kept:measured("center", center, axis)
        end
    end
    say("axis       column %.2f, %s (%s)", center, axis.verdict, how)
    if axis.remedy or axis.notice then
        warn("%s", axis.remedy or axis.notice)
    end
    command.tell_axis(scan, center, warn, axis.searched)
    if options.center_picture and axis.curve and team.speaks() then
        call_budget.done("--center-picture", draw_axis)
        say("picture    %s (the axis)", options.center_picture)
    elseif options.center_picture and not axis.curve then
        warn("no projections are opposite, so there is no --center-picture of how they match")
    end
    return center
end

if options.plan then
    command.print_plan(plan.made, mb.recon.describe(plan, {level = options.verbose and "all"
        or "plan"}), options, function(part)
            return mb.recon.plan(scan, setmetatable({part = part}, {__index = settings})).made
        end)
    command.draw_plan(plan.made, options, say)
    return
end
cli.tried(nil, rank_plan.admit, plan.made)
phase("plan")

kept = cli.tried(nil, rank_journal.open, ranks, plan.made, output, options)
local _ <close> = kept
if kept and kept:is_complete() then
    say("wrote      %s (an earlier run was interrupted after its last step)", output)
    return
end

-- The axis of a half acquisition makes the size of the volume; otherwise it can wait until the
-- result file is open. Compressed frames are decoded once, for the axis and the slices.
local _ <close> = process_memory.hold(plan.device, call_budget.peak(plan.device.id)
    - mb.pool.stats(plan.device).live)
local searched = not plan.exact
local frames <close> = options.half_acquisition and mb.recon.decoded(scan, settings, plan, searched)
if options.half_acquisition and searched then
    plan = mb.recon.settle(frames, plan, {center = find_center(frames)})
end

local parameters = declared.part(shared, options)
for _, option in ipairs(of_methods) do
    parameters[option.library] = settings[option.library]
end
parameters.vertical_shifts = options.vertical_shifts
parameters.shifted_rows = settings.shifted_rows
parameters.flip, parameters.reverse_rotation = options.flip, options.reverse_rotation
parameters.angle_weights = settings.angle_weights and options.angle_weights
parameters.axis_tilt = settings.axis_tilt and math.deg(settings.axis_tilt)
parameters.method, parameters.mode = plan.method, plan.mode
parameters.flat_mode, parameters.values = options.flat_mode, values.kind
parameters.flat_interpolation = options.given.flat_interpolation and options.flat_interpolation
parameters.normalize_current = scan.currents and options.normalize_current
parameters.rows = ("%d:%d"):format(plan.rows[1], plan.rows[2])
parameters.device = devices[1].id
parameters.devices = plan.device_ids
parameters.devices_differ = plan.difference
local making = {
    shape = plan.volume,
    dtype = plan.dtype,
    units = scan.pixel_size and "1/m" or "1/px",
    pixel_size = scan.pixel_size,
    first_row = plan.first_row,
    upward = plan.upward,
    outside = plan.outside,
    projections = scan.n_angles,
    overwrite = options.overwrite,
    slices_per_file = options.slices_per_file,
    tiff_layout = options.tiff_layout, zarr_layout = options.zarr_layout,
    layout = options.layout,
    entry = options.result_entry,
    angles = options.layout and scan.angles,
    input = options.scan,
    parameters = parameters,
    unfinished = kept and kept.kept,
}
local result <close> = rank_result.create(ranks, output, making, plan.chunk)

local source <close> = mb.recon.decoded(frames or scan, settings, plan, not plan.exact)
plan = cli.checked(mb.recon.settle, source, plan, {center = not plan.exact and find_center(source)
    or nil})
result:parameters {center = plan.settings.center}
local scaling
if dtype ~= "f32" then
    if plan.codes and plan.codes < 256 then
        warn("--output-range is so wide that the values use about %.0f of the 65536 codes",
            plan.codes)
    end
    range = plan.settings.range
    scaling = {(range[2] - range[1]) / (dtype == "u16" and 65535 or 1), range[1] + 0.0}
    result:scaling(scaling[1], scaling[2])
    say("stored     %.6g as 0, %.6g as %d", range[1], range[2], dtype == "u16" and 65535 or 1)
end
say("%s", mb.recon.describe(plan, {level = options.verbose and "all" or "run"}))
phase(options.center == "auto" and "result and axis" or "result")

plan.journal = kept
local done = mb.recon.run(source, plan, result)

plan = done.plan -- as it ran

local nonfinite, clamped, nonpositive = table.unpack(done.counts)
local below, above, nan = table.unpack(done.clipped)
for _, text in ipairs(done.warnings) do
    warn("%s", text)
end
phase("run")
local measured, predicted = live + taken[plan.device.id]:finish(), live + plan.peak
predicted = call_budget.with_parts(plan.device.id, predicted, 0)
if kept and kept:resumed() or #done.lost > 0 or ranks.size > 1 then -- what it has done itself
    measured, predicted = done.peak, done.predicted
end
local as_planned = mb.recon.check_bytes("the reconstruction", measured, predicted)
    and done.as_planned
result:provenance {
    clipped_below = below,
    clipped_above = above,
    not_numbers = nan,
    upper_bound_peak_bytes = plan.at_most,
    center = plan.settings.center,
    center_verdict = axis.verdict or "given",
    center_pairs = axis.pair,
    center_pairs_residual = axis.residual,
    center_pairs_uncertainty = axis.uncertainty,
    center_mass = axis.mass,
    center_slices = axis.slices,
    center_pixels_left_out = axis.left_out and axis.left_out.pixels,
    predicted_peak_bytes = predicted,
    measured_peak_bytes = measured,
    measured_as_predicted = as_planned,
    nonfinite_values = nonfinite,
    clamped_pixels = clamped,
    nonpositive_values = nonpositive,
    predicted_pinned_bytes = plan.pinned,
    measured_pinned_bytes = done.pinned,
    seconds = done.seconds,
    resumed = kept and kept:resumed(),
    steps = mb.stream.summary(done.times),
    ranks = rank_run.text(done.done),
}
if options.part then
    part_record.add(result, done.done.plan, making, {options = options, scaling = scaling,
        values = {center = plan.settings.center}, report = done.done})
end
rank_result.complete(ranks, result)
ranks.once(function()
    result:finish()
end)
if options.preview and team.speaks() then
    options.output = output
    command.preview(options, preview_of(plan))
end
phase("completion")
local times = mb.stream.describe(done.times)
say("%s", options.verbose and times or times:match "^[^\n]*")
detail("process    %s", table.concat(phases, ", "))
predicted, measured = call_budget.with_parts(plan.device.id, predicted, measured)
say("memory     predicted %d bytes, measured %d bytes%s", predicted, measured, searched
    and (" (at most %d before the axis was found)"):format(call_budget.peak(plan.device.id)) or "")
for i = 2, #plan.devices do
    local id = plan.devices[i].id
    say("           predicted %d bytes, measured %d bytes on %s",
        #done.lost > 0 and done.expected[id] or plan.made.peaks[id] or 0,
        done.peaks[id] or 0, id)
end
if done.done.ranks then
    say("%s", rank_run.text(done.done))
end
detail("pinned     predicted %d bytes, measured %d bytes", plan.pinned, done.pinned)
local _, resident = process_memory.resident()
detail("resident   %s at most in the process", mb.device.format_bytes(resident))
say("wrote      %s", output)
if options.preview then
    say("picture    %s", options.preview)
end
