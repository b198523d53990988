--- How volumes are cut into tiles: the parts of the axes, what a way to cut costs, and the search
-- for the best one. What moonbeam.tiles and moonbeam.tiled_deconv have in common.
--
-- It is a search over the numbers of tiles along the axes: for each the grid is known, and a cost
-- model tells the time. The quickest whose memory fits is taken; that memory is not modelled: the
-- very function that will run is dry-run with every kind of tile that occurs.

local mb = require "moonbeam"
local budgets = require "moonbeam.plan.budget"
local in_a_row = require "moonbeam.plan.in_a_row"
local least_budget = require "moonbeam.plan.least"

local search = {}

-- One axis: `count` nearly equal parts of 0 ... out - 1; part i needs input first + shift ...
-- first + shift + extent + reach - 1, of which 0 ... input - 1 exist, or all where the axis wraps
-- around. Parts: {first, extent, from, take, before}; before: what is missing in front.
local function cut_axis(out, input, count, shift, reach, wraps)
    local parts = {}
    for j = 0, count - 1 do
        local first = out * j // count
        local extent = out * (j + 1) // count - first
        local low = first + shift
        local from = wraps and low or math.max(0, low)
        local to = low + extent + reach
        parts[j + 1] = {first = first, extent = extent, from = from,
            take = (wraps and to or math.min(input, to)) - from, before = from - low}
    end
    return parts
end

--- The tiles of a result of extents `out` from an input of extents `input`: a list per axis of
-- parts, for search.tiles. kernel: extents of the PSF; shift: where, before a tile's first element
-- (negative), what it needs begins; wraps: the axes do, so that it may be beyond the edges.
function search.cut(out, input, kernel, shift, counts, wraps)
    local axes = {}
    for i, n in ipairs(out) do
        axes[i] = cut_axis(n, input[i], math.min(counts[i], n), shift[i], kernel[i] - 1, wraps)
    end
    return axes
end

-- A tile of every combination of parts of the axes, row by row.
local function combined(lists)
    local tiles, total = {}, 1
    for _, parts in ipairs(lists) do
        total = total * #parts
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
        tiles[number + 1] = tile
    end
    return tiles
end

--- All tiles of a cut: a list of {first, extents, from, take, before, number}, each a list with a
-- number per axis, 0-based.
function search.tiles(axes)
    return combined(axes)
end

