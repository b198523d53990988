--- The steps fista and admm_tv in sweeps: three-dimensional total variation over more slices than
-- fit, with the arithmetic of mb.tomo.fista and mb.tomo.admm_tv.
--
-- Between two sweeps the volumes that go on are in a store, as parts of the rows of one array:
--   v  what is to be denoised
--   c  A' b
--   x  the slices of the iteration before
-- and while denoising takes more than one sweep also the four of mb.total_variation_sweep. The
-- first sweep makes v, c and x from sinograms; the others make some steps of the denoising, with as
-- many slices on both sides of a block, and the last one of an iteration makes the next v and x.
-- What a method does between two denoisings is its own (fista.sweeps).

local mb = require "moonbeam"
local activity = require "moonbeam.internal.command_line.activity"
local fail = require "moonbeam.internal.fail"
local on_error = require "moonbeam.internal.on_error"
local solving = require "moonbeam.tomo.iterative.solving"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local volume_sweeps = {}

-- The volumes of the array between two sweeps.
local V, C, X, STATE, ALL <const> = 1, 2, 3, 4, 7

local function part(array, side, first, last)
    return array:view(mb.all, {(first - 1) * side + 1, (last or first) * side}, mb.all)
end

-- The function(x, out) that makes out = A' A x for so many slices, and what it holds.
local function normal_of(model, device, rows)
    if model.kernel then
        local kernel = model.kernel(device, 0)
        return function(x, out)
            mb.normal_operator(x, kernel, {circle = model.circle, out = out})
        end, kernel
    elseif model.normal then
        return model.normal, nil
    end
    local rays = mb.empty({rows, model.angles, model.cols}, {device = device})
    return function(x, out)
        model.forward(x, rays)
        model.adjoint(rays, out)
    end, rays
end

-- What a method needs for an iteration of so many slices, and what to release after it.
local function tools(model, block, rows, context, own, sweep)
    local side, device = context.side, block.device
    local normal, held = normal_of(model, device, rows)
    local one = mb.ones({rows}, {dtype = "f64", device = device})
    return {normal = normal, model = model, own = own, sweep = sweep, one = one,
        room = function() return mb.empty({rows, side, side}, {device = device}) end,
        number = function() return vectors.numbers(rows, device) end},
        setmetatable({}, {__close = function()
            one:release()
            if held then
                held:release()
            end
        end})
end

-- ---- the first sweep ----

local function begin(block, own, context)
    local sinograms <close> = block.data:permute(2, 1, 3)
    local job <close> = solving.begin(context.scheme.name, sinograms, context.geometry.angles, own)
    local side, work = job.side, job:volume()
    local made = mb.empty({job.rows, X * side, side}, {device = block.device})
    local _ <close> = on_error(function() made:release() end)
    local v <close> = part(made, side, V)
    local c <close> = part(made, side, C)
    local x <close> = part(made, side, X)
    mb.convert(job.x, "f32", {out = x})
    job.model.adjoint(job.b, work)
    mb.convert(work, "f32", {out = c})
    local at <const>, _ <close> = tools(job.model, block, job.rows, context, own)
    context.scheme.first(v, c, x, at)
    block:replace(made)
end

-- ---- the others ----

-- Some steps of the denoising, which leave the state in the block's data.
local function denoise(block, own, context, sweep)
    local side = context.side
    if sweep.first then
        local made = mb.empty({block.data.shape[1], ALL * side, side}, {device = block.device})
        local kept <close> = part(made, side, V, X)
        mb.convert(block.data, "f32", {out = kept})
        block:replace(made)
    end
    local v <close> = part(block.data, side, V)
    local state <close> = part(block.data, side, STATE, ALL)
    mb.total_variation_sweep(v, sweep.lambda, {state = not sweep.first and state or nil,
        steps = sweep.steps, nonnegative = own.nonnegative, out = state})
end

-- Keeps the slices that are wanted, as whole packets: later slices are made of these alone.
local function keep(block, packet)
    local first = (block.wanted[1] - 1) // packet * packet + 1
    local last = (block.wanted[2] + packet - 1) // packet * packet
    block:trim(first, math.min(last, block.step.shape_before[1]))
end

