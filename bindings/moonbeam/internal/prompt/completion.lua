--- Completion at the prompt: names, members, options and their values, and what help knows.

local arguments = require "moonbeam.internal.arguments"
local core = require "moonbeam.core"
local declared = require "moonbeam.internal.declared"
local modules = require "moonbeam.internal.modules"
local tables = require "moonbeam.internal.tables"

local function add_matching(found, names, prefix, head, tail)
    for _, name in ipairs(names) do
        if name:sub(1, #prefix) == prefix then
            found[#found + 1] = head .. name .. (tail or "")
        end
    end
end

local function string_keys(t, only_functions)
    local keys = {}
    for key, value in next, t do
        if type(key) == "string" and key:match("^[%a_][%w_]*$")
            and (not only_functions or type(value) == "function") then
            keys[#keys + 1] = key
        end
    end
    return keys
end

-- The members of a value: only methods after a colon, everything after a dot.
local function members(value, colon)
    if arguments.is_array(value) then
        local names, properties = string_keys(core.array.methods), core.array.properties
        return colon and names or table.move(properties, 1, #properties, #names + 1, names)
    elseif type(value) == "userdata" then
        local meta = debug.getmetatable(value) or {}
        local index = meta.methods or meta.__index
        return type(index) == "table" and string_keys(index) or {}
    elseif type(value) == "string" then
        return string_keys(string, true)
    elseif type(value) == "table" then
        local names = string_keys(value, colon)
        if value == package.loaded.moonbeam then
            for _, name in ipairs(modules.names()) do -- also those that are not loaded yet
                if rawget(value, name) == nil then
                    names[#names + 1] = name
                end
            end
        end
        return names
    end
    return {}
end

-- The value of "mb.tomo" in the environment. Calls nothing except the module's lazy loading.
local function resolve(path, env)
    local value = env
    for part in path:gmatch("[^.:]+") do
        if type(value) == "table" then
            local raw = rawget(value, part)
            if raw == nil and value == package.loaded.moonbeam then
                local ok, member = pcall(function()
                    return value[part]
                end)
                raw = ok and member or nil
            end
            value = raw
        elseif arguments.is_array(value) and part == "device" and not value.released then
            value = value.device
        else
            return nil
        end
    end
    return value
end

-- What is open at the end of a text: a list of the open brackets, outermost first, each {bracket,
-- at, commas}; and the place of the open quote, or nil.
local function open_parts(text)
    local stack, quote, quote_at, i = {}, nil, nil, 1
    while i <= #text do
        local c, top = text:sub(i, i), stack[#stack]
        if quote and c == "\\" then
            i = i + 1
        elseif quote then
            quote = c ~= quote and quote or nil
        elseif c == '"' or c == "'" then
            quote, quote_at = c, i
        elseif c == "(" or c == "{" then
            stack[#stack + 1] = {bracket = c, at = i, commas = 0}
        elseif c == ")" or c == "}" then
            stack[#stack] = nil
        elseif c == "," and top then
            top.commas = top.commas + 1
        end
        i = i + 1
    end
    return stack, quote and quote_at
end

-- The entries of a function or method: its arguments and its options, or nil.
local function entries_of(path, env)
    local operator = path:match("^mb%.([%w_]+)$")
    local op = require "moonbeam.op"
    if operator and op.functions[operator] then
        local args, options = {}, {}
        for _, arg in ipairs(core.op.describe(operator).args) do
            if arg.kind == "out" then
                options[#options + 1] = {name = "out"}
            else
                local list = (arg.required or arg.array and not arg.optional) and args or options
                list[#list + 1] = arg
            end
        end
        return args, options
    end
    require "moonbeam.internal.natives"
    local object, method = path:match("^(.-):([%w_]+)$")
    local value = resolve(object or path, env)
    local declaration
    if object then
        local kind = ((debug.getmetatable(value) or {}).__name or ""):match("^moonbeam%.(%w+)$")
        declaration = kind and declared.of(kind .. ":" .. method)
    elseif type(value) == "function" or type(value) == "table" then
        declaration = declared.of(value) or declared.of(path:gsub("^mb%.", ""))
    end
    return declaration, declaration and declaration.options
end

-- The call in whose parentheses or option table the text ends: the list of arguments, of options
-- and whether the innermost bracket is that of the options. nil if there is none.
local function open_call(text, stack, env)
    local top, outer = stack[#stack], stack[#stack - 1]
    if not top then
        return nil
    end
    local path = text:sub(1, top.at - 1):match("([%a_][%w_.:]*)%s*$")
    if not path and top.bracket == "{" and outer and outer.bracket == "(" then
        path = text:sub(1, outer.at - 1):match("([%a_][%w_.:]*)%s*$")
    end
    if not path then
        return nil
    end
    local args, options = entries_of(path, env)
    return args, options, top.bracket == "{"
end

-- Names that help knows: operators, functions, modules, topics.
local function help_names()
    local documentation = require "moonbeam.internal.documentation"
    local names = tables.keys(documentation.TOPICS)
    for _, operator in ipairs(require("moonbeam.op").list()) do
        names[#names + 1] = operator
    end
    for _, module in ipairs(documentation.modules()) do
        names[#names + 1] = module
        for _, record in ipairs(documentation.members(module)) do
            names[#names + 1] = record.name
        end
    end
    return names
end

-- The choices of the argument or option whose string is open at `quote_at`.
local function choices(before, stack, quote_at, env)
    local args, options, in_options = open_call(before, stack, env)
    local found
    if in_options then
        local key = before:sub(1, quote_at - 1):match("([%a_][%w_]*)%s*=%s*$")
        for _, entry in ipairs(options or {}) do
            found = found or entry.name == key and entry
        end
    elseif args then
        found = args[stack[#stack].commas + 1]
    end
    return found and found.choices or {}
end

local keywords = {
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
    "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
}

local function unique(found)
    table.sort(found)
    local list = {}
    for i, name in ipairs(found) do
        if name ~= found[i - 1] then
            list[#list + 1] = name
        end
    end
    return list
end

-- Candidates for the word that ends the line `before .. word`.
return function(word, before, env)
    env, before = env or _G, before or ""
    local found = {}
    local stack, quote_at = open_parts(before)
    if before:find("^%s*%?%s*$") or before:find("^%s*help%s*%(?%s*[\"']$")
        or before:find("^%s*help%s+$") then
        add_matching(found, help_names(), word, "")
        return unique(found)
    elseif quote_at then
        local typed = before:sub(quote_at + 1)
        for _, choice in ipairs(choices(before, stack, quote_at, env)) do
            if choice:sub(1, #typed) == typed then
                add_matching(found, {choice:sub(#typed + 1)}, word, "")
            end
        end
        return unique(found)
    end
    local path, separator, prefix = word:match("^(.*)([.:])([%w_]*)$")
    if path then
        local value = resolve(path, env)
        if value ~= nil then
            add_matching(found, members(value, separator == ":"), prefix, path .. separator)
        end
        return unique(found)
    end
    local _, options, in_options = open_call(before, stack, env)
    if in_options and options and not before:find("=%s*$") then
        for _, entry in ipairs(options) do
            add_matching(found, {entry.name}, word, "", " = ")
        end
    else
        add_matching(found, string_keys(env), word, "")
        add_matching(found, keywords, word, "")
    end
    return unique(found)
end
