--- Deconvolves an image stack with a measured PSF or a model of one: TIFF, .npy or HDF5 in and out.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local run_log = require "moonbeam.result.run_log"
local surface = require "moonbeam.internal.command_line.surface"
local image_list = require "moonbeam.internal.command_line.image_list"
local log = require "moonbeam.internal.log"
local measured_psf = require "moonbeam.internal.command_line.measured_psf"
local process_memory = require "moonbeam.internal.process_memory"
local psf_options = require "moonbeam.internal.command_line.psf_options"
local file_name = require "moonbeam.internal.file_name"
local noise_told = require "moonbeam.internal.command_line.noise_told"
local progress = require "moonbeam.progress"
local voxel = require "moonbeam.tiff.voxel"

local rl = declared.of(mb.deconv.richardson_lucy).options
local tiling = declared.of(mb.tiled_deconv.richardson_lucy_volume).options
local landweber = declared.of(mb.deconv.landweber).options
local consensus = declared.of(mb.deconv.gradient_consensus).options
local wiener = declared.of(mb.deconv.wiener).options
local tikhonov = declared.of(mb.deconv.tikhonov).options
local crop = declared.of(mb.psf.crop).options
local RL_ITERATIONS <const>, AUTO_ITERATIONS <const>, UNKNOWN_ITERATIONS <const> = 20, 200, 10

