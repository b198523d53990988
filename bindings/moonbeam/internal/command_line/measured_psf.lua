--- A measured PSF as a command line describes it: its file, the background under it, and the
-- distance of its samples.

local cli = require "moonbeam.internal.cli"
local counted = require "moonbeam.internal.quantities.counted"
local gate = require "moonbeam.deconv.value_gate"
local is_model = require "moonbeam.internal.command_line.psf_origin"
local mb = require "moonbeam"
local on_error = require "moonbeam.internal.on_error"

local measured_psf = {}

--- The option that says how far apart the samples of a measured PSF are.
measured_psf.SPACING = {"psf-spacing", value = "Z,Y,X", type = cli.numbers,
    doc = "distance of a measured PSF's samples, Y,X of one plane: resampled to --step and "
        .. "--pixel"}

-- The level to subtract from a measured PSF: what lies under it is said, or warned about where it
-- stays. With "auto" nothing lies under a model.
local function background_of(psf, options, say)
    local choice = options.psf_background
    if choice == "none" then
        return 0
    end
    local found = mb.psf.background(psf)
    if choice == "auto" and is_model(options.psf) then
        return 0
    end
    if type(choice) == "number" then
        say("background %.6g subtracted from the PSF (the median of its faces is %.6g)", choice,
            found.level)
        return choice
    elseif found.level > 0 and (choice == "faces" or choice == "auto" and found.flat) then
        say("background %.6g subtracted from the PSF: the median of its faces, %.3g %% of its "
            .. "sum (--psf-background)",
            found.level, 100 * found.share)
        return found.level
    elseif found.level < 0 and (choice == "faces" or choice == "auto" and found.flat) then
        say("background %.6g, the median of the PSF's faces, is below 0: it was subtracted too "
            .. "far, and is added again (--psf-background)", found.level)
        return found.level
    elseif choice == "auto" and found.share > 0.1 then
        cli.warn("the median of the PSF's faces is %.4g, %.3g %% of its sum if that is a "
            .. "background; they are not flat, so nothing is subtracted: --psf-background faces or "
            .. "a number does, none is silent", found.level, 100 * found.share)
    end
    return 0
end

-- The PSF without its background and without values below 0: how much these were is said, where
-- noise lies around a background, or warned about. Ends the program where they are too much, unless
-- the level was typed.
local function above_zero(psf, options, say)
    local level = background_of(psf, options, say)
    local left = mb.psf.subtract_background(psf, level)
    local _ <close> = on_error(function() left:release() end)
    local share = gate.subtracted_share("deconvolve", psf, level, left)
    if type(options.psf_background) ~= "number" then
        gate.check_psf_share("deconvolve", share)
    end
    if share > 0 and level == 0 then
        cli.warn("values of the PSF below 0, %.3g %% of its |sum|, count as 0", 100 * share)
    elseif share > 0 then
        say("           values below it, %.3g %% of the |sum| that is left, count as 0",
            100 * share)
    end
    return left
end

-- The PSF as the kernel of a convolution: values below 0 are values like others. What lies under it
-- stays, and is warned about.
local function as_kernel(psf, options)
    gate.kernel("convolve", psf, options.normalize)
    local found = mb.psf.background(psf)
    if found.flat and found.level > 0 and not is_model(options.psf) then
        cli.warn("the PSF stands on a background of %.4g, %.3g %% of its sum, which is convolved "
            .. "too", found.level, 100 * found.share)
    end
    return psf:cast("f32")
end

-- A PSF resampled to the image's voxels about its center, with sum 1, or with its own sum (`keep`).
local function resampled(psf, options, keep)
    local to = {options.step, options.pixel, options.pixel}
    local sum = keep and mb.psf.sum(psf)
    local result = mb.psf.resample(psf, options.psf_spacing, table.move(to, 4 - psf.rank, 3, 1,
        {}), {center = options.center or "middle"})
    return keep and mb.binary(result, "mul", {scalar = sum, out = result}) or result
end

