--- The part of YAML that process lists use: mappings and lists by indentation, short lists and
-- mappings in brackets, plain and quoted scalars, comments, and tags such as !Sweep.
--
-- What is not in that part (anchors, aliases, text over several lines, several documents) is
-- refused with its line. Time and memory grow with the length of the text only.

local imported = require "moonbeam.pipeline.imports.imported"

local yaml_text = {}

local MOST_DEPTH <const>, MOST_VALUES <const> = 16, 20000

--- The value `null`, which a table could not hold.
yaml_text.NULL = setmetatable({}, {__tostring = function() return "null" end})

local WORDS <const> = {["true"] = true, ["false"] = false, ["yes"] = true, ["no"] = false,
    ["null"] = yaml_text.NULL, ["~"] = yaml_text.NULL, [""] = yaml_text.NULL}

-- A line without its comment: a # at the beginning or after a blank, outside of quotes.
local function without_comment(text)
    local quote, at = nil, 1
    while at <= #text do
        local letter = text:sub(at, at)
        if quote then
            if letter == "\\" and quote == '"' then
                at = at + 1
            elseif letter == quote then
                quote = nil
            end
        elseif (letter == '"' or letter == "'") and text:find("^[%s%[{,:]", at - 1) then
            quote = letter
        elseif letter == "#" and (at == 1 or text:find("^%s", at - 1)) then
            return text:sub(1, at - 1)
        end
        at = at + 1
    end
    return text
end

