--- Command lines of the recipes: one table declares the options; parsing, --help and the error texts come from it.
--
--   local options = cli.parse(arg, {
--       usage = "reconstruct.lua SCAN [options]", summary = "...",
--       {"scan", positional = true, required = true, doc = "..."},
--       {"rows", short = "r", value = "A:B", type = cli.range, doc = "..."},
--   })
--
-- A type is a function from text to a value, or nil and what is wrong. An option without `value` is a switch.

local core = require "moonbeam.core"

local cli = {}

--- "8G" (8e9), "512Mi" (512 * 2^20), "1000000" -> bytes.
function cli.bytes(text)
    local ok, bytes = pcall(core.device.bytes, text)
    if not ok then
        return nil, "a size such as 8G, 512Mi or 1000000"
    end
    return bytes
end

function cli.number(text)
    local value = tonumber(text)
    if not value then
        return nil, "a number"
    end
    return value
end

function cli.count(text)
    local value = math.tointeger(tonumber(text))
    if not value or value < 1 then
        return nil, "a whole number, 1 or more"
    end
    return value
end

--- "3,1.5,1.5" -> {3, 1.5, 1.5}.
function cli.numbers(text)
    local list = {}
    for word in text:gmatch("[^,]+") do
        list[#list + 1] = tonumber(word)
        if not list[#list] then
            return nil, "numbers such as 3,1.5,1.5"
        end
    end
    return list
end

--- "64,512,512" -> {64, 512, 512}; an x between them will do too.
function cli.extents(text)
    local list = {}
    for word in text:gmatch("[^,x]+") do
        list[#list + 1] = math.tointeger(tonumber(word))
        if not list[#list] or list[#list] < 1 then
            return nil, "extents such as 64,512,512"
        end
    end
    return list
end

--- "a:b" -> {a, b}; 1-based and inclusive; "a" alone is one row; an end left out is nil.
function cli.range(text)
    local first, last = text:match("^(%-?%d*):(%-?%d*)$")
    if not first then
        first = text:match("^%-?%d+$")
        last = first
    end
    if not first then
        return nil, "a range A:B (1-based, inclusive)"
    end
    return {math.tointeger(tonumber(first)), math.tointeger(tonumber(last))}
end

function cli.choice(...)
    local choices = {...}
    return function(text)
        for _, choice in ipairs(choices) do
            if choice == text then
                return text
            end
        end
        return nil, "one of " .. table.concat(choices, ", ")
    end
end

local function nearest(name, spec)
    local names = {}
    for _, option in ipairs(spec) do
        if not option.positional then
            names[#names + 1] = option[1]
        end
    end
    return core.error.nearest(name, names)
end

local function default_text(value)
    return type(value) == "table" and table.concat(value, ",") or tostring(value)
end

--- The text of --help.
function cli.help(spec)
    local lines = {"usage: moonbeam " .. spec.usage, "", spec.summary, ""}
    local rows, width = {}, 0
    for _, option in ipairs(spec) do
        local left = option.positional and option[1]:upper()
            or (option.short and "-" .. option.short .. ", " or "") .. "--" .. option[1]
                .. (option.value and " " .. option.value or "")
        rows[#rows + 1] = {left, option.doc .. (option.default ~= nil and (" (default %s)"):format(default_text(option.default)) or "")}
        width = math.max(width, #left)
    end
    rows[#rows + 1] = {"-h, --help", "this text"}
    for _, row in ipairs(rows) do
        lines[#lines + 1] = ("  %-" .. width .. "s  %s"):format(row[1], row[2])
    end
    if spec.notes then
        lines[#lines + 1] = ""
        lines[#lines + 1] = spec.notes
    end
    return table.concat(lines, "\n") .. "\n"
end

-- Wrong use ends the program with status 2, as command-line programs do.
local function fail(spec, message)
    io.stderr:write(("%s\n(--help lists the options of %s)\n"):format(message, spec.usage:match("^%S+")))
    os.exit(2, true)
end

--- Parses `arguments` (the global `arg`). Returns a table keyed by option name, with `-` as `_`.
function cli.parse(arguments, spec)
    local by_name, positional, values = {}, {}, {}
    for _, option in ipairs(spec) do
        if option.positional then
            positional[#positional + 1] = option
        else
            by_name["--" .. option[1]] = option
            if option.short then
                by_name["-" .. option.short] = option
            end
        end
        values[option[1]:gsub("-", "_")] = option.default
    end
    local function set(option, text)
        local value = text
        if option.type then
            local problem
            value, problem = option.type(text)
            if value == nil then
                fail(spec, ("%s: \"%s\" is not %s"):format(option.positional and option[1] or "--" .. option[1], text, problem))
            end
        end
        values[option[1]:gsub("-", "_")] = value
    end
    local at, next_positional, only_positional = 1, 1, false
    while at <= #arguments do
        local word = arguments[at]
        local name, attached = word:match("^(%-%-[^=]+)=(.*)$")
        name = name or word
        if word == "--" and not only_positional then
            only_positional = true
        elseif not only_positional and (word == "--help" or word == "-h") then
            io.write(cli.help(spec))
            os.exit(0, true)
        elseif not only_positional and word:match("^%-.") and not (tonumber(word) and not by_name[name]) then
            local option = by_name[name]
            if not option then
                local near = nearest(name:gsub("^%-+", ""), spec)
                fail(spec, ("unknown option %s%s"):format(name, near and ("; did you mean --%s?"):format(near) or ""))
            end
            if not option.value then
                if attached then
                    fail(spec, ("%s takes no value"):format(name))
                end
                set({option[1]}, true)
            else
                if not attached then
                    at = at + 1
                    attached = arguments[at]
                end
                if not attached then
                    fail(spec, ("%s needs a value: %s %s"):format(name, name, option.value))
                end
                set(option, attached)
            end
        else
            local option = positional[next_positional]
            if not option then
                fail(spec, ("one argument too many: %s"):format(word))
            end
            set(option, word)
            next_positional = next_positional + 1
        end
        at = at + 1
    end
    for _, option in ipairs(spec) do
        if option.required and values[option[1]:gsub("-", "_")] == nil then
            fail(spec, ("%s is missing"):format(option.positional and option[1]:upper() or "--" .. option[1]))
        end
    end
    return values
end

return cli
