--- Deconvolves an image stack with a measured PSF or a model of one: TIFF, OME-Zarr, .npy or HDF5
-- in and out.

local mb = require "moonbeam"
local batch_script = require "moonbeam.internal.command_line.batch_script"
local batch_words = require "moonbeam.internal.command_line.batch_words"
local channel_psfs = require "moonbeam.internal.deconvolve.channel_psfs"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local cli = require "moonbeam.internal.cli"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local file_name = require "moonbeam.internal.file_name"
local gate = require "moonbeam.deconv.value_gate"
local given_image = require "moonbeam.internal.deconvolve.given_image"
local image_list = require "moonbeam.internal.command_line.image_list"
local kept_runs = require "moonbeam.internal.deconvolve.kept_runs"
local result_layouts = require "moonbeam.internal.command_line.result_layouts"
local log = require "moonbeam.internal.log"
local measured_psf = require "moonbeam.internal.command_line.measured_psf"
local noise_told = require "moonbeam.internal.command_line.noise_told"
local process_memory = require "moonbeam.internal.process_memory"
local psf_options = require "moonbeam.internal.command_line.psf_options"
local rank_lines = require "moonbeam.internal.deconvolve.rank_lines"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local results = require "moonbeam.internal.deconvolve.results"
local resuming = require "moonbeam.internal.command_line.resuming"
local slurm_job = require "moonbeam.internal.deconvolve.slurm_job"
local stack_picture = require "moonbeam.pipeline.pictures.stack_picture"
local surface = require "moonbeam.internal.command_line.surface"
local tables = require "moonbeam.internal.tables"
local way = require "moonbeam.internal.deconvolve.way"
local work = require "moonbeam.internal.deconvolve.work"

local rl = declared.of(mb.deconv.richardson_lucy).options
local tiling = declared.of(mb.tiled_deconv.richardson_lucy_volume).options
local landweber = declared.of(mb.deconv.landweber).options
local consensus = declared.of(mb.deconv.gradient_consensus).options
local wiener = declared.of(mb.deconv.wiener).options
local tikhonov = declared.of(mb.deconv.tikhonov).options
local crop = declared.of(mb.psf.crop).options
local RL_ITERATIONS <const>, UNKNOWN_ITERATIONS <const> = 20, 10

