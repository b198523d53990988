--- A picture of many slices side by side, with a value written on each.

local mb = require "moonbeam"

local contact_sheet = {}

local MOST_SIDE <const> = 4096 -- pixels
local LEAST_SLICE <const> = 96
local GAP <const> = 4

-- Letters of 3 x 5 points. Each digit is a row; its bits are the points from left to right.
local LETTERS = {["0"] = "75557", ["1"] = "26227", ["2"] = "71747", ["3"] = "71717",
    ["4"] = "55711", ["5"] = "74717", ["6"] = "74757", ["7"] = "71222", ["8"] = "75757",
    ["9"] = "75717", ["-"] = "00700", ["+"] = "02720", ["."] = "00002", ["e"] = "75746",
    ["_"] = "00007", [" "] = "00000", [","] = "00024", ["/"] = "11244"}
for i, rows in ipairs {"75755", "65656", "74447", "65556", "74747", "74744", "74557", "55755",
    "72227", "11157", "55655", "44447", "57755", "75555", "75557", "75744", "75571", "75655",
    "74717", "72222", "55557", "55552", "55775", "55255", "55222", "71247"} do
    LETTERS[string.char(96 + i)] = LETTERS[string.char(96 + i)] or rows
end

-- The rows of a line of text as strings of 0 and 255, each point `size` pixels wide and high.
local function lines_of(text, size)
    local lines = {}
    for row = 1, 5 do
        local points = {}
        for letter in text:lower():gmatch "." do
            local bits = tonumber((LETTERS[letter] or LETTERS["_"]):sub(row, row))
            for bit = 2, 0, -1 do
                points[#points + 1] = (bits >> bit & 1 == 1 and "\255" or "\0"):rep(size)
            end
            points[#points + 1] = ("\0"):rep(size)
        end
        for _ = 1, size do
            lines[#lines + 1] = table.concat(points)
        end
    end
    return lines
end

-- A slice as rows of gray bytes in the window {low, high}, using every `step`-th pixel; black in a
-- dry run.
local function gray_rows(slice, step, window)
    local rows = {}
    if slice.device.dry then
        for y = 1, slice.shape[1], step do
            rows[(y - 1) // step + 1] = ("\0"):rep((slice.shape[2] + step - 1) // step)
        end
        return rows
    end
    local values = slice:to_table()
    local scale = 255 / math.max(window[2] - window[1], 1e-30)
    for y = 1, #values, step do
        local row = {}
        for x = 1, #values[y], step do
            local value = (values[y][x] - window[1]) * scale
            value = value ~= value and 0 or math.max(0, math.min(255, value))
            row[#row + 1] = string.char(math.floor(value + 0.5))
        end
        rows[#rows + 1] = table.concat(row)
    end
    return rows
end

local function write_on(rows, text)
    local size = math.max(1, #rows[1] // 120)
    for i, line in ipairs(lines_of(text, size)) do
        local row = rows[i + GAP]
        if row then
            line = line:sub(1, math.max(0, #row - 2 * GAP))
            rows[i + GAP] = row:sub(1, GAP) .. line .. row:sub(GAP + #line + 1)
        end
    end
end

local function value_text(value)
    return type(value) == "number" and ("%.6g"):format(value) or tostring(value)
end

--- Writes the sheet of a stack (value, y, x) on the host as a PNG. `values` are written on the
-- slices. Pixels are skipped so that the sheet has at most 4096 pixels per side. Options:
-- overwrite, name (of the option with these values, for the legend), range ({black, white}).
function contact_sheet.save(path, stack, values, options)
    local count, ny, nx = table.unpack(stack.shape)
    local across = math.ceil(math.sqrt(count * ny / nx))
    local side = math.max(LEAST_SLICE, MOST_SIDE // math.max(across, math.ceil(count / across)))
    local step = math.max(1, math.ceil(math.max(ny, nx) / math.min(side, 1024)))
    local low, high = table.unpack(options.range or stack.device.dry and {0, 1}
        or {mb.view.window(stack)})
    local lines, blank = {}, nil
    for first = 1, count, across do
        local strip = {}
        for i = first, first + across - 1 do
            local rows
            if i <= count then
                local slice <close> = stack:view(i, mb.all, mb.all)
                rows = gray_rows(slice, step, {low, high})
                write_on(rows, value_text(values[i]))
                blank = blank or ("\0"):rep(#rows[1])
            end
            strip[#strip + 1] = rows or {}
        end
        for y = 1, #strip[1] do
            local parts = {}
            for i, rows in ipairs(strip) do
                parts[i] = rows[y] or blank
            end
            lines[#lines + 1] = table.concat(parts, ("\0"):rep(GAP))
        end
        for _ = 1, first + across <= count and GAP or 0 do
            lines[#lines + 1] = ("\0"):rep(#lines[1])
        end
    end
    local picture <close> = mb.from_string(table.concat(lines), {#lines, #lines[1]},
        {dtype = "u8", device = "host"})
    mb.view.save(path, picture, {overwrite = options.overwrite, range = {0, 255},
        legend = ("%s from %s to %s; gray from %.6g to %.6g"):format(options.name or "values",
            value_text(values[1]), value_text(values[count]), low, high)})
end

return contact_sheet
