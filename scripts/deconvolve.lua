--- Deconvolves an image stack with a measured PSF or a model of one: TIFF, .npy or HDF5 in and out.

local mb = require "moonbeam"
local cli = require "moonbeam.cli"
local progress = require "moonbeam.progress"

local options = cli.parse(arg, {
    usage = "deconvolve.lua IMAGE [PSF] -o OUT [options]",
    summary = "Deconvolves an image or a stack (z, y, x) with a measured point spread function, or a model of one.",
    {"image", positional = true, required = true, doc = ".tif, .npy or .h5 (FILE.h5:/path); u8, u16 or f32"},
    {"psf", positional = true, doc = "the same; without it the Born-Wolf model of the options below"},
    {"output", short = "o", value = "FILE", doc = "result, of the image's extents: .tif, .npy or .h5"},
    {"dtype", value = "NAME", type = cli.choice("f32", "u16", "u8"), default = "f32",
        doc = "of the result; integers are rounded, and clamped with a warning"},
    {"overwrite", doc = "replace an existing result"},
    {"plan", doc = "print grid, bytes and peak; compute and write nothing"},
    {"method", short = "m", value = "NAME", type = cli.choice("rl", "gradient_consensus", "landweber", "wiener", "tikhonov"),
        default = "rl", doc = "rl: Richardson-Lucy; gradient_consensus: the same, stopping by itself; or the others by name"},
    {"iterations", short = "n", value = "N", type = cli.count,
        doc = "rl: default 20; landweber: 50; gradient_consensus: 100 at most"},
    {"acceleration", short = "a", value = "NAME", type = cli.choice("none", "heavy_ball", "biggs_andrews"), default = "none",
        doc = "of rl: fewer iterations for 4 or 8 bytes per voxel more"},
    {"total-variation", value = "X", type = cli.number, doc = "of rl: weight of that regularisation, such as 0.002"},
    {"tolerance", value = "PART", type = cli.number, doc = "rl, landweber: stop when an iteration changes less than this part"},
    {"metrics", doc = "print the misfit and the change of every iteration"},
    {"lambda", value = "X", type = cli.number, doc = "regularisation of wiener (default 0.001) and tikhonov (0.01)"},
    {"relaxation", value = "X", type = cli.number, doc = "landweber: length of a step, 0 to 2 (default 1)"},
    {"seed", value = "N", type = cli.number, doc = "gradient_consensus: how the photons are dealt out (default 0)"},
    {"offset", value = "X", type = cli.number, doc = "the camera's offset: subtracted from the image, which becomes f32"},
    {"gain", value = "X", type = cli.number, doc = "counts per photon: the image is divided by it, and becomes f32"},
    {"mask", value = "FILE", doc = "image of the same extents, 0 at bad pixels: not for wiener and tikhonov"},
    {"boundary", short = "b", value = "NAME", type = cli.choice("circular", "zero", "reflect", "mirror", "replicate"),
        doc = "what lies beyond the edges (default: zero, unseen, for rl and landweber; reflect for the others)"},
    {"center", short = "c", value = "NAME", type = cli.choice("middle", "fft", "maximum", "mass"), default = "maximum",
        doc = "where the origin of a measured PSF is"},
    {"psf-background", doc = "subtract the least value of the PSF"},
    {"psf-crop", value = "PART", type = cli.number, doc = "keep the box of the PSF that holds this part of its sum, e.g. 0.99"},
    {"psf-spacing", value = "Z,Y,X", type = cli.numbers, doc = "distance of a measured PSF's samples: resampled to --step and --pixel"},
    {"model", value = "NAME", type = cli.choice("born_wolf", "gibson_lanni"), default = "born_wolf",
        doc = "without a PSF file; gibson_lanni: sample and immersion differ"},
    {"na", value = "X", type = cli.number, doc = "model: numerical aperture"},
    {"index", value = "X", type = cli.number, default = 1.515, doc = "model: refractive index of the immersion"},
    {"index-sample", value = "X", type = cli.number, doc = "gibson_lanni: refractive index of the sample"},
    {"depth", value = "NM", type = cli.number, doc = "gibson_lanni: depth of the object under the coverslip"},
    {"wavelength", value = "NM", type = cli.number, doc = "model: emission wavelength"},
    {"pixel", value = "NM", type = cli.number, doc = "lateral pixel of the image"},
    {"step", value = "NM", type = cli.number, doc = "axial step of the image"},
    {"psf-size", value = "N", type = cli.count, default = 65, doc = "model: lateral extent in px"},
    {"device", short = "d", value = "ID", default = "auto", doc = "host, cuda:0, ...; auto takes a GPU where there is one"},
    {"budget", value = "SIZE", type = cli.bytes, doc = "memory to use at most, e.g. 8G (default: 90 % of what is free)"},
    {"preview", short = "p", value = "FILE", doc = "PNG: maximum projections XY, ZY, XZ of the result"},
    {"preview-image", value = "FILE", doc = "the same of the image"},
    {"sz", value = "N", type = cli.count, default = 1, doc = "stretch of z in the pictures"},
    {"quiet", short = "q", doc = "no progress, only warnings and errors"},
    notes = "Exit status: 0 done, 1 failed, 2 wrong use. A result file that exists is complete.",
})

