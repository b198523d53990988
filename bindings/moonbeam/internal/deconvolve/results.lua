--- The results of moonbeam deconvolve: how they were made, what they are, and their logs.

local cli = require "moonbeam.internal.cli"
local core = require "moonbeam.core"
local file_name = require "moonbeam.internal.file_name"
local mb = require "moonbeam"
local run_log = require "moonbeam.result.run_log"
local tables = require "moonbeam.internal.tables"
local voxel = require "moonbeam.tiff.voxel"

local results = {}

-- Options that are noted as they are, if they were given.
local NOTED <const> = {"acceleration", "total_variation", "tolerance", "lambda", "relaxation",
    "offset", "gain",
    "background", "mask", "boundary", "na", "index", "index_sample", "depth", "wavelength",
    "excitation", "pinhole", "sheet", "sheet_na", "field", "polarization", "psf_background",
    "psf_crop", "channel", "frame"}

local function plain(value)
    return type(value) == "table" and #value == 1 and value[1] or value
end

-- What a result of a job notes: a table for parameters.
local function parameters_of(job)
    local options, psfs = job.options, job.psfs
    local parameters = {method = options.method, model = not options.psf and options.model or nil,
        psf = options.psf and core.system.real_path(file_name.without_member(options.psf)) or nil,
        psf_shape = psfs.shape, psf_center = psfs.center, pixel_nm = options.pixel,
        step_nm = options.step, tiles = job.mode, device = job.device.id,
        iterations = job.settings.iterations}
    for _, name in ipairs(NOTED) do
        parameters[name] = plain(options[name] or nil)
    end
    return parameters
end

-- The unit of the values: that of the image's, or photons.
local function units_of(options)
    return options.gain and "photons" or "counts"
end

--- How the result of an image was made. A series of files is no file. `found`: more parameters.
function results.origin(job, image, found)
    local input = file_name.without_member(image)
    return {title = "deconvolution", units = units_of(job.options),
        input = core.system.stat(input) and input or nil,
        parameters = tables.merged(parameters_of(job), {image = image}, found)}
end

--- Ends the program where the result of several channels or times is neither TIFF nor OME-Zarr, or
-- where the latter has no planes. `name`: of it, or its extension; nil in a plan.
function results.check_series(name, shape)
    local own = name and "." .. name:gsub("/+$", "")
    if own and file_name.problem(own, file_name.TIFF) and file_name.problem(own, file_name.ZARR)
        then
        cli.wrong("only TIFF and OME-Zarr results hold several channels and times, not '%s': give "
            .. "a name that ends in .tif or .zarr (--into: --format tif or zarr), or one volume "
            .. "with --channel N --frame N", name)
    elseif own and #shape == 2 and not file_name.problem(own, file_name.ZARR) then
        cli.wrong("OME-Zarr results are stacks (z, y, x), and this image is %s: give a name that "
            .. "ends in .tif (--into: --format tif), not '%s'", table.concat(shape, " x "), name)
    end
end

--- A new result. `each`: {image, output, meta}; `journal` nil: nothing is kept.
function results.create(job, each, origin, journal)
    local image, options = job.image, job.options
    return mb.images.create(each.output, {shape = image.shape, dtype = job.dtype,
        channels = image.channels, frames = image.frames, origin = origin,
        meta = next(image.typed) and voxel.said(each.meta, image.typed) or each.meta,
        voxel = {pixel = options.pixel and options.pixel * 1e-9,
            step = options.step and options.step * 1e-9}, tiff_layout = options.tiff_layout,
        zarr_layout = options.zarr_layout,
        inside = journal and journal:folder() or nil,
        overwrite = options.overwrite or journal and journal:may_replace() or false})
end

local MOST <const> = {u8 = 255, u16 = 65535}

--- Says what a result is, and warns where its values were clamped.
function results.tell(job, output, least, greatest)
    local most, dtype = MOST[job.dtype], job.options.output_dtype
    if most and least and (least < -0.5 or greatest > most + 0.5) then
        cli.warn("values of %.5g to %.5g were clamped to the range of %s", least, greatest, dtype)
    end
    job.say("result     %s, %s%s: %s", table.concat(job.image.shape, " x "), dtype, least
        and (", range %.5g to %.5g"):format(least, greatest) or "", output)
end

--- The name of the log beside a result.
function results.log_of(output)
    return file_name.without_member(output):gsub("/+$", "") .. ".log"
end

--- Writes the log beside a result. `memory`: {name = bytes}; each.said: what it has of the
-- messages, as ranges.
function results.write_log(job, each, memory)
    local options = job.options
    if options.write_log and not mb.device.dry() then
        each.origin.memory = memory
        run_log.write(results.log_of(each.output), each.origin, options.overwrite
            or options.resume, each.said)
    end
end

return results
