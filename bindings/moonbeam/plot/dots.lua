--- Points of color as text for a terminal: a letter is 2 x 4 points. Points of one color are
-- Braille dots or a full block; points of two colors are an upper and a lower half.

local raster = require "moonbeam.plot.raster"

local dots = {}

-- The bits of the Braille letters, by row and column.
local BITS <const> = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

-- The nearest of the 256 colors of terminals.
local function color_256(color)
    local r, g, b = raster.bytes(color):byte(1, 3)
    if math.max(r, g, b) - math.min(r, g, b) < 12 then
        local gray = (r + g + b) / 3
        return gray < 4 and 16 or gray > 248 and 231 or 232 + math.min(23, (gray - 3) // 10 | 0)
    end
    local function level(v)
        return v < 48 and 0 or v < 115 and 1 or (v - 35) // 40
    end
    return 16 + 36 * level(r) + 6 * level(g) + level(b)
end

--- The sequence that sets the color of letters (or, with `behind`, of what is behind them).
function dots.sequence(color, behind, full)
    if full then
        return ("\27[%d;2;%d;%d;%dm"):format(behind and 48 or 38, raster.bytes(color):byte(1, 3))
    end
    return ("\27[%d;5;%dm"):format(behind and 48 or 38, color_256(color))
end

-- The most frequent color of a list, or nil.
local function most_of(list, first, last)
    local count, best = {}, nil
    for i = first, last do
        local color = list[i]
        if color then
            count[color] = (count[color] or 0) + 1
            best = (not best or count[color] > count[best]) and color or best
        end
    end
    return best
end

-- A letter, its color and the color behind it, for a list of 8 points, rows from the top.
local function letter_of(points)
    local bits, colors, seen, set = 0, 0, {}, 0
    for i = 1, 8 do
        local color = points[i]
        if color then
            set = set + 1
            bits = bits | BITS[(i - 1) // 2 + 1][(i - 1) % 2 + 1]
            if not seen[color] then
                seen[color], colors = true, colors + 1
            end
        end
    end
    if colors == 0 then
        return " "
    elseif colors == 1 then
        return set == 8 and "█" or utf8.char(0x2800 + bits), (next(seen))
    end
    local upper, lower = most_of(points, 1, 4), most_of(points, 5, 8)
    if upper == lower then
        return "█", upper
    elseif not upper then
        return "▄", lower
    end
    return "▀", upper, lower
end

--- The text of a chart of columns x rows letters. `layout(metrics)` gives the shapes. color: false,
-- true (256 colors) or "full".
function dots.text(layout, columns, rows, color)
    local letters, ink = {}, {}
    local shapes = layout {width = 2 * columns, height = 4 * rows, letter_width = 2,
        letter_height = 4}
    local canvas = raster.drawn(shapes, 2 * columns, 4 * rows, {dash = 2, letters = function(s)
        local length = utf8.len(s.text)
        local at = math.floor(s.x / 2 + 0.5) - (s.anchor == "end" and length
            or s.anchor == "middle" and length // 2 or 0)
        local row = math.max(0, math.min(rows - 1, math.floor(s.y / 4)))
        at = math.max(0, math.min(at, columns - length))
        for _, code in utf8.codes(s.text) do
            if at < columns then
                letters[row * columns + at] = utf8.char(code)
                ink[row * columns + at] = s.color ~= "#222222" and s.color or nil
            end
            at = at + 1
        end
    end})
    local lines = {}
    for row = 0, rows - 1 do
        local parts, state = {}, ""
        for column = 0, columns - 1 do
            local letter, front = letters[row * columns + column], ink[row * columns + column]
            local behind
            if not letter then
                local points = {}
                for i = 0, 7 do
                    points[i + 1] = canvas[(4 * row + i // 2) * canvas.width + 2 * column + i % 2]
                end
                letter, front, behind = letter_of(points)
                front = front ~= "#222222" and front or nil
            end
            if color then
                local wanted = (front and dots.sequence(front, false, color == "full") or "")
                    .. (behind and dots.sequence(behind, true, color == "full") or "")
                if wanted ~= state then
                    parts[#parts + 1] = (state ~= "" and "\27[0m" or "") .. wanted
                    state = wanted
                end
            end
            parts[#parts + 1] = letter
        end
        lines[row + 1] = table.concat(parts):gsub("%s+$", "") .. (state ~= "" and "\27[0m" or "")
    end
    return table.concat(lines, "\n")
end

return dots
