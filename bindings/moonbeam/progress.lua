--- Progress of long work: on a terminal one line redrawn with bar, rate and remaining time;
-- elsewhere one line at most every ten seconds, so that a log does not flood.

local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"

local progress = {}
progress.__index = progress

local function clock_text(seconds)
    if seconds < 60 then
        return ("%.0f s"):format(seconds)
    elseif seconds < 3600 then
        return ("%d:%02d min"):format(seconds // 60, math.floor(seconds % 60))
    end
    return ("%d:%02d h"):format(seconds // 3600, math.floor(seconds % 3600) // 60)
end

--- progress.new("reconstructing", total, {unit = "slices", quiet = false})
function progress.new(label, total, options)
    if type(total) ~= "number" then
        fail("argument", "progress.new", "total", "total must be a number")
    end
    local now = core.system.clock()
    return setmetatable({
        label = label,
        total = total,
        done = 0,
        unit = options.unit,
        quiet = options.quiet,
        terminal = core.system.isatty("stderr"),
        started = now,
        shown = now,
    }, progress)
end

local function text(self, now)
    local elapsed = math.max(now - self.started, 1e-6)
    local rate = self.done / elapsed
    local left = rate > 0 and (self.total - self.done) / rate or 0
    return ("%s: %d/%d %s, %.3g %s/s, %s left"):format(self.label, self.done, self.total,
        self.unit, rate, self.unit,
        clock_text(left))
end

--- `count` more are done.
function progress:step(count)
    self.done = self.done + count
    if self.quiet then
        return
    end
    local now = core.system.clock()
    if self.terminal then
        if now - self.shown > 0.1 or self.done >= self.total then
            io.stderr:write("\r", text(self, now), "\27[K")
            self.shown = now
        end
    elseif now - self.shown >= 10 then
        io.stderr:write(text(self, now), "\n")
        self.shown = now
    end
end

--- Ends the line; returns the seconds it took.
function progress:finish()
    local elapsed = core.system.clock() - self.started
    if not self.quiet then
        if self.terminal then
            io.stderr:write("\r\27[K")
        end
        io.stderr:write(("%s: %d %s in %s (%.3g %s/s)\n"):format(self.label, self.done, self.unit,
            elapsed < 10 and ("%.2f s"):format(elapsed) or clock_text(elapsed),
                self.done / math.max(elapsed, 1e-6), self.unit))
    end
    return elapsed
end

return declared.module(progress, "progress", {
    new = {"label: any?, total: any?", declared.options(
        {"unit", "string", "what is counted", default = "items"},
        {"quiet", "boolean", "show nothing", default = false})},
    step = "self: progress, count: number",
    finish = "self: progress"})
