--- What moonbeam deconvolve says of the noise of an image: the camera's gain and offset from the
-- image, the end of the iterations, the I-divergence over the iterations as words and a chart, and
-- snapshots of the estimate.

local mb = require "moonbeam"
local cli = require "moonbeam.internal.cli"
local captioned = require "moonbeam.pipeline.pictures.captioned"
local fail = require "moonbeam.internal.fail"
local held_out = require "moonbeam.deconv.held_out"
local output = require "moonbeam.plot.output"
local photon_noise = require "moonbeam.deconv.photon_noise"
local progress = require "moonbeam.progress"
local scale = require "moonbeam.plot.scale"
local tables = require "moonbeam.internal.tables"

local told = {}
local methods = {}
methods.__index = methods

-- A typed gain or offset is worth a warning if it is farther from the estimate: in standard errors,
-- and as a part of the gain, or in counts per gain.
local ERRORS <const>, PART <const> = 3, 0.25
local MOST_PIXELS <const> = 1 << 21 -- of all snapshots
local SNAPSHOTS <const> = 9

--- What is told of a run with these options of the command.
function told.new(options, say)
    return setmetatable({options = options, say = say, auto = {gain = options.gain == "auto",
        offset = options.offset == "auto"}, pictures = {}, numbers = {}}, methods)
end

local function with_error(value, error)
    return ("%.3g +- %.1g"):format(value, error)
end

-- Does the noise of a volume say that it may be 0 everywhere? One without tiles may be.
local function is_silent(found)
    return photon_noise.may_be_zero(found.samples or {}) and not found.gain
end

-- Warns where what is typed is far from what the image says.
local function compare(options, found)
    local most = {gain = PART * found.gain, offset = 2 * found.gain}
    for _, name in ipairs {"gain", "offset"} do
        local typed, own, error = options[name], found[name], found[name .. "_error"]
        if typed and math.abs(typed - own) > math.max(ERRORS * error, most[name]) then
            cli.warn("--%s is %g, but the noise of the image says %s; the typed one is taken", name,
                typed, with_error(own, error))
        end
    end
end

--- Says how the image becomes photons, if that is known.
function methods:say_photons()
    local options, auto = self.options, self.auto
    if (options.offset or options.gain) and (self.found or not (auto.gain or auto.offset)) then
        self.say("photons    (image - %g) / %g, float32", options.offset or 0, options.gain or 1)
    end
end

--- Puts numbers into the options where these say auto, for a plan, which reads no image.
function methods:suppose()
    for name, value in pairs {gain = 1, offset = 0} do
        self.options[name] = self.auto[name] and value or self.options[name]
    end
end

-- The noise of an image (deconvolve.given_image): of the first of its volumes that is not 0 where
-- it is looked at. Returns also which one it is, as text where it is not the first.
local function noise_of(image)
    local first
    for channel = 1, image.channels do
        for frame = 1, image.frames do
            local volume <close> = image:stored(channel, frame)
            local found = mb.deconv.noise(volume)
            first = first or found
            if found.dry or not is_silent(found) then
                return found, channel * frame > 1 and ("channel %d, time %d of "):format(
                    image.options.channel or channel, image.options.frame or frame) or ""
            end
        end
    end
    return first, ""
end

--- Estimates gain and offset from an image as it is stored, puts them into the options where these
-- say auto, and says it. Errors: argument (the image does not tell).
function methods:estimate(image)
    local options, auto = self.options, self.auto
    local found, which = noise_of(image)
    self.found = found
    local asked = auto.gain or auto.offset
    if not found.reliable and asked and not found.dry then
        fail("argument", nil, nil, "the noise of %s does not tell its gain and offset: %s; give "
            .. "--gain and --offset", options.image, found.why)
    elseif found.dry then
        self:suppose()
    elseif not found.reliable then
        self.say("noise      unknown: %s", found.why)
    else
        compare({gain = not auto.gain and options.gain or nil,
            offset = not auto.offset and options.offset or nil}, found)
        for name in pairs(auto) do
            options[name] = auto[name] and found[name] or options[name]
        end
        self.say("noise      gain %s counts per photon, offset %s, from %sthe image%s",
            with_error(found.gain, found.gain_error), with_error(found.offset, found.offset_error),
            which, (options.gain or options.offset) and ""
            or "; not applied (--gain auto --offset auto)")
    end
    self:say_photons()
end

--- Warns where a method deals out photons, and the image says that its counts are none.
function methods:check_photons(image)
    local found = noise_of(image)
    if not found.dry and found.reliable
        and math.abs(found.gain - 1) > math.max(ERRORS * found.gain_error, PART) then
        cli.warn("the counts of %s are not photons: its noise says %s counts per photon, and "
            .. "--method %s deals out photons; give --gain auto --offset auto",
            self.options.image, with_error(found.gain, found.gain_error), self.options.method)
    end
end

