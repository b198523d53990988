--- Ledgers: what every step of a program took, to the byte. `record` writes one during a real run,
-- `dry_run` without running: the devices are replaced by dry devices in the same state, on which
-- operators are planned and accounted for, but there is no data. Both give the same rows.

local declared = require "moonbeam.internal.declared"
local core = require "moonbeam.core"
local columns = require "moonbeam.internal.columns"
local json = require "moonbeam.internal.json"
local least_budget = require "moonbeam.plan.least"
local unknown = require "moonbeam.internal.unknown"

local ledger = {}
local methods = {}
local metatable = {__index = methods, __name = "moonbeam.ledger"}

local COLUMNS = {"kind", "device", "label", "owner", "tag", "keep", "temp", "work", "live",
    "peak"}

-- How many FFT work areas were derived instead of recorded so far, by planned device.
local function derived_counts()
    local counts = {}
    for _, device in ipairs(core.device.opened()) do
        counts[device.id] = device.planned and core.fft.derived(device) or nil
    end
    return counts
end

-- What the figures of planned devices rest on, as text; nil where all devices are here.
local function basis_of(rows, before)
    local lines, seen = {}, {}
    for _, row in ipairs(rows) do
        local device = not seen[row.device] and row.device:find("^planned:")
            and core.device.open(row.device)
        seen[row.device] = true
        if device then
            local count, how = core.fft.derived(device)
            count = count - (before[device.id] or 0)
            lines[#lines + 1] = device.basis .. (count > 0
                and ("; %d FFT work areas are not recorded, the latest %s"):format(count, how)
                or "")
        end
    end
    return lines[1] and table.concat(lines, "\n")
end

local function make(rows, dry, results, before)
    local self = setmetatable({list = rows, dry = dry, results = results, peak = 0, peak_row = nil,
        pinned_peak = 0,
        basis = basis_of(rows, before)}, metatable)
    for i, row in ipairs(rows) do
        if row.kind == "pin" then
            self.pinned_peak = math.max(self.pinned_peak, row.peak)
        elseif row.peak > self.peak then
            self.peak, self.peak_row = row.peak, i
        end
    end
    return self
end

