-- The work on one exact tile in both sweeps of an iteration: the steps of deconv.richardson_lucy on
-- a part of the image, with what is around it.
--
-- With biggs_andrews how far an iteration goes ahead is known when all tiles of it are done, so the
-- estimate is moved ahead where it is read, in both sweeps of the next one, and never stored so.

local mb = require "moonbeam"
local background = require "moonbeam.deconv.background"
local convolution = require "moonbeam.convolution"
local domain = require "moonbeam.tiled_deconv.domain"
local grids = require "moonbeam.deconv.deconv_grid"
local sweep = require "moonbeam.tiles.sweep"
local volumes = require "moonbeam.volumes"

local steps = {}

-- The least that a prediction is divided by, so that 0 stays 0: the smallest normal number.
local TINY <const> = 2 ^ -126

-- Momentum, as the operator extrapolate has it: `here` becomes the prediction of the estimate `now`
-- and of the one `before`, which changes.
local function go_on(here, now, before, alpha, least)
    mb.binary(before, "sub", {b = now, out = before})
    mb.binary(before, "mul", {scalar = alpha, out = before})
    mb.binary(before, "min", {scalar = 0, out = here})
    mb.binary(now, "sub", {b = here, out = here})
    mb.binary(before, "max", {scalar = 0, out = before})
    mb.binary(before, "add", {b = now, out = before})
    mb.binary(before, "max", {scalar = TINY, out = before})
    mb.binary(now, "div", {b = before, out = before})
    mb.binary(here, "mul", {b = before, out = here})
    mb.binary(here, "max", {scalar = least, out = here})
end

-- Momentum for a tile: the estimate `here` goes on along its last step, and `spare`, of its shape,
-- becomes what it was, the next `before`.
local function extrapolate(here, before, spare, alpha, least)
    mb.convert(here, "f32", {out = spare})
    go_on(here, spare, before, alpha, least)
end

-- `before` becomes the estimate `here` moved ahead; `here` stays. What that takes is taken in a dry
-- run, too, where alpha is 0.
local function ahead(here, before, alpha, least)
    local change <close> = before:copy()
    if alpha == 0 then
        mb.convert(here, "f32", {out = before})
    else
        go_on(before, here, change, alpha, least)
    end
end

-- The numbers of a tile and, behind them, the sum of its ratios. Takes ownership of the numbers.
local function with_sum(numbers, ratios)
    local _ <close> = numbers
    local sum <close> = mb.reduce(ratios, "sum")
    local all = mb.empty({3}, {dtype = "f64", device = numbers.device})
    local two <close> = all:view {1, 2}
    mb.convert(numbers, "f64", {out = two})
    local one <close> = all:view {3, 3}
    local last <close> = sum:reshape(1)
    mb.convert(last, "f64", {out = one})
    return all
end

-- The block as one that may be changed: a copy where it is a view of an array on the device, which
-- must stay as it is. Takes ownership.
local function changeable(block, volume, device)
    if not volume.array or volume.array.device ~= device then
        return block
    end
    local view <close> = block
    return view:copy()
end

