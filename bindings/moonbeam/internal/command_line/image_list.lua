--- Several images of one command line (IMAGE... --into FOLDER): what their results are called,
-- which of them can be worked on together, and the summary.

local cli = require "moonbeam.internal.cli"
local core = require "moonbeam.core"
local counted = require "moonbeam.internal.quantities.counted"
local given_image = require "moonbeam.internal.deconvolve.given_image"
local log = require "moonbeam.internal.log"
local mb = require "moonbeam"
local measured_psf = require "moonbeam.internal.command_line.measured_psf"

local image_list = {}

--- The options, beside the positional list `image`.
image_list.OPTIONS = {
    {"into", value = "FOLDER",
        doc = "several images: write FOLDER/NAME.EXTENSION for each, and go on where one fails"},
    {"format", value = "EXTENSION", type = cli.choice("tif", "h5", "zarr", "npy"), default = "tif",
        doc = "--into: what results are"},
    {"skip-done", doc = "--into: leave images alone that have a result"},
}

-- NAME of FOLDER/NAME.EXTENSION for an image.
local function name_of(image)
    local stem = image:gsub(":/.*$", ""):gsub("/+$", ""):match "[^/]*$"
    if stem:find "[*?]" then
        cli.wrong("--into cannot name a result after the pattern %s: give its folder", image)
    end
    return (stem:gsub("%.[oO][mM][eE]%.[^.]*$", ""):gsub("%.[^.]*$", ""))
end

-- What is written of each image beside its result: the form of its name, by option.
local PICTURES <const> = {preview = "%s/%s.png", preview_image = "%s/%s-image.png"}

-- The folders of the options that name one, without a slash at the end.
local function folders_of(options)
    local folders = {}
    for _, name in ipairs {"into", "preview", "preview_image"} do
        local facts = options[name] and core.system.stat(options[name])
        if options[name] and (not facts or facts.kind ~= "folder") then
            cli.wrong("%s: there is no folder '%s'; make it first", name == "into" and "--into"
                or ("--%s of several images (--into)"):format(name:gsub("_", "-")), options[name])
        end
        folders[name] = options[name] and options[name]:gsub("/+$", "")
    end
    return folders
end

local function into_folder(options)
    local folders = folders_of(options)
    if options.output then
        cli.wrong("--into says where results go, and --output too: give one of them")
    end
    for _, name in ipairs {"curve", "snapshots"} do
        if options[name] then
            cli.wrong("--%s is for one image, and --into for several", name)
        end
    end
    local list, taken, skips = {}, {}, options.skip_done or options.resume
    for i, image in ipairs(options.image) do
        local stem = name_of(image)
        local output = ("%s/%s.%s"):format(folders.into, stem, options.format)
        if taken[output] then
            cli.wrong("'%s' and '%s' would have the same result, '%s'", taken[output], image,
                output)
        end
        taken[output] = image
        list[i] = {image = image, output = output,
            what = skips and core.system.stat(output) and not core.unfinished.exists(output)
                and "skipped" or nil}
        for name, form in pairs(PICTURES) do
            list[i][name] = folders[name] and form:format(folders[name], stem)
        end
    end
    return list
end

