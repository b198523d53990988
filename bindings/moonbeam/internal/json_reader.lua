--- Reads JSON text: read(text, options) -> the value, or nil and what is wrong. Objects and lists
-- are tables, null is false, whole numbers are integers where they fit; where they do not, they are
-- floats, or with the option `digits` tables: {digits (the number as text)}.

local DEEPEST <const>, LONGEST <const> = 64, 16 << 20

local ESCAPES = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\",
    ["/"] = "/"}
local WORDS = {["true"] = true, ["false"] = false, null = false, NaN = 0 / 0,
    Infinity = math.huge}

local function wrong(at, format, ...)
    error({at = at, text = format:format(...)}, 0)
end

local function skip(text, at)
    return text:match("^[ \t\r\n]*()", at)
end

-- The character of \uXXXX and what may follow it; the position after it.
local function unicode(text, at)
    local code = tonumber(text:match("^%x%x%x%x", at) or wrong(at, "\\u needs four digits"), 16)
    local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 4) or "", 16)
    if code >= 0xd800 and code < 0xdc00 and low and low >= 0xdc00 and low < 0xe000 then
        return utf8.char(0x10000 + (code - 0xd800 << 10) + low - 0xdc00), at + 10
    end
    return utf8.char(code), at + 4
end

-- The string whose first quote is before `at`.
local function string_at(text, at)
    local parts = {}
    while true do
        local plain, after = text:match('^([^"\\%c]*)()', at)
        parts[#parts + 1] = plain
        local mark = text:sub(after, after)
        if mark == '"' then
            return table.concat(parts), after + 1
        elseif mark ~= "\\" then
            wrong(after, "a string does not end")
        end
        local letter = text:sub(after + 1, after + 1)
        if letter == "u" then
            parts[#parts + 1], at = unicode(text, after + 2)
        else
            parts[#parts + 1] = ESCAPES[letter] or wrong(after, "there is no \\%s", letter)
            at = after + 2
        end
    end
end

local value_at
local keep_digits -- of the text that is being read

-- The members from `at` on, up to `closing`; `member` reads one into the table.
local function members(text, at, closing, member)
    local made = {}
    at = skip(text, at)
    if text:sub(at, at) == closing then
        return made, at + 1
    end
    while true do
        at = skip(text, member(made, skip(text, at)))
        local mark = text:sub(at, at)
        if mark == closing then
            return made, at + 1
        elseif mark ~= "," then
            wrong(at, "'%s' or a comma is missing", closing)
        end
        at = at + 1
    end
end

local function object_at(text, at, depth)
    return members(text, at, "}", function(made, from)
        if text:sub(from, from) ~= '"' then
            wrong(from, "a name is missing")
        end
        local name, after = string_at(text, from + 1)
        after = skip(text, after)
        if text:sub(after, after) ~= ":" then
            wrong(after, "':' is missing")
        end
        made[name], after = value_at(text, skip(text, after + 1), depth + 1)
        return after
    end)
end

local function list_at(text, at, depth)
    return members(text, at, "]", function(made, from)
        made[#made + 1], from = value_at(text, from, depth + 1)
        return from
    end)
end

function value_at(text, at, depth)
    local mark = text:sub(at, at)
    if depth > DEEPEST then
        wrong(at, "it is nested more than %d deep", DEEPEST)
    elseif mark == "{" then
        return object_at(text, at + 1, depth)
    elseif mark == "[" then
        return list_at(text, at + 1, depth)
    elseif mark == '"' then
        return string_at(text, at + 1)
    end
    local word, after = text:match("^([%w+%-.]+)()", at)
    if WORDS[word] ~= nil then
        return WORDS[word], after
    end
    local number = word and word:find "^%-?%d" and not word:find "[xX]" and tonumber(word)
    if keep_digits and math.type(number) == "float" and word:find "^%-?%d+$" then
        number = {digits = word}
    end
    return number or wrong(at, "a value is missing"), after
end

return function(text, options)
    if #text > LONGEST then
        return nil, ("it has %d bytes, more than %d"):format(#text, LONGEST)
    end
    keep_digits = options and options.digits
    local ok, value, after = pcall(value_at, text, skip(text, 1), 1)
    if ok then
        after = skip(text, after)
        if after <= #text then
            ok, value = false, {at = after, text = "something follows the value"}
        end
    elseif type(value) ~= "table" then
        error(value, 0)
    end
    if ok then
        return value
    end
    local _, line = text:sub(1, value.at):gsub("\n", "")
    return nil, ("line %d: %s"):format(line + 1, value.text)
end
