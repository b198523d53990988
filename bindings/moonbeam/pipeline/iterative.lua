--- The common part of the steps that make slices by iterative methods (mb.tomo.cgls and its kin).

local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local geometry = require "moonbeam.pipeline.geometry"
local reconstruction = require "moonbeam.pipeline.reconstruction"
local ray_model = require "moonbeam.tomo.iterative.ray_model"
local solving = require "moonbeam.tomo.iterative.solving"
local volume_sweeps = require "moonbeam.tomo.iterative.volume_sweeps"

local iterative = {}

--- The steps that this makes.
iterative.names = {"cgls", "landweber", "fista", "admm_tv", "sirt", "sart", "mlem", "osem"}

--- Whether a method has this name.
function iterative.is(name)
    for _, own in ipairs(iterative.names) do
        if own == name then
            return true
        end
    end
    return false
end

-- Options of the functions that steps do not have: arrays, functions, and what follows from the
-- scan.
local LEFT_OUT = {"center", "shifts", "model", "x0", "history", "callback", "weights",
    "half_acquisition"}

local MODEL = {"model", "choice", "of the rays: fourier is band-limited, without the artifacts of "
    .. "linear interpolation, and has a normal operator; pixel spreads pixels over two bins",
    choices = ray_model.names}

local CENTER = {"center", "number", "the rotation axis: 0-based column of the scan", unit = "px",
    usual = "what step center finds"}

local SCALE = {"scale", "number", "factor of the slices", usual = "1, per meter where the pixel "
    .. "size is known"}

local WEIGHTS = {"weights", "choice", "of rays; poisson: the transmission, in inverse proportion "
    .. "to the variance of line integrals of counted photons", choices = {"none", "poisson"},
    default = "none"}

local SWEEP = declared.options({"sweep", "count", "3 dimensions: go over all slices again and "
    .. "again, with so many iterations of the denoising each time, and so many slices on both "
    .. "sides of a block; exact", min = 1, max = 1000000, usual = "all slices in one block"})

local SLABS = declared.options(
    {"slab", "count", "3 dimensions: slices that are made together, with those beside them, an "
        .. "approximation", min = 1, max = 1000000, usual = "all slices, exact"},
    {"overlap", "count", "3 dimensions: slices on both sides of a slab that it takes into account",
        min = 0, max = 1000000, default = 16})

-- The options of a step for those of a function.
local function options_of(own, sweeps)
    local kept = declared.without(own, table.unpack(LEFT_OUT))
    MODEL.default = own.model.default
    return declared.options(CENTER, kept, MODEL, declared.options(own.weights and WEIGHTS
        or SCALE), sweeps and SWEEP or {},
        own.dimensions and SLABS or {}, SCALE)
end

-- In a half acquisition most rays of the mask miss the detector at each angle.
local function check_half(options)
    if options.beyond == "nothing" then
        fail("argument", nil, "beyond", "beyond is nothing, but in a half acquisition the object "
            .. "is never in view as a whole; leave it out, or use step stitch instead of "
            .. "half_acquisition")
    end
end

local function check(options, shape, g, kind)
    if options.sweep then
        volume_sweeps.check(options, g)
    elseif options.slab and options.dimensions ~= 3 then
        fail("argument", nil, "slab", "slab is for dimensions = 3; slices by themselves need no "
            .. "others: remove it")
    end
    local low, high = geometry.axis_range(g, shape[3])
    if g.half_acquisition then
        check_half(options)
    elseif g.lean ~= 0 then
        fail("argument", nil, nil, "it does not support a leaning axis (step tilt); use step fbp, "
            .. "or step rotate with angle = %.6g instead of step tilt", -math.atan(g.lean))
    end
    if options.center and not (options.center >= low and options.center <= high) then
        fail("argument", nil, "center", "center is %g; the detector has columns %g to %g%s",
            options.center, low, high, geometry.beyond_text(g, options.center))
    elseif options.weights == "poisson" and kind and kind.quantity == "phase" then
        fail("argument", nil, "weights", "weights is poisson, which is for line integrals of "
            .. "attenuation; the data are phase: leave it out")
    end
end

--- The pixels of a side of the slices about an axis, a column of the scan or nil: the most of any
-- axis that may be found. `cols`: those of the data.
function iterative.side(options, cols, g, center)
    return options.size or reconstruction.width({center = center}, {0, 0, cols}, g)
end

