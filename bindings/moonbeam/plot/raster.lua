--- Shapes of a chart (chart.lua) as points of color. A raster is {width, height, colors by place},
-- where place is y * width + x from 0; a point without color is background.

local font = require "moonbeam.plot.font"

local raster = {}

local function round(x)
    return math.floor(x + 0.5)
end

local function set(canvas, x, y, color)
    if x >= 0 and x < canvas.width and y >= 0 and y < canvas.height then
        canvas[y * canvas.width + x] = color
    end
end

local function rect(canvas, x, y, w, h, color)
    local left, right = math.max(0, round(x)), math.min(canvas.width, round(x + w)) - 1
    for row = math.max(0, round(y)), math.min(canvas.height, round(y + h)) - 1 do
        for column = left, math.max(left, right) do
            set(canvas, column, row, color)
        end
    end
end

local draw = {}

function draw.rect(canvas, s)
    rect(canvas, s.x, s.y, s.w, s.h, s.color)
end

function draw.columns(canvas, s)
    for i = 1, #s.low do
        if s.low[i] - s.high[i] > 0 then
            local top, bottom = round(s.high[i]), round(s.low[i])
            rect(canvas, s.x + (i - 1) * s.step, top, s.step, math.max(1, bottom - top), s.color)
        end
    end
end

local function segment(canvas, x0, y0, x1, y1, s, count)
    local steps = math.max(1, math.ceil(math.max(math.abs(x1 - x0), math.abs(y1 - y0))))
    for k = 0, steps do
        count = count + 1
        if not s.dashed or count // canvas.dash % 2 == 0 then
            local x, y = round(x0 + (x1 - x0) * k / steps), round(y0 + (y1 - y0) * k / steps)
            for dy = 0, canvas.pen - 1 do
                for dx = 0, canvas.pen - 1 do
                    set(canvas, x + dx, y + dy, s.color)
                end
            end
        end
    end
    return count
end

function draw.line(canvas, s)
    local points, count = s.points, 0
    if #points == 2 then
        segment(canvas, points[1], points[2], points[1], points[2], s, 0)
    end
    for i = 1, #points - 2, 2 do
        count = segment(canvas, points[i], points[i + 1], points[i + 2], points[i + 3], s, count)
    end
end

-- Text of points; a back end with letters of its own gives `letters`, which gets the shape.
function draw.text(canvas, s)
    if canvas.letters then
        return canvas.letters(s)
    end
    local size = canvas.letter
    local width = utf8.len(s.text) * font.WIDTH * size
    local left = round(s.x - (s.anchor == "end" and width or s.anchor == "middle" and width / 2
        or 0))
    local top = round(s.y - font.HEIGHT * size / 2)
    font.points(s.text, function(x, y)
        rect(canvas, left + x * size, top + y * size, size, size, s.color)
    end)
end

--- A raster with these shapes. options: pen (points), dash (points), letter (points of a dot of a
-- letter) or letters(shape).
function raster.drawn(shapes, width, height, options)
    local canvas = {width = width, height = height, pen = options.pen or 1,
        dash = options.dash or 3, letter = options.letter, letters = options.letters}
    for _, shape in ipairs(shapes) do
        draw[shape.kind](canvas, shape)
    end
    return canvas
end

--- The color "#rrggbb" as three bytes.
function raster.bytes(color)
    return (color:sub(2):gsub("%x%x", function(hex) return string.char(tonumber(hex, 16)) end))
end

--- The points as rows of three bytes each, in one string; background is white.
function raster.rgb(canvas)
    local known, rows, white = {}, {}, "\255\255\255"
    for y = 0, canvas.height - 1 do
        local row, first = {}, y * canvas.width
        for x = 0, canvas.width - 1 do
            local color = canvas[first + x]
            if color and not known[color] then
                known[color] = raster.bytes(color)
            end
            row[x + 1] = color and known[color] or white
        end
        rows[y + 1] = table.concat(row)
    end
    return table.concat(rows)
end

return raster
