--- Deconvolves an image stack with a measured PSF or a model of one: TIFF, .npy or HDF5 in and out.

local mb = require "moonbeam"
local cli = require "moonbeam.cli"
local progress = require "moonbeam.progress"

local options = cli.parse(arg, {
    usage = "deconvolve.lua IMAGE [PSF] -o OUT [options]",
    summary = "Deconvolves a stack (z, y, x): Richardson-Lucy, Wiener, Tikhonov or Landweber.",
    {"image", positional = true, required = true, doc = ".tif, .npy or .h5 (FILE.h5:/path); u8, u16 or f32"},
    {"psf", positional = true, doc = "the same; without it the Born-Wolf model of the options below"},
    {"output", short = "o", value = "FILE", doc = "result, f32, of the image's extents: .tif, .npy or .h5"},
    {"overwrite", doc = "replace an existing result"},
    {"plan", doc = "print grid, bytes and peak; compute and write nothing"},
    {"method", short = "m", value = "NAME", type = cli.choice("rl", "wiener", "tikhonov", "landweber"), default = "rl",
        doc = "rl is Richardson-Lucy"},
    {"iterations", short = "n", value = "N", type = cli.count, default = 20, doc = "of rl and landweber"},
    {"acceleration", short = "a", value = "NAME", type = cli.choice("none", "heavy_ball"), default = "none", doc = "of rl"},
    {"total-variation", value = "X", type = cli.number, doc = "of rl: weight of that regularisation, such as 0.002"},
    {"tolerance", value = "PART", type = cli.number, doc = "rl: stop when an iteration changes less than this part"},
    {"metrics", doc = "rl: print I-divergence and change of every iteration"},
    {"lambda", value = "X", type = cli.number, doc = "regularisation of wiener and tikhonov"},
    {"boundary", short = "b", value = "NAME", type = cli.choice("circular", "zero", "reflect", "mirror", "replicate"),
        doc = "what lies beyond the edges (default: zero, unseen, for rl and landweber; reflect for the others)"},
    {"center", short = "c", value = "NAME", type = cli.choice("middle", "fft", "maximum", "mass"), default = "maximum",
        doc = "where the origin of a measured PSF is"},
    {"psf-background", doc = "subtract the least value of the PSF"},
    {"na", value = "X", type = cli.number, doc = "model: numerical aperture"},
    {"index", value = "X", type = cli.number, default = 1.515, doc = "model: refractive index"},
    {"wavelength", value = "NM", type = cli.number, doc = "model: emission wavelength"},
    {"pixel", value = "NM", type = cli.number, doc = "model: lateral pixel"},
    {"step", value = "NM", type = cli.number, doc = "model: axial step"},
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
    return mb.psf.born_wolf({2 * image.shape[1] - 1, options.psf_size, options.psf_size}, {na = options.na,
        index = options.index, wavelength = options.wavelength, pixel = options.pixel, step = options.step, device = id})
end

local function measured()
    local loaded = mb.images.read(options.psf, id)
    if not options.psf_background then
        return loaded
    end
    local owned <close> = loaded
    return mb.psf.subtract_background(owned)
end

local psf <close> = options.psf and measured() or model()
local center = mb.psf.center(psf, options.psf and options.center or "middle")
local texts = {}
for i, value in ipairs(center) do
    texts[i] = ("%.4g"):format(value)
end
say("PSF        %s, %s, centre (%s)", table.concat(psf.shape, " x "), options.psf or "Born-Wolf", table.concat(texts, ", "))

local settings = {center = center, boundary = options.boundary}
local run
if options.method == "rl" then
    settings.iterations, settings.acceleration = options.iterations, options.acceleration
    settings.tolerance, settings.metrics = options.tolerance, options.metrics
    settings.total_variation = options.total_variation
    if options.pixel and options.step and image.rank == 3 then
        settings.spacing = {options.step / options.pixel, 1, 1}
    end
    run = mb.deconv.richardson_lucy
elseif options.method == "landweber" then
    settings.iterations = options.iterations
    run = mb.deconv.landweber
else
    settings.lambda = options.lambda
    run = mb.deconv[options.method]
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
    run(like, spread, with {iterations = settings.iterations and math.min(2, settings.iterations)}):release()
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
local result, peak
do
    local scope <close> = mb.pool.scope(device)
    result = run(image, psf, with {on_iteration = bar and function(k, metric)
        bar:step(1)
        if options.metrics and metric then
            say("%9d  I-divergence %.6g  change %.3g", k, metric.divergence, metric.change)
        end
    end or nil})
    device:sync()
    peak = before + scope:finish()
end
if bar then
    bar:finish()
end
local result_guard <close> = result
say("measured   peak %s (%d bytes)", mb.device.format_bytes(peak), peak)
if options.preview_image then
    mb.view.projections(options.preview_image, image, {sz = options.sz, percentiles = {0.5, 99.95}})
end
if options.preview then
    mb.view.projections(options.preview, result_guard, {sz = options.sz, percentiles = {0.5, 99.95}})
end
mb.images.write(options.output, result_guard, {spacing = meta.spacing})
say("result     %s, f32, range %.5g to %.5g: %s", table.concat(result.shape, " x "), mb.bound(0, result.min, result),
    mb.bound(0, result.max, result), options.output)
