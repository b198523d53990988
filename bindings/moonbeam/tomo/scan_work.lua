--- The work on chunks of a scan's rows, as it is run and as it is planned: reading, normalising,
-- reconstructing, storing.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local lean = require "moonbeam.internal.lean"
local on_error = require "moonbeam.internal.on_error"
local scan_frames = require "moonbeam.tomo.scan_frames"
local stream = require "moonbeam.stream"

local scan_work = {}

-- The rows to read so that rows first .. last are complete after the vertical shifts, as far as
-- the scan has them.
local function rows_to_read(scan, first, last, settings)
    local low, high = 0, 0
    for _, shift in ipairs(settings.vertical_shifts or {}) do
        low, high = math.min(low, math.floor(shift)), math.max(high, math.ceil(shift))
    end
    return math.max(1, math.tointeger(first + low)), math.min(scan.rows,
        math.tointeger(last + high))
end

-- Queues the reading of what a chunk of rows needs (1-based, inclusive; vertical shifts need more
-- than its own): the input of `recon.slices`. Without a carrier it is there at once.
function scan_work.frames(scan, device, first, last, settings, carrier)
    return scan_frames.read(scan, device, {rows_to_read(scan, first, last, settings)}, nil, carrier)
end

-- The slices of a chunk of rows from its frames, which it releases: normalises, shifts and
-- reconstructs them (settings as of `recon.plan`, whose method and mode are what counts; without
-- them those of `tomo.reconstruct`). Returns the slices (z, y, x) on the device and the counts of
-- mended values (of all rows read).
function scan_work.slices(scan, frames, first, last, settings)
    local projections <close>, counts = scan_frames.integrals(frames, settings)
    local _ <close> = on_error(function() counts:release() end)
    local low = rows_to_read(scan, first, last, settings)
    if settings.vertical_shifts then
        mb.vertical_shift(projections, settings.vertical_shifts, {out = projections})
    end
    local own <close> = projections:view(mb.all, {first - low + 1, last - low + 1}, mb.all)
    local sinograms <close> = own:permute(2, 1, 3)
    local of_slices, of_angles = lean.shifts(scan, first, last, settings)
    local slices = mb.tomo.reconstruct(sinograms, scan.angles, {method = settings.method,
        mode = settings.mode, consume = true, center = settings.center, slice_shifts = of_slices,
            shifts = of_angles,
        half_acquisition = settings.half_acquisition, filter = settings.filter,
            cutoff = settings.cutoff,
        padding = settings.padding, pad_width = settings.pad_width, circle = settings.circle,
            size = settings.size,
        scale = settings.scale, accuracy = settings.accuracy})
    return slices, counts
end

-- One chunk of rows, read and reconstructed.
function scan_work.chunk(scan, device, first, last, settings)
    return scan_work.slices(scan, scan_work.frames(scan, device, first, last, settings), first,
        last, settings)
end

-- Half acquisition: the width of the whole field of view. Raises where the scan is none.
function scan_work.extended_width(scan, settings)
    local least, most = math.huge, -math.huge
    for _, angle in ipairs(scan.angles) do
        least, most = math.min(least, angle), math.max(most, angle)
    end
    if (most - least) * scan.n_angles < 2 * math.pi * 0.95 * (scan.n_angles - 1) then
        fail("argument", "recon.plan", "half_acquisition",
            "half acquisition needs a whole turn; the angles cover %.0f degrees",
            math.deg(most - least))
    end
    return mb.op.estimate("half_acquisition_weight", {{"f32", scan.cols}},
        {center = settings.center, extend = true}).results[1]
        .shape[1]
end

