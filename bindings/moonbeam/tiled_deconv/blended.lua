-- Deconvolution by independent tiles: every tile with a margin is deconvolved by itself and laid
-- over its neighbors with ramps, cosines about the faces between them. How well the seams are
-- hidden is measured.
--
-- A run with a journal can go on (moonbeam.tiled_deconv.tile_journal): the parts go to a file, each
-- is noted, and they are added up in the end, in their order.

local mb = require "moonbeam"
local alive = require "moonbeam.stream.alive"
local convolution = require "moonbeam.convolution"
local gate = require "moonbeam.deconv.value_gate"
local deconv = require "moonbeam.deconv"
local grids = require "moonbeam.deconv.deconv_grid"
local fail = require "moonbeam.internal.fail"
local search = require "moonbeam.tiles.search"
local stops = require "moonbeam.stream.stops"
local sweep = require "moonbeam.tiles.sweep"
local tables = require "moonbeam.internal.tables"
local tile_ranks = require "moonbeam.tiled_deconv.tile_ranks"
local volumes = require "moonbeam.volumes"

local blended = {}

-- ---- one tile ----

-- Factors along one axis for the elements first ... first + n - 1 of an axis of `whole`; the tile's
-- own part is low ... high - 1.
local function ramp_of(first, n, low, high, ramp, whole, device)
    local values = {}
    for j = 1, n do
        local at, factor = first + j - 1, 1
        if low > 0 and at < low + ramp then
            factor = 0.5 - 0.5 * math.cos(math.pi * (at - (low - ramp) + 0.5) / (2 * ramp))
        elseif high < whole and at >= high - ramp then
            factor = 0.5 + 0.5 * math.cos(math.pi * (at - (high - ramp) + 0.5) / (2 * ramp))
        end
        values[j] = string.pack("<f", factor)
    end
    return mb.from_string(table.concat(values), {n}, {device = device})
end

-- Multiplies a part of an estimate, which begins at tile.first, with the ramps of its tile.
local function fade(part, tile, job)
    for i, n in ipairs(job.shape) do
        local line <close> = ramp_of(tile.first[i], tile.extents[i], tile.low[i], tile.high[i],
            job.ramp[i], n, part.device)
        local shape = {}
        for axis = 1, part.rank do
            shape[axis] = axis == i and tile.extents[i] or 1
        end
        local factors <close> = line:reshape(table.unpack(shape))
        mb.binary(part, "mul", {b = factors, out = part})
    end
end

-- The tiles of axes that are cut: first and extents are those of a tile with its ramps, from and
-- take with its margins, low and high (behind the last) without either.
local function with_ramps(list, job)
    local tiles = {}
    for number, own in ipairs(list) do
        local tile = {number = number, low = own.first, high = {}, from = {}, take = {},
            first = {}, extents = {}, inside = {}}
        for i, n in ipairs(job.shape) do
            local low, high = own.first[i], own.first[i] + own.extents[i]
            tile.high[i] = high
            tile.from[i] = math.max(0, low - job.margin[i])
            tile.take[i] = math.min(n, high + job.margin[i]) - tile.from[i]
            tile.first[i] = low > 0 and low - job.ramp[i] or 0
            tile.extents[i] = (high < n and high + job.ramp[i] or n) - tile.first[i]
            tile.inside[i] = tile.first[i] - tile.from[i]
        end
        tiles[number] = tile
    end
    return tiles
end

-- Adds a part of an estimate to the sink: to an array on its device in place, elsewhere by
-- give(part).
local function add(part, tile, sink, device, give)
    local there <close> = sink:read(tile.first, tile.extents, device)
    if sink.array and sink.array.device == device then
        mb.binary(there, "add", {b = part, out = there})
    else
        mb.binary(part, "add", {b = there, out = part})
        give(part)
    end
end

-- Notes of a tile {how many values are below 0, of how many, mean}: of its own voxels, without
-- margins, so that each voxel counts once; the mean is that of all.
local function note_below(clipped, block, tile)
    local first, extents, elements = {}, {}, 1
    for i, high in ipairs(tile.high) do
        first[i], extents[i] = tile.low[i] - tile.from[i], high - tile.low[i]
        elements = elements * extents[i]
    end
    local own <close> = block:view(convolution.ranges(first, extents))
    local counts <close> = gate.counts(own)
    clipped.tiles[tile.number] = {counts and not block.device.dry and counts:item(2) or 0,
        elements, clipped.mean}
end

-- The same of all tiles: how many values are below 0, of how many, and the largest mean. What an
-- earlier version has noted of a tile is nothing.
local function below_of(clipped)
    local below, elements, light = 0, 0, 0
    for _, noted in pairs(clipped.tiles) do
        below, elements = below + (noted[1] or 0), elements + (noted[2] or 0)
        light = math.max(light, noted[3] or 1)
    end
    return below, elements, light
end

