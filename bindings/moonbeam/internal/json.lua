--- JSON text of tables: json({peak = 8, rows = {...}}, {"peak", "rows"}). `order` names the keys
-- that come first in every object; the others follow by name. An empty table is a list.

local ESCAPES = {["\\"] = "\\\\", ["\""] = "\\\"", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r"}

local function text_of(text)
    return "\"" .. text:gsub("[%c\"\\]", function(c)
        return ESCAPES[c] or ("\\u%04x"):format(c:byte())
    end) .. "\""
end

local function encode(value, places)
    if type(value) == "string" then
        return text_of(value)
    elseif type(value) ~= "table" then
        return math.type(value) == "float" and ("%.17g"):format(value) or tostring(value)
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