-- The options of the function for those of the step. Kernels stay for later blocks.
local function own_options(def, options, values, block)
    local g, held = block.geometry, block.held
    local center = options.center or values.center
    local own = {center = geometry.element(g, center)}
    for _, entry in ipairs(def.own) do
        if def.options[entry.name] and entry.name ~= "center" then
            own[entry.name] = options[entry.name]
        end
    end
    own.model = held and function(extents)
        return ray_model.held(options.model, extents, held, block.step.label)
    end or options.model
    own.weights = options.weights == "poisson" and "poisson" or nil
    own.size = iterative.side(options, block.data.shape[3], g, center)
    own.half_acquisition = g.half_acquisition or nil
    return own
end

local function solve(def, sinograms, options, own, g)
    local slices, facts = def.solver(sinograms, g.angles, own)
    if facts.history then
        facts.history:release()
    end
    local scale = options.scale or g.pixel_size and 1 / g.pixel_size
    if scale then
        mb.binary(slices, "mul", {scalar = scale, out = slices})
    end
    return slices
end

-- Slabs, each by itself with the slices beside it, into one array. A slab whose neighbors are not
-- in the block is not needed: the engine asks for those of the slabs that it wants.
local function run_slabs(block, sinograms, options, side, made_of)
    local low, high = block.rows[1], block.rows[2]
    local count, slab <const> = block.step.shape_before[2], options.slab
    local result = mb.zeros({high - low + 1, side, side}, {device = block.device})
    for first = (low - 1) // slab * slab + 1, high, slab do
        local last = math.min(first + slab - 1, count)
        local from, to = math.max(first - options.overlap, 1), math.min(last + options.overlap,
            count)
        if from >= low and to <= high then
            local near <close> = sinograms:view({from - low + 1, to - low + 1})
            local slices <close> = made_of(near)
            local made <close> = slices:view({first - from + 1, last - from + 1})
            local place <close> = result:view({first - low + 1, last - low + 1})
            mb.convert(made, "f32", {out = place})
        end
    end
    return result
end

-- Pixels from the middle of the detector within which an axis has the field of view that the
-- detector has.
local CENTERED <const> = 1

-- Notes the rows whose object reaches an edge of the detector, where nobody has said what is there:
-- where rays that miss the detector count as 0, or the slices end with the detector.
local function note_cut(def, block, options, own)
    local g, cols = block.geometry, block.data.shape[3]
    if options.beyond or g.half_acquisition or options.margin > 0 then
        return block:note_cut(false)
    end
    local ends = own.size <= cols and math.abs(own.center - (cols - 1) / 2) <= CENTERED
    local zero = def.own.beyond and not own.weights
        and solving.model("tomo." .. def.name, g.angles, cols, own).kernel
    block:note_cut(ends or zero)
end

-- Whether slices depend on the slices beside them.
local function volume(options)
    return options.dimensions == 3 and options.lambda > 0
end

local function slabs(options)
    return volume(options) and options.slab
end

-- The slices that the model of the rays makes together. Where the axis decides their size: as many
-- as of the smallest ones, which those of larger ones divide.
local function packet(options, step, device)
    local _, rows, cols = table.unpack(step.shape_before)
    local side = options.size or step.geometry_before.half_acquisition and 1 or cols
    return ray_model.packet(options.model, rows, {angles = step.geometry_before.angles, cols = cols,
        side = side + 2 * options.margin, start = options.start}, device)
end

-- The numbers of slices that a solver gets of blocks of these heights.
local function slices_of(options, heights)
    if not slabs(options) then
        return heights
    end
    local list = {}
    for rows = 1, options.slab + 2 * options.overlap do
        list[rows] = rows
    end
    return list
end

-- Pixels from the middle within which no axis is that of a half acquisition.
local NOT_HALF <const> = 1.5