-- Adds parts of estimates to the sink, in the order of the tiles: what other devices add is waited
-- for. With a journal the parts are only kept.
local function compute(job, states, each, settings)
    return function(blocks, tile, device, give)
        blocks[1] = volumes.real(blocks[1])
        each.tile = tile
        local dense <close> = not blocks[1].contiguous and blocks[1]:copy() or nil
        local estimate <close> = deconv.richardson_lucy(dense or blocks[1], states[device.id].psf,
            settings)
        note_below(each.clipped, blocks[1], tile)
        local part <close> = estimate:view(convolution.ranges(tile.inside, tile.extents))
        fade(part, tile, job)
        if job.kept then
            return give(1, part)
        elseif each.writer then
            each.writer:finish()
        end
        add(part, tile, each.writes[1], device, function(sum)
            give(1, sum)
        end)
    end
end

-- Adds up the parts that are kept in a file.
local function add_up(parts, tiles, sink)
    local host = mb.device "host"
    local where = sink.array and sink.array.device or host
    for _, tile in ipairs(tiles) do
        local part <close> = parts:read(tile.first, tile.extents, where, host)
        add(part, tile, sink, where, function(sum)
            sink:write(tile.first, sum, host)
        end)
    end
end

-- ---- seams ----

-- Sums of |differences| between neighbors along an axis of a block, in its first plane pair and in
-- all others, with counts.
local function differences(block, axis, face)
    local shape, low, high = block.shape, {}, {}
    local at_face, count = 0, 1
    for i, n in ipairs(shape) do
        low[i], high[i] = {1, i == axis and n - 1 or n}, {i == axis and 2 or 1, n}
        count = count * (i == axis and n - 1 or n)
    end
    if shape[axis] < 2 then
        return 0, 0, 0, 0
    end
    local a <close> = block:view(table.unpack(low))
    local b <close> = block:view(table.unpack(high))
    local d <close> = mb.binary(b, "sub", {b = a})
    mb.unary(d, "abs", {out = d})
    local function sum(array)
        local reduced <close> = mb.reduce(array, "sum")
        return reduced.device.dry and 0 or reduced:item()
    end
    local total, face_count = sum(d), 0
    if face then
        local ranges = {}
        for i, n in ipairs(d.shape) do
            ranges[i] = {1, i == axis and 1 or n}
        end
        local plane <close> = d:view(table.unpack(ranges))
        at_face, face_count = sum(plane), count // d.shape[axis]
    end
    return at_face, face_count, total - at_face, count - face_count
end

--- The seam metric of a volume in tiles: mean |difference| of neighbors across tile faces over that
-- of neighbors within tiles; nil where there are no faces or no differences.
function blended.seam(volume, tiles, device, host)
    local face_sum, face_count, sum, count = 0, 0, 0, 0
    for _, tile in ipairs(tiles) do
        local first, extents = {}, {}
        for i, at in ipairs(tile.first) do
            first[i] = at > 0 and at - 1 or 0
            extents[i] = tile.first[i] + tile.extents[i] - first[i]
        end
        local block <close> = volume:read(first, extents, device, host)
        for axis = 1, #extents do
            local a, b, c, d = differences(block, axis, tile.first[axis] > 0)
            face_sum, face_count, sum, count = face_sum + a, face_count + b, sum + c, count + d
        end
    end
    if face_count == 0 or count == 0 or sum == 0 then
        return nil
    end
    return (face_sum / face_count) / (sum / count)
end

-- ---- all tiles ----