function scan_work.find_range(scan, options)
    local low, high = options.rows and options.rows[1] or 1, options.rows and options.rows[2]
        or scan.rows
    local least, most, before = math.huge, -math.huge, nil
    for quarter = 1, 3 do
        local row = low + quarter * (high - low) // 4
        if row ~= before then
            local slices <close>, counts = scan_work.chunk(scan,
                mb.device(options.device or "host"), row, row, options)
            counts:release()
            least = math.min(least, mb.bound(0, slices.min, slices))
            most = math.max(most, mb.bound(0, slices.max, slices))
            before = row
        end
    end
    if options.dtype == "f16" then
        local largest = math.max(math.abs(least), math.abs(most))
        local fits = largest == 0 or largest > 2 ^ -4 and largest < 2 ^ 13
        return {0, fits and 1 or 2.0 ^ math.ceil(math.log(largest, 2) - 11)}
    end
    local margin = (most - least) / 4
    return margin > 0 and {least - margin, most + margin} or {least - 1, least + 1}
end

-- The chunks of `count` rows: a list of {first, last}.
function scan_work.chunks(first, last, count)
    local list = {}
    for from = first, last, count do
        list[#list + 1] = {from, math.min(from + count - 1, last)}
    end
    return list
end

-- The ranges of rows that chunks read.
function scan_work.ranges(scan, chunks, settings)
    local list = {}
    for i, rows in ipairs(chunks) do
        list[i] = {rows_to_read(scan, rows[1], rows[2], settings)}
    end
    return list
end

-- Fewer chunks that take as much: of a run of chunks that have and read as many rows, four are
-- enough, because no more than three are on the device at a time.
function scan_work.shortened(scan, chunks, settings)
    local list, same, before = {}, 0, nil
    for _, rows in ipairs(chunks) do
        local low, high = rows_to_read(scan, rows[1], rows[2], settings)
        local kind = ("%d %d %d"):format(rows[2] - rows[1], rows[1] - low, high - rows[2])
        same = kind == before and same + 1 or 1
        before = kind
        if same <= 4 then
            list[#list + 1] = rows
        end
    end
    return list
end

-- Sums over chunks, on the device: {mended values, values that did not fit the stored type},
-- three counts each.
local function tallies(device)
    local sums = setmetatable({}, scan_frames.metatable)
    local _ <close> = on_error(function() sums:release() end)
    for _, name in ipairs {"mended", "clipped"} do
        sums[name] = mb.zeros({3}, {dtype = "f64", device = device})
    end
    return sums
end

local function add(sum, counts)
    local _ <close> = counts
    mb.binary(sum, "add", {b = counts, out = sum})
end

-- Slices as they are stored; the f32 ones are released.
local function stored(slices, settings, clipped)
    if not settings.dtype or settings.dtype == "f32" then
        return slices
    end
    local _ <close> = slices
    local range = settings.range or {0, 1} -- a plan needs none
    local result, counts = mb.quantize(slices, settings.dtype, {low = range[1], high = range[2]})
    local _ <close> = on_error(function() result:release() end)
    add(clipped, counts)
    return result
end

-- The whole work on some chunks, as it is run and as it is planned. `steps` are {prepare, write,
-- done} of stream.run. Returns the tallies as tables, and the times.
function scan_work.run(scan, device, chunks, settings, steps, writes)
    local sums <close> = tallies(device)
    local times = stream.run(device, chunks, {
        read = function(rows, carrier)
            return scan_work.frames(scan, device, rows[1], rows[2], settings, carrier)
        end,
        compute = function(frames, rows)
            local slices, counts = scan_work.slices(scan, frames, rows[1], rows[2], settings)
            local _ <close> = on_error(function() slices:release() end)
            add(sums.mended, counts)
            return stored(slices, settings, sums.clipped)
        end,
        prepare = steps.prepare,
        write = steps.write or function() end,
        done = steps.done,
    }, {overlap = settings.overlap, threads = settings.threads, pinned = settings.pinned,
        writes = writes,
        files = settings.slices_per_file, source = scan.arrays, sink = settings.out})
    local totals = {}
    for _, name in ipairs {"mended", "clipped"} do
        totals[name] = device.dry and {0, 0, 0} or mb.bound({0, 0, 0}, sums[name].to_table,
            sums[name])
        for i, count in ipairs(totals[name]) do
            totals[name][i] = math.tointeger(count)
        end
    end
    return totals, times
end

return scan_work
