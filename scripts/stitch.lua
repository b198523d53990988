--- Joins reconstructed volumes of scans at different heights to one, blended where they overlap.

local mb = require "moonbeam"
local core = require "moonbeam.core"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local cli = require "moonbeam.internal.cli"
local counted = require "moonbeam.internal.quantities.counted"
local file_name = require "moonbeam.internal.file_name"
local result_layouts = require "moonbeam.internal.command_line.result_layouts"
local progress = require "moonbeam.progress"
local surface = require "moonbeam.internal.command_line.surface"
local z_difference = require "moonbeam.stitching.z_difference"
local z_heights = require "moonbeam.stitching.z_heights"
local z_joined = require "moonbeam.stitching.z_joined"
local z_overlap = require "moonbeam.stitching.z_overlap"

-- The words of the command line: volumes, and options with their values.
local VALUED <const> = {["-o"] = true, ["--output"] = true, ["--overlap"] = true,
    ["--by"] = true, ["--heights"] = true, ["--height-path"] = true, ["--step"] = true,
    ["--blend"] = true, ["--lateral"] = true, ["--intensity"] = true,
    ["--tiff-layout"] = true, ["--zarr-layout"] = true, ["-b"] = true, ["--budget"] = true,
    ["--log"] = true, ["--progress"] = true}
