--- The layout of a chart: from what is to be shown to shapes at places, which the back ends (svg,
-- raster, dots) draw. A place is {x, y} from the top left, in points, the unit of the back end.
--
-- A chart is {title, x = axis, y = axis, lines, bands, bars, levels, marks}:
--   axis    {label =, form =, low =, high =}; form as in scale.lua: with "log" the values are
--           logarithms
--   lines   {{x = list, y = list, name =}, ...}
--   bands   {{values = list, name =}, ...}: stacked on each other; sample i lies from x = i - 1 to
--           i, or from edges[i] to edges[i + 1]
--   bars    {values = list, edges = list}: a histogram
--   levels  {{value, text}, ...}: dashed lines across
--   marks   {{x, y, text}, ...}
-- Shapes: {kind = "rect", x, y, w, h, color}; {kind = "line", points = {x1, y1, x2, y2, ...},
-- color, dashed}; {kind = "columns", x, step, low = list, high = list, color}: rectangles side by
-- side from y = low[i] up to high[i]; {kind = "text", x, y, text, anchor, color}, whose y is the
-- middle of the text.

local scale = require "moonbeam.plot.scale"

local chart = {}

local COLORS <const> = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
    "#b0a000", "#888888"}
local INK, GRID, RED <const> = "#222222", "#cccccc", "#d02020"
local LONGEST_NAME <const> = 26

chart.INK, chart.RED = INK, RED

-- A text as UTF-8: of other bytes only those of ASCII.
local function readable(text)
    return utf8.len(text) and text or (text:gsub("[\128-\255]", "?"))
end

local function shortened(name)
    name = readable(name)
    return utf8.len(name) > LONGEST_NAME
        and "..." .. name:sub(utf8.offset(name, -(LONGEST_NAME - 3))) or name
end