-- The array of the next iteration from the denoised slices.
local function go_on(block, own, context, sweep)
    local side, rows = context.side, block.data.shape[1]
    local model = context.model(own, block)
    local made = mb.empty({rows, X * side, side}, {device = block.device})
    local before = block:hand_over()
    block.data = made
    local _ <close> = before
    local denoised <close> = part(before, side, STATE)
    local old_v <close> = part(before, side, V)
    local old_x <close> = part(before, side, X)
    local kept <close> = part(before, side, C)
    local v <close> = part(made, side, V)
    local c <close> = part(made, side, C)
    local x <close> = part(made, side, X)
    mb.convert(kept, "f32", {out = c})
    local at <const>, _ <close> = tools(model, block, rows, context, own, sweep)
    context.scheme.next(v, c, x, {v = old_v, x = old_x}, denoised, at)
end

-- The result.
local function finish(block, own, context)
    local image <close> = part(block.data, context.side, STATE)
    local slices = image:copy()
    block:replace(own.margin > 0 and solving.cropped(slices, context.size, own.circle) or slices)
    if own.margin > 0 then
        slices:release()
    end
    if context.scale then
        mb.binary(block.data, "mul", {scalar = context.scale, out = block.data})
    end
    block:note_spoiled()
end

--- Refuses options with which sweeps of data with this geometry do not work.
function volume_sweeps.check(options, g)
    if options.dimensions ~= 3 then
        fail("argument", nil, "sweep", "sweep is for dimensions = 3; slices by themselves need no "
            .. "others: remove it")
    elseif options.slab then
        fail("argument", nil, "sweep", "sweep and slab are both given; sweep is exact, slab is "
            .. "not: remove one of the two")
    elseif options.weights == "poisson" then
        fail("argument", nil, "weights", "weights is poisson, with which every iteration needs the "
            .. "sinograms; sweep keeps none: remove one of the two")
    elseif options.tolerance or options.noise then
        local name = options.tolerance and "tolerance" or "noise"
        fail("argument", nil, name, "%s = %g ends the work early, but sweeps are planned before "
            .. "the first; remove %s, and choose iterations", name, options[name], name)
    elseif (options.preconditioner or 0) > 0 then
        fail("argument", nil, "preconditioner", "preconditioner is %g, which does not go with "
            .. "total variation; leave it out", options.preconditioner)
    elseif g.half_acquisition and not (options.size or options.center) then
        fail("argument", nil, "sweep", "sweep needs to know the size of the slices of a half "
            .. "acquisition before the axis is found; give size, or center")
    end
end

-- The sweeps of the denoising in all iterations, in order: {steps, first, last (of their
-- iteration), momentum (of the iteration), done (whether it is the last of all)}.
local function sweeps_of(options)
    local list, t = {}, 1
    for k in activity.each("iteration", options.iterations) do
        local next_t = (1 + math.sqrt(1 + 4 * t * t)) / 2
        local left = options.tv_iterations + 1 -- the data as the first image are a step
        for first = 1, left, options.sweep do
            list[#list + 1] = {first = first == 1, last = first + options.sweep > left,
                steps = math.min(options.sweep, left - first + 1), momentum = (t - 1) / next_t}
        end
        list[#list].done = k == options.iterations
        t = next_t
    end
    return list
end

--- The parts of the step. `def` has own(values, block), the options of the method's function,
-- note_cut(block, own), packet and deciding as a definition; `context` is {scheme (fista.sweeps),
-- geometry (of the sinograms), count (slices), size, side, scale, model(own, block)}.
function volume_sweeps.parts(options, def, context)
    local count, side = context.count, context.side
    local function layout(volumes)
        return function()
            return {count, volumes * side, side}
        end
    end
    local parts = {{shape = layout(X), packet = def.packet, deciding = def.deciding, needs = false,
        run = function(block, _, values)
            local own = def.own(values, block)
            def.note_cut(block, own)
            begin(block, own, context)
        end}}
    for i, sweep in ipairs(sweeps_of(options)) do
        parts[i + 1] = {
            takes = {quantity = {"attenuation", "phase"}, layout = "slices"},
            gives = {quantity = "same", layout = "same"},
            check = false, ways = false, geometry = false, deciding = def.deciding,
            shape = sweep.done and function() return {count, context.size, context.size} end
                or layout(sweep.last and X or ALL),
            packet = sweep.last and not sweep.done and def.packet or function() return 1 end,
            needs = function(_, first, last)
                return first - sweep.steps, last + sweep.steps
            end,
            run = function(block, _, values)
                local own = def.own(values, block)
                sweep.lambda = context.scheme.weight(own, context.model(own, block))
                denoise(block, own, context, sweep)
                if sweep.done then
                    finish(block, own, context)
                elseif sweep.last then
                    keep(block, def.packet(nil, nil, block.device))
                    go_on(block, own, context, sweep)
                end
            end}
    end
    return parts
end

return volume_sweeps
