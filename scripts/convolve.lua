--- The forward model of a microscope: spheres in a volume, a point spread function, a convolution
-- by FFT, and the memory of every step, with or without the naive way. With --image, the
-- convolution of an image in a file, of any size.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local budget = require "moonbeam.plan.budget"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local cli = require "moonbeam.internal.cli"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local measured_psf = require "moonbeam.internal.command_line.measured_psf"
local stack_picture = require "moonbeam.pipeline.pictures.stack_picture"
local surface = require "moonbeam.internal.command_line.surface"
local process_memory = require "moonbeam.internal.process_memory"
local file_name = require "moonbeam.internal.file_name"
local finite = require "moonbeam.internal.finite"
local on_error = require "moonbeam.internal.on_error"
local given_image = require "moonbeam.internal.deconvolve.given_image"
local result_layouts = require "moonbeam.internal.command_line.result_layouts"
local progress = require "moonbeam.progress"
local promise = require "moonbeam.plan.promise"
local psf_options = require "moonbeam.internal.command_line.psf_options"
local script = require "moonbeam.internal.script"
local tables = require "moonbeam.internal.tables"
local voxel_size = require "moonbeam.tiff.voxel"

local convolution = declared.of(mb.convolution.convolve).options
local tiling = declared.of(mb.tiles.convolve).options
local spheres = declared.of(mb.phantom.spheres).options
local optics = declared.of(mb.psf.gibson_lanni).options
local pictures = declared.of(mb.view.projections).options
local optics_defaults = {na = 1.4, index_sample = 1.33, depth = 5000, wavelength = 520,
    pixel = 100, step = 200}

local options = cli.parse(arg, {
    usage = "convolve [options]",
    summary = "Simulates an image of spheres, convolves it with a point spread function, and "
        .. "prints the memory of each step.",
    {"size", short = "n", value = "Z,Y,X", type = cli.extents(3), default = {128, 512, 512},
        doc = "extents of the image"},
    {"image", short = "i", value = "FILE",
        doc = "convolve this instead: .tif, .npy, .h5 (FILE.h5:/path) or .zarr, into --output"},
    {"channel", value = "N", type = cli.count,
        doc = "with --image: of an image of several this channel (default: the only one)"},
    {"frame", value = "N", type = cli.count,
        doc = "with --image: of an image of several this time (default: the only one)"},
    given_image.OPTIONS,
    cli.option(convolution.normalize, {doc = "with --image: make the PSF sum to 1"}),
    {"plan", doc = "with --image: print tiles, bytes and predicted time; compute and write "
        .. "nothing"},
    cli.shared.overwrite,
    cli.option(spheres.count, {"spheres", type = cli.up_to(1 << 20)}),
    {"psf", value = "FILE", doc = "the PSF: .npy, .tif or .h5 (default: a model); one plane "
        .. "serves every plane of a stack"},
    measured_psf.SPACING,
    {"model", value = "NAME", type = cli.choice("gaussian", "born_wolf", "gibson_lanni",
        "richards_wolf"), default = "gaussian", doc = "of the PSF; all but the first take the "
            .. "optics below"},
    {"psf-size", value = "Z,Y,X", type = cli.extents(3), default = {33, 33, 33},
        doc = "extents of the model"},
    {"sigma", value = "Z,Y,X", type = cli.numbers, default = {6, 2, 2},
        doc = "standard deviations of the Gaussian in px"},
    cli.options(optics, {defaults = optics_defaults}, "na", "index"),
    cli.option(optics.index_sample, {default = optics_defaults.index_sample, of = "gibson_lanni"}),
    cli.option(optics.depth, {value = "NM", default = optics_defaults.depth, of = "gibson_lanni"}),
    cli.options(optics, {value = "NM", defaults = optics_defaults}, "wavelength", "pixel",
        "step"),
    cli.option(convolution.boundary, {default = false,
        doc = "what continues the image (default: circular; with --image zero)"}),
    cli.option(convolution.mode, {doc = convolution.mode.doc .. "; with --image same"}),
    {"naive", doc = "one array per step, nothing reused, work areas kept with their plans: as "
        .. "CuPy does it"},
    {"keep", doc = "keep the image"},
    {"tiles", short = "t", value = "MODE", type = cli.choice("auto", "always", "none"),
        doc = "overlapping tiles that fit the budget (not circular); the result is the same: auto "
            .. "(default with --image), always, none (default without)"},
    cli.option(tiling.tile, {value = "Z,Y,X"}), cli.shared.devices,
    cli.shared.budget_of_each,
    cli.shared.host_budget,
    {"preview", short = "p", value = "FILE", doc = "PNG: maximum projections XY, ZY, XZ of the "
        .. "result, to scale, with a scale bar and what was done"},
    {"preview-image", value = "FILE", doc = "PNG: the same of the image"},
    cli.shared.preview_range, cli.shared.preview_planes, cli.shared.sz,
    cli.shared.log, cli.shared.progress,
    cli.option(pictures.gamma, {default = 1.5, of = "pictures"}),
    {"output", short = "o", value = "FILE", doc = "write the result: .npy, .tif, .h5 or .zarr"},
    result_layouts.OPTIONS,
    cli.option(spheres.seed),
    planning = function(values) return values.image end,
    notes = "--budget limits the pool of arrays and scratch. The process also takes the program, "
        .. "its libraries and buffers.\n"
        .. "With --image, what it takes at most is printed: what to give a batch system (Slurm's "
        .. "--mem).\n"
        .. "With --boundary circular a sphere near an edge comes back at the opposite one; with "
        .. "the others it does not.\n"
        .. "With --image the image may be larger than the memory of the device and of the host; "
        .. "its pixel and step\nare those of its file where they are not typed.\n"
        .. "Values of a PSF below 0 are values like others, and its sum may be 0, as that of an "
        .. "edge filter is. Refused\nare PSFs with NaN or infinite values, of zeros, or with "
        .. "--normalize of a sum that is not above 0, and images\nwith NaN or infinite values.",
})
cli.preview_range(options)
if not options.image then
    stack_picture.check(options.size, options.preview_z)
