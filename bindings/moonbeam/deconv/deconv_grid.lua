--- The grid of an iterative deconvolution: its extents, the arrays that every method makes on it,
-- and how an iteration ends. What the methods in moonbeam.deconv share; not for scripts, which have
-- deconv.layout and deconv.transfer.

local mb = require "moonbeam"
local arguments = require "moonbeam.internal.arguments"
local background = require "moonbeam.deconv.background"
local convolution = require "moonbeam.convolution"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local gate = require "moonbeam.deconv.value_gate"
local on_error = require "moonbeam.internal.on_error"
local psf_tools = require "moonbeam.psf"
local top = require "moonbeam.psf.top"

local grid = {}

-- So many steps of Biggs and Andrews are all that they measure.
local MEASURED <const> = 20

--- Options of all deconvolutions.
grid.options = declared.options(convolution.options,
    {"normalize", "boolean", "the PSF is made to sum to 1", default = true})

--- Options of the iterative ones, but for the number of iterations.
grid.iterative = declared.options(grid.options,
    {"otf", "array", "from deconv.transfer, for many images of one shape"},
    {"start", "any", "flat, image or an array", default = "flat"},
    {"weights", "array", "f32, the image's shape, 0 at bad pixels; boundary zero or circular"},
    {"metrics", "boolean", "record the metrics of every iteration"},
    {"on_iteration", "callable", "a function (k, metric or nil, look): return false to stop; "
        .. "look(first, extents), 0-based, returns a block of the estimate, to be released"})

--- Options of those for Poisson noise.
grid.poisson = declared.options(grid.iterative,
    {"eps", "number", "least blurred value to divide by", usual = "1e-6 of the image's mean"},
    {"floor", "number", "voxels whose normalizer is at most this were not seen and become min",
        usual = "1e-3"},
    {"min", "number", "lower bound", default = 0},
    {"background", "number", "counts that lie under the blurred estimate in the image: the model "
        .. "is H x + background, and the light is at most what it leaves", min = 0, default = 0})

local IMAGE = {{"image", "array", "u8, u16 or f32, (z, y, x), (y, x) or (x)"},
    {"psf", "array", "a point spread function of as many axes as the image"}}

--- Declares a deconvolution: its own options stand before the shared ones.
function grid.declared(name, options, f)
    return declared("deconv." .. name, {IMAGE[1], IMAGE[2], options = options}, f)
end

--- The center of a PSF, as psf.center takes it, without its negative values.
-- Errors: argument (psf.center).
function grid.center(what, psf, how)
    local positive <close> = how == "mass" and gate.psf(what, psf) or nil
    return psf_tools.center(positive or psf, how)
end

--- What an iteration takes of a PSF, an array to be closed: no value is negative, and the center
-- lies on a voxel. `how`: the center as psf.center takes it. Returns also the center there, and the
-- part of the PSF's |sum| that was below 0. Errors: argument (value_gate.psf, psf.center).
function grid.spread(what, psf, how)
    local positive <close>, share = gate.psf(what, psf)
    local placed, center = top.placed(positive, psf_tools.center(positive, how))
    return placed, center, share
end

