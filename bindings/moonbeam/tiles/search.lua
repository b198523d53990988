--- How volumes are cut into tiles: the parts of the axes, what a way to cut costs, and the search
-- for the best one. What moonbeam.tiles and moonbeam.tiled_deconv have in common.
--
-- It is a search over the numbers of tiles along the axes: for each the grid is known, and a cost
-- model tells the time. The quickest whose memory fits is taken; that memory is not modelled: the
-- very function that will run is dry-run with every kind of tile that occurs.

local mb = require "moonbeam"
local fail = require "moonbeam.internal.fail"
local memory = require "moonbeam.plan.peak"
local volumes = require "moonbeam.volumes"

local search = {}

-- One axis: `count` nearly equal parts of 0 ... out - 1; part i needs input first + shift ...
-- first + shift + extent + reach - 1, of which 0 ... input - 1 exist. Parts: {first, extent,
-- from, take, before}; before: what is missing in front.
local function cut_axis(out, input, count, shift, reach)
    local parts = {}
    for j = 0, count - 1 do
        local first = out * j // count
        local extent = out * (j + 1) // count - first
        local low = first + shift
        local from = math.max(0, low)
        parts[j + 1] = {first = first, extent = extent, from = from,
            take = math.min(input, low + extent + reach) - from,
            before = from - low}
    end
    return parts
end

--- The tiles of a result of extents `out` from an input of extents `input`: a list per axis of
-- parts, for search.each. kernel: extents of the PSF; shift: where, before a tile's first element
-- (negative), what it needs begins.
function search.cut(out, input, kernel, shift, counts)
    local axes = {}
    for i, n in ipairs(out) do
        axes[i] = cut_axis(n, input[i], math.min(counts[i], n), shift[i], kernel[i] - 1)
    end
    return axes
end