local function say(...)
    if not options.quiet then
        print(string.format(...))
    end
end

if not options.plan then
    if not options.output then
        mb.raise("argument", "where does the result go? -o OUT")
    end
    local _, problem = mb.images.writable(options.output)
    if problem then
        mb.raise("argument", problem)
    end
    local existing <close> = io.open((options.output:gsub(":/.*$", "")))
    if existing and not options.overwrite then
        mb.raise("argument", ("%s exists; --overwrite replaces it"):format(options.output))
    end
end

local id = options.device
if id == "auto" then
    id = #mb.devices() > 1 and "cuda:0" or "host"
end
local device = mb.device(id, options.budget and {budget = options.budget} or nil)

local image, meta = mb.images.read(options.image, id)
local _ <close> = setmetatable({}, {__close = function()
    image:release()
end})
say("image      %s, %s, %s", table.concat(image.shape, " x "), image.dtype, options.image)
if options.offset or options.gain then
    local raw <close> = image
    image = raw:cast("f32")
    mb.binary(image, "sub", {scalar = options.offset or 0, out = image})
    mb.binary(image, "max", {scalar = 0, out = image})
    mb.binary(image, "div", {scalar = options.gain or 1, out = image})
    say("photons    (image - %g) / %g, f32", options.offset or 0, options.gain or 1)
end

local function model()
    for _, name in ipairs {"na", "wavelength", "pixel", "step"} do
        if not options[name] then
            mb.raise("argument", ("without a PSF file the model needs --na, --wavelength, --pixel and --step; --%s is missing")
                :format(name))
        end
    end
    if image.rank ~= 3 then
        mb.raise("shape", ("the model is for stacks; this image has %d axes: give a PSF file"):format(image.rank))
    end
    local settings = {na = options.na, index = options.index, wavelength = options.wavelength, pixel = options.pixel,
        step = options.step, device = id}
    if options.model == "gibson_lanni" then
        settings.index_sample, settings.depth = options.index_sample, options.depth
    elseif options.index_sample or options.depth then
        mb.raise("argument", "--index-sample and --depth are for --model gibson_lanni")
    end
    return mb.psf[options.model]({2 * image.shape[1] - 1, options.psf_size, options.psf_size}, settings)
end

-- The measured PSF, each step in place of the one before.
local function measured()
    local psf = mb.images.read(options.psf, id)
    local function become(f, ...)
        local owned <close> = psf
        psf = f(owned, ...)
    end
    if options.psf_background then
        become(mb.psf.subtract_background)
    end
    if options.psf_spacing then
        if not (options.pixel and options.step) then
            mb.raise("argument", "--psf-spacing needs --pixel and --step, the image's own")
        end
        local to = {options.step, options.pixel, options.pixel}
        become(mb.psf.resample, options.psf_spacing, table.move(to, 4 - psf.rank, 3, 1, {}), {center = options.center})
        options.center = "middle"
    end
    return psf
end

local whole = options.psf and measured() or model()
if options.psf_crop then
    local owned <close> = whole
    local where = options.psf and options.center or "middle"
    whole = mb.psf.crop(owned, {energy = options.psf_crop, center = where})
    options.center = "middle"
end
local psf <close> = whole
local center = mb.psf.center(psf, options.psf and options.center or "middle")
local texts = {}
for i, value in ipairs(center) do
    texts[i] = ("%.4g"):format(value)
end
say("PSF        %s, %s, centre (%s)", table.concat(psf.shape, " x "), options.psf or options.model, table.concat(texts, ", "))

-- The function of each method, and which of the options it takes.
local methods = {
    rl = {mb.deconv.richardson_lucy, iterations = 20, "acceleration", "tolerance", "total_variation", "mask"},
    gradient_consensus = {mb.deconv.gradient_consensus, iterations = 100, "seed", "mask"},
    landweber = {mb.deconv.landweber, iterations = 50, "tolerance", "relaxation", "mask"},
    wiener = {mb.deconv.wiener, "lambda"},
    tikhonov = {mb.deconv.tikhonov, "lambda"},
}
local method = methods[options.method]
local run, taken = method[1], {}
for i = 2, #method do
    taken[method[i]] = true