-- Begins a dry run, or one in another, so that each of the list `rooms`, {devices, bytes}, holds:
-- these devices have so many bytes beyond what is live, or as many as it takes (nil). Returns how
-- many have begun.
local function begin(rooms)
    for _, each in ipairs(rooms) do
        core.dry.begin(each[1], each[2], true, true)
    end
    if #rooms == 0 then
        core.dry.begin()
    end
    return math.max(1, #rooms)
end

-- Runs fn(...) between begin and finish; both are undone whatever happens. `rooms`: of a dry run
-- (begin); nil: it runs for real.
local function run(rooms, fn, ...)
    local levels, first = rooms and begin(rooms) or 0, nil
    local before = derived_counts()
    local _ <close> = setmetatable({}, {__close = function()
        if first then
            core.ledger.finish()
        end
        for _ = 1, levels do
            core.dry.finish()
        end
    end})
    first = core.ledger.begin()
    local results
    if rooms then
        local formats <close> = unknown.formatted() -- luacheck: ignore
        results = table.pack(pcall(core.ledger.call, fn, ...))
        if not table.remove(results, 1) then
            error(unknown.explained(results[1]), 0)
        end
        results.n = results.n - 1
    else
        results = table.pack(core.ledger.call(fn, ...))
    end
    local made = make(core.ledger.rows(first), rooms ~= nil, results, before)
    if rooms and #rooms > 0 then
        made.most = {}
        for _, device in ipairs(core.device.opened()) do
            made.most[device.id] = core.pool.stats(device).live_peak
        end
    end
    return made
end

-- The least bytes beyond what is live with which a device has a plan of fn(...), by plans with
-- `rooms` (begin) for the others; nil where that cannot be determined.
local function least_room(device, rooms, fn, ...)
    local live <const> = core.pool.stats(device).live
    local arguments <const> = table.pack(...)
    local function plan_at(bytes)
        rooms[#rooms + 1] = {{device}, bytes}
        local ok, made = pcall(run, rooms, fn, table.unpack(arguments, 1, arguments.n))
        rooms[#rooms] = nil
        if ok then
            return made.most[device.id] - live
        elseif type(made) == "table" and made.code == "cancelled" then
            error(made, 0)
        end
        return nil, type(made) == "table" and made.code == "budget" and made.device == device.id
            and not made.limited_by and made.enough and made.enough - live or nil
    end
    return least_budget(plan_at, core.pool.stats(device).budget - live)
end

-- The devices that a plan without a limit takes too far; the one that `err` names where there are
-- none, because fn only plans for its budget.
local function short_devices(made, err)
    local short, named = {}, {}
    for _, device in ipairs(core.device.opened()) do
        short[#short + 1] = made.most[device.id] > core.pool.stats(device).budget and device or nil
        named[1] = device.id == err.device and not err.limited_by and device or named[1]
    end
    return short[1] and short or named
end

-- Where the plan of an error does not fit: {device, budget, enough}, if that can be determined.
-- What is enough is looked for on one device after the other: with what was found for those before
-- it, and without a limit on those after it. So all that is found is enough together.
local function beyond_of(made, err, fn, ...)
    local short, beyond, found = short_devices(made, err), {}, {}
    for i, device in ipairs(short) do
        local stats = core.pool.stats(device)
        local rooms = table.move(found, 1, #found, 1, {})
        if i < #short then
            rooms[#rooms + 1] = {table.move(short, i + 1, #short, 1, {})}
        end
        local room = least_room(device, rooms, fn, ...) or made.most[device.id] - stats.live
        found[i] = {{device}, room}
        if stats.live + room > stats.budget then
            beyond[#beyond + 1] = {device = device.id, budget = stats.budget,
                enough = stats.live + room}
        end
    end
    return beyond
end

-- The ledger of a dry run that the budgets refused with this error: planned again without a limit.
-- Its field `beyond` says where it does not fit. Raises the error where memory is not the cause.
local function beyond_budget(err, fn, ...)
    if type(err) ~= "table" or err.code ~= "budget" or core.dry.on() then
        error(err, 0)
    end
    local ok, made = pcall(run, {{core.device.opened()}}, fn, ...)
    local beyond = ok and beyond_of(made, err, fn, ...) or {}
    if #beyond == 0 then -- memory is not the cause, or there are no addresses for so much
        error(ok and err or made, 0)
    end
    made.most, made.beyond = nil, beyond
    return made
end

--- Calls fn(...) and returns the ledger of that, then what fn returned.
function ledger.record(fn, ...)
    local made = run(nil, fn, ...)
    return made, table.unpack(made.results, 1, made.results.n)
end

--- mb.dry_run(fn, ...): the ledger that mb.ledger(fn, ...) would give, without running. Arrays that
-- exist have shape and place but no values; those that fn makes are gone afterwards. File reads
-- give shapes, results are not written. What asks for a value gets one that can be printed and
-- scales arrays, and is an error elsewhere; only its equality with a number (v:min() == 0) cannot
-- be noticed: that is false without a word. mb.bound gives plans a value.
--
-- What does not fit the budget of a device is planned as if it did, without a limit. The ledger's
-- field `beyond` is then a list of {device, budget, enough}, in bytes: with a budget of `enough` it
-- runs, and with nine tenths of that it does not. That may be less than the peak: with less memory
-- some functions work in smaller parts. If all fits, `beyond` is nil.
function ledger.dry_run(fn, ...)
    local ok, made = pcall(run, {}, fn, ...)
    if not ok then
        made = beyond_budget(made, fn, ...)
    end
    made.results = nil
    return made
end

-- Like dry_run, for a script, whose plan must end as the script does: what does not fit the budget
-- is an error.
function ledger._within_budget(fn, ...)
    local made = run({}, fn, ...)
    made.results = nil
    return made
end

--- Is a dry run going on?
ledger.dry = core.dry.on

--- mb.bound(bound, fn, ...): what fn(...) returns; in a dry run, where fn may ask for values that
-- do not exist, the bound. fn is called in either case, so that what it takes is counted. Only
-- arrays without data raise what makes it the bound, so it serves plans (which hand a function a
-- dry device) as well.
function ledger.bound(bound, fn, ...)
    local asked = core.unknown.count()
    local results = table.pack(pcall(fn, ...))
    local unasked = core.unknown.count() == asked
    core.unknown.count(asked) -- whoever asks outside knows nothing of it
    if not unasked or type(results[2]) == "table" and results[2].code == "dry_run" then
        return bound
    elseif results[1] then
        return table.unpack(results, 2, results.n)
    end
    error(results[2], 0)
end

-- Values that a real run finds and that decide what later steps take: {list =, at = (of the
-- next), replay = are they known?}.
local finds

--- ledger.found(bound, value): the value that a real run has found; in a dry run, which cannot
-- find it, the bound: of the values that are possible the one for which what follows takes most.
-- A dry run inside `replay` gets what was found in `observe`.
function ledger.found(bound, value)
    if not core.dry.on() then
        if finds then
            finds.list[#finds.list + 1] = {value}
        end
        return value
    end
    if not finds then
        return bound
    end
    finds.at = finds.at + 1
    local known = finds.list[finds.at]
    return known and known[1] or bound
end

local function with_finds(list, fn, ...)
    local before = finds
    local _ <close> = setmetatable({}, {__close = function()
        finds = before
    end})
    finds = {list = list, at = 0}
    return fn(...)
end

--- Calls fn(...). Returns the values that it found, for `replay`, then what it returned.
function ledger.observe(fn, ...)
    local list = {}
    return list, with_finds(list, fn, ...)
end

--- Calls fn(...) with dry runs that know the values that `observe` found.
ledger.replay = declared("ledger.replay", "finds: lists, fn: callable", with_finds)

--- The rows: {kind, device, label, owner, tag, keep, temp, work, live, peak}. Bytes, rounded as the
-- pool rounds them; tag is the pool.tag that was in force, or "".
methods.rows = declared.method("ledger:rows()", nil, function(self)
    return self.list
end)

--- The first row with the highest peak, and its number; nil for an empty ledger.
methods.peak_step = declared.method("ledger:peak_step()", nil, function(self)
    return self.list[self.peak_row], self.peak_row
end)

local function row_equal(a, b)
    for _, name in ipairs(COLUMNS) do
        if a[name] ~= b[name] then
            return false
        end
    end
    return true
end

--- The rows in which two ledgers differ: a list of {step, a, b}, where a or b is nil beyond the end
-- of one. Empty: equal.
function ledger.diff(a, b)
    local list = {}
    for i = 1, math.max(#a.list, #b.list) do
        local x, y = a.list[i], b.list[i]
        if not (x and y and row_equal(x, y)) then
            list[#list + 1] = {step = i, a = x, b = y}
        end
    end
    return list
end

ledger.diff = declared("ledger_diff", "a: ledger, b: ledger", ledger.diff)
methods.diff = ledger.diff

function metatable.__eq(a, b)
    return #ledger.diff(a, b) == 0
end

function metatable.__len(self)
    return #self.list
end

function metatable.__tostring(self)
    return self:text {limit = 40}
end

local function bytes_text(n)
    if n == 0 then
        return "-"
    end
    return (n < 0 and "-" or "") .. core.device.format_bytes(math.abs(n))
end

-- Have the rows more than one value of the column, or one other than `usual`?
local function several(rows, column, usual)
    for _, row in ipairs(rows) do
        if row[column] ~= (usual or rows[1][column]) then
            return true
        end
    end
    return false
end

local WORTH <const> = 1 / 20 -- of the peak: less is not worth a remark

-- What would lower the peak, as far as the row tells.
local function note(self, row)
    local scratch, least = row.temp + row.work, WORTH * row.peak
    if scratch > row.peak / 2 then
        return "scratch is the most of it: smaller chunks"
    elseif row.kind == "operator" and row.keep >= math.max(least, scratch, 1) then
        return "out = an array that is no longer needed would save " .. bytes_text(row.keep)
    elseif scratch >= math.max(least, 1) then
        return ("%s of it are scratch: smaller chunks"):format(bytes_text(scratch))
    elseif row.live - row.keep > row.peak / 2 then
        return "release before this line what is not needed after it"
    end
    return #self.list > 1 and "smaller chunks" or ""
end

local LIMIT = declared.options {"limit", "count", "rows at most", usual = "all"}

--- The ledger as text: a row per step; the peak's row is marked.
methods.text = declared.method("ledger:text(options)", LIMIT, function(self, options)
    local rows, limit = self.list, options.limit or math.huge
    local many, tagged = several(rows, "device"), several(rows, "tag", "")
    local cells = {{"", "step", "line", "keep", "temp", "work", "live", "peak", ""}}
    local skipped = 0
    if tagged then
        table.insert(cells[1], 4, "tag")
    end
    for i, row in ipairs(rows) do
        if i <= limit or i == self.peak_row then
            local at_peak = i == self.peak_row
            local step = many and ("%s (%s)"):format(row.label, row.device) or row.label
            cells[#cells + 1] = {tostring(i), step, row.owner, bytes_text(row.keep),
                bytes_text(row.temp), bytes_text(row.work), bytes_text(row.live),
                bytes_text(row.peak), at_peak and "<- peak; " .. note(self, row) or ""}
            if tagged then
                table.insert(cells[#cells], 4, row.tag)
            end
        else
            skipped = skipped + 1
        end
    end
    local lines = columns(cells, function(i) return i > (tagged and 4 or 3) end)
    if skipped > 0 then
        lines[#lines + 1] = ("... %d more steps"):format(skipped)
    end
    lines[#lines + 1] = ("peak %s (%d bytes)%s"):format(core.device.format_bytes(self.peak),
        self.peak, self.dry and ", not run" or ", measured")
    for _, each in ipairs(self.beyond or {}) do
        lines[#lines + 1] = ("does not fit: the budget of %s is %s; give at least %s (%d bytes)")
            :format(each.device, core.device.format_bytes(each.budget),
            core.device.format_bytes(each.enough, each.budget), each.enough)
    end
    lines[#lines + 1] = self.basis
    return table.concat(lines, "\n")
end)

--- Prints the text.
methods.print = declared.method("ledger:print(options)", LIMIT, function(self, options)
    io.stdout:write(self:text(options), "\n")
end)

--- The ledger as JSON: {"dry":, "peak":, "basis":, "beyond":[...], "rows":[...]}; basis only where
-- a device was planned for without being here, beyond only where the budget is too small.
methods.to_json = declared.method("ledger:to_json()", nil, function(self)
    local rows = {}
    for i, row in ipairs(self.list) do
        rows[i] = {}
        for _, name in ipairs(COLUMNS) do
            rows[i][name] = row[name]
        end
    end
    return json({dry = self.dry, basis = self.basis, beyond = self.beyond, rows = rows,
        peak = self.peak}, {"dry", "kind", "device", "label", "owner", "tag", "keep", "temp",
        "work", "live", "peak", "basis", "beyond", "budget", "enough", "rows"})
end)

--- Predicted beside measured: a line per step with both peaks and their difference. Returns the
-- text and the number of steps that differ.
function ledger.comparison(predicted, measured)
    local differing = ledger.diff(predicted, measured)
    local cells = {{"", "step", "line", "keep", "predicted", "measured", "difference"}}
    for i = 1, math.max(#predicted.list, #measured.list) do
        local p, m = predicted.list[i], measured.list[i]
        local row = m or p
        cells[#cells + 1] = {tostring(i), row.label, row.owner, bytes_text(row.keep),
            p and tostring(p.peak) or "no such step",
            m and tostring(m.peak) or "no such step", p and m and tostring(m.peak - p.peak) or "?"}
    end
    local lines = columns(cells, function(i) return i > 3 end)
    local form = "peak: predicted %d, measured %d bytes, difference %d; %d of %d steps differ"
    lines[#lines + 1] = form:format(predicted.peak, measured.peak,
        measured.peak - predicted.peak, #differing, math.max(#predicted.list, #measured.list))
    return table.concat(lines, "\n"), #differing
end

ledger.comparison = declared("ledger.comparison", "predicted: ledger, measured: ledger",
    ledger.comparison)
ledger.observe = declared("ledger.observe", "fn: callable", ledger.observe)
ledger.record = declared("ledger", "fn: callable", ledger.record)
ledger.dry_run = declared("dry_run", "fn: callable", ledger.dry_run)
ledger.bound = declared("bound", "bound: any, fn: callable", ledger.bound)

--- Calls fn(...) and returns the ledger of that, then what fn returned: mb.ledger.record.
declared.native "ledger(fn: callable, ...)"

return declared.module(ledger, "ledger", nil, function(_, ...)
    return ledger.record(...)
end)