--- What sweep 1 of an iteration is, for sweep.run: the ratio at the image's elements from the
-- estimate around them. `state`: of (what each device keeps), eps, alpha, misfit (a tally, or nil).
-- before: what the iteration before has made (estimates.at); y, ratio: volumes.
function steps.ratio(job, grid_of, before, y, ratio, state)
    local n, options, misfit = grid_of[#grid_of], job.options, state.misfit
    local biggs = options.acceleration == "biggs_andrews"
    local x, last = domain.around(job, before[1]), domain.around(job, before[2])
    return {
        reads = {{x, sweep.around}, {y, sweep.own}, biggs and {last, sweep.around} or nil},
        writes = {ratio},
        compute = function(blocks, tile, device, give)
            local grid <close> = mb.embed(blocks[biggs and 3 or 1], grid_of, {before = tile.before})
            if biggs then
                local here <close> = grid:view(convolution.ranges(tile.before, tile.take))
                ahead(blocks[1], here, state.alpha, options.min)
            end
            blocks[1]:release()
            if biggs then
                blocks[3]:release()
            end
            convolution.apply(grid, state.of[device.id].otf, n)
            local part <close> = grid:view(convolution.ranges(job.above, tile.extents))
            blocks[2] = volumes.real(blocks[2])
            local _, metric = mb.rl_ratio(part, blocks[2],
                {tile = true, eps = state.eps, metrics = misfit ~= nil,
                    background = options.background})
            blocks[2]:release()
            if misfit then
                misfit:put(device, tile, state.under and with_sum(metric, part) or metric)
            end
            give(1, part)
        end}
end

-- What is updated in place for a tile, and whether that is a dense block, as it has been read. With
-- total variation, the correction `part` is divided by its term first.
local function current(job, blocks, part, tile, device, own)
    local state, at = own.state, own.biggs and 3 or 2
    if own.biggs then
        if not own.in_place then
            blocks[3] = changeable(blocks[3], own.before[2], device)
        end
        ahead(blocks[2], blocks[3], state.alpha, job.options.min)
    elseif not own.in_place and not own.rim then
        blocks[2] = changeable(blocks[2], own.before[1], device)
    end
    if not own.rim then
        return blocks[at]:view(), true
    end
    local place = own.place(tile)
    mb.rl_total_variation(blocks[at], part, {lambda = job.options.total_variation,
        flat = grids.flat(job.options.acceleration), spacing = job.options.spacing,
        epsilon = state.epsilon, at = place})
    local view = blocks[at]:view(convolution.ranges(place, tile.extents))
    if not own.biggs then
        local _ <close> = view
        return view:copy(), true
    end
    return view, false
end

--- What sweep 2 of iteration k is: the estimate from the ratio around it. Also: state.epsilon, of
-- total variation; state.sums, a tally, or nil; state.under and scale (moonbeam.deconv.background).
-- estimates: those of the run.
function steps.update(job, grid_of, k, estimates, ratio, state)
    local n, options, sums = grid_of[#grid_of], job.options, state.sums
    local before, whole = estimates:at(k - 1), estimates:whole()
    local x, previous, gradient = table.unpack(before)
    local written = estimates:written(k)
    local own = {state = state, before = before, in_place = estimates.in_place,
        biggs = gradient ~= nil}
    if options.total_variation then
        own.rim, own.place = domain.rim(job)
    end
    local wide, heavy = own.rim or sweep.own, previous and not gradient
    return {
        reads = {{domain.around(job, ratio), sweep.around}, {x, wide},
            previous and {previous, heavy and sweep.own or wide} or nil,
            gradient and {gradient, sweep.own} or nil},
        writes = written,
        compute = function(blocks, tile, device, give)
            local kept, first = state.of[device.id], {}
            local grid <close> = mb.embed(blocks[1], grid_of, {before = tile.before})
            blocks[1]:release()
            convolution.apply(grid, kept.otf, n, true)
            local part <close> = grid:view(convolution.ranges(job.middle, tile.extents))
            if state.under then
                background.pull(part, state.scale)
            end
            for i, at in ipairs(tile.first) do
                first[i] = at - job.lead[i]
            end
            if heavy and whole then
                blocks[3] = changeable(blocks[3], previous, device)
            elseif gradient and whole then
                blocks[4] = changeable(blocks[4], gradient, device)
            end
            local estimate <close>, as_read = current(job, blocks, part, tile, device, own)
            local _, _, metric = mb.rl_update(estimate, part,
                {table = kept.table, first = first, window = kept.table and job.source.shape,
                center = kept.table and job.center, floor = options.floor, min = options.min,
                    metrics = sums ~= nil, gradient = blocks[4]})
            if sums then
                sums:put(device, tile, metric)
            end
            if state.under and k == 1 then
                background.begin(state.under, estimate, part)
            end
            if heavy then
                extrapolate(estimate, blocks[3], part, grids.momentum(k), options.min)
                give(2, part)
            elseif gradient then
                if not job.wraps then
                    grids.inside(blocks[4], first, job.source.shape)
                end
                give(2, blocks[4], not whole or gradient:carries(device))
            end
            if gradient and #written > 2 then
                local place = own.place and own.place(tile)
                local was <close> = place
                    and blocks[2]:view(convolution.ranges(place, tile.extents)) or blocks[2]:view()
                give(3, was)
            end
            give(1, estimate, as_read and (own.in_place or x:carries(device)))
        end}
end

return steps
