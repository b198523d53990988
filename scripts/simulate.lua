--- Writes a simulated scan of an analytic phantom: raw counts with flats, darks and photon noise,
-- as a beamline would.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"
local declared = require "moonbeam.internal.declared"
local file_name = require "moonbeam.internal.file_name"
local progress = require "moonbeam.progress"

local MOST = 1 << 20 -- of columns, rows and frames
local DARK_LEVEL = 100
local MOST_PHOTONS = 60000 - DARK_LEVEL

local projector = declared.options(declared.from("ellipsoid_projections", "center"))
local noise = declared.options(declared.from("poisson", "seed"))

local options = cli.parse(arg, {
    usage = "simulate OUT [options]",
    summary = "Simulates a parallel-beam scan of the 3-D Shepp-Logan phantom and writes it with "
        .. "flats and darks.",
    {"out", positional = true, required = true, doc = "the HDF5 file to write"},
    {"size", short = "n", value = "N", type = cli.up_to(MOST), default = 256,
        doc = "detector columns"},
    {"rows", value = "N", type = cli.up_to(MOST),
        doc = "detector rows (default: a quarter of the columns)"},
    {"angles", short = "a", value = "N", type = cli.up_to(MOST),
        doc = "projections (default: 1.5 per column)"},
    {"span", value = "DEG", type = cli.number, default = 180,
        doc = "angular range, the end left out"},
    {"format", value = "NAME", type = cli.choice("dx", "nxtomo"), default = "dx",
        doc = "dx (Data Exchange) or nxtomo"},
    cli.option(projector.center, {default = false}),
    {"axis-tilt", value = "DEG", type = cli.between(-45, 45), default = 0,
        doc = "lean of the axis: further right in lower rows where positive; rows stay level"},
    {"photons", value = "N", type = cli.bounded {min = 0, max = MOST_PHOTONS}, default = 20000,
        doc = "counts of the open beam, which fit in 16 bits; 0: no noise, exact counts"},
    {"transmission", value = "T", type = cli.between(0, 1), default = 0.2,
        doc = "least transmission of the object, sets the contrast"},
    {"pixel-size", value = "UM", type = cli.between(1e-7, 1e6), default = 1,
        doc = "pixel size in micrometers"},
    {"flats", value = "N", type = cli.up_to(MOST), default = 10, doc = "flat frames"},
    {"darks", value = "N", type = cli.up_to(MOST), default = 10, doc = "dark frames"},
    {"rings", value = "PART", type = cli.bounded {min = 0, below = 1}, default = 0,
        doc = "drift of column gains between flats and scan, causes rings"},
    cli.option(noise.seed, {default = 1}),
    cli.shared.device, cli.shared.overwrite, cli.shared.quiet, cli.shared.log,
    cli.shared.progress,
})

cli.outputs(options, {}, {{"OUT", extensions = file_name.HDF5, what = "scans are HDF5 files"}})
local device = cli.device(options)
local cols = options.size
local rows = options.rows or math.max(1, cols // 4)
local count = options.angles or math.ceil(1.5 * cols)
local center = options.center or (cols - 1) / 2
local photons = options.photons > 0 and options.photons or 20000
local exact = options.photons <= 0

local dtype = exact and "f32" or "u16"

-- The longest path through the head is about 2 * 0.92 * 0.2 + skull: scale densities so that it
-- transmits as asked.
local turns = math.abs(options.span) > 720
local angles = mb.tomo.angles(count, math.rad(turns and 360 or options.span))
local heights = mb.phantom.heights(rows)
local unit = mb.phantom.scale(mb.phantom.shepp_logan, cols / 2, math.max(rows / 2, 1))
local longest
do
    local probe <close> = mb.ellipsoid_projections(unit, {0, math.pi / 2}, heights, cols,
        {device = device})
    longest = mb.bound(1, probe.max, probe)
end
local density = -math.log(options.transmission) / longest
local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, cols / 2, math.max(rows / 2, 1),
    density)

-- Beam profile and pixel gains: smooth vignetting times a fixed pattern of 2 %.
local function beam(seed, spread)
    local pattern <close> = mb.random({rows, cols},
        {seed = seed, low = 1 - spread, high = 1 + spread, device = device})
    local x <close> = mb.linspace(-1, 1, cols, {device = device})
    local vignetting <close> = 1 - 0.3 * x * x
    return pattern * vignetting
end
local gains <close> = beam(options.seed, 0.02)
local scan_gains = gains
if options.rings > 0 then
    local drift <close> = mb.random({cols}, {seed = options.seed + 1, low = 1 - options.rings,
        high = 1 + options.rings,
        device = device})
    scan_gains = gains * drift
end

local element = 0 -- position in the stream of random numbers
-- Counts of frames with the given transmission (frames, rows, cols), as the detector would store
-- them.
local function expose(transmission, gain)
    local mean = transmission * gain
    mb.binary(mean, "mul", {scalar = photons, out = mean})
    mb.binary(mean, "add", {scalar = DARK_LEVEL, out = mean})
    if not exact then
        mb.poisson(mean, {seed = options.seed, first = element, out = mean})
        element = element + mean.elements
    end
    local stored = mean:cast(dtype)
    if stored ~= mean then
        mean:release()
    end
    return stored
end

local file <close> = mb.h5.create(options.out, {overwrite = options.overwrite})
local degrees = {}
for i, angle in ipairs(angles) do
    degrees[i] = turns and (i - 1) * options.span / count or math.deg(angle)
    angles[i] = turns and math.rad(degrees[i]) % (2 * math.pi) or angle
end
local pixel = options.pixel_size * 1e-6

