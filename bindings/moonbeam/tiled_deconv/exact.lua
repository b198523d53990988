-- Richardson-Lucy by tiles with exact seams: every iteration is two sweeps of tiles with a barrier
-- between. Sweep 1 writes ratio = y / (h * x), sweep 2 makes x := x (h' * ratio) / n
-- (moonbeam.tiled_deconv.tile_steps). Where these lie: moonbeam.tiled_deconv.domain.
--
-- Image, estimate and ratio (and for momentum the estimate before) are volumes at one place: on the
-- device, on the host or in files. The estimate reaches `lead` elements beyond the image's start.
--
-- A run with a journal can go on (moonbeam.tiled_deconv.tile_journal). If the volumes are in files,
-- each tile of both sweeps is noted; if they are in memory, the estimate is saved now and then
-- (moonbeam.tiled_deconv.estimates).

local mb = require "moonbeam"
local alive = require "moonbeam.stream.alive"
local background = require "moonbeam.deconv.background"
local budgets = require "moonbeam.plan.budget"
local convolution = require "moonbeam.convolution"
local counted = require "moonbeam.internal.quantities.counted"
local domain = require "moonbeam.tiled_deconv.domain"
local estimates = require "moonbeam.tiled_deconv.estimates"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local gate = require "moonbeam.deconv.value_gate"
local memory = require "moonbeam.plan.peak"
local grids = require "moonbeam.deconv.deconv_grid"
local on_error = require "moonbeam.internal.on_error"
local psf_tools = require "moonbeam.psf"
local search = require "moonbeam.tiles.search"
local stops = require "moonbeam.stream.stops"
local steps = require "moonbeam.tiled_deconv.tile_steps"
local sweep = require "moonbeam.tiles.sweep"
local tile_ranks = require "moonbeam.tiled_deconv.tile_ranks"
local volumes = require "moonbeam.volumes"

local exact = {}

local WHAT <const> = "tiled_deconv"

-- ---- one run ----

-- Closes a volume that was made here, arrays as well.
local function drop(volume)
    if volume.array then
        volume.array:release()
    end
    volume:close()
end

local function owned(volume)
    return volume and setmetatable({}, {__close = function() drop(volume) end})
end

-- A run: {job, devices, plan, home (the device or host that has the arrays), own, one and two (the
-- tiles of the image, and those of the sweeps), times, kept (the state of a journal, or nil)}.
local runs = {}
runs.__index = runs

local function new_run(job, devices, plan, tiles_of)
    local own, one, two = domain.tiles(job, plan.counts, tiles_of)
    return setmetatable({job = job, devices = devices, sharing = #devices, plan = plan,
        kept = job.kept, lengths = {[0] = 0}, times = {budgets = {}, again = {}},
        home = plan.place == "device" and devices[1] or mb.device "host",
        own = own, one = one, two = two}, runs)
end

function runs:settings(devices)
    local settings = sweep.settings(self.job, devices, self.plan, #self.times + 1)
    settings.lanes, settings.hashes = self.lanes, self.hashes
    if devices == self.devices then
        settings.sharing = self.sharing -- as planned, whatever is lost
    end
    if self.overlap ~= nil then
        settings.overlap = self.overlap
    end
    return settings
end

function runs:sweep(devices, tiles, each)
    self.times[#self.times + 1] = sweep.run(self:settings(devices), self.plan.grid, tiles, each)
end

-- A sweep whose tiles are noted in a section of the journal, if they go to files: only those that
-- are left. `numbers`: a tally of the tiles, or nil. `slot`: what is noted beside.
function runs:noted(section, tiles, each, numbers, slot)
    each.stops, each.again, each.sums = self.stops, self.estimates:whole(), numbers ~= nil
    if not self.hashes then
        return self:sweep(self.devices, tiles, each)
    end
    local left, known, all = self.kept:pending(section, tiles, each.writes)
    local count = #tiles - all + (section % 2 == 0 and #tiles or 0)
    if numbers then
        numbers:begin(known)
    end
    function each.finished(tile, facts)
        local row = numbers and numbers:row(tile) or {}
        row.slot = slot
        self.kept:note(section, tile, facts.hash, row)
        count = count + 1
        self.kept:reached("%d of %d iterations, and %d of %d tiles of the next one",
            (section - 1) // 2, self.job.options.iterations, count, 2 * #tiles)
    end
    if all > 0 then
        self:sweep(self.devices, left, each)
    end
    if tile_ranks.shared() and not self:stopped() then
        local rows = {}
        for i = 1, #left do -- those that this rank has taken
            rows[left[i].number] = numbers and numbers:row(left[i]) or nil
        end
        for number, row in pairs(tile_ranks.gather(rows)) do
            known[number] = row
        end
    end
end

-- Has a stop (Ctrl-C) ended the last sweep before its last tile?
function runs:stopped()
    local times = self.times[#self.times]
    return times and times.stopped
end

-- Copies what is read for each tile of the image to a volume. `sums`: a tally of their sums, or
-- nil.
function runs:copy(read, sink, device, sums)
    self:sweep({device}, self.own, {reads = {read}, writes = {sink},
        compute = function(blocks, tile, on, give)
            if sums then
                sums:put(on, tile, mb.reduce(blocks[1], "sum"))
            end
            give(1, blocks[1])
        end})
end

-- A new volume at the place of the plan.
function runs:volume(shape, dtype)
    if self.plan.place == "file" then
        return volumes.scratch(self.job.options.scratch, shape, dtype or "f32")
    end
    return volumes.of_array(mb.empty(shape, {dtype = dtype, device = self.home}))
end

-- The image where the sweeps want it, and a copy that was made for that, or nil.
function runs:placed(source)
    if self.plan.place == "file" or source.array and source.array.device == self.home then
        return source
    end
    local copy = self:volume(source.shape, source.dtype)
    local _ <close> = on_error(function() drop(copy) end)
    self:copy({source, sweep.own}, copy, self.home)
    return copy, copy
end

-- The mean of the image over its tiles, and the part of its values that count as 0; 1 and 0 in a
-- dry run.
function runs:mean(y)
    local noted = self.kept and self.kept:value "mean"
    if noted then
        return noted, self.kept:value "below" or 0
    end
    local sums <close> = sweep.tally(self.devices, self.plan.total, 1)
    local whole = y.dtype == "u8" or y.dtype == "u16"
    local counts <close> = not whole and sweep.tally(self.devices, self.plan.total, 4) or nil
    self:sweep(self.devices, self.own, {reads = {{y, sweep.own}}, writes = {}, again = true,
        sums = true,
        compute = function(blocks, tile, device)
            blocks[1] = volumes.real(blocks[1])
            sums:put(device, tile, mb.reduce(blocks[1], "positive"))
            if counts then
                counts:put(device, tile, gate.counts(blocks[1]))
            end
        end})
    local by_tile, total = sums:read()
    for i, tile in ipairs(by_tile and self.own or {}) do
        local sum = by_tile[i][1]
        if sum ~= sum or math.abs(sum) == math.huge then
            local block <close> = y:read(tile.first, tile.extents, self.devices[1])
            finite.check_sum(sum, block, WHAT, gate.block(tile.first))
        end
    end
    local mean, share = 1, 0
    if total then
        mean, share = gate.judge(WHAT, total[1], counts and select(2, counts:read())[2] or 0,
            convolution.product(y.shape), convolution.product(self.job.estimate),
            self.job.options.total_variation ~= nil)
    end
    if self.kept then
        self.kept:note_value("mean", mean)
        self.kept:note_value("below", share)
    end
    return mean, share
end

-- What the iterations need to know of a background in the model; nil without. The sum is that of
-- the image as the sweeps see it. `mean`: of the image.
function runs:under(y, mean)
    local job, options = self.job, self.job.options
    if options.background == 0 then
        return nil
    end
    local points, level = convolution.product(job.ratio), gate.level(mean, options)
    if not job.wraps then
        return background.new(options, mean * points, points, level)
    end
    local sum = self.kept and self.kept:value "light"
    if not sum then
        local sums <close> = sweep.tally(self.devices, self.plan.total, 1)
        self:sweep(self.devices, self.one, {reads = {{domain.image(job, y), sweep.own}},
            writes = {}, again = true, sums = true,
            compute = function(blocks, tile, device)
                blocks[1] = volumes.real(blocks[1])
                sums:put(device, tile, mb.reduce(blocks[1], "positive"))
            end})
        local _, total = sums:read()
        sum = total and total[1] or 1
        if self.kept then
            self.kept:note_value("light", sum)
        end
    end
    return background.new(options, sum, points, level)
end

-- Fills the volumes that the first iteration reads; with a gradient, the last one, that is 0.
function runs:fill(list, level)
    for i, volume in ipairs(list) do
        if volume.array then
            volume.array:fill(i < 3 and level or 0)
        end
    end
    if not list[1].array then
        local host = mb.device "host"
        self:sweep({host}, self.two, {reads = {}, writes = list,
            compute = function(_, tile, _, give)
                for i in ipairs(list) do
                    local block <close> = mb.full(tile.extents, i < 3 and level or 0,
                        {device = host})
                    give(i, block)
                end
            end})
    end
end

-- Sweep 1 of iteration k: the ratio at the image's elements from the estimate around them.
function runs:ratio(k, y, ratio, state, done)
    local each = steps.ratio(self.job, self.plan.grid, self.estimates:at(k - 1), y, ratio, state)
    each.done = done
    self:noted(estimates.sections(k), self.one, each, state.misfit)
end

-- What sweep 2 multiplies the correction by, from the numbers of sweep 1; 1 in a dry run.
local function scale_of(state, k)
    local _, sums = state.misfit:read()
    return background.scale(state.under, sums and sums[3], k)
end

-- Sweep 2 of iteration k: the estimate from the ratio around it.
function runs:update(k, ratio, state, done)
    local each = steps.update(self.job, self.plan.grid, k, self.estimates, ratio, state)
    local _, section = estimates.sections(k)
    each.done = done
    self:noted(section, self.two, each, state.sums, self.estimates:slot(k))
end

function runs:is_biggs()
    return self.job.options.acceleration == "biggs_andrews"
end

-- The numbers of an iteration, from the tallies; nil in a dry run.
local function metric_of(misfit, sums)
    local _, first = misfit:read()
    local _, change = sums:read()
    return first and {divergence = first[1], blurred = first[2], flux = change[1],
        change = change[3] > 0 and math.sqrt(change[2] / change[3]) or 0}
end

-- What the sweeps need beside the volumes: new, or what a run before has left in the plan.
function runs:states()
    local job, plan, options = self.job, self.plan, self.job.options
    local there = plan.kept or self.kept_states
    return there or sweep.states(self.devices, job.psf, function(own, _, given)
        local psf <close>, _, share = grids.spread(WHAT, given, job.given)
        plan.psf_share = share -- also of states that are kept
        own.otf = convolution.transfer(psf, plan.grid,
            {center = job.middle, normalize = options.normalize})
        own.table = not job.wraps and mb.summed_area(psf,
            {scale = not options.normalize and 1 or 1 / psf_tools.sum(psf)}) or nil
    end)
end

-- Notes the numbers of an iteration, and tells them. Returns whether it is the last one.
function runs:told(k, report, ending, metric)
    local job = self.job
    if self.kept and metric then
        self.kept:note_value(("iteration%d"):format(k), metric)
    end
    if self.kept then
        self.kept:reached("%d of %d iterations", k, job.options.iterations)
    end
    local function look(first, extents)
        local estimate, before = table.unpack(self.estimates:at(k))
        local volume, from = job.options.acceleration == "heavy_ball" and before or estimate, {}
        for i, at in ipairs(first) do
            from[i] = at + job.lead[i]
        end
        return volume:read(from, extents, volume.array and self.home or mb.device "host")
    end
    return grids.is_last({report = report, dry = self.devices[1].dry, look = look}, ending, k,
        metric)
end

-- How far the estimate goes ahead after iteration k, with biggs_andrews.
function runs:length(k, sums)
    local name = ("alpha%d"):format(k)
    local known = self.lengths[k] or self.kept and self.kept:value(name)
    if known then
        return known
    end
    if not sums then -- an earlier process has noted its tiles
        local _, section = estimates.sections(k)
        local _, rows = self.kept:pending(section, self.two, self.estimates:written(k))
        sums = {0, 0, 0, 0, 0}
        for number = 1, #self.two do
            for i = 1, #sums do
                sums[i] = sums[i] + rows[number][i]
            end
        end
    end
    local length = grids.along(sums[4], sums[5], k, self.job.options)
    self.lengths[k] = length
    if self.kept then
        self.kept:note_value(name, length)
    end
    return length
end

-- Both sweeps of iteration k.
function runs:sweeps(k, y, ratio, state, done)
    self:ratio(k, y, ratio, state, done)
    state.scale = state.under and scale_of(state, k)
    self:update(k, ratio, state, done)
end

-- The bytes of all devices that their pools have committed.
local function committed(devices)
    local total = 0
    for _, device in ipairs {mb.device "host", table.unpack(devices)} do
        total = total + mb.pool.stats(device).committed
    end
    return total
end

-- Do the devices have again what the plan takes with reading and writing beside the work?
local function has_again(run)
    local enough = true
    for id, bytes in pairs(run.plan.peaks) do
        local device = mb.device(id)
        local wanted = mb.pool.stats(device).live + bytes
        local there, change = budgets.ask(device, wanted)
        run.times.budgets[#run.times.budgets + 1] = change
        enough = enough and there >= wanted
    end
    return enough
end

local BESIDE <const> = "from iteration %d on reading and writing are beside the work again"
local AFTER <const> = "from iteration %d on reading and writing wait for the work, because memory "
    .. "was refused: %s"

-- Asks for the memory of iteration k again if the pools have given some back since the last one.
-- Tiles stay as they are, because the result depends on them; but if other programs have taken the
-- memory, reading and writing wait for the work, which takes less. When it is there again, they are
-- beside the work again.
function runs:ask_again(k, y, ratio, state)
    local before = self.overlap == nil and self.plan.overlap or self.overlap
    if mb.device.dry() or not self.reached then
        return
    end
    local grows = self.plan.overlap and not before and has_again(self)
    if not grows and committed(self.devices) >= self.reached then
        return
    end
    local overlap, reason, changes = sweep.commit_again({devices = self.devices, op = WHAT,
        what = ("iteration %d"):format(k), peaks_of = function(own)
            return memory.peaks(function()
                local dry = setmetatable({times = {}, overlap = own, lanes = false, hashes = false,
                    stops = false}, {__index = self})
                dry:sweeps(k, y, ratio, state)
            end, self.devices)
        end}, grows or before)
    local times = self.times
    table.move(changes, 1, #changes, #times.budgets + 1, times.budgets)
    if overlap ~= before then
        times.again[#times.again + 1] = {iteration = k, overlap = overlap,
            text = (overlap and BESIDE or AFTER):format(k, reason)}
    end
    self.overlap = overlap
end

-- Iteration k. A stop waits for the tiles in flight if these are noted. If the estimate is in
-- memory, it waits until that is whole, after the first sweep or the second one, and is kept.
-- Returns whether it is the last one.
function runs:iteration(k, y, ratio, state, ending)
    self:ask_again(k, y, ratio, state)
    local holding <close> = self.kept and not mb.device.dry() and stops.hold() or nil
    self.stops = holding and stops.waits or nil
    self:ratio(k, y, ratio, state, ending.done)
    if self:stopped() then
        self.estimates:save(k - 1, k > 1)
        stops.raise(holding)
    end
    self.stops = self.hashes and self.stops
    state.scale = state.under and scale_of(state, k)
    self:update(k, ratio, state, ending.done)
    if self:stopped() then
        stops.raise(holding)
    end
    self.times.iterations = self.times.iterations + 1
    self.reached = committed(self.devices)
    if self:is_biggs() then
        local _, numbers = state.sums:read()
        state.alpha = numbers and self:length(k, numbers) or 0
    end
    local over = self:told(k, ending.report, ending, ending.measure
        and metric_of(state.misfit, state.sums) or nil)
    self.done = k
    self.estimates:save(k, holding and stops.waits())
    return over
end

-- The numbers of the iterations that earlier processes have done. Returns whether the last of these
-- is the last of all.
function runs:retold(from, report, ending)
    local over = false
    for k = 1, from do
        local metric = self.kept:value(("iteration%d"):format(k))
        over = grids.is_last({report = report}, {tolerance = ending.tolerance}, k, metric) or false
    end
    if self.kept then
        self.kept:has("%d of %d iterations", from, self.job.options.iterations)
    end
    return over
end

-- Goes on without the devices that are lost by now, if there are others.
function runs:drop_lost()
    local live = alive.of(self.devices)
    if #live > 0 and #live < #self.devices then
        self.devices, self.times.repeated = live, true
    end
end

-- The iterations. `call` is there unless this is a plan, for which one is enough.
function runs:iterate(report, call)
    local job, plan, options = self.job, self.plan, self.job.options
    local states = self:states()
    self.kept_states = options.keep and states or nil
    local _ <close> = not options.keep and states ~= plan.kept and states or nil
    local placed, copy = self:placed(job.source)
    local _ <close> = owned(copy)
    local mean, share = self:mean(placed)
    report.clipped, self.zero = {image = share, psf = plan.psf_share}, mean == 0
    self:drop_lost() -- before ranks wait for each other
    local again, over = self.done ~= nil, false
    local from = self.done or self.estimates:found()
    if from == 0 then
        tile_ranks.first(function()
            if tile_ranks.leads() then
                self:fill(self.estimates:at(0), gate.level(mean, options))
            end
            return true
        end)
    end
    self.done = from
    local buffered = self.estimates.buffered
    local ratio = buffered and self.kept:file("ratio", job.ratio) or self:volume(job.ratio)
    local _ <close> = owned(ratio)
    local measure = options.metrics or options.tolerance ~= nil
    local under = self:under(placed, mean)
    local misfit <close> = (measure or under)
        and sweep.tally(self.devices, plan.total, under and 3 or 2) or nil
    local biggs = self:is_biggs()
    local sums <close> = (measure or biggs) and sweep.tally(self.devices, plan.total,
        biggs and 5 or 3) or nil
    local state = {of = states, misfit = misfit, sums = sums, under = under,
        alpha = biggs and self:length(from),
        eps = options.eps or math.max(1e-6 * mean, 1e-36), epsilon = math.max(1e-3 * mean, 1e-20)}
    local ending = {on_iteration = call and options.on_iteration and function(...)
        return call(options.on_iteration, ...)
    end, tolerance = options.tolerance, report = report, measure = measure}
    local x, y = self.estimates:at(0)[1], domain.image(job, placed)
    self.hashes = buffered or nil
    local lanes <close> = alive.on(self.devices, function() -- a rank does not come here again
        self:drop_lost()
        return sweep.lanes(self:settings(self.devices), plan.grid, {x, y, ratio}, {x, ratio})
    end)
    self.lanes = lanes
    local _ <close> = on_error(function() sweep.give_up(lanes) end)
    self.times.before, self.times.iterations = #self.times, 0
    local planned = job.dry and job.dry.iterations or 1
    local last = call and options.iterations or math.min(planned, options.iterations)
    if not again then
        over = self:retold(from, report, ending)
    end
    for k = from + 1, over and 0 or last do
        local number = 0
        ending.done = call and options.on_tile and function()
            number = number + 1
            call(options.on_tile, k, number, 2 * plan.total)
        end
        if self:iteration(k, y, ratio, state, ending) then
            break
        end
    end
    self.estimates:save(report.iterations, true)
    self.lanes, self.hashes = nil, nil
end

-- The same without a device that is lost between tiles, if there are others and what an iteration
-- reads is whole: from the iteration that it has ended on. (Tiles that it leaves in a sweep the
-- others do again in that sweep.)
function runs:iterate_on(report, call)
    while true do
        local calls = tile_ranks.calls
        local ok, err = pcall(self.iterate, self, report, call)
        local live = alive.of(self.devices)
        if ok then
            return
        elseif #live == 0 or #live == #self.devices or not self.estimates:whole()
            or tile_ranks.is_bound(calls) then
            error(err, 0)
        end
        self.devices, self.times.repeated = live, true
        self.lanes, self.hashes, self.reached = nil, nil, nil
    end
end

-- The end of a run with the option keep: what the sweeps needed stays in the plan, for its PSF.
local function keep_states(run, err)
    local plan, states = run.plan, run.kept_states
    if states and states ~= plan.kept and (err ~= nil or run.job.dry) then
        states:release()
    elseif states then
        plan.kept, plan.kept_psf = states, run.job.psf
    end
end

--- Deconvolves: planned and run. Returns the report, the times of the sweeps, and the sink (which
-- may be a function that makes it when there is room).
function exact.run(job, devices, plan, tiles_of, call)
    local run = new_run(job, devices, plan, tiles_of)
    local _ <close> = setmetatable({}, {__close = function(_, err)
        keep_states(run, err)
    end})
    local report, sink = {iterations = 0, metrics = {}}, job.sink
    local acceleration = job.options.acceleration
    if job.kept then
        job.kept:check_disk(exact.disk_bytes(job, plan))
    end
    local made <close> = estimates.new(run, job.estimate, acceleration,
        job.options.total_variation ~= nil, function()
            return run:volume(job.estimate)
        end)
    run.estimates = made
    run:iterate_on(report, call)
    -- Transfer function, image and ratio have made room.
    sink = type(sink) == "function" and sink() or sink
    local x, previous = table.unpack(made:at(report.iterations))
    local final = acceleration == "heavy_ball" and previous or x -- there x has gone ahead
    local function inside(tile)
        local from = {}
        for i, at in ipairs(tile.first) do
            from[i] = at + job.lead[i]
        end
        return from, tile.extents
    end
    local sum
    if not job.kept or tile_ranks.leads() then -- of several ranks one writes the result
        local home = final.array and run.home or mb.device "host"
        local sums <close> = sweep.tally({home}, plan.total, 1)
        run:copy({final, inside}, sink, home, sums)
        sum = select(2, sums:read())
    end
    if tile_ranks.shared() and job.kept then
        tile_ranks.wait()
    end
    if sum then
        gate.judge_result(WHAT, sum[1], run.zero)
    end
    made:settle(report.iterations)
    return report, run.times, sink
end

--- The bytes of the files of a run with a journal.
function exact.disk_bytes(job, plan)
    local count = 2 * estimates.count(job.options.acceleration)
    return 4 * (count * convolution.product(job.estimate)
        + (plan.place == "file" and convolution.product(job.ratio) or 0))
end

-- ---- planning ----

--- What does not depend on how the image is cut: adds to a job {what, source, psf, sink, options,
-- devices}.
function exact.prepare(job)
    local options, source, psf = job.options, job.source, job.psf
    if #psf.shape ~= #source.shape then
        fail("shape", WHAT, "psf", "the PSF has %s, the image %d",
            counted(#psf.shape, "axis", "axes"), #source.shape)
    end
    gate.variation(WHAT, options.total_variation, source.shape, options.spacing)
    job.given = grids.center(WHAT, psf, options.center)
    domain.prepare(job, job.given)
    job.shape = job.estimate -- the larger of what is cut
end

local ADVICE = {
    device = "; the image, the estimate and the ratio stay on the device: "
        .. 'place = "host" or "file" leaves it to the tiles',
    host = "; the image, the estimate and the ratio stay on the host: "
        .. 'place = "file" leaves it to the tiles',
}

--- What is planned of a job: the times of the sweeps over some tiles.
function exact.dry(job, devices, made, tiles_of)
    made.place = made.place or job.place
    if made.twice == nil then
        made.twice = job.twice
    end
    local _, times, sink = exact.run(job, devices, made, tiles_of)
    if sink ~= job.sink then
        sink.array:release()
    end
    return times
end

-- The plan with everything at one place. `twice`: with two estimates there, so that what an
-- iteration reads is whole if a device is lost.
local function plan_at(job, place, twice)
    local device, options, count = job.devices[1], job.options, #job.devices
    local voxels, source = 4 * convolution.product(job.estimate), volumes.bytes(job.source)
    local id = place == "device" and device.id or place
    local more = estimates.count(options.acceleration) - 1
    local twice_read = options.acceleration == "biggs_andrews" and 2 or 1
    sweep.set_overlaps(job, place == "file" or count > 1 or id ~= device.id or sweep.travels(
        job.devices, job.source, type(job.sink) == "table" and job.sink or nil))
    job.advice = ADVICE[place]
    function job.seconds(made)
        local function seconds(bytes)
            return options.iterations * search.transfer_seconds(device, id, bytes, made)
        end
        return options.iterations * 2 * made.total
            * search.convolution_seconds(device, made.points) / count,
            seconds(twice_read * voxels * made.work + source + (1 + more) * voxels),
            seconds((1 + math.max(1, more)) * voxels)
    end
    job.place, job.twice = place, twice
    local plan = sweep.plan(job)
    plan.mode, plan.iterations = "exact", options.iterations
    return plan
end

-- The plan at a place: of several devices with two estimates, if they fit there.
local function plan_for(job, place)
    if place == "host" and #job.devices > 1 then
        local ok, plan = pcall(plan_at, job, place, true)
        if ok then
            return plan
        elseif type(plan) ~= "table" or plan.code ~= "budget" then
            error(plan, 0)
        end
    end
    return plan_at(job, place, false)
end

--- The plan at the first place, in the order of their speed, that the budgets allow.
function exact.plan(job)
    local options, device = job.options, job.devices[1]
    local several = #job.devices > 1
    local places = options.place and {options.place} or several and {"host"}
        or device.kind == "host" and {"device"} or {"device", "host"}
    if job.kept and job.kept:is_shared() then -- files are what ranks have in common
        if options.place and options.place ~= "file" then
            fail("argument", WHAT, "place", 'place is "%s"; what ranks share are files: give '
                .. '"file"', options.place)
        end
        places = {"file"}
    elseif not options.place and (options.scratch or job.kept) then
        places[#places + 1] = "file"
    end
    local tried, problem = {}, nil
    for _, place in ipairs(places) do
        if place == "file" and not (options.scratch or job.kept) then
            fail("argument", WHAT, "scratch",
                'place = "file" needs scratch, a file name beside which the scratch files go')
        elseif place == "device" and several then
            fail("argument", WHAT, "place", 'place = "device" is for one device, not for %d: give '
                .. '"host" or "file"', #job.devices)
        end
        local ok, plan = pcall(plan_for, job, place)
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

return exact
