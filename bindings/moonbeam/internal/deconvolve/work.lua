--- The work of moonbeam deconvolve on the volumes of an image, whole or in tiles (way).

local cli = require "moonbeam.internal.cli"
local counted = require "moonbeam.internal.quantities.counted"
local mb = require "moonbeam"
local progress = require "moonbeam.progress"
local rank_lines = require "moonbeam.internal.deconvolve.rank_lines"
local way = require "moonbeam.internal.deconvolve.way"

local work = {}
local methods = {}
methods.__index = methods

--- The most iterations of --iterations auto.
work.MOST = 200

local BECAUSE <const> = {tolerance = "the relative change fell below --tolerance"}

--- The work of a job. Fields: others, the most bytes that the other devices took, by their ids;
-- iterations, those of the first volume of an image (nil: none, or not known); of_volume, what
-- lines about a volume of several begin with.
function work.new(job)
    return setmetatable({job = job, others = {}}, methods)
end

-- Counts an iteration whose metric is known, and keeps what pictures show of the first volume.
local function seen(self, k, metric, look)
    local job = self.job
    if job.options.metrics and metric and metric.change then
        local misfit = metric.divergence and ("I-divergence %.6g"):format(metric.divergence)
            or metric.residual and ("residual %.6g"):format(metric.residual)
            or ("I-divergence of the halves %.6g, %.6g"):format(metric.first, metric.second)
        if self.of_volume ~= "" and self.metrics_of ~= self.of_volume then
            self.metrics_of = self.of_volume
            job.say("metrics    %s", (self.of_volume:gsub(": $", "")))
        end
        job.say("%9d  %s  change %.3g", k, misfit, metric.change)
    end
    if not self.told_first then
        job.noise:snapshot(k, look)
    end
end

-- Keeps how much of a volume counted as 0, for `tell_clipped`.
local function note_clipped(self, report)
    local share = report and report.clipped and report.clipped.image or 0
    self.clipped = math.max(self.clipped, share)
end

-- Warns of values below 0 in the image, of several volumes for that with the most. They are only
-- said where --offset was subtracted, which leaves noise around 0.
local function tell_clipped(self)
    local job = self.job
    if self.clipped == 0 then
        return
    end
    local text = ("%.3g %% of the values of %s are below 0, and count as 0"):format(
        100 * self.clipped, job.image:is_series() and "one volume of the image" or "the image")
    if job.options.offset then
        job.say("clipped    %s", text)
    else
        cli.warn("%s", text)
    end
end

local FEW <const> = 1 -- photons per voxel, below which gradient_consensus ends too late

-- Says how the iterations ended. `dark`: the result is 0 everywhere, as its image is, which more
-- iterations do not change.
local function tell_end(self, report, dark)
    local job = self.job
    local most = job.settings.iterations
    if not report or mb.device.dry() then
        return
    elseif report.iterations < most then
        job.say("stopped    %safter %s of at most %d%s", self.of_volume,
            counted(report.iterations, "iteration"), most,
            report.stopped and ", because the halves of the photons disagree"
            or BECAUSE[report.because] and ", because " .. BECAUSE[report.because] or "")
    elseif report.stopped == false and not dark and most >= job.taken.iterations.default then
        job.say("ended      %safter %s, and the halves of the photons still agree: the image may "
            .. "bear more --iterations%s", self.of_volume, counted(most, "iteration"),
            job.options.gain and "" or ", or its counts are not photons (--gain auto --offset "
            .. "auto)")
    elseif most > 1 then
        job.detail("stopped    %safter %d iterations, because that is %s", self.of_volume,
            report.iterations,
            job.automatic and "what --iterations auto has found" or "--iterations")
    end
    if report.mean and report.mean < FEW and not dark and not self.told_first then
        cli.warn("the image has %.2g photons per voxel%s: with less than 1, gradient_consensus "
            .. "ends too late and amplifies noise; --method rl --iterations auto ends in time",
            report.mean, job.options.gain and "" or " if its counts are photons")
    end
    if job.options.method == "rl" and job.settings.metrics and not self.told_first then
        job.noise:misfit(report.metrics, job.image.voxels, self.of_volume)
    end
    self.told_first, self.iterations = true, self.iterations or report.iterations
end

local function bar_of(job, label, count, unit)
    return progress.new(label, count, {unit = unit,
        quiet = job.options.quiet or job.options.metrics})
end

-- Untiled; `sink` gets the result. Returns its range.
local function deconvolve(self, volume, sink, label, channel, transfers)
    local job = self.job
    local bar = job.settings.iterations and bar_of(job, label, job.settings.iterations,
        "iterations")
    local result, report = way.whole(job, volume, {on_iteration = bar and function(k, ...)
        bar:step(1)
        seen(self, k, ...)
    end or nil}, channel, transfers)
    local guard <close> = result
    job.device:sync()
    local least, greatest = way.range(result)
    mb.volumes.store(sink, guard)
    if bar then
        bar:finish()
    end
    tell_end(self, report, greatest == 0)
    note_clipped(self, report)
    return least, greatest
