--- What the iterative methods have in common: options, checks, the start, the objective of every
-- slice, rules that end the work, and the result.

local mb = require "moonbeam"
local activity = require "moonbeam.internal.command_line.activity"
local arguments = require "moonbeam.internal.arguments"
local declared = require "moonbeam.internal.declared"
local direct_start = require "moonbeam.tomo.iterative.direct_start"
local fail = require "moonbeam.internal.fail"
local ray_model = require "moonbeam.tomo.iterative.ray_model"
local vectors = require "moonbeam.tomo.iterative.slice_vectors"

local solving = {}

--- The options of every method.
solving.options = declared.options(
    {"size", "count", "pixels of a side of the slice", min = 1, max = 1 << 20,
        usual = "the columns of the detector"},
    {"margin", "count", "pixels by which the grid is larger than the slice on every side, for "
        .. "objects that are larger than the field of view; they are cut off at the end",
        unit = "px", min = 0, max = 1 << 19, default = 0},
    {"circle", "number", "radius of the circular mask; 0: no mask. With a margin the whole grid "
        .. "has a mask of its own", unit = "half-width", min = 0, max = 10, default = 1},
    declared.from("backproject", "center", "shifts"),
    {"model", "any", "how rays are modeled: \"fourier\", band-limited, or \"pixel\", linear "
        .. "interpolation between two bins; or a table of operators (ray_model.lua)",
        default = "fourier"},
    {"x0", "array", "slices to start from (row, y, x), f32, with the margin; they are not changed",
        rank = {3, 3}, usual = "the value of start everywhere"},
    {"start", "number", "value of all pixels at the start (unless an array x0 is given); or fbp: a "
        .. "direct reconstruction, from which a few iterations do", min = -1e30, max = 1e30,
        words = {"fbp"}, default = 0},
    {"half_acquisition", "boolean", "a whole turn with the axis, center, near an edge of the "
        .. "detector: slices of the whole field of view, which any of its rays has seen"},
    {"tolerance", "number", "a slice is done when its objective changes by less than this part of "
        .. "it between two checks; slices of three-dimensional total variation together", above = 0,
        below = 1},
    {"noise", "number", "standard deviation of the noise of a ray: a slice is done when the root "
        .. "mean square of A x - b is no more (the discrepancy principle); slices of "
        .. "three-dimensional total variation together. With weights: of a ray of weight 1; rays "
        .. "of weight 0 do not count", above = 0},
    {"check", "count", "iterations between two checks of a rule, such as tolerance; each waits for "
        .. "the device", min = 1, max = 10000, usual = "a tenth of the iterations, at most 10"},
    {"history", "boolean", "return the objective of each slice where each iteration begins, as far "
        .. "as the work went"},
    {"callback", "callable", "called after each iteration with its number, the slices as they are "
        .. "and {objective = array}; true ends the work. What it gets is valid during the call"})

--- The option that says what rays see that miss the detector.
solving.beyond = declared.options({"beyond", "choice", "rays that miss the detector, about an axis "
    .. "off its middle or of a mask that is wider: nothing, they are 0, for objects that are in "
    .. "view at every angle, so that A'A is a convolution; or unknown, they are left out, for "
    .. "larger objects (see margin) and half acquisitions, with a projection and a back-projection "
    .. "in each iteration. With weights or model \"pixel\" they are left out",
    choices = {"nothing", "unknown"}, usual = "nothing, if the mask is no wider than the detector "
        .. "and the axis within an eighth of it from the middle"})

--- The option of a preconditioner.
solving.preconditioner = declared.options({"preconditioner", "number", "with a convolution as "
    .. "normal operator: the floor of the preconditioner sqrt(k^2 + floor^2), such as 0.05, with "
    .. "which fewer iterations do; 0: none", unit = "cycles/px", min = 0, max = 1, default = 0})

--- The option that weights rays.
solving.weights = declared.options({"weights", "any", "weight of each ray, 0 to 1: an array "
    .. "(angle, column), or one weight for each slice (row, angle, column), f32; \"poisson\": the "
    .. "transmission exp(-b), at most 1, in inverse proportion to the variance of line integrals "
    .. "of counted photons", usual = "1"})

