--- Recipes as text: a list of steps with options, data only.
--
-- The parser knows Lua's tables, strings, numbers, booleans and comments, and nothing else. It
-- never runs what it reads, so a recipe from a stranger does no harm. Text, depth, entries, strings
-- and numbers have limits; time and memory grow only with the length of the text. Errors name the
-- file, the line and the column.

local core = require "moonbeam.core"
local fail = require "moonbeam.internal.fail"
local input_file = require "moonbeam.internal.files.input_file"

local recipe = {}

--- The limits: bytes of the text, depth of nested tables, number of values, bytes of a string,
-- characters of a number, values of a sweep.
recipe.LIMITS = {bytes = 1 << 20, depth = 8, values = 100000, string = 4096, number = 64,
    sweep = 10000}

-- ---- places in the text ----

-- The line and column (in characters) of a byte of the text.
local function place_of(text, position)
    local line, start = 1, 1
    while true do
        local ending = text:find("\n", start, true)
        if not ending or ending >= position then
            break
        end
        line, start = line + 1, ending + 1
    end
    local before = text:sub(start, position - 1)
    return line, (utf8.len(before) or #before) + 1
end

local function refuse(s, position, format, ...)
    local line, column = place_of(s.text, position)
    fail("argument", "recipe", nil, "%s:%d:%d: %s", s.where, line, column, format:format(...))
end

-- The text at a position, for a message.
local function shown(s, position)
    local word = s.text:match("^[%w_.]+", position) or s.text:match("^[%g\128-\255]", position)
    if not word then
        return position > #s.text and "the end of the text" or "a control character"
    end
    local length = utf8.offset(s.text, 2, position)
    word = #word == 1 and s.text:sub(position, length - 1) or word
    return ("'%s'"):format(#word > 40 and word:sub(1, 40) .. "..." or word)
end

-- ---- words ----

-- Moves to the next character that is neither space nor comment.
local function skip(s)
    local text, position = s.text, s.position
    while true do
        position = text:find("[^ \t\r\n\v\f]", position) or #text + 1
        if text:sub(position, position + 1) ~= "--" then
            break
        end
        local level = text:match("^%[(=*)%[", position + 2)
        if level then
            local _, ending = text:find("]" .. level .. "]", position + 4 + #level, true)
            if not ending then
                refuse(s, position, "this comment has no end; close it with ]%s]", level)
            end
            position = ending + 1
        else
            position = text:find("\n", position, true) or #text + 1
        end
    end
    s.position = position
    return position
end

local ESCAPES = {a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v",
    ["\\"] = "\\", ['"'] = '"', ["'"] = "'", ["\n"] = "\n"}

-- The character of an escape sequence, and the position after it.
local function escape(s, position)
    local text = s.text
    local letter = text:sub(position + 1, position + 1)
    if ESCAPES[letter] then
        return ESCAPES[letter], position + 2
    elseif letter == "z" then
        return "", text:find("[^ \t\r\n\v\f]", position + 2) or #text + 1
    end
    local hex = text:match("^x(%x%x)", position + 1)
    if hex then
        return string.char(tonumber(hex, 16)), position + 4
    end
    local code = text:match("^u{(%x+)}", position + 1)
    if code and #code <= 6 and tonumber(code, 16) <= 0x10FFFF then
        return utf8.char(tonumber(code, 16)), position + 4 + #code
    end
    local decimal = text:match("^%d%d?%d?", position + 1)
    if decimal and tonumber(decimal) <= 255 then
        return string.char(tonumber(decimal)), position + 1 + #decimal
    end
    refuse(s, position, "%s after a backslash is not an escape; write \\\\ for a backslash",
        shown(s, position + 1))
end

local function checked_string(s, start, value)
    if #value > recipe.LIMITS.string then
        refuse(s, start, "this string has %d bytes; %d is the most", #value, recipe.LIMITS.string)
    elseif value:find("\0", 1, true) or not utf8.len(value) then
        refuse(s, start, "this string is not UTF-8 text; its escapes make other bytes")
    end
    return value
end

local function quoted_string(s)
    local text, start = s.text, s.position
    local quote = text:sub(start, start)
    local parts, position = {}, start + 1
    while true do
        local stop = text:find("[\\\n" .. quote .. "]", position)
        local character = stop and text:sub(stop, stop)
        if not stop or character == "\n" then
            refuse(s, start, "this string has no end in its line; close it with %s", quote)
        end
        parts[#parts + 1] = text:sub(position, stop - 1)
        if character == quote then
            s.position = stop + 1
            return checked_string(s, start, table.concat(parts))
        end
        parts[#parts + 1], position = escape(s, stop)
    end
end

local function long_string(s, level)
    local start = s.position
    local from = start + 2 + #level
    local stop, ending = s.text:find("]" .. level .. "]", from, true)
    if not stop then
        refuse(s, start, "this string has no end; close it with ]%s]", level)
    end
    s.position = ending + 1
    return checked_string(s, start, (s.text:sub(from, stop - 1):gsub("^\r?\n", "")))
end

local function number(s)
    local text, start = s.text, s.position
    local token = text:match("^%-?[%w_.]+", start) or "-"
    if #token <= recipe.LIMITS.number
        and (token:find "^%-?[%d.]+[eE]$" or token:find "^%-?0[xX][%x.]+[pP]$") then
        token = token .. text:match("^[+-]?[%w_.]*", start + #token) -- the exponent and its sign
    end
    if #token > recipe.LIMITS.number then
        refuse(s, start, "this number has %d characters; %d is the most", #token,
            recipe.LIMITS.number)
    end
    local value = tonumber(token)
    if not value or #(token:match("^%-?0[xX]0*(%x+)$") or "") > 16 then
        refuse(s, start, "'%s' is not a number", token)
    elseif value ~= value or math.abs(value) == math.huge then
        refuse(s, start, "'%s' is larger than any number that can be computed with", token)
    end
    s.position = start + #token
    return value
end

-- ---- values ----

local WORDS = {["true"] = true, ["false"] = false}
local DATA_ONLY <const> = "a recipe is data and is never run"

local function word(s)
    local start = s.position
    local name = s.text:match("^[%a_][%w_]*", start)
    local after = s.text:match("^[%w_]*[ \t]*([(.:\"'{%[]?)", start)
    if WORDS[name] ~= nil and after == "" then
        s.position = start + #name
        return WORDS[name]
    elseif name == "nil" then
        refuse(s, start, "nil is not a value; omit the option")
    elseif name == "function" or after ~= "" then
        refuse(s, start, "%s: '%s' is not allowed here; write the value itself", DATA_ONLY, name)
    end
    name = #name > 40 and name:sub(1, 40) .. "..." or name
    refuse(s, start, "'%s' is not a value; write a string in quotes: \"%s\"", name, name)
end

local any_value

-- The name before "=" in a table, or nil: {name = 1, ["name"] = 1}.
local function key(s)
    local start = s.position
    local name, ending = s.text:match("^([%a_][%w_]*)()", start)
    if name then
        s.position = ending
        if s.text:find("^=[^=]", skip(s)) then
            s.position = s.position + 1
            return name
        end
        s.position = start
    elseif s.text:find("^%[[^%[=]", start) then
        s.position = start + 1
        skip(s)
        if not s.text:find("^[\"']", s.position) then
            refuse(s, start, "names of options are strings; omit [ ] in a list")
        end
        name = quoted_string(s)
        if s.text:sub(skip(s), s.position) ~= "]" then
            refuse(s, s.position, "expected ], got %s", shown(s, s.position))
        end
        s.position = s.position + 1
        if s.text:sub(skip(s), s.position) ~= "=" then
            refuse(s, s.position, "expected =, got %s", shown(s, s.position))
        end
        s.position = s.position + 1
        return name
    end
end

local function separator(s, opened)
    local character = s.text:sub(skip(s), s.position)
    if character == "," or character == ";" then
        s.position = s.position + 1
    elseif character == "" then
        refuse(s, opened, "this { has no }")
    elseif character:find "[-+*/^%%.<>=~&|#]" then
        refuse(s, s.position, "%s: '%s' computes something; write the result", DATA_ONLY,
            character)
    elseif character ~= "}" then
        refuse(s, s.position, "expected , or }, got %s", shown(s, s.position))
    end
end

local function table_of(s)
    local opened, values, places = s.position, {}, {}
    s.depth = s.depth + 1
    if s.depth > recipe.LIMITS.depth then
        refuse(s, opened, "tables are nested more than %d deep", recipe.LIMITS.depth)
    end
    s.position = opened + 1
    while s.text:sub(skip(s), s.position) ~= "}" do
        local start = s.position
        local name = key(s)
        if name and values[name] ~= nil then
            refuse(s, start, "'%s' is given twice; remove one", name)
        end
        skip(s)
        local value, inner = any_value(s)
        if name then
            values[name] = value
        else
            values[#values + 1], places[#places + 1] = value, {at = start, places = inner}
        end
        separator(s, opened)
    end
    s.position, s.depth = s.position + 1, s.depth - 1
    return values, places
end

function any_value(s)
    s.values = s.values + 1
    if s.values > recipe.LIMITS.values then
        refuse(s, s.position, "there are more than %d values; put long lists into a file",
            recipe.LIMITS.values)
    end
    local character = s.text:sub(s.position, s.position)
    if character == "{" then
        return table_of(s)
    elseif character == '"' or character == "'" then
        return quoted_string(s)
    elseif character:find "[%d.-]" then
        return number(s)
    elseif character:find "[%a_]" then
        return word(s)
    end
    local level = s.text:match("^%[(=*)%[", s.position)
    if level then
        return long_string(s, level)
    end
    refuse(s, s.position, "%s is not allowed here; give a string, a number, true, false or a table",
        shown(s, s.position))
end

-- ---- recipes ----

--- What is wrong with an entry of a recipe, or nil. An entry is a name or {name, option = value,
-- ...}.
function recipe.problem(entry)
    if type(entry) == "string" then
        return nil
    elseif type(entry) ~= "table" then
        return ("a step is a name or {name, option = value}, not the %s %s"):format(type(entry),
            tostring(entry))
    elseif type(entry[1]) ~= "string" then
        return "a step begins with its name: {\"fbp\", filter = \"hann\"}"
    end
    for name in pairs(entry) do
        if name ~= 1 and type(name) ~= "string" then
            return ("the options of step '%s' must have names: {\"%s\", name = value}"):format(
                core.error.printable(entry[1]), core.error.printable(entry[1]))
        elseif type(entry[name]) == "table" and getmetatable(entry[name]) then
            return ("option '%s' of step '%s' is a table with a metatable; give a plain table")
                :format(core.error.printable(tostring(name)), core.error.printable(entry[1]))
        end
    end
end

local function start(text, where)
    if type(text) ~= "string" then
        fail("argument", "recipe", "text", "text must be a string, not a %s", type(text))
    end
    local s = {text = text, where = core.error.printable(where or "recipe"), position = 1,
        depth = 0, values = 0}
    if #text > recipe.LIMITS.bytes then
        fail("argument", "recipe", nil, "%s has %d bytes; a recipe has at most %d", s.where, #text,
            recipe.LIMITS.bytes)
    end
    local zero = text:find("\0", 1, true)
    if zero then
        refuse(s, zero, "this is a zero byte; a recipe is text")
    end
    local _, wrong = utf8.len(text)
    if wrong then
        refuse(s, wrong, "this is not UTF-8 text; save the recipe as UTF-8")
    end
    return s
end

--- The entries of a recipe, as written: a list of names and {name, option = value, ...}. `where`
-- is the name of the text in messages.
-- Errors: argument, with line and column.
function recipe.parse(text, where)
    local s = start(text, where)
    s.position = text:find("^\xEF\xBB\xBF") and 4 or 1 -- a byte-order mark
    skip(s)
    if text:find("^return%f[^%w_]", s.position) then
        s.position = s.position + 6
        skip(s)
    end
    local opened = s.position
    if text:sub(opened, opened) ~= "{" then
        refuse(s, opened, "expected one list of steps, { ... }, got %s; a recipe is never "
            .. "run", shown(s, opened))
    end
    local list, places = table_of(s)
    if text:sub(skip(s), s.position) == ";" then
        s.position = s.position + 1
    end
    if skip(s) <= #text then
        refuse(s, s.position, "%s follows the end of the recipe", shown(s, s.position))
    end
    local name = next(list, #list > 0 and #list or nil)
    if name then
        refuse(s, opened, "'%s' is outside a step; a recipe is a list: {\"%s\", ...}",
            core.error.printable(tostring(name)), core.error.printable(tostring(name)))
    end
    for i, entry in ipairs(list) do
        local problem = recipe.problem(entry)
        if problem then
            refuse(s, places[i].at, "%s", problem)
        end
    end
    return list
end

--- The entries of a recipe in a file, and its text.
-- Errors: argument, io.
function recipe.read(path)
    if type(path) ~= "string" then
        fail("argument", "recipe", "path", "path must be a string, not a %s", type(path))
    end
    local facts = core.system.stat(path)
    local name = core.error.printable(path)
    if not facts then
        fail("io", "recipe", "path", "there is no file '%s'", name)
    elseif facts.kind ~= "file" then
        fail("io", "recipe", "path", "'%s' is not an ordinary file", name)
    elseif facts.bytes > recipe.LIMITS.bytes then
        fail("argument", "recipe", "path", "'%s' has %d bytes; a recipe has at most %d", name,
            facts.bytes, recipe.LIMITS.bytes)
    end
    local file <close>, problem = input_file.open(path)
    local text = file and (file:read(recipe.LIMITS.bytes + 1) or "")
    if not text then
        fail("io", "recipe", "path", "cannot read '%s': %s", name, problem or "it ended")
    end
    return recipe.parse(text, path), text
end

--- A value given on the command line: parsed as in a recipe, or otherwise the text itself.
function recipe.value(text)
    local s = start(text, "value")
    local ok, value = pcall(function()
        skip(s)
        local read = any_value(s)
        return skip(s) > #text and {read} or nil
    end)
    if ok and value then
        return value[1]
    elseif text:find("^[%s]*[{\"']") then
        recipe.parse("{{'value', value = " .. text .. "}}", "value") -- says what is wrong
    end
    return text
end

-- The parts of a text between its commas, but for those inside of braces.
local function parts_of(text)
    local parts, depth, from = {}, 0, 1
    for at, sign in (text .. ","):gmatch "()([{},])" do
        depth = depth + (sign == "{" and 1 or sign == "}" and -1 or 0)
        if sign == "," and (depth <= 0 or at > #text) then
            local part = text:sub(from, at - 1):match "^%s*(.-)%s*$"
            parts[#parts + 1], from = part ~= "" and part or nil, at + 1
        end
    end
    return parts
end

--- The values of a sweep: "290:302:0.5" (first, last, step), or values separated by commas.
function recipe.sweep(text)
    local first, last, step = text:match("^%s*([^:]+):([^:]+):([^:]+)$")
    local list = {}
    if first then
        first, last, step = tonumber(first), tonumber(last), tonumber(step)
        local count = first and last and step and (last - first) / step
        if not count or not (count >= 0 and count < recipe.LIMITS.sweep) then
            fail("argument", "recipe", "sweep", "the sweep '%s' is not FIRST:LAST:STEP with 1 to "
                .. "%d values", text, recipe.LIMITS.sweep)
        end
        for i = 0, math.floor(count + 1e-9) do
            list[i + 1] = first + i * step
        end
        return list
    end
    for i, part in ipairs(parts_of(text)) do
        list[i] = recipe.value(part)
    end
    if #list == 0 or #list > recipe.LIMITS.sweep then
        fail("argument", "recipe", "sweep", "a sweep has 1 to %d values, FIRST:LAST:STEP or "
            .. "separated by commas; '%s' has %d", recipe.LIMITS.sweep, text, #list)
    end
    return list
end

-- ---- text ----

local function number_text(value)
    if value ~= value or math.abs(value) == math.huge then
        fail("argument", "recipe", nil, "a recipe cannot hold the number %s", tostring(value))
    elseif math.type(value) == "integer" then
        return tostring(value)
    end
    local text
    for digits = 14, 17 do
        text = ("%." .. digits .. "g"):format(value)
        if tonumber(text) == value then
            break
        end
    end
    return text:find "[.e]" and text or text .. ".0"
end

local function string_text(value)
    if value:find("\0", 1, true) or not utf8.len(value) then
        fail("argument", "recipe", nil, "a recipe cannot hold the string '%s', which is not UTF-8 "
            .. "text", core.error.printable(value))
    end
    return '"' .. value:gsub('[\\"]', "\\%0"):gsub("\n", "\\n"):gsub("[%c\127]", function(control)
        return ("\\x%02x"):format(control:byte())
    end) .. '"'
end

local value_text

local RESERVED = {}
for name in ("and break do else elseif end false for function goto if in local nil not or repeat "
    .. "return then true until while"):gmatch "%a+" do
    RESERVED[name] = true
end

local function sorted_names(t)
    local names = {}
    for name in pairs(t) do
        if type(name) == "string" then
            names[#names + 1] = name
        elseif math.type(name) ~= "integer" or name < 1 or name > #t then
            fail("argument", "recipe", nil, "a recipe cannot hold a table with the key %s",
                tostring(name))
        end
    end
    table.sort(names)
    return names
end

-- The members of a table as texts: the list, then the named members, sorted.
local function members_text(t, depth)
    if depth > recipe.LIMITS.depth then
        fail("argument", "recipe", nil, "tables are nested more than %d deep",
            recipe.LIMITS.depth)
    end
    local parts = {}
    for i = 1, #t do
        parts[i] = value_text(t[i], depth)
    end
    for _, name in ipairs(sorted_names(t)) do
        local plain = name:find "^[%a_][%w_]*$" and not RESERVED[name]
        parts[#parts + 1] = ("%s = %s"):format(plain and name or "[" .. string_text(name) .. "]",
            value_text(t[name], depth))
    end
    return parts
end

function value_text(value, depth)
    local kind = type(value)
    if kind == "table" then
        return "{" .. table.concat(members_text(value, depth + 1), ", ") .. "}"
    elseif kind == "number" then
        return number_text(value)
    elseif kind == "boolean" then
        return tostring(value)
    elseif kind == "string" then
        return string_text(value)
    end
    fail("argument", "recipe", nil, "a recipe cannot hold a %s", kind)
end

--- One value as a recipe has it.
function recipe.value_text(value)
    return value_text(value, 0)
end

-- Parts separated by commas, in lines of at most 100 characters.
local function filled(parts, indent)
    local lines, line = {}, ""
    for i, part in ipairs(parts) do
        local more = part .. (i < #parts and "," or "")
        if line ~= "" and #indent + #line + 1 + #more > 98 then
            lines[#lines + 1], line = line, more
        else
            line = line == "" and more or line .. " " .. more
        end
    end
    lines[#lines + 1] = line
    return table.concat(lines, "\n" .. indent)
end

--- A recipe as text, one entry per step, that `parse` reads back as the same list.
function recipe.text(list)
    local lines = {}
    for i, entry in ipairs(list) do
        local problem = recipe.problem(entry)
        if problem then
            fail("argument", "recipe", nil, "entry %d: %s", i, problem)
        end
        lines[#lines + 1] = type(entry) == "string" and ("    %s,"):format(string_text(entry))
            or ("    {%s},"):format(filled(members_text(entry, 2), "        "))
    end
    return "{\n" .. table.concat(lines, "\n") .. (#lines > 0 and "\n" or "") .. "}\n"
end

return recipe
