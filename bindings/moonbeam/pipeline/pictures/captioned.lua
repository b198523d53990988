--- Pictures of slices with a scale bar and a caption below: what the numbers of a picture mean, and
-- what was done. One slice keeps its pixels; several are side by side, with a label on each.

local mb = require "moonbeam"
local font = require "moonbeam.plot.font"
local surface = require "moonbeam.internal.command_line.surface"

local captioned = {}

local GAP <const>, MARGIN <const> = 4, 6 -- pixels
local LEAST_WIDTH <const> = 264 -- so that captions of small slices have few lines
local LETTER_PART <const> = 640 -- a point of a letter is a pixel for so many columns
local LABEL_PART <const> = 160 -- the same of a label, for so many columns of its slice
local BAR_PART <const> = 4 -- of the width, at most
local LEAST_SLICE <const> = 96 -- pixels that are left of slices of which some are skipped

--- The longest of 1, 2, 5, 10, ... that is no more than `most`.
function captioned.round_length(most)
    local power = 10.0 ^ math.floor(math.log(most, 10) + 1e-9)
    for _, digit in ipairs {5, 2, 1} do
        if digit * power <= most * (1 + 1e-9) then
            return digit * power
        end
    end
    return power
end

-- Lines of at most so many letters, broken between words.
local function wrapped(text, letters)
    local lines, line = {}, ""
    for word in text:gmatch "%S+" do
        if line ~= "" and utf8.len(line .. " " .. word, 1, -1, true) > letters then
            lines[#lines + 1], line = line, ""
        end
        line = line .. (line == "" and "" or " ") .. word
    end
    lines[#lines + 1] = line
    return lines
end

-- Points of a strip, set by place; as rows of bytes in one string.
local function strip_of(width, height, draw)
    local points = {}
    draw(function(x, y, w, h)
        for row = y, math.min(height, y + h) - 1 do
            for column = x, math.min(width, x + w) - 1 do
                points[row * width + column] = true
            end
        end
    end)
    local rows, dark = {}, ("\0"):rep(width)
    for y = 0, height - 1 do
        local row, any = {}, false
        for x = 0, width - 1 do
            local set = points[y * width + x]
            row[x + 1], any = set and "\255" or "\0", any or set
        end
        rows[y + 1] = any and table.concat(row) or dark
    end
    return table.concat(rows)
end

local function write(rect, text, left, top, size)
    font.points(text, function(x, y)
        rect(left + x * size, top + y * size, size, size)
    end)
end

-- The strip below: {height, draw}. `columns` of the picture are `each` long, in meters if `known`,
-- else in pixels. The line `window` is by itself, so that values do not decide how many lines there
-- are: a dry run does not know them.
local function strip(width, columns, each, known, caption, window)
    local size = math.max(1, width // LETTER_PART)
    local line_height = (font.HEIGHT + 3) * size
    local length = captioned.round_length(columns * each / BAR_PART)
    local bar = math.max(1, math.floor(length / each + 0.5))
    local label = known and surface.length(length) or ("%g px"):format(length)
    local lines = wrapped(caption, math.max(8, (width - 2 * MARGIN) // (font.WIDTH * size)))
    lines[#lines + 1] = window
    local height = 2 * MARGIN + 2 * line_height + #lines * line_height
    return height, function(rect)
        rect(MARGIN, MARGIN + 2 * size, bar, 2 * size)
        rect(MARGIN, MARGIN, size, 6 * size)
        rect(MARGIN + bar - size, MARGIN, size, 6 * size)
        write(rect, label, MARGIN, MARGIN + line_height, size)
        for i, line in ipairs(lines) do
            write(rect, line, MARGIN, MARGIN + (i + 1) * line_height, size)
        end
    end
end

-- The least value that is white where `black` is black: letters are seen also on a slice without
-- contrast, which is black.
local function brighter(black)
    return black + math.max(1e-30, math.abs(black) * 1e-4)
end

-- Bytes 0 and 255 as the darkest and the brightest value, in a part of the canvas.
local function put_bytes(canvas, text, place, window)
    local bytes <close> = mb.from_string(text, {place[3], place[4]}, {dtype = "u8",
        device = "host"})
    local part <close> = canvas:view({place[1] + 1, place[1] + place[3]},
        {place[2] + 1, place[2] + place[4]})
    mb.convert(bytes, "f32", {out = part})
    mb.binary(part, "mul", {scalar = (window[2] - window[1]) / 255, out = part})
    mb.binary(part, "add", {scalar = window[1], out = part})
end

-- Where the slices are: {across, width, height}.
local function grid(count, ny, nx)
    local across = math.max(1, math.ceil(math.sqrt(count * ny / nx) - 1e-9))
    across = math.min(count, across)
    local down = math.ceil(count / across)
    return {across = across, width = across * nx + (across - 1) * GAP,
        height = down * ny + (down - 1) * GAP}
end

-- Every how many pixels slices are shown so that the sides of their picture are at most `most`.
local function step_of(count, ny, nx, most)
    local cells = grid(count, ny, nx)
    return math.max(1, math.min(math.ceil(math.max(cells.width, cells.height) / most),
        math.max(ny, nx) // LEAST_SLICE))
end

--- Writes slices (count, y, x) of the host as a PNG. options: labels (of each slice), range
-- ({black, white}), or percentiles for it; gamma; pixel_size (m), caption, stretch (a whole number:
-- each row becomes so many), every (they have every so many pixels of what they show), most (pixels
-- are skipped so that the sides have about so many), overwrite. Returns black and white.
function captioned.save(path, slices, options)
    local count, ny, nx = table.unpack(slices.shape)
    local stretch = options.stretch or 1
    local step = options.most and step_of(count, ny, nx, options.most) or 1
    local column = (options.pixel_size or 1) * (options.every or 1) * step
    ny, nx = (ny + step - 1) // step, (nx + step - 1) // step
    local cells = grid(count, ny * stretch, nx)
    local width = math.max(cells.width, LEAST_WIDTH)
    local window = options.range
    if not window then
        window = mb.device.dry() and {0, 1} or {mb.view.window(slices, options.percentiles)}
        window[2] = math.max(window[2], brighter(window[1]))
    end
    local height, draw = strip(width, nx, column, options.pixel_size, options.caption,
        ("black %.4g, white %.4g%s"):format(window[1], window[2],
        options.gamma and (", gamma %g"):format(options.gamma) or ""))
    local canvas <close> = mb.full({cells.height + height, width}, window[1], {dtype = "f32",
        device = "host"})
    for i = 1, count do
        local top = (i - 1) // cells.across * (ny * stretch + GAP)
        local left = (i - 1) % cells.across * (nx + GAP)
        local slice <close> = slices:view(i, {1, slices.shape[2], step},
            {1, slices.shape[3], step})
        for k = 1, stretch do
            local place <close> = canvas:view({top + k, top + ny * stretch, stretch},
                {left + 1, left + nx})
            mb.convert(slice, "f32", {out = place})
        end
        local label = options.labels and options.labels[i]
        local size = math.max(1, nx // LABEL_PART)
        local across = label and size * (font.WIDTH * utf8.len(label) + 2) or nx
        local high = size * (font.HEIGHT + 2)
        if label and across < nx and high < ny * stretch then
            put_bytes(canvas, strip_of(across, high, function(rect)
                write(rect, label, size, size, size)
            end), {top + 1, left + 1, high, across}, window)
        end
    end
    put_bytes(canvas, strip_of(width, height, draw), {cells.height, 0, height, width}, window)
    mb.view.save(path, canvas, {overwrite = options.overwrite, range = window,
        gamma = options.gamma, legend = options.caption})
    return window[1], window[2]
end

return captioned