end

-- Checks what is written: the names, or with `inputs` (a list) the files, too.
local function check_outputs(inputs)
    if not options.plan then
        cli.outputs(options, inputs, {{"output", extensions = file_name.IMAGES, member = true},
            {"preview"}, {"preview-image"}})
    end
end
check_outputs(false)
result_layouts.check(options, options.output)

local devices = cli.devices_with_data(options)
local device = devices[1]
local id = device.id
local format_bytes = mb.device.format_bytes
local function say(...)
    cli.print((string.format(...):gsub("^ +", ""):gsub("^(%a+) +", "%1 ")))
end

-- What was done with a PSF of these extents, for captions.
local function caption_of(kernel)
    return ("PSF %s, %s, boundary %s"):format(options.psf and file_name.base(options.psf)
        or options.model, table.concat(kernel, " x "), options.boundary)
end

-- A picture of a volume (moonbeam.volumes). voxel: {pixel, step}, m.
local function picture(path, volume, name, caption, voxel)
    if path then
        stack_picture.save(path, volume, {name = name, caption = caption, sz = options.sz,
            planes = options.preview_z, range = path == options.preview and options.preview_range
                or nil,
            percentiles = {0, 100}, gamma = options.gamma, pixel = voxel.pixel, step = voxel.step,
            overwrite = options.overwrite})
        cli.print(("picture %s"):format(path))
    end
end

-- The size of a voxel: of a measured PSF only what is typed or the image's file says (`meta`, nil
-- for spheres), because a default is none of it. Returns what is typed and goes to the result.
local function take_voxel(meta, flat)
    local typed = {}
    if options.psf or options.model ~= "gaussian" and meta then
        for _, name in ipairs {"pixel", "step"} do
            options[name] = options.given[name] and options[name] or nil
        end
        typed = meta and given_image.voxel(options, meta, flat, say) or typed
        for _, name in ipairs(options.psf and {} or {"pixel", "step"}) do
            options[name] = options[name] or optics_defaults[name]
        end
    end
    return typed
end

-- The model of these extents.
local function model(size, on)
    if options.model == "gaussian" then
        return mb.psf.gaussian(size, options.sigma, {device = on})
    end
    local settings = declared.part(declared.of(mb.psf[options.model]).options, options)
    settings.device = on
    return mb.psf[options.model](size, settings)
end

