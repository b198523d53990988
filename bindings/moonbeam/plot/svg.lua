--- Shapes of a chart (chart.lua) as an SVG file.

local svg = {}

local METRICS <const> = {width = 900, height = 420, letter_width = 7.3, letter_height = 13,
    grid = true}

local function escaped(text)
    return (text:gsub("[&<>\"]", {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
        ['"'] = "&quot;"}):gsub("%c", " "))
end

local function number(x)
    return (("%.2f"):format(x):gsub("0+$", ""):gsub("%.$", ""))
end

-- The outline of rectangles side by side: along the upper ends, and back along the lower ones.
local function outline(shape)
    local parts, count = {}, #shape.low
    local function corner(command, x, y)
        parts[#parts + 1] = command .. number(x) .. " " .. number(y)
    end
    local function along(list, first, last, by)
        for i = first, last, by do
            local left = shape.x + (by > 0 and i - 1 or i) * shape.step
            local right = shape.x + (by > 0 and i or i - 1) * shape.step
            if i == first or list[i - by] ~= list[i] then
                corner(#parts == 0 and "M" or "L", left, list[i])
            end
            if i == last or list[i + by] ~= list[i] then
                corner("L", right, list[i])
            end
        end
    end
    along(shape.high, 1, count, 1)
    along(shape.low, count, 1, -1)
    return table.concat(parts) .. "Z"
end

local draw = {}

function draw.rect(s)
    return ('<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>'):format(number(s.x),
        number(s.y), number(s.w), number(s.h), s.color)
end

function draw.columns(s)
    return ('<path d="%s" fill="%s"/>'):format(outline(s), s.color)
end

function draw.line(s)
    local points = {}
    for i = 1, #s.points, 2 do
        points[#points + 1] = number(s.points[i]) .. "," .. number(s.points[i + 1])
    end
    return ('<polyline points="%s" fill="none" stroke="%s" stroke-width="%s"%s/>'):format(
        table.concat(points, " "), s.color, s.color == "#cccccc" and "0.5" or "1.3",
        s.dashed and ' stroke-dasharray="5 4"' or "")
end

function draw.text(s)
    return ('<text x="%s" y="%s" text-anchor="%s" fill="%s">%s</text>'):format(number(s.x),
        number(s.y + 4), s.anchor, s.color, escaped(s.text))
end

--- The text of the file. `layout(metrics)` gives the shapes; width and height in pixels.
function svg.text(layout, width, height)
    local metrics = setmetatable({width = width, height = height}, {__index = METRICS})
    local lines = {('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
        .. 'viewBox="0 0 %d %d" font-family="monospace" font-size="12">'):format(metrics.width,
        metrics.height, metrics.width, metrics.height), '<rect width="100%" height="100%" '
        .. 'fill="white"/>'}
    for _, shape in ipairs(layout(metrics)) do
        lines[#lines + 1] = draw[shape.kind](shape)
    end
    lines[#lines + 1] = "</svg>\n"
    return table.concat(lines, "\n")
end

return svg
