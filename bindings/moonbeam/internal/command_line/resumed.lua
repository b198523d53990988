--- What options mean for a run that --resume goes on with, of the commands that have it: each
-- declared option is here.
--
-- `part`: what identifies the run has what the option makes (pipeline/journal.lua and
-- tiled_deconv/tile_journal.lua), so that another value is another run. `typed`: it has the value
-- as typed. `refused`: a run by tiles does not have the option. Any other text says why the option
-- may change: the volume has the same bits.

local resumed = {}

local RANKS <const> = "bits do not depend on how the work is shared"
local TALK <const> = "what is printed"
local PICTURE <const> = "a picture of the result, made in the end"
local PLAN <const> = "nothing is computed"
local MEMORY <const> = "bits do not depend on the memory"
local NAME <const> = "the folder of the run has this name"
local ITSELF <const> = "what is asked of the run itself"

resumed.reconstruct = {
    output = NAME, overwrite = ITSELF, resume = ITSELF, discard = ITSELF, plan = PLAN, png = PLAN,
    ["print-recipe"] = PLAN, slurm = PLAN, ranks = PLAN, ["ranks-per-node"] = PLAN,
    center = "part", ["axis-tilt"] = "part", filter = "part", cutoff = "part", padding = "part",
    ["pad-width"] = "part", ["half-acquisition"] = "part", ["no-half-acquisition"] = "part",
    ["vertical-shifts"] = "part", ["angle-weights"] = "part", ["shifted-rows"] = "part",
    method = "part", rows = "part", part = "part", size = "part", circle = "part",
    accuracy = "part", ["output-dtype"] = "part", ["output-range"] = "part",
    ["slices-per-file"] = "part", ["tiff-layout"] = "part", ["zarr-layout"] = "part",
    layout = "part", flip = "part",
    ["reverse-rotation"] = "part", ["no-reverse-rotation"] = "part", ["flat-mode"] = "part",
    ["flat-interpolation"] = "part", ["normalize-current"] = "part", ["no-log"] = "part",
    angles = "part", ["angle-unit"] = "part", ["pixel-size"] = "part", ["data-path"] = "part",
    ["flats-path"] = "part", ["darks-path"] = "part", flats = "part", darks = "part",
    ["angles-path"] = "part", ["image-key-path"] = "part", ["flat-positions-path"] = "part",
    ["current-path"] = "part", ["flats-current-path"] = "part", ["flats-exposure"] = "part",
    ["bad-flats"] = "part", ["bad-darks"] = "part", ["bad-projections"] = "part",
    ["counts-as"] = "part", axes = "part", entry = "part", recipe = "part", steps = "part",
    set = "part", row = "part", vertical = "part", input = "part",
    iterations = "part", tikhonov = "part", preconditioner = "part", beyond = "part",
    margin = "part", start = "part", tolerance = "part", noise = "part", check = "part",
    model = "part", weights = "part", relaxation = "part", nonnegative = "part", lambda = "part",
    ["tv-iterations"] = "part", dimensions = "part", slab = "part", ["slab-overlap"] = "part",
    inner = "part", rho = "part", taper = "part", subsets = "part", negative = "part",
    discrepancy = "part",
    mode = "how memory is used, with the same bits",
    device = "the models of the devices are a part, their number is none",
    budget = MEMORY, ["host-budget"] = MEMORY, chunk = MEMORY, pinned = MEMORY, scratch = MEMORY,
    ["no-overlap"] = MEMORY, threads = RANKS,
    preview = PICTURE, ["preview-range"] = PICTURE, ["preview-rows"] = PICTURE,
    ["center-picture"] = "a picture of the search for the axis",
    sweep = "its stack of slices cannot be resumed", snapshots = "its pictures cannot be resumed",
    ["allow-missing"] = "the frames that are left out are a part",
    ["allow-external"] = "the linked files are a part",
    ["trust-paths"] = "the files are a part", wait = "the scan that was waited for is a part",
    verbose = TALK, quiet = TALK, log = TALK, progress = TALK,
}

resumed.deconvolve = {
    output = NAME, into = NAME, format = NAME, ["skip-done"] = ITSELF, overwrite = ITSELF,
    resume = ITSELF, discard = ITSELF, plan = PLAN, ranks = PLAN, ["ranks-per-node"] = PLAN,
    slurm = PLAN, psf = "part", ["output-dtype"] = "part", iterations = "part",
    acceleration = "part", ["total-variation"] = "part", tolerance = "part", metrics = "part",
    background = "part", boundary = "part", center = "part", ["psf-background"] = "part",
    ["psf-crop"] = "part",
    ["psf-spacing"] = "part", model = "part", na = "part", index = "part",
    ["index-sample"] = "part", depth = "part", pinhole = "part", sheet = "part",
    ["sheet-na"] = "part", field = "part", polarization = "part", ["psf-size"] = "part",
    tiles = "part", tile = "part", curve = "part",
    channel = "typed", frame = "typed", offset = "typed", gain = "typed", wavelength = "typed",
    excitation = "typed", axes = "typed", pages = "typed", ["image-number"] = "typed",
    method = "refused", lambda = "refused", relaxation = "refused", seed = "refused",
    mask = "refused",
    pixel = "the PSF and its spacing are a part; what the result says is written in the end",
    step = "the PSF and its spacing are a part; what the result says is written in the end",
    ["tiff-layout"] = "the result is written in the end",
    ["zarr-layout"] = "the result is written in the end",
    place = MEMORY, device = "the models of the devices are a part, their number is none",
    budget = MEMORY, ["host-budget"] = MEMORY,
    snapshots = "a picture of the iterations of this process", every = PICTURE,
    preview = PICTURE, ["preview-image"] = PICTURE, ["preview-range"] = PICTURE,
    ["preview-z"] = PICTURE, sz = PICTURE,
    ["write-log"] = TALK, verbose = TALK, quiet = TALK, log = TALK, progress = TALK,
}

--- The options of a command whose typed values identify a run, sorted.
function resumed.typed(command)
    local names = {}
    for name, what in pairs(resumed[command]) do
        names[#names + 1] = what == "typed" and name or nil
    end
    table.sort(names)
    return names
end

return resumed
