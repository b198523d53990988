--- The PSF of an image of beads as the command line of moonbeam psf describes it: its options, the
-- work, and what is said of the beads.

local cli = require "moonbeam.internal.cli"
local counted = require "moonbeam.internal.quantities.counted"
local given_image = require "moonbeam.internal.deconvolve.given_image"
local mb = require "moonbeam"
local progress = require "moonbeam.progress"

local bead_psf = {}

bead_psf.OPTIONS = {
    {"from-beads", value = "FILE", doc = "the PSF is that of an image of beads, not a model: beads "
        .. "are found, aligned and averaged; of one plane the PSF is of one plane"},
    {"bead-diameter", value = "NM", type = cli.between(0), doc = "--from-beads: of the beads, "
        .. "which is taken out (default: points)"},
    {"saturation", value = "X", type = cli.between(0), doc = "--from-beads: value from which the "
        .. "camera is saturated (default: the image's largest, where a bead has it 3 times)"},
    {"channel", value = "N", type = cli.count, doc = "--from-beads: of an image of several"},
    {"frame", value = "N", type = cli.count, also = {"time"}, doc = "--from-beads: of an image of "
        .. "several times"},
}
table.move(given_image.OPTIONS, 1, #given_image.OPTIONS, #bead_psf.OPTIONS + 1, bead_psf.OPTIONS)

local OWN <const> = {"bead_diameter", "saturation", "channel", "frame", "axes", "pages",
    "image_number"}
local MODEL <const> = {"model", "na", "index", "index_sample", "depth", "wavelength", "excitation",
    "pinhole", "sheet", "sheet_na", "field", "polarization"}

local function refuse(options, names, text)
    for _, name in ipairs(names) do
        if options.given[name] then
            cli.wrong(text, (name:gsub("_", "-")))
        end
    end
end

--- Ends the program where options do not go together.
function bead_psf.check(options)
    if options.from_beads then
        refuse(options, MODEL, "--%s is for a model, and --from-beads measures the PSF: leave one "
            .. "of them out")
        if not (options.output or options.plan) then
            cli.missing {"--output"}
        end
    else
        refuse(options, OWN, "--%s is for --from-beads FILE, which is missing")
    end
end

--- Opens the image. Returns the extents of the PSF and a function that makes it on a device and
-- returns it and the report of mb.beads.psf.
function bead_psf.open(options, device, say)
    options.image = options.from_beads
    local image = given_image.open(options, say)
    if image:is_series() then
        local slices = given_image.slices_told(image.meta, image.shape, options.image)
        cli.wrong("%s has %s and %s, and a PSF is of one: give --channel and "
            .. "--frame%s", options.image, counted(image.meta.channels, "channel"),
            counted(image.meta.frames, "time"),
            slices and "; where the planes are slices, --axes Z says so" or "")
    end
    local shape = image.shape
    if #shape == 2 or shape[1] == 1 then -- a plane has no step
        shape, options.step = {1, shape[#shape - 1], shape[#shape]}, nil
    end
    cli.missing({not options.pixel and "--pixel" or nil,
        shape[1] > 1 and not options.step and "--step" or nil},
        "the image does not say the size of its voxels")
    local function make(step)
        local volume <close> = image:stored(1, 1)
        local loaded <close> = mb.volumes.load(volume, device)
        local stack <close> = loaded:reshape(shape)
        return mb.beads.psf(stack, {size = options.given.size and options.size or nil,
            bead_diameter = options.bead_diameter or 0, saturation = options.saturation,
            spacing = {options.step or options.pixel, options.pixel, options.pixel}, step = step})
    end
    local size
    cli.checked(mb.dry_run, function()
        local psf <close> = make()
        size = psf.shape
    end)
    return size, function(bar)
        return cli.tried({}, make, bar)
    end
end

--- Runs make, which bead_psf.open returned, with progress, and says what the beads were.
function bead_psf.run(options, make)
    local bar = progress.new("beads", 0, {quiet = options.quiet})
    local psf, report = make(function()
        bar:step(1)
    end)
    bar:finish()
    return psf, report
end

--- Says how many beads were found, how many were taken, and why others were left out; nothing in a
-- dry run, which finds none.
function bead_psf.tell(report, say)
    if mb.device.dry() then
        return
    end
    local parts = {}
    for _, each in ipairs {{"border", "nearer to a border than half the box"},
        {"saturated", "saturated"}, {"close", "too close to another"}, {"faint", "too faint"},
        {"unlike", "unlike the others"}} do
        local count = report[each[1]]
        parts[#parts + 1] = count > 0 and ("%d %s"):format(count, each[2]) or nil
    end
    say("beads      %d found, %d averaged%s", report.found, report.chosen,
        #parts > 0 and "; left out: " .. table.concat(parts, ", ") or "")
end

return bead_psf