local words <const>, sbatch <const> = batch_script.divided(arg)
local options = cli.parse(words, {
    usage = "deconvolve IMAGE [PSF] -o OUT [options], or IMAGE... --into FOLDER [options]",
    summary = "Deconvolves an image or a stack (z, y, x) with a measured point spread function, "
        .. "or a model of one.",
    {"image", positional = true, required = true, many = true,
        doc = ".tif, .npy, .h5 (FILE.h5:/path) or .zarr; integers or floats"},
    {"psf", value = "FILE", doc = "a file of the same kinds, also given as the second argument "
        .. "(default: the model of the options below)"},
    {"output", short = "o", value = "FILE",
        doc = "result, of the image's extents: .tif, .npy, .h5 or .zarr"},
    {"output-dtype", value = "NAME", default = "float32", also = {"dtype", "output-type"},
        type = cli.choice("float32", "uint16", "uint8", {f32 = "float32", u16 = "uint16",
            u8 = "uint8", float = "float32"}),
        doc = "of the result; integers are rounded, and clamped with a warning"},
    result_layouts.OPTIONS,
    image_list.OPTIONS,
    cli.shared.overwrite,
    resuming.option "go on with an interrupted run by tiles, from OUT.unfinished",
    {"discard", doc = "remove what an interrupted run has left, and start anew"},
    {"plan", doc = "print grid, bytes and peak; compute and write nothing"},
    rank_lines.options,
    {"method", short = "m", value = "NAME", also = {"algorithm"},
        type = cli.choice("rl", "gradient_consensus", "landweber", "wiener", "tikhonov",
            {richardson_lucy = "rl", ["richardson-lucy"] = "rl", lucy = "rl"}), default = "rl",
        doc = "rl: Richardson-Lucy; gradient_consensus: the same, stops by itself, but too late "
            .. "where there is less than a photon per voxel (rl with --iterations auto does not); "
            .. "landweber, wiener, tikhonov"},
    cli.option(rl.iterations, {default = false, value = "N", type = cli.or_words(cli.count, "auto"),
        also = {"n", "niter", "iter", "num-iterations"},
        doc = ("how many at most (default: rl %d, landweber %d, gradient_consensus %d); rl: auto "
            .. "ends where held-out photons are predicted best"):format(RL_ITERATIONS,
            landweber.iterations.default, consensus.iterations.default)}),
    cli.option(rl.acceleration, {of = "rl"}),
    cli.option(rl.total_variation, {of = "rl", also = {"tv", "regularization"}}),
    cli.option(rl.tolerance, {of = "rl, landweber"}),
    cli.option(rl.metrics, {doc = "print the misfit and the change of every iteration"}),
    cli.option(wiener.lambda, {default = false,
        doc = ("weight of the regularization (default: wiener %g, tikhonov %g)"):format(
            wiener.lambda.default, tikhonov.lambda.default)}),
    cli.option(landweber.step, {"relaxation", default = false, of = "landweber"}),
    cli.option(consensus.seed, {default = false, of = "gradient_consensus"}),
    {"offset", value = "X", type = cli.number_or "auto",
        doc = "the camera's offset: subtracted from the image, which becomes float32; auto: from "
            .. "the noise of each image"},
    {"gain", value = "X", type = cli.or_words(cli.between(0), "auto"),
        doc = "counts per photon: the image is divided by it, and becomes float32; auto: from the "
            .. "noise of each image"},
    cli.option(rl.background, {default = false, value = "X", of = "rl, gradient_consensus"}),
    {"curve", value = "FILE", doc = "rl: PNG or SVG of the misfit over the iterations, against "
        .. "what noise alone leaves"},
    {"snapshots", value = "FILE", doc = "PNG: the middle plane of the estimate after every so many "
        .. "iterations, side by side"},
    {"every", value = "N", type = cli.count,
        doc = "iterations between --snapshots (default: a ninth of all)"},
    {"mask", value = "FILE",
        doc = "image of the same extents, 0 at bad pixels: not for wiener and tikhonov"},
    cli.option(rl.boundary, {default = false,
        doc = "what continues the image (default: reflect for wiener and tikhonov, else zero)"}),
    {"center", value = "NAME", type = cli.choice("middle", "fft", "maximum", "mass"),
        default = "maximum", doc = "where the origin of a measured PSF is: maximum is the centroid "
            .. "of what is above half of it; a PSF whose maximum or mass lies between voxels is "
            .. "shifted by the fraction"},
    {"psf-background", value = "LEVEL", type = cli.number_or("auto", "faces", "none"),
        default = "auto", doc = "to subtract from a measured PSF: auto (the median of its faces "
            .. "where these are flat, as a camera's offset is; nothing from a model of moonbeam "
            .. "psf), faces (their median), none, or a number"},
    cli.option(crop.energy, {"psf-crop", value = "PART", default = false,
        doc = "crop the PSF to the box that has this part of its sum along every axis"}),
    measured_psf.SPACING,
    psf_options.list(),
    {"psf-size", value = "N", type = cli.extents(),
        doc = "model: lateral extent in px, or Z,Y,X; Y,X is one plane, and the stack is worked on "
            .. "plane by plane (default: the fewest px that hold 98 % of the light of every plane, "
            .. "at most twice the image's)"},
    {"channel", value = "N", type = cli.count,
        doc = "of an image of several only this channel, at all times (default: all, one after "
            .. "another)"},
    {"frame", value = "N", type = cli.count, doc = "of an image of several only this time"},
    given_image.OPTIONS,
    {"tiles", short = "t", value = "MODE", type = cli.choice("auto", "exact", "blended", "none"),
        default = "auto", doc = "rl by tiles: exact seams; blended, independent ones; auto: exact "
            .. "where the whole does not fit the budget"},
    cli.option(tiling.tile, {value = "Z,Y,X"}),
    cli.option(tiling.place, {value = "WHERE", of = "exact tiles"}),
    cli.shared.devices,
    cli.shared.budget_of_each, cli.shared.host_budget,
    {"preview", short = "p", value = "FILE",
        doc = "PNG: maximum projections XY, ZY, XZ of the result, to scale, with a scale bar and "
            .. "what was done; with --into a folder: FOLDER/NAME.png of each image"},
    {"preview-image", value = "FILE", doc = "PNG: the same of the image; with --into a "
        .. "folder, for NAME-image.png"},
    {"write-log", doc = "also write RESULT.log: what ran, options, versions, memory predicted and "
        .. "measured, and all messages"},
    cli.shared.preview_range, cli.shared.preview_planes, cli.shared.sz, cli.shared.verbose,
    cli.shared.quiet, cli.shared.log, cli.shared.progress,
    notes = "--budget limits the pool of arrays and scratch. The process also takes the program, "
        .. "its libraries and buffers.\n"
        .. "What it takes at most is printed: what to give a batch system (Slurm's --mem).\n"
        .. "Images larger than the memory are worked on in tiles; the result is the same (--tiles "
        .. "exact).\n"
        .. "An interrupted run by tiles leaves OUT.unfinished with what was finished: --resume "
        .. "goes on with it,\n--discard removes it. Scratch files are there.\n"
        .. "Spacing, units and the order of channels and times of a TIFF are kept. Results of "
        .. "several channels or times\nare .tif or .zarr, with the axes (t, c, z, y, x).\n"
        .. "With --tolerance, and for gradient_consensus, plans count all iterations: the data "
        .. "decide when it stops.\n"
        .. "IMAGE... --into FOLDER --psf FILE works on several images of one shape, with one plan "
        .. "and one transfer function;\nwith a PSF for each channel every image has its own.\n"
        .. "Exit status: 0 done, 1 failed (with --into: one image or more), 2 wrong use. A result "
        .. "file that exists is complete.",
})