local function color_of(i)
    return COLORS[(i - 1) % #COLORS + 1]
end

-- The sums of the bands at each sample.
local function totals_of(bands)
    local totals = {}
    for i = 1, #(bands[1] or {values = {}}).values do
        totals[i] = 0
        for _, band in ipairs(bands) do
            totals[i] = totals[i] + band.values[i]
        end
    end
    return totals
end

-- The ranges of both axes: {x0, x1, y0, y1}.
local function ranges(plot)
    local xs, ys = {}, {}
    for _, line in ipairs(plot.lines or {}) do
        xs[#xs + 1], ys[#ys + 1] = line.x, line.y
    end
    if plot.bands then
        local edges = plot.edges
        xs[#xs + 1] = edges and {edges[1], edges[#edges]} or {0, #plot.bands[1].values}
        ys[#ys + 1] = totals_of(plot.bands)
        ys[#ys + 1] = {0}
    end
    if plot.bars then
        xs[#xs + 1] = {plot.bars.edges[1], plot.bars.edges[#plot.bars.edges]}
        ys[#ys + 1] = plot.bars.values
        ys[#ys + 1] = {0}
    end
    local x0, x1 = scale.range(xs)
    local y0, y1 = scale.range(ys)
    if plot.bands or plot.bars then -- from 0, with room for the mark of the peak
        y0 = 0
        y1 = y1 * 1.12
    end
    for _, level in ipairs(plot.levels or {}) do
        if level[1] <= 3 * y1 then -- others are far beyond what the chart shows
            y1 = math.max(y1, level[1] * 1.05)
        end
    end
    local x, y = plot.x or {}, plot.y or {}
    return x.low or x0, x.high or x1, y.low or y0, y.high or y1
end

-- The shapes of the axes; the frame of the plot is {left, top, right, bottom}.
local function add_axes(shapes, plot, frame, metrics, place)
    local cw, ch = metrics.letter_width, metrics.letter_height
    local function add(shape)
        shapes[#shapes + 1] = shape
    end
    local values, texts = scale.ticks(frame.y0, frame.y1,
        math.max(2, (frame.bottom - frame.top) // (2.5 * ch)), (plot.y or {}).form)
    for i, value in ipairs(values) do
        local y = place.y(value)
        if metrics.grid then
            add {kind = "line", points = {frame.left, y, frame.right, y}, color = GRID}
        end
        add {kind = "text", x = frame.left - cw / 2, y = y, text = texts[i], anchor = "end",
            color = INK}
    end
    values, texts = scale.ticks(frame.x0, frame.x1,
        math.max(2, (frame.right - frame.left) // (10 * cw)), (plot.x or {}).form)
    for i, value in ipairs(values) do
        add {kind = "text", x = place.x(value), y = frame.bottom + ch, text = texts[i],
            anchor = "middle", color = INK}
    end
    add {kind = "line", points = {frame.left, frame.top, frame.left, frame.bottom, frame.right,
        frame.bottom}, color = INK}
    if plot.title then
        add {kind = "text", x = frame.left, y = ch, text = plot.title, anchor = "start",
            color = INK}
    end
    if plot.x and plot.x.label then
        add {kind = "text", x = (frame.left + frame.right) / 2, y = frame.bottom + 2 * ch + ch / 4,
            text = plot.x.label, anchor = "middle", color = INK}
    end
end

-- Stacked bands. Each column of points shows of its samples the one with the largest sum, so that
-- no peak is lost.
local function add_bands(shapes, plot, frame, _, place)
    local totals, columns = totals_of(plot.bands), {}
    local count = math.max(1, math.floor(frame.right - frame.left))
    local edges, sample = plot.edges, 1
    local function edge(i)
        return edges and edges[i] or i - 1
    end
    for column = 1, count do
        local first = frame.x0 + (column - 1) / count * (frame.x1 - frame.x0)
        local last = frame.x0 + column / count * (frame.x1 - frame.x0)
        while sample < #totals and edge(sample + 1) <= first do
            sample = sample + 1
        end
        local best, i = sample, sample + 1
        while i <= #totals and edge(i) < last do
            best = totals[i] > totals[best] and i or best
            i = i + 1
        end
        columns[column] = best
    end
    local base = {}
    for number, band in ipairs(plot.bands) do
        local low, high = {}, {}
        for column, best in ipairs(columns) do
            local from = base[column] or 0
            base[column] = from + (band.values[best] or 0)
            low[column], high[column] = place.y(from), place.y(base[column])
        end
        shapes[#shapes + 1] = {kind = "columns", x = frame.left,
            step = (frame.right - frame.left) / count, low = low, high = high,
            color = band.color or color_of(number)}
    end
end

local function add_bars(shapes, plot, frame, _, place)
    local values, edges = plot.bars.values, plot.bars.edges
    for i, value in ipairs(values) do
        local left, right = place.x(edges[i]), place.x(edges[i + 1])
        local top = place.y(math.min(value, frame.y1))
        if value > frame.y0 then
            shapes[#shapes + 1] = {kind = "rect", x = left, y = top, h = frame.bottom - top,
                w = math.max(right - left, 1), color = COLORS[1]}
        end
    end
end

local function add_lines(shapes, plot, frame, _, place)
    for number, line in ipairs(plot.lines) do
        local points, color = {}, line.color or color_of(number)
        local function finish()
            if #points > 0 then
                shapes[#shapes + 1] = {kind = "line", points = points, color = color}
            end
            points = {}
        end
        for i, y in ipairs(line.y) do
            local x = line.x[i]
            if y ~= y or x ~= x or math.abs(y) == math.huge or math.abs(x) == math.huge then
                finish() -- a gap
            else
                points[#points + 1], points[#points + 2] = place.x(x),
                    place.y(math.max(frame.y0, math.min(frame.y1, y)))
            end
        end
        finish()
    end
end

local function add_marks(shapes, plot, frame, metrics, place)
    local cw, ch = metrics.letter_width, metrics.letter_height
    for _, level in ipairs(plot.levels or {}) do
        local y = place.y(math.min(level[1], frame.y1))
        local beyond = level[1] > frame.y1
        shapes[#shapes + 1] = {kind = "line", points = {frame.left, y, frame.right, y}, color = RED,
            dashed = true}
        shapes[#shapes + 1] = {kind = "text", x = frame.right, anchor = "end", color = RED,
            y = beyond and frame.top - 0.7 * ch or y - 0.8 * ch,
            text = level[2] .. (beyond and ", beyond the chart" or "")}
    end
    for _, mark in ipairs(plot.marks or {}) do
        local x, y = place.x(mark[1]), place.y(mark[2])
        local room = math.max(1, math.floor((frame.right - frame.left) / cw) - 2)
        local text = #mark[3] <= room and mark[3] or mark[3]:sub(1, math.max(1, room - 3)) .. "..."
        local right = x + (#text + 1) * cw < frame.right
        local left = not right and x - (#text + 1) * cw > frame.left
        shapes[#shapes + 1] = {kind = "line", points = {x, frame.bottom, x, y}, color = RED,
            dashed = true}
        shapes[#shapes + 1] = {kind = "text", y = y - ch * 0.7, text = text, color = RED,
            x = right and x + cw / 2 or left and x - cw / 2 or frame.right,
            anchor = right and "start" or "end"}
    end
end

local function add_legend(shapes, names, left, top, metrics)
    local cw, ch = metrics.letter_width, metrics.letter_height
    for i, entry in ipairs(names) do
        local y = top + (i - 0.5) * (metrics.grid and 1.5 or 1) * ch
        shapes[#shapes + 1] = {kind = "rect", x = left, y = y - ch / 2, w = 1.5 * cw, h = ch,
            color = entry.color}
        shapes[#shapes + 1] = {kind = "text", x = left + 2 * cw, y = y, text = entry.name,
            anchor = "start", color = INK}
    end
end

local function legend_of(plot)
    local names = {}
    local list = plot.bands or plot.lines or {}
    for i = #list, 1, -1 do -- the uppermost band first
        local n = plot.bands and i or #list + 1 - i
        if list[n].name then
            names[#names + 1] = {name = shortened(list[n].name),
                color = list[n].color or color_of(n)}
        end
    end
    return names
end

-- The space above the frame, in heights of letters: for the title, and below it for the text of a
-- level beyond the chart.
local function lines_above(plot, highest)
    local count = plot.title and 2 or 1
    for _, level in ipairs(plot.title and plot.levels or {}) do
        count = level[1] > highest and 3 or count
    end
    return count
end

--- The shapes of a chart for {width, height, letter_width, letter_height, grid}.
function chart.layout(plot, metrics)
    local cw, ch = metrics.letter_width, metrics.letter_height
    local x0, x1, y0, y1 = ranges(plot)
    local frame = {x0 = x0, x1 = x1, y0 = y0, y1 = y1, top = lines_above(plot, y1) * ch,
        bottom = metrics.height - (plot.x and plot.x.label and 3 or 2) * ch}
    local _, texts = scale.ticks(y0, y1, math.max(2, (frame.bottom - frame.top) // (2.5 * ch)),
        (plot.y or {}).form)
    local longest, names = 0, legend_of(plot)
    for _, text in ipairs(texts) do
        longest = math.max(longest, #text)
    end
    frame.left = math.ceil((longest + 1) * cw)
    longest = 0
    for _, entry in ipairs(names) do
        longest = math.max(longest, #entry.name)
    end
    frame.right = metrics.width - (longest > 0 and (longest + 4) * cw or 2 * cw)
    local place = {
        x = function(value)
            return frame.left + (value - x0) / (x1 - x0) * (frame.right - frame.left)
        end,
        y = function(value)
            return frame.bottom - (value - y0) / (y1 - y0) * (frame.bottom - frame.top)
        end,
    }
    local shapes = {}
    for _, part in ipairs {{"bands", add_bands}, {"bars", add_bars}} do
        if plot[part[1]] then
            part[2](shapes, plot, frame, metrics, place)
        end
    end
    add_axes(shapes, plot, frame, metrics, place)
    if plot.lines then
        add_lines(shapes, plot, frame, metrics, place)
    end
    add_marks(shapes, plot, frame, metrics, place)
    add_legend(shapes, names, frame.right + cw, frame.top, metrics)
    for _, shape in ipairs(shapes) do
        shape.text = shape.text and readable(shape.text)
    end
    return shapes
end

return chart
