--- A chart of the memory of a planned run.

local fail = require "moonbeam.internal.fail"
local mb = require "moonbeam"
local output = require "moonbeam.plot.output"
local dry_work = require "moonbeam.pipeline.planning.dry_work"
local timeline = require "moonbeam.pool.timeline"

local memory_picture = {}

-- Where events lie in the picture: a part of the work with n events is as wide as the root of n, so
-- that the many small events of a search do not hide the rest.
local function edges_of(events)
    local counts, edges = {}, {0}
    for _, event in ipairs(events) do
        counts[event.part] = (counts[event.part] or 0) + 1
    end
    for i, event in ipairs(events) do
        edges[i + 1] = edges[i] + 1 / math.sqrt(counts[event.part])
    end
    return edges
end

--- Returns a chart of what a plan takes on its first device, over its allocations and frees,
-- stacked by step; the dashed line is what is available.
function memory_picture.chart(made)
    local events, device = dry_work.events(made), made.job.devices[1]
    if #events == 0 then
        fail("argument", "pipeline", "png", "the plan allocates nothing")
    end
    local live = mb.pool.stats(device).live
    local chart = timeline.chart(events, "tag", "events", made.job.available[device.id] + live)
    chart.edges = edges_of(events)
    chart.x = {label = "the work in its order", form = "none"}
    chart.marks[1][1] = (chart.edges[chart.at] + chart.edges[chart.at + 1]) / 2
    chart.title = ("planned memory on %s: %d bytes at most"):format(device.id, chart.peak - live)
    return chart
end

--- Writes such a chart as FILE.png or FILE.svg. Options: overwrite.
function memory_picture.save(path, chart, options)
    output.put(chart, {file = path, overwrite = options and options.overwrite})
end

return memory_picture