--- Gain and offset that are left in the image as it is deconvolved; nil if the noise is unknown.
function methods:left()
    local options, found = self.options, self.found
    local known = found and found.reliable
    local gain = not self.auto.gain and options.gain or known and found.gain
        or found and found.dry and 1 -- a plan is that of a known gain, as search and noise are
    if not gain then
        return nil
    end
    local offset = not self.auto.offset and options.offset or known and found.offset or 0
    local by = options.gain or 1
    return gain / by, (offset - (options.offset or 0)) / by
end

--- Warns if --iterations auto cannot search because the noise is unknown, and returns that.
function methods:unknown()
    local found = self.found
    if not found or found.dry or self:left() or is_silent(found) then -- the search looks at all
        return false
    end
    cli.warn("--iterations auto: the noise is unknown (%s), so 10 iterations are made; give --gain "
        .. "and --offset, or a number", found.why)
    return true
end

-- Why a search ends.
local RULES <const> = {held_out = "held-out photons are predicted best",
    zero = "the image is 0 everywhere",
    noise = "the misfit is what noise leaves",
    most = "no end among the iterations that were tried"}

--- The number of iterations for a volume as it is deconvolved, and what was found
-- (deconv.find_iterations; nil in a dry run); says it. `settings`: of richardson_lucy; `name`: of
-- the volume, nil where it is the image.
function methods:iterations(volume, psf, settings, most, name)
    local own, of_name = {iterations = most}, name and " of " .. name or ""
    for _, key in ipairs {"center", "acceleration", "total_variation", "spacing", "boundary",
        "weights", "background"} do
        own[key] = settings[key]
    end
    own.gain, own.offset = self:left()
    local extents, tries = held_out.extent(volume.shape, most)
    local share = tables.product(extents) / tables.product(volume.shape)
    self.say("search     half of the photons%s%s is deconvolved until it predicts the other half "
        .. "worse: at most %d iterations; it takes about %s as long as the iterations after it",
        of_name, share < 1 and " of " .. table.concat(extents, " x ") .. " voxels" or "", tries,
        share < 1 and ("%.2g to %.2g times"):format(share, 2 * share) or "one to two times")
    local search
    do -- nobody knows how long it takes
        local _ <close> = progress.watch("searching the end", {quiet = self.options.quiet})
        search = mb.deconv.find_iterations(volume, psf, own)
    end
    if mb.device.dry() then
        return most
    elseif search.because == "zero" then
        self.say("iterations 1: %s is 0 everywhere, and so is its result", name or "the image")
        return search.iterations, search
    elseif not search.reliable then
        cli.warn("--iterations auto: the noise%s is unknown (%s), so %d iterations are made; give "
            .. "%sa number", of_name, search.why, search.iterations, self:left() and ""
            or "--gain and --offset, or ")
        return search.iterations, search
    end
    local box = table.concat(search.extents, " x ")
    self.say("iterations %d%s: then %s%s%s", search.iterations, of_name,
        RULES[search.because or "held_out"],
        search.limited and "; more would be better, but that is the most (--iterations)" or "",
        box ~= table.concat(volume.shape, " x ") and ", judged by " .. box .. " voxels" or "")
    return search.iterations, search
end

-- One value for all, or a list.
local function each_or_one(list)
    for _, value in ipairs(list) do
        if value ~= list[1] then
            return list
        end
    end
    return list[1]
end

--- How numbers of iterations were found, by channel, as parameters of a result: a value for all
-- channels, or a list. Nothing where none were searched.
function told.facts(ends, found)
    local facts = {}
    local function note(name, value_of)
        local list = {}
        for channel, search in ipairs(found) do
            list[channel] = value_of(search, ends[channel])
        end
        facts[name] = each_or_one(list)
    end
    if #found > 0 then
        note("iterations", function(_, count) return count end)
        note("iterations_rule", function(search)
            return search.reliable and "auto: " .. RULES[search.because or "most"]
                or "auto: the noise is unknown, " .. search.why
        end)
        note("held_out_part", function(search) return search.held_out or 0 end)
        note("noise_gain", function(search) return search.gain or 0 end)
        note("noise_offset", function(search) return search.offset or 0 end)
    end
    return facts
end

-- ---- the curve ----

-- The I-divergence that noise alone leaves of the whole image, or nil.
local function expected_of(self, elements)
    local found, options = self.found, self.options
    if not found or not (found.reliable or options.gain) or not found.samples then
        return nil
    end
    local known = setmetatable({}, {__index = found})
    if not self.auto.gain and options.gain then
        known.gain = options.gain
    end
    if not self.auto.offset and (options.offset or not found.reliable) then
        known.offset = options.offset or 0
    end
    local each = mb.deconv.noise_divergence(known, options.offset or 0, options.gain or 1)
    return each and each > 0 and each * elements or nil
end

