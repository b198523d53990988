-- Two values for a message that says that they differ.

-- Where a long text begins to be shown before the first difference, and how much of it is shown.
local BEFORE <const>, LENGTH <const> = 20, 50

-- A number as people write it, to the last bit.
local function number_text(value)
    if math.type(value) == "integer" then
        return tostring(value)
    end
    for digits = 6, 17 do
        local text = ("%%.%dg"):format(digits):format(value)
        if tonumber(text) == value then
            return text
        end
    end
    return tostring(value)
end

local function plain(value)
    if type(value) == "number" then
        return number_text(value)
    elseif type(value) ~= "table" then
        return tostring(value)
    end
    local names, parts = {}, {}
    for name in pairs(value) do
        names[#names + 1] = name
    end
    table.sort(names, function(a, b)
        if type(a) == "number" and type(b) == "number" then
            return a < b
        end
        return tostring(a) < tostring(b)
    end)
    for i, name in ipairs(names) do
        parts[i] = (math.type(name) == "integer" and "" or plain(name) .. " = ")
            .. plain(value[name])
    end
    return "{" .. table.concat(parts, ", ") .. "}"
end

--- The texts of two values (nil: "nothing"): of long texts the part in which they differ. Strings
-- are in quotes.
return function(a, b)
    local values = {a, b}
    local texts, at = {plain(a), plain(b)}, 1
    while at <= #texts[1] and texts[1]:byte(at) == texts[2]:byte(at) do
        at = at + 1
    end
    local from = math.max(1, at - BEFORE)
    for i, text in ipairs(texts) do
        if #text > BEFORE + LENGTH then
            text = (from > 1 and "..." or "") .. text:sub(from, from + LENGTH)
                .. (#text > from + LENGTH and "..." or "")
        end
        text = text:gsub("%s+", " ")
        texts[i] = values[i] == nil and "nothing"
            or type(values[i]) == "string" and ("'%s'"):format(text) or text
    end
    return texts[1], texts[2]
end