--- Raises where `array` is not f32 with this shape; `what` names it.
local function check_array(array, shape, op, name)
    if array.dtype ~= "f32" then
        fail("dtype", op, name, "%s are %s; convert them: %s:cast \"f32\"", name, array.dtype, name)
    elseif table.concat(array.shape, " x ") ~= table.concat(shape, " x ") then
        fail("shape", op, name, "%s has the shape %s; it must be %s", name,
            table.concat(array.shape, " x "), table.concat(shape, " x "))
    end
end

-- The smallest and the largest value; in a dry run the ones given. Waits for the device.
local function range_of(array, low, high)
    return mb.bound(low, function() return (array:min()) end),
        mb.bound(high, function() return (array:max()) end)
end

--- Raises where values are not numbers from `low` to `high`. Waits for the device.
function solving.check_range(array, low, high, op, name, remedy)
    local least, most = range_of(array, math.max(low, -1), math.min(high, 0))
    if not (least > -math.huge and most < math.huge) then
        fail("argument", op, name, "%s has values that are not finite (NaN or infinite); replace "
            .. "them before, such as by mb.mend(%s)", name, name)
    elseif not (least >= low and most <= high) then
        fail("argument", op, name, "%s has values from %g to %g; they must be numbers%s%s", name,
            least, most, arguments.range_text {min = low, max = high}, remedy)
    end
end

local function check_weights(weights, rows, model, op)
    if not arguments.is_array(weights) then
        fail("argument", op, "weights", "weights is %s; give an array (angle, column) or (row, "
            .. "angle, column), or \"poisson\"", type(weights) == "string"
            and ("the string '%s'"):format(weights) or "a " .. type(weights))
    end
    local shape = {model.angles, model.cols}
    if weights.rank == 3 then
        table.insert(shape, 1, rows)
    end
    check_array(weights, shape, op, "weights")
    solving.check_range(weights, 0, 1, op, "weights", "; divide them by their largest")
end

-- The roots of the weights, (1 or row, angle, column).
local function root_of(self, weights)
    local root
    if weights == "poisson" then
        root = self:rays()
        mb.binary(self.b, "mul", {scalar = -0.5, out = root})
        mb.unary(root, "exp", {out = root})
        mb.binary(root, "min", {scalar = 1, out = root})
        return root
    end
    check_weights(weights, self.rows, self.model, self.op)
    local view <close> = weights:reshape({-1, self.model.angles, self.model.cols})
    return self:hold(mb.unary(view, "sqrt"))
end

--- The slices nearest to y with little total variation of this weight, in `out`.
function solving.denoise(y, lambda, options, out)
    if lambda > 0 then
        mb.total_variation(y, lambda, {iterations = options.tv_iterations,
            dimensions = options.dimensions, nonnegative = options.nonnegative, out = out})
    elseif options.nonnegative then
        mb.binary(y, "max", {scalar = 0, out = out})
    else
        mb.convert(y, "f32", {out = out})
    end
end

local function check_axis(op, options)
    arguments.number(options.center, op, "center", {})
    if options.shifts ~= nil and not arguments.is_array(options.shifts) then
        arguments.list(options.shifts, op, "shifts", "of the axis, one per projection")
    end
    if options.half_acquisition and not options.center then
        fail("argument", op, "center", "half_acquisition needs center, the column of the rotation "
            .. "axis")
    elseif options.half_acquisition and options.beyond == "nothing" then
        fail("argument", op, "beyond", "beyond is nothing, but in a half acquisition the object is "
            .. "never in view as a whole; leave it out, or join the frames first (stitch_turn)")
    end
end

-- The pixels of a side of the slices, without the margin.
local function size_of(options, cols)
    return options.size or options.half_acquisition and mb.op.estimate("half_acquisition_weight",
        {{"f32", cols}}, {center = options.center, extend = true}).results[1].shape[1] or cols
end

-- Methods that use the projector and its transpose alone, never a convolution, and all angles at a
-- time. (SART of a few angles at a time ends worse with short rows.)
local PAIR <const> = {["tomo.sirt"] = true}

--- Is the method `op` such a one?
function solving.pair(op)
    return PAIR[op]
end

-- The geometry of a model (ray_model.lua) for the options of a method.
local function geometry_of(op, angles, cols, options)
    return {pair = solving.pair(op), angles = angles, cols = cols,
        side = size_of(options, cols) + 2 * options.margin,
        center = options.center, shifts = options.shifts,
        circle = options.margin > 0 and options.circle > 0 and 1 or options.circle,
        half_acquisition = options.half_acquisition,
        beyond = options.beyond or options.half_acquisition and "unknown" or nil}