cli.preview_range(options)
-- Several ranks share the tiles of one image: the first one speaks, and writes the result.
local cluster, leads = mb.cluster, mb.cluster.rank == 0
if not leads then
    options.quiet, options.snapshots, options.every = true, nil, nil
end
options.words, options.sbatch = words, sbatch
batch_words.check(options)
local say, detail = cli.speakers(options.slurm and {quiet = true} or options)
local images = image_list.of(options)
local one = {image = options.image, output = options.output, preview = options.preview,
    preview_image = options.preview_image}
if images and cluster.size > 1 then
    cli.wrong("--into works on one image after the other, and there are %d ranks, which share the "
        .. "tiles of one: start it without mpirun or srun", cluster.size)
end
rank_lines.begin(options)
if options.write_log then
    log.remember()
end
if options.resume and options.discard then
    cli.wrong("--resume goes on with what --discard removes: give one of them")
end

-- ---- the method ----

local run = mb.deconv[options.method == "rl" and "richardson_lucy" or options.method]
local taken = declared.of(run).options

local function refuse(name)
    cli.wrong("--%s is not for --method %s: leave it out", name:gsub("_", "-"), options.method)
end

local function check_method()
    if options.iterations == "auto" and options.method ~= "rl" then
        cli.wrong("--iterations auto is for --method rl; gradient_consensus stops by itself")
    elseif options.every and not options.snapshots then
        cli.wrong("--every is for --snapshots FILE, which is missing")
    end
    for _, name in ipairs {"iterations", "acceleration", "tolerance", "total_variation", "mask",
        "seed", "relaxation", "lambda", "background"} do
        local own = ({mask = "weights", relaxation = "step"})[name] or name
        if options.given[name] and not taken[own] then
            refuse(name)
        end
    end
    if options.metrics and options.tiles == "blended" then
        cli.wrong("--metrics is not for --tiles blended, where each tile has iterations of its own")
    end
    if options.tolerance and options.tiles == "blended" then
        cli.wrong("--tolerance is not for --tiles blended, where each tile would end by itself: "
            .. "leave it out, or give --tiles exact")
    end
    for _, name in ipairs {"curve", "snapshots"} do
        if options[name] and not (taken.iterations and (name ~= "curve"
            or options.method == "rl")) then
            refuse(name)
        elseif options[name] and options.tiles == "blended" then
            cli.wrong("--%s is not for --tiles blended, where each tile has iterations of its own",
                name)
        end
    end