-- The columns of the axis among which is the one for which blocks of these heights take most.
local function deciding(pair, bounds, options, heights, context)
    local g, cols = context.step.geometry_before, context.step.shape_before[3]
    local middle, count = (cols - 1) / 2, #g.angles
    local low, high = geometry.element(g, bounds[1]), geometry.element(g, bounds[2])
    local farthest = math.max(middle - low, high - middle)
    local nearest = math.max(0, low - middle, middle - high)
    if g.half_acquisition then
        nearest = math.min(math.max(nearest, NOT_HALF), farthest)
    end
    if (options.preconditioner or 0) > 0 then -- of other axes it is refused, when one is found
        local reach = ray_model.farthest_convolved({cols = cols, beyond = options.beyond,
            circle = options.circle, side = iterative.side(options, cols, g, options.center)
                + 2 * options.margin})
        farthest = math.max(nearest, math.min(farthest, reach))
    end
    local counts, subsets = {count}, options.subsets and math.min(options.subsets, count)
    if subsets and subsets > 1 then
        counts = {count // subsets, (count + subsets - 1) // subsets, count}
    end
    local rows, memo = slices_of(options, heights), context.memo
    local key = table.concat(rows, " ")
    if not memo[key] then
        memo[key] = {}
        local circle = options.margin > 0 and options.circle > 0 and 1 or options.circle
        local widens = g.half_acquisition and options.start == "fbp"
        local function geometry_at(off)
            local column = geometry.column(g, middle + off)
            return {pair = pair, angles = g.angles, cols = cols, circle = circle,
                start = options.start,
                side = iterative.side(options, cols, g, column) + 2 * options.margin,
                wide = widens and iterative.side({}, cols, g, column) or nil,
                beyond = options.beyond or g.half_acquisition and "unknown" or nil}
        end
        for i, off in ipairs(ray_model.deciding(options.model, geometry_at, nearest, farthest,
            rows, counts, context.device, widens or g.half_acquisition and not options.size)) do
            memo[key][i] = geometry.column(g, middle + off <= high and middle + off
                or middle - off)
        end
    end
    return memo[key]
end

-- The sweeps of a step over sinograms of this shape and geometry (volume_sweeps.lua).
local function parts_of(def, options, shape, g)
    local size = iterative.side(options, shape[3], g, options.center)
    local step = {shape_before = shape, geometry_before = g}
    local side = size + 2 * options.margin
    local own = {
        note_cut = function(block, taken)
            note_cut(def, block, options, taken)
        end,
        own = function(values, block)
            return own_options(def, options, values, {geometry = g, held = block.held,
                step = block.step, data = {shape = shape}})
        end,
        packet = function(_, _, device)
            return packet(options, step, device)
        end,
        deciding = function(bounds, _, heights, context)
            return deciding(def.pair, bounds, options, heights, setmetatable({step = step},
                {__index = context}))
        end}
    return volume_sweeps.parts(options, own, {scheme = def.sweeps, geometry = g, count = shape[2],
        size = size, side = side, scale = options.scale or g.pixel_size and 1 / g.pixel_size,
        model = function(taken)
            return solving.model(def.sweeps.name, g.angles, shape[3], taken)
        end})
end

--- Completes the definition of a step: its solver(sinograms, angles, options) becomes a function of
-- blocks. `def.own` are the options of that function; `def.sweeps`: how it goes on between two
-- denoisings (volume_sweeps.lua).
function iterative.step(def)
    local sweeps, pair = def.sweeps, solving.pair("tomo." .. def.name)
    local solver = {name = def.name, own = def.own, solver = def.solver, sweeps = sweeps,
        pair = pair}
    def.own, def.solver, def.sweeps = nil, nil, nil
    def.options = options_of(solver.own, sweeps)
    solver.options = def.options
    def.takes = {quantity = {"line integrals", "phase"}, layout = "frames"}
    def.gives = function(_, kind)
        return {quantity = kind.quantity == "phase" and "phase" or "attenuation",
            layout = "slices"}
    end
    def.cuts = {"rows"}
    def.uses = {"center"}
    def.ways = function()
        return {{options = {}, taken = true, name = def.name, reason = def.name .. " (asked for)",
            method = def.name, mode = "iterative"}}
    end
    def.check = check
    def.deciding = function(...)
        return deciding(pair, ...)
    end
    def.shape = function(options, shape, g)
        local side = iterative.side(options, shape[3], g, options.center)
        return {shape[2], side, side}
    end
    def.geometry = function(_, g)
        return geometry.with(g, {first_x = 1, first_y = 1})
    end
    def.packet = function(options, step, device)
        if volume(options) then
            return options.slab or step.shape_before[2] -- all slices
        end
        return packet(options, step, device)
    end
    if solver.own.dimensions then
        def.needs = function(options, first, last)
            local reach = slabs(options) and options.overlap or 0
            return first - reach, last + reach
        end
    end
    def.parts = sweeps and function(options, shape, g)
        return volume(options) and options.sweep and parts_of(solver, options, shape, g) or nil
    end
    def.run = function(block, options, values)
        local g = block.geometry
        local sinograms <close> = block.data:permute(2, 1, 3)
        local own = own_options(solver, options, values, block)
        note_cut(solver, block, options, own)
        local function made_of(rays)
            return solve(solver, rays, options, own, g)
        end
        block:replace(slabs(options) and run_slabs(block, sinograms, options, own.size, made_of)
            or made_of(sinograms))
        block:note_spoiled()
    end
    return def
end

return iterative
