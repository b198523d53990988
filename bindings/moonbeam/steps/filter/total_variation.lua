local mb = require "moonbeam"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"

-- The parameters of the operator.
local function parameters(options)
    return {iterations = options.iterations, dimensions = options.dimensions,
        method = options.method, tau = options.tau, sigma = options.sigma, step = options.step,
        epsilon = options.epsilon, nonnegative = options.nonnegative}
end

-- Slabs, each by itself with the slices beside it. A slab whose neighbors are not in the block is
-- not needed: the engine asks for those of the slabs that it wants.
local function run_slabs(block, options)
    local low, high = block.rows[1], block.rows[2]
    local count, slab <const> = block.step.shape_before[1], options.slab
    local result = block.data:copy()
    for first = (low - 1) // slab * slab + 1, high, slab do
        local last = math.min(first + slab - 1, count)
        local from, to = math.max(first - options.overlap, 1), math.min(last + options.overlap,
            count)
        if from >= low and to <= high then
            local near <close> = block.data:view({from - low + 1, to - low + 1})
            local smooth <close> = mb.total_variation(near, options.lambda, parameters(options))
            local made <close> = smooth:view({first - from + 1, last - from + 1})
            local place <close> = result:view({first - low + 1, last - low + 1})
            mb.convert(made, "f32", {out = place})
        end
    end
    block:replace(result)
end

local function slabs(options)
    return options.dimensions == 3 and options.slab
end

local function check(options, _, _, kind)
    if options.dimensions == 3 and kind.layout == "frames" then
        fail("argument", nil, "dimensions", "dimensions is 3, but frames are no volume; give "
            .. "dimensions = 2, or put the step behind the one that makes slices")
    end
    for _, name in ipairs {"slab", "sweep"} do
        if options[name] and options.dimensions ~= 3 then
            fail("argument", nil, name, "%s is for dimensions = 3; slices by themselves need no "
                .. "others: remove it", name)
        end
    end
    if options.sweep and options.slab then
        fail("argument", nil, "sweep", "sweep and slab are both given; sweep is exact, slab is "
            .. "not: remove one of the two")
    elseif options.sweep and options.method == "rof" then
        fail("argument", nil, "sweep", "sweep is for method primal_dual, not for rof; remove it, "
            .. "or give slab")
    end
end

-- ---- sweeps ----

-- The sweep before leaves blocks with five times the rows of a slice, the slice and its state; the
-- first one gets slices, and the last one leaves slices.
local function run_sweep(block, options, sweep)
    local rows = sweep.rows
    if sweep.first then
        local made = mb.empty({block.data.shape[1], 5 * rows, block.data.shape[3]},
            {device = block.device})
        local slices <close> = made:view(mb.all, {1, rows}, mb.all)
        mb.convert(block.data, "f32", {out = slices})
        block:replace(made)
    end
    local slices <close> = block.data:view(mb.all, {1, rows}, mb.all)
    local state <close> = block.data:view(mb.all, {rows + 1, 5 * rows}, mb.all)
    mb.total_variation_sweep(slices, options.lambda, {state = not sweep.first and state or nil,
        steps = sweep.steps, tau = options.tau, sigma = options.sigma,
        nonnegative = options.nonnegative, out = state})
    if sweep.last then
        local image <close> = state:view(mb.all, {1, rows}, mb.all)
        block:replace(image:copy())
    end
end

-- The sweeps over slices of this shape. The data as the first image are a step more.
local function sweeps(options, shape)
    local left, parts = options.iterations + 1, {}
    if options.dimensions ~= 3 or not options.sweep or options.lambda == 0 or shape[1] == 1
        or left <= options.sweep then
        return nil
    end
    while left > 0 do
        local sweep = {rows = shape[2], first = #parts == 0, last = left <= options.sweep,
            steps = math.min(left, options.sweep)}
        left = left - sweep.steps
        parts[#parts + 1] = {
            check = sweep.first and check or false,
            shape = function()
                return {shape[1], (sweep.last and 1 or 5) * shape[2], shape[3]}
            end,
            needs = function(_, first, last)
                return first - sweep.steps, last + sweep.steps
            end,
            run = function(block, own)
                run_sweep(block, own, sweep)
            end}
    end
    return parts
end

return {
    name = "total_variation",
    summary = "Removes noise from frames or slices and keeps their edges.",
    doc = "Total-variation denoising, of each frame or slice by itself or of the slices as a "
        .. "volume: see mb.total_variation. lambda is in units of the data. In three dimensions a "
        .. "slice depends on as many slices on both sides as there are iterations, and a block "
        .. "takes them: the result is exact. Where these are too many, sweep = 12 goes over all "
        .. "slices again and again, 12 iterations each time: a block takes 12 slices on both "
        .. "sides, and the result is the same, to the bit (on CUDA if sweep is a multiple of "
        .. "three). Between two sweeps the slices and their state are in a store of five times "
        .. "the slices, and while a sweep runs in two of them. Without a store, slab = 64 makes "
        .. "the result from slabs of 64 slices with overlap slices beside them, which is not "
        .. "exact: it differs near the borders of slabs, and is the same for blocks of any size. "
        .. "With an overlap of 16 "
        .. "the largest difference was 1e-7 of the range of values with lambda 0.4 times the "
        .. "standard deviation of the noise, 2e-3 with 2 times and 2e-2 with 4 times. Values that "
        .. "are not finite spread by one element an iteration.",
    reference = "mb.total_variation",
    -- ToMoBAR's steps are in units of lambda, with 8 for the norm in any number of dimensions. The
    -- weight of scikit-image is lambda: its iterations are others, their limit is the same.
    presets = {
        httomo = {lambda = 1e-5, iterations = 1000, method = "primal_dual", tau = 0.1,
            sigma = 1.25},
        httomo_rof = {lambda = 1e-5, iterations = 3000, method = "rof", step = 1e-3,
            epsilon = 1e-8},
        ["scikit-image"] = {lambda = 0.1, iterations = 200, method = "primal_dual"},
    },
    options = declared.options(
        {"lambda", "number", "weight of the total variation, in units of the data; 0 changes "
            .. "nothing", min = 0, max = 1e30, required = true},
        declared.from("total_variation"),
        {"sweep", "count", "3 dimensions: iterations of a sweep over all slices, and slices that "
            .. "a block takes on both sides; exact. Default: one sweep", min = 1, max = 1000000},
        {"slab", "count", "3 dimensions: slices that are made together, an approximation; default "
            .. "all, exact", min = 1, max = 1000000},
        {"overlap", "count", "slices on both sides of a slab that it takes into account",
            min = 0, max = 1000000, default = 16}),
    takes = {quantity = {"transmission", "line integrals", "phase", "attenuation", "intensity",
        "weights"}, layout = {"frames", "slices"}},
    cuts = function(_, step)
        return {step.kind_before.layout == "frames" and "frames" or "rows"}
    end,
    check = check,
    parts = sweeps,
    packet = function(options)
        return slabs(options) or 1
    end,
    needs = function(options, first, last)
        if slabs(options) then
            return first - options.overlap, last + options.overlap
        end
        local reach = options.dimensions == 3 and options.iterations or 0
        return first - reach, last + reach
    end,
    run = function(block, options)
        if slabs(options) then
            run_slabs(block, options)
        else
            local own = parameters(options)
            own.out = block.data
            mb.total_variation(block.data, options.lambda, own)
        end
    end,
}
