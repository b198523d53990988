--- Pictures in a terminal: what it can show, asked from itself, and the bytes that show it. A
-- picture is {width, height, channels = 1 or 3, bytes = rows from the top}.

local core = require "moonbeam.core"
local dots = require "moonbeam.plot.dots"

local terminal = {}

-- Kitty's query for graphics, then the device attributes, which every terminal answers.
local QUERY <const> = "\27_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\27\\\27[c"
local SECONDS <const> = 1
local KITTY_CHUNK <const> = 4096
local GRAYS <const> = 64 -- of a sixel picture
local RAMP <const> = " .:-=+*#%@"

--- What the answer to the query says: "kitty", "sixel" or "blocks".
function terminal.read_answer(answer)
    if not answer then
        return "blocks"
    elseif answer:find("\27_Gi=31;OK", 1, true) then
        return "kitty"
    end
    for number in (answer:match "\27%[%?([%d;]+)c" or ""):gmatch "%d+" do
        if number == "4" then
            return "sixel"
        end
    end
    return "blocks"
end

local known

--- What the terminal shows: "kitty", "sixel", "blocks" or "text"; nil if the standard output is not
-- a terminal. The terminal is asked once. MOONBEAM_PICTURES says it without asking.
function terminal.protocol()
    local name = os.getenv "TERM" or "dumb"
    if not core.system.isatty "stdout" or name == "dumb" then
        return nil
    end
    known = known or os.getenv "MOONBEAM_PICTURES"
        or core.system.isatty "stdin" and terminal.read_answer(core.system.ask_terminal(QUERY,
            SECONDS)) or "blocks"
    return known
end

local ALPHABET <const> = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

