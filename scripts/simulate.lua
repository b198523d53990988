--- Writes a simulated scan of an analytic phantom: raw counts with flats, darks and photon noise,
-- as a beamline would.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"
local declared = require "moonbeam.internal.declared"
local file_name = require "moonbeam.internal.file_name"
local detectors = require "moonbeam.simulation.detector"
local progress = require "moonbeam.progress"
local samples = require "moonbeam.simulation.sample"
local scan_writer = require "moonbeam.simulation.scan_writer"

local MOST = 1 << 20 -- of columns, rows and frames

local projector = declared.options(declared.from("ellipsoid_projections", "center"))
local noise = declared.options(declared.from("poisson", "seed"))

local LEAST_ENERGY <const> = 100 -- eV: less was meant in keV

local options = cli.parse(arg, {
    usage = "simulate OUT [options]",
    summary = "Simulates a parallel-beam scan of the 3-D Shepp-Logan phantom and writes it with "
        .. "flats and darks.",
    {"out", positional = true, required = true, doc = "the HDF5 file to write"},
    {"size", short = "n", value = "N", type = cli.up_to(MOST), default = 256,
        also = {"cols", "columns", "width", "nx"},
        doc = "detector columns"},
    {"rows", value = "N", type = cli.up_to(MOST), also = {"height", "slices", "nz"},
        doc = "detector rows (default: a quarter of the columns)"},
    {"angles", short = "a", value = "N", type = cli.up_to(MOST),
        also = {"projections", "theta", "nproj", "views"},
        doc = "projections (default: 1.5 per column)"},
    {"span", value = "DEG", type = cli.number, also = {"range", "angular-range", "angle-range"},
        doc = "angular range, the end left out (default: 180, of a half acquisition 360)"},
    {"half-acquisition",
        doc = "a whole turn with the axis near the right edge (default: at 85 % of the width)"},
    {"format", value = "NAME", default = "dx",
        type = cli.choice("dx", "nxtomo", {nexus = "nxtomo", nx = "nxtomo", nxs = "nxtomo",
            ["data-exchange"] = "dx", dxfile = "dx", hdf5 = "dx", h5 = "dx"}),
        doc = "dx (Data Exchange) or nxtomo"},
    cli.option(projector.center, {default = false}),
    {"axis-tilt", value = "DEG", type = cli.between(-45, 45), default = 0,
        doc = "lean of the axis: further right in lower rows where positive; rows stay level"},
    {"tilt", value = "DEG", type = cli.between(-45, 45), default = 0,
        doc = "turns the detector: as axis-tilt, but the rows of the object lean, too"},
    {"photons", value = "N", also = {"noise", "flux", "counts"},
        type = cli.bounded {min = 0, max = detectors.MOST_PHOTONS}, default = 20000,
        doc = "counts of the open beam, which fit in 16 bits; 0: no noise, exact counts"},
    {"transmission", value = "T", type = cli.between(0, 1), default = 0.2,
        doc = "least transmission of the object, sets the contrast"},
    {"pixel-size", value = "UM", type = cli.between(1e-4, 1e6), default = 1,
        doc = "pixel size in micrometers"},
    {"flats", value = "N", type = cli.up_to(MOST), default = 10, doc = "flat frames"},
    {"darks", value = "N", type = cli.up_to(MOST), default = 10, doc = "dark frames"},
    {"rings", value = "PART", type = cli.bounded {min = 0, below = 1}, default = 0,
        doc = "drift of column gains between flats and scan, causes rings"},
    {"stripes", value = "N", type = cli.up_to(MOST, 0), default = 0,
        doc = "defective columns: full, partial, large, dead and fluctuating stripes in turn"},
    {"zingers", value = "PART", type = cli.bounded {min = 0, below = 1}, default = 0,
        doc = "part of the elements that stray photons hit"},
    {"beam-drift", value = "PART", type = cli.bounded {min = 0, below = 1}, default = 0,
        doc = "what the beam loses until the end of the scan; half of the flats of an nxtomo file "
            .. "come after it"},
    {"distortion", value = "PX", type = cli.bounded {min = -MOST, max = MOST}, default = 0,
        doc = "how far the lens moves the middle of the left and right edges, outwards where "
            .. "positive; its center and factors are in dataset /simulation/distortion"},
    {"vertical-shifts", value = "PX", type = cli.bounded {min = 0, max = MOST}, default = 0,
        doc = "how far the stage moves up and down; in dataset /simulation/vertical_shifts"},
    {"horizontal-shifts", value = "PX", type = cli.bounded {min = 0, max = MOST}, default = 0,
        doc = "how far the stage moves sideways; in dataset /simulation/horizontal_shifts"},
    {"phase", value = "DELTA_BETA", type = cli.bounded {above = 0, max = 1e6},
        doc = "propagation behind a sample of one material with this delta/beta"},
    {"energy", value = "EV", type = cli.bounded {above = 0, max = 1e9}, default = 20000,
        doc = "phase: energy of the photons"},
    {"distance", value = "M", type = cli.bounded {above = 0, max = 1e6}, default = 0.01,
        doc = "phase: distance from the sample to the detector"},
    cli.option(noise.seed, {default = 1}),
    {"plan", doc = "print the memory of every step; compute and write nothing"},
    cli.shared.device, cli.shared.overwrite, cli.shared.quiet, cli.shared.log,
    cli.shared.progress,
    suggest = function(word)
        return (word == "o" or word == "output") and "OUT, the name alone, as in simulate scan.h5"
            or nil
    end,
})