end

-- Warns of what was not as planned, and says what the seams are like.
local function tell_tiles(self, report)
    local job, texts = self.job, report.budgets
    table.insert(texts, report.replanned)
    table.move(report.again, 1, #report.again, #texts + 1, texts)
    table.move(report.lost, 1, #report.lost, #texts + 1, texts)
    for _, each in ipairs(texts) do
        cli.warn("%s", each.text)
    end
    for i = 2, #job.devices do
        local name = job.devices[i].id
        self.others[name] = math.max(self.others[name] or 0, report.peaks[name] or 0)
    end
    if report.seam then
        local bad = report.seam > mb.tiled_deconv.SEAM_LIMIT
        job.say("seams      %s%.3f: differences across tile faces over those within%s",
            self.of_volume, report.seam,
            bad and "; they may show: --tiles exact, or fewer iterations" or "")
        if bad and job.options.quiet then
            cli.tell(("deconvolve: %sthe seam metric is %.3f"):format(self.of_volume, report.seam))
        end
    end
end

local function deconvolve_tiled(self, volume, sink, label, channel)
    local job = self.job
    local settings, exact = job.tile_settings, job.mode == "exact"
    local each = job.plan.total * (exact and 2 or 1)
    local bar = bar_of(job, label, each * (exact and job.settings.iterations or 1), "tiles")
    local told
    settings.plan, settings.iterations = job.plan, job.settings.iterations
    settings.on_tile, told = rank_lines.counters(bar, each, job.mode)
    if exact then
        function settings.on_iteration(k, ...)
            told(k)
            seen(self, k, ...)
        end
        sink = mb.volumes.watch(sink)
    end
    local report = mb.tiled_deconv.richardson_lucy_volume(volume, job.psfs:of(channel), sink,
        settings)
    if not job.device:lost() then
        job.device:sync()
    end
    told(report.iterations)
    bar:finish()
    tell_end(self, report)
    tell_tiles(self, report)
    note_clipped(self, report)
    rank_lines.say_report(job, report)
    return sink.least, sink.greatest
end

--- Searches the numbers of iterations, by channel, where the job is automatic: each channel has
-- light of its own, and its first time decides. Returns them and what was found
-- (deconv.find_iterations), by channel; empty lists where nothing is searched. A transfer function
-- that another image has left makes room.
function methods:search(transfers)
    local job, ends, found = self.job, {}, {}
    if job.automatic then
        transfers:release()
        way.forget(job)
    end
    for channel = 1, job.automatic and job.image.channels or 0 do
        local volume <close> = job.image:volume(channel, 1)
        ends[channel], found[channel] = job.noise:iterations(volume, job.psfs:of(channel),
            job.settings, work.MOST, job.image.channels > 1
                and ("channel %d"):format(job.options.channel or channel) or nil)
    end
    return ends, found
end

-- Which volume of a series it is, counted as in the image.
local function label_of(job, channel, frame)
    return ("channel %d, time %d"):format(job.options.channel or channel,
        job.options.frame or frame)
end

-- Raises the error of a volume. Of one of several it says which that is.
local function fail_of(job, problem, channel, frame)
    if job.image:is_series() and type(problem) == "table" and problem.code == "argument"
        and problem.arg ~= "psf" then
        problem.message = ("%s: %s; --channel and --frame work on one volume alone"):format(
            label_of(job, channel, frame), problem.message)
    end
    error(problem, 0)
end

--- Deconvolves all volumes of the image. `out`: its result (nil: another rank has it); `ends`: the
-- numbers of iterations by channel, if they were searched. Returns the range.
function methods:volumes(out, ends, transfers)
    local job, least, greatest = self.job, nil, nil
    local image, run = job.image, job.mode == "none" and deconvolve or deconvolve_tiled
    self.told_first, self.iterations, self.clipped, self.metrics_of = nil, nil, 0, nil
    for channel = 1, image.channels do
        for frame = 1, image.frames do
            local volume <close> = image:volume(channel, frame)
            job.settings.iterations = ends[channel] or job.settings.iterations
            if job.options.snapshots and channel == 1 and frame == 1 then
                job.noise:prepare(image.shape, job.settings.iterations)
            end
            local sink = out and out:volume(channel, frame)
                or mb.volumes.planned(image.shape, job.dtype)
            local label = image:is_series() and label_of(job, channel, frame) or "deconvolving"
            self.of_volume = image:is_series() and label .. ": " or ""
            local ok, low, high = pcall(run, self, volume, sink, label, channel, transfers)
            if not ok then
                fail_of(job, low, channel, frame)
            end
            job.noise:finish()
            least = low and math.min(least or low, low)
            greatest = high and math.max(greatest or high, high)
        end
    end
    tell_clipped(self)
    return least, greatest
end

return work
