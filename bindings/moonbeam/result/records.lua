-- Lists of values as lines of text, and back: the records of a journal. Numbers are exact (floats
-- in hexadecimal), strings may hold any bytes, tables any of these. The parser reads data only.

local records = {}

local function text_of(value)
    local kind = math.type(value) or type(value)
    if kind == "integer" or kind == "boolean" then
        return tostring(value)
    elseif kind == "float" then
        return value == value and math.abs(value) < math.huge and ("%a"):format(value)
            or value ~= value and "nan" or value > 0 and "inf" or "-inf"
    elseif kind == "string" then
        return '"' .. value:gsub('[%c"\\]', function(character)
            return ("\\%03d"):format(character:byte())
        end) .. '"'
    elseif kind ~= "table" then
        return nil -- a function, a userdata: nothing that a later process could have
    end
    local parts, names = {}, {}
    for name in pairs(value) do
        names[#names + 1] = name
    end
    table.sort(names, function(a, b)
        if math.type(a) == "integer" and math.type(b) == "integer" then
            return a < b
        end
        return tostring(a) < tostring(b)
    end)
    for _, name in ipairs(names) do
        local key, text = text_of(name), text_of(value[name])
        parts[#parts + 1] = key and text and key .. "=" .. text
    end
    return "{" .. table.concat(parts, " ") .. "}"
end

--- The line of a list.
function records.text(list)
    local parts = {}
    for i, value in ipairs(list) do
        parts[i] = text_of(value)
    end
    return table.concat(parts, " ")
end

local WORDS = {["true"] = true, ["false"] = false, nan = 0 / 0, inf = math.huge,
    ["-inf"] = -math.huge}

local value_at

-- The table that begins at a position; nil where it is none.
local function table_at(line, position)
    local made = {}
    while line:sub(position, position) ~= "}" do
        local key, after = value_at(line, position)
        if key == nil or line:sub(after, after) ~= "=" then
            return nil
        end
        made[key], position = value_at(line, after + 1)
        if not position then
            return nil
        end
        position = line:match("^ ?()", position)
    end
    return made, position + 1
end

-- The value at a position, and the position after it; nil where there is none.
function value_at(line, position)
    if line:find("^{", position) then
        return table_at(line, position + 1)
    end
    local text, ending = line:match('^"([^"]*)"()', position)
    if text then
        return text:gsub("\\(%d%d%d)", function(code)
            return string.char(tonumber(code) & 255)
        end), ending
    end
    text, ending = line:match("^([^ ={}\"]+)()", position)
    if WORDS[text] ~= nil then
        return WORDS[text], ending
    end
    return tonumber(text or ""), ending
end

--- The list of a line, or nil where the line is none.
function records.list(line)
    local list, position = {}, 1
    while position <= #line do
        local value, after = value_at(line, position)
        if value == nil or not after then
            return nil
        end
        list[#list + 1], position = value, line:match("^ ?()", after)
    end
    return list
end

return records