--- The tiles that take most, each `times` in a row: what their run takes is what that of all tiles
-- takes, or a little more. All tiles, where these are no more: one tile is never in flight beside
-- another.
function search.few(axes, times)
    local largest, list = {}, {}
    for i, parts in ipairs(axes) do
        local take, extent = parts[1], parts[1]
        for _, part in ipairs(parts) do
            take = part.take > take.take and part or take
            extent = part.extent > extent.extent and part or extent
        end
        largest[i] = {take, extent ~= take and extent or nil}
    end
    for _, tile in ipairs(combined(largest)) do
        for _ = 1, times do
            list[#list + 1] = tile
        end
    end
    local total = 1
    for _, parts in ipairs(axes) do
        total = total * #parts
    end
    return total <= #list and search.tiles(axes) or list
end

-- ---------------------------------------------------------------------------------------------
-- The cost model

--- Rates of the cost model. Convolutions: seconds for each voxel of the grid with what surrounds
-- the transforms, on a GPU as measured on an H200 (memory-bound), on the host for each thread and
-- factor of two of the grid (FFTW on an EPYC); and for each tile. Bytes per second: between
-- blocks of the host and a GPU, and of files, with seconds for each of their rows. `hidden`: how
-- much of what overlaps with something longer shows nevertheless. Other machines are slower or
-- faster as a whole; the order of the candidates hardly changes.
search.rates = {gpu_voxel = 45e-12, host_voxel = 2.2e-9, gpu_tile = 4e-4, host_tile = 1e-4,
    link = 12e9, file = 1.5e9, row = 5e-7, hidden = 0.1}

--- Seconds of one convolution on a grid of `points` on the device.
function search.convolution_seconds(device, points)
    local rates = search.rates
    if device.kind == "host" then
        return rates.host_tile + rates.host_voxel * points * math.log(math.max(2, points),
            2) / device.threads
    end
    return rates.gpu_tile + rates.gpu_voxel * points
end

--- Seconds that it takes to move bytes between a volume's place and the device, in blocks of a
-- candidate.
function search.transfer_seconds(device, place, bytes, made)
    local rows = made.total * made.points / made.grid[#made.grid]
    local seconds = place == "file" and bytes / search.rates.file + rows * search.rates.row or 0
    return seconds + (place ~= device.id and device.kind ~= "host" and bytes / search.rates.link
        or 0)
end

-- ---------------------------------------------------------------------------------------------
-- The search

-- Numbers of tiles along an axis that are worth looking at: {count, extent, size of the grid,
-- least}. least: the size for the largest tile, which has nothing beyond the image. A larger number
-- with the same grid is not. The number is the least with that extent, so that the extent, given as
-- the option tile, is cut into as many. `wanted`: this number alone, or nil; `whole`: the extent of
-- the whole image as a tile with what surrounds it, or nil (as the kernel says).
local function choices_of(n, kernel, most, wanted, whole, place)
    local list, count, last = {}, 1, nil
    if wanted then
        count = math.min(most, wanted)
        most = count
    end
    while count <= most do
        local extent = (n + count - 1) // count
        local size = mb.fft.good_size(extent + kernel - 1, place)
        if size ~= last then
            list[#list + 1] = {count = wanted and count or (n + extent - 1) // extent,
                extent = extent, size = size, least = whole
                and math.min(size, mb.fft.good_size(whole, place)) or size}
            last = size
        end
        count = count < 32 and count + 1 or count + count // 8
    end
    return list
end

local function candidate_of(choice, shape)
    local made = {counts = {}, tile = {}, grid = {}, total = 1, points = 1}
    local voxels, rows = 1, 1
    for i, axis in ipairs(choice) do
        made.counts[i], made.tile[i], made.grid[i] = axis.count, axis.extent, axis.size
        made.total, made.points, voxels = made.total * axis.count, made.points * axis.size,
            voxels * shape[i]
        rows = rows * (i < #choice and axis.least or 1)
    end
    -- In place: rows of the grid with room for the spectrum, twice (tile and transfer function).
    made.least = 8 * rows * 2 * (choice[#choice].least // 2 + 1)
    made.work = made.total * made.points / voxels
    return made
end

-- A candidate, with reading and writing beside the work and without, as far as the job allows.
local function add_candidate(list, job, made)
    local work, reading, writing = job.seconds(made)
    made.works = {work, reading, writing}
    for _, overlap in ipairs(job.overlaps) do
        local all, most = work + reading + writing, math.max(work, reading, writing)
        local one = setmetatable({overlap = overlap, seconds = all}, {__index = made})
        if overlap then -- the first tile is only read, the last one only written
            one.seconds = most + search.rates.hidden * (all - most)
                + (reading + writing) / made.total
        end
        list[#list + 1] = one
    end
end

local function quicker(a, b)
    if a.seconds ~= b.seconds then
        return a.seconds < b.seconds
    elseif a.points ~= b.points then
        return a.points < b.points
    end
    return a.overlap and not b.overlap
end

-- Tiles beyond which a plan takes longer than its work is worth: no advice leads there.
local MOST_TILES <const> = 1024

-- While a budget is looked for: is a candidate worth looking at? `brief`: there, the least one so
-- far. It is if it may fit, or if it is less.
local function is_worth(job, made, brief)
    if made.total > MOST_TILES then
        return false
    elseif made.least > job.available[job.devices[1].id] and made.least > brief.least then
        return false
    end
    brief.least = math.min(brief.least, made.least)
    return true
end

-- All candidates, the quickest first.
local function candidates_of(job)
    local lists, all = {}, {}
    local brief = least_budget.running() and not job.tile and not job.counts and {least = math.huge}
    for i, n in ipairs(job.shape) do
        local extent = job.tile and job.tile[i]
        local wanted = job.counts and job.counts[i] or extent and (n + extent - 1) // extent
        lists[i] = choices_of(n, job.kernel[i], job.most[i], wanted, job.whole and job.whole[i],
            {device = job.devices[1], axis = i == #job.shape and "row" or "column"})
    end
    local function choose(axis, choice)
        if axis > #lists then
            local made = candidate_of(choice, job.shape)
            return (not brief or is_worth(job, made, brief)) and add_candidate(all, job, made)
        end
        for _, each in ipairs(lists[axis]) do
            choice[axis] = each
            choose(axis + 1, choice)
        end
    end
    choose(1, {})
    table.sort(all, quicker)
    return all
end

-- What a candidate takes of a budget: its bytes there, and its pinned memory where the limit of the
-- process counts that, too.
local function need_of(job, made, device, bytes)
    return bytes + budgets.part_of_pinned(job.devices, device, made.pinned or 0)
end

-- The device on which a candidate takes more than is available, or nil.
local function short(job, made)
    for _, device in ipairs(job.everywhere) do
        if need_of(job, made, device, made.reserved[device.id]) > job.available[device.id] then
            return device.id
        end
    end
end

-- Do the holes between the arrays of a candidate fit the budgets, too?
local function fits_whole(job, made)
    for _, device in ipairs(job.everywhere) do
        local ends = made.reach[device.id]
        if need_of(job, made, device, ends[1] + ends[2]) > mb.pool.stats(device).budget then
            job.holes = true -- which smaller ones would not have
            return false
        end
    end
    return true
end

-- Does the candidate fit? First with a few tiles, then with all. `whole`: with the holes between
-- its arrays, so that all of it can be committed before the first tile.
local function fits(job, made, whole)
    for _, all in ipairs {false, true} do
        job.peaks(made, all)
        if short(job, made) or whole and not fits_whole(job, made) then
            return false
        end
    end
    return true
end

local function fail_smallest(job, smallest)
    local bytes, id = mb.device.format_bytes, nil
    for _, all in ipairs {false, true} do
        if not id then -- a few tiles, or all of them
            job.peaks(smallest, all)
            id = short(job, smallest)
        end
    end
    id = id or job.devices[1].id
    local need = need_of(job, smallest, mb.device(id), smallest.reserved[id])
    local limit = job.limits[id]
    local live = limit and 0 or mb.pool.stats(id).live
    local on = id == job.devices[1].id and "" or " on the " .. id
    local there = bytes(math.max(0, job.available[id]))
    local problem = ("the smallest tiles (%s) take %s%s%s; %s are available"):format(
        table.concat(smallest.tile, " x "), bytes(need), need > smallest.reserved[id]
        and " with their pinned memory" or "", on, there)
    local err = mb.error("budget", problem .. (job.advice or ""), {op = job.what, arg = "budget"})
    err.problem, err.enough, err.device, err.also = problem, smallest.reserved[id] + live, id,
        job.advice
    -- Many small tiles may take more than fewer larger ones.
    err.fewer = ("no tiles fit%s: %s are available"):format(on, there)
    err.pinned = smallest.pinned
    err.limited_by = limit
    error(err, 0)
end

-- The quickest candidate that fits, or nil and the one that takes least.
local function quickest(job, whole)
    local seen, cap, smallest = {}, {[true] = math.huge, [false] = math.huge}, nil
    local least_there = job.available[job.devices[1].id]
    for _, made in ipairs(candidates_of(job)) do
        if not smallest or made.least < smallest.least
            or made.least == smallest.least and smallest.overlap then
            smallest = made
        end
        -- What is larger than one that did not fit does not fit.
        if made.least <= least_there and made.least < cap[made.overlap] then
            made.fits = fits(job, made, whole)
            seen[#seen + 1] = made
            if made.fits then
                made.candidates = seen
                return made
            end
            cap[made.overlap] = made.least
        elseif #seen == 0 or seen[#seen].peak then
            seen[#seen + 1] = made
        end
    end
    return nil, smallest
end

--- How to cut. `job`: devices, shape (to be cut), kernel, most (largest numbers of tiles), tile
-- (wanted extents, or nil), counts (of a run that goes on, or nil), whole (the largest extents of a
-- tile with what surrounds it, or nil), overlaps (a list of true, false or both), available and
-- limits (search.available), seconds(candidate), which returns those of computing, reading and
-- writing, peaks(candidate, all), which sets what it takes (peaks) and how far it takes the pools
-- (reach), and `what`. Returns the candidate {counts, tile, grid, total, points, work,
-- overlap, seconds, works, peaks}, with `candidates`, the ones that were looked at, quickest first;
-- works are the seconds of computing, reading and writing. Raises a budget error where none fits.
function search.best(job)
    local _ <close> = in_a_row()
    job.everywhere, job.holes = {mb.device("host"), table.unpack(job.devices)}, false
    local made, smallest = quickest(job, true)
    if not made and job.holes then
        made = quickest(job, false)
    end
    return made or fail_smallest(job, smallest)
end

--- The table of the candidates that the search looked at, as text: tiles, block, bytes, whether
-- reading and writing overlap with the work, voxels transformed for each of the image, seconds.
function search.table(plan)
    local rows = {{"tiles", "tile", "block", "bytes", "host", "overlap", "work", "predicted", ""}}
    local list, first, widths = plan.candidates, math.max(1, #plan.candidates - 7), {}
    for i = first, #list do
        local made = list[i]
        rows[#rows + 1] = {table.concat(made.counts, " x "), table.concat(made.tile, " x "),
            table.concat(made.grid, " x "),
            (made.peak and "" or "> ") .. mb.device.format_bytes(made.peak or made.least),
            made.host_peak and made.host_peak > 0 and mb.device.format_bytes(made.host_peak)
            or "-", made.overlap and "yes" or "no", ("%.2f"):format(made.work),
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

--- Bytes that the budgets of the devices and of the host leave, by device id; and the names of the
-- options where these leave less.
function search.available(devices, options)
    local available, limits = {}, {}
    budgets.fit(devices, 0)
    local function least(name, id)
        local free = available[id] or budgets.available(mb.device(id))
        local given = options[name] and mb.device.bytes(options[name])
        available[id] = math.min(given or free, free)
        limits[id] = given and given <= free and name or limits[id]
    end
    for _, device in ipairs(devices) do
        least("budget", device.id)
    end
    least("host_budget", "host")
    return available, limits
end

return search