-- The tiles that are left, and whether there are any; and what a sweep needs to note them.
local function begin(kept, tiles, parts, settings, each)
    local left, known, all = kept:pending(1, tiles, {parts})
    local count, noted = 0, each.clipped.tiles
    for number, row in pairs(known) do
        noted[number] = row
    end
    kept:check_disk(volumes.bytes(parts))
    kept:has("%d of %d tiles", #tiles - all, #tiles)
    settings.hashes = true
    function each.finished(tile, facts)
        count = count + 1
        kept:note(1, tile, facts.hash, noted[tile.number])
        kept:reached("%d of %d tiles", #tiles - all + count, #tiles)
    end
    return left, all > 0
end

-- The sweep. If tiles are noted, a stop (Ctrl-C) waits for those in flight.
local function go(kept, settings, grid, left, each)
    local holding <close> = kept and not mb.device.dry() and stops.hold() or nil
    each.stops = holding and stops.waits or nil
    local times = sweep.run(settings, grid, left, each)
    if times.stopped then
        stops.raise(holding)
    end
    return times
end

--- Deconvolves: planned and run. Returns the report, the times of the sweeps, and the sink (which
-- may be a function that makes it).
function blended.run(job, devices, plan, tiles_of, call)
    local options, number = job.options, 0
    local sink = type(job.sink) == "function" and job.sink() or job.sink
    local leads = not job.kept or tile_ranks.leads() -- of several ranks one writes the result
    if sink.array and leads then
        sink.array:fill(0)
    end
    local settings = tables.merged(job.settings,
        {iterations = call and options.iterations or math.min(2, options.iterations)})
    local own = tiles_of(search.cut(job.shape, job.shape, job.psf.shape, job.margin, plan.counts))
    local tiles, kept, times = with_ramps(own, job), job.kept, {}
    local parts <close> = kept and kept:parts("parts", tiles) or nil
    local each = {reads = {{job.source, sweep.around}}, writes = {parts or sink}}
    local clipped = {tiles = {}, psf = 0}
    each.clipped = clipped
    setmetatable(settings, {__index = {part = function(mean) -- for deconv.value_gate
        clipped.mean = mean or clipped.mean
        return gate.block(each.tile.from)
    end}})
    each.again = kept ~= nil -- a file has each part by itself
    each.done = call and options.on_tile and function()
        number = number + 1
        call(options.on_tile, 1, number, plan.total)
    end
    local function work(live)
        local states <close> = sweep.states(live, job.psf, function(state, _, psf)
            state.psf, settings.center, clipped.psf = grids.spread("richardson_lucy", psf,
                job.given)
        end)
        each.compute = compute(job, states, each, settings)
        local set = sweep.settings(job, live, plan, 1)
        set.sharing = #devices
        times.repeated = #live < #devices or nil
        local left, any = tiles, true
        if kept then
            left, any = begin(kept, tiles, parts, set, each)
        end
        times[1] = any and go(kept, set, plan.grid, left, each) or nil
    end
    if kept then
        local calls, problem = tile_ranks.calls, nil
        alive.on(devices, function(live)
            if tile_ranks.is_bound(calls) then -- the other ranks do not come here again
                error(problem, 0)
            end
            local ok, err = pcall(work, live)
            problem = not ok and err or nil
            return ok or error(err, 0)
        end)
        if tile_ranks.shared() then
            clipped.tiles = tile_ranks.gather(clipped.tiles)
        end
        if leads then
            add_up(parts, tiles, sink)
        end
    else
        work(devices) -- what has been added cannot be taken back
    end
    local below, of, light = below_of(clipped)
    if of > 0 and light == 0 and not devices[1].dry then
        gate.judge("tiled_deconv", 0, below, of, 1)
    end
    return {iterations = options.iterations, metrics = {},
        clipped = {image = below / math.max(1, of), psf = clipped.psf},
        seam = leads and alive.on(devices, function(live)
            return blended.seam(sink, own, live[1])
        end) or nil}, times, sink
end

--- What does not depend on how the image is cut: adds to a job {what, source, psf, sink, options,
-- devices}.
function blended.prepare(job)
    local options = job.options
    if options.boundary == "circular" then
        fail("unsupported", "tiled_deconv", "boundary", "blended tiles do not wrap around the "
            .. 'image: mode = "exact" does; other boundaries are zero, reflect, mirror and '
            .. "replicate")
    end
    job.margin, job.ramp, job.most, job.kernel, job.settings = {}, {}, {}, {}, {}
    job.whole = {}
    for _, name in ipairs {"normalize", "eps", "floor", "min", "acceleration",
        "total_variation", "spacing", "boundary", "background"} do
        job.settings[name] = options[name]
    end
    gate.variation("richardson_lucy", options.total_variation, job.source.shape, options.spacing)
    job.given = grids.center("richardson_lucy", job.psf, options.center)
    for i, k in ipairs(job.psf.shape) do
        job.ramp[i] = math.max(1, (k + 3) // 4)
        job.margin[i] = math.max((k + 1) // 2 + job.ramp[i], options.margin or 0)
        -- A tile is not shorter than its two ramps.
        job.most[i] = math.max(1, job.source.shape[i] // (2 * job.ramp[i]))
        job.kernel[i] = k + 2 * job.margin[i] -- tile, both margins, and the boundary's k - 1
        job.whole[i] = job.source.shape[i] + k - 1
    end
    job.shape = job.source.shape
    job.ordered = true -- sums do not depend on who is free
end

--- What is planned of a job: the times of the sweep over some tiles.
function blended.dry(job, devices, made, tiles_of)
    local _, times, sink = blended.run(job, devices, made, tiles_of)
    if sink ~= job.sink then
        sink.array:release()
    end
    return times
end

function blended.plan(job)
    local device, options, source = job.devices[1], job.options, job.source
    sweep.set_overlaps(job, sweep.travels(job.devices, source,
        type(job.sink) == "table" and job.sink or nil))
    function job.seconds(made)
        return made.total * 2 * options.iterations
            * search.convolution_seconds(device, made.points) / #job.devices,
            search.transfer_seconds(device, source.place, volumes.bytes(source) * made.work, made),
            search.transfer_seconds(device, source.place, 4 * convolution.product(job.shape), made)
    end
    local plan = sweep.plan(job)
    plan.mode, plan.iterations = "blended", options.iterations
    return plan
end

return blended