-- Both layouts hold the same frames; NXtomo keeps them in one dataset: darks, flats, projections.
local writers = {}
if options.format == "dx" then
    file:write("/implements", "exchange")
    file:group("/exchange", "NXdata") -- which Data Exchange does not know, but viewers look for
    file:set_attribute("/", "default", "exchange")
    file:set_attribute("/exchange", "signal", "data")
    file:set_attribute("/exchange", "axes", {"theta", ".", "."})
    file:write("/exchange/theta", mb.array(degrees, {dtype = "f64"}),
        {attributes = {units = "deg"}})
    file:write("/measurement/instrument/detector/pixel_size", options.pixel_size,
        {attributes = {units = "um"}})
    for name, path in pairs {data = "data", flats = "data_white", darks = "data_dark"} do
        local frames = name == "data" and count or options[name]
        local dataset = file:create_dataset("/exchange/" .. path,
            {shape = {frames, rows, cols}, dtype = dtype,
            attributes = {axes = name == "data" and "theta:y:x" or nil}})
        writers[name] = function(array, first)
            dataset:write(array, {first, first + array.shape[1] - 1})
        end
    end
else
    local total = options.darks + options.flats + count
    local keys, all = {}, {}
    for i = 1, total do
        keys[i] = i <= options.darks and 2 or i <= options.darks + options.flats and 1 or 0
        all[i] = degrees[i - options.darks - options.flats] or 0
    end
    for _, group in ipairs {"/entry NXentry", "/entry/instrument NXinstrument",
        "/entry/instrument/detector NXdetector", "/entry/sample NXsample", "/entry/data NXdata"} do
        file:group(group:match "%S+", group:match "%S+$")
    end
    file:set_attribute("/", "NX_class", "NXroot")
    file:set_attribute("/", "default", "entry")
    file:set_attribute("/entry", "default", "data")
    file:set_attribute("/entry/data", "signal", "data")
    file:set_attribute("/entry/data", "axes", {"rotation_angle", ".", "."})
    file:write("/entry/definition", "NXtomo")
    file:write("/entry/sample/name", "Shepp-Logan phantom, simulated")
    file:write("/entry/sample/rotation_angle", mb.array(all, {dtype = "f64"}),
        {attributes = {units = "degree"}})
    file:write("/entry/instrument/detector/image_key", mb.array(keys, {dtype = "i32"}))
    for _, axis in ipairs {"x", "y"} do
        file:write(("/entry/instrument/detector/%s_pixel_size"):format(axis), pixel,
            {attributes = {units = "m"}})
    end
    local dataset = file:create_dataset("/entry/instrument/detector/data",
        {shape = {total, rows, cols}, dtype = dtype, attributes = {interpretation = "image"}})
    for _, path in ipairs {"instrument/detector/data", "sample/rotation_angle",
        "instrument/detector/image_key"} do
        file:link("/entry/" .. path, "/entry/data/" .. path:match "[^/]+$")
    end
    for name, before in pairs {darks = 0, flats = options.darks,
        data = options.darks + options.flats} do
        writers[name] = function(array, first)
            dataset:write(array, {before + first, before + first + array.shape[1] - 1})
        end
    end
end

local function write_frames(name, transmission, gain, first)
    local counts <close> = expose(transmission, gain)
    writers[name](counts, first)
end

for name, open in pairs {flats = 1, darks = 0} do
    local flat <close> = mb.full({options[name], rows, cols}, open, {device = device})
    write_frames(name, flat, gains, 1)
end
-- Line integrals of some projections. Where the axis leans, each row has its own column.
local function project(part)
    if options.axis_tilt == 0 then
        return mb.ellipsoid_projections(ellipsoids, part, heights, cols,
            {center = center, device = device})
    end
    local integrals = mb.empty({#part, rows, cols}, {device = device})
    for row = 1, rows do
        local column = center + math.tan(math.rad(options.axis_tilt)) * (row - (rows + 1) / 2)
        local to <close> = integrals:view(mb.all, {row, row}, mb.all)
        local from <close> = mb.ellipsoid_projections(ellipsoids, part, {heights[row]}, cols,
            {center = column, device = device})
        mb.convert(from, "f32", {out = to})
    end
    return integrals
end

local frames = math.max(1, math.min(count, (32 << 20) // (4 * rows * cols)))
local bar = progress.new("simulating", count, {unit = "projections", quiet = options.quiet})
for first = 1, count, frames do
    local last = math.min(first + frames - 1, count)
    local part = table.move(angles, first, last, 1, {})
    local integrals <close> = project(part)
    mb.unary(integrals, "neg", {out = integrals})
    mb.unary(integrals, "exp", {out = integrals})
    write_frames("data", integrals, scan_gains, first)
    bar:step(last - first + 1)
end
-- What the reconstruction should give, so that the error can be computed: the phantom's scale
-- travels with the scan.
file:group("/simulation")
file:write("/simulation/phantom", "3-D Shepp-Logan, higher contrast")
file:write("/simulation/ellipsoids", mb.array(ellipsoids, {dtype = "f64"}), {attributes = {
    columns = "density per px, half axes a b c, center x y z, phi", units = "px, rad"}})
file:write("/simulation/center", center, {attributes = {units = "px"}})
file:write("/simulation/axis_tilt", options.axis_tilt, {attributes = {units = "deg"}})
if scan_gains ~= gains then
    scan_gains:release()
end
file:finish()
bar:finish()
cli.print(("%s: %d projections of %d x %d over %g degrees, %d flats, %d darks, axis at column "
    .. "%g%s"):format(options.out, count,
    rows, cols, options.span, options.flats, options.darks, center,
    options.axis_tilt ~= 0 and (", leaning %g degrees"):format(options.axis_tilt) or ""))
