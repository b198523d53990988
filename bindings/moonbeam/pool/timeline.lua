--- The memory of a pool over its latest events, as a chart: live bytes stacked by who took them,
-- the budget as a line, the peak marked.

local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local output = require "moonbeam.plot.output"

local timeline = {}

local MOST_BANDS <const> = 7

timeline.OPTIONS = declared.options(
    {"by", "choice", "what the bands are: source lines and operators, tags (mb.pool.tag), or the "
        .. "arrays' and the scratch's end of the pool", choices = {"owner", "tag", "end"},
        default = "owner"},
    {"over", "choice", "the axis: the events one after the other, or their times",
        choices = {"events", "time"}, default = "events"},
    {"device", "device", "whose pool", usual = "the default device"}, output.OPTIONS)

local function name_of(event, by)
    local name = event[by] or ""
    return name ~= "" and name or by == "tag" and "no tag" or "unknown"
end

-- The live bytes of each group after each event: {name = {bytes, ...}}. What was live before the
-- trace begins is a group of its own, from which frees of unknown blocks are taken.
local function groups_of(events, by)
    local now, owner, series = {}, {}, {}
    local first = events[1]
    local before = first.live - (first.action == "alloc" and first.bytes or 0)
        + (first.action == "free" and first.bytes or 0)
    now.before = before > 0 and before or nil
    for i, event in ipairs(events) do
        local name
        if event.action == "alloc" then
            name = name_of(event, by)
            owner[event.block] = name
            now[name] = (now[name] or 0) + event.bytes
        elseif event.action == "free" then
            name = owner[event.block] or "before"
            owner[event.block] = nil
            now[name] = (now[name] or 0) - event.bytes
        end
        for group, bytes in pairs(now) do
            series[group] = series[group] or {}
            series[group][i] = bytes
        end
    end
    return series
end

-- The bands: those with the highest peaks, the others as one, and `before` lowest.
local function bands_of(series, count)
    local list = {}
    for name, values in pairs(series) do
        local peak = 0
        for i = 1, count do
            values[i] = values[i] or 0
            peak = math.max(peak, values[i])
        end
        list[#list + 1] = {name = name, values = values, peak = name == "before" and math.huge
            or peak}
    end
    table.sort(list, function(a, b)
        if a.peak ~= b.peak then
            return a.peak > b.peak
        end
        return a.name < b.name
    end)
    local rest = {name = ("%d others"):format(#list - MOST_BANDS + 1), values = {}}
    for n = #list, MOST_BANDS, -1 do
        if #list == MOST_BANDS and n == MOST_BANDS and #rest.values == 0 then
            break
        end
        for i = 1, count do
            rest.values[i] = (rest.values[i] or 0) + list[n].values[i]
        end
        list[n] = nil
    end
    list[#list + 1] = #rest.values > 0 and rest or nil
    return list
end

--- The chart of events: bands, peak bytes, the number of the event with the peak.
function timeline.chart(events, by, over, budget)
    local bands = bands_of(groups_of(events, by), #events)
    local at, edges = 1, nil
    for i, event in ipairs(events) do
        at = event.live > events[at].live and i or at
    end
    if over == "time" then
        edges = {}
        for i, event in ipairs(events) do
            edges[i] = (event.ns - events[1].ns) * 1e-9
        end
        edges[#edges + 1] = edges[#edges] + math.max(1e-6, edges[#edges] * 0.02)
    end
    local bytes = core.device.format_bytes
    return {bands = bands, edges = edges, peak = events[at].live, at = at,
        y = {form = "bytes"}, x = {label = over == "time" and "seconds" or "allocations and frees"},
        levels = {{budget, "budget " .. bytes(budget)}},
        marks = {{edges and edges[at] or at - 0.5, events[at].live,
            ("peak %s, event %d: %s"):format(bytes(events[at].live), at, events[at].owner)}}}
end

--- Shows the memory of a pool over its latest events (up to 16384), oldest first.
function timeline.plot(options)
    if core.dry.on() then
        return output.put({}, options)
    end
    local events = core.pool.events(options.device)
    if #events == 0 then
        print "nothing was allocated yet"
        return
    end
    local budget = core.pool.stats(options.device).budget
    local chart = timeline.chart(events, options.by, options.over, budget)
    return output.put(chart, options, ("peak %s (%d bytes) at event %d of %d, by %s; budget %s; "
        .. "file = \"memory.svg\" draws it"):format(core.device.format_bytes(chart.peak),
        chart.peak, chart.at, #events, events[chart.at].owner, core.device.format_bytes(budget)))
end

return timeline
