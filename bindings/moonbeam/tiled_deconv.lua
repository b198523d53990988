--- Richardson-Lucy for images that do not fit as a whole: by tiles, with exact seams, or
-- independent and blended.
--
-- Exact: every iteration is two sweeps of tiles with a barrier between. Sweep 1 writes ratio = y /
-- (h * x), sweep 2 makes x := x (h' * ratio) / n. The result is that of deconv.richardson_lucy with
-- boundary "zero", to rounding: the estimate lives on the image's extents and k - 1 beyond, where
-- the image can tell. Resident are image, estimate and ratio: 12 bytes per voxel (10 for u16), and
-- the tiles; or they are on the host, or in files. Momentum takes 4 more, the estimate before.
--
-- Blended: every tile with a margin is deconvolved by itself and laid over its neighbors with
-- cosine ramps. That is quicker out of core (a tile is read once, whatever the iterations) and
-- takes every option of richardson_lucy, but what iterations carry further than the margin is lost.
-- How well the seams are hidden is measured.

local mb = require "moonbeam"
local convolution = require "moonbeam.convolution"
local deconv = require "moonbeam.deconv"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local on_error = require "moonbeam.internal.on_error"
local options_of = require "moonbeam.internal.options"
local psf_tools = require "moonbeam.psf"
local search = require "moonbeam.tiles.search"
local sweep = require "moonbeam.tiles.sweep"
local volumes = require "moonbeam.volumes"
local whole_call = require "moonbeam.internal.whole"

local tiled = {}

local function each(axes, fn, few)
    for _, tile in ipairs(few and search.few(axes, 1) or search.tiles(axes)) do
        fn(tile)
    end
end

local function read_embeddable(volume, first, extents, device, host)
    return volumes.real(volume:read(first, extents, device, host))
end

--- A seam metric above this is worth a warning.
tiled.SEAM_LIMIT = 1.05

local WHAT = "tiled_deconv"

local PLAN = {"tile", "budget", "host_budget", "device", "place", "scratch", "center", "normalize",
    "boundary", "plan"}
local RUN = {"iterations", "acceleration", "eps", "floor", "min", "metrics", "on_iteration",
    "on_tile", "tolerance"}
local BLEND = {"total_variation", "spacing", "overlap"}
local PLACES = {device = true, host = true, file = true}

-- ---------------------------------------------------------------------------------------------
-- Exact seams

-- What does not depend on how it is cut. E, the estimate's extents; `lead` of them lie before the
-- image.
local function settings_of(source, psf, options)
    if options.boundary and options.boundary ~= "zero" then
        fail("unsupported", WHAT, "boundary",
            'tiles with exact seams look beyond the edges: boundary is zero, not "%s"',
            tostring(options.boundary))
    elseif #psf.shape ~= #source.shape then
        fail("shape", WHAT, "psf", "the PSF has %d axes, the image %d", #psf.shape, #source.shape)
    end
    local given = psf_tools.center(psf, options.center)
    local settings = {shape = source.shape, kernel = psf.shape, estimate = {}, center = {},
        lead = {}, last = {}, back = {},
        zero = {}, iterations = options.iterations or 10, least = options.min or 0,
        floor = options.floor, eps = options.eps,
        measure = options.metrics or options.tolerance ~= nil, tolerance = options.tolerance,
        on_iteration = options.on_iteration, on_tile = options.on_tile,
            normalize = options.normalize,
        scratch = options.scratch, momentum = options.acceleration == "heavy_ball"}
    if options.acceleration and options.acceleration ~= "none" and not settings.momentum then
        fail("unsupported", WHAT, "acceleration",
            'tiles with exact seams have acceleration none or heavy_ball, not "%s"',
            tostring(options.acceleration))
    end
    if math.type(settings.iterations) ~= "integer" or settings.iterations < 0 then
        fail("argument", WHAT, "iterations", "iterations is a whole number, 0 or more")
    end
    for i, k in ipairs(psf.shape) do
        settings.center[i] = math.floor(given[i] + 0.5)
        settings.lead[i] = k - 1 - settings.center[i]
        settings.estimate[i] = source.shape[i] + k - 1
        settings.last[i], settings.back[i], settings.zero[i] = k - 1, 1 - k, 0
    end
    return settings
end

-- A new volume for estimate or ratio, at the place of the plan. Close it.
local function state(settings, shape, device, host)
    if settings.place == "file" then
        return volumes.scratch(settings.scratch, shape, "f32")
    end
    local array = mb.empty(shape, {device = settings.place == "device" and device or host})
    return volumes.of_array(array)
end

-- Closes a volume that was made here, arrays as well.
local function owned(volume)
    return setmetatable({}, {__close = function()
        if volume.array then
            volume.array:release()
        end
        volume:close()
    end})
end

-- The image where the sweeps want it: itself, or a copy that the returned guard releases.
local function placed(source, settings, cut, device, host, kinds)
    local on = settings.place == "device" and device or host
    if settings.place == "file" or source.array and source.array.device == on then
        return source, nil
    end
    local array = mb.empty(source.shape, {dtype = source.dtype, device = on})
    local copy = volumes.of_array(array)
    local guard = owned(copy)
    local ok, problem = pcall(each, cut, function(tile)
        local block <close> = source:read(tile.first, tile.extents, on, host)
        copy:write(tile.first, block, host)
    end, kinds)
    if not ok then
        array:release()
        error(problem, 0)
    end
    return copy, guard
end

-- The mean of a volume over its tiles; 1 in a dry run.
local function mean_of(volume, cut, device, host, kinds)
    local total, dry = 0, device.dry
    each(cut, function(tile)
        local block <close> = volume:read(tile.first, tile.extents, device, host)
        local sum <close> = mb.reduce(block, "sum")
        dry = dry or sum.device.dry
        local value = dry and 0 or sum:item()
        finite.check_sum(value, block, WHAT,
            ("the image's block from (%s) on"):format(table.concat(tile.first, ", ")))
        total = total + value
    end, kinds)
    return dry and 1 or total / convolution.product(volume.shape)
end

-- total := total + part, both small; releases part.
local function add(total, part)
    if part then
        local piece <close> = part
        mb.binary(total, "add", {b = piece, out = total})
    end
end

-- Sweep 1, one tile: the ratio at the image's elements from the estimate around them.
local function ratio_tile(x, y, ratio, otf, plan, tile, settings, device, host, eps, misfit)
    local n = plan.grid[#plan.grid]
    local grid <close> = (function()
        local piece <close> = x:read(tile.from, tile.take, device, host)
        return mb.embed(piece, plan.grid, {before = tile.before})
    end)()
    convolution.apply(grid, otf, n)
    local part <close> = grid:view(convolution.ranges(settings.zero, tile.extents))
    do
        local image <close> = read_embeddable(y, tile.first, tile.extents, device, host)
        local _, metric = mb.rl_ratio(part, image,
            {tile = true, eps = eps, metrics = settings.measure})
        add(misfit, metric)
    end
    ratio:write(tile.first, part, host)
end

-- Momentum for one tile: the estimate `here` goes on along its last step, `previous` becomes what
-- it was (op extrapolate). `spare` has the shape of a tile.
local function extrapolate_tile(here, previous, spare, tile, settings, device, host, alpha)
    mb.convert(here, "f32", {out = spare})
    do
        -- a view is written over below
        local step <close> = previous:read(tile.first, tile.extents, device, host)
        mb.binary(spare, "sub", {b = step, out = step})
        mb.binary(step, "mul", {scalar = alpha, out = step})
        mb.binary(here, "add", {b = step, out = here})
        mb.binary(here, "max", {scalar = settings.least, out = here})
    end
    previous:write(tile.first, spare, host)
end

-- Sweep 2, one tile of the estimate from the ratio around it.
local function update_tile(x, previous, ratio, otf, sums_of, plan, tile, settings, device, host,
    sums, alpha)
    local n, first = plan.grid[#plan.grid], {}
    local grid <close> = (function()
        local piece <close> = ratio:read(tile.from, tile.take, device, host)
        return mb.embed(piece, plan.grid, {before = tile.before})
    end)()
    convolution.apply(grid, otf, n, true)
    local part <close> = grid:view(convolution.ranges(settings.last, tile.extents))
    for i, at in ipairs(tile.first) do
        first[i] = at - settings.lead[i]
    end
    local here <close> = x:read(tile.first, tile.extents, device, host)
    local _, _, metric = mb.rl_update(here, part,
        {table = sums_of, first = first, window = settings.shape,
        center = settings.center, floor = settings.floor, min = settings.least,
            metrics = settings.measure})
    add(sums, metric)
    if previous then
        extrapolate_tile(here, previous, part, tile, settings, device, host, alpha)
    end
    if not (x.array and x.array.device == here.device) then -- else it was a view
        x:write(tile.first, here, host)
    end
end

-- The iterations. Planned with one tile of every kind, run with all.
local function exact(source, psf, sink, plan, settings, device, host, kinds)
    local shape, estimate, kernel = settings.shape, settings.estimate, settings.kernel
    local own = search.cut(shape, shape, kernel, settings.zero, plan.counts)
    local one = search.cut(shape, estimate, kernel, settings.zero, plan.counts)
    local two = search.cut(estimate, shape, kernel, settings.back, plan.counts)
    local report = {iterations = 0, metrics = {}}
    local x = state(settings, estimate, device, host)
    local _ <close> = owned(x)
    local previous = settings.momentum and state(settings, estimate, device, host) or nil
    local _ <close> = previous and owned(previous) or nil
    do
        local otf <close> = convolution.transfer(psf, plan.grid,
            {center = settings.last, normalize = settings.normalize})
        local sums_of <close> = mb.summed_area(psf,
            {scale = settings.normalize == false and 1 or 1 / psf_tools.sum(psf)})
        local y, guard = placed(source, settings, own, device, host, kinds)
        local _ <close> = guard
        local mean = mean_of(y, own, device, host, kinds)
        local eps, flat = settings.eps or math.max(1e-6 * mean, 1e-30),
            math.max(mean, settings.least)
        for _, volume in ipairs {x, previous} do
            if volume.array then
                volume.array:fill(flat)
            else
                each(two, function(tile)
                    local block <close> = mb.full(tile.extents, flat, {device = host})
                    volume:write(tile.first, block, host)
                end, kinds)
            end
        end
        local ratio = state(settings, shape, device, host)
        local _ <close> = owned(ratio)
        for k = 1, kinds and math.min(1, settings.iterations) or settings.iterations do
            local misfit <close> = settings.measure
                and mb.zeros({2}, {dtype = "f64", device = device}) or nil
            local sums <close> = settings.measure
                and mb.zeros({3}, {dtype = "f64", device = device}) or nil
            local function told(offset)
                return function(number, total)
                    if settings.on_tile and not kinds then
                        settings.on_tile(k, offset + number, 2 * total)
                    end
                end
            end
            local done = told(0)
            each(one, function(tile)
                ratio_tile(x, y, ratio, otf, plan, tile, settings, device, host, eps, misfit)
                done(tile.number, plan.total)
            end, kinds)
            done = told(plan.total)
            each(two, function(tile)
                update_tile(x, previous, ratio, otf, sums_of, plan, tile, settings, device, host,
                    sums, (k - 1) / (k + 2))
                done(tile.number, plan.total)
            end, kinds)
            report.iterations = k
            local metric
            if settings.measure and not misfit.device.dry then
                local squares = sums:item(3)
                metric = {divergence = misfit:item(1), blurred = misfit:item(2),
                    flux = sums:item(1),
                    change = squares > 0 and math.sqrt(sums:item(2) / squares) or 0}
                report.metrics[k] = metric
            end
            local dry = kinds or mb.device.dry()
            if settings.on_iteration and not dry and settings.on_iteration(k, metric) == false then
                break
            elseif metric and settings.tolerance and metric.change < settings.tolerance then
                break
            end
        end
    end
    -- The image's part of the estimate (with momentum x has gone ahead); transfer function, image
    -- and ratio are gone.
    local final = previous or x
    if type(sink) == "function" then
        sink = sink()
    end
    each(own, function(tile)
        local from = {}
        for i, at in ipairs(tile.first) do
            from[i] = at + settings.lead[i]
        end
        local on = final.array and final.array.device or host
        local block <close> = final:read(from, tile.extents, on, host)
        sink:write(tile.first, block, host)
    end, kinds)
    return report, sink
end

-- ---------------------------------------------------------------------------------------------
-- Planning

local function least_one(shape)
    local most = {}
    for i, n in ipairs(shape) do
        most[i] = n
    end
    return most
end

-- Releases what a sink that is planned made.
local function drop(sink, made)
    if type(sink) == "table" and sink.make and made and made.array then
        made.array:release()
    end
end

local function best_plan(source, psf, sink, settings, options, device, work)
    local job = {what = WHAT, devices = {device}, shape = work.shape, kernel = work.kernel,
        most = work.most or least_one(work.shape), tile = options.tile, advice = work.advice,
        available = search.available({device}, options.budget, options.host_budget),
        overlaps = {false},
        seconds = function(made)
            return work.seconds(made), 0, 0
        end}
    function job.peaks(made, all)
        local peaks = sweep.peaks({device}, function()
            local there = sink
            if type(sink) == "table" and sink.make then
                there = function()
                    return volumes.of_array(mb.empty(sink.shape, {device = device}))
                end
            end
            local quiet = setmetatable({on_tile = false}, {__index = settings})
            local _, result = work.run(source, psf, there, made, quiet, device,
                mb.device("host"), not all)
            drop(sink, result)
        end)
        sweep.note(made, {device}, peaks)
    end
    return search.best(job)
end

local PLACE_ADVICE = {
    device = "; the image, the estimate and the ratio stay on the device: "
        .. 'place = "host" or "file" leaves it to the tiles',
    host = "; the image, the estimate and the ratio stay on the host: "
        .. 'place = "file" leaves it to the tiles',
    file = "",
}

local function plan_exact(source, psf, sink, settings, options, device)
    local voxels, on = convolution.product(settings.estimate), {device = device.id, host = "host",
        file = "file"}
    local place = on[settings.place]
    local plan = best_plan(source, psf, sink, settings, options, device, {
        -- The estimate is the larger of what is cut.
        shape = settings.estimate, kernel = settings.kernel, run = exact,
            advice = PLACE_ADVICE[settings.place],
        seconds = function(made)
            local moved = 4 * voxels * made.work
                + (volumes.bytes(source) + (settings.momentum and 5 or 3) * 4 * voxels)
            return settings.iterations * (2 * made.total * search.convolution_seconds(device,
                made.points)
                + search.transfer_seconds(device, place, moved, made))
        end,
    })
    plan.mode, plan.place, plan.iterations = "exact", settings.place, settings.iterations
    return plan
end

-- Places in the order of their speed; the first that the budgets allow.
local function plan_any_place(source, psf, sink, settings, options, device)
    local places = options.place and {options.place} or device.kind == "host" and {"device"}
        or {"device", "host"}
    if not options.place and options.scratch then
        places[#places + 1] = "file"
    end
    local tried, problem = {}, nil
    for _, place in ipairs(places) do
        if not PLACES[place] then
            fail("argument", WHAT, "place", 'place is "%s"; it is device, host or file',
                tostring(place))
        elseif place == "file" and not options.scratch then
            fail("argument", WHAT, "scratch",
                'place = "file" needs scratch, a file name beside which the scratch files go')
        end
        settings.place = place
        local ok, plan = pcall(plan_exact, source, psf, sink, settings, options, device)
        if ok then
            plan.why = #tried > 0
                and ("the budget does not hold them on the %s"):format(table.concat(tried,
                " nor the ")) or nil
            return plan
        elseif type(plan) ~= "table" or plan.code ~= "budget" then
            error(plan, 0)
        end
        tried[#tried + 1] = place == "device" and device.kind == "host" and "host" or place
        problem = plan
    end
    error(problem, 0)
end

-- ---------------------------------------------------------------------------------------------
-- Independent tiles, blended

-- Ramps of the tiles, as cosines about the faces between them: `ramp` elements to either side.
local function blend_settings(source, psf, options)
    local settings = {shape = source.shape, kernel = psf.shape, margin = {}, ramp = {},
        on_tile = options.on_tile, rl = {}}
    for _, name in ipairs {"iterations", "center", "normalize", "eps", "floor", "min",
        "acceleration", "total_variation",
        "spacing", "boundary"} do
        settings.rl[name] = options[name]
    end
    settings.most = {}
    for i, k in ipairs(psf.shape) do
        settings.ramp[i] = math.max(1, (k + 3) // 4)
        settings.margin[i] = math.max((k + 1) // 2 + settings.ramp[i], options.overlap or 0)
        -- A tile is not shorter than its two ramps.
        settings.most[i] = math.max(1, source.shape[i] // (2 * settings.ramp[i]))
    end
    return settings
end

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

local function blend_tile(source, psf, sink, tile, settings, device, host)
    local from, take, first, extents, inside = {}, {}, {}, {}, {}
    for i, n in ipairs(settings.shape) do
        local low, high, ramp, margin = tile.first[i], tile.first[i] + tile.extents[i],
            settings.ramp[i], settings.margin[i]
        from[i] = math.max(0, low - margin)
        take[i] = math.min(n, high + margin) - from[i]
        first[i] = low > 0 and low - ramp or 0
        extents[i] = (high < n and high + ramp or n) - first[i]
        inside[i] = first[i] - from[i]
    end
    local estimate <close> = (function()
        local piece <close> = read_embeddable(source, from, take, device, host)
        local dense <close> = not piece.contiguous and piece:copy() or nil
        return (deconv.richardson_lucy(dense or piece, psf, settings.rl))
    end)()
    local part <close> = estimate:view(convolution.ranges(inside, extents))
    for i, n in ipairs(settings.shape) do
        local line <close> = ramp_of(first[i], extents[i], tile.first[i],
            tile.first[i] + tile.extents[i], settings.ramp[i], n,
            device)
        local shape = {}
        for axis = 1, #extents do
            shape[axis] = axis == i and extents[i] or 1
        end
        local factors <close> = line:reshape(table.unpack(shape))
        mb.binary(part, "mul", {b = factors, out = part})
    end
    -- What the tiles before this one have left there.
    local there <close> = sink:read(first, extents, device, host)
    if sink.array and sink.array.device == there.device then
        mb.binary(there, "add", {b = part, out = there})
    else
        mb.binary(part, "add", {b = there, out = part})
        sink:write(first, part, host)
    end
end

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

--- The seam metric of a volume cut by `axes` (tile_search.cut): mean |difference| of neighbors
-- across tile faces over that of neighbors within tiles. 1 where nothing shows; nil where there
-- are no faces or no differences.
function tiled.seam(volume, axes, device, host, kinds)
    local face_sum, face_count, sum, count = 0, 0, 0, 0
    each(axes, function(tile)
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
    end, kinds)
    if face_count == 0 or count == 0 or sum == 0 then
        return nil
    end
    return (face_sum / face_count) / (sum / count)
end

local function blended(source, psf, sink, plan, settings, device, host, kinds)
    if type(sink) == "function" then
        sink = sink()
    end
    if sink.array then
        sink.array:fill(0)
    end
    local axes = search.cut(settings.shape, settings.shape, settings.kernel, settings.margin,
        plan.counts)
    -- The kinds of tiles here: by where their pieces end.
    local pieces = {}
    for i, parts in ipairs(axes) do
        pieces[i] = {}
        for j, part in ipairs(parts) do
            local from = math.max(0, part.first - settings.margin[i])
            pieces[i][j] = {first = part.first, extent = part.extent, from = from,
                before = (part.first > 0 and 1 or 0)
                + (part.first + part.extent < settings.shape[i] and 2 or 0),
                take = math.min(settings.shape[i], part.first + part.extent + settings.margin[i])
                    - from}
        end
    end
    each(pieces, function(tile)
        blend_tile(source, psf, sink, tile, settings, device, host)
        if settings.on_tile and not kinds then
            settings.on_tile(1, tile.number, plan.total)
        end
    end, kinds)
    local report = {iterations = settings.rl.iterations or 10, metrics = {}}
    report.seam = tiled.seam(sink, pieces, device, host, kinds)
    return report, sink
end

local function plan_blended(source, psf, sink, settings, options, device)
    local reach = {}
    for i, k in ipairs(settings.kernel) do
        reach[i] = k + 2 * settings.margin[i] -- tile, both margins, and the boundary's k - 1
    end
    local iterations = settings.rl.iterations or 10
    local bytes = volumes.bytes(source)
    settings.rl.iterations = math.min(iterations, 2)
    local ok, plan = pcall(best_plan, source, psf, sink, settings, options, device, {
        shape = settings.shape, kernel = reach, most = settings.most, run = blended,
        seconds = function(made)
            return made.total * 2 * iterations * search.convolution_seconds(device, made.points)
                + search.transfer_seconds(device, source.place,
                    bytes * made.work + 4 * convolution.product(settings.shape), made)
        end,
    })
    settings.rl.iterations = iterations
    if not ok then
        error(plan, 0)
    end
    plan.mode, plan.iterations = "blended", iterations
    return plan
end

-- ---------------------------------------------------------------------------------------------
-- Interface

local function check(options, what)
    options = options_of(options, what, PLAN, RUN, BLEND, {"mode"})
    local mode = options.mode or "exact"
    if mode ~= "exact" and mode ~= "blended" then
        fail("argument", WHAT, "mode", 'mode is "%s"; it is exact or blended', tostring(mode))
    end
    for _, name in ipairs(mode == "exact" and BLEND or {"metrics", "on_iteration", "tolerance",
        "place"}) do
        if options[name] ~= nil and options[name] ~= false and options[name] ~= "none" then
            fail("unsupported", WHAT, name, "%s is not for mode %s", name, mode)
        end
    end
    return options, mode
end

local function prepare(source, psf, sink, options, what)
    local mode
    options, mode = check(options, what)
    local device = mb.device(options.device or psf.device.id)
    local settings = mode == "exact" and settings_of(source, psf, options)
        or blend_settings(source, psf, options)
    local planner = mode == "exact" and plan_any_place or plan_blended
    local plan = options.plan or planner(source, psf, sink, settings, options, device)
    if plan.mode ~= mode then
        fail("argument", WHAT, "plan", "the plan is for mode %s", tostring(plan.mode))
    end
    settings.place = plan.place
    return plan, settings, device, mode == "exact" and exact or blended
end

-- The array that richardson_lucy returns, before it is there.
local function promised(shape, device)
    return {make = true, shape = shape, dtype = "f32", place = device.id, on = device.kind}
end

--- How a deconvolution would be done and what it would take, without running: {mode, place, tile,
-- counts, grid, total, peak, host_peak, work, seconds, candidates}. `sink` nil: the result becomes
-- an array on the device. See richardson_lucy_volume.
function tiled.plan(source, psf, sink, options)
    local device = mb.device(options and options.device or psf.device.id)
    return (prepare(source, psf, sink or promised(source.shape, device), options,
        "tiled_deconv.plan"))
end

--- Deconvolves a volume into another of the same extents (moonbeam.volumes). Returns the report of
-- deconv.richardson_lucy, with `seam`, the seam metric, in mode blended; and the plan (tiled.plan).
--
-- Options: plan, what tiled.plan returned for a volume like this one with the same options, else it
-- is made here; mode ("exact" (default) or "blended"); iterations, center, normalize, eps, floor,
-- min, as for richardson_lucy, boundary "zero"; device (default: the PSF's); budget and host_budget
-- (bytes; default: what the budgets leave); tile, the largest extents of a tile; on_tile, a
-- function (iteration, number, total). Exact also: place of image, estimate and ratio: "device",
-- "host" or "file" (default: the first that fits); scratch, the name of a file beside which scratch
-- files may go; acceleration "none" or "heavy_ball"; metrics, on_iteration, tolerance. Blended
-- also: acceleration as for richardson_lucy, total_variation, spacing; overlap, the least margin
-- (default: three quarters of the PSF).
function tiled.richardson_lucy_volume(source, psf, sink, options)
    local on = mb.device(options and options.device or psf.device.id)
    local there <close> = psf.device ~= on and psf:to(on) or nil
    local plan, settings, device, run = prepare(source, there or psf, sink, options,
        "tiled_deconv.richardson_lucy_volume")
    local report = run(source, there or psf, sink, plan, settings, device, mb.device("host"))
    return report, plan
end

--- Deconvolves an array by tiles. Returns the estimate (f32, on the device), the report and the
-- plan. Options as for richardson_lucy_volume.
function tiled.richardson_lucy(image, psf, options)
    local source = volumes.of_array(image)
    local device = mb.device(options and options.device or image.device.id)
    local there <close> = psf.device ~= device and psf:to(device) or nil
    local plan, settings, _, run = prepare(source, there or psf, promised(source.shape, device),
        options,
        "tiled_deconv.richardson_lucy")
    local result
    local _ <close> = on_error(function()
        if result then
            result:release()
        end
    end)
    local report = run(source, there or psf, function()
        result = mb.empty(source.shape, {device = device})
        return volumes.of_array(result)
    end, plan, settings, device, mb.device("host"))
    return result, report, plan
end

return whole_call.module(tiled, "tiled_deconv", {
    seam = "volume: volume, axes: table, device: device, host: device",
    plan = "source: volume, psf: array, sink: volume?, options: table?",
    richardson_lucy_volume = "source: volume, psf: array, sink: volume, options: table?",
    richardson_lucy = "image: array, psf: array, options: table?",
})