end
for _, name in ipairs {"tolerance", "total_variation", "mask", "seed", "relaxation", "lambda"} do
    if options[name] and not taken[name] then
        mb.raise("argument", ("--%s is not for --method %s"):format(name:gsub("_", "-"), options.method))
    end
end

local settings = {center = center, boundary = options.boundary}
if method.iterations then
    settings.iterations = options.iterations or method.iterations
    settings.metrics = options.metrics
end
if options.mask then
    local mask <close> = mb.images.read(options.mask, id)
    if table.concat(mask.shape, " ") ~= table.concat(image.shape, " ") then
        mb.raise("shape", ("--mask is %s, the image %s"):format(table.concat(mask.shape, " x "), table.concat(image.shape, " x ")))
    end
    settings.weights = mask:cast("f32")
    mb.binary(settings.weights, "min", {scalar = 1, out = settings.weights})
end
local _ <close> = settings.weights
if options.method == "rl" then
    settings.acceleration, settings.total_variation = options.acceleration, options.total_variation
    settings.tolerance = options.tolerance
    if options.pixel and options.step and image.rank == 3 then
        settings.spacing = {options.step / options.pixel, 1, 1}
    end
elseif options.method == "landweber" then
    settings.tolerance, settings.step = options.tolerance, options.relaxation
elseif options.method == "gradient_consensus" then
    settings.seed = math.tointeger(options.seed)
else
    settings.lambda = options.lambda
end

local function with(changes)
    local copy = {}
    for _, list in ipairs {settings, changes} do
        for key, value in pairs(list) do
            copy[key] = value
        end
    end
    return copy
end

-- What it will take: the same call on a shadow of the device. Two iterations reach the peak of any number.
local known = mb.plan.peak(function(shadow)
    local like <close> = mb.empty(image.shape, {dtype = image.dtype, device = shadow})
    local spread <close> = mb.empty(psf.shape, {dtype = psf.dtype, device = shadow})
    local weights <close> = settings.weights and mb.empty(image.shape, {device = shadow}) or nil
    run(like, spread, with {weights = weights, iterations = settings.iterations and math.min(2, settings.iterations)}):release()
end, id).peak
local voxels = 1
for _, n in ipairs(image.shape) do
    voxels = voxels * n
end
local grid = mb.deconv.layout(image.shape, psf, {center = center, boundary = options.boundary
    or (options.method == "wiener" or options.method == "tikhonov") and "reflect" or nil}).grid
say("grid       %s", table.concat(grid, " x "))
say("memory     peak %s (%d bytes), %.1f bytes per voxel of the image; budget %s", mb.device.format_bytes(known), known,
    known / voxels, mb.device.format_bytes(mb.pool.stats(device).budget))
if options.plan then
    return
end

local bar = settings.iterations and progress.new("deconvolving", settings.iterations,
    {unit = "iterations", quiet = options.quiet or options.metrics})
local before = mb.pool.stats(device).live
mb.collect()
local result, report, peak
do
    local scope <close> = mb.pool.scope(device)
    result, report = run(image, psf, with {on_iteration = bar and function(k, metric)
        bar:step(1)
        if options.metrics and metric then
            local misfit = metric.divergence and ("I-divergence %.6g"):format(metric.divergence)
                or metric.residual and ("residual %.6g"):format(metric.residual)
                or ("I-divergence of the halves %.6g, %.6g"):format(metric.first, metric.second)
            say("%9d  %s  change %.3g", k, misfit, metric.change)
        end
    end or nil})
    device:sync()
    peak = before + scope:finish()
end
if bar then
    bar:finish()
end
if report and report.iterations < settings.iterations and not device.dry then
    say("stopped    after %d iterations of at most %d", report.iterations, settings.iterations)
end
local result_guard <close> = result
say("measured   peak %s (%d bytes)", mb.device.format_bytes(peak), peak)
if options.preview_image then
    mb.view.projections(options.preview_image, image, {sz = options.sz, percentiles = {0.5, 99.95}})
end
if options.preview then
    mb.view.projections(options.preview, result_guard, {sz = options.sz, percentiles = {0.5, 99.95}})
end
local least, greatest = mb.bound(0, result.min, result), mb.bound(0, result.max, result)
local written <close> = options.dtype ~= "f32" and result_guard:cast(options.dtype) or nil
local limits = {u8 = 255, u16 = 65535}
if limits[options.dtype] and (least < -0.5 or greatest > limits[options.dtype] + 0.5) then
    io.stderr:write(("deconvolve: values of %.5g to %.5g were clamped to the range of %s\n"):format(least, greatest, options.dtype))
end
mb.images.write(options.output, written or result_guard, {spacing = meta.spacing})
say("result     %s, %s, range %.5g to %.5g: %s", table.concat(result.shape, " x "), options.dtype, least, greatest, options.output)
