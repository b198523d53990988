--- Progress of long work: on a terminal one line redrawn with rate and remaining time; elsewhere a
-- line now and then, so that a log does not flood; or JSON for programs that watch a queue.
--
-- Work may have several sections, one after the other. The remaining time is that of all of them:
-- the section under way goes on at its own rate, and those to come take as long for their weight as
-- those before them have.

local activity = require "moonbeam.internal.command_line.activity"
local counted = require "moonbeam.internal.quantities.counted"
local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local log = require "moonbeam.internal.log"

local progress = {}
local metatable = {__index = progress}

-- Seconds between two of them, at least. Lines also wait for a part of the time that has passed: a
-- day's work has some hundred of them.
local BAR, JSON, LINE, LINE_PART <const> = 0.1, 1, 10, 0.05

local function clock_text(seconds)
    if seconds < 60 then
        return ("%.0f s"):format(seconds)
    elseif seconds < 3600 then
        return ("%d:%02d min"):format(seconds // 60, math.floor(seconds % 60))
    end
    return ("%d:%02d h"):format(seconds // 3600, math.floor(seconds % 3600) // 60)
end

-- Three digits, without an exponent.
local function rate_text(rate)
    return (rate >= 999.5 and "%.0f" or "%.3g"):format(rate)
end

-- ---- what there is to do ----

local function check(number, arg, what)
    if type(number) ~= "number" or number ~= number or number < 0 or number == math.huge then
        fail("argument", "progress.new", arg, "%s must be a number, 0 or more", what)
    end
    return number
end

-- The sections: {{name, count, weight}, ...}.
local function sections_of(total)
    if type(total) ~= "table" then
        return {{count = check(total, "total", "total"), weight = total}}
    end
    local list = {}
    for i, given in ipairs(total) do
        if type(given) ~= "table" then
            fail("argument", "progress.new", "total", "section %d of total must be a table {name, "
                .. "count [, weight]}", i)
        end
        local count = check(given.count, "total", ("the count of section %d"):format(i))
        list[i] = {name = given.name, count = count, weight = check(given.weight or count, "total",
            ("the weight of section %d"):format(i))}
    end
    if #list == 0 then
        fail("argument", "progress.new", "total", "total must be a number, or a list of sections")
    end
    return list
end

local function form_of(options)
    if core.dry.on() or core.cluster.place().rank > 0 -- rank 0 shows that of all
        or (options.quiet or log.quiet) and log.progress ~= "json" then
        return "none"
    end
    return options.form or log.progress or (core.system.isatty("stderr") and "bar" or "line")
end

-- ---- how far it is ----

-- The part of the section under way that is done.
local function part(self)
    return self.total > 0 and math.min(1, self.done / self.total) or 1
end

--- The part of all work that is done, 0 to 1, and the seconds that the rest will take, nil where
-- nothing tells yet.
function progress:remaining()
    local now, own = core.system.clock(), part(self)
    local section = self.sections[self.at]
    local reached = self.finished + own * section.weight
    local fraction = self.weight > 0 and reached / self.weight or 1
    local later = self.weight - self.finished - section.weight
    if own > 0 and (later <= 0 or reached > 0) then
        local here = (now - self.began) * (1 - own) / own
        return fraction, here + (later > 0 and later * (now - self.started) / reached or 0)
    elseif reached > 0 then
        return fraction, (self.weight - reached) * (now - self.started) / reached
    end
    return fraction, fraction >= 1 and 0 or nil
end

local function text(self, now)
    local rate = self.done / math.max(now - self.began, 1e-6)
    local _, left = self:remaining()
    local section, many = self.sections[self.at], #self.sections
    local name = self.label .. (many > 1 and (" %d/%d%s"):format(self.at, many, section.name
        and " " .. section.name or "") or "")
    return ("%s: %d/%d %s, %s %s/s, %s left%s%s"):format(name, self.done, self.total, self.unit,
        rate_text(rate), self.unit, left and clock_text(left) or "? s",
        many > 1 and " in all" or "", self.doing and ", " .. self.doing or "")
end

-- ---- showing it ----

local function json_value(value)
    if type(value) == "string" then
        return '"' .. value:gsub('[%c"\\]', function(c)
            return ("\\u%04x"):format(c:byte())
        end) .. '"'
    elseif type(value) == "number" and value == value and math.abs(value) < math.huge then
        return math.type(value) == "integer" and ("%d"):format(value) or ("%.6g"):format(value)
    end
    return "null"
end

local FIELDS <const> = {"event", "label", "section", "sections", "name", "done", "total", "unit",
    "fraction", "seconds", "remaining_seconds"}

local function show_json(self, event, now)
    local fraction, left = self:remaining()
    local values = {event = event, label = self.label, section = self.at,
        sections = #self.sections, name = self.sections[self.at].name, done = self.done,
        total = self.total, unit = self.unit, fraction = fraction, seconds = now - self.started,
        remaining_seconds = left}
    local words = {}
    for i, name in ipairs(FIELDS) do
        words[i] = ('"%s": %s'):format(name, json_value(values[name]))
    end
    words[#words + 1] = self.doing and event == "progress"
        and ('"doing": %s'):format(json_value(self.doing)) or nil
    io.stderr:write("{", table.concat(words, ", "), "}\n")
    io.stderr:flush()
end

-- Is it time for another line?
local function due(self, now, before)
    return now - before >= math.max(LINE, LINE_PART * (now - self.started))
end

local function show(self, now, changed, inside)
    local done = not inside and (self.done >= self.total or changed)
    if self.form == "bar" and (done or now - self.shown > BAR) then
        io.stderr:write("\r", text(self, now), "\27[K")
        self.shown = now
    elseif self.form == "json" and (done or now - self.shown >= JSON) then
        show_json(self, "progress", now)
        self.shown = now
    elseif self.form == "line" and due(self, now, self.shown) then
        io.stderr:write(text(self, now), "\n")
        self.shown = now
    end
    if due(self, now, self.logged) and not core.dry.on() then
        log.write(text(self, now))
        self.logged = now
    end
end

-- ---- what is called ----

--- Begins to show progress.
--
-- total is how many items there are to do, or a list of sections {name = "reconstructing", count =
-- 128, weight = 40}: their items, and how long they take compared with each other (default: count).
-- Call `step` for what is done, `section` when the next section begins, and `finish`.
-- The form is the program's (--progress), or follows from the standard error: a bar on a terminal,
-- lines elsewhere. JSON is one object a line: {"event": "begin", "progress" or "end", "label",
-- "section", "sections", "name", "done", "total", "unit", "fraction" (of all sections), "seconds",
-- "remaining_seconds" (null: not known yet), "doing" (within a block, "iteration 3 of 100")}.
local function new(label, total, options)
    local now = core.system.clock()
    local sections = sections_of(total)
    local self = setmetatable({label = label, unit = options.unit, sections = sections,
        total = sections[1].count, done = 0, finished = 0, at = 1, form = form_of(options),
        started = now, began = now, shown = now, logged = now, listening = false,
        doing = false}, metatable)
    self.weight = 0
    for _, section in ipairs(sections) do
        self.weight = self.weight + section.weight
    end
    if self.form == "json" then
        show_json(self, "begin", now)
    end
    if self.form ~= "none" then
        self.listening = activity.listen(function(what, done, all)
            if not core.dry.on() then
                self.doing = ("%s %d of %d"):format(what, done, all)
                show(self, core.system.clock(), nil, true)
            end
        end)
    end
    return self
end

--- `count` more are done.
function progress:step(count)
    self.done, self.doing = self.done + count, false
    show(self, core.system.clock())
end

--- Section `number` begins; those before it are done.
function progress:section(number)
    if not self.sections[number] then
        fail("argument", "progress:section", "number", "number is %d; it must be from 1 to %d, the "
            .. "number of sections", number, #self.sections)
    end
    self.finished = 0
    for i = 1, number - 1 do
        self.finished = self.finished + self.sections[i].weight
    end
    local before = self.at
    self.at, self.done, self.total = number, 0, self.sections[number].count
    self.began = core.system.clock()
    show(self, self.began, number ~= before)
end

-- Items of all sections.
local function all_items(self)
    local count = 0
    for i = 1, self.at - 1 do
        count = count + self.sections[i].count
    end
    return count + self.done
end

-- Work that says what it does is not heard any more.
function metatable:__close()
    if self.listening then
        getmetatable(self.listening).__close()
        self.listening, self.doing = false, false
    end
end

--- Ends the line; returns the seconds it took.
function progress:finish()
    metatable.__close(self)
    local now = core.system.clock()
    local elapsed, count = now - self.started, all_items(self)
    local summary = ("%s: %s in %s (%s %s/s)"):format(self.label,
        counted(count, (self.unit:gsub("s$", "")), self.unit),
        elapsed < 10 and ("%.2f s"):format(elapsed) or clock_text(elapsed),
        rate_text(count / math.max(elapsed, 1e-6)), self.unit)
    if self.form == "json" then
        show_json(self, "end", now)
    elseif self.form ~= "none" then
        io.stderr:write(self.form == "bar" and "\r\27[K" or "", summary, "\n")
    end
    if not core.dry.on() then
        log.write(summary)
    end
    return elapsed
end

--- Shows what work says of itself until the returned value is closed, which leaves no line:
-- "searching the axis: trial slice 12 of 65". For work whose length nobody knows.
progress.watch = declared("progress.watch", {
    {"label", "string", "what is done"},
    options = declared.options({"quiet", "boolean", "show nothing"}),
}, function(label, options)
    local form = form_of(options)
    local started, shown = core.system.clock(), nil
    local heard = form ~= "none" and activity.listen(function(what, done, all)
        local now = core.system.clock()
        local line = ("%s: %s %d of %d"):format(label, what, done, all)
        if form == "bar" and (not shown or now - shown > BAR) then
            io.stderr:write("\r", line, "\27[K")
            shown = now
        elseif form ~= "bar" and now - (shown or started) >= math.max(LINE, LINE_PART
            * (now - started)) then
            io.stderr:write(form == "json" and ('{"event": "progress", "label": %s, "doing": %s}')
                :format(json_value(label), json_value(("%s %d of %d"):format(what, done, all)))
                or line, "\n")
            shown = now
        end
    end) or nil
    return setmetatable({}, {__close = function()
        if heard then
            getmetatable(heard).__close()
            heard = nil
            io.stderr:write(form == "bar" and shown and "\r\27[K" or "")
        end
    end})
end)

progress.new = declared("progress.new", {
    {"label", "string?", "what is done"},
    {"total", "any?", "how many items there are, or a list of sections"},
    options = declared.options(
        {"unit", "string", "what is counted", default = "items"},
        {"quiet", "boolean", "show nothing"},
        {"form", "choice", "how it is shown", choices = {"bar", "line", "json", "none"},
            usual = "as --progress says, or as it suits the standard error"}),
}, new)

return declared.module(progress, "progress", {
    step = "self: progress, count: number",
    section = "self: progress, number: count",
    remaining = "self: progress",
    finish = "self: progress"})