end
check_method()
way.check_mode(options, options.tiles)

-- ---- the files that are written ----

local function check_result()
    if not options.output and not images then
        local missing = {"--output"}
        for _, name in ipairs(options.psf and {} or psf_options.missing(options)) do
            missing[#missing + 1] = name ~= "--pixel" and name ~= "--step" and name or nil
        end
        cli.missing(#missing > 1 and missing or {}, "no PSF is given, so a model is made")
        cli.wrong("the name of the result is missing; give it with -o, such as -o result.tif")
    end
end

-- Checks what is written: the names, or with `inputs` (true) the files, too.
local function check_outputs(inputs)
    for _, each in ipairs(images or {one}) do
        -- A job goes on with a result that is there, and is not asked to replace it.
        local replaces = setmetatable({overwrite = options.overwrite or options.resume
            or options.slurm and resuming.finds(file_name.without_member(each.output))},
            {__index = options})
        local log_name = options.write_log and results.log_of(each.output)
        inputs = inputs and {each.image, options.psf, options.mask}
        cli.outputs(replaces, inputs, each.what and {} or {
            {"output", path = each.output, extensions = file_name.IMAGES, member = true,
                instead = images and "--skip-done leaves out the images that have a result" or nil},
            {"preview", path = each.preview}, {"preview-image", path = each.preview_image},
            {"curve", extensions = {"png", "svg"}}, {"snapshots"},
            log_name and {"write-log", path = log_name, extensions = {"log"}} or nil})
    end
end
local check_psf = options.psf and psf_options.refuse or psf_options.check
check_psf(options)
if (options.slurm or not options.plan) and leads then
    check_result()
    check_outputs(false)
end
local first_output <const> = images and images[1].output or options.output
result_layouts.check(options, first_output)
local devices = cli.devices_with_data(options, options.ranks ~= nil or options.slurm)
cli.checked(rank_plan.check, options.ranks or 1, options.ranks_per_node or 1, devices)
local watched <close> = process_memory.watch(devices[1])
if images and not image_list.compare(images, options) then
    return image_list.finish(images)
end

local asked = kept_runs.asked(options)

-- ---- the image ----

if options.psf and file_name.same(options.image, options.psf) then
    cli.wrong("the PSF is the image itself, '%s'; several images need --into FOLDER, and --psf "
        .. "FILE names the PSF", options.psf)
end
local image = given_image.open(options, say)
local shape = image.shape
if image:is_series() then
    results.check_series(images and options.format or options.output, shape)
end
if not options.psf then
    if options.psf_size and #options.psf_size > 3 then
        cli.wrong("--psf-size has %d extents; it is N, Y,X or Z,Y,X", #options.psf_size)
    elseif #shape < 2 then
        cli.wrong("the model of a PSF is for planes and stacks, and this image has one axis: give "
            .. "a measured PSF, as the second argument or with --psf")
    end
    options.one_plane = #shape == 2 or shape[1] == 1 or options.psf_size
        and (#options.psf_size == 2 or #options.psf_size == 3 and options.psf_size[1] == 1)
    local slices = given_image.slices_told(image.meta, shape, options.image)
    if slices and not options.axes then
        cli.wrong("%s, and --axes %s%s that they are not (the model of a PSF differs)", slices,
            (image.meta.frames or 1) > 1 and "T" or "",
            (image.meta.channels or 1) > 1 and "C" or "")
    end
    local light = psf_options.from_file(options, image.meta)
    if light then
        say("light      %s: %s", light, options.image)
    end
    cli.missing(psf_options.missing(options), "no PSF is given, so a model is made")
    psf_options.check(options)
    psf_options.try(options)
    psf_options.tell(options, say)
end
channel_psfs.check(options, image)
if options.mask then
    given_image.check_mask(options.mask, shape)
end
stack_picture.check(shape, options.preview_z)
if (options.slurm or not options.plan) and leads then
    check_outputs(true)
end
if not images then -- of several images each has its own end (image_list.lua)
    resuming.settle(options, options.output and file_name.without_member(options.output), function()
        if leads then
            check_outputs(true)
        end
    end)
end

-- What a later process can go on with.
local function new_journal(each)
    return kept_runs.open(options, asked, options.image, each and each.output)
end
local journal -- of the one image
local _ <close> = setmetatable({}, {__close = function(_, problem)
    if journal then
        journal:close(problem)
    end
end})
if not options.plan then
    local kept
    if images then
        kept = options.resume and kept_runs.mode(options, asked, images)
    elseif options.resume or cluster.once(function()
        return kept_runs.exists(options.output)
    end) then
        journal = cli.tried(nil, new_journal, options)
        kept = options.resume and journal:was "mode"
    end
    options.tiles = options.tiles == "auto" and kept or options.tiles
end

say("image      %s%s, %s, %s", table.concat(shape, " x "), image:is_series()
    and (", %s, %s"):format(counted(image.channels, "channel"),
        counted(image.frames, "time")) or "", surface.TYPES[image.dtype] or image.dtype,
    options.image)
say("device     %s (%s)", table.concat(tables.mapped(devices, "id"), ", "), devices[1].name)

local noise = noise_told.new(options, say)
local matters = options.gain or options.offset or options.curve or options.iterations == "auto"

-- Reads the noise of the image that options.image names, where that matters.
local function read_noise()
    if matters then
        noise:estimate(image)
    end
    if options.method == "gradient_consensus" and not options.gain then
        noise:check_photons(image)
    end
end
if options.plan or images then -- each of several images is read before the work on it
    noise:suppose()
else
    cli.tried(nil, read_noise)
end
if options.plan or images then -- what reading it takes, with a noise that is forgotten
    call_budget.part("the noise of the image", function()
        local kept, found, typed = options, noise.found, {options.gain, options.offset}
        read_noise()
        noise.found, kept.gain, kept.offset = found, table.unpack(typed, 1, 2)
    end)
end
if options.plan then
    noise:say_photons()
end
local psfs <close> = channel_psfs.make(options, image, devices[1].id, say)

-- ---- the settings of the method ----

local automatic = options.iterations == "auto" and not noise:unknown()
if options.iterations == "auto" then
    options.iterations = automatic and work.MOST or UNKNOWN_ITERATIONS
end

-- The weights of --mask on a device; nil without it.
local function weights_of(id)
    if not options.mask then
        return nil
    end
    local mask <close> = cli.tried({}, mb.images.read, options.mask, id)
    local weights = mask:cast("f32")
    cli.checked(gate.weights, "deconvolve", weights, "--mask " .. options.mask)
    mb.binary(weights, "min", {scalar = 1, out = weights})
    return weights
end

local settings = declared.part(taken, options)
settings.metrics = taken.metrics and (options.metrics or options.curve and true) or nil
settings.center, settings.step = psfs.center, taken.step and options.relaxation
if taken.iterations then
    settings.iterations = options.iterations
        or options.method == "rl" and RL_ITERATIONS or taken.iterations.default
end
if options.total_variation and options.pixel and options.step and #shape == 3 then
    settings.spacing = {options.step / options.pixel, 1, 1}
end
local weights <close> = weights_of(devices[1].id)
settings.weights = weights

-- ---- the plan ----

local job = {options = options, image = image, psfs = psfs, noise = noise, device = devices[1],
    devices = devices, run = run, taken = taken, settings = settings, automatic = automatic,
    many = images ~= nil, results = slurm_job.results(options, images),
    dtype = surface.library_type(options.output_dtype), say = say, detail = detail}
way.choose(job)
local working = work.new(job)
one.meta = image.meta

local function picture(path, volume, caption, range)
    local opened <close> = volume
    stack_picture.save(path, opened, {name = file_name.base(options.image), caption = caption,
        planes = options.preview_z, sz = options.sz, range = range,
        pixel = options.pixel and options.pixel * 1e-9, step = options.step and options.step * 1e-9,
        overwrite = options.overwrite or options.resume})
    say("picture    %s", path)
end

-- What captions say of the work on an image.
local function caption()
    local count = working.iterations or settings.iterations
    return ("method %s%s, PSF %s%s"):format(options.method, count
        and ", " .. counted(count, "iteration") or "", options.psf
        and file_name.base(options.psf) or options.model,
        job.plan and ", tiles " .. job.mode or "")
end

-- Pictures of the first volume of an image and of its result.
local function pictures(each)
    if each.preview_image then
        picture(each.preview_image, image:volume(1, 1), "not deconvolved")
    end
    if each.preview then
        -- A planned run has written no result; what reading it takes is the same.
        picture(each.preview, mb.device.dry() and mb.volumes.planned(shape, job.dtype)
            or mb.images.open(each.output, image:is_series() and {channel = 1, frame = 1} or nil),
            caption(), options.preview_range)
    end
end

-- What is drawn after the work: a list of {option, path, function}.
local function drawn(each)
    local list = {}
    local function add(name, path, fn)
        list[#list + 1] = path and {name, path, fn} or nil
    end
    add("--curve", leads and options.curve, function()
        noise:curve()
        say("picture    %s (the misfit)", options.curve)
    end)
    add("--snapshots", leads and options.snapshots, function()
        if noise:sheet(file_name.base(options.image), caption(),
            options.pixel and options.pixel * 1e-9) then
            say("picture    %s (the snapshots)", options.snapshots)
        end
    end)
    add("--preview", leads and (each.preview or each.preview_image), function()
        pictures(each)
    end)
    return list
end

-- Plans what is drawn.
local function plan_pictures()
    if options.snapshots then
        noise:prepare(shape, settings.iterations)
    end
    for _, each in ipairs(drawn(images and images[1] or one)) do
        call_budget.part(each[1], function()
            local transfers <close> = way.transfers(job)
            if images and job.mode == "none" and job.taken.otf then
                transfers:of(image.channels) -- the next image has it, too
            end
            each[3]()
        end)
    end
end

rank_lines.check_mode(job)
if job.mode ~= "none" then
    journal = journal or not images and cli.tried(nil, new_journal, options) or nil
    cli.tried(nil, way.plan_tiles, job, journal or new_journal())
end
job.prepared, job.prepared_host = watched.peak()
call_budget.planned("what comes before the plan", {[job.device.id] = job.prepared})
way.note(job, job.plan)
plan_pictures()
if job.mode == "none" then
    way.say_whole(job)
    if options.tile or options.place then
        cli.warn("--%s is for tiles, and the whole image is worked on at once; --tiles exact cuts "
            .. "it", options.tile and "tile" or "place")
    end
else
    way.say_tiles(job, job.plan)
end
result_layouts.tell(say, options, first_output, {shape = shape, dtype = job.dtype,
    count = image.channels * image.frames}, image.meta)
local bound = way.say_process(job, job.plan)
if options.slurm then
    return slurm_job.print(job, job.plan, bound)
elseif options.plan then
    return rank_lines.say_plan(job, job.plan, bound)
end
cli.tried(nil, way.admit, job, job.plan)

-- ---- the work ----

-- Deconvolves the image that options.image names; `kept` nil: nothing is kept. Returns the range.
local function one_image(each, kept, transfers)
    local ends, found = working:search(transfers)
    each.origin = results.origin(job, each.image, noise_told.facts(ends, found))
    local out <close> = leads and results.create(job, each, each.origin, kept) or nil
    local least, greatest = working:volumes(out, ends, transfers)
    if kept then
        kept:finishing()
    end
    if out then
        out:finish()
    end
    if kept then
        kept:finish()
    end
    return least, greatest
end

-- Lowers the budget of the host to what is planned.
local function hold()
    return process_memory.hold(job.device, way.peak(job) - mb.pool.stats(job.device).live)
end

-- The same for one of several images.
local function next_image(each, transfers)
    options.image = each.image
    local first <const> = log.count() + 1
    say("image      %s", each.image)
    local function make_room() -- the next image has these transfer functions, too
        transfers:release()
        way.forget(job)
    end
    call_budget.done("the noise of the image", read_noise, make_room)
    local kept <close> = (job.plan or kept_runs.exists(each.output)) and new_journal(each) or nil
    if job.plan then
        way.plan_next(job, kept)
    end
    do
        local _ <close> = hold()
        results.tell(job, each.output, one_image(each, kept, transfers))
    end
    local list <const> = drawn(each)
    if job.plan and #list > 0 then
        make_room()
    end
    for _, picture_of in ipairs(list) do
        call_budget.done(picture_of[1], picture_of[3], make_room)
    end
    each.own = {first, log.count()}
end

local least, greatest
do
    local _ <close> = not images and hold() or nil
    local transfers <close> = way.transfers(job)
    if images then
        local before <const> = log.count()
        image_list.run(images, function(each)
            next_image(each, transfers)
        end)
        -- The log of an image has what was said of it and of all, not of the others.
        local after <const> = log.count() + 1
        for _, each in ipairs(images) do
            each.said = {{1, before}, each.own, {after, math.huge}}
        end
    else
        least, greatest = one_image(one, journal, transfers)
    end
    way.forget(job)
end

-- ---- what is said and written in the end ----

-- Says what was taken, and returns it for the log.
local function say_memory()
    local format_bytes = mb.device.format_bytes
    local peak, host_peak = watched.peak()
    local predicted = call_budget.with_parts(job.device.id, job.expected, 0)
    say("measured   peak %s (%d bytes)%s", format_bytes(peak), peak, host_peak and job.plan
        and (" on %s, %s (%d bytes) on the host"):format(job.device.id, format_bytes(host_peak),
            host_peak) or "")
    for i = 2, job.plan and #devices or 0 do
        local bytes = working.others[devices[i].id]
        say("           on %s %s (%d bytes)", devices[i].id, format_bytes(bytes), bytes)
    end
    if predicted ~= way.peak(job) then
        say("predicted  peak %s (%d bytes), with what is known now", format_bytes(predicted),
            predicted)
    end
    return {["predicted bytes"] = predicted, ["measured bytes"] = peak}
end

if images then
    local memory = say_memory()
    for _, each in ipairs(images) do
        if each.what == "done" then
            results.write_log(job, each, memory)
        end
    end
    psfs:release() -- before the program exits there
    return image_list.finish(images)
end
if leads then
    results.tell(job, options.output, least, greatest)
end
for _, each in ipairs(drawn(one)) do
    cli.afterwards(each[1], each[2], call_budget.done, each[1], each[3])
end
local memory = say_memory()
if leads then
    results.write_log(job, one, memory)
end