if options.plan then
    cli.plan_all {}
end
local OUTPUTS <const> = {{"OUT", extensions = file_name.HDF5, what = "scans are HDF5 files"}}
cli.outputs(options, false, OUTPUTS)
if options.given.energy and options.energy < LEAST_ENERGY then
    cli.wrong("--energy is %g eV, which passes no sample; energies are in eV: give --energy %g for "
        .. "%g keV", options.energy, options.energy * 1000, options.energy)
end
local device = cli.device(options)
local cols = options.size
local rows = options.rows or math.max(1, cols // 4)
local count = options.angles or math.ceil(1.5 * cols)
local half = options.half_acquisition
local span = options.span or (half and 360 or 180)
if half and math.abs(span) < 360 then
    cli.wrong("--half-acquisition needs a whole turn; --span is %g; give 360, or leave --span out",
        span)
end
cli.outputs(options, {}, OUTPUTS)
local center = options.center or (half and 0.85 or 0.5) * (cols - 1)

-- The longest path through the head is about 2 * 0.92 * 0.2 + skull: scale densities so that it
-- transmits as asked.
local turns = math.abs(span) > 720
local angles = mb.tomo.angles(count, math.rad(turns and 360 or span))
local half_width = half and math.max(center, cols - 1 - center) or cols / 2
local unit = mb.phantom.scale(mb.phantom.shepp_logan, half_width, math.max(rows / 2, 1))
local longest
do
    local probe <close> = mb.ellipsoid_projections(unit, {0, math.pi / 2},
        mb.phantom.heights(rows), cols, {center = center, device = device})
    longest = mb.bound(1, probe.max, probe)
end
local density = -math.log(options.transmission) / longest
local ellipsoids = mb.phantom.scale(mb.phantom.shepp_logan, half_width, math.max(rows / 2, 1),
    density)

-- A slow drift of the stage with some jitter, at most `most` pixels: the same in every run.
local function shifts_of(most, phase)
    local list = {}
    for i = 1, count do
        local part = count > 1 and (i - 1) / (count - 1) or 0
        list[i] = most * (0.8 * math.sin(2.2 * math.pi * part + phase)
            + 0.2 * math.sin(40 * part + 3 * phase))
    end
    return most > 0 and list or nil
end

local pixel = options.pixel_size * 1e-6
local degrees = {}
for i, angle in ipairs(angles) do
    degrees[i] = turns and (i - 1) * span / count or math.deg(angle)
    angles[i] = turns and math.rad(degrees[i]) % (2 * math.pi) or angle
end
local sample = samples.new {ellipsoids = ellipsoids, angles = angles, rows = rows, cols = cols,
    center = center, tilt = math.rad(options.tilt),
    lean = math.tan(math.rad(options.axis_tilt)), pixel_size = pixel,
    vertical_shifts = shifts_of(options.vertical_shifts, 0.4),
    horizontal_shifts = shifts_of(options.horizontal_shifts, 1.7), device = device,
    phase = options.phase and {energy = options.energy, distance = options.distance,
        delta_beta = options.phase}}
-- Center and factors for mb.undistort, whose polynomial tells where a point of the object is seen.
local lens
if options.distortion ~= 0 then
    local middle = {(rows - 1) / 2 + 0.3, (cols - 1) / 2 - 0.7}
    lens = {center = middle, factors = {1, 0, options.distortion / (cols / 2) ^ 3}}
end
local detector <close> = detectors.new {rows = rows, cols = cols, frames = count,
    photons = options.photons > 0 and options.photons or 20000, exact = options.photons <= 0,
    rings = options.rings, stripes = options.stripes, zingers = options.zingers,
    beam_drift = options.beam_drift, lens = lens, seed = options.seed, device = device}

local file <close> = mb.h5.create(options.out, {overwrite = options.overwrite})
local late = options.format == "nxtomo" and options.beam_drift > 0 and options.flats // 2 or 0
local write = scan_writer.open(file, {format = options.format, data = count, flats = options.flats,
    darks = options.darks, flats_after = late, rows = rows, cols = cols, dtype = detector:dtype(),
    degrees = degrees, pixel_size = pixel})

local function write_references(name, frames, first, open, part)
    if frames > 0 then
        local counts <close> = detector:reference(frames, open, part)
        write[name](counts, first)
    end
end
write_references("flats", options.flats - late, 1, 1, 0)
write_references("flats", late, options.flats - late + 1, 1, 1)
write_references("darks", options.darks, 1, 0, 0)

local frames = math.max(1, math.min(count, (32 << 20) // (4 * rows * cols)))
local bar = progress.new("simulating", count, {unit = "projections", quiet = options.quiet})
for first = 1, count, frames do
    local last = math.min(first + frames - 1, count)
    local transmission <close> = sample:transmission(first, last)
    local counts <close> = detector:expose(transmission, first)
    write.data(counts, first)
    bar:step(last - first + 1)
end

-- What the reconstruction should give, so that the error can be computed: the phantom's scale
-- travels with the scan.
file:group("/simulation")
file:write("/simulation/phantom", "3-D Shepp-Logan, higher contrast")
file:write("/simulation/ellipsoids", mb.array(ellipsoids, {dtype = "f64"}), {attributes = {
    columns = "density per px, half axes a b c, center x y z, phi", units = "px, rad"}})
file:write("/simulation/center", center, {attributes = {units = "px"}})
file:write("/simulation/axis_tilt", options.axis_tilt + options.tilt,
    {attributes = {units = "deg"}})
for _, name in ipairs {"vertical_shifts", "horizontal_shifts"} do
    if sample[name] then
        file:write("/simulation/" .. name, mb.array(sample[name], {dtype = "f64"}),
            {attributes = {units = "px"}})
    end
end
if lens then -- the order of the files of other programs: x, y, factors
    file:write("/simulation/distortion", mb.array({lens.center[2], lens.center[1],
        table.unpack(lens.factors)}, {dtype = "f64"}))
end
if options.stripes > 0 then
    local list, names = detector:described()
    file:write("/simulation/stripes", mb.array(list, {dtype = "i32"}),
        {attributes = {columns = "first column, width, kind", kinds = names}})
end
if sample.phase then
    file:write("/simulation/energy", options.energy, {attributes = {units = "eV"}})
    file:write("/simulation/distance", options.distance, {attributes = {units = "m"}})
    file:write("/simulation/delta_beta", options.phase)
end
file:finish()
bar:finish()

local function also(condition, format, ...)
    return condition and (", " .. format):format(...) or ""
end
local say = cli.speakers(options)
say("%s: %d projections of %d x %d over %g degrees, %d flats, %d darks, axis at column "
    .. "%g%s%s%s%s%s", options.out, count, rows, cols, span, options.flats, options.darks,
    center, also(options.axis_tilt + options.tilt ~= 0, "leaning %g degrees",
        options.axis_tilt + options.tilt),
    also(options.stripes > 0, "%d stripes", options.stripes),
    also(options.zingers > 0, "zingers in %g of the elements", options.zingers),
    also(sample.vertical_shifts or sample.horizontal_shifts, "a drifting stage"),
    also(sample.phase, "delta/beta %g", options.phase))