end

--- The model of the rays of a call with these options.
function solving.model(op, angles, cols, options)
    return ray_model.of(options.model, geometry_of(op, angles, cols, options), op)
end

local state = {}
state.__index = state

--- The state of a call: {model, rows, x (the slices, on the whole grid), device}, to be closed. It
-- has arrays by `volume`, `rays`, `numbers` and `ones`, which it releases.
function solving.begin(op, sinograms, angles, options)
    arguments.angles(angles, op, "angles", sinograms.shape[2])
    local rows, cols = sinograms.shape[1], sinograms.shape[3]
    check_array(sinograms, {rows, #angles, cols}, op, "sinograms")
    check_axis(op, options)
    local size = size_of(options, cols)
    local geometry = geometry_of(op, angles, cols, options)
    local side, circle = geometry.side, geometry.circle
    local model = ray_model.of(options.model, geometry, op)
    if options.x0 then
        check_array(options.x0, {rows, side, side}, op, "x0")
    end
    local self = setmetatable({op = op, options = options, model = model, rows = rows, side = side,
        size = size, b = sinograms, device = sinograms.device, held = {}, done = {}, left = rows,
        check = options.check or math.max(1, math.min(10, options.iterations // 10)),
        rules = options.tolerance or options.noise or options.discrepancy,
        together = options.dimensions == 3 and options.lambda > 0,
        radius = side / 2 * (circle > 0 and circle or math.sqrt(2))}, state)
    self.where = {device = self.device}
    local _ <close> = setmetatable({}, {__close = function(_, problem)
        if problem then
            self:close()
        end
    end})
    self.x = self:volume(true)
    if options.x0 then
        mb.convert(options.x0, "f32", {out = self.x})
    elseif options.start == "fbp" then
        direct_start.make(sinograms, geometry, ray_model.period(geometry), self.x)
    elseif options.start ~= 0 then
        mb.fill(self.x, options.start)
    end
    if circle > 0 and (options.x0 or options.start ~= 0) then
        mb.circular_mask(self.x, {radius = circle, out = self.x})
    end
    self.result = self.rules and self:volume(true)
    self.history = options.history and self:hold(mb.zeros({options.iterations, rows},
        {dtype = "f64", device = self.device}))
    self.measures = self.rules or options.history or options.callback
    self.root = options.weights and root_of(self, options.weights)
    if self.root and options.noise then
        self:count_rays(self.root)
    end
    return self
end

--- Declares a method: work(job, options) makes of job.x the slices. `data` says what sinograms are.
function solving.method(op, options, work, data)
    return declared(op, {
        {"sinograms", "array", (data or "line integrals") .. " (row, angle, column)",
            rank = {3, 3}},
        {"angles", "list", "one per angle", unit = "rad"},
        options = options,
    }, function(sinograms, angles, own)
        local job <close> = solving.begin(op, sinograms, angles, own)
        work(job, own)
        return job:finish()
    end)
end

--- Notes how many rays of each slice count for a rule: those that are above 0 in an array that is
-- not negative, (1 or row, angle, column). Waits for the device.
function state:count_rays(rays)
    local some <close> = mb.empty(rays.shape, self.where)
    local counts <close> = vectors.numbers(rays.shape[1], self.device)
    vectors.indicate(rays, some)
    vectors.sum(some, counts)
    local list = mb.bound({}, function() return counts:to_table() end)
    self.counts = {}
    for z = 1, self.rows do
        self.counts[z] = list[#list > 1 and z or 1]
    end
end

--- Keeps an array until the state is closed.
function state:hold(array)
    self.held[#self.held + 1] = array
    return array
end

--- Slices of the whole grid, zero if wanted.
function state:volume(zero)
    return self:hold((zero and mb.zeros or mb.empty)({self.rows, self.side, self.side}, self.where))
end

--- Sinograms like those given.
function state:rays()
    return self:hold(mb.empty(self.b.shape, self.where))
end

--- One f64 number per slice.
function state:numbers()
    return self:hold(vectors.numbers(self.rows, self.device))
end

--- Ones, a number per slice: the factor of vectors.add where all slices have the same.
function state:ones()
    self.one = self.one or self:hold(mb.ones({self.rows}, {dtype = "f64", device = self.device}))
    return self.one
end

--- Whether the model has a normal operator that serves: no rays are weighted.
function state:convolves()
    return not self.root and (self.model.normal or self.model.kernel) ~= nil
end

--- The spectrum of the preconditioner for mb.normal_operator, or nil. Raises where the normal
-- operator is no convolution.
function state:ramp()
    local floor = self.options.preconditioner
    if floor == 0 then
        return nil
    elseif not (self:convolves() and self.model.kernel) then
        fail("argument", self.op, "preconditioner", "preconditioner is %g, which needs a "
            .. "convolution as normal operator: no weights, the option model = \"fourier\", and "
            .. "the option beyond = \"nothing\" or a circle that the detector sees at every angle; "
            .. "leave it out", floor)
    end
    return self:hold(mb.ramp_preconditioner({self.side, self.side}, {floor = floor,
        device = self.device}))
end

--- The function(x, out) that makes out = A' A x + added x.
function state:normal(added)
    if not self.model.kernel then
        return self.model.normal
    end
    local kernel = self:hold(self.model.kernel(self.device, added))
    return function(x, out)
        mb.normal_operator(x, kernel, {circle = self.model.circle, out = out})
    end
end

--- rays = A x - b, of all angles or of a part (subsets.lua).
function state:residual(x, rays, part)
    part = part or self
    part.model.forward(x, rays)
    mb.binary(rays, "sub", {b = part.b, out = rays})
end

--- out = rays times the roots of the weights, if there are any.
function state:rooted(rays, out, part)
    local root = (part or self).root
    if root then
        mb.binary(rays, "mul", {b = root, out = out})
    end
end

--- Multiplies the residual by the weights; out = half of its weighted square, if somebody wants to
-- know it. Returns whether somebody does.
function state:misfit(rays, out, part)
    self:rooted(rays, rays, part)
    if self.measures then
        vectors.square(rays, out)
        mb.binary(out, "mul", {scalar = 0.5, out = out})
    end
    self:rooted(rays, rays, part)
    return self.measures
end

--- out = misfit + tikhonov |x|^2 / 2, x being the slices unless it is given.
function state:penalized(misfit, tikhonov, out, x)
    if tikhonov == 0 then
        mb.convert(misfit, "f64", {out = out})
        return
    end
    vectors.square(x or self.x, out)
    mb.binary(out, "mul", {scalar = tikhonov / 2, out = out})
    mb.binary(out, "add", {b = misfit, out = out})
end

-- Copies slice z as it is to the result.
local function keep(self, z)
    local from <close> = self.x:view({z, z})
    local to <close> = self.result:view({z, z})
    mb.convert(from, "f32", {out = to})
    self.done[z], self.left = true, self.left - 1
end

local function on_host(numbers)
    return mb.bound(false, function() return numbers:to_table() end)
end

-- Numbers of slices that depend on each other: each gets the mean, so that all end together.
local function levelled(self, values)
    if not self.together or not values then
        return values
    end
    local sum = 0
    for _, value in ipairs(values) do
        sum = sum + value
    end
    for z in ipairs(values) do
        values[z] = sum / self.rows
    end
    return values
end

-- The misfits with which slices are done, or nil.
local function enough(self)
    local options, list = self.options, {}
    local of_a_ray = options.noise and options.noise ^ 2 or options.discrepancy
    for z = 1, of_a_ray and self.rows or 0 do
        list[z] = of_a_ray / 2 * (self.counts and self.counts[z]
            or self.model.angles * self.model.cols)
    end
    return of_a_ray and levelled(self, list)
end

-- Looks at the objectives and misfits and keeps what is done.
local function check(self, objective, misfit)
    local options, before, goals = self.options, self.before, enough(self)
    local misfits = goals and levelled(self, on_host(misfit))
    local values = options.tolerance and levelled(self, on_host(objective))
    for z = 1, self.rows do
        if not self.done[z] and (misfits and misfits[z] <= goals[z] or values and before
            and math.abs(before[z] - values[z]) <= options.tolerance * math.abs(before[z])) then
            keep(self, z)
        end
    end
    self.before = values
end

-- Whether somebody wants to know the objective where iteration k begins.
local function wanted(self, k)
    return self.history or self.options.callback
        or self.rules and k > 1 and (k - 1) % self.check == 0
end

--- Iteration k begins at x, whose objectives are `objective`, with |A x - b|^2 / 2 = `misfit`
-- (default: the objective): notes them and applies the rules. Returns whether all slices are done.
function state:seen(k, objective, misfit)
    self.objective = objective
    if self.history then
        local line <close> = self.history:view(k)
        mb.convert(objective, "f64", {out = line})
        self.seen_until = k
    end
    if self.rules and k > 1 and (k - 1) % self.check == 0 then
        check(self, objective, misfit or objective)
    end
    return self.left == 0
end

--- out[z] = the total variation of slice z: the sum of the lengths of its gradients, by forward
-- differences, 0 across the edges. In three dimensions a slice has the differences to the next one.
-- `sums` and `room` are volumes to use.
function solving.variation(x, dimensions, sums, room, out)
    local all = {mb.all, mb.all, mb.all}
    mb.fill(sums, 0)
    for axis = 4 - dimensions, 3 do
        local count, low, high = x.shape[axis], {table.unpack(all)}, {table.unpack(all)}
        if count > 1 then
            low[axis], high[axis] = {1, count - 1}, {2, count}
            local near <close> = x:view(table.unpack(low))
            local far <close> = x:view(table.unpack(high))
            local step <close> = room:view(table.unpack(low))
            local sum <close> = sums:view(table.unpack(low))
            mb.binary(far, "sub", {b = near, out = step})
            mb.binary(step, "mul", {b = step, out = step})
            mb.binary(sum, "add", {b = step, out = sum})
        end
    end
    mb.unary(sums, "sqrt", {out = sums})
    mb.unary(sums, "sqrt", {out = sums}) -- once more, as what follows squares before it sums
    vectors.square(sums, out)
end

--- For methods with total variation: a function(k, x, work) that tells `seen` the objective of x,
-- where iteration k begins, if somebody wants to know it: the misfit of x itself, by one more
-- gradient, with all penalties. It returns whether all slices are done; `work` is a volume to use.
-- Other gradients of `slope` are not measured.
function state:measuring(slope)
    if not self.measures then
        return function() return false end
    end
    local options, objective, variation = self.options, self:numbers(), self:numbers()
    local room = options.lambda > 0 and self:volume()
    self.measures = false
    return function(k, x, work)
        if not wanted(self, k) then
            return false
        end
        self.measures = true
        slope.at(x, work)
        self.measures = false
        self:penalized(slope.misfit, options.tikhonov or 0, objective, x)
        if room then
            solving.variation(x, options.dimensions, work, room, variation)
            mb.binary(variation, "mul", {scalar = options.lambda, out = variation})
            mb.binary(objective, "add", {b = variation, out = objective})
        end
        return self:seen(k, objective, slope.misfit)
    end
end

--- An iterator over the numbers of the iterations: for k in job:steps(). After each it calls the
-- callback, which may end the work.
function state:steps()
    local options, k = self.options, 0
    return function()
        if k > 0 then
            self.iterations = k
            local callback = options.callback
            if callback and callback(k, self.x, {objective = self.objective}) == true then
                return nil
            end
        end
        activity.at("iteration", k, options.iterations)
        k = k + 1
        return k <= options.iterations and k or nil
    end
end

--- The middle of the grid, so many pixels wide, with the mask (0: none): a new array.
function solving.cropped(whole, size, circle)
    local made = mb.crop(whole, {shape = {whole.shape[1], size, size}, where = "center"})
    if circle > 0 then
        mb.circular_mask(made, {radius = circle, out = made})
    end
    return made
end

--- The result: the slices, and {iterations, done (how many slices a rule ended), history}. The
-- caller owns them.
function state:finish()
    if self.rules then
        for z = 1, self.rows do
            if not self.done[z] then
                keep(self, z)
                self.left = self.left + 1
            end
        end
    end
    local made, history = self.result or self.x, self.history
    local seen = self.seen_until or 0
    if history and seen > 0 and seen < self.options.iterations then
        history = history:view({1, seen}) -- the other lines are not known
    end
    for i = #self.held, 1, -1 do
        if self.held[i] == made and self.options.margin == 0 or self.held[i] == history then
            table.remove(self.held, i)
        end
    end
    local facts = {iterations = self.iterations or 0, done = self.rows - self.left,
        history = history}
    if self.options.margin > 0 then
        made = solving.cropped(made, self.size, self.options.circle)
    end
    self:close()
    return made, facts
end

function state:close()
    for i = #self.held, 1, -1 do
        self.held[i]:release()
        self.held[i] = nil
    end
end
state.__close = state.close

return solving