--- The grid of an iteration, before any memory is taken: {grid, first, shape, kernel, center,
-- boundary}. `first` is where the image starts in the grid, 0-based. The center is the nearest
-- voxel, to which grid.spread brings the PSF: a shift by phase would give it negative values, with
-- which these iterations diverge, and the table of the normalizer knows whole positions. Whether it
-- was found from values (psf.center) goes with it, and that it is rounded. `device`: where its
-- transforms will run.
function grid.layout(what, shape, kernel, center, options, device)
    local boundary, whole = options.boundary or "zero", top.voxel(center)
    whole.found, whole.on_voxel = nil, true
    if boundary ~= "zero" then
        local layout = convolution.layout(shape, kernel, whole,
            {boundary = boundary, size = options.size, device = device})
        -- after the extents: the layout of a center that is found would be larger
        layout.center, whole.found, whole.rounded = whole, center.found, true
        return layout
    end
    if #kernel ~= #shape then
        fail("shape", what, "psf", "the PSF has %s, the image %d",
            counted(#kernel, "axis", "axes"), #shape)
    end
    local layout = {grid = {}, before = {}, first = {}, shape = shape, boundary = boundary,
        center = whole}
    for i, n in ipairs(shape) do
        local least = n + kernel[i] - 1
        layout.grid[i] = options.size and options.size[i] or least
        if layout.grid[i] < least then
            fail("argument", what, "size",
                "axis %d: the grid must have at least %d elements, not %d", i, least,
                layout.grid[i])
        end
        layout.before[i], layout.first[i] = 0, 0
    end
    layout.grid = mb.fft.good_grid(layout.grid, {device = device, given = options.size})
    whole.found, whole.rounded = center.found, true
    return layout
end

-- The samples of a grid without the room behind its rows: a dense copy.
local function samples_of(padded, layout)
    local origin = {}
    for i = 1, #layout.grid do
        origin[i] = 0
    end
    local samples <close> = padded:view(convolution.ranges(origin, layout.grid))
    return samples:copy()
end

-- The first estimate on the grid: `start` is "flat" (the mean), "image" or an array.
local function first_estimate(what, image, layout, start, mean)
    if start == "flat" then
        return mb.full(layout.grid, mean, {device = image.device})
    elseif start == "image" or type(start) == "userdata" then
        local from = start == "image" and image or start
        local padded <close> = mb.embed(from, layout.grid, {before = layout.first, boundary =
            layout.boundary == "zero" and "replicate" or layout.boundary})
        return samples_of(padded, layout)
    end
    fail("argument", what, "start", "start is \"flat\", \"image\" or an array of the image's shape")
end

--- The estimate of a layout on its grid, as options of rl_total_variation: where it begins, and its
-- extents. With boundary "zero" that is the image and what the PSF, of extents `kernel`, can see
-- beyond its edges; before the image, it is at the grid's end.
function grid.extent(layout, kernel)
    local start, extent = {}, {}
    for i, n in ipairs(layout.shape) do
        local zero = layout.boundary == "zero"
        start[i] = zero and (layout.center[i] - kernel[i] + 1) % layout.grid[i] or 0
        extent[i] = zero and n + kernel[i] - 1 or layout.grid[i]
    end
    return start, extent
end

-- Sets what lies between the end of an estimate and its beginning, which the image cannot tell of,
-- to the value that it will have: sums over the grid do not depend on its extents.
local function clear_unseen(estimate, layout, kernel, value)
    local start, extent = grid.extent(layout, kernel)
    for i, n in ipairs(layout.grid) do
        local first, ranges = (start[i] + extent[i]) % n, {}
        for j, whole in ipairs(layout.grid) do
            ranges[j] = j == i and {first + 1, first + n - extent[i]} or {1, whole}
        end
        if extent[i] < n then
            local gap <close> = estimate:view(table.unpack(ranges))
            gap:fill(value)
        end
    end
end

-- What the quotients of a Poisson method are divided by, as options of its operators: the sums of
-- the PSF over the window of the image, or H'(weights).
local function divisor(state, psf, options)
    local layout, divide = state.layout, {floor = options.floor}
    if options.weights then
        local padded <close> = mb.embed(options.weights, layout.grid)
        convolution.apply(padded, state.otf, state.n, true)
        divide.normalizer = state:owns(samples_of(padded, layout))
    elseif layout.boundary == "zero" then
        divide.table = state:owns(mb.summed_area(psf,
            {scale = not options.normalize and 1 or 1 / psf_tools.sum(psf)}))
        divide.window, divide.center = layout.shape, layout.center
    end
    return divide
end

local states = {__index = {}}

-- The array, which is released with the others.
function states.__index:owns(array)
    self.own[#self.own + 1] = array
    return array
end

function states:__close(err)
    for i = #self.own, 1, -1 do
        self.own[i]:release()
    end
    if err ~= nil and self.estimate then
        self.estimate:release()
    end
end

--- What an iteration starts from, to be closed: {layout; n, the samples of a row; dry; mean, of the
-- image; zero, whether it is 0 everywhere; measured, the image on the grid where that continues
-- it; otf; estimate, the caller's, unless an error ends the iteration; report}. `poisson`: also
-- eps; divide, options of rl_update and rl_consensus; under, of moonbeam.deconv.background, or nil.
function grid.prepared(what, image, psf, options, poisson)
    arguments.blurred(image, psf, what, options)
    local spread <close>, center, psf_share = grid.spread(what, psf, options.center)
    psf = spread
    local layout = grid.layout(what, image.shape, psf.shape, center, options, image.device)
    local continued = layout.boundary ~= "zero" and layout.boundary ~= "circular"
    if options.weights and continued then
        fail("argument", what, "weights", "weights are for boundary zero or circular")
    end
    if options.weights then
        gate.weights(what, options.weights)
    end
    local mean, share, zero
    if poisson then
        mean, share = gate.image(what, image, convolution.product(layout.grid),
            options.total_variation ~= nil, options.part)
        zero = mean == 0
    else
        mean, zero = gate.gaussian(what, image)
        share = 0
    end
    local state = setmetatable({layout = layout, n = layout.grid[#layout.grid], own = {},
        dry = image.device.dry, mean = mean, zero = zero, measured = image,
        report = {iterations = 0, metrics = {}, clipped = {image = share, psf = psf_share}}},
        states)
    local _ <close> = on_error(function() states.__close(state, true) end)
    if continued then
        local padded <close> = mb.embed(image, layout.grid, {before = layout.before,
            boundary = layout.boundary})
        state.measured = state:owns(samples_of(padded, layout))
    end
    state.otf = options.otf or state:owns(convolution.transfer(psf, layout.grid,
        {center = layout.center, normalize = options.normalize}))
    if poisson then
        state.eps = options.eps or math.max(1e-6 * mean, 1e-36)
        state.divide = divisor(state, psf, options)
        mean = gate.level(mean, options)
        state.under = background.of(state.measured, options, options.start == "flat" and mean
            or nil)
    end
    state.estimate = first_estimate(what, image, layout, options.start, mean)
    if poisson then
        clear_unseen(state.estimate, layout, psf.shape, options.min)
    end
    if poisson and options.start ~= "flat" then
        mb.binary(state.estimate, "max", {scalar = options.min, out = state.estimate})
    end
    return state
end

--- Where total variation bounds the gradient (option flat of rl_total_variation): a little above
-- what keeps its step stable.
function grid.flat(acceleration)
    return acceleration == "none" and 2.1 or 3.3
end

--- How far heavy_ball goes on along the last step after iteration k.
function grid.momentum(k)
    return (k - 1) / (k + 2)
end

--- How far Biggs and Andrews go on along the last step after iteration k: by how much the last
-- gradient has the direction of the one before. `product` and `square`: sums of both, and of that
-- one squared. The longer the step, the more it changes what the next one is measured by, so small
-- differences, such as those of rounding, grow from one iteration to the next. So after MEASURED
-- iterations the step gives way to that of heavy_ball. A background in the model (`options`) pulls
-- the estimate, too, and a step that is measured by that would swing: there it is heavy_ball's.
function grid.along(product, square, k, options)
    if options.background > 0 then
        return grid.momentum(k)
    end
    local length = square > 0 and math.max(0, math.min(1, product / square)) or 0
    if k <= MEASURED then
        return length
    end
    local part = (MEASURED / k) ^ 2
    return grid.momentum(k) * (1 - part) + length * part
end

--- Leaves of a gradient, or a tile of it, what lies in the image: the rest becomes 0, so the sums
-- of the next step (along) are those of the image. Beyond its edges steps are divided by the small
-- part of the PSF that was seen, and what rounding leaves in them is divided by it, too. `first`:
-- where in the image the array begins, 0-based; `shape`: of the image.
function grid.inside(gradient, first, shape)
    local extents = gradient.shape
    for i, n in ipairs(extents) do
        local low = math.max(0, math.min(n, -first[i]))
        local high = math.max(0, math.min(n, shape[i] - first[i]))
        for _, part in ipairs {{1, low}, {high + 1, n}} do
            if part[1] <= part[2] then
                local ranges = {}
                for j, whole in ipairs(extents) do
                    ranges[j] = j == i and part or {1, whole}
                end
                local view <close> = gradient:view(table.unpack(ranges))
                view:fill(0)
            end
        end
    end
end

--- Adds to a metric what an update says of its step, in the elements of `sums` behind the first
-- `skip`: the flux and the relative change.
function grid.add_change(metric, sums, skip)
    local squares = sums:item(skip + 3)
    metric.flux = sums:item(skip + 1)
    metric.change = squares > 0 and math.sqrt(sums:item(skip + 2) / squares) or 0
end

-- What on_iteration looks at the estimate with.
local function looking(state)
    return function(first, extents)
        local from = {}
        for i, at in ipairs(first) do
            from[i] = at + state.layout.first[i]
        end
        return (state.current or state.estimate):view(convolution.ranges(from, extents))
    end
end

--- Reports iteration `k` and its metric, if there is one. Returns whether it is the last one: the
-- caller says so, or the estimate changes too little; `because` of the report says which.
function grid.is_last(state, options, k, metric)
    local report = state.report
    report.iterations, report.metrics[k] = k, metric
    if options.on_iteration and not state.dry
        and options.on_iteration(k, metric, state.look or looking(state)) == false then
        report.because = "on_iteration"
        return true
    end
    if metric and options.tolerance and metric.change < options.tolerance then
        report.because = "tolerance"
        return true
    end
    return false
end

-- The window of the image out of an array on the grid: that array itself where nothing is cut.
-- Takes ownership.
local function cropped(estimate, layout)
    local whole = true
    for i, n in ipairs(layout.grid) do
        whole = whole and layout.shape[i] == n
    end
    if whole then
        return estimate
    end
    local owned <close> = estimate
    local view <close> = owned:view(convolution.ranges(layout.first, layout.shape))
    return view:copy()
end

--- The result of a method and its report. `signed`: its values may be negative. Waits for the
-- device. Errors: argument (it is not finite, or 0 everywhere while the image is not).
function grid.result(what, state, signed)
    local result = cropped(state.estimate, state.layout)
    local _ <close> = on_error(function() result:release() end)
    gate.result(what, result, state.zero, signed)
    return result, state.report
end

return grid