local options = cli.parse(arg, {
    usage = "deconvolve IMAGE [PSF] -o OUT [options], or IMAGE... --into FOLDER [options]",
    summary = "Deconvolves an image or a stack (z, y, x) with a measured point spread function, "
        .. "or a model of one.",
    {"image", positional = true, required = true, many = true,
        doc = ".tif, .npy, .h5 (FILE.h5:/path) or .zarr; uint8, uint16 or float32"},
    {"psf", value = "FILE", doc = "a file of the same kinds, also given as the second argument "
        .. "(default: the model of the options below)"},
    {"output", short = "o", value = "FILE",
        doc = "result, of the image's extents: .tif, .npy, .h5 or .zarr"},
    {"output-dtype", value = "NAME", default = "float32", also = {"dtype", "output-type"},
        type = cli.choice("float32", "uint16", "uint8", {f32 = "float32", u16 = "uint16",
            u8 = "uint8", float = "float32"}),
        doc = "of the result; integers are rounded, and clamped with a warning"},
    image_list.OPTIONS,
    cli.shared.overwrite,
    {"resume", doc = "go on with an interrupted run by tiles, from OUT.unfinished"},
    {"discard", doc = "remove what an interrupted run has left, and start anew"},
    {"plan", doc = "print grid, bytes and peak; compute and write nothing"},
    {"method", short = "m", value = "NAME", type = cli.choice("rl", "gradient_consensus",
        "landweber", "wiener", "tikhonov", {richardson_lucy = "rl", ["richardson-lucy"] = "rl",
            lucy = "rl"}), default = "rl",
        doc = "rl: Richardson-Lucy; gradient_consensus: the same, stops by itself; landweber, "
            .. "wiener, tikhonov"},
    cli.option(rl.iterations, {default = false, value = "N", type = cli.or_words(cli.count, "auto"),
        doc = ("how many at most (default: rl %d, landweber %d, gradient_consensus %d); rl: auto "
            .. "ends where held-out photons are predicted best"):format(RL_ITERATIONS,
            landweber.iterations.default, consensus.iterations.default)}),
    cli.option(rl.acceleration, {of = "rl"}),
    cli.option(rl.total_variation, {of = "rl"}),
    cli.option(rl.tolerance, {of = "rl, landweber"}),
    cli.option(rl.metrics, {doc = "print the misfit and the change of every iteration"}),
    cli.option(wiener.lambda, {default = false,
        doc = ("weight of the regularization (default: wiener %g, tikhonov %g)"):format(
            wiener.lambda.default, tikhonov.lambda.default)}),
    cli.option(landweber.step, {"relaxation", default = false, of = "landweber"}),
    cli.option(consensus.seed, {default = false, of = "gradient_consensus"}),
    {"offset", value = "X", type = cli.number_or "auto",
        doc = "the camera's offset: subtracted from the image, which becomes float32; auto: from "
            .. "the noise of the image"},
    {"gain", value = "X", type = cli.or_words(cli.between(0), "auto"),
        doc = "counts per photon: the image is divided by it, and becomes float32; auto: from the "
            .. "noise of the image"},
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
        default = "maximum", doc = "where the origin of a measured PSF is"},
    {"psf-background", value = "LEVEL", type = cli.number_or("auto", "faces", "none"), default = "auto",
        doc = "to subtract from a measured PSF: auto (the median of its faces where these are "
            .. "flat, as a camera's offset is), faces (their median), none, or a number"},
    cli.option(crop.energy, {"psf-crop", value = "PART", default = false,
        doc = "crop the PSF to the box that has this part of its sum along every axis"}),
    {"psf-spacing", value = "Z,Y,X", type = cli.numbers,
        doc = "distance of a measured PSF's samples: resampled to --step and --pixel"},
    psf_options.list(),
    {"psf-size", value = "N", type = cli.count, default = 65,
        doc = "model: lateral extent in px"},
    {"channel", value = "N", type = cli.count,
        doc = "of a TIFF hyperstack only this channel (default: all, one after another)"},
    {"frame", value = "N", type = cli.count, doc = "of a TIFF hyperstack only this time"},
    {"tiles", short = "t", value = "MODE", type = cli.choice("auto", "exact", "blended", "none"),
        default = "auto", doc = "rl by tiles: exact seams; blended, independent ones; auto: exact "
            .. "where the whole does not fit the budget"},
    cli.option(tiling.tile, {value = "Z,Y,X"}),
    cli.option(tiling.place, {value = "WHERE", of = "exact tiles"}),
    cli.shared.devices,
    cli.shared.budget_of_each, cli.shared.host_budget,
    {"preview", short = "p", value = "FILE",
        doc = "PNG: maximum projections XY, ZY, XZ of the result"},
    {"preview-image", value = "FILE", doc = "PNG: maximum projections of the image"},
    {"write-log", doc = "also write RESULT.log: what ran, options, versions, memory predicted and "
        .. "measured, and all messages"},
    cli.shared.preview_range, cli.shared.sz, cli.shared.verbose, cli.shared.quiet, cli.shared.log,
    cli.shared.progress,
    notes = "--budget limits the pool of arrays and scratch. The process also takes the program, "
        .. "its libraries and buffers.\n"
        .. "What it takes at most is printed: what to give a batch system (Slurm's --mem).\n"
        .. "Images larger than the memory are worked on in tiles; the result is the same (--tiles "
        .. "exact).\n"
        .. "An interrupted run by tiles leaves OUT.unfinished with what was finished: --resume "
        .. "goes on with it,\n--discard removes it. Scratch files are there.\n"
        .. "Spacing, units and the order of channels and times of a TIFF are kept.\n"
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
local say, detail = cli.speakers(options)
local images = image_list.of(options)
if images and cluster.size > 1 then
    cli.wrong("--into works on one image after the other, and there are %d ranks, which share the "
        .. "tiles of one: start it without mpirun or srun", cluster.size)
end

-- The log beside a result.
local function log_of(output)
    return (output:gsub(":/.*$", ""):gsub("/+$", "")) .. ".log"
end
if options.write_log then
    log.remember()
end
local dtype = surface.library_type(options.output_dtype)

if options.resume and options.discard then
    cli.wrong("--resume goes on with what --discard removes: give one of them")
end
if not options.plan and leads then
    if not options.output and not images then
        local missing = {"--output"}
        for _, name in ipairs(options.psf and {} or psf_options.missing(options)) do
            missing[#missing + 1] = name ~= "--pixel" and name ~= "--step" and name or nil
        end
        cli.missing(#missing > 1 and missing or {}, "no PSF is given, so a model is made")
        cli.wrong("the name of the result is missing; give it with -o, such as -o result.tif")
    end
    local replaces = setmetatable({overwrite = options.overwrite or options.resume},
        {__index = options})
    for _, each in ipairs(images or {{image = options.image, output = options.output}}) do
        local log_name = options.write_log and log_of(each.output)
        cli.outputs(replaces, {each.image, options.psf, options.mask}, each.what and {} or {
            {"output", path = each.output, extensions = file_name.IMAGES, member = true},
            log_name and {"write-log", path = log_name, extensions = {"log"}} or {"preview"},
            {"preview"}, {"preview-image"}, {"curve", extensions = {"png", "svg"}}, {"snapshots"}})
    end
end
if images and not image_list.compare(images, options) then
    return image_list.finish(images)
end

-- What a later process can go on with.
local asked = {offset = options.offset, gain = options.gain, iterations = options.iterations}
local function new_journal()
    local inputs, also = {}, {}
    for _, name in ipairs {"image", "psf"} do
        inputs[#inputs + 1] = options[name] and options[name]:gsub(":/.*$", "") or nil
    end
    for _, name in ipairs {"channel", "frame", "offset", "gain", "wavelength", "excitation"} do
        local value = asked[name] or options[name]
        also[#also + 1] = {"--" .. name, type(value) == "table" and table.concat(value, ",")
            or tostring(value or "not given")}
    end
    return cli.tried(nil, mb.tiled_deconv.journal, options.plan and "" or
        options.output:gsub(":/.*$", ""), {inputs = inputs, also = also, plan = options.plan,
            resume = options.resume, discard = options.discard, overwrite = options.overwrite,
            tell = function(text)
                cli.tell(cli.spoken(text))
            end})
end
local journal
local _ <close> = setmetatable({}, {__close = function()
    if journal then
        journal:close()
    end
end})
if options.resume and not options.plan then
    journal = new_journal()
    options.tiles = options.tiles == "auto" and journal:was "mode" or options.tiles
elseif options.output and cluster.once(function()
    return core.unfinished.exists((options.output:gsub(":/.*$", "")))
end) then
    journal = not options.plan and new_journal() or nil
end

local devices = cli.devices(options)
local device = devices[1]
local id = device.id

-- The volumes of a hyperstack are deconvolved one after another; `source` is the first.
local source <close> = cli.tried({}, mb.images.open, options.image,
    {channel = options.channel, frame = options.frame})
local meta = source.meta
local channels, frames = 1, 1
if not (options.channel or options.frame) then
    channels, frames = meta.channels or 1, meta.frames or 1
end
local shape = source.shape
if channels * frames > 1 then
    shape = meta.slices > 1 and {meta.slices, shape[#shape - 1], shape[#shape]}
        or {shape[#shape - 1], shape[#shape]}
end

-- Pixel and step in nm: what is typed, else what the file says. What is typed goes to the result.
local typed, named = {}, {}
for _, name in ipairs {"pixel", "step"} do
    local own = (meta.voxel or {})[name]
    local nm = own and own * 1e9
    if options[name] and (not nm or math.abs(options[name] / nm - 1) > 0.01) then
        typed[name] = options[name] * 1e-9
    end
    if nm and typed[name] then
        cli.warn("--%s is %.4g nm, but %s says %.4g nm: the typed one is taken, and the result "
            .. "says it", name, options[name], options.image, nm)
    elseif nm and not options[name] then
        options[name] = nm
        named[#named + 1] = ("%s %.4g nm"):format(name, nm)
    end
    if not meta.kind and options[name] then
        typed[name] = options[name] * 1e-9 -- no metadata of a TIFF say it
    end
end
local row, column = (meta.voxel or {}).row, (meta.voxel or {}).pixel
if row and column and math.abs(row / column - 1) > 0.01 then
    cli.warn("%s says that pixels are %.4g nm wide and %.4g nm high; models of the PSF have square "
        .. "ones", options.image, column * 1e9, row * 1e9)
end
if #named > 0 then
    say("voxel      %s: %s", table.concat(named, ", "), options.image)
end

if not options.psf then
    local light = psf_options.from_file(options, meta)
    if light then
        say("light      %s: %s", light, options.image)
    end
    cli.missing(psf_options.missing(options), "no PSF is given, so a model is made")
    psf_options.check(options)
end

-- Counts -> photons.
local function photons(block)
    local real = block:cast("f32")
    mb.binary(real, "sub", {scalar = options.offset or 0, out = real})
    mb.binary(real, "max", {scalar = 0, out = real})
    return mb.binary(real, "div", {scalar = options.gain or 1, out = real})
end

-- The volume of a channel and time; closed by the caller.
local function stored_volume(channel, frame)
    return mb.images.open(options.image, {
        channel = options.channel or channels > 1 and channel or frames > 1 and 1 or nil,
        frame = options.frame or frames > 1 and frame or channels > 1 and 1 or nil})
end
local function volume_of(channel, frame)
    local stored = stored_volume(channel, frame)
    return (options.offset or options.gain) and mb.volumes.map(stored, "f32", photons) or stored
end

say("image      %s%s, %s, %s", table.concat(shape, " x "), channels * frames > 1
    and (", %d channels, %d times"):format(channels, frames) or "",
    surface.TYPES[source.dtype] or source.dtype, options.image)

local noise = noise_told.new(options, say)
if options.plan then -- which reads no image
    options.offset = options.offset ~= "auto" and options.offset or noise.auto.offset and 0 or nil
    options.gain = options.gain ~= "auto" and options.gain or noise.auto.gain and 1 or nil
elseif options.gain or options.offset or options.curve or options.iterations == "auto" then
    local raw <close> = stored_volume(1, 1)
    noise:estimate(raw)
end
local unknown_yet = options.plan and (noise.auto.gain or noise.auto.offset)
if (options.offset or options.gain) and not unknown_yet then
    say("photons    (image - %g) / %g, float32", options.offset or 0, options.gain or 1)
end

-- The model of the PSF of a channel.
local function model(channel)
    if #shape ~= 3 then
        cli.wrong("the model is for stacks; this image has %d axes: give a PSF file", #shape)
    end
    return psf_options.make(options, {2 * shape[1] - 1, options.psf_size, options.psf_size}, id,
        channel)
end

-- With one wavelength for each channel every channel has a PSF of its own, else all have the first.
local own_psfs = not options.psf and psf_options.count(options, meta.channels or 1) > 1
if own_psfs and options.psf_crop then
    cli.wrong("--psf-crop would cut the PSFs of several wavelengths to boxes that differ: leave it "
        .. "out, give a smaller --psf-size, or deconvolve the channels one by one (--channel)")
end
local where = options.psf and options.center or "middle"

-- The PSF of a channel, ready to be used.
local function spread_of(channel)
    local spread = options.psf and measured_psf(options, id, say) or model(channel)
    if options.psf_crop then
        local owned <close> = spread
        spread = mb.psf.crop(owned, {energy = options.psf_crop, center = where})
        options.center, where = "middle", "middle"
    end
    return spread
end

-- By channel; they are closed together.
local psfs <close> = setmetatable({}, {__close = function(list)
    for _, each in pairs(list) do
        each:release()
    end
end})
local function number_of(channel)
    return own_psfs and (options.channel or channel) or 1
end
for channel = 1, own_psfs and channels or 1 do
    psfs[number_of(channel)] = spread_of(number_of(channel))
end
local psf = psfs[number_of(1)]
local center = mb.psf.center(psf, options.psf and options.center or "middle")
local texts = {}
for i, value in ipairs(center) do
    texts[i] = ("%.4g"):format(value)
end
say("PSF        %s, %s, center (%s)", table.concat(psf.shape, " x "),
    options.psf or options.model, table.concat(texts, ", "))
for channel = 1, own_psfs and channels or 0 do
    say("           channel %d: %s", number_of(channel),
        psf_options.text(options, number_of(channel)))
end

local run = mb.deconv[options.method == "rl" and "richardson_lucy" or options.method]
local taken = declared.of(run).options
for _, name in ipairs {"tolerance", "total_variation", "mask", "seed", "relaxation", "lambda"} do
    if options[name] and not taken[({mask = "weights", relaxation = "step"})[name] or name] then
        cli.wrong("--%s is not for --method %s", name:gsub("_", "-"), options.method)
    end
end

local automatic = options.iterations == "auto"
for _, name in ipairs {"curve", "snapshots"} do
    if options[name] and not (taken.iterations and (name ~= "curve" or options.method == "rl")) then
        cli.wrong("--%s is not for --method %s", name, options.method)
    elseif options[name] and options.tiles == "blended" then
        cli.wrong("--%s is not for --tiles blended, where each tile has iterations of its own",
            name)
    end
end
if automatic then
    if options.method ~= "rl" then
        cli.wrong("--iterations auto is for --method rl; gradient_consensus stops by itself")
    end
    automatic = not noise:unknown()
    options.iterations = automatic and AUTO_ITERATIONS or UNKNOWN_ITERATIONS
end
if options.every and not options.snapshots then
    cli.wrong("--every is for --snapshots FILE, which is missing")
end
local settings = declared.part(taken, options)
settings.metrics = taken.metrics and (options.metrics or options.curve and true) or nil
settings.center, settings.step = center, taken.step and options.relaxation
if taken.iterations then
    settings.iterations = options.iterations
        or options.method == "rl" and RL_ITERATIONS or taken.iterations.default
end
if options.total_variation and options.pixel and options.step and #shape == 3 then
    settings.spacing = {options.step / options.pixel, 1, 1}
end
if options.mask then
    local mask <close> = cli.tried({}, mb.images.read, options.mask, id)
    if table.concat(mask.shape, " ") ~= table.concat(shape, " ") then
        cli.wrong("--mask is %s, the image %s", table.concat(mask.shape, " x "),
            table.concat(shape, " x "))
    end
    settings.weights = mask:cast("f32")
    mb.binary(settings.weights, "min", {scalar = 1, out = settings.weights})
    if mb.bound(1, settings.weights.max, settings.weights) <= 0 then
        cli.wrong("--mask %s is 0 everywhere, and 0 says that a pixel is bad: nothing would count",
            options.mask)
    end
end
local _ <close> = settings.weights

local function with(changes)
    local copy = {}
    for _, list in ipairs {settings, changes} do
        for key, value in pairs(list) do
            copy[key] = value
        end
    end
    return copy
end

local searched -- bytes that the search for the end takes
local limit, live = mb.pool.stats(device).budget, mb.pool.stats(device).live
local one <close> = volume_of(1, 1)

-- The transfer function of several volumes in a row with the same PSF is computed once.
local transfers = {__close = function(self)
    if self.otf then
        self.otf:release()
        self.otf = nil
    end
end}
local function transfer_of(kept, number)
    if kept.number ~= number then
        transfers.__close(kept)
        kept.number, kept.otf = number, mb.deconv.transfer(psfs[number], shape,
            {center = center, boundary = options.boundary or taken.boundary.default})
    end
    return kept.otf
end
local function new_transfers()
    return setmetatable({}, transfers)
end

-- What the untiled way will take: the same calls on dry devices. Two iterations reach the peak of
-- any number.
local function whole(volume, changes, channel, kept)
    local number = number_of(channel)
    changes.otf = (images or channels * frames > 1) and taken.otf and transfer_of(kept, number)
        or nil
    local image <close> = mb.volumes.load_real(volume, device)
    return run(image, psfs[number], with(changes))
end
local known = mb.plan.peaks(function()
    local kept <close> = new_transfers()
    for channel = 1, math.max(channels, images and 2 or math.min(2, frames)) do
        local _ <close> = whole(one, {
            iterations = settings.iterations and math.min(2, settings.iterations)},
            math.min(channel, channels), kept)
    end
end, {device}).peak
if automatic then
    -- The search runs before the iterations; the larger of the two counts.
    searched = mb.plan.peaks(function()
        local gain, offset = noise:left()
        mb.deconv.find_iterations(one, psf, {gain = gain, offset = offset,
            acceleration = settings.acceleration, total_variation = settings.total_variation,
            spacing = settings.spacing, boundary = settings.boundary, weights = settings.weights,
            center = settings.center})
    end, {device}).peak
    if live + searched[id] > limit then
        cli.stop(("--iterations auto deconvolves a part of the image first, which takes %s; the "
            .. "budget is %s: give a larger --budget, or a number of --iterations"):format(
            mb.device.format_bytes(live + searched[id]), mb.device.format_bytes(limit)))
    end
end
local function larger(bytes, name)
    return math.max(bytes, searched and searched[name] or 0)
end
local voxels = 1
for _, n in ipairs(shape) do
    voxels = voxels * n
end

-- Which way, and why.
local format_bytes = mb.device.format_bytes
local mode, why = options.tiles, nil
if mode == "auto" then
    mode = "none"
    if live + known[id] > limit then
        why = ("the whole takes %s, the budget is %s"):format(format_bytes(live + known[id]),
            format_bytes(limit))
        if options.method ~= "rl" then
            why = why .. ("; --method %s has no tiles"):format(options.method)
        elseif options.mask then
            why = why .. "; tiles have no --mask"
        elseif options.acceleration == "biggs_andrews" or options.total_variation
            or (options.boundary or "zero") ~= "zero" then
            -- Blended tiles have other values near their seams: the budget does not choose them.
            cli.stop(why .. "; exact tiles have no biggs_andrews, no total variation, and "
                .. "boundary zero; give a larger --budget, "
                .. "or --tiles blended, whose values differ a little near the seams")
        else
            mode = "exact"
        end
    end
elseif mode ~= "none" and (options.method ~= "rl" or options.mask) then
    cli.wrong("--tiles %s is for --method rl without --mask", mode)
end
if images and mode ~= "none" then
    cli.stop((why and why .. "; " or "") .. "--into works on images without tiles: give a larger "
        .. "--budget, or one image at a time")
end
if mode == "blended" and dtype ~= "f32" then
    cli.wrong("--tiles blended adds up in the result, which is float32: --output-dtype is for the "
        .. "others")
end

if mode == "none" and cluster.size > 1 and not options.plan then
    cli.stop(("the whole image fits, and there are %d ranks, which share tiles: give --tiles exact "
        .. "or --tiles blended, or start it without mpirun or srun"):format(cluster.size))
end
local plan, tile_settings
if mode == "none" then
    if options.resume then
        cli.wrong("--resume is for tiles, and the whole image fits: leave --resume out, or give "
            .. "--tiles exact or --tiles blended")
    end
    local grid = mb.deconv.layout(shape, psf, {center = center, boundary = options.boundary
        or taken.boundary.default}).grid
    say("grid       %s%s", table.concat(grid, " x "), why and "; " .. why or "")
    local peak = live + larger(known[id], id)
    say("memory     peak %s (%d bytes), %.1f bytes per voxel of the image; budget %s",
        format_bytes(peak), peak, peak / voxels, format_bytes(limit))
    if #devices > 1 then
        say("devices    %s alone: several devices share tiles, and there are none%s", id,
            options.method == "rl" and not options.mask and " (--tiles exact)" or "")
    end
else
    local exact = mode == "exact"
    tile_settings = declared.part(tiling, with {mode = mode, tile = options.tile, devices = devices,
        place = options.place, metrics = exact and settings.metrics or false,
        journal = journal or new_journal()})
    local planned = mb.volumes.planned(shape, dtype)
    journal = tile_settings.journal
    plan = cli.tried(nil, mb.tiled_deconv.plan, one, psf,
        exact and mb.volumes.watch(planned) or planned, tile_settings)
    local places = {device = device.kind == "host" and "on the host" or "on " .. id,
        host = "on the host",
        file = "in files beside the result"}
    say("tiles      %d, %s%s%s", plan.total, exact and "exact seams" or "blended",
        exact and "; image, estimate and ratio " .. places[plan.place] or "",
        why and "; " .. why or "")
    detail("%s", mb.tiles.table(plan))
    local peak = live + larger(plan.peak, id)
    say("memory     peak %s (%d bytes), %.1f bytes per voxel of the image; budget %s",
        format_bytes(peak), peak, peak / voxels, format_bytes(limit))
    for i = 2, #devices do
        local own = devices[i].id
        say("           on %s peak %s (%d bytes)", own, format_bytes(plan.peaks[own]),
            plan.peaks[own])
    end
    if device.kind ~= "host" then
        local bytes = larger(plan.host_peak, "host")
        say("host       peak %s (%d bytes)", format_bytes(bytes), bytes)
    end
    if plan.pinned > 0 then
        say("pinned     %s (%d bytes)", format_bytes(plan.pinned), plan.pinned)
    end
end
-- The pool of the host, and pinned memory: what the process takes beside itself.
local own = larger(plan and plan.reserved[id] or known[id], id)
local on_host = device.kind == "host" and own
    or larger(plan and plan.reserved.host or known.host, "host")
for i = 2, plan and device.kind == "host" and #devices or 0 do
    on_host = on_host + plan.reserved[devices[i].id]
end
say("%s", process_memory.bound_text(on_host, plan and plan.pinned or 0))
if options.plan then
    return
end

local _ <close> = process_memory.hold(device, own)
-- What the result says about how it was made. A series of files is no file.
local parameters = {method = options.method,
    model = not options.psf and options.model or nil,
    psf = options.psf and core.system.real_path((options.psf:gsub(":/.*$", ""))) or nil,
    psf_shape = psf.shape, psf_center = center, pixel_nm = options.pixel, step_nm = options.step,
    tiles = mode, device = id, iterations = not automatic and settings.iterations or "auto"}
for _, name in ipairs {"acceleration", "total_variation", "tolerance", "lambda", "relaxation",
    "offset", "gain", "mask", "boundary", "na", "index", "index_sample", "depth", "wavelength",
    "excitation", "pinhole", "sheet", "sheet_na", "field", "polarization", "psf_background",
    "psf_crop", "channel", "frame"} do
    local value = options[name] or nil
    parameters[name] = type(value) == "table" and #value == 1 and value[1] or value
end

-- How the result of an image was made.
local function origin_of(image)
    local input, all = image:gsub(":/.*$", ""), {}
    for name, value in pairs(parameters) do
        all[name] = value
    end
    all.image = image
    return {title = "deconvolution", input = core.system.stat(input) and input or nil,
        parameters = all}
end

local function create(image, output, own_meta)
    return mb.images.create(output, {shape = shape, dtype = dtype, channels = channels,
        frames = frames, origin = origin_of(image),
        meta = next(typed) and voxel.said(own_meta, typed) or own_meta,
        voxel = {pixel = options.pixel and options.pixel * 1e-9,
            step = options.step and options.step * 1e-9},
        inside = journal and journal:folder() or nil,
        overwrite = options.overwrite or journal and journal:may_replace() or false})
end
local out <close> = not images and leads and create(options.image, options.output, meta) or nil

local function tell(k, metric)
    if options.metrics and metric and metric.change then
        local misfit = metric.divergence and ("I-divergence %.6g"):format(metric.divergence)
            or metric.residual and ("residual %.6g"):format(metric.residual)
            or ("I-divergence of the halves %.6g, %.6g"):format(metric.first, metric.second)
        say("%9d  %s  change %.3g", k, misfit, metric.change)
    end
end

local BECAUSE <const> = {tolerance = "the relative change fell below --tolerance"}
local told_first -- whether the first volume has been told

local function tell_end(report)
    if not report or mb.device.dry() then
        return
    elseif report.iterations < settings.iterations then
        say("stopped    after %d iterations of at most %d%s", report.iterations,
            settings.iterations, report.stopped and ", because the halves of the photons disagree"
            or BECAUSE[report.because] and ", because " .. BECAUSE[report.because] or "")
    elseif settings.iterations > 1 then
        detail("stopped    after %d iterations, because that is %s", report.iterations,
            automatic and "what --iterations auto has found" or "--iterations")
    end
    if options.method == "rl" and settings.metrics and not told_first then
        noise:misfit(report.metrics, voxels)
    end
    told_first = true
end

-- Untiled; `sink` gets the result. Returns its range.
local function deconvolve(volume, sink, label, channel, kept)
    local bar = settings.iterations and progress.new(label, settings.iterations,
        {unit = "iterations", quiet = options.quiet or options.metrics})
    local result, report = whole(volume, {on_iteration = bar
        and function(k, metric, look)
        bar:step(1)
        tell(k, metric)
        if not told_first then
            noise:snapshot(k, look)
        end
    end or nil}, channel, kept)
    local guard <close> = result
    device:sync()
    local least, greatest = mb.bound(0, result.min, result), mb.bound(0, result.max, result)
    mb.volumes.store(sink, guard)
    if bar then
        bar:finish()
    end
    tell_end(report)
    return least, greatest
end

local others = {} -- the most bytes that the other devices took, by their ids

local function deconvolve_tiled(volume, sink, label, channel)
    local share = math.ceil(plan.total / cluster.size) -- of this rank
    local steps = mode == "exact" and 2 * share * settings.iterations or share
    local bar = progress.new(label, steps,
        {unit = "tiles", quiet = options.quiet or options.metrics})
    tile_settings.plan = plan
    function tile_settings.on_tile()
        bar:step(1)
    end
    if mode == "exact" then
        function tile_settings.on_iteration(k, metric, look)
            tell(k, metric)
            if not told_first then
                noise:snapshot(k, look)
            end
        end
        sink = mb.volumes.watch(sink)
    end
    local report = mb.tiled_deconv.richardson_lucy_volume(volume, psfs[number_of(channel)],
        sink, tile_settings)
    if not device:lost() then
        device:sync()
    end
    bar:finish()
    tell_end(report)
    table.insert(report.budgets, report.replanned)
    table.move(report.again, 1, #report.again, #report.budgets + 1, report.budgets)
    table.move(report.lost, 1, #report.lost, #report.budgets + 1, report.budgets)
    for _, each in ipairs(report.budgets) do
        cli.warn("%s", each.text)
    end
    for i = 2, #devices do
        local name = devices[i].id
        others[name] = math.max(others[name] or 0, report.peaks[name] or 0)
    end
    if report.seam then
        local bad = report.seam > mb.tiled_deconv.SEAM_LIMIT
        say("seams      %.3f: differences across tile faces over those within%s", report.seam, bad
            and "; they may show: --tiles exact, or fewer iterations" or "")
        if bad and options.quiet then
            cli.tell(("deconvolve: the seam metric is %.3f"):format(report.seam))
        end
    end
    return sink.least, sink.greatest
end

-- All volumes of options.image; `sink` is its result. Returns the range.
local function each_volume(sink, kept)
    local least, greatest
    local ends = {} -- numbers of iterations, by channel
    for channel = 1, channels do
        for frame = 1, frames do
            local volume <close> = volume_of(channel, frame)
            local label = channels * frames > 1 and ("channel %d, time %d"):format(channel, frame)
                or "deconvolving"
            if automatic and frame == 1 then -- each channel has light of its own
                transfers.__close(kept)
                kept.number = nil
                ends[channel] = noise:iterations(volume, psfs[number_of(channel)], settings,
                    AUTO_ITERATIONS)
            end
            settings.iterations = ends[channel] or settings.iterations
            if tile_settings then
                tile_settings.iterations = settings.iterations
            end
            if options.snapshots and channel == 1 and frame == 1 then
                noise:prepare(shape, settings.iterations)
            end
            local work = mode == "none" and deconvolve or deconvolve_tiled
            local low, high = work(volume, sink and sink:volume(channel, frame)
                or mb.volumes.planned(shape, dtype), label, channel, kept)
            least = low and math.min(least or low, low)
            greatest = high and math.max(greatest or high, high)
        end
    end
    return least, greatest
end

-- Says what the result of an image is.
local function tell_result(output, least, greatest)
    local limits = {u8 = 255, u16 = 65535}
    if limits[dtype] and least and (least < -0.5 or greatest > limits[dtype] + 0.5) then
        cli.warn("values of %.5g to %.5g were clamped to the range of %s", least, greatest,
            options.output_dtype)
    end
    say("result     %s, %s%s: %s", table.concat(shape, " x "), options.output_dtype, least
        and (", range %.5g to %.5g"):format(least, greatest) or "", output)
end

local least, greatest
local peak, host_peak = process_memory.measured(device, function()
    local kept <close> = new_transfers()
    if not images then
        least, greatest = each_volume(out, kept)
        return
    end
    image_list.run(images, function(each)
        options.image = each.image
        say("image      %s", each.image)
        local result <close> = create(each.image, each.output, each.meta)
        local low, high = each_volume(result, kept)
        result:finish()
        tell_result(each.output, low, high)
    end)
end)
say("measured   peak %s (%d bytes)%s", format_bytes(peak), peak, host_peak and mode ~= "none"
    and (" on %s, %s (%d bytes) on the host"):format(id, format_bytes(host_peak), host_peak) or "")
for i = 2, mode ~= "none" and #devices or 0 do
    local bytes = others[devices[i].id]
    say("           on %s %s (%d bytes)", devices[i].id, format_bytes(bytes), bytes)
end
if journal then
    journal:finishing()
end
if out then
    out:finish()
end
if journal then
    journal:finish()
end
if not leads then
    return
end
if out then
    tell_result(options.output, least, greatest)
end

-- The log of an image's result.
local function write_log(image, output)
    if options.write_log and not mb.device.dry() then
        local facts = origin_of(image)
        facts.memory = {["predicted bytes"] = live + own, ["measured bytes"] = peak}
        run_log.write(log_of(output), facts, options.overwrite or options.resume)
    end
end
for _, each in ipairs(images or {}) do
    if each.what == "done" then
        write_log(each.image, each.output)
    end
end
if images then
    return image_list.finish(images)
end
write_log(options.image, options.output)

-- Pictures: of the first volume. A planned run has written no result; what reading it takes is the
-- same.
local sxy, sz = 1, options.sz or 1
if not options.sz and options.pixel and options.step then
    sxy, sz = surface.stretch(options.step / options.pixel)
end

local function preview(name, volume, range)
    if name then
        local opened <close> = volume
        local picture <close> = mb.volumes.load(opened, "host")
        mb.view.projections(name, picture, {sxy = sxy, sz = sz, range = range,
            percentiles = not range and {0.5, 99.95} or nil, overwrite = options.overwrite})
    end
end
if options.curve then
    noise:curve()
end
if options.snapshots then
    noise:sheet()
end
if options.preview_image then
    preview(options.preview_image, volume_of(1, 1))
end
if options.preview then
    preview(options.preview, mb.device.dry() and mb.volumes.planned(shape, dtype)
        or mb.images.open(options.output,
            channels * frames > 1 and {channel = 1, frame = 1} or nil), options.preview_range)
end
