--- After how many iterations Richardson-Lucy should end: half of the photons is held out, and the
-- iterations on the other half go on until they predict the held-out ones worse. Noise in the two
-- halves is independent, so what is gained after that is noise.
--
-- All photons bear more iterations than half of them. Which factor is best depends on the object:
-- in simulations the error after a blur of one pixel was least at 1 to 1.2 times the number for
-- smooth bodies, at 2 times for points and threads. 1.5 is between them, where both lose about 3 %.
-- Two less than that keep bodies of few photons, whose error grows fast beyond 7 iterations.
--
-- Large images are judged by a box of at most 2^22 voxels where the most light is. The box depends
-- on the image alone, never on the budget or the device.

local activity = require "moonbeam.internal.command_line.activity"
local mb = require "moonbeam"
local convolution = require "moonbeam.convolution"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local fail = require "moonbeam.internal.fail"
local finite = require "moonbeam.internal.finite"
local on_error = require "moonbeam.internal.on_error"
local photon_noise = require "moonbeam.deconv.photon_noise"
local volumes = require "moonbeam.volumes"

local held_out = {}

local WHAT <const> = "deconv.find_iterations"
local PART <const> = 1 / 2
local MORE <const>, LESS <const> = 1.5, 2 -- iterations for all photons from those for half
-- From a flat start fewer iterations are a second blur.
local LEAST <const> = 5
-- The search looks for the first time after so many iterations: fewer are LEAST all the same.
local BEGIN <const> = math.tointeger((LEAST + LESS) // MORE)
-- An estimate that fits its half better than this part of what noise alone leaves has fitted noise,
-- whatever the other half says: a PSF that is not the right one lets iterations go on for long.
local FITS <const> = 0.75
local LEAST_PHOTONS <const>, MOST_PHOTONS <const> = 1000, 1 << 24
local MOST_VOXELS <const> = 1 << 22
local FALLBACK <const> = 10
-- Seeds are far from those that people give to mb.poisson, which has the same generator: dealt with
-- the seed of its noise, a simulated image would not fall into independent parts.
local SEEDS <const> = 7919 << 36

-- ---- in an iteration ----

local looks = {}
looks.__index = looks

-- The I-divergence of an image from the blurred estimate, and the sum of the latter.
function looks:misfit(work, image)
    mb.convert(work, "f32", {out = self.copy})
    local _, misfit = mb.rl_ratio(self.copy, image, {weights = self.weights, eps = self.eps,
        metrics = true, background = self.background})
    local sums <close> = misfit
    if not self.dry then
        return sums:item(1), sums:item(2)
    end
end

-- The I-divergence of the held-out photons from the blurred estimate of the others: D(y, s b) from
-- D(y, b).
function looks:look(work)
    local divergence, blurred = self:misfit(work, self.held)
    return divergence and divergence - math.log(self.scale) * self.sum
        + (self.scale - 1) * blurred
end

--- Looks at the blurred estimate after so many iterations: at the held-out photons, which goes into
-- `divergence`, or as `judge` asks. Returns whether `judge` ends the iterations.
function looks:ends(work, done)
    if not self.judge or self.dry then
        self.divergence = self:look(work)
        return false
    end
    return self.judge(done, function(of)
        return of == "image" and self:misfit(work, self.measured) or self:look(work)
    end) == false
end

function looks:__close()
    self.copy:release()
end

--- What an iteration holds out; nil without the option held_out. To be closed.
function held_out.new(state, options)
    local held = options.held_out
    if not held and options.judge then
        fail("argument", "deconv.richardson_lucy", "judge",
            "judge is for held_out, which is missing")
    elseif not held then
        return nil
    elseif table.concat(held.shape, " ") ~= table.concat(state.layout.shape, " ") then
        fail("shape", "deconv.richardson_lucy", "held_out", "held_out is %s, the image %s",
            table.concat(held.shape, " x "), table.concat(state.layout.shape, " x "))
    end
    local layout = state.layout
    if layout.boundary ~= "zero" and layout.boundary ~= "circular" then
        fail("argument", "deconv.richardson_lucy", "held_out",
            "held_out is for boundary zero or circular, not \"%s\"", layout.boundary)
    end
    local array <close> = mb.reduce(held, "positive")
    local sum = state.dry and 1 or array:item()
    return setmetatable({held = held, copy = mb.embed(state.estimate, layout.grid), sum = sum,
        weights = options.weights, eps = state.eps, measured = state.measured,
        judge = options.judge,
        background = options.background, dry = state.dry,
        scale = state.dry and 1 or sum / (state.mean * held.elements)}, looks)
end

-- ---- the search ----

-- The extents of the box that is judged: the longest axis is halved until the box is small enough.
local function extents_of(shape, most)
    local extents = table.move(shape, 1, #shape, 1, {})
    while convolution.product(extents) > most do
        local longest = 1
        for i, n in ipairs(extents) do
            longest = n > extents[longest] and i or longest
        end
        extents[longest] = (extents[longest] + 1) // 2
    end
    return extents
end

-- The tiles of the noise that begin in a box.
local function inside(samples, first, extents)
    local list, rank = {}, #extents
    for _, tile in ipairs(samples) do
        local within = true
        for i = 1, rank do
            local at = tile[i + 6 - rank]
            within = within and at >= first[i] and at < first[i] + extents[i]
        end
        list[#list + 1] = within and tile or nil
    end
    return list
end

-- Where the box begins, 0-based: at the begin, the middle or the end of each axis, where the tiles
-- of the noise have the most light.
local function place_of(shape, extents, samples)
    local rank, best, most = #shape, nil, -math.huge
    local function try(first)
        local sum = 0
        for _, tile in ipairs(inside(samples, first, extents)) do
            sum = sum + tile[1] + tile[2]
        end
        if sum > most then
            best, most = table.move(first, 1, rank, 1, {}), sum
        end
    end
    local function along(axis, first)
        if axis > rank then
            return try(first)
        end
        local room = shape[axis] - extents[axis]
        for _, at in ipairs(room > 0 and {room // 2, 0, room} or {0}) do
            first[axis] = at
            along(axis + 1, first)
        end
    end
    along(1, {})
    return best
end

-- The photons of an image as whole numbers: a fraction is rounded up as often as it says, because
-- parts that share it would share its noise.
local function photons_of(image, gain, offset, seed)
    local photons = image:cast("f32")
    local _ <close> = on_error(function() photons:release() end)
    mb.binary(photons, "sub", {scalar = offset, out = photons})
    mb.binary(photons, "max", {scalar = 0, out = photons})
    mb.binary(photons, "div", {scalar = gain, out = photons})
    local turn <close> = mb.random(image.shape, {device = image.device, seed = seed, low = -0.5,
        high = 0.5})
    mb.binary(photons, "add", {b = turn, out = photons})
    local whole <close> = photons:cast("i32")
    return mb.convert(whole, "f32", {out = photons})
end

-- Photons as counts of an image with a part of its photons.
local function counts_of(photons, gain, offset)
    mb.binary(photons, "mul", {scalar = gain, out = photons})
    return mb.binary(photons, "add", {scalar = offset, out = photons})
end

-- Half of the photons of an image, in the image's unit: an array of its own.
local function dealt(image, gain, offset, seed)
    local shape, whole, origin = image.shape, {}, {}
    for i, n in ipairs(shape) do
        whole[i], origin[i] = i == #shape and 2 * (n // 2 + 1) or n, 0
    end
    local photons = photons_of(image, gain, offset, SEEDS + 4 * seed)
    local _ <close> = on_error(function() photons:release() end)
    local first <close> = mb.full(whole, 2, {device = image.device})
    local second <close> = mb.zeros(whole, {device = image.device})
    -- Over a blurred image of 2 the ratios are the halves themselves.
    local _, _, misfit = mb.rl_split_ratio(first, second, photons, {seed = SEEDS + 4 * seed + 1})
    misfit:release()
    local half <close> = second:view(convolution.ranges(origin, shape))
    mb.convert(half, "f32", {out = photons})
    return counts_of(photons, gain, offset * PART)
end

-- The number for all photons from that for the others.
local function chosen(number)
    return math.max(LEAST, math.ceil(MORE * number) - LESS)
end

-- A function that tells of an iteration of at most so many.
local function teller(options, most)
    return function(what, k)
        activity.at(what, math.min(k, most), most)
        if options.on_iteration then
            options.on_iteration(k)
        end
    end
end

-- A function (done, misfit) that tells whether the estimate fits its own photons better than
-- `least`. The misfit falls, ever more slowly: it is not looked at before the line through the last
-- two looks is that low, and after twice as many iterations at the latest.
local function fitting(least)
    local due, before, last = BEGIN, nil, nil
    return function(done, misfit)
        if least == -math.huge or done < due then
            return false
        end
        local now = misfit "image"
        local slope = last and (last - now) / (done - before) or 0
        local room = slope > 0 and math.ceil(math.min((now - least) / slope, done)) or 1
        due, before, last = done + math.max(1, room), done, now
        return now < least
    end
end

-- The rule: the number of iterations after which the held-out photons were predicted best, but none
-- after the estimate fits the other photons better than `least`. The search goes on, which is
-- returned, until it has made as many iterations as it would choose, or `last`.
local function rule(report, least, tell, last)
    local best, fits = math.huge, fitting(least)
    return function(done, misfit)
        report.tried = done
        tell("held-out photons, iteration", done)
        if done < BEGIN then
            return true
        end
        local held = misfit()
        report.curve[#report.curve + 1] = {iterations = done, held_out = held}
        if held < best then
            best, report.iterations = held, done
        end
        if fits(done, misfit) then
            report.because = "noise"
            return false
        end
        return done < math.min(last, chosen(report.iterations))
    end
end

-- Why no search is made, or nil.
local function refusal(found, mean, count)
    if found and not found.reliable then
        return found.why
    elseif mean * count < LEAST_PHOTONS then
        return ("%.3g photons are too few"):format(mean * count)
    end
end

local function camera_of(found, options)
    if options.gain then
        return options.gain, options.offset or 0
    elseif found.gain then
        return found.gain, options.offset or found.offset
    end
    return 1, options.offset or 0
end

-- How many iterations a search makes at most that chooses no more than `most`.
local function tries_for(most)
    return math.min(most, math.ceil((most + LESS) / MORE) + 1)
end

--- What a search is about that chooses at most so many iterations for a volume of this shape: the
-- extents of the box that is judged, and the iterations at most.
function held_out.extent(shape, most)
    return extents_of(shape, MOST_VOXELS), tries_for(most)
end

-- The I-divergence that noise alone leaves in the judged box of what is not held out; nil if it is
-- not known. `tiles`: those of the box.
local function noise_alone(report, tiles)
    local samples = {}
    for i, tile in ipairs(tiles) do
        samples[i] = {(1 - PART) * tile[1], (1 - PART) * tile[2]}
    end
    return photon_noise.divergence({gain = report.gain, offset = (1 - PART) * report.offset,
        samples = samples})
end

-- The iterations after which held-out photons are predicted best: fills the report.
local function predicting(rl, image, psf, options, report, tiles)
    local dry, gain, offset = image.device.dry, report.gain, report.offset
    local part <close> = dealt(image, gain, offset, options.seed)
    local rest <close> = image:cast("f32")
    mb.binary(rest, "sub", {b = part, out = rest})
    local settings = declared.part(declared.of(rl).options, options)
    local alone = not dry and not options.weights and noise_alone(report, tiles)
    settings.held_out, settings.metrics, settings.on_iteration = part, nil, nil
    settings.background = options.background and options.background * (1 - PART)
    -- What is 0 everywhere is judged once, which takes what the plan says.
    local zero, most = report.because == "zero", tries_for(options.iterations)
    settings.judge = zero and function(_, misfit) return misfit() and true end
        or rule(report, alone and FITS * alone * image.elements or -math.huge,
            teller(options, most - 1), most - 1)
    settings.iterations = (dry or zero) and math.min(2, options.iterations) or most
    rl(rest, psf, settings):release()
    report.iterations = zero and 1 or math.min(options.iterations, chosen(report.iterations))
    report.limited = not report.because and report.iterations == options.iterations
    report.because = report.because or not report.limited and "held_out" or nil
end

local function search(rl, image, psf, options, report, tiles)
    local gain, offset = camera_of(report.noise, options)
    local dry = image.device.dry
    local average <close> = mb.reduce(image, "mean")
    local greatest <close> = mb.reduce(image, "max")
    if not dry then
        finite.check_sum(average:item(), image, WHAT, "the image")
    end
    local mean = dry and 1 or (average:item() - offset) / gain
    local why = not (dry or report.because) and refusal(report.noise, mean, image.elements)
    if why then
        report.reliable, report.why, report.iterations = false, why, math.min(FALLBACK,
            options.iterations)
        return
    end
    -- Of so many photons a voxel has no noise that matters, and more cannot be dealt.
    gain = dry and gain or math.max(gain, (greatest:item() - offset) / MOST_PHOTONS)
    report.held_out, report.gain, report.offset = PART, gain, offset
    predicting(rl, image, psf, options, report, tiles)
end

--- The options of the search for a declared Richardson-Lucy.
function held_out.options(rl)
    return declared.options(
        {"iterations", "count", "how many at most", min = 1, default = 200},
        {"gain", "number", "counts per photon of the image as it is given", above = 0,
            usual = "estimated"},
        {"offset", "number", "counts without light in the image as it is given",
            usual = "estimated; 0 with gain"},
        {"seed", "count", "how the photons are dealt out", min = 0, max = 1 << 32, default = 0},
        {"on_iteration", "callable", "a function (k), after each iteration of the search"},
        declared.without(declared.of(rl).options, "iterations", "held_out", "judge", "on_iteration",
            "metrics", "otf", "start", "tolerance"))
end

-- Is an array 0 everywhere?
local function zero(array)
    local least <close> = mb.reduce(array, "min")
    local greatest <close> = mb.reduce(array, "max")
    return least:item() == 0 and greatest:item() == 0
end

-- Is a volume 0 everywhere? `block`: a box of it; `samples`: of its noise. Where these are 0, boxes
-- of the same extents are read one after another, unless `block` is the whole.
local function is_zero(volume, block, samples)
    if block.device.dry or not photon_noise.may_be_zero(samples) or not zero(block) then
        return false
    end
    local shape, extents, first, size = volume.shape, block.shape, {}, {}
    local function zero_from(axis)
        if axis > #shape then
            local part <close> = volumes.real(volume:read(first, size, block.device))
            return zero(part)
        end
        for at = 0, shape[axis] - 1, extents[axis] do
            first[axis], size[axis] = at, math.min(extents[axis], shape[axis] - at)
            if not zero_from(axis + 1) then
                return false
            end
        end
        return true
    end
    return block.elements == convolution.product(shape) or zero_from(1)
end

--- See deconv.find_iterations.
function held_out.find(rl, source, psf, options)
    local volume = photon_noise.volume_of(source, WHAT)
    if #psf.shape ~= #volume.shape then
        fail("shape", WHAT, "psf", "the PSF has %s, the image %d",
            counted(#psf.shape, "axis", "axes"), #volume.shape)
    elseif options.weights and table.concat(options.weights.shape, " ")
        ~= table.concat(volume.shape, " ") then
        fail("shape", WHAT, "weights", "weights is %s, the image %s",
            table.concat(options.weights.shape, " x "), table.concat(volume.shape, " x "))
    end
    local found = not options.gain and photon_noise.estimate(volume) or nil
    local extents = extents_of(volume.shape, MOST_VOXELS)
    local cut = convolution.product(extents) < convolution.product(volume.shape)
    local tiles = found and found.samples or photon_noise.means(volume, cut)
    local first = place_of(volume.shape, extents, cut and tiles or {})
    local report = {iterations = 0, reliable = true, curve = {}, tried = 0, noise = found,
        extents = extents, first = first}
    local settings = setmetatable({boundary = not cut and options.boundary == "circular"
        and "circular" or "zero"}, {__index = options})
    local block <close> = volumes.real(volume:read(first, extents, psf.device))
    if is_zero(volume, block, found and found.samples or {}) then
        report.because = "zero" -- its result is 0 after any number of iterations
        settings.gain, settings.offset = 1, 0
    end
    local dense <close> = not block.contiguous and block:copy() or nil
    local mask <close> = options.weights
        and options.weights:view(convolution.ranges(first, extents)) or nil
    local weights <close> = mask and mask:copy() or nil
    settings.weights = weights or nil
    search(rl, dense or block, psf, settings, report,
        cut and inside(tiles, first, extents) or tiles)
    return report
end

return held_out