--- The images: nil without --into; else a list of {image, output, what (of those that are not to be
-- worked on: "skipped" or "failed"), why}. Of the words of the command line the first is
-- options.image then, and without --into the second is options.psf.
function image_list.of(options)
    local words, list = options.image, nil
    if options.into then
        list = into_folder(options)
    elseif #words > 2 or options.psf and #words > 1 then
        cli.wrong("one argument too many: %s; several images need --into FOLDER", words[#words])
    elseif options.skip_done or options.given.format then
        cli.wrong("--%s is for --into FOLDER: leave it out", options.skip_done and "skip-done"
            or "format")
    else
        options.psf = options.psf or words[2]
    end
    options.image = words[1]
    return list
end

-- How an image differs from the first one, or nil.
local function difference(facts, first)
    local function text(each)
        return ("%s %s"):format(table.concat(each.shape, " x "), each.dtype)
    end
    if text(facts) ~= text(first) then
        return ("it is %s; the first image is %s"):format(text(facts), text(first))
    elseif facts.channels ~= first.channels or facts.frames ~= first.frames then
        return ("it has %s and %s; the first image has %d and %d"):format(
            counted(facts.channels, "channel"), counted(facts.frames, "time"), first.channels,
            first.frames)
    end
    for _, name in ipairs {"pixel", "step"} do
        local own, other = facts.voxel[name], first.voxel[name]
        if own and other and math.abs(own / other - 1) > 0.01 then
            return ("its %s is %.4g nm; that of the first image is %.4g nm"):format(name, own * 1e9,
                other * 1e9)
        end
    end
end

-- The message of an error in the words of the command line; a cancellation is raised again.
local function text_of(problem)
    if type(problem) ~= "table" or problem.code == "cancelled" then
        error(problem, 0)
    end
    return ((log.speak and log.speak(problem) or tostring(problem)):gsub("^%S+: ", ""))
end

-- How many axes the PSF of a file has; nil where its model or its error is told later.
local function axes_of_psf(options)
    local ok, opened = pcall(mb.images.open, options.psf or "")
    if options.psf and ok then
        local source <close> = opened
        return #source.shape
    end
end

--- Opens all images, and notes as failed those that cannot be opened, those that have other axes
-- than the PSF, and those that are not like the first of the others: images of one shape have one
-- plan and one transfer function. Sets options.image to the first that is good; false where there
-- is none.
function image_list.compare(list, options)
    local first
    local axes = axes_of_psf(options)
    for _, each in ipairs(list) do
        local ok, opened = pcall(mb.images.open, each.image,
            given_image.opening(options))
        if not ok then
            each.what, each.why = each.what or "failed", text_of(opened)
        else
            local volume <close> = opened
            local meta = volume.meta
            local facts = {shape = volume.shape, dtype = volume.dtype, image = each.image,
                channels = meta.channels or 1, frames = meta.frames or 1, voxel = meta.voxel or {}}
            if not each.what then
                given_image.warn(meta)
                local shape = given_image.series(volume, options)
                local own = #shape
                local fits = not axes or own == axes
                    or measured_psf.serves_planes(axes, own)
                each.why = not fits and (axes == 3
                    and given_image.slices_told(meta, shape, "it")
                    or ("it has %s, the PSF has %d"):format(counted(own, "axis", "axes"), axes))
                    or nil
                first = first or not each.why and facts or nil
                each.why = each.why or difference(facts, first)
                each.what, each.meta = each.why and "failed", meta
            end
        end
    end
    options.image = first and first.image
    return first ~= nil
end

--- Calls work(each) for the images that are left. One that fails costs no other.
function image_list.run(list, work)
    for _, each in ipairs(list) do
        if not each.what then
            local began = mb.system.clock()
            local ok, problem = pcall(work, each)
            each.what, each.seconds = ok and "done" or "failed", mb.system.clock() - began
            each.why = not ok and text_of(problem) or nil
        end
    end
end

--- Prints the summary, and ends the program with its exit status. A dry run only returns.
function image_list.finish(list)
    local counts = {done = 0, skipped = 0, failed = 0}
    for _, each in ipairs(list) do
        counts[each.what] = counts[each.what] + 1
        cli.print(("%-11s %s -> %s%s"):format(each.what, each.image, each.output,
            each.what == "skipped" and " (there already)" or each.what == "failed"
            and ": " .. each.why or (", %.1f s"):format(each.seconds)))
    end
    cli.print(("images     %d done, %d skipped, %d failed of %d"):format(counts.done,
        counts.skipped, counts.failed, #list))
    if not core.dry.on() then
        log.tell_unchecked()
        os.exit(counts.failed > 0 and 1 or 0, true)
    end
end

return image_list
