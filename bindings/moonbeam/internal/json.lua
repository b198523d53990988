--- JSON text of tables: json({peak = 8, rows = {...}}, {"peak", "rows"}). `order` names the keys
-- that come first in every object; the others follow by name. An empty table is a list. NaN and
-- infinity, which JSON does not have, are null; bytes that are no UTF-8 become question marks.

local ESCAPES = {["\\"] = "\\\\", ["\""] = "\\\"", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r"}

local function text_of(text)
    if not utf8.len(text) then
        text = text:gsub("[\128-\255]", "?")
    end
    return "\"" .. text:gsub("[%c\"\\]", function(c)
        return ESCAPES[c] or ("\\u%04x"):format(c:byte())
    end) .. "\""
end

local function encode(value, places)
    if type(value) == "string" then
        return text_of(value)
    elseif type(value) ~= "table" then
        local finite = value == value and value ~= math.huge and value ~= -math.huge
        return math.type(value) == "float" and (finite and ("%.17g"):format(value) or "null")
            or tostring(value)
    end
    local parts, keys = {}, {}
    for i, item in ipairs(value) do
        parts[i] = encode(item, places)
    end
    for key in pairs(#parts == 0 and value or {}) do
        keys[#keys + 1] = key
    end
    if #keys == 0 then
        return "[" .. table.concat(parts, ",\n") .. "]"
    end
    table.sort(keys, function(a, b)
        local first, second = places[a] or math.huge, places[b] or math.huge
        return first < second or first == second and a < b
    end)
    for i, key in ipairs(keys) do
        parts[i] = text_of(key) .. ":" .. encode(value[key], places)
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

return function(value, order)
    local places = {}
    for i, key in ipairs(order) do
        places[key] = i
    end
    return encode(value, places)
end