--- Bytes in base 64.
function terminal.base64(bytes)
    local letters, parts = {}, {}
    for i = 0, 63 do
        letters[i] = ALPHABET:sub(i + 1, i + 1)
    end
    for i = 1, #bytes - 2, 3 do
        local a, b, c = bytes:byte(i, i + 2)
        local n = a << 16 | b << 8 | c
        parts[#parts + 1] = letters[n >> 18] .. letters[n >> 12 & 63] .. letters[n >> 6 & 63]
            .. letters[n & 63]
    end
    local rest = #bytes % 3
    if rest > 0 then
        local a, b = bytes:byte(#bytes - rest + 1, #bytes)
        local n = a << 16 | (b or 0) << 8
        parts[#parts + 1] = letters[n >> 18] .. letters[n >> 12 & 63]
            .. (rest == 2 and letters[n >> 6 & 63] or "=") .. "="
    end
    return table.concat(parts)
end

local function rgb_bytes(picture)
    return picture.channels == 3 and picture.bytes or picture.bytes:gsub(".", "%0%0%0")
end

local draw = {}

-- The graphics protocol of kitty, also of WezTerm, Ghostty and Konsole.
function draw.kitty(picture)
    local data, parts = terminal.base64(rgb_bytes(picture)), {}
    for first = 1, #data, KITTY_CHUNK do
        local more = first + KITTY_CHUNK <= #data and 1 or 0
        parts[#parts + 1] = ("\27_G%sm=%d;%s\27\\"):format(first == 1
            and ("a=T,f=24,q=2,s=%d,v=%d,"):format(picture.width, picture.height) or "", more,
            data:sub(first, first + KITTY_CHUNK - 1))
    end
    return table.concat(parts) .. "\n"
end

-- The number of the sixel color of a point, from 0.
local function sixel_color(picture, place)
    if picture.channels == 1 then
        return picture.bytes:byte(place + 1) * GRAYS // 256
    end
    local r, g, b = picture.bytes:byte(3 * place + 1, 3 * place + 3)
    return (r * 5 + 127) // 255 * 36 + (g * 5 + 127) // 255 * 6 + (b * 5 + 127) // 255
end

local function sixel_palette(channels)
    local parts = {}
    for i = 0, channels == 1 and GRAYS - 1 or 215 do
        local r, g, b = i // 36 * 20, i // 6 % 6 * 20, i % 6 * 20
        if channels == 1 then
            r = (i * 100 + (GRAYS - 1) // 2) // (GRAYS - 1)
            g, b = r, r
        end
        parts[#parts + 1] = ("#%d;2;%d;%d;%d"):format(i, r, g, b)
    end
    return table.concat(parts)
end

-- A run of equal sixels.
local function sixel_run(bits, count)
    local letter = string.char(63 + bits)
    return count > 3 and ("!%d%s"):format(count, letter) or letter:rep(count)
end

-- One line of six rows: for each color that occurs in it, its points.
local function sixel_band(picture, top)
    local columns, order = {}, {} -- by color: {column = bits}
    for dy = 0, math.min(5, picture.height - top - 1) do
        for x = 0, picture.width - 1 do
            local color = sixel_color(picture, (top + dy) * picture.width + x)
            if not columns[color] then
                columns[color] = {}
                order[#order + 1] = color
            end
            columns[color][x] = (columns[color][x] or 0) | 1 << dy
        end
    end
    table.sort(order)
    local parts = {}
    for i, color in ipairs(order) do
        local line, x = {"#" .. color}, 0
        while x < picture.width do
            local bits, first = columns[color][x] or 0, x
            while x < picture.width and (columns[color][x] or 0) == bits do
                x = x + 1
            end
            if bits > 0 or x < picture.width then
                line[#line + 1] = sixel_run(bits, x - first)
            end
        end
        parts[i] = table.concat(line)
    end
    return table.concat(parts, "$")
end

function draw.sixel(picture)
    local bands = {}
    for top = 0, picture.height - 1, 6 do
        bands[#bands + 1] = sixel_band(picture, top)
    end
    return ("\27P0;1q\"1;1;%d;%d%s%s\27\\\n"):format(picture.width, picture.height,
        sixel_palette(picture.channels), table.concat(bands, "-"))
end

local function color_at(picture, x, y)
    local place = (y * picture.width + x) * picture.channels
    local r, g, b = picture.bytes:byte(place + 1, place + picture.channels)
    return ("#%02x%02x%02x"):format(r, g or r, b or r)
end

-- Two points in each letter.
function draw.blocks(picture, colors)
    local known_sequences = {{}, {}}
    local function sequence(color, behind)
        local list = known_sequences[behind and 2 or 1]
        list[color] = list[color] or dots.sequence(color, behind, colors == "full")
        return list[color]
    end
    local lines = {}
    for y = 0, picture.height - 1, 2 do
        local parts, front, back = {}, nil, nil
        for x = 0, picture.width - 1 do
            local upper = sequence(color_at(picture, x, y))
            local lower = y + 1 < picture.height and sequence(color_at(picture, x, y + 1), true)
                or "\27[49m"
            parts[#parts + 1] = (upper ~= front and upper or "") .. (lower ~= back and lower or "")
                .. "▀"
            front, back = upper, lower
        end
        lines[#lines + 1] = table.concat(parts) .. "\27[0m"
    end
    return table.concat(lines, "\n") .. "\n"
end

-- Letters of a ramp, for terminals without colors.
function draw.text(picture)
    local lines = {}
    for y = 0, picture.height - 1, 2 do
        local parts = {}
        for x = 0, picture.width - 1 do
            local place = (y * picture.width + x) * picture.channels
            local bytes = {picture.bytes:byte(place + 1, place + picture.channels)}
            local gray = picture.channels == 1 and bytes[1]
                or (bytes[1] * 299 + bytes[2] * 587 + bytes[3] * 114) // 1000
            local at = gray * #RAMP // 256 + 1
            parts[x + 1] = RAMP:sub(at, at)
        end
        lines[#lines + 1] = (table.concat(parts):gsub("%s+$", ""))
    end
    return table.concat(lines, "\n") .. "\n"
end

--- The bytes that show a picture by a protocol; colors as output.colors tells them.
function terminal.text(picture, protocol, colors)
    if protocol == "blocks" and not colors then
        protocol = "text"
    end
    return draw[protocol](picture, colors)
end

--- The most pixels, {height, width}, that a protocol shows at a time in a terminal of {columns,
-- rows, width, height}.
function terminal.room(protocol, size)
    local columns, rows = math.max(size.columns - 1, 8), math.max(size.rows - 3, 4)
    if protocol == "blocks" or protocol == "text" then
        return 2 * rows, columns
    end
    local wide = size.width > 0 and size.width / size.columns or 8
    local high = size.height > 0 and size.height / size.rows or 16
    return math.floor(rows * high), math.floor(columns * wide)
end

return terminal
