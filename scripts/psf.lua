--- Writes a point spread function to a file, a model or that of an image of beads, with the size of
-- its voxels and how it was made.

local mb = require "moonbeam"
local bead_psf = require "moonbeam.internal.command_line.bead_psf"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local cli = require "moonbeam.internal.cli"
local declared = require "moonbeam.internal.declared"
local log = require "moonbeam.internal.log"
local promise = require "moonbeam.plan.promise"
local result_layouts = require "moonbeam.internal.command_line.result_layouts"
local process_memory = require "moonbeam.internal.process_memory"
local psf_options = require "moonbeam.internal.command_line.psf_options"
local surface = require "moonbeam.internal.command_line.surface"

local pictures = declared.of(mb.view.save).options
local FORMATS <const> = {"tif", "tiff", "h5", "hdf5", "zarr", "npy"}

-- "65,65,65", or "65,65" of one plane.
local function size_of(text)
    local size = cli.extents(2)(text)
    if size then
        return {1, size[1], size[2]}
    end
    return cli.extents(3)(text)
end

local options = cli.parse(arg, {
    usage = "psf -o FILE [options]",
    summary = "Makes a point spread function from the optics of a microscope, for deconvolve and "
        .. "convolve.",
    {"output", short = "o", value = "FILE",
        doc = "what to write: .tif (.ome.tif), .h5 or .zarr, with the size of voxels and how it "
            .. "was made; or .npy"},
    {"size", short = "n", value = "Z,Y,X", type = size_of, default = {65, 65, 65},
        also = {"shape", "nx", "nxy", "psf-size", "extents"},
        doc = "extents, or Y,X: one plane; the focus is in the middle, (n - 1) / 2 rounded down"},
    psf_options.list(),
    bead_psf.OPTIONS,
    result_layouts.OPTIONS, cli.shared.overwrite,
    {"plan", doc = "print the bytes; compute and write nothing"},
    cli.shared.device, cli.shared.budget, cli.shared.host_budget,
    {"preview", short = "p", value = "FILE", doc = "PNG: maximum projections XY, ZY, XZ"},
    cli.option(pictures.gamma, {default = 2, of = "picture"}),
    cli.shared.sz, cli.shared.quiet, cli.shared.log, cli.shared.progress,
    notes = "All lengths are in nanometers. The sum of the values is 1. deconvolve can use twice "
        .. "the slices of its\nimage, less one; more is cut off.\n"
        .. "Exit status: 0 done, 1 failed, 2 wrong use.",
})

local say = cli.speakers(options)
bead_psf.check(options)
options.one_plane = not options.from_beads and options.size[1] == 1
if not options.from_beads then
    psf_options.check(options)
end
local missing = options.from_beads and {} or psf_options.missing(options)
if not options.output and not options.plan then
    table.insert(missing, 1, "--output")
end
cli.missing(missing)
if psf_options.count(options) > 1 then
    cli.wrong("a file has one PSF: give one wavelength; deconvolve takes one for each channel")
end
if not options.from_beads then
    psf_options.try(options)
end
local device = cli.device(options)
result_layouts.check(options, options.output)
if not options.plan then
    cli.outputs(options, {options.from_beads}, {{"output", extensions = FORMATS, folder = true},
        {"preview"}})
end

local size = options.size
local function make()
    return psf_options.make(options, size, device, 1)
end
if options.from_beads then
    size, make = bead_psf.open(options, device, say)
end

if not options.from_beads then
    psf_options.tell(options, say)
end
say("PSF        %s, %s", table.concat(size, " x "), options.from_beads
    or psf_options.text(options, 1))
if options.step then
    say("voxel      %g x %g x %g nm (z, y, x)", options.step, options.pixel, options.pixel)
else
    say("pixel      %g x %g nm (y, x), one plane", options.pixel, options.pixel)