-- Ends the program where the PSF cannot be had for an image of these extents: its file is opened,
-- its model made of one voxel. `slices`: what to do where the image's planes may be slices, or nil.
local function check_psf(shape, slices)
    local extents = options.psf_size
    if options.psf then
        extents = measured_psf.check(options, #shape, slices, true)
    elseif #shape < 2 then
        cli.wrong("the model of a PSF is for planes and stacks, and this image has one axis: give "
            .. "a measured PSF with --psf")
    else
        cli.checked(model, {1, 1, 1}, "host"):release()
        psf_options.warn(options)
    end
    for i, n in ipairs(options.naive and shape or {}) do
        if extents[i] > n then
            cli.wrong("--naive pads the PSF to the image: axis %d is %d, the PSF's %d", i, n,
                extents[i])
        end
    end
end

-- The PSF for an image of these extents.
local function load_psf(shape)
    if options.psf then
        local real <close> = measured_psf.read(options, "host", say, #shape, true)
        psf_options.tell_plane(say, real.shape, shape, "convolved")
        return real:to(id)
    elseif #shape == 3 then
        psf_options.tell_plane(say, options.psf_size, shape, "convolved")
        return model(options.psf_size, id)
    end
    say("PSF        the image is one plane: the PSF is the plane in focus")
    local _, rows, columns = table.unpack(options.psf_size)
    local plane <close> = model({1, rows, columns}, id)
    local flat <close> = plane:reshape {rows, columns}
    return flat:view()
end

-- ---------------------------------------------------------------------------------------------
-- From file to file

local function from_file_to_file()
    options.boundary = options.boundary or "zero"
    local boundary = options.boundary
    if options.mode ~= "same" or options.naive then
        cli.wrong("--%s is for simulated spheres; with --image the result has the extents of the "
            .. "image: leave it out", options.naive and "naive" or "mode " .. options.mode)
    elseif not options.output and not options.plan then
        cli.wrong("the name of the result is missing; give it with -o, such as -o result.tif")
    end
    local source <close> = cli.tried({}, mb.images.open, options.image,
        given_image.opening(options))
    local meta = source.meta
    given_image.warn(meta)
    if (meta.channels or 1) > 1 and not options.channel
        or (meta.frames or 1) > 1 and not options.frame then
        cli.wrong("%s has %s and %s; say which: --channel, --frame%s",
            options.image, counted(meta.channels, "channel"), counted(meta.frames, "time"),
            (meta.slices or 1) == 1 and "; or, where they are slices, --axes Z" or "")
    end
    stack_picture.check(source.shape, options.preview_z)
    local typed = take_voxel(meta, #source.shape == 2)
    check_psf(source.shape, given_image.slices_told(meta, source.shape, options.image))
    check_outputs {options.image, options.psf}
    local watched <close> = process_memory.watch(device)
    local psf <close> = load_psf(source.shape)
    budget.fit({device}, 0)
    local limit, live = mb.pool.stats(device).budget, mb.pool.stats(device).live
    local settings = {boundary = boundary, normalize = options.normalize}
    local function whole()
        local image <close> = mb.volumes.load_real(source, device)
        local result = mb.convolution(image, psf, {boundary = boundary,
            normalize = options.normalize, consume = true})
        local _ <close> = on_error(function() result:release() end)
        local sum <close> = mb.reduce(result, "sum")
        if not result.device.dry and not finite.is_number(sum:item()) then
            local read <close> = mb.volumes.load(source, "host")
            finite.fail(read, "convolve", "the image")
        end
        return result
    end
    local known = mb.plan.peaks(function()
        local result <close> = whole()
        mb.volumes.store(mb.volumes.planned(source.shape, "f32"), result)
    end, {device}).peak[id]
    local tiled = options.tiles == "always" or options.tiles ~= "none" and boundary ~= "circular"
        and live + known > limit
    cli.print(("image %s %s, %s; PSF %s; boundary %s; on %s"):format(table.concat(source.shape,
        " x "), surface.TYPES[source.dtype] or source.dtype, options.image,
        table.concat(psf.shape, " x "), boundary, id))
    local plan
    if tiled then
        settings.tile, settings.devices = options.tile, devices
        plan = mb.tiles.plan(source, psf, mb.volumes.planned(source.shape, "f32"), settings)
        settings.plan = plan
        cli.print(("%s%s"):format(counted(plan.total, "tile"), live + known > limit
            and ("; the whole takes %s, the budget is %s"):format(
            format_bytes(live + known), format_bytes(limit)) or ""))
        cli.print(mb.tiles.table(plan))
        known = plan.peak
        for i = 2, #devices do
            local own = devices[i].id
            cli.print(("on %s peak %s (%d bytes)"):format(own, format_bytes(plan.peaks[own]),
                plan.peaks[own]))
        end
    elseif #devices > 1 then
        cli.print(("%s alone: several devices share tiles, and there are none (--tiles always)")
            :format(id))
    end
    local pinned = tiled and plan.pinned or 0
    local function peaks(on_device, on_host)
        return ("peak %s (%d bytes)%s%s"):format(format_bytes(on_device), on_device,
            on_host and (", on the host %s (%d bytes)"):format(format_bytes(on_host), on_host)
                or "",
            pinned > 0 and (", pinned %s (%d bytes)"):format(format_bytes(pinned), pinned) or "")
    end
    local name, voxel = file_name.base(options.image), meta.voxel or {}
    local function draw_image()
        picture(options.preview_image, source, name, "not convolved", voxel)
    end
    local function draw_result()
        local result <close> = mb.device.dry() and mb.volumes.planned(source.shape, "f32")
            or mb.images.open(options.output)
        picture(options.preview, result, name, "convolved, " .. caption_of(psf.shape), voxel)
    end
    local drawn = {options.preview_image and {"--preview-image", options.preview_image,
        draw_image} or nil}
    drawn[#drawn + 1] = options.preview and {"--preview", options.preview, draw_result} or nil
    call_budget.planned("what comes before the plan", {[id] = watched.peak()})
    local needs = {[id] = live + (tiled and plan.reserved[id] or known)}
    for i = 2, tiled and #devices or 0 do
        needs[devices[i].id] = plan.reserved[devices[i].id]
    end
    call_budget.planned("the convolution", needs)
    for _, each in ipairs(drawn) do
        call_budget.part(each[1], each[3])
    end
    cli.print("predicted " .. peaks(call_budget.peak(id), device.kind ~= "host"
        and (tiled and math.max(plan.host_peak, call_budget.peak "host")
        or #drawn > 0 and call_budget.peak "host") or nil))
    local on_host = device.kind == "host" and call_budget.peak(id) - live
        or math.max(tiled and plan.host_peak or 0, call_budget.peak "host")
    for i = 2, tiled and device.kind == "host" and #devices or 0 do
        on_host = on_host + plan.peaks[devices[i].id]
    end
    cli.print(process_memory.bound_text(on_host, pinned))
    result_layouts.tell(cli.print, options, options.output, {shape = source.shape, dtype = "f32"},
        meta)
    if options.plan then
        return
    end
    cli.tried(nil, budget.admit, "the convolution", mb.pool.stats("host").live + on_host, pinned)
    local _ <close> = process_memory.hold(device, call_budget.peak(id) - live)
    local out <close> = mb.images.create(options.output, {shape = source.shape, dtype = "f32",
        meta = next(typed) and voxel_size.said(meta, typed) or meta,
        tiff_layout = options.tiff_layout, zarr_layout = options.zarr_layout,
        overwrite = options.overwrite})
    local started = mb.system.clock()
    local others = {} -- what the other devices took
    do
        if tiled then
            local bar = progress.new("convolving", plan.total, {unit = "tiles"})
            function settings.on_tile()
                bar:step(1)
            end
            local _, report = mb.tiles.convolve_volume(source, psf, out:volume(), settings)
            bar:finish()
            table.insert(report.budgets, report.replanned)
            for _, each in ipairs(report.budgets) do
                cli.warn("%s", each.text)
            end
            for i = 2, #devices do
                others[i] = report.peaks[devices[i].id]
            end
        else
            local result <close> = whole()
            mb.volumes.store(out:volume(), result)
        end
        device:sync()
    end
    out:finish()
    local seconds = mb.system.clock() - started
    for _, each in ipairs(drawn) do
        cli.afterwards(each[1], each[2], call_budget.done, each[1], each[3])
    end
    local peak, host_peak = watched.peak()
    cli.print(("measured %s, %.3g s: %s"):format(peaks(peak, host_peak), seconds, options.output))
    for i, bytes in pairs(others) do
        cli.print(("on %s %s (%d bytes)"):format(devices[i].id, format_bytes(bytes), bytes))
    end
end

if options.image then
    return from_file_to_file()
end
options.boundary = options.boundary or "circular"
if options.tiles == "always" and options.mode ~= "same" then
    cli.wrong("--tiles gives --mode same: leave --mode %s out", options.mode)
end
take_voxel()
check_psf(options.size)
check_outputs {options.psf}

-- ---------------------------------------------------------------------------------------------
-- Simulated

local voxels = options.size[1] * options.size[2] * options.size[3]
local highest

-- Runs one step and prints what is live after it and what the step reached.
local function step(name, f, ...)
    local on = mb.device(id)
    local before = mb.pool.stats(on).live
    local scope <close> = mb.pool.scope(on)
    local results = table.pack(f(...))
    local peak = before + scope:finish()
    local live = mb.pool.stats(on).live
    highest = math.max(highest, peak)
    cli.print(("  %-28s live %9s   peak %9s   %5.2f B/voxel"):format(name, format_bytes(live),
        format_bytes(peak), peak / voxels))
    return table.unpack(results, 1, results.n)
end

-- The voxels of models of optics have a size; those of Gaussians do not.
local simulated_voxel = not options.psf and options.model ~= "gaussian"
    and {pixel = options.pixel * 1e-9, step = options.step * 1e-9} or {}
local simulated_name = ("%d spheres"):format(options.spheres)

-- What our convolution takes, before it runs: the same call on a dry device.
local function peak_of(kernel, consume)
    return mb.plan.peak(function(dry)
        local a = mb.empty(options.size, {device = dry})
        local h <close> = mb.empty(kernel, {device = dry})
        mb.convolution(a, h, {mode = options.mode, boundary = options.boundary,
            consume = consume}):release()
        a:release()
    end, id).peak
end

local kernel = options.psf_size
cli.print(("%d x %d x %d float32, %s; PSF %s; boundary %s, mode %s; on %s"):format(
    options.size[1], options.size[2],
    options.size[3], format_bytes(4 * voxels), options.psf
        or options.model .. " " .. table.concat(options.psf_size, " x "),
    options.boundary, options.mode, id))
if #devices > 1 and options.tiles ~= "always" then
    cli.print(("  on %s alone where there are no tiles (--tiles always)"):format(id))
end

-- The devices as they are now: those of a dry run, if one is going on.
local function opened()
    return tables.mapped(devices, function(each) return mb.device(each.id) end)
end

-- Convolves as in the teaching notebook: the PSF padded to the image and shifted so that its center
-- is element 1, both transformed, multiplied, transformed back. Circular, mode same. Every plan
-- keeps a work area as large as a spectrum, as CuPy's do for these sizes: arrays stand in for them
-- here, where transforms need none or take it back.
local function convolved_naively(image, psf)
    local center, after, shift = mb.psf.center(psf), {}, {}
    for i, n in ipairs(options.size) do
        after[i], shift[i] = n - psf.shape[i], -center[i]
    end
    local spectrum_shape = {options.size[1], options.size[2], options.size[3] // 2 + 1}
    local function plan()
        return mb.empty(spectrum_shape, {dtype = "c64", device = id})
    end
    local padded = step("padded PSF", function()
        local small <close> = psf
        return mb.pad(small, {after = after})
    end)
    local shifted = step("ifftshift(PSF)", mb.roll, padded, shift)
    local otf, forward = step("rfftn(PSF), its plan", function()
        local made = plan()
        return mb.rfft(shifted, {axes = 3}), made
    end)
    local spectrum = step("rfftn(image)", mb.rfft, image, {axes = 3})
    local product = step("product", function()
        return spectrum * otf
    end)
    -- Transforms back destroy what they read: a copy of the product, which the next printed line
    -- does not show.
    local result, backward = step("irfftn(product), its plan", function()
        local made = plan()
        return mb.irfft(product, {axes = 3, n = options.size[3]}), made
    end)
    for _, array in ipairs {padded, shifted, otf, spectrum, product, forward, backward} do
        array:release()
    end
    return result
end

-- Does the whole job; prints its steps.
local function simulate()
    highest = 0
    local image = step("image", function()
        return (mb.phantom.spheres(options.size, {count = options.spheres, seed = options.seed,
            device = id}))
    end)
    picture(options.preview_image, mb.volumes.of_array(image), simulated_name, "not convolved",
        simulated_voxel)
    local psf = step("PSF", load_psf, options.size)
    kernel = psf.shape
    local flux = mb.bound(0, image.sum, image)
    local result

    local function fits()
        return peak_of(psf.shape, not options.keep) <= mb.pool.stats(mb.device(id)).budget
    end

    if options.naive then
        result = convolved_naively(image, psf)
    elseif options.tiles == "always" or options.tiles == "auto" and options.mode == "same"
        and not fits() then
        local plan
        result, plan = step("convolution in tiles", mb.tiles.convolve, image, psf,
            {boundary = options.boundary, tile = options.tile, devices = opened()})
        cli.print(("  %s of at most %s on a grid of %s, %d bytes each; %.2f voxels "
            .. "transformed for each of the image"):format(counted(plan.total, "tile"),
            table.concat(plan.tile, " x "), table.concat(plan.grid, " x "), plan.peak, plan.work))
        cli.print(mb.tiles.table(plan))
    else
        result = step("convolution", mb.convolution, image, psf,
            {mode = options.mode, boundary = options.boundary,
            consume = not options.keep})
    end

    cli.print(("result %s, flux %.6g of %.6g; peak %s (%d bytes), %.2f arrays"):format(
        table.concat(result.shape, " x "), mb.bound(0, result.sum, result), flux,
        format_bytes(highest), highest, highest / (4 * voxels)))
    picture(options.preview, mb.volumes.of_array(result), simulated_name, "convolved, "
        .. caption_of(kernel), simulated_voxel)
    if options.output then
        result_layouts.tell(cli.print, options, options.output, {shape = result.shape,
            dtype = "f32"})
        mb.images.write(options.output, result, {overwrite = options.overwrite,
            tiff_layout = options.tiff_layout, zarr_layout = options.zarr_layout})
    end
    for _, array in ipairs {image, psf, result} do
        array:release()
    end
end

-- The most that is live on the devices and the host while the job is done, by id.
local function measured()
    local on, peaks = opened(), {}
    for _, each in ipairs {mb.device "host", table.unpack(on)} do
        peaks[each.id] = mb.pool.stats(each).live
    end
    for own, bytes in pairs((promise.measured(on, simulate))) do
        peaks[own] = bytes > 0 and peaks[own] + bytes or 0
    end
    return peaks
end

local function peaks_text(peaks)
    local text = ("peak %s (%d bytes)"):format(format_bytes(peaks[id]), peaks[id])
    for _, own in ipairs(tables.keys(peaks)) do
        local bytes = own ~= id and peaks[own] or 0
        text = text .. (bytes > 0 and (", on %s %s (%d bytes)"):format(own == "host" and "the host"
            or own, format_bytes(bytes), bytes) or "")
    end
    return text
end

-- What the whole job takes as it is without --naive and --tiles, with or without --keep.
local function bytes_with(keep)
    local naive, kept, tiles = options.naive, options.keep, options.tiles
    options.naive, options.keep, options.tiles = nil, keep, "none"
    local _ <close> = setmetatable({}, {__close = function()
        options.naive, options.keep, options.tiles = naive, kept, tiles
    end})
    local quiet <close> = script.silent() -- luacheck: ignore
    return mb.pool.stats(device).live + mb.plan.peaks(simulate, {device}).peak[id]
end

-- Out of memory: the error says what it was; this says which ways of doing the same job there are.
local _ <close> = setmetatable({}, {__close = function(_, err)
    if type(err) ~= "table" or err.code ~= "budget" then
        return
    end
    io.stderr:write(("convolve: this job in %d bytes as it is without --naive and --keep, in %d "
        .. "with --keep; in less with --tiles (not circular)\n"):format(bytes_with(false),
            bytes_with(true)))
end})

-- A job that is planned anyway is not planned first.
local predicted
if not mb.device.dry() then
    do
        local quiet <close> = script.silent() -- luacheck: ignore
        local host = mb.pool.stats "host"
        core.dry.begin({mb.device "host"}, host.budget - host.live, true)
        local _ <close> = setmetatable({}, {__close = core.dry.finish})
        predicted = measured()
    end
    cli.print("predicted " .. peaks_text(predicted))
end
local took = measured()
for own, bytes in pairs(predicted and took or {}) do
    promise.check_bytes("the simulation on " .. own, bytes, predicted[own])
end
cli.print("measured " .. peaks_text(took))
