--- Puts the parts of a run (reconstruct --part K/N) together: one result, with the bits of a run
-- without parts.

local mb = require "moonbeam"
local call_budget = require "moonbeam.internal.command_line.call_budget"
local cli = require "moonbeam.internal.cli"
local disk_space = require "moonbeam.pipeline.disk_space"
local file_name = require "moonbeam.internal.file_name"
local joined_parts = require "moonbeam.pipeline.shares.joined_parts"
local process_memory = require "moonbeam.internal.process_memory"
local result_layouts = require "moonbeam.internal.command_line.result_layouts"
local resuming = require "moonbeam.internal.command_line.resuming"
local progress = require "moonbeam.progress"
local surface = require "moonbeam.internal.command_line.surface"

local OF_STITCH <const> = {overlap = true, heights = true, by = true, blend = true, lateral = true}

local options = cli.parse(arg, {
    usage = "join PART... -o RESULT [options]",
    summary = "Puts the parts of a run together that 'reconstruct --part K/N' has made: one "
        .. "result, with the bits of a run without parts.",
    {"part", positional = true, required = true, many = true, doc = "all parts of one run, in any "
        .. "order, such as fossil-part-*-of-8.h5"},
    {"output", short = "o", value = "FILE", required = true,
        doc = "result: FILE.h5; a TIFF stack, FILE.tif or FILE.ome.tif; or OME-Zarr, FILE.zarr"},
    result_layouts.OPTIONS, cli.shared.overwrite,
    {"slices-per-file", value = "N", type = cli.count, doc = "write an HDF5 result as files of N "
        .. "slices (default: as the parts were asked for)"},
    {"resume", words = {"auto"}, doc = "auto: end well where the result is there: for batch "
        .. "systems, which start commands again"},
    {"plan", doc = "check the parts, print rows, bytes and peak, write nothing"},
    cli.shared.budget, cli.shared.quiet, cli.shared.log, cli.shared.progress,
    suggest = function(word)
        return OF_STITCH[word] and ("moonbeam stitch --%s, which joins volumes of different "
            .. "heights"):format(word) or nil
    end,
    absent = {device = "leave it out: the work is done on the host"},
    notes = "The parts are checked first: that they are of one run (scan, recipe, rows, program, "
        .. "what was measured), and that each is there once. They stay. Parts may have been made\n"
        .. "from copies of the scan.\n"
        .. "The work is done on the host, a few slices at a time.\n"
        .. "Exit status: 0 done, 1 failed, 2 wrong use, 130 interrupted.",
})
local say = cli.speakers(options)

local OUTPUTS <const> = {{"output", extensions = file_name.RESULTS}}
if options.resume == true then
    cli.wrong("--resume goes on with a run, and join begins anew: give --resume auto, or leave it "
        .. "out")
end
resuming.settle(options, options.output, function() end)
cli.outputs(options, false, OUTPUTS)
local host <const> = mb.device "host"
if options.budget then
    cli.checked(mb.device, "host", {budget = options.budget})
end
call_budget.on {host}

cli.slices_per_file(options, options.output)
result_layouts.check(options, options.output)

local joined <close> = cli.tried({}, joined_parts.open, options.part)
cli.outputs(options, options.part, OUTPUTS)
local parts, shape, dtype = joined.parts, joined.shape, joined.dtype

-- Slices at a time: as many as are usual, or fewer that fit.
local function peak_of(count)
    return cli.tried({}, joined_parts.peak, joined, count)
end
local live = mb.pool.stats(host).live
local available = mb.pool.stats(host).budget - live
local most = joined_parts.most(shape, dtype)
while most > 1 and peak_of(most) > available do
    most = most // 2
end
local predicted = peak_of(most)
call_budget.planned("the join", {host = live + predicted})

local whole, bytes = parts[1].whole, cli.tried({}, mb.result.disk_bytes, options.output, shape,
    dtype, {zarr_layout = options.zarr_layout})
say("parts      %d, rows %d to %d of '%s'", #parts, whole[1], whole[2], parts[1].making.input
    or "?")
say("volume     %d x %d x %d %s, %s", shape[1], shape[2], shape[3], surface.TYPES[dtype],
    mb.device.format_bytes(bytes))
result_layouts.tell(say, options, options.output, {shape = shape, dtype = dtype})
if options.plan then
    say("memory     peak %s (%d bytes) of %s available, %d slice%s at a time",
        mb.device.format_bytes(predicted), predicted, mb.device.format_bytes(available), most,
        most == 1 and "" or "s")
    say("%s", process_memory.bound_text(predicted, 0))
    return
end
cli.tried({}, disk_space.check, {{folder = disk_space.folder_of(options.output), bytes = bytes,
    what = ("the result '%s'"):format(options.output)}}, "join")

-- What only HDF5 files have is left out of others.
local hdf5 = not file_name.problem(options.output, file_name.HDF5)
local making = joined_parts.making(joined, {overwrite = options.overwrite})
making.slices_per_file = options.slices_per_file or hdf5 and making.slices_per_file or nil
making.layout = hdf5 and making.layout or nil
making.tiff_layout, making.zarr_layout = options.tiff_layout, options.zarr_layout
local result <close> = cli.tried({}, mb.result.create, options.output, making)
local bar = progress.new("joining", shape[1], {unit = "slices", quiet = options.quiet})
local measured, warnings = cli.tried({}, joined_parts.write, joined, result, {most = most,
    predicted = predicted, step = function(count)
        bar:step(count)
    end})
bar:finish()
mb.recon.check_bytes("joining", measured, predicted)
for _, text in ipairs(warnings) do
    cli.warn("%s", text)
end
result:finish()
say("memory     predicted %d bytes, measured %d bytes", predicted, measured)
say("wrote      %s", options.output)