-- The parts of an axis that differ in anything but where they are.
local function kinds_of(parts)
    local kinds, seen = {}, {}
    for _, part in ipairs(parts) do
        local key = ("%d %d %d"):format(part.extent, part.take, part.before)
        if not seen[key] then
            seen[key] = true
            kinds[#kinds + 1] = part
        end
    end
    return kinds
end

--- Calls fn(tile) for every tile: {first, extents, from, take, before, number}, lists with a
-- number per axis, 0-based. With kinds = true only for one tile of every kind: as far as memory
-- goes, that is all of them.
function search.each(axes, fn, kinds)
    local lists, total = {}, 1
    for i, parts in ipairs(axes) do
        lists[i] = kinds and kinds_of(parts) or parts
        total = total * #lists[i]
    end
    for number = 0, total - 1 do
        local rest, tile = number, {first = {}, extents = {}, from = {}, take = {}, before = {},
            number = number + 1}
        for i = #lists, 1, -1 do
            local part = lists[i][rest % #lists[i] + 1]
            rest = rest // #lists[i]
            tile.first[i], tile.extents[i], tile.from[i] = part.first, part.extent, part.from
            tile.take[i], tile.before[i] = part.take, part.before
        end
        fn(tile)
    end
    return total
end

-- ---------------------------------------------------------------------------------------------
-- The cost model

--- Rates of the cost model. Convolutions: seconds for each voxel of the grid with what surrounds
-- the transforms, on a GPU as measured on an H200 (memory-bound), on the host for each thread and
-- factor of two of the grid (FFTW on an EPYC); and for each tile. Bytes per second: between
-- blocks of the host and a GPU, and of files. Other machines are slower or faster as a whole; the
-- order of the candidates hardly changes.
search.rates = {gpu_voxel = 45e-12, host_voxel = 2.2e-9, gpu_tile = 4e-4, host_tile = 1e-4,
    link = 12e9, file = 1.5e9}

--- Seconds of one convolution on a grid of `points` on the device.
function search.convolution_seconds(device, points)
    local rates = search.rates
    if device.kind == "host" then
        return rates.host_tile + rates.host_voxel * points * math.log(math.max(2, points),
            2) / device.threads
    end
    return rates.gpu_tile + rates.gpu_voxel * points
end

--- Seconds that it takes to move bytes between a volume's place and the device.
function search.transfer_seconds(device, place, bytes)
    local seconds = place == "file" and bytes / search.rates.file or 0
    return seconds + (place ~= device.id and device.kind ~= "host" and bytes / search.rates.link
        or 0)
end

-- ---------------------------------------------------------------------------------------------
-- The search

-- Numbers of tiles along an axis that are worth looking at: {count, extent, size of the grid}. A
-- larger number with the same grid is not.
local function choices_of(n, kernel, most, wanted, device, axis)
    local list, count, last = {}, 1, nil
    if wanted then
        count = math.min(most, (n + wanted - 1) // wanted)
        most = count
    end
    while count <= most do
        local extent = (n + count - 1) // count
        local size = mb.fft.good_size(extent + kernel - 1, {device = device, axis = axis})
        if size ~= last then
            list[#list + 1] = {count = count, extent = extent, size = size}
            last = size
        end
        count = count < 32 and count + 1 or count + count // 8
    end
    return list
end

local function candidate_of(choice, shape)
    local made = {counts = {}, tile = {}, grid = {}, total = 1, points = 1}
    local voxels = 1
    for i, axis in ipairs(choice) do
        made.counts[i], made.tile[i], made.grid[i] = axis.count, axis.extent, axis.size
        made.total, made.points, voxels = made.total * axis.count, made.points * axis.size,
            voxels * shape[i]
    end
    -- In place: rows of the grid with room for the spectrum, twice (tile and transfer function).
    made.least = 8 * made.points // made.grid[#made.grid] * 2 * (made.grid[#made.grid] // 2 + 1)
    made.work = made.total * made.points / voxels
    return made
end

--- How to cut. `job`: device, shape (to be cut), kernel, most (largest numbers of tiles), tile
-- (wanted extents, or nil), available and host_available (bytes), seconds(candidate),
-- peaks(candidate) -> device bytes, host bytes, and `what`. Returns the candidate {counts, tile,
-- grid, total, points, work, seconds, peak, host_peak}, with `candidates`, the ones that were
-- looked at, quickest first. Raises a budget error where none fits.
function search.best(job)
    local lists, all, at = {}, {}, {}
    for i, n in ipairs(job.shape) do
        lists[i] = choices_of(n, job.kernel[i], job.most[i], job.tile and job.tile[i], job.device,
            i == #job.shape and "row" or "column")
        at[i] = 1
    end
    repeat
        local choice = {}
        for i, list in ipairs(lists) do
            choice[i] = list[at[i]]
        end
        local made = candidate_of(choice, job.shape)
        made.seconds = job.seconds(made)
        all[#all + 1] = made
        local axis = #lists
        while axis > 0 do
            at[axis] = at[axis] + 1
            if at[axis] <= #lists[axis] then
                break
            end
            at[axis] = 1
            axis = axis - 1
        end
    until axis == 0
    table.sort(all, function(a, b)
        if a.seconds ~= b.seconds then
            return a.seconds < b.seconds
        end
        return a.points < b.points
    end)
    local seen, chosen, cap, smallest = {}, nil, math.huge, nil
    for _, made in ipairs(all) do
        if not smallest or made.least < smallest.least then
            smallest = made
        end
        -- What is larger than one that did not fit does not fit.
        if made.least <= job.available and made.least < cap then
            made.peak, made.host_peak = job.peaks(made)
            made.fits = made.peak <= job.available and made.host_peak <= (job.host_available
                or math.huge)
            seen[#seen + 1] = made
            if made.fits then
                chosen = made
                break
            end
            cap = made.least
        elseif #seen == 0 or seen[#seen].peak then
            seen[#seen + 1] = made
        end
    end
    if not chosen then
        if not smallest.peak then
            smallest.peak, smallest.host_peak = job.peaks(smallest)
        end
        local bytes, short = mb.device.format_bytes, smallest.peak > job.available
        fail("budget", job.what, "budget", "the smallest tiles (%s) take %s%s; %s are available%s",
            table.concat(smallest.tile, " x "),
            bytes(short and smallest.peak or smallest.host_peak), short and "" or " on the host",
            bytes(math.max(0, short and job.available or job.host_available)), job.advice or "")
    end
    chosen.candidates = seen
    return chosen
end

--- The table of the candidates that the search looked at, as text: tiles, block, bytes, work,
-- seconds.
function search.table(plan)
    local rows, widths = {{"tiles", "tile", "block", "bytes", "host", "work", "predicted", ""}}, {}
    local list, first = plan.candidates, math.max(1, #plan.candidates - 7)
    for i = first, #list do
        local made = list[i]
        rows[#rows + 1] = {table.concat(made.counts, " x "), table.concat(made.tile, " x "),
            table.concat(made.grid, " x "),
            (made.peak and "" or "> ") .. mb.device.format_bytes(made.peak or made.least),
            made.host_peak and made.host_peak > 0 and mb.device.format_bytes(made.host_peak)
            or "-", ("%.2f"):format(made.work),
            ("%.3g s"):format(made.seconds), made.fits and "<- taken" or "does not fit"}
    end
    local lines = {}
    if first > 1 then
        lines[1] = ("  %d quicker ones do not fit"):format(first - 1)
    end
    for _, row in ipairs(rows) do
        for i, text in ipairs(row) do
            widths[i] = math.max(widths[i] or 0, #text)
        end
    end
    for n, row in ipairs(rows) do
        for i, text in ipairs(row) do
            row[i] = i < #row and (" "):rep(widths[i] - #text) .. text or text
        end
        local line = "  " .. table.concat(row, "  ")
        table.insert(lines, n == 1 and 1 or #lines + 1, (line:gsub("%s+$", "")))
    end
    return table.concat(lines, "\n")
end

--- Plans fn(device, host, dry): what it takes on both, {device =, host =} in bytes beyond the
-- volumes, and the PSF, that dry has made copies of. A file stays itself: of a plan nothing of
-- it is moved.
function search.peaks(device, fn)
    device = mb.device(device)
    local host = mb.device("host")
    local base = {device = 0, host = 0}
    local function run()
        local made = {}
        local _ <close> = setmetatable({}, {__close = function()
            for _, array in ipairs(made) do
                array:release()
            end
        end})
        local on_device, on_host = mb.pool.stats(device).live, mb.pool.stats(host).live
        local function dry_copy(array, on)
            local copy = mb.empty(array.shape, {dtype = array.dtype, device = on})
            made[#made + 1] = copy
            base.device, base.host = mb.pool.stats(device).live - on_device,
                mb.pool.stats(host).live - on_host
            return copy
        end
        fn(device, host, function(volume)
            if type(volume) == "userdata" then -- the PSF: there, or to be copied there
                return volume.device == device and dry_copy(volume, device)
                    or mb.empty(volume.shape, {dtype = volume.dtype, device = device})
            elseif not volume.array then
                return volume
            end
            local on = volume.place == device.id and device or volume.place == host.id and host
            if not on then
                fail("argument", "tiles.peaks", "device", "the volume is on %s, the tiles on %s",
                    volume.place, device.id)
            end
            return volumes.of_array(dry_copy(volume, on))
        end)
    end
    local peak = memory.peaks(run, {device}).peak
    return {device = math.max(0, peak[device.id] - base.device),
        host = device == host and 0 or math.max(0, peak.host - base.host)}
end

--- Bytes that the budgets of the device and of the host leave.
function search.available(device, budget, host_budget)
    local stats, host = mb.pool.stats(device), mb.pool.stats("host")
    local function least(given, free)
        return given and math.min(mb.device.bytes(given), free) or free
    end
    local on_device = least(budget, stats.budget - stats.live)
    if device.kind == "host" then
        return least(host_budget, on_device), nil
    end
    return on_device, least(host_budget, host.budget - host.live)
end

local EMBEDDABLE = {u8 = true, u16 = true, f32 = true}

--- A block of a volume as embed takes it: u8, u16 or f32.
function search.read(volume, first, extents, device, host)
    local block = volume:read(first, extents, device, host)
    if EMBEDDABLE[block.dtype] then
        return block
    end
    local owned <close> = block
    return owned:cast("f32")
end

return search