--- Says how the I-divergence has gone. `metrics`: of each iteration, before it; `which`: what the
-- line begins with, "" or "channel 1, time 1: ".
function methods:misfit(metrics, elements, which)
    local first, last = metrics[1], metrics[#metrics]
    local expected = expected_of(self, elements)
    self.metrics, self.expected, self.elements = metrics, expected, elements
    self.say("misfit     %sI-divergence %.4g before, %.4g before the last iteration%s", which,
        first.divergence, last.divergence, expected
        and ("; noise alone leaves about %.4g"):format(expected) or "; the noise is unknown")
    if expected and last.divergence < photon_noise.FITS * expected then
        cli.warn("the estimate fits the image better than noise permits (%.2f of the expected "
            .. "I-divergence): the noise is being fitted; fewer iterations, or --iterations auto",
            last.divergence / expected)
    end
end

-- The chart of the I-divergence over that of the noise, or over the pixels where that is unknown.
-- The first iterations change it by orders of magnitude, the last ones by percents: its axis has
-- logarithms.
local function chart_of(self)
    local expected, line = self.expected, {x = {}, y = {}}
    for k, metric in ipairs(self.metrics) do
        line.x[k] = k - 1
        line.y[k] = math.log(metric.divergence / (expected or self.elements), 10)
    end
    if #self.metrics == 1 then
        line.x[2], line.y[2] = 1, line.y[1]
    end
    local low, high = scale.range {line.y, expected and {0} or {}}
    local room = 0.1 * (high - low)
    return {lines = {line}, levels = expected and {{0, "noise alone"}} or nil,
        x = {label = "iterations done"}, y = {form = "log", low = low - room, high = high + room}}
end

--- Draws the I-divergence over the iterations.
function methods:curve()
    local dry = mb.device.dry()
    output.put(dry and {} or chart_of(self), {file = self.options.curve,
        overwrite = self.options.overwrite, title = self.expected
        and "I-divergence over that of the noise alone" or "I-divergence per pixel"}, "")
end

-- ---- snapshots ----

-- Rows and columns that are skipped so that all snapshots are small.
local function step_of(shape, count)
    local rank = #shape
    return math.max(1, math.ceil(math.sqrt(shape[rank - 1] * shape[rank] * count / MOST_PIXELS)))
end

--- Prepares snapshots of every so many of at most `most` iterations.
function methods:prepare(shape, most)
    local every = self.options.every or math.max(1, math.ceil(most / SNAPSHOTS))
    self.shape, self.every = shape, every
    self.step = step_of(shape, math.max(1, most // every))
    self.pictures, self.numbers, self.planned = {}, {}, most // every
end

--- No more snapshots will come: a plan of the picture (sheet) takes those that there are. A dry run
-- has none, and takes those that it plans.
function methods:finish()
    self.planned = mb.device.dry() and self.planned or self.pictures and #self.pictures
end

--- Keeps a snapshot of the middle plane after iteration k, if it is due.
function methods:snapshot(k, look)
    if not self.every or k % self.every ~= 0 or #self.pictures >= self.planned then
        return
    end
    local shape, rank = self.shape, #self.shape
    local first, extents = {}, {}
    for i, n in ipairs(shape) do
        local axis = i <= rank - 2
        first[i], extents[i] = axis and n // 2 or 0, axis and 1 or n
    end
    local plane <close> = look(first, extents)
    local every = {}
    for i, n in ipairs(extents) do
        every[i] = i <= rank - 2 and 1 or {1, n, self.step}
    end
    local part <close> = plane:view(table.unpack(every))
    self.pictures[#self.pictures + 1], self.numbers[#self.numbers + 1] = part:to_string(), k
end

--- Writes the snapshots as one picture; false if there are none. `name`: of the image; `caption`:
-- what was done; `pixel` (m, nil: unknown).
function methods:sheet(name, caption, pixel)
    local shape, rank = self.shape, #self.shape
    local height, width = math.ceil(shape[rank - 1] / self.step), math.ceil(shape[rank] / self.step)
    local dry = mb.device.dry()
    local count = dry and self.planned or #self.pictures
    if count == 0 then
        cli.warn("--snapshots: there are fewer than %d iterations (--every), so there is no "
            .. "picture", self.every)
        return false
    end
    local numbers = {}
    for i = 1, count do
        numbers[i] = tostring(self.numbers[i] or i * self.every)
    end
    local bytes = dry and ("\0"):rep(4 * height * width * count) or table.concat(self.pictures)
    local stack <close> = mb.from_string(bytes, {count, height, width},
        {dtype = "f32", device = "host"})
    captioned.save(self.options.snapshots, stack, {labels = numbers, pixel_size = pixel,
        every = self.step, overwrite = self.options.overwrite,
        caption = ("%s, %safter iterations %s: %s"):format(name, rank == 3
            and ("plane %d "):format(shape[1] // 2 + 1) or "",
            table.concat(numbers, ", "), caption)})
    return true
end

return told