local own, names, at = {}, {}, 1
while at <= #arg do
    if arg[at]:find "^%-." then
        own[#own + 1] = arg[at]
        if VALUED[arg[at]] then
            at = at + 1
            own[#own + 1] = arg[at]
        end
    else
        names[#names + 1] = arg[at]
    end
    at = at + 1
end

-- "12,14" -> {12, 14}.
local function overlaps_of(text)
    local list = cli.numbers(text)
    if not list then
        return nil, "a number of slices, or one for each pair, such as 12,14; without --overlap it "
            .. "is found"
    end
    return list
end

local options = cli.parse(own, {
    usage = "stitch VOLUME VOLUME... -o RESULT [options]",
    summary = "Joins reconstructed volumes of overlapping scans at different heights.",
    {"output", short = "o", value = "FILE",
        doc = "result: FILE.h5; a TIFF stack, FILE.tif or FILE.ome.tif; or OME-Zarr, FILE.zarr"},
    result_layouts.OPTIONS, cli.shared.overwrite,
    {"overlap", value = "N,...", type = overlaps_of, doc = "slices that neighboring volumes have "
        .. "in common; one number, or one for each pair"},
    {"by", value = "NAME", also = {"method", "mode"},
        type = cli.choice("positions", "correlation", {z = "positions", heights = "positions",
            motors = "positions", metadata = "positions", image = "correlation",
            images = "correlation", ["cross-correlation"] = "correlation",
            ["phase-correlation"] = "correlation"}),
        doc = "what decides: positions (the heights of the samples), or correlation (what is in "
            .. "the slices). Default: positions where they are known. Both are made, and a "
            .. "difference is told"},
    {"heights", value = "MM,...", type = cli.numbers, doc = "heights of the samples, in mm, one "
        .. "for each volume (default: sample/z_translation of the scans that the results name)"},
    {"height-path", value = "/PATH", doc = "dataset of the scans with the height, if it is not "
        .. "NXtomo's"},
    {"step", value = "UM", type = cli.between(1e-7, 1e6), doc = "distance between slices in "
        .. "micrometers, where the volumes do not say"},
    {"blend", value = "NAME", also = {"fusion", "merge", "overlap-policy"}, default = "linear",
        type = cli.choice("linear", "mean", "first", {average = "mean", ["linear-weights"] =
            "linear", linear_blending = "linear", none = "first"}),
        doc = "how common slices are made: linear (from the one to the other), mean, first (those "
            .. "of the first volume)"},
    {"lateral", value = "NAME", also = {"shift", "align", "offset", "register"},
        type = cli.choice("auto", "none"), default = "none",
        doc = "auto: each volume is moved by the rows and columns that it is beside the one before "
            .. "(up to 32); what comes from outside is 0"},
    {"intensity", value = "NAME", also = {"gain", "normalize", "brightness"},
        type = cli.choice("auto", "none"), default = "none",
        doc = "auto: the values of each volume become those of the one before where they overlap, "
            .. "by a factor and an offset"},
    {"plan", doc = "print overlaps, slices, bytes and peak, write nothing"},
    cli.shared.budget, cli.shared.quiet, cli.shared.log, cli.shared.progress,
    absent = {device = "leave it out: the work is done on the host",
        preview = "reconstruct --preview makes pictures, with the volumes"},
    notes = "VOLUMEs are results of reconstruct (HDF5, TIFF, Zarr), FILE.h5:/PATH or folders of "
        .. "TIFF files, in the order of their slices: the last slices of each are the first of "
        .. "the next.\n"
        .. "The work is done on the host, a few slices at a time.\n"
        .. "Exit status: 0 done, 1 failed, 2 wrong use, 130 interrupted.",
})
local say = cli.speakers(options)

do
    local missing = {}
    missing[1] = #names == 0 and "VOLUME" or nil
    missing[#missing + 1] = not options.output and "--output" or nil
    cli.missing(missing)
end
if #names == 1 then
    cli.wrong("one VOLUME alone has nothing to be joined to: give two or more, in the order of "
        .. "their slices")
end

local OUTPUTS <const> = {{"output", extensions = file_name.RESULTS}}
cli.outputs(options, false, OUTPUTS)
result_layouts.check(options, options.output)

-- ---- what is joined ----

local volumes, scalings, facts = {}, {}, {}
local _ <close> = setmetatable({}, {__close = function()
    for _, volume in ipairs(volumes) do
        volume:close()
    end
end})

-- What the stored integers of a dataset mean, or false.
local function scaling_of(volume)
    local path = volume.dataset and volume.dataset.path
    local scale = path and volume.file:attribute(path, "scale_factor")
    return scale and {scale = scale, offset = volume.file:attribute(path, "add_offset") or 0}
        or false
end

for i, name in ipairs(names) do
    volumes[i] = cli.tried({}, mb.images.open, name)
    local shape, first = volumes[i].shape, volumes[1].shape
    if #shape ~= 3 then
        cli.stop(("'%s' is one image; give volumes of several slices"):format(name))
    elseif shape[2] ~= first[2] or shape[3] ~= first[3] then
        cli.stop(("'%s' has slices of %d x %d, '%s' of %d x %d: reconstruct them with the same "
            .. "width"):format(name, shape[2], shape[3], names[1], first[2], first[3]))
    elseif volumes[i].dtype:find "^c" then
        cli.stop(("'%s' holds complex numbers"):format(name))
    end
    scalings[i] = scaling_of(volumes[i])
    facts[i] = cli.tried({}, z_heights.of, volumes[i], name, options.height_path)
    facts[i].step = options.step and options.step * 1e-6 or facts[i].step
    local step, other = facts[i].step, facts[1].step
    if step and other and math.abs(step / other - 1) > 1e-3 then
        cli.stop(("'%s' has a slice every %s, '%s' every %s: give --step UM if that is wrong")
            :format(name, surface.length(step), names[1], surface.length(other)))
    end
end
if options.heights then
    if #options.heights ~= #names then
        cli.wrong("--heights has %s for %d volumes", counted(#options.heights, "number"), #names)
    end
    for i, height in ipairs(options.heights) do
        facts[i].height = height * 1e-3
    end
end

-- The type of the result: integers stay what they are if they mean what they are.
local dtype = volumes[1].dtype
local corrects = options.lateral == "auto" or options.intensity == "auto"
for i, volume in ipairs(volumes) do
    if corrects or volume.dtype ~= dtype or scalings[i]
        or not (dtype == "u8" or dtype == "u16") then
        dtype = "f32"
    end
end

-- ---- how many slices they have in common ----

local host <const> = mb.device "host"
if options.budget then
    cli.checked(mb.device, "host", {budget = options.budget})
end
call_budget.on {host}

local function of_pair(list, i)
    return list and (#list == 1 and list[1] or list[i])
end

if options.overlap and #options.overlap ~= 1 and #options.overlap ~= #names - 1 then
    cli.wrong("--overlap has %s; give one, or one for each of the %s",
        counted(#options.overlap, "number"), counted(#names - 1, "pair"))
end

-- The overlaps that are known without looking at slices: numbers with fractions.
local known = {}
for i = 1, #volumes - 1 do
    local typed = of_pair(options.overlap, i)
    local overlap, why = z_heights.overlap(volumes[i].shape[1], facts[i], facts[i + 1])
    local least = math.min(volumes[i].shape[1], volumes[i + 1].shape[1])
    if typed and (typed ~= math.floor(typed) or typed < 0 or typed > least) then
        cli.stop(("--overlap is %g; it must be a whole number from 0 to %d"):format(typed, least))
    end
    known[i] = {typed = typed, overlap = overlap, why = why,
        expected = typed or overlap and math.floor(overlap + 0.5)}
    if options.by == "positions" and not typed and not overlap then
        cli.stop(("--by positions, but the heights of '%s' and '%s' are not known: %s; give "
            .. "--heights, or --by correlation"):format(names[i], names[i + 1], why))
    end
end
cli.outputs(options, names, OUTPUTS)

-- Compares the slices of all pairs; looks near what is expected where not all can be compared.
local function compare()
    local found = {}
    for i = 1, #volumes - 1 do
        local expected = known[i].expected
        found[i] = z_overlap.find(volumes[i], volumes[i + 1], host, expected and math.max(1,
            math.min(expected, volumes[i].shape[1])))
    end
    return found
end

-- Noise alone may be as much alike.
local LEAST_LIKENESS <const> = 0.3

-- Decides about a pair: its overlap, and a line that says how it was found.
local function decide(i, found)
    local pair, names_of = known[i], ("'%s' and '%s'"):format(names[i], names[i + 1])
    local by = pair.typed and "typed" or (options.by == "correlation" or not pair.overlap)
        and "correlation" or "positions"
    local overlap = pair.typed or by == "positions" and pair.expected or found.overlap
    local least = math.min(volumes[i].shape[1], volumes[i + 1].shape[1])
    if by == "correlation" and not (overlap and found.likeness >= LEAST_LIKENESS) then
        cli.stop(("nothing in the slices of %s is alike (correlation %.2f): give them in the order "
            .. "of their slices, or --overlap N or --heights"):format(names_of, found.likeness))
    elseif overlap ~= math.floor(overlap) or overlap < 0 or overlap > least then
        cli.stop(overlap < 0 and ("by their positions %s are %d slices apart; give --heights or "
            .. "--overlap N if that is wrong"):format(names_of, -overlap)
            or ("by their positions %s have %d slices in common, more than the %d there are; give "
                .. "--heights or --overlap N if that is wrong"):format(names_of, overlap, least))
    end
    local here = found.at(math.tointeger(overlap))
    if math.max(here or -1, found.likeness) < 0.5 then
        cli.warn("%s are not alike where they overlap (correlation %.2f): are they in the order "
            .. "of their slices?", names_of, here or found.likeness)
    elseif by ~= "correlation" and found.overlap and math.abs(found.overlap - overlap) > 1 then
        cli.warn("%s have %s slices in common by %s, but %d by correlation (%.2f there, %s here); "
            .. "--by correlation takes the latter", names_of, pair.typed and ("%d"):format(overlap)
            or ("%.2f"):format(pair.overlap), by == "typed" and "--overlap" or "their positions",
            found.overlap, found.likeness, here and ("%.2f"):format(here) or "not compared")
    elseif by == "correlation" and pair.overlap and math.abs(pair.overlap - overlap) > 1 then
        cli.warn("%s have %d slices in common by correlation (%.2f), but %.2f by their positions",
            names_of, overlap, found.likeness, pair.overlap)
    end
    say("overlap    %s of %s, by %s%s%s", counted(overlap, "slice"), names_of,
        by == "typed" and "--overlap" or by,
        by == "positions" and (" (%.2f)"):format(pair.overlap) or "",
        here and (by == "correlation" and " (%.2f)" or ", correlation %.2f"):format(here) or "")
    return math.tointeger(overlap), by, here
end

-- ---- how they differ there ----

local moves, differences = {}, {}
for i = 1, #volumes do
    moves[i] = options.lateral == "auto" and i > 1 and {rows = 0, columns = 0} or false
end

local function measure(i, overlap)
    local function reader(k)
        return function(slice)
            return z_joined.read(volumes[k], scalings[k], slice, 1)
        end
    end
    return z_difference.measure(reader(i), reader(i + 1), volumes[i].shape[1] - overlap, overlap)
end

-- Says how a pair differs; warns of what stays in the result.
local function tell_difference(i, found)
    local names_of = ("'%s' and '%s'"):format(names[i], names[i + 1])
    if found.likeness < z_difference.LEAST then
        if corrects and not mb.device.dry() then
            cli.stop(("how %s differ cannot be measured: their common slices are not alike "
                .. "(correlation %.2f); leave out --lateral auto and --intensity auto"):format(
                names_of, found.likeness))
        end
        return
    end
    local beside, brighter = z_difference.matters(found)
    local function places(value) -- 0, not -0
        return math.floor(value * 100 + 0.5) / 100 + 0.0
    end
    say("difference %.2f rows, %.2f columns, factor %.4g, offset %.3g of %s", places(found.rows),
        places(found.columns), found.factor, found.offset, names_of)
    if beside and options.lateral ~= "auto" then
        cli.warn("%s are %.2f rows and %.2f columns beside each other: --lateral auto moves the "
            .. "second", names_of, found.rows, found.columns)
    end
    if brighter and options.intensity ~= "auto" then
        cli.warn("the values of %s differ by the factor %.4g and the offset %.3g: --intensity auto "
            .. "makes them those of the first", names_of, found.factor, found.offset)
    end
end

-- Measures a pair, and puts what is asked for into the moves and scalings of the second one, which
-- is beside the first volume what all before it are, too.
local plain = table.move(scalings, 1, #scalings, 1, {})
local corrected = {scale = 1, offset = 0}
local function correct(i, found)
    differences[i] = found
    if moves[i + 1] then
        local before = moves[i] or {rows = 0, columns = 0}
        moves[i + 1] = {rows = before.rows + found.rows, columns = before.columns + found.columns}
    end
    if options.intensity == "auto" then
        corrected = {scale = corrected.scale * found.factor,
            offset = corrected.scale * found.offset + corrected.offset}
        local stored = plain[i + 1] or {scale = 1, offset = 0}
        scalings[i + 1] = {scale = stored.scale * corrected.scale,
            offset = stored.offset * corrected.scale + corrected.offset}
    end
end

-- ---- the work ----

-- Writes all parts; `step` is told how many slices were done.
local function write(parts, result, step)
    z_joined.write(volumes, parts, result, {scalings = scalings, moves = moves,
        blend = z_joined.BLENDS[options.blend], step = step})
end

-- The peak of a dry run.
local function peak_of(fn)
    return cli.tried({}, mb.plan.peak, fn, host).peak
end

local function peak_of_parts(parts)
    return peak_of(function()
        write(parts, {dtype = dtype, write = function() end}, function() end)
    end)
end

-- Slices of a part: 64 MiB of each volume, or fewer that fit. Before the overlaps are known, all
-- slices may be common ones.
local live = mb.pool.stats(host).live
local available = mb.pool.stats(host).budget - live
local search = peak_of(compare)
for i = 1, #volumes - 1 do
    search = math.max(search, peak_of(function()
        measure(i, math.min(2, volumes[i].shape[1], volumes[i + 1].shape[1]))
    end))
end
local function peak_with(count)
    local peak = search
    for i = 1, #volumes - 1 do
        peak = math.max(peak, peak_of_parts {{first = 0, count = math.min(count,
            volumes[i].shape[1], volumes[i + 1].shape[1]), one = i, one_first = 0, two = i + 1,
            two_first = 0, total = count, done = 0}})
    end
    return peak
end
local most = math.max(1, (64 << 20) // (4 * volumes[1].shape[2] * volumes[1].shape[3]))
while most > 1 and peak_with(most) > available do
    most = most // 2
end
call_budget.planned("stitching", {host = live + peak_with(most)})

local taken <close> = mb.pool.scope(host)
local overlaps, how, likenesses = {}, {}, {}
for i, found in ipairs(compare()) do
    overlaps[i], how[i], likenesses[i] = decide(i, found)
end
for i = 2, #volumes - 1 do
    if overlaps[i - 1] + overlaps[i] > volumes[i].shape[1] then
        cli.stop(("'%s' has %d slices, fewer than the %d + %d that it has in common with its "
            .. "neighbors: leave it out"):format(names[i], volumes[i].shape[1], overlaps[i - 1],
            overlaps[i]))
    end
end
for i, overlap in ipairs(overlaps) do
    differences[i] = overlap > 0 and measure(i, overlap) or nil
end
for i, found in pairs(differences) do
    tell_difference(i, found)
end
for i = 1, #volumes - 1 do
    if differences[i] then
        correct(i, differences[i])
    elseif corrects then
        cli.stop(("'%s' and '%s' have no slices in common, which --lateral auto and --intensity "
            .. "auto compare"):format(names[i], names[i + 1]))
    end
end
local parts, nz = z_joined.parts(volumes, overlaps, most)
local predicted = math.max(search, peak_of_parts(parts))
call_budget.planned("stitching", {host = live + predicted})
local shape = {nz, volumes[1].shape[2], volumes[1].shape[3]}
say("volume     %d x %d x %d %s, %s", nz, shape[2], shape[3], surface.TYPES[dtype],
    mb.device.format_bytes(cli.tried({}, mb.result.disk_bytes, options.output, shape, dtype,
        {zarr_layout = options.zarr_layout})))
result_layouts.tell(say, options, options.output, {shape = shape, dtype = dtype})
if options.plan then
    say("memory     peak %s (%d bytes) of %s available", mb.device.format_bytes(predicted),
        predicted, mb.device.format_bytes(available))
    return
end

-- What was measured of all pairs; nil unless all were.
local function noted(name)
    local list = {}
    for i = 1, #volumes - 1 do
        list[i] = differences[i] and differences[i][name]
    end
    return #list == #volumes - 1 and list or nil
end

-- The place of the first slice on the detector, and the sizes of voxels, as the first volume says.
local step = facts[1].step
local result <close> = cli.tried({}, mb.result.create, options.output, {shape = shape,
    dtype = dtype, pixel_size = step, tiff_layout = options.tiff_layout,
    zarr_layout = options.zarr_layout, overwrite = options.overwrite, title = "stitched volume",
    input = core.system.stat(names[1]) and names[1] or nil,
    first_row = step and facts[1].top and math.floor(math.abs(facts[1].top) / step + 0.5) + 1
        or nil, upward = facts[1].flipped,
    parameters = {volumes = names, overlaps = overlaps, overlaps_by = how,
        correlations = likenesses, blend = options.blend, lateral = options.lateral,
        intensity = options.intensity, lateral_rows = noted "rows",
        lateral_columns = noted "columns", intensity_factors = noted "factor",
        intensity_offsets = noted "offset"}})
local bar = progress.new("stitching", nz, {unit = "slices", quiet = options.quiet})
cli.tried({}, write, parts, result, function(count)
    bar:step(count)
end)
bar:finish()
local measured = taken:finish()
result:provenance {predicted_peak_bytes = predicted, measured_peak_bytes = measured}
result:finish()
say("memory     predicted %d bytes, measured %d bytes", predicted, measured)
say("wrote      %s", options.output)