-- The lines that say something: {number, indent, text}.
local function lines_of(text, where)
    local lines, number = {}, 0
    for line in (text .. "\n"):gmatch "([^\n]*)\n" do
        number = number + 1
        local bare = without_comment(line):match "^(.-)%s*$"
        local indent, rest = bare:match "^( *)(.*)$"
        if rest:find "^\t" then
            imported.refuse(where, number, "a line is indented by a tab; YAML has spaces")
        elseif rest == "..." or rest == "---" and #lines > 0 then
            imported.refuse(where, number, "a second document begins; one is read")
        elseif rest ~= "" and rest ~= "---" then
            lines[#lines + 1] = {number = number, indent = #indent, text = rest}
        end
    end
    return lines
end

local function count_value(s, line)
    s.values = s.values + 1
    if s.values > MOST_VALUES then
        imported.refuse(s.where, line, "there are more than %d values", MOST_VALUES)
    end
end

-- A scalar: a string in quotes, a number, a word, or the text itself.
local function scalar(s, text, line)
    count_value(s, line)
    local first = text:sub(1, 1)
    if first == '"' or first == "'" then
        local inner = text:match("^" .. first .. "(.*)" .. first .. "$")
        if not inner or #text < 2 or inner:find(first, 1, true) then
            imported.refuse(s.where, line, "'%.40s' is not a string in one pair of quotes", text)
        end
        return inner
    elseif first == "&" or first == "*" or first == "|" or first == ">" or first == "@"
        or first == "`" or first == "%" then
        imported.refuse(s.where, line, "'%.40s': this part of YAML is not read; write the value",
            text)
    end
    local word = WORDS[text:lower()]
    if word ~= nil then
        return word
    end
    return imported.number(text) or text
end

-- "[1, 2]" or "{a: 1}" from a position: the value and the position behind it.
local function in_brackets(s, text, at, line, depth)
    if depth > MOST_DEPTH then
        imported.refuse(s.where, line, "values are nested more than %d deep", MOST_DEPTH)
    end
    count_value(s, line)
    local list, close = {}, text:sub(at, at) == "[" and "]" or "}"
    at = text:find("%S", at + 1) or #text + 1
    while text:sub(at, at) ~= close do
        local key
        if close == "}" then
            local name, after = text:match("^([%w_.-]+)%s*:%s*()", at)
            if not name then
                imported.refuse(s.where, line, "'%.40s' is not key: value", text:sub(at))
            end
            key, at = name, after
        end
        local value
        if text:find("^[%[{]", at) then
            value, at = in_brackets(s, text, at, line, depth + 1)
        else
            local word, after = text:match("^([^,%[%]{}]*)()", at)
            value, at = scalar(s, word:match "^(.-)%s*$", line), after
        end
        list[key or #list + 1] = value
        at = text:find("%S", at) or #text + 1
        local sign = text:sub(at, at)
        if sign == "," then
            at = text:find("%S", at + 1) or #text + 1
        elseif sign ~= close then
            imported.refuse(s.where, line, "this %s is not closed in its line",
                close == "]" and "[" or "{")
        end
    end
    return list, at + 1
end

local block

-- The value behind "key:" or "-": in the line, or the block below with more indentation. A tag
-- makes it {tag = name, value = ...}.
local function value_of(s, text, line, indent, depth)
    local tag, rest = text:match "^!([%w_]+)%s*(.*)$"
    if tag then
        return {tag = tag, value = value_of(s, rest, line, indent, depth)}
    elseif text:find "^%${{.*}}$" then
        return text
    elseif text:find "^[%[{]" then
        local value, after = in_brackets(s, text, 1, line, depth)
        if after <= #text then
            imported.refuse(s.where, line, "'%.40s' follows the closing bracket",
                text:sub(after))
        end
        return value
    elseif text ~= "" then
        return scalar(s, text, line)
    end
    local next_line = s.lines[s.at]
    -- The items of a list may stand as far left as the key that they belong to.
    if next_line and (next_line.indent > indent
        or next_line.indent == indent and next_line.text:find "^%-%f[%s\0]"
            and not s.lines[s.at - 1].text:find "^%-%f[%s\0]") then
        return block(s, next_line.indent, depth + 1)
    end
    return yaml_text.NULL
end

local function key_of(text)
    local quoted, after = text:match "^\"([^\"]+)\"%s*:()"
    if not quoted then
        quoted, after = text:match "^'([^']+)'%s*:()"
    end
    local key, rest = quoted, quoted and text:sub(after)
    if not key then
        key, rest = text:match "^([^%s:\"'%[{][^:]*)%s*:(.*)$"
    end
    if key and (rest == "" or rest:find "^%s") then
        return key:match "^(.-)%s*$", rest:match "^%s*(.-)$"
    end
end

local function mapping(s, indent, depth)
    local map = {}
    while s.lines[s.at] and s.lines[s.at].indent == indent
        and not s.lines[s.at].text:find "^%-%f[%s\0]" do
        local line = s.lines[s.at]
        local key, rest = key_of(line.text)
        if not key then
            imported.refuse(s.where, line.number, "'%.40s' is not key: value", line.text)
        elseif map[key] ~= nil then
            imported.refuse(s.where, line.number, "'%.40s' is given twice; remove one", key)
        end
        s.at = s.at + 1
        map[key] = value_of(s, rest, line.number, indent, depth)
    end
    return map
end

local function sequence(s, indent, depth)
    local list = {}
    while s.lines[s.at] and s.lines[s.at].indent == indent
        and s.lines[s.at].text:find "^%-%f[%s\0]" do
        local line = s.lines[s.at]
        local dash, rest = line.text:match "^(%-%s*)(.*)$"
        if rest ~= "" and key_of(rest) and not rest:find "^[%[{!\"']" then
            -- The first key of a mapping stands behind the dash.
            line.indent, line.text = indent + #dash, rest
            list[#list + 1] = mapping(s, line.indent, depth + 1)
        else
            s.at = s.at + 1
            list[#list + 1] = value_of(s, rest, line.number, indent, depth)
        end
    end
    return list
end

function block(s, indent, depth)
    local line = s.lines[s.at]
    count_value(s, line.number)
    if depth > MOST_DEPTH then
        imported.refuse(s.where, line.number, "values are nested more than %d deep", MOST_DEPTH)
    end
    local made = line.text:find "^%-%f[%s\0]" and sequence(s, indent, depth)
        or mapping(s, indent, depth)
    local after = s.lines[s.at]
    if after and after.indent > indent then
        imported.refuse(s.where, after.number, "'%.40s' is indented more than what it belongs to",
            after.text)
    end
    return made
end

--- The value of a text: tables, strings, numbers, booleans, NULL and {tag =, value =}.
-- Errors: argument, with the line.
function yaml_text.parse(text, where)
    local s = {lines = lines_of(text, where), at = 1, values = 0, where = where}
    if #s.lines == 0 then
        imported.refuse(where, 1, "the file is empty")
    end
    local made = block(s, s.lines[1].indent, 1)
    if s.lines[s.at] then
        imported.refuse(where, s.lines[s.at].number,
            "'%.40s' is indented less than what it belongs to", s.lines[s.at].text)
    end
    return made
end

return yaml_text