end
-- The values along an axis through the middle; none in a dry run.
local function line_of(psf, axis)
    local ranges = {}
    for i, n in ipairs(size) do
        ranges[i] = i == axis and {1, n} or {(n + 1) // 2, (n + 1) // 2}
    end
    local view <close> = psf:view(table.unpack(ranges))
    local line <close> = view:copy()
    local flat <close> = line:reshape(line.elements)
    return mb.device.dry() and {} or flat:to_table()
end

-- The full width at half maximum along an axis, in samples; nil where the PSF is cut off before.
local function width_of(psf, axis)
    local values, middle = line_of(psf, axis), (size[axis] + 1) // 2
    local function beyond(sign)
        for i = 1, #values do
            local here, before = values[middle + sign * i], values[middle + sign * (i - 1)]
            if not here then
                return nil
            elseif here <= values[middle] / 2 then
                return i - (values[middle] / 2 - here) / (before - here)
            end
        end
    end
    local low, high = beyond(-1), beyond(1)
    return low and high and low + high
end

local function width_text(psf, axis, step)
    local width = width_of(psf, axis)
    local nm = (width or 0) * step
    return not width and "wider than the file" or nm < 1000 and ("%.1f nm"):format(nm)
        or ("%.4g um"):format(nm / 1000)
end

local function write(psf, report)
    local parameters = report and {beads = report.chosen, found = report.found,
        bead_diameter = options.bead_diameter, image = options.from_beads}
        or psf_options.settings(options, 1)
    parameters.step = parameters.step and options.step -- a plane may have none
    parameters.model, parameters.device = not report and options.model or nil, device.id
    if options.output:lower():find "%.npy$" then
        mb.images.write(options.output, psf, {overwrite = options.overwrite})
        return
    end
    local out <close> = mb.result.create(options.output, {shape = size,
        units = "1", title = "point spread function", pixel_size = options.pixel * 1e-9,
        slice_distance = options.step and options.step * 1e-9, parameters = parameters,
        tiff_layout = options.tiff_layout, zarr_layout = options.zarr_layout,
        overwrite = options.overwrite})
    out:write(psf, 1)
    out:finish()
end

local function draw(psf)
    local sxy, sz = 1, options.sz
    if not sz then
        sxy, sz = surface.stretch(options.step and options.step / options.pixel or 1)
    end
    local here <close> = psf:to "host"
    mb.view.projections(options.preview, here, {sxy = sxy, sz = sz, gamma = options.gamma,
        percentiles = {0, 100}, overwrite = options.overwrite})
    say("picture    %s", options.preview)
end

-- All that the command does.
local function work()
    local psf, report
    if options.from_beads then
        psf, report = bead_psf.run(options, make)
        bead_psf.tell(report, say)
    else
        psf = make()
    end
    local _ <close> = psf
    say("width      %s across%s (full width at half maximum)", width_text(psf, 3, options.pixel),
        size[1] > 1 and (", %s along the axis"):format(width_text(psf, 1, options.step)) or "")
    if options.output then
        write(psf, report)
        say("result     %s, float32, sum 1: %s", table.concat(size, " x "), options.output)
    end
    if options.preview then
        cli.afterwards("--preview", options.preview, draw, psf)
    end
end

local function peak_text(on_device, on_host)
    local format_bytes = mb.device.format_bytes
    return ("peak %s (%d bytes)"):format(format_bytes(on_device), on_device)
        .. (on_host and on_host > 0 and (", on the host %s (%d bytes)"):format(
            format_bytes(on_host), on_host) or "")
end

call_budget.part("the PSF", work)
local predicted = call_budget.peak(device.id)
say("memory     %s", peak_text(predicted, device.kind ~= "host" and call_budget.peak "host" or nil))
result_layouts.tell(say, options, options.output, {shape = size, dtype = "f32"})
if options.plan then
    return
end
local measured, on_host = process_memory.measured(device, function()
    cli.tried({}, work)
end)
if not log.failed then
    promise.check_bytes("the PSF", measured, predicted)
end
say("measured   %s", peak_text(measured, on_host))