-- Warns where the PSF's file says another size of voxels than the image's. One plane has no step,
-- whatever its file says.
local function compare_voxels(psf, told, options)
    local stack = psf.rank == 3 and psf.shape[1] > 1
    for _, name in ipairs {"pixel", stack and "step" or nil} do
        local nm = told.voxel and told.voxel[name] and told.voxel[name] * 1e9
        if nm and options[name] and math.abs(nm / options[name] - 1) > 0.01 then
            cli.warn("%s says that its %s is %.4g nm; that of the image is %.4g nm: --psf-spacing "
                .. "resamples the PSF", options.psf, name, nm, options[name])
        end
    end
end

--- Does a PSF of so many axes serve every plane of an image of `rank` axes?
function measured_psf.serves_planes(axes, rank)
    return axes == 2 and rank == 3
end

-- Ends the program where --psf-spacing is not for a PSF of `axes` axes, or lacks what it resamples
-- to.
local function check_spacing(axes, options)
    local count = options.psf_spacing and #options.psf_spacing or axes
    if count ~= axes then
        cli.wrong("--psf-spacing has %s, and the PSF %s has %s: give %s",
            counted(count, "number"), options.psf,
            counted(axes, "axis", "axes"), axes == 3 and "Z,Y,X" or "Y,X")
    elseif options.psf_spacing and axes == 3 and not (options.pixel and options.step) then
        cli.wrong("--psf-spacing needs --pixel and --step, the image's own")
    elseif options.psf_spacing and not options.pixel then
        cli.wrong("--psf-spacing of a PSF of one plane needs --pixel, the image's own")
    end
end

--- Ends the program where the file of options.psf cannot be opened, is not for images of `rank`
-- axes, or an option for it lacks another. `slices`: what to do where the image's planes may be
-- slices, or nil. `planes`: a PSF of one plane serves every plane of a stack. Returns the PSF's
-- extents.
function measured_psf.check(options, rank, slices, planes)
    local psf <close> = cli.tried({}, mb.images.open, options.psf)
    if planes and measured_psf.serves_planes(#psf.shape, rank) then
        check_spacing(#psf.shape, options)
        return {1, psf.shape[1], psf.shape[2]}
    elseif #psf.shape ~= rank and rank == 2 and slices then
        cli.wrong("%s; the PSF %s is a stack (or give a PSF of (y, x))", slices, options.psf)
    elseif #psf.shape ~= rank then
        cli.wrong("the PSF %s has %s, and the image %d: give a PSF of (%sy, x)", options.psf,
            counted(#psf.shape, "axis", "axes"), rank, rank == 3 and "z, " or "")
    end
    check_spacing(#psf.shape, options)
    return psf.shape
end

--- The measured PSF of options.psf, which was checked, on a device, each step in place of the one
-- before. Says what was done; where it was resampled, options.center becomes the middle. A PSF of
-- one plane for an image of `rank` axes gets the extent 1 in z. `kernel`: it is for a convolution.
function measured_psf.read(options, id, say, rank, kernel)
    local psf, told = cli.tried({}, mb.images.read, options.psf, id)
    local counts = {told.channels or 1, told.frames or 1, told.slices or 1}
    table.sort(counts)
    if counts[2] > 1 then
        cli.warn("the PSF %s has %s, %s and %s; all of them are taken for planes of one PSF: save "
            .. "one channel of one time", options.psf, counted(told.channels, "channel"),
            counted(told.frames, "time"), counted(told.slices, "slice"))
    end
    if not options.psf_spacing then
        compare_voxels(psf, told, options)
    end
    local function become(f, ...)
        local owned <close> = psf
        psf = f(owned, ...)
    end
    become(function(owned)
        return cli.tried({["normalize = false"] = kernel and "leaving --normalize out"},
            kernel and as_kernel or above_zero, owned, options, say)
    end)
    if options.psf_spacing then
        become(function(owned)
            return cli.tried({}, resampled, owned, options, kernel)
        end)
        options.center = "middle"
    end
    if psf.rank == 2 and rank == 3 then
        become(function(owned)
            local plane <close> = owned:reshape {1, owned.shape[1], owned.shape[2]}
            return plane:view()
        end)
    end
    return psf
end

return measured_psf
